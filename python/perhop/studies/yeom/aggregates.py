"""Figures 11 and 12: three flows that share a reservation against a single flow of the same reservation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.measures.fairness import utilization
from perhop.show.declared import Axis, Plot, Reference, Row, Table
from perhop.statistics.judging import Judgement, above, all_of, judge, near
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.paper import claims
from perhop.studies.study import Study
from perhop.studies.yeom.common import (
    CLASSES,
    COMPARED,
    DURATION_S,
    FIG12_WINDOW,
    MBPS,
    NAMES,
    PAPER,
    PROFILES,
    SCHEME_NAMES,
    SCHEMES,
    SETTING,
    Setting,
    by_scheme,
    combined,
    each_above,
    each_below,
    failing,
    signed,
    stated,
    sum_mbps,
    total_mbps,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.studies.paper import Judges

RUNS = {11: 20, 12: 80}
"""By figure."""
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

FIG11_STATEMENT = stated("fig11")
FIG12_STATEMENT = stated("fig12")


UNBOUND = replace(SETTING, receiver_window=FIG12_WINDOW)
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
            yield Sample(factors, "throughput", MBPS, sum_mbps(run, *members(source, rate)))
    for number, rtt in enumerate(RTTS[int(cell["experiment"])], start=1):
        names = [f"{source_name(AGGREGATE, rate)}-{number}" for rate in PROFILES]
        factors = {**cell, "member": number, "rtt_ms": rtt}
        yield Sample(factors, "member_throughput", MBPS, sum_mbps(run, *names))
    yield Sample(cell, "utilization", "fraction", utilization([total_mbps(run)], CAPACITY))


def key(scheme: str, experiment: int, rate: float, source: str) -> dict[str, Any]:
    """The factors of one source."""
    return {"scheme": scheme, "experiment": experiment, "profile_mbps": rate, "source": source}


def aggregate_wins(evidence: Evidence) -> Judgement:
    """Every level, scheme and experiment."""
    found = {
        (s, x, r): evidence.difference("throughput", key(s, x, r, AGGREGATE), key(s, x, r, SINGLE))
        for s in COMPARED
        for x in RTTS
        for r in PROFILES
    }
    checks = {f"{SCHEME_NAMES[s]}, experiment {x}, {NAMES[r]}": above(e) for (s, x, r), e in found.items()}
    text = "; ".join(
        f"{SCHEME_NAMES[s]} " + ", ".join(signed(found[s, 1, r].mean, 2) for r in PROFILES) for s in COMPARED
    )
    return judge(
        all_of(*checks.values()),
        f"Aggregate − single, experiment 1, 2/1/0.5/0.1/BE, Mbit/s: {text} ({failing(checks)}).",
    )


def experiments_alike(much_mbps: float) -> Callable[[Evidence], Judgement]:
    """A claim that experiment 2 differs from experiment 1 by at most that, source by source."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            (s, rate, source): evidence.difference(
                "throughput", key(s, 2, rate, source), key(s, 1, rate, source)
            )
            for s in COMPARED
            for rate in PROFILES
            for source in SOURCES
        }
        checks = {
            f"{SCHEME_NAMES[s]}, {o}, {NAMES[r]}": near(e, 0.0, much_mbps) for (s, r, o), e in found.items()
        }
        worst = max(found, key=lambda k: abs(found[k].mean))
        return judge(
            all_of(*checks.values()),
            f"Experiment 2 − 1: the largest difference is {found[worst].text(sign=True)} Mbit/s "
            f"({SCHEME_NAMES[worst[0]]}, {worst[2]}, {NAMES[worst[1]]}); {failing(checks)}.",
        )

    return judged


def blunts(evidence: Evidence) -> Judgement:
    """What 40 against 80 ms do to members, and what they do to an aggregate, in experiment 2."""

    def member(scheme: str, number: int, rtt: int) -> tuple[str, Factors]:
        return "member_throughput", {"scheme": scheme, "experiment": 2, "member": number, "rtt_ms": rtt}

    near_rtt, far_rtt = RTTS[2][0], RTTS[2][-1]
    members_apart, found = {}, {}
    for s in COMPARED:
        short, long = member(s, 1, near_rtt), member(s, MEMBERS, far_rtt)
        members_apart[s] = combined(evidence, lambda a, b: a / b - 1, short, long)
        sums = [
            ("throughput", key(s, experiment, rate, AGGREGATE)) for experiment in RTTS for rate in PROFILES
        ]
        found[s] = combined(
            evidence,
            lambda a, b, *rates: (
                abs(a / b - 1) - abs(sum(rates[len(PROFILES) :]) / sum(rates[: len(PROFILES)]) - 1)
            ),
            short,
            long,
            *sums,
        )
    return each_above(
        found,
        f"Members of {near_rtt} ms over those of {far_rtt} ms, less 1: "
        f"{by_scheme(members_apart, sign=True)}; more than the aggregates change from experiment 1 to 2 by: "
        f"{by_scheme(found, sign=True)}.",
    )


def three_shares(
    classes: Sequence[float], low: float = 2.0, high: float = 4.0
) -> Callable[[Evidence], Judgement]:
    """A claim on the excess of an aggregate over that of the single source, class by class."""

    def judged(evidence: Evidence) -> Judgement:
        checks, texts = {}, []
        for s in COMPARED:
            ratios = []
            for rate in classes:
                excess = [("throughput", key(s, 1, rate, source)) for source in SOURCES]
                for times, sign in ((low, 1), (high, -1)):
                    beyond = combined(
                        evidence, lambda a, b, r=rate, n=times, g=sign: g * ((a - r) - n * (b - r)), *excess
                    )
                    checks[f"{SCHEME_NAMES[s]}, {NAMES[rate]}, {times:g}"] = above(beyond)
                aggregate, single = (evidence.mean(*of) - rate for of in excess)
                times_as_much = f" ({aggregate / single:.1f})" if single > 0 else ""
                ratios.append(f"{signed(aggregate)} and {signed(single)}{times_as_much}")
            texts.append(f"{SCHEME_NAMES[s]} " + ", ".join(ratios))
        listed = ", ".join(NAMES[rate] for rate in classes)
        return judge(
            all_of(*checks.values()),
            f"Excess of an aggregate and of a single source, {listed}, Mbit/s: {'; '.join(texts)} "
            f"({failing(checks)}).",
        )

    return judged


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
            "experiments-alike": {
                "": experiments_alike(0.1),
                "0.05 Mbit/s": experiments_alike(0.05),
                "0.2 Mbit/s": experiments_alike(0.2),
            },
            "three-shares": {
                "": three_shares(PROFILES),
                "2.5 to 3.5 times": three_shares(PROFILES, 2.5, 3.5),
                "1.5 to 6 times": three_shares(PROFILES, 1.5, 6.0),
                "where no window holds back": three_shares(UNHELD),
            },
            "aggregation-blunts-rtt": blunts,
            "three-shares-unheld": three_shares(UNHELD),
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
    default_runs=RUNS[11],
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
    """How often a rate crosses its mean from one bin to the next; a bin at the mean counts as above."""
    over = rates >= rates.mean()
    return int(np.count_nonzero(over[1:] != over[:-1]))


def one_run(evidence: Evidence) -> Iterator[Row]:
    """The rate in time of the first seed's run: a mean over runs would not fluctuate."""
    for scheme in COMPARED:
        for source in SOURCES:
            for index in range(1, round(DURATION_S / BIN_S) + 1):
                factors: Factors = {"scheme": scheme, "source": source, "time_s": index * BIN_S}
                values = evidence.by_seed("rate", factors)
                yield Row(factors, "rate_of_one_run", MBPS, None, values[min(values)], None, 1)


def much_higher_peaks(times: float, schemes: Sequence[str] = COMPARED) -> Callable[[Evidence], Judgement]:
    """A claim that the aggregate's highest bin is more than so many times the single source's."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            s: combined(
                evidence,
                lambda aggregate, single: aggregate / single,
                ("peak_rate", {"scheme": s, "source": AGGREGATE}),
                ("peak_rate", {"scheme": s, "source": SINGLE}),
            )
            for s in schemes
        }
        return judge(
            all_of(*(above(e, times) for e in found.values())),
            f"Highest bin, aggregate over single: {by_scheme(found, 2)}.",
        )

    return judged


MORE = {"peak_rate": "Highest bin", "mean_rate": "Mean rate"}
LESS = {
    "variation": "Standard deviation over mean of the bins",
    "crossings": "Crossings of the mean rate per second",
    "step": "Mean step from bin to bin over mean rate",
}
"""What the figure's measures are called: the aggregate has more of the first ones, less of the others."""


def apart(metric: str, schemes: Sequence[str] = COMPARED) -> Callable[[Evidence], Judgement]:
    """A claim that the aggregate has more of a measure, if it is in `MORE`, or less of it, if in `LESS`."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            s: evidence.difference(
                metric, {"scheme": s, "source": AGGREGATE}, {"scheme": s, "source": SINGLE}
            )
            for s in schemes
        }
        text = by_scheme(found, sign=True)
        if metric in MORE:
            return each_above(found, f"{MORE[metric]}, aggregate − single, Mbit/s: {text}.")
        return each_below(found, f"{LESS[metric]}, aggregate − single: {text}.")

    return judged


def in_the_figure(judge_of: Callable[[Sequence[str]], Callable[[Evidence], Judgement]]) -> Judges:
    """The readings of a sentence on a figure that shows one scheme and does not say which."""
    return {f"the figure shows {SCHEME_NAMES[s]}": judge_of((s,)) for s in COMPARED}


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
        {
            "higher-peaks": {
                **in_the_figure(lambda schemes: much_higher_peaks(1.2, schemes)),
                "in every scheme, by a tenth": much_higher_peaks(1.1),
                "in every scheme, by two fifths": much_higher_peaks(1.4),
            },
            "more-excess": in_the_figure(lambda schemes: apart("mean_rate", schemes)),
            "fluctuates-less": {
                **in_the_figure(lambda schemes: apart("crossings", schemes)),
                "smaller steps, in every scheme": apart("step"),
            },
            "smoother": in_the_figure(lambda schemes: apart("variation", schemes)),
            "peaks-above": apart("peak_rate"),
            "smaller-steps": apart("step"),
        },
    ),
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
    notes=FIG12_STATEMENT.notes,
    method=FIG12_STATEMENT.method,
    assumptions=FIG12_STATEMENT.assumptions,
    summaries=one_run,
    default_runs=RUNS[12],
)
