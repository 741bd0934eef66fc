"""`perhop.course`: answers to a lab, checked from Python."""

from __future__ import annotations

from pathlib import Path

from perhop.coursework import answers, bench, checking, lab
from perhop.coursework.checking import Checked
from perhop.files import arguments


def course(name: str, file: Path | str) -> list[Checked]:
    """Check the answers to a lab against runs of its scenarios, as `perhop course check` does.

    Args:
        name: The lab, such as `red`, or a folder with a lab.toml.
        file: The answers, as `perhop course start` lays them out.

    Returns:
        For each question its `state`, `right`, `wrong` or `missing`, and a `hint` that does not give
        the answer away.

    Raises:
        PerhopError: There is no such lab, or the answers cannot be read.
    """
    chosen = lab.find(arguments.text("name", name))
    given = answers.read(arguments.path("file", file), chosen)
    runs = bench.Bench(chosen)
    scenarios = checking.scenarios(chosen, runs, given, str(file))
    runs.run(list(dict.fromkeys(scenarios)), lambda _count: lambda: None)
    return checking.check(chosen, runs, given, str(file))
