"""`perhop rare`: the probability of rare events, by splitting."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Annotated

from perhop.commands import options, terminal
from perhop.commands.context import Results
from perhop.errors import PerhopError
from perhop.processes import interrupts

_BACKLOGS = ("packets", "bytes")


def rare(
    scenario: options.Scenario,
    *,
    link: Annotated[
        str | None,
        options.option("--link", "LINK", "The link (default: the only one with a queue)."),
    ] = None,
    class_name: Annotated[
        str | None,
        options.option("--class", "CLASS", "This class of packets at the link alone (default: all)."),
    ] = None,
    loss: Annotated[
        bool, options.flag("--loss", "How likely a packet is to be dropped by the queue; the default.")
    ] = False,
    wait: Annotated[
        str | None,
        options.option("--wait", "DURATION", "How likely a packet is to wait longer, such as 20ms."),
    ] = None,
    quantile: Annotated[
        str | None,
        options.option(
            "--quantile", "Q", "The wait that a part Q of the packets does not exceed: 0.9999 or 99.99%."
        ),
    ] = None,
    backlog: Annotated[
        str | None,
        options.choice(
            "--backlog",
            _BACKLOGS,
            "What levels are measured in (default: packets for losses, else bytes).",
        ),
    ] = None,
    levels: Annotated[
        str | None,
        options.option(
            "--levels",
            "L:R,...",
            "The backlog of each level, and how many trials go on from there: 5:4,10:7 (default: a pilot "
            "finds them).",
        ),
    ] = None,
    runs: Annotated[int, options.runs("Independent runs")] = 10,
    seed: options.Seed = 1,
    jobs: options.Jobs = None,
    most_events: Annotated[
        int, options.option("--most-events", "N", "A run that takes more events than this is given up.")
    ] = 100_000_000,
    wide: options.Wide = False,
    json_file: options.Json = None,
    csv: options.Csv = None,
) -> None:
    """Estimate rare events at a link by splitting: a loss of 1e-6, waits that 1 packet in 100,000 has.

    Where a queue grows to a level, the run is copied, and the copies go on with other random numbers; what
    happens in them counts with a weight, so estimates stay unbiased (RESTART). A line says how many events
    plain runs would need for intervals as narrow. docs/rare-events.md says when this helps.

    \b
    Examples:
      perhop rare examples/rare.toml
      perhop rare my.toml --link uplink --class voice --wait 20ms
      perhop rare my.toml --quantile 0.99999 --runs 20
      perhop rare my.toml --levels 5:4,10:7 --json - | jq .estimates
    """
    with interrupts.loading():
        from perhop.runs import extent
        from perhop.scenario import reading
    asked = [
        option for option, given in (("--loss", loss), ("--wait", wait), ("--quantile", quantile)) if given
    ]
    if len(asked) > 1:
        raise PerhopError(f"{asked[0]} and {asked[1]} are two questions; give one of them")
    extent.seeds(seed, runs)
    at_once = extent.workers(jobs)
    split = None if levels is None else _levels(levels)
    part = None if quantile is None else _part(quantile)
    checked = reading.read(scenario)
    terminal.warn(checked.notices)
    results = Results(json_file=json_file, csv=csv, wide=wide, reads=[scenario])
    with interrupts.deferred():
        from perhop.splitting import estimating  # behind all that may be refused: it loads numpy
    with terminal.progress("runs", runs) as step:
        found = estimating.rare(
            scenario,
            link=link,
            class_name=class_name,
            wait=wait,
            quantile=part,
            backlog=backlog,
            levels=split,
            runs=runs,
            seed=seed,
            jobs=at_once,
            most_events=most_events,
            progress=lambda _done, all_: step(all_),
        )
    results.conclude(found)
    results.write_csv()


def _part(text: str) -> float:
    """Read `0.9999` or `99.99%`."""
    try:
        part = Decimal(text.removesuffix("%"))  # 99.9 % is 0.999 to the bit
        return float(part / 100 if text.endswith("%") else part)
    except InvalidOperation:
        raise PerhopError(f"--quantile: `{text}` is no part; write 0.9999 or 99.99%") from None


def _levels(text: str) -> list[tuple[int, int]]:
    """Read `5:4,10:7`."""
    found = []
    for part in text.split(","):
        start, colon, trials = part.partition(":")
        if not (colon and start.strip().isdigit() and trials.strip().isdigit()):
            raise PerhopError(
                f"--levels: `{part}` is no level; write its backlog and its trials, such as 5:4"
            )
        found.append((int(start), int(trials)))
    return found
