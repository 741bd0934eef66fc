//! A flow whose hosts act ahead of the clock.
//!
//! A receiver may have taken packets, and a sender ACKs, that arrive later than now. So each host records its own probe samples
//! when it passes their times.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

mod fixed_delay;
mod turn;

use std::collections::VecDeque;

use perhop_core::Instant;
use perhop_core::control::Message;

use super::calendar::EventQueue;
use super::link_inputs::LinkInput;
use crate::control::{Channels, Post};
use crate::engine::setup::Routes;
use crate::events::{Event, SourceId};
use crate::flow::Flow;
use crate::network::FlowSpec;
use crate::packet::{ACK, Content, SimPacket};
use crate::probe::Series;
use crate::sampling::SampleTimes;
use crate::transport::{Ack, DelayedAck, Receiver, Sender};
use crate::window_control::WindowControls;
use crate::wire::Wire;
pub(super) use fixed_delay::FixedDelay;

/// The next sample of a receiver that has passed the end of the run: any packet comes after it.
const PAST_THE_END: Instant = Instant::ZERO;

/// Memory is kept for so many held ACKs.
const FEW: usize = 16;

/// In place of a link's number: the two hosts share none.
const NO_LINK: u32 = u32::MAX;

/// Who must know of what happens at the hosts of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeper {
    Nobody,
    /// Its population must know when the flow is over.
    Population,
    /// This user of an application has the flow, hears of its data, and may let its sender act.
    User(UserNumber),
}

/// The number of a user, as bytes: so it needs no alignment among the flags of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UserNumber([u8; 4]);

impl UserNumber {
    /// The user's number.
    pub(super) fn get(self) -> usize {
        u32::from_ne_bytes(self.0) as usize
    }
}

/// One flow, and how far its hosts are ahead of the clock.
///
/// The fields are in this order so that what each packet reads of them is in one cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct BatchedFlow {
    /// ACKs that come before this may take the [fast path](Self::acknowledge_fast): nothing else happens to the sender, and it is
    /// not sampled, as far as it knows. Never too late, but at times too early; zero if there is no fast path now.
    sender_fast_until: Instant,
    /// The same for packets that come to the receiver.
    receiver_fast_until: Instant,
    /// The delays behind the bottleneck, where no packet queues there.
    pub(super) fixed_delay: Option<FixedDelay>,
    /// The first links of its data and of its ACKs, or [`NO_LINK`].
    first_data_link: u32,
    first_ack_link: u32,
    /// The sender must not act ahead of time: something else may reach it first.
    pub(super) sender_keeps_to_clock: bool,
    /// Who must know of what happens at the hosts.
    pub(super) keeper: Keeper,
    /// Packets to a host of it wait for their time: they may overtake one another, or carry ACKs of another flow.
    pub(super) packets_wait: bool,
    /// The next time at which the sender is sampled.
    sender_sample: Instant,
    /// The next time at which the receiver is sampled, or the end of the run.
    receiver_sample: Instant,
    /// No later than the next thing that happens to the sender besides its timers: its application's commands, and held ACKs.
    due: Instant,
    /// The flow, as both engines know it.
    pub(super) base: Flow,
    /// The wake-up that is in the event queue.
    pub(super) scheduled: Instant,
    rare: Box<Rare>,
}

const _: () = assert!(size_of::<BatchedFlow>() == 512);

/// State that few packets use.
#[derive(Clone, Debug)]
struct Rare {
    /// The last steps of data and of ACKs.
    last_steps: (u32, u32),
    /// Packets that come before this may take the [fast path of receivers whose ACKs wait](BatchedFlow::receive_delayed_fast).
    delayed_fast_until: Instant,
    /// ACKs that come before this may take the [fast path](BatchedFlow::acknowledge_shortly).
    sender_short_until: Instant,
    /// ACKs that the sender must not take ahead of time, each with its time, in order.
    held: VecDeque<(Instant, Ack)>,
}

/// What a sending host needs to act: the input to which its packets go, and the channels and events of its marker's feedback.
pub(super) struct SendContext<'a> {
    pub(super) first: LinkInput<'a>,
    pub(super) channels: &'a mut Channels,
    pub(super) events: &'a mut EventQueue,
}

impl BatchedFlow {
    pub(super) fn new(
        flow: Flow,
        spec: &FlowSpec,
        routes: &Routes,
        controls: &WindowControls,
        times: &SampleTimes,
    ) -> Self {
        // Feedback from a meter at the edge may reach the sender before an ACK does.
        let has_remote_feedback = spec.out_feedback.is_some() && flow.sending.is_marked_at_router();
        // A control that reads the sender's window needs it as it is at that time; a meter at the host takes messages of the
        // control before the packets that are sent later.
        let is_controlled = flow
            .control()
            .is_some_and(|(control, _)| controls.reads_senders(control) || flow.sending.is_marked_at_host());
        let is_reordered = routes.data.is_reordered || routes.acks.is_reordered;
        // Two hosts that share no link could act for ever without the clock's moving.
        let shares_no_link = routes.data.first_link.is_none();
        let sender_keeps_to_clock = has_remote_feedback || is_controlled || is_reordered || shares_no_link;
        Self {
            scheduled: Instant::NEVER,
            due: Instant::ZERO,
            sender_sample: times.first(),
            receiver_sample: times.first().min(times.end()),
            sender_fast_until: Instant::ZERO,
            receiver_fast_until: Instant::ZERO,
            fixed_delay: None,
            first_data_link: routes.data.first_link.unwrap_or(NO_LINK),
            first_ack_link: routes.acks.first_link.unwrap_or(NO_LINK),
            sender_keeps_to_clock,
            keeper: Keeper::Nobody,
            packets_wait: is_reordered,
            rare: Box::new(Rare {
                last_steps: (routes.data.last_step, routes.acks.last_step | ACK),
                delayed_fast_until: Instant::ZERO,
                sender_short_until: Instant::ZERO,
                held: VecDeque::new(),
            }),
            base: flow,
        }
    }

    /// Makes it a flow of a user; if it is a direction of a connection, all that happens to it keeps to the clock.
    pub(super) fn keep_for(&mut self, user: usize, is_of_connection: bool) {
        self.keeper = Keeper::User(UserNumber((user as u32).to_ne_bytes()));
        self.packets_wait |= is_of_connection;
        self.sender_keeps_to_clock |= is_of_connection;
    }

    /// Whether it may have its [turn](Self::take_turn): nothing else happens to its hosts within a window of the look-ahead, and nobody
    /// must know of it.
    #[inline(always)]
    pub(super) fn takes_turns(&self) -> bool {
        self.keeper == Keeper::Nobody && !self.sender_keeps_to_clock && self.first_ack_link != NO_LINK
    }

    /// Whether a user of an application has it, who may let the sender act: ACKs are held for their time.
    #[inline(always)]
    pub(super) fn is_owned(&self) -> bool {
        matches!(self.keeper, Keeper::User(_))
    }

    /// It is a flow of a population, which begins now. It is woken event by event: when it is over must be known.
    pub(super) fn begin(&mut self, now: Instant, times: &SampleTimes) {
        self.sender_sample = times.from(now);
        self.receiver_sample = self.sender_sample.min(times.end());
        self.keeper = Keeper::Population;
        self.find_due();
    }

    /// A meter at its first router tells its sender about OUT packets.
    pub(super) fn has_remote_feedback(&self) -> bool {
        self.base.sending.feedback().is_some() && self.base.sending.is_marked_at_router()
    }

    /// Its connection is open, and data has come to the receiver: the sender opens it no more.
    pub(super) fn is_open(&self) -> bool {
        self.base.sender.acknowledged() > 0
    }

    /// When the wires to the receiver, from it, and to the sender are free.
    pub(super) fn wires_busy_until(&self) -> [Instant; 3] {
        let Flow { sending, receiving, .. } = &self.base;
        [&receiving.inward, &receiving.outward, &sending.inward].map(Wire::busy_until)
    }

    /// Where data goes first, by [`first`].
    #[inline(always)]
    pub(super) fn first_data_link(&self) -> u32 {
        self.first_data_link
    }

    /// Where ACKs go first.
    #[inline(always)]
    pub(super) fn first_ack_link(&self) -> u32 {
        self.first_ack_link
    }

    /// When something next happens to the sender by itself.
    #[inline(always)]
    fn wake_of_sender(&self) -> Instant {
        self.base.sender.wake().min(self.due)
    }

    /// When the receiver next sends an ACK by itself.
    #[inline(always)]
    fn late_ack_due(&self) -> Instant {
        self.base.receiving.receiver.wake()
    }

    /// When something next happens to one of its hosts by itself.
    #[inline(always)]
    pub(super) fn wake(&self) -> Instant {
        self.wake_of_sender().min(self.late_ack_due())
    }

    /// Whether the sender may take an ACK now, although it comes only at `arrival`: nothing else happens to the sender until
    /// then.
    #[inline(always)]
    pub(super) fn may_act_ahead(&self, arrival: Instant, channels: &Channels) -> bool {
        !self.sender_keeps_to_clock
            && !self.is_owned()
            && arrival < self.due // First, since the sender's own state is elsewhere.
            && arrival < self.base.sender.wake()
            && self.base.sending.feedback().is_none_or(|channel| arrival < channels.next(channel as usize))
    }

    /// The fast path: the sender takes an ACK that reaches it at `at`, and sends what it then may: what
    /// [`acknowledge`](Self::acknowledge) does of nearly every one, in a few steps. Returns false, having done nothing, if it
    /// cannot.
    #[inline(always)]
    pub(super) fn acknowledge_fast(&mut self, expected: u32, at: Instant, mut first: LinkInput<'_>) -> bool {
        if at >= self.sender_fast_until {
            return false;
        }
        let Sender::Tcp(tcp) = &mut self.base.sender else {
            return self.acknowledge_carrying_fast(expected, at, first);
        };
        let Some(segments) = tcp.ack_fast(expected, at) else { return false };
        self.base.sending.send_all(segments, at, &mut first);
        true
    }

    /// The fast path of a sender whose packets carry more than their number: a function of its own, which keeps the other short.
    #[inline(never)]
    fn acknowledge_carrying_fast(&mut self, number: u32, at: Instant, mut first: LinkInput<'_>) -> bool {
        let Sender::Carrying(sender) = &mut self.base.sender else { return false };
        let Some(segments) = sender.ack_fast(number, at) else { return false };
        self.base.sending.send_all(segments, at, &mut first);
        true
    }

    /// An ACK reaches the sender at `at`, now or later; it sends what it then may.
    #[inline(never)]
    pub(super) fn acknowledge(
        &mut self,
        ack: Ack,
        at: Instant,
        SendContext { mut first, channels, events }: SendContext<'_>,
        (times, series): (&SampleTimes, &mut Series),
    ) {
        if at > self.sender_sample {
            self.sample_sender_before(at, times, series);
        }
        let post = Post { channels, events: &mut *events };
        let wake = self.base.acknowledge(ack, at, post, &mut first);
        self.schedule_by(wake, events);
        self.find_senders_fast_path(times.end());
    }

    /// What [`acknowledge`](Self::acknowledge) does of most ACKs in recoveries by selective acknowledgements. Returns false, having
    /// done nothing, if it cannot take this one.
    #[inline(always)]
    pub(super) fn acknowledge_shortly(
        &mut self,
        content: Content,
        at: Instant,
        mut first: LinkInput<'_>,
        events: &mut EventQueue,
    ) -> bool {
        if at >= self.rare.sender_short_until {
            return false;
        }
        let Some(wake) = self.base.acknowledge_shortly(content.sequence(), at, &mut first) else {
            return false;
        };
        if wake < self.rare.sender_short_until {
            self.rare.sender_short_until = wake;
            self.schedule_by(wake, events);
        }
        true
    }

    /// An ACK is held until it comes at `at`, or until it is certain what happens to the sender before.
    #[inline(always)]
    pub(super) fn hold(&mut self, ack: Ack, at: Instant, events: &mut EventQueue) {
        self.rare.held.push_back((at, ack));
        if at < self.due {
            self.due = at;
            self.limit_fast_path(at);
            if at < self.scheduled {
                self.scheduled = at;
                events.push(Event { at, source: SourceId(self.base.sending.number()) });
            }
        }
    }

    /// The same behind other things that happen to the sender first, so that the ACK need not be asked for. Returns false, having done
    /// nothing, if that is not so.
    #[inline(always)]
    pub(super) fn hold_behind(&mut self, ack: Ack, at: Instant) -> bool {
        let is_behind = at >= self.due && (self.is_owned() || !self.sender_keeps_to_clock);
        if is_behind {
            self.rare.held.push_back((at, ack));
        }
        is_behind
    }

    /// The first of the held ACKs, if it has come by `now`, or may be taken ahead of time.
    pub(super) fn take_held(&mut self, now: Instant, channels: &Channels) -> Option<(Instant, Ack)> {
        let Some((at, ack)) = self.rare.held.pop_front() else {
            self.rare.held.shrink_to(FEW); // A timeout that held many is rare, and most flows need no more memory for it.
            return None;
        };
        self.find_due();
        if at <= now || self.may_act_ahead(at, channels) {
            return Some((at, ack));
        }
        self.rare.held.push_front((at, ack));
        self.find_due();
        None
    }

    /// Finds out until when ACKs may take the fast path. The sender's deadlines only move away meanwhile.
    fn find_senders_fast_path(&mut self, end: Instant) {
        let free = !self.sender_keeps_to_clock && !self.is_owned() && self.base.sending.feedback().is_none();
        let is_on_fast_path = match &self.base.sender {
            Sender::Tcp(tcp) => tcp.is_on_fast_path(),
            Sender::Carrying(sender) => sender.is_on_fast_path(),
        };
        self.sender_fast_until = if free && is_on_fast_path {
            self.wake_of_sender().min(self.sender_sample.just_after()).min(end.just_after())
        } else {
            Instant::ZERO
        };
        if let Sender::Carrying(sender) = &self.base.sender {
            self.rare.sender_short_until = if free && sender.has_recovery_fast_path() {
                self.wake_of_sender().min(self.sender_sample.just_after()).min(end.just_after())
            } else {
                Instant::ZERO
            };
        }
    }

    /// Something may happen to the sender at this time.
    fn limit_fast_path(&mut self, at: Instant) {
        self.sender_fast_until = self.sender_fast_until.min(at);
        self.rare.sender_short_until = self.rare.sender_short_until.min(at);
    }

    /// Finds out until when the receiver's packets may take the fast path.
    fn find_receivers_fast_path(&mut self) {
        let is_on_fast_path = match &self.base.receiving.receiver {
            Receiver::Tcp(tcp) => tcp.is_on_fast_path(),
            Receiver::Carrying(receiver) => receiver.is_on_fast_path(),
        };
        let until = |may: bool| if may { self.receiver_sample.just_after() } else { Instant::ZERO };
        self.receiver_fast_until = until(is_on_fast_path);
        self.rare.delayed_fast_until = until(self.base.receiving.receiver.is_on_delayed_fast_path());
    }

    /// A control message reaches the sender.
    pub(super) fn on_message(&mut self, message: &Message) {
        self.base.on_message(message);
        self.limit_fast_path(Instant::ZERO);
    }

    /// If something happens to the sender by itself by `now`, it sends what it then may. Returns whether that was so.
    pub(super) fn wake_sender(
        &mut self,
        now: Instant,
        SendContext { mut first, channels, events }: SendContext<'_>,
    ) -> bool {
        if now < self.wake_of_sender() {
            return false; // It may be ahead of the clock.
        }
        self.base.wake_sender(now);
        self.limit_fast_path(Instant::ZERO);
        self.base.transmit(now, Post { channels, events }, &mut first);
        true
    }

    /// The receiver sends the ACKs that it sends by itself before `bound`, and within the run. All packets that come before then
    /// must have come: the receiver may be ahead of the clock. Returns how many.
    #[inline(always)]
    pub(super) fn send_late_acks(&mut self, bound: Instant, end: Instant, first: &mut LinkInput<'_>) -> i64 {
        let mut sent = 0;
        loop {
            let due = self.late_ack_due();
            if due >= bound || due > end {
                return sent;
            }
            if let Some(ack) = self.base.wake_receiver(due) {
                first.push(ack);
                sent += 1;
            }
        }
    }

    /// Makes sure that the flow is woken in time.
    pub(super) fn schedule(&mut self, events: &mut EventQueue) {
        self.schedule_by(self.base.sender.wake(), events);
    }

    /// The same, with the time of the sender's next timer. Deadlines mostly move away, so a wake-up that is too early is
    /// rescheduled when it comes.
    #[inline(always)]
    fn schedule_by(&mut self, senders: Instant, events: &mut EventQueue) {
        let at = senders.min(self.due).min(self.late_ack_due());
        if at < self.scheduled {
            self.scheduled = at;
            events.push(Event { at, source: SourceId(self.base.sending.number()) });
        }
    }

    /// Finds when the next thing happens to the sender besides its timers.
    pub(super) fn find_due(&mut self) {
        let held = self.rare.held.front().map_or(Instant::NEVER, |&(at, _)| at);
        self.due = self.base.next_command().min(held);
        self.limit_fast_path(self.due);
    }

    /// The receiving host takes a data packet that reaches it at `arrival`, now or later; returns its ACK.
    #[inline(always)]
    pub(super) fn receive(
        &mut self,
        content: Content,
        arrival: Instant,
        samples: (&SampleTimes, &mut Series),
    ) -> Option<Ack> {
        match self.receive_fast(content, arrival) {
            Some(number) => Some(Ack::plain(number)),
            None => self.receive_slowly(content, arrival, samples),
        }
    }

    #[inline(never)]
    fn receive_slowly(
        &mut self,
        content: Content,
        arrival: Instant,
        samples: (&SampleTimes, &mut Series),
    ) -> Option<Ack> {
        if arrival < self.rare.delayed_fast_until
            && let Some(ack) = self.base.receive_delayed_fast(content, arrival)
        {
            return match ack {
                DelayedAck::Sent(number) | DelayedAck::Reported(number) => Some(Ack::plain(number)),
                DelayedAck::Waits => None,
            };
        }
        self.receive_otherwise(content, arrival, samples)
    }

    /// The fast path: what [`receive_otherwise`](Self::receive_otherwise) does of nearly every packet, in a few steps. Returns the
    /// number of the ACK, which carries nothing else; `None`, having done nothing, if it cannot take this packet.
    #[inline(always)]
    pub(super) fn receive_fast(&mut self, content: Content, arrival: Instant) -> Option<u32> {
        if arrival >= self.receiver_fast_until {
            return None;
        }
        let number = match &mut self.base.receiving.receiver {
            Receiver::Tcp(tcp) => tcp.receive_fast(content.sequence())?,
            Receiver::Carrying(_) => return self.base.receive_carrying_fast(content, arrival),
        };
        debug_assert_eq!(content.size(), self.base.data_size());
        self.base.deliver(arrival);
        Some(number)
    }

    /// The fast path of receivers whose ACKs wait. Returns what becomes of the ACK; `None`, having done nothing, if it cannot take this
    /// packet.
    #[inline(always)]
    pub(super) fn receive_delayed_fast(
        &mut self,
        content: Content,
        arrival: Instant,
        events: &mut EventQueue,
    ) -> Option<DelayedAck> {
        if arrival >= self.rare.delayed_fast_until {
            return None;
        }
        let ack = self.base.receive_delayed_fast(content, arrival)?;
        if !matches!(ack, DelayedAck::Sent(_)) {
            self.schedule_late_ack(events);
        }
        Some(ack)
    }

    /// The fast path of most packets beyond a gap, which are acknowledged at once, before the receiver is next sampled. Returns the
    /// number of the ACK; `None`, having done nothing, if it cannot take this packet.
    #[inline(always)]
    pub(super) fn receive_ahead(&mut self, content: Content, arrival: Instant) -> Option<u32> {
        if arrival > self.receiver_sample {
            return None;
        }
        self.base.receive_ahead(content, arrival)
    }

    #[inline(always)]
    fn schedule_late_ack(&mut self, events: &mut EventQueue) {
        let due = self.late_ack_due();
        if due < self.scheduled {
            self.scheduled = due;
            events.push(Event { at: due, source: SourceId(self.base.sending.number()) });
        }
    }

    /// As [`receive`](Self::receive), for any packet.
    #[inline(never)]
    pub(super) fn receive_otherwise(
        &mut self,
        content: Content,
        arrival: Instant,
        (times, series): (&SampleTimes, &mut Series),
    ) -> Option<Ack> {
        if arrival > self.receiver_sample {
            self.sample_receiver_before(arrival, times, series);
            if arrival > times.end() {
                self.base.discard(content);
                return None;
            }
        }
        let ack = self.base.receive(content, arrival);
        self.find_receivers_fast_path();
        ack
    }

    /// A data packet, as it waits before the receiver.
    pub(super) fn waiting_data(&self, content: Content) -> SimPacket {
        self.base.sending.template().carrying(content).before(self.rare.last_steps.0)
    }

    /// A packet that has left its last link, as it waits before the wire to its host.
    pub(super) fn waiting_before_wire(&self, packet: SimPacket) -> SimPacket {
        let (data, acks) = self.rare.last_steps;
        if packet.is_ack() {
            self.waiting_ack(packet.content()).before(acks - 1)
        } else {
            self.waiting_data(packet.content()).before(data - 1)
        }
    }

    /// An ACK, as it waits before the sender.
    pub(super) fn waiting_ack(&self, content: Content) -> SimPacket {
        self.base.receiving.template().carrying(content).before(self.rare.last_steps.1)
    }

    /// Records the receiver's samples before `before`.
    #[cold]
    fn sample_receiver_before(&mut self, before: Instant, times: &SampleTimes, series: &mut Series) {
        while self.receiver_sample < before && self.receiver_sample != PAST_THE_END {
            let sample = self.receiver_sample;
            self.base.sample_receiver(sample, times, series);
            self.receiver_sample =
                if sample == times.end() { PAST_THE_END } else { times.after(sample).min(times.end()) };
        }
    }

    /// Records the sender's samples before `before`.
    #[cold]
    fn sample_sender_before(&mut self, before: Instant, times: &SampleTimes, series: &mut Series) {
        while self.sender_sample < before {
            self.base.sample_sender(self.sender_sample, times, series);
            self.sender_sample = times.after(self.sender_sample);
        }
    }

    /// Records the sample of `now`, unless the hosts have passed it.
    pub(super) fn sample(&mut self, now: Instant, times: &SampleTimes, series: &mut Series) {
        self.sample_receiver_before(now.just_after(), times, series);
        self.sample_sender_before(now.just_after(), times, series);
        if times.ends_warmup(now) {
            self.base.end_warmup_at_routers(); // Routers keep to the clock.
        }
    }
}
