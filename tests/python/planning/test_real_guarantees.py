"""Objectives of a plan that network calculus alone decides, with the engine's bounds, by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.python.planning.planned import done

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """\
runs = 2
objectives = ["{objective}"]
[scenario]
duration = "1s"
[scenario.links.edge]
from = "a"
to = "b"
rate = "10Mbps"
delay = "1ms"
queue = {{ aqm = "drop-tail", limit = "{limit}" }}
[[flows]]
name = "talk"
count = 4
transport = {{ udp = "cbr", rate = "80kbps", packet = "250B" }}
[growth]
demands = ["talk"]
most = 2
"""
"""A packet takes 0.2 ms on the link: of n flows at once the last waits for n − 1, and takes 1 ms more."""


def now(tmp_path: Path, objective: str, limit: str = "60p") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done(tmp_path, PLAN.format(objective=objective, limit=limit)).json())[
        "now"
    ]
    return found


@pytest.mark.parametrize(
    ("objective", "limit", "state", "bound"),
    [
        ("worst case of `talk` < 1.81 ms", "60p", "holds", 1.8e-3),
        ("worst case of `talk` < 1.79 ms", "60p", "breaks", 1.8e-3),
        ("worst case of edge < 0.61 ms", "60p", "holds", 0.6e-3),
        ("worst case of edge < 0.59 ms", "60p", "breaks", 0.6e-3),
        ("no loss of talk", "60p", "holds", 1.0),
        ("no loss of talk", "2p", "breaks", 0.0),
    ],
)
def test_the_bound_decides(objective: str, limit: str, state: str, bound: float, tmp_path: Path) -> None:
    (row,) = now(tmp_path, objective, limit)["objectives"]
    assert (row["state"], row["guaranteed"]) == (state, pytest.approx(bound, abs=1e-8))


def test_growth_ends_where_the_bound_does(tmp_path: Path) -> None:
    """A fifth call makes the longest wait 0.8 ms, a sixth 1 ms."""
    (limit,) = now(tmp_path, "worst case of edge < 0.9 ms")["growth"]
    assert limit["guaranteed_up_to"]["values"] == {"flows.talk.count": 5}
    assert limit["breaks_at"]["values"] == {"flows.talk.count": 6}
