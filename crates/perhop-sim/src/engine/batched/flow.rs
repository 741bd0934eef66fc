//! A flow whose hosts act ahead of the clock.
//!
//! A receiver may have taken packets, and a sender ACKs, that arrive later than now. So each host records its
//! own probe samples when it passes their times.

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
use crate::flow::{Flow, PacketSink};
use crate::network::FlowSpec;
use crate::packet::{ACK, Content, SimPacket};
use crate::probe::Series;
use crate::sampling::SampleTimes;
use crate::transport::{Ack, Received, Source};
use crate::window_control::WindowControls;
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
    /// The flow's population must know when the flow is over.
    Population,
    /// This user of an application has the flow, hears of its data, and may let its sender act.
    User(UserNumber),
}

/// The number of a user, as bytes: so it needs no alignment among the flags of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UserNumber([u8; 4]);

impl UserNumber {
    /// Returns the user's number.
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
    /// The time before which nothing but ACKs reaches the sender, and it is not sampled, as far as the flow
    /// knows. Never too late, but at times too early; zero if something else may come at any time.
    sender_quiet_until: Instant,
    /// The next time at which the receiver is sampled, or the end of the run.
    receiver_sample: Instant,
    /// The delays behind the bottleneck, where no packet queues there.
    pub(super) fixed_delay: Option<FixedDelay>,
    /// The first links of its data and of its ACKs, or [`NO_LINK`].
    pub(super) first_data_link: u32,
    pub(super) first_ack_link: u32,
    /// The sender must not act ahead of time: something else may reach it first.
    pub(super) sender_keeps_to_clock: bool,
    /// Who must know of what happens at the hosts.
    pub(super) keeper: Keeper,
    /// Packets to its hosts wait for their time: they may overtake one another, or carry another flow's ACKs.
    pub(super) packets_wait: bool,
    /// The next time at which the sender is sampled.
    sender_sample: Instant,
    /// No later than the next thing that happens to the sender besides its timers: its application's
    /// commands, and held ACKs.
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

/// What a sending host needs to act: the input to which its packets go, and the channels and events of its
/// marker's feedback.
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
        // A control that reads the sender's window needs it as it is at that time; a meter at the host takes
        // messages of the control before the packets that are sent later.
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
            receiver_sample: times.first().min(times.end),
            sender_quiet_until: Instant::ZERO,
            fixed_delay: None,
            first_data_link: routes.data.first_link.unwrap_or(NO_LINK),
            first_ack_link: routes.acks.first_link.unwrap_or(NO_LINK),
            sender_keeps_to_clock,
            keeper: Keeper::Nobody,
            packets_wait: is_reordered,
            rare: Box::new(Rare {
                last_steps: (routes.data.last_step, routes.acks.last_step | ACK),
                held: VecDeque::new(),
            }),
            base: flow,
        }
    }

    /// Makes it a flow of a user; all that happens to a direction of a connection keeps to the clock.
    pub(super) fn keep_for(&mut self, user: usize, is_of_connection: bool) {
        self.keeper = Keeper::User(UserNumber((user as u32).to_ne_bytes()));
        self.packets_wait |= is_of_connection;
        self.sender_keeps_to_clock |= is_of_connection;
    }

    /// Returns whether the flow may have its [turn](Self::take_turn): nothing else happens to its hosts
    /// within a window of the look-ahead, and nobody must know of it.
    #[inline(always)]
    pub(super) fn takes_turns(&self) -> bool {
        self.keeper == Keeper::Nobody && !self.sender_keeps_to_clock && self.first_ack_link != NO_LINK
    }

    /// Returns whether a user of an application has the flow, who may let the sender act: ACKs are held for
    /// their time.
    #[inline(always)]
    pub(super) fn is_owned(&self) -> bool {
        matches!(self.keeper, Keeper::User(_))
    }

    /// Begins a flow of a population, which is woken event by event: when it is over must be known.
    pub(super) fn begin(&mut self, now: Instant, times: &SampleTimes) {
        self.sender_sample = times.from(now);
        self.receiver_sample = self.sender_sample.min(times.end);
        self.keeper = Keeper::Population;
        self.find_due();
    }

    /// Returns when something next happens to the sender by itself.
    #[inline(always)]
    fn wake_of_sender(&self) -> Instant {
        self.base.sender.wake().min(self.due)
    }

    /// Returns when the receiver next sends an ACK by itself.
    #[inline(always)]
    fn late_ack_due(&self) -> Instant {
        self.base.receiving.receiver.wake()
    }

    /// Returns when something next happens to one of the flow's hosts by itself.
    #[inline(always)]
    pub(super) fn wake(&self) -> Instant {
        self.wake_of_sender().min(self.late_ack_due())
    }

    /// Returns whether the sender may take an ACK now, although it comes only at `arrival`: nothing else
    /// happens to the sender until then.
    #[inline(always)]
    pub(super) fn may_act_ahead(&self, arrival: Instant, channels: &Channels) -> bool {
        !self.sender_keeps_to_clock
            && !self.is_owned()
            && arrival < self.due // First, since the sender's own state is elsewhere.
            && arrival < self.base.sender.wake()
            && self.base.sending.feedback.is_none_or(|channel| arrival < channels.next(channel as usize))
    }

    /// Gives an ACK that reaches the sender at `at` to it by its short way. Returns false, having done
    /// nothing, if something else may come to the sender before, or the short way is not open.
    #[inline(always)]
    pub(super) fn try_acknowledge(
        &mut self,
        ack: Ack,
        at: Instant,
        mut first: LinkInput<'_>,
        events: &mut EventQueue,
    ) -> bool {
        if at >= self.sender_quiet_until {
            return false;
        }
        let Some(wake) = self.base.try_ack(ack, at, &mut first) else { return false };
        self.sender_quiet_until = self.sender_quiet_until.min(wake);
        if wake < self.scheduled {
            self.schedule_by(wake, events);
        }
        true
    }

    /// Takes an ACK that reaches the sender at `at`, now or later; it sends what it then may.
    #[inline(never)]
    pub(super) fn acknowledge(
        &mut self,
        ack: Ack,
        at: Instant,
        SendContext { mut first, channels, events }: SendContext<'_>,
        (times, series): (&SampleTimes, &mut Series),
    ) {
        self.sample_sender_up_to(at, times, series);
        let post = Post { channels, events: &mut *events };
        let wake = self.base.acknowledge(ack, at, post, &mut first);
        self.schedule_by(wake, events);
        self.find_quiet_time(times.end);
    }

    /// Holds an ACK until it comes at `at`, or until it is certain what happens to the sender before.
    #[inline(always)]
    pub(super) fn hold(&mut self, ack: Ack, at: Instant, events: &mut EventQueue) {
        self.rare.held.push_back((at, ack));
        if at < self.due {
            self.due = at;
            self.sender_quiet_until = self.sender_quiet_until.min(at);
            self.schedule_at(at, events);
        }
    }

    /// Holds an ACK behind other things that happen to the sender first, so that it need not be asked for.
    /// Returns false, having done nothing, if that is not so.
    #[inline(always)]
    pub(super) fn hold_behind(&mut self, ack: Ack, at: Instant) -> bool {
        let is_behind = at >= self.due && (self.is_owned() || !self.sender_keeps_to_clock);
        if is_behind {
            self.rare.held.push_back((at, ack));
        }
        is_behind
    }

    /// Takes the first of the held ACKs, if it has come by `now`, or may be taken ahead of time.
    pub(super) fn take_held(&mut self, now: Instant, channels: &Channels) -> Option<(Instant, Ack)> {
        let Some((at, ack)) = self.rare.held.pop_front() else {
            // A timeout that held many is rare, and most flows need no more memory for it.
            self.rare.held.shrink_to(FEW);
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

    /// Finds out until when nothing but ACKs reaches the sender.
    fn find_quiet_time(&mut self, end: Instant) {
        let free = !self.sender_keeps_to_clock && !self.is_owned() && self.base.sending.feedback.is_none();
        self.sender_quiet_until = if free {
            self.wake_of_sender().min(self.sender_sample.just_after()).min(end.just_after())
        } else {
            Instant::ZERO
        };
    }

    /// Passes a control message to the sender.
    pub(super) fn on_message(&mut self, message: &Message) {
        self.base.on_message(message);
        self.sender_quiet_until = Instant::ZERO;
    }

    /// Sends what the sender may, if something happens to it by itself by `now`; returns whether that was so.
    pub(super) fn wake_sender(
        &mut self,
        now: Instant,
        SendContext { mut first, channels, events }: SendContext<'_>,
    ) -> bool {
        if now < self.wake_of_sender() {
            return false; // It may be ahead of the clock.
        }
        self.base.wake_sender(now);
        self.sender_quiet_until = Instant::ZERO;
        self.base.transmit(now, Post { channels, events }, &mut first);
        true
    }

    /// Sends the ACKs that the receiver sends by itself before `bound`, and within the run. All packets that
    /// come before then must have come: the receiver may be ahead of the clock. Returns how many.
    #[inline(always)]
    pub(super) fn send_late_acks(&mut self, bound: Instant, end: Instant, first: &mut LinkInput<'_>) -> i64 {
        let mut sent = 0;
        loop {
            let due = self.late_ack_due();
            if due >= bound || due > end {
                return sent;
            }
            if let Some(ack) = self.base.wake_receiver(due) {
                first.put(ack);
                sent += 1;
            }
        }
    }

    /// Makes sure that the flow is woken in time.
    pub(super) fn schedule(&mut self, events: &mut EventQueue) {
        self.schedule_by(self.base.sender.wake(), events);
    }

    /// Makes sure that the flow is woken in time, by the sender's next timer. Deadlines mostly move away, so
    /// a wake-up that is too early is rescheduled when it comes.
    #[inline(always)]
    fn schedule_by(&mut self, senders: Instant, events: &mut EventQueue) {
        self.schedule_at(senders.min(self.due).min(self.late_ack_due()), events);
    }

    /// Makes sure that the flow is woken by `at`.
    #[inline(always)]
    fn schedule_at(&mut self, at: Instant, events: &mut EventQueue) {
        if at < self.scheduled {
            self.scheduled = at;
            events.push(Event { at, source: SourceId(self.base.sending.number()) });
        }
    }

    /// Finds when the next thing happens to the sender besides its timers.
    pub(super) fn find_due(&mut self) {
        let held = self.rare.held.front().map_or(Instant::NEVER, |&(at, _)| at);
        self.due = self.base.next_command().min(held);
        self.sender_quiet_until = self.sender_quiet_until.min(self.due);
    }

    /// Gives a data packet that reaches the receiver at `arrival` to it by its short way, if it is not
    /// sampled before; returns what it makes of it. `None`, having done nothing, otherwise. An ACK may wait
    /// [from then on](Self::schedule_late_ack).
    #[inline(always)]
    pub(super) fn try_receive(&mut self, content: Content, arrival: Instant) -> Option<Received> {
        if arrival > self.receiver_sample {
            return None;
        }
        self.base.try_data(content, arrival)
    }

    /// Makes sure that the flow is woken for an ACK that waits.
    #[inline(always)]
    pub(super) fn schedule_late_ack(&mut self, events: &mut EventQueue) {
        self.schedule_at(self.late_ack_due(), events);
    }

    /// Gives a data packet that reaches the receiving host at `arrival`, now or later, to it; returns its
    /// ACK.
    #[inline(never)]
    pub(super) fn receive(
        &mut self,
        content: Content,
        arrival: Instant,
        (times, series): (&SampleTimes, &mut Series),
    ) -> Option<Ack> {
        if arrival > self.receiver_sample {
            self.sample_receiver_before(arrival, times, series);
            if arrival > times.end {
                self.base.discard(content);
                return None;
            }
        }
        self.base.receive(content, arrival)
    }

    /// Returns a packet that has left its last link, as it waits before the wire to its host.
    pub(super) fn waiting_before_wire(&self, packet: SimPacket) -> SimPacket {
        let (data, acks) = self.rare.last_steps;
        let (template, last) = if packet.is_ack() {
            (self.base.receiving.template, acks)
        } else {
            (self.base.sending.template, data)
        };
        template.carrying(packet.content()).before(last - 1)
    }

    /// Returns an ACK as it waits before the sender.
    pub(super) fn waiting_ack(&self, content: Content) -> SimPacket {
        self.base.receiving.template.carrying(content).before(self.rare.last_steps.1)
    }

    /// Records the receiver's samples before `before`.
    #[cold]
    fn sample_receiver_before(&mut self, before: Instant, times: &SampleTimes, series: &mut Series) {
        while self.receiver_sample < before && self.receiver_sample != PAST_THE_END {
            let sample = self.receiver_sample;
            self.base.sample_receiver(sample, times, series);
            self.receiver_sample =
                if sample == times.end { PAST_THE_END } else { times.after(sample).min(times.end) };
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
