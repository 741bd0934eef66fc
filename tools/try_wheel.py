"""Installs the wheel of this machine where there is no Rust, and runs the commands of the documentation.

    python -m tools.try_wheel [FOLDER]

FOLDER (target/wheels) holds the wheel. Its packages have the versions of requirements.lock, so that a release
of one of them changes nothing here. Prints how long the installation takes and how large it is, and each
command with its time. All commands show their help; the explorer serves its page if the repository has one.
Exit status 1 where one fails, or the packages take more than `MOST_MB` before Python has compiled them.
"""

from __future__ import annotations

import http
import http.client
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.transcripts import ROOT, blocks

MOST_MB = 350
PINNED = re.compile(r"^\S+==[^\\\n]+", re.MULTILINE)
"""A package of a lock file, with its version and platforms, without its hashes."""
# Comparisons with the kernel take minutes in real time; tests/python/live has them in short.
COMMAND = re.compile(r"perhop (?!compare)")
ALL_COMMANDS = (
    "import typer; from perhop.commands import cli; print(*typer.main.get_command(cli.app).commands)"
)
ADDRESS = re.compile(r"http://([\d.]+:\d+)/")
PARTS = ("/", "/page.js", "/perhop_explorer.wasm")
"""The page of `perhop explore`, and what it loads first."""
EXPLORER = ROOT / "python" / "perhop" / "explorer"
"""The explorer's page that wheels contain, if `make explorer` has built it."""
SYSTEM = "/usr/bin:/bin"
"""The search path of the commands for other programs."""


def main(arguments: list[str]) -> int:
    """Install, measure, run."""
    place = Path(arguments[0]) if arguments else ROOT / "target" / "wheels"
    wheels = list(place.glob(f"*linux*{platform.machine()}.whl"))
    if len(wheels) != 1:
        sys.exit(f"error: {len(wheels)} wheels for this machine in {place}; make wheels builds one")
    with tempfile.TemporaryDirectory() as scratch:
        return _try(wheels[0].resolve(), Path(scratch))


def _try(wheel: Path, scratch: Path) -> int:
    environment = {"HOME": str(scratch), "PATH": f"{scratch}/venv/bin:{SYSTEM}", "COLUMNS": "100"}
    python = scratch / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", scratch / "venv"], check=True)
    pinned = scratch / "constraints.txt"
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned.write_text("\n".join(PINNED.findall(lock)), encoding="utf-8")
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    install += ["--constraint", str(pinned)]
    others = _megabytes(scratch / "venv")
    began = time.monotonic()
    subprocess.run([*install, str(wheel)], check=True, env=os.environ | environment)
    took, size = time.monotonic() - began, _megabytes(scratch / "venv") - others
    print(
        f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB; with what it needs {size:.0f} MB, {took:.0f} s"
    )
    subprocess.run([*install, f"{wheel}[tune]"], check=True, env=os.environ | environment)
    print(f"with the extras store and tune {_megabytes(scratch / 'venv') - others:.0f} MB")

    if shutil.which("cargo", path=environment["PATH"]):
        sys.exit("error: cargo is on the PATH of the commands, so they prove nothing")
    pages = [ROOT / "README.md", ROOT / "docs" / "tour.md"]
    commands = dict.fromkeys(
        line
        for page in pages
        for block in blocks(page.read_text(encoding="utf-8"))
        for line in block.lines()
        if block.language == "sh" and COMMAND.match(line)
    )
    listed = subprocess.run(
        [str(python), "-c", ALL_COMMANDS], env=environment, capture_output=True, text=True, check=True
    )
    failed = 0
    for command in (
        "perhop --version",
        *(f"perhop {name} --help" for name in listed.stdout.split()),
        "perhop doctor",
        "perhop course list",
        "perhop course start red",
        *commands,
    ):
        began = time.monotonic()
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=_copy_of_examples(scratch),
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        said = "" if done.returncode == 0 else f"  exit status {done.returncode}\n{done.stderr}"
        failed += done.returncode != 0
        print(f"{time.monotonic() - began:6.1f} s  {command.strip()}{said}", flush=True)
    if not EXPLORER.exists():
        print("skipped: the explorer; there is none in the repository (make explorer), so the wheel has none")
    elif missing := _missing_in_explorer(environment):
        failed += 1
        print(f"error: perhop explore does not serve {', '.join(missing)}")
    else:
        print("perhop explore serves its page, script and engine")
    if size > MOST_MB:
        print(f"error: the packages take {size:.0f} MB, more than {MOST_MB}")
    return int(failed > 0 or size > MOST_MB)


def _missing_in_explorer(environment: dict[str, str]) -> list[str]:
    """Return the parts of its page that `perhop explore` does not serve."""
    command = ["perhop", "explore", "--no-browser"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = next((found[1] for line in server.stdout if (found := ADDRESS.search(line))), None)
            return [name for name in PARTS if not (address and _serves(address, name))]
        finally:
            server.terminate()


def _serves(address: str, path: str) -> bool:
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status == http.HTTPStatus.OK and bool(response.read(1))
    except OSError:
        return False
    finally:
        connection.close()


def _copy_of_examples(scratch: Path) -> Path:
    """A folder with the examples alone, so that nothing of the repository is imported."""
    place = scratch / "somewhere"
    if not place.exists():
        place.mkdir()
        (place / "examples").symlink_to(ROOT / "examples")
    return place


def _megabytes(place: Path) -> float:
    """Bytes of files as they are, without what Python compiles."""
    files = (path for path in place.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files if path.suffix != ".pyc") / 1e6


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
