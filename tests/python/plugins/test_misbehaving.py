"""Classes in Python that wait in C, raise KeyboardInterrupt or fork: every role and command, real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")

MODULE = '''\
"""Blocks of all roles that do what `BEHAVIOUR` says."""

import os
import re
import time

from perhop import Action, Application, Aqm, CongestionControl, Meter, Verdict


def act():
    behaviour = os.environ["BEHAVIOUR"]
    if behaviour == "raises":
        raise KeyboardInterrupt
    if behaviour == "exits":
        raise SystemExit(3)
    if behaviour == "forks":
        if os.fork() == 0:
            with open("children", "a") as file:
                file.write("x")
        return
    if behaviour == "forks well":
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        return
    open("ready", "w").close()
    if behaviour == "sleeps":
        time.sleep(100)
    elif behaviour == "holds":  # the interpreter's lock
        re.match(r"(a+)+$", "a" * 60 + "b")
    elif behaviour == "swallows":
        while True:
            try:
                time.sleep(0.01)
            except BaseException:
                pass


class Rule(Aqm):
    def on_arrival(self, packet, queue, now, random):
        act()
        return Verdict.PASS


class Made(Aqm):
    def __post_init__(self):
        act()

    def on_arrival(self, packet, queue, now, random):
        return Verdict.PASS


class Marker(Meter):
    def on_packet(self, packet, now, random):
        act()
        return "green"


class Control(CongestionControl):
    def on_ack(self, ack, now, random):
        act()


class User(Application):
    def on_start(self, now, random):
        act()
        return Action.request(100)
'''
SCENARIO = """\
duration = "1s"
[links.l]
from = "a"
to = "b"
rate = "1Mbps"
delay = "5ms"
queue = { QUEUE }
[[flows]]
name = "f"
from = "a"
to = "b"
transport = { tcp = "newreno"CONTROL }
MORE
"""
ROLES = {
    "Rule": {"QUEUE": 'aqm = "mine:Rule"'},
    "Made": {"QUEUE": 'aqm = "mine:Made"'},
    "Marker": {"MORE": 'profile = { rate = "1Mbps", marker = "mine:Marker" }'},
    "Control": {"CONTROL": ', congestion = "mine:Control"'},
    "User": {"MORE": 'application = { model = "mine:User" }'},
}
SWEEP = """\
scenario = "Rule.toml"
runs = 2
metrics = ["links.l.loss"]
grid = { "links.l.rate" = ["1Mbps", "2Mbps"] }
"""
TUNE = """\
scenario = "Rule.toml"
trials = 3
runs = 2
objectives = ["minimize links.l.loss"]
search = { "links.l.rate" = "1Mbps..2Mbps" }
"""
PLAN = """\
scenario = "Rule.toml"
runs = 2
objectives = ["loss of f < 1 %"]
"""
STEPPING = """\
import sys
from pathlib import Path
import perhop
try:
    simulation = perhop.Simulation("Rule.toml")
    simulation.run_until("1s")
except perhop.PerhopError as error:
    sys.stderr.write(f"error: {error}\\n")
    sys.exit(2)
except KeyboardInterrupt:
    sys.exit(130)
"""
GYM = STEPPING.replace(
    """    simulation = perhop.Simulation("Rule.toml")
    simulation.run_until("1s")
""",
    """    from perhop.gym import AqmEnv
    environment = AqmEnv("Rule.toml", parameters={})
    environment.reset(seed=1)
    environment.step(environment.action_space.sample())
""",
)
COMMANDS = {
    "run": ("-m", "perhop", "run", "Rule.toml", "--runs", "3", "--jobs", "1"),
    "run on two": ("-m", "perhop", "run", "Rule.toml", "--runs", "3", "--jobs", "2"),
    "record": ("-m", "perhop", "run", "Rule.toml", "--runs", "1", "--events", "events.parquet"),
    "sweep": ("-m", "perhop", "sweep", "sweep.toml", "--jobs", "2"),
    "tune": ("-m", "perhop", "tune", "tune.toml", "--jobs", "2"),
    "plan": ("-m", "perhop", "plan", "plan.toml", "--jobs", "2"),
    "check-block": ("-m", "perhop", "check-block", "mine:Rule"),
    "stepping": ("stepping.py",),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with the module, and a scenario for each role."""
    (tmp_path / "mine.py").write_text(MODULE, encoding="utf-8")
    for name, parts in ROLES.items():
        text = SCENARIO
        for key in ("QUEUE", "CONTROL", "MORE"):
            text = text.replace(
                key, parts.get(key, 'aqm = "drop-tail", limit = "9p"' if key == "QUEUE" else "")
            )
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    for name, text in {
        "sweep.toml": SWEEP,
        "tune.toml": TUNE,
        "plan.toml": PLAN,
        "stepping.py": STEPPING,
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def started(place: Path, behaviour: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "BEHAVIOUR": behaviour},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )


def interrupted(place: Path, behaviour: str, *arguments: str) -> None:
    """Start a command, wait for its class, and send Ctrl-C once."""
    process = started(place, behaviour, *arguments)
    end = time.monotonic() + 60
    while not (place / "ready").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    time.sleep(0.3)
    assert process.poll() is None
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        _, said = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_ends_a_class_that_waits_in_c(place: Path, command: str) -> None:
    interrupted(place, "sleeps", *COMMANDS[command])


@pytest.mark.parametrize("behaviour", ["holds", "swallows"])
@pytest.mark.parametrize("command", ["run", "run on two", "sweep", "check-block"])
def test_ctrl_c_ends_a_class_that_is_deaf(place: Path, command: str, behaviour: str) -> None:
    if command == "check-block" and behaviour == "swallows":
        pytest.skip("on the main thread such a class swallows Ctrl-C as any program in Python would")
    interrupted(place, behaviour, *COMMANDS[command])


@pytest.mark.parametrize("role", ROLES)
def test_ctrl_c_ends_a_class_of_any_role(place: Path, role: str) -> None:
    interrupted(place, "sleeps", "-m", "perhop", "run", f"{role}.toml", "--runs", "1")


@pytest.mark.parametrize("behaviour", ["raises", "exits", "forks"])
@pytest.mark.parametrize("role", ROLES)
def test_a_class_of_any_role_fails_in_one_line(place: Path, role: str, behaviour: str) -> None:
    fails(place, behaviour, "-m", "perhop", "run", f"{role}.toml", "--runs", "2", "--jobs", "2")


@pytest.mark.parametrize("behaviour", ["raises", "forks"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_class_fails_in_one_line_in_any_command(place: Path, command: str, behaviour: str) -> None:
    fails(place, behaviour, *COMMANDS[command])


def fails(place: Path, behaviour: str, *arguments: str) -> None:
    """The class fails, with a line that says how, and nothing of what it has forked goes on.

    Sweeps, searches and plans go on with other runs, and list what failed.
    """
    out, said = (process := started(place, behaviour, *arguments)).communicate(timeout=100)
    assert "Traceback" not in said
    if not {"check-block", "sweep", "tune", "plan"}.isdisjoint(arguments):
        assert process.returncode == 1, said
        said = " ".join((out + said).split())
    else:
        assert process.returncode == 2, said
        (said,) = [line for line in said.splitlines() if line.startswith("error: ")]
    assert {
        "raises": "KeyboardInterrupt (mine.py:",
        "exits": "SystemExit: 3 (mine.py:",
        "forks": "it forked the program",
    }[behaviour] in said
    if behaviour == "forks":
        assert "mine.py:" in said
        children = len((place / "children").read_text())
        assert children <= 8  # one in each simulator and in the program itself; each of them once
        time.sleep(0.3)
        assert len((place / "children").read_text()) == children


def test_a_child_that_ends_in_the_class_is_its_own_affair(place: Path) -> None:
    process = started(place, "forks well", "-m", "perhop", "run", "Made.toml", "--runs", "2", "--jobs", "2")
    _, said = process.communicate(timeout=100)
    assert process.returncode == 0, said


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("import os; os.fork()", "it forked the program"),
    ],
)
@pytest.mark.parametrize("command", ["run", "check-block"])
def test_a_module_that_cannot_load_is_one_line(place: Path, command: str, line: str, message: str) -> None:
    with (place / "mine.py").open("a", encoding="utf-8") as file:
        file.write(f"{line}\nopen('loaded', 'a').write('x')\n")
    process = started(place, "", *COMMANDS[command])
    _, said = process.communicate(timeout=100)
    assert process.returncode == 2, said
    assert "Traceback" not in said
    assert len(said.splitlines()) == 1
    assert message in said
