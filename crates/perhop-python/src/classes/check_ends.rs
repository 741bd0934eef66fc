//! The conformance harness over classes in Python at the ends of a path: congestion controls and
//! applications.

use perhop_core::{Bytes, Color, Duration, Instant, Rng};
use perhop_sim::Watch;
use perhop_sim::application::{
    Action, ApplicationParams, Commands, Direction, Foreign, Recorded, User, UserEvent,
};
use perhop_sim::transport::tcp::congestion::{
    AckSample, CongestionControl, CongestionEvent, DeliverySample, ForeignCongestionParams, LostSegment,
    Need, Setup,
};
use perhop_sim::transport::tcp::{TcpParams, Variant};
use pyo3::prelude::*;
use serde_json::{Value, json};

use super::check::{Findings, Lines, length};
use super::{Fault, implement_control, implement_users};
use crate::invalid;

/// A window, a threshold and a rate.
type Left = (f64, f64, Option<u64>);

/// Compares two runs of one sequence, and one whose second half a copy has taken. Returns false if the class
/// raised an error.
fn compare<T: PartialEq + std::fmt::Debug>(
    py: Python<'_>,
    found: &mut Findings,
    raises: &str,
    seed: u64,
    mut run: impl FnMut(bool) -> PyResult<(Vec<T>, Option<PyErr>)>,
) -> PyResult<bool> {
    let (first, error) = run(false)?;
    if let Some(error) = error {
        found.raised(py, raises, &error)?;
        return Ok(false);
    }
    found.alike(seed, "call", &first, &run(false)?.0, |one| format!("{one:?}"));
    found.copied(run(true)?.0 == first);
    Ok(true)
}

/// Drives a congestion control through so many random sequences of ACKs, losses, marks, timeouts and idle
/// times.
#[pyfunction]
pub(crate) fn check_congestion_control(py: Python<'_>, table: &str, sequences: u64) -> PyResult<Lines> {
    let table: Value = serde_json::from_str(table).map_err(invalid)?;
    let transport: TcpParams =
        serde_json::from_value(json!({"tcp": "newreno", "congestion": table})).map_err(invalid)?;
    let params = transport.congestion.0.foreign();
    let params = params.ok_or_else(|| invalid("it names no class"))?;
    let raises = "no sequence of calls raises an error, and each leaves a window of at least 1";
    let mut found = Findings::new(raises);
    for seed in 0..sequences {
        py.check_signals()?;
        if !compare(py, &mut found, raises, seed, |copied| Ok(windows(py, params.clone(), seed, copied)))? {
            break;
        }
    }
    Ok(found.0)
}

/// The windows, thresholds and rates after each of a random sequence of calls.
fn windows(
    py: Python<'_>,
    mut params: ForeignCongestionParams,
    seed: u64,
    copied: bool,
) -> (Vec<Left>, Option<PyErr>) {
    let fault = Fault::of(Watch::default().of_one_run());
    implement_control(&mut params, "flow `harness`".into(), &fault);
    let owns = params.needs.contains(&Need::Recovery);
    let mut rng = Rng::stream(seed, "events");
    let setup = Setup {
        tcp: Variant::NewReno,
        window: 1.0 + rng.up_to(9) as f64,
        threshold: [2.0, 20.0, 1000.0][rng.up_to(2) as usize],
        most: [1, 50, 1000][rng.up_to(2) as usize],
        counts_acks: rng.chance(0.5),
        packet: Bytes::new(1500),
        reserved: None,
        whole_segments: false,
        selective_acks: true,
        seed,
    };
    let mut control = params.implementation.make(&setup).expect("it is implemented");
    let (mut now, mut found) = (Instant::ZERO, Vec::new());
    let calls = length(seed, &mut rng);
    for call in 0..calls {
        now += Duration::from_nanos(rng.up_to(5_000_000));
        if copied && call == calls / 2 {
            control = control.clone();
        }
        event(&mut *control, &mut rng, now, owns);
        let rate = control.pacing_rate().map(perhop_core::Bitrate::as_bps);
        found.push((control.window(), control.slow_start_threshold(), rate));
    }
    (found, fault.take(py))
}

/// Something happens to a connection, most often an ACK.
fn event(control: &mut dyn CongestionControl, rng: &mut Rng, now: Instant, owns_recovery: bool) {
    let smoothed_rtt = [0.0, 0.001, 0.1, 10.0][rng.up_to(3) as usize];
    let window = control.window();
    let color = Color::ALL[rng.up_to(2) as usize];
    let happened = CongestionEvent { now, window, smoothed_rtt, color };
    match rng.up_to(19) {
        0 => control.on_loss(&happened),
        1 => control.on_congestion_experienced(&happened),
        2 if rng.chance(0.3) => control.on_timeout(&happened),
        3 => control.leave_slow_start(),
        4 => control.on_idle(Duration::from_nanos(rng.up_to(10_000_000_000))),
        5 => control.set_window(1.0 + rng.up_to(9) as f64),
        6 if owns_recovery => {
            let (lost, in_flight) = (1 + rng.up_to(9) as u32, 1 + rng.up_to(99) as u32);
            control.on_lost(&LostSegment { now, lost, in_flight });
        }
        _ => {
            let of_recovery =
                |most: u64, rng: &mut Rng| if owns_recovery { rng.up_to(most) as u32 } else { 0 };
            let delivered = 1 + rng.up_to(3) as u32;
            let in_flight = rng.up_to(100);
            let sample = DeliverySample {
                delivered: rng.up_to(100),
                interval: Duration::from_nanos(rng.up_to(100_000_000)),
                prior: rng.up_to(1000),
                rtt: rng.chance(0.8).then(|| Duration::from_nanos(1 + rng.up_to(500_000_000))),
                round: 1 + rng.up_to(100),
                lost: 0,
                in_flight: 0,
                limited: rng.chance(0.2),
            };
            control.on_ack(&AckSample {
                now,
                delivered,
                marked: rng.up_to(u64::from(delivered)) as u32,
                acked: 0,
                in_flight: in_flight as u32,
                pipe: of_recovery(in_flight, rng),
                lost: of_recovery(3, rng),
                recovering: of_recovery(1, rng) == 1,
                smoothed_rtt,
                delivery: rng.chance(0.9).then_some(sample),
            });
        }
    }
}

/// Drives a user through so many random sequences of arrivals and timers, on a path that delivers in any
/// order among connections.
#[pyfunction]
pub(crate) fn check_application(py: Python<'_>, table: &str, sequences: u64) -> PyResult<Lines> {
    let raises = "no sequence of calls raises an error, and each returns actions";
    let (begins, goes_on) = ("it begins with an action", "time goes on while it waits");
    let mut found = Findings::new(raises);
    found.0.extend([(begins, None), (goes_on, None)]);
    for seed in 0..sequences {
        py.check_signals()?;
        let (mut is_silent, mut is_stuck) = (false, false);
        let went_on = compare(py, &mut found, raises, seed, |copied| {
            let fault = Fault::of(Watch::default().of_one_run());
            // Another table, so that each trial has its own fault.
            let read: ApplicationParams = serde_json::from_str(table).map_err(invalid)?;
            let ApplicationParams::Foreign(params) = read else {
                return Err(invalid("it names no class"));
            };
            implement_users(&params, "harness", &fault);
            let actions = actions(params.user(0, Rng::stream(seed, "user")), seed, copied);
            is_stuck |= waits_at(&actions).is_some_and(|times| times >= MOST_WAITS);
            is_silent |= actions.is_empty();
            Ok((actions, fault.take(py)))
        })?;
        if is_silent {
            let text = "it never requests, responds or waits, so nothing happens in a run";
            found.wrong(begins, || text.to_owned());
        }
        if is_stuck {
            let text = "it waits 0 ns again and again, so time never goes on; wait longer";
            found.wrong(goes_on, || text.to_owned());
        }
        if !went_on {
            break;
        }
    }
    Ok(found.0)
}

/// So many waits in a row at one time: more than any user has a reason for.
const MOST_WAITS: usize = 40;

/// The most waits for this very moment in a row.
fn waits_at(actions: &[(u64, Action)]) -> Option<usize> {
    let is_now =
        |&(now, action): &(u64, Action)| matches!(action, Action::WakeAt(at) if at.as_nanos() == now);
    actions.chunk_by(|one, other| one.0 == other.0 && is_now(one) && is_now(other)).map(<[_]>::len).max()
}

/// What a user does in a random sequence of events, each with its time.
fn actions(mut user: Foreign, seed: u64, copied: bool) -> Vec<(u64, Action)> {
    let mut rng = Rng::stream(seed, "events");
    let (mut recorded, mut taken) = (Recorded::default(), Vec::new());
    let (mut now, mut wake, mut open) = (Instant::ZERO, None, Vec::new());
    let mut next = UserEvent::Begins;
    let calls = length(seed, &mut rng);
    for call in 0..calls {
        if copied && call == calls / 2 {
            user = user.clone();
        }
        let mut actions = Vec::new();
        let commands =
            &mut Commands { now, warmup: Instant::ZERO, actions: &mut actions, recorded: &mut recorded };
        user.on_event(next, commands);
        for action in &actions {
            match *action {
                Action::Grant { connection, direction, .. } => open.push((connection, direction)),
                Action::WakeAt(at) => wake = Some(at),
                Action::Send { .. } => {}
            }
        }
        taken.extend(actions.into_iter().map(|action| (now.as_nanos(), action)));
        let arrives = !open.is_empty() && (wake.is_none() || rng.chance(0.5));
        if arrives {
            let place = rng.up_to(open.len() as u64 - 1) as usize;
            let (connection, direction): (u32, Direction) = open.remove(place);
            now += Duration::from_nanos(rng.up_to(50_000_000));
            next = UserEvent::Arrived { connection, direction };
        } else if let Some(at) = wake.take() {
            now = now.max(at);
            next = UserEvent::Wakes;
        } else {
            break;
        }
    }
    taken
}
