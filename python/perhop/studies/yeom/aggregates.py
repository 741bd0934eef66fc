"""Figures 11 and 12: three flows that share a reservation against a single flow of the same reservation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.judging import Judgement, by_interval
from perhop.measures import utilization
from perhop.statistics import Estimate, paired_difference
from perhop.studies.paper import claims
from perhop.studies.yeom.common import (
    CLASSES,
    COMPARED,
    MBPS,
    NAMES,
    PAPER,
    PROFILES,
    RUNS,
    SCHEME_NAMES,
    SCHEMES,
    SETTING,
    all_above,
    all_below,
    by_scheme,
    signed,
    stated,
    sum_mbps,
    total_mbps,
)
from perhop.study import (
    Axis,
    Evidence,
    Plot,
    Reference,
    Row,
    Sample,
    Study,
    Table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from perhop.runs import Run
    from perhop.study import Factors

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
BIN_S = 0.5
"""Figure 12's bins."""
DURATION_S = 30.0
SETTLED_S = 5.0
"""Figure 12's measures leave out what comes before: the slow start."""

FIG11_STATEMENT = stated("fig11")
FIG12_STATEMENT = stated("fig12")


def network(
    title: str, scheme: str, experiment: int, more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Five aggregates of three flows, each with one marker, and five single flows."""
    entries, profiles = [], {}
    for rate in PROFILES:
        shared: float | str = 0.0
        if rate:
            shared = f"shared-{rate:g}"
            profiles[shared] = SETTING.profile(scheme, rate)
        for number, rtt in enumerate(RTTS[experiment], start=1):
            entries.append(
                SETTING.tcp(scheme, f"{source_name(AGGREGATE, rate)}-{number}", shared, rtt_ms=rtt)
            )
        entries.append(SETTING.tcp(scheme, source_name(SINGLE, rate), rate, rtt_ms=SINGLE_RTT))
    return SETTING.scenario(title, scheme, CAPACITY, entries, {"profiles": profiles, **(more or {})})


def source_name(source: str, rate: float) -> str:
    """The flow entry of a single source, or what those of an aggregate begin with."""
    return f"{source}-{rate:g}"


def members(source: str, rate: float) -> tuple[str, ...]:
    """The flow entries of a source."""
    name = source_name(source, rate)
    return (name,) if source == SINGLE else tuple(f"{name}-{number}" for number in range(1, MEMBERS + 1))


# ---------------------------------------------------------------- Figure 11


def fig11_build(cell: Factors) -> Mapping[str, Any]:
    """One scheme in one experiment."""
    return network("Yeom and Reddy, Figure 11", str(cell["scheme"]), int(cell["experiment"]))


def fig11_samples(cell: Factors, run: Run) -> Iterator[Sample]:
    """The rate of each source, all members together."""
    for rate in PROFILES:
        for source in SOURCES:
            factors = {**cell, "profile_mbps": rate, "source": source}
            yield Sample(factors, "throughput", MBPS, sum_mbps(run, *members(source, rate)))
    yield Sample(cell, "utilization", "fraction", utilization([total_mbps(run)], CAPACITY))


def key(scheme: str, experiment: int, rate: float, source: str) -> dict[str, Any]:
    """The factors of one source."""
    return {"scheme": scheme, "experiment": experiment, "profile_mbps": rate, "source": source}


def advantage(evidence: Evidence, scheme: str, experiment: int, rate: float) -> Estimate:
    """Aggregate − single."""
    return evidence.difference(
        "throughput", key(scheme, experiment, rate, AGGREGATE), key(scheme, experiment, rate, SINGLE)
    )


def aggregate_wins(evidence: Evidence) -> Judgement:
    """Every level, scheme and experiment."""
    found = {(s, x, r): advantage(evidence, s, x, r) for s in COMPARED for x in RTTS for r in PROFILES}
    against = [
        f"{SCHEME_NAMES[s]}, experiment {x}, {NAMES[r]}: {e.text(sign=True)}"
        for (s, x, r), e in found.items()
        if e.low <= 0
    ]
    text = "; ".join(
        f"{SCHEME_NAMES[s]} " + ", ".join(signed(found[s, 1, r].mean, 2) for r in PROFILES) for s in COMPARED
    )
    return by_interval(
        found.values(),
        f"Aggregate − single, experiment 1, 2/1/0.5/0.1/BE, Mbit/s: {text}. "
        f"Not above 0: {'; '.join(against) or 'none'}.",
        holds=not against,
    )


def experiments_alike(evidence: Evidence) -> Judgement:
    """Experiment 2 − experiment 1, source by source."""
    found = {
        (s, rate, source): evidence.difference("throughput", key(s, 2, rate, source), key(s, 1, rate, source))
        for s in COMPARED
        for rate in PROFILES
        for source in SOURCES
    }
    worst = max(found, key=lambda k: abs(found[k].mean))
    share = sum(abs(e.mean) < 0.1 for e in found.values())
    return Judgement(
        share == len(found),
        f"Experiment 2 − 1: the largest difference is {found[worst].text(sign=True)} Mbit/s "
        f"({SCHEME_NAMES[worst[0]]}, {worst[2]}, {NAMES[worst[1]]}); {share} of {len(found)} are below 0.1.",
    )


def three_shares(evidence: Evidence) -> Judgement:
    """Excess of the aggregates over that of the single sources."""
    found = {}
    for s in COMPARED:
        gains = {
            source: sum(evidence.mean("throughput", key(s, 1, rate, source)) - rate for rate in PROFILES)
            for source in SOURCES
        }
        found[s] = gains
    text = "; ".join(
        f"{SCHEME_NAMES[s]} {signed(g[AGGREGATE], 2)} and {signed(g[SINGLE], 2)}" for s, g in found.items()
    )
    return Judgement(
        all(g[SINGLE] > 0 and 2 <= g[AGGREGATE] / g[SINGLE] <= 4 for g in found.values()),
        f"Beyond the reservation, sum over five aggregates and over five single sources, Mbit/s: {text}.",
    )


SOURCE_AXIS = Axis("source", "Source", {AGGREGATE: "aggregate", SINGLE: "single"})

FIG11 = Study(
    id="yeom-fig11",
    title="Aggregates against single sources",
    source=f"{PAPER}, Figure 11",
    summary="of each of five rates an aggregate of three flows and a single flow, on 9 Mbit/s",
    cells=[{"scheme": scheme, "experiment": experiment} for scheme in COMPARED for experiment in RTTS],
    scenario=fig11_build,
    samples=fig11_samples,
    published=FIG11_STATEMENT.values,
    claims=claims(
        FIG11_STATEMENT.claims,
        {
            "aggregate-wins": aggregate_wins,
            "experiments-alike": experiments_alike,
            "three-shares": three_shares,
        },
    ),
    tables=tuple(
        Table(
            f"Rate of a source, Mbit/s, by profile, experiment {experiment}: round trips of "
            + ("60 ms" if experiment == 1 else "40, 60 and 80 ms in an aggregate"),
            {"throughput": ""},
            SCHEMES,
            (SOURCE_AXIS, CLASSES),
            where={"experiment": experiment},
            digits=2,
        )
        for experiment in RTTS
    ),
    plots=tuple(
        Plot(
            id=f"experiment-{experiment}",
            title=f"Rate of a source, experiment {experiment}",
            kind="bars",
            metric="throughput",
            x=CLASSES,
            series=SOURCE_AXIS,
            y_label="Mbit/s per source",
            facet=SCHEMES,
            where={"experiment": experiment},
            references=(Reference("r + e/10", "profile_mbps", {r: r + EXCESS / 10 for r in PROFILES}),),
        )
        for experiment in RTTS
    ),
    notes=FIG11_STATEMENT.notes,
    method=FIG11_STATEMENT.method,
    assumptions=FIG11_STATEMENT.assumptions,
    default_runs=RUNS,
)


# ---------------------------------------------------------------- Figure 12


def fig12_build(cell: Factors) -> Mapping[str, Any]:
    """Experiment 1 with probes."""
    probes = {"probes": {"interval": f"{BIN_S:g}s"}}
    return network("Yeom and Reddy, Figure 12", str(cell["scheme"]), 1, probes)


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
        yield Sample(factors, "step", "ratio", float(np.abs(np.diff(late)).mean() / late.mean()))


def one_run(evidence: Evidence) -> Iterator[Row]:
    """The rate in time of the first seed's run: a mean over runs would not fluctuate."""
    for scheme in COMPARED:
        for source in SOURCES:
            for index in range(1, round(DURATION_S / BIN_S) + 1):
                factors: Factors = {"scheme": scheme, "source": source, "time_s": index * BIN_S}
                values = evidence.by_seed("rate", factors)
                yield Row(factors, "rate_of_one_run", MBPS, None, values[min(values)], None, 1)


def higher_peaks(evidence: Evidence) -> Judgement:
    """Aggregate − single in the highest bin."""
    return _compare(evidence, "peak_rate", 1, "Highest bin, aggregate − single, Mbit/s")


def smoother(evidence: Evidence) -> Judgement:
    """Aggregate − single in the coefficient of variation."""
    return _compare(evidence, "variation", -1, "Standard deviation over mean of the bins, aggregate − single")


def fluctuates_less(evidence: Evidence) -> Judgement:
    """Aggregate − single in the mean step from bin to bin."""
    return _compare(evidence, "step", -1, "Mean step from bin to bin over mean rate, aggregate − single")


def _compare(evidence: Evidence, metric: str, sign: int, what: str) -> Judgement:
    found = {
        s: paired_difference(
            evidence.by_seed(metric, {"scheme": s, "source": AGGREGATE}),
            evidence.by_seed(metric, {"scheme": s, "source": SINGLE}),
        )
        for s in COMPARED
    }
    judge = all_above if sign > 0 else all_below
    return judge(found, f"{what}: {by_scheme(found, sign=True)}.")


FIG12 = Study(
    id="yeom-fig12",
    title="Rate in time of an aggregate and of a single source",
    source=f"{PAPER}, Figure 12",
    summary="the two 2-Mbit/s sources of yeom-fig11's experiment 1, in bins of 0.5 s",
    cells=[{"scheme": scheme} for scheme in COMPARED],
    scenario=fig12_build,
    samples=fig12_samples,
    published=FIG12_STATEMENT.values,
    claims=claims(
        FIG12_STATEMENT.claims,
        {"higher-peaks": higher_peaks, "smoother": smoother, "fluctuates-less": fluctuates_less},
    ),
    tables=(
        Table(
            "The 2-Mbit/s sources from 5 s on: mean and highest rate in Mbit/s; standard deviation, and mean "
            "step from bin to bin, over the mean",
            {"mean_rate": "mean", "peak_rate": "highest", "variation": "deviation", "step": "step"},
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
    notes=FIG12_STATEMENT.notes,
    method=FIG12_STATEMENT.method,
    assumptions=FIG12_STATEMENT.assumptions,
    summaries=one_run,
    default_runs=RUNS,
)
