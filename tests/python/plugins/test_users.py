"""Users of applications in Python: requests as the compiled twin's, errors, and where they run."""

from __future__ import annotations

import json
import pickle
import threading
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pytest
from tests.python.plugins import users
from tests.python.plugins.controls import Reno
from tests.python.plugins.test_plugins import same
from tests.python.plugins.users import Browser, Client, Faulty

import perhop
from perhop import Action, BlockError, ScenarioError, _engine
from perhop.blocks import digests, plugins
from perhop.runs import one_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

MODULE = "tests.python.plugins.users"


def scenario(application: object, congestion: object = "cubic", **extra: object) -> dict[str, Any]:
    """Eight users beside two flows that always have data, at 5 Mbit/s under RED."""
    ends: dict[str, Any] = {"from": "a", "to": "b"}
    tcp = {"tcp": "newreno", "packet": "1500B", "ack": "52B", "congestion": congestion}
    return {
        "duration": "8s",
        "warmup": "1s",
        "links": {
            "l": {
                **ends,
                "rate": "5Mbps",
                "delay": "20ms",
                "queue": {"aqm": "red", "thresholds": "5/15/0.1", "limit": "40p"},
            }
        },
        "flows": [
            {"name": "users", "count": 8, **ends, "transport": tcp, "application": application},
            {"name": "bulk", "count": 2, **ends, "transport": tcp},
        ],
        **extra,
    }


def measured(run: Any) -> dict[str, Any]:  # noqa: ANN401
    """The measures of the users of a run."""
    found: dict[str, Any] = run.raw["applications"][0]["measures"]
    return found


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"request": "5kB", "response": "40kB", "think": "100ms", "service": "50ms"},
        {"response": "1B", "think": "0s"},
    ],
)
def test_requests_and_responses_in_python_are_the_compiled_ones_to_the_bit(keys: dict[str, Any]) -> None:
    (mine,) = perhop.run(scenario(Client(**keys)), seed=5, runs=1).runs
    (theirs,) = perhop.run(scenario({"model": "request-response", **keys}), seed=5, runs=1).runs
    one, other = (dict(run.raw) for run in (mine, theirs))
    assert measured(mine) == measured(theirs)
    assert measured(mine)["responses"] > 20
    for key in ("flows", "links", "series"):
        assert same(one.get(key), other.get(key))


def test_a_user_can_have_several_connections() -> None:
    (run,) = perhop.run(scenario(Browser(think="50ms")), runs=1).runs
    assert measured(run)["responses"] > 100
    table = json.loads(perhop.scenario.reading.canonical(scenario(Browser())))["flows"][0]["application"]
    assert table == {
        "model": "python",
        "class": f"{MODULE}:Browser",
        "request": "200B",
        "connections": 3,
        "source": digests.digest_of(Browser),
        "think": "100ms",
    }
    named = json.loads(perhop.scenario.reading.canonical(scenario({"model": f"{MODULE}:Browser"})))
    assert named["flows"][0]["application"] == table


def test_every_mechanism_gets_the_same_users_and_jobs_change_nothing() -> None:
    table = scenario(Browser(), congestion=Reno())
    alone, together = (perhop.run(table, runs=4, jobs=jobs).runs for jobs in (1, 3))
    assert all(same(one.raw, other.raw) for one, other in zip(alone, together, strict=True))
    assert one_run.modules(perhop.scenario.reading.canonical(table)) == {
        MODULE,
        "tests.python.plugins.controls",
    }


def test_the_batched_engine_refuses_users_with_the_reason() -> None:
    result = perhop.run(scenario(Client()), runs=1)
    assert result.runs[0].raw["engine"] == "reference"
    refused = r"application `python` of group `.*` does not declare that it can be batched"
    with pytest.raises(ScenarioError, match=refused):
        perhop.run(scenario(Client()), engine="batched", runs=1)


def test_a_run_can_be_stepped_through_copied_and_restored() -> None:
    table = scenario(Browser())
    whole = perhop.run(table, runs=1).runs[0]
    simulation = perhop.Simulation(table, seed=1)
    simulation.run_until("3s")
    snapshot = simulation.snapshot()
    for _ in range(2):
        simulation.run_until("8s")
        assert measured(simulation.finish().runs[0]) == measured(whole)
        simulation.restore(snapshot)


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("raises", r"ZeroDivisionError: .*\(users.py:\d+\)"),
        (
            "too far",
            "it used connection 1; a user has 1, numbered from 0: write CONNECTIONS = 2 in the class",
        ),
        ("nothing to send", "ValueError: size in bytes is 0; it is a whole number from 1 to 1000000000000"),
        ("a number", r"it returned 7; return Action.request\(…\)"),
        ("a list of numbers", "it returned 7; return"),
        ("the class", "it returned <class .*Action'>; return"),
        ("half", "it returned 0.5; return"),
    ],
)
def test_an_error_names_the_class_the_user_and_the_time(what: str, problem: str) -> None:
    place = rf"^{MODULE}:Faulty: on_response at user \d of `users` at \d\.\d{{9}} s: .*"
    with pytest.raises(BlockError, match=place + problem):
        perhop.run(scenario(Faulty(what=what)), runs=1)


def test_an_error_before_the_run_and_tables_that_are_wrong() -> None:
    with pytest.raises(BlockError, match="Unready: __init__ at user 0 of `users`: RuntimeError: not ready"):
        perhop.run(scenario({"model": f"{MODULE}:Unready"}), runs=1)
    for application, problem in (
        ({"model": f"{MODULE}:Nothing"}, "application.model: .*has no class `Nothing`"),
        ({"model": f"{MODULE}:Silent"}, r".* has no method on_start\(self, now, random\)"),
        ({"model": f"{MODULE}:Greedy"}, ".*CONNECTIONS is 0; write 1 to 1000"),
        ({"model": f"{MODULE}:Client", "connections": 2}, "application.connections: .*says this itself"),
        ({"model": f"{MODULE}:Client", "request": "2MB"}, "application.request: a request has 1B to 1MB"),
        ({"model": f"{MODULE}:Client", "think": 3}, "application.think: expected text in quotes"),
        ({"model": "client-in-python"}, "application.model: unknown model `client-in-python`"),
    ):
        with pytest.raises(ScenarioError, match=r"scenario: flows\[0\]\." + problem):
            perhop.run(scenario(application), runs=1)
    table = scenario(Client())
    del table["flows"][0]["transport"]
    with pytest.raises(ScenarioError, match="runs over TCP: give the group a `transport`"):
        perhop.run(table, runs=1)


def test_a_class_that_loops_for_ever_can_be_cancelled() -> None:
    cancel = _engine.Cancel()
    threading.Timer(1.0, cancel.cancel).start()
    with pytest.raises(_engine.Cancelled):
        perhop.run(scenario(Faulty(what="loops")), cancel=cancel, runs=1)


def test_a_class_that_waits_for_no_time_ends_its_run() -> None:
    problem = "Stuck: on_timer at user . of `users` at .* it has waited 0 ns 100000 times in a row"
    with pytest.raises(BlockError, match=problem):
        perhop.run(scenario(users.Stuck()), runs=1)


def test_actions_are_values() -> None:
    assert Action.request(5) == Action.request(5, connection=0) != Action.respond(5)
    assert repr([Action.respond(7, 2), Action.wait(9)]) == "[Action.respond(7, connection=2), Action.wait(9)]"
    assert hash(Action.wait(3)) == hash(Action.wait(3))
    with pytest.raises(ValueError, match="it is a whole number from"):
        Action.wait(-1)
    with pytest.raises(ValueError, match="it is a whole number from"):
        Action.request(10**13)
    with pytest.raises(TypeError, match=r"time in ns is 0.5; it is a whole number"):
        Action.wait(0.5)  # type: ignore[arg-type]


def test_the_harness_passes_sound_classes_and_refuses_others() -> None:
    def failures(block: plugins.Block) -> list[str]:
        return [
            what for what, problem in _engine.check_application(json.dumps(block.to_dict()), 20) if problem
        ]

    for sound in (Client(), Client(service="5ms"), Browser()):
        assert failures(sound) == []
        assert pickle.loads(pickle.dumps(sound)).to_dict() == sound.to_dict()  # noqa: S301
    assert failures(users.Forgetful()) == [
        "two runs with one seed decide alike",
        "a copy decides as its original",
    ]
    assert failures(users.Stuck()) == ["time goes on while it waits"]
    assert failures(Faulty(what="raises")) == [
        "no sequence of calls raises an error, and each returns actions"
    ]


def test_a_package_registers_users_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    point = metadata.EntryPoint("packaged", f"{MODULE}:Client", plugins.GROUPS["application"])
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: [point] if group == point.group else [])
    monkeypatch.setattr(plugins, "_REGISTERED", {})
    (described,) = plugins.described()
    assert (described["name"], described["role"]) == ("packaged", "application")
    assert described["parameters"]["response"]["description"] == "Mean size of a response, without headers."
    assert measured(perhop.run(scenario({"model": "packaged"}), runs=1).runs[0])["responses"] > 20


USER = """\
from perhop import Action, Application, Duration


class Pulse(Application):
    \"\"\"Asks for a kilobyte again and again.\"\"\"

    gap: Duration = Duration("200ms")

    def on_start(self, now, random):
        return [Action.request(self.request), Action.wait(self.gap)]

    def on_request(self, connection, now, random):
        return Action.respond(1000)

    def on_timer(self, now, random):
        return self.on_start(now, random)
"""


def test_the_command_line_checks_lists_and_runs_a_class(perhop: Perhop, small: Path) -> None:
    (small.parent / "pulse.py").write_text(USER, encoding="utf-8")
    checked = perhop("check-block", "pulse:Pulse", "gap=10ms", "--sequences", "20")
    assert "8 checks passed (20 sequences of calls)" in checked.out
    listed = perhop("list", "blocks", "pulse", "--plugin", "pulse")
    assert "Asks for a kilobyte again and again" in listed.out
    assert "application" in listed.out
    flow = """
[[flows]]
name = "pulses"
from = "NODE"
to = "NODE"
transport = { tcp = "linux", packet = "1500B", ack = "52B" }
application = { model = "pulse" }
"""
    text = small.read_text(encoding="utf-8")
    ends = [line.split('"')[1] for line in text.splitlines() if line.startswith(("from = ", "to = "))][:2]
    for end in ends:
        flow = flow.replace("NODE", end, 1)
    small.write_text(text + flow, encoding="utf-8")
    done = perhop("run", small.name, "--plugin", "pulse", "--runs", "1")
    assert done.code == 0, done.err
    assert "response, mean" in done.out
    live = perhop("live", small.name, "--plugin", "pulse")
    assert live.code == 2
    assert "`pulse:Pulse` is a class in Python" in live.err
