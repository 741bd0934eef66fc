"""Judges of the paper's claims, each on one network, set of contracts and reading of the two schemes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perhop.show.declared import Factor, Factors
from perhop.statistics import judging
from perhop.statistics.intervals import Estimate
from perhop.statistics.judging import above, all_of, at_least, at_most, below, near
from perhop.studies import judges
from perhop.studies.bouras import common
from perhop.studies.bouras.common import BASELINE, FLOWS, LARGE, PROPOSED, groups
from perhop.studies.judges import Judge, Judges, Numbers, Side, Statement, differences, grouped, level, levels

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
ALL_FLOWS = range(1, FLOWS + 1)


def cell(
    scenario: int, scheme: str, contracts: str = common.JUDGED_SET, round_trip: int = common.JUDGED_ROUND_TRIP
) -> dict[str, Any]:
    """The factors of one scenario under one scheme."""
    return {"scenario": scenario, "scheme": scheme, "set": contracts, "round_trip": round_trip}


@dataclass(frozen=True, slots=True)
class Case:
    """The case that a claim is judged on: two schemes, a set of contracts and a round trip."""

    proposed: str = PROPOSED
    baseline: str = BASELINE
    contracts: str = common.JUDGED_SET
    round_trip: int = common.JUDGED_ROUND_TRIP

    @property
    def rates(self) -> common.Rates:
        """The contracted rates."""
        return common.SETS[self.contracts]

    def key(self, scenario: int, scheme: str, **more: Factor) -> dict[str, Any]:
        """The factors of a number."""
        return {**cell(scenario, scheme, self.contracts, self.round_trip), **more}

    def ours(self, scenario: int, **more: Factor) -> dict[str, Any]:
        """The factors of a number under the proposed scheme."""
        return self.key(scenario, self.proposed, **more)

    def theirs(self, scenario: int, **more: Factor) -> dict[str, Any]:
        """The factors of a number under the baseline."""
        return self.key(scenario, self.baseline, **more)

    def pair(self, scenario: int, **more: Factor) -> tuple[Factors, Factors]:
        """The factors of a number under the proposed scheme and under the baseline."""
        return self.ours(scenario, **more), self.theirs(scenario, **more)

    def change(self, metric: str, scenario: int, **more: Factor) -> Numbers:
        """Proposed less baseline; it reads as both: `0.25 ± 0.01 against 0.48 ± 0.02`."""
        return judges.difference(metric, *self.pair(scenario, **more)).reads("{first} against {second}")

    def changes(self, metric: str, scenarios: Iterable[int]) -> Numbers:
        """Proposed less baseline in several scenarios; each reads as both."""
        pairs = {n: self.pair(n) for n in scenarios}
        return differences(metric, pairs).reads("scenario {name} {first} against {second}", "; ")

    def in_phases(self, metric: str) -> Numbers:
        """Proposed less baseline in scenario 4: `on 0.27 ± 0.04 against 0.39 ± 0.06; off …`."""
        pairs = {name: self.pair(4, bursts=name) for name in PHASES}
        return differences(metric, pairs).reads("{name} {first} against {second}", "; ")

    def by_phase(self, metric: str, scheme: str) -> Numbers:
        """A number of scenario 4 with bursts on and off."""
        return levels(metric, {name: self.key(4, scheme, bursts=name) for name in PHASES})


@dataclass(frozen=True, slots=True)
class Spot:
    """A place where rates are held against contracts: a scenario, or a phase of the one with bursts."""

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
        return case.key(self.scenario, scheme, **self.more)


STEADY = tuple(Spot(f"scenario {number}", number) for number in (1, 2, 3))
BURSTS = tuple(Spot(f"scenario 4, bursts {name}", 4, {"bursts": name}) for name in PHASES)
EVERYWHERE = (*STEADY, *BURSTS)


def by_flow(metric: str, key: Factors, flows: Iterable[int]) -> Numbers:
    """A number of each of these flows."""
    return levels(metric, {n: {**key, "flow": n} for n in flows}).reads("{name}: {value}")


def _mean(*values: float) -> float:
    return sum(values) / len(values)


def mean_of(metric: str, key: Factors, flows: Iterable[int]) -> Numbers:
    """The mean over these flows in each run."""
    return judges.of_runs({"": (_mean, *_named(metric, key, flows))}).reads("{value}")


def group_means(metric: str, key: Factors, rates: common.Rates) -> Numbers:
    """The mean of each group of flows of one contract."""
    means = {f"{rate:g}": (_mean, *_named(metric, key, flows)) for rate, flows in groups(rates).items()}
    return judges.of_runs(means).reads("{name}: {value}")


def group_steps(
    metric: str,
    keys: Sequence[Factors],
    rates: common.Rates,
    between: Callable[[float, float], float] = lambda low, high: high - low,
) -> Numbers:
    """The step between the means of each two neighbouring groups.

    Args:
        metric: The metric of a flow.
        keys: Where it is measured; with a second place, its number is subtracted.
        rates: The contracts.
        between: What to make of the lower and the higher mean.
    """

    def step(low: int) -> Callable[..., float]:
        def how(*values: float) -> float:
            size = len(values) // len(keys)
            places = (values[start : start + size] for start in range(0, len(values), size))
            found = [between(_mean(*mine[:low]), _mean(*mine[low:])) for mine in places]
            return found[0] - sum(found[1:])

        return how

    return judges.of_runs(
        {
            f"{high:g} over {low:g}": (
                step(len(below_)),
                *(one for key in keys for one in _named(metric, key, [*below_, *above_])),
            )
            for (low, below_), (high, above_) in itertools.pairwise(groups(rates).items())
        }
    ).reads("{name}: {value}")


def _named(metric: str, key: Factors, flows: Iterable[int]) -> list[tuple[str, Factors]]:
    return [(metric, {**key, "flow": n}) for n in flows]


def parts(metric: str, key: Factors, rates: common.Rates) -> Numbers:
    """The amount that each group has, over its contract's part of the whole."""
    found = levels(metric, {rate: {**key, "contract": rate} for rate in groups(rates)})
    return found.reads("{name}: {value}")


# ---------------------------------------------------------------- windows


def compared(case: Case, metric: str, words: str, side: Side, digits: int = 2) -> Judge:
    """Judge the difference of one number of scenario 1 between the two schemes."""
    found = case.change(metric, 1).reads("{first} against {second}; difference {value}")
    return found.all(side).said(f"{words}: {{:+.{digits}}}.")


def levels_apart(case: Case, words: str, between: Callable[[float, float], float]) -> Judge:
    """Judge whether neighbouring groups' mean windows are farther apart than under the baseline."""
    found = group_steps("window", case.pair(1), case.rates, between)
    return found.all(above).said(f"{words}, proposed − baseline, by contracts: {{:+.2}}.")


def windows_in_proportion(case: Case, tolerance: float) -> Judge:
    """Judge whether each group has its contract's part of all windows in scenario 1."""
    ours, theirs = (parts("window_share", key, case.rates) for key in case.pair(1))
    return ours.all(near, 1, tolerance).said(
        "Mean window over the part in proportion, by contract: {:.2}; under the baseline: {baseline:.2}.",
        baseline=theirs,
    )


def smoother(case: Case, scenarios: Sequence[int]) -> Judge:
    """Judge whether a flow's window varies less in time than under the baseline."""
    found = case.changes("window_variation", scenarios).reads(
        "scenario {name} {first:.2} against {second:.2}, difference {value:+.3}", "; "
    )
    return found.all(below).said("Standard deviation of a flow's window over its mean: {}.")


# ---------------------------------------------------------------- rates


def ordered(case: Case, spots: Sequence[Spot]) -> Judge:
    """Judge the order of the groups' rates under the proposed scheme."""

    def at(spot: Spot, scheme: str) -> tuple[str, dict[str, Any]]:
        return spot.metric("rate"), spot.key(case, scheme)

    def steps(spot: Spot) -> Numbers:
        metric, key = at(spot, case.proposed)
        return group_steps(metric, [key], case.rates)

    means = {spot.name: group_means(*at(spot, case.proposed), case.rates) for spot in spots}
    return (
        grouped({spot.name: steps(spot) for spot in spots})
        .all(above)
        .said(
            "Rate, Mbit/s, by contract: {means:.1f}" + _beside(spots, "{baseline:.1f}") + ".",
            means=grouped(means, "{name} {all}"),
            baseline=group_means(*at(spots[0], case.baseline), case.rates),
        )
    )


def _beside(spots: Sequence[Spot], baseline: str) -> str:
    """The baseline's numbers, where there are not too many."""
    return f" (baseline {baseline})" if len(spots) == 1 else ""


def spreads(case: Case, spots: Iterable[Spot]) -> Numbers:
    """The spread of rate over contract, proposed less baseline."""
    changes = {spot.name: case.change(spot.metric("spread"), spot.scenario, **spot.more) for spot in spots}
    return grouped(changes, "{name} {all}")


def nearer(case: Case, spots: Sequence[Spot]) -> Judge:
    """Judge whether rates are nearer to the proportion of the contracts than under the baseline."""
    return spreads(case, spots).all(below).said("Spread of rate over contract: {:.2}.")


def proportional(case: Case, spots: Sequence[Spot], tolerance: float = PROPORTION) -> Judge:
    """Judge whether each group has its contract's part of all rates under the proposed scheme."""
    ours = grouped({spot.name: shares(case, spot, case.proposed) for spot in spots}, "{name} {all}")
    return ours.all(near, 1, tolerance).said(
        "Rate over the part in proportion, by contract: {:.2}" + _beside(spots, "{baseline:.2}") + ".",
        baseline=shares(case, spots[0], case.baseline),
    )


def shares(case: Case, spot: Spot, scheme: str) -> Numbers:
    """The rate that each group has, over its contract's part of all rates."""
    return parts(spot.metric("share"), spot.key(case, scheme), case.rates)


def fair(case: Case, spots: Sequence[Spot]) -> Judges:
    """The judges of "in a fair manner", by what the paper can mean by it."""
    return {
        "order of the contracts kept": ordered(case, spots),
        "nearer to proportion than the baseline": nearer(case, spots),
        "in proportion": proportional(case, spots),
    }


def out_of_proportion(case: Case, spot: Spot, tolerance: float = PROPORTION) -> Judge:
    """Judge whether some group has not its part of all rates under the baseline."""
    found = shares(case, spot, case.baseline)
    return found.any(lambda value: judging.opposite(near(value, 1, tolerance))).said(
        "Rate over the part in proportion under the baseline, by contract: {:.2}."
    )


def much_higher(case: Case, scenarios: Sequence[int], much: float = MUCH) -> Judge:
    """Judge whether the use of the path is much higher than under the baseline."""
    found = case.changes("utilization", scenarios).reads(
        "scenario {name} {first} against {second}, difference {value}", "; "
    )
    return found.all(at_least, much).said("Use of the path by the service: {:+.4}.")


def contracts_met(case: Case, scenario: int, kept: float = KEPT) -> Judge:
    """Judge whether every flow has its contract under the proposed scheme."""
    found = by_flow("over_contract", case.ours(scenario), ALL_FLOWS)
    return found.all(at_least, kept).said("Rate over contract by flow: {:.2}.")


def of_large(case: Case, scenario: int) -> Numbers:
    """Rate over contract of flows 8, 9 and 10 together under the baseline: one value for each run."""
    return mean_of("over_contract", case.theirs(scenario), LARGE)


def large_fail(case: Case, scenario: int, kept: float = KEPT) -> Judge:
    """Judge whether flows 8, 9 and 10 miss their contracts under the baseline."""
    ours, theirs = (by_flow("over_contract", key, LARGE) for key in case.pair(scenario))
    return (
        of_large(case, scenario)
        .all(below, kept)
        .said(
            "Rate over contract, baseline: {}; by flow: {theirs:.2}; proposed: {ours:.2}.",
            theirs=theirs,
            ours=ours,
        )
    )


# ---------------------------------------------------------------- timeouts and round trips


def without_timeouts(case: Case, scenarios: Sequence[int]) -> Statement:
    """No run has a timeout of any flow under the proposed scheme; one timeout is enough to refute that."""

    def none(found: Estimate) -> judging.Check:
        return all_of(at_most(found, 0.0), judging.fact(holds=found.mean == 0.0))

    return levels("timeouts", {n: case.ours(n) for n in scenarios}).all(none)


def no_slow_start(case: Case, *, mostly: bool = False) -> Judge:
    """Judge whether no run of scenario 1 has a timeout under the proposed scheme, or most have none."""
    without = level("without_timeouts", case.ours(1))
    statement = without.all(above, 0.5) if mostly else without_timeouts(case, (1,))
    return statement.said(
        "Runs without a timeout: {without:.0%} of {runs}. Timeouts of a flow: {both:.2}.",
        without=without,
        runs=lambda evidence: str(without(evidence)[""].runs),
        both=case.change("timeouts", 1),
    )


def eliminates_slow_starts(case: Case, scenarios: Sequence[int]) -> Judge:
    """Judge whether the proposed scheme has no timeouts where the baseline has some."""
    theirs = [("timeouts", case.theirs(n)) for n in scenarios]
    some = judges.of_runs({"": (lambda *values: sum(values), *theirs)}).all(above)
    return (without_timeouts(case, scenarios) & some).said(
        "Timeouts of a flow: {both:.2}.", both=case.changes("timeouts", scenarios)
    )


# ---------------------------------------------------------------- bursts


def uses_what_is_free(case: Case, full: float, metric: str = "burst_use") -> Judge:
    """Judge whether the flows use what EF traffic leaves, with bursts on and off."""
    found = case.by_phase(metric, case.proposed).all(at_least, full)
    return found.said("Use of what EF traffic leaves, with bursts {both}.", both=case.in_phases(metric))


def baseline_cannot(case: Case, met: float) -> Judge:
    """Judge whether at most so many flows have their contracts under the baseline in bursts."""
    ours, theirs = (level("burst_contracts_met", key) for key in case.pair(4, bursts="on"))
    return theirs.all(at_most, met).said(
        "Flows of ten with their contract while bursts are on: {:.1} under the baseline, {ours:.1} under the "
        "proposal.",
        ours=ours,
    )


def performs_poorly(case: Case, full: float = FULL) -> Judge:
    """Judge whether the baseline leaves resources unused and flows without their contracts."""
    use = case.by_phase("burst_use", case.baseline).all(below, full)
    met = case.by_phase("burst_contracts_met", case.baseline).all(at_most, FLOWS - 1)
    return (use & met).said(
        "Use of what EF traffic leaves, with bursts {use}; flows of ten with their contract {met:.1}.",
        use=case.in_phases("burst_use"),
        met=case.in_phases("burst_contracts_met"),
    )


def baseline_poor(case: Case, of_equal: float) -> Judge:
    """Judge whether the baseline's spread in bursts is above this part of that of equal shares."""
    equal = common.spread_of_equals(case.rates)
    found = level("burst_spread", case.theirs(4, bursts="on")).all(above, of_equal * equal)
    return found.said(
        "Spread of rate over contract while bursts are on: {both:.2}; "
        f"equal shares would have {equal:.2f}.",
        both=case.change("burst_spread", 4, bursts="on"),
    )


# ---------------------------------------------------------------- colors


def colored_by_contract(case: Case, most: float) -> Judge:
    """Judge whether IN packets vary less over the contracts than windows do."""
    pairs = {n: (case.ours(n), case.ours(n)) for n in SCENARIOS}
    found = differences("in_spread", pairs, factor=most, second_metric="window_spread")
    return (
        found.reads("scenario {name} {first} against {second}", "; ")
        .all(below)
        .said("Spread over contract of IN packets against that of windows: {:.2}.")
    )


# ---------------------------------------------------------------- everything together


def improves(case: Case, most: int) -> Judge:
    """Judge whether rates are nearer to proportion, and the path is used, in so many scenarios."""

    def in_scenario(number: int) -> Statement:
        spots = [spot for spot in EVERYWHERE if spot.scenario == number]
        use = case.by_phase("burst_use", case.proposed) if number == 4 else uses[number]
        return spreads(case, spots).all(below) & use.all(at_least, FULL)

    def of(metric: str, spots: Iterable[Spot]) -> Numbers:
        pairs = {spot.name: case.pair(spot.scenario, **spot.more) for spot in spots}
        return differences(metric, pairs).reads("{name}: {value}")

    uses = {number: level("utilization", case.ours(number)) for number in (1, 2, 3)}
    statements = {number: in_scenario(number) for number in SCENARIOS}
    change = of("spread", STEADY) | of("burst_spread", BURSTS)
    numbers = (
        " Spread of rate over contract, proposed − baseline: {change:+.2}. "
        "Use of the path, by scenario: {uses}; of what EF traffic leaves in scenario 4 {bursts}."
    )
    return judges.of_statements(statements, lambda *checks: judging.at_least_of(most, checks)).said(
        "So in scenarios {holding}." + (numbers if most == len(SCENARIOS) else ""),
        change=change,
        uses=grouped(uses, between=", "),
        bursts=case.in_phases("burst_use"),
    )
