"""Table 1: five profile rates and best effort at 76 % subscription, RIO against RI+O with five OUT sets.

The row "Best RIO" does not say its IN+OUT set: here it is the best that `kim-best-rio` finds among the
paper's own values. The set that the text names has a row of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from perhop.measures.fairness import reservation_success, rmse, subscription, targets, utilization
from perhop.measures.run import COLORS, Run
from perhop.plurals import counted
from perhop.show.declared import Axis, Factors, Plot, Reference, Table, tables
from perhop.statistics.judging import Judgement, above, all_of, at_least, below, fact, judge, opposite
from perhop.studies import judges
from perhop.studies.evidence import Evidence, Published, Sample
from perhop.studies.judges import Judge, difference, differences, level, levels, of_pairs, of_runs, variants
from perhop.studies.kim import common
from perhop.studies.kim.common import BEST_EFFORT, CAPACITY_MBPS, PACKET, corrected
from perhop.studies.sampling import MBPS, mean_mbps

COUNTS = {2.0: 4, 1.0: 4, 0.5: 4, 0.2: 4, 0.1: 4, 0.0: 20}
"""Flows of each class by profile rate in Mbit/s; 0 is best effort."""

OUT_SETS = ("200/600/0.01", "100/300/0.01", "30/90/0.01", "10/30/0.01", "5/15/0.01")
"""RI+O's OUT sets, loosest first."""
TIGHTEST = OUT_SETS[-2:]
STATED_SET = "347/694/0.05"
"""The IN+OUT set that the text names, which all RI+O rows have."""
BEST_SET = "30/90/0.1"
"""The IN+OUT set of the smallest error against the fair share among the 28 that the paper's values make."""
RIO: Factors = {"scheme": "rio", "out": "none"}
"""The row "Best RIO"."""
STATED: Factors = {"scheme": "stated-rio", "out": "stated"}
"""RIO with the text's set."""
PRINTED_BEST = "5/15/0.01"
"""The OUT set of the smallest error among the printed rows."""
BUCKET = "40kB"
"""320 kbit, as the table's introduction says."""
SECONDS = 100
SIZES = {"": 0.1, "a twentieth": 0.05, "a fifth": 0.2}
"""Parts of what is missing from which on a gain counts as significant, for the paper's word; "" decides."""

NAMES = {rate: "best effort" if rate == 0 else f"{rate:g} Mbit/s" for rate in COUNTS}
FLOWS = [rate for rate, count in COUNTS.items() for _ in range(count)]
FAIR = dict(zip(FLOWS, targets(FLOWS, CAPACITY_MBPS), strict=True))
"""Fair share of each class, Mbit/s."""

STATEMENT = common.THIS.item("table1")


def ri_plus_o(out: str) -> Factors:
    """The cell of RI+O with one OUT set."""
    return {"scheme": "rio-plus-out", "out": out}


def class_name(rate: float) -> str:
    """The flow entry of a class."""
    return BEST_EFFORT if rate == 0 else f"profile-{rate:g}"


def network(aqm: str, total: str, out: str | None = None) -> Mapping[str, Any]:
    """The table's forty flows through one queue."""
    queue = {"aqm": aqm, "limit": "868p", "in": "390/694/0.02", "total": total, "mean-packet": f"{PACKET}B"}
    if out is not None:
        queue["out"] = out
    entries = [common.flows(class_name(rate), n, rate, burst=BUCKET) for rate, n in COUNTS.items()]
    return common.scenario("Kim et al., Table 1", queue, entries)


def build(cell: Factors) -> Mapping[str, Any]:
    """The setting of one row."""
    if cell["scheme"] == "rio-plus-out":
        return network("rio-plus-out", STATED_SET, str(cell["out"]))
    return network("rio", BEST_SET if cell == RIO else STATED_SET)


def row_measures(rates: Mapping[float, float]) -> Iterator[tuple[str, str, float]]:
    """Measures that follow from a row of class means: the sum over all flows, the error."""
    counts, fair = [COUNTS[rate] for rate in rates], [FAIR[rate] for rate in rates]
    yield "total_throughput", MBPS, sum(rates[rate] * count for rate, count in COUNTS.items())
    yield "rmse", MBPS, rmse(list(rates.values()), fair, counts)


def colored(cell: Factors, run: Run, name: str) -> Iterator[Sample]:
    """IN and OUT traffic of a class's flow past the queue, Mbit/s, and the part of OUT that was dropped."""
    marked, dropped = run.of_group(name, "marked"), run.of_group(name, "dropped")
    size = run.of_group(name, "delivered_bytes").sum() / run.of_group(name, "delivered_packets").sum()
    passed = (marked - dropped).mean(axis=0) * size * 8 / SECONDS / 1e6
    green = COLORS.index("green")
    yield Sample(cell, "in_throughput", MBPS, float(passed[green]))
    yield Sample(cell, "out_throughput", MBPS, float(passed[green + 1 :].sum()))
    out = int(marked[:, green + 1 :].sum())
    if out:
        yield Sample(cell, "out_loss", "fraction", float(dropped[:, green + 1 :].sum()) / out, out)


def samples(cell: Factors, run: Run) -> Iterator[Sample]:
    """Class means, their IN and OUT parts and OUT losses; sum and error, use of the link, success."""
    rates = {rate: mean_mbps(run, class_name(rate)) for rate in COUNTS}
    for rate, value in rates.items():
        yield Sample({**cell, "profile_mbps": rate}, "throughput", MBPS, value)
        yield from colored({**cell, "profile_mbps": rate}, run, class_name(rate))
    for metric, unit, value in row_measures(rates):
        yield Sample(cell, metric, unit, value)
    achieved = [float(x) / 1e6 for x in run.flows("throughput_bps")]
    yield Sample(cell, "utilization", "fraction", utilization(achieved, CAPACITY_MBPS))
    success = reservation_success(
        achieved, [run.groups[int(g)].profile_bps / 1e6 for g in run.flows("group")]
    )
    if success is not None:
        yield Sample(cell, "reservation_success", "fraction", success, 1.0)


def published() -> list[Published]:
    """The printed rates, and the sums and errors that follow from them."""
    values = list(STATEMENT.values)
    for cell in CELLS:
        printed = [value for value in STATEMENT.values if cell.items() <= value.factors.items()]
        if printed:
            rates = {float(value.factors["profile_mbps"]): value.value for value in printed}
            wrong = any(value.misprint for value in printed)
            values.extend(
                Published(cell, metric, value, derived=True, misprint=wrong)
                for metric, _, value in row_measures(rates)
            )
    return values


def by_class(cell: Factors, rate: float) -> Factors:
    """The factors of one entry of the table."""
    return {**cell, "profile_mbps": rate}


CELLS: Sequence[dict[str, Any]] = (dict(RIO), dict(STATED), *(dict(ri_plus_o(out)) for out in OUT_SETS))
READINGS: Mapping[str, Factors] = {"RIO as the text sets it": STATED, "RIO as well set as can be": RIO}
"""The rows of RIO that a sentence on RIO can speak of."""
LABELS = {
    "none": f"Best RIO ({BEST_SET})",
    "stated": f"RIO {STATED_SET}",
    **{out: f"RI+O {out.rsplit('/', 1)[0]}" for out in OUT_SETS},
}
SHORT = {"none": "Best RIO", "stated": "RIO"}
RIOS = {LABELS[str(cell["out"])]: cell for cell in (RIO, STATED)}
ROWS = Axis("out", "OUT set", LABELS)
CLASSES = Axis("profile_mbps", "Profile, Mbit/s", {**{r: f"{r:g}" for r in COUNTS if r}, 0.0: "BE"})


def rates(cell: Factors, classes: Iterable[float], metric: str = "throughput") -> judges.Numbers:
    """A measure of several classes in one row."""
    return levels(metric, {NAMES[rate]: by_class(cell, rate) for rate in classes})


def both(numbers: Callable[[Factors], judges.Numbers]) -> judges.Numbers:
    """Numbers under either set of RIO."""
    return judges.grouped({name: numbers(cell) for name, cell in RIOS.items()})


def of_rios(rate: float) -> dict[str, Factors]:
    """The factors of a class under either set of RIO."""
    return {name: by_class(cell, rate) for name, cell in RIOS.items()}


def between(first: float, second: float) -> judges.Pairs:
    """Two classes under either set of RIO."""
    return {name: (by_class(cell, first), by_class(cell, second)) for name, cell in RIOS.items()}


def _large_fail(classes: Sequence[float]) -> Judge:
    places = {
        (NAMES[rate], name, rate): place
        for name in RIOS
        for rate in classes
        for place in [of_rios(rate)[name]]
    }
    found = levels("throughput", places).reads("{name[0]}, {name[1]}: {value}", "; ")
    return found.all(below, lambda name: name[2]).said("Mbit/s, {}.")


def _against_due(above_due: judges.Side, due: Mapping[float, float], missed: Sequence[float] = ()) -> Judge:
    """Judge whether under RIO classes get what they are due, and others miss it."""
    statements = {
        (name, rate): level("throughput", by_class(cell, rate)).all(
            below if rate in missed else above_due, wanted
        )
        for name, cell in RIOS.items()
        for rate, wanted in due.items()
    }
    return judges.of_statements(statements).said(
        "{rates} (Mbit/s).", rates=both(lambda cell: rates(cell, due))
    )


def _in_unfair() -> Judge:
    """Judge whether under RIO the 2.0 class gets a smaller part of its profile as IN than the 0.1 class."""
    parts = of_runs(
        {name: (lambda own: own / 2.0, ("in_throughput", of)) for name, of in of_rios(2.0).items()}
    )
    found = of_pairs(
        lambda small, large: small / 0.1 - large / 2.0, "in_throughput", between(0.1, 2.0)
    ).reads("{name}: {part} of a 2 Mbit/s profile, 0.1 Mbit/s − 2 Mbit/s {value:+}", "; ", part=parts)
    return found.all(above).said("IN as a part of the profile, {}.")


def in_part(cell: Factors, rate: float) -> tuple[tuple[str, Factors], tuple[str, Factors]]:
    """The IN and the OUT traffic of a class's flow past the queue, as arguments of `of_runs`."""
    key = by_class(cell, rate)
    return ("in_throughput", key), ("out_throughput", key)


def _composition() -> Judge:
    """Judge whether under RIO the part of IN in a flow's traffic grows with its profile."""
    profiles = [rate for rate in COUNTS if rate]
    steps = {
        (name, a): (lambda i, o, j, p: i / (i + o) - j / (j + p), *in_part(cell, a), *in_part(cell, b))
        for name, cell in RIOS.items()
        for a, b in itertools.pairwise(profiles)
    }

    def parts(cell: Factors) -> judges.Numbers:
        return of_runs({NAMES[r]: (lambda own, out: own / (own + out), *in_part(cell, r)) for r in profiles})

    found = of_runs(steps).all(above)
    return found.said("IN as a part of a flow's traffic past the queue, {parts}.", parts=both(parts))


def _out_loss(than: float) -> Judge:
    """Judge whether under RIO a larger part of the 2.0 class's OUT packets is dropped than of another's."""
    found = differences("out_loss", between(2.0, than))
    mine, other = (levels("out_loss", of_rios(rate)).scaled(_percent) for rate in (2.0, than))
    listed = found.scaled(_percent).reads(
        "{name}: {mine:.2f} % against {other:.2f} %, difference {value:+} %", "; ", mine=mine, other=other
    )
    return found.all(above).said(
        f"OUT packets dropped, 2 Mbit/s against {NAMES[than]}, {{listed}}.", listed=listed
    )


def _percent(fraction: float) -> float:
    return 100 * fraction


def best_out(evidence: Evidence) -> str:
    """The OUT set of the smallest error."""
    return min(OUT_SETS, key=lambda out: evidence.mean("rmse", ri_plus_o(out)))


def by_out_set(
    metric: str, base: Factors, rate: float | None = None, *, factor: float = 1.0
) -> judges.Numbers:
    """RI+O with each OUT set less `factor` of a RIO, of a class or the row; intervals for all five."""
    pairs: dict[str, tuple[Factors, Factors]] = {out: (ri_plus_o(out), base) for out in OUT_SETS}
    if rate is not None:
        pairs = {out: (by_class(ours, rate), by_class(rio, rate)) for out, (ours, rio) in pairs.items()}
    return differences(metric, pairs, factor=factor).mapped(lambda found: corrected(found, len(OUT_SETS)))


def contributes(base: Factors, size: float = 0.0) -> Judge:
    """Judge whether some OUT set gives the 2.0 class more than a part of what it lacks under a RIO."""
    rio = level("throughput", by_class(base, 2.0))
    margins = by_out_set("throughput", base, 2.0, factor=1 - size)
    short = rio.scaled(lambda rate: FAIR[2.0] - rate)
    wanted = ", of which {count:.3f} would count" if size else ""
    return margins.any(above, size * FAIR[2.0]).said(
        f"2 Mbit/s class, Mbit/s, {LABELS[str(base['out'])]} {{rio}}, short of its fair share by "
        f"{{short:.3f}}{wanted}; with the OUT set {{gains:+}} (intervals for five comparisons).",
        rio=rio,
        short=short,
        count=rio.scaled(lambda rate: size * (FAIR[2.0] - rate)),
        gains=by_out_set("throughput", base, 2.0).reads("{name} {value}", "; "),
    )


def alleviates(out: str | None, base: Factors, size: float = SIZES[""]) -> Judge:
    """Judge whether with an OUT set, or the best, the error is smaller than a RIO's by that part of it."""

    def judged(evidence: Evidence) -> Judgement:
        chosen = out or best_out(evidence)
        rio, change = level("rmse", base), difference("rmse", ri_plus_o(chosen), base)
        found = difference("rmse", ri_plus_o(chosen), base, factor=1 - size).all(below)
        return found.said(
            f"Error against the fair share, Mbit/s, {LABELS[str(base['out'])]} {{rio}}; RI+O {chosen} "
            "{change:+}, {part:+.0f} %.",
            rio=rio,
            change=change,
            part=change.relative(rio).scaled(_percent),
        )(evidence)

    return judged


def _alleviates_some(base: Factors, size: float) -> Judge:
    """Judge whether with some OUT set the error falls by more than this part of a RIO's."""
    changes, rios = by_out_set("rmse", base), levels("rmse", dict.fromkeys(OUT_SETS, base))
    parts = changes.relative(rios).scaled(_percent)
    found = by_out_set("rmse", base, factor=1 - size).any(below)
    return found.said(
        f"Error against the fair share, Mbit/s, {LABELS[str(base['out'])]} {{rio}}; with the OUT set "
        "{changes} (intervals for five comparisons).",
        rio=level("rmse", base),
        changes=changes.reads("{name} {value:+} ({part:+.0f} %)", "; ", part=parts),
    )


def both_rios(size: float = 0.0) -> judges.Judges:
    """The judges of whether an OUT set gives the 2.0 class more than each row of RIO; see `contributes`."""
    return {name: contributes(base, size) for name, base in READINGS.items()}


def skews(size: float) -> judges.Judges:
    """Judges of the error's fall by this part, best row against best row and with the text's IN+OUT set."""
    return {
        "the best row against the best row": alleviates(None, RIO, size),
        "the text's IN+OUT set in both": _alleviates_some(STATED, size),
    }


def trend(rate: float, sign: int) -> Judge:
    """Judge whether a class rises (sign 1) or falls (-1) as the OUT set tightens."""
    onward, backward = (above, below) if sign > 0 else (below, above)
    cells = [by_class(ri_plus_o(out), rate) for out in OUT_SETS]
    pairs = {n: (after, before) for n, (before, after) in enumerate(itertools.pairwise(cells))}
    steps, whole = differences("throughput", pairs), difference("throughput", cells[-1], cells[0])

    def against(evidence: Evidence) -> int:
        return sum(backward(step).holds is True for step in steps(evidence).values())

    none = judges.stated(lambda evidence: fact(holds=not against(evidence)))
    return (whole.all(onward) & none).said(
        f"{NAMES[rate]}, loosest to tightest set: {{means:.3f}} Mbit/s; last − first {{:+}}, {{steps}} "
        "against it beyond their intervals.",
        means=levels("throughput", dict(enumerate(cells))).reads("{value}"),
        steps=lambda evidence: counted(n, "step") if (n := against(evidence)) else "no steps",
    )


def best_improves(evidence: Evidence, out: str | None = None) -> Judgement:
    """Judge the best rows: more for the 2.0 and 1.0 classes, less for best effort, a smaller error."""
    chosen = out or best_out(evidence)
    cell = ri_plus_o(chosen)
    gains = {r: evidence.difference("throughput", by_class(cell, r), by_class(RIO, r)) for r in COUNTS}
    error = evidence.difference("rmse", cell, RIO)
    text = ", ".join(f"{NAMES[rate]} {e.text(sign=True)}" for rate, e in gains.items())
    return judge(
        all_of(above(gains[2.0]), above(gains[1.0]), below(gains[0.0]), below(error)),
        f"RI+O {chosen} − Best RIO, Mbit/s: {text}; error {error.text(sign=True)}.",
    )


def _not_every_row() -> Judge:
    """Judge whether some OUT set does not beat the best RIO for the 2.0 class."""
    pairs = {out: (by_class(ri_plus_o(out), 2.0), by_class(RIO, 2.0)) for out in OUT_SETS}
    found = differences("throughput", pairs).reads("{name}: {value}", "; ")
    every = judges.of_statements({"": found.all(above)}, opposite)
    return every.said("RI+O − Best RIO for the 2 Mbit/s class, Mbit/s: {gains:+}.", gains=found)


def fair_share(evidence: Evidence) -> Judgement:
    """Judge whether the printed fair share is the profile plus a fortieth of what is left of the link."""
    printed = [evidence.published("fair_share", {"profile_mbps": rate}) for rate in COUNTS]
    holds = all(p is not None and abs(p - FAIR[rate]) < 5e-4 for p, rate in zip(printed, COUNTS, strict=True))
    text = ", ".join(f"{FAIR[rate]:.3f}" for rate in COUNTS)
    return judge(fact(holds=holds), f"Profile + (20 − 15.2)/40 = {text} Mbit/s.")


def subscribed(_: Evidence) -> Judgement:
    """Judge whether twenty profiles subscribe 76 % of the link."""
    share = subscription(FLOWS, CAPACITY_MBPS)
    return judge(fact(holds=abs(share - 0.76) < 5e-4), f"{share * CAPACITY_MBPS:g} of 20 Mbit/s.")


IN_RATES = levels("in_throughput", of_rios(2.0)).reads("{name}: {value}", "; ")
OUT_RATES = differences("out_throughput", between(2.0, 0.0)).reads("{name}: {first} against {second}", "; ")
LARGEST = levels("throughput", {LABELS[str(cell["out"])]: by_class(cell, 2.0) for cell in CELLS})
REFERENCES = (
    Reference("profile", "profile_mbps", {rate: rate for rate in COUNTS if rate}),
    Reference("fair share", "profile_mbps", FAIR),
)

TABLE1 = common.THIS.study(
    "table1",
    title="RIO against RI+O at 76 % subscription",
    source=f"{common.PAPER}, Table 1",
    summary="five profile rates and best effort on 20 Mbit/s, seven queue settings",
    cells=CELLS,
    scenario=build,
    samples=samples,
    published=published(),
    judges={
        "large-profiles-fail": variants(_large_fail, {"": (2.0,), "1 Mbit/s, too": (2.0, 1.0)}),
        "small-reach-large-do-not": _against_due(
            at_least, {rate: rate for rate in (2.0, 0.5, 0.2, 0.1)}, missed=(2.0,)
        ),
        "small-profiles-exceed": _against_due(above, {0.5: 0.5, 0.2: 0.2, 0.1: 0.1, 0.0: FAIR[0.0]}),
        "cannot-guarantee": LARGEST.all(below, 2.0).said(
            "The highest is {highest} Mbit/s.", highest=LARGEST.highest().reads("{name} with {value}")
        ),
        "composition-differs": _composition(),
        "out-loss-of-large": variants(
            _out_loss, {"than that of the smallest profile": 0.1, "than that of flows without a profile": 0.0}
        ),
        "out-throughput-unfair": OUT_RATES.all(below).said(
            "OUT of a 2 Mbit/s flow against that of a best-effort flow, Mbit/s, {}."
        ),
        "in-below-profile": IN_RATES.all(below, 2.0).said("IN of a 2 Mbit/s flow, Mbit/s, {}."),
        "in-unfair": _in_unfair(),
        "rio-contributes": both_rios(),
        "significantly-contributes": judges.readings_by_rule(both_rios, SIZES),
        "alleviates-skew": {
            **judges.readings_by_rule(skews, SIZES),
            "the text's IN+OUT set, with the best row in print, 5/15": alleviates(PRINTED_BEST, STATED),
            "any fall, by the best OUT set, below RIO as the text sets it": alleviates(None, STATED, 0.0),
        },
        "always-improves-best": {
            "": best_improves,
            "the best row in print, 5/15": partial(best_improves, out=PRINTED_BEST),
        },
        "subscription": subscribed,
        "fair-share": fair_share,
        "not-every-row": _not_every_row(),
        "tighter-out-raises-2": trend(2.0, 1),
        "tighter-out-raises-1": trend(1.0, 1),
        "tighter-out-lowers-best-effort": trend(0.0, -1),
    },
    tables=[
        *tables(
            ROWS,
            (CLASSES,),
            ("Throughput of a flow, Mbit/s, by profile", "throughput", 3),
            ("IN traffic of a flow past the queue, Mbit/s, by profile", "in_throughput", 3),
            ("OUT traffic of a flow past the queue, Mbit/s, by profile", "out_throughput", 3),
            ("OUT packets dropped, fraction, by profile", "out_loss", 4),
        ),
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
    ],
    plots=(
        Plot(
            id="who-gets-what",
            title="Who gets what under RIO and RI+O",
            kind="bars",
            metric="throughput",
            x=CLASSES,
            series=Axis("out", "Queue", {**SHORT, "5/15/0.01": LABELS["5/15/0.01"]}),
            y_label="Mbit/s per flow",
            where={"out": ("none", "stated", "5/15/0.01")},
            references=REFERENCES,
        ),
        Plot(
            id="by-out-set",
            title="Each class under each queue",
            kind="points",
            metric="throughput",
            x=Axis("out", "Queue", {**SHORT, **{out: out.rsplit("/", 1)[0] for out in OUT_SETS}}),
            series=Axis("scheme", "Scheme", {"rio": "Best RIO", "stated-rio": "RIO", "rio-plus-out": "RI+O"}),
            y_label="Mbit/s per flow",
            facet=Axis("profile_mbps", "Class", NAMES),
            references=REFERENCES,
            from_zero=False,
        ),
    ),
    default_runs=100,
)
