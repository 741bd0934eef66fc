"""What an imported port guarantees to each class and queue, beside what runs of the scenario measure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    import polars as pl

    from perhop.scenario.reading import ScenarioSource

ONE_WAY = ("one_way_delay_p99_s", "one_way_delay_p99_low_s", "one_way_delay_p99_high_s")
"""The columns of the 99th percentile of the one-way delay, and of the ends of its 95 % interval."""
WAIT = ("delay_p99_s", "delay_p99_low_s", "delay_p99_high_s")
"""The columns of the 99th percentile of the wait in a queue, and of the ends of its interval."""


@dataclass(frozen=True, slots=True)
class Guarantees:
    """Bounds of a scenario, with runs beside what these measure.

    Attributes:
        classes: A row for each `[[flows]]` entry, with the columns of `Bounds.classes`, and with runs
            `ONE_WAY`.
        queues: A row for each class of packets that a link's queue distinguishes, or one for the link (whose
            `class` is null), with the columns of `Bounds.link_classes`, and with runs `WAIT`.
    """

    classes: pl.DataFrame
    queues: pl.DataFrame

    def to_dict(self) -> dict[str, list[dict[str, Any]]]:
        """The tables as plain data, where the end of an interval that is not known is null."""
        from perhop.runs.summary import plain  # noqa: PLC0415 - runs are loaded where something is asked

        def rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
            return [
                {name: plain(value) if name in {*ONE_WAY, *WAIT} else value for name, value in row.items()}
                for row in frame.iter_rows(named=True)
            ]

        return {"classes": rows(self.classes), "queues": rows(self.queues)}


def guaranteed(
    scenario: ScenarioSource,
    *,
    runs: int = 0,
    seed: int = 1,
    progress: Callable[[int, int], None] | None = None,
    waiting: Callable[[float], None] | None = None,
) -> Guarantees:
    """Return what each class and each queue of a scenario is guaranteed, and what runs of it measure.

    Args:
        scenario: See `perhop.run`; the `toml` of an import is one.
        runs: Runs that are simulated; none by default, since bounds need none.
        seed: The seed of the first run.
        progress: See `perhop.run`.
        waiting: See `perhop.run`.

    Raises:
        ScenarioError: The scenario is wrong.
        PerhopError: A run is not possible.
    """
    import polars as pl  # noqa: PLC0415 - it takes long to load

    from perhop.bounds import deriving  # noqa: PLC0415
    from perhop.runs import simulate  # noqa: PLC0415
    from perhop.scenario import reading  # noqa: PLC0415

    text = reading.canonical(scenario)
    found = deriving.of_text(text)
    apart = found.link_classes["link"].unique()
    links = found.links.filter(~pl.col("link").is_in(apart.implode()))
    queues = pl.concat([found.link_classes, links], how="diagonal")
    if not runs:
        return Guarantees(found.classes, queues)
    result = simulate.run(json.loads(text), runs=runs, seed=seed, progress=progress, waiting=waiting)
    return Guarantees(
        _beside(found.classes, [result.group_summary()], ["class"], ONE_WAY),
        _beside(queues, [result.link_summary(), result.link_class_summary()], ["link", "class"], WAIT),
    )


def _beside(
    bounds: pl.DataFrame, measured: Sequence[pl.DataFrame], names: Sequence[str], columns: Sequence[str]
) -> pl.DataFrame:
    """Bounds with the measured columns of the rows of the same names."""
    import polars as pl  # noqa: PLC0415

    known = {
        tuple(row.get(name) for name in names): {column: row.get(column) for column in columns}
        for frame in measured
        for row in frame.iter_rows(named=True)
    }
    rows = [known.get(row, {}) for row in bounds.select(names).iter_rows()]
    return bounds.hstack(pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.Float64), orient="row"))


def lines(frame: pl.DataFrame) -> list[dict[str, str]]:
    """A table for readers, without rows whose delay is neither bounded nor measured if others have one."""
    import polars as pl  # noqa: PLC0415

    from perhop.show.readable import readable  # noqa: PLC0415

    delays = ("one_way_delay_at_most_s", *ONE_WAY, "delay_at_most_s", *WAIT)
    kept = [name for name in delays if name in frame.columns]
    known = frame.filter(pl.any_horizontal(pl.col(kept).is_not_null()))
    found = (known if known.height else frame).select("class", *kept, "loss_excluded")
    return readable(found.with_columns(found["class"].fill_null("all")).to_dicts(), None)


def reasons(frame: pl.DataFrame) -> Iterator[str]:
    """Yield each reason why a delay has no bound, with the classes that it concerns."""
    lacking: dict[str, list[str]] = {}
    for row in frame.iter_rows(named=True):
        if row["delay_reason"] is not None:
            lacking.setdefault(row["delay_reason"], []).append(row["class"] or row["link"])
    for reason, classes in lacking.items():
        yield f"no bound for {', '.join(classes)}: {reason}"
