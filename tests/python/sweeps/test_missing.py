"""Values that some runs of a sweep lack: how many have one, and which means are too low."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from tests.python.sweeps.running import quietly

from perhop.statistics import stopping
from perhop.sweeps.job import Workplace
from perhop.sweeps.pictures import Marks, drawn, html_plots
from perhop.sweeps.report import answers, point_tables
from perhop.sweeps.summary import estimate_json, lead, remarks

if TYPE_CHECKING:
    from pathlib import Path

    from perhop.sweeps.job import Swept

SCENARIO = """
duration = "DURATION"
warmup = "1s"
[links.link]
from = "a"
to = "b"
rate = "5Mbps"
delay = "10ms"
queue = { aqm = "drop-tail", limit = "40p" }
[[flows]]
name = "one"
from = "a"
to = "b"
volume = "300kB"
start = "1s..2s"
transport = { tcp = "newreno" }
[[flows]]
name = "others"
from = "a"
to = "b"
transport = { tcp = "newreno" }
"""
SWEEP = """
title = "Competitors"
scenario = "one.toml"
runs = 10
metrics = ["flows.one.completion_s"]
[grid]
"flows.others.count" = [2, 5, 8]
"""
COMPLETION = "flows.one.completion_s"


def swept(folder: Path, duration: str, text: str = SWEEP) -> Swept:
    (folder / "one.toml").write_text(SCENARIO.replace("DURATION", duration), encoding="utf-8")
    (folder / "sweep.toml").write_text(text, encoding="utf-8")
    return quietly(folder / "sweep.toml", Workplace(folder / "store", "local", 2, None))


def test_cells_say_of_how_many_runs_they_are_and_that_they_are_too_low(tmp_path: Path) -> None:
    found = swept(tmp_path, "5s")
    whole = swept(tmp_path, "60s")
    cut = [summary.estimates[COMPLETION] for summary in found.summaries]
    for one, summary in zip(cut, whole.summaries, strict=True):
        true = summary.estimates[COMPLETION]
        assert true is not None
        assert (true.missing, math.isfinite(true.high)) == (0, True)
        if one is not None:
            assert 0 < one.runs < 10
            assert one.of == 10
            assert one.low <= true.mean < one.high == math.inf
            assert one.mean < true.mean
    assert [one is None for one in cut] == [False, False, True]
    few = cut[1]
    assert few is not None
    assert estimate_json(few) == {**(estimate_json(few) or {}), "runs": few.runs, "of": 10}
    text = " ".join(found.text(200).split())
    assert f", {few.runs} of 10 runs" in text
    assert "10 runs of each from seed 1, not all of which have every value" in text
    assert "one FCT (over …): a lower bound" in text
    why = "none that began after the warm-up ended within a run, or too few did: raise `duration`"
    assert f"No run has a value of one FCT at 1 of 3 points: {why}" in text
    first = next(one for one in cut if one is not None and one.missing)
    assert f"Such as {first.runs} of 10 runs: the others have no value." in text
    (answer,) = answers(found.summaries)
    assert f"ms, {few.runs} of 10 runs (at count 5)" in answer
    assert "by chance" in answer, "a lower bound and another one are not distinguished"
    (table,) = point_tables(found.summaries)
    assert f"{few.runs} of 10 runs" in str(table)
    (picture, *_) = drawn(found.summaries)
    assert not isinstance(picture, Marks)
    assert [(row.runs, row.of) for row in picture[1]] == [(one.runs, 10) for one in cut if one is not None]
    svg = html_plots(found.summaries, "test")[0].picture.svg
    assert f"{few.runs} of 10" in svg
    assert "so many runs have a value" in svg
    assert stopping.look(found.summaries[0].observed, found.counts[0]).reach > 10.0
    # With all values nothing of it is said.
    assert remarks(whole.summaries) == []
    assert lead(whole.plan, whole.summaries).startswith("3 points, 10 runs of each from seed 1; means")


def test_what_no_run_has_is_said_with_its_reason(tmp_path: Path) -> None:
    patterns = '["flows.one.completion_s", "flows.one.jitter_s", "flows.one.mos", "flows.others.slowdown"]'
    text = SWEEP.replace('["flows.one.completion_s"]', patterns).replace("runs = 10", "runs = 2")
    found = swept(tmp_path, "2s", text)
    said = remarks(found.summaries)
    ended = "none that began after the warm-up ended within a run, or too few did"
    assert (
        f"No run has a value of one FCT, others slowdown: {ended}: raise `duration` in the scenario." in said
    )
    assert "No run has a value of one jitter: none for TCP." in said
    assert "No run has a value of one MOS: none for a class without `codec`." in said
    assert all(text in found.text(200) or len(text) > 90 for text in said)


FLOWS = """
duration = "DURATION"
warmup = "1s"
[links.link]
from = "a"
to = "b"
rate = "5Mbps"
delay = "10ms"
queue = { aqm = "drop-tail", limit = "40p" }
[[flows]]
name = "web"
from = "a"
to = "b"
arrivals = { rate = "12/s" }
sizes = { constant = "20kB" }
transport = { tcp = "newreno" }
"""


@pytest.mark.parametrize("rate", ["12/s", "40/s"])
def test_percentiles_of_flows_are_of_all_runs(tmp_path: Path, rate: str) -> None:
    """Fifty flows in a run have no 99th percentile of their own; none has one where most are unfinished."""
    (tmp_path / "flows.toml").write_text(FLOWS.replace("DURATION", "5s"), encoding="utf-8")
    text = f"""
scenario = "flows.toml"
runs = 6
metrics = ["populations.web.completion_p50_s", "populations.web.completion_p99_s"]
[set]
"flows.web.arrivals.rate" = "{rate}"
"""
    (tmp_path / "sweep.toml").write_text(text, encoding="utf-8")
    found = quietly(tmp_path / "sweep.toml", Workplace(tmp_path / "store", "local", 2, None))
    (summary,) = found.summaries
    half, most = (summary.estimates[f"populations.web.completion_{part}_s"] for part in ("p50", "p99"))
    assert half is not None
    if rate == "40/s":  # more than the link carries
        assert most is None
        assert any("unfinished at the end" in said for said in remarks(found.summaries))
    else:
        assert most is not None
        assert (most.runs, most.missing) == (6, 0)
        assert 0.05 < half.mean < most.mean
        assert all(map(math.isnan, summary.observed["populations.web.completion_p99_s"].values))
