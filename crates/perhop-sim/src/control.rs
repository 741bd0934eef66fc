//! Channels: how control messages travel in the simulator.
//!
//! A channel leads from one block to one other, such as from a marker to a sender. Its messages arrive after its delay, in
//! the order in which they were sent. Each channel is a source of events, and each message that takes time is one event:
//! at one time, messages arrive after packets and timers.

use std::collections::VecDeque;

use perhop_core::control::Message;
use perhop_core::{Duration, Instant};

use crate::events::{Event, EventQueue, SourceId};

/// Who hears what a channel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hearer {
    /// The sender of the flow of this number.
    Sender(usize),
    /// The queue of the link of this number, about the path with this label.
    Queue { link: usize, label: u32 },
}

/// All channels of a run, by number.
#[derive(Clone, Debug)]
pub(crate) struct Channels {
    /// The source of events that is the first channel.
    first: usize,
    all: Vec<Channel>,
}

#[derive(Clone, Debug)]
struct Channel {
    hearer: Hearer,
    delay: Duration,
    /// Messages that have not arrived, and when they do.
    under_way: VecDeque<(Instant, Message)>,
}

/// What it takes to send a message.
pub(crate) struct Post<'a> {
    pub(crate) channels: &'a mut Channels,
    pub(crate) events: &'a mut EventQueue,
}

impl Channels {
    /// No channel yet; the first will be this source of events.
    pub(crate) fn new(first: usize) -> Self {
        Self { first, all: Vec::new() }
    }

    /// Opens a channel; returns its number.
    pub(crate) fn open(&mut self, hearer: Hearer, delay: Duration) -> usize {
        self.all.push(Channel { hearer, delay, under_way: VecDeque::new() });
        self.all.len() - 1
    }

    /// How many there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Who stands at the end of a channel.
    pub(crate) fn hearer(&self, channel: usize) -> Hearer {
        self.all[channel].hearer
    }

    /// When the next message of a channel arrives.
    #[inline]
    pub(crate) fn next(&self, channel: usize) -> Instant {
        self.all[channel].under_way.front().map_or(Instant::NEVER, |&(at, _)| at)
    }

    /// Takes the message whose event has come.
    pub(crate) fn receive(&mut self, channel: usize) -> Message {
        let (_, message) = self.all[channel].under_way.pop_front().expect("each event is that of a message");
        message
    }
}

impl Post<'_> {
    /// Sends a message. A channel without a delay gives it back: it has arrived.
    pub(crate) fn send(self, channel: usize, message: Message, now: Instant) -> Option<Message> {
        let Channels { first, all } = self.channels;
        let Channel { delay, under_way, .. } = &mut all[channel];
        if delay.is_zero() {
            return Some(message);
        }
        let at = now + *delay;
        under_way.push_back((at, message));
        self.events.push(Event { at, source: SourceId((*first + channel) as u32) });
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_an_event_after_the_delay_and_in_order() {
        let at = Instant::from_nanos;
        let (mut channels, mut events) = (Channels::new(7), EventQueue::default());
        let slow = channels.open(Hearer::Sender(0), Duration::from_nanos(10));
        let fast = channels.open(Hearer::Queue { link: 3, label: 1 }, Duration::from_nanos(7));
        for (channel, sent, share) in [(slow, 0, 0.1), (slow, 0, 0.2), (slow, 3, 0.3), (fast, 3, 0.4)] {
            let post = Post { channels: &mut channels, events: &mut events };
            assert_eq!(post.send(channel, Message::Share(share), at(sent)), None);
        }
        let mut heard = Vec::new();
        while let Some(Event { at: now, source }) = events.pop(at(100)) {
            let channel = source.0 as usize - 7;
            assert_eq!(channels.next(channel), now);
            heard.push((now, channels.hearer(channel), channels.receive(channel)));
        }
        let (sender, queue) = (Hearer::Sender(0), Hearer::Queue { link: 3, label: 1 });
        let told = [(10, sender, 0.1), (10, sender, 0.2), (10, queue, 0.4), (13, sender, 0.3)];
        assert_eq!(heard, told.map(|(time, hearer, share)| (at(time), hearer, Message::Share(share))));
        assert_eq!(channels.next(slow), Instant::NEVER);
    }

    #[test]
    fn a_channel_without_delay_hands_over_at_once() {
        let (mut channels, mut events) = (Channels::new(0), EventQueue::default());
        let channel = channels.open(Hearer::Sender(0), Duration::ZERO);
        let post = Post { channels: &mut channels, events: &mut events };
        assert_eq!(post.send(channel, Message::MarkedOut, Instant::ZERO), Some(Message::MarkedOut));
        assert_eq!((events.pop(Instant::NEVER), channels.next(channel)), (None, Instant::NEVER));
    }
}
