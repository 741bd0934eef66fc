//! Users of applications: what arrives for them, and what they command.

use super::engine::Reference;
use crate::application::UserEvent;
use crate::control::Post;
use crate::engine::users::Notification;
use crate::packet::SimPacket;

impl Reference {
    /// Hands a flow's user, if it has one, what is complete now that a data packet has reached the receiver.
    pub(super) fn tell_owner(&mut self, flow: usize) {
        let Some(Notification { user, event, times }) = self.users.notification(flow, &self.flows[flow])
        else {
            return;
        };
        (0..times).for_each(|_| self.tell_user(user, event));
    }

    /// Delivers a data packet to the receiver of a user's connection. It carries an ACK of the other
    /// direction. Its own ACK, if one is due at once, waits for what the user commands at this moment: data
    /// that is then sent carries it.
    pub(super) fn reach_receiver_of_connection(&mut self, number: usize, other: usize, packet: SimPacket) {
        if let Some(carried) = self.flows[number].unload_ack(packet.sequence())
            && let Some(ack) = self.flows[other].take_off(carried)
        {
            self.take_ack(other, ack);
        }
        let flow = &mut self.flows[number];
        let ack = flow.receive(packet.content(), self.now);
        let may_ride = flow.receiving.receiver.is_in_order();
        if let Some(ack) = ack.filter(|_| !may_ride) {
            self.send_ack(number, ack);
        }
        self.set_timer(number);
        self.leave(packet);
        let before = self.flows[other].carries_up_to();
        self.tell_owner(number);
        if let Some(ack) = ack.filter(|_| may_ride) {
            if self.flows[other].carries_up_to() == before {
                self.send_ack(number, ack);
            } else {
                self.flows[number].spare_ack(ack);
            }
        }
    }

    /// Lets the data that a flow may have sent carry an ACK of the other direction of its connection.
    pub(super) fn carry_ack(&mut self, number: usize) {
        let Some(other) = self.users.other_direction(number) else { return };
        let Ok([flow, of_other]) = self.flows.get_disjoint_mut([number, other]) else { return };
        if flow.carry_ack_of(of_other) {
            self.set_timer(other);
        }
    }

    /// Hands an event to a user, and carries out what it commands.
    pub(super) fn tell_user(&mut self, user: usize, event: UserEvent) {
        let actions = self.users.tell(user, event, self.now);
        for &action in &actions {
            match self.users.flow_of(user, action) {
                Ok(flow) => {
                    self.users.carry_out(flow, action, &mut self.flows[flow], self.now);
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
        self.carry_ack(flow);
        self.set_timer(flow);
    }
}
