"""The judges of each claim on the figures and on all scenarios, with its readings and other rules."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from perhop.statistics.judging import above, at_least, at_most, below, near
from perhop.studies import judges
from perhop.studies.bouras import judges as by
from perhop.studies.bouras.common import FLOWS, LARGE, TSW, groups
from perhop.studies.bouras.judges import ALL_FLOWS, PHASES, PROPORTION, SCENARIOS, STEADY, Case
from perhop.studies.judges import Judge, Judges, Numbers, differences, grouped, level, levels, variants

COMPUTED = (
    "Computations of a flow's marking probability for each packet: {:.4}; TSW2CM computes a rate for each."
)
KEPT_PARTS = {"": by.KEPT, "95 %": 0.95, "100 %": 1.0}
"""From which part on a flow has its contract."""
WITHIN = {"": PROPORTION, "within 10 %": 0.1, "within 50 %": 0.5}
"""The distance from its part up to which a group's share is in proportion."""


def fig2(case: Case) -> Mapping[str, Judge | Judges]:
    """The judges of Figure 2's claims."""
    windows = differences("window", {n: case.pair(1, flow=n) for n in ALL_FLOWS}).reads("{name}: {value}")
    trips, timeouts = level("trip_ratio", case.ours(1)), level("timeouts", case.theirs(1))
    return {
        "larger-windows": windows.all(above).said(
            "Mean window, packets, proposed − baseline, by flow: {:+.1}. Mean over flows: {mean:.1}.",
            mean=case.change("mean_window", 1),
        ),
        "clearer-separation": {
            "": by.compared(case, "window_spread", "Spread of mean window over contract", below),
            "ratio of neighbouring levels": by.levels_apart(
                case, "Ratio of mean windows of neighbouring groups", lambda low, high: high / low
            ),
            "packets between neighbouring levels": by.levels_apart(
                case, "Packets between mean windows of neighbouring groups", lambda low, high: high - low
            ),
        },
        "bands-in-proportion": variants(lambda part: by.windows_in_proportion(case, part), WITHIN),
        "no-slow-start": {"": by.no_slow_start(case), "in most runs": by.no_slow_start(case, mostly=True)},
        "baseline-slow-starts": timeouts.all(above).said(
            "Timeouts of a flow: {both:.2}.", both=case.change("timeouts", 1)
        ),
        "same-round-trip": variants(
            lambda most: trips.all(at_most, most).said("Longest over shortest mean round trip: {}."),
            {"": by.EQUAL_TRIPS, "1.01": 1.01, "1.1": 1.1},
        ),
        "fewer-computations": variants(
            lambda most: computations(case).all(at_most, most).said(COMPUTED),
            {"": by.FEWER, "half": 0.5, "a hundredth": 0.01},
        ),
    }


def fig3(case: Case) -> Mapping[str, Judge | Judges]:
    """The judges of Figure 3's claims."""
    distance = "Distance of mean windows to theory, packets"
    return {
        "nearer-to-theory": {
            "capacity times propagation": by.compared(case, "window_error", distance, below),
            "equation 1 as measured": by.compared(case, "window_error_by_equation_1", distance, below),
        },
        "better-utilization": by.compared(case, "utilization", "Use of the path", above, digits=4),
        "differentiation": by.fair(case, STEADY[:1]),
        "contracts-met-at-50": variants(lambda kept: by.contracts_met(case, 2, kept), KEPT_PARTS),
        "large-fail-at-50": variants(lambda kept: by.large_fail(case, 2, kept), KEPT_PARTS),
    }


def fig4(case: Case) -> Mapping[str, Judge | Judges]:
    """The judges of Figure 4's claims."""
    return {
        "differentiation-kept": by.fair(case, STEADY[2:]),
        "large-fail": variants(lambda kept: by.large_fail(case, 3, kept), KEPT_PARTS),
        "contracts-met": by.contracts_met(case, 3),
        "baseline-unfair": {
            "out of proportion": by.out_of_proportion(case, STEADY[2]),
            "farther from proportion than the proposal": by.nearer(case, STEADY[2:]),
            "out by more than 10 %": by.out_of_proportion(case, STEADY[2], 0.1),
            "out by more than 50 %": by.out_of_proportion(case, STEADY[2], 0.5),
        },
    }


def fig5(case: Case) -> Mapping[str, Judge | Judges]:
    """The judges of Figure 5's claims."""
    spread, use = case.in_phases("burst_spread"), case.in_phases("burst_use")
    on, off = (case.ours(4, bursts=name) for name in PHASES)
    same = {rate: ({**on, "contract": rate}, {**off, "contract": rate}) for rate in groups(case.rates)}
    large = {f"{n} {name}": case.pair(4, bursts=name, flow=n) for n in LARGE for name in PHASES}
    ours, theirs = case.pair(4, bursts="on")
    return {
        "proportion-through-bursts": {
            **variants(lambda part: by.proportional(case, by.BURSTS, part), WITHIN),
            "the same part with bursts on and off": differences("burst_share", same)
            .reads("{name}: {value}")
            .all(near, 0, 0.1)
            .said("Rate over the part in proportion, bursts on − off, by contract: {:+.2}."),
        },
        "advantages-through-bursts": (spread.all(below) & use.all(above)).said(
            "Spread of rate over contract with bursts {:.2}. Use of what EF traffic leaves {use}.", use=use
        ),
        "order-through-bursts": by.ordered(case, by.BURSTS),
        "uses-what-is-free": {
            **variants(
                lambda full: by.uses_what_is_free(case, full), {"": by.FULL, "95 %": 0.95, "99 %": 0.99}
            ),
            "without the first 10 s after a change": by.uses_what_is_free(case, by.FULL, "settled_use"),
        },
        "contracts-kept": variants(
            lambda kept: (
                by.by_flow("burst_over_contract", on, ALL_FLOWS)
                .all(at_least, kept)
                .said("Rate over contract while bursts are on, by flow: {:.2}.")
            ),
            {"": by.KEPT, "95 %": 0.95},
        ),
        "performs-poorly": {
            "by itself": by.performs_poorly(case),
            "against the proposal": (
                spread.all(below) & use.all(above) & differences("burst_rate", large).all(above)
            ).said(
                "Spread of rate over contract with bursts {:.2}; use {use}; rates of flows 8 to 10, "
                "proposed − baseline, Mbit/s: {large:+.2}.",
                use=use,
                large=differences("burst_rate", large).reads("{name}: {value}"),
            ),
            "by itself, 95 %": by.performs_poorly(case, 0.95),
        },
        "baseline-cannot": variants(
            lambda met: by.baseline_cannot(case, met),
            {"not all of them": FLOWS - 1, "not most of them": FLOWS // 2 - 1},
        ),
        "baseline-poor": {
            **variants(
                lambda part: by.baseline_poor(case, part),
                {"": 0.5, "a quarter": 0.25, "three quarters": 0.75},
            ),
            "twice the proposal's": judges.difference("burst_spread", theirs, ours, factor=2)
            .reads("{second} against {first}")
            .all(above)
            .said("Spread of rate over contract while bursts are on: {:.2}."),
        },
    }


def general(case: Case) -> Mapping[str, Judge | Judges]:
    """The judges of the claims on all scenarios."""
    steps = grouped({n: by.group_steps("window", [case.ours(n)], case.rates) for n in SCENARIOS})
    means = {n: by.group_means("window", case.ours(n), case.rates) for n in SCENARIOS}
    sums = levels("windows_over_product", {n: case.ours(n) for n in SCENARIOS}).reads("{name}: {value}")
    inside = {f"scenario {n}": by.parts("in_share", case.ours(n), case.rates) for n in SCENARIOS}
    return {
        "less-overhead": {
            "marking a packet": marks_for_less(case, by.LESS, whole=False),
            "with windows and probabilities": marks_for_less(case, by.LESS),
            "a tenth": marks_for_less(case, 0.1),
            "less at all": marks_for_less(case, 1.0),
        },
        "much-higher-utilization": {
            "in scenario 1": by.much_higher(case, (1,)),
            "on 50 Mbit/s": by.much_higher(case, (2, 3)),
            "under bursts": by.much_higher(case, (4,)),
            "2 % in scenarios 2 to 4": by.much_higher(case, (2, 3, 4), 0.02),
            "10 % in scenarios 2 to 4": by.much_higher(case, (2, 3, 4), 0.1),
        },
        "sum-of-windows": variants(
            lambda part: sums.all(near, 1, part).said(
                "Sum of mean windows over rate times round trip, by scenario: {}."
            ),
            {"": by.PRODUCT, "5 %": 0.05, "20 %": 0.2},
        ),
        "in-proportion": {
            **variants(lambda part: by.proportional(case, by.EVERYWHERE, part), WITHIN),
            "nearer than under the baseline": by.nearer(case, by.EVERYWHERE),
        },
        "colored-by-contract": {
            **variants(
                lambda most: by.colored_by_contract(case, most),
                {"": by.COLORED, "less at all": 1, "a quarter as much": 0.25},
            ),
            "in proportion within 25 %": grouped(inside, "{name} {all}")
            .all(near, 1, PROPORTION)
            .said("IN packets over the part in proportion, by contract: {:.2}."),
        },
        "different-levels": steps.all(above).said(
            "Mean window, packets, by contract: {means:.1f}.", means=grouped(means, "scenario {name} {all}")
        ),
        "eliminates-slow-starts": {
            "": by.eliminates_slow_starts(case, SCENARIOS),
            "without scenario 4": by.eliminates_slow_starts(case, (1, 2, 3)),
        },
        "fair-distribution": by.fair(case, by.EVERYWHERE),
        "both-less-overhead": variants(
            lambda part: both_for_less(case, part), {"": by.LESS, "a tenth": 0.1, "less at all": 1.0}
        ),
        "improves": {
            "in every scenario": by.improves(case, len(SCENARIOS)),
            "in most scenarios": by.improves(case, by.MOST),
        },
        "smooth": {
            "where conditions change": by.smoother(case, (3, 4)),
            "in every scenario": by.smoother(case, SCENARIOS),
        },
    }


BY_STUDY: Mapping[str, Callable[[Case], Mapping[str, Judge | Judges]]] = {
    "fig2": fig2,
    "fig3": fig3,
    "fig4": fig4,
    "fig5": fig5,
    "general": general,
}
"""The judges of each study's claims on a case."""

# ---------------------------------------------------------------- overhead


@functools.cache
def costs() -> dict[str, Any]:
    """The costs of each mechanism for a packet: the record `costs.toml` that a benchmark writes."""
    return tomllib.loads(files("perhop.studies").joinpath("costs.toml").read_text(encoding="utf-8"))


def instructions(kind: str, name: str, what: str = "per_packet") -> float:
    """Instructions of a block ("meter", "twam") for a packet, an interval or an update."""
    return float(costs()[kind][name][f"instructions_{what}"])


def extra(rule: str) -> float:
    """Instructions of a drop rule for a packet beyond those of the queue itself."""
    return instructions("aqm", rule) - instructions("aqm", "drop-tail")


def computations(case: Case) -> Numbers:
    """Computations of a flow's marking probability for each packet of scenario 1."""
    return level("computations", case.ours(1))


def marks_for_less(case: Case, part: float, *, whole: bool = True) -> Judge:
    """Judge whether TWAM takes at most this part of TSW2CM's instructions for a packet.

    Args:
        case: What it is judged on.
        part: Of TSW2CM's instructions.
        whole: What an interval takes counts, too, spread over its packets.
    """
    theirs = instructions("meter", TSW)
    found = marking(case, whole=whole).all(at_most, part * theirs)
    return found.said(f"Instructions for a packet: {{:.1}} against {theirs:g}.")


def both_for_less(case: Case, part: float) -> Judge:
    """Judge whether both mechanisms take at most this part of their baselines' instructions."""
    theirs, static = instructions("meter", TSW), extra("wred-out")
    update = instructions("aqm", "dwred", "per_update")
    drop = computations(case).scaled(lambda value: extra("dwred") + update * (value / FLOWS))
    return (marking(case).all(at_most, part * theirs) & drop.all(at_most, part * static)).said(
        f"Instructions for a packet: TWAM {{:.1}}, TSW2CM {theirs:g}; of the drop rule alone: dynamic WRED "
        f"{{drop:.1}}, static WRED {static:.1f}.",
        drop=drop,
    )


def marking(case: Case, *, whole: bool = True) -> Numbers:
    """TWAM's instructions for a packet; each flow's windows are read so often for each packet."""
    packet = instructions("meter", "twam")
    interval = instructions("meter", "twam", "per_interval") if whole else 0.0
    return computations(case).scaled(lambda value: packet + interval * (value / FLOWS))
