"""Formulas and curves of blocks: what the site adds to the generated page `blocks.md`.

A curve is drawn from runs. Where a rule gives the drop probability by the average queue, the share of
packets that it drops is drawn as a line and the runs as points, which must lie on it. All AQMs are shown
under a growing number of downloads, meters under a growing rate.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import perhop
from perhop.blocks import catalogue

HERE = Path(__file__).parent
HEAD = re.compile(r"^### (\S+)$", re.MULTILINE)

PLAIN = ("#0b5cad", "#b8500b", "#2e7d32")
COLORS = {"green": "#1b7f4b", "yellow": "#c98a00", "red": "#b3261e"}
MARKS = ("o", "s", "^")
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
}

SETTINGS = tomllib.loads((HERE / "curves.toml").read_text(encoding="utf-8"))
SCENARIOS: dict[str, str] = SETTINGS["scenarios"]
PROFILES: dict[str, str] = SETTINGS["profiles"]
AQMS: dict[str, str] = SETTINGS["queues"]
METERS: dict[str, str] = SETTINGS["meters"]

FLOWS = (1, 2, 4, 8, 16, 32, 64)
LOADS = (1.006, 1.012, 1.02, 1.03, 1.04, 1.05, 1.06)
"""Loads of the link. A queue is in balance where it drops 1 - 1 / load of the packets."""
RATES = tuple(range(250, 3001, 250))
"""Rates of a metered flow, in kbit/s; the profile has 1 Mbit/s."""
TOLERANCE = 0.25
"""The largest distance of a run from the formula, in percent of the packets."""


@dataclass(frozen=True, slots=True)
class Ramp:
    """The drops of one color by a rule: the share of packets dropped, by the average queue."""

    color: str
    share: Callable[[float], float]


def ramp(low: float, high: float, most: float) -> Callable[[float], float]:
    """The share of packets that RED with `wait` drops at an average: 2p/3, for gaps of 1/p to 2/p."""
    return lambda average: (
        0.0 if average < low else 1.0 if average >= high else 2 / 3 * most * (average - low) / (high - low)
    )


def both(one: Callable[[float], float], other: Callable[[float], float]) -> Callable[[float], float]:
    """The share that two tests drop, one after the other."""
    return lambda average: 1 - (1 - one(average)) * (1 - other(average))


RAMPS = {
    "red": [Ramp("yellow", ramp(30, 90, 0.1))],
    "rio": [Ramp("green", ramp(60, 120, 0.1)), Ramp("yellow", ramp(30, 90, 0.1))],
    "rio-plus-out": [
        Ramp("green", ramp(60, 120, 0.1)),
        Ramp("yellow", both(ramp(50, 110, 0.06), ramp(20, 90, 0.06))),
    ],
    "rio-three": [
        Ramp("green", ramp(70, 130, 0.1)),
        Ramp("yellow", ramp(40, 100, 0.1)),
        Ramp("red", ramp(10, 70, 0.1)),
    ],
    "wred": [
        Ramp("green", ramp(70, 130, 0.1)),
        Ramp("yellow", ramp(40, 100, 0.1)),
        Ramp("red", ramp(10, 70, 0.1)),
    ],
}


def write(source: Path) -> None:
    """Add formulas and curves to `blocks.md` in `source`."""
    page = source / "blocks.md"
    (source / "curves").mkdir()
    known = {
        block["name"] for eras in catalogue.grouped().values() for blocks in eras.values() for block in blocks
    }
    added = {
        name: formula(rule["formula"], rule["where"]) for name, rule in formulas().items() if name in known
    }
    for name in known & (AQMS.keys() | METERS.keys()):
        figure, caption = curve(name)
        figure.savefig(source / "curves" / f"{name}.png", dpi=120)
        added[name] = (
            added.get(name, "") + f"\n![Curves of {name}, from runs](curves/{name}.png)\n\n*{caption}*\n"
        )
    page.write_text(insert(page.read_text(encoding="utf-8"), added), encoding="utf-8")


def formulas() -> dict[str, Any]:
    """The formulas in `formulas.toml`, by block."""
    return tomllib.loads((HERE / "formulas.toml").read_text(encoding="utf-8"))


def formula(lines: Sequence[str], where: str) -> str:
    """Formulas as MathML, which browsers show without a script, and what they mean."""
    import latex2mathml.converter  # noqa: PLC0415 - it is installed for the site only

    shown = "\n".join(latex2mathml.converter.convert(line, display="block") for line in lines)
    return f'<div class="formula">\n{shown}\n</div>\n\n{where}\n'


def insert(text: str, added: dict[str, str]) -> str:
    """The page with something after the lead of each block, before its table of parameters."""
    parts = HEAD.split(text)
    pieces = [parts[0]]
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        more = added.get(name)
        if more:
            lead, mark, rest = body.partition("\n| parameter |")
            if not mark:
                lead, mark, rest = body.partition("\n## ")
            body = f"{lead.rstrip()}\n\n{more}{mark or chr(10)}{rest}"  # noqa: PLW2901 - it is the body
        pieces.append(f"### {name}{body}")
    return "".join(pieces)


def curve(name: str) -> tuple[Figure, str]:
    """The curves of an AQM or a meter, and what they are."""
    with mpl.rc_context(STYLE):
        if name in METERS:
            figure = Figure(figsize=(4.6, 2.9), layout="constrained")
            colored(figure.subplots(), METERS[name])
            return figure, f"The colors of a steady flow's packets, from runs. The meter: `{METERS[name]}`."
        panels = 3 if name in RAMPS else 2
        figure = Figure(figsize=(3.1 * panels, 2.9), layout="constrained")
        axes = list(figure.subplots(1, panels))
        if name in RAMPS:
            dropped(axes.pop(0), AQMS[name], RAMPS[name])
        loaded(axes, AQMS[name])
    rule = "Left: the share of packets that the rule drops (lines), and runs under a steady load (marks). "
    where = f"{rule}Middle and right" if name in RAMPS else "Both"
    text = "downloads over 20 Mbit/s, with a round trip of 40 ms without the queue, from runs of 30 s."
    return figure, f"{where}: {text} The queue: `{AQMS[name]}`."


def dropped(axes: Axes, queue: str, ramps: Sequence[Ramp]) -> None:
    """The share of packets dropped, by the average queue.

    Raises:
        ValueError: A run is off the line.
    """
    for mark, one in zip(MARKS, ramps, strict=False):
        color = COLORS[one.color] if len(ramps) > 1 else PLAIN[0]
        label = one.color if len(ramps) > 1 else "all"
        averages = [step / 4 for step in range(4 * 140)]
        shares = [one.share(average) * 100 for average in averages]
        rising = [(x, y) for x, y in zip(averages, shares, strict=True) if y < 20]
        axes.plot(*zip(*rising, strict=True), color=color, lw=1.5)
        points = [balance(queue, one.color, load) for load in LOADS]
        for average, share in points:
            if abs(share - 100 * one.share(average)) > TOLERANCE:
                raise ValueError(
                    f"{queue}: {share:.2f} % dropped at {average:.1f} packets, and not what the formula says"
                )
        axes.plot(*zip(*points, strict=True), mark, color=color, ms=4, label=label)
    axes.set(xlabel="average queue, packets", ylabel="dropped, %", xlim=(0, 140), ylim=(0, 8))
    if len(ramps) > 1:
        axes.legend(frameon=False, fontsize=8)


def balance(queue: str, color: str, load: float) -> tuple[float, float]:
    """Return the balance of a queue under this load of one color: its average, and the percentage dropped."""
    result = run("steady", queue=queue, profile=PROFILES[color], rate=round(2000 * load))
    total = "average total" if "average total" in result.queues["quantity"] else "average"
    after = result.queues.filter((pl.col("quantity") == total) & (pl.col("time_s") > 40))
    mean = after["packets"].mean()
    assert isinstance(mean, float)
    return mean, result.links["loss"][0] * 100


def run(scenario: str, **values: str | int) -> perhop.Result:
    """One run of a scenario of `curves.toml`, with these values in place of `<name>`."""
    text = SCENARIOS[scenario]
    for name, value in values.items():
        text = text.replace(f"<{name}>", str(value))
    return perhop.run(text, runs=1)


def loaded(axes: Sequence[Axes], queue: str) -> None:
    """Waiting times and losses by the number of downloads."""
    results = [run("downloads", queue=queue, flows=flows).links.row(0, named=True) for flows in FLOWS]
    delay, loss = axes
    for quantity, label, mark in (("delay_p50_s", "median", "o"), ("delay_p99_s", "99 %", "^")):
        delay.plot(FLOWS, [row[quantity] * 1e3 for row in results], mark + "-", ms=4, lw=1.2, label=label,
                   color=PLAIN[0] if mark == "o" else PLAIN[1])  # fmt: skip
    delay.set(xlabel="downloads", ylabel="waiting time, ms", ylim=(0, 85))
    delay.legend(frameon=False, fontsize=8)
    loss.plot(FLOWS, [row["loss"] * 100 for row in results], "o-", ms=4, lw=1.2, color=PLAIN[0])
    loss.set(xlabel="downloads", ylabel="lost, %")
    loss.set_ylim(bottom=0)
    for one in axes:
        one.set_xscale("log", base=2)
        one.set_xticks(FLOWS, [str(flows) for flows in FLOWS])
        one.minorticks_off()


def colored(axes: Axes, meter: str) -> None:
    """Draw the colors that a meter gives a steady flow, by its rate."""
    counts = []
    for rate in RATES:
        flow = run("metered", meter=meter, rate=rate).flows.row(0, named=True)
        counts.append({color: flow[f"marked_{color}"] for color in COLORS})
    for (color, line), mark in zip(COLORS.items(), MARKS, strict=True):
        shares = [100 * one[color] / sum(one.values()) for one in counts]
        if any(shares):
            axes.plot(
                [rate / 1e3 for rate in RATES], shares, mark + "-", ms=4, lw=1.2, color=line, label=color
            )
    axes.set(xlabel="rate of the flow, Mbit/s", ylabel="packets, %", ylim=(-3, 103), xlim=(0, 3.1))
    axes.legend(frameon=False, fontsize=8)
