"""Which engine computes a run, why, and where users can see that."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from polars.testing import assert_frame_equal
from tests.python.conftest import SMALL
from typer.testing import CliRunner

import perhop
from perhop import _engine
from perhop.commands.cli import app
from perhop.errors import PerhopError, ScenarioError
from perhop.scenario import reading

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

REFUSED = "link `fast` leaves no look-ahead: a packet passes it in less than 1 ns"


@pytest.fixture
def without_lookahead(small: Path) -> Path:
    """The small scenario behind a link that ACKs and packets pass in no time."""
    text = small.read_text().replace(
        'from = "edge"\nto = "core"\naccess', 'from = "door"\nto = "core"\naccess'
    )
    fast = '[links.fast]\nfrom = "door"\nto = "edge"\nrate = "8000Gbps"\ndelay = "0s"\n\n'
    small.write_text(text.replace("[links.bottleneck]", f"{fast}[links.bottleneck]"))
    return small


def test_the_batched_engine_is_the_default_and_the_reference_engine_gives_the_same(small: Path) -> None:
    batched, reference = perhop.run(small, runs=1), perhop.run(small, engine="reference", runs=1)
    assert (batched.engine, batched.engine_reason) == ("batched", None)
    assert (reference.engine, reference.engine_reason) == ("reference", "requested")
    assert_frame_equal(batched.flows, reference.flows)
    assert_frame_equal(batched.links, reference.links)


def test_a_network_without_lookahead_runs_on_the_reference_engine(without_lookahead: Path) -> None:
    result = perhop.run(without_lookahead, runs=1)
    assert (result.engine, result.engine_reason) == ("reference", REFUSED)
    with pytest.raises(ScenarioError, match="the batched engine cannot run this network: link `fast` leaves"):
        perhop.run(without_lookahead, engine="batched", runs=1)


def test_an_unknown_engine_is_refused(small: Path) -> None:
    wrong: Any = "turbo"
    with pytest.raises(PerhopError, match="engine must be batched or reference, not 'turbo'"):
        perhop.run(small, engine=wrong, runs=1)


def test_the_terminal_names_the_reference_engine_where_nobody_requested_it(
    perhop: Perhop, without_lookahead: Path
) -> None:
    done = perhop("run", without_lookahead)
    assert done.err.splitlines()[0] == f"Computed by the reference engine, which is slower: {REFUSED}."
    assert (done.out + done.err).count("reference engine") == 1
    assert "reference engine" not in perhop("run", without_lookahead, "--engine", "reference").err
    refused = perhop("run", without_lookahead, "--engine", "batched")
    assert (refused.code, refused.out) == (2, "")
    assert "the batched engine cannot run this network: link `fast` leaves no look-ahead" in refused.err


def test_the_reason_for_the_reference_engine_comes_before_the_runs(
    without_lookahead: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stop(Exception):  # noqa: N818 - it is no error
        pass

    def run(*_arguments: object, **_options: object) -> None:
        raise Stop

    monkeypatch.setattr("perhop.runs.simulate.run", run)
    done = CliRunner().invoke(app, ["run", str(without_lookahead)])
    assert isinstance(done.exception, Stop)
    assert REFUSED in done.stderr


def test_the_engine_of_a_scenario_is_known_without_a_run(small: Path, without_lookahead: Path) -> None:
    assert _engine.engine_for(reading.canonical(without_lookahead)) == ("reference", REFUSED)
    small.write_text(SMALL, encoding="utf-8")
    assert _engine.engine_for(reading.canonical(small)) == ("batched", None)
    with pytest.raises(ScenarioError):
        _engine.engine_for("{}")


def test_json_and_the_report_name_the_engine(perhop: Perhop, small: Path, tmp_path: Path) -> None:
    found = {}
    for engine in ("batched", "reference"):
        out = tmp_path / engine
        done = perhop("run", small, "--runs", "2", "--engine", engine, "--json", "-", "--out", out)
        found[engine] = json.loads(done.out)
        page = " ".join((out / "report.html").read_text().split())
        shown = {"batched": "(engine: batched)", "reference": "(engine: reference: requested)"}[engine]
        assert shown in page
        assert f"--engine {engine} --out" in page
    assert found["batched"].pop("engine") == {"name": "batched", "reason": None}
    assert found["reference"].pop("engine") == {"name": "reference", "reason": "requested"}
    assert found["batched"] == found["reference"]
    default = json.loads(perhop("run", small, "--runs", "2", "--json", "-").out)
    assert default["engine"]["name"] == "batched"
