"""Whatever fails while a command writes: no finished run lost, nothing false accepted, one clear message.

Each command runs in this process on a file system that fails by a seed (`faults.py`), and once more without a
fault; then everything must be as if nothing had happened. `make faults` tries ten thousand seeds.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import itertools
import os
import random
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer.main
from tests.python.conftest import SMALL
from tests.python.live.living import pretend
from tests.python.stores.faults import Crash, Fault, FaultyFileSystem, Kind

from perhop import _engine
from perhop.commands import cli
from perhop.files import filesystem, outputs, swap
from perhop.show import page
from perhop.stores import metrics
from perhop.stores.outcomes import DirectoryStore, run_key
from perhop.stores.sweeps import SweepStore
from perhop.stores.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perhop.stores.measures import Record

ALL = int(os.environ.get("PERHOP_FAULTS", "60"))
"""How many commands run on a file system that fails, all kinds of them together."""
FIRST = int(os.environ.get("PERHOP_FAULTS_SEED", "1"))
MORE = 150
"""How many more run among the long tests, on other seeds."""

SWEEP = """\
scenario = "small.toml"
runs = 2
metrics = ["flows.*.throughput_bps"]
[grid]
"links.bottleneck.queue.limit" = ["40p", "50p"]
"""
TUNE = """\
scenario = "small.toml"
trials = 3
runs = 1
validation-runs = 1
objectives = ["minimize links.bottleneck.mean_queue_packets"]
[search]
"links.bottleneck.queue.limit" = "40p..50p"
"""
INPUTS = {"small.toml": SMALL.replace('"5s"', '"2s"'), "sweep.toml": SWEEP, "tune.toml": TUNE}
STUDY = "kim-table1"

COMMANDS = {
    "run": "run small.toml --runs 2 --out out --json out.json",
    "reproduce": f"reproduce {STUDY} --runs 1 --jobs 1 --out out --json out.json",
    "sweep": "sweep sweep.toml --jobs 1 --store store --out out --json out.json",
    "tune": "tune tune.toml --jobs 1 --store store --out out --json out.json",
    "compare": "compare small.toml --runs 2 --sim-runs 2 --out out --json out.json",
}

DRAWING = (
    ("studies.page", "html_plot"),
    ("studies.page", "html_network"),
    ("runs.page", "html_plot"),
    ("runs.page", "html_network"),
    ("show.page", "html_plot"),
    ("sweeps.report", "html_plots"),
    ("sweeps.tune_report", "html_plots"),
)
"""What takes long and writes nothing."""
STORES = {"reproduce": "out", "sweep": "store", "tune": "store"}


# ---------------------------------------------------------------- a world in which commands take milliseconds


@dataclass
class World:
    """The runs that one command computed, and those that it surely kept."""

    computed: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of the commands; runs are simulated once, plots are not drawn."""
    place = tmp_path_factory.mktemp("faults") / "work"
    place.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setattr(_engine, "simulate", _recalled(_engine.simulate))
        patch.setattr("perhop.sweeps.backend.simulate", _recalled(metrics.simulate))
        for where, what in DRAWING:
            module = importlib.import_module(f"perhop.{where}")
            patch.setattr(module, what, _once(getattr(module, what)))
        patch.setattr("perhop.show.page.environment", functools.cache(page.environment))
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        patch.setattr("perhop.real_packets.laboratory.run", _live)
        # So that a machine that fails keeps every run.
        patch.setattr("perhop.stores.journal.SYNC_EVERY_S", -1.0)
        patch.setattr(DirectoryStore, "save", _noted(DirectoryStore.save, lambda key, _run: [key]))
        patch.setattr(SweepStore, "append", _noted(SweepStore.append, _of_records))
        yield place


_world = World()


def _recalled(simulate: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[tuple[str, int], Any] = {}

    def recall(scenario: str, seed: int, cancel: Any = None, **choice: Any) -> Any:  # noqa: ANN401
        _world.computed.add(run_key(scenario, seed))
        if (scenario, seed) not in known:
            known[scenario, seed] = simulate(scenario, seed, cancel, **choice)
        return known[scenario, seed]

    return recall


def _once(draw: Callable[..., Any]) -> Callable[..., Any]:
    """Draws the same for the same names."""
    known: dict[Any, Any] = {}

    def recall(*arguments: Any) -> Any:  # noqa: ANN401
        names = tuple(getattr(one, "id", one if isinstance(one, str) else None) for one in arguments)
        if names not in known:
            made = draw(*arguments)
            known[names] = list(made) if isinstance(made, Iterator) else made
        return known[names]

    return recall


def _live(scenario: Any, *, runs: int = 1, seed: int = 1, **_: object) -> object:  # noqa: ANN401
    return pretend(scenario, runs, seed=seed + 100)


def _noted(keep: Callable[..., None], keys: Callable[..., Sequence[str]]) -> Callable[..., None]:
    def note(store: object, *arguments: Any) -> None:  # noqa: ANN401
        keep(store, *arguments)
        _world.kept.update(keys(*arguments))

    return note


def _of_records(records: Sequence[Record]) -> list[str]:
    return [run_key(record.layout.scenario, record.seed) for record in records]


@dataclass(frozen=True)
class Ended:
    """How a command ended; no code if it crashed."""

    code: int | None
    out: str
    err: str
    world: World
    system: FaultyFileSystem


def command(
    line: str,
    place: Path,
    fault: Fault | None = None,
    seed: int = 0,
    before: FaultyFileSystem | None = None,
) -> Ended:
    """Run `perhop LINE` in this process as if it were one of its own."""
    global _world  # noqa: PLW0603 - one command at a time
    _world = World()
    system = FaultyFileSystem(place, fault, seed, before)
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    code: int | None = 0
    with pytest.MonkeyPatch.context() as patch, filesystem.replaced(system):
        patch.setattr(sys, "argv", ["perhop", *line.split()])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                cli.main()
            except SystemExit as end:
                code = int(end.code or 0)
            except Crash:
                code = None
    system.end()
    outputs._claimed.clear()
    out.flush()
    return Ended(code, out.buffer.getvalue().decode(), err.getvalue(), _world, system)


def emptied(place: Path) -> None:
    for path in place.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, text in INPUTS.items():
        (place / name).write_text(text, encoding="utf-8")


def results(place: Path) -> dict[str, bytes]:
    """What a command leaves that a user looks at: everything but the runs that it keeps."""
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in sorted(place.rglob("*"))
        if path.is_file() and path.relative_to(place).parts[0] in ("out", "out.json")
        if path.parent.name != "runs"
    }


HIDDEN = re.compile(r"/\.perhop-(report-|write-test$)|/\..*\.partial$")


def visible(place: Path) -> dict[str, bytes]:
    """The results without hidden files that a failed removal left; the next command removes them."""
    return {path: content for path, content in results(place).items() if not HIDDEN.search(path)}


def report_in(files: dict[str, bytes]) -> dict[str, bytes]:
    return {path: content for path, content in files.items() if path.startswith("out/")}


COUNTS = re.compile(r"\d+ runs? simulated.*")


@functools.cache
def undisturbed(name: str, place: Path) -> tuple[Ended, dict[str, bytes]]:
    emptied(place)
    ended = command(COMMANDS[name], place)
    assert ended.code == 0, ended.err
    assert {"out/report.html", "out/manifest.json", "out/samples.parquet", "out.json"} <= set(results(place))
    return ended, results(place)


def disturbed(name: str, place: Path, faults: Sequence[tuple[Fault, int]]) -> list[int | None]:
    """Run a command again and again, each time with a fault, then without; hold all against what must be.

    Returns:
        How each time ended.
    """
    reference, expected = undisturbed(name, place)
    emptied(place)
    kept: set[str] = set()
    codes = []
    before = None
    for fault, seed in faults:
        found, begun = report_in(visible(place)), (place / "out" / swap.OLD).is_dir()
        ended = command(COMMANDS[name], place, fault, seed, before)
        before = ended.system
        _check_end(ended, fault, place, expected)
        if "may be mixed" in ended.err:
            assert begun or fault.kind in (Kind.FULL, Kind.DYING), "a single fault is undone"
        elif ended.code == 2 and name != "reproduce":  # whose report grows with each study
            # What a command that crashed has left, another finds and may not come to mend.
            assert report_in(visible(place)) in ({}, found, report_in(expected)), "half a report"
        assert not ended.world.computed & kept, "a finished run was lost"
        kept |= ended.world.kept
        codes.append(ended.code)
    again = command(COMMANDS[name], place)
    assert again.code == 0, again.err
    assert results(place) == expected
    assert COUNTS.sub("", again.out) == COUNTS.sub("", reference.out)
    assert not again.world.computed & kept, "a finished run was lost"
    _check_store(name, place)
    return codes


def _check_end(ended: Ended, fault: Fault, place: Path, expected: dict[str, bytes]) -> None:
    """A command that says that it is done has done it; one that fails says why, once."""
    assert "Traceback" not in ended.err
    if ended.code == 0:
        assert visible(place) == expected
    elif ended.code is not None:
        assert ended.code == 2, ended.err
        assert fault.kind is not Kind.SHORT, ended.err
        said = [line for line in ended.err.splitlines() if line.startswith("error: ")]
        assert len(said) == 1, ended.err
        assert ended.err.endswith(f"{said[0]}\n")
        assert re.search(r"No space|Input/output|quota|Interrupted", said[0]), said
        assert re.search(r"\bout|\bstore", said[0]), f"no place: {said[0]}"


def _check_store(name: str, place: Path) -> None:
    if name in STORES:
        assert [checked.findings for checked in verify(place / STORES[name])] == [[]]


def some_faults(name: str, place: Path, chance: random.Random) -> list[tuple[Fault, int]]:
    """One to three faults, each at any call."""
    calls = undisturbed(name, place)[0].system.calls
    return [
        (Fault(chance.choice(list(Kind)), chance.randrange(1, calls + 1)), chance.randrange(2**32))
        for _ in range(chance.choice((1, 1, 2, 3)))
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_lost_whatever_fails(name: str, patched: Path) -> None:
    lose_nothing(name, patched, ALL, FIRST)


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_lost_on_more_seeds(name: str, patched: Path) -> None:
    lose_nothing(name, patched, MORE, FIRST + ALL)


def lose_nothing(name: str, patched: Path, commands: int, first: int) -> None:
    """Run this command's share of all commands with faults from this seed on."""
    ends: Counter[int | None] = Counter()
    for seed in itertools.count(first):
        if ends.total() >= commands // len(COMMANDS):
            break
        faults = some_faults(name, patched, random.Random(seed))  # noqa: S311 - a test's own luck
        try:
            ends.update(disturbed(name, patched, faults))
        except BaseException as error:
            error.add_note(f"perhop {COMMANDS[name]} with {faults}, seed {seed}")
            raise
    assert set(ends) == {0, 2, None}, "every way to end has been met"


def damaged(store: Path, chance: random.Random) -> None:
    """Break a store: flip bits, cut files, copy one over another, remove one."""
    for _ in range(chance.choice((1, 1, 2, 5))):
        found = sorted(path for path in store.rglob("*") if path.is_file() and path.stat().st_size)
        if not found:
            return
        path, other = chance.choice(found), chance.choice(found)
        data = bytearray(path.read_bytes())
        match chance.randrange(8):
            case 0:
                path.write_bytes(data[: chance.randrange(len(data))])
            case 1:
                path.write_bytes(other.read_bytes())
            case 2:
                path.unlink()
            case 3:
                path.write_bytes(data + bytes(chance.randrange(1, 100)))
            case _:
                for _ in range(chance.choice((1, 1, 3))):
                    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                path.write_bytes(data)


@pytest.mark.parametrize("name", ["reproduce", "sweep"])
def test_nothing_false_is_accepted_whatever_breaks(name: str, patched: Path) -> None:
    reference, expected = undisturbed(name, patched)
    for seed in range(FIRST, FIRST + ALL // len(COMMANDS) // 3):
        emptied(patched)
        # Killed somewhere, so that journals are broken, too, and not only segments.
        calls = reference.system.calls
        chance = random.Random(seed)  # noqa: S311 - a test's own luck
        command(COMMANDS[name], patched, Fault(Kind.KILL, chance.randrange(calls // 2, calls + 20)), seed)
        damaged(patched / STORES[name] / ("runs" if name == "reproduce" else ""), chance)
        again = command(COMMANDS[name], patched)
        assert again.code == 0, (seed, again.err)
        assert results(patched) == expected, seed
        assert COUNTS.sub("", again.out) == COUNTS.sub("", reference.out)
        last = command(COMMANDS[name], patched)
        assert not last.world.computed & reference.world.kept, "what broke is computed once"
        assert "warning" not in last.err, "and said once"
        assert results(patched) == expected, seed


# ---------------------------------------------------------------- commands that write a few files

WRITERS = {
    "course": ("course start red out", ("out/answers.toml", "out/sheet.md")),
    "course in a folder": ("course start red .", ("answers.toml", "sheet.md")),
    "init": ("init out.toml --yes", ("out.toml",)),
    "import": (
        "import branch.cfg --packet-size 1000B --lenient --output out.toml --json out.json",
        ("out.toml", "out.json"),
    ),
    "export": ("export small.toml --to tc --lenient --output out.sh --json out.json", ("out.sh", "out.json")),
    "topology": ("topology ring routers=5 --output out.toml --plot out.svg", ("out.toml", "out.svg")),
    "record": (
        "run small.toml --seed 1 --runs 1 --capture out.pcapng --events out.parquet --json out.json",
        ("out.pcapng", "out.parquet", "out.json"),
    ),
    "replay": (
        "replay capture.pcap small.toml --packets out.csv --json out.json",
        ("out.csv", "out.json"),
    ),
}
"""Commands without a store, and the files that each writes: `course` and `init` write over nothing."""
EXAMPLES = Path(__file__).parents[3] / "examples"
COPIED = {
    "branch.cfg": EXAMPLES / "plan" / "branch-office.cfg",
    "capture.pcap": EXAMPLES / "capture.pcap",
}


def left(place: Path) -> dict[str, bytes | None]:
    """All that a command left in an emptied place, hidden files aside; folders count, too."""
    inputs = {*INPUTS, *COPIED}
    found = {path.relative_to(place): path for path in place.rglob("*")}
    return {
        str(name): path.read_bytes() if path.is_file() else None
        for name, path in sorted(found.items())
        if str(name) not in inputs and not any(part.startswith(".") for part in name.parts)
    }


def emptied_for_writers(place: Path) -> None:
    emptied(place)
    for name, source in COPIED.items():
        shutil.copy(source, place / name)


@pytest.mark.parametrize("name", WRITERS)
def test_nothing_is_half_written_whatever_fails(name: str, patched: Path) -> None:
    line, files_written = WRITERS[name]
    emptied_for_writers(patched)
    reference = command(line, patched)
    assert reference.code == 0, reference.err
    expected = left(patched)
    assert {*files_written} <= {*expected}
    writes_over = not line.startswith(("course", "init"))
    calls = reference.system.calls
    for kind, at in itertools.product(Kind, range(1, calls + 1)):
        emptied_for_writers(patched)
        ended = command(line, patched, Fault(kind, at), seed=at)
        context = f"{kind.name} at call {at} of {calls}: {ended.err}"
        found = left(patched)
        assert "Traceback" not in ended.err, context
        if ended.code == 0:
            assert found == expected, context
        elif ended.code is None:
            # Files that were not synced are the user's to write again; what `write_new` wrote was.
            assert {*found} <= {*expected}, context
            if kind is Kind.KILL or not writes_over:
                assert all(found[file] == expected[file] for file in found), context
        else:
            assert ended.code == 2, context
            said = [text for text in ended.err.splitlines() if text.startswith("error: ")]
            assert len(said) == 1, context
            assert re.search(r"No space|Input/output|quota|Interrupted", said[0]), context
            assert all(found[file] == expected[file] for file in found), context
            if not writes_over and kind is not Kind.DYING:  # which cannot be tidied up
                assert found == {}, context
        if ended.code is not None and (writes_over or not found):
            again = command(line, patched)
            assert again.code == 0, context + again.err
            assert left(patched) == expected, context
