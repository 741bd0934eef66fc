"""Table 1: five profile rates and best effort at 76 % subscription, RIO against RI+O with five OUT sets.

The row "Best RIO" does not say its IN+OUT set: here it is the best that `kim-best-rio` finds among the
paper's own values. The set that the text names has a row of its own.
"""

from __future__ import annotations

import functools
import itertools
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from perhop.measures.fairness import reservation_success, rmse, subscription, targets, utilization
from perhop.measures.run import COLORS
from perhop.plurals import counted
from perhop.show.declared import Axis, Plot, Reference, Table
from perhop.statistics.intervals import estimate, paired_difference
from perhop.statistics.judging import (
    above,
    all_of,
    any_of,
    at_least,
    below,
    by_readings,
    fact,
    judge,
    opposite,
)
from perhop.studies.evidence import Evidence, Published, Sample
from perhop.studies.kim.common import (
    BEST_EFFORT,
    CAPACITY_MBPS,
    MBPS,
    PACKET,
    PAPER,
    corrected,
    flows,
    mean_mbps,
    scaled,
    scenario,
    stated,
)
from perhop.studies.paper import claims
from perhop.studies.study import Study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.statistics.intervals import Estimate
    from perhop.statistics.judging import Check, Judgement

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
SIZE = 0.1
"""A part of what is missing from which on a gain counts as significant, for the paper's word."""
OTHER_SIZES = {"a twentieth": 0.05, "a fifth": 0.2}

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


def network(
    aqm: str, total: str, out: str | None = None, transport: Mapping[str, Any] = MappingProxyType({})
) -> Mapping[str, Any]:
    """The table's forty flows through one queue; `transport` changes the senders."""
    queue = {"aqm": aqm, "limit": "868p", "in": "390/694/0.02", "total": total, "mean-packet": f"{PACKET}B"}
    if out is not None:
        queue["out"] = out
    entries = [flows(class_name(rate), n, rate, burst=BUCKET) for rate, n in COUNTS.items()]
    for entry in entries:
        entry["transport"] = {**entry["transport"], **transport}
    return scenario("Kim et al., Table 1", queue, entries)


def build(cell: Factors) -> Mapping[str, Any]:
    """The setting of one row."""
    if cell["scheme"] == "rio-plus-out":
        return network("rio-plus-out", STATED_SET, str(cell["out"]))
    return network("rio", BEST_SET if cell == RIO else STATED_SET)


def row_measures(rates: Mapping[float, float]) -> Iterator[tuple[str, str, float]]:
    """What follows from a row of class means: the sum over all flows, the error against the fair share."""
    weighted = [rates[rate] * count for rate, count in COUNTS.items()]
    yield "total_throughput", MBPS, sum(weighted)
    yield (
        "rmse",
        MBPS,
        rmse(list(rates.values()), [FAIR[rate] for rate in rates], [COUNTS[rate] for rate in rates]),
    )


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
        if cell == STATED:
            continue
        rates = {
            float(v.factors["profile_mbps"]): v.value
            for v in STATEMENT.values
            if cell.items() <= v.factors.items()
        }
        wrong = any(value.misprint for value in STATEMENT.values if cell.items() <= value.factors.items())
        values.extend(
            Published(cell, metric, value, derived=True, misprint=wrong)
            for metric, _, value in row_measures(rates)
        )
    return values


def by_class(cell: Factors, rate: float) -> Factors:
    """The factors of one entry of the table."""
    return {**cell, "profile_mbps": rate}


def rate_of(evidence: Evidence, cell: Factors, rate: float, metric: str = "throughput") -> Estimate:
    """A class's measure in one row."""
    return evidence.estimate(metric, by_class(cell, rate))


def gain_of(
    evidence: Evidence, cell: Factors, base: Factors, rate: float = 2.0, metric: str = "throughput"
) -> Estimate:
    """The paired difference of a class between two rows."""
    return evidence.difference(metric, by_class(cell, rate), by_class(base, rate))


def large_fail(evidence: Evidence, rates: Sequence[float] = (2.0,)) -> Judgement:
    """Under RIO, with either set, the larger profiles are missed."""
    found = {
        f"{NAMES[rate]}, {name}": (rate_of(evidence, cell, rate), rate)
        for name, cell in RIOS.items()
        for rate in rates
    }
    text = "; ".join(f"{name}: {e.text()}" for name, (e, _) in found.items())
    return judge(all_of(*(below(e, rate) for e, rate in found.values())), f"Mbit/s, {text}.")


def small_reach(evidence: Evidence) -> Judgement:
    """Under RIO the small profiles are reached, and the largest is not."""
    small = (0.5, 0.2, 0.1)
    found = {
        (name, rate): rate_of(evidence, cell, rate) for name, cell in RIOS.items() for rate in (2.0, *small)
    }
    text = "; ".join(
        f"{name}: " + ", ".join(f"{NAMES[rate]} {found[name, rate].text()}" for rate in (2.0, *small))
        for name in RIOS
    )
    return judge(
        all_of(
            *(below(e, rate) if rate not in small else at_least(e, rate) for (_, rate), e in found.items())
        ),
        f"{text} (Mbit/s).",
    )


def small_exceed(evidence: Evidence) -> Judgement:
    """Under RIO the small profiles and best effort get more than their due."""
    due = {rate: FAIR[0.0] if rate == 0 else rate for rate in (0.5, 0.2, 0.1, 0.0)}
    found = {(name, rate): rate_of(evidence, cell, rate) for name, cell in RIOS.items() for rate in due}
    text = "; ".join(
        f"{name}: " + ", ".join(f"{NAMES[rate]} {found[name, rate].text()}" for rate in due) for name in RIOS
    )
    return judge(all_of(*(above(e, due[rate]) for (_, rate), e in found.items())), f"{text} (Mbit/s).")


def in_below_profile(evidence: Evidence) -> Judgement:
    """Under RIO the 2.0 class sends less IN traffic than its profile allows."""
    found = {name: rate_of(evidence, cell, 2.0, "in_throughput") for name, cell in RIOS.items()}
    text = "; ".join(f"{name}: {e.text()}" for name, e in found.items())
    return judge(all_of(*(below(e, 2.0) for e in found.values())), f"IN of a 2 Mbit/s flow, Mbit/s, {text}.")


def in_unfair(evidence: Evidence) -> Judgement:
    """Under RIO the 2.0 class gets a smaller part of its profile as IN traffic than the 0.1 class."""
    found = {}
    for name, cell in RIOS.items():
        large, small = (
            {seed: v / rate for seed, v in evidence.by_seed("in_throughput", by_class(cell, rate)).items()}
            for rate in (2.0, 0.1)
        )
        found[name] = (estimate(list(large.values())), paired_difference(small, large))
    text = "; ".join(
        f"{name}: {large.text()} of a 2 Mbit/s profile, 0.1 Mbit/s − 2 Mbit/s {apart.text(sign=True)}"
        for name, (large, apart) in found.items()
    )
    return judge(
        all_of(*(above(apart) for _, apart in found.values())), f"IN as a part of the profile, {text}."
    )


def in_part(evidence: Evidence, cell: Factors, rate: float) -> dict[int, float]:
    """IN traffic as a part of what a class's flow gets past the queue, by seed."""
    own, out = (
        evidence.by_seed(metric, by_class(cell, rate)) for metric in ("in_throughput", "out_throughput")
    )
    return {seed: own[seed] / (own[seed] + out[seed]) for seed in own}


def composition(evidence: Evidence) -> Judgement:
    """Under RIO the larger a profile, the larger is the part of IN in its flow's traffic."""
    checks, said = [], []
    for name, cell in RIOS.items():
        parts = {rate: in_part(evidence, cell, rate) for rate in COUNTS if rate}
        checks += [above(paired_difference(parts[a], parts[b])) for a, b in itertools.pairwise(parts)]
        means = ", ".join(
            f"{NAMES[rate]} {estimate(list(part.values())).text()}" for rate, part in parts.items()
        )
        said.append(f"{name}: {means}")
    return judge(all_of(*checks), f"IN as a part of a flow's traffic past the queue, {'; '.join(said)}.")


def out_loss(evidence: Evidence, than: float) -> Judgement:
    """Under RIO a larger part of the 2.0 class's OUT packets is dropped than of another class's."""
    found = {
        name: evidence.difference("out_loss", by_class(cell, 2.0), by_class(cell, than))
        for name, cell in RIOS.items()
    }
    text = "; ".join(
        f"{name}: {percent(evidence.mean('out_loss', by_class(RIOS[name], 2.0)))} against "
        f"{percent(evidence.mean('out_loss', by_class(RIOS[name], than)))}, difference "
        f"{scaled(e, 100).text(sign=True)} %"
        for name, e in found.items()
    )
    return judge(
        all_of(*(above(e) for e in found.values())),
        f"OUT packets dropped, 2 Mbit/s against {NAMES[than]}, {text}.",
    )


def out_unfair(evidence: Evidence) -> Judgement:
    """Under RIO a 2.0 flow gets less OUT traffic through than a best-effort flow."""
    found = {
        name: evidence.difference("out_throughput", by_class(cell, 2.0), by_class(cell, 0.0))
        for name, cell in RIOS.items()
    }
    text = "; ".join(
        f"{name}: {rate_of(evidence, RIOS[name], 2.0, 'out_throughput').text()} against "
        f"{rate_of(evidence, RIOS[name], 0.0, 'out_throughput').text()}"
        for name in found
    )
    return judge(
        all_of(*(below(e) for e in found.values())),
        f"OUT of a 2 Mbit/s flow against that of a best-effort flow, Mbit/s, {text}.",
    )


def best_out(evidence: Evidence) -> str:
    """The OUT set of the smallest error."""
    return min(OUT_SETS, key=lambda out: evidence.mean("rmse", ri_plus_o(out)))


def contributes(evidence: Evidence, base: Factors, size: float = 0.0) -> Judgement:
    """Some OUT set gives the 2.0 class more than a RIO, with intervals for five comparisons.

    Args:
        evidence: What was measured.
        base: The row of RIO.
        size: The part of what the class is short of its fair share under RIO that the gain must exceed.
    """
    kept = 1 - size
    margins = {
        out: corrected(
            evidence.difference(
                "throughput",
                by_class(ri_plus_o(out), 2.0),
                by_class(base, 2.0),
                factor=kept,
            ),
            len(OUT_SETS),
        )
        for out in OUT_SETS
    }
    rio = rate_of(evidence, base, 2.0)
    text = "; ".join(
        f"{out} {corrected(gain_of(evidence, ri_plus_o(out), base), len(OUT_SETS)).text(sign=True)}"
        for out in OUT_SETS
    )
    wanted = f", of which {size * (FAIR[2.0] - rio.mean):.3f} would count" if size else ""
    return judge(
        any_of(*(above(e, size * FAIR[2.0]) for e in margins.values())),
        f"2 Mbit/s class, Mbit/s, {LABELS[str(base['out'])]} {rio.text()}, short of its fair share by "
        f"{FAIR[2.0] - rio.mean:.3f}{wanted}; with the OUT set {text} (intervals for five comparisons).",
    )


def alleviates(evidence: Evidence, out: str | None, base: Factors, size: float = SIZE) -> Judgement:
    """RI+O's error against the fair share is smaller than a RIO's by more than this part of it.

    Args:
        evidence: What was measured.
        out: RI+O's OUT set; None for the one of the smallest error.
        base: The row of RIO.
        size: The part of RIO's error.
    """
    out = out or best_out(evidence)
    found = evidence.difference("rmse", ri_plus_o(out), base, factor=1 - size)
    rio = evidence.estimate("rmse", base)
    change = evidence.difference("rmse", ri_plus_o(out), base)
    return judge(
        below(found),
        f"Error against the fair share, Mbit/s, {LABELS[str(base['out'])]} {rio.text()}; RI+O {out} "
        f"{change.text(sign=True)}, {change.mean / rio.mean * 100:+.0f} %.".replace("-", "−"),
    )


def alleviates_some(evidence: Evidence, base: Factors, size: float = SIZE) -> Judgement:
    """With some OUT set the error falls by more than this part of a RIO's, corrected for five comparisons."""
    margins, changes = (
        {
            out: corrected(evidence.difference("rmse", ri_plus_o(out), base, factor=factor), len(OUT_SETS))
            for out in OUT_SETS
        }
        for factor in (1 - size, 1.0)
    )
    rio = evidence.estimate("rmse", base)
    text = "; ".join(
        f"{out} {e.text(sign=True)} ({e.mean / rio.mean * 100:+.0f} %)" for out, e in changes.items()
    )
    return judge(
        any_of(*(below(e) for e in margins.values())),
        f"Error against the fair share, Mbit/s, {LABELS[str(base['out'])]} {rio.text()}; with the OUT set "
        f"{text} (intervals for five comparisons).".replace("(-", "(−"),
    )


def both_rios(judged: Callable[[Evidence, Factors], Judgement]) -> dict[str, Callable[[Evidence], Judgement]]:
    """A judge for each row of RIO, by the names of the readings."""

    def of(base: Factors) -> Callable[[Evidence], Judgement]:
        return lambda evidence: judged(evidence, base)

    return {name: of(base) for name, base in READINGS.items()}


def together(judges: Mapping[str, Callable[[Evidence], Judgement]]) -> Callable[[Evidence], Judgement]:
    """What all of these say."""
    return lambda evidence: by_readings({name: judged(evidence) for name, judged in judges.items()})


def significantly(size: float) -> dict[str, Callable[[Evidence], Judgement]]:
    """Judges whether an OUT set makes up for this part of what the 2.0 class is short of."""
    return both_rios(lambda evidence, base: contributes(evidence, base, size))


def skews(size: float) -> dict[str, Callable[[Evidence], Judgement]]:
    """Judges of the error's fall by this part, best row against best row and with the text's IN+OUT set."""
    return {
        "the best row against the best row": lambda evidence: alleviates(evidence, None, RIO, size),
        "the text's IN+OUT set in both": lambda evidence: alleviates_some(evidence, STATED, size),
    }


def nobody_reaches(evidence: Evidence) -> Judgement:
    """The 2.0 class stays below its profile in every row."""
    found = {LABELS[str(cell["out"])]: rate_of(evidence, cell, 2.0) for cell in CELLS}
    best = max(found, key=lambda name: found[name].mean)
    return judge(
        all_of(*(below(e, 2.0) for e in found.values())),
        f"The highest is {best} with {found[best].text()} Mbit/s.",
    )


def trend(rate: float, sign: int, more: Factors = MappingProxyType({})) -> Callable[[Evidence], Judgement]:
    """A claim that a class rises (sign 1) or falls (-1) as the OUT set tightens; `more` names a variant."""

    def judged(evidence: Evidence) -> Judgement:
        cells = [{**more, **by_class(ri_plus_o(out), rate)} for out in OUT_SETS]
        steps = [
            evidence.difference("throughput", after, before) for before, after in itertools.pairwise(cells)
        ]
        whole = evidence.difference("throughput", cells[-1], cells[0])
        against: list[Check] = [below(step) if sign > 0 else above(step) for step in steps]
        onward = above(whole) if sign > 0 else below(whole)
        backward = sum(check.holds is True for check in against)
        means = ", ".join(f"{evidence.mean('throughput', cell):.3f}" for cell in cells)
        return judge(
            all_of(onward, fact(holds=not backward)),
            f"{NAMES[rate]}, loosest to tightest set: {means} Mbit/s; last − first {whole.text(sign=True)}, "
            f"{counted(backward, 'step') if backward else 'no steps'} against it beyond their intervals.",
        )

    return judged


def best_improves(evidence: Evidence, out: str | None = None) -> Judgement:
    """Best row against best row: more for the 2.0 and 1.0 classes, less for best effort, a smaller error."""
    out = out or best_out(evidence)
    cell = ri_plus_o(out)
    gains = {rate: gain_of(evidence, cell, RIO, rate) for rate in COUNTS}
    error = evidence.difference("rmse", cell, RIO)
    text = ", ".join(f"{NAMES[rate]} {e.text(sign=True)}" for rate, e in gains.items())
    return judge(
        all_of(above(gains[2.0]), above(gains[1.0]), below(gains[0.0]), below(error)),
        f"RI+O {out} − Best RIO, Mbit/s: {text}; error {error.text(sign=True)}.",
    )


def every_row_improves(evidence: Evidence) -> Judgement:
    """Every OUT set beats the best RIO for the 2.0 class."""
    found = {out: gain_of(evidence, ri_plus_o(out), RIO) for out in OUT_SETS}
    text = "; ".join(f"{out}: {e.text(sign=True)}" for out, e in found.items())
    return judge(
        opposite(all_of(*(above(e) for e in found.values()))),
        f"RI+O − Best RIO for the 2 Mbit/s class, Mbit/s: {text}.",
    )


def fair_share(evidence: Evidence) -> Judgement:
    """The printed fair share is the profile plus a fortieth of what is left of the link."""
    printed = [evidence.published("fair_share", {"profile_mbps": rate}) for rate in COUNTS]
    holds = all(p is not None and abs(p - FAIR[rate]) < 5e-4 for p, rate in zip(printed, COUNTS, strict=True))
    text = ", ".join(f"{FAIR[rate]:.3f}" for rate in COUNTS)
    return judge(fact(holds=holds), f"Profile + (20 − 15.2)/40 = {text} Mbit/s.")


def subscribed(_: Evidence) -> Judgement:
    """Twenty profiles subscribe 76 % of the link."""
    share = subscription(FLOWS, CAPACITY_MBPS)
    return judge(fact(holds=abs(share - 0.76) < 5e-4), f"{share * CAPACITY_MBPS:g} of 20 Mbit/s.")


def percent(fraction: float) -> str:
    """As text."""
    return f"{fraction * 100:.2f} %"


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

TABLE1 = Study(
    id="kim-table1",
    title="RIO against RI+O at 76 % subscription",
    source=f"{PAPER}, Table 1",
    summary="five profile rates and best effort on 20 Mbit/s, seven queue settings",
    cells=CELLS,
    scenario=build,
    samples=samples,
    published=published(),
    claims=claims(
        STATEMENT.claims,
        {
            "large-profiles-fail": {
                "": large_fail,
                "1 Mbit/s, too": functools.partial(large_fail, rates=(2.0, 1.0)),
            },
            "small-reach-large-do-not": small_reach,
            "small-profiles-exceed": small_exceed,
            "cannot-guarantee": nobody_reaches,
            "composition-differs": composition,
            "out-loss-of-large": {
                "than that of the smallest profile": functools.partial(out_loss, than=0.1),
                "than that of flows without a profile": functools.partial(out_loss, than=0.0),
            },
            "out-throughput-unfair": out_unfair,
            "in-below-profile": in_below_profile,
            "in-unfair": in_unfair,
            "rio-contributes": both_rios(contributes),
            "significantly-contributes": {
                **significantly(SIZE),
                **{name: together(significantly(size)) for name, size in OTHER_SIZES.items()},
            },
            "alleviates-skew": {
                **skews(SIZE),
                **{name: together(skews(size)) for name, size in OTHER_SIZES.items()},
                "the text's IN+OUT set, with the best row in print, 5/15": functools.partial(
                    alleviates, out=PRINTED_BEST, base=STATED
                ),
                "any fall, by the best OUT set, below RIO as the text sets it": functools.partial(
                    alleviates, out=None, base=STATED, size=0.0
                ),
            },
            "always-improves-best": {
                "": best_improves,
                "the best row in print, 5/15": functools.partial(best_improves, out=PRINTED_BEST),
            },
            "subscription": subscribed,
            "fair-share": fair_share,
            "not-every-row": every_row_improves,
            "tighter-out-raises-2": trend(2.0, 1),
            "tighter-out-raises-1": trend(1.0, 1),
            "tighter-out-lowers-best-effort": trend(0.0, -1),
        },
    ),
    tables=(
        Table("Throughput of a flow, Mbit/s, by profile", {"throughput": ""}, ROWS, (CLASSES,)),
        Table(
            "IN traffic of a flow past the queue, Mbit/s, by profile", {"in_throughput": ""}, ROWS, (CLASSES,)
        ),
        Table(
            "OUT traffic of a flow past the queue, Mbit/s, by profile",
            {"out_throughput": ""},
            ROWS,
            (CLASSES,),
        ),
        Table("OUT packets dropped, fraction, by profile", {"out_loss": ""}, ROWS, (CLASSES,), digits=4),
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
            series=Axis("out", "Queue", {**SHORT, "5/15/0.01": LABELS["5/15/0.01"]}),
            y_label="Mbit/s per flow",
            where={"out": ("none", "stated", "5/15/0.01")},
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
            x=Axis("out", "Queue", {**SHORT, **{out: out.rsplit("/", 1)[0] for out in OUT_SETS}}),
            series=Axis("scheme", "Scheme", {"rio": "Best RIO", "stated-rio": "RIO", "rio-plus-out": "RI+O"}),
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
    default_runs=100,
)
