"""csg-htsim on the peers' settings: `htsim/table1.cc`, compiled with the sources that HTSIM names.

No package registry has csg-htsim. The compiled program stays in `target/htsim`, in a folder for each path of
the sources, and `make` compiles it again where a source is newer.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from benches.peers import ns3
from benches.peers.program import Program, UnusableError, printed

if TYPE_CHECKING:
    from tests.oracle.ns2 import Ns2Setting

VARIABLE = "HTSIM"
MISSING = f"clone Broadcom/csg-htsim from GitHub and set {VARIABLE} to its folder"
MAKEFILE = Path(__file__).parent / "htsim" / "Makefile"
BUILT = Path(__file__).parents[2] / "target" / "htsim"


def compiled(sources: Path) -> Path:
    """Where the program lies that these sources make with today's flags."""
    kind = hashlib.sha256(bytes(sources) + MAKEFILE.read_bytes()).hexdigest()
    return BUILT / kind[:16] / "table1"


def sources() -> Path | None:
    """Where csg-htsim is, as the environment says.

    Raises:
        UnusableError: It is not there.
    """
    given = os.environ.get(VARIABLE)
    if not given:
        return None
    path = Path(given).resolve()
    if not (path / "sim" / "tcp.h").is_file():
        raise UnusableError(f"{VARIABLE}={given}: no csg-htsim is there (no file sim/tcp.h); {MISSING}")
    return path


def build(_: Path) -> str | None:
    """Compiles the program where the environment names csg-htsim; says how to get that, or None.

    Raises:
        UnusableError: What the environment names is not csg-htsim, or cannot be compiled here.
    """
    path = sources()
    if path is None:
        return MISSING
    for tool in ("g++", "make"):
        if shutil.which(tool) is None:
            raise UnusableError(f"{VARIABLE} is set, and the program `{tool}` is not installed")
    folder = compiled(path).parent
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "upstream"
    if not link.is_symlink():
        link.symlink_to(path)
    done = subprocess.run(
        ["make", "-f", MAKEFILE], cwd=folder, capture_output=True, text=True, timeout=900, check=False
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["no reason"]
        why = next((line for line in said if "error" in line), said[0])
        raise UnusableError(
            f"{VARIABLE}={path}: {MAKEFILE.with_name('table1.cc').name} does not compile: {why}"
        )
    return None


def program(name: str) -> Program:
    """The program with htsim's own TCP and its RandomQueue."""

    def command(network: Ns2Setting, seed: int, _: Path) -> list[str]:
        path = sources()
        if path is None:
            raise UnusableError(MISSING)
        return [str(compiled(path)), *ns3.arguments(network, seed)]

    return Program(name, "htsim", build, command, printed)
