"""Users of applications: web pages, video, requests and responses, games and calls."""

import json

import numpy as np
import polars as pl
import pytest

import perhop
from perhop import Scenario, _engine
from perhop.measures import catalog, naming
from perhop.runs import metrics, quality
from perhop.runs.page import drawn, run_report
from perhop.runs.summary import summarize, to_json
from perhop.scenario import Flow, Link, Tcp, Web
from perhop.show.page import as_page
from perhop.stores.outcomes import pack, unpack

SCENARIO = """
duration = "40s"
warmup = "5s"

[links.access]
from = "isp"
to = "office"
rate = "RATE"
delay = "10ms"
queue = { aqm = "drop-tail", limit = "200p" }

[[flows]]
name = "web"
count = 4
from = "isp"
to = "office"
application = { model = "web", reading = "2s", scale = 3.0 }
transport = { tcp = "linux", packet = "1500B", ack = "52B" }

[[flows]]
name = "video"
count = 2
from = "isp"
to = "office"
application = { model = "video" }
transport = { tcp = "linux", packet = "1500B", ack = "52B" }

[[flows]]
name = "queries"
count = 3
from = "isp"
to = "office"
application = { model = "request-response", think = "200ms" }
transport = { tcp = "linux", packet = "1500B", ack = "52B" }

[[flows]]
name = "games"
count = 2
from = "isp"
to = "office"
application = { model = "game" }

[[flows]]
name = "calls"
count = 3
from = "isp"
to = "office"
application = { model = "call" }
"""


def scenario(rate: str = "20Mbps") -> str:
    """The scenario at a rate."""
    return SCENARIO.replace("RATE", rate)


@pytest.fixture(scope="module")
def result() -> perhop.Result:
    """Two runs at an ample rate."""
    return perhop.run(scenario(), runs=2)


def test_each_model_has_a_table(result: perhop.Result) -> None:
    tables = result.applications()
    assert list(tables) == ["web", "video", "request-response", "game", "call"]
    for model, entries in catalog.APPLICATION.items():
        if entries and model != "python":  # tests/python/plugins has that one
            wanted = [entry.name for entry in entries]
            assert [name for name in tables[model].columns if name in wanted] == wanted
    web = tables["web"].row(0, named=True)
    assert (web["class"], web["users"]) == ("web", 4)
    assert web["page_mean_low_s"] < web["page_mean_s"] < web["page_mean_high_s"]
    video = tables["video"].row(0, named=True)
    assert video["quality_bps"] == pytest.approx(4.3e6, rel=0.15), "the link has room for the highest rate"
    assert video["stalls"] == 0
    calls = tables["call"]
    assert calls["class"].to_list() == ["calls", "calls (reverse)"]
    assert (calls["mos"] > 4.2).all(), "P99 of the delay, 1 % late"
    assert calls.equals(quality.call_summary(result, ["calls", "calls (reverse)"]))


def test_measures_come_from_the_samples(result: perhop.Result) -> None:
    first = result.runs[0].raw["applications"]
    web = next(users for users in first if users["name"] == "web")
    times = web["samples"]["page_s"]
    assert web["measures"]["pages"] == len(times) > 10
    assert web["measures"]["page_mean_s"] == pytest.approx(float(np.mean(times)), rel=1e-12)
    assert web["measures"]["page_p95_s"] == pytest.approx(
        float(np.quantile(times, 0.95, method="inverted_cdf")), rel=1e-12
    )
    game = next(users for users in first if users["name"] == "games")
    delays = game["samples"]["down_s"]
    assert game["measures"]["down_late"] == pytest.approx(float(np.mean(delays > 0.05)))
    frame = result.application_samples
    pages = frame.filter(pl.col("quantity") == "page_s", pl.col("seed") == 1)
    assert pages["value"].to_list() == times.tolist()


def test_classes_have_both_directions(result: perhop.Result) -> None:
    names = [group.name for group in result.runs[0].groups]
    assert names[:2] == ["web", "web (reverse)"]
    counts = {group.name: group.count for group in result.runs[0].groups}
    assert (counts["web"], counts["web (reverse)"], counts["video"], counts["calls"]) == (24, 24, 2, 3)
    rates = result.classes()
    games = rates.filter(pl.col("class") == "games").row(0, named=True)
    # 140.78 B and 28 B of headers each 58.46 ms.
    assert games["throughput_bps"] == pytest.approx((140.78 + 28) * 8 / 0.05846, rel=0.03)


def test_both_engines_run_users_and_agree(result: perhop.Result) -> None:
    assert (result.engine, result.engine_reason) == ("batched", None)
    reference = perhop.run(scenario(), runs=len(result.runs), engine="reference")
    for one, other in zip(result.runs, reference.runs, strict=True):
        cost = {"events": 0, "engine": None, "engine_reason": None}
        assert pack({**one.raw, **cost}) == pack({**other.raw, **cost})


def test_text_json_and_sweeps_have_the_users(result: perhop.Result) -> None:
    text = summarize(result).text(None)
    assert "page, mean, ms" in text
    assert "stalled, s/h" in text
    assert "MOS" in text
    content = json.loads(to_json(result))
    assert content["applications"]["web"][0]["class"] == "web"
    assert content["applications"]["call"][1]["class"] == "calls (reverse)"
    measured = metrics.measure(result.runs[0].raw)
    assert measured["applications.web.page_mean_s"] > 0
    assert naming.unit_of_metric("applications.web.page_mean_s") == "s"
    assert set(metrics.names_of(result.scenario)) == set(measured)


def test_no_stall_in_some_runs_says_how_long_was_watched_and_bounds_no_hour() -> None:
    """A number of runs does not say what happens in an hour, however short the runs are."""
    link = {"from": "a", "to": "b", "rate": "50Mbps", "delay": "5ms", "queue": {"aqm": "codel"}}
    film = {"name": "film", "count": 2, "from": "a", "to": "b", "application": {"model": "video"}}
    flows = [{**film, "transport": {"tcp": "linux"}}]
    found = perhop.run({"duration": "25s", "warmup": "5s", "links": {"l": link}, "flows": flows}, runs=5)
    row = found.applications()["video"].row(0, named=True)
    assert row["stall_seconds_per_hour"] == 0
    assert row["stall_seconds_per_hour_high"] == float("inf")
    summary = summarize(found)
    assert summary.applications["video"][0]["stalled, s/h"] == "0 (or more)"
    assert "Stalled 0 (or more): none in 3 min, all users and runs together;" in summary.counted


def test_a_slow_link_makes_pages_slow_and_lowers_the_video(result: perhop.Result) -> None:
    slow = perhop.run(scenario("3Mbps"), runs=2)
    fast_page, slow_page = (one.applications()["web"]["page_mean_s"][0] for one in (result, slow))
    assert slow_page > 2 * fast_page
    assert slow.applications()["video"]["quality_bps"][0] < 2e6


def test_an_outcome_survives_the_store(result: perhop.Result) -> None:
    raw = result.runs[0].raw
    again = unpack(pack(raw))
    assert again["applications"][0]["measures"] == raw["applications"][0]["measures"]
    for name, values in raw["applications"][0]["samples"].items():
        assert np.array_equal(again["applications"][0]["samples"][name], values)


def test_the_typed_builder_has_applications() -> None:
    built = Scenario(
        duration="5s",
        links={"l": Link(from_="a", to="b", rate="10Mbps", delay="5ms")},
        flows=[
            Flow(
                name="web",
                from_="a",
                to="b",
                transport=Tcp(tcp="linux"),
                application=Web(connections=1, reading="500ms"),
            )
        ],
    )
    assert (
        json.loads(_engine.scenario_from_json(json.dumps(built.to_dict()), "s"))["flows"][0]["application"][
            "model"
        ]
        == "web"
    )
    assert perhop.run(built, runs=1).applications()["web"]["pages"][0] > 0


def test_users_ask_for_the_same_pages_at_every_rate() -> None:
    """The first page of each user depends on its own draws alone."""
    text = scenario().replace('warmup = "5s"', "").replace("count = 4", "count = 1")
    first = [
        perhop.run(text.replace("20Mbps", rate), runs=1)
        .runs[0]
        .raw["applications"][0]["samples"]["page_bytes"][:3]
        for rate in ("20Mbps", "6Mbps")
    ]
    assert len(first[0]) == 3
    assert np.array_equal(*first)


def test_the_page_says_what_users_get_and_judges_no_profile_by_their_rate() -> None:
    profile = (
        'profile = { marker = "token-bucket", rate = "1Mbps", burst = "20kB" }\nstart = "0s"\nname = "web"'
    )
    result = perhop.run(scenario().replace('name = "web"', profile), runs=2)
    shown = summarize(result)
    page = as_page(run_report(result, shown, "perhop run", *drawn(result)))
    assert "<strong>web</strong> (web): page, mean" in page
    assert "<strong>calls</strong> (call): MOS 4.3" in page
    assert "Users: request-response" in page
    assert "profile does not hold" not in page
    assert "profile holds" not in page
