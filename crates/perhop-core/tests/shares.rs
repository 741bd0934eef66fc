//! What queues that always have packets get, whatever the sizes of packets and whatever the others do.

use perhop_core::scheduler::{Dequeued, Discipline, SchedulerParams};
use perhop_core::testing::streams;
use perhop_core::{Bitrate, Dscp, Environment, FlowId, Header, Instant};
use proptest::prelude::*;

/// The link's rate: a byte takes a microsecond.
const LINK: u64 = 8_000_000;

/// The largest packet.
const LARGEST: f64 = 1500.0;

/// Bytes sent by each of three queues so far, after each packet. The first two always have packets; the third
/// has some at times. Sizes come from `sizes`, by turns.
fn serve(scheduler: &str, shares: [u64; 3], key: &str, sizes: &[u16]) -> Vec<[f64; 3]> {
    let queue = |(n, share): (usize, u64)| {
        let take = if n < 2 { format!(r#""match": {{"dscp": {n}}},"#) } else { String::new() };
        let share = if key == "rate" { format!(r#""{share}bps""#) } else { share.to_string() };
        let rule = r#"{"aqm": "drop-tail", "limit": "999p"}"#;
        format!(r#"{{"name": "{n}", {take} "{key}": {share}, "rule": {rule}}}"#)
    };
    let queues: Vec<String> = shares.into_iter().enumerate().map(queue).collect();
    let table = format!(r#"{{"scheduler": "{scheduler}", "queues": [{}]}}"#, queues.join(","));
    let environment = Environment { rate: Bitrate::from_bps(LINK).unwrap() };
    let params: SchedulerParams = serde_json::from_str(&table).unwrap();
    params.fits(environment.rate).unwrap();
    let mut port = params.build::<Header>(environment, streams(1));
    let mut now = Instant::ZERO;
    let mut sizes = sizes.iter().cycle();
    let mut sent = vec![[0.0; 3]];
    while sent.len() < 300 {
        for queue in 0..3_u8 {
            let size = *sizes.next().unwrap();
            let wanted = if queue < 2 { 2 } else { u64::from(size % 3) };
            if port.class(usize::from(queue)).occupancy.packets() < wanted {
                let packet = Header { dscp: Dscp::new(queue).unwrap(), ..Header::new(FlowId(0), size) };
                port.enqueue(packet, now).unwrap();
            }
        }
        let Dequeued::Sent(packet, _) = port.dequeue(now) else { panic!("two queues have packets") };
        let mut sums = *sent.last().unwrap();
        sums[usize::from(packet.dscp.get())] += f64::from(packet.size);
        sent.push(sums);
        now = Instant::from_nanos(now.as_nanos() + u64::from(packet.size) * 1000);
    }
    sent
}

/// Every interval between two packets: what each queue got in it.
fn intervals(sent: &[[f64; 3]]) -> impl Iterator<Item = [f64; 3]> {
    let pairs = (0..sent.len()).flat_map(move |begin| (begin..sent.len()).map(move |end| (begin, end)));
    pairs.map(|(begin, end)| std::array::from_fn(|queue| sent[end][queue] - sent[begin][queue]))
}

fn sizes() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(prop_oneof![Just(40_u16), Just(1500), 1_u16..=1500], 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Goyal, Vin & Cheng 1997 prove it: by weight, two queues with packets differ by at most one packet of
    /// each.
    #[test]
    fn start_time_fair_queueing_is_fair(weights in prop::array::uniform3(1_u64..20), sizes in sizes()) {
        let [first, second, _] = weights.map(|weight| weight as f64);
        let bound = LARGEST / first + LARGEST / second;
        for [one, other, _] in intervals(&serve("wfq", weights, "weight", &sizes)) {
            prop_assert!((one / first - other / second).abs() <= bound + 1e-6, "{one} {other}");
        }
    }

    /// Start-time fair queueing keeps a guarantee, as its authors prove for a link of constant rate: a queue
    /// with packets gets its rate, up to one packet of each queue.
    #[test]
    fn start_time_fair_queueing_keeps_its_guarantees(
        rates in prop::array::uniform3(100_000_u64..2_600_000),
        sizes in sizes(),
    ) {
        for got in intervals(&serve("wfq", rates, "rate", &sizes)) {
            for queue in 0..2 {
                let share = rates[queue] as f64 / LINK as f64;
                let least = share * got.iter().sum::<f64>() - share * 3.0 * LARGEST - LARGEST;
                prop_assert!(got[queue] >= least - 1e-6, "{} of at least {least}", got[queue]);
            }
        }
    }

    /// Shreedhar & Varghese 1995 prove it: by weight, two queues with packets differ by at most a quantum and
    /// two packets.
    #[test]
    fn deficit_round_robin_is_fair(weights in prop::array::uniform3(1_u64..20), sizes in sizes()) {
        let smallest = weights.iter().copied().min().unwrap();
        let [first, second, _] = weights.map(|weight| weight as f64 / smallest as f64);
        for [one, other, _] in intervals(&serve("drr", weights, "weight", &sizes)) {
            // Quanta are whole bytes, so that a long interval may differ by one byte a round.
            let rounds = one / (1500.0 * first) + 1.0;
            prop_assert!((one / first - other / second).abs() <= 1500.0 + 2.0 * LARGEST + rounds, "{one} {other}");
        }
    }
}
