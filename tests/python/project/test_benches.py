"""The benchmarks' own arithmetic, and that the engine takes what they measure. No time is asserted."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benches import blocks, data_plane, engine, flows, growth, matrix, measuring, quaint, tuning
from benches.measuring import Spread, marginal
from benches.peers import compare, htsim, ns2, ns3, perhop_runner
from benches.peers.program import Packets, Program, printed
from benches.peers.settings import ROUND_TRIPS_S, SETTINGS, Setting
from tests.oracle import process
from tests.oracle.scenario import perhop_scenario

from perhop import _engine
from perhop.statistics.intervals import Estimate
from perhop.sweeps.tune import Trial

if TYPE_CHECKING:
    from tests.oracle.ns2 import Ns2Setting


def taken(scenario: dict[str, Any]) -> dict[str, Any]:
    """The scenario as the engine understands it."""
    read: dict[str, Any] = json.loads(_engine.scenario_from_json(json.dumps(scenario), "benchmark"))
    return read


def round_trips(setting: Setting) -> list[float]:
    network = setting.network
    return [
        2 * (network.delay_s + 2 * (group.access_delay_s or network.access_delay_s))
        for group in network.groups
        for _ in range(group.count)
    ]


def test_a_marginal_cost_leaves_out_the_start() -> None:
    assert marginal((7.0 + 10 * 0.5, 10), (7.0 + 30 * 0.5, 30)) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="no more than"):
        marginal((1.0, 10), (2.0, 10))


def test_a_spread_is_median_and_range() -> None:
    spread = Spread.of([3.0, 1.0, 2.0])
    assert (spread.median, spread.low, spread.high) == (2.0, 1.0, 3.0)
    assert spread.text(10, 1) == "20.0 (10.0..30.0)"


@pytest.mark.parametrize("key", SETTINGS)
def test_every_setting_is_a_scenario(key: str) -> None:
    setting = SETTINGS[key]
    for probes in (perhop_runner.study_probes(), perhop_runner.OFTEN):
        network = replace(setting.network, duration_s=setting.spans["perhop"].long)
        read = taken(perhop_runner.scenario(network, probes))
        assert sum(entry["count"] for entry in read["flows"]) == setting.flows
        assert read.get("probes", {}) == dict(probes)


@pytest.mark.parametrize("key", SETTINGS)
def test_every_setting_is_table_1_in_proportion(key: str) -> None:
    setting = SETTINGS[key]
    factor = setting.flows / 40
    network = setting.network
    assert network.rate_bps == 20e6 * factor
    assert (network.total_thresholds.min, network.total_thresholds.max) == (347 * factor, 694 * factor)
    profiles = 0 if network.aqm == "RED" else 15.2e6 * factor
    assert sum(g.count * g.profile_bps for g in network.groups) == pytest.approx(profiles)
    trips = round_trips(setting)
    assert sum(trips) / len(trips) == pytest.approx(0.100)
    if key.endswith("bare"):
        assert not any("access" in flow for flow in perhop_scenario(network)["flows"])
        assert set(setting.spans) == {"perhop", "htsim"}
    if key.endswith("rtts"):
        assert (min(trips), max(trips)) == pytest.approx(ROUND_TRIPS_S)
        assert len({round(trip, 9) for trip in trips}) == setting.flows


@pytest.mark.parametrize("key", SETTINGS)
def test_the_peers_get_the_same_setting(key: str, tmp_path: Path) -> None:
    setting = SETTINGS[key]
    words = dict(word.lstrip("-").split("=", 1) for word in ns3.arguments(setting.network, 7))
    assert len(words["accessDelays"].split(",")) == setting.flows
    assert words["seed"] == "7"
    program = ns2.program("ns-2", kind="ns-2", headers="all", scheduler="Calendar")
    assert "headers=all" in program.command(setting.network, 7, tmp_path)


def test_what_programs_print_is_read() -> None:
    network = SETTINGS["40"].network
    flow = (
        "flow index=0 profile_bps=0 start_s=0 acked_packets=1 acked_bytes=576 delivered_bytes=576 sent=1"
        " retransmitted=0 timeouts=0 cuts=0\n"
    )
    queue = (
        "queue code_point=in arrived=5 early=1 forced=0\nqueue code_point=out arrived=7 early=2 forced=1\n"
    )
    program = ns2.program("ns-2", kind="ns-2", headers="all", scheduler="Calendar")
    assert program.packets(flow * 40 + queue, network) == Packets(12, 8)
    line = "arrived=12 sent=8 dropped=3 delivered_bytes=4288\n"
    assert ns3.program("ns-3").packets(line, network) == Packets(12, 8)
    assert htsim.program("htsim").packets("arrived=12 sent=8\n", network) == Packets(12, 8)


def test_a_ratio_is_of_the_medians_and_its_range_by_repetition() -> None:
    ratio = compare.ratio([10.0, 30.0, 20.0], [1.0, 5.0, 1.0])
    assert (ratio.median, ratio.low, ratio.high) == (20.0, 6.0, 20.0)


def test_rows_are_by_program() -> None:
    setting = SETTINGS["40"]
    found = {name: compare.Marginals() for name in ("perhop", "ns-2")}
    for scale in (1.0, 2.0):
        for name, cost in (("perhop", 0.001), ("ns-2", 0.1)):
            span = setting.spans[name]
            short, long = (
                (0.3 + cost * scale * seconds, Packets(round(4000 * seconds), round(4000 * seconds)))
                for seconds in (span.short, span.long)
            )
            found[name].add(setting, span, short, long)
    plain, other = compare.rows(setting, found, {"perhop": "perhop", "ns-2": "ns-2"})
    assert plain.ratio is None
    assert other.ratio is not None
    assert (other.ratio.low, other.ratio.high) == pytest.approx((100, 100))
    assert plain.second.high == pytest.approx(0.002)
    assert plain.use == pytest.approx(4000 * 576 * 8 / 20e6)
    assert compare.summary({"40 flows": [plain, other]}, 80) == 0
    assert compare.summary({"40 flows": [plain, other]}, 120) == 1


def test_a_program_that_is_missing_is_named_and_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A stand-in takes the place of every program, so that nothing is measured."""
    absent = Program("other", "ns-2", lambda _: "it is not installed", _no_command, _no_packets)
    monkeypatch.setattr(compare, "PROGRAMS", (absent,))
    monkeypatch.setattr(measuring, "stay_on_one_core", lambda: "nowhere")
    assert compare.main(["--json", str(tmp_path / "figures.json")]) == 2
    assert "without other: it is not installed" in capsys.readouterr().out


def test_the_table_stands_without_htsim(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(network: Ns2Setting, *_: object) -> list[str]:
        packets = round(network.duration_s * 1000)
        return [sys.executable, "-c", f"print('arrived={packets} sent={packets}')"]

    stand_in = Program("perhop", "perhop", lambda _: None, command, printed)
    monkeypatch.setattr(compare, "PROGRAMS", (stand_in, htsim.program("htsim")))
    monkeypatch.setattr(measuring, "stay_on_one_core", lambda: "nowhere")
    monkeypatch.delenv("HTSIM", raising=False)
    assert compare.main(["--settings", "40-red-bare", "--repeat", "1", "--instructions", "none"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "without htsim: clone Broadcom/csg-htsim from GitHub and set HTSIM to its folder" in lines
    assert len([line for line in lines if line.startswith(("perhop ", "htsim "))]) == 1


def refused(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which the comparison refuses HTSIM."""
    assert compare.main([]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_a_wrong_path_to_htsim_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(compare, "PROGRAMS", (htsim.program("htsim"),))
    monkeypatch.setattr(measuring, "stay_on_one_core", lambda: "nowhere")
    monkeypatch.setattr(htsim, "BUILT", tmp_path / "built")
    sources = tmp_path / "csg-htsim"
    monkeypatch.setenv("HTSIM", str(sources))
    assert refused(capsys) == (
        f"error: HTSIM={sources}: no csg-htsim is there (no file sim/tcp.h); {htsim.MISSING}"
    )
    (sources / "sim").mkdir(parents=True)
    (sources / "sim" / "tcp.h").touch()
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool == "make" else tool)
    assert refused(capsys) == "error: HTSIM is set, and the program `make` is not installed"


needs_compiler = pytest.mark.skipif(
    shutil.which("make") is None or shutil.which("g++") is None, reason="make or g++ is not installed"
)


@needs_compiler
def test_htsim_is_compiled_once_for_each_state_of_its_sources(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A stand-in for its Makefile writes down each call of the compiler."""
    monkeypatch.setattr(htsim, "BUILT", tmp_path / "built")

    def made(name: str) -> Path:
        folder = tmp_path / name / "sim"
        folder.mkdir(parents=True)
        (folder / "tcp.h").touch()
        (folder / "tcp.cpp").touch()
        # Of whatever flags: not ours.
        (folder / "tcp.o").touch()
        rules = "OBJS=tcp.o\nCC=echo >> calls; touch table1; true\n%.o: %.cpp\n\ttouch $@\n"
        (folder / "Makefile").write_text(rules)
        return folder.parent

    def calls(sources: Path) -> int:
        monkeypatch.setenv("HTSIM", str(sources))
        assert htsim.build(tmp_path) is None
        (program, *words) = htsim.program("htsim").command(SETTINGS["40-red-bare"].network, 7, tmp_path)
        assert {"--accessRate=inf", "--seed=7", "--min=347"} <= set(words)
        assert Path(program).with_name("tcp.o").exists()
        return len(Path(program).with_name("calls").read_text().splitlines())

    first, second = made("first"), made("the second")
    assert [calls(first), calls(first), calls(second)] == [1, 1, 1]
    newer = (first / "sim" / "tcp.cpp").stat().st_mtime + 10
    os.utime(first / "sim" / "tcp.cpp", (newer, newer))
    assert [calls(first), calls(second)] == [2, 1]


@needs_compiler
def test_sources_that_do_not_compile_are_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(compare, "PROGRAMS", (htsim.program("htsim"),))
    monkeypatch.setattr(measuring, "stay_on_one_core", lambda: "nowhere")
    monkeypatch.setattr(htsim, "BUILT", tmp_path / "built")
    (tmp_path / "sim").mkdir()
    (tmp_path / "sim" / "tcp.h").touch()
    (tmp_path / "sim" / "Makefile").write_text("CC=g++\n")
    monkeypatch.setenv("HTSIM", str(tmp_path))
    line = refused(capsys)
    assert line.startswith(f"error: HTSIM={tmp_path}: table1.cc does not compile: ")
    assert "eventlist.h" in line


@pytest.mark.long  # it compiles csg-htsim
@pytest.mark.skipif(not os.environ.get("HTSIM"), reason="HTSIM does not say where csg-htsim is")
@pytest.mark.parametrize("key", ["40-red", "40-red-bare"])
def test_htsim_fills_the_link(key: str, tmp_path: Path) -> None:
    assert htsim.build(tmp_path) is None
    network = replace(SETTINGS[key].network, duration_s=20.0)
    program = htsim.program("htsim")
    sent = program.packets(process.run(program.command(network, 1, tmp_path)).output, network).sent
    assert sent * network.packet_bytes * 8 / network.rate_bps / network.duration_s > 0.9


def _no_command(*_: object) -> list[str]:
    raise AssertionError


def _no_packets(*_: object) -> Packets:
    raise AssertionError


@pytest.mark.parametrize("flows", [1, *growth.FLOWS])
def test_every_size_is_a_scenario(flows: int) -> None:
    network = growth.of_flows(flows)
    read = taken(growth.scenario(network, 1.0))
    assert sum(entry["count"] for entry in read["flows"]) == flows
    assert network.rate_bps / flows == 0.5e6


@pytest.mark.parametrize("hops", growth.HOPS)
def test_a_chain_has_the_same_round_trip(hops: int) -> None:
    links = taken(growth.scenario(growth.of_flows(40), 1.0, hops=hops))["links"]
    assert len(links) == hops
    assert next(iter(links)) == "bottleneck"
    assert {links[name]["to"] for name in links} >= {"core"}
    delays = [float(link["delay"].removesuffix("ms")) for link in links.values()]
    assert sum(delays) == pytest.approx(48)


def test_the_engine_answers() -> None:
    """One run through the child process: packets are counted, and probes look as often as they are set to."""
    run = engine.run(growth.scenario(growth.of_flows(1), 2.0, interval_s=0.1), 1)
    assert run.answer.arrived >= run.answer.sent > 0
    assert run.answer.looks in {19, 20, 21}
    assert run.answer.peak_bytes > 1_000_000


def test_tables_are_for_terminals_or_for_markdown() -> None:
    rows = [["one", "1.0"], ["three", "30.0"]]
    assert measuring.table(("name", "value"), rows, markdown=False).splitlines()[1] == "one      1.0"
    assert measuring.table(("name", "value"), rows, markdown=True).splitlines()[1:3] == [
        "| --- | ---: |",
        "| one | 1.0 |",
    ]


def test_transfers_are_the_same_as_flows_and_as_a_population() -> None:
    read = taken(flows.population(20))
    listed = read["flows"][0]["arrivals"]["list"]
    transfers = flows.setting(20).transfers(1)
    # Each has 960 bytes of payload for each packet.
    scale = {"kB": 1000, "B": 1}
    sizes = [
        next(float(size.removesuffix(u)) * n for u, n in scale.items() if size.endswith(u))
        for _, size in listed
    ]
    assert sizes == [pytest.approx(volume * 960) for _, volume in transfers]
    assert taken(flows.million())["flows"][0]["arrivals"] == {"rate": "11000/s"}


@pytest.mark.parametrize("size", growth.ROUTERS)
def test_every_packet_of_a_torus_takes_six_hops(size: int) -> None:
    read = taken(growth.torus(size, 1.0))
    assert len(read["links"]) == 2 * size * size
    assert len(read["flows"]) == size * size
    assert len({(link["from"], link["to"]) for link in read["links"].values()}) == 2 * size * size

    def place(router: str) -> tuple[int, ...]:
        return tuple(int(number) for number in router.removeprefix("router ").split("-"))

    for flow in read["flows"]:
        start, end = place(flow["from"]), place(flow["to"])
        assert [(b - a) % size for a, b in zip(start, end, strict=True)] == [growth.STEPS] * 2


def test_hops_are_counted_at_every_link() -> None:
    answer = engine.run(growth.torus(7, 1.5), 1).answer
    # Each of 98 links sees the same load, about.
    assert answer.packet_hops > 50 * answer.arrived


@pytest.mark.parametrize("transport", matrix.TRANSPORTS)
@pytest.mark.parametrize("discipline", matrix.DISCIPLINES)
def test_every_cell_of_the_matrix_is_a_scenario_of_table_1(transport: str, discipline: str) -> None:
    made = matrix.TRANSPORTS[transport], matrix.DISCIPLINES[discipline]
    read = taken(matrix.scenario(*made, 10.0))
    (link,) = read["links"].values()
    assert (link["rate"], sum(entry["count"] for entry in read["flows"])) == ("20Mbps", 40)
    assert sum(entry["count"] for entry in read["flows"] if entry.get("service") == "green") == matrix.GREEN
    assert sum("profile" in entry for entry in read["flows"]) == 5
    queue = json.dumps(link["queue"])
    assert ("347/694/0.05" in queue) == (matrix.RED in json.dumps(made[1].queue))
    capable = {entry.get("ecn", "off") for entry in read["flows"]}
    assert capable == {made[0].ecn or "off"}
    for entry in read["flows"]:
        assert entry["transport"]["packet"] == "576B"


def test_queues_mark_where_flows_are_capable() -> None:
    for name, transport in matrix.TRANSPORTS.items():
        made = matrix.scenario(transport, matrix.DISCIPLINES["WFQ"], 10.0)
        rules = [queue["rule"] for queue in made["links"]["bottleneck"]["queue"]["queues"]]
        assert [rule.get("ecn", False) for rule in rules] == [name in {"ECN", "DCTCP", "Prague"}] * 2


def cell(*packets: float) -> matrix.Cell:
    return matrix.Cell("batched", [one * 5000 for one in packets], list(packets), [1.0] * len(packets))


def test_the_matrix_judges_by_the_ratio_to_its_base(capsys: pytest.CaptureFixture[str]) -> None:
    found = {
        matrix.BASE: cell(30e-9, 20e-9, 40e-9),
        ("SACK", "FIFO, RED"): cell(66e-9, 60e-9, 50e-9),
        ("NewReno", "EDF"): cell(45e-9, 30e-9, 60e-9),
        ("SACK", "EDF"): replace(cell(90e-9), engine="reference"),
    }
    report = matrix.Report(markdown=True)
    report.cells(found, ["SACK"], ["EDF"])
    lines = capsys.readouterr().out.splitlines()
    (sack,) = (line for line in lines if line.startswith("| SACK | 0.300"))
    assert sack.split(" | ")[5:] == ["2.00 (1.25..3.00)", "≤ 2: holds |"]
    (edf,) = (line for line in lines if line.startswith("| EDF | "))
    assert edf.split(" | ")[5:] == ["1.50 (1.50..1.50)", "≤ 2: holds |"]
    assert "| SACK | 90 (3.0) * |" in lines
    assert report.verdicts[0] == "SACK: 2.00 (1.25..3.00) times a packet of the base, wanted ≤ 2: holds"


def test_other_programs_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    absent = Program("other", "ns-2", lambda _: "it is not installed", _no_command, _no_packets)
    one = replace(matrix.peers()["ns-2, Sack1"], program=absent)
    monkeypatch.setattr(matrix, "peers", lambda: {"other, SACK": one, "other, SACK again": one})
    found = {("SACK", "FIFO, RED"): cell(50e-9)}
    assert matrix.beside(found, [1], tmp_path) == ([], ["without other: it is not installed"], [])
    assert matrix.beside({}, [1], tmp_path) == ([], [], [])


def test_ns2_gets_the_features_of_the_transport(tmp_path: Path) -> None:
    words = {
        name: set(peer.program.command(peer.network, 1, tmp_path))
        for name, peer in matrix.peers().items()
        if peer.program.name == "ns-2"
    }
    assert {"aqm=RED", "tcp=Newreno", "delayed_ack=0.0"} <= words["ns-2, NewReno"]
    assert {"tcp=Newreno", "delayed_ack=0.04"} <= words["ns-2, NewReno, delayed ACK"]
    assert {"tcp=Sack1", "delayed_ack=0.04"} <= words["ns-2, Sack1, delayed ACK"]


def trial(number: int, delay: float, use: float, *, feasible: bool = True) -> Trial:
    found = {tuning.DELAY: Estimate(delay, None, 1), tuning.USE: Estimate(use, None, 1)}
    return Trial(number, {}, None, found, feasible=feasible)


def test_the_hypervolume_is_the_area_that_trials_dominate() -> None:
    use, delay = tuning.REFERENCE
    assert tuning.hypervolume([]) == 0
    assert tuning.hypervolume([trial(0, 0.0, 1.0)]) == pytest.approx(1)
    half = trial(0, delay / 2, (1 + use) / 2)
    assert tuning.hypervolume([half]) == pytest.approx(0.25)
    steps = [half, trial(1, 0.75 * delay, 1.0), trial(2, delay / 2, use), trial(3, 0.0, 1.0, feasible=False)]
    assert tuning.hypervolume(steps) == pytest.approx(0.25 + 0.125)
    assert tuning.least(steps) == pytest.approx(500 * delay)
    assert tuning.least([]) == float("inf")


def test_searches_with_the_same_seed_are_compared() -> None:
    figures = [
        {"search": "one", "batch": batch, "trials": 20, "values": values, "with_first": [1.0, 2.0]}
        for batch, values in ((1, [1.0, 2.0]), (8, [3.0, 6.0]), (9, [1.0, float("inf")]))
    ]
    lines = tuning.tables(figures, [1, 8, 9], markdown=True).splitlines()
    assert lines[2] == "| 1 | 1.5 |"
    assert lines[3].startswith("| 8 | 4.5 (+3 ± ")
    assert lines[4] == "| 9 | a search found nothing within the constraints |"
    assert [plan.batch for plan, _ in tuning.plans().values()] == [4, 4]


def test_a_graph_is_read_with_its_neighbors_and_its_faults_are_named() -> None:
    assert quaint.read_graph("% a path\n3 2\n2\n1 3\n2\n") == [[1], [0, 2], [1]]
    for text, fault in (
        ("3 2\n2\n1 3\n", "2 vertices with 3 ends; its head says 3, 2 edges"),
        ("2 1\n2\nx\n", "no graph of METIS"),
        ("3 1\n2\n3\n\n", "the adjacency is not symmetric"),
    ):
        with pytest.raises(quaint.GraphError, match=fault):
            quaint.read_graph(text)


def test_paths_to_switches_with_many_links_are_counted_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quaint, "SWITCHES", 1)
    # A path of four and a leaf: the second vertex has three links.
    neighbors = quaint.read_graph("5 4\n2\n1 3 5\n2 4\n3\n2\n")
    assert quaint.is_no_access(neighbors) == [1]
    assert quaint.mean_hops(neighbors) == pytest.approx((1 + 1 + 2 + 1) / 4)
    read = taken(quaint.scenario(neighbors, 0.1))
    assert [flow["count"] for flow in read["flows"]] == [4, 4, 4]
    assert read["topology"]["graph"]["links"] == [["s0", "s1"], ["s1", "s2"], ["s1", "s4"], ["s2", "s3"]]


# ---------------------------------------------------------------- single blocks
COUNTED = {
    ("meter", "token-bucket"): blocks.Cost(40.0, 2.0, 32, None),
    ("meter", "tsw"): blocks.Cost(80.0, 10.0, 40, None),
    ("meter", "tsw, green"): blocks.Cost(50.0, 4.0, 40, None),
    ("meter", "tsw deterministic"): blocks.Cost(60.0, 5.0, 40, None),
    ("meter", "twam"): blocks.Cost(30.0, 5.0, 8, None),
    ("meter", "twam, green"): blocks.Cost(20.0, 1.0, 8, None),
    ("aqm", "wred out"): blocks.Cost(300.0, 40.0, 250, (1, 2)),
    ("aqm", "dwred"): blocks.Cost(310.0, 40.0, 240, (1, 1)),
    ("path", "interval of 10 flows"): blocks.Cost(3000.0, 150.0, 700, None),
    ("path", "interval of 20 flows"): blocks.Cost(5000.0, 250.0, 1300, None),
    ("path", "watched packet"): blocks.Cost(25.0, 2.0, None, None),
    ("dwred", "update of 1 paths"): blocks.Cost(90.0, 4.0, 336, None),
    ("dwred", "update of 16 paths"): blocks.Cost(170.0, 7.0, 624, None),
}


def test_what_is_done_once_an_interval_is_spread_over_its_packets() -> None:
    rows = {row[0].strip(): row[1:] for row in blocks.windows(COUNTED)}
    assert rows["twam: marking a packet"] == ["30", "0.38", "5.0", "0.50"]
    assert rows["all three, 150 packets"] == ["75", "0.94", "8.0", "0.80"]
    assert rows["dwred: a packet"] == ["310", "1.03", "40.0", "1.00"]
    uncounted = {key: replace(cost, instructions=math.nan) for key, cost in COUNTED.items()}
    assert blocks.windows(uncounted)[1][1:] == ["-", "-", "4.0", "0.40"]


def test_the_record_is_a_table_for_each_row() -> None:
    read = tomllib.loads(blocks.toml(blocks.record(COUNTED), {"rustc": "1.0"}))
    assert read["tools"] == {"rustc": "1.0"}
    assert read["meter"]["tsw"] == {
        "instructions_per_packet": 80,
        "instructions_per_green_packet": 50,
        "state_bytes_per_flow": 40,
    }
    twam, dwred = read["meter"]["twam"], read["aqm"]["dwred"]
    assert twam["instructions_per_interval"] == 3000
    # 60 bytes more for each flow more, and 8 in its marker.
    assert (twam["state_bytes_per_flow"], twam["state_bytes_per_path"]) == (68, 100)
    assert (dwred["state_bytes_per_queue"], dwred["state_bytes_per_path"]) == (240, 24)


def test_the_loop_around_a_block_does_not_count(tmp_path: Path) -> None:
    row = {"units": 10, "state": None, "kept": None}
    rows = [
        {**row, "role": role, "name": name, "ns": times}
        for role, name, times in (
            ("meter", "nothing", [1.0, 9.0, 2.0]),
            ("meter", "tsw", [12.0, 10.0, 30.0]),
            ("queue", "nothing", [3.0]),
            ("aqm", "red", [30.0]),
            ("dwred", "update of 1 paths", [4.0]),
        )
    ]
    program = tmp_path / "program"
    program.write_text(f"#!{sys.executable}\nprint({chr(10).join(map(json.dumps, rows))!r})\n")
    program.chmod(0o755)
    costs = blocks.measure(program, 3, counts=False)
    assert {key: cost.ns for key, cost in costs.items()} == {
        ("meter", "tsw"): 10.0,
        ("aqm", "red"): 27.0,
        ("dwred", "update of 1 paths"): 4.0,
    }
    assert all(math.isnan(cost.instructions) for cost in costs.values())


def recorded() -> dict[str, Any]:
    return tomllib.loads(blocks.RECORDED.read_text(encoding="utf-8"))


def test_every_block_has_its_costs_recorded() -> None:
    found = recorded()
    for block in json.loads(_engine.blocks()):
        # A class in Python costs what it does.
        if block["role"] in {"meter", "aqm", "scheduler"} and block["name"] != "python":
            assert block["name"] in found[block["role"]], "python -m benches.blocks --write"


@pytest.mark.long  # it compiles the program
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="Valgrind is not installed")
@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_the_recorded_instructions_are_those_of_today() -> None:
    """Instructions are the same in every run of a program, so that another count is a change of the block."""
    before = recorded()
    if (now := blocks.tools()) | {"valgrind": ""} != before["tools"] | {"valgrind": ""}:
        pytest.skip(f"recorded with {before['tools']}, and here is {now}")
    after = blocks.record(blocks.measure(blocks.build(), 1, counts=True))
    assert {role: set(rows) for role, rows in after.items()} == {
        role: set(rows) for role, rows in before.items() if role != "tools"
    }
    for role, rows in after.items():
        for name, entry in rows.items():
            assert entry == pytest.approx(before[role][name], rel=0.1), f"{role} {name}"


def test_ways_of_the_data_plane_are_compared_within_their_round() -> None:
    traffic, size, rate = data_plane.LOADS[0]
    load = {
        "traffic": traffic,
        "size": size,
        "rate": rate,
        "seconds": 2,
        "packets": 8,
        "lateness_us": [1, 2, 3],
    }
    rounds = [
        {**load, "way": way, "bytes": 1000 * (number + 1), "cpu_s": cpu}
        for number, cpus in enumerate([(2.0, 1.0), (1.0, 0.25), (4.0, 4.0)])
        for way, cpu in zip(("tun", "tun-offload"), cpus, strict=True)
    ]
    assert data_plane.per_core(rounds[0]) == 4000
    assert data_plane.ratio(rounds, "tun-offload") == 2.0
    assert data_plane.ratio(rounds, "tun") == 1.0
    everything = [
        {**one, "way": way, "traffic": traffic, "size": size, "rate": rate}
        for traffic, size, rate in data_plane.LOADS
        for way in data_plane.WAYS
        for one in rounds[:1]
    ]
    lines = data_plane.tables(everything, markdown=True).splitlines()
    assert len([line for line in lines if line]) == len(data_plane.LOADS) * (len(data_plane.WAYS) + 2)


def test_the_data_planes_ways_are_those_of_its_program() -> None:
    source = (Path(__file__).parents[3] / "crates/perhop-live/tests/common/hosts.rs").read_text()
    assert list(data_plane.WAYS) == re.findall(r'\("([a-z-]+)", Self::', source)
