//! A user by hand, without an engine.

use perhop_core::{Block, Duration, Instant, Rng};

use super::{Action, Application, Commands, Direction, Recorded, UserEvent};

/// A user, its commands, and what it has recorded.
pub(super) struct Bench<U> {
    pub(super) user: U,
    pub(super) warmup: Instant,
    pub(super) recorded: Recorded,
    actions: Vec<Action>,
    wake: Instant,
    now: Instant,
}

/// Parameters from the inside of a JSON table.
pub(super) fn params<U: Block>(inside: &str) -> U::Params {
    let params = serde_json::from_str(&format!("{{{inside}}}")).unwrap();
    U::check(&params).unwrap();
    params
}

impl<U: Application> Bench<U> {
    pub(super) fn new(params: &U::Params) -> Self {
        Self {
            user: U::new(params, Rng::stream(1, "applications/test/0")),
            warmup: Instant::ZERO,
            recorded: Recorded::default(),
            actions: Vec::new(),
            wake: Instant::NEVER,
            now: Instant::ZERO,
        }
    }

    fn call(&mut self, act: impl FnOnce(&mut U, &mut Commands<'_>)) {
        let Self { user, warmup, recorded, actions, now, .. } = self;
        let before = actions.len();
        act(user, &mut Commands { now: *now, warmup: *warmup, actions, recorded });
        for action in &self.actions[before..] {
            if let Action::WakeAt(at) = action {
                self.wake = *at;
            }
        }
    }

    pub(super) fn event(&mut self, event: UserEvent, seconds: f64) {
        self.now = Instant::ZERO + Duration::from_nanos((seconds * 1e9 + 0.5) as u64);
        self.call(|user, commands| user.on_event(event, commands));
    }

    pub(super) fn arrives(&mut self, connection: u32, direction: Direction, seconds: f64) {
        self.event(UserEvent::Arrived { connection, direction }, seconds);
    }

    /// Wakes it at the time that it named last; returns the time.
    pub(super) fn wakes(&mut self) -> f64 {
        let at = std::mem::replace(&mut self.wake, Instant::NEVER).as_secs_f64();
        self.event(UserEvent::Wakes, at);
        at
    }

    pub(super) fn now_finish(&mut self, seconds: f64) {
        self.now = Instant::ZERO + Duration::from_nanos((seconds * 1e9 + 0.5) as u64);
        self.finish();
    }

    pub(super) fn finish(&mut self) {
        self.call(U::finish);
    }

    /// All commands since the last call.
    pub(super) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    fn take(&mut self, wanted: Direction) -> Vec<(u32, u64)> {
        let mut taken = Vec::new();
        self.actions.retain(|action| match *action {
            Action::Grant { connection, direction, bytes } if direction == wanted => {
                taken.push((connection, bytes));
                false
            }
            _ => true,
        });
        taken
    }

    /// The connections on which something was asked for since the last call.
    pub(super) fn requested(&mut self) -> Vec<u32> {
        self.take(Direction::Request).into_iter().map(|(connection, _)| connection).collect()
    }

    /// The responses since the last call: connections and bytes.
    pub(super) fn responded(&mut self) -> Vec<(u32, u64)> {
        self.take(Direction::Response)
    }

    /// Everything that is under way arrives now, and what follows from that.
    pub(super) fn serve_all(&mut self, seconds: f64) {
        loop {
            let (requests, responses) = (self.requested(), self.responded());
            if requests.is_empty() && responses.is_empty() {
                return;
            }
            for connection in requests {
                self.arrives(connection, Direction::Request, seconds);
            }
            for (connection, _) in responses {
                self.arrives(connection, Direction::Response, seconds);
            }
        }
    }
}
