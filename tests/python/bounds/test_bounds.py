"""`perhop.bound` and `perhop bound`: tables, reasons, derivations, JSON, and pages of bounds."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING

import polars as pl
import pytest
from tests.python.bounds.answers import FULL, SCENARIO, WHY, answer, bounds, engine
from typer.testing import CliRunner

import perhop
from perhop import _engine
from perhop.bounds.deriving import Bounds
from perhop.commands.cli import app
from perhop.errors import PerhopError
from perhop.scenario import reading
from perhop.show.numbers import at_most

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result as Ended

    from perhop.scenario.reading import ScenarioSource


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the scenario, and an engine that gives the answer by hand."""
    (tmp_path / "two.toml").write_text(SCENARIO, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_engine, "bounds", engine)
    return tmp_path


def typed(*arguments: str) -> Ended:
    return CliRunner().invoke(app, ["bound", *arguments])


# ---------------------------------------------------------------- numbers and frames


@pytest.mark.parametrize(
    ("value", "factor", "text"),
    [
        (0.0039, 1e3, "3.9"),  # 3.9000000000000004 as a product of floats
        (0.00390001, 1e3, "3.901"),
        (0.0139, 1e3, "13.9"),
        (0.00168, 1e3, "1.68"),
        (0.0, 1e3, "0"),
        (1.23456, 1e3, "1235"),
        (150_000, 1.0, "150000"),
        (123_456.01, 1.0, "123457"),
        (0.000_000_001, 1e3, "0.000001"),
    ],
)
def test_a_bound_is_rounded_up(value: float, factor: float, text: str) -> None:
    assert at_most(value, factor) == text


def test_a_class_has_the_largest_bound_of_its_flows() -> None:
    calls, bulk = bounds().classes.to_dicts()
    assert calls == {
        "class": "calls",
        "flows": 3,
        "one_way_delay_at_most_s": 0.0118421,
        "loss_excluded": True,
        "delay_reason": None,
        "loss_reason": None,
    }
    assert (bulk["one_way_delay_at_most_s"], bulk["loss_excluded"]) == (None, False)
    assert (bulk["delay_reason"], bulk["loss_reason"]) == (WHY, f"`uplink`: {FULL}")


def test_a_class_has_no_bound_if_one_of_its_flows_has_none() -> None:
    changed = answer()
    changed["flows"][1] |= {
        "delay": {"reason": "it takes a cycle"},
        "loss": {"excluded": False, "reason": "x"},
    }
    calls = bounds(content=changed).classes.row(0, named=True)
    assert calls["one_way_delay_at_most_s"] is None
    assert calls["delay_reason"] == "it takes a cycle"
    assert calls["loss_excluded"] is False


def test_frames_have_a_row_for_each_flow_link_and_class() -> None:
    found = bounds()
    assert found.flows["flow"].to_list() == ["calls/0", "calls/1", "calls/2", "bulk/0"]
    assert found.flows["route"].unique().to_list() == ["uplink"]
    assert found.links.to_dicts() == [
        {
            "link": "uplink",
            "delay_at_most_s": None,
            "backlog_at_most_bytes": 152_400,
            "loss_excluded": False,
            "delay_reason": WHY,
            "backlog_reason": None,
            "loss_reason": FULL,
        }
    ]
    assert found.link_classes["delay_at_most_s"].to_list() == [0.00168, None]
    steps = found.steps.filter(pl.col("flow").is_null())
    assert steps.select("link", "class", "step").rows() == [("uplink", "voice", 1), ("uplink", "voice", 2)]
    assert steps["source"].to_list() == ["RFC 3290, section 5.1", None]
    assert found.queues["uplink", "data"]["backlog"] == {"at_most_bytes": 150_000}


def test_without_an_answer_every_table_is_empty_and_has_its_columns() -> None:
    nothing = bounds(content={"links": [], "flows": [], "notes": []})
    for name in ("classes", "flows", "links", "link_classes", "steps"):
        assert getattr(nothing, name).columns == getattr(bounds(), name).columns
        assert getattr(nothing, name).schema == getattr(bounds(), name).schema
    assert nothing.of_class("calls") == {"one_way_delay_at_most_s": None, "loss_excluded": None}
    assert set(nothing.of_queue("uplink").values()) == {None}


def test_the_json_is_the_tables_and_rounds_no_bound() -> None:
    found = bounds()
    content = json.loads(found.json())
    assert content == found.to_dict()
    assert content["classes"] == found.classes.to_dicts()
    assert content["flows"][1]["one_way_delay_at_most_s"] == 0.0118421
    assert content["notes"] == ["Routes have no cycle."]
    assert found.frame("link_classes").equals(pl.DataFrame(content["link_classes"]))


def test_a_queue_without_classes_is_the_link_alone() -> None:
    changed = answer()
    (link,) = changed["links"]
    link["classes"] = [{**link["classes"][0], "name": "all"}]
    found = bounds(content=changed)
    assert found.link_classes.height == 0
    steps = found.steps.filter(pl.col("link") == "uplink")
    assert steps.select("class", "step").rows() == [(None, 1), (None, 2)]
    assert "uplink: delay at most 1.68 ms" in found.derivation("uplink")


# ---------------------------------------------------------------- text


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("changed", [{}, {"with_steps": True}, {"of": "calls"}])
def test_text_fits(width: int, changed: dict[str, object]) -> None:
    text = bounds(**changed).text(width)
    assert max(map(len, text.splitlines())) <= width


def test_tables_show_bounds_and_the_sign_where_there_is_none() -> None:
    lines = [" ".join(line.split()) for line in bounds().text().splitlines()]
    assert "class flows one-way delay at most, ms loss excluded" in lines
    assert "calls 3 11.85 yes" in lines
    assert "bulk 1 – no" in lines
    assert "uplink – 152400 no" in lines
    assert "uplink voice 1.68 2400 yes" in lines
    assert lines[-1] == "Routes have no cycle."


def test_each_reason_is_said_once_with_the_places_that_it_concerns() -> None:
    text = bounds().text()
    reasons = text.partition("Not guaranteed, and why:\n")[2].splitlines()
    assert reasons[:4] == [
        f"  {WHY}",
        "    one-way delay of bulk",
        f"  `uplink`: {FULL}",
        "    loss of bulk, data at uplink",
    ]


def test_a_network_in_which_all_is_bounded_has_no_reasons() -> None:
    changed = answer()
    changed["flows"].pop()
    changed["links"][0] |= {"classes": changed["links"][0]["classes"][:1], "delay": {"at_most_s": 0.00168}}
    changed["links"][0]["loss"] = {"excluded": True}
    assert "why" not in bounds(content=changed).text()


def test_a_derivation_is_that_of_the_flow_with_the_largest_bound() -> None:
    text = bounds().derivation("calls")
    assert "calls (calls/1, the largest of 3 flows) over uplink: one-way delay at most 11.85 ms" in text
    assert text.count("1. arrivals of 3 flows") == 1
    assert "    α(t) = 600 B + 240 kbit/s · t\n    [RFC 3290, section 5.1]\n  2. horizontal deviation" in text


@pytest.mark.parametrize(
    ("of", "titles"),
    [
        ("calls/2", ["calls/2 over uplink: one-way delay at most 11.84 ms"]),
        ("voice", ["voice at uplink: delay at most 1.68 ms, backlog at most 2400 B, loss excluded"]),
        ("uplink", ["voice at uplink: ", "data at uplink: no bound of the delay, backlog at most 150000 B"]),
        ("bulk", ["bulk over uplink: no bound of the one-way delay, loss not excluded"]),
    ],
)
def test_everything_has_a_derivation_by_its_name(of: str, titles: list[str]) -> None:
    text = " ".join(bounds().derivation(of).split())
    assert [title for title in titles if title not in text] == []


def test_a_derivation_without_a_bound_says_why() -> None:
    text = bounds().derivation("data")
    assert f"  No more is guaranteed: {WHY}\n  No more is guaranteed: {FULL}" in text


def test_a_name_that_is_not_there_is_refused_with_what_there_is() -> None:
    with pytest.raises(PerhopError, match="no class, flow or link `voise`; did you mean `voice`"):
        bounds().derivation("voise")
    with pytest.raises(PerhopError, match="there are: calls, bulk, voice, uplink, data"):
        bounds().derivation("x")


def test_repr_and_notebooks() -> None:
    found = bounds()
    assert repr(found) == (
        "Bounds of 'Two classes': 2 classes and 1 link, 1 of 3 with a bound of the delay; see print(….text())"
    )
    html = found._repr_html_()
    assert "<td>11.85</td>" in html
    assert html.count("<table>") == 3


# ---------------------------------------------------------------- with the engine


def test_a_packet_waits_for_one_of_each_flow_before_it() -> None:
    """Three calls of 200 bytes may come at once, behind a packet of 1500 that is being sent: 10 Mbit/s."""
    found = perhop.bound(SCENARIO)
    voice = found.of_queue("uplink", "voice")
    waits = (1500 + 2 * 200) * 8 / 10e6
    delay = voice["delay_at_most_s"]
    assert isinstance(delay, float)
    assert waits <= delay == pytest.approx(waits, rel=1e-4)
    assert voice["loss_excluded"] is True
    calls = found.of_class("calls")["one_way_delay_at_most_s"]
    assert calls == pytest.approx(waits + 200 * 8 / 10e6 + 0.010, rel=1e-3)
    assert found.of_class("bulk")["loss_excluded"] is False
    assert found.steps.filter(pl.col("link") == "uplink")["source"].drop_nulls().len() > 0


@pytest.mark.parametrize("example", ["first", "office", "network", "queues", "transfers"])
def test_no_packet_of_a_run_exceeds_its_bound(example: str) -> None:
    scenario = perhop.Scenario.read(f"examples/{example}.toml").with_("duration", "4s").with_("warmup", "0s")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", perhop.PerhopWarning)  # some flows begin later
        result = perhop.run(scenario, runs=2)
    names = [flow["name"].rpartition("/")[0] for flow in result.bounds.content["flows"]]
    assert names * 2 == result.flows["class"].to_list()
    assert result.links["link"].unique(maintain_order=True).to_list() == result.bounds.links["link"].to_list()
    over = pl.col("delay_max_s") > pl.col("delay_at_most_s")
    assert result.links.filter(over).height == result.link_classes.filter(over).height == 0
    assert result.flows.filter(pl.col("one_way_delay_p99_s") > pl.col("one_way_delay_at_most_s")).height == 0
    dropped = pl.col("loss_excluded") & (pl.col("dropped_whole_run") > 0)
    assert result.links.filter(dropped).height == result.link_classes.filter(dropped).height == 0
    assert result.links["delay_at_most_s"].drop_nulls().len() > 0


def test_cancel_ends_the_derivation() -> None:
    cancel = _engine.Cancel()
    scenario = reading.canonical(SCENARIO)
    assert _engine.bounds(scenario, cancel) == _engine.bounds(scenario)
    cancel.cancel()
    with pytest.raises(_engine.Cancelled):
        _engine.bounds(scenario, cancel)


def test_nothing_is_guaranteed_where_queue_protection_may_send_packets_elsewhere() -> None:
    found = perhop.bound("examples/nqb.toml")
    assert found.link_classes["delay_at_most_s"].null_count() == 2
    assert found.classes["one_way_delay_at_most_s"].null_count() == found.classes.height
    assert "`access`: queue protection may send packets to another queue" in found.text()


# ---------------------------------------------------------------- the function and the command


@pytest.mark.usefixtures("place")
def test_the_command_prints_what_the_function_gives() -> None:
    found = perhop.bound("two.toml")
    assert isinstance(found, Bounds)
    done = typed("two.toml", "--wide")
    assert done.stdout == f"{found.text()}\n\nHow each follows, step by step: perhop bound two.toml --steps\n"
    assert typed("two.toml", "--json", "-").stdout.startswith(found.json())
    assert typed("two.toml", "--of", "calls", "--wide").stdout == found.derivation("calls") + "\n"
    assert found.derivation("calls").partition("\n\n")[2] in typed("two.toml", "--steps", "--wide").stdout


@pytest.mark.parametrize("form", ["path", "text", "data", "builder"])
def test_a_scenario_may_have_any_form(form: str, place: Path) -> None:
    forms: dict[str, ScenarioSource] = {
        "path": place / "two.toml",
        "text": SCENARIO,
        "data": perhop.Scenario.read(SCENARIO).to_dict(),
        "builder": perhop.Scenario.read(SCENARIO),
    }
    assert perhop.bound(forms[form]).json() == bounds().json()


def test_a_name_that_is_not_there_is_one_line_and_status_2(place: Path) -> None:
    done = typed(str(place / "two.toml"), "--of", "nobody")
    assert isinstance(done.exception, PerhopError)  # `main` prints it and ends with status 2
    assert "nobody" in str(done.exception)
    assert done.stdout == ""


@pytest.mark.usefixtures("place")
def test_an_empty_name_is_refused() -> None:
    done = typed("two.toml", "--of", "", "--json", "-")
    assert str(done.exception) == (
        "the scenario has no class, flow or link ``; there are: calls, bulk, voice, uplink, data"
    )
    assert done.stdout == ""


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("of", "rows"),
    [
        ("calls", {"classes": 1, "flows": 3, "steps": 6}),
        ("calls/2", {"flows": 1, "steps": 2}),
        ("voice", {"link_classes": 1, "steps": 2}),
        ("uplink", {"links": 1, "link_classes": 2, "steps": 2}),
    ],
)
def test_json_of_one_has_the_rows_about_it_alone(of: str, rows: dict[str, int]) -> None:
    found = json.loads(typed("two.toml", "--of", of, "--json", "-").stdout)
    assert {name: len(table) for name, table in found.items() if table} == rows
    assert all(of in row.values() for table in found.values() for row in table)
    assert found == bounds().about(of).to_dict()
    assert list(found) == list(bounds().to_dict())


def test_tables_and_pages_are_written(place: Path) -> None:
    done = typed("two.toml", "--csv", "tables", "--out", "out")
    assert done.exit_code == 0, done.output
    described = pl.read_csv(place / "tables" / "columns.csv")
    assert described.filter(pl.col("meaning").is_null() | (pl.col("meaning") == "")).height == 0
    assert pl.read_csv(place / "tables" / "links.csv")["backlog_at_most_bytes"].to_list() == [152_400]
    page = (place / "out" / "report.html").read_text(encoding="utf-8")
    assert "α(t) = 600 B + 240 kbit/s · t<br>[RFC 3290, section 5.1]" in page
    samples = pl.read_parquet(place / "out" / "samples.parquet")
    assert samples.equals(bounds().flows)
    with pytest.raises(PerhopError, match="not of `perhop run`"):
        perhop.rerun(place / "out")
