//! Runs a scenario file on real packets and prints what each group got:
//! `lab SCENARIO.toml [SEED] [tun|packet]`.

use std::sync::atomic::AtomicBool;

use perhop_lab::Joint;
use perhop_scenario::{Driver, Folder, Scenario};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: lab SCENARIO.toml [SEED] [tun|packet]")?;
    let seed = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let joint = match arguments.next().as_deref() {
        None => None,
        Some("tun") => Some(Joint::Tun),
        Some("packet") => Some(Joint::Packet),
        Some(_) => return Err("hosts are joined by tun or packet".into()),
    };
    let text = std::fs::read_to_string(&path)?;
    let scenario = Scenario::from_toml_for(&text, &path, Driver::RealPackets, &Folder::of(&path))?;
    let options = perhop_lab::Options { seed, real_time: true, watch: None, die_with_parent: false, joint };
    let run = perhop_lab::run(&scenario, options, &AtomicBool::new(false), &mut |_| {})?;
    let mut flows = run.outcome.flows.iter();
    for class in scenario.classes() {
        let members: Vec<f64> =
            flows.by_ref().take(class.flows as usize).map(|flow| flow.throughput_bps).collect();
        println!(
            "{}: {:.3} Mbit/s each",
            class.name,
            members.iter().sum::<f64>() / members.len() as f64 / 1e6
        );
    }
    for application in &run.outcome.applications {
        println!("{}: {:?}", application.name, application.measures);
    }
    for link in &run.outcome.links {
        println!(
            "{}: utilization {:.4}, queue {:.1} packets",
            link.name, link.utilization, link.mean_queue_packets
        );
    }
    println!("{:#?}", run.report);
    Ok(())
}
