"""The plots of `perhop compare`: differences in margins, then simulation beside real packets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from perhop.real_packets.equivalence import MEASURES, VERDICTS, Comparison, Line
from perhop.runs.pictures import throughput_beside, waiting_times_beside
from perhop.show.declared import Axis, Plot, Reference, Row

if TYPE_CHECKING:
    from perhop.real_packets.report import Compared

SOURCES = Axis("source", "", {"simulated": "simulated", "live": "on real packets"})


def plots(compared: Compared) -> list[tuple[Plot, list[Row], str]]:
    """Each with its rows and a name for its file."""
    found = []
    for index, comparison in enumerate(compared.comparisons):
        name = "compare" if len(compared.comparisons) == 1 else f"compare-{'ab'[index]}"
        of = "" if len(compared.comparisons) == 1 else f", {compared.names[index]}"
        found += [(plot, rows, name) for plot, rows in _plots(comparison, of) if rows]
    return found


def _plots(comparison: Comparison, of: str) -> Iterator[tuple[Plot, list[Row]]]:
    tested = [line for line in comparison.lines if line.test is not None and line.test.margin > 0]
    names = {line.key.text: line.key.text.rpartition(",")[0] for line in tested}
    plot = Plot(
        id="differences",
        title=f"Live minus simulated, in units of the margin{of}",
        kind="dots",
        metric="difference",
        x=Axis("measure", "", names),
        series=Axis("verdict", "", {one: one for one in VERDICTS}),
        y_label="difference / margin",
        references=(Reference("no difference", "measure", dict.fromkeys(names, 0.0)),),
        band=("within the margin", -1.0, 1.0),
        interval="90 %",
        from_zero=False,
    )
    yield plot, [_in_margins(line) for line in tested]
    for metric, title in (("throughput", "Throughput of a flow"), ("rtt", "Round-trip time")):
        yield _side_by_side(comparison, metric, title + of, "class")
    yield _side_by_side(comparison, "delay-p95", "95th percentile of the waiting time" + of, "link")
    sources = {"simulated": comparison.simulated.runs, "live": comparison.valid}
    yield from waiting_times_beside(sources, SOURCES, of)
    yield from throughput_beside(sources, SOURCES, of)


def _in_margins(line: Line) -> Row:
    assert line.test is not None
    margin, ends = line.test.margin, line.test.difference.interval(0.9)
    return Row(
        {"measure": line.key.text, "verdict": line.verdict},
        "difference",
        "margins",
        None,
        line.test.difference.value / margin,
        None if ends is None else (ends[0] / margin, ends[1] / margin),
        0 if line.live is None else line.live.runs,
    )


def _side_by_side(comparison: Comparison, metric: str, title: str, kind: str) -> tuple[Plot, list[Row]]:
    measure = MEASURES[metric]
    rows = []
    lines = [line for line in comparison.lines if line.key.measure == metric]
    for line in lines:
        for source, found in (("simulated", line.simulated), ("live", line.live)):
            if found is not None:
                ends = found.ci95
                scaled = None if ends is None else (ends[0] * measure.scale, ends[1] * measure.scale)
                factors = {kind: line.key.name, "source": source}
                mean = found.mean * measure.scale
                rows.append(Row(factors, metric, measure.unit, None, mean, scaled, found.runs))
    plot = Plot(
        id=metric,
        title=title,
        kind="bars",
        metric=metric,
        x=Axis(kind, kind.capitalize(), {line.key.name: line.key.name for line in lines}),
        series=SOURCES,
        y_label=measure.label.rpartition(", ")[2] + (" per flow" if metric == "throughput" else ""),
    )
    return plot, rows
