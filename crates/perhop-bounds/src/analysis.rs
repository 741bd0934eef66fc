//! From port to port in the order of the routes.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use perhop_core::curves::Concave;
use perhop_core::meter::AggregateMeter;
use perhop_core::{Color, Duration};
use perhop_sim::{LinkSpec, Network, Watch};

use crate::arrivals::{Bundle, Part, bucket_of, bundles, keeps_to};
use crate::paths::Paths;
use crate::port::{ClassState, Coming, PortOf, loss};
use crate::report::{Bounds, Delay, FlowBounds, Loss};

/// The most visits of each link on a cycle until what circulates there settles.
const MOST_VISITS: usize = 50;

/// What a bundle brings to a link on its route.
#[derive(Clone, Debug, PartialEq)]
struct AtHop {
    all: Result<Concave, String>,
    parts: Vec<Part>,
    /// By how much closer packets of one flow may be than at the first link; `None` without a bound.
    closer: Option<Duration>,
}

/// A network under analysis.
pub(crate) struct Analysis<'a> {
    pub(crate) network: &'a Network,
    watch: &'a Watch,
    pub(crate) bundles: Vec<Bundle>,
    pub(crate) ports: Vec<Option<PortOf<'a>>>,
    /// The bundles at each link, each with its place on the route.
    pub(crate) at: Vec<Vec<(usize, usize)>>,
    pub(crate) states: Vec<Vec<ClassState>>,
    pub(crate) coming: Vec<Vec<Coming>>,
    hops: Vec<Vec<Option<AtHop>>>,
    /// Which of the arrivals at each link on its route are those of a bundle.
    own: Vec<Vec<Range<usize>>>,
}

/// Returns the bounds of a network.
pub fn bounds(network: &Network) -> Bounds {
    bounds_until(network, &Watch::default()).expect("nothing stops it")
}

/// Returns the bounds of a network; `None` soon after the watch is stopped.
pub fn bounds_until(network: &Network, watch: &Watch) -> Option<Bounds> {
    let routes = network.routes();
    let mut bundles = bundles(network, &routes);
    let mut notes = Vec::new();
    loop {
        let mut analysis = Analysis::new(network, watch, bundles);
        let cycle = analysis.run();
        if watch.is_stopped() {
            return None;
        }
        // Windows hold only while no timer expires for a packet that still waits.
        let late = analysis.late_timers();
        if late.is_empty() {
            notes.extend(cycle);
            return analysis.report(notes);
        }
        bundles = analysis.bundles;
        for (bundle, why) in late {
            let bundle = &mut bundles[bundle];
            bundle.content = None;
            bundle.all = bundle.all.clone().map_err(|_| why.clone());
        }
    }
}

impl<'a> Analysis<'a> {
    fn new(network: &'a Network, watch: &'a Watch, bundles: Vec<Bundle>) -> Self {
        let links = network.links.len();
        let mut at: Vec<Vec<(usize, usize)>> = vec![Vec::new(); links];
        for (number, bundle) in bundles.iter().enumerate() {
            bundle.route.iter().enumerate().for_each(|(place, &link)| at[link].push((number, place)));
        }
        let used = |link: usize| !at[link].is_empty() || network.links[link].queue.is_some();
        let ports =
            network.links.iter().enumerate().map(|(number, link)| used(number).then(|| PortOf::new(link)));
        let ports: Vec<_> = ports.collect();
        let hops = bundles.iter().map(|bundle| vec![None; bundle.route.len()]).collect();
        let own = bundles.iter().map(|bundle| vec![0..0; bundle.route.len()]).collect();
        Self {
            network,
            watch,
            ports,
            states: vec![Vec::new(); links],
            coming: vec![Vec::new(); links],
            hops,
            own,
            at,
            bundles,
        }
    }

    /// Finds the state of every link. Returns the links of a cycle for which nothing settles.
    fn run(&mut self) -> Option<String> {
        let (order, cyclic) = self.order();
        for &link in &order {
            self.visit(link);
        }
        // On cycles a link is visited again when its arrivals have changed.
        let mut due: BTreeSet<usize> = cyclic.iter().copied().collect();
        let mut visits = 0;
        while let Some(link) = due.pop_first() {
            due.extend(self.visit(link));
            visits += 1;
            if visits > MOST_VISITS * cyclic.len() {
                break;
            }
        }
        if due.is_empty() {
            return None;
        }
        let names: Vec<String> =
            cyclic.iter().take(6).map(|&link| format!("`{}`", self.network.links[link].name)).collect();
        let more = if cyclic.len() > names.len() { " …" } else { "" };
        let why = format!(
            "bursts grow without end on the cycle of the links {}{more}{}",
            names.join(", "),
            self.beyond_any_topology(&cyclic)
        );
        for &link in &cyclic {
            for state in self.states[link].iter_mut().filter(|state| state.load.flows > 0) {
                state.wait = Err(why.clone());
                state.guarantee = None;
            }
        }
        Some(why)
    }

    /// Returns how the load of these links is to that below which flows of so many hops have a bound in order
    /// of arrival in any topology: 1 / (h − 1) for h hops (Charny & Le Boudec 2000; Le Boudec & Thiran 2001,
    /// section 2.4).
    fn beyond_any_topology(&self, links: &[usize]) -> String {
        let load = |&link: &usize| {
            let rates = self.coming[link].iter().filter_map(|part| Some(part.curve.as_ref().ok()?.rate()));
            rates.sum::<i128>() as f64 / self.network.links[link].rate.as_bps() as f64
        };
        let most = links.iter().map(load).fold(0.0, f64::max);
        let passing =
            self.bundles.iter().filter(|bundle| bundle.route.iter().any(|link| links.contains(link)));
        let hops = passing.map(|bundle| bundle.route.len()).max().unwrap_or(0);
        if hops < 2 {
            return String::new();
        }
        let limit = 1.0 / (hops as f64 - 1.0);
        let relation = if most < limit { "below" } else { "not below" };
        format!(
            ": their load of {:.0} % is {relation} {:.0} %, up to which flows of {hops} hops have one in any topology",
            most * 100.0,
            limit * 100.0
        )
    }

    /// Returns the links in an order in which each comes behind all that bring something to it, and those for
    /// which there is none.
    fn order(&self) -> (Vec<usize>, Vec<usize>) {
        let links = self.network.links.len();
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); links];
        for bundle in &self.bundles {
            bundle.route.windows(2).for_each(|pair| next[pair[0]].push(pair[1]));
        }
        let mut open = vec![0_u32; links];
        for list in &mut next {
            list.sort_unstable();
            list.dedup();
            for &link in list.iter() {
                open[link] += 1;
            }
        }
        let mut order: Vec<usize> = (0..links).filter(|&link| open[link] == 0).collect();
        let mut place = 0;
        while let Some(&link) = order.get(place) {
            place += 1;
            for &behind in &next[link] {
                open[behind] -= 1;
                if open[behind] == 0 {
                    order.push(behind);
                }
            }
        }
        let cyclic = (0..links).filter(|&link| open[link] > 0).collect();
        (order, cyclic)
    }

    /// Works out a link from its arrivals so far; returns the links whose arrivals have changed by that. Does
    /// nothing once the watch is stopped.
    fn visit(&mut self, link: usize) -> Vec<usize> {
        let Some(port) = self.ports[link].as_ref().filter(|_| !self.watch.is_stopped()) else {
            return Vec::new();
        };
        let dropping = self.dropping(link);
        let mut coming = Vec::new();
        let mut passed = Vec::with_capacity(self.at[link].len());
        for &(number, place) in &self.at[link] {
            // On a cycle nothing has come yet in the first round.
            let Some((all, parts)) = self.before(number, place) else { continue };
            let here = behind_meters(all, parts, port.link);
            let first = coming.len();
            coming.extend(self.to_classes(port, (number, place), &here, &dropping));
            self.own[number][place] = first..coming.len();
            passed.push((number, place, here));
        }
        let mut states = port.classes(&coming, &self.network.links);
        if states.iter().any(|state| state.guarantee.as_ref().is_some_and(|it| it.turns.is_some())) {
            self.take_turns(port, &passed, &mut coming, &mut states);
        }
        let mut changed = Vec::new();
        for (number, place, here) in passed {
            let bundle = &self.bundles[number];
            let own = &coming[self.own[number][place].clone()];
            let closer = self.closer(number, place);
            let behind = Some(behind_link(port, bundle, here, closer, (&states, own)));
            let slot = &mut self.hops[number][place];
            if *slot != behind {
                *slot = behind;
                changed.extend(bundle.route.get(place + 1));
            }
        }
        (self.states[link], self.coming[link]) = (states, coming);
        changed
    }

    /// Notes what single flows are guaranteed where flows take turns.
    fn take_turns(
        &self,
        port: &PortOf<'_>,
        passed: &[(usize, usize, BehindMeters)],
        coming: &mut [Coming],
        states: &mut [ClassState],
    ) {
        for &(number, place, _) in passed {
            let bundle = &self.bundles[number];
            let one = bundle.one.as_ref().zip(self.closer(number, place));
            for part in &mut coming[self.own[number][place].clone()] {
                let alone = one.map(|(one, closer)| one.delayed(closer));
                let flow = Coming {
                    curve: alone.ok_or_else(|| part.curve.clone().err().unwrap_or_default()),
                    content: part.content.map(|content| content / i128::from(part.flows)),
                    meters: Vec::new(),
                    flows: 1,
                    ..part.clone()
                };
                part.by_turns = port.by_turns(&states[part.class], flow, &self.network.links);
            }
        }
        for (class, state) in states.iter_mut().enumerate() {
            let flows: Vec<&Coming> = coming.iter().filter(|part| part.class == class).collect();
            state.bound_by_turns(&flows);
        }
    }

    /// Returns by how much closer packets of one flow of a bundle may come to the link at this place of its
    /// route than to the first one.
    fn closer(&self, number: usize, place: usize) -> Option<Duration> {
        match place.checked_sub(1) {
            None => Some(Duration::ZERO),
            Some(before) => self.hops[number][before].as_ref()?.closer,
        }
    }

    /// Returns what a bundle brings to each class of a link at this place of its route; `dropping` says which
    /// meters of the link may drop packets.
    fn to_classes(
        &self,
        port: &PortOf<'_>,
        (number, place): (usize, usize),
        here: &BehindMeters,
        dropping: &[bool],
    ) -> Vec<Coming> {
        let bundle = &self.bundles[number];
        let mut by_class: Vec<(usize, Vec<&MeteredPart>)> = Vec::new();
        for part in &here.parts {
            let class = port.class_of(&part.part.header);
            match by_class.iter_mut().find(|(known, _)| *known == class) {
                Some((_, parts)) => parts.push(part),
                None => by_class.push((class, vec![part])),
            }
        }
        let is_whole = by_class.len() == 1;
        let entering = bundle.shared.filter(|_| place == 0);
        let to_class = |(class, parts): (usize, Vec<&MeteredPart>)| {
            let colors: Vec<Color> = parts.iter().map(|part| part.part.header.color).collect();
            let profiles = [
                here.meter.map(|meter| (2 * meter, &port.link.meters[meter].profile)),
                entering.map(|shared| (2 * shared + 1, &self.network.shared_meters[shared].params)),
            ];
            let profiles = profiles.into_iter().flatten();
            Coming {
                bundle: number,
                class,
                curve: sum_of(&here.all, &parts),
                policed: parts.iter().any(|part| part.meter.is_some_and(|meter| dropping[meter])),
                content: bundle.content.filter(|_| is_whole),
                via: place.checked_sub(1).map(|before| bundle.route[before]),
                meters: profiles
                    .filter_map(|(meter, profile)| Some((meter, joint(profile, &colors)?)))
                    .collect(),
                largest: bundle.largest,
                smallest: bundle.smallest,
                flows: if bundle.is_population { u64::MAX } else { bundle.flows.len() as u64 },
                by_turns: None,
            }
        };
        by_class.into_iter().map(to_class).collect()
    }

    /// Returns which meters of a link may drop packets: all but those to whose profile everything keeps that
    /// comes to them.
    fn dropping(&self, link: usize) -> Vec<bool> {
        let meters = &self.network.links[link].meters;
        let mut comes: Vec<Option<Concave>> = vec![Some(Concave::zero()); meters.len()];
        for &(number, place) in self.at[link].iter().filter(|_| !meters.is_empty()) {
            let Some((all, parts)) = self.before(number, place) else { continue };
            let taken = parts.iter().filter_map(|part| AggregateMeter::taken_by(meters, &part.header));
            let mut taken: Vec<usize> = taken.collect();
            taken.sort_unstable();
            taken.dedup();
            for meter in taken {
                comes[meter] = comes[meter].take().zip(all.as_ref().ok()).map(|(sum, all)| sum.plus(all));
            }
        }
        let drops = |(meter, comes): (&AggregateMeter, Option<Concave>)| {
            meter.profile.actions().drop_any() && !comes.is_some_and(|comes| keeps_to(&meter.profile, &comes))
        };
        meters.iter().zip(comes).map(drops).collect()
    }

    /// Returns the flows with windows whose timers may expire while packets wait, with the reason.
    fn late_timers(&self) -> Vec<(usize, String)> {
        let mut late = Vec::new();
        for (number, bundle) in self.bundles.iter().enumerate().filter(|(_, bundle)| bundle.content.is_some())
        {
            let spec = &self.network.flows[bundle.flows.start];
            let Some(flight) = spec.transport.in_flight() else { continue };
            // Acknowledgements stand behind their data.
            let beside = if bundle.acknowledges { number.checked_sub(1) } else { Some(number + 1) };
            let other = beside
                .filter(|&other| self.bundles.get(other).is_some_and(|other| other.flows == bundle.flows));
            let both = [Some(number), other].map(|number| number.and_then(|number| self.transit(number)));
            let trip = both.into_iter().try_fold(flight.delayed_ack, |sum, time| Some(sum + time?));
            let why = match trip {
                Some(trip) if trip < flight.timeout => continue,
                Some(trip) => format!(
                    "TCP bounds what it has in the network by its window, but a round trip may take {}, and it sends again after {}",
                    perhop_core::scheduler::span(trip.as_nanos().into()),
                    perhop_core::scheduler::span(flight.timeout.as_nanos().into())
                ),
                None => "TCP sends as fast as its window lets it; a policer or an access link would bound it"
                    .to_owned(),
            };
            late.push((number, why));
        }
        late
    }

    /// Returns the longest time on the way of a bundle's packets, their hosts included, where these queue
    /// nothing that a window does not bound.
    fn transit(&self, number: usize) -> Option<Duration> {
        let bundle = &self.bundles[number];
        let spec = &self.network.flows[bundle.flows.start];
        // Packets that overtake each other are taken for lost, and sent again while they still wait.
        if (0..bundle.route.len()).any(|place| self.own(number, place).len() != 1) {
            return None;
        }
        if bundle.route.iter().any(|&link| self.network.links[link].medium.reorders()) {
            return None;
        }
        let mut hosts = [spec.access.as_ref(), spec.egress.as_ref()].into_iter().flatten();
        let hosts = hosts.try_fold(Duration::ZERO, |sum, access| {
            // All that the flow has in the network may wait at its own link.
            let content = perhop_core::curves::bytes(bundle.content? / bundle.flows.len().max(1) as i128);
            Some(sum + access.delay + access.rate.time_of(content) + Duration::from_nanos(2))
        })?;
        let jitter = spec.dispatch_jitter.unwrap_or(Duration::ZERO);
        let links = bundle.route.iter().enumerate().map(|(place, _)| self.hop_time(number, place));
        links.into_iter().try_fold(hosts + jitter, |sum, time| Some(sum + time?))
    }

    /// Returns what a bundle brings to the link at this place of its route, before the meters there; `None`
    /// if the link before has not been visited.
    fn before(&self, number: usize, place: usize) -> Option<(&Result<Concave, String>, &[Part])> {
        let bundle = &self.bundles[number];
        match place.checked_sub(1) {
            None => Some((&bundle.all, &bundle.parts)),
            Some(before) => self.hops[number][before].as_ref().map(|hop| (&hop.all, &hop.parts[..])),
        }
    }

    /// Returns the arrivals of a bundle at the link at this place of its route.
    pub(crate) fn own(&self, number: usize, place: usize) -> &[Coming] {
        &self.coming[self.bundles[number].route[place]][self.own[number][place].clone()]
    }

    /// Returns the longest time from when a packet comes to a link on the route until it is at the next one.
    pub(crate) fn hop_time(&self, number: usize, place: usize) -> Option<Duration> {
        let link = self.bundles[number].route[place];
        let port = self.ports[link].as_ref()?;
        let own = self.own(number, place).iter();
        let sent = own
            .map(|part| state_of(part, &self.states[link]).sent)
            .try_fold(Duration::ZERO, |most, sent| Some(most.max(sent?)));
        let delays = port.link.medium.changes.iter().filter_map(|change| change.delay);
        let delay = delays.fold(port.link.delay, Duration::max);
        let drawn = port.link.medium.jitter.map_or(Some(Duration::ZERO), |jitter| jitter.max);
        Some(sent? + delay + drawn?)
    }

    /// Returns the bounds of the analysed network; `None` if the watch is stopped.
    fn report(self, notes: Vec<String>) -> Option<Bounds> {
        let mut links = Vec::with_capacity(self.ports.len());
        for (number, spec) in self.network.links.iter().enumerate() {
            let lossy = spec.medium.is_lossy().then(|| "the link itself loses packets".to_owned());
            match &self.ports[number] {
                Some(port) => links.push(port.report(&self.states[number], lossy)),
                None => links.push(PortOf::new(spec).report(&[], lossy)),
            }
        }
        let paths = Paths::new(&self);
        let mut flows: Vec<Option<FlowBounds>> = vec![None; self.network.flows.len()];
        for (number, bundle) in self.bundles.iter().enumerate().filter(|(_, bundle)| !bundle.acknowledges) {
            if self.watch.is_stopped() {
                return None;
            }
            let bound = paths.flow(number, |link, part| self.loss_at(link, part));
            for flow in bundle.flows.clone() {
                flows[flow] =
                    Some(FlowBounds { name: self.network.flows[flow].name.clone(), ..bound.clone() });
            }
        }
        let none = || FlowBounds {
            name: String::new(),
            delay: Delay(Err("no route".into())),
            loss: Loss(Some("no route".into())),
            method: None,
            analyses: Vec::new(),
            route: Arc::new([]),
            steps: Vec::new(),
        };
        let flows = flows.into_iter().map(|flow| flow.unwrap_or_else(none)).collect();
        Some(Bounds { links, flows, notes })
    }

    /// Returns why a packet of a bundle may be lost at a link.
    fn loss_at(&self, link: usize, coming: &Coming) -> Option<String> {
        let port = self.ports[link].as_ref()?;
        let spec = port.link;
        let lossy = spec.medium.is_lossy().then(|| "the link itself loses packets".to_owned());
        let dropped = loss(coming.class, &self.states[link]);
        let by_turns = coming.by_turns.as_ref().filter(|_| dropped.is_some());
        by_turns.map_or(dropped, |own| loss(0, std::slice::from_ref(own))).or(lossy)
    }
}

/// A part behind the meters of a link.
#[derive(Clone, Debug)]
struct MeteredPart {
    part: Part,
    /// The meter of the link that has taken it.
    meter: Option<usize>,
}

/// What a bundle brings behind the meters of a link.
#[derive(Clone, Debug)]
struct BehindMeters {
    all: Result<Concave, String>,
    parts: Vec<MeteredPart>,
    /// The meter that takes all of it.
    meter: Option<usize>,
}

fn behind_meters(all: &Result<Concave, String>, parts: &[Part], spec: &LinkSpec) -> BehindMeters {
    if spec.meters.is_empty() {
        let metered = parts.iter().cloned().map(|part| MeteredPart { part, meter: None });
        return BehindMeters { all: all.clone(), parts: metered.collect(), meter: None };
    }
    let taken: Vec<Option<usize>> =
        parts.iter().map(|part| AggregateMeter::taken_by(&spec.meters, &part.header)).collect();
    let meter = taken[0].filter(|_| taken.iter().all(|other| *other == taken[0]));
    let mut metered: Vec<MeteredPart> = Vec::new();
    for (part, meter) in parts.iter().zip(&taken) {
        for header in AggregateMeter::possible(&spec.meters, part.header) {
            let bucket = meter.and_then(|meter| joint(&spec.meters[meter].profile, &[header.color]));
            let own = match (&part.own, bucket) {
                (Some(own), Some(bucket)) => Some(own.min(&bucket)),
                (own, bucket) => own.clone().or(bucket),
            };
            match metered.iter_mut().find(|known| known.part.header == header) {
                Some(known) => {
                    let sum = known.part.own.as_ref().zip(own.as_ref()).map(|(one, other)| one.plus(other));
                    known.part.own = sum;
                }
                None => metered.push(MeteredPart { part: Part { header, own }, meter: *meter }),
            }
        }
    }
    let mut all = all.clone();
    if let Some(profile) =
        meter.map(|meter| &spec.meters[meter].profile).filter(|profile| profile.actions().drop_any())
    {
        let colors: Vec<Color> = profile.colors_marked().collect();
        if let Some(bucket) = joint(profile, &colors) {
            all = Ok(all.map_or_else(|_| bucket.clone(), |all| all.min(&bucket)));
        }
    }
    BehindMeters { all, parts: metered, meter }
}

/// Returns what packets of these colors do not exceed behind a meter of several flows. A marker never lowers
/// the drop precedence with which a packet comes, so only colors with all better ones have a bound.
fn joint(profile: &perhop_core::meter::MeterParams, colors: &[Color]) -> Option<Concave> {
    let worst = colors.iter().max()?;
    let with_better: Vec<Color> = Color::ALL.into_iter().filter(|color| color <= worst).collect();
    bucket_of(&profile.buckets(), &with_better)
}

/// Returns what the parts of a bundle that go to one class do not exceed together.
fn sum_of(all: &Result<Concave, String>, parts: &[&MeteredPart]) -> Result<Concave, String> {
    let apart = parts.iter().try_fold(Concave::zero(), |sum, part| Some(sum.plus(part.part.own.as_ref()?)));
    match (all, apart) {
        (Ok(all), Some(apart)) => Ok(all.min(&apart)),
        (Err(_), Some(apart)) => Ok(apart),
        (all, None) => all.clone(),
    }
}

/// Returns what a bundle brings behind a link.
fn behind_link(
    port: &PortOf<'_>,
    bundle: &Bundle,
    here: BehindMeters,
    closer: Option<Duration>,
    (states, own): (&[ClassState], &[Coming]),
) -> AtHop {
    let rate = port.link.rate;
    let fastest = if port.link.medium.is_steady() { rate.time_of(bundle.smallest) } else { Duration::ZERO };
    // All packets have arrived and have been sent within these times: they come closer by the difference.
    let spread = |class: usize| {
        let coming = own.iter().find(|coming| coming.class == class);
        let state = coming.map_or(&states[class], |coming| state_of(coming, states));
        let own = match &state.wait {
            Ok(wait) if port.link.medium.is_steady() => {
                *wait + rate.time_of(bundle.largest) + Duration::from_nanos(1)
            }
            _ => state.sent?,
        };
        Some((own - fastest) + port.jitter?)
    };
    let mut most = Some(Duration::ZERO);
    let parts = here.parts.into_iter().map(|MeteredPart { part: Part { header, own }, .. }| {
        let spread = spread(port.class_of(&header));
        most = most.zip(spread).map(|(most, spread)| most.max(spread));
        let own = own.zip(spread).map(|(own, spread)| own.delayed(spread));
        Part { header, own }
    });
    let parts = parts.collect();
    let all = match (here.all, most) {
        (Ok(all), Some(most)) => Ok(all.delayed(most)),
        (Ok(_), None) => Err(format!("its wait at `{}` has no bound", port.link.name)),
        (Err(why), _) => Err(why),
    };
    AtHop { all, parts, closer: closer.zip(most).map(|(closer, most)| closer + most) }
}

/// Returns the state that counts for a flow's part: by its own turns, or of its class.
fn state_of<'a>(coming: &'a Coming, states: &'a [ClassState]) -> &'a ClassState {
    coming.by_turns.as_deref().unwrap_or(&states[coming.class])
}
