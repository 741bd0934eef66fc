"""Captures replayed, as a user types it and from Python."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from tests.python.cli.test_cli import refused
from tests.python.replay import captures
from tests.python.replay.captures import Packet, pcap, poisson

import perhop as package
from perhop import PerhopError, ScenarioError
from perhop.scenario import Codel, TokenBucket, reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "capture.pcap"
MS = 1_000_000
BUCKET = {"marker": "token-bucket", "rate": "8Mbps", "burst": "2000B"}
BUCKET_TEXT = 'marker = "token-bucket", rate = "8Mbps", burst = "2000B"'
# One byte a microsecond into a bucket of 2000: two packets of 1000 bytes at once are in profile, and another
# after each millisecond.
FIVE = [Packet(0, 1000), Packet(0, 1000, 46), Packet(0, 1000), Packet(MS, 1000), Packet(MS, 1000, 10)]


@pytest.fixture
def five(tmp_path: Path) -> Path:
    """A capture of five packets."""
    path = tmp_path / "five.pcap"
    path.write_bytes(pcap(FIVE))
    return path


def test_the_example_is_what_its_program_writes() -> None:
    assert EXAMPLE.read_bytes() == captures.example()
    assert EXAMPLE.stat().st_size < 50_000


def test_a_meters_verdicts_by_hand(five: Path) -> None:
    result = package.replay(five, meter=BUCKET, packets=True)
    rows = result.outcomes().select("codepoint", "color", "left", "packets", "share").rows()
    assert rows == [
        ("DF", "green", "AF11", 2, 2 / 3),
        ("DF", "yellow", "AF12", 1, 1 / 3),
        ("AF11", "yellow", "AF12", 1, 1.0),
        ("EF", "green", "AF11", 1, 1.0),
    ]
    assert result.outcomes()["rate_bps"].to_list() == [16e6, 8e6, 8e6, 8e6]
    assert result.packets is not None
    assert result.packets["dscp_out"].to_list() == [10, 10, 12, 10, 12]
    assert result.packets["color"].to_list() == ["green", "green", "yellow", "green", "yellow"]
    assert result.packets["verdict"].unique().to_list() == ["forwarded"]
    assert result.packets["packet"].to_list() == [1, 2, 3, 4, 5]
    assert result.flows()["green_packets"].to_list() == [3]
    assert result.classes().is_empty()
    assert "2 green" not in repr(result)
    assert "the meter token-bucket" in repr(result)


def test_a_policer_and_a_queue_behind_a_meter(five: Path) -> None:
    result = package.replay(five, meter={**BUCKET, "out": "drop"}, packets=True)
    assert result.packets is not None
    assert result.packets["verdict"].to_list() == [
        "forwarded",
        "forwarded",
        "policed",
        "forwarded",
        "policed",
    ]
    assert result.packets["dscp_out"].to_list() == [10, 10, None, 10, None]
    # Each of the three takes 1 ms: the second one waits that long, and the third comes as it begins.
    behind = package.replay(
        five, meter={**BUCKET, "out": "drop"}, queue={"aqm": "drop-tail", "limit": "9p"}, rate="8Mbps"
    )
    assert behind.codepoints().select("codepoint", "policed_packets", "delay_max_s").rows() == [
        ("DF", 1, 0.001),
        ("AF11", 1, None),
        ("EF", 0, 0.001),
    ]
    assert behind.report["link"]["utilization"] == 1.0
    assert behind.report["duration_s"] == 0.003


def test_waiting_times_are_those_of_theory(tmp_path: Path) -> None:
    # M/D/1 at a load of 0.5: the mean wait is half a service time (Pollaczek and Khinchine).
    path = tmp_path / "poisson.pcap"
    path.write_bytes(pcap(poisson(200_000, 2 * MS, 1000), captured=42))
    result = package.replay(path, queue={"aqm": "drop-tail", "limit": "1000p"}, rate="8Mbps", packets=True)
    assert result.packets is not None
    packets = result.packets.to_numpy(structured=True)
    waits = packets["sent_s"] - packets["arrived_s"] - 0.001
    assert result.report["all"]["delay_mean_s"] == pytest.approx(waits.mean(), rel=1e-6)
    assert waits.mean() == pytest.approx(0.0005, rel=0.02)
    assert result.report["link"]["utilization"] == pytest.approx(0.5, rel=0.01)
    # Little's law: packets that wait = rate of arrivals x mean wait.
    arrived = len(packets) / result.report["duration_s"]
    assert result.report["link"]["mean_queue_packets"] == pytest.approx(arrived * waits.mean(), rel=1e-6)
    row = result.classes().row(0, named=True)
    assert row["delay_p99_s"] == pytest.approx(np.quantile(waits, 0.99, method="inverted_cdf"), rel=0.031)


def test_a_link_of_a_scenario_gives_the_same_in_both_drivers() -> None:
    scenario = ROOT / "examples" / "policer.toml"
    simulated = package.replay(EXAMPLE, scenario, link="edge", packets=True)
    forwarded = package.replay(EXAMPLE, scenario, data_plane=True, packets=True)
    assert simulated.report == forwarded.report
    assert simulated.packets is not None
    assert forwarded.packets is not None
    assert simulated.packets.equals(forwarded.packets)
    assert simulated.report["all"]["policed_packets"] > 0
    assert {row["name"] for row in simulated.report["meters"]} == {"modest", "greedy"}
    assert package.replay(EXAMPLE, scenario, seed=2).report != simulated.report  # RIO's chance


def test_the_packets_of_a_run_meet_the_same_fate_when_they_are_replayed(tmp_path: Path, small: Path) -> None:
    # TCP over RED, whose chance decides on arrival: with the same arrivals and seed it decides alike.
    text = (
        small.read_text()
        .replace('aqm = "rio"', 'aqm = "red"')
        .replace('in = "10/30/0.02", total', "thresholds")
    )
    captured = tmp_path / "run.pcapng"
    result = package.run(text, seed=3, capture=captured, runs=1)
    replayed = package.replay(captured, text, interface="bottleneck in", seed=3)
    link = result.runs[0].raw["links"][0]
    dropped = {reason: int(packets.sum()) for reason, packets in link["dropped"].items()}
    assert dropped
    assert dict(replayed.report["classes"][0]["dropped"]) == dropped
    assert replayed.report["classes"][0]["arrived_packets"] == link["arrived"].sum()
    with pytest.warns(package.PerhopWarning, match=r"several interfaces \(`bottleneck in`"):
        package.replay(captured, meter=BUCKET)


def test_builders_and_text_say_the_same(perhop: Perhop, five: Path) -> None:
    built = package.replay(five, meter=TokenBucket(rate="8Mbps", burst="2000B"), queue=Codel(), rate="4Mbps")
    done = perhop(
        "replay", five, "--meter", BUCKET_TEXT, "--queue", 'aqm = "codel"', "--rate", "4Mbps", "--json", "-"
    )
    assert done.code == 0, done.err
    assert json.loads(done.out) == built.report
    assert done.err.rstrip("\n") == built.text(80)


def test_each_packet_goes_into_a_file(perhop: Perhop, five: Path, tmp_path: Path) -> None:
    for name, read in (("out.csv", pl.read_csv), ("out.parquet", pl.read_parquet)):
        done = perhop("replay", five, "--meter", BUCKET_TEXT, "--packets", tmp_path / name)
        assert done.code == 0, done.err
        assert read(tmp_path / name)["dscp_out"].to_list() == [10, 10, 12, 10, 12]
    line = refused(perhop("replay", five, "--meter", BUCKET_TEXT, "--packets", "out.txt"))
    assert ".parquet or .csv" in line


def test_compressed_files_and_standard_input_are_read(five: Path, tmp_path: Path) -> None:
    packed = tmp_path / "five.pcap.gz"
    packed.write_bytes(gzip.compress(five.read_bytes()))
    whole = package.replay(five, meter=BUCKET).report
    assert package.replay(packed, meter=BUCKET).report == whole
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(PerhopError, match=r"five\.pcap\.gz: is cut off after "):
        package.replay(packed, meter=BUCKET)
    command = [sys.executable, "-m", "perhop", "replay", "-", "--meter", BUCKET_TEXT, "--json", "-"]
    done = subprocess.run(command, input=five.read_bytes(), capture_output=True, check=True)
    assert json.loads(done.stdout) == whole
    assert done.stderr.startswith(b"standard input: 5 packets")


def test_a_part_of_a_capture_is_replayed_at_another_speed(five: Path) -> None:
    def verdicts(**options: object) -> list[int]:
        packets = package.replay(five, meter=BUCKET, packets=True, **options).packets  # type: ignore[arg-type]
        assert packets is not None
        return packets["dscp_out"].to_list()

    assert verdicts(start="1ms") == [10, 10]
    assert verdicts(end="1ms") == [10, 10, 12]
    assert verdicts(speed=0.5) == [10, 10, 12, 10, 10]
    assert verdicts(match={"dscp": ["EF", "AF11"]}) == [10, 10]
    shown = str(package.replay(five, meter=BUCKET, match={"dscp": "EF"}, start="0s", end="1us"))
    first = shown.partition("\n\n")[0].replace("\n", " ")
    assert first.startswith("five.pcap: 1 of 4 packets (left out: 1 outside the chosen time, 2 not chosen)")


def test_what_offload_leaves_to_the_card_is_replayed_and_said(perhop: Perhop, tmp_path: Path) -> None:
    # Ethernet headers are 14 bytes, IPv4 has its length at 2 and its checksum at 10.
    head, first = 24 + 16 + 14, 16 + 14 + 1000
    content = bytearray(pcap([*FIVE, Packet(2 * MS, 9000)]))
    content[head + 10 : head + 12] = bytes(2)
    content[head + first + 10] ^= 1
    content[head + 5 * first + 2 : head + 5 * first + 4] = bytes(2)
    content[head + 5 * first + 10 : head + 5 * first + 12] = bytes(2)
    path = tmp_path / "host.pcap"
    path.write_bytes(content)
    done = perhop("replay", path, "--meter", BUCKET_TEXT, "--wide")
    assert done.code == 0
    assert done.out.startswith("host.pcap: 5 of 6 packets (left out: 1 with a wrong IPv4 checksum) in")
    said = " ".join(done.out.split("\n\n")[0].split())
    assert said.endswith(
        "into the meter token-bucket Captured before the network card filled them in, and replayed: 2 "
        "without IPv4 checksum, 1 without length, which is then that of the frame. 1 longer than 1500 bytes, "
        "up to 9,000: jumbo frames, or segments that a host divides or joins (TSO, GRO) and that were "
        "apart on the wire."
    )
    capture = json.loads(perhop("replay", path, "--meter", BUCKET_TEXT, "--json", "-").out)["capture"]
    assert capture["left_out"] == [[1, "with a wrong IPv4 checksum"]]
    assert [capture[key] for key in ("no_checksum", "no_length", "long", "longest")] == [2, 1, 1, 9000]


def test_a_scenario_says_what_it_leaves_out_of_a_capture(tmp_path: Path) -> None:
    content = bytearray(pcap(FIVE))
    content[24 + 16 + 14 + 10] ^= 1
    (tmp_path / "wrong.pcap").write_bytes(content)
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        'duration = "1s"\n[links.l]\nfrom = "a"\nto = "b"\nrate = "10Mbps"\ndelay = "1ms"\n'
        'queue = { aqm = "drop-tail", limit = "50p" }\n[[flows]]\nname = "f"\nfrom = "a"\nto = "b"\n'
        'replay = "wrong.pcap"\n',
        encoding="utf-8",
    )
    notices = reading.read(scenario).notices
    said = "flows[0].replay: wrong.pcap: left out: 1 with a wrong IPv4 checksum, of 5 packets"
    assert [notice for notice in notices if notice.endswith(said)]


REFUSALS: list[tuple[list[str], str]] = [
    ([], "replay: says nothing to replay into: give a meter, a queue with its rate, or a scenario"),
    (["--meter", "srtcm"], "--meter: `srtcm` is no table; write keys and values with commas, such as"),
    (["--meter", 'marker = "srtcm"'], "replay: meter: key `rate` is missing"),
    (["--queue", 'aqm = "codel"'], "replay: rate: is missing"),
    (["--queue", 'aqm = "codel"', "--rate", "8mbps"], "replay: rate: `8mbps`"),
    (["--meter", BUCKET_TEXT, "--rate", "8Mbps"], "replay: rate: has no effect without a queue"),
    (["--meter", BUCKET_TEXT, "--link", "a"], "replay: link: names a link of a scenario"),
    (["--meter", BUCKET_TEXT, "--from", "1"], "--from: "),
    (["--meter", BUCKET_TEXT, "--from", "1s", "--to", "1s"], "--to: the replay ends before it begins"),
    (["--meter", BUCKET_TEXT, "--from", "1s"], "has no packet to replay; of those read: 5 outside"),
    (["--meter", BUCKET_TEXT, "--speed", "0"], "replay: speed: a speed lies between"),
    (["--meter", BUCKET_TEXT, "--match", 'sorce = "10.0.0.1"'], "replay: match.sorce: unknown key `sorce`"),
    (["--meter", BUCKET_TEXT, "--seed", "-1"], "--seed must be at least 0"),
]


@pytest.mark.parametrize(("options", "said"), REFUSALS, ids=[" ".join(one[0]) or "none" for one in REFUSALS])
def test_what_cannot_be_replayed_is_refused_in_one_line(
    perhop: Perhop, five: Path, options: list[str], said: str
) -> None:
    assert said in refused(perhop("replay", five, *options))


def test_captures_that_cannot_be_read_are_refused_with_their_name(perhop: Perhop, tmp_path: Path) -> None:
    def line(name: str, content: bytes | None, *options: str) -> str:
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        text = refused(perhop("replay", path, "--meter", BUCKET_TEXT, *options))
        assert text.startswith(f"error: {path}: ")
        return text.removeprefix(f"error: {path}: ")

    whole = pcap(FIVE)
    back = pcap([Packet(5, 100), Packet(2, 100)])
    other = bytearray(whole)
    other[20] = 127
    assert line("none", None) == "no such file"
    assert line("empty", b"") == "is empty; `tcpdump -w FILE` writes a capture"
    assert line("text", b"duration = 5") == (
        "is no capture: it begins neither as pcap nor as pcapng; `tcpdump -w FILE` writes one"
    )
    assert line("header", pcap([])) == "has no packets"
    assert line("cut", whole[:-1]) == "is cut off after 4 whole packets; `allow-cut` replays what is whole"
    assert (
        line("back", back) == "packet 2 is 3ns earlier than packet 1; put packets in order: reordercap IN OUT"
    )
    assert line("radio", bytes(other)).startswith("packet 1 is of link type 127, which is not read;")
    done = perhop("replay", tmp_path / "cut", "--meter", BUCKET_TEXT, "--allow-cut")
    assert done.code == 0
    assert "The file is cut off; what is whole of it was replayed." in done.out


def test_links_that_cannot_be_replayed_are_refused(perhop: Perhop, five: Path) -> None:
    scenario = ROOT / "examples" / "queues.toml"
    line = refused(perhop("replay", five, scenario))
    assert f"{scenario}: links.R2-R3.queue.queues[1].match.path: packets of a capture follow no label" in line
    scenario = ROOT / "examples" / "cellular.toml"
    assert "changes or loses packets during a run" in refused(perhop("replay", five, scenario))
    with pytest.raises(ScenarioError, match="unknown link `ege`; did you mean `edge`"):
        package.replay(five, ROOT / "examples" / "policer.toml", link="ege")


def test_what_has_no_effect_is_said(perhop: Perhop, five: Path) -> None:
    table = 'aqm = "inverse-rate", in = "4/7/0.02", total = "1/3/0.5", limit = "9p"'
    done = perhop("replay", five, "--queue", table, "--rate", "8Mbps")
    assert done.code == 0
    queue = {"aqm": "inverse-rate", "in": "4/7/0.02", "total": "1/3/0.5", "limit": "9p"}
    with pytest.warns(package.PerhopWarning, match="carry no contracted rate"):
        package.replay(five, queue=queue, rate="8Mbps")
    assert "warning: replay: queue.aqm: `inverse-rate`: packets of a capture carry no contracted" in done.err
