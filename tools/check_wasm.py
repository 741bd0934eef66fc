#!/usr/bin/env python3
"""Check a WebAssembly module of perhop: it must import nothing, and compute what the native program computes.

A module without imports has no way to a clock, a file, a random source or any other part of a system; so the
blocks and the engine have none either. Needs the standard library alone, and Node.js for the comparison.

    tools/check_wasm.py MODULE.wasm [--native PROGRAM]
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FUNCTION = "table1_fingerprint"
SEEDS = (1, 2, 2**32 + 7, 2**64 - 1)
RUNNER = Path(__file__).with_name("run_wasm.mjs")

IMPORT_SECTION = 2
EXPORT_SECTION = 7
KINDS = ("function", "table", "memory", "global", "tag")


class WasmError(Exception):
    """The module is malformed or breaks a rule; the message says which."""


@dataclass
class Reader:
    """A cursor over the bytes of a module (WebAssembly core specification, section 5)."""

    data: bytes
    at: int = 0

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        if self.at + count > len(self.data):
            raise WasmError(f"ends at byte {len(self.data)}, in the middle of a field")
        self.at += count
        return self.data[self.at - count : self.at]

    def byte(self) -> int:
        """The next byte."""
        return self.take(1)[0]

    def number(self) -> int:
        """An unsigned LEB128 number of at most 64 bits."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise WasmError(f"a number at byte {self.at} is too long")

    def name(self) -> str:
        """A UTF-8 name with its length before it."""
        return self.take(self.number()).decode()

    def limits(self) -> None:
        """Skip the limits of a table or memory: flags, minimum, and a maximum where flag 1 is set."""
        flags = self.number()
        self.number()
        if flags & 1:
            self.number()

    def description(self) -> str:
        """Skip what an import describes and return its kind."""
        kind = self.byte()
        match kind:
            case 0:
                self.number()
            case 1:
                self.byte()
                self.limits()
            case 2:
                self.limits()
            case 3:
                self.take(2)
            case 4:
                self.byte()
                self.number()
            case _:
                raise WasmError(f"unknown kind of import {kind} at byte {self.at}")
        return KINDS[kind]


def sections(module: bytes) -> dict[int, Reader]:
    """The sections of a module by their id, custom sections (id 0) left out."""
    reader = Reader(module)
    if reader.take(8) != b"\0asm\1\0\0\0":
        raise WasmError("not a WebAssembly module of version 1")
    found: dict[int, Reader] = {}
    while reader.at < len(module):
        section = reader.byte()
        body = reader.take(reader.number())
        if section:
            found[section] = Reader(body)
    return found


def imports(module: bytes) -> list[str]:
    """Return the imports of a module, each as `module.name (kind)`."""
    reader = sections(module).get(IMPORT_SECTION)
    if reader is None:
        return []
    return [f"{reader.name()}.{reader.name()} ({reader.description()})" for _ in range(reader.number())]


def exported_functions(module: bytes) -> list[str]:
    """The names of the functions that a module exports."""
    reader = sections(module).get(EXPORT_SECTION)
    if reader is None:
        return []
    found = [(reader.name(), reader.byte(), reader.number()) for _ in range(reader.number())]
    return [name for name, kind, _ in found if kind == 0]


def printed(*command: str | Path) -> str:
    """Return the output of a command, without the white space around it."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise WasmError(f"{Path(command[0]).name} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def compare(path: Path, native: Path) -> str:
    """Run the exported function and the native program on the same seeds and return what was found."""
    node = shutil.which("node") or shutil.which("nodejs")
    if node is None:
        return "not compared with the native program: Node.js is not installed"
    for seed in SEEDS:
        there = printed(node, RUNNER, path, FUNCTION, str(seed))
        here = printed(native, str(seed))
        if there != here:
            raise WasmError(f"{FUNCTION}({seed}) is {there} in WebAssembly and {here} in the native program")
    return f"{FUNCTION} equals the native program's for {len(SEEDS)} seeds"


def check(path: Path, native: Path | None) -> list[str]:
    """Check the module and return what was found; raises WasmError for a rule that it breaks."""
    module = path.read_bytes()
    if wanted := imports(module):
        raise WasmError(f"imports {len(wanted)}: " + ", ".join(wanted))
    if FUNCTION not in exported_functions(module):
        raise WasmError(f"does not export the function {FUNCTION}")
    found = [f"{len(module)} bytes, no imports"]
    return found if native is None else [*found, compare(path, native)]


def main() -> int:
    """Check the module named on the command line."""
    parser = argparse.ArgumentParser(description="Check that a WebAssembly module imports nothing.")
    parser.add_argument("module", type=Path)
    parser.add_argument("--native", type=Path, help="program that prints the fingerprint of the seed it gets")
    arguments = parser.parse_args()
    try:
        for line in check(arguments.module, arguments.native):
            print(f"{arguments.module.name}: {line}")
    except (OSError, WasmError) as error:
        print(f"error: {arguments.module}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
