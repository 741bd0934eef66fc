"""The reference of the Python interface: every public name, which Sphinx documents by type and docstring."""

from __future__ import annotations

import ast
import importlib
import inspect
from itertools import pairwise
from pathlib import Path
from types import FunctionType

import perhop
from perhop import errors, scenario
from perhop.blocks import plugins

LEAD = """\
# The Python interface

<!-- search: API, Python, function, class, import perhop -->

`import perhop` loads nothing heavy; each name below is loaded when it is first used. All of it is typed
(`py.typed`). [Results](../results.md) shows how to read data frames, [measures](../measures.md) lists their
columns, [blocks in Python](../python-blocks.md) says how to write one.
"""
GROUPS = {
    "Functions": "Each does what the command of the same name does, or drives a part of it by hand.",
    "Results": "What the functions take and return.",
    "Blocks in Python": "Base classes of your own mechanisms, and the types of their parameters.",
    "Messages": "What is raised and warned of.",
    "Modules": "Estimates over independent runs, the rating of calls, environments for agents.",
    "Scenarios in Python": (
        "Classes that follow the [scenario format](../scenario.md), with the same names and defaults; a key\n"
        "that is a word of Python has a `_` behind it (`from_`, `in_`). They are generated from the engine,\n"
        "so they have every registered block."
    ),
}
"""The headings of the page, in order, and what is below each."""

MODULES = ("perhop.statistics", "perhop.runs.quality", "perhop.gym")
"""Modules that are documented as a whole."""

BESIDE = (
    *(f"perhop.stepping.driving.{name}" for name in ("Decision", "Departure", "DrivenMeter", "DrivenQueue")),
    "perhop.bounds.rows.Rows",
    "perhop.runs.accessor.Plots",
    "perhop.runs.rows.Rows",
    "perhop.runs.simulate.Interrupted",
    "perhop.show.estimates.Estimates",
    "perhop.splitting.result.Event",
    "perhop.measures.run.Group",
    "perhop.measures.run.Run",
    "perhop.scenario.reading.ScenarioLike",
    "perhop.scenario.reading.ScenarioSource",
    *(
        f"perhop.stepping.simulation.{name}"
        for name in (
            "ByColor",
            "FlowState",
            "Flows",
            "LinkState",
            "Links",
            "QueueState",
            "Snapshot",
            "StateChange",
            "StateSample",
        )
    ),
    "perhop.real_packets.laboratory.LiveReport",
    "perhop.statistics.stopping.Look",
)
"""Types that public names take or return without being public themselves."""

SOURCES = {"perhop.scenario": "perhop.scenario.builder"}
"""The modules in which the names of a module are defined, if not in itself."""


def write(folder: Path) -> None:
    """Write `python.md`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "python.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The page: a group after the other, each with its names."""
    parts = [LEAD.rstrip()]
    for heading, names in grouped().items():
        parts += [f"## {heading}", GROUPS[heading], *map(directive, names)]
    return "\n\n".join(parts) + "\n"


def grouped() -> dict[str, list[str]]:
    """Every public name of perhop, and of the builder, below the heading of its kind."""
    found: dict[str, list[str]] = {heading: [] for heading in GROUPS}
    for name in sorted({*perhop.__all__} - {"__version__", *scenario.__all__}):
        found[_heading(name)].append(f"perhop.{name}")
    found["Results"] += BESIDE
    found["Modules"] += MODULES
    found["Scenarios in Python"] += [f"perhop.scenario.{name}" for name in sorted(scenario.__all__)]
    return found


def directive(name: str) -> str:
    """The lines that have Sphinx document a name."""
    if name in MODULES:
        return _rst(f".. automodule:: {name}", "   :members:")
    module, _, last = name.rpartition(".")
    value = getattr(importlib.import_module(module), last)
    if isinstance(value, FunctionType):
        return _rst(f".. autofunction:: {name}")
    if not isinstance(value, type):
        # Sphinx would read "A codepoint: six bits" as a type and its description.
        return _rst(f".. py:data:: {name}", "", f"   {_docstring(module, last)}")
    if issubclass(value, Exception):
        return _rst(f".. autoexception:: {name}")
    return _rst(f".. autoclass:: {name}", *(["   :members:"] if module != "perhop.scenario" else []))


def _rst(*lines: str) -> str:
    return "\n".join(["```{eval-rst}", *lines, "```"])


def _docstring(module: str, name: str) -> str:
    """The text below the assignment of a name, in one line."""
    source = inspect.getsource(importlib.import_module(SOURCES.get(module, module)))
    for assignment, below in pairwise(ast.parse(source).body):
        match assignment, below:
            case (
                ast.AnnAssign(target=ast.Name(id=found)) | ast.Assign(targets=[ast.Name(id=found)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ) if found == name:
                return " ".join(text.split())
    raise ValueError(f"{module}.{name} has no docstring")


def _heading(name: str) -> str:
    if name in errors.__all__:
        return "Messages"
    if name in plugins.__all__:
        return "Blocks in Python"
    return "Functions" if isinstance(getattr(perhop, name), FunctionType) else "Results"
