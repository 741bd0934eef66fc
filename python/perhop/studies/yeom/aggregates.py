"""Figures 11 and 12: three flows that share a reservation against a single flow of the same reservation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perhop.measures.fairness import utilization
from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors, Plot, Reference, Row, Table
from perhop.statistics.judging import above, below, near
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.judges import Judge, Judges, differences, grouped, of_pairs, of_runs, variants
from perhop.studies.sampling import MBPS
from perhop.studies.yeom import common
from perhop.studies.yeom.common import COMPARED, NAMES, PROFILES, SCHEME_NAMES, SCHEMES, SETTING, Setting

CAPACITY = 9.0
MEMBERS = 3
"""Flows of an aggregate; of each rate there is one aggregate and one single source."""
SINGLE, AGGREGATE = "single", "aggregate"
SOURCES = (AGGREGATE, SINGLE)
RTTS = {1: (60, 60, 60), 2: (40, 60, 80)}
"""Round-trip times in ms of an aggregate's members, by experiment; single sources have 60 ms."""
SINGLE_RTT = 60
EXCESS = CAPACITY - 2 * sum(PROFILES)
LARGE = 2.0
UNHELD = (0.0, 0.1)
"""The classes that the receiver's window never holds back."""
BIN_S = 0.5
"""Figure 12's bins."""
SETTLED_S = 5.0
"""Figure 12's measures leave out what comes before: the slow start."""
UNBOUND = replace(SETTING, receiver_window=common.FIG12_WINDOW)
"""Figure 12's setting: a receiver window that holds no source back."""


def network(
    title: str,
    scheme: str,
    experiment: int,
    more: Mapping[str, Any] | None = None,
    setting: Setting = SETTING,
) -> dict[str, Any]:
    """Five aggregates of three flows, each with one marker, and five single flows."""
    entries, profiles = [], {}
    for rate in PROFILES:
        shared: float | str = 0.0
        if rate:
            shared = f"shared-{rate:g}"
            profiles[shared] = setting.profile(scheme, rate, in_sender=False)
        for number, rtt in enumerate(RTTS[experiment], start=1):
            entries.append(
                setting.tcp(scheme, f"{source_name(AGGREGATE, rate)}-{number}", shared, rtt_ms=rtt)
            )
        entries.append(setting.tcp(scheme, source_name(SINGLE, rate), rate, rtt_ms=SINGLE_RTT))
    return setting.scenario(title, scheme, CAPACITY, entries, {"profiles": profiles, **(more or {})})


def source_name(source: str, rate: float) -> str:
    """The flow entry of a single source, or what those of an aggregate begin with."""
    return f"{source}-{rate:g}"


def members(source: str, rate: float) -> tuple[str, ...]:
    """The flow entries of a source."""
    name = source_name(source, rate)
    return (name,) if source == SINGLE else tuple(f"{name}-{number}" for number in range(1, MEMBERS + 1))


# ---------------------------------------------------------------- Figure 11


def fig11_build(cell: Factors, setting: Setting = SETTING) -> Mapping[str, Any]:
    """One scheme in one experiment."""
    scheme, experiment = str(cell["scheme"]), int(cell["experiment"])
    return network("Yeom and Reddy, Figure 11", scheme, experiment, setting=setting)


def fig11_samples(cell: Factors, run: Run) -> Iterator[Sample]:
    """The rate of each source, all members together."""
    for rate in PROFILES:
        for source in SOURCES:
            factors = {**cell, "profile_mbps": rate, "source": source}
            yield Sample(factors, "throughput", MBPS, common.sum_mbps(run, *members(source, rate)))
    for number, rtt in enumerate(RTTS[int(cell["experiment"])], start=1):
        names = [f"{source_name(AGGREGATE, rate)}-{number}" for rate in PROFILES]
        factors = {**cell, "member": number, "rtt_ms": rtt}
        yield Sample(factors, "member_throughput", MBPS, common.sum_mbps(run, *names))
    yield Sample(cell, "utilization", "fraction", utilization([common.total_mbps(run)], CAPACITY))


def key(scheme: str, experiment: int, rate: float, source: str) -> dict[str, Any]:
    """The factors of one source."""
    return {"scheme": scheme, "experiment": experiment, "profile_mbps": rate, "source": source}


def sources(scheme: str, experiment: int, rate: float) -> tuple[Factors, Factors]:
    """The factors of the aggregate and of the single source of a rate."""
    return key(scheme, experiment, rate, AGGREGATE), key(scheme, experiment, rate, SINGLE)


def _aggregate_wins() -> Judge:
    pairs = {
        f"{SCHEME_NAMES[s]}, experiment {x}, {NAMES[r]}": sources(s, x, r)
        for s, x, r in itertools.product(COMPARED, RTTS, PROFILES)
    }
    first = {
        SCHEME_NAMES[s]: differences("throughput", {r: sources(s, 1, r) for r in PROFILES}).reads("{value}")
        for s in COMPARED
    }
    found = differences("throughput", pairs).all(above)
    return found.said(
        "Aggregate − single, experiment 1, 2/1/0.5/0.1/BE, Mbit/s: {first:+.2f} ({failing}).",
        first=grouped(first, "{name} {all}"),
    )


def _experiments_alike(much_mbps: float) -> Judge:
    pairs = {
        f"{SCHEME_NAMES[s]}, {source}, {NAMES[r]}": (key(s, 2, r, source), key(s, 1, r, source))
        for s, r, source in itertools.product(COMPARED, PROFILES, SOURCES)
    }
    found = differences("throughput", pairs)
    return found.all(near, 0.0, much_mbps).said(
        "Experiment 2 − 1: the largest difference is {largest:+}; {failing}.",
        largest=found.highest(lambda one: abs(one.mean)).reads("{value} Mbit/s ({name})"),
    )


def _blunts() -> Judge:
    """Judge whether 40 against 80 ms change members by more than aggregates change by experiment."""

    def member(scheme: str, number: int, rtt: int) -> tuple[str, Factors]:
        return "member_throughput", {"scheme": scheme, "experiment": 2, "member": number, "rtt_ms": rtt}

    def more(a: float, b: float, *rates: float) -> float:
        first, second = rates[: len(PROFILES)], rates[len(PROFILES) :]
        return abs(a / b - 1) - abs(sum(second) / sum(first) - 1)

    short, long = RTTS[2][0], RTTS[2][-1]
    ends = {s: (member(s, 1, short), member(s, MEMBERS, long)) for s in COMPARED}
    sums = {s: [("throughput", key(s, x, r, AGGREGATE)) for x in RTTS for r in PROFILES] for s in COMPARED}
    found = of_runs({SCHEME_NAMES[s]: (more, *ends[s], *sums[s]) for s in COMPARED})
    return found.all(above).said(
        f"Members of {short} ms over those of {long} ms, less 1: {{apart:+}}; more than the aggregates "
        "change from experiment 1 to 2 by: {:+}.",
        apart=of_runs({SCHEME_NAMES[s]: (lambda a, b: a / b - 1, *pair) for s, pair in ends.items()}),
    )


def three_shares(classes: Sequence[float], low: float = 2.0, high: float = 4.0) -> Judge:
    """Judge the excess of an aggregate over that of the single source, class by class."""
    beyond = {
        f"{SCHEME_NAMES[s]}, {NAMES[r]}, {times:g}": (
            lambda a, b, r=r, n=times, g=sign: g * ((a - r) - n * (b - r)),
            *(("throughput", of) for of in sources(s, 1, r)),
        )
        for s, r in itertools.product(COMPARED, classes)
        for times, sign in ((low, 1), (high, -1))
    }

    def excess(evidence: Evidence, scheme: str, rate: float) -> str:
        aggregate, single = (evidence.mean("throughput", of) - rate for of in sources(scheme, 1, rate))
        times_as_much = f" ({aggregate / single:.1f})" if single > 0 else ""
        return f"{aggregate:+.3f} and {single:+.3f}".replace("-", "−") + times_as_much

    def listed(evidence: Evidence) -> str:
        return "; ".join(
            f"{SCHEME_NAMES[s]} " + ", ".join(excess(evidence, s, r) for r in classes) for s in COMPARED
        )

    names = ", ".join(NAMES[rate] for rate in classes)
    found = of_runs(beyond).all(above)
    return found.said(
        f"Excess of an aggregate and of a single source, {names}, Mbit/s: {{listed}} ({{failing}}).",
        listed=listed,
    )


SOURCE_AXIS = Axis("source", "Source", {AGGREGATE: "aggregate", SINGLE: "single"})

FIG11 = common.THIS.study(
    "fig11",
    title="Aggregates against single sources",
    source=f"{common.PAPER}, Figure 11",
    summary="of each of five rates an aggregate of three flows and a single flow, on 9 Mbit/s",
    cells=[{"scheme": scheme, "experiment": experiment} for scheme in COMPARED for experiment in RTTS],
    scenario=fig11_build,
    samples=fig11_samples,
    judges={
        "aggregate-wins": _aggregate_wins(),
        "experiments-alike": variants(_experiments_alike, {"": 0.1, "0.05 Mbit/s": 0.05, "0.2 Mbit/s": 0.2}),
        "three-shares": {
            "": three_shares(PROFILES),
            "2.5 to 3.5 times": three_shares(PROFILES, 2.5, 3.5),
            "1.5 to 6 times": three_shares(PROFILES, 1.5, 6.0),
            "where no window holds back": three_shares(UNHELD),
        },
        "aggregation-blunts-rtt": _blunts(),
        "three-shares-unheld": three_shares(UNHELD),
    },
    tables=[
        Table(
            f"Rate of a source, Mbit/s, by profile, experiment {experiment}: round trips of {rtts}",
            {"throughput": ""},
            SCHEMES,
            (SOURCE_AXIS, common.CLASSES),
            where={"experiment": experiment},
            digits=2,
        )
        for experiment, rtts in ((1, "60 ms"), (2, "40, 60 and 80 ms in an aggregate"))
    ],
    plots=[
        common.bars(
            name=f"experiment-{experiment}",
            title=f"Rate of a source, experiment {experiment}",
            x=common.CLASSES,
            series=SOURCE_AXIS,
            reference=Reference("r + e/10", "profile_mbps", {r: r + EXCESS / 10 for r in PROFILES}),
            y_label="Mbit/s per source",
            facet=SCHEMES,
            where={"experiment": experiment},
        )
        for experiment in RTTS
    ],
    default_runs=20,
)


# ---------------------------------------------------------------- Figure 12


def fig12_build(cell: Factors, setting: Setting = UNBOUND) -> Mapping[str, Any]:
    """Experiment 1 with probes."""
    probes = {"probes": {"interval": f"{BIN_S:g}s"}}
    return network("Yeom and Reddy, Figure 12", str(cell["scheme"]), 1, probes, setting)


def in_time(run: Run, source: str) -> NDArray[np.float64]:
    """Rate of a 2-Mbit/s source in each bin, Mbit/s."""
    names = [group.name for group in run.groups]
    wanted = [names.index(name) for name in members(source, LARGE)]
    chosen = np.isin(run.flows("group"), wanted)
    rates: NDArray[np.float64] = np.asarray(run.raw["series"]["throughput_bps"])[:, chosen].sum(axis=1) / 1e6
    return rates


def fig12_samples(cell: Factors, run: Run) -> Iterator[Sample]:
    """The rate in time, and what the figure is about."""
    times = run.raw["series"]["time_s"]
    for source in SOURCES:
        factors = {**cell, "source": source}
        rates = in_time(run, source)
        for time, rate in zip(times, rates, strict=True):
            yield Sample({**factors, "time_s": round(float(time), 3)}, "rate", MBPS, float(rate))
        late = rates[np.asarray(times) > SETTLED_S]
        yield Sample(factors, "mean_rate", MBPS, float(late.mean()))
        yield Sample(factors, "peak_rate", MBPS, float(late.max()))
        yield Sample(factors, "variation", "ratio", float(late.std() / late.mean()))
        yield Sample(factors, "crossings", "1/s", crossings(late) / (len(late) * BIN_S))
        yield Sample(factors, "step", "ratio", float(np.abs(np.diff(late)).mean() / late.mean()))


def crossings(rates: NDArray[np.float64]) -> int:
    """The number of crossings of a rate's mean from bin to bin; a bin at the mean counts as above."""
    over = rates >= rates.mean()
    return int(np.count_nonzero(over[1:] != over[:-1]))


def one_run(evidence: Evidence) -> Iterator[Row]:
    """The rate in time of the first seed's run: a mean over runs would not fluctuate."""
    times = [index * BIN_S for index in range(1, round(common.DURATION_S / BIN_S) + 1)]
    places = itertools.product(COMPARED, SOURCES, times)
    keys: Iterator[Factors] = ({"scheme": s, "source": source, "time_s": t} for s, source, t in places)
    return evidence.first_run("rate", keys, "rate_of_one_run", MBPS)


def _pairs(schemes: Sequence[str]) -> dict[str, tuple[Factors, Factors]]:
    """The factors of the aggregate's and of the single source's measures in time, by the scheme's name."""
    aggregate, single = ({s: {"scheme": s, "source": source} for s in schemes} for source in SOURCES)
    return {SCHEME_NAMES[s]: (aggregate[s], single[s]) for s in schemes}


def _much_higher_peaks(times: float, schemes: Sequence[str] = COMPARED) -> Judge:
    found = of_pairs(lambda a, b: a / b, "peak_rate", _pairs(schemes)).all(above, times)
    return found.said("Highest bin, aggregate over single: {:.2}.")


MEASURES = {
    "peak_rate": (above, "Highest bin, aggregate − single, Mbit/s"),
    "mean_rate": (above, "Mean rate, aggregate − single, Mbit/s"),
    "variation": (below, "Standard deviation over mean of the bins, aggregate − single"),
    "crossings": (below, "Crossings of the mean rate per second, aggregate − single"),
    "step": (below, "Mean step from bin to bin over mean rate, aggregate − single"),
}
"""The figure's measures in words, and on which side of the single source the aggregate is to be."""


def _apart(metric: str, schemes: Sequence[str] = COMPARED) -> Judge:
    side, words = MEASURES[metric]
    return differences(metric, _pairs(schemes)).all(side).said(f"{words}: {{:+}}.")


def _in_the_figure(judge_of: Callable[[Sequence[str]], Judge]) -> Judges:
    """The readings of a sentence on a figure that shows one scheme and does not say which."""
    return variants(judge_of, {f"the figure shows {SCHEME_NAMES[s]}": (s,) for s in COMPARED})


FIG12 = common.THIS.study(
    "fig12",
    title="Rate in time of an aggregate and of a single source",
    source=f"{common.PAPER}, Figure 12",
    summary="the two 2-Mbit/s sources of yeom-fig11's experiment 1, in bins of 0.5 s",
    cells=[{"scheme": scheme} for scheme in COMPARED],
    scenario=fig12_build,
    samples=fig12_samples,
    judges={
        "higher-peaks": {
            **_in_the_figure(partial(_much_higher_peaks, 1.2)),
            "in every scheme, by a tenth": _much_higher_peaks(1.1),
            "in every scheme, by two fifths": _much_higher_peaks(1.4),
        },
        "more-excess": _in_the_figure(partial(_apart, "mean_rate")),
        "fluctuates-less": {
            **_in_the_figure(partial(_apart, "crossings")),
            "smaller steps, in every scheme": _apart("step"),
        },
        "smoother": _in_the_figure(partial(_apart, "variation")),
        "peaks-above": _apart("peak_rate"),
        "smaller-steps": _apart("step"),
    },
    tables=(
        Table(
            "The 2-Mbit/s sources from 5 s on: mean and highest rate in Mbit/s; standard deviation, and mean "
            "step from bin to bin, over the mean; crossings of the mean per second",
            {
                "mean_rate": "mean",
                "peak_rate": "highest",
                "variation": "deviation",
                "step": "step",
                "crossings": "crossings",
            },
            SCHEMES,
            (SOURCE_AXIS,),
        ),
    ),
    plots=(
        Plot(
            id="in-time",
            title="Rate of the 2-Mbit/s sources in time, first run",
            kind="lines",
            metric="rate_of_one_run",
            x=Axis("time_s", "Time, s"),
            series=SOURCE_AXIS,
            y_label="Mbit/s",
            facet=SCHEMES,
            references=(Reference("profile", "scheme", dict.fromkeys(COMPARED, LARGE)),),
        ),
    ),
    summaries=one_run,
    default_runs=80,
)
