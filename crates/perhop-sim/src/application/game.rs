//! Online games: small datagrams in both directions.

use perhop_core::portable::ln;
use perhop_core::units::{UnitError, require};
use perhop_core::{Block, Bytes, Duration, Instant, Origin, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Application, Carrier, Commands, Direction, User, UserEvent, UserMeasure};
use crate::measure::Unit;
use crate::measure::Value::Optional;

/// A player: datagrams of the server's at random intervals, and of the player's at regular ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct GameParams {
    /// Intervals of the server's datagrams, in milliseconds.
    pub down_interval: ExtremeValue,
    /// Sizes of the server's datagrams, in bytes, without headers.
    pub down_size: ExtremeValue,
    /// Interval of the player's datagrams. The first is sent at a time within it, drawn uniformly.
    pub up_interval: Duration,
    /// Sizes of the player's datagrams, in bytes, without headers.
    pub up_size: ExtremeValue,
    /// Size of the headers of a datagram.
    pub headers: Bytes,
    /// A datagram that takes longer is late.
    pub late: Duration,
}

impl Default for GameParams {
    fn default() -> Self {
        Self {
            down_interval: ExtremeValue { a: 55.0, b: 6.0 },
            down_size: ExtremeValue { a: 120.0, b: 36.0 },
            up_interval: Duration::from_millis(40),
            up_size: ExtremeValue { a: 45.0, b: 5.7 },
            headers: Bytes::new(28),
            late: Duration::from_millis(50),
        }
    }
}

/// The largest extreme value distribution (Gumbel): a - b ln(-ln u) with a uniform u.
///
/// Its mean is a + 0.5772 b.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExtremeValue {
    /// The location.
    pub a: f64,
    /// The scale.
    pub b: f64,
}

impl ExtremeValue {
    /// A value. The logarithm is a deterministic series, not that of the platform.
    fn draw(self, rng: &mut Rng) -> f64 {
        // Within (0, 1).
        let uniform = rng.uniform() + 0.5 / (1_u64 << 53) as f64;
        self.a - self.b * ln(-ln(uniform))
    }

    fn check(self, key: &str, most: f64) -> Result<(), UnitError> {
        let is_good = (0.0..=most).contains(&self.a) && (0.0..=most).contains(&self.b) && self.a > 0.0;
        require(is_good, key, format_args!("`a` is above 0 and `b` at least 0, both at most {most}"))
    }
}

/// What fits into an Ethernet frame.
const LARGEST: u16 = 1500;
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);
const MOST_MILLIS: f64 = 10_000.0;

/// A player.
///
/// ## Deviations
/// - A datagram is at most 1500 B with its headers, and has at least one byte of data; intervals are at least
///   1 ms.
/// - The table does not say whether sizes include headers: here they do not.
#[derive(Clone, Debug)]
pub struct Game {
    params: GameParams,
    rng: Rng,
    /// When the next datagram is sent, up and down.
    up: Instant,
    down: Instant,
}

impl Block for Game {
    type Params = GameParams;
    const NAME: &'static str = "game";
    const SUMMARY: &'static str =
        "Small datagrams over UDP, some 17 a second to the player and 25 a second from it";
    const ORIGIN: Origin = Origin::published(
        2004,
        "3GPP2 C.R1002-0, cdma2000 Evaluation Methodology, and NGMN 2008, gaming model",
    );
    const BATCHED: bool = true;

    fn check(params: &GameParams) -> Result<(), UnitError> {
        params.down_interval.check("down-interval", MOST_MILLIS)?;
        params.down_size.check("down-size", f64::from(LARGEST))?;
        params.up_size.check("up-size", f64::from(LARGEST))?;
        require(params.up_interval >= SHORTEST_INTERVAL, "up-interval", "an interval is at least 1ms")?;
        require(params.headers.get() < u64::from(LARGEST), "headers", "headers have less than 1500B")
    }
}

impl Application for Game {
    const MEASURES: &'static [UserMeasure] = &[
        UserMeasure::new("down_p99_s", Unit::Seconds, Optional(|users| users.quantile("down_s", 0.99)))
            .column("down, p99", 255)
            .meaning(
                "99th percentile of the one-way delay to the player, of datagrams that came after the \
                    warm-up.",
            ),
        UserMeasure::new(
            "down_late",
            Unit::Fraction,
            Optional(|users| users.ratio("down_late", "down", 1.0)),
        )
        .column("down late", 255)
        .meaning(
            "Fraction of the datagrams to the player that came after the warm-up and took longer than \
                    `late`.",
        ),
        UserMeasure::new("up_p99_s", Unit::Seconds, Optional(|users| users.quantile("up_s", 0.99)))
            .column("up, p99", 255)
            .meaning(
                "99th percentile of the one-way delay from the player, of datagrams that came after the \
                    warm-up.",
            ),
        UserMeasure::new("up_late", Unit::Fraction, Optional(|users| users.ratio("up_late", "up", 1.0)))
            .column("up late", 255)
            .meaning(
                "Fraction of the datagrams from the player that came after the warm-up and took longer than \
                    `late`.",
            ),
    ];

    fn new(params: &GameParams, rng: Rng) -> Self {
        Self { params: params.clone(), rng, up: Instant::NEVER, down: Instant::NEVER }
    }

    fn carrier(_: &GameParams) -> Carrier {
        Carrier::Datagrams { largest: Bytes::new(u64::from(LARGEST)) }
    }
}

impl User for Game {
    fn on_event(&mut self, event: UserEvent, commands: &mut Commands<'_>) {
        match event {
            UserEvent::Begins => {
                let first = self.rng.up_to(self.params.up_interval.as_nanos());
                self.up = commands.now + Duration::from_nanos(first);
                self.down = commands.now + self.interval();
                commands.wake_at(self.up.min(self.down));
            }
            UserEvent::Wakes => self.send(commands),
            UserEvent::Datagram { direction, transit, .. } => self.record(direction, transit, commands),
            UserEvent::Arrived { .. } => {}
        }
    }

    fn finish(&mut self, _: &mut Commands<'_>) {}
}

impl Game {
    /// Sends what is due. Draws depend on time alone, so that the network does not change them.
    fn send(&mut self, commands: &mut Commands<'_>) {
        if commands.now >= self.up {
            let size = self.size(self.params.up_size);
            commands.send(0, Direction::Request, size);
            self.up = commands.now + self.params.up_interval;
        }
        if commands.now >= self.down {
            let size = self.size(self.params.down_size);
            commands.send(0, Direction::Response, size);
            self.down = commands.now + self.interval();
        }
        commands.wake_at(self.up.min(self.down));
    }

    fn interval(&mut self) -> Duration {
        let millis = self.params.down_interval.draw(&mut self.rng);
        Duration::from_nanos((millis.max(0.0) * 1e6) as u64).max(SHORTEST_INTERVAL)
    }

    fn size(&mut self, sizes: ExtremeValue) -> u16 {
        let bytes = sizes.draw(&mut self.rng).max(1.0) + 0.5;
        let with_headers = (bytes as u64).saturating_add(self.params.headers.get());
        u16::try_from(with_headers).unwrap_or(u16::MAX).min(LARGEST)
    }

    fn record(&self, direction: Direction, transit: Duration, commands: &mut Commands<'_>) {
        if !commands.counts(commands.now) {
            return;
        }
        let (delays, count, late) = match direction {
            Direction::Request => ("up_s", "up", "up_late"),
            Direction::Response => ("down_s", "down", "down_late"),
        };
        commands.recorded.sample(delays, transit.as_secs_f64());
        commands.recorded.add(count, 1.0);
        commands.recorded.add(late, f64::from(u8::from(transit > self.params.late)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, params};
    use super::super::{Action, Recorded};
    use super::*;

    #[test]
    fn means_of_the_published_distributions() {
        let mut rng = Rng::stream(1, "test");
        let GameParams { down_interval, down_size, up_size, .. } = GameParams::default();
        for (distribution, mean) in [(down_interval, 58.46), (down_size, 140.78), (up_size, 48.29)] {
            let found = (0..200_000).map(|_| distribution.draw(&mut rng)).sum::<f64>() / 200_000.0;
            assert!((found / mean - 1.0).abs() < 0.002, "{found} {mean}");
        }
        // Half of the values are below a - b ln(ln 2).
        let below = (0..100_000).filter(|_| down_interval.draw(&mut rng) < 57.199).count();
        assert!((49_500..50_500).contains(&below), "{below}");
    }

    #[test]
    fn a_player_sends_each_40_ms_and_the_server_each_58() {
        let mut bench = Bench::<Game>::new(&params::<Game>(""));
        bench.event(UserEvent::Begins, 1.0);
        let mut sent = [Vec::new(), Vec::new()];
        loop {
            let now = bench.wakes();
            if now > 101.0 {
                break;
            }
            for action in bench.take_actions() {
                if let Action::Send { direction, size, .. } = action {
                    sent[usize::from(direction == Direction::Response)].push((now, size));
                }
            }
        }
        let [up, down] = sent;
        assert!(up[0].0 < 1.04 && up.windows(2).all(|pair| (pair[1].0 - pair[0].0 - 0.04).abs() < 1e-9));
        assert!((1690..1730).contains(&down.len()), "{}", down.len());
        let mean = up.iter().map(|(_, size)| f64::from(*size)).sum::<f64>() / up.len() as f64;
        assert!((mean - 28.0 - 48.29).abs() < 0.5, "{mean}");
        assert!(up.iter().chain(&down).all(|&(_, size)| (29..=1500).contains(&size)));
    }

    #[test]
    fn what_takes_longer_than_50_ms_is_late() {
        let mut bench = Bench::<Game>::new(&params::<Game>(""));
        bench.warmup = Instant::from_nanos(1_000_000_000);
        let mut arrives = |direction, millis, at| {
            bench.event(
                UserEvent::Datagram { connection: 0, direction, transit: Duration::from_millis(millis) },
                at,
            );
        };
        arrives(Direction::Response, 900, 0.5);
        for millis in [20, 50, 51, 80] {
            arrives(Direction::Response, millis, 2.0);
        }
        arrives(Direction::Request, 10, 2.0);
        let value = |recorded: &Recorded, name: &str| {
            Game::MEASURES.iter().find(|measure| measure.name == name).unwrap().value.of(recorded)
        };
        assert_eq!(value(&bench.recorded, "down_late"), Some(0.5));
        assert_eq!(
            (value(&bench.recorded, "up_late"), value(&bench.recorded, "up_p99_s")),
            (Some(0.0), Some(0.01))
        );
    }
}
