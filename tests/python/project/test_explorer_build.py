"""`tools/explorer.sh`: what it says of an explorer that cannot be built, or that is old."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Explorer = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "tools" / "explorer.sh"
NODE, NPM, RUSTC = "node", "npm", "rustc"
OLD_NODE = "[[ $1 == --version ]] && echo v18.1.0; [[ $1 != --eval ]]"

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")


@pytest.fixture
def explorer(tmp_path: Path) -> Explorer:
    """Runs the script where no program is but these, each with its text as a script of bash."""

    def run(*arguments: str, programs: dict[str, str]) -> subprocess.CompletedProcess[str]:
        bash = shutil.which("bash")
        assert bash
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in ("dirname", "find"):
            (folder / name).symlink_to(str(shutil.which(name)))
        for name, text in programs.items():
            (folder / name).write_text(f"#!{bash}\n{text}\n")
            (folder / name).chmod(0o755)
        return subprocess.run(
            [bash, SCRIPT, *arguments, tmp_path / "explorer"],
            env=os.environ | {"PATH": str(folder)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.parametrize(
    ("programs", "lacks", "remedy"),
    [
        ({}, "no node found", "install Node.js 20 or newer, with npm"),
        ({NODE: ""}, "no npm found", "install Node.js 20 or newer, with npm"),
        ({NODE: OLD_NODE, NPM: ""}, "Node.js v18.1.0 is too old", "install Node.js 20 or newer, with npm"),
        (
            {NODE: "", NPM: "", RUSTC: "echo /nowhere"},
            "the Rust toolchain has no target wasm32-unknown-unknown",
            "`rustup target add wasm32-unknown-unknown` adds it",
        ),
    ],
)
def test_what_is_missing_is_named_with_its_remedy(
    explorer: Explorer, programs: dict[str, str], lacks: str, remedy: str
) -> None:
    done = explorer("--optional", programs=programs)
    assert done.stderr == ""
    assert done.returncode == 0
    said = f"the explorer (perhop explore) is left out: {lacks}; {remedy}, then `make explorer` builds it\n"
    assert done.stdout == said


def test_by_itself_it_fails_where_something_is_missing(explorer: Explorer) -> None:
    done = explorer(programs={})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: no node found; install Node.js 20 or newer, with npm\n"


@pytest.mark.parametrize("is_old", [False, True])
def test_an_explorer_that_is_there_is_kept(explorer: Explorer, tmp_path: Path, is_old: bool) -> None:
    page = tmp_path / "explorer" / "page.js"
    page.parent.mkdir()
    page.touch()
    if is_old:
        os.utime(page, (0, 0))
    done = explorer("--optional", programs={})
    assert (done.returncode, done.stderr) == (0, "")
    assert ("older than its sources" in done.stdout) == is_old
