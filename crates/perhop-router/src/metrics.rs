//! Metrics for Prometheus: copied from the run loop at intervals, encoded on request.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use perhop_core::Color;
use perhop_core::Reason;
use perhop_core::measure::DelayHistogram;
use perhop_core::meter::MeterCounts;
use perhop_live::{Amount, ClassTotals, LinkTotals, Loss, Plane, Portless, Report, StreamCounts};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::capture::CaptureStatus;
use crate::plan::{SIDES, class_and_direction};

/// Upper bounds of the buckets of waiting times, in seconds.
const BOUNDS: [f64; 13] =
    [0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0];

/// Everything at one time.
#[derive(Debug, Default)]
pub struct Snapshot(Vec<Family>);

/// One metric, with a value for each set of labels.
#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    samples: Vec<(Labels, Value)>,
}

/// The name and the help of a metric, and what it is of some counts.
type Picked<T, V> = (&'static str, &'static str, fn(&T) -> V);

/// The labels of a sample.
type Labels = Vec<(&'static str, String)>;

/// Returns labels that own their values.
fn labels<const N: usize>(labels: [(&'static str, &str); N]) -> Labels {
    labels.map(|(key, value)| (key, value.to_owned())).into()
}

#[derive(Debug)]
enum Value {
    Info,
    Count(u64),
    Gauge(f64),
    Histogram { sum: f64, count: u64, buckets: Vec<(f64, u64)> },
}

/// Configurations that were loaded while the router ran, or refused.
#[derive(Debug, Default)]
pub struct Reloads {
    pub applied: AtomicU64,
    pub refused: AtomicU64,
}

/// Values from outside the plane.
#[derive(Clone, Copy, Debug)]
pub struct Beside<'a> {
    pub reloads: &'a Reloads,
    /// Lines of the log that were dropped.
    pub unlogged: u64,
    /// How the capture does, if there is one.
    pub capture: Option<CaptureStatus>,
}

/// The newest snapshot, shared by the run loop and the metrics server.
#[derive(Debug, Default)]
pub struct Published(Mutex<Arc<Snapshot>>);

impl Published {
    /// Replaces it by a newer one. Does not wait: while the last one is being read, the newer one is
    /// discarded.
    pub fn publish(&self, snapshot: Snapshot) {
        if let Ok(mut newest) = self.0.try_lock() {
            *newest = Arc::new(snapshot);
        }
    }

    /// Returns the newest report as text, in the format of `OpenMetrics`, which Prometheus reads.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let newest = Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut registry = Registry::default();
        registry.register_collector(Box::new(newest));
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

impl Snapshot {
    /// Copies the metrics of a running plane.
    pub fn of(plane: &Plane, report: &Report, devices: &[String; 2], beside: &Beside<'_>) -> Self {
        let mut snapshot = Self::default();
        let build = std::iter::once((labels([("version", env!("CARGO_PKG_VERSION"))]), Value::Info));
        snapshot.add("perhop_build", "The program's version", MetricType::Info, build);
        snapshot.add_devices(plane, report, devices);
        snapshot.add_links(plane);
        snapshot.add_classes(plane);
        let late = |share| report.lateness.quantile(share).as_secs_f64();
        let quantile = |share: f64| (labels([("quantile", &share.to_string())]), late(share));
        let quantiles = [0.5, 0.9, 0.99, 0.999, 1.0].map(quantile);
        snapshot.gauge("perhop_lateness_seconds", "How late packets left, since the start", quantiles);
        let pause = report.lateness.longest_pause().as_secs_f64();
        let help = "The longest time in which the devices were not polled, since the start";
        snapshot.gauge("perhop_longest_pause_seconds", help, [(vec![], pause)]);
        snapshot.add_beside(beside);
        snapshot
    }

    fn add_beside(&mut self, beside: &Beside<'_>) {
        let Beside { reloads, unlogged, capture } = *beside;
        let loaded = [("applied", &reloads.applied), ("refused", &reloads.refused)];
        let loaded = loaded.map(|(result, n)| (labels([("result", result)]), n.load(Ordering::Relaxed)));
        self.count("perhop_reloads", "Configurations read while it ran", loaded);
        let help = "Log lines that were dropped because they were not read in time";
        self.count("perhop_log_dropped_lines", help, [(vec![], unlogged)]);
        let Some(status) = capture else { return };
        let counts = [("written", status.written), ("missed", status.missed)];
        let counts = counts.map(|(result, n)| (labels([("result", result)]), n));
        self.count("perhop_captured_packets", "Packets for the capture", counts);
        self.count("perhop_capture_files", "Capture files started", [(vec![], status.files)]);
        let help = "Times that the capture file could no longer be written";
        self.count("perhop_capture_failures", help, [(vec![], status.failures)]);
        let help = "1 if the capture file can be written, 0 if packets are not captured because it cannot";
        self.gauge("perhop_capture_writable", help, [(vec![], f64::from(u8::from(status.writable)))]);
    }

    fn add_devices(&mut self, plane: &Plane, report: &Report, devices: &[String; 2]) {
        let counters = plane.counters();
        let at = |number: usize| [("device", devices[number].as_str()), ("side", SIDES[number])];
        let counts: [Picked<(Amount, Amount), u64>; 4] = [
            ("perhop_received_packets", "Packets read from a device", |(came, _)| came.packets),
            ("perhop_received_bytes", "Bytes read from a device", |(came, _)| came.bytes),
            ("perhop_sent_packets", "Packets that left by a device", |(_, left)| left.packets),
            ("perhop_sent_bytes", "Bytes that left by a device", |(_, left)| left.bytes),
        ];
        for (name, help, pick) in counts {
            let by_device = counters.devices().iter().enumerate();
            self.count(name, help, by_device.map(|(n, amounts)| (labels(at(n)), pick(amounts))));
        }
        let aside = || report.aside.iter().enumerate();
        let passed = aside().map(|(n, aside)| (labels(at(n)), aside.passed.packets));
        self.count("perhop_passed_frames", "Frames other than IP, forwarded unchanged", passed);
        let unread = aside().map(|(n, aside)| (labels(at(n)), aside.unread));
        let help = "Passed frames in which no IP packet was found behind tags, labels or a session";
        self.count("perhop_unread_frames", help, unread);
        let refused = aside().flat_map(|(n, aside)| {
            let reasons = [
                ("merged", aside.merged),
                ("too-long", aside.too_long),
                ("overrun", aside.overrun),
                ("unpassed", aside.unpassed),
            ];
            let [device, side] = at(n);
            reasons.map(|(reason, packets)| (labels([device, side, ("reason", reason)]), packets))
        });
        self.count("perhop_refused_frames", "Frames lost before they reached a queue", refused);
        let help = "Packets lost at or after the queues, and packets of no class that were dropped";
        let lost = Loss::all().map(|why| (labels([("reason", why.name())]), counters.lost(why)));
        self.count("perhop_lost_packets", help, lost);
        let portless =
            Portless::ALL.map(|why| (labels([("reason", why.name())]), counters.without_ports(why)));
        self.count("perhop_portless_packets", "Packets classified without their ports", portless);
        self.count(
            "perhop_unsent_packets",
            "Packets that a device did not accept",
            [(vec![], report.unsent)],
        );
        let inside = plane.inside() as f64;
        self.gauge("perhop_held_packets", "Packets in queues and in transit on links", [(vec![], inside)]);
    }

    fn add_links(&mut self, plane: &Plane) {
        let links: Vec<_> = plane.link_totals().collect();
        let rates = links.iter().map(|l| (labels([("link", l.name)]), l.rate.as_bps() as f64));
        self.gauge("perhop_link_rate_bits_per_second", "A link's rate", rates);
        let left_over = links.iter().map(|l| (labels([("link", l.name)]), l.left_over as f64));
        let help = "Packets waiting in queues of earlier configurations";
        self.gauge("perhop_queue_left_over_packets", help, left_over);
        let classes = || links.iter().flat_map(|l| l.classes.iter().map(move |class| (l, class)));
        let by_color = |pick: fn(&ClassTotals<'_>) -> [u64; 3]| {
            classes().flat_map(move |(l, class)| {
                let packets = pick(class);
                Color::ALL.map(|color| (labels(in_class(l.name, class.name, color)), packets[color.index()]))
            })
        };
        let waiting = by_color(|class| class.waiting).map(|(labels, packets)| (labels, packets as f64));
        self.gauge("perhop_queue_packets", "Packets waiting in a queue", waiting);
        let bytes = classes().map(|(l, class)| {
            (labels([("link", l.name), ("class", class.name)]), class.waiting_bytes as f64)
        });
        self.gauge("perhop_queue_bytes", "Bytes waiting in a queue", bytes);
        let arrived = by_color(|class| class.counters.arrived);
        self.count("perhop_queue_arrived_packets", "Packets that arrived at a queue", arrived);
        let sent = by_color(|class| class.counters.sent);
        self.count("perhop_queue_sent_packets", "Packets that a queue sent", sent);
        let dropped = classes().flat_map(|(l, class)| {
            let reasons = Reason::ALL.into_iter().filter(|reason| *reason != Reason::Policed);
            reasons.flat_map(move |reason| {
                let packets = class.counters.dropped(reason);
                Color::ALL.map(|color| {
                    let [link, class, color_label] = in_class(l.name, class.name, color);
                    let reason = ("reason", reason.name());
                    (labels([link, class, color_label, reason]), packets[color.index()])
                })
            })
        });
        self.count("perhop_queue_dropped_packets", "Packets that a queue dropped", dropped);
        self.add_meters(&links);
        let gauges = links.iter().flat_map(|l| {
            let gauges = l.view.gauges.iter();
            gauges.map(|(name, value)| (labels([("link", l.name), ("gauge", name)]), *value))
        });
        self.gauge("perhop_queue_gauge", "State of a queue's rule, such as average lengths", gauges);
        let delays = links.iter().flat_map(|l| {
            let classes = l.view.classes.iter().zip(&l.view.statistics.delays);
            classes.flat_map(|(&(class, _), delays)| {
                Color::ALL.map(|color| (labels(in_class(l.name, class, color)), histogram(delays, color)))
            })
        });
        let help = "Waiting times in a queue since it was configured; bounds and sum are exact to 3 %";
        self.add("perhop_queue_delay_seconds", help, MetricType::Histogram, delays);
    }

    /// Adds the meters of links: packets that arrived, and of these the ones that passed and were policed.
    fn add_meters(&mut self, links: &[LinkTotals<'_>]) {
        let by_color = |pick: fn(&MeterCounts) -> [u64; 3]| {
            let meters = links
                .iter()
                .flat_map(|l| l.meters.iter().map(move |(meter, counts)| (l.name, meter, counts)));
            meters.flat_map(move |(link, meter, counts)| {
                let packets = pick(counts);
                Color::ALL.map(|color| {
                    let color_label = ("color", color.name());
                    (labels([("link", link), ("meter", meter), color_label]), packets[color.index()])
                })
            })
        };
        let help = "Packets that came to a meter of a link, by the color that they came with";
        self.count("perhop_meter_arrived_packets", help, by_color(|counts| counts.arrived));
        let help = "Packets that a meter of a link let pass, by the color that they left with";
        self.count("perhop_meter_passed_packets", help, by_color(|counts| counts.passed));
        let help = "Packets that a meter of a link dropped, by the color that it gave them";
        self.count("perhop_meter_policed_packets", help, by_color(|counts| counts.policed));
    }

    fn add_classes(&mut self, plane: &Plane) {
        let of = |stream| {
            let (class, direction) = class_and_direction(stream);
            [("class", class), ("direction", direction)]
        };
        let counts: [Picked<StreamCounts, u64>; 4] = [
            ("perhop_class_received_packets", "Packets received of a class", |c| c.arrived.packets),
            ("perhop_class_received_bytes", "Bytes received of a class", |c| c.arrived.bytes),
            ("perhop_class_sent_packets", "Packets sent of a class", |c| c.delivered.packets),
            ("perhop_class_sent_bytes", "Bytes sent of a class", |c| c.delivered.bytes),
        ];
        for (name, help, pick) in counts {
            self.count(
                name,
                help,
                plane.streams().map(|(stream, counts)| (labels(of(stream)), pick(counts))),
            );
        }
        let by_color: [Picked<StreamCounts, [u64; 3]>; 3] = [
            ("perhop_class_marked_packets", "Packets of a class by the color that the meter gave", |c| {
                c.marked
            }),
            (
                "perhop_class_policed_packets",
                "Packets of a class dropped by its meter or by one of its link",
                |c| c.policed,
            ),
            ("perhop_class_dropped_packets", "Packets of a class dropped by queues", |c| c.dropped),
        ];
        for (name, help, pick) in by_color {
            let samples = plane.streams().flat_map(|(stream, counts)| {
                let ([class, direction], packets) = (of(stream), pick(counts));
                let labelled = |color: Color| labels([class, direction, ("color", color.name())]);
                Color::ALL.map(|color| (labelled(color), packets[color.index()]))
            });
            self.count(name, help, samples);
        }
    }

    fn count(
        &mut self,
        name: &'static str,
        help: &'static str,
        samples: impl IntoIterator<Item = (Labels, u64)>,
    ) {
        let samples = samples.into_iter().map(|(labels, count)| (labels, Value::Count(count)));
        self.add(name, help, MetricType::Counter, samples);
    }

    fn gauge(
        &mut self,
        name: &'static str,
        help: &'static str,
        samples: impl IntoIterator<Item = (Labels, f64)>,
    ) {
        let samples = samples.into_iter().map(|(labels, value)| (labels, Value::Gauge(value)));
        self.add(name, help, MetricType::Gauge, samples);
    }

    fn add(
        &mut self,
        name: &'static str,
        help: &'static str,
        kind: MetricType,
        samples: impl Iterator<Item = (Labels, Value)>,
    ) {
        self.0.push(Family { name, help, kind, samples: samples.collect() });
    }
}

fn in_class<'a>(link: &'a str, class: &'a str, color: Color) -> [(&'static str, &'a str); 3] {
    [("link", link), ("class", class), ("color", color.name())]
}

/// Returns the delays of one color, in fewer bins.
fn histogram(delays: &DelayHistogram, color: Color) -> Value {
    let (edges, counts) = delays.bins();
    let mut buckets: Vec<(f64, u64)> =
        BOUNDS.iter().chain([&f64::INFINITY]).map(|&bound| (bound, 0)).collect();
    let (mut sum, mut count) = (0.0, 0);
    for (bin, counts) in counts.iter().enumerate() {
        let packets = counts[color.index()];
        let middle = f64::midpoint(edges[bin], edges[bin + 1]);
        let bucket = buckets.iter().position(|&(bound, _)| middle <= bound).unwrap_or(BOUNDS.len());
        buckets[bucket].1 += packets;
        sum += middle * packets as f64;
        count += packets;
    }
    Value::Histogram { sum, count, buckets }
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for family in &self.0 {
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, family.kind)?;
            for (labels, value) in &family.samples {
                match value {
                    Value::Info => metric.encode_info(labels)?,
                    _ if labels.is_empty() => value.encode(&mut metric)?,
                    _ => value.encode(&mut metric.encode_family(labels)?)?,
                }
            }
        }
        Ok(())
    }
}

impl Value {
    fn encode(&self, encoder: &mut MetricEncoder<'_>) -> Result<(), fmt::Error> {
        match self {
            Self::Info => Ok(()), // its labels are its value
            Self::Count(count) => encoder.encode_counter::<NoLabelSet, _, f64>(count, None),
            Self::Gauge(value) => encoder.encode_gauge(value),
            Self::Histogram { sum, count, buckets } => {
                encoder.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::plan;
    use etherparse::PacketBuilder;
    use perhop_core::{Duration, Instant};
    use perhop_live::{Head, Sink};

    const CONFIG: &str = r#"
inside = { device = "in0", kind = "packet" }
outside = { device = "out0", kind = "packet" }
upstream = { rate = "8Mbps", queue = { aqm = "drop-tail", limit = "10p" } }
[[classes]]
name = "a \"quoted\" name"
match = { protocol = "udp" }
profile = { marker = "token-bucket", rate = "1Mbps", burst = "4kB" }
"#;

    struct Nowhere;
    impl Sink for Nowhere {
        fn deliver(&mut self, _: usize, _: &Head, _: &[u8], _: Instant) {}
    }

    #[test]
    fn what_happened_can_be_read() {
        let config = Config::read(CONFIG, "r.toml").unwrap();
        let mut plane = Plane::new(plan::plane(&config, 1500), 1);
        let mut packet = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9).udp(1, 2).write(&mut packet, &[0; 972]).unwrap();
        for _ in 0..12 {
            let (slot, _, room) = plane.room().unwrap();
            room[..1000].copy_from_slice(&packet);
            plane.arrive(0, slot, 1000, Instant::ZERO, &mut Nowhere);
        }
        plane.advance(Instant::ZERO + Duration::from_millis(100), &mut Nowhere);
        let report = Report { aside: vec![perhop_live::device::Aside::default(); 2], ..Report::default() };
        let names = ["in0".to_owned(), "out0".to_owned()];
        let published = Published::default();
        assert_eq!(published.text().unwrap(), "# EOF\n");
        let capture = Some(CaptureStatus { written: 3, missed: 1, failures: 2, writable: false, files: 5 });
        let beside = Beside { reloads: &Reloads::default(), unlogged: 4, capture };
        published.publish(Snapshot::of(&plane, &report, &names, &beside));
        let text = published.text().unwrap();
        for line in [
            "perhop_build_info{version=\"0.1.0\"} 1",
            "perhop_received_packets_total{device=\"in0\",side=\"inside\"} 12",
            "perhop_sent_bytes_total{device=\"out0\",side=\"outside\"} 11000",
            "perhop_lost_packets_total{reason=\"overflow\"} 1",
            "perhop_link_rate_bits_per_second{link=\"upstream\"} 8000000.0",
            "perhop_queue_sent_packets_total{link=\"upstream\",class=\"all\",color=\"green\"} 4",
            "perhop_queue_sent_packets_total{link=\"upstream\",class=\"all\",color=\"yellow\"} 7",
            "perhop_queue_dropped_packets_total{link=\"upstream\",class=\"all\",color=\"yellow\",reason=\"overflow\"} 1",
            // They wait 3, 4, … 10 ms: the bound of 5 ms has 4 and 5, the first of them almost.
            "perhop_queue_delay_seconds_bucket{le=\"+Inf\",link=\"upstream\",class=\"all\",color=\"yellow\"} 7",
            "perhop_class_marked_packets_total{class=\"a \\\"quoted\\\" name\",direction=\"upstream\",color=\"green\"} 4",
            "perhop_captured_packets_total{result=\"missed\"} 1",
            "perhop_reloads_total{result=\"applied\"} 0",
            "perhop_log_dropped_lines_total 4",
            "perhop_capture_failures_total 2",
            "perhop_capture_files_total 5",
            "perhop_capture_writable 0.0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    const POLICED: &str = r#"
inside = { device = "in0", kind = "packet" }
outside = { device = "out0", kind = "packet" }
upstream.rate = "8Mbps"
upstream.queue = { aqm = "drop-tail", limit = "100p" }
upstream.meters = [{ name = "udp", profile = { marker = "srtcm", rate = "8kbps", burst = "3kB", excess-burst = "2kB", mode = "color-aware", out = "drop-red" } }]
[[classes]]
name = "calls"
match = { protocol = "udp" }
color = "green"
"#;

    /// Returns the metrics of a meter of the upstream link: arrived, passed and policed packets, each by
    /// color.
    fn of_meter(plane: &Plane, meter: &str) -> [[f64; 3]; 3] {
        let report = Report { aside: vec![perhop_live::device::Aside::default(); 2], ..Report::default() };
        let names = ["in0".to_owned(), "out0".to_owned()];
        let beside = Beside { reloads: &Reloads::default(), unlogged: 0, capture: None };
        let published = Published::default();
        published.publish(Snapshot::of(plane, &report, &names, &beside));
        let text = published.text().unwrap();
        ["arrived", "passed", "policed"].map(|count| {
            Color::ALL.map(|color| {
                let color = color.name();
                let start =
                    format!("perhop_meter_{count}_packets_total{{link=\"upstream\",meter=\"{meter}\",color=\"{color}\"}} ");
                let line = text.lines().find_map(|line| line.strip_prefix(&start));
                line.unwrap_or_else(|| panic!("{start}\n{text}")).parse().unwrap()
            })
        })
    }

    /// Hands over ten packets of 1000 bytes at once: three fit into the first bucket, two into the second.
    fn ten(plane: &mut Plane, at: Instant) {
        let mut packet = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9).udp(1, 2).write(&mut packet, &[0; 972]).unwrap();
        for _ in 0..10 {
            let (slot, _, room) = plane.room().unwrap();
            room[..1000].copy_from_slice(&packet);
            plane.arrive(0, slot, 1000, at, &mut Nowhere);
        }
    }

    #[test]
    fn what_a_meter_of_a_link_polices_is_counted_through_reloads() {
        let read = |text: &str| plan::plane(&Config::read(text, "r.toml").unwrap(), 1500);
        let mut plane = Plane::new(read(POLICED), 1);
        ten(&mut plane, Instant::ZERO);
        assert_eq!(of_meter(&plane, "udp"), [[10.0, 0.0, 0.0], [3.0, 2.0, 0.0], [0.0, 0.0, 5.0]]);
        assert_eq!(plane.counters().lost(Loss::Dropped(Reason::Policed)), 5);
        plane.balance().unwrap();
        // Another profile is another meter with full buckets; the counters go on.
        let later = Instant::ZERO + Duration::from_millis(100);
        plane.advance(later, &mut Nowhere);
        let changed = plane.reload(read(&POLICED.replace("2kB", "1kB")), 1).unwrap();
        assert_eq!(changed.meters, ["upstream"]);
        ten(&mut plane, later);
        assert_eq!(of_meter(&plane, "udp"), [[20.0, 0.0, 0.0], [6.0, 3.0, 0.0], [0.0, 0.0, 11.0]]);
        // A meter that is gone keeps its counts.
        plane.advance(later + Duration::from_millis(100), &mut Nowhere);
        plane.reload(read(&POLICED.replace("\"udp\", profile", "\"other\", profile")), 1).unwrap();
        assert_eq!(of_meter(&plane, "udp")[0], [20.0, 0.0, 0.0]);
        assert_eq!(of_meter(&plane, "other")[0], [0.0; 3]);
        plane.balance().unwrap();
    }
}
