//! Users of applications: what arrives for them, and what they command.

use super::Reference;
use crate::application::Event;
use crate::control::Post;
use crate::engine::users::Notification;

impl Reference {
    /// The time of a user has come.
    pub(super) fn wake_user(&mut self, user: usize) {
        let event = self.users.wake(user);
        self.tell_user(user, event);
    }

    /// A data packet has reached the receiver of a flow: tells its user, if it has one, what is complete by now.
    pub(super) fn tell_owner(&mut self, flow: usize) {
        let Some(Notification { user, event, times }) = self.users.notification(flow, &self.flows[flow])
        else {
            return;
        };
        (0..times).for_each(|_| self.tell_user(user, event));
    }

    fn tell_user(&mut self, user: usize, event: Event) {
        let actions = self.users.tell(user, event, self.now);
        for &action in &actions {
            match self.users.order(user, action) {
                Ok((flow, order)) => {
                    self.users.carry_out(flow, order, &mut self.flows[flow], self.now);
                    self.send_what_it_may(flow);
                }
                Err(at) => self.user_timers.set(user, at),
            }
        }
        self.users.done(actions);
    }

    fn send_what_it_may(&mut self, flow: usize) {
        let Self { flows, channels, events, sent, now, .. } = self;
        flows[flow].transmit(*now, Post { channels, events }, sent);
        self.forward_sent();
        self.set_timer(flow);
    }
}
