//! UDP: a constant bit rate, all the time or on and off.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use perhop_core::curves::{Concave, Line, divided_up, nanobits};
use perhop_core::units::{UnitError, defaults, require};
use perhop_core::{Bitrate, Bytes, Context, Dscp, Duration, Instant, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metadata::{Envelope, Metadata};
use super::pacing::{Fraction, Gaps, check_rate, check_size, packets};
use super::packet_trace::{PacketTrace, Replayed};
use super::{Ack, SenderStatistics, Source, Transmit};

/// The sending pattern of a UDP source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// A constant bit rate: one packet in each packet time.
    Cbr,
    /// A constant bit rate while it is on, silence while it is off.
    OnOff,
}

/// The distribution of the times that an on-off source is on and off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Periods {
    /// Exponentially distributed, like a speaker's talk spurts and pauses.
    #[default]
    Exponential,
    /// Constant, equal to their means.
    Constant,
}

/// A source over UDP that does not react to losses.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct UdpParams {
    /// The sending pattern.
    pub udp: Pattern,
    /// Sending rate (of an on-off source: while it is on), IP headers included.
    pub rate: Bitrate,
    /// Packet size on the wire.
    #[serde(default = "defaults::bytes::<1000>")]
    pub packet: Bytes,
    /// Each gap between packets is drawn uniformly from within this fraction of the nominal gap, to avoid
    /// phase effects.
    #[serde(default = "defaults::probability::<1, 100>")]
    pub jitter: Fraction,
    /// On-off: the mean time that the source is on. Speech: `1.004s` (ITU-T P.59).
    pub on: Option<Duration>,
    /// On-off: the mean time that the source is off. Speech: `1.587s` (ITU-T P.59).
    pub off: Option<Duration>,
    /// On-off: the distribution of these times. Default: `exponential`.
    pub periods: Option<Periods>,
    /// The trace whose packets it sends in place of its pattern; `packet` is the size of the largest.
    #[serde(skip)]
    pub trace: Option<Arc<PacketTrace>>,
}

impl UdpParams {
    /// Makes the parameters of a flow without a rate whose application sends datagrams of at most this size.
    pub fn datagrams(largest: Bytes) -> Self {
        Self {
            udp: Pattern::Cbr,
            rate: Bitrate::MAX,
            packet: largest,
            jitter: defaults::probability::<1, 100>(),
            on: None,
            off: None,
            periods: None,
            trace: None,
        }
    }

    /// Makes the parameters of a flow that sends the packets of a trace.
    pub fn traced(trace: &Arc<PacketTrace>) -> Self {
        Self { trace: Some(Arc::clone(trace)), ..Self::datagrams(trace.largest()) }
    }

    /// Checks how the parameters fit together.
    ///
    /// # Errors
    /// The key that does not fit, and what would.
    pub fn check(&self) -> Result<(), UnitError> {
        check_size("packet", self.packet)?;
        check_rate("rate", self.rate, self.packet)?;
        match self.udp {
            Pattern::Cbr => self.check_always_on(),
            Pattern::OnOff => self.check_on_off(),
        }
    }

    fn check_always_on(&self) -> Result<(), UnitError> {
        let given =
            [("on", self.on.is_some()), ("off", self.off.is_some()), ("periods", self.periods.is_some())];
        for (key, is_given) in given {
            require(!is_given, key, "a source of udp = \"cbr\" is always on; write udp = \"on-off\"")?;
        }
        Ok(())
    }

    fn check_on_off(&self) -> Result<(), UnitError> {
        let why = "an on-off source needs `on` and `off`, its mean times, such as 1.004s and 1.587s";
        require(self.on.is_some(), "on", why)?;
        require(self.off.is_some(), "off", why)?;
        let gap = self.gap();
        let why = format!("the source is on for at least a packet's time, {gap}");
        require(self.on.is_none_or(|on| on >= gap), "on", why)
    }

    /// Returns what the source sends at most, at its host.
    ///
    /// # Errors
    /// Why nothing bounds it.
    pub(crate) fn arrivals(&self) -> Result<Concave, &'static str> {
        if let Some(trace) = &self.trace {
            return Ok(trace.arrivals());
        }
        if self.rate == Bitrate::MAX {
            return Err("its application sends datagrams of its own accord; a policer would bound them");
        }
        let gap = Gaps::new(self.gap(), self.jitter).least();
        let steady = Concave::packets(self.packet, gap);
        let (Some(on), Some(off), Some(Periods::Constant)) = (self.on, self.off, self.periods) else {
            return Ok(steady); // An exponential time has no end.
        };
        // In a time t the source is on for at most (t + off) · on / (on + off).
        let [on, off, gap] = [on, off, gap].map(|time| i128::from(time.as_nanos()));
        let size = nanobits(self.packet);
        let rate = divided_up(size.saturating_mul(on), gap * (on + off).max(1));
        let burst = divided_up(size.saturating_mul(on).saturating_mul(off), gap * (on + off).max(1));
        Ok(steady.min(&Concave::of([Line { rate, amount: size.saturating_add(burst) }])))
    }

    /// Returns the mean rate of the source in bit/s; that of a trace is infinite.
    pub(crate) fn mean_rate(&self) -> f64 {
        let part = self.on.zip(self.off).map_or(1.0, |(on, off)| on.as_secs_f64() / (on + off).as_secs_f64());
        if self.rate == Bitrate::MAX { f64::INFINITY } else { part * self.rate.as_bps() as f64 }
    }

    /// Returns the time from one packet to the next.
    fn gap(&self) -> Duration {
        self.rate.time_of(self.packet).max(Duration::from_nanos(1))
    }
}

/// Sends one packet each `packet * 8 / rate` seconds, whatever happens to them; an on-off source counts only
/// the time that it is on, so its mean rate is `rate * on / (on + off)`.
#[derive(Clone, Debug)]
pub struct UdpSender {
    size: u16,
    /// The size of the last packet.
    last: u16,
    gaps: Gaps,
    spurts: Option<Spurts>,
    next: Instant,
    /// When the time of the next packet was drawn; `None` before the first packet.
    drawn: Option<Instant>,
    left: Option<u64>,
    /// When it sent the last packet of its volume or its trace; `None` before.
    finished: Option<Instant>,
    /// The sizes of the datagrams that the application has handed over, if it does.
    waiting: Option<VecDeque<u16>>,
    /// How far it is in its trace, if it has one.
    replayed: Option<Box<Replayed>>,
    sequence: u32,
    statistics: SenderStatistics,
}

/// So often is a time drawn anew at most.
const MOST_REDRAWS: usize = 64;

/// When an on-off source is on.
#[derive(Clone, Debug)]
struct Spurts {
    on: Duration,
    off: Duration,
    periods: Periods,
    /// When the spurt ends that is on now; `None` before the first.
    end: Option<Instant>,
    /// The end of the spurt that was on before the time of the next packet was drawn.
    before: Option<Instant>,
}

impl UdpSender {
    /// Makes a source of these parameters, which ends after `volume` bytes if one is given.
    pub fn new(params: &UdpParams, volume: Option<Bytes>) -> Self {
        Self {
            size: params.packet.get() as u16,
            last: params.packet.get() as u16,
            gaps: Gaps::new(params.gap(), params.jitter),
            spurts: params.on.zip(params.off).map(|(on, off)| Spurts {
                on,
                off,
                periods: params.periods.unwrap_or_default(),
                end: None,
                before: None,
            }),
            next: Instant::NEVER,
            drawn: None,
            left: packets(volume, params.packet),
            finished: None,
            waiting: None,
            replayed: params.trace.as_ref().map(|trace| Box::new(Replayed::new(trace))),
            sequence: 0,
            statistics: SenderStatistics::default(),
        }
    }

    /// Counts a packet that leaves now; returns its number.
    #[inline]
    fn number(&mut self) -> u32 {
        self.statistics.sent += 1;
        let number = self.sequence;
        self.sequence = number.wrapping_add(1);
        number
    }

    /// Puts the next packet on the wire at the source's rate; returns its number.
    #[inline]
    fn send(&mut self, cx: &mut Context<'_>) -> u32 {
        let sequence = self.number();
        let next = cx.now + self.gaps.draw(cx.rng);
        self.drawn = Some(cx.now);
        self.next = self.spurts.as_mut().map_or(next, |spurts| spurts.skip_silence(cx.now, next, cx.rng));
        sequence
    }

    /// Draws the time of the next packet anew, given that it has not come by now: by rejection. Where that
    /// takes long, the time stays.
    pub(super) fn redraw(&mut self, cx: &mut Context<'_>) {
        let Some(drawn) = self.drawn else { return };
        let has_next = self.left != Some(0) && self.waiting.is_none() && self.replayed.is_none();
        if !has_next || self.next <= cx.now || self.next == Instant::NEVER {
            return;
        }
        for _ in 0..MOST_REDRAWS {
            let next = drawn + self.gaps.draw(cx.rng);
            let mut spurts = self.spurts.clone().map(|spurts| Spurts { end: spurts.before, ..spurts });
            let next = spurts.as_mut().map_or(next, |spurts| spurts.skip_silence(drawn, next, cx.rng));
            if next > cx.now {
                (self.next, self.spurts) = (next, spurts);
                return;
            }
        }
    }

    /// Sends what the application has handed over, at once.
    fn transmit_datagram(&mut self) -> Option<Transmit> {
        let Some(size) = self.waiting.as_mut().and_then(VecDeque::pop_front) else {
            self.next = Instant::NEVER;
            return None;
        };
        Some(Transmit::plain(self.number(), size))
    }

    /// Sends the next packet of the trace.
    fn transmit_traced(&mut self, now: Instant) -> Option<Transmit> {
        let replayed = self.replayed.as_mut()?;
        let packet = replayed.take()?;
        self.next = replayed.due();
        self.finished = (self.next == Instant::NEVER).then_some(now);
        Some(Transmit::plain(self.number(), packet.size))
    }

    /// Changes the rate to that of these parameters, from `now` on.
    pub(super) fn set_rate(&mut self, params: &UdpParams, now: Instant) {
        self.gaps.set(params.gap());
        if self.spurts.is_none()
            && self.waiting.is_none()
            && self.replayed.is_none()
            && self.next != Instant::NEVER
        {
            self.next = self.next.min(now + self.gaps.nominal());
        }
    }
}

impl Source for UdpSender {
    fn start(&mut self, now: Instant) {
        if let Some(replayed) = &mut self.replayed {
            self.next = replayed.start(now);
        } else if self.waiting.is_none() {
            self.next = now;
        }
    }

    fn stop(&mut self) {
        self.next = Instant::NEVER;
    }

    fn wake(&self) -> Instant {
        self.next
    }

    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        if cx.now < self.next {
            return None;
        }
        if self.waiting.is_some() {
            return self.transmit_datagram();
        }
        if self.replayed.is_some() {
            return self.transmit_traced(cx.now);
        }
        if self.left == Some(0) {
            self.stop();
            return None;
        }
        self.left = self.left.map(|left| left - 1);
        let sequence = self.send(cx);
        let is_last = self.left == Some(0);
        self.finished = is_last.then_some(cx.now);
        Some(Transmit::plain(sequence, if is_last { self.last } else { self.size }))
    }

    fn set_last(&mut self, size: u16) {
        self.last = size;
    }

    fn codepoint(&self) -> Option<Dscp> {
        self.replayed.as_ref()?.dscp()
    }

    fn smallest(&self) -> Option<u16> {
        self.replayed.as_ref().map(|replayed| replayed.trace.smallest())
    }

    fn await_grants(&mut self) {
        self.waiting = Some(VecDeque::new());
    }

    fn send_datagram(&mut self, size: u16, now: Instant) {
        self.waiting.get_or_insert_default().push_back(size);
        self.next = now;
    }

    fn finished(&self) -> Option<Instant> {
        self.finished
    }

    fn on_wake(&mut self, _now: Instant) {}

    fn on_ack(&mut self, _ack: Ack, _metadata: &mut Metadata, _now: Instant) {}

    /// Sends a full packet at the source's rate, if one is due and the source has no end.
    #[inline]
    fn try_wake(&mut self, cx: &mut Context<'_>) -> Option<Range<u32>> {
        let is_endless = self.left.is_none() && self.waiting.is_none() && self.replayed.is_none();
        // The number after the highest is zero.
        let sends = is_endless && cx.now >= self.next && self.sequence < u32::MAX;
        sends.then(|| {
            let number = self.send(cx);
            number..number + 1
        })
    }

    #[inline]
    fn envelope(&self, now: Instant) -> Option<Envelope> {
        Some(Envelope { sent: now, rtt: None })
    }

    fn statistics(&self) -> SenderStatistics {
        self.statistics.clone()
    }
}

impl Spurts {
    /// Returns when a packet leaves that would at `next` if the source stayed on: time off does not count.
    fn skip_silence(&mut self, now: Instant, mut next: Instant, rng: &mut Rng) -> Instant {
        self.before = self.end;
        let mut end = match self.end {
            Some(end) => end,
            None => now + self.periods.draw(self.on, rng),
        };
        while next >= end {
            let resumes = end + self.periods.draw(self.off, rng);
            next = resumes + next.since(end);
            end = resumes + self.periods.draw(self.on, rng);
            if end == Instant::NEVER {
                break;
            }
        }
        self.end = Some(end);
        next
    }
}

impl Periods {
    fn draw(self, mean: Duration, rng: &mut Rng) -> Duration {
        match self {
            Self::Exponential => Duration::from_nanos((mean.as_nanos() as f64 * rng.exponential()) as u64),
            Self::Constant => mean,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet_trace::TracedPacket;
    use super::*;

    fn params(extra: &str) -> UdpParams {
        let text = format!(r#"{{"rate": "8Mbps", "packet": "1000B", {extra}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    /// When a source sends up to `until` seconds.
    fn times(params: &UdpParams, volume: Option<Bytes>, until: f64) -> Vec<f64> {
        let mut sender = UdpSender::new(params, volume);
        let mut rng = Rng::stream(1, "udp");
        let mut times = Vec::new();
        sender.start(Instant::ZERO);
        while sender.wake().as_secs_f64() < until {
            let now = sender.wake();
            if sender.transmit(&mut Context { now, rng: &mut rng }).is_some() {
                times.push(now.as_secs_f64());
            }
        }
        times
    }

    #[test]
    fn gaps_that_may_vanish_leave_a_burst_without_an_end() {
        let source = |table: &str| serde_json::from_str::<UdpParams>(table).unwrap().arrivals().unwrap();
        // With a jitter of the whole gap, a packet may follow the one before it in a nanosecond.
        let on_off = source(
            r#"{"udp": "on-off", "rate": "700kbps", "packet": "1500B", "on": "20ms", "off": "20ms", "periods": "constant", "jitter": 1}"#,
        );
        assert!(on_off.rate() > 1_000_000_000_000);
        // 1000 B each 8 ms, up to a hundredth sooner: 1 / 0.99 of 1 Mbit/s.
        let steady = source(r#"{"udp": "cbr", "rate": "1Mbps", "packet": "1000B", "jitter": 0.01}"#);
        assert_eq!(steady.rate(), 1_010_102);
    }

    #[test]
    fn keeps_its_rate_and_ends_after_its_volume() {
        let sent = times(&params(r#""udp": "cbr", "jitter": 0.1"#), Some(Bytes::new(1_000_000)), 10.0);
        let gaps: Vec<f64> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (0.000_9..=0.001_1).contains(gap)));
        assert_eq!(sent.len(), 1000);
        assert!((sent[999] - 1.0).abs() < 0.01, "{}", sent[999]);
    }

    #[test]
    fn a_trace_is_sent_as_it_was() {
        let packet = |millis, size, dscp| TracedPacket {
            at: Duration::from_millis(millis),
            size,
            dscp: Dscp::new(dscp),
        };
        let packets = vec![packet(0, 100, 46), packet(5, 1500, 0), packet(5, 40, 10)];
        let trace = Arc::new(PacketTrace::new(packets.clone()).unwrap());
        let mut sender = UdpSender::new(&UdpParams::traced(&trace), None);
        assert_eq!(sender.smallest(), Some(40));
        let mut rng = Rng::stream(1, "udp");
        let begin = Instant::ZERO + Duration::from_millis(7);
        sender.start(begin);
        let mut sent = Vec::new();
        while sender.wake() != Instant::NEVER {
            let now = sender.wake();
            let transmit = sender.transmit(&mut Context { now, rng: &mut rng }).unwrap();
            assert_eq!(transmit.sequence as usize, sent.len());
            sent.push(TracedPacket { at: now.since(begin), size: transmit.size, dscp: sender.codepoint() });
        }
        assert_eq!(sent, packets);
        assert_eq!(sender.statistics().sent, 3);
    }

    #[test]
    fn constant_periods_by_hand() {
        // A packet each millisecond, on for 2.5 ms, off for 10: the third gap has half a millisecond left
        // when the source falls silent.
        let constant =
            params(r#""udp": "on-off", "on": "2.5ms", "off": "10ms", "periods": "constant", "jitter": 0.0"#);
        let millis: Vec<f64> =
            times(&constant, None, 0.029).iter().map(|s| (s * 1e4).round() / 10.0).collect();
        assert_eq!(millis, [0.0, 1.0, 2.0, 13.0, 14.0, 25.0, 26.0, 27.0]);
    }

    #[test]
    fn exponential_periods_keep_the_mean_rate_and_vary() {
        let speech = params(r#""udp": "on-off", "on": "1.004s", "off": "1.587s""#);
        let sent = times(&speech, None, 4000.0);
        // 1000 packets a second for 1.004 of 2.591 s; about 1544 cycles, so 2.5 % is one standard deviation.
        let share = sent.len() as f64 / 4000.0 / 1000.0;
        assert!((share / (1.004 / 2.591) - 1.0).abs() < 0.1, "{share}");
        let pauses: Vec<f64> =
            sent.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.01).collect();
        let longest = pauses.iter().copied().fold(0.0, f64::max);
        let mean = pauses.iter().sum::<f64>() / pauses.len() as f64;
        assert!((mean / 1.587 - 1.0).abs() < 0.1 && longest > 4.0 * mean, "{mean} {longest}");
    }

    #[test]
    fn only_an_on_off_source_has_periods() {
        let refused = |extra: &str| params(extra).check().unwrap_err().key().to_owned();
        assert_eq!(refused(r#""udp": "cbr", "on": "1s""#), "on");
        assert_eq!(refused(r#""udp": "cbr", "periods": "constant""#), "periods");
        assert_eq!(refused(r#""udp": "on-off", "on": "1s""#), "off");
        assert_eq!(refused(r#""udp": "on-off", "off": "1s""#), "on");
        assert_eq!(refused(r#""udp": "on-off", "on": "0.9ms", "off": "1s""#), "on");
        assert!(params(r#""udp": "on-off", "on": "1ms", "off": "0s""#).check().is_ok());
    }
}
