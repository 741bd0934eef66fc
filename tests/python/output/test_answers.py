"""Columns that answer: a terminal of 80 columns shows them, for calls as for transfers, and cuts nothing."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.python.live.living import pretend
from typer.testing import CliRunner

from perhop.commands.cli import app
from perhop.show.table import CUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CALLS = """\
title = "A call beside downloads, with colors, profiles and long names"
duration = "3s"
warmup = "1s"

[links."a bottleneck with a long name"]
from = "internet"
to = "home"
rate = "1Mbps"
delay = "10ms"
queue = { aqm = "rio", limit = "20p", in = "10/18/0.02", total = "5/15/0.1" }

[[flows]]
name = "downloads of the gold class"
count = 3
from = "internet"
to = "home"
transport = { tcp = "newreno", packet = "1000B" }
profile = { rate = "0.333333Mbps", marker = "token-bucket", burst = "10kB" }

[[flows]]
name = "call"
from = "internet"
to = "home"
codec = "g711"
transport = { udp = "cbr", rate = "64kbps", packet = "200B" }
"""

TRANSFERS = """\
title = "Files of a fixed size beside a population of short flows"
duration = "12s"
warmup = "1s"

[links.line]
from = "internet"
to = "home"
rate = "5Mbps"
delay = "10ms"
queue = { aqm = "drop-tail", limit = "50p" }

[[flows]]
name = "files"
count = 3
from = "internet"
to = "home"
start = "1s..2s"
volume = "200kB"
transport = { tcp = "linux" }

[[flows]]
name = "pages"
from = "internet"
to = "home"
arrivals = { load = 0.3 }
sizes = { constant = "30kB" }
transport = { tcp = "linux" }
"""

FILES = {
    "calls.toml": CALLS,
    "transfers.toml": TRANSFERS,
    "calls-sweep.toml": """\
scenario = "calls.toml"
runs = 2
metrics = ["flows.*.throughput_bps", "flows.*.loss", "links.*", "flows.*.one_way_delay_p99_s"]
[grid]
"flows.call.count" = [1, 2]
""",
    "transfers-sweep.toml": """\
scenario = "transfers.toml"
runs = 2
metrics = ["flows.*.throughput_bps", "links.*", "flows.*.completion_*"]
[grid]
"flows.files.count" = [2, 3]
""",
    "calls-tune.toml": """\
scenario = "calls.toml"
runs = 2
trials = 2
validation-runs = 2
objectives = [
    "maximize links.a bottleneck with a long name.utilization",
    "minimize flows.call.one_way_delay_p99_s",
]
constraints = ["flows.call.throughput_bps >= 1kbps"]
[search]
"flows.call.count" = "1..3"
""",
    "transfers-tune.toml": """\
scenario = "transfers.toml"
runs = 2
trials = 2
validation-runs = 2
objectives = ["minimize flows.files.completion_s", "maximize flows.files.throughput_bps"]
[search]
"links.line.queue.limit" = "20p..60p"
""",
    "calls-plan.toml": """\
scenario = "calls.toml"
runs = 3
objectives = ["P99 of one-way delay of call < 300 ms", "loss of call < 50 %"]
[growth]
demands = []
""",
    "transfers-plan.toml": """\
scenario = "transfers.toml"
runs = 3
objectives = ["flows.files.completion_s < 10 s", "throughput of files > 1 kbit/s"]
[growth]
demands = []
""",
    "link.sh": """\
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:10 htb rate 2mbit ceil 2mbit prio 0
tc class add dev eth0 parent 1: classid 1:20 htb rate 8mbit ceil 8mbit prio 1
tc qdisc add dev eth0 parent 1:10 pfifo limit 50
tc qdisc add dev eth0 parent 1:20 fq_codel limit 1000 target 5ms interval 100ms
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 1:10
""",
}


class Shown(NamedTuple):
    """A cell that must be there.

    Attributes:
        row: The text of the first column.
        head: The head of the column.
        cell: What the cell must match.
    """

    row: str
    head: str
    cell: str = r"\d"


ANSWERS: dict[str, tuple[str, Sequence[Shown]]] = {
    "run, calls": (
        "run calls.toml --runs 2",
        [
            Shown("call", "one-way delay p99, ms"),
            Shown("call", "MOS"),
            Shown("call", "throughput, Mbit/s"),
            Shown("downloads of the gold class", "throughput, Mbit/s"),
            Shown("a bottleneck with a long name", "used, %"),
        ],
    ),
    "run, transfers": (
        "run transfers.toml --runs 2",
        [
            Shown("files", "throughput, Mbit/s"),
            Shown("files", "FCT, ms"),
            Shown("pages", "FCT p50, ms"),
            Shown("pages", "FCT p99, ms"),
        ],
    ),
    "sweep, calls": (
        "sweep calls-sweep.toml",
        [
            Shown("2", "call one-way delay p99, ms"),
            Shown("2", "downloads of the gold class throughput, Mbit/s"),
        ],
    ),
    "sweep, transfers": (
        "sweep transfers-sweep.toml",
        [Shown("2", "files FCT, ms"), Shown("2", "files throughput, Mbit/s")],
    ),
    "tune, calls": (
        "tune calls-tune.toml",
        [Shown("as it is", "call one-way delay p99, ms"), Shown("as it is", "constraints", "kept")],
    ),
    "tune, transfers": (
        "tune transfers-tune.toml",
        [Shown("as it is", "files FCT, ms"), Shown("as it is", "files throughput, Mbit/s")],
    ),
    "plan, calls": (
        "plan calls-plan.toml",
        [
            Shown("P99 of one-way delay of call < 300 ms", "measured", r"\d ms$"),
            Shown("P99 of one-way delay of call < 300 ms", "verdict", "[a-z]"),
        ],
    ),
    "plan, transfers": (
        "plan transfers-plan.toml",
        [
            Shown("flows.files.completion_s < 10 s", "measured", "[)0-9] ms$"),
            Shown("throughput of files > 1 kbit/s", "verdict", "holds"),
        ],
    ),
    "compare, calls": (
        "compare calls.toml --runs 2 --sim-runs 2",
        [
            Shown(f"call: {what}", head, cell)
            for what in ("one-way delay p99, ms", "throughput, Mbit/s")
            for head, cell in (("simulated", r"\d"), ("live", r"\d"), ("verdict", "[a-z]"))
        ],
    ),
    "compare, transfers": (
        "compare transfers.toml --runs 2 --sim-runs 2",
        [
            Shown(f"files: {what}", head, cell)
            for what in ("FCT, ms", "throughput, Mbit/s")
            for head, cell in (("simulated", r"\d"), ("live", r"\d"), ("verdict", "[a-z]"))
        ],
    ),
    "import": (
        "import link.sh --rate 10Mbps --packet-size 1kB --output made.toml",
        [
            Shown("rate", "value", '"2Mbps"'),
            Shown("match", "value", r'\{ dscp = \["EF"\] \}'),
            Shown("limit", "value", '"1000p"'),
            Shown("rate", "line", "line 2"),
        ],
    ),
}
"""Each case has a command and the cells that answer: one-way delay, rate or completion time."""

RULE = re.compile("─+")
LEFT_OUT = re.compile(r"\d+ columns? left out: ")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory with the files of all commands; simulated runs stand for those on real packets."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "perhop.real_packets.laboratory.run",
        lambda scenario, *, runs=1, seed=1, **_: pretend(scenario, runs, seed=seed + 100),
    )


@pytest.mark.parametrize("case", ANSWERS)
@pytest.mark.usefixtures("place")
def test_the_cells_that_answer_are_shown_in_full(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command, answers = ANSWERS[case]
    wide = list(tables(typed(f"{command} --wide")))  # where no cell takes several lines
    for columns in (80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        narrow = typed(command)
        assert max(map(len, narrow.splitlines())) <= columns
        assert CUT not in narrow
        for answer in answers:
            [cell] = {
                cell
                for names, table in wide
                for name, cell in zip(names, table.get(answer.head, ()), strict=False)
                if name == answer.row and re.search(answer.cell, cell)
            }
            assert any(
                answer.row in " ".join(names) and cell in " ".join(table.get(answer.head, ()))
                for names, table in tables(narrow)
            ), f"{answer}, {cell}:\n{narrow}"


def typed(command: str) -> str:
    """What a command prints."""
    Path("made.toml").unlink(missing_ok=True)
    done = CliRunner().invoke(app, shlex.split(command), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


RULE = re.compile("─+")
LEFT_OUT = re.compile(r"\d+ columns? left out: ")


def tables(text: str) -> Iterator[tuple[list[str], dict[str, list[str]]]]:
    """The tables in a text: the lines of the first column, and those of the others by their heads."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if not RULE.fullmatch(line):
            continue
        heads = list(itertools.takewhile(str.strip, reversed(lines[:at])))[::-1]
        below = itertools.takewhile(str.strip, lines[at + 1 :])
        body = list(itertools.takewhile(lambda row: not LEFT_OUT.match(row), below))
        blank = [
            not any(row[place : place + 1].strip() for row in (*heads, *body)) for place in range(len(line))
        ]
        spans = [
            found.span() for found in re.finditer("x+(?: x+)*", "".join(" " if one else "x" for one in blank))
        ]
        columns = [
            (
                " ".join(" ".join(head[slice(*span)] for head in heads).split()),
                [row[slice(*span)].strip() for row in body],
            )
            for span in spans
        ]
        yield columns[0][1], dict(columns[1:])
