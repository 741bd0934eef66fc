//! What a page shows of a run at a moment: a header in JSON, and its numbers in one list.

use perhop_core::measure::DelayHistogram;
use perhop_core::{Duration, Instant};
use serde_json::{Value, json};

use crate::run::{LiveRun, sampled};

/// Events of one frame, and packets on links.
const MOST_EVENTS: usize = 2000;
const MOST_PACKETS: usize = 400;
/// How far histograms are apart in simulated time, at least, in parts of the run.
const HISTOGRAMS: u64 = 200;
/// Classes of a link that have histograms of their own: as many as a chart's colors tell apart.
const MOST_CLASSES: usize = 6;

/// Adds what is new of a run to `numbers`, and says how much of what it is.
pub fn frame(run: &mut LiveRun, numbers: &mut Vec<f64>) -> Value {
    let now = run.now();
    let (times, values) = run.new_samples();
    let rows = times.len();
    numbers.extend_from_slice(times);
    numbers.extend_from_slice(values);
    let from = run.new_events();
    let (events, left_out) = events(run, from, numbers);
    let flight = run.witness().flight(now, MOST_PACKETS, numbers);
    let waiting = waiting(run, numbers);
    let histograms = histograms(run, now, numbers);
    json!({
        "rows": rows,
        "events": events,
        "eventsLeftOut": left_out,
        "flight": flight,
        "waiting": waiting,
        "histograms": histograms,
    })
}

fn events(run: &LiveRun, from: usize, numbers: &mut Vec<f64>) -> (usize, usize) {
    let witness = run.witness();
    let all = witness.next_event().saturating_sub(from);
    // The last ones: those are on the screen.
    let first = from + all.saturating_sub(MOST_EVENTS);
    let mut count = 0;
    for (number, event) in witness.events(first) {
        numbers.extend([
            number as f64,
            event.at.as_secs_f64(),
            event.link as f64,
            f64::from(event.flow),
            event.color.index() as f64,
            f64::from(event.reason as u8),
            f64::from(u8::from(event.is_mark)),
        ]);
        count += 1;
    }
    (count, all - count)
}

/// Packets that wait, by color, at each link with a queue that is sampled.
fn waiting(run: &mut LiveRun, numbers: &mut Vec<f64>) -> usize {
    let stepping = run.stepping();
    let links = sampled(stepping);
    for &link in &links {
        let waiting = stepping.link(link).map_or([0; 3], |view| view.waiting());
        numbers.extend(waiting.map(|packets| packets as f64));
    }
    links.len()
}

/// How long packets waited, now and then: all of a link, and those of each class that its queue
/// distinguishes.
fn histograms(run: &mut LiveRun, now: Instant, numbers: &mut Vec<f64>) -> Vec<Value> {
    let apart = Duration::from_nanos(run.end().as_nanos() / HISTOGRAMS);
    if run.shown_histograms.is_some_and(|last| now < last + apart && now < run.end()) {
        return Vec::new();
    }
    run.shown_histograms = Some(now);
    let stepping = run.stepping();
    let mut shown = Vec::new();
    for link in sampled(stepping) {
        let Some(view) = stepping.link(link) else { continue };
        let of_classes = &view.statistics.delays;
        let bins = histogram(&DelayHistogram::sum(of_classes), numbers);
        shown.push(json!({"link": link, "class": null, "bins": bins}));
        if of_classes.len() > 1 {
            for ((name, _), delays) in view.classes.iter().zip(of_classes).take(MOST_CLASSES) {
                shown.push(json!({"link": link, "class": name, "bins": histogram(delays, numbers)}));
            }
        }
    }
    shown
}

/// Adds a histogram's bins, and says how many they are: their upper edges, their longest delays, and their
/// counts. Bins before the first packet are left out.
fn histogram(delays: &DelayHistogram, numbers: &mut Vec<f64>) -> usize {
    let (edges, counts) = delays.bins();
    let first =
        counts.iter().position(|counts| counts.iter().any(|&count| count > 0)).unwrap_or(counts.len());
    numbers.extend(edges.iter().skip(first + 1));
    numbers.extend(delays.longest()[first..].iter().map(|longest| longest.as_secs_f64()));
    numbers.extend(counts[first..].iter().map(|counts| counts.iter().sum::<u64>() as f64));
    counts.len() - first
}
