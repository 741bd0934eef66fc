"""Congestion controls in Python: windows as the compiled twins', needs, errors, and where they run."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pytest
from tests.python.plugins import controls
from tests.python.plugins.controls import Dctcp, Faulty, FirstAcks, Owner, Prague, Rate, Reno
from tests.python.plugins.test_plugins import same

import perhop
from perhop import BlockError, PerhopError, ScenarioError, _engine
from perhop.blocks import digests, plugins
from perhop.runs import one_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

MODULE = "tests.python.plugins.controls"
RED = {"aqm": "red", "thresholds": "5/15/0.1", "limit": "40p"}


def scenario(congestion: object, ecn: str = "off", **keys: object) -> dict[str, Any]:
    """Six TCP flows at 5 Mbit/s under RED, and one of another congestion control."""
    extra = {"duration": keys.pop("duration", "5s"), "warmup": "0s", "probes": {"interval": "100ms"}}
    ends: dict[str, Any] = {"from": "a", "to": "b"}
    tcp = {"tcp": "newreno", "congestion": congestion, **keys}
    flows = [
        {"name": "tcp", "count": 6, **ends, "transport": tcp, "ecn": ecn},
        {"name": "other", **ends, "transport": {"tcp": "newreno", "congestion": "cubic"}},
    ]
    return {
        **extra,
        "links": {"l": {**ends, "rate": "5Mbps", "delay": "20ms", "queue": {**RED, "ecn": ecn != "off"}}},
        "flows": flows,
    }


@pytest.mark.parametrize("engine", ["batched", "reference"])
@pytest.mark.parametrize("ecn", ["off", "classic"])
@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"sack": True},
        {"sack": True, "prr": True, "loss-detection": "rack", "initial-window": "10p"},
        {"tcp": "reno", "initial-ssthresh": "8p"},
        {"tcp": "ns-1998"},
        {"byte-counting": True, "delayed-ack": "40ms", "window": "12p"},
        {"handshake": True, "slow-start": "hystart++", "limited-transmit": True},
        {"pacing": "window"},
    ],
)
def test_reno_in_python_is_the_compiled_one_to_the_bit(keys: dict[str, Any], ecn: str, engine: Any) -> None:  # noqa: ANN401
    mine = perhop.run(scenario(Reno(), ecn, **keys), engine=engine, seed=3, runs=1)
    theirs = perhop.run(scenario("reno", ecn, **keys), engine=engine, seed=3, runs=1)
    (one,), (other,) = mine.runs, theirs.runs
    assert same(one.raw, other.raw)
    assert min(one.flows("delivered_packets")) > 50


@pytest.mark.parametrize("keys", [{}, {"sack": True}, {"delayed-ack": "40ms"}])
def test_dctcp_in_python_is_the_compiled_one_to_the_bit(keys: dict[str, Any]) -> None:
    ecn = "accurate" if keys.get("sack") else "classic"
    (mine,) = perhop.run(scenario(Dctcp(), ecn, **keys), runs=1).runs
    (theirs,) = perhop.run(scenario("dctcp", ecn, **keys), runs=1).runs
    assert same(mine.raw, theirs.raw)
    assert sum(mine.link("l")["measured"]["notified"]["early"]) > 50


@pytest.mark.parametrize("engine", ["batched", "reference"])
@pytest.mark.parametrize("keys", [{}, {"prr": True, "loss-detection": "rack"}, {"accecn": "ace"}])
def test_prague_in_python_is_the_compiled_one_to_the_bit(keys: dict[str, Any], engine: Any) -> None:  # noqa: ANN401
    found = []
    for congestion in (Prague(), "prague"):
        table = scenario(congestion, "accurate", sack=True, duration="15s", **keys)
        table["links"]["l"] |= {"delay": "5ms", "queue": {"scheduler": "dualpi2"}}
        found.append(perhop.run(table, engine=engine, seed=2, runs=1).runs[0])
    mine, theirs = found
    assert same(mine.raw, theirs.raw)
    # ECT(1): its packets join the L4S queue, which marks.
    l4s, classic = mine.link("l")["classes"]
    assert (l4s["name"], classic["name"]) == ("l4s", "classic")
    assert sum(sum(of) for of in l4s["measured"]["notified"].values()) > 50


def test_a_class_owns_its_recoveries() -> None:
    table = scenario(Owner(), sack=True)
    one, other = (perhop.run(table, engine=engine, runs=1).runs[0] for engine in ("batched", "reference"))
    assert same(one.raw, other.raw)
    # Its window is in force throughout: after a timeout it is one segment, else its own.
    simulation = perhop.Simulation(table, seed=1)
    windows = {sample.flows["tcp/0"].window for sample in simulation.samples("20ms") if sample.time_s > 1}
    assert windows <= {1.0, 12.0}
    assert sum(simulation.flows[f"tcp/{number}"].retransmitted or 0 for number in range(6)) > 50
    for tell, problem in (
        ("acks", "on_ack .*: an ACK of a recovery"),
        ("losses", "on_lost .*: True, a lost"),
    ):
        with pytest.raises(BlockError, match=problem):
            perhop.run(scenario(Owner(tell=tell), sack=True), runs=1)
    with pytest.raises(BlockError, match=r'`ack.pipe` is not measured; write NEEDS = \("recovery",\)'):
        perhop.run(scenario(Faulty(what="pipe"), sack=True), runs=1)


def test_a_population_and_an_application_have_a_control_for_each_connection() -> None:
    for extra in (
        {"arrivals": {"every": "200ms"}, "sizes": {"constant": "60kB"}},
        {"application": {"model": "web"}, "count": 5},
    ):
        found = []
        for congestion in (Reno(), "reno"):
            table = scenario(congestion, packet="1500B")
            table["flows"][0].pop("count")
            table["flows"][0] |= extra
            found.append(perhop.run(table, runs=1).runs[0])
        assert same(found[0].raw, found[1].raw)


def test_delivery_rates_pacing_and_chance_are_the_same_on_both_engines_and_any_number_of_jobs() -> None:
    table = scenario(Rate(), sack=True, duration="8s")
    engines: tuple[Any, ...] = ("batched", "reference")
    one, other = (perhop.run(table, engine=engine, runs=1).runs[0] for engine in engines)
    assert same(one.raw, other.raw)
    assert min(one.flows("delivered_packets")) > 50
    alone, together = (perhop.run(table, runs=4, jobs=jobs).runs for jobs in (1, 3))
    assert all(same(one.raw, other.raw) for one, other in zip(alone, together, strict=True))
    assert not same(alone[0].raw, alone[1].raw)


def test_a_run_can_be_stepped_through_copied_restored_and_its_link_changed() -> None:
    table = scenario(Rate(), sack=True)
    whole = perhop.run(table, runs=1).runs[0].flows("delivered_packets")
    simulation = perhop.Simulation(table, seed=1)
    simulation.run_until("2s")
    assert (simulation.flows["tcp/0"].window or 0) >= 4
    snapshot = simulation.snapshot()
    for _ in range(2):
        simulation.run_until("5s")
        assert list(simulation.finish().runs[0].flows("delivered_packets")) == list(whole)
        simulation.restore(snapshot)
    simulation.set("links.l.rate", "2Mbps").run_until("5s")
    changed = simulation.finish().runs[0].flows("delivered_packets")
    assert 0 < sum(changed) < sum(whole)


def test_its_parameters_can_be_set_during_a_run() -> None:
    simulation = perhop.Simulation(scenario(controls.Held()), seed=1)
    simulation.run_until("2s")
    fork = simulation.snapshot()
    assert simulation.flows["tcp/3"].window == 4
    simulation.set("flows.tcp.transport.congestion.segments", 9.5).run_until("3s")
    windows = {simulation.flows[f"tcp/{number}"].window for number in range(6)}
    assert 9.5 in windows <= {9.5, 1.0}, "1 after a timeout"
    simulation.restore(fork).run_until("3s")
    assert simulation.flows["tcp/3"].window == 4
    for key, value, problem in (
        ("segments", "wide", "congestion.segments: expected a number, not 'wide'"),
        ("control", "reno", "congestion.source: unknown key `source`"),
        ("class", f"{MODULE}:Reno", "has changed since this was written|unknown key `segments`"),
    ):
        with pytest.raises(PerhopError, match=problem):
            simulation.set(f"flows.tcp.transport.congestion.{key}", value)
    with pytest.raises(
        PerhopError, match=r"cannot change during a run; these can: .*congestion control in Python"
    ):
        simulation.set("flows.tcp.transport.window", "9p")
    assert simulation.run_until("4s").flows["tcp/3"].window == 4


def test_the_table_stands_under_congestion_and_says_what_the_class_needs() -> None:
    def table_of(transport: dict[str, Any]) -> Any:  # noqa: ANN401
        table = scenario("reno")
        table["flows"][0]["transport"] = transport
        return json.loads(perhop.scenario.reading.canonical(table))["flows"][0]["transport"]

    expected = {
        "control": "python",
        "class": f"{MODULE}:Rate",
        "needs": ["delivery", "pacing"],
        "source": digests.digest_of(Rate),
    }
    for transport in (
        {"tcp": "newreno", "congestion": Rate()},
        {"tcp": "newreno", "congestion": f"{MODULE}:Rate"},
        {"tcp": "newreno", "congestion": {"control": f"{MODULE}:Rate"}},
        {"tcp": f"{MODULE}:Rate"},
        perhop.scenario.Tcp(tcp="newreno", congestion=Rate()).to_dict(),
    ):
        assert table_of(transport)["congestion"] == expected
    again = table_of(table_of({"tcp": "linux", "congestion": Reno(left=0.7)}))
    assert (again["congestion"]["left"], again["sack"]) == (0.7, True)


@pytest.mark.parametrize(
    ("transport", "problem"),
    [
        ({"congestion": f"{MODULE}:Nothing"}, "congestion: `.*:Nothing`: module .* has no class"),
        ({"congestion": f"{MODULE}:Silent"}, r"`.*:Silent` has no method on_ack\(self, ack, now, random\)"),
        ({"congestion": {"control": f"{MODULE}:Reno", "left": 2}}, "congestion.left: "),
        ({"congestion": {"control": f"{MODULE}:Reno", "right": 2}}, "congestion.right: unknown key `right`"),
        (
            {"congestion": {"control": f"{MODULE}:Reno", "needs": ["pacing"]}},
            "congestion.needs: .*says this itself",
        ),
        (
            {"congestion": {"control": "reno", "left": 2}},
            "congestion.left: unknown key `left` .*: ecn-backoff",
        ),
        (
            {"congestion": {"control": "python"}},
            'congestion.class: names a class, such as class = "my_congestion_control:MyCongestionControl"',
        ),
        ({"congestion": "python"}, "congestion: `python` means a class; write which, such as"),
        ({"congestion": "renoo"}, "unknown value `renoo`; did you mean `reno`"),
        ({"congestion": f"{MODULE}:Needy"}, r"NEEDS is \('luck',\); write a tuple"),
        ({"congestion": f"{MODULE}:Taken"}, "`window` is state that the sender reads; rename the parameter"),
        (
            {"congestion": f"{MODULE}:Rate", "pacing": "window"},
            "pacing: `.*:Rate` paces at a rate of its own",
        ),
        ({"congestion": f"{MODULE}:Rate", "send-jitter": "1ms"}, "send-jitter: the congestion control paces"),
        ({"congestion": f"{MODULE}:Dctcp"}, "ecn: `.*:Dctcp` reduces its window by the share"),
        ({"congestion": f"{MODULE}:Prague"}, "ecn: `.*:Prague` requires exact counts of marks"),
        (
            {"congestion": f"{MODULE}:Owner", "sack": True, "prr": True},
            "prr: `.*:Owner` sets the window in recoveries itself",
        ),
        (
            {"congestion": f"{MODULE}:Owner", "idle-restart": "none"},
            "idle-restart: `.*:Owner` has a model of the path instead",
        ),
        ({"congestion": f"{MODULE}:Reno", "ecn-backoff": True}, "ecn-backoff: only `reno` or `cubic` has it"),
        ({"congestion": f"{MODULE}:Reno", "target-delay": "5ms"}, "target-delay: only `ledbat` has it"),
        ({"tcp": f"{MODULE}:Reno", "congestion": "cubic"}, "congestion: `tcp` names a class"),
        ({"congestion": "tests.python.plugins.rules:Blue"}, "is no subclass of perhop.CongestionControl"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(transport: dict[str, Any], problem: str) -> None:
    table = scenario("reno")
    table["flows"][0]["transport"] = {"tcp": "newreno", **transport}
    with pytest.raises(ScenarioError, match=r"scenario: flows\[0\]\..*" + problem):
        perhop.run(table, runs=1)


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("raises", r"ZeroDivisionError: .*\(controls.py:\d+\)"),
        ("changes the ack", "AttributeError: .*'delivered'.* not writable"),
        ("needs", r"AttributeError: `ack.rtt` is not measured; write NEEDS = \(\"delivery\",\) in the class"),
        ("paces", r"AttributeError: `pacing_rate` has no effect; write NEEDS = \(\"pacing\",\) in the class"),
        ("nothing", "`window` is None; it is a number"),
        ("a word", "`window` is 'wide'; it is a number"),
        ("nan", "`window` is NaN; it is a number of segments, at least 1"),
        ("infinity", "`window` is inf; it is a number of segments, at least 1"),
        ("none", "`window` is 0.5; it is a number of segments, at least 1"),
    ],
)
@pytest.mark.parametrize("engine", ["reference", "batched"])
def test_an_error_names_the_class_the_flow_and_the_time(what: str, problem: str, engine: Any) -> None:  # noqa: ANN401
    place = rf"^{MODULE}:Faulty: on_ack at flow `tcp/\d` at \d\.\d{{9}} s: "
    with pytest.raises(BlockError, match=place + problem):
        perhop.run(scenario(Faulty(what=what)), engine=engine, runs=1)


def test_an_error_before_the_run_names_the_flow() -> None:
    with pytest.raises(BlockError, match="Unready: __init__ at flow `tcp/0`: RuntimeError: not ready"):
        perhop.run(scenario(f"{MODULE}:Unready"), runs=1)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_class_that_loops_for_ever_can_be_cancelled(jobs: int) -> None:
    cancel = _engine.Cancel()
    threading.Timer(1.0, cancel.cancel).start()
    with pytest.raises(_engine.Cancelled):
        perhop.run(scenario(Faulty(what="loops")), runs=2, jobs=jobs, cancel=cancel)


def test_copies_and_pickles_keep_parameters_and_state() -> None:
    rate = Rate()
    rate.placed({"window": 3.0, "threshold": 9.0, "most": 64, "packet": 1500})
    rate.pacing_rate = 5e6
    for again in (pickle.loads(pickle.dumps(rate)), copy.deepcopy(rate)):  # noqa: S301 - its own pickle
        assert (again.window, again.most, again.pacing_rate) == (3.0, 64, 5e6)
    with pytest.raises(AttributeError, match="`pacing_rate` has no effect"):
        Reno().pacing_rate = 1.0


def test_the_harness_passes_sound_classes_and_refuses_others() -> None:
    def failures(block: plugins.Block) -> list[str]:
        table = json.dumps(block.to_dict())
        return [what for what, problem in _engine.check_congestion_control(table, 20) if problem]

    for sound in (Reno(), Dctcp(), Rate(), Prague(), Owner()):
        assert failures(sound) == []
    assert failures(controls.Forgetful()) == [
        "two runs with one seed decide alike",
        "a copy decides as its original",
    ]
    raises = "no sequence of calls raises an error, and each leaves a window of at least 1"
    assert failures(Faulty(what="none")) == [raises]


def test_a_package_registers_controls_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    group = plugins.GROUPS["congestion-control"]
    point = metadata.EntryPoint("packaged", f"{MODULE}:Reno", group)
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: [point] if group == point.group else [])
    monkeypatch.setattr(plugins, "_REGISTERED", {})
    (described,) = plugins.described()
    assert (described["name"], described["role"]) == ("packaged", "congestion-control")
    table = json.loads(perhop.scenario.reading.canonical(scenario("packaged")))
    assert table["flows"][0]["transport"]["congestion"]["class"] == f"{MODULE}:Reno"
    monkeypatch.setattr(
        metadata, "entry_points", lambda **_: [metadata.EntryPoint("reno", point.value, group)]
    )
    monkeypatch.setattr(plugins, "_REGISTERED", {})
    with pytest.raises(PerhopError, match=r"`reno` is a built-in congestion-control; give .* another NAME"):
        plugins.registered("congestion-control")


def test_its_module_is_sent_along_and_it_runs_on_one_thread() -> None:
    text = perhop.scenario.reading.canonical(scenario(Reno()))
    assert one_run.modules(text) == {MODULE}
    divided, why = _engine.division(text, 4)
    assert (divided, why) == (None, "classes in Python run on one thread")


def test_the_command_line_checks_lists_and_runs_a_class(perhop: Perhop, small: Path) -> None:
    (small.parent / "halver.py").write_text(
        "from perhop import CongestionControl, Probability\n"
        "class Halver(CongestionControl):\n"
        "    '''Halves at losses.'''\n"
        "    step: Probability = Probability(0.5)\n"
        "    def on_ack(self, ack, now, random):\n"
        "        self.window += self.step * ack.delivered / self.window\n",
        encoding="utf-8",
    )
    checked = perhop("check-block", "halver:Halver", "step=0.25", "--sequences", "20")
    assert "6 checks passed (20 sequences of calls)" in checked.out
    assert checked.code == 0
    listed = perhop("list", "blocks", "halver", "--plugin", "halver")
    assert "Halves at losses" in listed.out
    assert "congestion-control" in listed.out
    table = small.read_text(encoding="utf-8")
    assert 'tcp = "newreno"' in table
    small.write_text(
        table.replace('tcp = "newreno"', 'tcp = "newreno", congestion = { control = "halver", step = 2 }'),
        encoding="utf-8",
    )
    refused = perhop("run", small.name, "--plugin", "halver")
    assert refused.code == 2
    assert "congestion.step" in refused.err
    assert "Traceback" not in refused.err
    small.write_text(table.replace('tcp = "newreno"', 'tcp = "halver:Halver"'), encoding="utf-8")
    assert perhop("run", small.name).code == 0
    live = perhop("live", small.name)
    assert live.code == 2
    assert "`halver:Halver` is a class in Python" in live.err


@pytest.mark.parametrize("keys", [{}, {"sack": False, "prr": False}, {"loss-detection": "duplicate-acks"}])
def test_a_syn_is_no_delivery_to_a_class(keys: dict[str, Any]) -> None:
    """On 100 kbit/s a SYN takes 3 ms and data 120: its rate would be 259 kbit/s."""
    tcp = {"tcp": "linux", "packet": "1.5kB", "congestion": FirstAcks(), **keys}
    FirstAcks.seen.clear()
    ends = {"from": "a", "to": "b"}
    link = {**ends, "rate": "100kbps", "delay": "20ms", "queue": {"aqm": "drop-tail", "limit": "2000p"}}
    flow = {"name": "f", **ends, "transport": tcp}
    perhop.run({"duration": "10s", "links": {"l": link}, "flows": [flow]}, engine="reference", runs=1)
    assert len(FirstAcks.seen) > 30
    assert all(delivered > 0 and 0 < rate <= 100_001 for delivered, rate in FirstAcks.seen)
