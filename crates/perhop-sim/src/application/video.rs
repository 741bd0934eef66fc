//! Adaptive video over HTTP: chunks whose rate follows the buffer.

use perhop_core::units::{UnitError, require};
use perhop_core::{Bitrate, Block, Bytes, Duration, Instant, Origin, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Application, Carrier, Commands, Direction, User, UserEvent, UserMeasure, check_request};
use crate::measure::Unit;
use crate::measure::Value::{Number, Optional};

/// A viewer who watches a video without end: each chunk is asked for at a rate that the buffer allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct VideoParams {
    /// The rates in which the video exists, ascending; those of Pensieve (2017) unless given.
    pub rates: Vec<Bitrate>,
    /// How long a chunk plays.
    pub chunk: Duration,
    /// The most that the buffer holds, in playing time: the next chunk is asked for when it has room.
    pub buffer: Duration,
    /// Up to this much in the buffer the lowest rate is chosen.
    pub reservoir: Duration,
    /// From this much more on the highest is; between, the highest rate that is not above a line.
    pub cushion: Duration,
    /// Size of the request of a chunk, without headers.
    pub request: Bytes,
}

impl Default for VideoParams {
    fn default() -> Self {
        Self {
            rates: [300, 750, 1200, 1850, 2850, 4300]
                .into_iter()
                .filter_map(|k| Bitrate::from_bps(k * 1000).ok())
                .collect(),
            chunk: Duration::from_secs(4),
            buffer: Duration::from_secs(60),
            reservoir: Duration::from_secs(5),
            cushion: Duration::from_secs(10),
            request: Bytes::new(350),
        }
    }
}

/// What a second of stalling costs, in Mbit/s of quality (Mao, Netravali & Alizadeh 2017, the linear `QoE`).
const STALL_COST: f64 = 4.3;
const SHORTEST_CHUNK: Duration = Duration::from_millis(100);
const LONGEST_CHUNK: Duration = Duration::from_secs(600);
const LONGEST_BUFFER: Duration = Duration::from_secs(36_000);

/// A viewer.
///
/// ## Deviations
/// - The reservoir is fixed (BBA-0); all chunks of a rate have the same size.
/// - Playing goes on with the first chunk that comes after a stall.
#[derive(Clone, Debug)]
pub struct Video {
    params: VideoParams,
    began: Instant,
    /// When the chunk under way was asked for, and its rate; and the rate of the one before.
    asked: Instant,
    rate: usize,
    last_rate: Option<usize>,
    /// What the buffer held at a time, and whether it plays.
    level: Duration,
    level_at: Instant,
    plays: bool,
}

impl Block for Video {
    type Params = VideoParams;
    const NAME: &'static str = "video";
    const SUMMARY: &'static str =
        "Adaptive video in chunks over one connection, whose rate follows the buffer (BBA)";
    const ORIGIN: Origin = Origin::published(
        2014,
        "Huang, Johari, McKeown, Trunnell & Watson, A Buffer-Based Approach to Rate Adaptation",
    );
    const BATCHED: bool = true;

    fn check(params: &VideoParams) -> Result<(), UnitError> {
        check_request(params.request)?;
        let ascends = !params.rates.is_empty() && params.rates.is_sorted_by(|one, next| one < next);
        require(ascends, "rates", "name at least one rate, the lowest first and each once")?;
        let is_usual = (SHORTEST_CHUNK..=LONGEST_CHUNK).contains(&params.chunk);
        require(is_usual, "chunk", "a chunk plays for 100ms to 600s")?;
        let has_room = params.buffer >= params.chunk && params.buffer <= LONGEST_BUFFER;
        require(has_room, "buffer", "the buffer holds at least a chunk, and at most 10 hours")?;
        let fits = params.reservoir <= params.buffer && params.cushion <= params.buffer - params.reservoir;
        require(fits, "cushion", "`reservoir` and `cushion` together are at most `buffer`")
    }
}

impl Application for Video {
    const MEASURES: &'static [UserMeasure] = &[
        UserMeasure::new("chunks", Unit::None, Number(|users| users.count("quality_bps")))
            .column("chunks per run", 20)
            .meaning("Chunks asked for after the warm-up that came by the end of the run."),
        UserMeasure::new("quality_bps", Unit::BitsPerSecond, Optional(|users| users.mean("quality_bps")))
            .column("quality", 255)
            .meaning(
                "Mean rate at which the chunks were encoded that were asked for after the warm-up and came \
                    by the end of the run.",
            ),
        UserMeasure::new("startup_s", Unit::Seconds, Optional(|users| users.mean("startup_s")))
            .column("start-up", 30)
            .meaning(
                "Mean time from a viewer's start to the first chunk, viewers who received none are censored \
                (product limit); none if all began in the warm-up.",
            ),
        UserMeasure::new("stalls", Unit::None, Number(|users| users.sum_of("stalls")))
            .column("stalls per run", 60)
            .meaning("Times at which the buffer of a viewer was empty."),
        UserMeasure::new(
            "stall_seconds_per_hour",
            Unit::SecondsPerHour,
            Optional(|users| users.ratio("stall_s", "watched_s", 3600.0)),
        )
        .column("stalled", 255)
        .meaning("Seconds of stalling in an hour of watching, stalls included."),
        UserMeasure::new("switches", Unit::None, Number(|users| users.sum_of("switches")))
            .column("switches per run", 40)
            .meaning("Chunks of another rate than the chunk before."),
        UserMeasure::new("qoe", Unit::None, Optional(|users| users.mean("qoe"))).column("QoE", 255).meaning(
            "Quality of experience of a chunk: its rate in Mbit/s, less 4.3 for each second of stalling \
                before it, less the difference to the rate of the chunk before (linear QoE of Pensieve, \
                2017).",
        ),
        UserMeasure::new("not_started", Unit::None, Number(|users| users.sum_of("not_started")))
            .column("not started", 10)
            .meaning("Viewers without the first chunk at the end of the run; waiting for it is no stall."),
    ];

    fn new(params: &VideoParams, _: Rng) -> Self {
        Self {
            params: params.clone(),
            began: Instant::ZERO,
            asked: Instant::ZERO,
            rate: 0,
            last_rate: None,
            level: Duration::ZERO,
            level_at: Instant::ZERO,
            plays: false,
        }
    }

    fn carrier(params: &VideoParams) -> Carrier {
        Carrier::Tcp { request: params.request }
    }
}

impl User for Video {
    fn on_event(&mut self, event: UserEvent, commands: &mut Commands<'_>) {
        match event {
            UserEvent::Begins => {
                self.began = commands.now;
                self.ask(commands);
            }
            UserEvent::Wakes => {
                self.play(commands);
                self.ask(commands);
            }
            UserEvent::Arrived { direction: Direction::Request, .. } => {
                commands.respond(0, self.params.bytes(self.rate));
            }
            UserEvent::Arrived { direction: Direction::Response, .. } => self.on_chunk(commands),
            UserEvent::Datagram { .. } => {}
        }
    }

    fn finish(&mut self, commands: &mut Commands<'_>) {
        self.play(commands);
        if !self.plays {
            commands.recorded.add("not_started", 1.0);
            commands.leave_open("startup_s", self.began);
        }
    }
}

impl VideoParams {
    /// The rate of a chunk that is asked for with this much in the buffer (figure 6 of Huang et al.).
    fn choose(&self, level: Duration) -> usize {
        let highest = self.rates.len() - 1;
        if level <= self.reservoir {
            return 0;
        }
        let beyond = level - self.reservoir;
        if beyond >= self.cushion {
            return highest;
        }
        let rate = |place: usize| self.rates[place].as_bps() as f64;
        let line =
            rate(0) + beyond.as_nanos() as f64 / self.cushion.as_nanos() as f64 * (rate(highest) - rate(0));
        (0..=highest).rev().find(|&place| rate(place) <= line).unwrap_or(0)
    }

    fn bytes(&self, rate: usize) -> u64 {
        let bits = u128::from(self.rates[rate].as_bps()) * u128::from(self.chunk.as_nanos()) / 1_000_000_000;
        (bits as u64).div_ceil(8).max(1)
    }
}

impl Video {
    fn ask(&mut self, commands: &mut Commands<'_>) {
        self.rate = self.params.choose(self.level);
        self.asked = commands.now;
        commands.request(0, self.params.request);
    }

    /// Brings the buffer up to date; returns the seconds of stalling since the last time, and records them.
    fn play(&mut self, commands: &mut Commands<'_>) -> f64 {
        let (now, since) = (commands.now, std::mem::replace(&mut self.level_at, commands.now));
        if !self.plays {
            return 0.0;
        }
        let passed = now.since(since);
        let stalled = passed - self.level;
        self.level = self.level - passed;
        // Of both, what lies after the warm-up.
        let after = now.since(commands.warmup);
        commands.recorded.add("watched_s", passed.min(after).as_secs_f64());
        if !stalled.is_zero() && !after.is_zero() {
            commands.recorded.add("stalls", 1.0);
            commands.recorded.add("stall_s", stalled.min(after).as_secs_f64());
        }
        stalled.as_secs_f64()
    }

    fn on_chunk(&mut self, commands: &mut Commands<'_>) {
        let stalled = self.play(commands);
        self.level = self.level + self.params.chunk;
        if !std::mem::replace(&mut self.plays, true) {
            commands.sample_time("startup_s", self.began);
        }
        let quality = |rate: usize| self.params.rates[rate].as_bps() as f64;
        let before = self.last_rate.replace(self.rate).unwrap_or(self.rate);
        if commands.counts(self.asked) {
            let step = (quality(self.rate) - quality(before)).abs();
            commands.recorded.sample("quality_bps", quality(self.rate));
            commands.recorded.sample("qoe", (quality(self.rate) - step) / 1e6 - STALL_COST * stalled);
            commands.recorded.add("switches", f64::from(u8::from(before != self.rate)));
        }
        let needed = self.level + self.params.chunk - self.params.buffer;
        if needed.is_zero() {
            self.ask(commands);
        } else {
            commands.wake_at(commands.now + needed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, params};
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_nanos((seconds * 1e9 + 0.5) as u64)
    }

    #[test]
    fn the_rate_follows_the_buffer() {
        // Huang et al. 2014 with a reservoir of 5 s and a cushion of 10 s, over the rates of Pensieve.
        let params = params::<Video>("");
        let chosen = |level: f64| params.rates[params.choose(seconds(level))].as_bps() / 1000;
        let levels = [0.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 14.9, 15.0, 60.0];
        assert_eq!(levels.map(chosen), [300, 300, 300, 300, 1200, 1850, 2850, 2850, 4300, 4300]);
        assert_eq!((params.bytes(0), params.bytes(5)), (150_000, 2_150_000));
    }

    /// A chunk of this rate comes after a stall of so many seconds.
    fn chunk_of(bench: &mut Bench<Video>, kbps: u64, stall: f64, now: f64) -> f64 {
        let rates = &bench.user.params.rates;
        bench.user.rate = rates.iter().position(|rate| rate.as_bps() == kbps * 1000).unwrap();
        let at = now + bench.user.level.as_secs_f64() + stall;
        bench.arrives(0, Direction::Response, at);
        at
    }

    #[test]
    fn the_published_quality_of_experience() {
        // 750 1200 1200 2850 1850 with stalls of 0 0 0.4 0 1 s: 7.85 - 4.3 x 1.4 - 3.1 = -1.27.
        let mut bench = Bench::<Video>::new(&params::<Video>(""));
        bench.event(UserEvent::Begins, 0.0);
        let mut now = 0.0;
        for (kbps, stall) in [(750, 0.0), (1200, 0.0), (1200, 0.4), (2850, 0.0), (1850, 1.0)] {
            now = chunk_of(&mut bench, kbps, stall, now);
        }
        let sum: f64 = bench.recorded.samples_of("qoe").iter().sum();
        assert!((sum + 1.27).abs() < 1e-9, "{sum}");
        assert!((bench.recorded.sum_of("stall_s") - 1.4).abs() < 1e-9);
        assert_eq!((bench.recorded.sum_of("stalls"), bench.recorded.sum_of("switches")), (2.0, 3.0));
        assert!((bench.recorded.sum_of("watched_s") - now).abs() < 1e-9);
    }

    #[test]
    fn the_next_chunk_waits_until_the_buffer_has_room() {
        let mut bench = Bench::<Video>::new(&params::<Video>(r#""buffer": "16s""#));
        bench.event(UserEvent::Begins, 0.0);
        assert_eq!(bench.requested(), [0]);
        bench.arrives(0, Direction::Request, 0.5);
        assert_eq!(bench.responded(), [(0, 150_000)]);
        for at in [1.0, 1.5, 2.0] {
            bench.arrives(0, Direction::Response, at);
            assert_eq!(bench.requested(), [0]);
        }
        // Twelve seconds less the one played, and then four more: 15 s. The next four fit in at 5.5 s, with
        // 12 s left.
        bench.arrives(0, Direction::Response, 2.5);
        assert!(bench.requested().is_empty());
        assert_eq!(bench.wakes(), 5.0);
        assert_eq!((bench.requested(), bench.user.level), (vec![0], seconds(12.0)));
        assert_eq!(bench.recorded.samples_of("startup_s"), [1.0]);
        assert_eq!(bench.recorded.sum_of("stalls"), 0.0);
    }

    #[test]
    fn a_viewer_to_whom_nothing_comes_has_not_started() {
        let mut bench = Bench::<Video>::new(&params::<Video>(""));
        bench.warmup = Instant::ZERO + seconds(10.0);
        bench.event(UserEvent::Begins, 0.0);
        bench.now_finish(20.0);
        assert_eq!(bench.recorded.sum_of("not_started"), 1.0);
        assert!(bench.recorded.open_of("startup_s").is_empty(), "it began in the warm-up");
        let mut counted = Bench::<Video>::new(&params::<Video>(""));
        counted.event(UserEvent::Begins, 2.0);
        counted.now_finish(20.0);
        assert_eq!(counted.recorded.open_of("startup_s"), [18.0]);
        assert_eq!((bench.recorded.sum_of("watched_s"), bench.recorded.sum_of("stalls")), (0.0, 0.0));
    }

    #[test]
    fn only_what_lies_after_the_warm_up_counts() {
        let mut bench = Bench::<Video>::new(&params::<Video>(""));
        bench.warmup = Instant::ZERO + seconds(10.0);
        bench.event(UserEvent::Begins, 0.0);
        bench.arrives(0, Direction::Response, 1.0);
        // It plays until 5 s and stalls until 12 s, two seconds of which count; the chunk was asked for
        // before.
        bench.arrives(0, Direction::Response, 12.0);
        assert_eq!((bench.recorded.sum_of("watched_s"), bench.recorded.sum_of("stall_s")), (2.0, 2.0));
        assert!(
            bench.recorded.samples_of("qoe").is_empty() && bench.recorded.samples_of("startup_s").is_empty()
        );
        bench.event(UserEvent::Wakes, 13.0);
        bench.now_finish(20.0);
        // The last stall lasts from 16 s to the end.
        assert_eq!((bench.recorded.sum_of("watched_s"), bench.recorded.sum_of("stall_s")), (10.0, 6.0));
        assert_eq!(bench.recorded.sum_of("stalls"), 2.0);
        assert_eq!(bench.recorded.sum_of("not_started"), 0.0);
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let refused = |text: &str| {
            let read = serde_json::from_str(&format!("{{{text}}}")).unwrap();
            Video::check(&read).unwrap_err().to_string()
        };
        assert!(refused(r#""rates": ["1Mbps", "300kbps"]"#).contains("lowest first"));
        assert!(refused(r#""rates": []"#).contains("at least one"));
        assert!(refused(r#""buffer": "3s""#).contains("at least a chunk"));
        assert!(refused(r#""cushion": "56s""#).contains("together"));
        assert!(refused(r#""chunk": "0s""#).contains("600s"));
    }
}
