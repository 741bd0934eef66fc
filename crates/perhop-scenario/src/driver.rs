//! What runs a scenario, and what of it can act there.

use perhop_core::aqm::AqmParams;
use perhop_sim::application::Carrier;
use perhop_sim::transport::tcp::TcpEcn;
use perhop_sim::{FlowSpec, TransportSpec};

use crate::check::QueuePlace;
use crate::error::{KeyPart, Problem};
use crate::format::{Flow, Scenario, Setting, Transport};
use crate::notices::{Outline, Spot};

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
    /// Checks that on real packets links are constant, and a flow can react to the marks of each AQM with `ecn`.
    pub(crate) fn check_for(&self, driver: Driver) -> Result<(), Problem> {
        if driver == Driver::Simulator {
            return Ok(());
        }
        self.check_written_out()?;
        self.check_no_classes()?;
        self.check_constant_media()?;
        self.check_populations_are_tcp()?;
        self.check_applications_send_streams()?;
        self.check_no_replay()?;
        self.check_dispatch()?;
        self.check_kernels_ecn()?;
        self.check_l4s()?;
        for port in self.queues() {
            for key in marking_rules(&port) {
                let (outline, link) = (self.outline(), port.name());
                let tcp = outline
                    .passing(Spot::link(&link))
                    .any(|(_, flow)| matches!(flow.transport, TransportSpec::Tcp(_)));
                let text = if !tcp {
                    "only TCP is ECN-capable, and no TCP flow passes this link: leave this key out"
                } else if !self.kernel_asks_for_ecn() {
                    "the kernel's TCP does not ask for ECN by itself, so nothing would be marked: leave this key out, give the \
                     TCP flows `ecn = \"classic\"`, or write [live] sysctl = { \"net.ipv4.tcp_ecn\" = 1 }"
                } else {
                    continue;
                };
                return Err(port.at(&format!("{key}.ecn"), text.into()));
            }
        }
        Ok(())
    }

    /// The laboratory is built link by link, and each group between two routers.
    fn check_written_out(&self) -> Result<(), Problem> {
        if self.topology.is_some() {
            let text = "on real packets networks are small: write their links as [links.NAME] tables, or simulate the scenario";
            return Err(Problem::at([KeyPart::Key("topology".into())], text));
        }
        let Some(number) = self.flows.iter().position(|group| group.between.is_some()) else {
            return Ok(());
        };
        let path = [KeyPart::Key("flows".into()), KeyPart::Index(number), KeyPart::Key("between".into())];
        let text =
            "on real packets a group is between two routers: write `from` and `to`, or simulate the scenario";
        Err(Problem::at(path, text))
    }

    /// Hosts open a connection for each flow that comes and goes.
    fn check_populations_are_tcp(&self) -> Result<(), Problem> {
        let is_other =
            |group: &Flow| group.arrivals.is_some() && !matches!(group.transport, Transport::Tcp(_));
        let Some(number) = self.flows.iter().position(is_other) else { return Ok(()) };
        let path = [KeyPart::Key("flows".into()), KeyPart::Index(number), KeyPart::Key("transport".into())];
        let text = "on real packets flows that come and go are TCP connections: take a transport such as { tcp = \"linux\" }, or \
                    simulate the scenario";
        Err(Problem::at(path, text))
    }

    /// Hosts run applications over TCP, and sources of datagrams.
    fn check_applications_send_streams(&self) -> Result<(), Problem> {
        for (place, flow) in self.flows.iter().enumerate() {
            let Some(application) = &flow.application else { continue };
            if !matches!(application.carrier(), Carrier::Datagrams { .. }) {
                continue;
            }
            let text = format!(
                "`{}` runs in the simulator only: take `web`, `video`, `request-response` or `call`, which run on real packets, \
                 too, or flows with `udp = \"on-off\"`",
                application.name()
            );
            let path =
                [KeyPart::Key("flows".into()), KeyPart::Index(place), KeyPart::Key("application".into())];
            return Err(Problem::at(path, text));
        }
        Ok(())
    }

    /// Packets are replayed in the simulator alone.
    fn check_no_replay(&self) -> Result<(), Problem> {
        let Some(place) = self.flows.iter().position(|flow| flow.replay.is_some()) else { return Ok(()) };
        let text =
            "flows replay packets in the simulator only: leave this group out, or simulate the scenario";
        let path = [KeyPart::Key("flows".into()), KeyPart::Index(place), KeyPart::Key("replay".into())];
        Err(Problem::at(path, text))
    }

    /// Hosts have the jitter of their own system.
    fn check_dispatch(&self) -> Result<(), Problem> {
        let Some(place) = self.flows.iter().position(|flow| flow.dispatch_jitter.is_some()) else {
            return Ok(());
        };
        let text = "on real packets hosts have the jitter of this system: leave this key out, or simulate the scenario";
        let path =
            [KeyPart::Key("flows".into()), KeyPart::Index(place), KeyPart::Key("dispatch-jitter".into())];
        Err(Problem::at(path, text))
    }

    /// A kernel asks for ECN for all connections of a host or for none.
    fn check_kernels_ecn(&self) -> Result<(), Problem> {
        let tcp =
            || self.flows.iter().enumerate().filter(|(_, flow)| matches!(flow.transport, Transport::Tcp(_)));
        let Some((_, first)) = tcp().next() else { return Ok(()) };
        let Some((place, other)) = tcp().find(|(_, flow)| flow.ecn != first.ecn) else { return Ok(()) };
        let text = format!(
            "the kernel uses ECN in one way for all its connections, and `{}` differs from `{}`: give all TCP flows the \
             same, or leave the key out",
            other.name, first.name
        );
        let path = [KeyPart::Key("flows".into()), KeyPart::Index(place), KeyPart::Key("ecn".into())];
        Err(Problem::at(path, text))
    }

    /// Neither Linux's own congestion controls nor the datagrams of hosts are ECT(1).
    fn check_l4s(&self) -> Result<(), Problem> {
        let Some(place) = self.flows.iter().position(|flow| flow.ecn == TcpEcn::L4s) else { return Ok(()) };
        let text = "Linux sends ECT(1) only with TCP Prague, which is not part of it: take `ecn = \"accurate\"`, or the simulator";
        let path = [KeyPart::Key("flows".into()), KeyPart::Index(place), KeyPart::Key("ecn".into())];
        Err(Problem::at(path, text))
    }

    /// The kernel's settings for ECN that stand for the flows' `ecn`, unless the scenario itself sets them.
    pub fn kernels_ecn(&self) -> Option<(&'static str, &'static str)> {
        let ecn = self.flows.iter().map(|flow| flow.ecn).find(|ecn| !ecn.is_off())?;
        let asked = match ecn {
            TcpEcn::Off => return None,
            TcpEcn::Classic => "1",
            TcpEcn::Accurate | TcpEcn::L4s => "3",
        };
        (!self.live.sysctl.contains_key(TCP_ECN)).then_some((TCP_ECN, asked))
    }

    /// Whether connections ask for ECN: 1, or with Accurate ECN 3 and 4; 2, the kernel's default, only grants it.
    fn kernel_asks_for_ecn(&self) -> bool {
        let set = self.live.sysctl.get(TCP_ECN);
        let asks = |value: &Setting| ["1", "3", "4"].contains(&value.to_string().trim());
        set.map_or_else(|| self.kernels_ecn().is_some(), asks)
    }

    /// Rules that mark packets although no flow that passes their link is capable; each with what to write instead.
    pub(crate) fn idle_marks(
        &self,
        port: &QueuePlace<'_>,
        link: Spot<'_>,
        outline: &Outline,
    ) -> Vec<(String, String)> {
        let is_capable = |flow: &FlowSpec| match flow.transport {
            TransportSpec::Tcp(_) => !flow.tcp_ecn.is_off() || self.kernel_asks_for_ecn(),
            TransportSpec::Udp(_) | TransportSpec::Rap(_) | TransportSpec::Tfrc(_) => flow.ecn.is_capable(),
        };
        if outline.passing(link).any(|(_, flow)| is_capable(flow)) {
            return Vec::new();
        }
        let text = "no flow that passes this link is ECN-capable, so the rule drops what it would mark: give TCP flows \
                    `ecn = \"classic\"`, or leave this key out";
        marking_rules(port).into_iter().map(|key| (format!("{key}.ecn"), text.to_owned())).collect()
    }
}

/// The rules of a port that mark packets, by key. All that can have the key `ecn`, which only few rules lack.
fn marking_rules(port: &QueuePlace<'_>) -> Vec<String> {
    let marks = |rule: &AqmParams| serde_json::to_value(rule).is_ok_and(|table| table["ecn"] == true);
    let rules = port.scheduler().aqms(None).into_iter();
    rules.filter(|(_, rule)| marks(rule)).map(|(key, _)| key).collect()
}
