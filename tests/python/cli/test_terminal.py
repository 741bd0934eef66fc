"""What reaches the terminal: progress and forecasts, and no control characters."""

from __future__ import annotations

import json
import threading
import time
import tomllib
import unicodedata
from typing import TYPE_CHECKING, Any

import pytest
import typer

from perhop.commands import cli, terminal
from perhop.plurals import lasting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.python.conftest import Finished


def helps(command: Any, name: str, parent: Any = None) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - click's
    """The help of a command and of all below it, at 80 columns."""
    context = command.make_context(
        name, [], parent=parent, resilient_parsing=True, terminal_width=80, max_content_width=80
    )
    yield name, command.get_help(context)
    for below, outline in getattr(command, "commands", {}).items():
        inner = cli.loaded(below) if isinstance(command, cli.Commands) else outline
        yield from helps(inner, f"{name} {below}", context)


def test_every_help_fits_80_columns() -> None:
    found = dict(helps(typer.main.get_command(cli.app), "perhop"))
    assert {"perhop run", "perhop compare", "perhop store verify", "perhop list blocks"} <= set(found)
    for name, text in found.items():
        assert max(map(len, text.splitlines())) <= 80, (name, text)


def test_a_pipe_gets_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr("perhop.commands.terminal.time.monotonic", lambda: clock[0])
    with terminal.progress("runs", 20) as step:
        for seconds in (1, 3, 2, 1, 5):  # at 1, 4, 6, 7 and 12 s
            clock[0] += seconds
            with step.paused():
                step()
    assert capsys.readouterr().err.splitlines() == [
        "runs: 3 of 20 after 6 s, about 34 s left",
        "runs: 5 of 20 after 12 s, about 36 s left",
    ]


def test_a_pipe_gets_a_line_while_a_step_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perhop.commands.terminal.PROGRESS_EVERY_S", 0.05)
    before = threading.active_count()
    with terminal.progress("runs", 2) as step:
        said = ""
        deadline = time.monotonic() + 30
        while not said and time.monotonic() < deadline:
            time.sleep(0.01)
            said = capsys.readouterr().err
        assert said.startswith("runs: 0 of 2 after 1 s\n")
        step()
        with step.paused():
            capsys.readouterr()
            time.sleep(0.2)
            assert capsys.readouterr().err == "", "nothing is amid results"
    assert threading.active_count() == before


class _Bar:
    """A bar of progress that notes what is done with it."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.task_ids = [0]
        self.shown = threading.Event()

    def update(self, _task: int, *, completed: float) -> None:
        self.done.append(f"{completed:g}")

    def start(self) -> None:
        self.done.append("start")
        self.shown.set()

    def stop(self) -> None:
        self.done.append("stop")


@pytest.fixture
def bar(monkeypatch: pytest.MonkeyPatch) -> _Bar:
    """The bar that a terminal would have."""
    made = _Bar()
    monkeypatch.setattr("perhop.commands.terminal.sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("perhop.commands.terminal._bar", lambda _what, _total: made)
    return made


def test_a_terminal_has_a_bar_for_longer_work(bar: _Bar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perhop.commands.terminal.BAR_AFTER_S", 0.0)
    with terminal.progress("runs", 2) as step:
        assert bar.shown.wait(30)
        step()
        with step.paused():
            bar.done.append("results")
    assert bar.done == ["0", "start", "1", "stop", "results", "start", "stop"]


def test_a_terminal_has_no_bar_for_short_work(bar: _Bar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perhop.commands.terminal.BAR_AFTER_S", 3600.0)
    with terminal.progress("runs", 1) as step, step.paused():
        step()
    assert bar.done == []


def test_the_last_step_needs_no_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("perhop.commands.terminal.time.monotonic", lambda: clock[0])
    with terminal.progress("runs", 1) as step:
        clock[0] = 60.0
        step()
    assert capsys.readouterr().err == ""


def test_a_run_on_its_way_is_foretold_soon_where_it_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("perhop.commands.terminal.time.monotonic", lambda: clock[0])
    with terminal.progress("runs", 2) as step:
        for seconds, under_way in ((0.5, 0.0001), (1.0, 0.0002), (2.0, 0.0004), (6.0, 0.5), (6.1, 0.6)):
            clock[0] = seconds
            step.waiting(under_way)
    assert capsys.readouterr().err.splitlines() == [
        "runs: 0 of 2 after 1 s, about 3 h left",
        "runs: 0 of 2 after 6 s, about 18 s left",
    ]


def test_nothing_is_foretold_from_one_or_two_steps_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("perhop.commands.terminal.time.monotonic", lambda: clock[0])
    with terminal.progress("seconds", 1000) as step:
        for seconds in (2.0, 7.0, 13.0):
            clock[0] = seconds
            step()
    assert capsys.readouterr().err.splitlines() == [
        "seconds: 2 of 1000 after 7 s",
        "seconds: 3 of 1000 after 13 s, about 72 min left",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (119.0, "119 s"),
        (120.0, "2 min"),
        (7200.0, "2 h"),
        (1e6, "12 days"),
        (1e9, "32 years"),
        (1e12, "31,688 years"),
    ],
)
def test_durations_read_well(seconds: float, text: str) -> None:
    assert lasting(seconds) == text


CONTROLS = [chr(code) for code in (*range(32), *range(127, 160))]
"""C0, DEL and C1."""
BIDI = [*"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"]
SEQUENCES = ["\x1b[2J", "\x1b]0;title\x07", "\x1bP1$r\x1b\\", "\x9b31m", "\r\x1b[K", "\u2028", "\ufeff"]


def obeyed(text: str) -> set[str]:
    """What a terminal would obey in a text, line breaks aside."""
    return {
        sign
        for sign in text
        if sign != "\n"
        and (unicodedata.category(sign) in {"Cc", "Zl", "Zp", "Cs"} or sign in BIDI or sign == "\ufeff")
    }


@pytest.mark.parametrize("hostile", [*CONTROLS, *BIDI, *SEQUENCES, "\ud800"])
def test_no_text_reaches_the_terminal_as_a_command(hostile: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"before{hostile}after"
    terminal.say(text)
    terminal.note(text)
    terminal.fail(text)
    said = capsys.readouterr()
    assert obeyed(said.out + said.err) == set()
    for line in (said.out + said.err).splitlines():
        assert line.startswith(("before", "error: before", "after"))
    assert said.err.splitlines()[-1].endswith("after"), "an error is one line"
    assert terminal.escaped(text).isprintable()


def test_other_scripts_stay_as_they_are() -> None:
    for text in ("± 3 µs – “95 %”", "Ελληνικά", "日本語", "می\u200cخواهم", "👩\u200d🔬"):
        assert terminal.escaped(text) == text


def test_json_stays_json(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    content = {"title": "".join(CONTROLS + BIDI) + "\U000e0041é"}
    terminal.out_bytes(json.dumps(content, ensure_ascii=False, indent=1).encode())
    out = capfdbinary.readouterr().out.decode()
    assert obeyed(out) == set()
    assert json.loads(out) == content


HOSTILE = "x\x1b[31m\u202ey\x07"


@pytest.mark.parametrize("where", ["title", "group", "router", "link", "key", "value"])
def test_no_file_makes_a_command_send_controls(
    where: str, perhop: Callable[..., Finished], small: Path
) -> None:
    name = json.dumps(HOSTILE)
    scenario = tomllib.loads(small.read_text())
    if where == "title":
        scenario["title"] = HOSTILE
    elif where == "group":
        scenario["flows"][0]["name"] = HOSTILE
    elif where == "router":
        scenario["links"]["bottleneck"]["to"] = HOSTILE
        for flow in scenario["flows"]:
            flow["to"] = HOSTILE
    elif where == "link":
        scenario["links"][HOSTILE] = scenario["links"].pop("bottleneck")
    elif where == "key":
        scenario[HOSTILE] = 1
    else:
        scenario["links"]["bottleneck"]["queue"]["aqm"] = HOSTILE
    small.write_text(toml(scenario), encoding="utf-8")
    assert name[1:4] in small.read_text()
    for command in (("run", small), ("run", small, "--json", "-"), ("run", small, "--out", "out")):
        done = perhop(*command)
        assert obeyed(done.out + done.err) == set()
        assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        (HOSTILE,),
        ("run", HOSTILE),
        ("run", f"--{HOSTILE}"),
        ("run", "small.toml", "--runs", HOSTILE),
        ("run", "small.toml", "--out", f"small.toml/{HOSTILE}"),
        ("scenario", HOSTILE),
        ("reproduce", HOSTILE),
        ("scenario", "kim-table1", f"{HOSTILE}=1"),
        ("sweep", HOSTILE),
        ("tune", HOSTILE),
    ],
)
@pytest.mark.usefixtures("small")
def test_no_argument_makes_a_command_send_controls(
    arguments: tuple[str, ...], perhop: Callable[..., Finished]
) -> None:
    done = perhop(*arguments)
    assert done.code == 2
    assert obeyed(done.out + done.err) == set()
    if "--runs" not in arguments:  # whose message is typer's, which repeats the value or not
        assert "\\x1b" in done.err
    assert "Traceback" not in done.err


def toml(table: dict[str, Any]) -> str:
    """Plain data as TOML, whatever it is."""
    plain = "".join(
        f"{_key(key)} = {_value(value)}\n" for key, value in table.items() if key not in {"links", "flows"}
    )
    links = "".join(f"[links.{_key(name)}]\n" + toml(link) for name, link in table.get("links", {}).items())
    return plain + links + "".join("[[flows]]\n" + toml(flow) for flow in table.get("flows", ()))


def _key(key: str) -> str:
    return json.dumps(key)


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value)
