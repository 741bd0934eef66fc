//! Changes of a running network, between two steps: see [`Stepping`](crate::Stepping).

use perhop_core::measure::PortView;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::units::UnitError;
use perhop_core::{Bitrate, Duration};

use super::Reference;
use super::link::Link;
use crate::flow::Flow;
use crate::transport::tcp::congestion::ForeignCongestionParams;
use crate::transport::udp::UdpParams;

impl Reference {
    /// A link with a queue under an AQM as it is now.
    pub(crate) fn view(&self, link: usize) -> PortView<'_> {
        self.links[link].view()
    }

    /// A flow of the network.
    pub(crate) fn flow(&self, number: usize) -> &Flow {
        &self.flows[number]
    }

    /// The AQMs of links have the parameters that these queues say: of all these links or, after an error, of none.
    ///
    /// # Errors
    /// The link, and the key that cannot change, or that the parameters are those of another AQM.
    pub(crate) fn retune(&mut self, queues: &[(usize, &SchedulerParams)]) -> Result<(), (usize, UnitError)> {
        let retuned = |&(number, queue): &(usize, &SchedulerParams)| {
            let mut link = self.links[number].clone();
            link.retune(queue).map(|()| (number, link)).map_err(|problem| (number, problem))
        };
        let retuned: Vec<(usize, Link)> = queues.iter().map(retuned).collect::<Result<_, _>>()?;
        for (number, link) in retuned {
            self.links[number] = link;
        }
        Ok(())
    }

    /// A link has this rate and this delay for the packets that it begins to send from now on.
    pub(crate) fn change_link(&mut self, number: usize, rate: Bitrate, delay: Duration) {
        self.links[number].change(rate, delay);
    }

    /// A flow over UDP sends at the rate of these parameters from now on.
    pub(crate) fn change_rate(&mut self, number: usize, params: &UdpParams) {
        self.flows[number].sender.set_rate(params, self.now);
        self.set_timer(number);
    }

    /// The congestion control of a flow, which is implemented outside, has these parameters from now on.
    pub(crate) fn change_control(&mut self, number: usize, params: &ForeignCongestionParams) {
        self.flows[number].sender.set_control(params);
    }
}
