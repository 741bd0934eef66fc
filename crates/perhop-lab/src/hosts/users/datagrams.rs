//! Users that send datagrams one by one, such as players of a game.
//!
//! Each host opens its sockets in its own namespace. The thread of the receiving host then has those of both:
//! it wakes the users, sends whatever they say from either host, and tells them what arrives at either.

use std::io;

use nix::sys::epoll::EpollFlags;
use perhop_core::{Instant, Rng};
use perhop_sim::application::{Direction, UserEvent};
use perhop_sim::transport::transit::TransitMeter;
use perhop_sim::transport::{Sender, Source};
use socket2::Socket;

use super::super::role::{Common, Host, datagram_socket};
use super::super::sending::send_datagrams;
use super::{Attendants, ConnectionCounts, Task, Users};
use crate::letter;
use crate::setting::{Kind, Setting, Side};

/// Both ends of a flow of datagrams.
pub(super) struct DatagramEnds {
    from: Socket,
    to: Socket,
    direction: Direction,
    sender: Box<Sender>,
    rng: Rng,
    pub(super) transit: TransitMeter,
}

impl Users {
    /// Opens the sockets of a host for the datagrams of users; the calling thread is in the host's namespace.
    pub(crate) fn open(&self, setting: &Setting, side: Side) -> io::Result<()> {
        let flows = setting.flows.iter().filter(|flow| flow.is_users);
        let sockets = flows.map(|flow| Ok((flow.number, datagram_socket(setting, side, flow)?)));
        *self.sockets_of(side) = sockets.collect::<io::Result<_>>()?;
        Ok(())
    }
}

impl Attendants<'_> {
    /// Takes over the sockets that both hosts have opened.
    pub(super) fn begin_datagrams(&mut self, host: &Host<'_, Task>) -> io::Result<()> {
        let Common { setting, .. } = host.common;
        let window = (Instant::ZERO + setting.warmup, Instant::ZERO + setting.duration);
        let mut sockets =
            [Side::Sending, Side::Receiving].map(|side| std::mem::take(&mut *self.users.sockets_of(side)));
        for flow in setting.flows.iter().filter(|flow| flow.is_users) {
            let mut take = |side: Side| sockets[side as usize].remove(&flow.number);
            let (Some(from), Some(to)) = (take(flow.from), take(flow.from.other())) else { continue };
            let Kind::Datagrams { sender, rng, play_out, .. } = &flow.kind else { continue };
            let (mut sender, rng) = (sender.clone(), rng.clone());
            sender.await_grants();
            host.waiter.add(&to, EpollFlags::EPOLLIN, flow.number as u64)?;
            let direction = if flow.from == Side::Sending { Direction::Response } else { Direction::Request };
            let transit = TransitMeter::new(window).with_play_out(*play_out);
            let ends = DatagramEnds { from, to, direction, sender, rng, transit };
            self.datagrams.insert(flow.number, ends);
            self.counts.insert(flow.number, ConnectionCounts::default());
        }
        Ok(())
    }

    /// Sends a datagram of this size on the wire.
    pub(super) fn send_datagram(&mut self, host: &Host<'_, Task>, number: usize, size: u16) {
        let Self { datagrams, room, .. } = self;
        let Some(DatagramEnds { from, sender, rng, .. }) = datagrams.get_mut(&number) else { return };
        let now = host.now();
        sender.send_datagram(size, now);
        send_datagrams(&host.common.setting.flows[number], host, from, (sender, rng), room, now);
    }

    /// Tells a user of the datagrams that have arrived.
    pub(super) fn receive_datagrams(&mut self, host: &mut Host<'_, Task>, number: usize) -> io::Result<()> {
        let Common { setting, shared, .. } = host.common;
        let (user, connection) = self.owners[&number];
        loop {
            let Self { datagrams, room, .. } = self;
            let Some(DatagramEnds { to, direction, transit, .. }) = datagrams.get_mut(&number) else { break };
            let Ok(length) = io::Read::read(&mut &*to, room) else { break };
            let Some((sequence, envelope)) = letter::read_data(&room[..length]) else { continue };
            let (now, direction) = (host.now(), *direction);
            transit.record(sequence, envelope.sent, now);
            let headers = u64::from(setting.flows[number].headers());
            shared.flows[number].count_datagram(length as u64 + headers);
            let transit = now.since(envelope.sent);
            self.tell(host, user, UserEvent::Datagram { connection, direction, transit })?;
        }
        Ok(())
    }

    /// Notes what has been sent so far.
    pub(super) fn note_datagrams(&mut self) {
        for (number, ends) in &self.datagrams {
            if let Some(counts) = self.counts.get_mut(number) {
                counts.latest = ends.sender.statistics();
            }
        }
    }
}
