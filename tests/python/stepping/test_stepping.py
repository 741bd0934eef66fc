"""`perhop.Simulation`: stops, readings, changes, snapshots."""

from __future__ import annotations

import copy
import json
import math
import pickle
import random
import signal
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import perhop
from perhop.errors import PerhopError, PerhopWarning
from perhop.stepping.simulation import ByColor

if TYPE_CHECKING:
    from collections.abc import Iterator

SCENARIO: dict[str, Any] = {
    "duration": "6s",
    "warmup": "1s",
    "probes": {"interval": "500ms"},
    "links": {
        "uplink": {
            "from": "a",
            "to": "b",
            "rate": "4Mbps",
            "delay": "10ms",
            "queue": {"aqm": "red", "thresholds": "5/15/0.1", "limit": "60p"},
        }
    },
    "flows": [
        {"name": "bulk", "count": 3, "from": "a", "to": "b", "transport": {"tcp": "linux"}},
        {
            "name": "video",
            "from": "a",
            "to": "b",
            "start": "0s",
            "transport": {"udp": "cbr", "rate": "1Mbps", "jitter": 0},
        },
    ],
}


def same(one: perhop.Result, other: perhop.Result) -> bool:
    """Whether two results have the same bytes, but for which engine ran and what it cost."""

    def kept(value: Any) -> Any:  # noqa: ANN401 - whatever a result holds
        if isinstance(value, np.ndarray):
            return (value.dtype.str, value.shape, value.tobytes())
        if isinstance(value, dict):
            skipped = ("events", "engine", "engine_reason")
            return {key: kept(inner) for key, inner in value.items() if key not in skipped}
        return [kept(inner) for inner in value] if isinstance(value, list | tuple) else repr(value)

    return [kept(dict(run.raw)) for run in one.runs] == [kept(dict(run.raw)) for run in other.runs]


@pytest.mark.parametrize("engine", ["reference", "batched"])
def test_random_stops_change_nothing(engine: Any) -> None:  # noqa: ANN401 - a literal
    whole = perhop.run(SCENARIO, seed=3, engine=engine, runs=1)
    chance = random.Random(5)  # noqa: S311 - stops of a test
    for _ in range(5):
        sim = perhop.Simulation(SCENARIO, seed=3, engine=engine)
        for _ in range(chance.randrange(20)):
            sim.run_until(chance.uniform(0, 7))
            assert sim.links["uplink"].queue.length >= 0
        assert same(sim.finish(), whole)
        assert sim.is_done


def test_readings_agree_with_the_result() -> None:
    sim = perhop.Simulation({**SCENARIO, "warmup": "0s"}, seed=2)
    assert (sim.now, sim.end, sim.is_done) == (0.0, 6.0, False)
    result = sim.run_until("6s").finish()
    link, flows = result.links.row(0, named=True), result.flows
    queue = sim.links["uplink"].queue
    assert (link["arrived_packets"], link["dropped_packets"]) == (queue.arrived.total, queue.drops)
    assert queue.arrived.total == queue.sent.total + queue.drops + queue.length
    assert queue.arrived == ByColor(0, queue.arrived.yellow, 0)
    assert list(queue.gauges) == ["average total"]
    assert list(sim.flows) == ["bulk/0", "bulk/1", "bulk/2", "video/0"]
    assert [flow.delivered_bytes for flow in sim.flows.values()] == flows["delivered_bytes"].to_list()
    video, bulk = sim.flows["video"], sim.flows["bulk/1"]
    assert (video.name, video.window, video.smoothed_rtt_s) == ("video/0", None, None)
    assert video.last_transit_s is not None
    assert video.last_transit_s > 0.01
    assert bulk.window is not None
    assert bulk.window >= 1
    assert bulk.smoothed_rtt_s is not None
    assert 0.02 < bulk.smoothed_rtt_s < 1
    # One packet of 1000 bytes each 8 ms.
    assert abs(video.sent - 6 / 0.008) <= 2


def test_iteration_gives_the_samples_of_the_probe() -> None:
    sim = perhop.Simulation(SCENARIO, seed=1)
    samples = list(sim)
    assert [sample.time_s for sample in samples] == [0.5 * n for n in range(1, 13)]
    result = sim.finish()
    queue = result.queues.filter(result.queues["quantity"] == "queue").sort("time_s")
    column = next(name for name in queue.columns if name not in ("seed", "time_s", "link", "quantity"))
    assert [sample.links["uplink"].queue.length for sample in samples] == queue[column].to_list()
    assert [round(s.time_s, 6) for s in perhop.Simulation(SCENARIO).run_until("5.7s").samples("0.1s")] == [
        5.8, 5.9, 6.0,
    ]  # fmt: skip
    without = {key: value for key, value in SCENARIO.items() if key != "probes"}
    with pytest.raises(PerhopError, match="no probe"):
        iter(perhop.Simulation(without))


def test_what_is_set_acts_from_then_on() -> None:
    sim = perhop.Simulation(SCENARIO, seed=1).run_until("3s")
    start = sim.snapshot()
    average = sim.links["uplink"].queue.gauges["average total"]
    sim.set("links.uplink.queue.max_p", 0)
    assert sim.links["uplink"].queue.gauges["average total"] == average
    before = sim.links["uplink"].queue.dropped["early"].total
    assert before > 0
    sim.run_until("6s")
    assert sim.links["uplink"].queue.dropped["early"].total == before
    assert [(change.time_s, change.key, change.value) for change in sim.changes] == [
        (3.0, "links.uplink.queue.max_p", 0)
    ]
    # Back, and another way: the same thresholds by their own key change nothing.
    sim.restore(start).set("links.uplink.queue.thresholds", "5/15/0.1")
    assert same(sim.finish(), perhop.run(SCENARIO, seed=1, runs=1))
    sim.restore(start)
    assert sim.changes == ()
    sim.set("links.uplink.queue.thresholds.min", 0).set("links.uplink.queue.thresholds.max", 1)
    sim.set("links.uplink.rate", "1Mbps").set("links.uplink.delay", "3ms").set(
        "flows.video.transport.rate", "2Mbps"
    )
    link = sim.links["uplink"]
    assert (link.rate_bps, link.delay_s) == (1e6, 0.003)
    sent = sim.flows["video"].sent
    sim.run_for(1)
    # 2 Mbit/s is a packet of 1000 bytes each 4 ms.
    assert abs(sim.flows["video"].sent - sent - 250) <= 1
    assert sim.links["uplink"].queue.sent.total - link.queue.sent.total <= 126
    assert sim.links["uplink"].queueing_delay_s == sim.links["uplink"].queue.bytes * 8 / 1e6


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("links.uplink.queue.limt", "9p", "unknown"),
        ("links.uplnk.rate", "9Mbps", "did you mean `uplink`"),
        ("links.uplink.rate", "nine", "rate"),
        ("links.uplink.loss", 0.1, "cannot change during a run"),
        ("links.uplink.queue", {"aqm": "codel"}, "`codel` cannot replace another block during a run"),
        ("links.uplink.queue.thresholds", "5kB/15kB/0.1", "the average is in packets"),
        ("links.uplink.queue.thresholds", "15/5/0.1", "min"),
        ("links.uplink.queue.limit.max_p", 0.1, "no threshold set"),
        ("links.uplink.queue.weight", math.nan, "`nan`: expected a finite number"),
        ("flows.bulk.count", 4, "cannot change during a run"),
        ("flows.bulk.transport.tcp", "newreno", "cannot change during a run"),
        ("flows.video.transport.packet", "500B", "cannot change during a run"),
        ("duration", "7s", "cannot change during a run"),
        ("links.uplink.queue.aqm", "codel", "the kind of an AQM cannot change during a run"),
        ("flows.video.transport.udp", "poisson", "the kind of a transport cannot change during a run"),
    ],
)
def test_what_cannot_be_set_is_refused_and_changes_nothing(key: str, value: object, message: str) -> None:
    sim = perhop.Simulation(SCENARIO, seed=4).run_until("2s")
    with pytest.raises(PerhopError, match=message) as refused:
        sim.set(key, value)
    assert str(refused.value).startswith(f"set `{key}`")
    assert "\n" not in str(refused.value)
    assert same(sim.finish(), perhop.run(SCENARIO, seed=4, runs=1))


def test_a_snapshot_is_restored_any_number_of_times() -> None:
    sim = perhop.Simulation(SCENARIO, seed=9).run_until("2.5s")
    snapshot = sim.snapshot()
    assert repr(snapshot) == "Snapshot(now=2.5 s)"
    first = sim.run_until("4s").set("links.uplink.rate", "2Mbps").finish()
    again = sim.restore(snapshot).run_until("4s").set("links.uplink.rate", "2Mbps").finish()
    assert same(first, again)
    other = perhop.Simulation(SCENARIO, seed=1).restore(snapshot)
    assert same(other.finish(), perhop.run(SCENARIO, seed=9, runs=1))
    assert not same(first, perhop.run(SCENARIO, seed=9, runs=1))


def test_a_restored_simulation_has_the_scenario_and_the_seed_of_its_snapshot() -> None:
    shorter = {**SCENARIO, "duration": "3s"}
    kept = perhop.Simulation(shorter, seed=1).run_until("2s").snapshot()
    restored = perhop.Simulation(SCENARIO, seed=2).restore(kept)
    assert (restored.seed, restored.end) == (1, 3)
    result = restored.finish()
    assert result.runs[0].seed == 1
    assert same(result, perhop.run(shorter, seed=1, runs=1))


def test_wrong_arguments_are_refused_in_one_line() -> None:
    sim = perhop.Simulation({**SCENARIO, "duration": "2s"})
    wrong: list[tuple[Any, str]] = [
        (lambda: sim.set(None, 1), "set: a key is a text"),  # type: ignore[arg-type]
        (lambda: sim.set(3, 1), "set: a key is a text"),  # type: ignore[arg-type]
        (lambda: sim.restore(None), "restore: give what .* not NoneType"),  # type: ignore[arg-type]
        (lambda: sim.restore(sim), "restore: give what .* not Simulation"),  # type: ignore[arg-type]
        (lambda: copy.deepcopy(sim), "a simulation cannot be pickled or copied; snapshot"),
        (lambda: pickle.dumps(sim), "a simulation cannot be pickled or copied; snapshot"),
        (lambda: pickle.dumps(sim.snapshot()), "a snapshot cannot be pickled"),
    ]
    for call, message in wrong:
        with pytest.raises(PerhopError, match=message) as refused:
            call()
        assert "\n" not in str(refused.value)


def test_nothing_is_set_after_the_end() -> None:
    sim = perhop.Simulation({**SCENARIO, "duration": "2s"}).run_until("2s")
    with pytest.raises(PerhopError, match=r"set `links.uplink.rate`: the run is at its end, 2 s"):
        sim.set("links.uplink.rate", "2Mbps")
    assert sim.changes == ()


def test_what_is_set_is_warned_about_as_in_a_scenario_and_once() -> None:
    simulation = perhop.Simulation(SCENARIO, seed=1)
    simulation.run_until("1s")
    with pytest.warns(PerhopWarning, match="set `links.uplink.queue.limit`: .*no packet fits into the queue"):
        simulation.set("links.uplink.queue.limit", "0p")
    simulation.set("links.uplink.queue.limit", "40p").set("links.uplink.queue.limit", "0p")
    assert len(simulation.changes) == 3


def test_what_cannot_be_read_says_why() -> None:
    sim = perhop.Simulation(SCENARIO)
    for name, message in [
        ("bulk", "write `bulk/0`"),
        ("bulky", "there are: bulk, video"),
        ("bulk/3", "there are"),
    ]:
        with pytest.raises(PerhopError, match=message):
            sim.flows[name]
    with pytest.raises(PerhopError, match="no link `downlink` with a queue; there are: uplink"):
        sim.links["downlink"]
    for wrong in ("5", "five", -1, True, float("nan"), None):
        with pytest.raises(PerhopError, match="time"):
            sim.run_until(wrong)  # type: ignore[arg-type]
    with pytest.raises(PerhopError, match="every"):
        list(sim.samples(0))
    with pytest.raises(PerhopError, match="engine must be"):
        perhop.Simulation(SCENARIO, engine="fast")  # type: ignore[arg-type]
    batched = perhop.Simulation(SCENARIO, engine="batched").run_until("2s")
    assert batched.links["uplink"].queue.length == sim.run_until("2s").links["uplink"].queue.length
    with pytest.raises(PerhopError, match="use the reference engine"):
        batched.flows["video"]
    with pytest.raises(PerhopError, match="use the reference engine"):
        batched.set("links.uplink.rate", "2Mbps")
    assert batched.sample().flows == {}
    assert json.loads(batched.scenario)["duration"] == "6s"


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, which a shell switches off for programs in its background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_control_c_stops_a_step_and_the_run_goes_on_later() -> None:
    scenario = {**SCENARIO, "duration": "200000s", "warmup": "0s"}
    sim = perhop.Simulation(scenario)
    timer = threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        sim.run_until("200000s")
    timer.join()
    assert 0 < sim.now < 200_000
    stopped = sim.now
    sim.run_for("10ms")
    assert sim.now == pytest.approx(stopped + 0.01)
