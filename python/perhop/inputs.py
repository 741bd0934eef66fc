"""Read what a user hands in, and refuse it with one clear sentence."""

from __future__ import annotations

from pathlib import Path

from perhop.errors import PerhopError

LIMIT = 1_000_000
"""Bytes: a scenario is a page or two of text; anything larger is the wrong file."""


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
        raise PerhopError(f"{path}: is a directory; give a scenario file (TOML)") from None
    except OSError as error:
        raise PerhopError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise PerhopError(f"{str(path)!r}: is not a file name") from None
    if len(data) > LIMIT:
        raise PerhopError(
            f"{path}: larger than {LIMIT // 1_000_000} MB; a scenario file is a page or two of TOML"
        )
    if not data.strip():
        raise PerhopError(f"{path}: is empty; {needs}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = data[error.start]
        line = data.count(b"\n", 0, error.start) + 1
        raise PerhopError(
            f"{path}:{line}: is not UTF-8 text: byte 0x{byte:02x} at position {error.start}"
        ) from None
