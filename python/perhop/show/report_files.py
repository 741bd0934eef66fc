"""A directory of results: page, plots, samples and manifest, written whole or not at all."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perhop.files.outputs import manifest, manifest_entry
from perhop.files.swap import earlier_plots, replace_report
from perhop.show.page import HtmlNetwork, HtmlPlot, as_page
from perhop.show.sheet import Picture

if TYPE_CHECKING:
    import polars as pl

    from perhop.show.report import Report


def write_report(
    out: Path,
    report: Report,
    samples: pl.DataFrame,
    scenarios: Sequence[Mapping[str, Any]],
    pictures: Sequence[Picture] | None = None,
) -> None:
    """A whole report, instead of the one that is there.

    Args:
        out: Where.
        report: For the page; has an origin.
        samples: Every number of every run.
        scenarios: What was simulated, with the seeds, for the manifest.
        pictures: For `plots/`, in their order; unless given, those of the report.

    Raises:
        PerhopError: A file cannot be written; the directory then holds what it held before.
    """
    assert report.origin is not None
    if pictures is None:
        pictures = [part.picture for part in report.parts if isinstance(part, HtmlPlot | HtmlNetwork)]
    files = picture_files(pictures)
    entries = [manifest_entry(one) for one in scenarios]
    content = {
        **files,
        "samples.parquet": parquet(samples),
        "manifest.json": manifest(report.origin.command, entries, _names(files)),
        "report.html": as_page(report),
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
