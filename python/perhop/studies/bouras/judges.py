"""What judges the paper's claims, each on one network, set of contracts and reading of the two schemes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from perhop.judging import (
    Judgement,
    above,
    all_of,
    any_of,
    at_least,
    at_most,
    below,
    fact,
    judge,
    near,
    opposite,
)
from perhop.statistics import estimate, paired_difference
from perhop.studies.bouras.common import (
    BASELINE,
    FLOWS,
    JUDGED_ROUND_TRIP,
    JUDGED_SET,
    LARGE,
    PROPOSED,
    SETS,
    groups,
    spread_of_equals,
)

if TYPE_CHECKING:
    from perhop.judging import Check
    from perhop.statistics import Estimate
    from perhop.studies.bouras.common import Rates
    from perhop.study import Evidence, Factor

KEPT = 0.99
"""A flow that has this part of its contract has it."""
PROPORTION = 0.25
"""What is in proportion to the contracts differs from its part of the whole by at most this."""
MUCH = 0.05
"""A "much higher" use of the path is higher by this part of its capacity."""
FULL = 0.98
"""Resources are used where this part of them is."""
FEWER = 0.1
"""A "much lower" number of computations is at most this part."""
EQUAL_TRIPS = 1.05
"""The same round trip: the longest is at most this multiple of the shortest."""
FEW = 4
"""Where "the TCP flows" cannot keep their contracts, fewer than half of the ten keep them."""
PHASES = ("on", "off")


def cell(
    scenario: int, scheme: str, contracts: str = JUDGED_SET, round_trip: int = JUDGED_ROUND_TRIP
) -> dict[str, Any]:
    """The factors of one scenario under one scheme."""
    return {"scenario": scenario, "scheme": scheme, "set": contracts, "round_trip": round_trip}


@dataclass(frozen=True, slots=True)
class Case:
    """What a claim is judged on: two schemes, a set of contracts and a round trip."""

    proposed: str = PROPOSED
    baseline: str = BASELINE
    contracts: str = JUDGED_SET
    round_trip: int = JUDGED_ROUND_TRIP

    @property
    def rates(self) -> Rates:
        """The contracted rates."""
        return SETS[self.contracts]

    def key(self, scenario: int, scheme: str) -> dict[str, Any]:
        """The factors of a number."""
        return cell(scenario, scheme, self.contracts, self.round_trip)

    def difference(self, evidence: Evidence, metric: str, scenario: int, **more: Factor) -> Estimate:
        """Proposed less baseline, paired."""
        ours, theirs = (self.key(scenario, scheme) | more for scheme in (self.proposed, self.baseline))
        return evidence.difference(metric, ours, theirs)

    def both(self, evidence: Evidence, metric: str, scenario: int, digits: int = 2, **more: Factor) -> str:
        """`0.25 ± 0.01 against 0.48 ± 0.02`: proposed, then baseline."""
        found = (
            evidence.estimate(metric, self.key(scenario, scheme) | more)
            for scheme in (self.proposed, self.baseline)
        )
        return " against ".join(value.text(digits) for value in found)


Judge: TypeAlias = Callable[["Evidence", Case], Judgement]


def listed(found: Mapping[Any, Estimate], digits: int = 2, *, sign: bool = False) -> str:
    """`1: +0.22 ± 0.01, 2: …`."""
    return ", ".join(f"{name}: {value.text(digits, sign=sign)}" for name, value in found.items())


def larger_windows(evidence: Evidence, case: Case) -> Judgement:
    """Every flow's mean window is larger."""
    found = {n: case.difference(evidence, "window", 1, flow=n) for n in range(1, FLOWS + 1)}
    return judge(
        all_of(*map(above, found.values())),
        f"Mean window, packets, proposed − baseline, by flow: {listed(found, 1, sign=True)}. "
        f"Mean over flows: {case.both(evidence, 'mean_window', 1, 1)}.",
    )


def compared(
    metric: str,
    scenario: int,
    words: str,
    side: Callable[[Estimate], Check],
    *,
    digits: int = 2,
) -> Judge:
    """A judge of the difference of one number between the two schemes."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        found = case.difference(evidence, metric, scenario)
        both = case.both(evidence, metric, scenario, digits)
        return judge(side(found), f"{words}: {both}; difference {found.text(digits, sign=True)}.")

    return judged


def nearer_to_theory(evidence: Evidence, case: Case) -> Judgement:
    """Mean windows are nearer to the theoretical ones."""
    found = case.difference(evidence, "window_error", 1)
    return judge(
        below(found),
        f"Distance of mean windows to theory, packets: {case.both(evidence, 'window_error', 1)}; with the "
        "measured rate and round trip of equation 1 instead: "
        f"{case.both(evidence, 'window_error_by_equation_1', 1)}.",
    )


def group_means(
    evidence: Evidence, metric: str, key: Mapping[str, Any], rates: Rates
) -> dict[float, dict[int, float]]:
    """For each contract, the mean of its flows in each run."""
    means = {}
    for rate, numbers in groups(rates).items():
        by_flow = [evidence.by_seed(metric, {**key, "flow": n}) for n in numbers]
        means[rate] = {seed: sum(f[seed] for f in by_flow) / len(by_flow) for seed in by_flow[0]}
    return means


def in_order(evidence: Evidence, metric: str, key: Mapping[str, Any], rates: Rates) -> tuple[Check, str]:
    """Whether each group's mean is above that of the group below, paired by run."""
    means = group_means(evidence, metric, key, rates)
    checks = [above(paired_difference(high, low)) for low, high in itertools.pairwise(means.values())]
    text = ", ".join(f"{rate:g}: {sum(v.values()) / len(v):.1f}" for rate, v in means.items())
    return all_of(*checks), text


def ordered(metric: str, scenario: int, words: str) -> Judge:
    """A judge of the order of the groups under the proposed scheme."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        check, proposed = in_order(evidence, metric, case.key(scenario, case.proposed), case.rates)
        _, baseline = in_order(evidence, metric, case.key(scenario, case.baseline), case.rates)
        return judge(check, f"{words} by contract: {proposed}; under the baseline: {baseline}.")

    return judged


def in_proportion(metric: str, scenario: int, words: str) -> Judge:
    """A judge of whether each group has its part of the whole under the proposed scheme."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        found = parts(evidence, metric, case.key(scenario, case.proposed), case.rates)
        baseline = parts(evidence, metric, case.key(scenario, case.baseline), case.rates)
        return judge(
            all_of(*(near(value, 1, PROPORTION) for value in found.values())),
            f"{words} over the part in proportion, by contract: {listed(found)}; "
            f"under the baseline: {listed(baseline)}.",
        )

    return judged


def out_of_proportion(metric: str, scenario: int, words: str) -> Judge:
    """A judge of whether some group has not its part of the whole under the baseline."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        found = parts(evidence, metric, case.key(scenario, case.baseline), case.rates)
        return judge(
            any_of(*(opposite(near(value, 1, PROPORTION)) for value in found.values())),
            f"{words} over the part in proportion under the baseline, by contract: {listed(found)}.",
        )

    return judged


def parts(evidence: Evidence, metric: str, key: Mapping[str, Any], rates: Rates) -> dict[float, Estimate]:
    """What each group has, over its contract's part of the whole."""
    return {rate: evidence.estimate(metric, {**key, "contract": rate}) for rate in groups(rates)}


def no_slow_start(evidence: Evidence, case: Case) -> Judgement:
    """No run has a timeout of any flow under the proposed scheme; one timeout is enough to refute that."""
    without = evidence.estimate("without_timeouts", case.key(1, case.proposed))
    timeouts = evidence.estimate("timeouts", case.key(1, case.proposed))
    return judge(
        all_of(at_most(timeouts, 0.0), fact(holds=timeouts.mean == 0.0)),
        f"Runs without a timeout: {without.mean:.0%} of {without.runs}. "
        f"Timeouts of a flow: {case.both(evidence, 'timeouts', 1)}.",
    )


def baseline_slow_starts(evidence: Evidence, case: Case) -> Judgement:
    """There are timeouts under the baseline."""
    found = evidence.estimate("timeouts", case.key(1, case.baseline))
    return judge(above(found), f"Timeouts of a flow: {case.both(evidence, 'timeouts', 1)}.")


def same_round_trip(evidence: Evidence, case: Case) -> Judgement:
    """The longest and the shortest mean round trip of the flows are nearly the same."""
    found = evidence.estimate("trip_ratio", case.key(1, case.proposed))
    return judge(at_most(found, EQUAL_TRIPS), f"Longest over shortest mean round trip: {found.text(3)}.")


def fewer_computations(evidence: Evidence, case: Case) -> Judgement:
    """TWAM's marking rule is computed far less often than once a packet."""
    found = evidence.estimate("computations", case.key(1, case.proposed))
    return judge(
        at_most(found, FEWER),
        f"Computations of a flow's marking probability for each packet: {found.text(4)}; "
        "TSW2CM computes a rate for each.",
    )


def contracts_met(scenario: int) -> Judge:
    """A judge of whether every flow has its contract under the proposed scheme."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        found = over_contract(evidence, case, scenario, case.proposed, range(1, FLOWS + 1))
        return judge(
            all_of(*(at_least(value, KEPT) for value in found.values())),
            f"Rate over contract by flow: {listed(found)}.",
        )

    return judged


def of_large(evidence: Evidence, case: Case, scenario: int) -> Estimate:
    """Rate over contract of flows 8, 9 and 10 together under the baseline: one value for each run."""
    key = case.key(scenario, case.baseline)
    flows = [evidence.by_seed("over_contract", {**key, "flow": n}) for n in LARGE]
    return estimate([sum(flow[seed] for flow in flows) / len(flows) for seed in sorted(flows[0])])


def large_fail(scenario: int) -> Judge:
    """A judge of whether flows 8, 9 and 10 miss their contracts under the baseline."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        together = of_large(evidence, case, scenario)
        found = over_contract(evidence, case, scenario, case.baseline, LARGE)
        proposed = over_contract(evidence, case, scenario, case.proposed, LARGE)
        return judge(
            below(together, KEPT),
            f"Rate over contract, baseline: {together.text(3)}; by flow: {listed(found)}; proposed: "
            f"{listed(proposed)}.",
        )

    return judged


def over_contract(
    evidence: Evidence, case: Case, scenario: int, scheme: str, flows: Iterable[int]
) -> dict[int, Estimate]:
    """Rate over contract of these flows."""
    key = case.key(scenario, scheme)
    return {n: evidence.estimate("over_contract", {**key, "flow": n}) for n in flows}


def advantages_in_bursts(evidence: Evidence, case: Case) -> Judgement:
    """Rates are nearer to the proportion than under the baseline, with bursts on and off."""
    found = {name: case.difference(evidence, "burst_spread", 4, bursts=name) for name in PHASES}
    text = "; ".join(f"{name} {case.both(evidence, 'burst_spread', 4, bursts=name)}" for name in PHASES)
    return judge(all_of(*map(below, found.values())), f"Spread of rate over contract with bursts {text}.")


def proportion_in_bursts(evidence: Evidence, case: Case) -> Judgement:
    """Each group has its part of the whole under the proposed scheme, with bursts on and off."""
    key = case.key(4, case.proposed)
    found = {
        f"{rate:g} {name}": evidence.estimate("burst_share", {**key, "bursts": name, "contract": rate})
        for rate in groups(case.rates)
        for name in PHASES
    }
    return judge(
        all_of(*(near(value, 1, PROPORTION) for value in found.values())),
        f"Rate over the part in proportion, by contract and bursts: {listed(found)}.",
    )


def order_in_bursts(evidence: Evidence, case: Case) -> Judgement:
    """The groups are in order under the proposed scheme, with bursts on and off."""
    key = case.key(4, case.proposed)
    found = {name: in_order(evidence, "burst_rate", {**key, "bursts": name}, case.rates) for name in PHASES}
    text = "; ".join(f"{name} {words}" for name, (_, words) in found.items())
    return judge(
        all_of(*(check for check, _ in found.values())), f"Rate, Mbit/s, by contract with bursts {text}."
    )


def uses_what_is_free(evidence: Evidence, case: Case) -> Judgement:
    """The flows use what EF traffic leaves, with bursts on and off."""
    key = case.key(4, case.proposed)
    found = {name: evidence.estimate("burst_utilization", {**key, "bursts": name}) for name in PHASES}
    text = "; ".join(
        f"{name} {case.both(evidence, 'burst_utilization', 4, 3, bursts=name)}" for name in PHASES
    )
    return judge(
        all_of(*(at_least(value, FULL) for value in found.values())),
        f"Use of what EF traffic leaves, with bursts {text}.",
    )


def kept_in_bursts(evidence: Evidence, case: Case) -> Judgement:
    """Every flow has its contract under the proposed scheme while bursts are on."""
    key = {**case.key(4, case.proposed), "bursts": "on"}
    found = {n: evidence.estimate("burst_over_contract", {**key, "flow": n}) for n in range(1, FLOWS + 1)}
    return judge(
        all_of(*(at_least(value, KEPT) for value in found.values())),
        f"Rate over contract while bursts are on, by flow: {listed(found)}.",
    )


def baseline_cannot(evidence: Evidence, case: Case) -> Judgement:
    """Most flows miss their contracts under the baseline while bursts are on."""
    baseline, proposed = (
        evidence.estimate("burst_contracts_met", {**case.key(4, scheme), "bursts": "on"})
        for scheme in (case.baseline, case.proposed)
    )
    return judge(
        at_most(baseline, FEW),
        f"Flows of ten with their contract while bursts are on: {baseline.text(1)} under the baseline, "
        f"{proposed.text(1)} under the proposal.",
    )


def baseline_poor(evidence: Evidence, case: Case) -> Judgement:
    """While bursts are on, the baseline's rates are nearer to equal shares than to the proportion."""
    found = evidence.estimate("burst_spread", {**case.key(4, case.baseline), "bursts": "on"})
    equal = spread_of_equals(case.rates)
    return judge(
        above(found, equal / 2),
        "Spread of rate over contract while bursts are on: "
        f"{case.both(evidence, 'burst_spread', 4, bursts='on')}; equal shares would have {equal:.2f}.",
    )


FIG2: dict[str, Judge] = {
    "larger-windows": larger_windows,
    "clearer-separation": compared("window_spread", 1, "Spread of mean window over contract", below),
    "different-levels": ordered("window", 1, "Mean window, packets,"),
    "bands-in-proportion": in_proportion("window_share", 1, "Mean window"),
    "no-slow-start": no_slow_start,
    "baseline-slow-starts": baseline_slow_starts,
    "smooth": compared("window_variation", 1, "Standard deviation of a flow's window over its mean", below),
    "same-round-trip": same_round_trip,
    "fewer-computations": fewer_computations,
}
FIG3: dict[str, Judge] = {
    "nearer-to-theory": nearer_to_theory,
    "better-utilization": compared("utilization", 1, "Use of the path", above, digits=4),
    "much-higher-utilization": compared(
        "utilization", 1, "Use of the path", lambda found: at_least(found, MUCH), digits=4
    ),
    "differentiation": ordered("throughput", 1, "Rate, Mbit/s,"),
    "contracts-met-at-50": contracts_met(2),
    "large-fail-at-50": large_fail(2),
    "nearer-to-proportion-at-50": compared("spread", 2, "Spread of rate over contract", below),
    "proportion-at-50": in_proportion("rate_share", 2, "Rate"),
}
FIG4: dict[str, Judge] = {
    "differentiation-kept": ordered("throughput", 3, "Rate, Mbit/s,"),
    "large-fail": large_fail(3),
    "contracts-met": contracts_met(3),
    "baseline-unfair": out_of_proportion("rate_share", 3, "Rate"),
    "nearer-to-proportion": compared("spread", 3, "Spread of rate over contract", below),
}
FIG5: dict[str, Judge] = {
    "proportion-through-bursts": proportion_in_bursts,
    "advantages-through-bursts": advantages_in_bursts,
    "order-through-bursts": order_in_bursts,
    "uses-what-is-free": uses_what_is_free,
    "contracts-kept": kept_in_bursts,
    "baseline-cannot": baseline_cannot,
    "baseline-poor": baseline_poor,
}
ALL: dict[str, Judge] = {**FIG2, **FIG3, **FIG4, **FIG5}


def on(case: Case, judges: Mapping[str, Judge]) -> dict[str, Callable[[Evidence], Judgement]]:
    """The judges of claims, on this case."""

    def bind(judged: Judge) -> Callable[[Evidence], Judgement]:
        return lambda evidence: judged(evidence, case)

    return {name: bind(judged) for name, judged in judges.items()}
