"""Drawn pictures in files, so that a report is not drawn again where nothing about its pictures is new.

    DIR/KEY.json    the digest of the rest, and the picture

The key is the SHA-256 of the function that draws, of its arguments, of perhop's modules and of the version of
the drawing library. So a picture of other code or other values is never taken for the one that is wanted.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import io
import json
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib as mpl
from markupsafe import Markup

import perhop
from perhop.files import filesystem
from perhop.show.page import HtmlNetwork, HtmlPlot
from perhop.show.sheet import Picture

Drawn: TypeAlias = HtmlPlot | HtmlNetwork

MOST = 500
"""The pictures that stay, those that were drawn last; `perhop reproduce --all` has about 200."""


class KeptPictures:
    """The pictures in a directory.

    One that cannot be read is as good as none, and one that cannot be written is drawn again next time.
    """

    def __init__(self, directory: Path) -> None:
        """Pictures are in this directory, which is made with the first of them."""
        self._directory = directory

    def find(self, work: Callable[..., object], arguments: tuple[object, ...]) -> Drawn | None:
        """The picture that `work` makes of these arguments; None if it is not kept."""
        path = self._path(work, arguments)
        if path is None:
            return None
        try:
            digest, _, content = path.read_bytes().partition(b"\n")
            if digest.decode() != _digest(content):
                return None
            return _of_json(json.loads(content))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, work: Callable[..., object], arguments: tuple[object, ...], drawn: Drawn) -> None:
        """Keep the picture that `work` made of these arguments."""
        path = self._path(work, arguments)
        if path is None:
            return
        content = json.dumps(_json(drawn)).encode()
        with contextlib.suppress(OSError):
            filesystem.make_directory(self._directory)
            whole = f"{_digest(content)}\n".encode() + content
            filesystem.atomic_write(path, whole)

    def tidy(self) -> None:
        """Delete the pictures beyond `MOST`, those first that were drawn first."""
        with contextlib.suppress(OSError):
            kept = sorted(self._directory.glob("*.json"), key=lambda path: path.stat().st_mtime)
            for path in kept[:-MOST]:
                filesystem.remove(path, missing_ok=True)

    def _path(self, work: Callable[..., object], arguments: tuple[object, ...]) -> Path | None:
        """The file of a picture; None for one whose function has no name in its module."""
        buffer = io.BytesIO()
        pickler = pickle.Pickler(buffer)
        pickler.fast = True  # the bytes then depend on the values alone, not on which of them are one object
        try:
            pickler.dump((code(), mpl.__version__, work, arguments))
        except (pickle.PickleError, AttributeError, TypeError):
            return None
        return self._directory / f"{_digest(buffer.getvalue())}.json"


@functools.cache
def code() -> str:
    """The digest of all modules of perhop, in hex."""
    found = hashlib.sha256()
    for folder in map(Path, perhop.__path__):
        for path in sorted(folder.rglob("*.py")):
            found.update(path.relative_to(folder).as_posix().encode())
            found.update(path.read_bytes())
    return found.hexdigest()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


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
