//! What happens at hosts: packets reach them, and their timers expire.

use super::engine::Reference;
use crate::control::Post;
use crate::engine::setup::Step;
use crate::flow::PacketSink;
use crate::packet::SimPacket;
use crate::transport::Ack;

impl PacketSink for Vec<SimPacket> {
    fn put(&mut self, packet: SimPacket) {
        self.push(packet);
    }
}

impl Reference {
    /// Takes a packet to a step of its route that is no link, to which it comes now.
    pub(super) fn reach_host(&mut self, packet: SimPacket) {
        let now = self.now;
        let number = packet.flow();
        let flow = &mut self.flows[number];
        match self.steps[packet.step()] {
            Step::Link(_) | Step::Metered(_) | Step::Away(_) => {
                unreachable!("links have queues of their own")
            }
            Step::Ingress => {
                if let Some((control, member)) = flow.control() {
                    let expected = flow.expected_by(packet.sequence());
                    self.controls.steering(control).on_ack(member, expected, now);
                }
                self.forward(packet.onward(), now);
            }
            Step::ReceiverWire => {
                let at = flow.receiving.inward.pass(packet.size(), now);
                self.forward(packet.onward(), at);
            }
            Step::SenderWire => {
                let at = flow.sending.inward.pass(packet.size(), now);
                self.forward(packet.onward(), at);
            }
            Step::Receiver => self.reach_receiver(number, packet),
            Step::Sender => {
                self.take_ack(number, Ack::of(packet.content()));
                self.leave(packet);
            }
        }
    }

    fn reach_receiver(&mut self, number: usize, packet: SimPacket) {
        if let Some(other) = self.users.other_direction(number) {
            return self.reach_receiver_of_connection(number, other, packet);
        }
        if let Some(ack) = self.flows[number].receive(packet.content(), self.now) {
            self.send_ack(number, ack);
        }
        self.set_timer(number);
        self.leave(packet);
        self.tell_owner(number);
    }

    pub(super) fn send_ack(&mut self, number: usize, ack: Ack) {
        let ack = self.flows[number].receiving.acknowledge(ack, self.now);
        self.populations.enter(number, 1);
        self.forward(ack, ack.at());
    }

    pub(super) fn take_ack(&mut self, number: usize, ack: Ack) {
        let Self { flows, channels, events, sent, .. } = self;
        flows[number].acknowledge(ack, self.now, Post { channels, events }, sent);
        self.forward_sent();
        self.carry_ack(number);
        self.set_timer(number);
    }

    /// Handles the timer of a flow, which expires now.
    pub(super) fn expire(&mut self, number: usize) {
        let Self { flows, channels, events, sent, .. } = self;
        let flow = &mut flows[number];
        flow.wake_sender(self.now);
        let late_ack = flow.wake_receiver(self.now);
        flow.transmit(self.now, Post { channels, events }, sent);
        sent.extend(late_ack);
        self.forward_sent();
        self.carry_ack(number);
        self.set_timer(number);
        self.end_flow_if_over(number);
    }

    /// Takes the packets that a host has just sent to the first steps of their routes.
    pub(super) fn forward_sent(&mut self) {
        let mut sent = std::mem::take(&mut self.sent);
        for packet in sent.drain(..) {
            self.populations.enter(packet.flow(), 1);
            self.forward(packet, packet.at());
        }
        self.sent = sent;
    }

    /// Sets the timer of a flow to the next time at which it does something by itself.
    pub(super) fn set_timer(&mut self, number: usize) {
        self.timers.set(number, self.flows[number].wake());
    }
}
