"""Shared fixtures: the command line as a process, and scenarios small enough to run in a blink."""

from __future__ import annotations

import functools
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.python.processes import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xdist.remote import Producer  # type: ignore[import-untyped]
    from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

TOGETHER = {
    "test_compare": "on real packets",  # in real time
    "test_course": "course, {parameters}",
    "test_endpoint": "on real packets",
    "test_kernel_defaults": "on real packets",
    "test_live": "on real packets",
    "test_ns3": "ns-3",
    "test_faults": "faults",
    "test_htb_kernel": "on real packets",
    "test_hurley": "hurley",
    "test_interruption": "interruption",
    "test_rap": "rap",
    "test_support": "on real packets",
    "test_sweep_ray": "ray",
    "test_validity": "theory",
    "test_witness": "on real packets",
}
"""Files of tests that share runs, or disturb one another; of parallel processes, one has each group.

`{parameters}` is replaced by the parameters of a test: the runs of a lab serve the tests of that lab.
"""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadGroupScheduling | None:
    """Give all tests of a group to one process (`--dist loadgroup`).

    pytest-xdist 3.8 marks groups in the names of tests, and pytest 9 does not take them from there.
    """
    from xdist.scheduler import LoadGroupScheduling  # noqa: PLC0415 - it is not needed without parallel processes

    class Together(LoadGroupScheduling):  # type: ignore[misc] # it has no types
        def _split_scope(self, nodeid: str) -> str:
            path, _, test = nodeid.partition("::")
            return TOGETHER.get(Path(path).stem, nodeid).replace("{parameters}", test.partition("[")[2])

    return Together(config, log) if config.getoption("dist") == "loadgroup" else None


TWO_CLASSES = """\
title = "{title}"
duration = "{duration}"
{settings}
[links.bottleneck]
from = "edge"
to = "core"
rate = "{rate}"
delay = "{delay}"
queue = {{ aqm = "rio", limit = "50p", in = "10/30/0.02", total = "5/15/0.1" }}

[[flows]]
name = "gold"
count = 2
from = "edge"
to = "core"
access = {{ rate = "10Mbps", delay = "{access}" }}
transport = {{ tcp = "newreno", packet = "1000B" }}
profile = {{ rate = "{profile}", marker = "token-bucket", burst = "10kB" }}
start = "0s..{start}"

[[flows]]
name = "best-effort"
count = 2
from = "edge"
to = "core"
access = {{ rate = "10Mbps", delay = "{access}" }}
transport = {{ tcp = "newreno", packet = "1000B" }}
start = "0s..{start}"
"""
SMALL = TWO_CLASSES.format(
    title="Two classes at a small link",
    duration="5s",
    settings='warmup = "0s"',
    rate="2Mbps",
    delay="10ms",
    access="1ms",
    profile="0.5Mbps",
    start="1s",
)


@dataclass(frozen=True)
class Finished:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


Perhop = "Callable[..., Finished]"


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """What commands are started by."""
    started = Server()
    yield started
    started.stop()


@pytest.fixture
def perhop(tmp_path: Path, server: Server) -> Callable[..., Finished]:
    """Run `perhop ARGUMENTS` in a process and a directory of its own."""

    return functools.partial(run_in, server, tmp_path)


def run_in(server: Server, place: Path, *arguments: str | Path) -> Finished:
    """Run `perhop ARGUMENTS` in a process of its own and this directory."""
    with tempfile.TemporaryDirectory() as streams:
        out, err = Path(streams) / "out", Path(streams) / "err"
        code = server.run([str(argument) for argument in arguments], place, out, err)
        return Finished(code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A valid scenario file."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path
