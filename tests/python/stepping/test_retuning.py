"""`perhop.Simulation.set` on schedulers and meters."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from tests.python.stepping.test_stepping import same

import perhop
from perhop.errors import PerhopError
from perhop.scenario import paths
from perhop.stepping import changing

if TYPE_CHECKING:
    from perhop.runs.extent import Engine

RULE = {"aqm": "drop-tail", "limit": "40p"}
RED = {"aqm": "red", "thresholds": "5/15/0.1", "limit": "40p"}
GOLD: dict[str, Any] = {"name": "gold", "match": {"dscp": ["AF11", "AF12", "AF13"]}, "rule": RULE}
REST: dict[str, Any] = {"name": "rest", "rule": RED}
QUEUES: dict[str, dict[str, Any]] = {
    "edf": {"scheduler": "edf", "blue": "80ms", "green": "10ms", "rule": RED},
    "dsd": {"scheduler": "dsd", "bound": "20ms", "control": "1s", "rule": RED},
    "priority": {"scheduler": "priority", "queues": [{**GOLD, "cap": "1Mbps"}, REST]},
    "priority-tsw": {
        "scheduler": "priority",
        "meter": "tsw",
        "excess": "idle",
        "queues": [{**GOLD, "cap": "1Mbps"}, REST],
    },
    "drr": {"scheduler": "drr", "queues": [{**GOLD, "weight": 2}, {**REST, "weight": 3}]},
    "wfq": {
        "scheduler": "wfq",
        "queues": [{**GOLD, "rate": "1Mbps", "queue-protection": {}}, {**REST, "weight": 3}],
    },
    "fq-codel": {"scheduler": "fq-codel", "limit": "50p"},
    "shaper": {"scheduler": "shaper", "rate": "3Mbps", "burst": "3kB", "queue": RED},
    "dualpi2": {"scheduler": "dualpi2", "queue-protection": {}},
    "htb": {
        "scheduler": "htb",
        "classes": [
            {
                "name": "link",
                "rate": "4Mbps",
                "classes": [
                    {**GOLD, "rate": "1Mbps", "ceil": "3Mbps", "queue": RULE},
                    {**REST, "rate": "2Mbps", "ceil": "4Mbps", "queue": RED},
                ],
            }
        ],
    },
    "llq": {"scheduler": "llq", "priority": [{**GOLD, "rate": "1Mbps"}], "queue": RED},
}
for _class in QUEUES["htb"]["classes"][0]["classes"]:
    del _class["rule"]
METERS: dict[str, dict[str, Any]] = {
    "token-bucket": {"burst": "20kB"},
    "tsw": {"window": "200ms"},
    "three-precedence": {"window": "200ms"},
    "srtcm": {"burst": "20kB", "excess-burst": "20kB"},
    "trtcm": {"burst": "20kB", "peak-rate": "2Mbps", "peak-burst": "20kB"},
    "rfc4115": {"burst": "20kB", "excess-rate": "1Mbps", "excess-burst": "20kB"},
    "tswtcm": {"peak-rate": "2Mbps", "window": "200ms"},
}


def scenario(queue: dict[str, Any] = RED, marker: str = "token-bucket") -> dict[str, Any]:
    """Two flows under a profile and two of best effort, over one link, with a meter there."""
    ends: dict[str, Any] = {"from": "a", "to": "b", "transport": {"tcp": "linux"}, "start": "0s"}
    profile = {"marker": marker, "rate": "500kbps", **METERS[marker]}
    policer = {**profile, "rate": "1Mbps", "out": "drop"}
    access = {"rate": "20Mbps", "delay": "5ms"}
    rest: dict[str, Any] = {"name": "rest", "count": 2, **ends}
    if queue.get("scheduler") in ("edf", "dsd"):
        rest |= {"service": "green"}
    elif queue.get("scheduler") == "dualpi2":
        rest |= {"transport": {"tcp": "linux", "congestion": "prague"}, "ecn": "accurate"}
    return {
        "duration": "4s",
        "warmup": "0s",
        "links": {
            "l": {
                "from": "a",
                "to": "b",
                "rate": "4Mbps",
                "delay": "10ms",
                "queue": queue,
                "meters": [{"name": "m", "match": {"dscp": [0, 3]}, "profile": policer}],
            }
        },
        "flows": [
            {"name": "gold", "count": 2, **ends, "access": access, "profile": profile},
            {"name": "edge", **ends, "profile": "shared"},
            rest,
        ],
        "profiles": {"shared": profile},
    }


def test_every_scheduler_and_meter_is_here() -> None:
    blocks = json.loads(perhop._engine.blocks())

    def names(role: str) -> set[str]:
        return {block["name"] for block in blocks if block["role"] == role}

    # A FIFO is a queue without a scheduler. A class is refused, and of twam others read the only parameter.
    assert {queue["scheduler"] for queue in QUEUES.values()} | {"fifo"} == names("scheduler")
    assert set(METERS) | {"python", "twam"} == names("meter")


def settable(table: dict[str, Any]) -> list[tuple[str, Any]]:
    """All parameters of schedulers and meters that the scenario gives, each with its value."""
    listing = changing.settable(table, "links.l.queue", most=1000)
    found = listing.removeprefix("these can be set: ").split(", ")
    return [
        (path, value)
        for path in found
        if not path.endswith(("l.rate", "l.delay")) and (value := changing.at(table, path)) is not None
    ]


@pytest.mark.parametrize("engine", ["reference", "batched"])
@pytest.mark.parametrize(
    ("queue", "marker"), [*((name, "token-bucket") for name in QUEUES), *(("drr", name) for name in METERS)]
)
def test_a_value_that_is_set_to_what_it_was_changes_nothing(queue: str, marker: str, engine: Engine) -> None:
    table = scenario(QUEUES[queue], marker)
    canonical = json.loads(perhop.scenario.reading.canonical(table))
    whole = perhop.run(table, seed=5, engine=engine, runs=1)
    sim = perhop.Simulation(table, seed=5, engine=engine).run_until("1.5s")
    tried = settable(canonical)
    assert len(tried) > 5
    for path, value in tried:
        sim.set(path, value)
    # The whole scheduler gets its parameters anew, although one of them has changed in between, and back.
    sim.set("links.l.meters.m.profile.rate", "2Mbps").set("links.l.meters.m.profile.rate", "1Mbps")
    assert same(sim.finish(), whole)


def moved(table: dict[str, Any], changes: dict[str, Any], engine: Engine = "reference") -> perhop.Simulation:
    """A simulation at 2 s, with what is set at the start."""
    sim = perhop.Simulation(table, seed=3, engine=engine)
    for path, value in changes.items():
        sim.set(path, value)
    return sim.run_until("2s")


@pytest.mark.parametrize(
    ("queue", "changes"),
    [
        ("wfq", {"queues.gold.rate": "2Mbps", "queues.rest.weight": 1}),
        ("drr", {"queues.gold.weight": 5, "quantum": "3kB"}),
        ("priority", {"queues.gold.cap": "2Mbps", "excess": "idle"}),
        ("shaper", {"rate": "2Mbps"}),
        ("htb", {"classes.link.classes.gold.ceil": "1Mbps", "classes.link.classes.rest.rate": "3Mbps"}),
        ("fq-codel", {"target": "4ms", "quantum": "300B"}),
        ("dualpi2", {"target": "3ms"}),
        ("edf", {"blue": "200ms"}),
        ("dsd", {"bound": "5ms"}),
        ("llq", {"priority.gold.police": "always"}),
    ],
)
def test_what_is_set_at_the_start_is_what_the_scenario_says_on_both_engines(
    queue: str, changes: dict[str, Any]
) -> None:
    table = scenario(QUEUES[queue])
    other = json.loads(perhop.scenario.reading.canonical(table))
    changed = {f"links.l.queue.{path}": value for path, value in changes.items()}
    for path, value in changed.items():
        paths.put(other, path, value, "")
    expected = perhop.run(other, seed=3, runs=1)
    assert not same(expected, perhop.run(table, seed=3, runs=1))
    for engine in ("reference", "batched"):
        assert same(moved(table, changed, engine).finish(), expected), engine


@pytest.mark.parametrize("marker", METERS)
def test_the_rate_of_a_profile_that_is_set_at_the_start_is_the_scenarios(marker: str) -> None:
    table = scenario(RED, marker)
    other = json.loads(perhop.scenario.reading.canonical(table))
    changed: dict[str, Any] = {
        "flows.gold.profile.rate": "800kbps",
        "profiles.shared.rate": "600kbps",
        "links.l.meters.m.profile.rate": "1500kbps",
    }
    for path, value in changed.items():
        paths.put(other, path, value, "")
    result = moved(table, changed).finish().runs[0].raw
    expected = perhop.run(other, seed=3, runs=1).runs[0].raw
    if "window" in METERS[marker]:
        # The estimates began at the rate of the start; nothing else distinguishes the two.
        assert not same_numbers(result, expected)
        expected = perhop.run(table, seed=3, runs=1).runs[0].raw
        assert not same_numbers(result, expected)
    else:
        assert same_numbers(result, expected)


def same_numbers(one: Any, other: Any) -> bool:  # noqa: ANN401 - what the engine measures
    """Whether flows and links have the same numbers; groups have the rate of the start."""
    pairs = [(one["flows"][key], other["flows"][key]) for key in one["flows"]]
    return repr(one["links"]) == repr(other["links"]) and all(repr(a) == repr(b) for a, b in pairs)


def test_both_engines_agree_on_what_is_set_during_a_run() -> None:
    for name, path, value in (
        ("shaper", "links.l.queue.rate", "1Mbps"),
        ("shaper", "links.l.queue.rate", "3900kbps"),
        ("wfq", "links.l.queue.queues.gold.rate", "3Mbps"),
        ("htb", "links.l.queue.classes.link.classes.gold.ceil", "1Mbps"),
        ("llq", "links.l.queue.priority.gold.rate", "100kbps"),
        ("drr", "links.l.meters.m.profile.rate", "100kbps"),
    ):
        found = [
            perhop.Simulation(scenario(QUEUES[name]), seed=2, engine=engine)
            .run_until("1.7s")
            .set(path, value)
            .run_until("2.9s")
            .set(path, value)
            .finish()
            for engine in ("reference", "batched")
        ]
        assert same(*found), (name, path)
        assert not same(found[0], perhop.run(scenario(QUEUES[name]), seed=2, runs=1)), (name, path)


def test_packets_that_wait_stay_and_the_next_ones_leave_at_the_new_rate_by_hand() -> None:
    # 3.9 Mbit/s into a shaper of 1 Mbit/s: it is full after a moment, and sends a packet each 8 ms.
    cbr = {"udp": "cbr", "rate": "3900kbps", "packet": "1000B", "jitter": 0}
    shaper = {
        "scheduler": "shaper",
        "rate": "1Mbps",
        "burst": "1500B",
        "queue": {"aqm": "drop-tail", "limit": "50p"},
    }
    table = {
        "duration": "4s",
        "warmup": "0s",
        "links": {"l": {"from": "a", "to": "b", "rate": "4Mbps", "delay": "1ms", "queue": shaper}},
        "flows": [{"name": "f", "from": "a", "to": "b", "transport": cbr, "start": "0s"}],
    }
    for engine in ("reference", "batched"):
        sim = perhop.Simulation(table, seed=1, engine=engine).run_until("1s")
        one = sim.links["l"].queue
        assert one.length >= 49
        sim.set("links.l.queue.rate", "2Mbps")
        assert sim.links["l"].queue == one
        sim.run_until("2s")
        two = sim.links["l"].queue
        # 2 Mbit/s for a second are 250 packets; one more was in transmission or about to be.
        assert abs(two.sent.total - one.sent.total - 250) <= 1
        sim.set("links.l.queue.queue.limit", "10p").run_until("3s")
        assert sim.links["l"].queue.length == 10


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("links.l.queue.queues.gold.weight", 0, "weight"),
        ("links.l.queue.queues.gold.weight", math.inf, "`inf`: expected a finite number"),
        ("links.l.queue.queues.gold.weight", {"a": [math.nan]}, "`nan`: expected a finite number"),
        ("links.l.queue.queues.gold.rate", "2Mbps", "either a guaranteed `rate` or a `weight`"),
        ("links.l.queue.queues.gold.name", "silver", "cannot change during a run"),
        ("links.l.queue.queues.gold.match", {"dscp": 3}, "cannot change during a run"),
        ("links.l.queue.queues.silver.weight", 2, "`links.l.queue.queues` has no `silver`"),
        ("links.l.meters.m.profile.out", "mark", "cannot change during a run"),
        ("links.l.meters.m.profile.burst", "-1B", "burst"),
        ("links.l.meters.m.match", {"dscp": 1}, "cannot change during a run"),
        ("links.l.meters.m.profile.marker", "srtcm", "the kind of a meter cannot change during a run"),
        ("flows.gold.profile.out", "drop", "cannot change during a run"),
        ("flows.gold.transport.congestion.max", 1, "`flows.gold.transport.congestion` is no threshold set"),
        ("links.m.queue.quantum", "1kB", "these can be set: links.l.queue.quantum, .* and [0-9]+ more"),
        (
            "flows.gold.profil.rate",
            "1Mbps",
            "did you mean `profile`.*; these .* set: flows.gold.profile.rate",
        ),
    ],
)
def test_what_cannot_be_set_is_refused_in_one_line_and_changes_nothing(
    key: str, value: object, message: str
) -> None:
    table = scenario(QUEUES["drr"])
    sim = perhop.Simulation(table, seed=4).run_until("1s")
    with pytest.raises(PerhopError, match=message) as refused:
        sim.set(key, value)
    assert str(refused.value).startswith(f"set `{key}`: ")
    assert "scenario:" not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert same(sim.finish(), perhop.run(table, seed=4, runs=1))


def test_the_batched_engine_refuses_what_is_ahead_of_the_clock() -> None:
    sim = perhop.Simulation(scenario(), seed=4, engine="batched").run_until("1s")
    for key, value in (("flows.gold.profile.rate", "1Mbps"), ("links.l.rate", "1Mbps")):
        with pytest.raises(
            PerhopError, match="schedulers, AQMs and meters can change during a run; use the ref"
        ):
            sim.set(key, value)


def test_the_rate_of_a_profile_that_a_sender_knows_cannot_change() -> None:
    table = scenario()
    table["flows"][0]["transport"] = {"tcp": "two-windows"}
    sim = perhop.Simulation(table).run_until("1s")
    with pytest.raises(PerhopError, match="`gold/0`: its congestion control knows it"):
        sim.set("flows.gold.profile.rate", "1Mbps")
    sim.set("flows.gold.profile.burst", "1kB").run_until("2s")


def of_topology(**links: Any) -> dict[str, Any]:  # noqa: ANN401 - tables
    """Three routers in a row by a rule, and links beside it."""
    link = {"rate": "5Mbps", "delay": "1ms", "queue": RED}
    flow = {"name": "tcp", "from": "r1", "to": "r3", "transport": {"tcp": "newreno"}, "start": "0s"}
    return {"duration": "2s", "topology": {"chain": 3, "link": link}, "links": links, "flows": [flow]}


def test_a_link_of_a_topology_is_set_as_one_of_a_table() -> None:
    table = {"from": "r1", "to": "r2", "rate": "5Mbps", "delay": "1ms", "queue": RED}
    written = of_topology(**{"r1--r2": {**table, "reverse": {"queue": RED}}})
    results = []
    for start in (of_topology(), written):
        sim = perhop.Simulation(start).run_until("500ms")
        sim.set("links.r1--r2.rate", "2Mbps").set("links.r1--r2.queue.max_p", 0.5).run_until("1s")
        rates = [sim.links[name].rate_bps for name in ("r1--r2", "r1--r2 (reverse)", "r2--r3")]
        assert rates == [2e6, 2e6, 5e6]
        # What is set of all links is not of one that has its own.
        sim.set("topology.link.rate", "3Mbps").run_until("1s")
        rates = [sim.links[name].rate_bps for name in ("r1--r2", "r2--r3")]
        assert rates == [2e6, 3e6]
        results.append(sim.finish())
    assert results[0].flows.equals(results[1].flows)
    assert not results[0].flows.equals(perhop.run(of_topology(), runs=1).flows)


def test_what_can_be_set_of_a_topology_is_named() -> None:
    sim = perhop.Simulation(of_topology())
    with pytest.raises(PerhopError, match=r"did you mean `r1--r2`\?; these can be set: links.r1--r2.rate, "):
        sim.set("links.r1-r2.rate", "2Mbps")
    with pytest.raises(PerhopError, match=r"has no `hub--leaf1`; there are r1--r2, r2--r3; "):
        sim.set("links.hub--leaf1.rate", "2Mbps")
    with pytest.raises(PerhopError, match=r"these can be set: .*topology\.link\.rate"):
        sim.set("topology.lnk.rate", "2Mbps")
    with pytest.raises(PerhopError, match="the kind of an AQM cannot change"):
        sim.set("links.r1--r2.queue.aqm", "drop-tail")
    assert "r1--r2" not in json.loads(sim._scenario)["links"]
