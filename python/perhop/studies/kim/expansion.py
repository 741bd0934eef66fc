"""The loads up to which profiles are kept: Figures 2 and 3 on a finer grid around those where they are lost.

The paper's grids have few points there: 16 and then 26 best-effort flows in Figure 2, every 10 % in Figure 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from perhop.show.declared import Axis, Plot, Reference, Table
from perhop.statistics.judging import all_of, any_of, fact, judge
from perhop.studies.kim import fig2, fig3, regime
from perhop.studies.kim.changes import packets
from perhop.studies.kim.common import (
    ASSURED,
    KEEPS,
    OTHER_TOLERANCES,
    PAPER,
    SCHEMES,
    THIS,
    Curve,
    at_tolerance,
)
from perhop.studies.study import Study

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perhop.measures.run import Run
    from perhop.show.declared import Factors, Row
    from perhop.statistics.judging import Check, Judgement
    from perhop.studies.evidence import Evidence, Sample

FLOWS = {40: (11, 12, 14, 16, 17, 18, 19, 20, 21, 22, 24, 26), 50: (6, 7, 8, 9, 10, 11, 12, 14, 16)}
"""Best-effort flows by subscription in percent."""
LEVELS = {1.0: tuple(range(50, 86, 5)), 2.0: tuple(range(10, 71, 10))}
"""Subscription by profile, from one flow to the next: 5 % or 10 % of the link."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel for which the paper contrasts a limit of RIO with one of RI+O.

    Attributes:
        name: Such as "Figure 2, 40 %".
        figure: The study of the figure.
        where: The panel's factors there.
        load: The figure's factor that grows along its curves.
        levels: Its values, lightest first.
        profile_mbps: The promised rate.
        unit: What follows a level in text.
        packet: Bytes of a packet, if others than the figure's.
    """

    name: str
    figure: Study
    where: Factors
    load: str
    levels: Sequence[int]
    profile_mbps: float
    unit: str
    packet: int | None = None

    def curve(self, scheme: str) -> Curve:
        """What assured flows get under one scheme."""
        return Curve(
            {"panel": self.name, "scheme": scheme}, "load", self.levels, self.profile_mbps, self.unit
        )

    @property
    def curves(self) -> tuple[Curve, Curve]:
        """RIO's and RI+O's."""
        return self.curve("rio"), self.curve("rio-plus-out")

    def cells(self) -> Iterator[Factors]:
        """Both schemes at each level."""
        for curve in self.curves:
            for level in self.levels:
                yield {**curve.factors, "load": level}

    def build(self, cell: Factors) -> Mapping[str, Any]:
        """The setting of one point, that of the figure."""
        made = self.figure.scenario({**self.where, "scheme": cell["scheme"], self.load: cell["load"]})
        return made if self.packet is None else packets(self.packet)(made)

    def wider(self, evidence: Evidence, keeps: float) -> Check:
        """RI+O keeps the profile up to a load at which RIO does not."""
        rio, ours = self.curves
        return _beyond(evidence, ours, rio, keeps)

    def narrower(self, evidence: Evidence, keeps: float) -> Check:
        """The opposite."""
        rio, ours = self.curves
        return _beyond(evidence, rio, ours, keeps)

    def said(self, evidence: Evidence) -> str:
        """Both limits, and both rates at the first load at which the mean of either is too low."""
        rio, ours = self.curves
        limits = [_say(curve.limit(evidence), self.unit) for curve in (rio, ours)]
        text = f"{self.name}: RIO {limits[0]}, RI+O {limits[1]}"
        for level in rio.measured(evidence):
            rates = [curve.found(evidence, level) for curve in (rio, ours)]
            if min(rate.mean for rate in rates) < rio.kept_from():
                return f"{text} (at {level}{self.unit} {rates[0].text()} and {rates[1].text()})"
        return text


def _beyond(evidence: Evidence, first: Curve, second: Curve, keeps: float) -> Check:
    return any_of(
        *(
            all_of(first.keeps_to(evidence, level, keeps), second.misses(evidence, level, keeps))
            for level in first.measured(evidence)
        )
    )


def _say(limit: int | None, unit: str) -> str:
    return "nowhere" if limit is None else f"{limit}{unit}"


FIGURE_2 = tuple(
    Panel(
        f"Figure 2, {percent} %",
        fig2.FIG2,
        {"subscription_percent": percent},
        "best_effort_flows",
        FLOWS[percent],
        profile,
        " best-effort flows",
    )
    for percent, profile in fig2.PROFILES.items()
)
FIGURE_3 = tuple(
    Panel(
        f"Figure 3, {profile:g} Mbit/s, {name}",
        fig3.FIG3,
        {"queue": queue, "profile_mbps": profile},
        "subscription_percent",
        levels,
        profile,
        " %",
    )
    for queue, name in fig3.QUEUE_NAMES.items()
    for profile, levels in LEVELS.items()
)
LARGE_PACKETS = tuple(replace(panel, name=f"{panel.name}, 1000 bytes", packet=1000) for panel in FIGURE_2)
"""Figure 2 with packets of ns-2's default size; no panels of the claim."""
PANELS = {panel.name: panel for panel in (*FIGURE_2, *FIGURE_3)}
ALL_PANELS = {**PANELS, **{panel.name: panel for panel in LARGE_PACKETS}}


def build(cell: Factors) -> Mapping[str, Any]:
    """The setting of one point."""
    return ALL_PANELS[str(cell["panel"])].build(cell)


def samples(cell: Factors, run: Run) -> Iterator[Sample]:
    """The figures' own samples."""
    return regime.samples(cell, run)


def limits(evidence: Evidence) -> Iterator[Row]:
    """Up to which load each curve keeps its promise."""
    for panel in ALL_PANELS.values():
        for curve in panel.curves:
            yield from curve.rows(evidence, never=0.0)


def wider_in_every_panel(evidence: Evidence, keeps: float = KEEPS) -> Judgement:
    """In each panel RI+O keeps the profile up to a load at which RIO does not."""
    return judge(
        all_of(*(panel.wider(evidence, keeps) for panel in PANELS.values())), _wider(evidence, keeps)
    )


def wider_on_the_whole(evidence: Evidence, keeps: float = KEEPS) -> Judgement:
    """In some panel RI+O keeps the profile up to a load at which RIO does not; in none the opposite."""
    back = [panel.name for panel in PANELS.values() if panel.narrower(evidence, keeps).holds]
    limits_text = "; ".join(panel.said(evidence) for panel in PANELS.values())
    return judge(
        all_of(any_of(*(panel.wider(evidence, keeps) for panel in PANELS.values())), fact(holds=not back)),
        f"The other way round: {'; '.join(back) or 'nowhere'}. Limits by the means, {limits_text}.",
    )


def wider_with_large_packets(evidence: Evidence) -> Judgement:
    """With packets of 1000 bytes RI+O keeps the profile to more best-effort flows at 40 %."""
    said = "; ".join(panel.said(evidence) for panel in LARGE_PACKETS)
    return judge(LARGE_PACKETS[0].wider(evidence, KEEPS), f"{said}.")


def _wider(evidence: Evidence, keeps: float) -> str:
    found = [panel.name for panel in PANELS.values() if panel.wider(evidence, keeps).holds]
    return f"Wider under RI+O: {'; '.join(found) or 'nowhere'}."


def _plot(name: str, figure: str, load: str, panels: Sequence[Panel]) -> Plot:
    return Plot(
        id=name,
        title=f"Throughput of an assured flow, {figure}",
        kind="lines",
        metric="throughput",
        x=Axis("load", load),
        series=SCHEMES,
        y_label="Mbit/s per assured flow",
        facet=Axis("panel", "Panel", {p.name: p.name.removeprefix(f"{figure}, ") for p in panels}),
        where={"class": ASSURED, "panel": tuple(panel.name for panel in panels)},
        references=(Reference("profile", "panel", {p.name: p.profile_mbps for p in panels}),),
        from_zero=False,
        one_scale=False,
    )


LOAD = Axis("load", "Load")
NAMES = Axis("panel", "Panel", {name: name for name in ALL_PANELS})
READING = {"reading": "mean"}

REGIME = THIS.study(
    "regime",
    title="The loads up to which profiles are kept, on a finer grid",
    source=f"{PAPER}, Figures 2 and 3",
    summary="assured flows around the loads at which Figures 2 and 3 have their limits, RIO and RI+O",
    cells=[cell for panel in ALL_PANELS.values() for cell in panel.cells()],
    scenario=build,
    samples=samples,
    judges={
        "wider-regime": {
            "in every panel": wider_in_every_panel,
            "on the whole": wider_on_the_whole,
            **{
                f"on the whole, {name}": at_tolerance(wider_on_the_whole, keeps)
                for name, keeps in OTHER_TOLERANCES.items()
            },
        },
        "wider-with-large-packets": wider_with_large_packets,
    },
    tables=(
        Table(
            "Load up to which assured flows keep their profile, by the mean: best-effort flows in Figure 2, "
            "subscription in percent in Figure 3",
            {"holds_up_to": ""},
            NAMES,
            (SCHEMES,),
            where=READING,
            digits=0,
        ),
        *(
            Table(
                f"Throughput of an assured flow, Mbit/s, by {of}",
                {"throughput": ""},
                LOAD,
                (NAMES, SCHEMES),
                where={"class": ASSURED, "panel": tuple(panel.name for panel in panels)},
            )
            for of, panels in (
                ("number of best-effort flows", (*FIGURE_2, *LARGE_PACKETS)),
                ("subscription (%)", FIGURE_3),
            )
        ),
    ),
    plots=(
        _plot("figure-2", "Figure 2", "Best-effort flows", (*FIGURE_2, *LARGE_PACKETS)),
        _plot("figure-3", "Figure 3", "Subscription, %", FIGURE_3),
    ),
    summaries=limits,
    default_runs=16,
)
