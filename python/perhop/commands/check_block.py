"""`perhop check-block`: the conformance harness over a class in Python."""

from __future__ import annotations

import json
import pickle
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perhop import _engine
from perhop.commands import options, terminal
from perhop.errors import PerhopError
from perhop.files import inputs
from perhop.plurals import counted
from perhop.processes import interrupts

if TYPE_CHECKING:
    from perhop.blocks import plugins


SEQUENCES = 200
"""Random sequences of calls: some seconds."""
RAISES = "no sequence of calls raises an error"
"""The check without which those of what the calls do say nothing: a sequence ends at its first error."""
Check = tuple[str, str | None]
"""A check's name, and the fault that it found, if any."""


def check_block(
    block: Annotated[
        str,
        typer.Argument(metavar="MODULE:CLASS", help="A class, such as my_aqm:Blue, or a registered name."),
    ],
    parameters: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Its parameters, such as limit=20p.")
    ] = None,
    *,
    sequences: Annotated[
        int, options.option("--sequences", "N", "Random sequences of calls.", min=1)
    ] = SEQUENCES,
) -> None:
    """Check a class in Python as every built-in block is checked.

    Random sequences of arrivals, departures and pauses, of an AQM under each scheduler: packets are
    conserved and keep their order, two runs with one seed decide alike, a copy decides as its original.
    Congestion controls get random ACKs, losses, marks and timeouts, applications random arrivals.
    Exit status 1 if a check fails.

    \b
    Examples:
      perhop check-block my_aqm:Blue limit=20p
      perhop check-block my-blue limit=20p freeze=1ms --plugin my_aqm
      perhop check-block my_meter:Bucket rate=1Mbps burst=20kB
      perhop check-block my_congestion:Aimd
    """
    with interrupts.loading():
        from perhop.blocks import plugins
    role, table = _completed(block, _given(parameters or []))
    cls = plugins.load(table["class"], role)
    shown = ", ".join(f"{key} = {json.dumps(value)}" for key, value in _parameters(table).items())
    _tell(f"{table['class']}: {shown or 'no parameters'}")
    checks = [_round_trip(role, table), _pickled(cls, table)]
    harness = {
        "aqm": _engine.check_aqm,
        "meter": _engine.check_meter,
        "congestion-control": _engine.check_congestion_control,
        "application": _engine.check_application,
    }[role]
    with plugins.watching() as made:
        called: list[Check] = harness(json.dumps({cls.TAG: "python", **table}), sequences)
    called.append(_kept(made))
    raises = any(what.startswith(RAISES) and problem is not None for what, problem in called)
    unknown = {what for what, problem in called if raises and problem is None}
    checks += called
    for what, problem in checks:
        if what in unknown:
            _tell(f"  not checked  {what}")
        else:
            _tell(f"  ok      {what}" if problem is None else f"  FAILED  {what}: {problem}")
    failures = sum(problem is not None for _, problem in checks)
    if failures:
        rest = f", {len(unknown)} not checked: calls end at the error" if unknown else ""
        terminal.say(f"{counted(failures, 'check')} of {len(checks)} failed{rest}")
        raise typer.Exit(1)
    terminal.say(f"{len(checks)} checks passed ({counted(sequences, 'sequence')} of calls)")


def _tell(line: str) -> None:
    """A line, which goes on below the name of the check where the terminal is too narrow for it."""
    wrapped = textwrap.wrap(
        line,
        terminal.width(wide=False) or terminal.NARROWEST,
        subsequent_indent=" " * 10,
        break_long_words=False,
        break_on_hyphens=False,
    )
    terminal.say("\n".join(wrapped))


def _given(texts: list[str]) -> dict[str, Any]:
    """The parameters as typed.

    Raises:
        PerhopError: One is not KEY=VALUE, or given twice.
    """
    given: dict[str, Any] = {}
    for key, value in map(_parameter, texts):
        if key in given:
            raise PerhopError(f"`{key}` is given twice; write it once")
        given[key] = value
    return given


def _parameter(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise PerhopError(f"`{text}`: write a parameter as KEY=VALUE, such as limit=20p")
    inputs.expect_bounded(value, "json", f"`{key}`")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _completed(block: str, parameters: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The role and the table of the class.

    Raises:
        PerhopError: There is no such class, it is a built-in block, or a parameter is wrong.
    """
    from perhop.blocks import plugins

    roles = [plugins.role_of(block)] if ":" in block else list(plugins.BASES)
    for role in roles:
        completed = plugins.complete(role, block, json.dumps(parameters))
        if completed is not None:
            table: dict[str, Any] = json.loads(completed)
            return role, table
    for built_in in json.loads(_engine.blocks()):
        if built_in["name"] == block:
            raise PerhopError(
                f"`{block}` is a built-in {built_in['role']}, which perhop's own tests check; "
                "check-block takes a class in Python, written module:Class"
            )
    raise PerhopError(f"no class is registered as `{block}`; write module:Class, or --plugin with its module")


def _parameters(table: dict[str, Any]) -> dict[str, Any]:
    """What the class is created with."""
    from perhop.blocks import plugins

    said = plugins.load(table["class"], plugins.role_of(table["class"])).SAYS
    return {key: value for key, value in table.items() if key not in ("class", "source", *said)}


def _kept(made: list[plugins.Block]) -> Check:
    from perhop.blocks import plugins

    written = (
        f"{plugins.path_of(type(block))}: {text}" for block in made if (text := plugins.rewritten(block))
    )
    return "parameters stay as they were given", next(written, None)


def _round_trip(role: str, table: dict[str, Any]) -> Check:
    from perhop.blocks import plugins

    again = plugins.complete(role, "python", json.dumps(table))
    return (
        "parameters are read as they are written",
        None if again is not None and json.loads(again) == table else f"written {table}, read {again}",
    )


def _pickled(cls: type[plugins.Block], table: dict[str, Any]) -> Check:
    try:
        made = cls(**{key.replace("-", "_"): value for key, value in _parameters(table).items()})
        pickle.loads(pickle.dumps(made))  # noqa: S301 - its own pickle
        problem = None
    except Exception as error:  # noqa: BLE001 - whatever the class raises
        problem = f"{type(error).__name__}: {error}"
    return "it can be pickled, so that it can go to other processes", problem
