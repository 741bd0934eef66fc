//! Channels: how control messages travel in the simulator.
//!
//! A channel leads from one block to one other, such as from a marker to a sender. Its messages arrive after
//! its delay, in the order in which they were sent. Each channel is a source of events, and each message that
//! takes time is one event: at one time, messages arrive after packets and timers.

use std::collections::VecDeque;

use perhop_core::control::Message;
use perhop_core::{Duration, Instant};

use crate::events::{Event, Schedule, SourceId};

/// Who receives the messages of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// The sender of the flow of this number.
    Sender(usize),
    /// The queue of the link of this number, about the path with this label.
    Queue { link: usize, label: u32 },
}

/// All channels of a run, by number.
#[derive(Clone, Debug)]
pub(crate) struct Channels {
    /// The source of events that is the first channel.
    first: u32,
    all: Vec<Channel>,
}

#[derive(Clone, Debug)]
struct Channel {
    destination: Destination,
    delay: Duration,
    /// Messages that have not arrived, and when they do.
    in_transit: VecDeque<(Instant, Message)>,
}

/// What it takes to send a message: the channels, and the queue for the event of its arrival.
pub(crate) struct Post<'a, Q> {
    pub(crate) channels: &'a mut Channels,
    pub(crate) events: &'a mut Q,
}

impl Channels {
    /// Makes a store without a channel; the first one will be this source of events.
    pub(crate) fn new(SourceId(first): SourceId) -> Self {
        Self { first, all: Vec::new() }
    }

    /// Opens a channel; returns its number.
    pub(crate) fn open(&mut self, destination: Destination, delay: Duration) -> usize {
        self.all.push(Channel { destination, delay, in_transit: VecDeque::new() });
        self.all.len() - 1
    }

    /// Returns how many channels there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the receiver at the end of a channel.
    pub(crate) fn destination(&self, channel: usize) -> Destination {
        self.all[channel].destination
    }

    /// Returns when the next message of a channel arrives.
    #[inline]
    pub(crate) fn next(&self, channel: usize) -> Instant {
        self.all[channel].in_transit.front().map_or(Instant::NEVER, |&(at, _)| at)
    }

    /// Takes the message whose event has come.
    pub(crate) fn receive(&mut self, channel: usize) -> Message {
        let (_, message) = self.all[channel].in_transit.pop_front().expect("each event is that of a message");
        message
    }
}

impl<Q: Schedule> Post<'_, Q> {
    /// Sends a message. A channel without a delay gives it back: it has arrived.
    pub(crate) fn send(&mut self, channel: usize, message: Message, now: Instant) -> Option<Message> {
        let Channels { first, all } = &mut *self.channels;
        let Channel { delay, in_transit, .. } = &mut all[channel];
        if delay.is_zero() {
            return Some(message);
        }
        let at = now + *delay;
        in_transit.push_back((at, message));
        self.events.add(Event { at, source: SourceId(*first + channel as u32) });
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::reference::Pending;

    #[test]
    fn each_message_is_an_event_after_the_delay_and_in_order() {
        let at = Instant::from_nanos;
        let (mut channels, mut events) = (Channels::new(SourceId(7)), Pending::default());
        let slow = channels.open(Destination::Sender(0), Duration::from_nanos(10));
        let fast = channels.open(Destination::Queue { link: 3, label: 1 }, Duration::from_nanos(7));
        for (channel, sent, share) in [(slow, 0, 0.1), (slow, 0, 0.2), (slow, 3, 0.3), (fast, 3, 0.4)] {
            let mut post = Post { channels: &mut channels, events: &mut events };
            assert_eq!(post.send(channel, Message::Share(share), at(sent)), None);
        }
        let mut received = Vec::new();
        while let Some(Event { at: now, source }) = events.pop_due(at(100)) {
            let channel = source.0 as usize - 7;
            assert_eq!(channels.next(channel), now);
            received.push((now, channels.destination(channel), channels.receive(channel)));
        }
        let (sender, queue) = (Destination::Sender(0), Destination::Queue { link: 3, label: 1 });
        let expected = [(10, sender, 0.1), (10, sender, 0.2), (10, queue, 0.4), (13, sender, 0.3)];
        assert_eq!(
            received,
            expected.map(|(time, destination, share)| (at(time), destination, Message::Share(share)))
        );
        assert_eq!(channels.next(slow), Instant::NEVER);
    }

    #[test]
    fn a_channel_without_delay_delivers_immediately() {
        let (mut channels, mut events) = (Channels::new(SourceId(0)), Pending::default());
        let channel = channels.open(Destination::Sender(0), Duration::ZERO);
        let mut post = Post { channels: &mut channels, events: &mut events };
        assert_eq!(post.send(channel, Message::MarkedOut, Instant::ZERO), Some(Message::MarkedOut));
        assert_eq!((events.pop_due(Instant::NEVER), channels.next(channel)), (None, Instant::NEVER));
    }
}
