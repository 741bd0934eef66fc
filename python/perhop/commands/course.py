"""`perhop course`: lab sheets for a course, and answers checked against runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perhop.commands import options, terminal
from perhop.errors import PerhopError
from perhop.files import filesystem
from perhop.plurals import counted
from perhop.processes import interrupts

if TYPE_CHECKING:
    from perhop.coursework.checking import Checked
    from perhop.coursework.lab import Lab

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Labs of a course; answers checked against runs.",
)

LabName = Annotated[
    str, typer.Argument(metavar="LAB", help="As `perhop course list` names it, or a folder with a lab.toml.")
]


@app.command("list", short_help="The labs, with their topics.")
def list_labs(*, wide: options.Wide = False) -> None:
    """List the labs that come with perhop.

    \b
    Example:
      perhop course list
    """
    with interrupts.loading():
        from perhop.coursework import lab
        from perhop.show import table
    rows = []
    for name in lab.shipped():
        one = lab.find(name)
        rows.append(
            {
                "lab": name,
                "minutes": str(one.minutes),
                "questions": str(len(one.questions)),
                "topic": f"{one.title}: {one.about}",
            }
        )
    for line in table.records(rows, terminal.width(wide=wide)):
        terminal.say(line)
    terminal.say("\nnext: " + terminal.command("course", "start", lab.shipped()[0]))


@app.command("start", short_help="Write a lab's sheet, scenarios and answers.toml into a folder.")
def start(
    name: LabName,
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[FOLDER]", help="Where to (default: a folder of the lab's name)."),
    ] = None,
) -> None:
    """Write a lab's sheet, its scenarios and an `answers.toml` to fill in into a folder.

    Nothing is written over.

    \b
    Examples:
      perhop course start red
      perhop course start red ~/labs/first
    """
    with interrupts.loading():
        from perhop.coursework import answers, lab
    chosen = lab.find(name)
    place = Path(chosen.name) if folder is None else folder
    texts = {file: _content(chosen.folder / file) for file in chosen.files}
    texts[answers.NAME] = answers.template(chosen).encode()
    for file in texts:
        path = place / file
        if path.exists() or path.is_symlink():
            raise PerhopError(f"{path}: exists and is left as it is; name another folder")
    try:
        filesystem.write_folder(place, texts)
    except FileExistsError:  # it appeared meanwhile
        raise PerhopError(f"{place}: has such files and is left as it is; name another folder") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PerhopError(f"{place}: cannot be written: {reason}") from None
    terminal.say(f"{chosen.title}: {', '.join(texts)} in {place}")
    check = terminal.command("course", "check", name, str(place / answers.NAME))
    terminal.say(f"next: read {place / lab.SHEET}; when there are answers, {check}")


@app.command("check", short_help="Check answers against runs, without giving them away.")
def check(
    name: LabName,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="ANSWERS.toml...", help="Answers; those of several students share runs."),
    ],
) -> None:
    """Check answers against runs of the lab's scenarios; say what is wrong without giving the answer away.

    A number is right if it lies where a further run would, with 95 %, or if it is off by rounding only. A
    setting is right if runs with it reach the goals with their whole 95 % intervals. The exit status is 0
    where all is right, 1 where an answer is wrong or missing.

    \b
    Examples:
      perhop course check red answers.toml
      perhop course check red */answers.toml
    """
    with interrupts.loading():
        from perhop.coursework import answers, bench, checking, lab
    chosen = lab.find(name)
    given = {file: answers.read(file, chosen) for file in files}
    runs = bench.Bench(chosen)
    wanted = [
        text for file, one in given.items() for text in checking.scenarios(chosen, runs, one, str(file))
    ]
    scenarios = list(dict.fromkeys(wanted))
    with terminal.progress("runs", len(scenarios) * chosen.runs) as step:
        runs.run(scenarios, lambda _count: step)
    perfect = True
    for place, (file, one) in enumerate(given.items()):
        if len(given) > 1:
            terminal.say(("\n" if place else "") + str(file))
        checked = checking.check(chosen, runs, one, str(file))
        _say(chosen, checked)
        perfect &= all(found.state == "right" for found in checked)
    if not perfect:
        raise typer.Exit(1)


def _say(chosen: Lab, checked: list[Checked]) -> None:
    from perhop.show import table

    width = terminal.width(wide=False)
    terminal.say(table.prose(f"{chosen.title}: {counted(chosen.runs, 'run')} of each scenario", width))
    longest = max(len(found.question.key) for found in checked)
    for number, found in enumerate(checked, 1):
        text = f"{number:>2}  {found.question.key.ljust(longest)}  {found.state}"
        terminal.say(text if not found.hint else text + "\n" + table.prose(found.hint, width, "      "))
    counts = Counter(found.state for found in checked)
    total = ", ".join(f"{counts[state]} {state}" for state in ("right", "wrong", "missing") if counts[state])
    terminal.say(f"{total}, of {len(checked)}")


def _content(path: Path) -> bytes:
    """A file of a lab.

    Raises:
        PerhopError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise PerhopError(f"{path}: cannot be read: {error.strerror or error}") from None
