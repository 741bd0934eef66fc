"""Blocks in Python: parameters, decisions, errors, and where they run."""

from __future__ import annotations

import copy
import json
import pickle
import threading
import time
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.python.plugins import rules
from tests.python.plugins.rules import Blue, Faulty, Sojourn, Tail

import perhop
from perhop import Bitrate, BlockError, Depth, Duration, PerhopError, ScenarioError, Verdict, _engine
from perhop.blocks import plugins
from perhop.blocks.digests import digest_of
from perhop.runs import extent, one_run
from perhop.scenario import reading

if TYPE_CHECKING:
    from collections.abc import Mapping

MODULE = "tests.python.plugins.rules"


def scenario(queue: object, **extra: object) -> dict[str, Any]:
    """Eight TCP flows at 5 Mbit/s."""
    return {
        "duration": "6s",
        "warmup": "0s",
        "probes": {"interval": "100ms"},
        "links": {"l": {"from": "a", "to": "b", "rate": "5Mbps", "delay": "20ms", "queue": queue}},
        "flows": [
            {
                "name": "tcp",
                "count": 8,
                "from": "a",
                "to": "b",
                "transport": {"tcp": "newreno"},
                "ecn": "classic",
            }
        ],
        **extra,
    }


def queue_of(block: plugins.Block) -> Mapping[str, Any]:
    """The canonical table of a block."""
    text = perhop.scenario.reading.canonical(scenario(block.to_dict()))
    table: Mapping[str, Any] = json.loads(text)["links"]["l"]["queue"]
    return table


def same(one: Any, other: Any) -> bool:  # noqa: ANN401 - whatever an outcome holds
    """Whether outcomes are equal to the bit, besides how they were computed."""
    if isinstance(one, dict):
        how = {"engine", "engine_reason", "events"}
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one.keys() - how)
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124 - NaN


@pytest.mark.parametrize("engine", [None, "batched", "reference"])
@pytest.mark.parametrize("ecn", [False, True])
def test_blue_in_python_decides_as_the_compiled_one_packet_by_packet(engine: Any, ecn: bool) -> None:  # noqa: ANN401
    mine = perhop.run(scenario(Blue(limit="20p", ecn=ecn)), runs=2, engine=engine)
    theirs = perhop.run(scenario(perhop.scenario.Blue(limit="20p", ecn=ecn).to_dict()), runs=2, engine=engine)
    for one, other in zip(mine.runs, theirs.runs, strict=True):
        assert same(one.raw, other.raw)
        reasons = one.link("l")["measured"]
        assert np.sum((reasons["notified"] if ecn else reasons["dropped"])["controller"]) > 10
    assert "probability" in mine.queues["quantity"].unique()


def test_its_packets_are_recorded_as_those_of_others(tmp_path: Any) -> None:  # noqa: ANN401
    for name, rule in {
        "mine": Blue(limit="20p").to_dict(),
        "theirs": {"aqm": "blue", "limit": "20p"},
    }.items():
        perhop.run(scenario(rule), events=tmp_path / f"{name}.parquet", runs=1)
    assert (tmp_path / "mine.parquet").read_bytes() == (tmp_path / "theirs.parquet").read_bytes()


def test_a_rule_at_departure_runs_alike_on_both_engines_and_under_schedulers() -> None:
    rule = Sojourn(limit="60p", target="20ms").to_dict()
    wrapped = {"scheduler": "drr", "queues": [{"name": "all", "rule": rule}]}
    batched, reference = (
        perhop.run(scenario(rule), engine=engine, runs=1).runs[0] for engine in extent.ENGINES
    )
    (drr,) = perhop.run(scenario(wrapped), runs=1).runs
    assert same(batched.raw, reference.raw)
    assert np.sum(batched.link("l")["measured"]["dropped"]["target"]) > 3
    assert np.array_equal(batched.flows("delivered_packets"), drr.flows("delivered_packets"))


def test_parameters_are_typed() -> None:
    tail = Tail(limit="40kB", rate_="2Mbps", size="1.5kB", word="two", count=4)
    assert (tail.limit, tail.rate_, tail.size, tail.share) == (Depth("40kB"), 2_000_000, 1500, 0.5)
    assert queue_of(tail) == {
        "aqm": "python",
        "class": f"{MODULE}:Tail",
        "source": digest_of(Tail),
        "limit": "40kB",
        "rate": "2Mbps",
        "share": 0.5,
        "size": "1.5kB",
        "count": 4,
        "factor": 1.5,
        "word": "two",
        "text": "",
    }
    assert "rate" not in queue_of(Tail())
    assert (Duration("1.5ms"), str(Duration(1_500_000)), Depth("20p").packets) == (1_500_000, "1.5ms", 20)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"limit": 9}, "l.queue.limit: expected text in quotes: a depth with its unit, not 9"),
        ({"limit": "9q"}, "l.queue.limit: `9q` is not a queue size"),
        ({"limits": "9p"}, f"l.queue.limits: unknown key `limits` of {MODULE}:Tail (valid keys: limit, rate"),
        ({"share": 1.5}, "l.queue.share: "),
        ({"share": "much"}, "l.queue.share: expected a number from 0 to 1, not much"),
        ({"count": 1.5}, "l.queue.count: expected a whole number, not 1.5"),
        ({"count": True}, "l.queue.count: expected a whole number, not True"),
        ({"factor": "x"}, "l.queue.factor: expected a number, not 'x'"),
        ({"word": "six"}, "l.queue.word: expected one of 'one', 'two', not 'six'"),
        ({"source": "0"}, "l.queue.source: `tests.python.plugins.rules:Tail` has changed since"),
    ],
)
def test_a_wrong_parameter_is_refused_with_its_place(keys: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        perhop.run(scenario({"aqm": f"{MODULE}:Tail", **keys}), runs=1)
    assert f"scenario: links.{problem}" in str(refused.value)
    if "source" not in keys:
        with pytest.raises(PerhopError):
            Tail(**{key.replace("-", "_"): value for key, value in keys.items()})


def test_a_wrong_default_is_told_from_a_wrong_key() -> None:
    class Wrong(perhop.Aqm):
        every: Duration = 5  # type: ignore[assignment]

        def on_arrival(self, *_: object) -> Verdict:
            return Verdict.PASS

    with pytest.raises(PerhopError, match=r"`every`: the default in .*Wrong: expected text in quotes"):
        Wrong()


@pytest.mark.parametrize(
    ("queue", "problem"),
    [
        ({"aqm": "nowhere:Rule"}, "queue.aqm: there is no module `nowhere`"),
        ({"aqm": f"{MODULE}:Rule"}, "has no class `Rule`; it has Blue, Tail, Sojourn, Faulty"),
        ({"aqm": f"{MODULE}:Verdict"}, f"queue.aqm: `{MODULE}:Verdict` is no subclass of perhop.Aqm"),
        ({"aqm": "a:b:c"}, "queue.aqm: `a:b:c`: a class is written as module:Class"),
        ({"aqm": "python"}, 'queue.class: names a class, such as class = "my_aqm:MyAqm"'),
        ({"aqm": "python", "class": "Blue"}, "queue.class: `Blue`: a class is written as module:Class"),
        ({"aqm": f"{MODULE}:Blue"}, f"queue: key `limit` of {MODULE}:Blue is missing"),
        ({"aqm": f"{MODULE}:Blue", "class": "x:Y"}, "queue.class: `aqm` names the class already"),
        ({"aqm": "blue-in-python", "limit": "9p"}, "unknown aqm `blue-in-python`"),
    ],
)
def test_a_class_that_is_none_is_refused(queue: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        perhop.run(scenario(queue), runs=1)
    assert problem in str(refused.value)


def test_a_class_stands_where_an_object_belongs() -> None:
    with pytest.raises(PerhopError, match=r"queue: Blue is a class; write Blue\(…\)"):
        perhop.run(scenario(Blue), runs=1)
    with pytest.raises(PerhopError, match="write parameters by name"):
        Blue("20p")  # type: ignore[call-arg]


def test_a_class_must_be_one_that_scenarios_can_write() -> None:
    class Odd(perhop.Aqm):
        table: dict[str, int] = None  # type: ignore[assignment]

    class Reserved(perhop.Aqm):
        source: str = ""

    with pytest.raises(PerhopError, match="parameter `table` has the type dict"):
        Odd()
    with pytest.raises(PerhopError, match="`source` is a key of every table"):
        Reserved()


def test_state_that_objects_would_share_is_refused() -> None:
    def decide(*_: object) -> Verdict:
        return Verdict.PASS

    mutable: list[Any] = [[], {}, set(), np.zeros(3)]
    for shared in mutable:
        with pytest.raises(TypeError, match=f"`seen` of Leaky is a {type(shared).__name__} that all"):
            type("Leaky", (perhop.Aqm,), {"seen": shared, "on_arrival": decide})
    mixin = type("Mixin", (), {"seen": []})
    with pytest.raises(TypeError, match="`seen` of Mixin is a list"):
        type("Mixed", (mixin, perhop.Aqm), {"on_arrival": decide})
    sound = type("Sound", (perhop.Aqm,), {"seen": (), "steps": frozenset(), "on_arrival": decide})
    assert sound().seen == ()


def test_a_module_with_shared_state_is_refused_in_one_line(
    tmp_path: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = (
        "from perhop import Aqm, Verdict\nclass R(Aqm):\n    seen = []\n"
        "    def on_arrival(self, *_): return Verdict.PASS\n"
    )
    (tmp_path / "leaky_rule.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError, match="create it in __post_init__") as refused:
        reading.canonical(scenario({"aqm": "leaky_rule:R"}))
    assert "\n" not in str(refused.value)


def test_a_class_that_overrides_its_creation_is_refused() -> None:
    def create(self: object, limit: str) -> None:
        pass

    with pytest.raises(TypeError, match=r"Own has a method __init__; .* __post_init__"):
        type("Own", (perhop.Aqm,), {"__init__": create})


def test_parameters_cannot_change() -> None:
    blue = Blue(limit="20p")
    with pytest.raises(AttributeError, match="`limit` is a parameter, which cannot change"):
        blue.limit = Depth("30p")
    for copied in (copy.deepcopy(blue), pickle.loads(pickle.dumps(blue))):  # noqa: S301 - its own pickle
        assert copied.limit == Depth("20p")
        with pytest.raises(AttributeError, match="`limit`"):
            copied.limit = Depth("30p")
    blue.probability = 0.5
    assert blue.probability == 0.5

    class Anew(Blue):
        freeze: Duration

        def __post_init__(self) -> None:
            super().__post_init__()
            self.ecn = True

    assert (Anew(limit="9p").freeze, Anew(limit="9p").ecn) == (100_000_000, True)
    with pytest.raises(PerhopError, match=r"`limit`.* is missing"):
        Anew()

    class Placed(perhop.Aqm):
        rate: Bitrate

    placed = Placed(rate="1Mbps")
    placed.placed(5_000_000)
    assert placed.rate == 1_000_000, "the engine does not overwrite a parameter"
    blue.placed(5_000_000)
    assert blue.rate == 5_000_000


@pytest.mark.parametrize(
    ("what", "problem", "cause"),
    [
        ("raises", r"ZeroDivisionError: .*\(rules.py:\d+\)", ZeroDivisionError),
        ("changes the packet", "AttributeError: .*'size'.* not writable", AttributeError),
        ("changes the queue", "AttributeError: .*'packets'.* not writable", AttributeError),
        ("invents", "AttributeError: .*has no attribute 'mine'", AttributeError),
        ("nothing", "it returned None; return Verdict.PASS", TypeError),
        ("a number", "it returned 7; return Verdict.PASS", TypeError),
        ("a word", "it returned 'drop'; return Verdict.PASS", TypeError),
        ("the class", "it returned <class .*Verdict'>; return Verdict.PASS", TypeError),
        ("a chance", "ValueError: chance: 1.5 is no probability; it is from 0 to 1", ValueError),
    ],
)
@pytest.mark.parametrize("engine", ["reference", "batched"])
def test_an_error_names_the_class_the_time_and_the_packet(
    what: str,
    problem: str,
    cause: type[Exception],
    engine: Any,  # noqa: ANN401
) -> None:
    place = (
        rf"^{MODULE}:Faulty: on_arrival at link `l` at \d\.\d{{9}} s for a packet of flow `tcp/\d` "
        r"\(\d+ bytes, yellow\): "
    )
    with pytest.raises(BlockError, match=place + problem) as failed:
        perhop.run(scenario(Faulty(what=what)), engine=engine, runs=1)
    assert isinstance(failed.value.__cause__, cause)
    if cause is not TypeError:
        frames = failed.value.__cause__.__traceback__
        assert frames is not None
        assert frames.tb_frame.f_code.co_name == "on_arrival"


def test_an_error_before_the_run_and_in_a_gauge() -> None:
    with pytest.raises(BlockError, match="Unready: __init__ at link `l`: RuntimeError: no limit"):
        perhop.run(scenario({"aqm": f"{MODULE}:Unready"}), runs=1)
    place = r"Faulty: gauges at link `l`, last called at \d\.\d{9} s: "
    with pytest.raises(BlockError, match=place + "gauge `state` is good; give a number"):
        perhop.run(scenario(Faulty(what="gauge")), runs=1)
    with pytest.raises(BlockError, match=place + "gauge `state` is NaN; give a number"):
        perhop.run(scenario(Faulty(what="nan")), runs=1)


def test_one_failed_run_of_several_is_the_one_that_is_told() -> None:
    with pytest.raises(BlockError, match="ZeroDivisionError"):
        perhop.run(scenario(Faulty(what="raises")), runs=6, jobs=3)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_class_that_loops_for_ever_can_be_cancelled(jobs: int) -> None:
    cancel = _engine.Cancel()
    threading.Timer(1.0, cancel.cancel).start()
    began = time.monotonic()
    with pytest.raises(_engine.Cancelled):
        perhop.run(scenario(Faulty(what="loops")), runs=2, jobs=jobs, cancel=cancel)
    assert time.monotonic() - began < 20


def test_results_do_not_depend_on_the_number_of_jobs() -> None:
    alone, together = (
        perhop.run(scenario(Blue(limit="20p")), runs=5, jobs=jobs, progress=None) for jobs in (1, 3)
    )
    assert all(same(one.raw, other.raw) for one, other in zip(alone.runs, together.runs, strict=True))


def test_other_runs_go_to_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = []
    real = one_run._elsewhere

    def counted(*arguments: Any) -> Any:  # noqa: ANN401
        elsewhere.append(arguments[1])
        return real(*arguments)

    monkeypatch.setattr(one_run, "_elsewhere", counted)
    perhop.run(scenario(Blue(limit="20p"), duration="20s"), runs=4, jobs=2)
    assert elsewhere


def test_copies_and_pickles_keep_parameters_and_state() -> None:
    blue = Blue(limit="20p", freeze="1ms")
    blue.probability = 0.25
    again = pickle.loads(pickle.dumps(blue))  # noqa: S301
    assert (again.limit, again.freeze, again.probability) == (Depth("20p"), 1_000_000, 0.25)
    assert again.to_dict() == blue.to_dict()
    for verdict in (Verdict.PASS, Verdict.NOTIFY, Verdict.drop("early")):
        assert pickle.loads(pickle.dumps(verdict)) == verdict  # noqa: S301
    assert repr(Verdict.NOTIFY) == 'Verdict.notify("controller")'
    with pytest.raises(ValueError, match="`luck` is no reason; take one of overflow, early"):
        Verdict.drop("luck")


def test_results_that_are_kept_depend_on_the_source(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    text = "from perhop import Aqm, Verdict\nclass R(Aqm):\n    def on_arrival(self, *_): return Verdict.{}\n"
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for number, verdict in enumerate(("PASS", "DROP")):
        (tmp_path / f"source_{number}.py").write_text(text.format(verdict))
        found.append(json.loads(perhop.scenario.reading.canonical(scenario({"aqm": f"source_{number}:R"}))))
    sources = [one["links"]["l"]["queue"]["source"] for one in found]
    assert sources[0] != sources[1]
    # An object that was read before the class changed is not run by another one.
    found[0]["links"]["l"]["queue"]["class"] = "source_1:R"
    with pytest.raises(BlockError, match="source_1:R has changed since the scenario was read"):
        _engine.simulate(json.dumps(found[0]), 1)


def test_a_class_of_a_shell_has_a_digest() -> None:
    digests = []
    for verdict in ("PASS", "DROP"):
        space: dict[str, Any] = {"__name__": "__shell__"}
        exec(  # noqa: S102 - as a shell does
            f"from perhop import *\nclass R(Aqm):\n def on_arrival(self, *_): return Verdict.{verdict}",
            space,
        )
        digests.append(digest_of(space["R"]))
    assert digests[0] != digests[1]


def test_the_harness_passes_sound_classes_and_refuses_others() -> None:
    def failures(block: plugins.Block) -> list[str]:
        return [what for what, problem in _engine.check_aqm(json.dumps(queue_of(block)), 20) if problem]

    assert failures(Blue(limit="7p")) == []
    assert failures(Sojourn(limit="9p", target="1ms")) == []
    twice = ["two runs with one seed decide alike", "a copy decides as its original"]
    assert failures(rules.Forgetful()) == twice
    assert failures(Faulty(what="raises")) == ["no sequence of calls raises an error"]


def test_registered_classes_are_named_and_described() -> None:
    described = plugins.description(Blue, "blue-in-python")
    assert (described["year"], described["era"], described["role"]) == (2002, "classic", "aqm")
    assert described["parameters"]["limit"] == {
        "type": "depth, such as `868p`",
        "required": True,
        "default": None,
        "description": "The room in the queue.",
    }
    assert described["parameters"]["freeze"]["default"] == "100ms"


def test_a_package_registers_classes_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    point = metadata.EntryPoint("packaged", f"{MODULE}:Tail", plugins.GROUP)
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: [point] if group == plugins.GROUP else [])
    monkeypatch.setattr(plugins, "_REGISTERED", {})
    assert (
        queue_of(Tail())
        == json.loads(perhop.scenario.reading.canonical(scenario({"aqm": "packaged"})))["links"]["l"]["queue"]
    )
    assert [block["name"] for block in plugins.described()] == ["packaged"]
    taken = metadata.EntryPoint("red", f"{MODULE}:Tail", plugins.GROUP)
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [taken])
    monkeypatch.setattr(plugins, "_REGISTERED", {})
    with pytest.raises(PerhopError, match=r"package .*: `red` is a built-in aqm; give .* another NAME"):
        plugins.registered("aqm")
