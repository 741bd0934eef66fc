"""The reference of the Python interface: its names; Sphinx takes the rest from types and docstrings."""

from __future__ import annotations

from pathlib import Path

from perhop import scenario

LEAD = """\
# The Python interface

`import perhop` loads nothing heavy; each name below is loaded when it is first used. All of it is typed
(`py.typed`). [Results](../results.md) shows how to read data frames, [measures](../measures.md) lists their
columns.
"""
PARTS = {
    "Running": (
        "A scenario in, a result out.",
        [
            "perhop.run",
            "perhop.Result",
            "perhop.output.accessor.Plots",
            "perhop.simulation.ScenarioSource",
            "perhop.simulation.ScenarioLike",
            "perhop.runs.Run",
            "perhop.runs.Group",
            "perhop.output.readable.Estimates",
        ],
    ),
    "Captures": ("Packets of a capture at a meter, a queue or a link.", ["perhop.replay", "perhop.Replay"]),
    "Messages": (
        "What is raised and warned of.",
        ["perhop.PerhopError", "perhop.ScenarioError", "perhop.PerhopWarning"],
    ),
    "Statistics": (
        "Estimates over independent runs, and the rating of calls.",
        ["perhop.statistics", "perhop.quality"],
    ),
}
BUILDER = """\
## Scenarios in Python

Classes that follow the [scenario format](../scenario.md), with the same names and defaults; a key that is a
word of Python has a `_` behind it (`from_`, `in_`). They are generated from the engine, so they have every
registered block.
"""


def write(folder: Path) -> None:
    """Write `python.md`."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [LEAD.rstrip()]
    for title, (text, names) in PARTS.items():
        parts += [f"## {title}", text, *map(directive, names)]
    parts += [BUILDER.rstrip(), *(directive(f"perhop.scenario.{name}") for name in builders())]
    (folder / "python.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def builders() -> list[str]:
    """The classes of the builder, by name."""
    return sorted(name for name in scenario.__all__ if isinstance(getattr(scenario, name), type))


def directive(name: str) -> str:
    """What has Sphinx document a name."""
    module, _, last = name.rpartition(".")
    kind = "autodata"
    if module == "perhop" and last in ("statistics", "quality"):
        kind = "automodule"
    elif last[0].isupper() and last != "ScenarioSource":
        kind = "autoexception" if last.endswith(("Error", "Warning")) else "autoclass"
    elif last[0].islower():
        kind = "autofunction"
    members = [":members:"] if kind in ("autoclass", "automodule") and module != "perhop.scenario" else []
    return "\n".join(["```{eval-rst}", f".. {kind}:: {name}", *(f"   {one}" for one in members), "```"])
