"""Ctrl-C, closed streams and start-up: what happens around a command's work."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.python.live.living import LIVE, needs_live

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

OVERLOAD = """\
title = "2 Gbit/s into 1 Gbit/s for eleven days"
duration = "1000000s"
warmup = "0s"
[links.link]
from = "a"
to = "b"
rate = "1Gbps"
delay = "10ms"
queue = { aqm = "drop-tail", limit = "100p" }
[[flows]]
name = "cbr"
from = "a"
to = "b"
transport = { udp = "cbr", rate = "2Gbps" }
"""
UNRULED = OVERLOAD.replace('queue = { aqm = "drop-tail", limit = "100p" }\n', "").replace(
    '"1Gbps"', '"1Mbps"'
)
NO_DELAY = """\
title = "Two links that take no time"
duration = "1000s"
warmup = "0s"
[links.first]
from = "a"
to = "b"
rate = "1000Gbps"
delay = "0s"
queue = { aqm = "drop-tail", limit = "100p" }
[links.second]
from = "b"
to = "c"
rate = "1000Gbps"
delay = "0s"
queue = { aqm = "drop-tail", limit = "100p" }
[[flows]]
name = "tcp"
from = "a"
to = "c"
transport = { tcp = "newreno" }
"""
SWEEP = """\
scenario = "endless.toml"
runs = 2
[grid]
"links.link.queue.limit" = ["20p", "50p"]
"""
TUNE = """\
scenario = "endless.toml"
trials = 3
objectives = ["minimize links.link.delay_p99_s"]
[search]
"links.link.queue.limit" = "20p..400p"
"""
LAB = """\
title = "Days"
about = "what takes days"
[measures]
wait = { scenario = "endless.toml", metric = "links.link.delay_p95_s" }
[[questions]]
key = "wait"
ask = "How long is the wait?"
measure = "wait"
unit = "s"
hint = "The table of links has it."
"""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
SOON_S = 120
"""How long to wait for a command's end after Ctrl-C: a guard. Each command here would run for days."""


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A directory with scenarios, a sweep and a search that take days."""
    (tmp_path / "endless.toml").write_text(OVERLOAD, encoding="utf-8")
    (tmp_path / "unruled.toml").write_text(UNRULED, encoding="utf-8")
    (tmp_path / "no-delay.toml").write_text(NO_DELAY, encoding="utf-8")
    (tmp_path / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    (tmp_path / "tune.toml").write_text(TUNE, encoding="utf-8")
    for folder in ("report", "lab"):
        (tmp_path / folder).mkdir()
    manifest = {
        "perhop": "0.1.0",
        "command": "perhop run",
        "scenarios": [{"seeds": [1, 2, 3], "scenario": tomllib.loads(OVERLOAD), "results": {}}],
    }
    (tmp_path / "report" / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (tmp_path / "lab" / "lab.toml").write_text(LAB, encoding="utf-8")
    (tmp_path / "lab" / "sheet.md").write_text("# Days\n", encoding="utf-8")
    (tmp_path / "lab" / "endless.toml").write_text(OVERLOAD, encoding="utf-8")
    (tmp_path / "answers.toml").write_text("wait = 1\n", encoding="utf-8")
    return tmp_path


def start(directory: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "perhop", *arguments],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str], pattern: str) -> str:
    """What it says on standard error until a line has this pattern."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if re.search(pattern, line):
            return "".join(lines)
    raise AssertionError("".join(lines))


def computed(process: subprocess.Popen[str]) -> float:
    """How many seconds of processors it has taken so far, with the processes that it has waited for."""
    stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")


def interrupted(process: subprocess.Popen[str], number: signal.Signals = signal.SIGINT) -> tuple[str, str]:
    """Sends a signal; what the command then says. A command that goes on with its work never ends here."""
    process.send_signal(number)
    out, err = process.communicate(timeout=SOON_S)
    # A shell shows the same of a command that ends with this status and of one that ends by the signal
    # itself, as Python does where the interrupt comes while it finishes.
    assert process.returncode in {128 + number, -number}, err
    assert "Traceback" not in err
    return out, err


@pytest.mark.parametrize(
    ("command", "end"),
    [
        (("run", "endless.toml", "--runs", "1", "--out", "new/out"), "nothing was written"),
        (("run", "no-delay.toml", "--runs", "1"), "nothing was written"),
        (("run", "unruled.toml", "--runs", "1"), "nothing was written"),
        (("run", "endless.toml", "--runs", "6", "--jobs", "2"), "nothing was written"),
        (("run", "endless.toml", "--runs", "100000", "--jobs", "2"), "nothing was written"),
        (("sweep", "sweep.toml", "--jobs", "2", "--out", "new/out"), "0 runs are kept"),
        (("tune", "tune.toml", "--jobs", "1", "--out", "new/out"), "0 runs are kept"),
        (("rerun", "report/manifest.json", "--jobs", "2"), "nothing was written"),
    ],
)
@pytest.mark.parametrize("number", SIGNALS)
def test_a_long_run_says_how_long_and_a_signal_ends_it_within_a_second(
    endless: Path, command: Sequence[str], end: str, number: signal.Signals
) -> None:
    process = start(endless, *command)
    forecast = said(process, "left")
    assert re.search(r"(runs|trials): 0 of \d+ after \d+ s, about [\d,]+ (min|h|days|years) left", forecast)
    out, err = interrupted(process, number)
    assert err.startswith("interrupted")
    assert end in err
    assert out == ""
    assert not (endless / "new").exists()


@pytest.mark.parametrize("rule", [("--runs", "100000"), ("--until", "0.001%", "--runs", "100000")])
def test_ctrl_c_shows_the_runs_that_have_finished(small: Path, rule: Sequence[str]) -> None:
    """Runs of the first seeds count; the command that the report names makes them again."""
    process = start(small.parent, "run", small.name, *rule, "--json", "-", "--out", "kept")
    said(process, r"(?m)^runs.*: \d\d+ of \d+ after")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    seeds = json.loads(out)["seeds"]
    assert 4 <= len(seeds) < 100_000
    assert seeds == list(range(1, len(seeds) + 1))
    assert f"Interrupted: what follows is of the first {len(seeds)} of " in err
    assert json.loads(out).get("until", {}).get("interrupted", False) is (rule[0] == "--until")
    command = json.loads((small.parent / "kept" / "manifest.json").read_text())["command"]
    assert f"--runs {len(seeds)}" in command
    assert ("--until" in command) is (rule[0] == "--until")
    assert json.loads(out)["interrupted_of"] > len(seeds)
    if rule[0] == "--until":
        again = subprocess.run(  # noqa: PLW1510 - its status is looked at
            [sys.executable, "-m", "perhop", "rerun", "kept"],
            cwd=small.parent,
            capture_output=True,
            text=True,
        )
        assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_a_check_of_answers(endless: Path, number: signal.Signals) -> None:
    process = start(endless, "course", "check", "lab", "answers.toml")
    said(process, r"^runs: 0 of \d+ after")
    assert interrupted(process, number) == ("", "interrupted; nothing was written\n")


def test_ctrl_c_ends_reproduce_within_a_second(tmp_path: Path) -> None:
    process = start(tmp_path, "reproduce", "kim-table1", "--runs", "500", "--jobs", "2", "--out", "out")
    said(process, r"runs: \d+ of 3500 after")
    time.sleep(0.5)
    _, err = interrupted(process)
    assert "runs are kept in out/runs; the same command resumes" in err


def children(process: subprocess.Popen[str]) -> list[int]:
    text = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8")
    return [int(number) for number in text.split()]


@needs_live
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_compare_within_a_second_on_real_packets(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "live.toml").write_text(LIVE.replace('duration = "2s"', 'duration = "1000s"'))
    process = start(tmp_path, "compare", "live.toml", "--runs", "1", "--out", "out")
    said(process, "^1 run on real packets, 1000 s in all; 30 simulated runs of each$")
    (worker,) = children(process)
    out, err = interrupted(process, number)
    assert err.endswith("interrupted; nothing was written, and nothing is left in the system\n")
    assert out == ""
    assert not Path(f"/proc/{worker}").exists()
    assert not (tmp_path / "out").exists()


@needs_live
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_compare_within_a_second_while_it_simulates(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "live.toml").write_text(LIVE)
    process = start(tmp_path, "compare", "live.toml", "--runs", "1", "--sim-runs", "100000")
    said(process, "^1 run on real packets")
    while children(process):
        time.sleep(0.05)
    before = computed(process)
    while computed(process) < before + 0.5:
        time.sleep(0.05)
    out, err = interrupted(process, number)
    assert err.endswith("interrupted; nothing was written, and nothing is left in the system\n")
    assert out == ""


def test_ctrl_c_ends_a_run_of_very_many_flows_while_it_is_built(tmp_path: Path) -> None:
    many = OVERLOAD.replace('name = "cbr"', 'name = "cbr"\ncount = 1000000').replace("2Gbps", "2kbps")
    (tmp_path / "many.toml").write_text(many, encoding="utf-8")
    moments = random.Random(4)  # noqa: S311 - not for secrets
    for _ in range(3):
        process = start(tmp_path, "run", "many.toml", "--runs", "1")
        time.sleep(moments.uniform(0.8, 3.0))
        _, err = interrupted(process)
        assert err in {"", "interrupted; nothing was written\n"} or "runs: 0 of 1" in err


@pytest.mark.long
def test_ctrl_c_in_the_first_second_never_ends_in_a_traceback(tmp_path: Path, small: Path) -> None:
    commands = [
        ("run", str(small), "--runs", "100000"),
        ("reproduce", "--runs", "100", "--out", "out"),
        ("list", "studies"),
        ("sweep", "--help"),
    ]
    moments = random.Random(5)  # noqa: S311 - not for secrets
    ends = []
    for number in range(60):
        process = start(tmp_path, *commands[number % len(commands)])
        time.sleep(moments.uniform(0.0, 1.0))
        process.send_signal(signal.SIGINT)
        try:
            _, err = process.communicate(timeout=SOON_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=SOON_S)
            assert err.startswith("Exception ignored"), err
        # Python itself was still starting, or finding the package: it ends in its own way, or discards the
        # interrupt in a finalizer of its own and goes on.
        by_python = process.returncode not in {0, 130} or err.startswith("Exception ignored")
        if by_python and set(re.findall(r"perhop/(\w+)\.py", err)) <= {"__init__"}:
            continue
        assert "Traceback" not in err, err
        assert process.returncode in {0, 130}
        ends.append(process.returncode)
    assert ends.count(130) > 10


DISCARDED = """
import gc, os, signal, sys, threading, time, weakref
from perhop.processes import interrupts
interrupts.install()
DISCARDED = []

class Strange:
    def __del__(self):
        DISCARDED.append("finalizer")
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.001)

class Referred:
    pass

def callback(_reference):
    DISCARDED.append("callback")
    Strange()
    time.sleep(0.05)  # the interrupt comes again, and Python discards it again

referred = Referred()
reference = weakref.ref(referred, callback)
try:
    {strike}
    end = time.monotonic() + 20
    while time.monotonic() < end:
        time.sleep(0.001)
except KeyboardInterrupt:
    sys.stdout.write(f"ended by {{' and '.join(DISCARDED)}}")
"""


@pytest.mark.parametrize(
    ("strike", "discarded"), [("Strange()", "finalizer"), ("del referred", "callback and finalizer")]
)
def test_ctrl_c_ends_a_command_although_python_discards_the_exception(strike: str, discarded: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DISCARDED.format(strike=strike)],
        capture_output=True,
        text=True,
        timeout=SOON_S,
        check=True,
    )
    assert done.stdout == f"ended by {discarded}"
    assert done.stderr == ""


def test_other_exceptions_that_python_discards_are_reported() -> None:
    code = "from perhop.processes import interrupts; interrupts.install()\n"
    code += "class A:\n def __del__(self): 1/0\nA()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Exception ignored in" in done.stderr
    assert "ZeroDivisionError" in done.stderr


EARLY = """
import sys

class Struck:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Struck())
sys.modules.pop("{module}", None)
{start}
"""


@pytest.mark.parametrize("module", ["perhop.processes.interrupts", "threading"])
def test_ctrl_c_before_the_program_has_a_handler_ends_it_without_a_traceback(module: str) -> None:
    code = EARLY.format(module=module, start="from perhop.commands.entry import main; main()")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "interrupted; nothing was written\n"
    assert done.returncode == 130


def shell(directory: Path, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", f"exec {sys.executable} -m perhop {command}"],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=SOON_S,
        check=False,
    )


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("command", ["run small.toml", "--version", "--help", "list studies", "schema"])
def test_without_standard_output_a_command_refuses_to_work(tmp_path: Path, command: str) -> None:
    done = shell(tmp_path, f"{command} >&-")
    assert done.returncode == 2
    assert done.stderr == "error: standard output is closed; send it somewhere, such as >/dev/null\n"


@pytest.mark.usefixtures("small")
def test_without_standard_error_a_command_works(tmp_path: Path) -> None:
    done = shell(tmp_path, "run small.toml --out out 2>&-")
    assert done.returncode == 0
    assert "gold" in done.stdout
    assert (tmp_path / "out" / "report.html").stat().st_size > 1000
    assert shell(tmp_path, "run nosuch.toml 2>&-").returncode == 2
    assert shell(tmp_path, "run small.toml <&- >&- 2>&-").returncode == 2


@pytest.mark.usefixtures("small")
def test_a_reader_of_standard_error_who_leaves_disturbs_nothing(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "perhop", "reproduce", "kim-table1", "--runs", "1", "--out", "out"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=write,
        text=True,
        timeout=SOON_S,
        check=False,
    )
    os.close(write)
    assert done.returncode == 0
    assert "report: out/report.html" in done.stdout


HEAVY = (
    "numpy",
    "numpy.ma",
    "scipy",
    "polars",
    "optuna",
    "matplotlib",
    "jinja2",
    "rich",
    "prometheus_client",
    "concurrent.futures",
)
ASKED = f"""
import sys
from perhop.commands import entry
sys.argv[0] = "perhop"
try:
    entry.main()
except SystemExit:
    pass
loaded = [name for name in {HEAVY!r} if name in sys.modules]
loaded += [name for name in sys.modules if name.startswith(("perhop.studies", "perhop.scenario.builder"))]
sys.stderr.write(" ".join(loaded))
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("--help",),
        (),
        *(
            (command, "--help")
            for command in (
                "init",
                "run",
                "list",
                "reproduce",
                "sweep",
                "tune",
                "plan",
                "live",
                "compare",
                "doctor",
            )
        ),
        ("schema",),
        ("list", "blocks"),
    ],
)
def test_help_and_version_wait_for_nothing_heavy(arguments: Sequence[str]) -> None:
    out, _, loaded = loaded_by(*arguments)
    assert out or not arguments
    assert loaded == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("frob",), "No such command 'frob'"),
        (("run", "--nope"), "No such option: --nope"),
        (("run", "missing.toml"), "missing.toml: no such file"),
        (("run", "wrong.toml"), "wrong.toml:1: dration: unknown key"),
        (("run", "small.toml", "--json", "missing/x.json"), "missing/x.json: cannot be written"),
        *(
            ((command, "missing.toml"), "missing.toml: no such file")
            for command in ("bound", "rare", "live", "compare", "witness", "topology")
        ),
    ],
)
def test_what_is_refused_waits_for_nothing_heavy(small: Path, arguments: Sequence[str], says: str) -> None:
    (small.parent / "wrong.toml").write_text('dration = "1s"\n', encoding="utf-8")
    _, said, loaded = loaded_by(*arguments, cwd=small.parent)
    assert says in said
    assert loaded == []


@pytest.mark.parametrize(("name", "refused"), [("missing.toml", 2), ("wrong.toml", 2), ("small.toml", 0)])
def test_a_refused_scenario_waits_for_nothing_that_runs_it(small: Path, name: str, refused: int) -> None:
    (small.parent / "wrong.toml").write_text('dration = "1s"\n', encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "perhop", "run", name, "--runs", "1"],
        cwd=small.parent,
        capture_output=True,
        text=True,
        timeout=SOON_S,
        check=False,
    )
    assert done.returncode == refused
    assert ("perhop.runs" in done.stderr) == (not refused)
    assert "perhop.show.declared" not in done.stderr, "tables of studies"


@pytest.mark.parametrize("command", ["sweep", "tune", "plan"])
def test_a_refused_file_of_many_settings_waits_for_numpy_alone(tmp_path: Path, command: str) -> None:
    """The room of sweeps reads these files and computes with numpy; the store alone needs data frames."""
    _, said, loaded = loaded_by(command, "missing.toml", cwd=tmp_path)
    assert "missing.toml: no such file" in said
    assert loaded == ["numpy"]


@pytest.mark.parametrize("more", [(), ("--json", "-")])
def test_a_short_run_waits_for_numpy_alone(small: Path, more: Sequence[str]) -> None:
    """The engine's arrays are numpy's. Data frames and pictures come to those who ask for them."""
    out, _, loaded = loaded_by("run", "small.toml", *more, cwd=small.parent)
    assert out
    assert loaded == ["numpy"]


def loaded_by(*arguments: str, cwd: Path | None = None) -> tuple[str, str, list[str]]:
    """What a command prints on both streams, and which heavy modules are loaded at its end."""
    done = subprocess.run(
        [sys.executable, "-c", ASKED, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=SOON_S,
        check=True,
    )
    said, _, loaded = done.stderr.rpartition("\n")
    return done.stdout, said, loaded.split()


def test_the_package_alone_loads_nothing_heavy() -> None:
    program = f"import sys, perhop; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
