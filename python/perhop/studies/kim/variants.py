"""What the results hang on: Table 1 and Figures 2 and 3 again, with one choice changed at a time.

The paper leaves these choices open; a claim of its that does not hold under one may hold under another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perhop.judging import Judgement
from perhop.studies.kim import fig2, fig3, regime, table1
from perhop.studies.kim.common import PAPER, SCHEMES, Curve, stated
from perhop.studies.paper import claims
from perhop.study import Axis, Published, Study, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perhop.runs import Run
    from perhop.study import Evidence, Factors, Row, Sample


@dataclass(frozen=True, slots=True)
class Variant:
    """One change to a setting.

    Attributes:
        queue: Keys of the bottleneck's queue.
        access: Rate of the access links, if changed.
        burst: Depth of the token buckets, if changed.
    """

    name: str
    queue: Mapping[str, Any] = field(default_factory=dict)
    access: str | None = None
    burst: str | None = None

    def apply(self, scenario: Mapping[str, Any]) -> Mapping[str, Any]:
        """The scenario with the change made."""
        link = scenario["links"]["bottleneck"]
        return {
            **scenario,
            "links": {"bottleneck": {**link, "queue": {**link["queue"], **self.queue}}},
            "flows": [self._flow(entry) for entry in scenario["flows"]],
        }

    def _flow(self, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        changed = dict(entry)
        if self.access is not None:
            changed["access"] = {**entry["access"], "rate": self.access}
        if self.burst is not None and "profile" in entry:
            changed["profile"] = {**entry["profile"], "burst": self.burst}
        return changed


BASE = Variant("unchanged")
FAST_ACCESS = Variant("access 100 Mbit/s", access="100Mbps")
QUICK_AVERAGE = Variant("weight 0.005", queue={"weight": 0.005})
DEEP_BUCKET = Variant("bucket 30 kB", burst="30kB")

BY_ITEM = {
    "table1": (BASE, FAST_ACCESS),
    "fig2": (BASE, QUICK_AVERAGE, DEEP_BUCKET),
    "fig3": (BASE, FAST_ACCESS, QUICK_AVERAGE),
}
VARIANTS = {variant.name: variant for variants in BY_ITEM.values() for variant in variants}
BUILD = {"table1": table1.build, "fig2": fig2.build, "fig3": fig3.build}
SAMPLES = {"table1": table1.samples, "fig2": regime.samples, "fig3": regime.samples}
FIG2_LOADS = (6, 11, 16, 26, 46)
FIG3_LEVELS = {1.0: (50, 60, 70, 80), 2.0: (10, 20, 30, 40, 50, 60)}
STATEMENT = stated("variants")


def factors(item: str, variant: Variant, more: Factors) -> Factors:
    """A cell's factors: which item, which change, and the item's own."""
    return {"item": item, "variant": variant.name, **more}


FIG2_CURVES = {
    (variant.name, scheme, percent): Curve(
        factors("fig2", variant, curve.factors), curve.load, FIG2_LOADS, curve.wanted, curve.unit
    )
    for variant in BY_ITEM["fig2"]
    for (scheme, percent), curve in fig2.CURVES.items()
}
FIG3_CURVES = {
    (variant.name, scheme, profile): Curve(
        factors("fig3", variant, curve.factors), curve.load, FIG3_LEVELS[profile], curve.wanted, curve.unit
    )
    for variant in BY_ITEM["fig3"]
    for (scheme, profile), curve in fig3.CURVES.items()
    if profile in FIG3_LEVELS
}


def cells() -> list[Factors]:
    """Every item's cells under every one of its variants."""
    rows = [factors("table1", variant, row) for variant in BY_ITEM["table1"] for row in table1.CELLS]
    points = [
        {**curve.factors, curve.load: level}
        for curve in (*FIG2_CURVES.values(), *FIG3_CURVES.values())
        for level in curve.levels
    ]
    return [*rows, *points]


def build(cell: Factors) -> Mapping[str, Any]:
    """The item's own scenario with the change made."""
    return VARIANTS[str(cell["variant"])].apply(BUILD[str(cell["item"])](cell))


def samples(cell: Factors, run: Run) -> Iterator[Sample]:
    """The item's own samples."""
    return SAMPLES[str(cell["item"])](cell, run)


def published() -> list[Published]:
    """The items' printed values, once for each variant."""
    items: Sequence[tuple[str, Study]] = (
        ("table1", table1.TABLE1),
        ("fig2", fig2.FIG2),
        ("fig3", fig3.FIG3),
    )
    return [
        Published(factors(item, variant, value.factors), value.metric, value.value, derived=value.derived)
        for item, study in items
        for variant in BY_ITEM[item]
        for value in study.published
    ]


def limits(evidence: Evidence) -> Iterator[Row]:
    """Up to where each curve keeps its promise."""
    for fig2_curve in FIG2_CURVES.values():
        yield from fig2_curve.rows(evidence, never=None)
    for fig3_curve in FIG3_CURVES.values():
        yield from fig3_curve.rows(evidence, never=0.0)


def fig2_limits(evidence: Evidence, variant: Variant) -> dict[tuple[str, int], int]:
    """Figure 2's four limits by the means, -1 where the promise fails from the first load on."""
    keys = fig2.CURVES
    found = {key: FIG2_CURVES[variant.name, *key].limit(evidence) for key in keys}
    return {key: -1 if limit is None else limit for key, limit in found.items()}


def published_fig2(evidence: Evidence) -> dict[tuple[str, int], int]:
    """Figure 2's four limits as the paper states them."""
    return {key: FIG2_CURVES[BASE.name, *key].published(evidence) for key in fig2.CURVES}


def _say(found: Mapping[tuple[str, int], int]) -> str:
    return "; ".join(
        f"{percent} %: RIO {found['rio', percent]}, RI+O {found['rio-plus-out', percent]}"
        for percent in fig2.PROFILES
    )


def _beyond(evidence: Evidence, variant: Variant, found: Mapping[tuple[str, int], int]) -> str:
    """What assured flows get under RI+O where it still holds, and the difference from RIO there."""
    parts = []
    for percent, wanted in fig2.PROFILES.items():
        level = found["rio-plus-out", percent]
        if level < 0:
            continue
        ours, rio = (FIG2_CURVES[variant.name, s, percent].at(level) for s in ("rio-plus-out", "rio"))
        parts.append(
            f"at {percent} % with {level}: {evidence.estimate('throughput', ours).text()} "
            f"(profile {wanted:g}), RI+O − RIO {evidence.difference('throughput', ours, rio).text(sign=True)}"
        )
    return f"RI+O, Mbit/s, {'; '.join(parts)}." if parts else ""


def wider_regime(evidence: Evidence) -> Judgement:
    """With the quicker average RI+O's limits are beyond RIO's."""
    found = fig2_limits(evidence, QUICK_AVERAGE)
    holds = all(found["rio-plus-out", p] > found["rio", p] for p in fig2.PROFILES)
    return Judgement(
        holds,
        f"Best-effort flows, {QUICK_AVERAGE.name}, {_say(found)}. {_beyond(evidence, QUICK_AVERAGE, found)}",
    )


def deeper_bucket(evidence: Evidence) -> Judgement:
    """With the deeper bucket RI+O reaches its published limits, and RIO goes beyond its own."""
    found, printed = fig2_limits(evidence, DEEP_BUCKET), published_fig2(evidence)
    holds = all(
        found["rio-plus-out", p] == printed["rio-plus-out", p] and found["rio", p] > printed["rio", p]
        for p in fig2.PROFILES
    )
    return Judgement(
        holds,
        f"Best-effort flows, {DEEP_BUCKET.name}, {_say(found)}; published {_say(printed)}. "
        f"{_beyond(evidence, DEEP_BUCKET, found)}",
    )


def never_all_four(evidence: Evidence) -> Judgement:
    """No variant gives all four of Figure 2's limits."""
    printed = published_fig2(evidence)
    met = {
        variant.name: sum(fig2_limits(evidence, variant)[key] == limit for key, limit in printed.items())
        for variant in BY_ITEM["fig2"]
    }
    text = ", ".join(f"{name}: {count}" for name, count in met.items())
    return Judgement(max(met.values()) < len(printed), f"Published limits met exactly, of four, {text}.")


def rio_fails(evidence: Evidence) -> Judgement:
    """With fast access links RIO misses 2 Mbit/s at every level, and RI+O falls short of 50 %."""
    rio = FIG3_CURVES[FAST_ACCESS.name, "rio", 2.0]
    ours = FIG3_CURVES[FAST_ACCESS.name, "rio-plus-out", 2.0]
    best = max(rio.estimates(evidence), key=lambda e: e.mean)
    limit = ours.limit(evidence)
    return Judgement(
        best.mean < rio.wanted and (limit or 0) < ours.published(evidence),
        f"RIO's best level has {best.text()} Mbit/s; RI+O holds "
        f"{'at no level' if limit is None else f'up to {limit} %'} (published: 50 %).",
    )


def rio_one(evidence: Evidence) -> Judgement:
    """In every variant RIO keeps 1 Mbit/s at 60 %, beyond the published limit."""
    found = {
        variant.name: evidence.estimate("throughput", FIG3_CURVES[variant.name, "rio", 1.0].at(60))
        for variant in BY_ITEM["fig3"]
    }
    text = "; ".join(f"{name}: {e.text()}" for name, e in found.items())
    return Judgement(all(e.mean >= 1.0 for e in found.values()), f"RIO at 60 %, Mbit/s, {text}.")


CHANGES = Axis("variant", "Change", {name: name for name in VARIANTS})

VARIED = Study(
    id="kim-variants",
    title="What the RI+O paper's results hang on",
    source=f"{PAPER}: settings that it leaves open",
    summary="Table 1 and Figures 2 and 3 again with one choice changed at a time",
    cells=cells(),
    scenario=build,
    samples=samples,
    published=published(),
    claims=claims(
        STATEMENT.claims,
        {
            "trend-with-fast-access": table1.trend(2.0, 1, factors("table1", FAST_ACCESS, {})),
            "wider-regime-with-quicker-average": wider_regime,
            "deeper-bucket-lifts-both": deeper_bucket,
            "never-all-four-limits": never_all_four,
            "fast-access-fails-rio": rio_fails,
            "rio-keeps-1-beyond-50": rio_one,
        },
    ),
    tables=(
        Table(
            "Table 1: throughput of a 2 Mbit/s flow, Mbit/s",
            {"throughput": ""},
            CHANGES,
            (table1.ROWS,),
            where={"item": "table1", "profile_mbps": 2.0},
        ),
        Table(
            "Figure 2: best-effort flows up to which assured flows keep their profile, by the mean",
            {"holds_up_to": ""},
            CHANGES,
            (fig2.SHORT, SCHEMES),
            where={"item": "fig2", "reading": "mean"},
            digits=0,
        ),
        Table(
            "Figure 3: subscription up to which assured flows keep their profile, %, by the mean",
            {"holds_up_to": ""},
            CHANGES,
            (fig3.SHORT, SCHEMES),
            where={"item": "fig3", "reading": "mean"},
            digits=0,
        ),
    ),
    plots=(),
    notes=STATEMENT.notes,
    method=STATEMENT.method,
    assumptions=STATEMENT.assumptions,
    summaries=limits,
    extra=True,
    default_runs=6,
)
