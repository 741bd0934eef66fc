"""Completion times and slowdowns of finite flows, by hand and through a run."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import perhop
from perhop.measures import finite_flows, naming
from perhop.measures.finite_flows import FiniteFlows
from perhop.runs import metrics, pictures
from perhop.runs.page import write_run
from perhop.runs.summary import summarize, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Flows of 960 bytes of payload a packet, which with 40 bytes of headers take 1 ms, over 10 ms.
SCENARIO = """
duration = "2s"
warmup = "500ms"
[links.link]
from = "a"
to = "b"
rate = "8Mbps"
delay = "10ms"
queue = { aqm = "drop-tail", limit = "300p" }
[[flows]]
name = "web"
from = "a"
to = "b"
transport = { tcp = "newreno", initial-window = "200p", packet = "1000B" }
arrivals = { list = [
    ["0s", "960B"], ["600ms", "960B"], ["800ms", "1920B"],
    ["1s", "96kB"], ["1.3s", "192kB"], ["1.99s", "960B"],
] }
"""


def values(flows: FiniteFlows) -> dict[str, float]:
    return {entry.name: entry.value(flows) for entry in finite_flows.MEASURES}


def test_statistics_by_hand() -> None:
    times = np.array([0.1, math.nan, 0.4, 0.2])
    open_ = np.array([math.nan, 0.3, math.nan, math.nan])
    found = values(FiniteFlows(np.array([1, 2, 3, 4]), np.array([0.1, 0.1, 0.1, 0.1]), times, open_))
    assert (found["flows_begun"], found["unfinished"]) == (4, 1)
    assert found["completion_p50_s"] == 0.2
    # The one that is open is longer than 0.3 s: as long as the only longer one.
    assert found["completion_mean_s"] == pytest.approx(1.1 / 4)
    assert found["slowdown_p50"] == pytest.approx(2)
    assert found["slowdown_mean"] == pytest.approx(11 / 4)
    assert math.isnan(found["completion_p99_s"]), "three flows have no 99th percentile"


def test_percentiles_are_values_that_occur() -> None:
    hundred = np.arange(1, 101) / 1000
    found = values(FiniteFlows(np.ones(100, np.int64), np.full(100, 0.001), hundred, np.full(100, math.nan)))
    assert found["completion_p50_s"] == 0.05
    assert found["completion_p99_s"] == 0.099
    assert found["slowdown_p99"] == pytest.approx(99)


def test_no_flow_has_no_statistics() -> None:
    none = np.array([])
    found = values(FiniteFlows(none.astype(np.int64), none, none, none))
    assert (found.pop("flows_begun"), found.pop("unfinished")) == (0, 0)
    assert all(math.isnan(value) for value in found.values())


def test_flows_of_a_run() -> None:
    result = perhop.run(SCENARIO, runs=1)
    flows = result.population_flows
    assert flows["class"].unique().to_list() == ["web"]
    assert flows["started_s"].to_list() == [0, 0.6, 0.8, 1.0, 1.3, 1.99]
    assert flows["size_bytes"].to_list() == [960, 960, 1920, 96_000, 192_000, 960]
    # Nothing else is there, and the window does not limit: each takes what it takes on an idle path.
    assert flows["completion_s"].to_list() == pytest.approx([0.011, 0.011, 0.012, 0.11, 0.21, None])
    assert flows["slowdown"].to_list() == pytest.approx([1, 1, 1, 1, 1, None])


def test_summary_of_a_run() -> None:
    summary = perhop.run(SCENARIO, runs=1).population_summary()
    rows = {row["sizes"]: row for row in summary.iter_rows(named=True)}
    assert list(rows) == ["all", "to 100 kB", "to 10 MB"]
    # The first flow began in the warm-up.
    begun = {sizes: (row["flows_begun"], row["unfinished"]) for sizes, row in rows.items()}
    assert begun == {"all": (5, 1), "to 100 kB": (4, 1), "to 10 MB": (1, 0)}
    assert rows["all"]["completion_p50_s"] == pytest.approx(0.012)
    assert rows["all"]["completion_mean_s"] == pytest.approx((0.011 + 0.012 + 0.11 + 0.21) / 4)
    assert rows["to 10 MB"]["completion_p50_s"] == pytest.approx(0.21)
    assert rows["all"]["open_flows"] == pytest.approx((0.011 + 0.012 + 0.11 + 0.21 + 0.01) / 1.5)
    assert rows["to 100 kB"]["open_flows"] is None
    own = perhop.run(SCENARIO, runs=1).population_summary(sizes=[1000])
    assert own["sizes"].to_list() == ["all", "to 1 kB", "over 1 kB"]
    with pytest.raises(ValueError, match="sizes are positive and increase"):
        perhop.run(SCENARIO, runs=1).population_summary(sizes=[5, 5])


def test_tables_json_and_metrics_have_populations() -> None:
    result = perhop.run(SCENARIO, runs=2)
    text = " ".join(summarize(result).text(120).split())
    assert "flows per run" in text
    assert "FCT: flow completion time" in text
    rows = json.loads(to_json(result))["populations"]
    assert [row["sizes"] for row in rows] == ["all", "to 100 kB", "to 10 MB"]
    assert "population" in repr(result)
    assert result.classes()["flows"].to_list() == [None]
    measured = metrics.measure(result.runs[0].raw)
    assert measured["populations.web.flows_begun"] == 5
    assert measured["populations.web.short.unfinished"] == 1
    assert measured["populations.web.medium.completion_p50_s"] == pytest.approx(0.21)
    assert math.isnan(measured["populations.web.long.slowdown_mean"])
    assert tuple(measured) == metrics.names_of(result.scenario)
    # Targets are for flows that always have data to send.
    assert not {"rmse_to_targets_bps", "jain_index"} & set(measured)
    assert naming.unit_of_metric("populations.web.short.completion_p99_s") == "s"


def test_a_class_counts_its_flows_together() -> None:
    [row] = perhop.run(SCENARIO, runs=1).classes().iter_rows(named=True)
    flow: Mapping[str, Any] = perhop.run(SCENARIO, runs=1).flows.row(0, named=True)
    # After the warm-up: 1 + 2 + 100 + 200 packets of 1000 bytes, and none of the last flow.
    assert flow["delivered_packets"] == 303
    assert flow["sent_packets"] == 304
    assert row["throughput_bps"] == pytest.approx(303 * 8000 / 1.5)


def test_little_s_law() -> None:
    """The mean number of open flows is their rate times their mean completion time."""
    scenario = SCENARIO.replace('duration = "2s"', 'duration = "200s"').replace(
        SCENARIO[SCENARIO.index("arrivals") :],
        'arrivals = { load = 0.5 }\nsizes = { cdf = "web-search", scale = 0.02 }\n',
    )
    result = perhop.run(scenario, runs=3)
    for name, rows in result.population_summary().group_by("class"):
        everything = rows.row(0, named=True)
        assert everything["sizes"] == "all", name
        rate = everything["flows_begun"] / 199.5
        assert everything["open_flows"] == pytest.approx(rate * everything["completion_mean_s"], rel=0.01)
        assert everything["unfinished"] <= 3


def test_a_page_says_and_draws_how_long_flows_take(tmp_path: Path) -> None:
    result = perhop.run(SCENARIO, runs=2)
    shown = summarize(result)
    write_run(tmp_path, result, shown, "a test")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "half of the flows complete within 12.0" in page
    assert (tmp_path / "plots" / "run-completion-times.svg").exists()
    [(plot, rows)] = [one for one in pictures.of_result(result) if one[0].id == "completion-times"]
    assert plot.kind == "cdf"
    # Its rate is that of all flows, and says so; a profile, which is one for each, is not drawn beside it.
    assert "The throughput of flows that come and go is that of all" in shown.counted
    profiled = SCENARIO + 'profile = { marker = "token-bucket", rate = "1Mbps", burst = "10kB" }\n'
    bars, _ = pictures.class_plot(perhop.run(profiled, runs=2))
    assert bars.x.names == {"web": "web, all"}
    assert [reference.heights for reference in bars.references] == [{}]
    # Of the five flows that began after the warm-up, one each takes 11, 12, 110 and 210 ms, and one is open.
    assert {row.mean for row in rows} == {0.2, 0.4, 0.6, 0.8}
