"""The Markdown templates of these pages, filled in as those of the package are."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from perhop.show.page import environment
from perhop.show.plot import caption, drawing
from perhop.statistics.judging import STATES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perhop.studies.reproduction import StudyOutcome


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot of a page: the name of its file, its PNG image, what it shows, and how to read it."""

    file: str
    png: bytes
    alt: str
    caption: str


@dataclass(frozen=True, slots=True)
class Pages:
    """All pages by file name, and their pictures by file name."""

    texts: Mapping[str, str]
    pictures: Mapping[str, bytes]


def figures(outcome: StudyOutcome) -> Iterator[Figure]:
    """Draw the plots of a study."""
    for plot in outcome.study.plots:
        picture = drawing(plot, outcome.rows, outcome.study.id).picture
        yield Figure(f"images/{picture.name}.png", picture.png, picture.alt, caption(plot, outcome.rows))


def images(drawn: Sequence[Figure]) -> dict[str, bytes]:
    """The image files of these figures, by name."""
    return {figure.file: figure.png for figure in drawn}


def render(template: str, **values: object) -> str:
    """Fill in a template, which ends with one line break."""
    text = _environment().get_template(template).render(**{"states": STATES, **values})
    return text.rstrip("\n") + "\n"


@functools.cache
def _environment() -> jinja2.Environment:
    return environment().overlay(loader=jinja2.FileSystemLoader(Path(__file__).parent))
