"""What each class of an imported port is guaranteed, beside what runs of the scenario measure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    import polars as pl

    from perhop.scenario.reading import ScenarioSource

MEASURED = ("delay_p99_s", "delay_p99_low_s", "delay_p99_high_s")
"""The columns of the 99th percentile of the wait, and of the ends of its 95 % interval."""


def guaranteed(
    scenario: ScenarioSource,
    *,
    runs: int = 0,
    seed: int = 1,
    progress: Callable[[int, int], None] | None = None,
    waiting: Callable[[float], None] | None = None,
) -> pl.DataFrame:
    """Return what each class of the scenario's queues is guaranteed, and what runs of it measure.

    Args:
        scenario: See `perhop.run`; the `toml` of an import is one.
        runs: Runs that are simulated; none by default, since bounds need none.
        seed: The seed of the first run.
        progress: See `perhop.run`.
        waiting: See `perhop.run`.

    Returns:
        A row for each class of packets that a queue distinguishes, or one for the link. Columns: `link`,
        `class` (null for a link), `delay_at_most_s`, `backlog_at_most_bytes`, `loss_excluded`, and the
        reasons where there is no bound, as of `perhop.bound`; with runs also `MEASURED`.

    Raises:
        ScenarioError: The scenario is wrong.
        PerhopError: A run is not possible, or bounds cannot be derived.
    """
    import polars as pl  # noqa: PLC0415 - it takes long to load, and an import without bounds needs it not

    from perhop.bounds import deriving  # noqa: PLC0415
    from perhop.runs import simulate  # noqa: PLC0415
    from perhop.scenario import reading  # noqa: PLC0415

    text = reading.canonical(scenario)
    found = deriving.of_text(text)
    apart = found.link_classes["link"].unique()
    links = found.links.filter(~pl.col("link").is_in(apart.implode()))
    queues = pl.concat([found.link_classes, links], how="diagonal")
    if not runs:
        return queues
    result = simulate.run(json.loads(text), runs=runs, seed=seed, progress=progress, waiting=waiting)
    measured = [result.link_summary(), result.link_class_summary()]
    known = {
        (row["link"], row.get("class")): {name: row.get(name) for name in MEASURED}
        for frame in measured
        for row in frame.iter_rows(named=True)
    }
    columns = [known[link, name] for link, name in queues.select("link", "class").iter_rows()]
    return queues.hstack(pl.DataFrame(columns, schema=dict.fromkeys(MEASURED, pl.Float64), orient="row"))


def lines(frame: pl.DataFrame) -> list[dict[str, str]]:
    """The classes as a table for readers."""
    from perhop.show.readable import readable  # noqa: PLC0415

    shown = ("class", "delay_at_most_s", *MEASURED, "loss_excluded")
    found = frame.select([name for name in shown if name in frame.columns])
    return readable(found.with_columns(found["class"].fill_null("all")), None)


def reasons(frame: pl.DataFrame) -> Iterator[str]:
    """Yield each reason why a delay has no bound, with the classes that it concerns."""
    lacking: dict[str, list[str]] = {}
    for row in frame.iter_rows(named=True):
        if row["delay_reason"] is not None:
            lacking.setdefault(row["delay_reason"], []).append(row["class"] or row["link"])
    for reason, classes in lacking.items():
        yield f"no bound of the delay of {', '.join(classes)}: {reason}"


def records(frame: pl.DataFrame) -> Sequence[Mapping[str, Any]]:
    """The classes as plain data for JSON, where the end of an interval that is not known is null."""
    from perhop.runs.summary import plain  # noqa: PLC0415

    return [
        {name: plain(value) if name in MEASURED else value for name, value in row.items()}
        for row in frame.iter_rows(named=True)
    ]
