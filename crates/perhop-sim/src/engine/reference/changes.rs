//! Changes of a running network, between two steps: see [`Stepping`](crate::Stepping).

use perhop_core::measure::PortView;
use perhop_core::units::UnitError;
use perhop_core::{Bitrate, Duration};

use super::engine::Reference;
use crate::engine::retuning::{ChangedPlace, Retuned};
use crate::flow::Flow;
use crate::transport::tcp::congestion::ForeignCongestionParams;
use crate::transport::udp::UdpParams;

impl Reference {
    /// Returns a link with a queue under an AQM as it is now.
    pub(crate) fn view(&self, link: usize) -> PortView<'_> {
        self.links[link].view()
    }

    pub(crate) fn flow(&self, number: usize) -> &Flow {
        &self.flows[number]
    }

    /// Changes the parameters of queues and meters: all of them or, after an error, none.
    ///
    /// # Errors
    /// The owner of the parameters, and the key that cannot change.
    pub(crate) fn retune(&mut self, changes: &[Retuned<'_>]) -> Result<(), (ChangedPlace, UnitError)> {
        let (mut links, mut flows, mut shared) = (Vec::new(), Vec::new(), self.shared_meters.clone());
        for change in changes {
            match *change {
                Retuned::Link(number, before, after) => {
                    let mut link = self.links[number].clone();
                    let retuned = link.retune(before, after, self.now);
                    retuned.map_err(|problem| (ChangedPlace::Link(number), problem))?;
                    links.push((number, link));
                }
                Retuned::Profile(number, after) => {
                    let mut sending = self.flows[number].sending.clone();
                    let retuned = sending.retune(after, self.now);
                    retuned.map_err(|problem| (ChangedPlace::Flow(number), problem))?;
                    flows.push((number, sending));
                }
                Retuned::Shared(number, params) => {
                    let retuned = shared[number].retune(params, Bitrate::MAX, self.now);
                    retuned.map_err(|problem| (ChangedPlace::Shared(number), problem))?;
                }
            }
        }
        self.shared_meters = shared;
        for (number, sending) in flows {
            self.flows[number].sending = sending;
        }
        let numbers: Vec<usize> = links.iter().map(|(number, _)| *number).collect();
        for (number, link) in links {
            self.links[number] = link;
        }
        for number in numbers {
            self.serve_retuned(number);
        }
        Ok(())
    }

    /// Sets the rate and the delay of a link, for the packets that it begins to send from now on.
    pub(crate) fn change_link(&mut self, number: usize, rate: Bitrate, delay: Duration) {
        self.links[number].change(rate, delay, self.now);
    }

    /// Lets a flow over UDP send at the rate of these parameters from now on.
    pub(crate) fn change_rate(&mut self, number: usize, params: &UdpParams) {
        self.flows[number].sender.set_rate(params, self.now);
        self.set_timer(number);
    }

    /// Sets the parameters of a flow's congestion control, which is implemented outside.
    pub(crate) fn change_control(&mut self, number: usize, params: &ForeignCongestionParams) {
        self.flows[number].sender.set_control(params);
    }
}
