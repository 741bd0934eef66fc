"""Values over time, for `perhop run --plot`: one sheet for a file, lines of blocks for a terminal.

Both show the throughput and the round-trip time of each group of flows, and the queue of each link, as they
are in the first run: a mean over runs is no queue's length at any time. The sheet has beside it the lowest
and the highest of all runs.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perhop import _engine
from perhop.errors import PerhopError
from perhop.files.outputs import STDOUT, prepare_file, write
from perhop.measures.run import Run
from perhop.runs import pictures
from perhop.show.declared import Axis, Plot, Row
from perhop.show.distributions import Drawn
from perhop.show.numbers import short
from perhop.show.table import records

if TYPE_CHECKING:
    from perhop.show.sheet import Picture

FORMATS = (".svg", ".png")
SAMPLES = 200
"""The number of samples of a scenario without `probes`."""
BLOCKS = "▁▂▃▄▅▆▇█"
GAP = " "
"""The block for a time without a value."""
WIDEST = 50
"""Characters of a line of blocks, where the terminal has room."""
_BESIDE = 48
"""Columns of a terminal beside the blocks."""
_QUANTITY = "quantity"


def prepare(place: Path, reads: Sequence[Path]) -> Path:
    """Prove, before the work begins, that the picture can be written.

    Raises:
        PerhopError: It cannot, or its name says no format.
    """
    if place == STDOUT:
        return place
    if place.suffix not in FORMATS:
        raise PerhopError(
            f"--plot {place}: name a file that ends in {' or '.join(FORMATS)}, or - for the terminal alone"
        )
    return prepare_file(place, "--plot", reads)


def sampled(text: str) -> str:
    """The scenario, with `probes` where it has none; samples change no other result."""
    scenario: dict[str, Any] = json.loads(text)
    if scenario.get("probes", {}).get("interval"):
        return text
    duration_ns, _ = _engine.quantity("duration", scenario["duration"])
    return json.dumps({**scenario, "probes": {"interval": f"{max(1, duration_ns // SAMPLES)}ns"}})


def show(path: Path, runs: Sequence[Run], title: str, say: Callable[[str], None], width: int | None) -> None:
    """Draw the sheet where `prepare` says, and print the blocks.

    Args:
        path: What `prepare` returned.
        runs: With samples.
        title: Of the sheet.
        say: Prints lines.
        width: Of the terminal; None for no limit.

    Raises:
        PerhopError: The picture cannot be written.
    """
    say("\n" + text(runs, width))
    if path != STDOUT:
        drawn = picture(runs, title)
        write(path, drawn.svg if path.suffix == ".svg" else drawn.png)
        say(f"\nplot: {path}")


def panels(runs: Sequence[Run]) -> list[tuple[str, list[Row]]]:
    """Each quantity with the samples of the first run, by what they are of, and the range of all runs."""
    drawn = (
        ("throughput of a flow, Mbit/s", "class", pictures.throughput_over_time),
        ("queue, packets", "link", pictures.queues_over_time),
        ("RTT, ms", "class", pictures.rtts_over_time),
    )
    found = [
        (name, [_shown(row, name, factor) for row in _first_and_range(runs, over_time)])
        for name, factor, over_time in drawn
    ]
    return [(name, rows) for name, rows in found if rows]


def _first_and_range(runs: Sequence[Run], over_time: Callable[[Sequence[Run]], list[Drawn]]) -> list[Row]:
    """The first run's samples, each with the lowest and the highest of all runs as the ends of its band."""
    of_each = [[row for _, rows in over_time([run]) for row in rows] for run in runs]
    values: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for row in itertools.chain(*of_each):
        if row.mean is not None:
            values[tuple(row.factors.values())].append(row.mean)
    rows = []
    for row in of_each[0]:
        known = values[tuple(row.factors.values())]
        rows.append(replace(row, ci95=(min(known), max(known)) if len(known) > 1 else None))
    return rows


def _reading(runs: Sequence[Run]) -> str:
    first = f"the run of seed {runs[0].seed}"
    if len(runs) == 1:
        return f"Lines: {first}."
    return f"Lines: {first}. Bands: the lowest and the highest of {len(runs)} runs."


def _shown(row: Row, name: str, factor: str) -> Row:
    factors = {_QUANTITY: name, "of": _of(row, factor), "time_s": row.factors["time_s"]}
    return replace(row, factors=factors, metric="value", unit="")


def _of(row: Row, factor: str) -> str:
    """Return what a sample is of; of a link, also which packets, unless it is all of them."""
    own = str(row.factors[factor])
    quantity = row.factors.get("quantity", pictures.ALL)
    return own if quantity == pictures.ALL else f"{own}, {quantity}"


def picture(runs: Sequence[Run], title: str) -> Picture:
    """Draw everything on one sheet."""
    from perhop.show.plot import drawing  # noqa: PLC0415 - matplotlib takes its time

    found = panels(runs)
    rows = [row for _, of_panel in found for row in of_panel]
    names = list(dict.fromkeys(str(row.factors["of"]) for row in rows))
    plot = Plot(
        id="over-time",
        title=title,
        kind="lines",
        metric="value",
        x=pictures.TIME,
        series=Axis("of", "", {name: name for name in names}),
        y_label="",
        facet=Axis(_QUANTITY, "", {name: name for name, _ in found}),
        reading=_reading(runs),
        steady=True,
        one_scale=False,
    )
    return drawing(plot, rows, "run").picture


def text(runs: Sequence[Run], width: int | None) -> str:
    """A line of blocks for each series of the first run, from 0 to its largest value."""
    room = WIDEST if width is None else max(8, min(WIDEST, width - _BESIDE))
    lines = []
    for name, rows in panels(runs):
        for of in dict.fromkeys(str(row.factors["of"]) for row in rows):
            values = [row.mean for row in rows if row.factors["of"] == of]
            known = [value for value in values if value is not None]
            if known:
                lines.append(
                    {
                        _QUANTITY: name,
                        "of": of,
                        "lowest": short(min(known)),
                        "highest": short(max(known)),
                        "over time, from 0 to the highest": blocks(values, room),
                    }
                )
    if not lines:
        return "nothing was sampled"
    of_run = "" if len(runs) == 1 else f"the run of seed {runs[0].seed}:\n"
    return of_run + "\n".join(records(lines, width))


def blocks(values: Sequence[float | None], room: int) -> str:
    """Values as a line of at most so many blocks, each the mean of its part of them."""
    parts = min(room, len(values))
    ends = [round(part * len(values) / parts) for part in range(parts + 1)]
    means = [_mean(values[begin:end]) for begin, end in itertools.pairwise(ends)]
    most = max((mean for mean in means if mean is not None), default=0.0)
    return "".join(GAP if mean is None else _block(mean, most) for mean in means)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _block(value: float, most: float) -> str:
    level = 0 if most <= 0 else math.ceil(max(0.0, value) / most * len(BLOCKS)) - 1
    return BLOCKS[min(max(level, 0), len(BLOCKS) - 1)]
