//! A flow whose hosts act ahead of the clock.
//!
//! A receiver may have taken packets, and a sender ACKs, that arrive later than now. So each host records its own probe samples
//! when it passes their times.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use std::collections::VecDeque;

use perhop_core::control::Message;
use perhop_core::{Duration, Instant};

use super::arrivals::ArrivalQueue;
use super::calendar::EventQueue;
use super::fixed_delay::FixedDelay;
use crate::control::{Channels, Post};
use crate::engine::setup::Routes;
use crate::events::{Event, SourceId};
use crate::flow::{Flow, PacketSink};
use crate::network::FlowSpec;
use crate::packet::{ACK, Content, SimPacket};
use crate::probe::Series;
use crate::sampling::SampleTimes;
use crate::transport::{Ack, Receiver, Sender};
use crate::window_control::WindowControls;
use crate::wire::Wire;

/// The next sample of a receiver that has passed the end of the run: any packet comes after it.
const PAST_THE_END: Instant = Instant::ZERO;

/// Memory is kept for so many held ACKs.
const FEW: usize = 16;

/// In place of a link's number: the two hosts share none.
const NO_LINK: u32 = u32::MAX;

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
    /// The receiver may take packets ahead of time: its ACKs depend on this flow alone.
    pub(super) receiver_runs_ahead: bool,
    /// The next time at which the sender is sampled.
    sender_sample: Instant,
    /// The next time at which the receiver is sampled, or the end of the run.
    receiver_sample: Instant,
    /// No later than the next thing that happens to this flow besides its sender's timers.
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
    /// ACKs that the sender must not take ahead of time, each with its time, in order.
    held: VecDeque<(Instant, Ack)>,
}

/// What a host needs to send: the arrival queue that its packets go to, and the channels and events of its marker's feedback.
pub(super) struct Outlet<'a> {
    pub(super) first: &'a mut ArrivalQueue<SimPacket>,
    pub(super) channels: &'a mut Channels,
    pub(super) events: &'a mut EventQueue,
}

impl PacketSink for ArrivalQueue<SimPacket> {
    #[inline(always)]
    fn put(&mut self, packet: SimPacket) {
        self.push(packet);
    }
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
            // Two hosts that share no link could act for ever without the clock's moving.
            sender_keeps_to_clock: has_remote_feedback || is_controlled || routes.data.first_link.is_none(),
            receiver_runs_ahead: spec.transport.acknowledges_at_once(),
            rare: Box::new(Rare {
                last_steps: (routes.data.last_step, routes.acks.last_step | ACK),
                held: VecDeque::new(),
            }),
            base: flow,
        }
    }

    /// Its connection is open, and nothing that it was opened with is still in transit if links keep packets in order.
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

    /// When something next happens to it by itself.
    #[inline(always)]
    pub(super) fn wake(&self) -> Instant {
        self.base.sender.wake().min(self.due)
    }

    /// Whether the sender may take an ACK now, although it comes only at `arrival`: nothing else happens to the sender until
    /// then.
    #[inline(always)]
    pub(super) fn may_act_ahead(&self, arrival: Instant, channels: &Channels) -> bool {
        !self.sender_keeps_to_clock
            && arrival < self.wake()
            && self.base.sending.feedback().is_none_or(|channel| arrival < channels.next(channel as usize))
    }

    /// The fast path: the sender takes an ACK that reaches it at `at`, and sends what it then may: what
    /// [`acknowledge`](Self::acknowledge) does of nearly every one, in a few steps. Returns false, having done nothing, if it
    /// cannot.
    #[inline(always)]
    pub(super) fn acknowledge_fast(
        &mut self,
        expected: u32,
        at: Instant,
        first: &mut ArrivalQueue<SimPacket>,
    ) -> bool {
        if at >= self.sender_fast_until {
            return false;
        }
        let Sender::Tcp(tcp) = &mut self.base.sender else { return false };
        let Some(segments) = tcp.ack_fast(expected, at) else { return false };
        self.base.sending.send_all(segments, at, first);
        true
    }

    /// An ACK reaches the sender at `at`, now or later; it sends what it then may.
    #[inline(never)]
    pub(super) fn acknowledge(
        &mut self,
        ack: Ack,
        at: Instant,
        Outlet { first, channels, events }: Outlet<'_>,
        (times, series): (&SampleTimes, &mut Series),
    ) {
        if at > self.sender_sample {
            self.sample_sender_before(at, times, series);
        }
        let post = Post { channels, events: &mut *events };
        let wake = self.base.acknowledge(ack, at, post, first);
        self.schedule_by(wake, events);
        self.find_senders_fast_path(times.end());
    }

    /// An ACK is held until it comes at `at`, or until it is certain what happens to the sender before.
    pub(super) fn hold(&mut self, ack: Ack, at: Instant) {
        self.rare.held.push_back((at, ack));
        self.find_due();
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
        let just_after = |at| at + Duration::from_nanos(1);
        let free = !self.sender_keeps_to_clock && self.base.sending.feedback().is_none();
        self.sender_fast_until = match &self.base.sender {
            Sender::Tcp(tcp) if free && tcp.is_on_fast_path() => {
                self.wake().min(just_after(self.sender_sample)).min(just_after(end))
            }
            _ => Instant::ZERO,
        };
    }

    /// Finds out until when the receiver's packets may take the fast path.
    fn find_receivers_fast_path(&mut self) {
        self.receiver_fast_until = match &self.base.receiving.receiver {
            Receiver::Tcp(tcp) if self.receiver_runs_ahead && tcp.is_on_fast_path() => {
                self.receiver_sample + Duration::from_nanos(1)
            }
            _ => Instant::ZERO,
        };
    }

    /// A control message reaches the sender.
    pub(super) fn on_message(&mut self, message: &Message) {
        self.base.on_message(message);
        self.sender_fast_until = Instant::ZERO;
    }

    /// Its timers went off: it sends what it then may. Returns the ACK that was due, if one was.
    pub(super) fn wake_up(
        &mut self,
        now: Instant,
        Outlet { first, channels, events }: Outlet<'_>,
    ) -> Option<SimPacket> {
        let late_ack = self.base.wake_up(now);
        self.sender_fast_until = Instant::ZERO;
        self.base.transmit(now, Post { channels, events }, first);
        late_ack
    }

    /// Makes sure that the flow is woken in time.
    pub(super) fn schedule(&mut self, events: &mut EventQueue) {
        self.schedule_by(self.base.sender.wake(), events);
    }

    /// The same, with the time of the sender's next timer. Deadlines mostly move away, so a wake-up that is too early is
    /// rescheduled when it comes.
    #[inline(always)]
    fn schedule_by(&mut self, senders: Instant, events: &mut EventQueue) {
        let at = senders.min(self.due);
        if at < self.scheduled {
            self.scheduled = at;
            events.push(Event { at, source: SourceId(self.base.sending.number()) });
        }
    }

    /// Finds when the next thing happens besides the sender's timers. A time that moves later after that is corrected when it
    /// comes.
    pub(super) fn find_due(&mut self) {
        let held = self.rare.held.front().map_or(Instant::NEVER, |&(at, _)| at);
        self.due = self.base.wake_besides_sender().min(held);
        self.sender_fast_until = self.sender_fast_until.min(self.due);
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
            None => self.receive_otherwise(content, arrival, samples),
        }
    }

    /// The fast path: what [`receive_otherwise`](Self::receive_otherwise) does of nearly every packet, in a few steps. Returns the
    /// number of the ACK, which carries nothing else; `None`, having done nothing, if it cannot take this packet.
    #[inline(always)]
    pub(super) fn receive_fast(&mut self, content: Content, arrival: Instant) -> Option<u32> {
        if arrival >= self.receiver_fast_until {
            return None;
        }
        let Receiver::Tcp(tcp) = &mut self.base.receiving.receiver else { return None };
        let number = tcp.receive_fast(content.sequence())?;
        debug_assert_eq!(content.size(), self.base.data_size());
        self.base.deliver(arrival);
        Some(number)
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
        let just_after = now + Duration::from_nanos(1);
        self.sample_receiver_before(just_after, times, series);
        self.sample_sender_before(just_after, times, series);
        if times.ends_warmup(now) {
            self.base.end_warmup_at_routers(); // Routers keep to the clock.
        }
    }
}
