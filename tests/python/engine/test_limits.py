"""What limited TCP: shares of the active time, in frames, tables and sentences."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import perhop
from perhop.runs.summary import summarize, to_json
from perhop.show import limits

if TYPE_CHECKING:
    from perhop.runs.result import Result

SHARES = ["receiver_limited", "sender_limited", "congestion_limited", "recovering", "idle"]


def network(flows: list[dict[str, Any]], rate: str = "1Gbps", limit: str = "1000p") -> dict[str, Any]:
    ends = {"from": "a", "to": "b"}
    link = {**ends, "rate": rate, "delay": "10ms", "queue": {"aqm": "drop-tail", "limit": limit}}
    return {
        "duration": "4s",
        "warmup": "1s",
        "links": {"l": link},
        "flows": [{**ends, **flow} for flow in flows],
    }


def held(**keys: Any) -> dict[str, Any]:  # noqa: ANN401
    """A flow with a receiver's window of 1000 packets of 1000 bytes."""
    tcp = {"tcp": "linux", "packet": "1kB", "window": "1000p", **keys}
    return {"name": "f", "transport": tcp}


@pytest.fixture(scope="module")
def alone() -> Result:
    return perhop.run(network([held()]), runs=1)


def test_the_sentence_names_window_time_and_key(alone: Result) -> None:
    assert list(limits.sentences(alone.runs, json.loads(alone.scenario))) == [
        "f was limited by its receiver's window, 1 MB, for 100 % of the time; `window`."
    ]
    text = summarize(alone).text(80)
    assert "f was limited by its receiver's window, 1 MB, for 100 % of the time; `window`." in text
    assert "rwnd-limited" in text
    assert "cwnd-limited" not in text
    wide = summarize(alone).text(None)
    assert all(word in wide for word in ("rwnd-limited, %", "app-limited, %", "cwnd-limited, %", "idle, %"))


def test_shares_are_in_frames_and_in_json_and_sum_to_one(alone: Result) -> None:
    for frame in (alone.flows, alone.classes()):
        assert sum(frame[name][0] for name in SHARES) == pytest.approx(1.0)
    assert alone.flows["receiver_window_bytes"][0] == 1_000_000
    assert alone.flows["busy_s"][0] == pytest.approx(3.0)
    (of_class,) = json.loads(to_json(alone))["classes"]
    assert of_class["receiver_limited"] > 0.99


def test_a_flow_without_a_full_window_has_no_column_and_no_sentence() -> None:
    flows: list[dict[str, Any]] = [
        {"name": "f", "transport": {"tcp": "newreno"}},
        {"name": "u", "transport": {"udp": "cbr", "rate": "1Mbps"}},
    ]
    result = perhop.run(network(flows, rate="5Mbps", limit="50p"), runs=1)
    text = summarize(result).text(80)
    assert "limited" not in text
    of_udp = result.flows.filter(pl.col("class") == "u")
    assert all(of_udp[name][0] is None for name in (*SHARES, "busy_s", "receiver_window_bytes"))


def test_classes_of_several_flows_are_summed_up() -> None:
    small = {"name": "small", "count": 3, "transport": {"tcp": "newreno", "window": "2p"}}
    result = perhop.run(network([small], rate="10Mbps"), runs=2)
    (sentence,) = limits.sentences(result.runs, json.loads(result.scenario))
    assert sentence.startswith(
        "All 3 flows of small were limited by their receivers' window, 2 kB, for up to "
    )


def test_a_send_buffer_is_said_by_its_key() -> None:
    result = perhop.run(
        network([held(**{"send-buffer": "500kB", "packet": "1500B", "window": "9MB"})]), runs=1
    )
    (sentence,) = limits.sentences(result.runs, json.loads(result.scenario))
    assert sentence.startswith("f was limited by its sender's buffer, 500 kB, for ")
    assert sentence.endswith(" % of the time; `send-buffer`.")
    assert "sndbuf-limited" in summarize(result).text(100)
    assert result.flows["sender_limited"][0] >= result.flows["buffer_limited"][0] > 0.9


@pytest.mark.parametrize(
    ("queue", "key"),
    [
        ({"scheduler": "shaper", "rate": "20Mbps", "burst": "10kB"}, "queue.rate"),
        (
            {"scheduler": "htb", "classes": [{"name": "all", "rate": "20Mbps"}]},
            "queue.classes",
        ),
    ],
)
def test_a_link_behind_a_shaper_says_what_limits_it(queue: dict[str, Any], key: str) -> None:
    """The link is used by 2 %, which is no fault."""
    tail = {"aqm": "drop-tail", "limit": "100p"}
    if "classes" in queue:
        queue["classes"][0]["queue"] = tail
    else:
        queue["queue"] = tail
    scenario = network([{"name": "f", "transport": {"tcp": "newreno"}}])
    scenario["links"]["l"]["queue"] = queue
    shaped = perhop.run(scenario, runs=1)
    said = f"l was limited by the shaper of its queue, 20 Mbit/s of its 1000 Mbit/s; `{key}`."
    assert said in limits.sentences(shaped.runs, json.loads(shaped.scenario))
    scenario["flows"][0]["transport"] = {"udp": "cbr", "rate": "1Mbps"}
    idle = perhop.run(scenario, runs=1)
    assert list(limits.sentences(idle.runs, json.loads(idle.scenario))) == []


def test_an_application_pauses() -> None:
    web = {
        "name": "w",
        "count": 2,
        "application": {"model": "web", "reading": "1s"},
        "transport": {"tcp": "linux"},
    }
    result = perhop.run(network([web], rate="10Mbps"), runs=1)
    frame = result.flows.filter(pl.col("idle").is_not_null())
    assert frame["idle"].min() > 0.3  # type: ignore[operator]
    assert frame["sender_limited"].max() > 0.01  # type: ignore[operator]


def test_flows_that_fill_their_access_links_are_named() -> None:
    """Access links are in no table: 20 and 8 of 100 Mbit/s would be without a reason."""
    access, slow = {"rate": "20Mbps", "delay": "1ms"}, {"rate": "8Mbps", "delay": "1ms"}
    tcp = {"tcp": "linux"}
    cbr = {"udp": "cbr", "rate": "20Mbps"}

    def said(*flows: dict[str, Any]) -> list[str]:
        found = summarize(perhop.run(network(list(flows), "100Mbps"), runs=1)).limited
        return [sentence for sentence in found if "access" in sentence]

    assert said(
        {"name": "home", "transport": tcp, "access": access},
        {"name": "phones", "count": 2, "transport": tcp, "access": access, "egress": slow},
        {"name": "udp", "transport": cbr, "access": access},
    ) == [
        "home was limited by its access link, 20 Mbit/s, of which it used 100 %; `access`.",
        "All 2 flows of phones were limited by their access link, 8 Mbit/s, up to 100 % used; `egress`.",
    ]
    assert not said({"name": "office", "transport": tcp, "access": {**access, "rate": "1Gbps"}})
