"""The examples run without notices, and show what their comments and the documentation say."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path
from typing import Any

import pytest

import perhop

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
PLANS = ("sweep", "tune")
LARGE = "large.toml"
"""Takes minutes: test_topology_command.py only sets it up. network.toml is the same in small."""
SCENARIOS = sorted(
    path.name for path in EXAMPLES.glob("*.toml") if not path.stem.startswith(PLANS) and path.name != LARGE
)


def run(name: str, before: str = "", after: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    """Two runs of an example, with a part replaced: its classes of flows, and its links and their classes."""
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert before in text
    result = perhop.run(text.replace(before, after) if before else EXAMPLES / name, runs=2)
    classes = {row["class"]: row for row in result.classes().iter_rows(named=True)}
    links = {row["link"]: row for row in result.link_summary().iter_rows(named=True)}
    parts = {row["class"]: row for row in result.link_class_summary().iter_rows(named=True)}
    return classes, links | parts


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_example_runs_without_notices(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", perhop.PerhopWarning)
        result = perhop.run(EXAMPLES / name, runs=1)
    assert all(row["throughput_bps"] > 0 for row in result.classes().iter_rows(named=True))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_an_example_is_in_the_documentation(path: Path) -> None:
    texts = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert any(f"examples/{path.name}" in text.read_text(encoding="utf-8") for text in texts)


@pytest.mark.parametrize("name", ["my_aqm", "my_congestion", "my_application"])
def test_a_class_has_at_most_twenty_lines(name: str) -> None:
    path = EXAMPLES / f"{name}.py"
    (cls,) = (
        one for one in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(one, ast.ClassDef)
    )
    written = path.read_text(encoding="utf-8").splitlines()[cls.lineno - 1 : cls.end_lineno]
    assert len([line for line in written if line.strip()]) <= 20


def test_dualpi2_gives_prague_low_delay_and_both_a_share() -> None:
    classes, links = run("dualpi2.toml")
    assert links["l4s"]["delay_p50_s"] < 1e-3
    assert 0.010 < links["classic"]["delay_p50_s"] < 0.020
    assert 0.5 < classes["prague"]["throughput_bps"] / classes["cubic"]["throughput_bps"] < 2
    assert links["uplink"]["utilization"] > 0.99


def test_fq_codel_lets_a_call_pass_downloads() -> None:
    classes, _ = run("fq-codel.toml")
    codel, _ = run("fq-codel.toml", 'scheduler = "fq-codel"', 'aqm = "codel"')
    assert classes["call"]["one_way_delay_s"] < 0.025 < codel["call"]["one_way_delay_s"]
    assert classes["call"]["dropped_yellow"] == 0


def test_queue_protection_keeps_the_shallow_queue_short() -> None:
    classes, links = run("nqb.toml")
    _, bare = run("nqb.toml", "queue-protection = {}, ")
    assert links["nqb"]["delay_p99_s"] < 0.0035
    assert bare["nqb"]["delay_p99_s"] > 0.008
    assert links["nqb"]["loss"] == 0 < bare["nqb"]["loss"]
    assert classes["voice"]["dropped_yellow"] == classes["game"]["dropped_yellow"] == 0
    assert 7e6 < classes["marked download"]["throughput_bps"] < 10e6


def test_a_radio_link_changes_stops_and_loses_packets_in_bursts() -> None:
    classes, links = run("cellular.toml")
    constant, _ = run("cellular.toml", "burst-loss = { good-to-bad = 0.0005, bad-to-good = 0.25 }\n")
    assert 0 < classes["download"]["link_loss"] < 0.01
    assert constant["download"]["link_loss"] is None
    assert classes["download"]["throughput_bps"] < constant["download"]["throughput_bps"]
    # 20 Mbit/s for 35 s, less half a second, and 5 Mbit/s for 20 s, of 55 s at a nominal 20 Mbit/s.
    most = (34.5 * 20 + 20 * 5) / (55 * 20)
    assert links["radio"]["utilization"] < most


def test_an_office_loads_pages_faster_with_the_larger_profile_and_calls_do_not_notice() -> None:
    text = (EXAMPLES / "office.toml").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 40
    users = perhop.run(text, runs=3).applications()
    gold, basic = users["web"].iter_rows(named=True)
    assert gold["page_p50_s"] < 0.8 * basic["page_p50_s"]
    gold, basic = users["video"].iter_rows(named=True)
    assert gold["quality_bps"] > 2 * basic["quality_bps"]
    assert (users["call"]["mos"] > 4.3).all()


def test_a_train_gets_what_its_traces_say() -> None:
    classes, links = run("train.toml")
    # 2319 times 1500 bytes each 12 s.
    (rate,) = perhop.run(EXAMPLES / "train.toml", runs=1).links.filter(link="radio")["mean_rate_bps"]
    assert rate == pytest.approx(2319 * 12_000 / 12, rel=1e-6)
    assert 0.6 < links["radio"]["utilization"] < 1
    # The second in the tunnel.
    assert classes["music"]["one_way_delay_p99_s"] > 0.5
    assert links["radio"]["link_loss"] is None


def test_pie_keeps_its_target_where_a_large_buffer_is_full() -> None:
    classes, links = run("pie.toml")
    assert 0.010 < links["pie"]["delay_p50_s"] < 0.020
    assert links["buffer"]["delay_p50_s"] > 0.2
    assert all(row["throughput_bps"] > 2.4e6 for row in classes.values())


def test_the_edges_meters_keep_what_the_modest_customer_was_promised() -> None:
    classes, _ = run("policer.toml")
    assert classes["modest"]["throughput_bps"] * 3 > 6e6
    assert classes["greedy"]["throughput_bps"] * 3 < 9.01e6
    assert classes["greedy"]["policing_ratio"] == pytest.approx(0.4, abs=0.01)
    text = (EXAMPLES / "policer.toml").read_text(encoding="utf-8")
    without = text[: text.index("meters = [")] + text[text.index("[[flows]]") :]
    unmetered = {row["class"]: row for row in perhop.run(without, runs=2).classes().iter_rows(named=True)}
    assert unmetered["modest"]["throughput_bps"] * 3 < 4e6
