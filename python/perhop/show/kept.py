"""Drawn pictures in files, so that a report is not drawn again where nothing about its pictures is new.

A picture's key (`perhop.files.kept`) is of the function that draws, of its arguments, and of the version of
the drawing library.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib as mpl
from markupsafe import Markup

from perhop.files.kept import KeptWork, key_of
from perhop.show.page import HtmlNetwork, HtmlPlot
from perhop.show.sheet import Picture

Drawn: TypeAlias = HtmlPlot | HtmlNetwork

MOST = 500
"""The pictures that stay, those that were drawn last; `perhop reproduce --all` has about 200."""


class KeptPictures:
    """The pictures in a directory."""

    def __init__(self, directory: Path) -> None:
        """Pictures are in this directory, which is made with the first of them."""
        self._kept = KeptWork(directory, MOST)

    def find(self, work: Callable[..., object], arguments: tuple[object, ...]) -> Drawn | None:
        """The picture that `work` makes of these arguments; None if it is not kept."""
        key = key_of(mpl.__version__, work, arguments)
        if key is None or (found := self._kept.find(key)) is None:
            return None
        try:
            return _of_json(found)
        except (ValueError, KeyError, TypeError):
            return None

    def keep(self, work: Callable[..., object], arguments: tuple[object, ...], drawn: Drawn) -> None:
        """Keep the picture that `work` made of these arguments."""
        key = key_of(mpl.__version__, work, arguments)
        if key is not None:
            self._kept.keep(key, _json(drawn))

    def tidy(self) -> None:
        """Delete the pictures beyond `MOST`, those first that were drawn first."""
        self._kept.tidy()


def _json(drawn: Drawn) -> dict[str, Any]:
    picture = drawn.picture
    file = {"name": picture.name, "alt": picture.alt, "svg": picture.svg}
    content: dict[str, Any] = {
        "kind": drawn.kind,
        "title": drawn.title,
        "picture": {**file, "png": base64.b64encode(picture.png).decode()},
    }
    if isinstance(drawn, HtmlNetwork):
        return {**content, "svg": drawn.svg}
    panels = {"panels": list(drawn.panels), "narrow": list(drawn.narrow), "columns": drawn.columns}
    return {**content, **panels, "caption": drawn.caption}


def _of_json(content: Mapping[str, Any]) -> Drawn:
    """Raise KeyError, ValueError or TypeError where it is no picture."""
    file = content["picture"]
    picture = Picture(file["name"], file["alt"], file["svg"], base64.b64decode(file["png"]))
    if content["kind"] == HtmlNetwork.kind:
        return HtmlNetwork(Markup(content["svg"]), picture, content["title"])  # noqa: S704 - drawn by perhop
    panels, narrow = ([Markup(svg) for svg in content[name]] for name in ("panels", "narrow"))  # noqa: S704
    return HtmlPlot(content["title"], content["caption"], panels, narrow, content["columns"], picture)
