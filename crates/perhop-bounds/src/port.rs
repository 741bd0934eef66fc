//! One link: the arrivals of each class of its scheduler, its guarantee, and its bounds.

use perhop_core::curves::{Concave, Nanobits, backlog, bytes, delay, delay_behind, nanobits};
use perhop_core::medium::Medium;
use perhop_core::scheduler::{
    AnyScheduler, Arriving, Discipline, Guarantee, Load, SchedulerParams, Server, Step, size, span,
};
use perhop_core::{Bytes, Depth, Duration, Environment, Header, Streams};
use perhop_sim::LinkSpec;

use crate::arrivals::line_rate;
use crate::report::{Backlog, ClassBounds, Delay, LinkBounds, Loss};

/// A link, prepared.
pub(crate) struct PortOf<'a> {
    pub(crate) link: &'a LinkSpec,
    scheduler: SchedulerParams,
    classifier: AnyScheduler<Header>,
    pub(crate) server: Server,
    pub(crate) names: Vec<String>,
    /// By how much longer one packet may take on the way than another; `None` without a bound.
    pub(crate) jitter: Option<Duration>,
}

/// The arrivals of a class from one bundle of flows.
#[derive(Clone, Debug)]
pub(crate) struct Coming {
    /// The number of the bundle.
    pub(crate) bundle: usize,
    pub(crate) class: usize,
    /// The arrival curve; why there is none otherwise.
    pub(crate) curve: Result<Concave, String>,
    /// What the flows have in the network at most, if all of it may wait here.
    pub(crate) content: Option<Nanobits>,
    /// The link before this one on the route.
    pub(crate) via: Option<usize>,
    /// A meter here may drop some of it.
    pub(crate) policed: bool,
    /// The meters that it shares with others here, each with what all of these do not exceed.
    pub(crate) meters: Vec<(usize, Concave)>,
    pub(crate) largest: Bytes,
    pub(crate) smallest: Bytes,
    /// How many flows; `u64::MAX` if any number may be under way at a time.
    pub(crate) flows: u64,
    /// Where flows take turns: what one of these flows is guaranteed by its own.
    pub(crate) by_turns: Option<Box<ClassState>>,
}

/// What a class is guaranteed, and what follows.
#[derive(Clone, Debug)]
pub(crate) struct ClassState {
    /// The longest wait, or why there is no bound.
    pub(crate) wait: Result<Duration, String>,
    /// The longest time until a packet has been sent; on a link of one rate, the wait and the transmission.
    pub(crate) sent: Option<Duration>,
    pub(crate) guarantee: Option<Guarantee>,
    pub(crate) load: Load,
    /// The windows of flows that have them, and the arrivals of the others.
    content: Option<(Nanobits, Concave)>,
    /// The most packets that wait if nothing is dropped.
    packets: Option<u64>,
    waiting: Option<Nanobits>,
    /// The flow that waits longest, where this bounds the class.
    by_flow: Option<Box<Self>>,
}

impl<'a> PortOf<'a> {
    pub(crate) fn new(link: &'a LinkSpec) -> Self {
        let scheduler = link.queue.clone().unwrap_or_else(LinkSpec::unlimited);
        let streams = Streams { seed: 0, path: "" };
        let classifier = scheduler.clone().build(Environment { rate: link.rate }, streams);
        let names = (0..classifier.classes()).map(|class| classifier.class_name(class).to_owned()).collect();
        let server = if link.medium.is_steady() {
            Server::link(link.rate)
        } else {
            Server { is_link: false, ..Server::over(link.medium.least_service(link.rate), link.rate) }
        };
        let jitter = link.medium.most_jitter(link.delay);
        Self { link, scheduler, classifier, server, names, jitter }
    }

    pub(crate) fn class_of(&self, header: &Header) -> usize {
        self.classifier.class_of(header)
    }

    fn medium(&self) -> &Medium {
        &self.link.medium
    }

    /// Returns the state of each class with these arrivals; `links` are those of the network.
    pub(crate) fn classes(&self, coming: &[Coming], links: &[LinkSpec]) -> Vec<ClassState> {
        let mut states: Vec<ClassState> =
            (0..self.names.len()).map(|class| ClassState::of(class, coming, links)).collect();
        let loads: Vec<Load> = states.iter().map(|state| state.load.clone()).collect();
        let guarantees = self.scheduler.guarantees(&self.server, &loads);
        for (class, (state, guarantee)) in states.iter_mut().zip(guarantees).enumerate() {
            if state.load.flows == 0 {
                state.wait = Ok(Duration::ZERO);
                (state.packets, state.waiting) = (Some(0), Some(0));
                continue;
            }
            let unbounded = || {
                let of_class = coming.iter().filter(|part| part.class == class);
                of_class
                    .filter(|part| part.content.is_none())
                    .find_map(|part| part.curve.as_ref().err().cloned())
            };
            match guarantee {
                Err(reason) => state.wait = Err(reason),
                Ok(guarantee) => {
                    let wait = state.longest(&guarantee);
                    let rest = "more may come than the link serves".to_owned();
                    state.wait = wait.ok_or_else(|| unbounded().unwrap_or(rest));
                    state.guarantee = Some(guarantee);
                }
            }
            self.settle(state, class, coming);
        }
        states
    }

    /// Returns the state of one flow of a class in which flows take turns: of a class for itself.
    pub(crate) fn by_turns(
        &self,
        state: &ClassState,
        flow: Coming,
        links: &[LinkSpec],
    ) -> Option<Box<ClassState>> {
        let turns = state.guarantee.as_ref()?.turns.as_ref()?;
        let flow = [flow];
        let mut own = ClassState::of(flow[0].class, &flow, links);
        let mut guarantee = turns.of_flow(&own.load);
        let by_class = state.wait.clone().ok();
        let by_turns = own.longest(&guarantee);
        own.wait = Ok([by_turns, by_class].into_iter().flatten().min()?);
        if by_class.is_some_and(|wait| by_turns.is_none_or(|turns| wait <= turns)) {
            guarantee.steps.clear();
        }
        own.guarantee = Some(guarantee);
        self.settle(&mut own, flow[0].class, &flow);
        Some(Box::new(own))
    }

    /// Notes the time until packets are sent, and what waits.
    fn settle(&self, state: &mut ClassState, class: usize, coming: &[Coming]) {
        let Some(guarantee) = &state.guarantee else { return };
        let arrivals = state.load.arrivals.as_ref();
        if let Ok(wait) = state.wait {
            state.sent = if self.medium().is_steady() {
                Some(wait + self.link.rate.time_of(state.load.largest) + Duration::from_nanos(2))
            } else {
                let curve = arrivals.zip(guarantee.strict.as_ref());
                curve.and_then(|(arrivals, strict)| delay(arrivals, strict))
            };
        }
        // The wait by the limit would make itself true.
        let of_class = coming.iter().filter(|part| part.class == class);
        let undropped = guarantee.wait(&state.load).filter(|_| arrivals.is_some());
        let by_wait =
            undropped.and_then(|wait| of_class.clone().map(|part| packets_within(part, wait)).sum());
        let by_windows = of_class.map(packets_of_windows).sum();
        state.packets = [by_wait, by_windows].into_iter().flatten().min();
        let by_curve =
            arrivals.zip(guarantee.strict.as_ref()).and_then(|(arrivals, strict)| backlog(arrivals, strict));
        // All that waits came within the longest wait.
        let stays = state.wait.as_ref().ok().filter(|_| !guarantee.outstays);
        let by_time = arrivals.zip(stays).map(|(arrivals, wait)| arrivals.at(*wait));
        let by_windows = state.content.as_ref().zip(state.wait.as_ref().ok());
        let by_windows = by_windows.map(|((content, others), wait)| content.saturating_add(others.at(*wait)));
        let by_limit = guarantee.room.most(state.load.largest);
        state.waiting = [by_curve, by_time, by_windows, by_limit, guarantee.most].into_iter().flatten().min();
    }

    /// Returns the bounds of the link and its classes.
    pub(crate) fn report(&self, states: &[ClassState], lossy: Option<String>) -> LinkBounds {
        let classes: Vec<ClassBounds> =
            (0..states.len()).map(|class| self.report_class(class, states)).collect();
        let longest = classes.iter().map(|class| class.delay.0.clone()).collect::<Result<Vec<_>, _>>();
        let most = classes.iter().map(|class| class.backlog.0.clone()).collect::<Result<Vec<_>, _>>();
        let dropped = classes.iter().find_map(|class| class.loss.0.clone());
        LinkBounds {
            name: self.link.name.clone(),
            delay: Delay(longest.map(|waits| waits.into_iter().max().unwrap_or_default())),
            backlog: Backlog(most.map(|bytes| bytes.into_iter().sum())),
            loss: Loss(dropped.or(lossy)),
            classes,
        }
    }

    fn report_class(&self, class: usize, states: &[ClassState]) -> ClassBounds {
        let state = &states[class];
        let reason = || state.wait.clone().err().unwrap_or_else(|| "the backlog has no bound".into());
        let steps = if state.load.flows > 0 { state.steps() } else { Vec::new() };
        ClassBounds {
            name: self.names[class].clone(),
            delay: Delay(state.wait.clone()),
            backlog: Backlog(state.waiting.map(|most| bytes(most).get()).ok_or_else(reason)),
            loss: Loss(loss(class, states)),
            steps,
        }
    }
}

impl ClassState {
    /// Returns the load of a class, with the windows of its flows and the arrivals of those without.
    fn of(class: usize, coming: &[Coming], links: &[LinkSpec]) -> Self {
        let of_class: Vec<&Coming> = coming.iter().filter(|part| part.class == class).collect();
        let largest = of_class.iter().map(|part| part.largest).max().unwrap_or_default();
        let smallest = of_class.iter().map(|part| part.smallest).min().unwrap_or_default();
        let flows = of_class.iter().map(|part| part.flows).fold(0, u64::saturating_add);
        let arrivals = together(&of_class, links);
        let content = of_class.iter().filter_map(|part| part.content).reduce(i128::saturating_add);
        let others: Vec<&Coming> = of_class.iter().copied().filter(|part| part.content.is_none()).collect();
        let content = content.zip(together(&others, links));
        Self {
            wait: Ok(Duration::ZERO),
            sent: None,
            guarantee: None,
            load: Load { arrivals, largest, smallest, flows },
            content,
            packets: None,
            waiting: None,
            by_flow: None,
        }
    }

    /// Takes over the bounds of the flows of a class in which flows take turns, where each has one.
    pub(crate) fn bound_by_turns(&mut self, flows: &[&Coming]) {
        let own: Option<Vec<_>> = flows.iter().map(|part| part.by_turns.as_deref()).collect();
        let Some(own) = own.filter(|own| !own.is_empty()) else { return };
        let waiting =
            own.iter().zip(flows).map(|(own, part)| Some(own.waiting?.saturating_mul(part.flows.into())));
        self.waiting = [self.waiting, sum(waiting)].into_iter().flatten().min();
        let longest = own.into_iter().max_by_key(|own| own.wait.clone().ok());
        let Some(longest) = longest.filter(|own| self.wait.is_err() || own.wait < self.wait) else { return };
        self.wait.clone_from(&longest.wait);
        self.sent = longest.sent;
        self.by_flow = Some(Box::new(longest.clone()));
    }

    /// Returns the longest wait in a class: by its arrivals, by the windows of its flows, or by its limit.
    fn longest(&self, guarantee: &Guarantee) -> Option<Duration> {
        self.waits(guarantee).into_iter().flatten().min()
    }

    /// Returns the longest wait by the arrivals of a class, by the windows of its flows, and by its limit.
    fn waits(&self, guarantee: &Guarantee) -> [Option<Duration>; 3] {
        let strict = guarantee.strict.as_ref();
        let windows = self.content.as_ref().zip(strict);
        let by_windows =
            windows.and_then(|((content, others), strict)| delay_behind(*content, others, strict));
        let by_limit = strict
            .and_then(|strict| guarantee.room.longest(strict, self.load.largest))
            .or(guarantee.by_limit);
        [guarantee.wait(&self.load), by_windows, by_limit]
    }

    /// Returns how the bounds of a class follow; where that of one flow bounds all, how this follows.
    fn steps(&self) -> Vec<Step> {
        if let Some(flow) = &self.by_flow {
            let wait = Step::new("no flow of the class waits longer than this one", "", "");
            return flow.steps().into_iter().chain([wait]).collect();
        }
        let mut steps = arrival_steps(self);
        let Some(guarantee) = &self.guarantee else { return steps };
        steps.extend(guarantee.steps.iter().cloned());
        let Ok(wait) = self.wait else { return steps };
        let [by_arrivals, by_windows, _] = self.waits(guarantee);
        let (text, formula) = if by_arrivals == Some(wait) {
            (
                "the longest wait: the horizontal deviation of the arrivals before a packet from the service",
                "h(α, β)",
            )
        } else if by_windows == Some(wait) {
            ("the longest wait: until all is served that flows with windows have in the network", "β⁻¹(W)")
        } else {
            (
                "the longest wait: until all is served that the limit lets in, and a packet in transmission",
                "β⁻¹(limit)",
            )
        };
        let formula = format!("{formula} = {}", span(wait.as_nanos().into()));
        steps.push(Step::new(text, formula, "Le Boudec & Thiran 2001, theorem 1.4.2"));
        steps
    }

    /// Returns the most that waits if nothing is dropped.
    fn undropped(&self) -> Option<Nanobits> {
        let (guarantee, arrivals) = (self.guarantee.as_ref()?, self.load.arrivals.as_ref());
        let strict = guarantee.strict.as_ref();
        let by_curve = arrivals.zip(strict).and_then(|(arrivals, strict)| backlog(arrivals, strict));
        let by_time = arrivals.zip(guarantee.wait(&self.load)).map(|(arrivals, wait)| arrivals.at(wait));
        let by_windows = self.content.as_ref().zip(strict).and_then(|((content, others), strict)| {
            Some(content.saturating_add(others.at(delay_behind(*content, others, strict)?)))
        });
        [by_curve, by_time, by_windows].into_iter().flatten().min()
    }

    /// Returns the most packets that wait if nothing is dropped.
    fn undropped_packets(&self) -> Option<i128> {
        let by_size = self.undropped().map(|most| most / nanobits(self.load.smallest).max(1));
        [by_size, self.packets.map(i128::from)].into_iter().flatten().min()
    }
}

/// Returns why a packet of a class may be dropped; `None` if none can be.
pub(crate) fn loss(class: usize, states: &[ClassState]) -> Option<String> {
    let state = &states[class];
    if state.load.flows == 0 {
        return None;
    }
    let (wait, guarantee) = match (&state.wait, &state.guarantee) {
        (Ok(wait), Some(guarantee)) => (*wait, guarantee),
        (Err(reason), _) => return Some(reason.clone()),
        (Ok(_), None) => return Some("nothing is guaranteed".into()),
    };
    if let Some(because) = &guarantee.room.because {
        return Some(because.clone());
    }
    if let Some(patience) = guarantee.room.patience.filter(|patience| wait > *patience) {
        let [wait, patience] = [wait, patience].map(|time| span(time.as_nanos().into()));
        return Some(format!("packets may wait {wait}, and are dropped for waiting from {patience} on"));
    }
    let Some(spared) = guarantee.room.spared else {
        return Some("its AQM may drop a packet before the queue is full".into());
    };
    // Classes that share a queue share its room.
    let sharing = states.iter().filter(|other| {
        other.load.flows > 0 && other.guarantee.as_ref().is_some_and(|other| other.queue == guarantee.queue)
    });
    let (most, room) = match spared {
        Depth::Packets(u64::MAX) => return None,
        Depth::Packets(room) => (sum(sharing.map(ClassState::undropped_packets)), i128::from(room)),
        Depth::Bytes(room) => (sum(sharing.map(ClassState::undropped)), nanobits(Bytes::new(room))),
    };
    match most {
        Some(most) if most <= room => None,
        Some(_) => Some(format!("more may wait than {spared}")),
        None if state.load.arrivals.is_some() => {
            Some(format!("more may come than is served, and {spared} may wait without a drop"))
        }
        None => Some(format!("the arrivals have no bound, and {spared} may wait without a drop")),
    }
}

fn sum(parts: impl Iterator<Item = Option<i128>>) -> Option<i128> {
    parts.into_iter().try_fold(0_i128, |sum, part| Some(sum.saturating_add(part?)))
}

/// Returns how many packets of a bundle come within a time at most.
fn packets_within(coming: &Coming, time: Duration) -> Option<u64> {
    let by_curve = coming.curve.as_ref().ok().map(|curve| curve.at(time) / nanobits(coming.smallest).max(1));
    let by_curve = by_curve.and_then(|packets| u64::try_from(packets).ok());
    [by_curve, packets_of_windows(coming)].into_iter().flatten().min()
}

/// Returns how many packets of a bundle the windows of its flows let into the network: one for each segment,
/// also for a smaller one.
fn packets_of_windows(coming: &Coming) -> Option<u64> {
    u64::try_from(coming.content? / nanobits(coming.largest).max(1)).ok()
}

/// Returns all that comes together: no more than each link brings by which it comes, nor than meters let
/// pass.
fn together(coming: &[&Coming], links: &[LinkSpec]) -> Option<Concave> {
    let mut sorted: Vec<&&Coming> = coming.iter().collect();
    sorted.sort_by_key(|part| part.via);
    let mut all = Concave::zero();
    let mut of_link: Option<(Option<usize>, Concave, Bytes)> = None;
    let close = |all: &Concave, (via, sum, largest): (Option<usize>, Concave, Bytes)| {
        let steady = via.map(|via| &links[via]).filter(|link| link.medium.keeps_intervals());
        let sum = steady.map_or_else(|| sum.clone(), |link| sum.min(&line_rate(link.rate, largest)));
        all.plus(&sum)
    };
    for part in &sorted {
        let curve = match (&part.curve, part.via) {
            (Ok(curve), _) => curve.clone(),
            // A link bounds what it brings.
            (Err(_), Some(via)) if links[via].medium.keeps_intervals() => {
                line_rate(links[via].rate, part.largest)
            }
            (Err(_), _) => return None,
        };
        of_link = Some(match of_link.take() {
            Some((via, sum, largest)) if via == part.via => {
                (via, sum.plus(&curve), largest.max(part.largest))
            }
            Some(other) => {
                all = close(&all, other);
                (part.via, curve, part.largest)
            }
            None => (part.via, curve, part.largest),
        });
    }
    if let Some(last) = of_link {
        all = close(&all, last);
    }
    Some(all.min(&by_meters(coming, &all)))
}

/// Returns all that comes together by the meters that several bundles share here; without one, `all`.
fn by_meters(coming: &[&Coming], all: &Concave) -> Concave {
    // Bundles may have packets of different colors: the bound for the worst holds for all.
    let mut meters: Vec<(usize, &Concave)> = Vec::new();
    for (number, curve) in coming.iter().flat_map(|part| &part.meters) {
        match meters.iter_mut().find(|(known, _)| known == number) {
            Some((_, known)) if known.conforms_to(curve) => *known = curve,
            Some(_) => {}
            None => meters.push((*number, curve)),
        }
    }
    meters.retain(|(number, curve)| {
        let of_meter = coming.iter().flat_map(|part| &part.meters).filter(|(other, _)| other == number);
        of_meter.into_iter().all(|(_, other)| other.conforms_to(curve))
    });
    let mut least = all.clone();
    for (number, curve) in meters {
        let others = coming.iter().filter(|part| part.meters.iter().all(|(other, _)| *other != number));
        let sum = others
            .map(|part| part.curve.as_ref().ok())
            .try_fold(curve.clone(), |sum, part| Some(sum.plus(part?)));
        if let Some(sum) = sum {
            least = least.min(&sum);
        }
    }
    least
}

fn arrival_steps(state: &ClassState) -> Vec<Step> {
    let flows = match state.load.flows {
        1 => "1 flow".to_owned(),
        u64::MAX => "any number of flows".to_owned(),
        count => format!("{count} flows"),
    };
    let mut steps = Vec::new();
    if let Some(arrivals) = &state.load.arrivals {
        steps.push(Step::new(
            format!("arrivals of the class: {flows} together"),
            format!("α(t) = {}", Arriving(arrivals)),
            "Cruz 1991; Le Boudec & Thiran 2001, section 1.2",
        ));
    }
    if let Some((content, others)) = &state.content {
        let others = if others.is_zero() { String::new() } else { format!(" + {}", Arriving(others)) };
        steps.push(Step::new(
            "flows with windows never have more than these in the network",
            format!("W = {}{others}", size(*content)),
            "Le Boudec & Thiran 2001, section 4.3",
        ));
    }
    steps
}
