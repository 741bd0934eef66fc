"""Python's inputs as fuzz targets: bytes that are taken as a file, and what must hold whatever they are.

`test_fuzzing.py` tries some hundred of each; `make fuzz` looks for more (docs/project/fuzzing.md).
"""

from __future__ import annotations

import contextlib
import math
import struct
import tempfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import numpy as np
from hypothesis import strategies as st
from tests.python.stores.keeping import decode, encode

from perhop import _engine, routers
from perhop.errors import PerhopError, ScenarioError
from perhop.files.inputs import read_text
from perhop.planning import document as planning
from perhop.real_packets.metrics import endpoint
from perhop.routers.model import How, Quantity, Unit
from perhop.stores.journal import ENDING, joined, pieces
from perhop.stores.measures import Layout, Record
from perhop.stores.outcomes import DirectoryStore, Entry, engine_digest, pack
from perhop.sweeps import plan, tuning
from perhop.sweeps.plan import Given, read_plan
from perhop.sweeps.tuning import read_tuning

T = TypeVar("T")

EXAMPLES = Path(__file__).parents[3] / "examples"
SCENARIO = b"""duration = "1s"
[links.up]
from = "A"
to = "B"
rate = "1Mbps"
delay = "1ms"
queue = { aqm = "drop-tail", limit = "9p" }
[[flows]]
name = "bulk"
from = "A"
to = "B"
transport = { tcp = "newreno" }
"""
SWEEP = (
    b"""title = "a sweep"
scenario = "scenario.toml"
runs = 8
seed = 7
metrics = ["flows.*.throughput_bps"]
until = { width = "5%", metrics = ["flows.*.throughput_bps"], least-runs = 4 }
set = { duration = "30s", "links.up.queue.limit" = "{n}p" }
grid = { n = [1, 2], "links.up.delay" = ["1ms", "2ms"] }
list = { "flows.bulk.count" = [1, 2] }
latin-hypercube = { samples = 3, seed = 1, "links.up.rate" = "1Mbps..9Mbps log" }
""",
)
SWEEP_REFUSED = (b"[grid.flows]\nx = 1\n", b"scenario = { duration = '1s' }\n")
TUNE = (
    b"""scenario = "scenario.toml"
objectives = ["maximize links.up.utilization", "minimize links.up.delay_p95_s"]
constraints = ["flows.bulk.throughput_bps >= 2Mbps", "links.up.loss <= 5%"]
trials = 6
runs = 2
sampler = "nsga-ii"
[search]
n = "5..60"
"links.up.delay" = ["1ms", "2ms"]
[set]
"links.up.queue.limit" = "{n}p"
""",
)
PLAN = (
    b"""objectives = ["loss of bulk < 1 %", "P99 of waiting time of up < 20 ms in 95 % of runs"]
scenario = "scenario.toml"
runs = 3
seed = 2
set = { "links.up.queue.limit" = "{limit}p", duration = "2s" }
search = { limit = "5..60" }
growth = { demands = ["bulk"], together = false, most = 3, precision = "10%" }
tuning = { trials = 4, batch = 2, runs = 2, sampler = "tpe", growth = { bulk = 1.5 } }
export = { to = "ios", link = "up", lenient = true }
""",
    b"""objectives = ["loss of voice < 1 %"]
configuration = "branch-office.cfg"
import = { packet-size = "1000B", lenient = true, match = { VOICE = "ef" } }
[[flows]]
name = "voice"
dscp = "EF"
transport = { udp = "cbr", rate = "80kbps", packet = "200B" }
""",
)
CONFIGURATIONS = sorted((Path(__file__).parents[1] / "routers" / "configurations").iterdir())
EXPORTED = ("hierarchy", "policer", "dualpi2", "network")
MOST_PORTS = 4
"""Of a configuration or scenario with several, as many are tried."""
ANSWERS = routers.Answers(1e8, 1000.0, Quantity(1e6, Unit.BYTES, how=How.ASKED), {}, lenient=True)
WORDS = (
    *(b"1e400", b"-1", b"nan", b"inf", b"0", b"9223372036854775808", b"1" * 5000, b"1" * 400, b"0x1", b"1_0"),
    *(b"[[", b"]", b"{", b"}" * 3, b"[" * 200, b"{a=" * 100, b"a." * 2000, b'"""', b"'''", b"\\u0000", b"\\"),
    *(
        b"\n",
        b"\xff",
        b"2024-02-30",
        b"07:32:00",
        b"true",
        b"a.b.c=1\n",
        b"\x1b[2J",
        b"\xe2\x80\xae",
        b"\x00",
    ),
    *(b"..", b"*", b"{n}"),
)
"""What mutations put into text."""


@dataclass(frozen=True, slots=True)
class Target:
    """An input.

    Attributes:
        seeds: Inputs to begin with, all of them accepted.
        take: Takes any bytes; whether they were accepted. Raises where something does not hold.
        refused: More inputs to begin with, none of them accepted.
    """

    name: str
    seeds: Sequence[bytes]
    take: Callable[[bytes], bool]
    refused: Sequence[bytes] = ()


def take_sweep(data: bytes) -> bool:
    """A sweep's file is refused in words, or every point of its plan is a scenario."""
    with (
        _files(data, "sweep.toml") as path,
        mock.patch.object(plan, "MAX_POINTS", 40),
        contextlib.suppress(PerhopError, ScenarioError),
    ):
        for point in _in_words(lambda: read_plan(path, Given())).points:
            assert _engine.scenario_from_json(point.scenario, "a point") == point.scenario
        return True
    return False


def take_tune(data: bytes) -> bool:
    """A tuning's file is refused in words, or it is a search."""
    with (
        _files(data, "tune.toml") as path,
        mock.patch.object(plan, "MAX_POINTS", 40),
        mock.patch.object(tuning, "MAX_TRIALS", 400),
        contextlib.suppress(PerhopError, ScenarioError),
    ):
        assert _in_words(lambda: read_tuning(path, trials=None, runs=None, seed=None)).search
        return True
    return False


def take_plan(data: bytes) -> bool:
    """A plan is refused in one line, or its scenario is valid, and demands can grow."""
    with (
        _files(data, "plan.toml") as path,
        mock.patch.object(tuning, "MAX_TRIALS", 400),
        contextlib.suppress(PerhopError, ScenarioError),
    ):
        found = _in_a_line(lambda: planning.read_plan(path))
        assert _engine.scenario_from_json(found.scenario, "now")
        assert found.bounds
        for demand in found.demands:
            with contextlib.suppress(PerhopError, ScenarioError):
                _in_a_line(lambda name=demand.name: found.base({name: 1.5}, templates=False))  # type: ignore[misc]
        return True
    return False


def take_configuration(data: bytes) -> bool:
    """Every dialect refuses a router's file in one line, or makes scenarios of its ports; no line is lost."""
    source = routers.Source([("file", data)])
    accepted = False
    for dialect in routers.READERS:
        for done in _of_each(
            "--interface",
            lambda port, name=dialect: routers.imported(source, ANSWERS, dialect=name, interface=port),  # type: ignore[misc]
        ):
            assert all(0 <= finding.line <= len(source.lines) for finding in done.findings)
            assert _engine.scenario_from_toml(done.toml, "imported")
            accepted = True
    return accepted


def take_export(data: bytes) -> bool:
    """Every language refuses a scenario's link in one line, or has lines for it that import reads."""
    accepted = False
    with _files(data, "input.toml") as path, contextlib.suppress(PerhopError, ScenarioError):
        canonical = _engine.scenario_from_toml(read_text(path), str(path))
        for name in routers.WRITERS:
            for done in _of_each(
                "--link",
                lambda link, to=name: routers.exported(canonical, "a file", to, link=link, lenient=True),  # type: ignore[misc]
            ):
                accepted = True
                if name in routers.READERS:
                    source = routers.Source([("file", done.text.encode())])
                    with contextlib.suppress(PerhopError):
                        _in_a_line(lambda: routers.imported(source, ANSWERS, dialect=name))  # noqa: B023
    return accepted


def _of_each(option: str, call: Callable[[str | None], T]) -> Iterator[T]:
    """What a call returns that is given the name of a port; of each of them, where it asks for one."""
    try:
        yield _in_a_line(lambda: call(None))
    except PerhopError as error:
        _, asks, names = str(error).partition(f"choose one with {option}: ")
        for name in names.partition(" and ")[0].split(", ")[:MOST_PORTS] if asks else []:
            with contextlib.suppress(PerhopError):
                yield _in_a_line(lambda: call(name))  # noqa: B023


def take_scenario(data: bytes) -> bool:
    """A scenario's file is refused in words, or has a canonical form."""
    with _files(data, "input.toml") as path, contextlib.suppress(PerhopError, ScenarioError):
        canonical = _in_words(lambda: _engine.scenario_from_toml(read_text(path), str(path)))
        assert _engine.scenario_from_json(canonical, "canonical") == canonical
        return True
    return False


def take_endpoint(data: bytes) -> bool:
    """An address is refused in words, or is one of this machine."""
    with contextlib.suppress(PerhopError):
        host, port = _in_words(lambda: endpoint(data.decode(errors="replace")))
        assert 0 <= port <= 65535
        assert host.startswith("127.") or ":" in host
        return True
    return False


def take_runs(data: bytes) -> bool:
    """A journal of `reproduce`: runs are given back as saved or not at all, and later ones are kept."""
    accepted = False
    with tempfile.TemporaryDirectory(prefix="perhop-") as place:
        (Path(place) / f"0{ENDING}").write_bytes(data)
        said: list[str] = []
        for key, run in ((None, {}), *RUNS.items()):
            store = DirectoryStore(Path(place), said.append)
            for known, saved in RUNS.items():
                found = store.load(known)
                assert found is None or pack(found) == pack(saved)
                accepted |= key is None and found is not None
            if key is not None:
                store.save(key, run)
                assert pack(store.load(key) or {}) == pack(run)
            store.close()
        assert len(said) <= 1 + len(RUNS)
    return accepted


def take_measures(data: bytes) -> bool:
    """A journal of a sweep holds nothing but what was written into it."""
    written = {_as_bytes(record) for record in MEASURES}
    contents = decode(data)
    assert {_as_bytes(record) for record in contents.records} <= written
    assert contents.size == len(data)
    assert 0 <= contents.unreadable <= contents.size
    return bool(contents.records)


def take_record(data: bytes) -> bool:
    """A record under a good checksum, whatever made it, is taken or counts as unreadable."""
    alone = joined([*(content for _, content in pieces(encode(MEASURES)).contents), data])
    contents = decode(alone)
    assert len(contents.records) >= len(MEASURES) - 1
    accepted = contents.unreadable == 0
    with tempfile.TemporaryDirectory(prefix="perhop-") as place:
        (Path(place) / f"0{ENDING}").write_bytes(joined([RECORD, data]))
        store = DirectoryStore(Path(place), lambda _: None)
        for key in RUNS:
            accepted |= store.load(key) is not None and data == RECORD
        store.close()
    return accepted


def _as_bytes(record: Record) -> tuple[Layout, int, bytes, bytes]:
    return record.layout, record.seed, struct.pack("d", record.wall_s), record.values.tobytes()


RUNS: dict[str, dict[str, Any]] = {
    "one": {"loss": 0.5, "bytes": np.arange(3), "flows": [{"bps": np.array([1.5, np.nan])}]},
    "two": {"loss": None, "name": "ü"},
}
LAYOUT = Layout('{"a":"ü"}', "engine", ("throughput_bps", "loss"))
MEASURES = tuple(
    Record(layout, seed, 0.25, array("d", [seed * 0.1, math.nan][: len(layout.metrics)]))
    for layout in (LAYOUT, Layout("{}", "engine", ("loss",)))
    for seed in (1, 2)
)
RECORD = Entry("one", engine_digest(), pack(RUNS["one"])).content()
JOURNAL = joined([RECORD, Entry("two", engine_digest(), pack(RUNS["two"])).content()])

TARGETS = (
    Target("sweep", (*SWEEP, (EXAMPLES / "sweep-sample.toml").read_bytes()), take_sweep, SWEEP_REFUSED),
    Target("tune", (*TUNE, (EXAMPLES / "tune-thresholds.toml").read_bytes()), take_tune),
    Target("plan", (*PLAN, (EXAMPLES / "plan" / "branch-office.toml").read_bytes()), take_plan),
    Target(
        "configuration",
        tuple(path.read_bytes() for path in sorted((EXAMPLES / "plan").glob("*.cfg")) + CONFIGURATIONS),
        take_configuration,
    ),
    Target(
        "export",
        (SCENARIO, *((EXAMPLES / f"{name}.toml").read_bytes() for name in EXPORTED)),
        take_export,
        ((EXAMPLES / "queues.toml").read_bytes(),),
    ),
    Target("scenario_file", (SCENARIO, (EXAMPLES / "queues.toml").read_bytes()), take_scenario),
    Target("runs", (JOURNAL,), take_runs),
    Target("measures", (encode(MEASURES),), take_measures),
    Target("record", (RECORD, *(content for _, content in pieces(encode(MEASURES)).contents)), take_record),
    Target("endpoint", (b"127.0.0.1:9477", b"[::1]:0", b"localhost:65535"), take_endpoint),
)


def mutations(seeds: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Seeds with some bytes changed, moved, cut out or put in; now and then any bytes at all."""
    place = st.integers(0, 2**16)
    put = st.one_of(st.binary(max_size=8), st.sampled_from(WORDS), st.sampled_from(seeds))
    edits = st.lists(st.tuples(place, st.integers(0, 30), st.one_of(st.just(b""), put)), max_size=5)
    return st.one_of(st.builds(_edited, st.sampled_from(seeds), edits), st.binary(max_size=300))


def _edited(seed: bytes, edits: Sequence[tuple[int, int, bytes]]) -> bytes:
    """Put bytes in place of some others; a length above 20 means none."""
    data = seed
    for place, length, put in edits:
        at = place % (len(data) + 1)
        data = data[:at] + put + data[at + (length if length <= 20 else 0) :]
    return data


def _in_words(call: Callable[[], T]) -> T:
    """What a call returns; a refusal says something."""
    try:
        return call()
    except (PerhopError, ScenarioError) as error:
        if not str(error).strip():
            raise AssertionError("a refusal without a word") from error
        raise


def _in_a_line(call: Callable[[], T]) -> T:
    """What a call returns; a refusal is one line."""
    try:
        return _in_words(call)
    except (PerhopError, ScenarioError) as error:
        if "\n" in str(error):
            raise AssertionError(f"a refusal of several lines: {error}") from error
        raise


@contextmanager
def _files(data: bytes, name: str) -> Iterator[Path]:
    """A directory with these bytes as a file, and a scenario beside it."""
    with tempfile.TemporaryDirectory(prefix="perhop-") as place:
        (Path(place) / "scenario.toml").write_bytes(SCENARIO)
        (Path(place) / "first.toml").write_bytes((EXAMPLES / "first.toml").read_bytes())
        configuration = (EXAMPLES / "plan" / "branch-office.cfg").read_bytes()
        (Path(place) / "branch-office.cfg").write_bytes(configuration)
        path = Path(place) / name
        path.write_bytes(data)
        yield path
