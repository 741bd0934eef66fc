"""The typed stubs say what the engine really offers."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import perhop


@pytest.mark.long
def test_the_stubs_match_the_module(tmp_path: Path) -> None:
    # The binding layer writes __all__ by itself; every name in it is compared one by one.
    allowed = tmp_path / "allowed"
    allowed.write_text("perhop._engine.__all__\n")
    options = ["--ignore-disjoint-bases", "--ignore-unused-allowlist", f"--allowlist={allowed}"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "perhop._engine", *options],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_is_marked_as_typed() -> None:
    assert perhop.__file__ is not None
    assert (Path(perhop.__file__).parent / "py.typed").exists()
    assert importlib.util.find_spec("perhop._engine") is not None
