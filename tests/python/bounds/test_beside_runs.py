"""Bounds beside what runs measure: in tables, notes, frames, JSON, pages and plots; no run fails by them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import polars as pl
import pytest
from tests.python.bounds.answers import SCENARIO, answer

import perhop
from perhop import _engine
from perhop.bounds import deriving
from perhop.measures import catalog
from perhop.real_packets.laboratory import LiveResult
from perhop.runs import pictures
from perhop.show.plot import caption, drawing
from perhop.show.readable import readable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from perhop.runs.result import Result

    Answered = Callable[..., Result]


@pytest.fixture(scope="module")
def made() -> Result:
    """Two runs; each test gives them bounds of its own."""
    return perhop.run(SCENARIO, runs=2, jobs=1)


@pytest.fixture
def answered(made: Result, monkeypatch: pytest.MonkeyPatch) -> Answered:
    """The result of the two runs, for which the engine derives what is given."""

    def given(content: Any = None, kind: type[Result] | None = None) -> Result:  # noqa: ANN401 - or an error
        def derived(_text: str, _cancel: object) -> str:
            if isinstance(content, Exception):
                raise content
            return json.dumps(answer() if content is None else content)

        monkeypatch.setattr(_engine, "bounds", derived)
        return (kind or type(made))(made.scenario, made.runs)

    return given


def words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_tables_have_bounds_beside_percentiles(answered: Answered) -> None:
    result = answered()
    (of_links,) = readable(result.rows.link_classes)[:1]
    heads = list(of_links)
    assert heads[heads.index("delay p99, ms") + 1] == "at most, ms"
    assert of_links["at most, ms"] == "1.68"
    calls, bulk = readable(result.rows.groups)
    heads = list(calls)
    assert heads[heads.index("one-way delay p99, ms") + 1] == "one-way at most, ms"
    assert (calls["one-way at most, ms"], bulk["one-way at most, ms"]) == ("11.85", "–")
    assert "at most, ms" not in readable(result.rows.links)[0]  # the only link has none


def test_narrow_tables_have_a_bound_only_beside_its_percentile() -> None:
    scenario = perhop.Scenario.read("examples/first.toml").with_("duration", "2s")
    downloads = perhop.run(scenario, runs=1)  # of TCP no one-way delay is measured
    assert downloads.group_summary()["one_way_delay_at_most_s"][0] > 0.1
    assert "one-way at most, ms" not in readable(downloads.rows.groups)[0]
    assert "one-way at most, ms" in readable(downloads.rows.groups, None)[0]


def test_wide_tables_have_backlogs_and_whether_loss_is_excluded(answered: Answered) -> None:
    result = answered()
    narrow, wide = result.text(120), result.text()
    assert "backlog" not in narrow
    assert "loss excluded" not in narrow
    assert wide.count("at most, ms backlog at most, B loss excluded") == 0  # columns are padded
    (line,) = (line for line in words(wide) if line.startswith("uplink voice"))
    assert " 1.68 2400 yes " in line
    (line,) = (line for line in words(wide) if line.startswith("uplink data"))
    assert " – 150000 no " in line


def test_a_note_says_where_reasons_are_only_if_a_bound_is_missing(answered: Answered) -> None:
    why = "and says why some have none"
    assert why in " ".join(answered().text().split())
    content = answer()
    for entry in (*content["flows"], *content["links"], *content["links"][0]["classes"]):
        entry["delay"] = {"at_most_s": 0.5}
    text = " ".join(answered(content).text().split())
    assert "At most: in any run, warm-up included; `perhop bound` derives it." in text
    assert why not in text


def test_a_scenario_without_bounds_has_no_column_and_no_note(answered: Answered) -> None:
    content = answer()
    for entry in (*content["flows"], *content["links"], *content["links"][0]["classes"]):
        entry["delay"] = {"reason": "nothing is known"}
    assert "t most" not in answered(content).text(120)


@pytest.mark.parametrize("error", [_engine.ScenarioError("a cycle"), MemoryError(), RuntimeError("a fault")])
def test_a_run_is_whole_where_bounds_cannot_be_derived(
    answered: Answered, error: Exception, tmp_path: Path
) -> None:
    result = answered(error)
    assert f"No bounds: {str(error) or 'MemoryError'}." in " ".join(result.text().split())
    assert result.flows["one_way_delay_at_most_s"].null_count() == result.flows.height
    assert all(row["delay_at_most_s"] is None for row in json.loads(result.json())["links"])
    result.write(tmp_path / "out")


def test_a_network_that_takes_long_has_bounds_by_the_command_alone(
    answered: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = answered()
    monkeypatch.setattr(deriving, "MOST_PARTS", 3)
    assert "No bounds: the network has more than 3 flows and links; `perhop bound` derives them." in " ".join(
        result.text().split()
    )


def test_an_answer_about_other_flows_leaves_the_columns_empty(answered: Answered) -> None:
    content = answer()
    content["flows"].append(content["flows"][0])
    assert answered(content).flows["loss_excluded"].null_count() == 8


def test_bounds_are_derived_once_and_not_for_each_run(
    answered: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, derive = answered(), Mock(return_value=json.dumps(answer()))
    monkeypatch.setattr(_engine, "bounds", derive)
    for shown in (result.text, result.json, lambda: result.flows, lambda: result.links):
        shown()
    assert [call.args[0] for call in derive.call_args_list] == [result.scenario]


def test_frames_and_json_have_bounds_as_the_engine_gives_them(answered: Answered) -> None:
    content = answer()
    content["links"][0]["backlog"] = {"at_most_bytes": 1_234_567_891_234}
    content["flows"][1]["delay"] = {"at_most_s": 12.345678912}
    result = answered(content)
    assert result.flows["one_way_delay_at_most_s"].to_list() == [0.0118411, 12.345678912, 0.01184, None] * 2
    assert result.flows["loss_excluded"].to_list() == [True, True, True, False] * 2
    assert result.links["backlog_at_most_bytes"].to_list() == [1_234_567_891_234] * 2
    assert result.link_classes["delay_at_most_s"].to_list() == [0.00168, None] * 2
    rows = json.loads(result.json())
    assert rows["classes"][0]["one_way_delay_at_most_s"] == 12.345678912  # nine digits would be less
    assert rows["links"][0]["backlog_at_most_bytes"] == 1_234_567_891_234
    assert rows["link_classes"][1]["loss_excluded"] is False


def test_runs_on_real_packets_have_no_bounds(answered: Answered) -> None:
    live = answered(kind=LiveResult)
    assert live.bounds.failure
    assert live.flows["loss_excluded"].null_count() == live.flows.height
    assert "one-way at most, ms" not in readable(live.rows.groups)[0]


def test_a_run_whose_values_were_set_has_no_bounds(answered: Answered, made: Result) -> None:
    answered()
    changed = type(made)(made.scenario, made.runs, was_changed=True)
    assert changed.bounds.failure == "values were set during the run"
    assert changed.links["delay_at_most_s"].null_count() == 2


def test_a_page_has_bounds_beside_percentiles(answered: Answered, tmp_path: Path) -> None:
    answered().write(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for head in ("one-way delay at most, ms", "delay at most, ms", "backlog at most, bytes", "loss excluded"):
        assert f">{head}</th>" in page
    samples = pl.read_parquet(tmp_path / "out" / "samples.parquet")
    assert samples["one_way_delay_at_most_s"].null_count() == 2


def test_a_report_of_a_version_without_bounds_agrees(answered: Answered, tmp_path: Path) -> None:
    answered().write(tmp_path / "out")
    manifest, samples = tmp_path / "out" / "manifest.json", tmp_path / "out" / "samples.parquet"
    content = json.loads(manifest.read_text(encoding="utf-8"))
    for table in ("classes", "links", "link_classes"):
        rows = content["scenarios"][0]["results"][table]
        content["scenarios"][0]["results"][table] = [
            {name: value for name, value in row.items() if name not in catalog.BOUNDS} for row in rows
        ]
    assert perhop.rerun(tmp_path / "out", jobs=1).agrees
    manifest.write_text(json.dumps(content), encoding="utf-8")
    pl.read_parquet(samples).drop(one.name for one in catalog.FLOW_BOUNDS).write_parquet(samples)
    assert perhop.rerun(tmp_path / "out", jobs=1).agrees


def test_another_bound_than_that_of_a_report_is_a_difference(answered: Answered, tmp_path: Path) -> None:
    answered().write(tmp_path / "out")
    content = answer()
    content["links"][0]["classes"][0]["delay"] = {"at_most_s": 0.002}
    answered(content)
    (found,) = perhop.rerun(tmp_path / "out", jobs=1).differences
    assert (found.then, found.now) == (0.00168, 0.002)


def test_a_bound_is_a_line_in_the_plot_of_waiting_times(answered: Answered) -> None:
    result = answered()
    ((plot, rows),) = pictures.waiting_times(result.runs, result.bounds)
    (line,) = (row for row in rows if row.metric == plot.at_most)
    assert line.factors["class"] == "voice"
    assert line.mean == pytest.approx(1.68)
    without = [row for row in rows if row.metric != plot.at_most]
    assert "Upright: at most, in any run." in caption(plot, rows)
    assert "at most" not in caption(plot, without)
    assert drawing(plot, rows, "run").picture.svg != drawing(plot, without, "run").picture.svg
    assert result.plot.delay_cdf() is not None


def test_a_bound_far_beyond_the_curves_is_named_and_not_drawn(answered: Answered) -> None:
    content = answer()
    content["links"][0]["classes"][0]["delay"] = {"at_most_s": 4.5}
    result = answered(content)
    ((plot, rows),) = pictures.waiting_times(result.runs, result.bounds)
    without = [row for row in rows if row.metric != plot.at_most]
    assert "Farther right: uplink, voice at most 4500 ms." in caption(plot, rows)
    assert "Upright" not in caption(plot, rows)
    assert drawing(plot, rows, "run").panels == drawing(plot, without, "run").panels
