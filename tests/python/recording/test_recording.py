"""The packets of a run in files: they are those that the run counts, and other readers find them sound."""

from __future__ import annotations

import errno
import json
import os
import shutil
import struct
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import perhop
from perhop import _engine
from perhop.errors import PerhopError
from perhop.files import filesystem
from perhop.runs import events, recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")

QUEUES: dict[str, dict[str, Any]] = {
    "drop-tail": {"aqm": "drop-tail", "limit": "20p"},
    "red": {"aqm": "red", "thresholds": "5/15/0.1", "limit": "30p", "weight": 0.02, "ecn": True},
    "rio": {"aqm": "rio", "in": "10/25/0.05", "total": "5/15/0.1", "limit": "30p", "weight": 0.02},
    "codel": {"aqm": "codel", "target": "3ms", "interval": "30ms", "limit": "40p", "ecn": True},
    "pie": {"aqm": "pie", "target": "5ms", "limit": "40p"},
    "fq-codel": {"scheduler": "fq-codel", "target": "3ms", "interval": "30ms", "limit": "40p", "ecn": True},
    "dualpi2": {"scheduler": "dualpi2", "limit": "60p"},
}


def group(name: str, transport: dict[str, Any], **keys: object) -> dict[str, Any]:
    access = {"rate": "50Mbps", "delay": "1ms"}
    return {"name": name, "from": "a", "to": "b", "access": access, "transport": transport, **keys}


def scenario(queue: dict[str, Any], **keys: object) -> dict[str, Any]:
    """Every transport over a link whose way back is narrow enough to drop ACKs."""
    link = {"from": "a", "to": "b", "rate": "5Mbps", "delay": "10ms", "queue": queue}
    reverse = {"rate": "120kbps", "queue": {"aqm": "drop-tail", "limit": "12p"}}
    profile = {"rate": "0.5Mbps", "marker": "token-bucket", "burst": "10kB"}
    return {
        "title": "Packets of a run",
        "duration": "5s",
        "warmup": "0s",
        "links": {"core": {**link, "reverse": reverse}},
        "flows": [
            group("linux", {"tcp": "linux"}, ecn="classic", count=2),
            group(
                "accurate", {"tcp": "linux"}, ecn="l4s" if queue.get("scheduler") == "dualpi2" else "accurate"
            ),
            group("plain", {"tcp": "newreno"}, profile=profile, count=2),
            group(
                "sack",
                {"tcp": "newreno", "sack": True, "handshake": True, "initial-rto": "1s", "packet": "576B"},
            ),
            group("cbr", {"udp": "cbr", "rate": "300kbps", "packet": "200B"}, dscp="EF"),
            group("rap", {"rap": "aimd"}),
            group("tfrc", {"tfrc": "rfc5348"}),
        ],
        **keys,
    }


@dataclass(frozen=True)
class Recorded:
    """A run with what was recorded of it."""

    result: perhop.Result
    capture: Path
    events: pl.DataFrame


def record(place: Path, of: dict[str, Any], **keys: Any) -> Recorded:  # noqa: ANN401 - as `perhop.run`
    capture, events = place / "run.pcapng", place / "run.parquet"
    result = perhop.run(of, capture=capture, events=events, **{"runs": 1, **keys})
    return Recorded(result, capture, pl.read_parquet(events))


@pytest.fixture(scope="module", params=QUEUES)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A run under each queue."""
    return record(tmp_path_factory.mktemp("recorded"), scenario(QUEUES[request.param]))


@dataclass(frozen=True)
class Packet:
    """A packet of a capture."""

    interface: str
    time_ns: int
    data: bytes
    length: int
    comment: str


def packets(capture: Path) -> Iterator[Packet]:
    """Read a capture by the letter of the format."""
    content, place, interfaces = capture.read_bytes(), 0, list[str]()
    while place < len(content):
        kind, length = struct.unpack_from("<II", content, place)
        assert struct.unpack_from("<I", content, place + length - 4) == (length,)
        body = content[place + 8 : place + length - 4]
        if kind == 1:
            interfaces.append(options(body[8:])[2].decode())
        elif kind == 6:
            number, high, low, captured, original = struct.unpack_from("<IIIII", body)
            rest = options(body[20 + (captured + 3) // 4 * 4 :])
            data, comment = body[20 : 20 + captured], rest.get(1, b"").decode()
            yield Packet(interfaces[number], high << 32 | low, data, original, comment)
        place += length


def options(data: bytes) -> dict[int, bytes]:
    found, place = {}, 0
    while place < len(data):
        number, length = struct.unpack_from("<HH", data, place)
        if number == 0:
            break
        found[number] = data[place + 4 : place + 4 + length]
        place += 4 + (length + 3) // 4 * 4
    return found


def counts(frame: pl.DataFrame, *by: str) -> dict[tuple[Any, ...], int]:
    return dict(Counter(frame.select(pl.col(by).cast(pl.String)).iter_rows()))


def test_recording_changes_no_number(recorded: Recorded) -> None:
    alone = perhop.run(json.loads(recorded.result.scenario), runs=1)
    assert alone.flows.equals(recorded.result.flows)
    assert alone.links.equals(recorded.result.links)
    assert alone.drops.equals(recorded.result.drops)
    assert alone.delays.equals(recorded.result.delays)
    reason = "the packets of the run with seed 1 are recorded"
    assert (recorded.result.engine, recorded.result.engine_reason) == ("reference", reason)


def test_events_are_those_that_the_run_counts(recorded: Recorded) -> None:
    result, events = recorded.result, recorded.events
    for link in result.links.iter_rows(named=True):
        at = events.filter(pl.col("link").cast(pl.String) == link["link"])
        of = {kind: at.filter(pl.col("event") == kind).height for kind in ("in", "out", "drop")}
        assert of["in"] == link["arrived_whole_run"]
        assert of["out"] == link["sent_whole_run"]
        assert of["drop"] == link["dropped_whole_run"]
    for kind, frame in (("drop", result.drops), ("mark", result.notifications)):
        rows = frame.filter(pl.col("packets") > 0)
        expected = {row[:3]: row[3] for row in rows.select("link", "reason", "color", "packets").iter_rows()}
        assert counts(events.filter(pl.col("event") == kind), "link", "reason", "color") == expected
    dropped = events.filter((pl.col("event") == "drop") & ~pl.col("is_ack"))
    flows = result.flows.with_columns(
        sum=pl.sum_horizontal("dropped_green", "dropped_yellow", "dropped_red")
    ).filter(pl.col("sum") > 0)
    expected = {(row[0], str(row[1])): row[2] for row in flows.select("class", "member", "sum").iter_rows()}
    assert counts(dropped, "class", "member") == expected
    assert events["time_s"].is_sorted()
    assert events.filter(pl.col("is_ack") & (pl.col("event") == "drop")).height > 0, "ACKs are dropped, too"


def test_the_capture_has_the_packets_of_the_events(recorded: Recorded) -> None:
    read = list(packets(recorded.capture))
    events = recorded.events.with_columns(ecn=pl.col("ecn").to_physical(), dscp=pl.col("dscp").cast(pl.Int64))
    for link in ("core", "core (reverse)"):
        for point in ("in", "out"):
            seen = [packet for packet in read if packet.interface == f"{link} {point}"]
            rows = events.filter((pl.col("link").cast(pl.String) == link) & (pl.col("event") == point))
            assert Counter((p.data[1] >> 2, p.data[1] & 3) for p in seen) == Counter(
                rows.select("dscp", "ecn").iter_rows()
            )
            assert [packet.time_ns for packet in seen] == (rows["time_s"] * 1e9).round().cast(
                pl.Int64
            ).to_list()
            sizes = zip(seen, rows["size"], strict=True)
            assert all(packet.length == size for packet, size in sizes if packet.length > 80)
            assert all(packet.length >= size for packet, size in zip(seen, rows["size"], strict=True))
    said = Counter(packet.comment for packet in read if packet.comment)
    by = counts(recorded.events.filter(pl.col("event").is_in(["drop"])), "reason")
    assert {text: n for text, n in said.items() if text.startswith("dropped")} == {
        f"dropped: {reason}": count for (reason,), count in by.items()
    }
    marked = recorded.events.filter(pl.col("event") == "mark").height
    waiting = marked - sum(count for text, count in said.items() if text.startswith("marked"))
    assert 0 <= waiting <= 3, "marked packets that wait at the end have not left"
    late = recorded.events.filter(pl.col("event") == "out").height
    assert late == sum(packet.interface.endswith(" out") for packet in read)


def tshark(capture: Path, *arguments: str) -> list[list[str]]:
    """What tshark prints of a capture, by lines and tabs."""
    command = ["tshark", "-r", str(capture), "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True, timeout=120)
    return [line.split("\t") for line in done.stdout.splitlines()]


def fields(*names: str) -> list[str]:
    return ["-T", "fields", *(word for name in names for word in ("-e", name))]


@needs_tshark
def test_tshark_finds_every_packet_sound(recorded: Recorded) -> None:
    whole = tshark(recorded.capture, *fields("frame.interface_name", "ip.dsfield.dscp", "frame.comment"))
    read = list(packets(recorded.capture))
    assert whole == [[p.interface, str(p.data[1] >> 2), p.comment] for p in read]
    bad = "_ws.malformed or tcp.checksum.status == 0 or ip.checksum.status == 0 or udp.checksum.status == 0"
    assert tshark(recorded.capture, "-Y", bad) == []
    errors = "_ws.expert.severity == error"
    assert tshark(recorded.capture, "-Y", errors) == []


@needs_tshark
def test_tshark_sees_the_retransmissions_that_there_are(recorded: Recorded) -> None:
    # Where packets come to the link, none has been dropped.
    here = 'frame.interface_name == "core in" and tcp'
    again = ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
    flagged = tshark(
        recorded.capture, "-Y", f"{here} and ({' or '.join(f'tcp.analysis.{flag}' for flag in again)})"
    )
    data = recorded.events.filter(
        (pl.col("link") == "core")
        & (pl.col("event") == "in")
        & pl.col("class").cast(pl.String).is_in(["linux", "accurate", "plain", "sack"])
    )
    repeated = data.filter(pl.col("sequence") <= pl.col("sequence").cum_max().shift().over("flow"))
    assert len(flagged) == repeated.height > 0
    gaps = "tcp.analysis.lost_segment or tcp.analysis.ack_lost_segment"
    points = 'frame.interface_name == "core in" or frame.interface_name == "core (reverse) in"'
    assert tshark(recorded.capture, "-Y", f"({points}) and ({gaps})") == []


@needs_tshark
def test_tshark_sees_handshakes_ranges_and_ecn(tmp_path: Path) -> None:
    capture = record(tmp_path, scenario(QUEUES["red"])).capture
    syn = "tcp.flags.syn == 1 and tcp.options.mss and tcp.options.wscale and tcp.options.sack_perm"
    here = f'{syn} and frame.interface_name == "core in"'
    opened = tshark(capture, "-Y", here, *fields("ip.src", "tcp.flags", "tcp.options.mss_val"))
    # Flows 0 and 1 are linux, 2 accurate, 3 and 4 plain (no handshake), 5 sack. ECE is 40, CWR 80, AE 100.
    assert {tuple(row) for row in opened} == {
        ("10.0.0.1", "0x00c2", "1460"),
        ("10.0.0.2", "0x00c2", "1460"),
        ("10.0.0.3", "0x01c2", "1460"),
        ("10.0.0.6", "0x0002", "536"),
    }
    back = f'{syn} and frame.interface_name == "core (reverse) in"'
    answered = tshark(capture, "-Y", back, *fields("ip.src", "tcp.flags"))
    assert {tuple(row) for row in answered} == {
        ("10.1.0.1", "0x0052"),
        ("10.1.0.2", "0x0052"),
        ("10.1.0.3", "0x0092"),
        ("10.1.0.6", "0x0012"),
    }
    assert tshark(capture, "-Y", "tcp.options.sack.count > 0")
    echoed = tshark(capture, "-Y", "tcp.flags & 0x0040 and tcp.flags.syn == 0", *fields("ip.src"))
    assert ["10.1.0.1"] in echoed
    assert not any(source in (["10.1.0.4"], ["10.1.0.6"]) for source in echoed)
    marked = tshark(capture, "-Y", "ip.dsfield.ecn == 3", *fields("frame.interface_name", "frame.comment"))
    assert {tuple(row) for row in marked} == {("core out", "marked: early")}
    named = tshark(capture, "-N", "n", "-Y", "udp", "-c", "5000", *fields("ip.src_host"))
    assert ["cbr/0.sender"] in named


@dataclass(frozen=True)
class Segment:
    """The header of TCP of a packet."""

    ends: tuple[str, int, str, int]
    sequence: int
    acknowledged: int
    flags: int
    payload: int


def segment(packet: Packet) -> Segment:
    data = packet.data
    source, target = (".".join(map(str, data[place : place + 4])) for place in (12, 16))
    ports = struct.unpack_from(">HH", data, 20)
    sequence, acknowledged, flags = struct.unpack_from(">IIH", data, 24)
    payload = packet.length - 20 - (flags >> 12) * 4
    ends = (source, ports[0], target, ports[1])
    return Segment(ends, sequence, acknowledged, flags & 0xFFF, payload)


@pytest.mark.parametrize(("think", "apart"), [("500ms", True), ("0s", False)])
def test_a_connection_of_a_user_is_one_of_tcp_whose_data_carries_acks(
    tmp_path: Path, think: str, apart: bool
) -> None:
    application = {
        "model": "request-response",
        "request": "300B",
        "response": "20kB",
        "think": think,
        "times": "constant",
    }
    of = {
        "duration": "5s",
        "warmup": "0s",
        "links": {
            "core": {"from": "a", "to": "b", "rate": "10Mbps", "delay": "10ms", "queue": QUEUES["drop-tail"]}
        },
        "flows": [
            {
                "name": "users",
                "from": "a",
                "to": "b",
                "application": application,
                "transport": {"tcp": "linux"},
            }
        ],
    }
    run = record(tmp_path, of)
    came = [segment(packet) for packet in packets(run.capture) if packet.interface.endswith(" in")]
    (client, server) = sorted({one.ends for one in came}, key=lambda ends: came[0].ends != ends)
    assert client == (*server[2:], *server[:2]), "one connection, whose client sends first"
    sent, heard = {client: 0, server: 0}, {client: 0, server: 0}
    bare = Counter[tuple[str, int, str, int]]()
    for one in came:
        back = server if one.ends == client else client
        opens = bool(one.flags & 0x002)
        assert one.sequence == sent[one.ends], "all in order, ACKs among them"
        sent[one.ends] += one.payload + opens
        if one.flags & 0x010:
            # Nothing is acknowledged before it has come, and no ACK goes back.
            assert heard[one.ends] <= one.acknowledged <= sent[back]
            heard[one.ends] = one.acknowledged
            bare[one.ends] += not one.payload and not opens
        if one.ends == server and one.payload:
            assert one.acknowledged == sent[client], "each segment of a response acknowledges its request"
    assert bare[server] == 0
    assert run.result.flows["retransmitted_packets"].sum() == 0
    of_client = [one for one in came if one.ends == client]
    requests = [place for place, one in enumerate(of_client) if one.payload]
    assert len(requests) > 5
    for place in requests[1:]:
        before, request = of_client[place - 1], of_client[place]
        assert (request.acknowledged == before.acknowledged) == apart, "the last ACK rides where data is sent"


def test_policed_and_lost_packets_are_recorded(tmp_path: Path) -> None:
    of = scenario(QUEUES["drop-tail"], warmup="1s")
    of["links"]["core"]["loss"] = 0.02
    of["profiles"] = {"all": {"rate": "1Mbps", "marker": "token-bucket", "burst": "10kB", "out": "drop"}}
    of["flows"] = [
        {**{key: value for key, value in flow.items() if key != "dscp"}, "profile": "all"}
        for flow in of["flows"]
        if flow["name"] in ("plain", "cbr")
    ]
    run = record(tmp_path, of)
    flows = run.result.flows
    late = run.events.filter((pl.col("time_s") > 1.0) & ~pl.col("is_ack"))
    policed = counts(late.filter(pl.col("event") == "police"), "class", "member", "color")
    expected = {
        (row["class"], str(row["member"]), color): row[f"policed_{color}"]
        for row in flows.iter_rows(named=True)
        for color in ("green", "yellow", "red")
        if row[f"policed_{color}"]
    }
    assert policed == expected
    assert sum(expected.values()) > 50
    lost = counts(late.filter(pl.col("event") == "loss"), "class", "member")
    assert lost == {
        (row[0], str(row[1])): row[2]
        for row in flows.select("class", "member", "lost_packets").iter_rows()
        if row[2]
    }
    comments = Counter(packet.comment for packet in packets(run.capture))
    assert comments["dropped: policed"] == run.events.filter(pl.col("event") == "police").height
    assert comments["lost by the link"] == run.events.filter(pl.col("event") == "loss").height > 0


def populated() -> dict[str, Any]:
    """Finite flows that come and go, whose last segments are shorter than the others, beside web users."""
    short = {"arrivals": {"load": 0.5}, "sizes": {"lognormal": {"mean": "15kB", "deviation": "15kB"}}}
    of = scenario(QUEUES["drop-tail"])
    of["links"]["core"]["reverse"] = {"queue": {"aqm": "drop-tail", "limit": "100p"}}
    of["flows"] = [
        group("short", {"tcp": "linux"}, **short),
        group("long", {"tcp": "newreno"}),
    ]
    return of


def test_flows_of_populations_are_recorded_each_by_itself(tmp_path: Path) -> None:
    run = record(tmp_path, populated())
    flows = run.result.population_flows
    short = run.events.filter((pl.col("class").cast(pl.String) == "short") & (pl.col("link") == "core"))
    assert flows.height > 50
    assert short["member"].n_unique() <= flows.height
    assert set(short["flow"]) == {0}
    first = short.group_by("member").agg(pl.col("time_s").min())
    began = flows.with_row_index("member").join(first, on="member")
    assert began.height > 50
    assert (began["time_s"] >= began["started_s"]).all()
    assert (began["time_s"] < began["started_s"] + 1.0).all()
    at = run.events.filter(pl.col("link") == "core")
    link = run.result.links.row(0, named=True)
    assert at.filter(pl.col("event") == "in").height == link["arrived_whole_run"]


@needs_tshark
def test_tshark_sees_whole_connections_of_populations(tmp_path: Path) -> None:
    run = record(tmp_path, populated())
    bad = "_ws.malformed or tcp.checksum.status == 0 or ip.checksum.status == 0"
    assert tshark(run.capture, "-Y", bad) == []
    odd = "tcp.analysis.reused_ports or tcp.analysis.ack_lost_segment or tcp.analysis.lost_segment"
    points = 'frame.interface_name == "core in" or frame.interface_name == "core (reverse) in"'
    assert tshark(run.capture, "-Y", f"({points}) and ({odd})") == []
    done = run.result.population_flows.with_row_index("member").filter(pl.col("completion_s").is_not_null())
    wanted = {f"short/0#{row['member']}": row["size_bytes"] for row in done.iter_rows(named=True)}
    ends: Counter[str] = Counter()
    sent = tshark(
        run.capture,
        *("-N", "n", "-Y", 'frame.interface_name == "core in" and tcp'),
        *fields("ip.src_host", "tcp.nxtseq"),
    )
    for name, end in sent:
        ends[name.removesuffix(".sender")] = max(ends[name.removesuffix(".sender")], int(end or 0))
    assert len(wanted) > 50
    # Payload, and the SYN; a packet's payload is what the headers leave of it.
    assert {name: ends[name] - 1 for name in wanted} == wanted


def test_only_the_run_of_the_first_seed_is_recorded(tmp_path: Path) -> None:
    of = scenario(QUEUES["red"])
    one = record(tmp_path, of, seed=7)
    alone = one.capture.read_bytes()
    three = record(tmp_path, of, seed=7, runs=3, jobs=2)
    assert three.capture.read_bytes() == alone
    assert three.events.equals(one.events)
    assert [run.raw["engine"] for run in three.result.runs] == ["reference", "batched", "batched"]
    assert three.result.flows.equals(perhop.run(of, seed=7, runs=3).flows)


def test_links_without_a_queue_are_recorded_if_they_are_named(tmp_path: Path) -> None:
    of = scenario(QUEUES["red"])
    of["links"]["core"]["to"] = "m"
    of["links"]["more"] = {"from": "m", "to": "b", "rate": "10Mbps", "delay": "1ms"}
    links = record(tmp_path, of).events["link"].cast(pl.String).unique().sort().to_list()
    assert links == ["core", "core (reverse)"]
    named = record(tmp_path, of, capture_links=["more"])
    assert named.events["link"].cast(pl.String).unique().sort().to_list() == ["more", "more (reverse)"]
    times: dict[str, int] = {}
    for packet in packets(named.capture):
        assert packet.time_ns >= times.get(packet.interface, 0)
        times[packet.interface] = packet.time_ns
    assert set(times) == {f"{link} {point}" for link in ("more", "more (reverse)") for point in ("in", "out")}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--capture", "x.parquet", "--events", "x.parquet"],
            "--capture and --events both name x.parquet; give each a file of its own",
        ),
        (
            ["--capture-link", "link"],
            "--capture-link has no effect without a capture or a table of events; name a file",
        ),
        (
            ["--capture", "x.pcapng", "--capture-link", "core"],
            "--capture-link: there is no link `core`; the scenario has",
        ),
        (
            ["--events", "x.parquet", "--capture-link", "link (reverse)"],
            "name `link`, which means both directions",
        ),
        (["--capture", "x.txt"], "--capture x.txt: name a file that ends in .pcapng"),
        (["--events", "x.csv"], "--events x.csv: name a file that ends in .parquet"),
        (["--capture", "."], "--capture .: is no regular file; give a file name"),
        (["--capture", "-"], "--capture -: is no regular file; give a file name"),
        (["--events", "/dev/null"], "--events /dev/null: is no regular file; give a file name"),
        (
            ["--events", "none/x.parquet"],
            "--events none/x.parquet: cannot be written: No such file or directory",
        ),
        (["--capture", ""], "--capture: a name is empty"),
        (["--capture", "x.pcapng", "--engine", "batched"], "the batched engine cannot record packets"),
    ],
)
def test_what_cannot_be_recorded_is_refused(
    small: Path, perhop: Perhop, tmp_path: Path, arguments: list[str], said: str
) -> None:
    text = small.read_text(encoding="utf-8")
    name = text.split("[links.")[1].split("]")[0]
    arguments = [
        argument.replace("link", name) if argument.startswith("link") else argument for argument in arguments
    ]
    done = perhop("run", small, *arguments)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.strip().splitlines()) == 1
    assert said.replace("`link`", f"`{name}`") in done.err
    assert [path.name for path in tmp_path.iterdir()] == [small.name]


def test_a_scenario_without_queues_has_no_default(tmp_path: Path) -> None:
    of = scenario(QUEUES["red"])
    del of["links"]["core"]["queue"], of["links"]["core"]["reverse"]["queue"]
    with pytest.raises(PerhopError, match=r"^capture_links must name links, since no link has a queue: core"):
        perhop.run(of, capture=tmp_path / "x.pcapng", runs=1)


def test_a_command_says_what_it_records(small: Path, perhop: Perhop, tmp_path: Path) -> None:
    done = perhop(
        "run", small, "--runs", "2", "--capture", "a.pcapng", "--events", "a.parquet", "--out", "report"
    )
    assert done.code == 0, done.err
    note = (
        "The run with seed 1 is computed by the reference engine, which is slower: its packets are recorded."
    )
    assert note in done.err
    assert "packets of the run with seed 1: a.pcapng and a.parquet" in done.out
    assert sum(1 for _ in packets(tmp_path / "a.pcapng")) > 100
    assert pl.read_parquet(tmp_path / "a.parquet").height > 100
    command = (tmp_path / "report" / "manifest.json").read_text(encoding="utf-8")
    assert "--capture a.pcapng --events a.parquet" in command


class FullDisk(filesystem.FileSystem):
    """A disk that takes so many bytes, and whose files get names or do not."""

    def __init__(self, room: int, *, renames: bool = True) -> None:
        self.room, self.renames = room, renames

    def write(self, file: int, data: memoryview) -> int:
        if len(data) > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(data)
        return super().write(file, data)

    def rename(self, old: Path, new: Path) -> None:
        if not self.renames and ".write-test" not in new.name:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().rename(old, new)


@pytest.mark.parametrize(
    ("asked", "room", "said"),
    [
        (("capture",), 0, "capture .*x.pcapng: cannot be written: No space left on device"),
        (("capture", "events"), 1 << 20, "cannot be written: No space left on device"),
        (("events",), 0, "events .*x.parquet: cannot be written: No space left on device"),
        (("events",), 370_000, "events .*x.parquet: cannot be written: No space left on device"),
    ],
)
def test_a_full_disk_leaves_no_file_behind(
    tmp_path: Path, asked: tuple[str, ...], room: int, said: str
) -> None:
    of = scenario(QUEUES["red"])
    keys: dict[str, Any] = {name: tmp_path / f"x{recording.ENDINGS[name][0]}" for name in asked}
    for path in keys.values():
        path.write_text("earlier", encoding="utf-8")
    with filesystem.replaced(FullDisk(room)), pytest.raises(PerhopError, match=said):
        perhop.run(of, runs=3, **keys)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in keys.values()}
    assert all(path.read_text(encoding="utf-8") == "earlier" for path in keys.values())


def test_files_that_get_no_name_leave_nothing_behind(tmp_path: Path) -> None:
    of = scenario(QUEUES["red"])
    with (
        filesystem.replaced(FullDisk(1 << 40, renames=False)),
        pytest.raises(PerhopError, match=r"events .*x\.parquet: cannot be written: Input/output error"),
    ):
        perhop.run(of, capture=tmp_path / "x.pcapng", events=tmp_path / "x.parquet", runs=1)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    cancel = _engine.Cancel()
    cancel.cancel()
    with pytest.raises(_engine.Cancelled):
        perhop.run(
            scenario(QUEUES["red"]),
            capture=tmp_path / "x.pcapng",
            events=tmp_path / "y.parquet",
            cancel=cancel,
            runs=1,
        )
    assert list(tmp_path.iterdir()) == []


def test_the_table_is_read_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = scenario(QUEUES["red"])
    whole = record(tmp_path, of).events
    monkeypatch.setattr(events, "_CHUNK", 1000)
    assert record(tmp_path, of).events.equals(whole)
    assert whole.height > 5000
