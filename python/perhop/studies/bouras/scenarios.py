"""Figures 2 to 5: windows and rates of ten flows in the paper's four scenarios."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.judging import Judgement, by_interval
from perhop.studies.bouras.common import (
    ALIKE,
    BASELINE,
    COMPARED,
    EDGE,
    FLOW_AXIS,
    LARGE,
    PROPOSED,
    RUNS,
    SCHEME_NAMES,
    SCHEMES,
    SET_AXIS,
    SETS,
    SETTING,
    THIS,
    TITLE,
    basics,
    group_text,
    groups,
    in_order,
    proportional,
    theoretical_windows,
    windows,
)
from perhop.studies.paper import claims
from perhop.study import Axis, Plot, Reference, Row, Sample, Study, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perhop.runs import Run
    from perhop.statistics import Estimate
    from perhop.study import Evidence, Factors

CAPACITY = {1: 30.0, 2: 50.0, 3: 50.0, 4: 50.0}
"""Rate of the links by scenario, Mbit/s."""
SINCE = {1: 20.0, 2: 20.0, 3: 400.0, 4: 100.0}
"""What is measured begins then, in s."""
SECONDS = {1: 200.0, 2: 200.0, 3: 1000.0, 4: 1000.0}
LATE = {"A": (3, 7, 10), "C": (4, 7, 10)}
"""The last flow of each group begins late in scenario 3."""
PERIOD_S = 100
"""Bursts of scenario 4 are on for so long, from this time on, and then off for as long."""
LONG_RUNS = 6
STEP_S = 10
"""Figure 5's rates in time are means over so many seconds."""
SHOWN = tuple(float(at) for at in range(101, 201))
"""Figure 2's windows in time are shown at these, in s."""


def cell(scenario: int, scheme: str, contracts: str) -> dict[str, Any]:
    """The factors of one row."""
    return {"scenario": scenario, "scheme": scheme, "set": contracts}


def build(factors: Factors) -> Mapping[str, Any]:
    """One scenario under one scheme and set of contracts."""
    scenario, contracts = int(factors["scenario"]), str(factors["set"])
    return SETTING.scenario(
        f"Bouras and Sevasti, scenario {scenario}",
        str(factors["scheme"]),
        SETS[contracts],
        CAPACITY[scenario],
        seconds=SECONDS[scenario],
        warmup=SINCE[scenario],
        late=LATE[contracts] if scenario == 3 else (),
        bursts=scenario == 4,
    )


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates and windows; how windows follow contracts; how well the edge sees them; rates by burst."""
    scenario, contracts = int(factors["scenario"]), SETS[str(factors["set"])]
    yield from basics(factors, run, contracts, CAPACITY[scenario], SINCE[scenario])
    seen = windows(run, SINCE[scenario])
    rates, means = np.asarray(contracts), np.nanmean(seen, axis=0)
    theory = theoretical_windows(contracts, CAPACITY[scenario])
    yield Sample(factors, "window_error", "packets", float(np.sqrt(np.mean((means - theory) ** 2))))
    yield Sample(factors, "window_spread", "fraction", float(np.std(means / rates) / np.mean(means / rates)))
    if factors["scheme"] == EDGE:
        series = run.raw["series"]
        rows = np.asarray(series["time_s"]) > SINCE[scenario]
        estimate = np.asarray(series["seen_packets"])[rows][:, :10]
        yield Sample(factors, "seen_ratio", "fraction", float(np.nanmean(estimate / seen)))
        yield Sample(factors, "seen_error", "fraction", float(np.nanmean(np.abs(estimate - seen) / seen)))
    if scenario == 4:
        yield from burst_samples(factors, run, rates)
        yield from rates_in_time(factors, run, contracts)


def burst_samples(factors: Factors, run: Run, rates: np.ndarray[Any, Any]) -> Iterator[Sample]:
    """Scenario 4: rates while bursts are on and while they are off, without the first 10 s of each."""
    series = run.raw["series"]
    times = np.asarray(series["time_s"])
    bps = np.asarray(series["throughput_bps"])[:, :10]
    phase = (times // PERIOD_S).astype(int)
    inner = (times % PERIOD_S > 10) & (phase >= 1)
    for name, odd in (("on", 1), ("off", 0)):
        got = bps[inner & (phase % 2 == odd)].mean(axis=0) / 1e6
        key = {**factors, "bursts": name}
        yield Sample(key, "contracts_met", "of 10", float(np.sum(got >= rates)))
        yield Sample(key, "spread", "fraction", float(np.std(got / rates) / np.mean(got / rates)))
        for number in range(1, 11):
            yield Sample({**key, "flow": number}, "throughput", "Mbit/s", float(got[number - 1]))


def rates_in_time(factors: Factors, run: Run, contracts: tuple[float, ...]) -> Iterator[Sample]:
    """Scenario 4: the mean rate of a flow of each contract, by steps of 10 s, which end at `time_s`."""
    mbps = np.asarray(run.raw["series"]["throughput_bps"])[:, :10] / 1e6
    steps = mbps[: len(mbps) // STEP_S * STEP_S].reshape(-1, STEP_S, 10).mean(axis=1)
    for rate, numbers in groups(contracts).items():
        means = steps[:, [number - 1 for number in numbers]].mean(axis=1)
        for step, value in enumerate(means, start=1):
            if (at := step * STEP_S) > SINCE[4]:
                key = {**factors, "contract": rate, "time_s": float(at)}
                yield Sample(key, "rate_at", "Mbit/s", float(value))


def windows_in_time(factors: Factors, run: Run) -> Iterator[Sample]:
    """The samples of Figure 2: also the window of the first flow of each contract, each second."""
    yield from samples(factors, run)
    series = run.raw["series"]
    seen = np.asarray(series["cwnd_packets"])
    for rate, (number, *_) in groups(SETS[str(factors["set"])]).items():
        for at, window in zip(np.asarray(series["time_s"]), seen[:, number - 1], strict=True):
            if at in SHOWN:
                yield Sample(
                    {**factors, "contract": rate, "time_s": float(at)}, "window_at", "packets", float(window)
                )


def one_run(evidence: Evidence) -> Iterator[Row]:
    """These windows in the first run: a mean over runs would hide how they move."""
    for scheme, (name, rates), at in itertools.product(COMPARED, SETS.items(), SHOWN):
        for rate in groups(rates):
            key = {**cell(1, scheme, name), "contract": rate, "time_s": at}
            values = evidence.by_seed("window_at", key)
            yield Row(key, "window_one_run", "packets", None, values[min(values)], None, 1)


def difference(
    evidence: Evidence, metric: str, scenario: int, proposed: str = PROPOSED, baseline: str = BASELINE
) -> dict[str, Estimate]:
    """Proposed − baseline by set of contracts, paired."""
    return {
        s: evidence.difference(metric, cell(scenario, proposed, s), cell(scenario, baseline, s)) for s in SETS
    }


def text_of(found: Mapping[str, Estimate], digits: int = 2) -> str:
    """`set A +1.23 ± 0.04; set C …`."""
    return "; ".join(f"set {name} {e.text(digits, sign=True)}" for name, e in found.items())


def more(
    metric: str, scenario: int, words: str, *, less: bool = False, digits: int = 2
) -> Callable[[Evidence], Judgement]:
    """A claim on proposed − baseline; the two other readings of the schemes are told beside it."""

    def judge(evidence: Evidence) -> Judgement:
        found = difference(evidence, metric, scenario)
        edge = difference(evidence, metric, scenario, EDGE)
        alike = difference(evidence, metric, scenario, baseline=ALIKE)
        holds = all(e.high < 0 if less else e.low > 0 for e in found.values())
        text = (
            f"{words}, proposed − baseline: {text_of(found, digits)}; "
            f"with windows seen at the edge: {text_of(edge, digits)}; "
            f"with the baseline's colors alike: {text_of(alike, digits)}."
        )
        return by_interval(found.values(), text, holds=holds)

    return judge


def no_slow_start(evidence: Evidence) -> Judgement:
    """Timeouts, each of which begins a slow start, over all runs."""
    found = {(scheme, s): evidence.mean("timeouts", cell(1, scheme, s)) for scheme in COMPARED for s in SETS}
    most = max(max(evidence.by_seed("timeouts", cell(1, PROPOSED, s)).values()) for s in SETS)
    text = "; ".join(f"{SCHEME_NAMES[k]}, set {s}: {v:.2f}" for (k, s), v in found.items())
    return Judgement(most == 0, f"Timeouts of a flow in 180 s: {text}.")


def ordered(metric: str, scenario: int) -> Callable[[Evidence], Judgement]:
    """A claim on the order of the groups under the proposed scheme."""

    def judge(evidence: Evidence) -> Judgement:
        holds = all(in_order(evidence, metric, cell(scenario, PROPOSED, s), SETS[s]) for s in SETS)
        text = "; ".join(
            f"{SCHEME_NAMES[k]}, set {s}: {group_text(evidence, metric, cell(scenario, k, s), SETS[s])}"
            for s, k in itertools.product(SETS, (PROPOSED, EDGE, BASELINE))
        )
        return Judgement(holds, f"Mean of each group by its contract: {text}.")

    return judge


def contracts_met(scenario: int) -> Callable[[Evidence], Judgement]:
    """A claim that every flow reaches its contract under the proposed scheme, by the means."""

    def judge(evidence: Evidence) -> Judgement:
        short = {
            (k, s): [
                number
                for number in range(1, 11)
                if evidence.mean("over_contract", {**cell(scenario, k, s), "flow": number}) < 1
            ]
            for k in COMPARED
            for s in SETS
        }
        text = "; ".join(
            f"{SCHEME_NAMES[k]}, set {s}: {', '.join(map(str, flows)) or 'none'}"
            for (k, s), flows in short.items()
        )
        return Judgement(not any(short[PROPOSED, s] for s in SETS), f"Flows below their contract: {text}.")

    return judge


def large_fail(scenario: int) -> Callable[[Evidence], Judgement]:
    """A claim that flows 8 to 10 miss their contracts under the baseline."""

    def ratios(evidence: Evidence, scheme: str, contracts: str) -> list[Estimate]:
        key = cell(scenario, scheme, contracts)
        return [evidence.estimate("over_contract", {**key, "flow": n}) for n in LARGE]

    def judge(evidence: Evidence) -> Judgement:
        found = {(k, s): ratios(evidence, k, s) for k in (BASELINE, ALIKE) for s in SETS}
        text = "; ".join(
            f"{SCHEME_NAMES[k]}, set {s} " + ", ".join(e.text(2) for e in es) for (k, s), es in found.items()
        )
        judged = [e for s in SETS for e in found[BASELINE, s]]
        return by_interval(
            judged,
            f"Rate over contract of flows 8, 9 and 10: {text}.",
            holds=all(e.high < 1 for e in judged),
        )

    return judge


def through_bursts(evidence: Evidence) -> Judgement:
    """Scenario 4: the spread of rate over contract with bursts on and off, proposed − baseline."""

    def differences(proposed: str, baseline: str) -> dict[tuple[str, str], Estimate]:
        return {
            (s, name): evidence.difference(
                "spread", {**cell(4, proposed, s), "bursts": name}, {**cell(4, baseline, s), "bursts": name}
            )
            for s in SETS
            for name in ("on", "off")
        }

    def told(found: Mapping[tuple[str, str], Estimate]) -> str:
        return "; ".join(f"set {s}, bursts {name}: {e.text(3, sign=True)}" for (s, name), e in found.items())

    found = differences(PROPOSED, BASELINE)
    return by_interval(
        found.values(),
        f"Spread of rate over contract, proposed − baseline: {told(found)}. "
        f"With windows seen at the edge: {told(differences(EDGE, BASELINE))}. "
        f"With the baseline's colors alike: {told(differences(PROPOSED, ALIKE))}.",
        holds=all(e.high < 0 for e in found.values()),
    )


def order_through_bursts(evidence: Evidence) -> Judgement:
    """Scenario 4: the order of the groups under the proposed scheme, with bursts on and off."""
    keys = {(s, name): {**cell(4, PROPOSED, s), "bursts": name} for s in SETS for name in ("on", "off")}
    text = "; ".join(
        f"set {s}, bursts {name}: {group_text(evidence, 'throughput', key, SETS[s])}"
        for (s, name), key in keys.items()
    )
    holds = all(in_order(evidence, "throughput", key, SETS[s]) for (s, _), key in keys.items())
    return Judgement(holds, f"Mean of each group by its contract, Mbit/s: {text}.")


def kept_in_bursts(scheme: str, *, kept: bool) -> Callable[[Evidence], Judgement]:
    """Scenario 4: how many flows keep their contract while bursts are on."""

    def judge(evidence: Evidence) -> Judgement:
        found = {
            (k, s): evidence.mean("contracts_met", {**cell(4, k, s), "bursts": "on"})
            for k in COMPARED
            for s in SETS
        }
        text = "; ".join(f"{SCHEME_NAMES[k]}, set {s}: {v:.1f}" for (k, s), v in found.items())
        values = [found[scheme, s] for s in SETS]
        holds = all(v == 10 for v in values) if kept else all(v < 10 for v in values)
        return Judgement(holds, f"Flows of ten that have their contract while bursts are on: {text}.")

    return judge


SCENARIO_AXIS = Axis("scenario", "Scenario", {1: "1 (30 Mbit/s)", 2: "2 (50 Mbit/s)"})
BURSTS = Axis("bursts", "Bursts", {"on": "on", "off": "off"})


def _table(title: str, metrics: Mapping[str, str], scenario: int, digits: int = 2) -> Table:
    return Table(title, metrics, SCHEMES, (SET_AXIS,), where={"scenario": scenario}, digits=digits)


def _by_flow(metric: str, title: str, scenario: int, contracts: str, digits: int = 2) -> Table:
    return Table(
        f"{title}, set {contracts} ({', '.join(f'{r:g}' for r in SETS[contracts])})",
        {metric: ""},
        SCHEMES,
        (FLOW_AXIS,),
        where={"scenario": scenario, "set": contracts},
        digits=digits,
    )


def _plot(scenario: int, metric: str, title: str, y_label: str, contracts: str) -> Plot:
    share = theoretical_windows if metric == "window" else proportional
    heights = dict(enumerate(share(SETS[contracts], CAPACITY[scenario]), start=1))
    return Plot(
        id=f"{metric}-{scenario}-{contracts.lower()}",
        title=f"{title}, set {contracts}",
        kind="bars",
        metric=metric,
        x=FLOW_AXIS,
        series=SCHEMES,
        y_label=y_label,
        where={"scenario": scenario, "set": contracts, "scheme": COMPARED},
        references=(Reference("in proportion", "flow", heights),),
    )


def _in_time(metric: str, title: str, y_label: str, contracts: str, scenario: int) -> Plot:
    """A line for each contract, a panel for each scheme."""
    names = {rate: f"{rate:g} Mbit/s" for rate in sorted(groups(SETS[contracts]), reverse=True)}
    return Plot(
        id=f"{metric.replace('_', '-')}-{contracts.lower()}",
        title=f"{title}, set {contracts}",
        kind="lines",
        metric=metric,
        x=Axis("time_s", "Time, s"),
        series=Axis("contract", "Contract", names),
        y_label=y_label,
        facet=SCHEMES,
        where={"scenario": scenario, "set": contracts},
    )


def _study(
    item: str,
    title: str,
    summary: str,
    *,
    scenarios: tuple[int, ...],
    judges: Mapping[str, Callable[[Evidence], Judgement]],
    tables: Sequence[Table],
    plots: Sequence[Plot] = (),
    take: Callable[[Factors, Run], Iterator[Sample]] = samples,
    summaries: Callable[[Evidence], Iterator[Row]] | None = None,
    runs: int = RUNS,
) -> Study:
    stated = THIS.item(item)
    return Study(
        id=f"bouras-{item}",
        title=title,
        source=f"{TITLE}, Figure {item.removeprefix('fig')}",
        summary=summary,
        # The proposal comes first, since the network's picture is that of the first cell.
        cells=[cell(n, scheme, s) for n in scenarios for scheme in reversed(COMPARED) for s in SETS],
        scenario=build,
        samples=take,
        summaries=summaries,
        published=stated.values,
        claims=claims(stated.claims, judges),
        notes=stated.notes,
        method=stated.method,
        assumptions=stated.assumptions,
        tables=tables,
        plots=plots,
        default_runs=runs,
    )


FIG2 = _study(
    "fig2",
    "Windows on a path of 30 Mbit/s",
    "ten flows over three hops; TSW2CM with WRED against TWAM with dynamic WRED",
    scenarios=(1,),
    judges={
        "larger-windows": more("mean_window", 1, "Mean window, packets"),
        "clearer-separation": more("window_spread", 1, "Spread of window over contract", less=True),
        "bands-in-order": ordered("window", 1),
        "no-slow-start": no_slow_start,
    },
    tables=(
        _table(
            "Mean window, packets; spread of window over contract",
            {"mean_window": "mean", "window_spread": "spread"},
            1,
        ),
        _table(
            "Timeouts of a flow in 180 s; use of the path", {"timeouts": "timeouts", "utilization": "use"}, 1
        ),
        *(_by_flow("window", "Mean window of each flow, packets", 1, s, 1) for s in SETS),
        Table(
            "What the ingress sees of a window: seen over true, and mean error, share of the true one",
            {"seen_ratio": "ratio", "seen_error": "error"},
            SET_AXIS,
            where={"scheme": EDGE},
        ),
        Table(
            "Mean queue of the first link, share of the bandwidth-delay product",
            {"queue": ""},
            SCHEMES,
            (SET_AXIS,),
            where={"link": "R1-R2"},
        ),
    ),
    plots=(
        *(
            _in_time("window_one_run", "Window of one flow of each contract in one run", "packets", s, 1)
            for s in SETS
        ),
        *(_plot(1, "window", "Mean window", "packets", s) for s in SETS),
    ),
    take=windows_in_time,
    summaries=one_run,
)

FIG3 = _study(
    "fig3",
    "Mean windows and rates on paths of 30 and 50 Mbit/s",
    "scenarios 1 and 2: windows against theory, rates against contracts",
    scenarios=(1, 2),
    judges={
        "nearer-to-theory": more("window_error", 1, "Distance of mean windows to theory, packets", less=True),
        "better-utilization": more("utilization", 1, "Use of the path", digits=5),
        "contracts-met-at-50": contracts_met(2),
        "large-fail-at-50": large_fail(2),
        "nearer-to-proportion-at-50": more("spread", 2, "Spread of rate over contract", less=True),
    },
    tables=(
        Table(
            "Distance of mean windows to theory, packets; spread of rate over contract",
            {"window_error": "windows", "spread": "rates"},
            SCHEMES,
            (SCENARIO_AXIS, SET_AXIS),
        ),
        *(
            _by_flow("throughput", f"Rate of each flow, Mbit/s, scenario {n}", n, s)
            for n in (1, 2)
            for s in SETS
        ),
    ),
    plots=tuple(_plot(2, "throughput", "Rate on 50 Mbit/s", "Mbit/s", s) for s in SETS),
)

FIG4 = _study(
    "fig4",
    "Late flows: rates from 400 to 1000 s",
    "scenario 3: one flow of each group begins at 200 s, 50 Mbit/s",
    scenarios=(3,),
    runs=LONG_RUNS,
    judges={
        "order-kept": ordered("throughput", 3),
        "large-fail": large_fail(3),
        "nearer-to-proportion": more("spread", 3, "Spread of rate over contract", less=True),
    },
    tables=tuple(_by_flow("throughput", "Rate of each flow, Mbit/s", 3, s) for s in SETS),
    plots=tuple(_plot(3, "throughput", "Rate from 400 to 1000 s", "Mbit/s", s) for s in SETS),
)

FIG5 = _study(
    "fig5",
    "Bursts of priority traffic",
    "scenario 4: EF traffic of 11 Mbit/s, capped at 10, on and off every 100 s between R2 and R3; 50 Mbit/s",
    scenarios=(4,),
    runs=LONG_RUNS,
    judges={
        "proportion-through-bursts": through_bursts,
        "order-through-bursts": order_through_bursts,
        "contracts-kept": kept_in_bursts(PROPOSED, kept=True),
        "baseline-cannot": kept_in_bursts(BASELINE, kept=False),
    },
    tables=(
        Table(
            "Flows of ten that have their contract; spread of rate over contract",
            {"contracts_met": "have it", "spread": "spread"},
            SCHEMES,
            (BURSTS, SET_AXIS),
            where={"bursts": ("on", "off")},
        ),
        *(
            Table(
                f"Rate of each flow while bursts are on, Mbit/s, set {s}",
                {"throughput": ""},
                SCHEMES,
                (FLOW_AXIS,),
                where={"set": s, "bursts": "on"},
                digits=2,
            )
            for s in SETS
        ),
    ),
    plots=tuple(
        _in_time(
            "rate_at", "Rate of a flow by contract; bursts from 100 to 200 s, 300 to 400 s, …", "Mbit/s", s, 4
        )
        for s in SETS
    ),
)
