"""Runs that need more memory than there is are refused or stopped with numbers, and never end the program."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.python.conftest import SMALL

from perhop import _engine
from perhop.errors import PerhopError, ScenarioError
from perhop.processes import memory
from perhop.processes.memory import Free
from perhop.scenario import reading

if TYPE_CHECKING:
    from collections.abc import Iterable

LIMITED = """
import resource, sys
from perhop.commands import cli
from perhop.processes import memory
from perhop.runs import simulate, summary
room = int(sys.argv.pop(1))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))
cli.main()
"""
LINK = """\
duration = "1000000s"
warmup = "0s"
[links.link]
from = "a"
to = "b"
rate = "1Mbps"
delay = "10ms"
"""
QUEUE = 'queue = { aqm = "drop-tail", limit = "1000000000p" }\n'
FLOW = """\
[[flows]]
name = "udp"
from = "a"
to = "b"
transport = { udp = "cbr", rate = "2Gbps" }
"""


def limited(directory: Path, room: int, scenario: str, *options: str) -> subprocess.CompletedProcess[str]:
    """`perhop run` in so many bytes of address space beside what the program itself takes."""
    (directory / "scenario.toml").write_text(scenario, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-c", LIMITED, str(room), "run", "scenario.toml", "--runs", "1", *options],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one message of a command that was refused."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if not line.startswith("runs: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_a_run_of_a_million_flows_is_refused_with_numbers(tmp_path: Path) -> None:
    many = LINK + QUEUE + FLOW.replace('name = "udp"', 'name = "udp"\ncount = 1000000')
    error = refused(limited(tmp_path, 1_500_000_000, many))
    assert error.startswith(
        "error: not enough memory: a run takes 4.2 GB: 4.2 GB for 1000000 flows, and its "
    )
    assert re.search(r"for 1 run that is about 4\.4 GB, and 1\.[3-5] GB are free \(ulimit -v: ", error), error
    assert error.endswith("; use fewer flows")


def test_the_runs_that_are_on_at_a_time_count(tmp_path: Path) -> None:
    many = LINK + QUEUE + FLOW.replace('name = "udp"', 'name = "udp"\ncount = 200000')
    error = refused(limited(tmp_path, 1_500_000_000, many, "--runs", "4", "--jobs", "4"))
    assert "for 4 runs, 4 at a time that is about 3.5 GB" in error
    assert error.endswith("; use fewer --runs, fewer --jobs or fewer flows")


CLASSES = ", ".join(
    f'{{ name = "class {n}", match = {{ dscp = {n} }}, rule = {{ aqm = "drop-tail", limit = "9p" }} }}'
    for n in range(1, 19)
)
CLASSES += ', { name = "rest", rule = { aqm = "drop-tail", limit = "9p" } }'
NETWORK = f"""\
duration = "1s"
warmup = "0s"
[topology]
isp = {{ core = 20, aggregation = 5, edge = 10 }}
[topology.link]
rate = "1Mbps"
delay = "1ms"
queue = {{ scheduler = "wfq", queues = [{CLASSES}] }}
[[flows]]
name = "udp"
count = 100
between = {{}}
transport = {{ udp = "cbr", rate = "1kbps" }}
"""
RESULTS = "`results` of [topology] with only the tiers whose links you need"


@pytest.mark.parametrize(
    ("runs", "more", "remedies"),
    [
        (1, "", f"{RESULTS} or fewer routers and links"),
        (2, "", f"fewer --runs, {RESULTS} or fewer routers and links"),
        (
            1,
            '[probes]\ninterval = "5ms"\n',
            f"a longer `interval` of [probes], {RESULTS} or fewer routers and links",
        ),
    ],
)
def test_a_refusal_names_what_helps_most_first(
    monkeypatch: pytest.MonkeyPatch, runs: int, more: str, remedies: str
) -> None:
    monkeypatch.setattr(memory, "free", lambda: Free(700_000_000, "a test"))
    with pytest.raises(PerhopError) as caught:
        memory.fitting(reading.canonical(NETWORK + more), runs, None, 2)
    assert str(caught.value).endswith(f"; use {remedies}")


NEXT_LINK = (
    LINK[LINK.index("[links") :]
    .replace("links.link", "links.next")
    .replace('"b"', '"c"')
    .replace('"a"', '"b"')
)


@pytest.mark.parametrize(
    "scenario",
    [
        LINK + QUEUE + FLOW,
        LINK + NEXT_LINK + FLOW.replace('to = "b"', 'to = "c"'),
        LINK + QUEUE + FLOW + 'access = { rate = "1Mbps", delay = "1ms" }\n',
    ],
    ids=["in a queue", "for a link behind one without a rule", "for the link of a host"],
)
def test_packets_that_wait_without_end_stop_a_run(tmp_path: Path, scenario: str) -> None:
    # The guard looks 20 times a second, later on a busy machine: a run must not fill the room before that.
    error = refused(limited(tmp_path, 2_000_000_000, scenario))
    assert error.startswith("error: stopped before memory runs out: packets in queues and in transit take ")
    assert error.endswith(
        "; lower the limits of queues (a link without `queue` has no limit), the rates of UDP flows, "
        "or --jobs"
    )


def test_too_many_samples_are_refused_by_what_they_take() -> None:
    scenario = SMALL.replace("count = 2", "count = 30000") + '\n[probes]\ninterval = "5ms"\n'
    with pytest.raises(ScenarioError) as caught:
        reading.canonical(scenario)
    assert str(caught.value) == (
        "scenario:31: probes.interval: 1000 samples of 60000 flows and the queues take 1.9 GB; a run may "
        "take 1.6 GB for them: choose an interval 2 times as long"
    )


MEASURED = """
import json, re, sys
from pathlib import Path
from perhop import _engine
def peak():  # getrusage would count the process that started this one, too
    status = Path("/proc/self/status").read_text()
    most, of_files = (int(re.search(f"{name}:\\s*([0-9]+) kB", status)[1]) for name in ("VmHWM", "RssFile"))
    return 1024 * (most - of_files)  # code is in files: a process reads the engine's when it first runs
scenario = sys.stdin.read()
before = peak()
raw = _engine.simulate(scenario, 1, threads=int(sys.argv[1]))
after = peak()
print(json.dumps({"took": after - before, "samples": raw["series"]["throughput_bps"].shape}))
"""


def measured(scenario: str, threads: int = 1) -> tuple[int, tuple[int, ...]]:
    """What a run takes at most, in bytes, and how many samples it has."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(threads)],
        input=scenario,
        capture_output=True,
        text=True,
        timeout=250,
        check=True,
    )
    found = json.loads(done.stdout)
    return int(found["took"]), tuple(found["samples"])


def many_flows(flows: int, transport: str, duration: str, probes: str = "") -> str:
    text = LINK.replace("1000000s", duration).replace("1Mbps", "1Gbps") + QUEUE
    text += FLOW.replace('name = "udp"', f'name = "flow"\ncount = {flows}')
    text = text.replace('{ udp = "cbr", rate = "2Gbps" }', transport)
    return reading.canonical(text + probes)


LINUX = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="only Linux reports a process's peak"
)


@LINUX
@pytest.mark.parametrize(
    ("transport", "flows"),
    [
        ('{ tcp = "newreno" }', 40_000),
        ('{ tcp = "newreno", sack = true }', 40_000),
        ('{ udp = "cbr", rate = "1kbps" }', 40_000),
        ('{ rap = "aimd" }', 40_000),
        ('{ tfrc = "rfc5348" }', 40_000),
    ],
)
def test_what_flows_are_said_to_take_is_what_they_take(transport: str, flows: int) -> None:
    scenario = many_flows(flows, transport, "100ms")
    said = _engine.memory(scenario)
    took, _ = measured(scenario)
    # What a run takes beside its flows, pages of the program among it, depends on how that was compiled.
    beside, _ = measured(many_flows(100, transport, "100ms"))
    assert said["flows"] == flows
    assert 0.5 * said["run_bytes"] < took - beside < 1.1 * said["run_bytes"]


@LINUX
@pytest.mark.parametrize("queue", ["", QUEUE, "queues"])
def test_what_links_are_said_to_take_is_what_they_take(queue: str) -> None:
    rule = '{ aqm = "drop-tail", limit = "100p" }'
    apart = f'{{ name = "ef", match = {{ dscp = 46 }}, rule = {rule} }}'
    several = f'{apart}, {apart.replace("46", "10").replace("ef", "af")}, {{ name = "rest", rule = {rule} }}'
    link = {"": "", "queues": f'queue = {{ scheduler = "wfq", queues = [{several}] }}'}.get(queue, queue)
    # One flow at each router fills queues, so that each has some waiting times to count.
    scenario = reading.canonical(
        'duration = "300ms"\nwarmup = "0s"\n[topology]\nring = 1500\n'
        '[topology.link]\nrate = "1Mbps"\ndelay = "20ms"\n'
        f"{link}\n"
        '[[flows]]\nname = "udp"\ncount = 3000\nbetween = { demands = ['
        + ", ".join(f'["r{n}", "r{n % 1500 + 1}", "1Mbps"]' for n in range(1, 1501))
        + '] }\ntransport = { udp = "cbr", rate = "1Mbps" }\nstart = "0s"\n'
    )
    said = _engine.memory(scenario)
    took, _ = measured(scenario)
    assert said["links"] == 3000
    assert 0.4 * said["run_bytes"] < took < 1.1 * (said["run_bytes"] + said["kept_bytes"])


RULES = (
    '{ aqm = "wred", green = "40/80/0.05", limit = "100p" }',
    '{ aqm = "wred", yellow = "20/60/0.1", limit = "100p" }',
)
AF = f'{{ name = "af", match = {{ dscp = ["AF11", "AF12", "AF13"] }}, rule = {RULES[0]} }}'
SEVERAL = f'scheduler = "wfq"\nqueues = [{AF}, {{ name = "rest", rule = {RULES[1]} }}]'


@LINUX
@pytest.mark.parametrize(
    ("queue", "core", "flows", "threads", "most"),
    [
        ("", 6, 12_000, 1, 1.0),
        ("", 6, 12_000, 2, 1.15),
        ('aqm = "red"\nlimit = "100p"\nthresholds = "30/60/0.1"', 6, 2000, 1, 1.0),
        ('aqm = "red"\nlimit = "100p"\nthresholds = "30/60/0.1"', 6, 12_000, 1, 1.0),
        ('aqm = "codel"', 8, 16_000, 1, 1.0),
        ('scheduler = "fq-codel"', 6, 12_000, 1, 1.1),
        ('scheduler = "fq-codel"', 6, 12_000, 2, 1.2),
        ('scheduler = "dualpi2"', 6, 12_000, 1, 1.1),
        (SEVERAL, 8, 16_000, 1, 1.1),
    ],
)
def test_what_a_large_network_is_said_to_take_is_what_it_takes(
    queue: str, core: int, flows: int, threads: int, most: float
) -> None:
    """With packets on their way. A second thread keeps flows that cross the border, too."""
    profile = 'profile = { marker = "token-bucket", rate = "100kbps", burst = "15kB" }\n'
    group = '[[flows]]\nname = "{}"\ncount = {}\nbetween = {{}}\ntransport = {}\n{}'
    tcp, udp = '{ tcp = "newreno", packet = "1500B" }', '{ udp = "cbr", rate = "80kbps", packet = "200B" }'
    scenario = reading.canonical(
        f'duration = "1s"\nwarmup = "0s"\n[topology]\nisp = {{ core = {core}, aggregation = 9, edge = 10 }}\n'
        'results = ["core"]\ntiers.core = { rate = "10Gbps", delay = "5ms" }\n'
        'tiers.aggregation = { rate = "200Mbps", delay = "2ms" }\n'
        '[topology.link]\nrate = "10Mbps"\ndelay = "1ms"\n'
        + (f"[topology.link.queue]\n{queue}\n" if queue else "")
        + group.format("in", flows * 2 // 5, tcp, profile)
        + group.format("out", flows * 2 // 5, tcp, "")
        + group.format("calls", flows // 5, udp, "")
    )
    said = _engine.memory(scenario)
    took, _ = measured(scenario, threads)
    assert 0.5 < took / said["run_bytes"] < most


@LINUX
def test_packets_that_wait_before_a_host_take_little_memory() -> None:
    """When a link without a rule sends them is known as they come, so only these times are kept."""
    endless = LINK.replace("1000000s", "10s") + FLOW  # 1.7 million packets, of which 833 arrive
    took, _ = measured(reading.canonical(endless))
    assert took < 1_700_000 * 48, "what is known of those that wait"
    behind = LINK.replace("1000000s", "10s") + NEXT_LINK + FLOW.replace('to = "b"', 'to = "c"')
    took, _ = measured(reading.canonical(behind))
    assert took > 80_000_000, "what another link will handle waits for it"


@LINUX
def test_samples_are_held_once() -> None:
    scenario = many_flows(10_000, '{ udp = "cbr", rate = "1kbps" }', "1s", '[probes]\ninterval = "1ms"\n')
    said = _engine.memory(scenario)
    took, samples = measured(scenario)
    assert samples == (1000, 10_000)
    assert said["sample_bytes"] == pytest.approx(1000 * 10_000 * 4 * 8, rel=0.01)
    assert took < 1.05 * said["run_bytes"] < 400_000_000


SHOWN = """
import json, re, sys
from pathlib import Path
from perhop.runs import page, simulate, summary
def peak():
    return 1024 * int(re.search("VmHWM:\\s*([0-9]+) kB", Path("/proc/self/status").read_text())[1])
def write(scenario, where):
    result = simulate.run(json.loads(scenario), runs=2, jobs=1)
    before = peak()
    page.write_run(Path(where), result, summary.summarize(result), "a test")
    return peak() - before
few, many = json.loads(sys.stdin.read())
write(few, sys.argv[1])  # loads what draws and writes
print(write(many, sys.argv[1]))
"""


@LINUX
def test_a_report_of_samples_takes_little_beside_them(tmp_path: Path) -> None:
    few, many = (
        many_flows(count, '{ udp = "cbr", rate = "1kbps" }', "1s", '[probes]\ninterval = "10ms"\n')
        for count in (10, 20_000)
    )
    done = subprocess.run(
        [sys.executable, "-c", SHOWN, str(tmp_path)],
        input=json.dumps([few, many]),
        capture_output=True,
        text=True,
        timeout=250,
        check=True,
    )
    assert int(done.stdout) < _engine.memory(many)["sample_bytes"], "half of what two runs hold"


def test_as_many_runs_at_a_time_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = many_flows(500_000, '{ tcp = "newreno" }', "1s")  # 1.55 GB during the run, 0.11 GB after it
    monkeypatch.setattr(memory, "free", lambda: Free(4_000_000_000, "a test"))
    assert memory.fitting(scenario, 4, None, 8) == (2, 3_550_000_000)
    assert memory.fitting(scenario, 4, 2, 8) == (2, 3_550_000_000)
    with pytest.raises(
        PerhopError, match=r"for 4 runs, 3 at a time that is about 5.1 GB, and 4.0 GB are free"
    ):
        memory.fitting(scenario, 4, 3, 8)
    with pytest.raises(PerhopError, match=r"for 30 runs that is about 4.9 GB"):
        memory.fitting(scenario, 30, None, 8)
    monkeypatch.setattr(memory, "free", lambda: None)
    assert memory.fitting(scenario, 4, None, 8)[0] == 4
    small = reading.canonical(SMALL)
    monkeypatch.setattr(memory, "free", lambda: Free(1000, "a test"))
    assert memory.fitting(small, 4, None, 8)[0] == 4, "small runs are nobody's trouble"


def test_a_run_that_takes_more_than_its_share_does_not_begin() -> None:
    scenario = many_flows(500_000, '{ tcp = "newreno" }', "1s")
    with pytest.raises(
        MemoryError, match=r"a run takes 1.6 GB: 1.6 GB for 500000 flows, and 0.9 GB are there"
    ):
        _engine.simulate(scenario, 1, _engine.Cancel(900_000_000))


FILES = {
    "/proc/self/cgroup": "0::/some/group\n",
    "/sys/fs/cgroup/some/group/memory.max": "max\n",
    "/sys/fs/cgroup/some/group/memory.current": "100\n",
    "/sys/fs/cgroup/some/memory.max": "3000000000\n",
    "/sys/fs/cgroup/some/memory.current": "2500000000\n",
    "/sys/fs/cgroup/some/memory.stat": "anon 1\ninactive_file 1000000000\n",
    "/proc/meminfo": "MemTotal: 99 kB\nMemAvailable:   4000000 kB\n",
    "/proc/self/statm": "1000 500 0 0 0 0 0\n",
}
OLD = {
    "/proc/self/cgroup": "5:cpu:/x\n4:memory:/docker/1\n",
    "/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "2000000000\n",
    "/sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes": "500000000\n",
    "/proc/meminfo": "MemAvailable:   4000000 kB\n",
}


@pytest.mark.parametrize(
    ("files", "limits", "expected"),
    [
        (FILES, (-1, -1), Free(1_500_000_000, "control group: 3.0 GB")),
        (OLD, (-1, -1), Free(1_500_000_000, "control group: 2.0 GB")),
        (
            {"/proc/meminfo": FILES["/proc/meminfo"]},
            (-1, -1),
            Free(4_096_000_000, "of this machine's memory"),
        ),
        ({}, (-1, -1), None),
        (FILES, (1_000_000_000, -1), Free(1_000_000_000 - 1000 * memory.PAGE, "ulimit -v: 1.0 GB", True)),  # noqa: FBT003
        (FILES, (-1, 900_000_000), Free(900_000_000 - 1000 * memory.PAGE, "ulimit -d: 0.9 GB", True)),  # noqa: FBT003
    ],
)
def test_the_tightest_limit_counts(
    files: dict[str, str],
    limits: tuple[int, int],
    expected: Free | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lines(path: Path) -> Iterable[str]:
        return files.get(str(path), "").splitlines()

    def limit(number: int) -> tuple[int, int]:
        return (limits[number == resource.RLIMIT_DATA], resource.RLIM_INFINITY)

    monkeypatch.setattr(memory, "_lines", lines)
    monkeypatch.setattr("perhop.processes.memory.resource.getrlimit", limit)
    assert memory.free() == expected


def test_memory_that_others_take_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = memory.Guard()
    monkeypatch.setattr(memory, "free", lambda: Free(0, "a test"))
    guard.check()
    sizes = memory._sizes()
    monkeypatch.setattr(memory, "_sizes", lambda: (sizes[0] + 10**9, sizes[1] + 10**9))
    with pytest.raises(PerhopError, match=r"take 1.0 GB, and 0.0 GB are free \(a test\)"):
        guard.check()
    expecting = memory.Guard(expected=10**9)
    expecting.check()
