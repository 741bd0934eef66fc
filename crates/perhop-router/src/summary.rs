//! The summary at the end of a run.

use std::fmt;
use std::sync::atomic::Ordering;

use perhop_core::Color;
use perhop_core::meter::MeterCounts;
use perhop_live::{Loss, Plane, Portless, Report};

use crate::capture::CaptureStatus;
use crate::metrics::Reloads;
use crate::plan::{SIDES, class_and_direction};

/// A run in a dozen lines.
pub struct Summary<'a> {
    pub plane: &'a Plane,
    pub report: &'a Report,
    pub names: &'a [String; 2],
    pub reloads: &'a Reloads,
    /// Lines of the log that were dropped.
    pub unlogged: u64,
    /// How the capture did, if there was one.
    pub captured: Option<CaptureStatus>,
}

/// Why packets of an interface are dropped that offload made of many, and what helps.
pub struct Merged<'a>(pub &'a str);

impl fmt::Display for Merged<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "packets that offload merged and that cannot be split, such as fragments; turn it off here (ethtool -K {} gro off lro off) \
             and at a sender on this host (ethtool -K DEVICE tso off gso off ufo off)",
            self.0
        )
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.devices(f)?;
        self.classes(f)?;
        self.meters(f)?;
        self.losses(f)?;
        let late = |share| self.report.lateness.quantile(share).as_secs_f64() * 1e6;
        write!(
            f,
            "lateness, us: {:.0} (p50), {:.0} (p99), {:.0} (p99.9), {:.0} (worst)",
            late(0.5),
            late(0.99),
            late(0.999),
            late(1.0)
        )?;
        let loaded = [&self.reloads.applied, &self.reloads.refused].map(|n| n.load(Ordering::Relaxed));
        if loaded != [0; 2] {
            write!(f, "\nreloads: {} applied, {} refused", loaded[0], loaded[1])?;
        }
        if self.unlogged > 0 {
            write!(f, "\nlog: {} lines dropped: they were not read in time", self.unlogged)?;
        }
        if let Some(CaptureStatus { written, missed, .. }) = self.captured {
            write!(f, "\ncaptured: {written} packets, {missed} missed")?;
        }
        Ok(())
    }
}

impl Summary<'_> {
    fn devices(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (came, left)) in self.plane.counters().devices().iter().enumerate() {
            write!(
                f,
                "{} ({}): received {} packets ({} bytes), sent {} ({})",
                self.names[number], SIDES[number], came.packets, came.bytes, left.packets, left.bytes
            )?;
            let aside = &self.report.aside[number];
            if aside.passed.packets > 0 {
                write!(f, "; passed {} frames that are not IP", aside.passed.packets)?;
                if aside.unread > 0 {
                    write!(f, ", {} of them with tags, labels or a session", aside.unread)?;
                }
            }
            writeln!(f)?;
            let name = &self.names[number];
            if aside.merged > 0 {
                writeln!(f, "  dropped {}: {}", aside.merged, Merged(name))?;
            }
            let others = [
                (aside.too_long, "longer than the interfaces' MTU"),
                (aside.overrun, "before they were read: the router was too slow"),
                (aside.unpassed, "not IP, that the other device did not accept"),
            ];
            for (frames, why) in others.into_iter().filter(|(frames, _)| *frames > 0) {
                writeln!(f, "  dropped {frames} frames {why}")?;
            }
        }
        Ok(())
    }

    fn classes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, counts) in self.plane.streams().filter(|(_, counts)| counts.arrived.packets > 0) {
            let (class, direction) = class_and_direction(name);
            let dropped: u64 = counts.dropped.iter().sum();
            write!(
                f,
                "{class} ({direction}): {} packets, {} sent, {dropped} dropped",
                counts.arrived.packets, counts.delivered.packets
            )?;
            if counts.marked != [0; 3] {
                let marked =
                    Color::ALL.map(|color| format!("{} {}", counts.marked[color.index()], color.name()));
                write!(f, "; marked {}", marked.join(", "))?;
            }
            if counts.policed != [0; 3] {
                write!(f, "; {} dropped by meters", counts.policed.iter().sum::<u64>())?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    fn meters(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for link in self.plane.link_totals() {
            for (name, MeterCounts { arrived, passed, policed }) in &link.meters {
                let [arrived, policed] = [arrived, policed].map(|counts| counts.iter().sum::<u64>());
                let passed = Color::ALL.map(|color| format!("{} {}", passed[color.index()], color.name()));
                let passed = passed.join(", ");
                writeln!(
                    f,
                    "meter {name} ({}): {arrived} packets, passed {passed}, {policed} dropped",
                    link.name
                )?;
            }
        }
        Ok(())
    }

    fn losses(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = self.plane.counters();
        let lost =
            Loss::all().map(|why| (why.name(), counters.lost(why))).filter(|(_, packets)| *packets > 0);
        let lost: Vec<String> = lost.map(|(why, packets)| format!("{packets} {why}")).collect();
        writeln!(f, "lost: {}", if lost.is_empty() { "none".into() } else { lost.join(", ") })?;
        for why in Portless::ALL {
            match (self.plane.counters().without_ports(why), why) {
                (0, _) => {}
                (packets, Portless::Fragment) => {
                    writeln!(f, "classified without ports: {packets} fragments whose first one is unknown")?;
                }
                (packets, Portless::Hidden) => {
                    writeln!(f, "classified without ports: {packets} with too many extension headers")?;
                }
            }
        }
        if self.report.unsent > 0 {
            writeln!(f, "not accepted by a device: {}", self.report.unsent)?;
        }
        let inside = self.plane.inside();
        if inside > 0 {
            writeln!(f, "still in the router: {inside}")?;
        }
        Ok(())
    }
}
