"""The least macOS on which a shared library of a wheel runs, by its Mach-O header (`LC_BUILD_VERSION`)."""

from __future__ import annotations

import struct
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = 0xFEEDFACF
HEADER = 32
BUILD_VERSION = 0x32
ENGINE = "perhop/_engine.abi3.so"


def oldest_macos(wheel: Path) -> str:
    """The oldest macOS that the engine of a wheel is linked for, such as `11.0`."""
    with zipfile.ZipFile(wheel) as packed:
        return oldest(packed.read(ENGINE))


def oldest(library: bytes) -> str:
    """The oldest macOS that a library of 64 bits names.

    Raises:
        ValueError: It is none, or does not say.
    """
    magic, _, _, _, commands = struct.unpack_from("<5I", library)
    if magic != MAGIC:
        raise ValueError("no library of macOS for 64 bits")
    place = HEADER
    for _ in range(commands):
        kind, size, _, version = struct.unpack_from("<4I", library, place)
        if kind == BUILD_VERSION:
            return f"{version >> 16}.{version >> 8 & 0xFF}"
        place += size
    raise ValueError("a library that does not say of which macOS on it runs")
