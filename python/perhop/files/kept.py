"""Work that was done, in files, so that it is not done again where nothing about it is new.

    DIR/KEY.json    the digest of the rest, and the result as JSON

The key is the SHA-256 of all that the result follows from, perhop's modules and their data among it. So a
result of other code or of other values is never taken for the one that is wanted.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import pickle
from itertools import chain
from pathlib import Path
from typing import Any

import perhop
from perhop.files import filesystem


class KeptWork:
    """The results in a directory.

    One that cannot be read is as good as none, and one that cannot be written is worked out again next time.
    """

    def __init__(self, directory: Path, most: int) -> None:
        """Results are in this directory, which is made with the first of them.

        Args:
            directory: Where.
            most: How many of them `tidy` leaves.
        """
        self._directory, self._most = directory, most

    def find(self, key: str) -> Any:  # noqa: ANN401 - any JSON value
        """The result of this key; None if it is not kept."""
        try:
            digest, _, content = self._path(key).read_bytes().partition(b"\n")
            return json.loads(content) if digest.decode() == _digest(content) else None
        except (OSError, ValueError):
            return None

    def keep(self, key: str, result: Any) -> None:  # noqa: ANN401 - any JSON value
        """Keep a result.

        Raises:
            TypeError: It is not JSON.
        """
        content = json.dumps(result).encode()
        with contextlib.suppress(OSError):
            filesystem.make_directory(self._directory)
            filesystem.atomic_write(self._path(key), f"{_digest(content)}\n".encode() + content)

    def tidy(self) -> None:
        """Delete the results beyond the most, those first that were kept first."""
        with contextlib.suppress(OSError):
            kept = sorted(self._directory.glob("*.json"), key=lambda path: path.stat().st_mtime)
            for path in kept[: -self._most]:
                filesystem.remove(path, missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}.json"


def key_of(*parts: object) -> str | None:
    """The key of a result that follows from these values and from perhop's modules with their data.

    Returns:
        None where one of them is a function without a name in its module: nothing says that the next of its
        name is the same.
    """
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer)
    pickler.fast = True  # the bytes then depend on the values alone, not on which of them are one object
    try:
        pickler.dump((code(), *parts))
    except (pickle.PickleError, AttributeError, TypeError):
        return None
    return _digest(buffer.getvalue())


@functools.cache
def code() -> str:
    """The digest of all modules of perhop and of the TOML that they read, in hex."""
    found = hashlib.sha256()
    for folder in map(Path, perhop.__path__):
        for path in sorted(chain(folder.rglob("*.py"), folder.rglob("*.toml"))):
            found.update(path.relative_to(folder).as_posix().encode())
            found.update(path.read_bytes())
    return found.hexdigest()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
