"""Figures 2 and 3 again with one choice changed at a time: the senders, access links, averaging, buckets.

The paper leaves these choices open, or could not make them: SACK and Linux came later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perhop.judging import above, all_of, fact, judge
from perhop.studies.kim import fig2, fig3, regime
from perhop.studies.kim.common import LINUX_TCP, PAPER, SCHEMES, Curve, stated
from perhop.studies.paper import claims
from perhop.study import Axis, Published, Study, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.judging import Judgement
    from perhop.runs import Run
    from perhop.study import Evidence, Factors, Row, Sample


@dataclass(frozen=True, slots=True)
class Variant:
    """One change to a setting.

    Attributes:
        queue: Keys of the bottleneck's queue.
        access: Rate of the access links, if changed.
        burst: Depth of the token buckets, if changed.
        transport: The senders' keys besides their sizes, if changed.
    """

    name: str
    queue: Mapping[str, Any] = field(default_factory=dict)
    access: str | None = None
    burst: str | None = None
    transport: Mapping[str, Any] | None = None

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
        if self.transport is not None:
            sizes = {key: entry["transport"][key] for key in ("packet", "window")}
            changed["transport"] = {**sizes, **self.transport}
        return changed


BASE = Variant("unchanged")
NEWRENO = Variant("newreno of RFC 6582", transport={"tcp": "newreno"})
SACK = Variant("SACK", transport={"tcp": "newreno", "sack": True})
LINUX = Variant("Linux", transport=LINUX_TCP)
FAST_ACCESS = Variant("access 100 Mbit/s", access="100Mbps")
QUICK_AVERAGE = Variant("weight 0.005", queue={"weight": 0.005})
DEEP_BUCKET = Variant("bucket 30 kB", burst="30kB")

EVERY = (BASE, NEWRENO, SACK, LINUX, FAST_ACCESS, QUICK_AVERAGE, DEEP_BUCKET)
ITEMS = ("fig2", "fig3")
VARIANTS = {variant.name: variant for variant in EVERY}
BUILD = {"fig2": fig2.build, "fig3": fig3.build}
FIG2_LOADS = (6, 11, 16, 26, 46)
FIG3_LEVELS = {0.5: (70, 80, 90, 100), 1.0: (40, 50, 60, 70, 80), 2.0: (10, 20, 30, 40, 50, 60)}
STATEMENT = stated("variants")


def factors(item: str, variant: Variant, more: Factors) -> Factors:
    """A cell's factors: which item, which change, and the item's own."""
    return {"item": item, "variant": variant.name, **more}


FIG2_CURVES = {
    (variant.name, scheme, percent): Curve(
        factors("fig2", variant, curve.factors), curve.load, FIG2_LOADS, curve.wanted, curve.unit
    )
    for variant in EVERY
    for (scheme, percent), curve in fig2.CURVES.items()
}
FIG3_CURVES = {
    (variant.name, scheme, profile): Curve(
        factors("fig3", variant, curve.factors), curve.load, FIG3_LEVELS[profile], curve.wanted, curve.unit
    )
    for variant in EVERY
    for (scheme, profile), curve in fig3.CURVES.items()
}


def cells() -> list[Factors]:
    """Both items' points under every variant."""
    curves = (*FIG2_CURVES.values(), *FIG3_CURVES.values())
    return [{**curve.factors, curve.load: level} for curve in curves for level in curve.levels]


def build(cell: Factors) -> Mapping[str, Any]:
    """The item's own scenario with the change made."""
    return VARIANTS[str(cell["variant"])].apply(BUILD[str(cell["item"])](cell))


def samples(cell: Factors, run: Run) -> Iterator[Sample]:
    """The items' own samples."""
    return regime.samples(cell, run)


def published() -> list[Published]:
    """The items' printed limits, once for each variant."""
    items = {"fig2": fig2.FIG2, "fig3": fig3.FIG3}
    return [
        Published(factors(item, variant, value.factors), value.metric, value.value)
        for item, study in items.items()
        for variant in EVERY
        for value in study.published
    ]


def limits(evidence: Evidence) -> Iterator[Row]:
    """Up to where each curve keeps its promise; Figure 3's levels here do not begin at 10 %."""
    for curve in (*FIG2_CURVES.values(), *FIG3_CURVES.values()):
        yield from curve.rows(evidence, never=0.0 if curve.wanted == 2.0 else None)


def exact(evidence: Evidence, variant: Variant) -> int:
    """How many of the ten published limits come out exactly, by the means."""
    pairs = [
        (FIG2_CURVES[variant.name, *key].limit(evidence), curve.published(evidence))
        for key, curve in ((key, FIG2_CURVES[BASE.name, *key]) for key in fig2.CURVES)
    ]
    pairs += [
        (FIG3_CURVES[variant.name, *key].limit(evidence), FIG3_CURVES[BASE.name, *key].published(evidence))
        for key in fig3.CURVES
    ]
    return sum((0 if limit is None else limit) == printed for limit, printed in pairs)


def never_all_ten(evidence: Evidence) -> Judgement:
    """No variant gives all ten limits."""
    met = {variant.name: exact(evidence, variant) for variant in EVERY}
    text = ", ".join(f"{name}: {count}" for name, count in met.items())
    return judge(fact(holds=max(met.values()) < 10), f"Published limits met exactly, of ten, {text}.")


def rio_fails_at_2(evidence: Evidence) -> Judgement:
    """Under all variants but two RIO misses 2 Mbit/s at every level of Figure 3; under these it does not."""
    curves = {variant.name: FIG3_CURVES[variant.name, "rio", 2.0] for variant in EVERY}
    kept = {variant.name for variant in (LINUX, DEEP_BUCKET)}
    text = "; ".join(
        f"{name}: {max(e.mean for e in curve.estimates(evidence)):.3f}" for name, curve in curves.items()
    )
    return judge(
        all_of(
            *(curve.fails(evidence) for name, curve in curves.items() if name not in kept),
            *(curves[name].keeps_to(evidence, 10) for name in kept),
        ),
        f"RIO's best level, Mbit/s, {text}.",
    )


def gains_at_2(evidence: Evidence) -> Judgement:
    """Under every variant RI+O gives a 2 Mbit/s flow more at 50 % subscription."""
    found = {
        variant.name: evidence.difference(
            "throughput",
            FIG3_CURVES[variant.name, "rio-plus-out", 2.0].at(50),
            FIG3_CURVES[variant.name, "rio", 2.0].at(50),
        )
        for variant in EVERY
    }
    text = "; ".join(f"{name}: {e.text(sign=True)}" for name, e in found.items())
    return judge(
        all_of(*(above(e) for e in found.values())), f"RI+O − RIO at 50 %, profile 2, Mbit/s, {text}."
    )


CHANGES = Axis("variant", "Change", {name: name for name in VARIANTS})

VARIED = Study(
    id="kim-variants",
    title="What the limits of Figures 2 and 3 depend on",
    source=f"{PAPER}: settings that it leaves open, and later TCPs",
    summary="Figures 2 and 3 again with one choice changed at a time",
    cells=cells(),
    scenario=build,
    samples=samples,
    published=published(),
    claims=claims(
        STATEMENT.claims,
        {
            "never-all-ten-limits": never_all_ten,
            "rio-fails-at-2": rio_fails_at_2,
            "gains-at-2": gains_at_2,
        },
    ),
    tables=(
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
