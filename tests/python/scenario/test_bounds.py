"""Text that nests too deep is refused by every reader, in one line, before it is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.python.cli.test_cli import refused

import perhop as package
from perhop import PerhopError
from perhop.scenario import reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

INNER = "x = 1\na = "
TOML = {
    "brackets": INNER + "[" * 5000,
    "tables": INNER + "{ b = " * 200 + "1" + " }" * 200,
    "key": "x = 1\n" + "a." * 40_000 + "a = 1",
    "header": "x = 1\n[" + "a." * 200 + "a]",
    "header and key": "[" + "a." * 50 + "a]\n" + "b." * 50 + "b = 1",
}
COMMANDS = {
    "run": ("run",),
    "bound": ("bound",),
    "sweep": ("sweep",),
    "tune": ("tune",),
    "plan": ("plan",),
    "answers": ("course", "check", "red"),
    "live": ("live",),
    "compare": ("compare",),
    "topology": ("topology",),
    "export": ("export", "--to", "tc"),
}


@pytest.mark.parametrize("text", TOML.values(), ids=TOML)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_toml_that_nests_too_deep(
    perhop: Perhop, tmp_path: Path, command: tuple[str, ...], text: str
) -> None:
    (tmp_path / "deep.toml").write_text(text + "\n", encoding="utf-8")
    said = refused(perhop(*command, "deep.toml"))
    assert said == "error: deep.toml:2: tables and lists lie more than 80 deep within each other"


def test_other_texts_that_nest_too_deep(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"a":\n' + "[" * 5000, encoding="utf-8")
    said = "manifest.json:2: objects and lists lie more than 80 deep within each other"
    assert refused(perhop("rerun", "manifest.json")) == f"error: {said}"
    (tmp_path / "g.graphml").write_text("<graphml>\n" + "<a>" * 5000, encoding="utf-8")
    said = refused(perhop("topology", "g.graphml"))
    assert said.endswith("g.graphml:2: elements lie more than 80 deep within each other")
    (tmp_path / "lab.toml").write_text(TOML["key"], encoding="utf-8")
    assert "lab.toml:2: tables and lists" in refused(perhop("course", "start", ".", "there"))
    queue = ("--queue", "a = " + "[" * 5000, "--rate", "1Mbps")
    (tmp_path / "c.pcap").write_bytes(b"")
    assert "is no table" in refused(perhop("replay", "c.pcap", *queue))
    said = refused(perhop("check-block", "no_module:No", "limit=" + "[" * 5000))
    assert said.startswith("error: `limit`:1: objects and lists lie more than 80 deep")


def test_data_of_python_that_nests_too_deep_or_in_itself() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    itself: dict[str, object] = {"duration": "1s"}
    itself["flows"] = [itself]
    for scenario in ({"duration": "1s", "flows": deep}, itself):
        with pytest.raises(PerhopError, match="too deep within each other, or in themselves"):
            reading.read(scenario)
    text = json.dumps({"duration": "1s"})[:-1] + ', "a": ' + "[" * 100 + "]" * 100 + "}"
    with pytest.raises(package.ScenarioError, match="objects and lists lie more than 80 deep"):
        package._engine.read_json(text, "s")


def test_what_is_just_deep_enough_is_read() -> None:
    text = 'duration = "1s"\na = ' + "[" * 79 + "]" * 79
    with pytest.raises(package.ScenarioError, match="unknown key `a`"):
        package._engine.read_toml(text, "s")
