//! The handshake of a connection, and what its SYN segments agree on: window scale, timestamps, selective
//! acknowledgements, segment sizes and ECN (RFC 9293, section 3.5; RFC 7323; RFC 2018; RFC 3168; RFC 9768).

use perhop_core::{Ecn, Instant};
use perhop_sim::transport::tcp::TcpEcn;

use super::{Again, Connection, Ended, FIRST_TIMEOUT, Owed, Packet, Setup, State};
use crate::segment::{Flags, Options, Ranges, Segment};

/// The ECN feedback that both ends have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signalling {
    /// The connection does not use ECN.
    None,
    /// ECN-Echo and CWR (RFC 3168).
    Classic,
    /// Accurate ECN: the ACE field (RFC 9768).
    Accurate,
}

/// What both ends have agreed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreed {
    /// The initial sequence number of the other end.
    pub(super) first: u32,
    /// Window scale of the other end's windows, and of ours.
    pub(super) scales: (u8, u8),
    /// Both ends understand selective acknowledgements.
    pub(super) selective: bool,
    /// The timestamp to echo; `None` if segments carry no timestamps.
    pub(super) time: Option<u32>,
    pub(super) signalling: Signalling,
    /// The ECN field of the packet with the other end's SYN.
    pub(super) came: Ecn,
}

impl Agreed {
    /// Nothing, before a SYN has arrived.
    pub(super) const NOTHING: Self = Self {
        first: 0,
        scales: (0, 0),
        selective: false,
        time: None,
        signalling: Signalling::None,
        came: Ecn::NotCapable,
    };

    /// Returns what a setup and the other end's SYN have in common.
    fn of(setup: &Setup, syn: &Segment<'_>, is_active: bool) -> Self {
        let (theirs, ecn) = (syn.options, setup.ecn);
        let bits = (syn.flags.has(Flags::AE), syn.flags.has(Flags::CWR), syn.flags.has(Flags::ECE));
        // RFC 9768, section 3.1.1: its table of handshakes.
        let signalling = match (ecn.is_off(), ecn.counts(), is_active, bits) {
            (false, true, true, (false, true, _) | (true, _, false))
            | (false, true, false, (true, true, true)) => Signalling::Accurate,
            (false, _, true, (false, false, true)) | (false, _, false, (false, true, true)) => {
                Signalling::Classic
            }
            _ => Signalling::None,
        };
        Self {
            first: syn.sequence,
            scales: theirs.scale.map_or((0, 0), |scale| (scale.min(14), setup.scale())),
            selective: theirs.selective && setup.params.sack,
            time: theirs.times.filter(|_| setup.has_times()).map(|(value, _)| value),
            signalling,
            came: syn.ecn,
        }
    }
}

impl Connection {
    /// Opens a connection actively: a SYN is to be sent.
    pub fn open(setup: Setup, now: Instant) -> Self {
        let has_own_syn = setup.params.handshake;
        let mut connection = Self::new(setup, has_own_syn, true);
        if has_own_syn {
            connection.outgoing.sender.start(now);
        } else {
            connection.owes.syn = true;
            connection.again = Again::after(FIRST_TIMEOUT, now);
        }
        connection
    }

    /// Opens a connection passively, by the SYN of the other end; `None` if the segment is none.
    pub fn accept(setup: Setup, syn: &Segment<'_>, now: Instant) -> Option<Self> {
        if !syn.flags.has(Flags::SYN) || syn.flags.has(Flags::ACK) || syn.flags.has(Flags::RST) {
            return None;
        }
        let mut connection = Self::new(setup, false, false);
        connection.agree(syn);
        connection.state = State::SynReceived;
        connection.owes.syn = true;
        connection.again = Again::after(FIRST_TIMEOUT, now);
        Some(connection)
    }

    /// Processes a segment in the state SYN-SENT (RFC 9293, section 3.10.7.3).
    pub(super) fn on_answer(&mut self, segment: &Segment<'_>, now: Instant) {
        let Segment { flags, acknowledged, .. } = *segment;
        let is_ours = acknowledged == self.number_of(0);
        if flags.has(Flags::ACK) && !is_ours {
            if !flags.has(Flags::RST) {
                self.owes.reset = Some(acknowledged);
            }
        } else if flags.has(Flags::RST) {
            if flags.has(Flags::ACK) {
                self.end(Ended::Refused);
            }
        } else if flags.has(Flags::SYN | Flags::ACK) {
            self.agree(segment);
            self.state = State::Established;
            self.again = Again::NEVER;
            self.owes = Owed { first_ack: true, ..Owed::default() };
            self.outgoing.open(segment.window.into(), now);
            self.outgoing.set_window(segment, segment.window.into());
        }
    }

    /// Processes an ACK in the state SYN-RECEIVED; returns whether it acknowledges our SYN (RFC 9293, section
    /// 3.10.7.4).
    pub(super) fn establish(&mut self, segment: &Segment<'_>, now: Instant) -> bool {
        if segment.acknowledged != self.number_of(0) {
            self.owes.reset = Some(segment.acknowledged);
            return false;
        }
        self.state = State::Established;
        self.again = Again::NEVER;
        self.owes.syn = false;
        let window = self.window_of(segment);
        self.outgoing.open(window, now);
        self.outgoing.set_window(segment, window);
        true
    }

    /// Agrees on the options that both this end and the other end's SYN have.
    fn agree(&mut self, syn: &Segment<'_>) {
        self.agreed = Agreed::of(&self.setup, syn, self.is_active);
        let options = if self.agreed.time.is_some() { 12 } else { 0 };
        // RFC 9293, section 3.7.1: the default MSS where the option is missing.
        let default = if self.setup.local.is_ipv4() { 536 } else { 1220 };
        let most = syn.options.most.unwrap_or(default).max(64);
        self.outgoing.most = self.outgoing.most.min(u64::from(most - options));
        let ours = self.setup.params.packet.get() as u16 - self.setup.headers();
        self.incoming.expect_segments_of(u64::from(ours.min(most) - options));
        self.incoming.marked = 0;
        self.last_acknowledged = syn.sequence.wrapping_add(1);
    }

    /// Writes the SYN, or the SYN-ACK.
    pub(super) fn write_syn(&mut self, now: Instant, room: &mut [u8]) -> Option<Packet> {
        let Setup { ref params, ecn, first_number, .. } = self.setup;
        let millis = (now.as_nanos() / 1_000_000) as u32;
        let is_answer = !self.is_active;
        let times = self.setup.has_times() && (!is_answer || self.agreed.time.is_some());
        let offers = |theirs: bool| !is_answer || theirs;
        let options = Options {
            most: Some(params.packet.get() as u16 - self.setup.headers()),
            scale: offers(self.agreed.scales != (0, 0)).then(|| self.setup.scale()),
            selective: params.sack && offers(self.agreed.selective),
            times: times.then(|| (first_number.wrapping_add(millis), self.agreed.time.unwrap_or(0))),
            ranges: Ranges::default(),
        };
        let signals = match (is_answer, ecn, self.agreed.signalling) {
            (false, TcpEcn::Off, _) | (true, _, Signalling::None) => Flags::NONE,
            (false, TcpEcn::Classic, _) => Flags::ECE | Flags::CWR,
            (false, TcpEcn::Accurate | TcpEcn::L4s, _) => Flags::AE | Flags::ECE | Flags::CWR,
            (true, _, Signalling::Classic) => Flags::ECE,
            (true, _, Signalling::Accurate) => Flags::of_ace(handshake_ace(self.agreed.came)),
        };
        let flags = Flags::SYN | Flags::ACK.when(is_answer) | signals;
        let window = self.incoming.window.min(u64::from(u16::MAX)) as u16;
        let bare = self.bare(now);
        let acknowledged = if is_answer { bare.acknowledged } else { 0 };
        let syn = Segment { sequence: first_number, acknowledged, flags, window, options, ..bare };
        self.write(&syn, None, room)
    }
}

/// Returns the ACE field that reports the ECN field of a SYN or a SYN-ACK (RFC 9768, table 3).
pub(super) const fn handshake_ace(came: Ecn) -> u32 {
    match came {
        Ecn::NotCapable => 0b010,
        Ecn::Capable1 => 0b011,
        Ecn::Capable0 => 0b100,
        Ecn::Congested => 0b110,
    }
}
