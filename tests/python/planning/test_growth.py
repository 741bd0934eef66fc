"""Growth: the bracket is right on known states, on a known limit, and against every level by brute force."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.python.planning.planned import BURSTY, POLICED, done

from perhop.bounds import deriving
from perhop.errors import PerhopError
from perhop.planning.growth import Bracket, Levels, Target, bracket, default_demands, demand_of, grown
from perhop.planning.job import together
from perhop.planning.verdicts import judge
from perhop.runs.companions import Gathered
from perhop.stores.metrics import simulate

if TYPE_CHECKING:
    from pathlib import Path

    from perhop.planning.job import Planned


def searched(states: list[bool | None]) -> tuple[Bracket, list[int]]:
    """The bracket of levels with these states, and which were looked at."""
    search = bracket(len(states) - 1)
    looked: list[int] = []
    answer: bool | None = None
    try:
        while True:
            level = search.send(answer if looked else None)
            looked.append(level)
            answer = states[level]
    except StopIteration as end:
        found: Bracket = end.value
        return found, looked


@given(st.integers(0, 80), st.integers(0, 80), st.integers(0, 80))
def test_a_bracket_is_exact_where_states_are_in_order(hold: int, unclear: int, broken: int) -> None:
    states: list[bool | None] = [True] * (hold + 1) + [None] * unclear + [False] * broken
    found, looked = searched(states)
    assert found == Bracket(hold, hold + unclear + 1 if broken else None)
    assert len(looked) == len(set(looked))
    assert 0 not in looked
    assert len(looked) <= 30


SCENARIO = {
    "flows": [
        {"name": "users", "count": 10, "application": {"model": "web"}},
        {"name": "pair", "count": 2, "transport": {"udp": "cbr", "rate": "2.5Mbps"}},
        {"name": "one", "transport": {"tcp": "linux"}},
        {"name": "two", "transport": {"tcp": "linux", "congestion": "dctcp"}},
        {"name": "load", "arrivals": {"load": 0.2}},
        {"name": "every", "arrivals": {"every": "100ms"}},
        {"name": "listed", "arrivals": {"list": [["1s", "1kB"]]}},
        {"name": "again", "replay": "x.pcap"},
    ]
}
LEVELS = Levels(2.0, 0.25)


def levels_of(*names: str) -> tuple[list[float], list[dict[str, str | int | float]]]:
    demand = demand_of(SCENARIO, names, "x", LEVELS, "plan.toml")
    return list(demand.levels), [demand.at(level) for level in demand.levels]


def test_counts_grow_by_whole_users_and_others_by_a_factor() -> None:
    assert [one["flows.users.count"] for one in levels_of("users")[1]] == [10, 12, 15, 19]
    assert [one["flows.pair.count"] for one in levels_of("pair")[1]] == [2, 3, 4]
    assert [one["flows.one.count"] for one in levels_of("one")[1]] == [1, 2]
    factors, loads = levels_of("load")
    assert factors[0] == 1
    assert factors[-1] == pytest.approx(2)
    assert all(b / a <= 1.25 + 1e-12 for a, b in itertools.pairwise(factors))
    assert loads[-1] == {"flows.load.arrivals.load": 0.4}
    assert levels_of("every")[1][-1] == {"flows.every.arrivals.every": "50ms"}
    assert levels_of("flows.pair.transport.rate")[1][-1] == {"flows.pair.transport.rate": "5Mbps"}
    assert levels_of("users", "load")[1][-1] == {"flows.users.count": 20, "flows.load.arrivals.load": 0.4}


def test_what_a_trace_gives_does_not_grow() -> None:
    assert default_demands(SCENARIO) == ["users", "pair", "one", "two", "load", "every"]
    for name, message in (
        ("listed", "are a list or a trace, which cannot grow"),
        ("again", "sends a capture again, which cannot grow"),
        ("usres", "`usres`: nothing is there; give the name of a group of flows"),
        ("flows.pair.transport.udp", "'cbr' is there"),
        ("flows.one.transport.congestion.estimation-gain", "nothing is there"),
        ("flows.two.transport.congestion.estimation-gain", "nothing is there"),
    ):
        with pytest.raises(PerhopError, match=message):
            demand_of(SCENARIO, (name,), name, LEVELS, "plan.toml")


def test_one_is_not_several() -> None:
    flows, users, rate = (
        Target("a", 1.0, "", whole=True, noun="flow"),
        Target("b", 1.0, "", whole=True, noun="user"),
        Target("c", 1.0, "Mbps", whole=False),
    )
    assert [one.shown(1.0) for one in (flows, users, rate)] == ["1 flow", "1 user", "1Mbps"]
    assert [one.shown(2.0) for one in (flows, users, rate)] == ["2 flows", "2 users", "2Mbps"]


def test_the_limit_of_a_policer_is_found_exactly(tmp_path: Path) -> None:
    found = done(tmp_path, POLICED)
    (limit,) = found.now.limits
    assert found.now.verdicts[0].holds
    assert (limit.demand.shown(limit.holds), limit.holds) == ("10 flows", 2.5)
    assert limit.breaks == 2.75
    assert [verdict.text for verdict in limit.first] == ["loss of sources < 1 %"]
    loss = limit.first[0].found
    assert loss is not None
    assert loss.mean == pytest.approx(0.05 / 1.1, rel=0.05)


def test_the_limit_of_a_rate_is_within_its_precision(tmp_path: Path) -> None:
    text = POLICED + '[growth]\ndemands = ["flows.sources.transport.rate"]\nprecision = "2%"\n'
    (limit,) = done(tmp_path, text).now.limits
    assert limit.breaks is not None
    # 4 sources reach the policer's rate at 2.625 times; 1 % of loss is allowed.
    assert limit.holds <= 2.625 / 0.99 * 1.01
    assert limit.breaks >= 2.625
    assert limit.breaks / limit.holds <= 1.02**3


def test_the_limit_agrees_with_a_run_of_every_level(tmp_path: Path) -> None:
    found = done(tmp_path, BURSTY)
    (limit,) = found.now.limits
    states: list[bool | None] = []
    for level in limit.demand.levels:
        scenario = grown(found.now.scenario, limit.demand.at(level), "brute force")
        runs = [simulate(scenario, seed) for seed in found.plan.seeds]
        values = zip(*(run.values for run in runs), strict=True)
        gathered = Gathered(dict(zip(runs[0].names, map(list, values), strict=True)))
        observed = {name: gathered.of(name) for name in found.plan.metrics}
        states.append(together([judge(bound, observed) for bound in found.plan.bounds]))
    assert states[0] is True
    assert False in states
    assert limit.bracket == Bracket(
        states.index(next(s for s in states if s is not True)) - 1, states.index(False)
    )
    assert len(limit.looked) < len(states) / 2
    for level, verdicts in limit.looked.items():
        assert together(verdicts) == states[level]


def test_all_demands_can_grow_together(tmp_path: Path) -> None:
    _, flows, sources = POLICED.partition("[[flows]]")
    text = POLICED + flows + sources.replace('"sources"', '"more"') + "[growth]\ntogether = true\n"
    limits = {limit.demand.name: limit for limit in done(tmp_path, text).now.limits}
    assert list(limits) == ["sources", "more", "all together"]
    both = limits["all together"]
    assert both.demand.at(both.holds) == {"flows.sources.count": 5, "flows.more.count": 5}
    assert limits["sources"].demand.shown(limits["sources"].holds) == "6 flows"


def test_what_breaks_today_is_left_out_of_growth(tmp_path: Path) -> None:
    both = '"loss of sources < 1 %", "throughput of sources > 1 Mbit/s"'
    text = POLICED.replace('"loss of sources < 1 %"', both)
    found = done(tmp_path, text)
    assert [verdict.state for verdict in found.now.verdicts] == ["holds", "breaks"]
    assert found.now.limits[0].breaks == 2.75
    said = " ".join(found.text().split())
    assert "1 of 2 objectives hold" in said
    assert "“throughput of sources > 1 Mbit/s” breaks already, and how far a demand can grow counts" in said
    none = done(tmp_path, POLICED.replace("loss of sources < 1 %", "throughput of sources > 1 Mbit/s"))
    assert not none.now.limits
    assert "No objective holds today" in none.text()
    assert json.loads(none.json())["now"]["growth"] == []


def said(found: Planned) -> str:
    """The text of a plan without its line breaks."""
    return " ".join(found.text().split())


def test_what_cannot_be_told_today_ends_growth_where_it_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three runs are too few for a rare loss, but growth must not pass the level at which it is sure."""
    monkeypatch.setattr(deriving, "MOST_PARTS", 0)  # bounds would tell
    loss = "loss of sources < 0.1 %"
    text = POLICED.replace('"loss of sources < 1 %"', f'"{loss}", "throughput of sources > 0.05 Mbit/s"')
    text = text.replace("runs = 30", "runs = 3")
    found = done(tmp_path, text)
    assert [verdict.state for verdict in found.now.verdicts] == ["cannot tell", "holds"]
    (limit,) = found.now.limits
    assert (limit.holds, limit.breaks) == (2.5, 2.75)
    assert f"“{loss}” breaks; today's runs cannot tell whether it holds, so it may break earlier." in said(
        found
    )
    known = json.loads(found.json())["now"]["growth"][0]
    assert known["cannot_be_told_today"] == known["first_to_break"] == [loss]
    little = done(tmp_path, text + "[growth]\nmost = 1.5\n")
    assert f"the most that was tried, if “{loss}” holds; today's runs cannot tell." in said(little)
