"""What the wheels of other systems say of themselves."""

from __future__ import annotations

import struct
import zipfile
from typing import TYPE_CHECKING

import pytest
from tools import macho

if TYPE_CHECKING:
    from pathlib import Path


def library(*commands: bytes) -> bytes:
    """The header of a library of macOS, with these commands."""
    header = (macho.MAGIC, 0x0100000C, 0, 6, len(commands), sum(map(len, commands)), 0, 0)
    return struct.pack("<8I", *header) + b"".join(commands)


UUID = struct.pack("<2I16s", 0x1B, 24, b"\x32" * 16)
BUILT = struct.pack("<6I", macho.BUILD_VERSION, 24, 1, 11 << 16 | 3 << 8, 15 << 16, 0)


def test_a_library_says_of_which_macos_on_it_runs(tmp_path: Path) -> None:
    wheel = tmp_path / "perhop.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr(macho.ENGINE, library(UUID, BUILT))
    assert macho.oldest_macos(wheel) == "11.3"


def test_another_library_says_nothing() -> None:
    with pytest.raises(ValueError, match="no library of macOS"):
        macho.oldest(b"\x7fELF" + bytes(60))
    with pytest.raises(ValueError, match="does not say"):
        macho.oldest(library(UUID))
