"""What sweeps, searches and plans say of warm-ups that were found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import perhop
from perhop.sweeps.warm_ups import Found, sentences

LINK = {
    "from": "a",
    "to": "b",
    "rate": "2Mbps",
    "delay": "5ms",
    "queue": {"aqm": "drop-tail", "limit": "40p"},
}
FLOWS = [{"name": "tcp", "count": 2, "from": "a", "to": "b", "transport": {"tcp": "newreno"}}]
SCENARIO = {"duration": "20s", "links": {"uplink": LINK}, "flows": FLOWS}
HALF = "Half of the run is left out, as it has not settled by then, at "
SAID = "Warm-up, as `perhop run` finds it for each"


def _found(*seconds: float) -> list[Found]:
    """Warm-ups of runs of 20 s; whichever of these is half of that has not settled."""
    return [Found(f"limit = {place}p", one, one != 10) for place, one in enumerate(seconds)]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ((), []),
        ((0.0, 0.0), [f"{SAID} point that sets none: none is found, or the whole run counts."]),
        ((2.0, 2.0), [f"{SAID} point that sets none: 2 s."]),
        (
            (10.0, 2.5, 10.0),
            [
                f"{SAID} point that sets none: 2.5 to 10 s; set one `warmup` where they should not differ.",
                f"{HALF}2 of 4 points (limit = 0p, limit = 2p).",
            ],
        ),
        (
            (10.0,) * 4,
            [
                f"{SAID} point that sets none: 10 s.",
                f"{HALF}4 of 4 points (limit = 0p, limit = 1p, limit = 2p, …).",
            ],
        ),
    ],
)
def test_sentences(seconds: tuple[float, ...], said: list[str]) -> None:
    assert list(sentences(_found(*seconds), 4, "point")) == said


def test_where_the_whole_run_counts_is_named_with_the_reason(tmp_path: Path) -> None:
    flows = [*FLOWS, {**FLOWS[0], "name": "late", "count": 1}]
    plan = {"runs": 2, "metrics": ["links.uplink.loss"], "grid": {"flows.late.start": ["0s", "6s"]}}
    done = perhop.sweep({**plan, "scenario": {**SCENARIO, "flows": flows}}, store=tmp_path / "store")
    said = (
        "The whole run counts at 1 of 2 points (flows.late.start = 6s), as flows of `late` begin behind its "
        "first quarter."
    )
    assert said in " ".join(done.text().split())
    early, late = json.loads(done.json())["points"]
    assert "why" not in early
    assert (late["warmup_s"], late["settles"]) == (0, False)
    assert late["why"] == "flows of `late` begin behind its first quarter"


def _sentence(text: str) -> str:
    """The sentence, from whatever lines it is broken into."""
    words = " ".join(text.replace("\n", " ").split())
    assert SAID in words, words
    return words[words.index(SAID) :].partition(". ")[0]


def _seconds(scenario: dict[str, Any]) -> float:
    found = perhop.run(scenario, runs=1).warm_up
    assert found is not None
    return found.seconds


def test_sweeps_and_searches_tell_those_of_their_settings(tmp_path: Path) -> None:
    """The ones that `perhop.run` finds; of a scenario that sets one, nothing."""
    values = ["10p", "80p"]
    ends = sorted(
        _seconds({**SCENARIO, "links": {"uplink": {**LINK, "queue": {"aqm": "drop-tail", "limit": value}}}})
        for value in values
    )
    assert ends[0] < ends[1]
    span = f"{ends[0]:g} to {ends[1]:g} s"
    factors: dict[str, Any] = {"links.uplink.queue.limit": values}
    swept = {"runs": 2, "metrics": ["links.uplink.loss"], "grid": factors}
    done = perhop.sweep({**swept, "scenario": SCENARIO}, store=tmp_path / "store")
    assert span in _sentence(done.text())
    assert all(point["settles"] is True for point in json.loads(done.json())["points"])
    search = {
        "objectives": ["minimize links.uplink.delay_p95_s"],
        "trials": 4,
        "runs": 2,
        "validation-runs": 2,
        "search": factors,
    }
    tuned = perhop.tune({**search, "scenario": SCENARIO}, store=tmp_path / "store")
    assert span in _sentence(tuned.text())
    assert {trial["warmup_s"] for trial in json.loads(tuned.json())["trials"]} <= set(ends)
    given = {**SCENARIO, "warmup": "5s"}
    for result in (
        perhop.sweep({**swept, "scenario": given}, store=tmp_path / "store"),
        perhop.tune({**search, "scenario": given}, store=tmp_path / "store"),
    ):
        assert SAID not in result.text()
        assert "warmup_s" not in result.json()
