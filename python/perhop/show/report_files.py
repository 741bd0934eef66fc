"""A directory of results: page, plots, samples and manifest, written whole or not at all."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from perhop.files.outputs import manifest, manifest_entry
from perhop.files.swap import earlier_plots, replace_report

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from perhop.show.sheet import Picture


def write_report(
    out: Path,
    page: str,
    pictures: Iterable[Picture],
    samples: pl.DataFrame,
    made_by: tuple[str, Sequence[Mapping[str, Any]]],
) -> None:
    """A whole report, instead of the one that is there.

    Args:
        out: Where.
        page: As HTML.
        pictures: For `plots/`.
        samples: Every number of every run.
        made_by: The command, and its scenarios with their seeds.

    Raises:
        PerhopError: A file cannot be written; the directory then holds what it held before.
    """
    files = picture_files(pictures)
    command, scenarios = made_by
    content = {
        **files,
        "samples.parquet": parquet(samples),
        "manifest.json": manifest(command, [manifest_entry(one) for one in scenarios], _names(files)),
        "report.html": page,
    }
    replace_report(out, content, remove=earlier_plots(out))


def picture_files(pictures: Iterable[Picture]) -> dict[str, bytes | str]:
    """The files of pictures, by path."""
    files: dict[str, bytes | str] = {}
    for picture in pictures:
        files[f"plots/{picture.name}.svg"] = picture.svg
        files[f"plots/{picture.name}.png"] = picture.png
    return files


def parquet(frame: pl.DataFrame) -> bytes:
    """A data frame as a Parquet file."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def _names(files: Iterable[str]) -> list[str]:
    return [name.removeprefix("plots/") for name in files]
