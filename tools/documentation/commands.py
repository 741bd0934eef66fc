"""The reference of commands, from the command line's own declarations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perhop.commands import cli

LEAD = """\
# Commands

All commands of `perhop`, as `perhop COMMAND --help` describes them. Exit status: 0 fine, 1 faults that
`store verify` or differences that `rerun` found, 2 a request that cannot be met (one line on standard error
says why), 3 runs on real packets that are invalid, 130 interrupted.
"""


def write(folder: Path) -> None:
    """Write `commands.md`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "commands.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The page: a section for each command."""
    every = (one for name, _, _ in cli.COMMANDS for one in walk(f"perhop {name}", cli.loaded(name)))
    return "\n\n".join([LEAD.rstrip(), *(section(words, command) for words, command in every)]) + "\n"


def walk(words: str, command: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - typer's own Click has no public types
    """A command, or every command below a group of commands, with the words that call it."""
    if not hasattr(command, "commands"):
        yield words, command
        return
    for name, below in command.commands.items():
        if not getattr(below, "hidden", False):
            yield from walk(f"{words} {name}", below)


def section(words: str, command: Any) -> str:  # noqa: ANN401
    """A command: how it is called, what it does, its arguments and options."""
    parameters = [one for one in command.params if not getattr(one, "hidden", False)]
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    options = [one for one in parameters if one.param_type_name == "option"]
    call = " ".join([words, *(["[OPTIONS]"] if options else []), *map(_argument, arguments)])
    parts = [f"## {words}", f"```text\n{call}\n```", *_prose(command.help or "")]
    rows = [f"| `{_argument(one)}` | {_meaning(one)} |" for one in arguments]
    rows += [f"| {_option(one)} | {_meaning(one)} |" for one in options]
    if rows:
        parts.append("\n".join(["| | |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def _prose(text: str) -> Iterator[str]:
    """Paragraphs; those behind a backspace, which stand as they are, as code."""
    for paragraph in text.replace("\f", "\n\n").split("\n\n"):
        if "\b" in paragraph:
            yield "```text\n" + paragraph.replace("\b", "").strip("\n") + "\n```"
        elif paragraph.strip():
            yield _escaped(" ".join(paragraph.split()))


def _argument(one: Any) -> str:  # noqa: ANN401
    name = one.metavar or one.name.upper()
    if name.startswith("["):
        return str(name)
    shown = f"{name}..." if one.nargs == -1 and not name.endswith(("…", "...")) else name
    return shown if one.required else f"[{shown}]"


def _option(one: Any) -> str:  # noqa: ANN401
    names = ", ".join(f"`{name}`" for name in [*one.opts, *one.secondary_opts])
    if one.is_flag:
        return names
    return f"{names} `{one.metavar}`".replace("|", "\\|") if one.metavar else names


def _meaning(one: Any) -> str:  # noqa: ANN401
    text = _escaped(" ".join((one.help or "").split()))
    shown = one.default if getattr(one, "show_default", True) and not one.required else None
    if callable(shown) or shown is None or shown is False or shown in ("", (), []):
        return text
    return f"{text} Default: `{getattr(shown, 'value', shown)}`."


def _escaped(text: str) -> str:
    """Text of the command line, whose signs Markdown would take for its own."""
    pieces = text.split("`")
    pieces[::2] = [
        piece.replace("\\", "\\\\")
        .replace("|", "\\|")
        .replace("<", "\\<")
        .replace("*", "\\*")
        .replace("[", "\\[")
        for piece in pieces[::2]
    ]
    return "`".join(pieces)
