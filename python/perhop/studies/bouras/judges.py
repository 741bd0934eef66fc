"""What judges the paper's claims, each on one network, set of contracts and reading of the two schemes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from perhop.statistics.intervals import estimate, paired_difference
from perhop.statistics.judging import (
    Judgement,
    above,
    all_of,
    any_of,
    at_least,
    at_least_of,
    at_most,
    below,
    fact,
    judge,
    near,
    opposite,
)
from perhop.studies.bouras.common import (
    BASELINE,
    FLOWS,
    JUDGED_ROUND_TRIP,
    JUDGED_SET,
    LARGE,
    PROPOSED,
    SETS,
    TSW,
    groups,
    spread_of_equals,
)
from perhop.studies.costs import instructions

if TYPE_CHECKING:
    from perhop.show.declared import Factor
    from perhop.statistics.intervals import Estimate
    from perhop.statistics.judging import Check
    from perhop.studies.bouras.common import Rates
    from perhop.studies.evidence import Evidence

KEPT = 0.99
"""A flow that has this part of its contract has it."""
PROPORTION = 0.25
"""A share in proportion to the contracts differs from its part of the whole by at most this."""
MUCH = 0.05
"""A "much higher" use of the path is higher by this part of its capacity."""
FULL = 0.98
"""Resources are used where this part of them is."""
FEWER = 0.1
"""A "much lower" number of computations is at most this part."""
EQUAL_TRIPS = 1.05
"""Round trips are equal where the longest is at most this multiple of the shortest."""
PRODUCT = 0.1
"""The sum of windows approximates the path's product where it differs by at most this part."""
COLORED = 0.5
"""Colors follow the contracts, not the windows, where they vary at most this part as much as the windows."""
LESS = 0.5
"""Much less overhead is at most this part of the instructions."""
MOST = 3
"""So many of the four scenarios are most."""
PHASES = ("on", "off")
SCENARIOS = (1, 2, 3, 4)


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
OnEvidence: TypeAlias = Callable[["Evidence"], Judgement]
Judged: TypeAlias = "Judge | Mapping[str, Judge]"
"""What judges a claim: one function, or one for each reading and rule by its name."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Where rates are held against contracts: a scenario, or a phase of the one with bursts."""

    name: str
    scenario: int
    more: Mapping[str, Factor] = field(default_factory=dict)

    def metric(self, of: str) -> str:
        """The metric for "rate", "spread" or "share" here."""
        if self.more:
            return f"burst_{of}"
        return {"rate": "throughput", "spread": "spread", "share": "rate_share"}[of]

    def key(self, case: Case, scheme: str) -> dict[str, Any]:
        """The factors of a number."""
        return {**case.key(self.scenario, scheme), **self.more}


STEADY = tuple(Spot(f"scenario {number}", number) for number in (1, 2, 3))
BURSTS = tuple(Spot(f"scenario 4, bursts {name}", 4, {"bursts": name}) for name in ("on", "off"))
EVERYWHERE = (*STEADY, *BURSTS)


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


def nearer_to_theory(metric: str) -> Judge:
    """A judge of the distance of mean windows to what theory says."""
    return compared(metric, 1, "Distance of mean windows to theory, packets", below)


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


def levels_apart(words: str, between: Callable[[float, float], float]) -> Judge:
    """A judge of whether neighbouring groups' mean windows are farther apart than under the baseline."""

    def steps(evidence: Evidence, case: Case, scheme: str) -> dict[str, dict[int, float]]:
        means = group_means(evidence, "window", case.key(1, scheme), case.rates)
        return {
            f"{high:g} over {low:g}": {
                seed: between(means[low][seed], means[high][seed]) for seed in means[low]
            }
            for low, high in itertools.pairwise(means)
        }

    def judged(evidence: Evidence, case: Case) -> Judgement:
        ours, theirs = (steps(evidence, case, scheme) for scheme in (case.proposed, case.baseline))
        found = {name: paired_difference(runs, theirs[name]) for name, runs in ours.items()}
        return judge(
            all_of(*map(above, found.values())),
            f"{words}, proposed − baseline, by contracts: {listed(found, sign=True)}.",
        )

    return judged


def windows_in_order(evidence: Evidence, case: Case) -> Judgement:
    """The mean window of each group is above that of the group below under the proposal, in all scenarios."""
    found = {
        number: in_order(evidence, "window", case.key(number, case.proposed), case.rates)
        for number in SCENARIOS
    }
    text = "; ".join(f"scenario {number} {words}" for number, (_, words) in found.items())
    return judge(
        all_of(*(check for check, _ in found.values())), f"Mean window, packets, by contract: {text}."
    )


def ordered(spots: Sequence[Spot]) -> Judge:
    """A judge of the order of the groups' rates under the proposed scheme."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        def found(scheme: str) -> dict[str, tuple[Check, str]]:
            return {
                spot.name: in_order(evidence, spot.metric("rate"), spot.key(case, scheme), case.rates)
                for spot in spots
            }

        ours, theirs = found(case.proposed), found(case.baseline)
        text = "; ".join(
            f"{name} {words}{_beside(spots, theirs[name][1])}" for name, (_, words) in ours.items()
        )
        return judge(all_of(*(check for check, _ in ours.values())), f"Rate, Mbit/s, by contract: {text}.")

    return judged


def _beside(spots: Sequence[Spot], baseline: str) -> str:
    """The baseline's numbers, where there are not too many."""
    return f" (baseline {baseline})" if len(spots) == 1 else ""


def nearer(spots: Sequence[Spot]) -> Judge:
    """A judge of whether rates are nearer to the proportion of the contracts than under the baseline."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        found = spreads_less(evidence, case, spots)
        text = "; ".join(
            f"{spot.name} {case.both(evidence, spot.metric('spread'), spot.scenario, 2, **spot.more)}"
            for spot in spots
        )
        return judge(all_of(*map(below, found.values())), f"Spread of rate over contract: {text}.")

    return judged


def spreads_less(evidence: Evidence, case: Case, spots: Sequence[Spot]) -> dict[str, Estimate]:
    """The spread of rate over contract, proposed less baseline, paired."""
    return {
        spot.name: case.difference(evidence, spot.metric("spread"), spot.scenario, **spot.more)
        for spot in spots
    }


def proportional(spots: Sequence[Spot], tolerance: float = PROPORTION) -> Judge:
    """A judge of whether each group has its contract's part of all rates under the proposed scheme."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        ours, theirs = (
            {spot.name: shares(evidence, case, spot, scheme) for spot in spots}
            for scheme in (case.proposed, case.baseline)
        )
        every = [value for found in ours.values() for value in found.values()]
        text = "; ".join(
            f"{name} {listed(found)}{_beside(spots, listed(theirs[name]))}" for name, found in ours.items()
        )
        return judge(
            all_of(*(near(value, 1, tolerance) for value in every)),
            f"Rate over the part in proportion, by contract: {text}.",
        )

    return judged


def shares(evidence: Evidence, case: Case, spot: Spot, scheme: str) -> dict[float, Estimate]:
    """What each group has, over its contract's part of all rates."""
    return parts(evidence, spot.metric("share"), spot.key(case, scheme), case.rates)


def fair(spots: Sequence[Spot]) -> dict[str, Judge]:
    """The judges of "in a fair manner", by what the paper can mean by it."""
    return {
        "order of the contracts kept": ordered(spots),
        "nearer to proportion than the baseline": nearer(spots),
        "in proportion": proportional(spots),
    }


def windows_in_proportion(tolerance: float) -> Judge:
    """A judge of whether each group has its contract's part of all windows in scenario 1."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        found, baseline = (
            parts(evidence, "window_share", case.key(1, scheme), case.rates)
            for scheme in (case.proposed, case.baseline)
        )
        return judge(
            all_of(*(near(value, 1, tolerance) for value in found.values())),
            f"Mean window over the part in proportion, by contract: {listed(found)}; "
            f"under the baseline: {listed(baseline)}.",
        )

    return judged


def out_of_proportion(spot: Spot, tolerance: float = PROPORTION) -> Judge:
    """A judge of whether some group has not its part of all rates under the baseline."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        found = shares(evidence, case, spot, case.baseline)
        return judge(
            any_of(*(opposite(near(value, 1, tolerance)) for value in found.values())),
            f"Rate over the part in proportion under the baseline, by contract: {listed(found)}.",
        )

    return judged


def parts(evidence: Evidence, metric: str, key: Mapping[str, Any], rates: Rates) -> dict[float, Estimate]:
    """What each group has, over its contract's part of the whole."""
    return {rate: evidence.estimate(metric, {**key, "contract": rate}) for rate in groups(rates)}


def without_timeouts(evidence: Evidence, case: Case, scenarios: Sequence[int]) -> Check:
    """No run has a timeout of any flow under the proposed scheme; one timeout is enough to refute that."""
    found = [evidence.estimate("timeouts", case.key(n, case.proposed)) for n in scenarios]
    return all_of(*(check for one in found for check in (at_most(one, 0.0), fact(holds=one.mean == 0.0))))


def no_slow_start(evidence: Evidence, case: Case) -> Judgement:
    """No run of scenario 1 has a timeout of any flow under the proposed scheme."""
    return judge(without_timeouts(evidence, case, (1,)), _without(evidence, case))


def mostly_no_slow_start(evidence: Evidence, case: Case) -> Judgement:
    """Most runs of scenario 1 have no timeout of any flow under the proposed scheme."""
    without = evidence.estimate("without_timeouts", case.key(1, case.proposed))
    return judge(above(without, 0.5), _without(evidence, case))


def _without(evidence: Evidence, case: Case) -> str:
    without = evidence.estimate("without_timeouts", case.key(1, case.proposed))
    return (
        f"Runs without a timeout: {without.mean:.0%} of {without.runs}. "
        f"Timeouts of a flow: {case.both(evidence, 'timeouts', 1)}."
    )


def eliminates_slow_starts(scenarios: Sequence[int]) -> Judge:
    """A judge of whether the proposed scheme has no timeouts where the baseline has some."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        theirs = [evidence.by_seed("timeouts", case.key(n, case.baseline)) for n in scenarios]
        some = estimate([sum(one[seed] for one in theirs) for seed in sorted(theirs[0])])
        text = "; ".join(f"scenario {n} {case.both(evidence, 'timeouts', n)}" for n in scenarios)
        return judge(
            all_of(without_timeouts(evidence, case, scenarios), above(some)),
            f"Timeouts of a flow: {text}.",
        )

    return judged


def baseline_slow_starts(evidence: Evidence, case: Case) -> Judgement:
    """There are timeouts under the baseline."""
    found = evidence.estimate("timeouts", case.key(1, case.baseline))
    return judge(above(found), f"Timeouts of a flow: {case.both(evidence, 'timeouts', 1)}.")


def smoother(scenarios: Sequence[int]) -> Judge:
    """A judge of whether a flow's window varies less in time than under the baseline."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        found = {n: case.difference(evidence, "window_variation", n) for n in scenarios}
        text = "; ".join(
            f"scenario {n} {case.both(evidence, 'window_variation', n)}, difference {one.text(3, sign=True)}"
            for n, one in found.items()
        )
        return judge(
            all_of(*map(below, found.values())),
            f"Standard deviation of a flow's window over its mean: {text}.",
        )

    return judged


def same_round_trip(most: float) -> Judge:
    """A judge of whether the longest and the shortest mean round trip of the flows are nearly the same."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        found = evidence.estimate("trip_ratio", case.key(1, case.proposed))
        return judge(at_most(found, most), f"Longest over shortest mean round trip: {found.text(3)}.")

    return judged


def fewer_computations(most: float) -> Judge:
    """A judge of whether TWAM's marking rule is computed far less often than once a packet."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        found = evidence.estimate("computations", case.key(1, case.proposed))
        return judge(
            at_most(found, most),
            f"Computations of a flow's marking probability for each packet: {found.text(4)}; "
            "TSW2CM computes a rate for each.",
        )

    return judged


def much_higher(scenarios: Sequence[int], much: float = MUCH) -> Judge:
    """A judge of whether the use of the path is much higher than under the baseline."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        found = {n: case.difference(evidence, "utilization", n) for n in scenarios}
        text = "; ".join(
            f"scenario {n} {case.both(evidence, 'utilization', n, 4)}, difference {one.text(4, sign=True)}"
            for n, one in found.items()
        )
        return judge(
            all_of(*(at_least(one, much) for one in found.values())),
            f"Use of the path by the service: {text}.",
        )

    return judged


def contracts_met(scenario: int, kept: float = KEPT) -> Judge:
    """A judge of whether every flow has its contract under the proposed scheme."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        found = over_contract(evidence, case, scenario, case.proposed, range(1, FLOWS + 1))
        return judge(
            all_of(*(at_least(value, kept) for value in found.values())),
            f"Rate over contract by flow: {listed(found)}.",
        )

    return judged


def of_large(evidence: Evidence, case: Case, scenario: int) -> Estimate:
    """Rate over contract of flows 8, 9 and 10 together under the baseline: one value for each run."""
    key = case.key(scenario, case.baseline)
    flows = [evidence.by_seed("over_contract", {**key, "flow": n}) for n in LARGE]
    return estimate([sum(flow[seed] for flow in flows) / len(flows) for seed in sorted(flows[0])])


def large_fail(scenario: int, kept: float = KEPT) -> Judge:
    """A judge of whether flows 8, 9 and 10 miss their contracts under the baseline."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        together = of_large(evidence, case, scenario)
        found = over_contract(evidence, case, scenario, case.baseline, LARGE)
        proposed = over_contract(evidence, case, scenario, case.proposed, LARGE)
        return judge(
            below(together, kept),
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


def by_phase(evidence: Evidence, case: Case, metric: str, scheme: str, **more: Factor) -> dict[str, Estimate]:
    """A number of scenario 4, with bursts on and off."""
    key = {**case.key(4, scheme), **more}
    return {name: evidence.estimate(metric, {**key, "bursts": name}) for name in PHASES}


def in_phases(evidence: Evidence, case: Case, metric: str, digits: int = 2) -> str:
    """`on 0.27 ± 0.04 against 0.39 ± 0.06; off …`."""
    return "; ".join(f"{name} {case.both(evidence, metric, 4, digits, bursts=name)}" for name in PHASES)


def advantages_in_bursts(evidence: Evidence, case: Case) -> Judgement:
    """Rates are nearer to the proportion, and more is used, with bursts on and off."""
    spreads = [case.difference(evidence, "burst_spread", 4, bursts=name) for name in PHASES]
    uses = [case.difference(evidence, "burst_use", 4, bursts=name) for name in PHASES]
    return judge(
        all_of(*map(below, spreads), *map(above, uses)),
        f"Spread of rate over contract with bursts {in_phases(evidence, case, 'burst_spread')}. Use of what "
        f"EF traffic leaves {in_phases(evidence, case, 'burst_use', 3)}.",
    )


def same_parts_in_bursts(evidence: Evidence, case: Case) -> Judgement:
    """Each group's part of all rates is nearly the same with bursts on as with bursts off."""
    key = case.key(4, case.proposed)
    found = {
        rate: evidence.difference(
            "burst_share",
            {**key, "bursts": "on", "contract": rate},
            {**key, "bursts": "off", "contract": rate},
        )
        for rate in groups(case.rates)
    }
    return judge(
        all_of(*(near(value, 0, 0.1) for value in found.values())),
        f"Rate over the part in proportion, bursts on − off, by contract: {listed(found, sign=True)}.",
    )


def order_in_bursts(evidence: Evidence, case: Case) -> Judgement:
    """The groups are in order under the proposed scheme, with bursts on and off."""
    return ordered(BURSTS)(evidence, case)


def uses_what_is_free(full: float, metric: str = "burst_use") -> Judge:
    """A judge of whether the flows use what EF traffic leaves, with bursts on and off."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        found = by_phase(evidence, case, metric, case.proposed)
        return judge(
            all_of(*(at_least(value, full) for value in found.values())),
            f"Use of what EF traffic leaves, with bursts {in_phases(evidence, case, metric, 3)}.",
        )

    return judged


def kept_in_bursts(kept: float) -> Judge:
    """A judge of whether every flow has its contract under the proposed scheme while bursts are on."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        key = {**case.key(4, case.proposed), "bursts": "on"}
        found = {n: evidence.estimate("burst_over_contract", {**key, "flow": n}) for n in range(1, FLOWS + 1)}
        return judge(
            all_of(*(at_least(value, kept) for value in found.values())),
            f"Rate over contract while bursts are on, by flow: {listed(found)}.",
        )

    return judged


def baseline_cannot(met: int) -> Judge:
    """A judge of whether at most so many flows have their contracts under the baseline in bursts."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        baseline, proposed = (
            by_phase(evidence, case, "burst_contracts_met", scheme)["on"]
            for scheme in (case.baseline, case.proposed)
        )
        return judge(
            at_most(baseline, met),
            f"Flows of ten with their contract while bursts are on: {baseline.text(1)} under the baseline, "
            f"{proposed.text(1)} under the proposal.",
        )

    return judged


def performs_poorly(full: float = FULL) -> Judge:
    """A judge of whether the baseline leaves resources unused and flows without their contracts."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        use = by_phase(evidence, case, "burst_use", case.baseline)
        met = by_phase(evidence, case, "burst_contracts_met", case.baseline)
        return judge(
            all_of(
                *(below(value, full) for value in use.values()),
                *(at_most(value, FLOWS - 1) for value in met.values()),
            ),
            f"Use of what EF traffic leaves, with bursts {in_phases(evidence, case, 'burst_use', 3)}; flows "
            f"of ten with their contract {in_phases(evidence, case, 'burst_contracts_met', 1)}.",
        )

    return judged


def performs_worse(evidence: Evidence, case: Case) -> Judgement:
    """The baseline uses less, differentiates less, and gives the large flows less, in bursts and between."""
    checks = []
    for name in PHASES:
        checks += [
            below(case.difference(evidence, "burst_spread", 4, bursts=name)),
            above(case.difference(evidence, "burst_use", 4, bursts=name)),
            *(above(case.difference(evidence, "burst_rate", 4, bursts=name, flow=n)) for n in LARGE),
        ]
    large = {
        f"{n} {name}": case.difference(evidence, "burst_rate", 4, bursts=name, flow=n)
        for n in LARGE
        for name in PHASES
    }
    return judge(
        all_of(*checks),
        f"Spread of rate over contract with bursts {in_phases(evidence, case, 'burst_spread')}; use "
        f"{in_phases(evidence, case, 'burst_use', 3)}; rates of flows 8 to 10, proposed − baseline, Mbit/s: "
        f"{listed(large, sign=True)}.",
    )


def baseline_poor(of_equal: float) -> Judge:
    """A judge of whether the baseline's spread in bursts is above this part of that of equal shares."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        found = by_phase(evidence, case, "burst_spread", case.baseline)["on"]
        equal = spread_of_equals(case.rates)
        return judge(
            above(found, of_equal * equal),
            "Spread of rate over contract while bursts are on: "
            f"{case.both(evidence, 'burst_spread', 4, bursts='on')}; equal shares would have {equal:.2f}.",
        )

    return judged


def baseline_poorer(times: float) -> Judge:
    """A judge of whether the baseline's spread in bursts is above so many times the proposal's."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        ours, theirs = ({**case.key(4, scheme), "bursts": "on"} for scheme in (case.proposed, case.baseline))
        found = evidence.difference("burst_spread", theirs, ours, factor=times)
        return judge(
            above(found),
            "Spread of rate over contract while bursts are on: "
            f"{case.both(evidence, 'burst_spread', 4, bursts='on')}.",
        )

    return judged


def sum_of_windows(tolerance: float) -> Judge:
    """A judge of whether the sum of the windows is about the path's rate times its round trip."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        found = {n: evidence.estimate("windows_over_product", case.key(n, case.proposed)) for n in SCENARIOS}
        return judge(
            all_of(*(near(value, 1, tolerance) for value in found.values())),
            f"Sum of mean windows over rate times round trip, by scenario: {listed(found, 3)}.",
        )

    return judged


def colored_by_contract(most: float) -> Judge:
    """A judge of whether IN packets vary less over the contracts than windows do."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        keys = {n: case.key(n, case.proposed) for n in SCENARIOS}
        found = {
            n: evidence.difference("in_spread", key, key, factor=most, second_metric="window_spread")
            for n, key in keys.items()
        }
        text = "; ".join(
            f"scenario {n} {evidence.estimate('in_spread', key).text(2)} against "
            f"{evidence.estimate('window_spread', key).text(2)}"
            for n, key in keys.items()
        )
        return judge(
            all_of(*map(below, found.values())),
            f"Spread over contract of IN packets against that of windows: {text}.",
        )

    return judged


def in_packets_in_proportion(tolerance: float) -> Judge:
    """A judge of whether each group has its contract's part of all IN packets."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        found = {n: parts(evidence, "in_share", case.key(n, case.proposed), case.rates) for n in SCENARIOS}
        text = "; ".join(f"scenario {n} {listed(values)}" for n, values in found.items())
        return judge(
            all_of(*(near(value, 1, tolerance) for values in found.values() for value in values.values())),
            f"IN packets over the part in proportion, by contract: {text}.",
        )

    return judged


def improves(most: int) -> Judge:
    """A judge of whether rates are nearer to proportion, and the path is used, in so many scenarios."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        def checks(number: int) -> Check:
            spots = [spot for spot in EVERYWHERE if spot.scenario == number]
            uses = (
                list(by_phase(evidence, case, "burst_use", case.proposed).values())
                if number == 4
                else [evidence.estimate("utilization", case.key(number, case.proposed))]
            )
            return all_of(
                *map(below, spreads_less(evidence, case, spots).values()),
                *(at_least(use, FULL) for use in uses),
            )

        found = {number: checks(number) for number in SCENARIOS}
        uses = {
            number: evidence.estimate("utilization", case.key(number, case.proposed)) for number in (1, 2, 3)
        }
        spreads = listed(spreads_less(evidence, case, EVERYWHERE), sign=True)
        all_numbers = (
            f" Spread of rate over contract, proposed − baseline: {spreads}. Use of the path, by scenario: "
            f"{listed(uses, 3)}; of what EF traffic leaves in scenario 4 "
            f"{in_phases(evidence, case, 'burst_use', 3)}."
        )
        so = ", ".join(str(n) for n, check in found.items() if check.holds) or "none"
        return judge(
            at_least_of(most, found.values()),
            f"So in scenarios {so}.{all_numbers if most == len(SCENARIOS) else ''}",
        )

    return judged


def extra(rule: str) -> float:
    """Instructions of a drop rule for a packet beyond those of the queue itself."""
    return instructions("aqm", rule) - instructions("aqm", "drop-tail")


def marks_for_less(part: float, *, whole: bool) -> Judge:
    """A judge of whether TWAM takes at most this part of TSW2CM's instructions for a packet.

    Args:
        part: Of TSW2CM's instructions.
        whole: What an interval takes counts, too, spread over its packets.
    """

    def judged(evidence: Evidence, case: Case) -> Judgement:
        found = marking(evidence, case, whole=whole)
        theirs = instructions("meter", TSW)
        return judge(
            at_most(found, part * theirs), f"Instructions for a packet: {found.text(1)} against {theirs:g}."
        )

    return judged


def both_for_less(part: float) -> Judge:
    """A judge of whether both mechanisms take at most this part of their baselines' instructions."""

    def judged(evidence: Evidence, case: Case) -> Judgement:
        mark, drop = marking(evidence, case, whole=True), dropping(evidence, case)
        theirs, static = instructions("meter", TSW), extra("wred-out")
        return judge(
            all_of(at_most(mark, part * theirs), at_most(drop, part * static)),
            f"Instructions for a packet: TWAM {mark.text(1)}, TSW2CM {theirs:g}; of the drop rule alone: "
            f"dynamic WRED {drop.text(1)}, static WRED {static:.1f}.",
        )

    return judged


def marking(evidence: Evidence, case: Case, *, whole: bool) -> Estimate:
    """TWAM's instructions for a packet."""
    interval = instructions("meter", "twam", "per_interval") if whole else 0.0
    looks = looks_for_a_packet(evidence, case)
    return looks.mapped(lambda value: instructions("meter", "twam") + interval * value)


def dropping(evidence: Evidence, case: Case) -> Estimate:
    """Dynamic WRED's instructions for a packet, its updates included."""
    update = instructions("aqm", "dwred", "per_update")
    return looks_for_a_packet(evidence, case).mapped(lambda value: extra("dwred") + update * value)


def looks_for_a_packet(evidence: Evidence, case: Case) -> Estimate:
    """How often the windows of all flows are read, for each packet of scenario 1."""
    found = evidence.estimate("computations", case.key(1, case.proposed))
    return found.mapped(lambda value: value / FLOWS)


FIG2: dict[str, Judged] = {
    "larger-windows": larger_windows,
    "clearer-separation": {
        "": compared("window_spread", 1, "Spread of mean window over contract", below),
        "ratio of neighbouring levels": levels_apart(
            "Ratio of mean windows of neighbouring groups", lambda low, high: high / low
        ),
        "packets between neighbouring levels": levels_apart(
            "Packets between mean windows of neighbouring groups", lambda low, high: high - low
        ),
    },
    "bands-in-proportion": {
        "": windows_in_proportion(PROPORTION),
        "within 10 %": windows_in_proportion(0.1),
        "within 50 %": windows_in_proportion(0.5),
    },
    "no-slow-start": {"": no_slow_start, "in most runs": mostly_no_slow_start},
    "baseline-slow-starts": baseline_slow_starts,
    "same-round-trip": {
        "": same_round_trip(EQUAL_TRIPS),
        "1.01": same_round_trip(1.01),
        "1.1": same_round_trip(1.1),
    },
    "fewer-computations": {
        "": fewer_computations(FEWER),
        "half": fewer_computations(0.5),
        "a hundredth": fewer_computations(0.01),
    },
}
FIG3: dict[str, Judged] = {
    "nearer-to-theory": {
        "capacity times propagation": nearer_to_theory("window_error"),
        "equation 1 as measured": nearer_to_theory("window_error_by_equation_1"),
    },
    "better-utilization": compared("utilization", 1, "Use of the path", above, digits=4),
    "differentiation": fair(STEADY[:1]),
    "contracts-met-at-50": {
        "": contracts_met(2),
        "95 %": contracts_met(2, 0.95),
        "100 %": contracts_met(2, 1.0),
    },
    "large-fail-at-50": {
        "": large_fail(2),
        "95 %": large_fail(2, 0.95),
        "100 %": large_fail(2, 1.0),
    },
}
FIG4: dict[str, Judged] = {
    "differentiation-kept": fair(STEADY[2:]),
    "large-fail": {
        "": large_fail(3),
        "95 %": large_fail(3, 0.95),
        "100 %": large_fail(3, 1.0),
    },
    "contracts-met": contracts_met(3),
    "baseline-unfair": {
        "out of proportion": out_of_proportion(STEADY[2]),
        "farther from proportion than the proposal": nearer(STEADY[2:]),
        "out by more than 10 %": out_of_proportion(STEADY[2], 0.1),
        "out by more than 50 %": out_of_proportion(STEADY[2], 0.5),
    },
}
FIG5: dict[str, Judged] = {
    "proportion-through-bursts": {
        "": proportional(BURSTS),
        "within 10 %": proportional(BURSTS, 0.1),
        "within 50 %": proportional(BURSTS, 0.5),
        "the same part with bursts on and off": same_parts_in_bursts,
    },
    "advantages-through-bursts": advantages_in_bursts,
    "order-through-bursts": order_in_bursts,
    "uses-what-is-free": {
        "": uses_what_is_free(FULL),
        "95 %": uses_what_is_free(0.95),
        "99 %": uses_what_is_free(0.99),
        "without the first 10 s after a change": uses_what_is_free(FULL, "settled_use"),
    },
    "contracts-kept": {"": kept_in_bursts(KEPT), "95 %": kept_in_bursts(0.95)},
    "performs-poorly": {
        "by itself": performs_poorly(),
        "against the proposal": performs_worse,
        "by itself, 95 %": performs_poorly(0.95),
    },
    "baseline-cannot": {
        "not all of them": baseline_cannot(FLOWS - 1),
        "not most of them": baseline_cannot(FLOWS // 2 - 1),
    },
    "baseline-poor": {
        "": baseline_poor(0.5),
        "a quarter": baseline_poor(0.25),
        "three quarters": baseline_poor(0.75),
        "twice the proposal's": baseline_poorer(2),
    },
}
GENERAL: dict[str, Judged] = {
    "less-overhead": {
        "marking a packet": marks_for_less(LESS, whole=False),
        "with windows and probabilities": marks_for_less(LESS, whole=True),
        "a tenth": marks_for_less(0.1, whole=True),
        "less at all": marks_for_less(1.0, whole=True),
    },
    "much-higher-utilization": {
        "in scenario 1": much_higher((1,)),
        "on 50 Mbit/s": much_higher((2, 3)),
        "under bursts": much_higher((4,)),
        "2 % in scenarios 2 to 4": much_higher((2, 3, 4), 0.02),
        "10 % in scenarios 2 to 4": much_higher((2, 3, 4), 0.1),
    },
    "sum-of-windows": {
        "": sum_of_windows(PRODUCT),
        "5 %": sum_of_windows(0.05),
        "20 %": sum_of_windows(0.2),
    },
    "in-proportion": {
        "": proportional(EVERYWHERE),
        "within 10 %": proportional(EVERYWHERE, 0.1),
        "within 50 %": proportional(EVERYWHERE, 0.5),
        "nearer than under the baseline": nearer(EVERYWHERE),
    },
    "colored-by-contract": {
        "": colored_by_contract(COLORED),
        "less at all": colored_by_contract(1),
        "a quarter as much": colored_by_contract(0.25),
        "in proportion within 25 %": in_packets_in_proportion(PROPORTION),
    },
    "different-levels": windows_in_order,
    "eliminates-slow-starts": {
        "": eliminates_slow_starts(SCENARIOS),
        "without scenario 4": eliminates_slow_starts((1, 2, 3)),
    },
    "fair-distribution": fair(EVERYWHERE),
    "both-less-overhead": {
        "": both_for_less(LESS),
        "a tenth": both_for_less(0.1),
        "less at all": both_for_less(1.0),
    },
    "improves": {
        "in every scenario": improves(len(SCENARIOS)),
        "in most scenarios": improves(MOST),
    },
    "smooth": {
        "where conditions change": smoother((3, 4)),
        "in every scenario": smoother(SCENARIOS),
    },
}
BY_STUDY: dict[str, dict[str, Judged]] = {
    "fig2": FIG2,
    "fig3": FIG3,
    "fig4": FIG4,
    "fig5": FIG5,
    "general": GENERAL,
}


def on(case: Case, judges: Mapping[str, Judged]) -> dict[str, OnEvidence | dict[str, OnEvidence]]:
    """The judges of claims, on this case."""

    def bind(judged: Judge) -> OnEvidence:
        return lambda evidence: judged(evidence, case)

    return {
        name: bind(judged) if callable(judged) else {rule: bind(one) for rule, one in judged.items()}
        for name, judged in judges.items()
    }
