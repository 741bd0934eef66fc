"""Blocks in Python as users type them: `--plugin`, `list blocks`, `check-block`, errors, Ctrl-C."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

EXAMPLE = Path(__file__).parents[3] / "examples" / "my_aqm.py"
SCENARIO = """\
duration = "5s"
[links.l]
from = "a"
to = "b"
rate = "5Mbps"
delay = "20ms"
queue = { RULE }
[[flows]]
name = "tcp"
count = 4
from = "a"
to = "b"
transport = { tcp = "newreno" }
"""
FAULTY = '''\
"""Two rules that are wrong."""

import random

from perhop import Aqm, Verdict


class Raises(Aqm):
    def on_arrival(self, packet, queue, now, random):
        return Verdict.PASS if now < 10**9 else queue.packet


class Loops(Aqm):
    def on_arrival(self, packet, queue, now, random):
        open("it-loops", "w").close()
        while True:
            pass


class Lucky(Aqm):
    def on_arrival(self, packet, queue, now, _):
        return Verdict.DROP if random.random() < 0.5 else Verdict.PASS
'''


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with the example, faulty rules and scenarios."""
    shutil.copy(EXAMPLE, tmp_path)
    (tmp_path / "faulty.py").write_text(FAULTY, encoding="utf-8")
    for name, rule in {
        "path": 'aqm = "my_aqm:MyBlue", limit = "20p"',
        "name": 'aqm = "my-blue", limit = "20p"',
        "twin": 'aqm = "blue", limit = "20p"',
        "raises": 'aqm = "faulty:Raises"',
        "loops": 'aqm = "faulty:Loops"',
    }.items():
        (tmp_path / f"{name}.toml").write_text(SCENARIO.replace("RULE", rule), encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("place")
def test_a_class_has_a_path_and_a_name(perhop: Perhop) -> None:
    twin = perhop("run", "twin.toml", "--engine", "batched").out.partition("\n")[2]
    for arguments in (
        ("run", "path.toml"),
        ("run", "name.toml", "--plugin", "my_aqm"),
        ("--plugin=my_aqm", "run", "name.toml"),
        ("run", "path.toml", "--jobs", "2", "--engine", "reference"),
    ):
        done = perhop(*arguments)
        assert (done.code, done.out.partition("\n")[2]) == (0, twin), done.err
    refused = perhop("run", "name.toml")
    assert refused.code == 2
    assert refused.err.startswith("error: name.toml:7: links.l.queue.aqm: unknown aqm `my-blue`")


@pytest.mark.usefixtures("place")
def test_a_report_says_how_to_get_it_again(perhop: Perhop) -> None:
    done = perhop("run", "name.toml", "--runs", "2", "--out", "out", "--plugin", "my_aqm")
    assert done.code == 0, done.err
    assert "--plugin my_aqm" in Path(perhop.args[1], "out", "manifest.json").read_text(encoding="utf-8")  # type: ignore[attr-defined]
    again = perhop("rerun", "out")
    assert again.code == 0, again.out + again.err


WRITES = """from perhop import Aqm, CongestionControl, Depth, Verdict

class Rewrites(Aqm):
    '''Writes to its parameters where nothing forbids it.'''

    limit: Depth = Depth("20p")
    share: float = 0.5

    def __post_init__(self):
        self.share = 0.25

    def on_arrival(self, packet, queue, now, random):
        return Verdict.OVERFLOW if queue.is_full(self.limit) else Verdict.PASS

class Afterwards(Rewrites):
    def __post_init__(self):
        pass

    def on_arrival(self, packet, queue, now, random):
        vars(self)["share"] = 0.75
        return super().on_arrival(packet, queue, now, random)

class Plainly(Rewrites):
    def __post_init__(self):
        pass

    def on_arrival(self, packet, queue, now, random):
        self.share = 1.0
        return Verdict.PASS

class Late(Aqm):
    seen = 0

    def on_arrival(self, packet, queue, now, random):
        self.seen += 1
        return Verdict.PASS if self.seen < 1000 else None

class Shrinks(CongestionControl):
    def on_ack(self, ack, now, random):
        self.window -= 0.75
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "Rewrites",
            "FAILED parameters stay as they were given: writes:Rewrites: `share` is 0.25, and was given as",
        ),
        (
            "Afterwards",
            "FAILED parameters stay as they were given: writes:Afterwards: `share` is 0.75, and was given as",
        ),
        (
            "Plainly",
            r"writes:Plainly: on_arrival .*`share` is a parameter, which cannot change.*\(writes\.py:28\)",
        ),
        ("Late", "writes:Late: on_arrival at link `harness` .*: it returned None; return Verdict.PASS"),
        ("Shrinks", "writes:Shrinks: on_ack at flow `harness` at .*it is a number of segments, at least 1"),
    ],
)
def test_what_a_class_must_not_do_is_found(perhop: Perhop, tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "writes.py").write_text(WRITES, encoding="utf-8")
    done = perhop("check-block", f"writes:{name}", "--sequences", "5")
    assert done.code == 1
    assert re.search(message, " ".join(done.out.split())), done.out


@pytest.mark.usefixtures("place")
def test_a_registered_class_is_listed(perhop: Perhop) -> None:
    done = perhop("list", "blocks", "my-blue", "--plugin", "my_aqm")
    assert done.out.startswith("my-blue  (aqm, today)\n    Drops at random")
    assert "freeze     100ms" in done.out
    everything = perhop("list", "blocks", "--plugin", "my_aqm").out
    assert "Classes in Python: my-blue (aqm)" in everything
    assert everything.index("\nmy-blue  (aqm") < everything.index("\npriority  (scheduler")
    assert perhop("list", "blocks", "my-blue").code == 2
    assert perhop("list", "blocks", "my_aqm:MyBlue").out == done.out
    file = perhop("list", "blocks", "my_aqm.py:MyBlue")
    assert (file.code, file.err) == (
        2,
        "error: `my_aqm.py` is a file; write the name of its module, `my_aqm`\n",
    )


def test_a_class_is_checked(perhop: Perhop, place: Path) -> None:
    done = perhop("check-block", "my_aqm:MyBlue", "limit=9p", "freeze=1ms", "--sequences", "20")
    assert done.code == 0, done.err
    assert done.out.startswith(
        'my_aqm:MyBlue: limit = "9p", increment = 0.02, decrement = 0.002, freeze = "1ms"\n'
    )
    assert done.out.count("  ok  ") == 9
    lucky = perhop("check-block", "faulty:Lucky", "--sequences", "20")
    assert lucky.code == 1
    assert "FAILED  two runs with one seed decide alike" in lucky.out
    assert lucky.out.splitlines()[-1] == "2 checks of 9 failed"
    assert max(map(len, lucky.out.splitlines())) <= 80
    raises = perhop("check-block", "faulty:Raises")
    assert (
        raises.code,
        "FAILED  no sequence of calls raises an error: faulty:Raises: on_arrival"
        in " ".join(raises.out.split()).replace("FAILED ", "FAILED  "),
    ) == (
        1,
        True,
    )
    for arguments, problem in {
        ("my_aqm:MyBlue",): "error: key `limit` of my_aqm:MyBlue is missing",
        ("my_aqm:MyBlue", "limit"): "error: `limit`: write a parameter as KEY=VALUE",
        ("my_aqm:MyBlue", "limit=9"): "error: `limit`: expected text in quotes",
        ("mine",): "error: no class is registered as `mine`",
        ("my_aqm:MyBlue", "limit=20p", "limit=30p"): "error: `limit` is given twice; write it once",
        (
            "red",
        ): "error: `red` is a built-in aqm, which perhop's own tests check; check-block takes a class in",
        (
            "my-blue",
            "--plugin",
            "my_aqm.py",
        ): "error: --plugin my_aqm.py: write the name of the module, `my_aqm`",
    }.items():
        refused = perhop("check-block", *arguments)
        assert (refused.code, refused.err.startswith(problem)) == (2, True), refused.err
    (place / "taken.py").write_text(FAULTY.replace("class Lucky(Aqm):", "class Red(Aqm):"), encoding="utf-8")
    assert (
        "`red` is a built-in aqm; give taken:Red another NAME"
        in perhop("list", "blocks", "--plugin", "taken").err
    )
    assert (
        "error: --plugin nowhere: there is no module `nowhere`"
        in perhop("list", "blocks", "--plugin", "nowhere").err
    )


@pytest.mark.parametrize(
    ("base", "call"),
    [
        ("Aqm", "on_arrival(self, packet, queue, now, random)"),
        ("CongestionControl", "on_ack(self, ack, now, random)"),
    ],
)
def test_what_no_call_could_show_is_not_checked(perhop: Perhop, tmp_path: Path, base: str, call: str) -> None:
    text = f"import perhop\n\nclass Broken(perhop.{base}):\n    def {call}:\n        raise KeyError\n"
    (tmp_path / "broken.py").write_text(text, encoding="utf-8")
    done = perhop("check-block", "broken:Broken", "--sequences", "3")
    assert done.code == 1, done.err
    lines = done.out.splitlines()
    assert "FAILED  no sequence of calls raises" in done.out
    assert [line.split()[1] for line in lines if line.startswith("  ok ")] == ["parameters", "it"]
    unknown = sum(line.startswith("  not checked  ") for line in lines)
    total = 3 + unknown
    assert lines[-1] == f"1 check of {total} failed, {unknown} not checked: calls end at the error"


@pytest.mark.usefixtures("place")
def test_an_error_is_one_line(perhop: Perhop) -> None:
    done = perhop("run", "raises.toml", "--runs", "3", "--jobs", "2")
    assert done.code == 2
    line = done.err.splitlines()[-1]
    assert line.startswith("error: faulty:Raises: on_arrival at link `l` at 1.0")
    assert line.endswith(
        "AttributeError: 'perhop._engine.Queue' object has no attribute 'packet' (faulty.py:10)"
    )
    assert "Traceback" not in done.err


@pytest.mark.usefixtures("place")
def test_real_packets_refuse_a_class_by_name(perhop: Perhop) -> None:
    done = perhop("live", "path.toml")
    assert done.code == 2
    assert (
        "links.l.queue.aqm: `my_aqm:MyBlue` is a class in Python, which takes part in simulations only"
        in done.err
    )


@pytest.mark.parametrize(
    "command",
    [
        ("run", "loops.toml", "--runs", "2", "--jobs", "1"),
        ("run", "loops.toml", "--runs", "2", "--jobs", "2"),
        ("check-block", "faulty:Loops"),
    ],
    ids=lambda command: command[0] + command[-1],
)
def test_ctrl_c_ends_a_class_that_loops_for_ever(place: Path, command: tuple[str, ...]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "perhop", *command],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not (place / "it-loops").exists():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.2)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert "Traceback" not in said


def test_the_example_is_of_at_most_twenty_lines() -> None:
    tree = ast.parse(EXAMPLE.read_text(encoding="utf-8"))
    (rule,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    assert rule.end_lineno is not None
    text = EXAMPLE.read_text(encoding="utf-8").splitlines()[rule.lineno - 1 : rule.end_lineno]
    assert len([line for line in text if line.strip()]) <= 20


def test_the_documentation_shows_the_class_of_the_example() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    rule = text[text.index("class MyBlue") : text.index("def network")].strip()
    assert rule in (EXAMPLE.parents[1] / "docs" / "python-blocks.md").read_text(encoding="utf-8")


def test_a_class_of_the_main_program_runs_there(tmp_path: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8").replace(
        'duration="60s", warmup="20s"', 'duration="3s", warmup="1s"'
    )
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    names = [line[:10].strip() for line in done.stdout.splitlines()]
    assert names == ["rule", "my blue", "drop-tail", "red", "codel", "pie"]
