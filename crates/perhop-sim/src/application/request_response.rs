//! Requests and responses, one after another over one connection: remote calls, queries of a database.

use perhop_core::units::{UnitError, require};
use perhop_core::{Block, Bytes, Duration, Instant, Origin, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Application, Carrier, Commands, Direction, User, UserEvent, UserMeasure, check_request};
use crate::measure::Unit;
use crate::measure::Value::{Number, Optional};

/// A client that asks, waits for the response, thinks, and asks again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RequestResponseParams {
    /// Size of a request, without headers.
    pub request: Bytes,
    /// Size of a response, without headers; with `sizes = "exponential"`, its mean.
    pub response: Bytes,
    /// The distribution of the sizes of responses.
    pub sizes: Spread,
    /// Mean time from a response to the next request.
    pub think: Duration,
    /// Mean time that the server takes from a request to its response.
    pub service: Duration,
    /// The distribution of both times.
    pub times: Spread,
}

impl Default for RequestResponseParams {
    fn default() -> Self {
        Self {
            request: Bytes::new(200),
            response: Bytes::new(10_000),
            sizes: Spread::Constant,
            think: Duration::from_secs(1),
            service: Duration::ZERO,
            times: Spread::Exponential,
        }
    }
}

/// A distribution with a given mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Always the mean.
    #[default]
    Constant,
    /// Exponentially distributed.
    Exponential,
}

impl Spread {
    /// A value, rounded down.
    fn draw(self, mean: u64, rng: &mut Rng) -> u64 {
        match self {
            Self::Constant => mean,
            Self::Exponential => (mean as f64 * rng.exponential()) as u64,
        }
    }
}

const LARGEST_RESPONSE: Bytes = Bytes::new(1_000_000_000_000);

/// A client of requests and responses.
///
/// ## Deviations
/// - Sizes and times are a setting of ours: no published model is followed.
#[derive(Clone, Debug)]
pub struct RequestResponse {
    params: RequestResponseParams,
    rng: Rng,
    exchange: Exchange,
    step: Step,
}

/// All that is drawn of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Exchange {
    began: Instant,
    response: u64,
    service: Duration,
    think: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Thinking,
    /// The request is under way, or the response.
    Waiting,
    Serving,
}

impl Block for RequestResponse {
    type Params = RequestResponseParams;
    const NAME: &'static str = "request-response";
    const SUMMARY: &'static str =
        "A request, its response, a time of thinking, over one connection that stays open";
    const ORIGIN: Origin = Origin::published(2026, "perhop");
    const BATCHED: bool = true;

    fn check(params: &RequestResponseParams) -> Result<(), UnitError> {
        check_request(params.request)?;
        let is_allowed = params.response.get() > 0 && params.response <= LARGEST_RESPONSE;
        require(is_allowed, "response", "a response has 1B to 1TB")
    }
}

impl Application for RequestResponse {
    const MEASURES: &'static [UserMeasure] = &[
        UserMeasure::new("responses", Unit::None, Number(|users| users.count("response_s")))
            .column("responses per run", 60)
            .meaning("Requests made after the warm-up whose responses were complete by the end of the run."),
        UserMeasure::new("response_mean_s", Unit::Seconds, Optional(|users| users.mean("response_s")))
            .column("response, mean", 255)
            .meaning(
                "Mean response time: from the request to the last byte of the response; responses that are \
                    unfinished count by the product limit, and it is a lower bound where they take longest.",
            ),
        UserMeasure::new(
            "response_p50_s",
            Unit::Seconds,
            Optional(|users| users.quantile("response_s", 0.5)),
        )
        .column("p50", 150)
        .meaning(
            "Median response time; unfinished responses count by the product limit, and there is none \
                    where they leave it open.",
        ),
        UserMeasure::new(
            "response_p99_s",
            Unit::Seconds,
            Optional(|users| users.quantile("response_s", 0.99)),
        )
        .column("p99", 255)
        .meaning(
            "99th percentile of the response time; unfinished responses count by the product limit, and \
                    there is none where they leave it open.",
        ),
        UserMeasure::new("unfinished_responses", Unit::None, Number(|users| users.sum_of("unfinished")))
            .column("unfinished per run", 100)
            .meaning("Requests made after the warm-up without a complete response at the end of the run."),
    ];

    fn new(params: &RequestResponseParams, rng: Rng) -> Self {
        Self { params: params.clone(), rng, exchange: Exchange::default(), step: Step::Thinking }
    }

    fn carrier(params: &RequestResponseParams) -> Carrier {
        Carrier::Tcp { request: params.request }
    }
}

impl User for RequestResponse {
    fn on_event(&mut self, event: UserEvent, commands: &mut Commands<'_>) {
        match (event, self.step) {
            (UserEvent::Begins, _) | (UserEvent::Wakes, Step::Thinking) => self.ask(commands),
            (UserEvent::Arrived { direction: Direction::Request, .. }, Step::Waiting) => {
                if self.exchange.service.is_zero() {
                    return commands.respond(0, self.exchange.response);
                }
                self.step = Step::Serving;
                commands.wake_at(commands.now + self.exchange.service);
            }
            (UserEvent::Wakes, Step::Serving) => {
                self.step = Step::Waiting;
                commands.respond(0, self.exchange.response);
            }
            (UserEvent::Arrived { direction: Direction::Response, .. }, Step::Waiting) => {
                commands.sample_time("response_s", self.exchange.began);
                if self.exchange.think.is_zero() {
                    return self.ask(commands);
                }
                self.step = Step::Thinking;
                commands.wake_at(commands.now + self.exchange.think);
            }
            (UserEvent::Wakes | UserEvent::Arrived { .. } | UserEvent::Datagram { .. }, _) => {}
        }
    }

    fn finish(&mut self, commands: &mut Commands<'_>) {
        if self.step != Step::Thinking && commands.counts(self.exchange.began) {
            commands.recorded.add("unfinished", 1.0);
            commands.leave_open("response_s", self.exchange.began);
        }
    }
}

impl RequestResponse {
    fn ask(&mut self, commands: &mut Commands<'_>) {
        self.exchange = self.draw(commands.now);
        self.step = Step::Waiting;
        commands.request(0, self.params.request);
    }

    fn draw(&mut self, now: Instant) -> Exchange {
        let Self { params, rng, .. } = self;
        let response = params.sizes.draw(params.response.get(), rng).max(1);
        let mut time = |mean: Duration| Duration::from_nanos(params.times.draw(mean.as_nanos(), rng));
        let (service, think) = (time(params.service), time(params.think));
        Exchange { began: now, response, service, think }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, params};
    use super::*;

    #[test]
    fn an_exchange_by_hand() {
        let text = r#""service": "300ms", "think": "2s", "times": "constant", "response": "5kB""#;
        let mut bench: Bench<RequestResponse> = Bench::new(&params::<RequestResponse>(text));
        bench.event(UserEvent::Begins, 1.0);
        assert_eq!(bench.requested(), [0]);
        bench.arrives(0, Direction::Request, 1.25);
        assert!(bench.responded().is_empty());
        assert_eq!(bench.wakes(), 1.55);
        assert_eq!(bench.responded(), [(0, 5000)]);
        bench.arrives(0, Direction::Response, 2.0);
        assert_eq!(bench.recorded.samples_of("response_s"), [1.0]);
        assert_eq!(bench.wakes(), 4.0);
        assert_eq!(bench.requested(), [0]);
        bench.now_finish(4.5);
        assert_eq!(
            (bench.recorded.sum_of("unfinished"), bench.recorded.open_of("response_s")),
            (1.0, &[0.5][..])
        );
    }

    #[test]
    fn exponential_sizes_keep_their_mean() {
        let mut user = RequestResponse::new(
            &params::<RequestResponse>(r#""sizes": "exponential", "response": "10kB""#),
            Rng::stream(1, "test"),
        );
        let mean = (0..100_000).map(|_| user.draw(Instant::ZERO).response as f64).sum::<f64>() / 1e5;
        assert!((mean / 10_000.0 - 1.0).abs() < 0.015, "{mean}");
    }
}
