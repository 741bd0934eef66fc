"""The notebooks run from top to bottom, and show pictures."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[3]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
PICTURES = {"first-steps": 3, "your-own-rule": 1, "a-paper": 1, "an-agent": 1}
MOST_S = 300


def of(path: Path) -> nbformat.NotebookNode:
    notebook: nbformat.NotebookNode = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    return notebook


def test_there_is_each_notebook() -> None:
    assert {path.stem for path in NOTEBOOKS} == set(PICTURES)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_what_it_showed(path: Path) -> None:
    notebook = of(path)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)


@pytest.mark.parametrize(
    "path",
    [
        # It trains an agent.
        pytest.param(path, marks=[pytest.mark.long] if path.stem == "an-agent" else [], id=path.stem)
        for path in NOTEBOOKS
    ],
)
def test_a_notebook_runs_from_top_to_bottom(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = (str(ROOT / "python"), os.environ.get("PYTHONPATH", ""))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = of(path)
    NotebookClient(
        notebook, timeout=MOST_S, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    # Warnings and progress would come this way.
    assert [output.text for output in shown if output.get("name") == "stderr"] == []
    pictures = [output.data["image/png"] for output in shown if "image/png" in output.get("data", {})]
    for number, picture in enumerate(pictures):
        place = Path(os.environ.get("PERHOP_PICTURES", tmp_path)) / f"{path.stem}-{number}.png"
        place.write_bytes(base64.b64decode(picture))
    assert len(pictures) >= PICTURES[path.stem]
