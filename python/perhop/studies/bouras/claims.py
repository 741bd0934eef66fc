"""What judges each claim on the figures and on all scenarios, with its readings and other rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from perhop.statistics.judging import above, below
from perhop.studies.bouras import judges as by
from perhop.studies.bouras import overhead
from perhop.studies.bouras.common import FLOWS
from perhop.studies.bouras.judges import BURSTS, EVERYWHERE, FULL, KEPT, SCENARIOS, STEADY

if TYPE_CHECKING:
    from perhop.studies.bouras.judges import Case
    from perhop.studies.judges import Judge, Judges


def fig2(case: Case) -> Mapping[str, Judge | Judges]:
    """The judges of Figure 2's claims."""
    return {
        "larger-windows": by.larger_windows(case),
        "clearer-separation": {
            "": by.compared(case, "window_spread", "Spread of mean window over contract", below),
            "ratio of neighbouring levels": by.levels_apart(
                case, "Ratio of mean windows of neighbouring groups", lambda low, high: high / low
            ),
            "packets between neighbouring levels": by.levels_apart(
                case, "Packets between mean windows of neighbouring groups", lambda low, high: high - low
            ),
        },
        "bands-in-proportion": {
            "": by.windows_in_proportion(case, by.PROPORTION),
            "within 10 %": by.windows_in_proportion(case, 0.1),
            "within 50 %": by.windows_in_proportion(case, 0.5),
        },
        "no-slow-start": {"": by.no_slow_start(case), "in most runs": by.no_slow_start(case, mostly=True)},
        "baseline-slow-starts": by.baseline_slow_starts(case),
        "same-round-trip": {
            "": by.same_round_trip(case, by.EQUAL_TRIPS),
            "1.01": by.same_round_trip(case, 1.01),
            "1.1": by.same_round_trip(case, 1.1),
        },
        "fewer-computations": {
            "": overhead.fewer_computations(case, by.FEWER),
            "half": overhead.fewer_computations(case, 0.5),
            "a hundredth": overhead.fewer_computations(case, 0.01),
        },
    }


def fig3(case: Case) -> Mapping[str, Judge | Judges]:
    """The judges of Figure 3's claims."""
    return {
        "nearer-to-theory": {
            "capacity times propagation": by.nearer_to_theory(case, "window_error"),
            "equation 1 as measured": by.nearer_to_theory(case, "window_error_by_equation_1"),
        },
        "better-utilization": by.compared(case, "utilization", "Use of the path", above, digits=4),
        "differentiation": by.fair(case, STEADY[:1]),
        "contracts-met-at-50": {
            "": by.contracts_met(case, 2),
            "95 %": by.contracts_met(case, 2, 0.95),
            "100 %": by.contracts_met(case, 2, 1.0),
        },
        "large-fail-at-50": {
            "": by.large_fail(case, 2),
            "95 %": by.large_fail(case, 2, 0.95),
            "100 %": by.large_fail(case, 2, 1.0),
        },
    }


def fig4(case: Case) -> Mapping[str, Judge | Judges]:
    """The judges of Figure 4's claims."""
    return {
        "differentiation-kept": by.fair(case, STEADY[2:]),
        "large-fail": {
            "": by.large_fail(case, 3),
            "95 %": by.large_fail(case, 3, 0.95),
            "100 %": by.large_fail(case, 3, 1.0),
        },
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
    return {
        "proportion-through-bursts": {
            "": by.proportional(case, BURSTS),
            "within 10 %": by.proportional(case, BURSTS, 0.1),
            "within 50 %": by.proportional(case, BURSTS, 0.5),
            "the same part with bursts on and off": by.same_parts_in_bursts(case),
        },
        "advantages-through-bursts": by.advantages_in_bursts(case),
        "order-through-bursts": by.ordered(case, BURSTS),
        "uses-what-is-free": {
            "": by.uses_what_is_free(case, FULL),
            "95 %": by.uses_what_is_free(case, 0.95),
            "99 %": by.uses_what_is_free(case, 0.99),
            "without the first 10 s after a change": by.uses_what_is_free(case, FULL, "settled_use"),
        },
        "contracts-kept": {"": by.kept_in_bursts(case, KEPT), "95 %": by.kept_in_bursts(case, 0.95)},
        "performs-poorly": {
            "by itself": by.performs_poorly(case),
            "against the proposal": by.performs_worse(case),
            "by itself, 95 %": by.performs_poorly(case, 0.95),
        },
        "baseline-cannot": {
            "not all of them": by.baseline_cannot(case, FLOWS - 1),
            "not most of them": by.baseline_cannot(case, FLOWS // 2 - 1),
        },
        "baseline-poor": {
            "": by.baseline_poor(case, 0.5),
            "a quarter": by.baseline_poor(case, 0.25),
            "three quarters": by.baseline_poor(case, 0.75),
            "twice the proposal's": by.baseline_poorer(case, 2),
        },
    }


def general(case: Case) -> Mapping[str, Judge | Judges]:
    """The judges of the claims on all scenarios."""
    return {
        "less-overhead": {
            "marking a packet": overhead.marks_for_less(case, by.LESS, whole=False),
            "with windows and probabilities": overhead.marks_for_less(case, by.LESS, whole=True),
            "a tenth": overhead.marks_for_less(case, 0.1, whole=True),
            "less at all": overhead.marks_for_less(case, 1.0, whole=True),
        },
        "much-higher-utilization": {
            "in scenario 1": by.much_higher(case, (1,)),
            "on 50 Mbit/s": by.much_higher(case, (2, 3)),
            "under bursts": by.much_higher(case, (4,)),
            "2 % in scenarios 2 to 4": by.much_higher(case, (2, 3, 4), 0.02),
            "10 % in scenarios 2 to 4": by.much_higher(case, (2, 3, 4), 0.1),
        },
        "sum-of-windows": {
            "": by.sum_of_windows(case, by.PRODUCT),
            "5 %": by.sum_of_windows(case, 0.05),
            "20 %": by.sum_of_windows(case, 0.2),
        },
        "in-proportion": {
            "": by.proportional(case, EVERYWHERE),
            "within 10 %": by.proportional(case, EVERYWHERE, 0.1),
            "within 50 %": by.proportional(case, EVERYWHERE, 0.5),
            "nearer than under the baseline": by.nearer(case, EVERYWHERE),
        },
        "colored-by-contract": {
            "": by.colored_by_contract(case, by.COLORED),
            "less at all": by.colored_by_contract(case, 1),
            "a quarter as much": by.colored_by_contract(case, 0.25),
            "in proportion within 25 %": by.in_packets_in_proportion(case, by.PROPORTION),
        },
        "different-levels": by.windows_in_order(case),
        "eliminates-slow-starts": {
            "": by.eliminates_slow_starts(case, SCENARIOS),
            "without scenario 4": by.eliminates_slow_starts(case, (1, 2, 3)),
        },
        "fair-distribution": by.fair(case, EVERYWHERE),
        "both-less-overhead": {
            "": overhead.both_for_less(case, by.LESS),
            "a tenth": overhead.both_for_less(case, 0.1),
            "less at all": overhead.both_for_less(case, 1.0),
        },
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
"""What judges the claims of each study on a case."""
