"""`perhop doctor`, and what commands say where an optional part is missing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benches import engine

from perhop import _engine, extras
from perhop.commands import doctor, explore

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

ROOT = Path(__file__).parents[3]
HIDING = """
import sys
from importlib import abc, util

HIDDEN = sys.argv.pop(1).split(",")

class Hidden(abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
found = util.find_spec
util.find_spec = lambda name, *more: None if name in HIDDEN else found(name, *more)
from perhop.commands import entry
entry.main()
"""


def without(modules: str, place: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `perhop ARGUMENTS` where these modules, divided by commas, are not installed."""
    return subprocess.run(
        [sys.executable, "-c", HIDING, modules, *map(str, arguments)],
        cwd=place,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python"), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )


def parts(text: str) -> dict[str, dict[str, Any]]:
    return {part["part"]: part for part in json.loads(text)["parts"]}


def test_what_is_installed_here_works(perhop: Perhop) -> None:
    done = perhop("doctor", "--json")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["version"] == _engine.version
    found = parts(done.out)
    for name in ("engine", "tables", "reports", "tune", "metrics"):
        assert found[name]["works"], found[name]
    assert found["tune"]["note"].startswith("optuna ")


@pytest.mark.parametrize(("optimized", "said"), [(True, ""), (False, ", by make build; make fast compiles")])
def test_an_engine_that_was_compiled_in_a_hurry_is_said_to_be(
    monkeypatch: pytest.MonkeyPatch, *, optimized: bool, said: str
) -> None:
    monkeypatch.setattr(_engine, "optimized", optimized)
    note = doctor.examine()[0].note
    assert note.startswith(f"perhop {_engine.version}{said}")
    assert ("make fast" in note) != optimized
    assert bool(engine.missing()) != optimized


def test_a_table_of_80_columns(perhop: Perhop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = perhop("doctor")
    assert done.code == 0
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[2].split() == ["part", "works", "for", "note"]
    assert {line.split()[0] for line in lines[4:]} >= {"engine", "tables", "tune", "ns-2", "Wireshark"}


def test_a_missing_part_is_named_with_its_remedy(tmp_path: Path) -> None:
    done = without("optuna", tmp_path, "doctor", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = parts(done.stdout)
    assert not found["tune"]["works"]
    assert found["tune"]["note"] == "optuna is not installed: pip install 'perhop[tune]'"
    assert found["tables"]["works"]


def test_a_broken_package_is_told_from_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / "optuna.py").write_text("raise OSError('libfoo.so:\\ncannot open')\n")
    done = subprocess.run(
        [sys.executable, "-m", "perhop", "doctor", "--json"],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT / 'python'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    tune = parts(done.stdout)["tune"]
    assert not tune["works"]
    assert tune["note"] == "optuna is installed, but broken: libfoo.so: cannot open"


def test_programs_that_are_missing(perhop: Perhop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = parts(perhop("doctor", "--json").out)
    for name in ("perhop-router", "Wireshark", "ns-2", "ns-3"):
        assert not found[name]["works"]
    assert "apt install ns2" in found["ns-2"]["note"]


def test_the_explorer_is_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def explorer() -> doctor.Part:
        return next(part for part in doctor.examine() if part.part == "explorer")

    monkeypatch.setattr(explore, "FILES", tmp_path)
    part = explorer()
    assert not part.works
    for word in ("make explorer", "Node.js 20", "npm", "wasm32-unknown-unknown"):
        assert word in part.note
    (tmp_path / "index.html").touch()
    assert explorer().works


SWEEP, TUNE = (ROOT / "examples" / f"{name}-thresholds.toml" for name in ("sweep", "tune"))


@pytest.mark.parametrize(
    ("modules", "arguments", "said"),
    [
        ("optuna", ("tune", TUNE), "perhop tune needs Optuna: pip install 'perhop[tune]'"),
        ("ray", ("sweep", SWEEP, "--backend", "ray"), "--backend ray needs Ray: pip install 'perhop[ray]'"),
    ],
)
def test_without_a_part_its_commands_name_it_and_write_nothing(
    tmp_path: Path, modules: str, arguments: tuple[str | Path, ...], said: str
) -> None:
    done = without(modules, tmp_path, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"error: {said}\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("modules", "name", "said"),
    [
        ("ray", "perhop.sweeps.ray_backend", "--backend ray needs Ray"),
        ("optuna", "perhop.sweeps.tune", "perhop tune needs Optuna"),
    ],
)
def test_imports_say_so_too(tmp_path: Path, modules: str, name: str, said: str) -> None:
    program = f"import sys; sys.modules[{modules!r}] = None; import {name}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"perhop.errors.PerhopError: {said}")


def test_everything_else_works_without_any_extra(small: Path, tmp_path: Path) -> None:
    every = ",".join(extra.module for extra in extras.ALL)
    text = f'scenario = {str(small)!r}\nruns = 2\n[grid]\n"links.bottleneck.queue.limit" = ["40p", "50p"]\n'
    (tmp_path / "sweep.toml").write_text(text, encoding="utf-8")
    for arguments in (
        ("run", small, "--runs", "2", "--out", "out"),
        ("list", "studies"),
        ("reproduce", "kim-table1", "--runs", "1", "--out", "results"),
        ("store", "verify", "results"),
        ("sweep", "sweep.toml", "--store", "swept", "--out", "sweep"),
        ("store", "verify", "swept"),
    ):
        done = without(every, tmp_path, *arguments)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == 0, (arguments, done.stderr)
    assert (tmp_path / "out" / "report.html").is_file()


def test_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {
        name: {re.split("[<>=]", package)[0] for package in packages}
        for name, packages in project["optional-dependencies"].items()
    }
    assert set(declared) == {extra.name for extra in extras.ALL}
    base = {re.split("[<>=]", package)[0] for package in project["dependencies"]}
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    for extra in extras.ALL:
        package = extra.module.replace("_", "-")
        assert package in declared[extra.name]
        assert package not in base
        # `make build` has every part but Ray.
        assert (f"\n{package}==" in lock) == (extra is not extras.RAY)
