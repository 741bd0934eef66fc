//! What a user should know of a scenario that can be run: parameters that cannot act, marks that no flow is capable of, queues
//! that no packet joins, streams that a queue divides.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use perhop_core::meter::{AggregateMeter, MeterParams};
use perhop_core::scheduler::{AnyScheduler, ClassKey, Discipline, DualPi2Params, SchedulerParams, Within};
use perhop_core::{
    Bitrate, Bytes, Codepoints, Color, Depth, Dscp, Duration, Ecn, Environment, FlowId, Header, Onset,
    Streams,
};
use perhop_sim::transport::packet_trace::PacketTrace;
use perhop_sim::transport::tcp::{TcpParams, Variant};
use perhop_sim::{FlowSpec, LinkSpec, Network, TransportSpec};

use crate::error::{KeyPart, Problem, steps};
use crate::files::LEFT_OUT;
use crate::format::{Codec, Flow, FlowProfile, RateTrace, ReplayedPackets, Scenario, Transport};

/// The year of CUBIC, the oldest of the congestion controls of hosts of today.
const CUBIC: u16 = 2005;

impl Scenario {
    /// What in it cannot act, or acts otherwise than it seems; each where it stands.
    pub fn notices(&self) -> Vec<Problem> {
        let outline = self.outline();
        let sizes = sizes(&outline.network);
        let mut notices = Vec::new();
        let mut alike = BTreeSet::new();
        for place in self.queues() {
            let name = place.name();
            // The queues of a tier are one key of the scenario.
            if place.tier().is_some_and(|tier| !alike.insert((tier, place.rate))) {
                continue;
            }
            let link = Spot { name: &name, anywhere: place.tier().is_some() };
            let rates = Rates::of(place.rate, outline.link(&name), self.duration);
            let idle = idle_keys(place.scheduler(), rates, &sizes);
            let idle = idle.into_iter().chain(outline.too_small(place.scheduler(), place.rate, link, &sizes));
            let marks = self.idle_marks(&place, link, &outline);
            let unused = outline.unused_queues(link);
            let idle = idle.chain(marks).chain(unused).chain(outline.unused_l4s(link));
            notices.extend(idle.map(|(key, text)| place.at(&key, text)));
            let within = place.scheduler().all_within(rates.least).into_iter();
            for (Within { key, scheduler, rate, .. }, Within { cap, .. }) in
                within.zip(place.scheduler().all_within(rates.most))
            {
                let most = cap.map_or(rates.most, |cap| cap.min(rates.most));
                let found = rates_and_bursts(scheduler, (rate.unwrap_or(rates.least), most), &sizes);
                notices.extend(found.into_iter().map(|(inner, text)| place.at(&below(&key, &inner), text)));
            }
            let divided = outline
                .passing_numbers(link)
                .map(|flow| (outline.groups[flow].as_str(), outline.division(flow, link)));
            let divided = divisions(divided);
            notices.extend(divided.into_iter().map(|(key, text)| place.at(&key, text)));
        }
        notices.dedup();
        notices.extend(self.ended_traces());
        notices.extend(self.idle_demands());
        notices.extend(self.links_named_backwards());
        notices.extend(self.merged_edges());
        notices.extend(self.incomplete_replays());
        notices.extend(self.total_losses());
        notices.extend(self.idle_profiles());
        notices.extend(self.idle_colors());
        notices.extend(self.other_codecs());
        notices.extend(self.idle_meters(&outline, &sizes));
        notices.extend(self.population_notices(&outline.network));
        notices.extend(self.papers_windows(&outline));
        notices
    }

    /// Links that lose every packet: who means one percent may have written 1.
    fn total_losses(&self) -> impl Iterator<Item = Problem> + '_ {
        self.links.written().flat_map(|(name, link)| {
            let back = link.reverse.as_ref().and_then(|reverse| reverse.loss);
            let lost = [("loss", link.loss), ("reverse.loss", back)].into_iter();
            let lost = lost.filter(|(_, loss)| loss.is_some_and(|loss| loss.get() >= 1.0));
            lost.map(move |(key, _)| {
                let place = ["links", name].map(|key| KeyPart::Key(key.into())).into_iter().chain(steps(key));
                Problem::at(place, "`1`: the link loses every packet; one percent is \"1%\" or 0.01")
            })
        })
    }

    /// Congestion controls of today whose window is the default of the papers' presets, which holds them below their share of a link.
    fn papers_windows(&self, outline: &Outline) -> Vec<Problem> {
        let mut notices = Vec::new();
        let mut seen = BTreeSet::new();
        let numbers: BTreeMap<&str, usize> = self.flows.iter().map(|group| &*group.name).zip(0..).collect();
        let mut sharing = BTreeMap::new();
        for (flow, spec) in outline.network.flows.iter().enumerate() {
            let name = &outline.groups[flow];
            let TransportSpec::Tcp(params) = &spec.transport else { continue };
            let Some(&group) = numbers.get(name.as_str()) else { continue };
            let is_papers = matches!(params.tcp, Variant::Reno | Variant::NewReno);
            let is_modern = params.control().info().origin.year >= CUBIC;
            let papers = TcpParams::new(params.tcp);
            if !is_papers || !is_modern || params.window != papers.window || spec.volume.is_some() {
                continue;
            }
            let Some((link, round_trip)) = outline.narrowest(flow) else { continue };
            let window = params.packet.bits() * u64::from(params.most_offered());
            let most = window as f64 / round_trip.as_secs_f64();
            let sharing = *sharing.entry(&link.name).or_insert_with(|| self.sharing(outline, &link.name));
            let rate = link.rate.as_bps() as f64 / f64::from(sharing);
            if most < rate && seen.insert(group) {
                let text = format!(
                    "`{}` beside `tcp = \"{}\"`, which has the papers' packets of {} and window of {}: at most {:.3} Mbit/s in a round \
                     trip of {round_trip}, less than its share of link {}; `tcp = \"linux\"` has those of hosts of today, or give `window`",
                    params.control_name(),
                    if params.tcp == Variant::Reno { "reno" } else { "newreno" },
                    params.packet,
                    params.window,
                    most / 1e6,
                    link.name,
                );
                notices.push(Problem::at(steps(&format!("flows[{group}].transport.congestion")), text));
            }
        }
        notices
    }

    /// The flows whose data pass a link of this name.
    fn sharing(&self, outline: &Outline, link: &str) -> u32 {
        let groups: BTreeSet<&str> = outline.passing(Spot::link(link)).map(|(group, _)| group).collect();
        let counts = self.flows.iter().filter(|group| groups.contains(&*group.name)).map(|group| group.count);
        counts.sum::<u32>().max(1)
    }

    /// Traces after which a link sends nothing.
    fn ended_traces(&self) -> Vec<Problem> {
        let ended = |place: &mut dyn Iterator<Item = KeyPart>, trace: Option<&RateTrace>| {
            let RateTrace::Table(table) = trace? else { return None };
            let end = table.read.as_ref()?.end().filter(|&end| end < self.duration)?;
            let text = format!(
                "the trace ends at {end}, and the link sends nothing afterwards; leave `repeat` out, or end the run by then"
            );
            Some(Problem::at(place.chain(steps("rate-trace.repeat")), text))
        };
        let links = self.links.iter().flat_map(|(name, link)| {
            let mut place = steps("links").chain([KeyPart::Key(name.clone())]);
            let forward = ended(&mut place, link.rate_trace.as_ref());
            let mut place = steps("links").chain([KeyPart::Key(name.clone())]).chain(steps("reverse"));
            let reverse = link.reverse.as_ref().and_then(|reverse| reverse.rate_trace.as_ref());
            [forward, ended(&mut place, reverse)]
        });
        links.flatten().collect()
    }

    /// Captures of which not all packets are replayed.
    fn incomplete_replays(&self) -> impl Iterator<Item = Problem> {
        self.flows.iter().enumerate().filter_map(|(number, group)| {
            let Some(ReplayedPackets::Table(table)) = &group.replay else { return None };
            let first = table.data.as_ref()?.lines().next()?.strip_prefix(LEFT_OUT)?;
            let name = table.name.as_deref().unwrap_or("the capture");
            Some(Problem::at(steps(&format!("flows[{number}].replay")), format!("{name}: left out: {first}")))
        })
    }

    /// Keys of profiles that cannot act on the packets of their flows.
    fn idle_profiles(&self) -> impl Iterator<Item = Problem> {
        let own = self.flows.iter().enumerate().filter_map(|(number, flow)| match &flow.profile {
            Some(FlowProfile::Own(profile)) => {
                Some((format!("flows[{number}].profile"), &profile.0, vec![flow]))
            }
            Some(FlowProfile::Shared(_)) | None => None,
        });
        let own = own.map(|(key, meter, flows)| (steps(&key).collect(), meter, flows));
        let shared = self.profiles.iter().map(|(name, profile)| {
            let shares = |flow: &&Flow| matches!(&flow.profile, Some(FlowProfile::Shared(of)) if of == name);
            let place = vec![KeyPart::Key("profiles".into()), KeyPart::Key(name.clone())];
            (place, &profile.0, self.flows.iter().filter(shares).collect())
        });
        own.chain(shared).flat_map(|(place, meter, flows): (Vec<KeyPart>, _, Vec<&Flow>)| {
            let at = |(key, text): (&str, String)| Problem::at(place.iter().cloned().chain(steps(key)), text);
            idle_profile(meter, &flows).into_iter().map(at).collect::<Vec<_>>()
        })
    }

    /// Colors of flows whose meter gives each packet a color without looking at this one.
    fn idle_colors(&self) -> impl Iterator<Item = Problem> {
        self.flows.iter().enumerate().filter_map(|(number, flow)| {
            let meter = match flow.profile.as_ref()? {
                FlowProfile::Own(profile) => &profile.0,
                FlowProfile::Shared(name) => &self.profiles.get(name)?.0,
            };
            flow.color.filter(|color| *color != Color::default() && !meter.reads_color()).map(|color| {
                let text = format!(
                    "`{}`: no effect, since the meter `{}` of the profile gives each packet its color and does not look at \
                     this one; leave the key out, or choose a meter that has mode = \"color-aware\"",
                    color.name(),
                    meter.name()
                );
                Problem::at(steps(&format!("flows[{number}].color")), text)
            })
        })
    }

    /// Codecs of flows that do not send what the E-model's parameters hold for.
    fn other_codecs(&self) -> impl Iterator<Item = Problem> {
        self.flows.iter().enumerate().filter_map(|(number, flow)| {
            let (Some(codec), Transport::Udp(params)) = (flow.codec, &flow.transport) else { return None };
            let gap = params.rate.time_of(params.packet);
            (gap != Codec::PACKET).then(|| {
                let text = format!(
                    "`{}`: the E-model's parameters are for packets of {}, and these flows send one every {gap}; choose `rate` and \
                     `packet` of the transport, such as 80kbps and 200B for G.711, 24kbps and 60B for G.729",
                    codec.name(),
                    Codec::PACKET,
                );
                Problem::at(steps(&format!("flows[{number}].codec")), text)
            })
        })
    }

    /// Keys of meters of links that cannot act on the packets that come to them.
    fn idle_meters(&self, outline: &Outline, sizes: &RangeInclusive<u64>) -> Vec<Problem> {
        let mut notices = Vec::new();
        for place in self.meters() {
            let packets = outline.packets_before(Spot::link(&place.name()));
            let Some(link) = outline.link(&place.name()).filter(|_| !packets.is_empty()) else { continue };
            for (number, meter) in link.meters.iter().enumerate() {
                let takes = |packet: &&Header| AggregateMeter::taken_by(&link.meters, packet) == Some(number);
                let those: Vec<&Header> = packets.iter().filter(takes).collect();
                if those.is_empty() {
                    let come =
                        packets.iter().map(|packet| outline.described(packet)).collect::<Vec<_>>().join(", ");
                    let text = format!(
                        "no packet that comes to this link matches, or an earlier meter takes it; packets here carry {come}: \
                         match some of them, or leave the meter out"
                    );
                    notices.push(place.at(&format!("[{number}].match"), text));
                    continue;
                }
                let idle =
                    idle_keys_of_meter(&meter.profile, sizes, those.iter().map(|packet| packet.color).min());
                let at = |(key, text): (&str, String)| place.at(&format!("[{number}].profile.{key}"), text);
                notices.extend(idle.into_iter().map(at));
            }
        }
        notices
    }

    /// Its network with one flow of each group; with all of a group that a matrix spreads, where single links are looked at.
    pub(crate) fn outline(&self) -> Outline {
        let looks_at_links =
            self.links.written().any(|(_, link)| link.queue.is_some() || link.reverse.is_some());
        let count = |group: &Flow| if looks_at_links && group.between.is_some() { group.count } else { 1 };
        let flows = self.flows.iter().map(|group| Flow { count: count(group), ..group.clone() });
        let outline = Self { flows: flows.collect(), ..self.clone() };
        let network = outline.network();
        let found = network.routes();
        let routes = |acknowledges| {
            let route = |flow| found.of(flow, acknowledges).unwrap_or_default();
            (0..network.flows.len()).map(route).collect()
        };
        let [routes, returns]: [Vec<Vec<usize>>; 2] = [routes(false), routes(true)];
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); network.links.len()];
        let mut senders = users.clone();
        for (flow, (route, back)) in routes.iter().zip(&returns).enumerate() {
            for &link in route {
                if senders[link].last() != Some(&flow) {
                    senders[link].push(flow);
                }
            }
            for &link in route.iter().chain(back) {
                if users[link].last() != Some(&flow) {
                    users[link].push(flow);
                }
            }
        }
        Outline {
            numbers: (0..).zip(&network.links).map(|(number, link)| (link.name.clone(), number)).collect(),
            users,
            senders,
            is_metered: network.links.iter().any(|link| !link.meters.is_empty()),
            groups: outline
                .classes()
                .into_iter()
                .flat_map(|class| vec![class.name; class.flows as usize])
                .collect(),
            routes,
            returns,
            paths: self.paths.keys().cloned().collect(),
            network,
        }
    }
}

/// Where to look at packets: at a link, or anywhere in the network, which stands for all links of a tier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot<'a> {
    /// The link's name; that of one of the tier.
    name: &'a str,
    anywhere: bool,
}

impl<'a> Spot<'a> {
    /// One link.
    pub(crate) fn link(name: &'a str) -> Self {
        Self { name, anywhere: false }
    }
}

/// A network with one flow for each group.
pub(crate) struct Outline {
    groups: Vec<String>,
    /// The links that the data of each pass.
    routes: Vec<Vec<usize>>,
    /// The links that their acknowledgements pass.
    returns: Vec<Vec<usize>>,
    /// The flows whose data or acknowledgements pass each link, and the links' numbers.
    users: Vec<Vec<usize>>,
    /// The flows whose data pass each link, in order.
    senders: Vec<Vec<usize>>,
    /// Whether a link has meters.
    is_metered: bool,
    numbers: BTreeMap<String, usize>,
    /// The names of the network's paths.
    paths: Vec<String>,
    pub(crate) network: Network,
}

impl Outline {
    /// The slowest link that a flow's data pass, and the flow's round trip without queues.
    fn narrowest(&self, flow: usize) -> Option<(&LinkSpec, Duration)> {
        let links = |route: &[usize]| route.iter().map(|&link| &self.network.links[link]).collect::<Vec<_>>();
        let (there, back) = (links(&self.routes[flow]), links(&self.returns[flow]));
        let spec = &self.network.flows[flow];
        let hosts = spec.access.iter().chain(&spec.egress).map(|access| access.delay.as_nanos() * 2);
        let round_trip =
            there.iter().chain(&back).map(|link| link.delay.as_nanos()).chain(hosts).sum::<u64>();
        let link = there.into_iter().min_by_key(|link| link.rate)?;
        (round_trip > 0).then_some((link, Duration::from_nanos(round_trip)))
    }

    /// The groups whose data pass the link of this name, each with its flow.
    pub(crate) fn passing<'a>(&'a self, link: Spot<'a>) -> impl Iterator<Item = (&'a str, &'a FlowSpec)> {
        self.passing_numbers(link).map(|flow| (self.groups[flow].as_str(), &self.network.flows[flow]))
    }

    fn passing_numbers(&self, link: Spot<'_>) -> impl Iterator<Item = usize> {
        self.of_link(link, &self.senders)
    }

    /// The flows whose data or acknowledgements may pass there, in order.
    fn users_of(&self, link: Spot<'_>) -> impl Iterator<Item = usize> {
        self.of_link(link, &self.users)
    }

    /// The flows of a link in such a list; all flows anywhere.
    fn of_link<'a>(
        &'a self,
        link: Spot<'_>,
        lists: &'a [Vec<usize>],
    ) -> impl Iterator<Item = usize> + use<'a> {
        let number = self.numbers.get(link.name).filter(|_| !link.anywhere);
        let these = number.map_or(&[][..], |&number| &lists[number]);
        let all = if link.anywhere { self.network.flows.len() } else { 0 };
        these.iter().copied().chain(0..all)
    }

    fn link(&self, name: &str) -> Option<&LinkSpec> {
        self.numbers.get(name).map(|&number| &self.network.links[number])
    }

    fn label(&self, flow: &FlowSpec) -> u32 {
        flow.path.map_or(0, |path| self.network.paths[path].label)
    }

    /// How the queue of the link of this name divides the packets of a flow, if it does.
    fn division(&self, number: usize, link: Spot<'_>) -> Option<Division> {
        let flow = &self.network.flows[number];
        // What replays a capture stands for many flows, and has no marker that could keep them together.
        if flow.transport.trace().is_some_and(PacketTrace::has_codepoints) {
            return None;
        }
        let Passage { behind, .. } = self.headers(self.sent(flow), &self.routes[number], link)?;
        let link = self.link(link.name)?;
        division(link.queue.as_ref()?, link.rate, behind)
    }

    /// The queues of the link of this name whose `match` no packet fits that comes to the link, by key, and what does come.
    /// Nothing where no packet comes at all.
    fn unused_queues(&self, link: Spot<'_>) -> Vec<(String, String)> {
        let packets = self.packets(link);
        let queue = self.link(link.name).and_then(|link| Some((link.queue.as_ref()?, link.rate)));
        let Some((queue, rate)) = queue.filter(|_| !packets.is_empty()) else { return Vec::new() };
        let discipline = classifier(queue, rate);
        let come = packets.iter().map(|packet| self.described(packet)).collect::<Vec<_>>().join(", ");
        let keys = queue.class_keys().into_iter().enumerate();
        let told = keys.filter_map(|(class, ClassKey { name, key })| {
            let key = key?;
            packets.iter().all(|packet| discipline.class_of(packet) != class).then(|| {
                let text = format!(
                    "no packet that comes to this link matches, so the queue `{name}` stays empty; packets here carry {come}: match \
                     some of them, or leave the queue out"
                );
                (key, text)
            })
        });
        told.collect()
    }

    /// The limits in bytes into which no packet of data fits that passes this link, by key, with the reason. A smaller one fits in, such as
    /// that which opens a connection.
    fn too_small(
        &self,
        queue: &SchedulerParams,
        rate: Bitrate,
        link: Spot<'_>,
        sizes: &RangeInclusive<u64>,
    ) -> Vec<(String, String)> {
        let data = self.passing(link).map(|(_, flow)| {
            let data = flow.transport.packet_sizes().0;
            u64::from(flow.transport.trace().map_or(data, PacketTrace::smallest).min(data))
        });
        let Some(smallest) = data.min() else { return Vec::new() };
        let small = limits_in_bytes(queue, rate)
            .into_iter()
            .filter(|(_, limit)| (*sizes.start()..smallest).contains(limit));
        let found = small.map(|(key, limit)| {
            let text = format!(
                "`{}`: no packet of data fits into the queue, since the smallest that passes this link has {}, so all are dropped; \
                 raise it, such as to 100p",
                Bytes::new(limit),
                Bytes::new(smallest)
            );
            (key, text)
        });
        found.collect()
    }

    /// That no flow's data joins the L4S queue of the link of this name, if it has one that takes ECT(1) alone; or that none has a
    /// codepoint that joins it, too.
    fn unused_l4s(&self, link: Spot<'_>) -> Option<(String, String)> {
        let SchedulerParams::DualPi2(DualPi2Params { l4s_dscp, .. }) =
            self.link(link.name)?.queue.as_ref()?
        else {
            return None;
        };
        if let Some(codepoints) = l4s_dscp {
            return self.unmatched_l4s(link, *codepoints);
        }
        if self.passing(link).any(|(_, flow)| sends_ect_1(flow)) {
            return None;
        }
        let text = "no flow that passes this link sends ECT(1), so the L4S queue stays empty: give TCP flows \
                    `congestion = \"prague\"`, or TCP or UDP flows `ecn = \"l4s\"`, or take a FIFO with another AQM";
        Some((SchedulerParams::TAG.into(), text.into()))
    }

    /// That no packet that comes to the link of this name has one of these codepoints of its L4S queue.
    fn unmatched_l4s(&self, link: Spot<'_>, codepoints: Codepoints) -> Option<(String, String)> {
        let packets = self.packets(link);
        if packets.is_empty() || packets.iter().any(|packet| codepoints.contains(packet.dscp)) {
            return None;
        }
        let come = packets.iter().map(|packet| self.described(packet)).collect::<Vec<_>>().join(", ");
        let text = format!(
            "no packet that comes to this link has one of these codepoints; packets here carry {come}: name some of theirs, \
             or leave the key out"
        );
        Some(("l4s-dscp".into(), text))
    }

    fn described(&self, packet: &Header) -> String {
        let mut paths = self.paths.iter().zip(&self.network.paths);
        let path = paths.find(|(_, path)| path.label == packet.label);
        let path = path.map_or_else(String::new, |(name, _)| format!(" on the path `{name}`"));
        format!("{} ({}){path}", packet.dscp, packet.color.name())
    }

    /// The headers of packets that come to the queue of the link of this name, as far as a `match` looks at them, each once.
    fn packets(&self, link: Spot<'_>) -> Vec<Header> {
        self.all_headers(link, |passage| passage.behind)
    }

    /// The same of its meters.
    fn packets_before(&self, link: Spot<'_>) -> Vec<Header> {
        self.all_headers(link, |passage| passage.before)
    }

    fn all_headers(&self, link: Spot<'_>, side: fn(Passage) -> Vec<Header>) -> Vec<Header> {
        let mut found: Vec<Header> = Vec::new();
        for number in self.users_of(link) {
            let (flow, route, back) =
                (&self.network.flows[number], &self.routes[number], &self.returns[number]);
            found.extend(self.headers(self.sent(flow), route, link).map(side).unwrap_or_default());
            if flow.transport.packet_sizes().1 > 0 {
                let ack = Header { label: self.label(flow), ..Header::new(FlowId(0), 0) };
                found.extend(self.headers(vec![ack], back, link).map(side).unwrap_or_default());
            }
        }
        each_once(found)
    }

    /// The headers with which the packets of a flow are sent, or leave the first router if they are metered there.
    fn sent(&self, flow: &FlowSpec) -> Vec<Header> {
        let packet = Header { color: flow.color, label: self.label(flow), ..Header::new(FlowId(0), 0) };
        let plain = Header { dscp: flow.dscp, ..packet };
        let own = flow.transport.trace().into_iter().flat_map(|trace| trace.codepoints(flow.color));
        let mut sent: Vec<Header> = own.map(|(dscp, color)| Header { dscp, color, ..packet }).collect();
        if sent.is_empty() {
            sent.push(plain);
        }
        match self.network.meter_of(flow) {
            None => sent,
            Some(meter) => sent.into_iter().flat_map(|packet| marked_by(meter, packet)).collect(),
        }
    }

    /// The headers of packets that begin like these at the link of this name; `None` if the route does not include it.
    fn headers(&self, sent: Vec<Header>, route: &[usize], link: Spot<'_>) -> Option<Passage> {
        if link.anywhere {
            // What other links make of packets on the way is not followed.
            return (!self.is_metered).then(|| Passage { before: sent.clone(), behind: sent });
        }
        let &number = self.numbers.get(link.name)?;
        let place = route.iter().position(|&passed| passed == number)?;
        let changed = |number: usize, packets: &[Header]| {
            let meters = &self.network.links[number].meters;
            let behind = packets.iter().flat_map(|packet| AggregateMeter::possible(meters, *packet));
            each_once(behind.collect())
        };
        let mut before = sent;
        if self.is_metered {
            for &passed in &route[..place] {
                before = changed(passed, &before);
            }
        }
        let behind = changed(number, &before);
        Some(Passage { before, behind })
    }
}

/// The headers with which packets come to the meters of a link, and with which they leave them.
struct Passage {
    before: Vec<Header>,
    behind: Vec<Header>,
}

fn each_once(mut packets: Vec<Header>) -> Vec<Header> {
    packets.sort_by_key(|packet| (packet.label, packet.dscp.get(), packet.color));
    packets.dedup_by_key(|packet| (packet.label, packet.dscp, packet.color));
    packets
}

/// A packet, with the color with which it comes, in each color that a meter may give it.
pub fn marked_by(meter: &MeterParams, packet: Header) -> Vec<Header> {
    let best = if meter.reads_color() { packet.color } else { Color::Green };
    let marked = meter.colors_marked().filter(|color| *color >= best).map(|color| {
        let mut packet = packet;
        meter.af().mark(&mut packet, color);
        packet
    });
    marked.collect()
}

/// The scheduler of a queue on a link of this rate, to ask for packets' classes.
fn classifier(queue: &SchedulerParams, rate: Bitrate) -> AnyScheduler<Header> {
    queue.clone().build(Environment { rate }, Streams { seed: 0, path: "" })
}

/// The sizes of packets on the wire, in bytes.
fn sizes(network: &Network) -> RangeInclusive<u64> {
    let sizes = network.flows.iter().flat_map(|flow| {
        let (data, feedback) = flow.transport.packet_sizes();
        let smallest = flow.transport.trace().map_or(data, PacketTrace::smallest);
        [data, smallest, feedback].into_iter().filter(|size| *size > 0).map(u64::from)
    });
    let (smallest, largest) = sizes.fold((u64::MAX, 1), |(min, max), size| (size.min(min), size.max(max)));
    smallest.min(largest)..=largest
}

/// The rate of a link with which its queue is made, and the least and the greatest one during a run.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    first: Bitrate,
    least: Bitrate,
    most: Bitrate,
}

impl Rates {
    /// Of a link whose rate does not change.
    pub const fn constant(rate: Bitrate) -> Self {
        Self { first: rate, least: rate, most: rate }
    }

    fn of(rate: Bitrate, link: Option<&LinkSpec>, time: Duration) -> Self {
        let (least, most) = link.map_or((rate, rate), |link| link.medium.rates_within(rate, time));
        Self { first: rate, least, most }
    }
}

/// The keys of a queue on a link of these rates, and of its AQMs, that cannot act where packets have sizes in this range, and why.
pub fn idle_keys(
    queue: &SchedulerParams,
    rates: Rates,
    sizes: &RangeInclusive<u64>,
) -> Vec<(String, String)> {
    let Rates { first, least, most } = rates;
    let served = [first, least, most].map(|rate| queue.least_rates(rate));
    let rules =
        queue.aqms(None).into_iter().enumerate().map(|(n, rule)| (rule, [0, 1, 2].map(|i| served[i][n])));
    let idle = rules.flat_map(|((place, rule), [served, least, most])| {
        let room = Room::of(rule.limit(served.unwrap_or(first)), sizes);
        let idle = room.idle(least.zip(most), &rule.onsets(), || {
            let at_rate = least.into_iter().flat_map(|least| rule.idle_keys_at(least));
            rule.idle_keys(sizes).into_iter().chain(at_rate).collect()
        });
        idle.into_iter().map(move |(key, text)| (format!("{place}.{key}"), text)).collect::<Vec<_>>()
    });
    let within = queue.all_within(first).into_iter().zip(queue.all_within(least)).zip(queue.all_within(most));
    let own = within.flat_map(|((Within { key: place, scheduler, rate: served, .. }, slow), fast)| {
        let limit = scheduler.limit(served.unwrap_or(first));
        let extremes = slow.rate.zip(fast.rate);
        let own = Room::of(limit, sizes).idle(extremes, &scheduler.onsets(), || scheduler.idle_keys(sizes));
        own.into_iter().map(move |(key, text)| (below(&place, key), text)).collect::<Vec<_>>()
    });
    own.chain(idle).collect()
}

/// The limits in bytes of a queue on a link of this rate, and of its AQMs, by key.
fn limits_in_bytes(queue: &SchedulerParams, rate: Bitrate) -> Vec<(String, u64)> {
    let rules = queue.aqms(None).into_iter().zip(queue.least_rates(rate));
    let of_rules =
        rules.map(|((place, rule), least)| (format!("{place}.limit"), rule.limit(least.unwrap_or(rate))));
    let own = queue.all_within(rate).into_iter().map(|Within { key, scheduler, rate: least, .. }| {
        (below(&key, "limit"), scheduler.limit(least.unwrap_or(rate)))
    });
    let bytes = |(key, limit)| match limit {
        Some(Depth::Bytes(bytes)) => Some((key, bytes)),
        Some(Depth::Packets(_)) | None => None,
    };
    of_rules.chain(own).filter_map(bytes).collect()
}

/// What a user should know of the rates and the buckets of a scheduler that is served at rates between these: key and text.
fn rates_and_bursts(
    queue: &SchedulerParams,
    (least, most): (Bitrate, Bitrate),
    sizes: &RangeInclusive<u64>,
) -> Vec<(String, String)> {
    match queue {
        SchedulerParams::Shaper(params) => {
            let small = params.too_small_for(Bytes::new(*sizes.end()));
            small.map(|(key, text)| (key.to_owned(), text)).into_iter().collect()
        }
        SchedulerParams::Htb(params) => {
            let small = params.small_quanta(Bytes::new(*sizes.end()));
            params.contradictions(least, most).into_iter().chain(small).collect()
        }
        _ => Vec::new(),
    }
}

/// The key that a table within that of `key` calls `inner`.
fn below(key: &str, inner: &str) -> String {
    if key.is_empty() { inner.to_owned() } else { format!("{key}.{inner}") }
}

/// Whether new data of the flow is ECT(1).
fn sends_ect_1(flow: &FlowSpec) -> bool {
    let is_l4s = matches!(&flow.transport, TransportSpec::Tcp(params) if params.is_l4s());
    is_l4s && !flow.tcp_ecn.is_off() || [flow.ecn, flow.tcp_ecn.codepoint()].contains(&Ecn::Capable1)
}

/// The most that waits in the queue of an AQM, or of a scheduler with a limit of its own, where packets have sizes in this range.
struct Room<'a> {
    limit: Option<Depth>,
    sizes: &'a RangeInclusive<u64>,
}

/// The largest frame that links carry, a jumbo frame: a larger size is that of several packets, or a bound.
const LARGEST_FRAME: u64 = 9216;

impl<'a> Room<'a> {
    const fn of(limit: Option<Depth>, sizes: &'a RangeInclusive<u64>) -> Self {
        Self { limit, sizes }
    }

    /// The keys without effect, each with the reason: only the limit if no packet fits, otherwise `others`, and a target that the
    /// queue is too short for. `rates` are the least and the greatest of the rates at which the queue is served at least, if there are.
    fn idle(
        &self,
        rates: Option<(Bitrate, Bitrate)>,
        onsets: &[Onset],
        others: impl FnOnce() -> Vec<(&'static str, String)>,
    ) -> Vec<(&'static str, String)> {
        if let Some(limit) = self.limit.filter(|limit| !self.holds_a_packet(*limit)) {
            let text = format!(
                "`{limit}`: no packet fits into the queue, so all are dropped; raise it, such as to 100p"
            );
            return vec![("limit", text)];
        }
        let mut idle = others();
        for ((slow, fast), onset) in
            rates.iter().flat_map(|rates| onsets.iter().map(|onset| (*rates, *onset)))
        {
            idle.extend(self.out_of_reach(fast, onset));
            idle.extend(self.below_a_packet(slow, onset));
        }
        idle
    }

    fn holds_a_packet(&self, limit: Depth) -> bool {
        match limit {
            Depth::Packets(packets) => packets > 0,
            Depth::Bytes(bytes) => bytes >= *self.sizes.start(),
        }
    }

    /// The target of an AQM, if no packet can wait that long: at most all that the queue holds, and the packet that is being sent, go
    /// before it.
    fn out_of_reach(&self, least: Bitrate, onset: Onset) -> Option<(&'static str, String)> {
        let Onset { key, target, least: acts, .. } = onset;
        let limit = self.limit?;
        let most = match limit {
            Depth::Packets(packets) => packets.saturating_mul(*self.sizes.end()),
            Depth::Bytes(bytes) => bytes,
        };
        let longest = least.time_of(Bytes::new(most.saturating_add(*self.sizes.end())));
        let effect = if longest < acts {
            format!("no packet waits for {acts}, and none is dropped that the queue has room for")
        } else {
            "the delay stays below it, and packets are lost for want of room, hardly by this rule".into()
        };
        let text = || {
            format!(
                "`{target}`: the queue holds at most {limit}, which leaves at {least} within {longest}, so {effect}; lower `{key}`, \
                 or raise `limit`"
            )
        };
        (longest < target.max(acts)).then(|| (key, text()))
    }

    /// The target of an AQM, if the largest packet takes longer to leave (RFC 8290, section 5.2.2): whatever waits, waits too long.
    /// None where packets may be larger than any frame, as those of a capture may before it is read.
    fn below_a_packet(&self, least: Bitrate, onset: Onset) -> Option<(&'static str, String)> {
        let largest = Some(*self.sizes.end()).filter(|size| *size <= LARGEST_FRAME).map(Bytes::new)?;
        let takes = least.time_of(largest);
        (!onset.spares_short && onset.target < takes).then(|| {
            let text = format!(
                "`{}`: a packet of {largest} takes {takes} to leave at {least}, so each that waits behind one waits for longer than \
                 this; write {takes} or more",
                onset.target
            );
            (onset.key, text)
        })
    }
}

/// The keys of a meter that cannot act on the packets of these flows, and why.
fn idle_profile(meter: &MeterParams, flows: &[&Flow]) -> Vec<(&'static str, String)> {
    let sizes = flows.iter().flat_map(|flow| {
        let transport = flow.transport_spec();
        let data = transport.packet_sizes().0;
        [data, transport.trace().map_or(data, PacketTrace::smallest)].map(u64::from)
    });
    let Some((smallest, largest)) = sizes.clone().min().zip(sizes.max()) else { return Vec::new() };
    let best = flows.iter().map(|flow| {
        let transport = flow.transport_spec();
        let own =
            transport.trace().and_then(|trace| trace.codepoints(flow.color()).map(|(_, color)| color).min());
        own.unwrap_or_else(|| flow.color())
    });
    idle_keys_of_meter(meter, &(smallest..=largest), best.min())
}

/// The keys of a meter that cannot act on packets of these sizes, of which none has a better color than `best`, and why.
fn idle_keys_of_meter(
    meter: &MeterParams,
    sizes: &RangeInclusive<u64>,
    best: Option<Color>,
) -> Vec<(&'static str, String)> {
    let mut idle = meter.idle_keys(sizes);
    if let Some(color) = best.filter(|_| meter.reads_color()).filter(|color| *color != Color::Green) {
        let others =
            if color == Color::Yellow { "none of them can be green" } else { "all of them stay red" };
        let text = format!(
            "every packet comes to this meter {}, so {others}; give the flows color = \"green\", or the meter \
             mode = \"color-blind\"",
            color.name()
        );
        idle.push(("mode", text));
    }
    idle
}

/// How a queue divides the packets of one stream: those of each color that its meter lets pass, and the class that they belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    key: String,
    /// What each color's packets meet.
    meets: String,
    /// What would keep them together.
    remedy: String,
}

/// How a queue on a link of this rate divides the packets of one stream, which come to it with these headers, if it does.
pub fn division(queue: &SchedulerParams, rate: Bitrate, packets: Vec<Header>) -> Option<Division> {
    let discipline = classifier(queue, rate);
    let packets = packets.into_iter();
    let classes: Vec<(Color, Dscp, usize)> =
        packets.map(|packet| (packet.color, packet.dscp, discipline.class_of(&packet))).collect();
    let first = classes.iter().map(|&(_, _, class)| class).min()?;
    if classes.iter().all(|&(_, _, class)| class == first) {
        return None;
    }
    let keys = queue.class_keys();
    let key = keys[first..].iter().find_map(|class| class.key.clone())?;
    let meets = classes.iter().map(|&(color, dscp, class)| {
        format!("{} ones ({dscp}) `{}`", color.name(), discipline.class_name(class))
    });
    let mut codepoints: Vec<String> = classes.iter().map(|(_, dscp, _)| format!("\"{dscp}\"")).collect();
    codepoints.dedup();
    Some(Division {
        key,
        meets: meets.collect::<Vec<_>>().join(", "),
        remedy: format!("dscp = [{}]", codepoints.join(", ")),
    })
}

/// Notices of streams whose packets a queue divides: key and text.
pub fn divisions<'a>(
    streams: impl IntoIterator<Item = (&'a str, Option<Division>)>,
) -> Vec<(String, String)> {
    let mut alike: Vec<(Division, Vec<String>)> = Vec::new();
    for (name, division) in streams {
        let Some(division) = division else { continue };
        let name = format!("`{name}`");
        match alike.iter_mut().find(|(known, _)| *known == division) {
            Some((_, names)) => names.push(name),
            None => alike.push((division, vec![name])),
        }
    }
    let notices = alike.into_iter().map(|(Division { key, meets, remedy }, names)| {
        let text = format!(
            "packets of {} go to different queues: {meets}; they can overtake each other, which TCP takes for loss; to \
             keep them together, match all codepoints that the marker writes, {remedy}",
            names.join(", ")
        );
        (key, text)
    });
    notices.collect()
}
