"""Where results go: places checked before the work begins, files that appear whole or not at all."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perhop import _engine
from perhop.errors import PerhopError
from perhop.store import atomic_write

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

STDOUT = Path("-")


def prepare_directory(path: Path) -> Path:
    """Make the directory if it is missing and prove that files can be written to it.

    Raises:
        PerhopError: It cannot be made or written to.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / ".perhop-write-test"
        atomic_write(probe, b"")
        probe.unlink()
    except (FileExistsError, NotADirectoryError):
        raise PerhopError(f"--out {path}: not a directory; choose another place for the results") from None
    except (OSError, ValueError) as error:
        raise PerhopError(f"--out {path}: cannot be written to: {_reason(error)}") from None
    return path


def prepare_file(path: Path) -> Path:
    """Prove, before the work begins, that a file can be written under this name; "-" is standard output.

    Raises:
        PerhopError: It names a directory, or its directory is missing or not writable.
    """
    if path == STDOUT:
        return path
    if path.is_dir():
        raise PerhopError(f"--json {path}: is a directory; give a file name, or - for standard output")
    try:
        probe = path.with_name(f".{path.name}.write-test")
        atomic_write(probe, b"")
        probe.unlink()
    except (OSError, ValueError) as error:
        raise PerhopError(f"--json {path}: cannot be written: {_reason(error)}") from None
    return path


def write(path: Path, data: bytes | str) -> None:
    """Write a whole file at once, or leave what was there.

    Raises:
        PerhopError: It cannot be written.
    """
    try:
        atomic_write(path, data.encode() if isinstance(data, str) else data)
    except OSError as error:
        raise PerhopError(f"{path}: cannot be written: {_reason(error)}") from None


def write_parquet(path: Path, frame: pl.DataFrame) -> None:
    """Write a data frame as Parquet.

    Raises:
        PerhopError: It cannot be written.
    """
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    write(path, buffer.getvalue())


def manifest(command: str, scenarios: Sequence[Mapping[str, Any]]) -> str:
    """What produced the files beside it, as JSON text: version, command, every scenario with its seeds."""
    content = {"perhop": _engine.version, "command": command, "scenarios": list(scenarios)}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
