"""The example of a study in one file: it runs and is judged, and the folder of such studies finds it."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perhop.errors import PerhopError
from perhop.studies import STUDIES
from perhop.studies.others import found
from perhop.studies.reproduction import Counts, execute, plan

if TYPE_CHECKING:
    from perhop.studies.study import Study

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "my_study.py"


def test_the_example_runs_and_its_claims_hold() -> None:
    study: Study = runpy.run_path(str(EXAMPLE))["STUDY"]
    (outcome,) = execute(plan([study], runs=3, seed=1), jobs=2, store=None, counts=Counts())
    assert {verdict.claim.id: verdict.holds for verdict in outcome.claims} == {
        "waits-half-as-long": True,
        "keeps-the-link-busy": True,
    }
    assert all("4 flows" in verdict.judgement.evidence for verdict in outcome.claims)
    assert study.id not in STUDIES


def test_a_module_in_the_folder_is_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copied module is found by its place alone."""
    package = tmp_path / "copied_studies"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    assert found("copied_studies", [str(package)]) == []
    shutil.copy(EXAMPLE, package)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [study.id for study in found("copied_studies", [str(package)])] == ["my-codel"]
    shutil.copy(EXAMPLE, package / "twin.py")
    with pytest.raises(PerhopError, match=r"copied_studies\.twin: another study has the id 'my-codel'"):
        found("copied_studies", [str(package)])
    (package / "twin.py").unlink()
    (package / "empty.py").write_text("", encoding="utf-8")
    with pytest.raises(PerhopError, match=r"copied_studies\.empty: has no `STUDY`"):
        found("copied_studies", [str(package)])
    for name in [name for name in sys.modules if name.startswith("copied_studies")]:
        monkeypatch.delitem(sys.modules, name)


def test_a_copy_passes_the_linters_of_the_package() -> None:
    """The rules for the package are stricter than those for examples; a copy needs no change."""
    there = "python/perhop/studies/others/my_study.py"
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--stdin-filename", there, "-"]
    text = EXAMPLE.read_text(encoding="utf-8")
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
