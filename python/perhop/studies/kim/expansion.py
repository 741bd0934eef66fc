"""The loads up to which profiles are kept: Figures 2 and 3 on a finer grid around those where they are lost.

The paper's grids have few points there: 16 and then 26 best-effort flows in Figure 2, every 10 % in Figure 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perhop.show.declared import Axis, Factors, Plot, Table
from perhop.statistics.judging import any_of, fact
from perhop.studies.evidence import Evidence
from perhop.studies.judges import Judge, Statement, of_statements, stated
from perhop.studies.kim import curves, fig2, fig3
from perhop.studies.kim.common import ASSURED, PAPER, SCHEMES, THIS, packets
from perhop.studies.kim.curves import KEEPS, OTHER_TOLERANCES, RI_PLUS_O, RIO, Curve
from perhop.studies.study import Study

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
        rio: RIO's curve there.
        levels: The loads here, lightest first.
        packet: Bytes of a packet, if others than the figure's.
    """

    name: str
    figure: Study
    rio: Curve
    levels: Sequence[int]
    packet: int | None = None

    @property
    def curves(self) -> tuple[Curve, Curve]:
        """The curves of assured flows under RIO, and under RI+O."""
        own = replace(self.rio, load="load", levels=self.levels)
        rio, ours = (
            replace(own, factors={"panel": self.name, "scheme": scheme}) for scheme in (RIO, RI_PLUS_O)
        )
        return rio, ours

    def of_figure(self, cell: Factors) -> Factors:
        """The factors of a point in the figure."""
        return {**self.rio.factors, "scheme": cell["scheme"], self.rio.load: cell["load"]}

    def build(self, cell: Factors) -> Mapping[str, Any]:
        """The setting of one point, that of the figure."""
        made = self.figure.scenario(self.of_figure(cell))
        return made if self.packet is None else packets(self.packet)(made)

    def wider(self, keeps: float = KEEPS) -> Statement:
        """RI+O keeps the profile up to a load at which RIO does not."""
        rio, ours = self.curves
        return _beyond(ours, rio, keeps)

    def narrower(self, keeps: float) -> Statement:
        """RIO keeps the profile up to a load at which RI+O does not."""
        return _beyond(*self.curves, keeps)

    def said(self, evidence: Evidence) -> str:
        """Both limits, and both rates at the first load at which the mean of either is too low."""
        found = [curve.rates(self.levels)(evidence) for curve in self.curves]
        unit, limits = self.rio.unit, [curve.limit(evidence) for curve in self.curves]
        rio, ours = ("nowhere" if limit is None else f"{limit}{unit}" for limit in limits)
        text = f"{self.name}: RIO {rio}, RI+O {ours}"
        for level in found[0]:
            rates = [of[level] for of in found]
            if min(rate.mean for rate in rates) < KEEPS * self.rio.wanted:
                return f"{text} (at {level}{unit} {rates[0].text()} and {rates[1].text()})"
        return text


def _beyond(first: Curve, second: Curve, keeps: float) -> Statement:
    """State that at some load the first curve keeps its promise, as before it, and the second does not."""

    def at(evidence: Evidence) -> Statement:
        loads = first.measured(evidence)
        return of_statements({n: first.keeps_to(n, keeps) & second.misses(n, keeps) for n in loads}, any_of)

    return Statement(lambda evidence: at(evidence).check(evidence))


FIGURE_2 = tuple(
    Panel(f"Figure 2, {percent} %", fig2.FIG2, fig2.CURVES[RIO, percent], levels)
    for percent, levels in FLOWS.items()
)
FIGURE_3 = tuple(
    Panel(f"Figure 3, {profile:g} Mbit/s, {name}", fig3.FIG3, fig3.CURVES[queue, RIO, profile], levels)
    for queue, name in fig3.QUEUE_NAMES.items()
    for profile, levels in LEVELS.items()
)
LARGE_PACKETS = tuple(replace(panel, name=f"{panel.name}, 1000 bytes", packet=1000) for panel in FIGURE_2)
"""Figure 2 with packets of ns-2's default size; no panels of the claim."""
PANELS = {panel.name: panel for panel in (*FIGURE_2, *FIGURE_3)}
ALL_PANELS = {**PANELS, **{panel.name: panel for panel in LARGE_PACKETS}}
CURVES = [curve for panel in ALL_PANELS.values() for curve in panel.curves]


def build(cell: Factors) -> Mapping[str, Any]:
    """The setting of one point."""
    return ALL_PANELS[str(cell["panel"])].build(cell)


def _holding(statements: Mapping[str, Statement], evidence: Evidence) -> str:
    found = [name for name, one in statements.items() if one.check(evidence)[0].holds]
    return "; ".join(found) or "nowhere"


def _wider_on_the_whole(keeps: float = KEEPS) -> Judge:
    """Judge whether RI+O keeps the profile up to a load at which RIO does not in some panel, RIO in none."""
    wider = of_statements({name: panel.wider(keeps) for name, panel in PANELS.items()}, any_of)
    back = {name: panel.narrower(keeps) for name, panel in PANELS.items()}
    none_back = stated(lambda evidence: fact(holds=_holding(back, evidence) == "nowhere"))
    return (wider & none_back).said(
        "The other way round: {back}. Limits by the means, {limits}.",
        back=lambda evidence: _holding(back, evidence),
        limits=lambda evidence: "; ".join(panel.said(evidence) for panel in PANELS.values()),
    )


def _plot(figure: str, load: str, panels: Sequence[Panel]) -> Plot:
    return curves.plot(
        name=figure.lower().replace(" ", "-"),
        title=f"Throughput of an assured flow, {figure}",
        x=Axis("load", load),
        facet=Axis("panel", "Panel", {p.name: p.name.removeprefix(f"{figure}, ") for p in panels}),
        wanted={p.name: p.rio.wanted for p in panels},
        where={"panel": tuple(panel.name for panel in panels)},
        from_zero=False,
        one_scale=False,
    )


WIDER = {name: panel.wider() for name, panel in PANELS.items()}
NAMES = Axis("panel", "Panel", {name: name for name in ALL_PANELS})

REGIME = THIS.study(
    "regime",
    title="The loads up to which profiles are kept, on a finer grid",
    source=f"{PAPER}, Figures 2 and 3",
    summary="assured flows around the loads at which Figures 2 and 3 have their limits, RIO and RI+O",
    cells=[cell for curve in CURVES for cell in curve.cells()],
    scenario=build,
    samples=curves.samples,
    judges={
        "wider-regime": {
            "in every panel": of_statements(WIDER).said(
                "Wider under RI+O: {found}.", found=lambda evidence: _holding(WIDER, evidence)
            ),
            "on the whole": _wider_on_the_whole(),
            **{
                f"on the whole, {name}": _wider_on_the_whole(keeps)
                for name, keeps in OTHER_TOLERANCES.items()
            },
        },
        "wider-with-large-packets": LARGE_PACKETS[0]
        .wider()
        .said(
            "{limits}.", limits=lambda evidence: "; ".join(panel.said(evidence) for panel in LARGE_PACKETS)
        ),
    },
    tables=(
        Table(
            "Load up to which assured flows keep their profile, by the mean: best-effort flows in Figure 2, "
            "subscription in percent in Figure 3",
            {"holds_up_to": ""},
            NAMES,
            (SCHEMES,),
            where={"reading": "mean"},
            digits=0,
        ),
        *(
            Table(
                f"Throughput of an assured flow, Mbit/s, by {of}",
                {"throughput": ""},
                Axis("load", "Load"),
                (NAMES, SCHEMES),
                where={"class": ASSURED, "panel": tuple(panel.name for panel in panels)},
            )
            for of, panels in (
                ("number of best-effort flows", (*FIGURE_2, *LARGE_PACKETS)),
                ("subscription (%)", FIGURE_3),
            )
        ),
    ),
    plots=[
        _plot("Figure 2", "Best-effort flows", (*FIGURE_2, *LARGE_PACKETS)),
        _plot("Figure 3", "Subscription, %", FIGURE_3),
    ],
    summaries=curves.limits(CURVES, never=0.0),
    default_runs=16,
)
