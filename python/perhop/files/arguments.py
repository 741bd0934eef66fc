"""Check the values of arguments, and refuse one that cannot be with one clear sentence.

Every check raises `perhop.errors.ArgumentError`, which names the argument.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from pathlib import Path

from perhop.errors import ArgumentError


def path(name: str, value: object) -> Path:
    """The path of a file or folder; an empty text would mean the working directory."""
    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes):
        raise ArgumentError(name, f"must be a path, not {value!r}")
    if value == "":
        raise ArgumentError(name, "must be a path, and it is empty")
    return Path(value)


def whole(name: str, value: object, least: int | None = None) -> int:
    """A whole number as Python's own, whose sums do not overflow."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ArgumentError(name, f"must be a whole number, not {value!r}")
    if least is not None and int(value) < least:
        raise ArgumentError(name, f"must be at least {least}, not {value}")
    return int(value)


def finite(name: str, value: object) -> float:
    """A number that is neither infinite nor NaN."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ArgumentError(name, f"must be a finite number, not {value!r}")
    return float(value)


def text(name: str, value: object) -> str:
    """A text."""
    if not isinstance(value, str):
        raise ArgumentError(name, f"must be text, not {value!r}")
    return value


def texts(name: str, value: object) -> list[str]:
    """Several texts; a single one would be taken letter by letter."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ArgumentError(name, f"must be a list of texts, not {value!r}")
    return [text(name, one) for one in value]


def one_of(name: str, value: object, known: Sequence[str]) -> None:
    """Refuse an argument that is none of a few words."""
    if value not in known:
        raise ArgumentError(name, f"must be {', '.join(known[:-1])} or {known[-1]}, not {value!r}")


def columns(width: object) -> None:
    """Refuse a width of text that is no number of columns; None is no limit."""
    if width is not None:
        whole("width", width, least=1)
