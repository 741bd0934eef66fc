"""Progress without a terminal."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from perhop import terminal

if TYPE_CHECKING:
    import pytest


def test_a_pipe_gets_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr("perhop.terminal.time.monotonic", lambda: clock[0])
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
    monkeypatch.setattr("perhop.terminal.PROGRESS_EVERY_S", 0.05)
    before = threading.active_count()
    with terminal.progress("runs", 2) as step:
        said = ""
        deadline = time.monotonic() + 30
        while not said and time.monotonic() < deadline:
            time.sleep(0.01)
            said = capsys.readouterr().err
        assert said.startswith("runs: 0 of 2 after 0 s\n")
        step()
        with step.paused():
            capsys.readouterr()
            time.sleep(0.2)
            assert capsys.readouterr().err == "", "nothing stands amid results"
    assert threading.active_count() == before


def test_the_last_step_needs_no_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("perhop.terminal.time.monotonic", lambda: clock[0])
    with terminal.progress("runs", 1) as step:
        clock[0] = 60.0
        step()
    assert capsys.readouterr().err == ""
