//! How a packet travels: the few types and functions that one data packet and its ACK meet, in order.
//!
//! A packet in flight is a [`SimPacket`](crate::packet::SimPacket) of four words: the time, the flow and the
//! step of its route, its number, its label and service level. What else it carries waits at its flow
//! ([`Metadata`](crate::transport::metadata::Metadata)). Its route is a piece of one flat list of
//! [`Step`](crate::engine::setup::Step)s.
//!
//! ## In the reference engine
//!
//! Each line is an event at its own time. [`Reference`](crate::engine::reference) handles the next event,
//! which is one of these:
//!
//! 1. The sender's timer: [`Flow::transmit`](crate::flow::Flow::transmit) asks the transport
//!    ([`Source::transmit`](crate::transport::Source::transmit)), marks the packet if the meter is at the
//!    host, and puts it on the host's [`Wire`](crate::wire::Wire).
//! 2. A packet comes to a link: its meters judge it, and
//!    [`Port::offer`](perhop_core::Port::offer) asks scheduler, queue and AQM.
//! 3. The link is free: [`Port::serve`](perhop_core::Port::serve) takes the next packet, and the medium says
//!    when it arrives at the far end, or that it is lost. Lines 2 and 3 repeat for each link.
//! 4. The packet comes to the receiver's host: [`Flow::receive`](crate::flow::Flow::receive) counts it and
//!    returns the ACK, which takes lines 2 and 3 over its own route.
//! 5. The ACK comes to the sender's host: [`Flow::acknowledge`](crate::flow::Flow::acknowledge) gives it to
//!    the transport, and line 1 follows.
//!
//! ## In the batched engine
//!
//! Both engines have the same flows with their senders, receivers and wires, the same schedulers, AQMs and
//! meters, and the same media; but a FIFO whose AQM decides on arrival is computed ahead in the batched one,
//! around the same AQM. Each has its own links and queues of events, and its own order of work. Over one
//! link, a packet and its ACK pass nine places:
//!
//! 1. `Batched::run_links` in [the batched engine](crate::engine::batched) runs all links that are due in a
//!    window of the look-ahead.
//! 2. `Link::run` takes all packets that have come to a link, past its meters, into its queue; what leaves
//!    passes its medium.
//! 3. `Traffic::forward` puts a packet into the input of its next link, or gives it to its host.
//! 4. `Hosts::deliver` passes it over the wire to the receiver,
//! 5. which answers by its short way ([`Receiver::try_data`](crate::transport::Receiver)), if that is open,
//!    else as in the reference engine. The ACK goes into the input of its first link.
//! 6. to 9. The ACK takes 2 to 5, and reaches the sender ([`Source::try_ack`](crate::transport::Source)),
//!    whose new data goes into the input of its first link.
//!
//! A host may take what comes later than now, since nothing else can reach it before; where something can,
//! `Hosts` has the packet or the ACK wait for its time.
