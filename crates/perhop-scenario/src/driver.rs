//! What runs a scenario, and what of it can act there.

use perhop_core::aqm::AqmParams;
use perhop_sim::TransportSpec;

use crate::error::Problem;
use crate::format::Scenario;

/// What runs a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// The simulator.
    Simulator,
    /// The data plane, with the kernel's TCP at both ends.
    RealPackets,
}

/// The kernel's setting that says whether TCP asks for ECN.
const TCP_ECN: &str = "net.ipv4.tcp_ecn";

impl Scenario {
    /// Checks that `ecn` has somebody to tell of congestion, wherever it is set.
    pub(crate) fn check_for(&self, driver: Driver) -> Result<(), Problem> {
        for port in self.ports() {
            for (key, _) in port.queue.aqms(None).into_iter().filter(|(_, rule)| notifies(rule)) {
                let tcp = || {
                    let (outline, link) = (self.outline(), port.name());
                    outline.passing(&link).any(|(_, flow)| matches!(flow.transport, TransportSpec::Tcp(_)))
                };
                let text = match driver {
                    Driver::Simulator => {
                        "no simulated sender is ECN-capable, so nothing would be marked: leave this key out. It acts on \
                         real packets, in `perhop live` and in perhop-router"
                    }
                    Driver::RealPackets if !tcp() => {
                        "only TCP is ECN-capable, and no TCP flow passes this link: leave this key out"
                    }
                    Driver::RealPackets if !self.kernel_asks_for_ecn() => {
                        "the kernel's TCP does not ask for ECN by itself, so nothing would be marked: leave this key out, or \
                         write [live] sysctl = { \"net.ipv4.tcp_ecn\" = 1 }"
                    }
                    Driver::RealPackets => continue,
                };
                return Err(port.at(&format!("{key}.ecn"), text.into()));
            }
        }
        Ok(())
    }

    /// Whether connections ask for ECN: 1, or with Accurate ECN 3 and 4; 2, the kernel's default, only grants it.
    fn kernel_asks_for_ecn(&self) -> bool {
        self.live.sysctl.get(TCP_ECN).is_some_and(|value| ["1", "3", "4"].contains(&value.to_string().trim()))
    }
}

/// Whether a rule is to mark packets: all that can have the key `ecn`, which only few rules lack.
fn notifies(rule: &AqmParams) -> bool {
    serde_json::to_value(rule).is_ok_and(|table| table["ecn"] == true)
}
