"""Figures 2 to 5, and what the text says of all scenarios: ten flows on the judged setting."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors, Plot, Reference, Row, Table, tables
from perhop.studies.bouras import common
from perhop.studies.bouras.claims import BY_STUDY
from perhop.studies.bouras.common import BASELINE, CAPACITY, PROPOSED, SCHEMES, SETTING, TIMES, groups
from perhop.studies.bouras.judges import Case, cell
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.sampling import MBPS
from perhop.studies.study import Study

COMPARED = (PROPOSED, BASELINE)
RUNS = 6
FEWER_RUNS = 4
MORE_RUNS = 12
STEP_S = 5
"""Figure 5's rates in time are means over so many seconds."""
SHOWN = tuple(float(at) for at in range(101, 201))
"""Figure 2's windows in time are shown at these, in s."""


def setting_of(factors: Factors) -> common.Setting:
    """The network and contracts of a cell."""
    return common.Setting(round_trip=float(factors["round_trip"]), rates=common.SETS[str(factors["set"])])


def build(factors: Factors) -> Mapping[str, Any]:
    """One scenario under one scheme."""
    return setting_of(factors).scenario(int(factors["scenario"]), str(factors["scheme"]))


def samples(factors: Factors, run: Run, times: common.Times = TIMES) -> Iterator[Sample]:
    """Rates and windows; in scenario 4 also by burst."""
    return samples_on(setting_of(factors), factors, run, times)


def samples_on(setting: common.Setting, factors: Factors, run: Run, times: common.Times) -> Iterator[Sample]:
    """The samples of a run on this network."""
    yield from common.basics(dict(factors), run, setting, times)
    if factors["scenario"] == 4:
        yield from burst_samples(factors, run, setting.rates, times)


def burst_samples(
    factors: Factors, run: Run, rates: common.Rates, times: common.Times = TIMES
) -> Iterator[Sample]:
    """Scenario 4: rates while bursts are on and while they are off, without the first seconds of each."""
    series = run.raw["series"]
    at = np.asarray(series["time_s"])
    bps = np.asarray(series["throughput_bps"])[:, : len(rates)]
    # A sample is of the second before it.
    phase = ((at - 0.5) // times.burst).astype(int)
    inner = ((at - 0.5) % times.burst > times.settle) & (phase >= 1)
    for name, odd in (("on", 1), ("off", 0)):
        got = bps[inner & (phase % 2 == odd)].mean(axis=0) / 1e6
        all_along = bps[(phase >= 1) & (phase % 2 == odd)].mean(axis=0) / 1e6
        key = {**factors, "bursts": name}
        met = float(np.sum(got >= np.asarray(rates)))
        yield Sample(key, "burst_contracts_met", "of 10", met, 1.0)
        yield Sample(key, "burst_spread", "fraction", common.spread(got, rates))
        free = CAPACITY[4] - common.EF_CAP * odd
        yield Sample(key, "settled_use", "fraction", float(np.sum(got)) / free)
        yield Sample(key, "burst_use", "fraction", float(np.sum(all_along)) / free)
        yield from common.by_group(key, "burst_share", got, rates)
        for flow, rate in enumerate(rates, start=1):
            mine = float(got[flow - 1])
            yield Sample({**key, "flow": flow}, "burst_rate", MBPS, mine)
            yield Sample({**key, "flow": flow}, "burst_over_contract", "fraction", mine / rate)


def rates_in_time(factors: Factors, run: Run) -> Iterator[Sample]:
    """The samples of Figure 5: also the rate of a flow of each contract, by steps that end at `time_s`."""
    yield from samples(factors, run)
    rates = setting_of(factors).rates
    mbps = np.asarray(run.raw["series"]["throughput_bps"])[:, : len(rates)] / 1e6
    steps = mbps[: len(mbps) // STEP_S * STEP_S].reshape(-1, STEP_S, len(rates)).mean(axis=1)
    for rate, numbers in groups(rates).items():
        means = steps[:, [number - 1 for number in numbers]].mean(axis=1)
        for step, value in enumerate(means, start=1):
            if (at := step * STEP_S) > TIMES.measured(4)[0]:
                key = {**factors, "contract": rate, "time_s": float(at)}
                yield Sample(key, "rate_at", MBPS, float(value))


def windows_in_time(factors: Factors, run: Run) -> Iterator[Sample]:
    """The samples of Figure 2: also the window of the first flow of each contract, each second."""
    yield from samples(factors, run)
    series = run.raw["series"]
    since = TIMES.measured(1)[0]
    seen = common.windows(run, since)
    times = np.asarray(series["time_s"])
    for rate, (number, *_) in groups(setting_of(factors).rates).items():
        for at, window in zip(times[times > since], seen[:, number - 1], strict=True):
            if at in SHOWN:
                yield Sample(
                    {**factors, "contract": rate, "time_s": float(at)}, "window_at", "packets", float(window)
                )


def one_run(evidence: Evidence) -> Iterator[Row]:
    """These windows in the first run: a mean over runs would hide how they move."""
    keys = [
        {**cell(1, scheme), "contract": rate, "time_s": at}
        for scheme, at, rate in itertools.product(COMPARED, SHOWN, groups(SETTING.rates))
    ]
    yield from evidence.first_run("window_at", keys, "window_one_run", "packets")


SCENARIO_AXIS = Axis("scenario", "Scenario", {1: "1 (30 Mbit/s)", 2: "2 (50 Mbit/s)"})
ALL_SCENARIOS = Axis("scenario", "Scenario", {1: "1", 2: "2", 3: "3", 4: "4"})
BURSTS = Axis("bursts", "Bursts", {"on": "on", "off": "off"})
CONTRACTS = Axis(
    "contract", "Contract", {rate: f"{rate:g} Mbit/s" for rate in sorted(groups(SETTING.rates), reverse=True)}
)


FLOWS = f"({', '.join(f'{rate:g}' for rate in SETTING.rates)})"


QUEUE = "Mean queue of the first link, share of the bandwidth-delay product"


def _by_flow(metric: str, title: str, scenario: int, digits: int = 2) -> Iterator[Table]:
    return tables(SCHEMES, (common.FLOW_AXIS,), (f"{title} {FLOWS}", metric, digits), scenario=scenario)


def _plot(scenario: int, metric: str, title: str, y_label: str) -> Plot:
    capacity, number = CAPACITY[scenario], range(1, len(SETTING.rates) + 1)
    if metric == "window":
        share, contracts = SETTING.theoretical_windows(capacity).tolist(), []
    else:
        share = common.proportional(SETTING.rates, capacity)
        contracts = [Reference("contract", "flow", dict(zip(number, SETTING.rates, strict=True)))]
    return Plot(
        id=f"{metric}-{scenario}",
        title=title,
        kind="bars",
        metric=metric,
        x=common.FLOW_AXIS,
        series=SCHEMES,
        y_label=y_label,
        where={"scenario": scenario},
        references=(Reference("in proportion", "flow", dict(zip(number, share, strict=True))), *contracts),
    )


def _in_time(metric: str, title: str, y_label: str) -> Plot:
    """A line for each contract, a panel for each scheme."""
    time = Axis("time_s", "Time, s")
    return Plot(metric.replace("_", "-"), title, "lines", metric, time, CONTRACTS, y_label, SCHEMES)


def _study(
    item: str,
    title: str,
    summary: str,
    *,
    scenarios: tuple[int, ...],
    tables: Sequence[Table],
    plots: Sequence[Plot] = (),
    take: Callable[[Factors, Run], Iterator[Sample]] = samples,
    summaries: Callable[[Evidence], Iterator[Row]] | None = None,
    runs: int = RUNS,
    source: str = "",
) -> Study:
    return common.THIS.study(
        item,
        title=title,
        source=f"{common.TITLE}, {source or f'Figure {item[-1]}'}",
        summary=summary,
        # The proposal comes first, since the network's picture is that of the first cell.
        cells=[cell(n, scheme) for n in scenarios for scheme in COMPARED],
        scenario=build,
        samples=take,
        summaries=summaries,
        judges=BY_STUDY[item](Case()),
        tables=tables,
        plots=plots,
        default_runs=runs,
    )


FIG2 = _study(
    "fig2",
    "Windows on a path of 30 Mbit/s",
    "ten flows over three hops; TSW2CM with WRED against TWAM with dynamic WRED",
    scenarios=(1,),
    tables=(
        *_by_flow("window", "Mean window of each flow, packets", 1, 1),
        Table(
            "Spread of window over contract; a flow's window in time, standard deviation over mean; "
            "timeouts of a flow in 180 s",
            {"window_spread": "spread", "window_variation": "in time", "timeouts": "timeouts"},
            SCHEMES,
            digits=2,
        ),
        *tables(SCHEMES, (CONTRACTS,), ("Mean window over the part in proportion", "window_share", 2)),
        *tables(SCHEMES, (), (QUEUE, "queue", 2), link="R1-R2"),
    ),
    plots=(
        _in_time("window_one_run", "Window of one flow of each contract in one run", "packets"),
        _plot(1, "window", "Mean window", "packets"),
    ),
    take=windows_in_time,
    summaries=one_run,
)

FIG3 = _study(
    "fig3",
    "Mean windows and rates on paths of 30 and 50 Mbit/s",
    "scenarios 1 and 2: windows against theory, rates against contracts",
    scenarios=(2, 1),
    tables=(
        *_by_flow("throughput", "Rate of each flow on 50 Mbit/s, Mbit/s", 2),
        *_by_flow("throughput", "Rate of each flow on 30 Mbit/s, Mbit/s", 1),
        *tables(
            SCHEMES,
            (SCENARIO_AXIS,),
            (
                "Distance of mean windows to theory, packets; spread of rate over contract; use of the path",
                {"window_error": "windows", "spread": "rates", "utilization": "use"},
                3,
            ),
            (QUEUE, "queue", 2, {"link": "R1-R2"}),
        ),
    ),
    plots=(_plot(2, "throughput", "Rate on 50 Mbit/s", "Mbit/s"),),
)

FIG4 = _study(
    "fig4",
    "Late flows: rates after they have come",
    "scenario 3: one flow of each group begins late, 50 Mbit/s; all times a quarter of the paper's",
    scenarios=(3,),
    runs=FEWER_RUNS,
    tables=list(_by_flow("throughput", "Rate of each flow, Mbit/s", 3)),
    plots=(_plot(3, "throughput", "Rate from 100 s on", "Mbit/s"),),
)

FIG5 = _study(
    "fig5",
    "Bursts of priority traffic",
    f"scenario 4: EF traffic of 11 Mbit/s, capped at 10, on and off every {TIMES.burst:g} s between R2 "
    "and R3; 50 Mbit/s",
    scenarios=(4,),
    runs=FEWER_RUNS,
    tables=(
        Table(
            "Flows of ten that have their contract; spread of rate over contract; use of what EF leaves",
            {"burst_contracts_met": "have it", "burst_spread": "spread", "burst_use": "use"},
            SCHEMES,
            (BURSTS,),
            digits=2,
        ),
        *tables(
            SCHEMES,
            (common.FLOW_AXIS,),
            (f"Rate of each flow while bursts are on, Mbit/s {FLOWS}", "burst_rate", 2),
            bursts="on",
        ),
    ),
    plots=(
        _in_time(
            "rate_at",
            f"Rate of a flow by contract; bursts from {TIMES.burst:g} to {2 * TIMES.burst:g} s, "
            f"{3 * TIMES.burst:g} to {4 * TIMES.burst:g} s",
            "Mbit/s",
        ),
    ),
    take=rates_in_time,
)

SPREADS = "spread over contract of windows, of IN packets"

GENERAL = _study(
    "general",
    "What the text says of all scenarios",
    "its general sentences, held against scenarios 1 to 4",
    source="sections 1, 3, 6 and 7",
    runs=MORE_RUNS,
    scenarios=(1, 2, 3, 4),
    tables=(
        *tables(
            SCHEMES,
            (ALL_SCENARIOS,),
            (
                "Use of the path by the service; spread of rate over contract; timeouts of a flow",
                {"utilization": "use", "spread": "spread", "timeouts": "timeouts"},
                3,
            ),
            (
                f"Sum of mean windows over rate times round trip; {SPREADS}",
                {"windows_over_product": "sum", "window_spread": "windows", "in_spread": "IN packets"},
                2,
            ),
            ("A flow's window in time, standard deviation over mean", "window_variation", 3),
        ),
    ),
    plots=(
        Plot(
            id="spread",
            title="Spread of rate over contract",
            kind="bars",
            metric="spread",
            x=ALL_SCENARIOS,
            series=SCHEMES,
            y_label="standard deviation over mean",
        ),
    ),
)
