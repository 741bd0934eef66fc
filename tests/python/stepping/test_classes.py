"""Classes in Python in simulations that are stepped through, and driven by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.python.plugins.profiles import Bucket
from tests.python.plugins.rules import Blue, Keeper
from tests.python.stepping.test_stepping import SCENARIO, same

import perhop
from perhop import Aqm, BlockError, Depth, PerhopError, Verdict, gym

if TYPE_CHECKING:
    from perhop._engine import Queue

BLUE = Blue(limit="30p")


class Late(Aqm):
    """Passes everything until a time, and fails then."""

    limit: Depth
    until: float = 2.0

    def on_arrival(self, packet: object, queue: Queue, now: int, random: object) -> Verdict:
        del packet, random
        if now > self.until * 1e9:
            raise ZeroDivisionError("too late")
        return Verdict.OVERFLOW if queue.is_full(self.limit) else Verdict.PASS


def scenario(queue: object) -> dict[str, Any]:
    network: dict[str, Any] = json.loads(json.dumps(SCENARIO))
    network["links"]["uplink"]["queue"] = queue
    return network


@pytest.mark.parametrize("engine", ["reference", "batched"])
def test_stops_change_nothing(engine: perhop.runs.extent.Engine) -> None:
    unbroken = perhop.run(scenario(BLUE), runs=1, engine=engine)
    simulation = perhop.Simulation(scenario(BLUE), seed=1, engine=engine)
    for stop in (0.2, 0.2001, 1, 3.7, 5):
        simulation.run_until(stop)
    assert same(simulation.finish(), unbroken)


def test_a_snapshot_has_objects_of_its_own() -> None:
    simulation = perhop.Simulation(scenario(BLUE), seed=1)
    simulation.run_until("2s")
    half_way = simulation.snapshot()
    probability = simulation.links["uplink"].queue.gauges["probability"]
    once = simulation.finish()
    assert simulation.links["uplink"].queue.gauges["probability"] != probability
    simulation.restore(half_way)
    assert simulation.links["uplink"].queue.gauges["probability"] == probability
    assert same(simulation.finish(), once)


def test_a_class_that_fails_ends_its_simulation_and_no_other() -> None:
    simulation = perhop.Simulation(scenario(Late(limit="30p")), seed=1)
    early = simulation.run_until("1s").snapshot()
    with pytest.raises(BlockError, match=r"Late.*2\.\d+ s.*too late"):
        simulation.run_until("3s")
    with pytest.raises(PerhopError, match="cannot go on; `restore` an earlier snapshot"):
        simulation.run_until("4s")
    simulation.restore(early)
    simulation.run_until("1.5s")
    assert simulation.now == 1.5
    assert simulation.links["uplink"].queue.arrived.total > 0
    with pytest.raises(BlockError, match="too late"):
        simulation.finish()


CHANGES = {1.0: ("increment", 0.1), 2.0: ("limit", "12p"), 3.5: ("decrement", 0.05)}
"""Of BLUE, by the time in s."""


@pytest.mark.parametrize("engine", ["reference", "batched"])
def test_parameters_of_a_class_change_during_a_run_as_those_of_the_built_in_rule(engine: Any) -> None:  # noqa: ANN401
    def changed(rule: object, changes: dict[float, tuple[str, Any]]) -> perhop.Result:
        simulation = perhop.Simulation(scenario(rule), seed=1, engine=engine)
        for time, (key, value) in changes.items():
            simulation.run_until(time).set(f"links.uplink.queue.{key}", value)
        return simulation.finish()

    built_in = perhop.scenario.Blue(limit="30p")
    assert same(changed(BLUE, CHANGES), changed(built_in, CHANGES))
    assert not same(changed(BLUE, CHANGES), changed(BLUE, {}))


def test_parameters_of_a_class_change_in_a_copy_alone() -> None:
    simulation = perhop.Simulation(scenario(BLUE), seed=1).run_until("1s")
    before = simulation.snapshot()
    simulation.set("links.uplink.queue.limit", "9p")
    for key, value, problem in (
        ("limit", 9, "expected text in quotes: a depth with its unit, not 9"),
        ("class", "tests.python.plugins.rules:Tail", "class"),
        ("aqm", "red", "the kind of"),
    ):
        with pytest.raises(PerhopError, match=problem):
            simulation.set(f"links.uplink.queue.{key}", value)
    found = simulation.finish()
    simulation.restore(before)
    assert same(simulation.finish(), perhop.run(scenario(BLUE), runs=1))
    assert not same(found, perhop.run(scenario(BLUE), runs=1))


@pytest.mark.parametrize("engine", ["reference", "batched"])
def test_parameters_of_a_meter_change_during_a_run_as_those_of_the_built_in_one(engine: Any) -> None:  # noqa: ANN401
    def changed(meter: object) -> perhop.Result:
        network = scenario({"aqm": "drop-tail", "limit": "30p"})
        network["links"]["uplink"]["meters"] = [{"name": "m", "profile": meter, "promote": True}]
        simulation = perhop.Simulation(network, seed=1, engine=engine).run_until("2s")
        key = "links.uplink.meters.m.profile"
        return simulation.set(f"{key}.burst", "3kB").run_until("4s").set(f"{key}.rate", "2Mbps").finish()

    built_in = perhop.scenario.TokenBucket(rate="1Mbps", burst="20kB")
    found, expected = changed(Bucket(rate="1Mbps", burst="20kB")), changed(built_in)
    (link,), (other,) = ([run.link("uplink") for run in one.runs] for one in (found, expected))
    # Tokens of the time since the last packet come at the new rate here, and at the old one there.
    assert np.allclose(link["measured"]["sent"], other["measured"]["sent"], atol=3)
    assert min(link["measured"]["sent"][:2]) > 300


def test_what_a_class_keeps_of_a_call_stays_as_it_was() -> None:
    simulation = perhop.Simulation(scenario(Keeper(limit="30p")), seed=1).run_until("2s")
    seen = simulation.links["uplink"].queue.gauges
    assert seen["packets"] > 100
    assert (seen["of another size"], seen["of another queue"]) == (0, 0)
    half_way = simulation.snapshot()
    once = simulation.finish()
    assert same(simulation.restore(half_way).finish(), once)


def test_random_numbers_are_drawn_in_the_call_that_gets_the_stream() -> None:
    with pytest.raises(
        BlockError, match=r"Keeper: gauges at .*`random` draws during the call .*\(rules\.py:"
    ):
        perhop.Simulation(scenario(Keeper(limit="30p", draws=True)), seed=1).run_until("2s")


def test_an_environment_sets_a_parameter_of_a_class() -> None:
    increment = gym.Parameter("increment", 0.001, 0.5, log=True)
    env = gym.AqmEnv(scenario(BLUE), parameters=[increment])
    env.reset(seed=1)
    for setting in (0.0, 1.0):
        env.step(np.array([setting], dtype=np.float32))
    values = [change.value for change in env.simulation.changes]
    assert values[-2:] == [0.001, 0.5]


def test_a_class_decides_by_hand_as_the_built_in_rule_does() -> None:
    ours = perhop.drive(BLUE, rate="4Mbps", seed=3)
    built_in = perhop.drive(perhop.scenario.Blue(limit="30p"), rate="4Mbps", seed=3)
    dropped = 0
    for number in range(3000):
        time = number * 1e-3
        decision, expected = ours.offer(at=time), built_in.offer(at=time)
        assert decision.verdict == expected.verdict
        dropped += decision.verdict == "drop"
        if number % 2:
            assert ours.departure(at=time).packet == built_in.departure(at=time).packet
    assert ours.length == built_in.length
    assert dropped > 100


def test_a_class_within_a_scheduler_is_driven_by_hand() -> None:
    scheduler = {
        "scheduler": "priority",
        "queues": [
            {"name": "first", "match": {"dscp": 46}, "rule": BLUE},
            {"name": "rest", "rule": {"aqm": "drop-tail", "limit": "5p"}},
        ],
    }
    queue: Any = perhop.drive(scheduler)
    queue.offer(at=0, dscp=0)
    queue.offer(at=0, dscp=46)
    sent = queue.departure(at=0).packet
    assert sent is not None
    assert sent.dscp == 46


def test_what_a_class_raises_by_hand_names_it() -> None:
    queue = perhop.drive(Late(limit="5p", until=1.0))
    assert queue.offer(at=0.5).verdict == "pass"
    with pytest.raises(BlockError, match=r"Late.*1\.50* s.*too late"):
        queue.offer(at=1.5)


def test_a_wrong_parameter_is_refused_by_hand() -> None:
    with pytest.raises(PerhopError, match="limit"):
        perhop.drive({"aqm": "tests.python.plugins.rules:Blue", "limit": "many"})


def test_a_class_within_a_scheduler_that_changes_goes_on_as_the_built_in_rule_does() -> None:
    found = []
    for rule in (BLUE, perhop.scenario.Blue(limit="30p")):
        queue = {"scheduler": "shaper", "rate": "3Mbps", "burst": "3kB", "queue": rule.to_dict()}
        simulation = perhop.Simulation(scenario(queue), seed=1).run_until("1s")
        simulation.set("links.uplink.queue.rate", "1Mbps")
        (run,) = simulation.finish().runs
        found.append(run.link("uplink")["measured"])
    assert repr(found[0]) == repr(found[1])
    assert sum(sum(packets) for packets in found[0]["dropped"].values()) > 0
