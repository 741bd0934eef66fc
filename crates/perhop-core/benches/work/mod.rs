//! The work that is measured, and its cost: in time here, in instructions under Callgrind.
//!
//! Callgrind with `--toggle-collect` and `--dump-after=blocks::work::measured` writes a file for each row, in
//! their order, with the instructions of all [`UNITS`] of its work.

#![expect(clippy::disallowed_types, clippy::disallowed_macros, reason = "it times work and says so")]

mod windows;

use std::hint::black_box;
use std::time::Instant as Clock;

use perhop_core::abe::Service;
use perhop_core::aqm::{AnyAqm, Aqm, AqmParams, AqmVisitor};
use perhop_core::control::Message;
use perhop_core::meter::{AnyMeter, Meter, MeterParams};
use perhop_core::scheduler::{AnyScheduler, Dequeued, Discipline, SchedulerParams};
use perhop_core::testing::{environment, fifo, scheduler};
use perhop_core::{Color, Context, Duration, FlowId, Header, Instant, Rng};

use crate::allocations::held;
use crate::ordinary::{AQMS, METERS, SCHEDULERS, block};

/// Packets that stand in a queue.
const STANDING: u64 = 50;
/// Between packets of 1000 bytes at 8 Mbit/s.
pub const GAP: Duration = Duration::from_millis(1);
/// Of a flow that sends half of its profile.
const SLOW: Duration = Duration::from_millis(4);
/// How much work a row does at a time, and as much before it is measured: several times what averages and
/// windows remember.
const UNITS: u64 = 5000;
/// The share that is green of a flow that sends twice its profile.
pub const HALF: f64 = 0.5;

/// Work of which the cost is measured.
pub struct Row {
    /// The role of its block.
    role: &'static str,
    name: String,
    /// The bytes of state that the block keeps, for a meter or an AQM.
    state: Option<usize>,
    /// For an AQM: the averages and the sets of thresholds with a count of their own that it keeps.
    kept: Option<(usize, usize)>,
    /// Does it [`UNITS`] times.
    work: Box<dyn FnMut()>,
}

/// All of them. Those of a role cost as much as its row `nothing` besides the work of their block.
pub fn rows() -> Vec<Row> {
    let mut rows = vec![Row::of("meter", "nothing", coloring(GAP, |packet, _| packet.color))];
    for &(row, _) in METERS {
        let (meter, heap) = held(|| meter_of(row, HALF));
        let state = size_of_meter(&meter) + heap;
        for (suffix, share, gap) in [("", HALF, GAP), (", green", 1.0, SLOW)] {
            let mut meter = meter_of(row, share);
            let work = coloring(gap, move |packet, cx| meter.color(packet, cx));
            rows.push(Row { state: Some(state), ..Row::of("meter", &format!("{row}{suffix}"), work) });
        }
    }
    rows.push(Row::of("queue", "nothing", no_queue()));
    for &(row, _) in AQMS {
        let (mut aqm, heap) = held(|| aqm_of(row).build(environment()));
        let state = aqm.accept(Size) + heap;
        let kept = kept(&aqm);
        for (suffix, colors) in [("", Colors::Both), (", green", Colors::Green), (", yellow", Colors::Yellow)]
        {
            let pass = through_a_queue(fifo(aqm_of(row), 1), colors);
            let all = Row::of("aqm", &format!("{row}{suffix}"), pass);
            rows.push(Row { state: Some(state), kept: Some(kept), ..all });
        }
    }
    for &(row, _) in SCHEDULERS {
        rows.push(Row::of("scheduler", row, through_a_queue(scheduler_of(row), Colors::Both)));
    }
    rows.extend(windows::rows());
    rows
}

impl Row {
    fn of(role: &'static str, name: &str, mut unit: impl FnMut() + 'static) -> Self {
        let work = Box::new(move || (0..UNITS).for_each(|_| unit()));
        Self { role, name: name.to_owned(), state: None, kept: None, work }
    }
}

/// Measures all rows and prints a line of JSON for each, in their order. Rows take turns, so that a load of
/// the machine meets all.
pub fn print(samples: usize) {
    let mut rows = rows();
    for row in &mut rows {
        (row.work)();
    }
    let mut times = vec![Vec::new(); rows.len()];
    for _ in 0..samples {
        for (row, times) in rows.iter_mut().zip(&mut times) {
            let clock = Clock::now();
            measured(&mut row.work);
            times.push(clock.elapsed().as_nanos() as f64 / UNITS as f64);
        }
    }
    for (Row { role, name, state, kept, .. }, times) in rows.iter().zip(&times) {
        let line = serde_json::json!({
            "role": role, "name": name, "units": UNITS, "state": state, "kept": kept, "ns": times,
        });
        println!("{line}");
    }
}

/// This function does the measured work, so that Callgrind finds it by its name.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    work();
}

/// Offers a packet to a queue, and serves it while more than fifty wait. The clock follows the packets that
/// are sent: where a packet is dropped the next one comes at the same time, so that the wait stays that of
/// fifty packets.
pub fn through_a_queue(mut queue: impl Discipline<Header> + 'static, colors: Colors) -> impl FnMut() {
    let mut packets = Packets::of(colors);
    let mut now = Instant::ZERO;
    move || {
        let _ = black_box(queue.enqueue(packets.next(), now));
        while queue.occupancy().packets() > STANDING {
            match black_box(queue.dequeue(now)) {
                Dequeued::Sent(..) => now += GAP,
                Dequeued::Dropped(..) => {}
                Dequeued::Wait(until) => now = until.expect("packets wait"),
            }
        }
    }
}

/// This many packets fill the queue, and bring its averages to its length.
pub fn until_it_stands(pass: &mut impl FnMut()) {
    (0..10_000).for_each(|_| pass());
}

fn no_queue() -> impl FnMut() {
    let mut packets = Packets::default();
    let mut now = Instant::ZERO;
    move || {
        let packet = packets.next();
        now += GAP;
        black_box((&packet, now));
    }
}

/// Packets of a flow at a meter, one each `gap`.
pub fn coloring(
    gap: Duration,
    mut color: impl FnMut(&Header, &mut Context<'_>) -> Color + 'static,
) -> impl FnMut() {
    let mut packets = Packets::default();
    let mut now = Instant::ZERO;
    move || {
        let packet = packets.next();
        now += gap;
        black_box(color(black_box(&packet), &mut Context { now, rng: &mut packets.rng }));
    }
}

/// The AQM of a row.
pub fn aqm_of(row: &str) -> AqmParams {
    let params = AqmParams::deserialize_named(block(row), &mut table(AQMS, row)).expect("registered");
    params.expect("valid")
}

/// The scheduler of a row.
pub fn scheduler_of(row: &str) -> AnyScheduler<Header> {
    let params = SchedulerParams::deserialize_named(block(row), &mut table(SCHEDULERS, row));
    scheduler(params.expect("registered").expect("valid"), 1)
}

/// Makes the meter of a row. A meter that takes the share of green packets as a parameter gets that of the
/// row.
pub fn meter_of(row: &str, share: f64) -> AnyMeter {
    let params = MeterParams::deserialize_named(block(row), &mut table(METERS, row)).expect("registered");
    let mut meter = params.expect("valid").build(environment());
    meter.on_message(&Message::Share(share));
    meter
}

type Table = serde_json::Deserializer<serde_json::de::StrRead<'static>>;

fn table(rows: &'static [(&str, &str)], row: &str) -> Table {
    let (_, table) = rows.iter().find(|(known, _)| *known == row).expect("listed");
    serde_json::Deserializer::from_str(table)
}

/// The bytes of a meter itself.
fn size_of_meter(meter: &AnyMeter) -> usize {
    match meter {
        AnyMeter::TokenBucket(meter) => size_of_val(meter),
        AnyMeter::Tsw(meter) => size_of_val(meter),
        AnyMeter::ThreePrecedence(meter) => size_of_val(meter),
        AnyMeter::Twam(meter) => size_of_val(meter),
        AnyMeter::SrTcm(meter) => size_of_val(meter),
        AnyMeter::TrTcm(meter) => size_of_val(meter),
        AnyMeter::Rfc4115(meter) => size_of_val(meter),
        AnyMeter::TswTcm(meter) => size_of_val(meter),
        AnyMeter::Foreign(meter) => size_of_val(meter),
    }
}

/// The bytes of an AQM itself.
struct Size;

impl AqmVisitor for Size {
    type Output = usize;

    fn visit<A: Aqm>(self, aqm: &mut A) -> usize {
        size_of_val(aqm)
    }
}

/// The averages of a queue and the tests of thresholds that an AQM holds, by the names of their types.
fn kept(aqm: &AnyAqm) -> (usize, usize) {
    let text = format!("{aqm:?}");
    let count = |name: &str| text.matches(name).count();
    (count("Ewma("), count("EarlyTest {"))
}

/// The colors of packets. Green ones ask for the green service, too.
#[derive(Clone, Copy, Debug)]
pub enum Colors {
    /// Green and yellow in turns.
    Both,
    /// All green.
    Green,
    /// All yellow.
    Yellow,
}

/// Packets of 1000 bytes, one each millisecond.
pub struct Packets {
    sent: u64,
    colors: Colors,
    /// The meter's.
    rng: Rng,
}

impl Default for Packets {
    fn default() -> Self {
        Self::of(Colors::Both)
    }
}

impl Packets {
    fn of(colors: Colors) -> Self {
        Self { sent: 0, colors, rng: Rng::stream(1, "bench") }
    }

    fn next(&mut self) -> Header {
        self.sent += 1;
        let is_green = match self.colors {
            Colors::Both => self.sent.is_multiple_of(2),
            Colors::Green => true,
            Colors::Yellow => false,
        };
        let (color, service) =
            if is_green { (Color::Green, Service::Green) } else { (Color::Yellow, Service::Blue) };
        Header { color, dscp: service.dscp(), ..Header::new(FlowId(0), 1000) }
    }
}
