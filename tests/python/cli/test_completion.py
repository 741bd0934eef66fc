"""Completion of commands and options in shells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]


def completed(perhop: Perhop, monkeypatch: pytest.MonkeyPatch, line: str) -> list[str]:
    """What bash is offered at the end of a line."""
    words = line.split(" ")
    monkeypatch.setenv("_PERHOP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line.replace(" ", "\n"))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    done = perhop()
    assert (done.code, done.err) == (0, "")
    return done.out.split()


def test_commands_are_completed(perhop: Perhop, monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed(perhop, monkeypatch, "perhop re") == ["reproduce", "replay", "rerun"]
    assert completed(perhop, monkeypatch, "perhop list bl") == ["blocks"]
    assert completed(perhop, monkeypatch, "perhop run --cap") == ["--capture", "--capture-link"]
    assert completed(perhop, monkeypatch, "perhop nothing-of-this-name") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(perhop: Perhop, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    monkeypatch.setenv("_PERHOP_COMPLETE", f"source_{shell}")
    done = perhop()
    assert (done.code, done.err) == (0, "")
    assert f"complete_{shell}" in done.out
