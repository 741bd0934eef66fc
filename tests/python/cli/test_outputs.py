"""Places of results: no command runs if two of its options name one file, or one names what cannot be it.

The options are those of the table of commands: a new one that writes a file is tested without a line here.
"""

from __future__ import annotations

import itertools
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.python.conftest import SMALL

from perhop.commands import cli
from perhop.files.swap import FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

ANY = ".out"
"""For a file whose name may end in anything."""
EXAMPLES = Path(__file__).parents[3] / "examples"
SWEEP = 'scenario = "small.toml"\nruns = 2\n[grid]\n"links.bottleneck.rate" = ["1Mbps", "2Mbps"]\n'
TUNE = """\
scenario = "small.toml"
runs = 2
trials = 2
objectives = ["maximize links.bottleneck.utilization"]
[search]
"links.bottleneck.rate" = ["1Mbps", "2Mbps"]
"""
PLAN = """\
scenario = "small.toml"
runs = 2
objectives = ["throughput of gold > 10 kbit/s"]
[export]
to = "tc"
"""
INPUTS = {
    "run": ("small.toml",),
    "bound": ("small.toml",),
    "rare": ("small.toml", "--runs", "2"),
    "live": ("small.toml",),
    "compare": ("small.toml",),
    "witness": ("small.toml",),
    "replay": ("in.pcap", "--queue", 'aqm = "codel"', "--rate", "1Mbps"),
    "sweep": ("sweep.toml",),
    "tune": ("tune.toml",),
    "plan": ("plan.toml",),
    "reproduce": ("kim-fig2", "--runs", "2"),
    "export": ("small.toml", "--to", "tc"),
    "import": ("in.cfg",),
    "topology": ("chain", "routers=3"),
}
"""What each command with outputs reads."""


@dataclass(frozen=True)
class Output:
    """An option of a command that names a file or a folder to write.

    Attributes:
        placeholder: The placeholder of its value in help, such as `FILE.svg` or `DIR`.
    """

    command: str
    name: str
    placeholder: str

    @property
    def is_folder(self) -> bool:
        return self.placeholder == "DIR"

    @property
    def suffix(self) -> str:
        return Path(self.placeholder).suffix or {"--packets": ".parquet"}.get(self.name, ANY)


def outputs() -> Iterator[Output]:
    """The outputs of all commands."""
    for command, *_ in cli.COMMANDS:
        for option in getattr(cli.loaded(command), "params", ()):
            placeholder = str(getattr(option, "metavar", None) or "")
            if placeholder == "DIR" or (placeholder.startswith("FILE") and option.opts[0].startswith("--")):
                yield Output(command, option.opts[0], placeholder)


ALL = list(outputs())
PAIRS = [
    (one, other)
    for one, other in itertools.permutations(ALL, 2)
    if one.command == other.command and not one.is_folder and (other.is_folder or one.name < other.name)
    if not (other.name == "--csv" and one.suffix != ANY)  # no table has another suffix
]
"""Every file that a command writes, beside every other file and folder."""


def named(one: Output) -> str:
    return f"{one.command} {one.name}"


def together(place: Path, one: Output, other: Output) -> tuple[Path, Path]:
    """One file for two options, reached by a link where they want different suffixes."""
    first, second = place / f"here{one.suffix}", place / f"here{other.suffix}"
    if other.is_folder:
        second = place / "here"
        inside = {"--csv": "points.csv", "--store": f"journals/x{one.suffix}"}
        of_report = FILES[0] if one.suffix == ANY else f"plots/x{one.suffix}"
        return second / inside.get(other.name, of_report), second
    if first != second:
        second.symlink_to(first)
    return first, second


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with what the commands read."""
    for name, text in (("small", SMALL), ("sweep", SWEEP), ("tune", TUNE), ("plan", PLAN)):
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    shutil.copy(EXAMPLES / "capture.pcap", tmp_path / "in.pcap")
    (tmp_path / "in.cfg").write_text("interface eth0\n", encoding="utf-8")
    return tmp_path


def refused(done: Finished, place: Path, before: set[Path]) -> str:
    """The one line of a command that was refused, and that has made nothing but empty folders."""
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1, done.err
    assert all(path.is_dir() for path in set(place.rglob("*")) - before)
    return done.err


def test_each_command_with_outputs_has_inputs_here() -> None:
    assert {one.command for one in ALL} == set(INPUTS)
    assert len(PAIRS) > 25


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=named)
def test_two_options_that_name_one_file_are_refused_before_any_run(
    perhop: Perhop, place: Path, one: Output, other: Output
) -> None:
    first, second = together(place, one, other)
    before = set(place.rglob("*"))
    words = [*INPUTS[one.command], one.name, first, other.name, second]
    said = refused(perhop(one.command, *words), place, before)
    assert one.name in said
    assert other.name in said


@pytest.mark.parametrize("one", [one for one in ALL if one.is_folder], ids=named)
def test_standard_output_takes_no_folder(perhop: Perhop, place: Path, one: Output) -> None:
    before = set(place.rglob("*"))
    done = perhop(one.command, *INPUTS[one.command], one.name, "-")
    assert f"{one.name} -: standard output takes no folder" in refused(done, place, before)


@pytest.mark.parametrize(
    "one", [one for one in ALL if Path(one.placeholder).suffix not in ("", ".toml")], ids=named
)
def test_a_wrong_suffix_is_refused(perhop: Perhop, place: Path, one: Output) -> None:
    before = set(place.rglob("*"))
    done = perhop(one.command, *INPUTS[one.command], one.name, "x.txt")
    assert f"{one.name} x.txt: " in refused(done, place, before)


@pytest.mark.parametrize("one", ALL, ids=named)
def test_an_empty_name_is_refused(perhop: Perhop, place: Path, one: Output) -> None:
    before = set(place.rglob("*"))
    done = perhop(one.command, *INPUTS[one.command], one.name, "")
    assert f"{one.name}: a name is empty" in refused(done, place, before)


@pytest.mark.parametrize("command", ["export", "import"])
def test_two_texts_on_standard_output_are_refused(perhop: Perhop, place: Path, command: str) -> None:
    before = set(place.rglob("*"))
    done = perhop(command, *INPUTS[command], "--json", "-")  # the other text is there by default
    assert "--output - and --json - both mean standard output" in refused(done, place, before)
