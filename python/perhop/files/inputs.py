"""Read what a user hands in, and refuse it with one clear sentence."""

from __future__ import annotations

import codecs
import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perhop import _engine
from perhop.errors import PerhopError

LIMIT = 1_000_000
"""Bytes: a scenario is a page or two of text; anything larger is the wrong file."""
MOST_OF_NAME = 255
"""Characters: no longer text is looked for as the name of a file."""
SCENARIO_NEEDS = "a scenario needs at least `duration`, a link and a flow"


def read_text(path: Path, needs: str = SCENARIO_NEEDS) -> str:
    """The text of a scenario file, or of another one; `needs`: what an empty one lacks.

    At most `LIMIT` + 1 bytes are read, whatever the file's size.

    Raises:
        PerhopError: The file is missing, a directory, unreadable, empty, larger than `LIMIT` or not UTF-8.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LIMIT + 1)
    except FileNotFoundError:
        raise PerhopError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise PerhopError(f"{path}: is a directory; give a file (TOML)") from None
    except OSError as error:
        raise PerhopError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise PerhopError(f"{str(path)!r}: is not a file name") from None
    if len(data) > LIMIT:
        raise PerhopError(
            f"{path}: larger than {LIMIT // 1_000_000} MB; a scenario file is a page or two of TOML"
        )
    text = decoded(data, str(path))
    if not text.strip():
        raise PerhopError(f"{path}: is empty; {needs}")
    return text


def named_by(path: Path) -> Iterator[Path]:
    """The files that a text of a file in TOML names, and those that these name: scenarios, traces, classes.

    A text such as `my_aqm:Shallow` names the module `my_aqm.py`. Files are looked up beside the file and in
    the working directory.
    """
    waiting, seen = [path], {path}
    while waiting:
        place = waiting.pop()
        try:
            table = toml(read_text(place), str(place)) if place.suffix == ".toml" else {}
        except PerhopError:
            continue  # whoever reads it says what is wrong
        for text in _texts(table):
            names = (text, f"{text.partition(':')[0]}.py") if len(text) <= MOST_OF_NAME else ()
            for file in (folder / name for name in names for folder in (place.parent, Path())):
                if file not in seen and _is_file(file):
                    seen.add(file)
                    waiting.append(file)
                    yield file


def _texts(value: object) -> Iterator[str]:
    """Every text within plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def decoded(data: bytes, origin: str) -> str:
    """The text of a file in UTF-8, without the byte order mark with which editors begin it.

    Raises:
        PerhopError: It is not UTF-8.
    """
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        expect_no_utf16(data, origin)
        byte = data[error.start]
        line = data.count(b"\n", 0, error.start) + 1
        raise PerhopError(
            f"{origin}:{line}: is not UTF-8 text: byte 0x{byte:02x} at position {error.start}"
        ) from None


def expect_no_utf16(data: bytes, origin: str) -> None:
    """Refuse a text in UTF-16, as Windows PowerShell redirects it into files.

    Raises:
        PerhopError: It begins with the byte order mark of UTF-16.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise PerhopError(f"{origin}: is UTF-16 text; save it as UTF-8")


def toml(text: str, origin: str) -> dict[str, Any]:
    """A text in TOML as plain data; `origin` names the file in messages.

    Raises:
        PerhopError: It is no TOML, or beyond the bounds of `expect_bounded`.
    """
    expect_bounded(text, "toml", origin)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PerhopError(f"{origin}: {error}") from None
    except ValueError:
        # Python turns no more digits than that into a number, and tomllib does not expect it.
        raise PerhopError(f"{origin}: a number has more than {sys.get_int_max_str_digits()} digits") from None


def from_json(data: bytes, origin: str) -> Any:  # noqa: ANN401 - whatever it holds
    """Return the value of a file in JSON.

    Raises:
        PerhopError: It is not UTF-8 or not JSON, or beyond the bounds of `expect_bounded`.
    """
    try:
        text = decoded(data, origin)
        expect_bounded(text, "json", origin)
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise PerhopError(f"{origin}:{error.lineno}: is not JSON: {error.msg}") from None
    except ValueError:
        raise PerhopError(f"{origin}: a number has more than {sys.get_int_max_str_digits()} digits") from None


def expect_bounded(text: str, syntax: str, origin: str) -> None:
    """Refuse a text that nests too deep, before a parser reads it; `syntax` is `toml`, `json` or `xml`.

    The engine does the same with all that it reads itself, so no text costs more than its size.

    Raises:
        PerhopError: It does.
    """
    found = _engine.excess(text, syntax)
    if found is not None:
        line, what = found
        raise PerhopError(f"{origin}:{line}: {what}")
