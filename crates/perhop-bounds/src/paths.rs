//! Whole routes: each analysis bounds the delay of a flow, and the least bound counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use perhop_core::curves::{Concave, Convex, Line, Nanobits, delay, left_in_order, nanobits, paying_once};
use perhop_core::scheduler::{Arriving, Serving, Step, span};
use perhop_core::{Duration, curves};

use crate::analysis::Analysis;
use crate::port::Coming;
use crate::report::{Delay, FlowBounds, Loss};

/// Networks with more arrivals to compare are bounded by total flow analysis alone, whose time is linear in
/// their size.
const MOST_COMPARED: usize = 4_000_000;

/// Which token buckets of arrivals are tried for what flows beside the one of interest bring: of the lowest
/// rate, of the next one, and so on.
const BUCKETS: usize = 4;

/// The service of a bundle's whole route to one of its flows, with one of the buckets that bound what others
/// bring.
type ServiceOf<P> = fn(&P, usize, usize) -> Option<Convex>;

/// Bounds, each with the name of its analysis.
type ByMethod = Vec<(&'static str, Duration)>;

/// The routes of a network.
pub(crate) struct Paths<'a> {
    analysis: &'a Analysis<'a>,
    /// Whether the network is small enough to look at each route by itself.
    whole_routes: bool,
    /// The names of the links on each route.
    names: BTreeMap<&'a [usize], Arc<[String]>>,
}

/// The steps of a derivation, if anybody reads them: of a large network, nobody reads each flow's.
struct Derivation {
    is_read: bool,
    steps: Vec<Step>,
}

impl Derivation {
    fn add(&mut self, step: impl FnOnce() -> Step) {
        if self.is_read {
            self.steps.push(step());
        }
    }
}

impl<'a> Paths<'a> {
    pub(crate) fn new(analysis: &'a Analysis<'a>) -> Self {
        let visits =
            analysis.bundles.iter().flat_map(|bundle| &bundle.route).map(|&link| analysis.at[link].len());
        let mut names: BTreeMap<&[usize], Arc<[String]>> = BTreeMap::new();
        for bundle in &analysis.bundles {
            names.entry(&bundle.route).or_insert_with(|| {
                bundle.route.iter().map(|&link| analysis.network.links[link].name.clone()).collect()
            });
        }
        Self { analysis, whole_routes: visits.sum::<usize>() <= MOST_COMPARED, names }
    }

    /// Returns the bounds of the flows of a bundle of data; `may_lose` says why a link may lose
    /// packets of it.
    pub(crate) fn flow(
        &self,
        number: usize,
        may_lose: impl Fn(usize, &Coming) -> Option<String>,
    ) -> FlowBounds {
        let Analysis { network, bundles, .. } = self.analysis;
        let bundle = &bundles[number];
        let lost = bundle.route.iter().enumerate().find_map(|(place, &link)| {
            let own = self.analysis.own(number, place).iter();
            let policed = own.clone().any(|part| part.policed);
            let policed = policed.then(|| "a policer drops what is out of profile".to_owned());
            let lost = policed.or_else(|| own.clone().find_map(|part| may_lose(link, part)));
            lost.map(|why| format!("`{}`: {why}", network.links[link].name))
        });
        let (analyses, steps, why) = match self.analyses(number) {
            Ok((analyses, steps)) => (analyses, steps, String::new()),
            Err(why) => (Vec::new(), Vec::new(), why),
        };
        let least = analyses.iter().min_by_key(|(_, most)| *most);
        FlowBounds {
            name: String::new(),
            delay: Delay(least.map(|(_, most)| *most).ok_or(why)),
            loss: Loss(bundle.policed.clone().or(lost)),
            method: least.map(|(method, _)| *method),
            analyses,
            route: Arc::clone(&self.names[&bundle.route[..]]),
            steps,
        }
    }

    /// Returns the bound on a flow's delay by each analysis, and its derivation.
    fn analyses(&self, number: usize) -> Result<(ByMethod, Vec<Step>), String> {
        let mut derivation = Derivation { is_read: self.whole_routes, steps: Vec::new() };
        let total = self.total(number, &mut derivation)?;
        let bundle = &self.analysis.bundles[number];
        let mut analyses = vec![("total flow analysis", total)];
        if bundle.route.len() > 1 && self.whole_routes {
            let methods: [(&str, &str, ServiceOf<Self>); 2] = [
                (
                    "separated flow analysis",
                    "Le Boudec & Thiran 2001, section 6.2 and theorem 1.4.6",
                    Self::separated,
                ),
                ("pay multiplexing only once", "Schmitt, Zdarsky & Fidler 2008, theorem 3", Self::once),
            ];
            for (method, source, service) in methods {
                let Some((one, rest)) = bundle.one.as_ref().zip(self.outside_queues(number)) else {
                    continue;
                };
                let services = (0..BUCKETS).filter_map(|bucket| service(self, number, bucket));
                let queued = services.filter_map(|service| Some((delay(one, &service)?, service)));
                let Some((queued, service)) = queued.min_by_key(|(queued, _)| *queued) else { continue };
                let all = queued + rest;
                derivation.add(|| {
                    Step::new(
                        format!(
                            "{method}: one flow, {}, through the service of the whole route",
                            Arriving(one)
                        ),
                        format!(
                            "h(α, {}) + the rest of the way = {}",
                            Serving(&service),
                            span(all.as_nanos().into())
                        ),
                        source,
                    )
                });
                analyses.push((method, all));
            }
        }
        let least = analyses.iter().min_by_key(|(_, most)| *most).filter(|_| analyses.len() > 1);
        if let Some((method, most)) = least {
            derivation.add(|| {
                Step::new(format!("the least bound is that of {method}"), span(most.as_nanos().into()), "")
            });
        }
        Ok((analyses, derivation.steps))
    }

    /// Total flow analysis: the longest times at all hops, one after the other.
    fn total(&self, number: usize, derivation: &mut Derivation) -> Result<Duration, String> {
        let Analysis { network, bundles, states, .. } = self.analysis;
        let bundle = &bundles[number];
        let host = bundle.host.ok_or_else(|| {
            bundle.all.clone().err().unwrap_or_else(|| "nothing bounds what its source sends".into())
        })?;
        let mut sum = host;
        derivation.add(|| Step::new("the host and its access link", span(host.as_nanos().into()), ""));
        for (place, &link) in bundle.route.iter().enumerate() {
            let name = &network.links[link].name;
            let time = self.analysis.hop_time(number, place).ok_or_else(|| {
                let mut own = self.analysis.own(number, place).iter();
                let why = own.find_map(|part| states[link][part.class].wait.clone().err());
                format!("`{name}`: {}", why.unwrap_or_else(|| "its delay has no bound".into()))
            })?;
            sum = sum + time;
            let by_turns = self.analysis.own(number, place).iter().filter_map(|part| part.by_turns.as_ref());
            for step in by_turns.flat_map(|own| &own.guarantee).flat_map(|guarantee| &guarantee.steps) {
                derivation.add(|| Step { text: format!("`{name}`: {}", step.text), ..step.clone() });
            }
            derivation.add(|| {
                let text = format!("`{name}`: the longest wait, the transmission, and the propagation delay");
                Step::new(text, span(time.as_nanos().into()), "")
            });
        }
        let egress = self.egress(number).ok_or("the receiver's access link is too slow")?;
        if !egress.is_zero() {
            derivation.add(|| Step::new("the receiver's access link", span(egress.as_nanos().into()), ""));
        }
        let sum = sum + egress;
        derivation.add(|| {
            let sum = span(sum.as_nanos().into());
            Step::new("total flow analysis: all of these", sum, "Schmitt & Zdarsky 2006")
        });
        Ok(sum)
    }

    /// Returns the longest time at the receiver's access link.
    fn egress(&self, number: usize) -> Option<Duration> {
        let bundle = &self.analysis.bundles[number];
        let spec = &self.analysis.network.flows[bundle.flows.start];
        let Some(access) = &spec.egress else { return Some(Duration::ZERO) };
        let mut arriving = bundle.one.clone()?;
        for (place, &link) in bundle.route.iter().enumerate() {
            // The propagation delay is the same for all packets, so it makes no difference between them.
            let time = self.analysis.hop_time(number, place)?;
            arriving = arriving.delayed(time - self.analysis.network.links[link].delay);
        }
        let service = Convex::rate_latency(access.rate, Duration::from_nanos(2));
        Some(delay(&arriving, &service)? + access.delay)
    }

    /// Returns the time on a route outside of queues and transmissions.
    fn outside_queues(&self, number: usize) -> Option<Duration> {
        let Analysis { network, bundles, .. } = self.analysis;
        let bundle = &bundles[number];
        let links = bundle.route.iter().map(|&link| &network.links[link]);
        let on_links = links.map(|link| link.medium.is_constant().then_some(link.delay));
        let sum = on_links.into_iter().try_fold(Duration::ZERO, |sum, delay| Some(sum + delay?));
        Some(bundle.host? + sum? + self.egress(number)?)
    }

    /// Returns the part of what a bundle brings that others than one of its flows may bring: all of it where
    /// a meter or a population bounds them only together.
    fn others(&self, number: usize) -> (i128, i128) {
        let Analysis { network, bundles, .. } = self.analysis;
        let bundle = &bundles[number];
        let metered = || bundle.route.iter().any(|&link| !network.links[link].meters.is_empty());
        let flows = bundle.flows.len() as i128;
        if bundle.is_population || (flows > 1 && (bundle.shared.is_some() || metered())) {
            (1, 1)
        } else {
            (flows - 1, flows)
        }
    }

    /// Returns the class to which a bundle goes at the link at this place of its route, if all of its packets
    /// go to one.
    fn class_of(&self, number: usize, place: usize) -> Option<usize> {
        let mut own = self.analysis.own(number, place).iter();
        let class = own.next()?.class;
        own.next().is_none().then_some(class)
    }

    /// Returns the arrivals beside one flow of a bundle, in its class at the link at this place of its route:
    /// a token bucket for each bundle.
    fn beside(&self, number: usize, place: usize, bucket: usize) -> Option<Vec<(usize, Line)>> {
        let class = self.class_of(number, place)?;
        let at = self.analysis.bundles[number].route[place];
        let parts = self.analysis.coming[at].iter().filter(|part| part.class == class);
        let lines = parts.map(|part| {
            let line = token_bucket(part.curve.as_ref().ok()?, bucket);
            let (share, all) = if part.bundle == number { self.others(number) } else { (1, 1) };
            let [rate, amount] = [line.rate, line.amount].map(|part| curves::scaled_up(part, share, all));
            Some((part.bundle, Line { rate, amount }))
        });
        lines.collect()
    }

    /// Separated flow analysis: at each hop, what a FIFO leaves to the flow beside all others (the member of
    /// the FIFO family with θ = T + b / R); the hops as one server. All hops but the last hold a packet back
    /// until it is complete.
    fn separated(&self, number: usize, bucket: usize) -> Option<Convex> {
        let Analysis { bundles, states, .. } = self.analysis;
        let bundle = &bundles[number];
        let mut whole: Option<Convex> = None;
        for (place, &link) in bundle.route.iter().enumerate() {
            let beside = sum(self.beside(number, place, bucket)?.iter().map(|(_, line)| line));
            let class = self.class_of(number, place)?;
            let strict = states[link][class].guarantee.as_ref()?.strict.as_ref()?;
            // A curve of the family holds for one line: the greatest of several need not be one.
            let left = left_in_order(*strict.slopes().last()?, beside)?;
            let left =
                if place + 1 < bundle.route.len() { left.less(nanobits(bundle.largest)) } else { left };
            whole = Some(whole.map_or_else(|| left.clone(), |whole| whole.then(&left)));
        }
        whole.filter(|whole| !whole.is_none())
    }

    /// Pay multiplexing only once: the route as one server, at which each other flow pays its burst once,
    /// where it joins the route for the first time. For any order of service within a class.
    fn once(&self, number: usize, bucket: usize) -> Option<Convex> {
        let Analysis { bundles, states, .. } = self.analysis;
        let bundle = &bundles[number];
        let mut servers = Vec::with_capacity(bundle.route.len());
        let mut bursts: Nanobits = 0;
        let mut with: Vec<(usize, Line)> = Vec::new();
        for (place, &link) in bundle.route.iter().enumerate() {
            let class = self.class_of(number, place)?;
            let line = *states[link][class].guarantee.as_ref()?.strict.as_ref()?.slopes().last()?;
            let before = place.checked_sub(1).map(|before| bundle.route[before]);
            let mut here = self.beside(number, place, bucket)?;
            for (other, line) in &mut here {
                // A flow that has been in the class since an earlier hop keeps the bucket with which it
                // joined.
                let came = before.is_some_and(|before| self.follows(*other, before, link));
                match with.binary_search_by_key(other, |(known, _)| *known).ok().filter(|_| came) {
                    Some(known) => *line = with[known].1,
                    None => bursts = bursts.saturating_add(line.amount),
                }
            }
            let packet = if place + 1 < bundle.route.len() { nanobits(bundle.largest) } else { 0 };
            let rate = here.iter().map(|(_, line)| line.rate).sum();
            servers.push((Line { amount: line.amount.saturating_add(packet), ..line }, rate));
            with = here;
        }
        paying_once(&servers, bursts)
    }

    /// Returns whether a bundle goes from the one link straight to the other.
    fn follows(&self, number: usize, from: usize, to: usize) -> bool {
        self.analysis.bundles[number].route.windows(2).any(|pair| pair == [from, to])
    }
}

/// Returns several token buckets as one.
fn sum<'a>(lines: impl Iterator<Item = &'a Line>) -> Line {
    lines.fold(Line { rate: 0, amount: 0 }, |sum, line| Line {
        rate: sum.rate + line.rate,
        amount: sum.amount.saturating_add(line.amount),
    })
}

/// Returns the token bucket of this place among those of arrivals, from the lowest rate, or the last.
fn token_bucket(arrivals: &Concave, place: usize) -> Line {
    let lines = arrivals.lines();
    lines[place.min(lines.len() - 1)]
}
