"""Builds the source distribution, and from it wheels for all systems on this one machine, into target/wheels.

    python -m tools.wheels BIN [TARGET…]

BIN is the folder of `maturin` and of Python with `ziglang`, whose linker and C headers stand in for those of
other systems. Wheels hold the stable ABI of Python 3.11: one serves every later version. A target that cannot
be linked here is checked with `cargo check` instead, and the table at the end says so; exit status 1 if even
that fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path

from tools.macho import oldest_macos

ROOT = Path(__file__).parents[1]
OUT = ROOT / "target" / "wheels"
TARGETS = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "x86_64-pc-windows-gnu",
)
LINUX = "manylinux2014"
"""The oldest Linux that its wheels run on: glibc 2.17."""
MACOS = "11.0"
"""The oldest macOS. The linker gets it; else it takes that of Zig's headers, whatever the wheel is called."""
LAST_LINES = 15


@dataclass(frozen=True, slots=True)
class Built:
    """The outcome of a target.

    Attributes:
        target: As Rust has it.
        wheel: The wheel, if there is one.
        note: What was done, or why there is none.
        works: It was built, or at least checked.
    """

    target: str
    wheel: Path | None
    note: str
    works: bool


def main(arguments: list[str]) -> int:
    """Build, and say what was built."""
    tools, targets = Path(arguments[0]).resolve(), arguments[1:] or TARGETS
    if unknown := sorted(set(targets) - set(TARGETS)):
        sys.exit(f"error: no target {unknown[0]}; there are {', '.join(TARGETS)}")
    environment = os.environ | {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "CARGO_TARGET_DIR": str(ROOT / "target"),
        "MACOSX_DEPLOYMENT_TARGET": MACOS,
    }
    for target in TARGETS:
        if target.endswith("apple-darwin"):
            variable = f"CARGO_TARGET_{target.replace('-', '_').upper()}_RUSTFLAGS"
            environment[variable] = (
                f"-Clink-arg=-target -Clink-arg={target.partition('-')[0]}-macos.{MACOS}-none"
            )
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    source = _source(environment)
    built = [_wheel(target, source, environment) for target in targets]
    print()
    for one in built:
        size = f"{one.wheel.stat().st_size / 1e6:.1f} MB  " if one.wheel else ""
        print(f"{one.target:26}  {size}{one.note}")
    for one in built:
        if one.wheel and "macosx" in one.wheel.name and (oldest := oldest_macos(one.wheel)) != MACOS:
            print(f"error: {one.wheel.name} is linked for macOS {oldest}, not {MACOS}")
            return 1
    return 0 if all(one.works for one in built) else 1


def _source(environment: dict[str, str]) -> Path:
    """The source distribution, unpacked: wheels are built from what others get."""
    failed = _run(["maturin", "sdist", "--out", str(OUT)], ROOT, environment)
    if failed is not None:
        sys.exit(f"{failed}\nerror: no source distribution")
    (archive,) = OUT.glob("*.tar.gz")
    print(f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB", flush=True)
    place = OUT / "source"
    with tarfile.open(archive) as packed:
        packed.extractall(place, filter="data")
    (root,) = place.iterdir()
    return root


def _wheel(target: str, source: Path, environment: dict[str, str]) -> Built:
    print(f"{target} …", flush=True)
    began = time.monotonic()
    if problem := _standard_library(target):
        return Built(target, None, problem, works=False)
    before = set(OUT.glob("*.whl"))
    command = ["maturin", "build", "--release", "--locked", "--zig", "--target", target, "--out", str(OUT)]
    command += ["--interpreter", "python3.11"]
    command += ["--compatibility", LINUX] if "linux" in target else []
    failed = _run(command, source, environment)
    took = f"{time.monotonic() - began:.0f} s"
    if failed is None:
        (wheel,) = set(OUT.glob("*.whl")) - before
        return Built(target, wheel, f"{wheel.name}, {took}", works=True)
    print(failed)
    command = ["cargo", "check", "--locked", "--release", "--package", "perhop-python", "--target", target]
    cross = environment | {"PYO3_CROSS": "1", "PYO3_CROSS_PYTHON_VERSION": "3.11"}
    checked = _run(command, source, cross)
    if checked is None:
        return Built(target, None, "no wheel: could not be linked here; `cargo check` passes", works=True)
    print(checked)
    return Built(target, None, "no wheel, and `cargo check` fails", works=False)


def _standard_library(target: str) -> str | None:
    """Get Rust's standard library for a target; why that cannot be had, or None."""
    if shutil.which("rustup") is None:
        return "no wheel: no rustup to get its standard library with"
    failed = _run(["rustup", "target", "add", target], ROOT, dict(os.environ))
    return failed and f"no wheel: {failed.splitlines()[-1]}"


def _run(command: list[str], place: Path, environment: dict[str, str]) -> str | None:
    """None, or the last lines of what failed."""
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    return "\n".join((done.stdout + done.stderr).splitlines()[-LAST_LINES:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
