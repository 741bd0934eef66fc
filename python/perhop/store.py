"""Keep finished runs, so that interrupted work resumes where it stopped."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import threading
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from perhop import _engine

_ARRAY = "$array"
_STALE_AFTER_S = 3600.0


class RunStore(Protocol):
    """Finished runs by key; all methods may be called from several threads at once."""

    def load(self, key: str) -> dict[str, Any] | None:
        """The run of this key, or None if it is not kept (or no longer readable)."""
        ...

    def reject(self, key: str) -> None:
        """Say that what `load` gave is no whole run; it is computed and saved again."""
        ...

    def save(self, key: str, run: dict[str, Any]) -> None:
        """Keep a run; once this returns, a later process finds it whole."""
        ...


def run_key(scenario: str, seed: int) -> str:
    """What names a run: the canonical scenario, the seed, and the engine that computes it.

    The engine counts by its version and by the bytes of its library, so that runs of another build are never
    taken for this one's.
    """
    text = json.dumps([scenario, seed, _engine.version, engine_digest()])
    return hashlib.sha256(text.encode()).hexdigest()


class DirectoryStore:
    """One compressed file for each run in a flat directory."""

    def __init__(self, directory: Path) -> None:
        """Open the store, creating its directory.

        Raises:
            OSError: The directory cannot be made.
        """
        self.directory = directory
        self.broken: list[Path] = []
        directory.mkdir(parents=True, exist_ok=True)
        for left in directory.glob(".*.partial"):
            if time.time() - left.stat().st_mtime > _STALE_AFTER_S:
                left.unlink(missing_ok=True)

    def load(self, key: str) -> dict[str, Any] | None:
        """See `RunStore`. A file that cannot be read counts as missing and is listed in `broken`."""
        path = self._path(key)
        try:
            return unpack(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error):
            self.broken.append(path)
            return None

    def reject(self, key: str) -> None:
        """See `RunStore`. The file is listed in `broken`."""
        self.broken.append(self._path(key))

    def save(self, key: str, run: dict[str, Any]) -> None:
        """See `RunStore`. The file appears under its name only when it is complete."""
        atomic_write(self._path(key), pack(run))

    def _path(self, key: str) -> Path:
        return self.directory / f"{key}.npz"


def pack(run: dict[str, Any]) -> bytes:
    """A run as the bytes of an `.npz` file, exact to the last bit: its arrays, and JSON of the rest."""
    arrays: list[np.ndarray[Any, Any]] = []

    def strip(value: Any) -> Any:  # noqa: ANN401 - any JSON value, or an array
        if isinstance(value, np.ndarray):
            arrays.append(value)
            return {_ARRAY: len(arrays) - 1}
        if isinstance(value, dict):
            return {key: strip(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [strip(entry) for entry in value]
        return value

    text = json.dumps(strip(run)).encode()
    buffer = io.BytesIO()
    named = {f"a{index}": array for index, array in enumerate(arrays)}
    np.savez_compressed(buffer, allow_pickle=False, text=np.frombuffer(text, dtype=np.uint8), **named)
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, Any]:
    """The run that `pack` packed.

    Raises:
        ValueError, KeyError, TypeError, EOFError, OSError, zipfile.BadZipFile, zlib.error: These bytes are
        not a packed run.
    """
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}

    def fill(value: Any) -> Any:  # noqa: ANN401 - any JSON value, or an array
        if isinstance(value, dict):
            if _ARRAY in value:
                return arrays[f"a{value[_ARRAY]}"]
            return {key: fill(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [fill(entry) for entry in value]
        return value

    run = fill(json.loads(arrays["text"].tobytes()))
    if not isinstance(run, dict):
        raise TypeError("a packed run is a mapping")
    return run


@functools.cache
def engine_digest() -> str:
    """SHA-256 of the engine's library, in hex: what a run is computed by, to the byte."""
    library = _engine.__file__
    return hashlib.sha256(Path(library).read_bytes()).hexdigest() if library else ""


def atomic_write(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write a whole file under its name at once, or leave what was there.

    Args:
        path: Its name.
        data: Its content.
        durable: Wait until the disk has it, so that it outlives a failing machine.

    Raises:
        OSError: The directory is missing or not writable, or the disk is full.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.partial")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
