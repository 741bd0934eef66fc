"""Table 1: five profile rates and best effort at 76 % subscription, RIO against RI+O with five OUT sets."""

from __future__ import annotations

import itertools
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from perhop.judging import Judgement, by_interval
from perhop.measures import reservation_success, rmse, targets, utilization
from perhop.studies.kim.common import (
    BEST_EFFORT,
    CAPACITY_MBPS,
    MBPS,
    PAPER,
    SCHEMES,
    flows,
    mean_mbps,
    scenario,
    stated,
)
from perhop.studies.paper import claims
from perhop.study import (
    Axis,
    Evidence,
    Plot,
    Published,
    Reference,
    Sample,
    Study,
    Table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perhop.runs import Run
    from perhop.study import Factors

COUNTS = {2.0: 4, 1.0: 4, 0.5: 4, 0.2: 4, 0.1: 4, 0.0: 20}
"""Flows of each class by profile rate in Mbit/s; 0 is best effort."""

OUT_SETS = ("200/600/0.01", "100/300/0.01", "30/90/0.01", "10/30/0.01", "5/15/0.01")
"""RI+O's OUT sets, loosest first."""

TIGHTEST = OUT_SETS[-2:]
RIO: Factors = {"scheme": "rio", "out": "none"}

NAMES = {rate: "best effort" if rate == 0 else f"{rate:g} Mbit/s" for rate in COUNTS}
FLOWS = [rate for rate, count in COUNTS.items() for _ in range(count)]
FAIR = dict(zip(FLOWS, targets(FLOWS, CAPACITY_MBPS), strict=True))
"""Fair share of each class, Mbit/s."""

STATEMENT = stated("table1")


def ri_plus_o(out: str) -> Factors:
    """The cell of RI+O with one OUT set."""
    return {"scheme": "rio-plus-out", "out": out}


def class_name(rate: float) -> str:
    """The flow entry of a class."""
    return BEST_EFFORT if rate == 0 else f"profile-{rate:g}"


def build(cell: Factors) -> Mapping[str, Any]:
    """The setting of one row."""
    queue = {"aqm": str(cell["scheme"]), "limit": "868p", "in": "390/694/0.02", "total": "347/694/0.05"}
    if cell["scheme"] == "rio-plus-out":
        queue["out"] = str(cell["out"])
    entries = [flows(class_name(rate), n, rate, packet="576B", burst="40kB") for rate, n in COUNTS.items()]
    return scenario("Kim et al., Table 1", {**queue, "mean-packet": "576B"}, entries)


def row_measures(rates: Mapping[float, float]) -> Iterator[tuple[str, str, float]]:
    """What follows from a row of class means: the sum over all flows, the error against the fair share."""
    weighted = [rates[rate] * count for rate, count in COUNTS.items()]
    yield "total_throughput", MBPS, sum(weighted)
    yield (
        "rmse",
        MBPS,
        rmse(list(rates.values()), [FAIR[rate] for rate in rates], [COUNTS[rate] for rate in rates]),
    )


def samples(cell: Factors, run: Run) -> Iterator[Sample]:
    """Class means, their sum and error, the link's utilization, the share of reservations that were met."""
    rates = {rate: mean_mbps(run, class_name(rate)) for rate in COUNTS}
    for rate, value in rates.items():
        yield Sample({**cell, "profile_mbps": rate}, "throughput", MBPS, value)
    for metric, unit, value in row_measures(rates):
        yield Sample(cell, metric, unit, value)
    achieved = [float(x) / 1e6 for x in run.flows("throughput_bps")]
    yield Sample(cell, "utilization", "fraction", utilization(achieved, CAPACITY_MBPS))
    success = reservation_success(
        achieved, [run.groups[int(g)].profile_bps / 1e6 for g in run.flows("group")]
    )
    if success is not None:
        yield Sample(cell, "reservation_success", "fraction", success)


def published() -> list[Published]:
    """The printed rates, and the sums and errors that follow from them."""
    values = list(STATEMENT.values)
    for cell in CELLS:
        rates = {
            float(v.factors["profile_mbps"]): v.value
            for v in STATEMENT.values
            if cell.items() <= v.factors.items()
        }
        values.extend(
            Published(cell, metric, value, derived=True) for metric, _, value in row_measures(rates)
        )
    return values


def by_class(cell: Factors, rate: float) -> Factors:
    """The factors of one entry of the table."""
    return {**cell, "profile_mbps": rate}


def skew(evidence: Evidence) -> Judgement:
    """Small profiles and best effort above their due, the largest below."""
    found = {rate: evidence.estimate("throughput", by_class(RIO, rate)) for rate in COUNTS}
    due = {rate: FAIR[0.0] if rate == 0 else rate for rate in COUNTS}
    holds = found[2.0].high < 2.0 and all(found[rate].low > due[rate] for rate in (0.5, 0.2, 0.1, 0.0))
    text = ", ".join(f"{NAMES[rate]}: {found[rate].text()}" for rate in COUNTS)
    return by_interval(found.values(), f"RIO, Mbit/s: {text}.", holds=holds)


def nobody_reaches(evidence: Evidence) -> Judgement:
    """The 2.0 class stays below its profile in every row."""
    found = {LABELS[str(cell["out"])]: evidence.estimate("throughput", by_class(cell, 2.0)) for cell in CELLS}
    best = max(found, key=lambda name: found[name].mean)
    return Judgement(
        all(e.mean < 2.0 for e in found.values()), f"The highest is {best} with {found[best].text()} Mbit/s."
    )


def trend(rate: float, sign: int, more: Factors = MappingProxyType({})) -> Callable[[Evidence], Judgement]:
    """A claim that a class rises (sign 1) or falls (-1) as the OUT set tightens; `more` names a variant."""

    def judge(evidence: Evidence) -> Judgement:
        cells = [{**more, **by_class(ri_plus_o(out), rate)} for out in OUT_SETS]
        steps = [
            evidence.difference("throughput", after, before) for before, after in itertools.pairwise(cells)
        ]
        whole = evidence.difference("throughput", cells[-1], cells[0])
        against = [step for step in steps if (step.high < 0 if sign > 0 else step.low > 0)]
        means = ", ".join(f"{evidence.mean('throughput', cell):.3f}" for cell in cells)
        onward = whole.low > 0 if sign > 0 else whole.high < 0
        return by_interval(
            [*steps, whole],
            f"{NAMES[rate]}, loosest to tightest set: {means} Mbit/s; last − first {whole.text(sign=True)}, "
            f"{len(against) or 'no'} step against it beyond its interval.",
            holds=onward and not against,
        )

    return judge


def gain(evidence: Evidence) -> Judgement:
    """RI+O − RIO for the 2.0 class, with the two tightest sets."""
    found = {
        out: evidence.difference("throughput", by_class(ri_plus_o(out), 2.0), by_class(RIO, 2.0))
        for out in TIGHTEST
    }
    text = "; ".join(f"{out}: {e.text(sign=True)} Mbit/s" for out, e in found.items())
    printed = {
        out: value - base
        for out in TIGHTEST
        if (value := evidence.published("throughput", by_class(ri_plus_o(out), 2.0))) is not None
        and (base := evidence.published("throughput", by_class(RIO, 2.0))) is not None
    }
    beside = "; ".join(
        f"{out}: {value:+.3f}, ours is {found[out].mean / value:.1f} times that"
        for out, value in printed.items()
    ).replace("-", "−")
    return by_interval(
        found.values(),
        f"RI+O − RIO, {text}. Published, {beside}.",
        holds=any(e.low > 0 for e in found.values()),
    )


def lower_error(evidence: Evidence) -> Judgement:
    """RI+O − RIO in the error against the fair share."""
    found = {out: evidence.difference("rmse", ri_plus_o(out), RIO) for out in TIGHTEST}
    text = "; ".join(f"{out}: {e.text(sign=True)} Mbit/s" for out, e in found.items())
    base = evidence.estimate("rmse", RIO).text()
    return by_interval(
        found.values(),
        f"RIO {base} Mbit/s; RI+O − RIO, {text}.",
        holds=any(e.high < 0 for e in found.values()),
    )


def best_improves(evidence: Evidence) -> Judgement:
    """With the set of the smallest error, every class is nearer to its fair share than under RIO."""
    best = min(OUT_SETS, key=lambda out: evidence.mean("rmse", ri_plus_o(out)))

    def gap(cell: Factors, rate: float) -> float:
        return abs(evidence.mean("throughput", by_class(cell, rate)) - FAIR[rate])

    gaps = {rate: (gap(RIO, rate), gap(ri_plus_o(best), rate)) for rate in COUNTS}
    worse = [NAMES[rate] for rate, (rio, ours) in gaps.items() if ours >= rio]
    text = ", ".join(f"{NAMES[rate]} {rio:.3f} → {ours:.3f}" for rate, (rio, ours) in gaps.items())
    return Judgement(
        not worse,
        f"Distance from the fair share, RIO → RI+O {best}, Mbit/s: {text}. "
        f"{'Further away: ' + ', '.join(worse) if worse else 'None moves away'}. In the printed rows "
        "themselves the 0.2 class moves away (0.013 → 0.019 with 5/15).",
    )


def every_row_improves(evidence: Evidence) -> Judgement:
    """Every OUT set beats RIO for the 2.0 class."""
    found = {
        out: evidence.difference("throughput", by_class(ri_plus_o(out), 2.0), by_class(RIO, 2.0))
        for out in OUT_SETS
    }
    text = "; ".join(f"{out}: {e.text(sign=True)}" for out, e in found.items())
    return Judgement(
        all(e.mean > 0 for e in found.values()), f"RI+O − RIO for the 2.0 class, Mbit/s: {text}."
    )


CELLS: Sequence[dict[str, Any]] = (dict(RIO), *(dict(ri_plus_o(out)) for out in OUT_SETS))
LABELS = {"none": "RIO", **{out: f"RI+O {out.rsplit('/', 1)[0]}" for out in OUT_SETS}}
ROWS = Axis("out", "OUT set", LABELS)
CLASSES = Axis("profile_mbps", "Profile, Mbit/s", {**{r: f"{r:g}" for r in COUNTS if r}, 0.0: "BE"})

TABLE1 = Study(
    id="kim-table1",
    title="RIO against RI+O at 76 % subscription",
    source=f"{PAPER}, Table 1",
    summary="five profile rates and best effort on 20 Mbit/s, six queue settings",
    cells=CELLS,
    scenario=build,
    samples=samples,
    published=published(),
    claims=claims(
        STATEMENT.claims,
        {
            "large-profiles-fall-short": skew,
            "no-scheme-reaches-2": nobody_reaches,
            "tighter-out-raises-2": trend(2.0, 1),
            "tighter-out-raises-1": trend(1.0, 1),
            "tighter-out-lowers-best-effort": trend(0.0, -1),
            "gain-2-best": gain,
            "lower-error": lower_error,
            "always-improves-best": best_improves,
            "always-improves-every-row": every_row_improves,
        },
    ),
    tables=(
        Table("Throughput of a flow, Mbit/s, by profile", {"throughput": ""}, ROWS, (CLASSES,)),
        Table(
            "All 40 flows: sum and root-mean-square error against the fair share (Mbit/s), use of the link, "
            "and share of reserved flows that reach their profile",
            {
                "total_throughput": "sum",
                "rmse": "error",
                "utilization": "use",
                "reservation_success": "reach",
            },
            ROWS,
        ),
    ),
    plots=(
        Plot(
            id="who-gets-what",
            title="Who gets what under RIO and RI+O",
            kind="bars",
            metric="throughput",
            x=CLASSES,
            series=Axis("out", "Queue", {k: LABELS[k] for k in ("none", "5/15/0.01")}),
            y_label="Mbit/s per flow",
            where={"out": ("none", "5/15/0.01")},
            references=(
                Reference("profile", "profile_mbps", {rate: rate for rate in COUNTS if rate}),
                Reference("fair share", "profile_mbps", FAIR),
            ),
        ),
        Plot(
            id="by-out-set",
            title="Each class under each queue",
            kind="points",
            metric="throughput",
            x=Axis("out", "Queue", {k: v.replace("RI+O ", "") for k, v in LABELS.items()}),
            series=SCHEMES,
            y_label="Mbit/s per flow",
            facet=Axis("profile_mbps", "Class", NAMES),
            references=(
                Reference("profile", "profile_mbps", {rate: rate for rate in COUNTS if rate}),
                Reference("fair share", "profile_mbps", FAIR),
            ),
            from_zero=False,
        ),
    ),
    notes=STATEMENT.notes,
    method=STATEMENT.method,
    assumptions=STATEMENT.assumptions,
)
