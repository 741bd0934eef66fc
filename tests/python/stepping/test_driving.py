"""`perhop.drive`: blocks by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perhop
from perhop.blocks import catalogue
from perhop.errors import PerhopError
from perhop.stepping import driving

ROOT = Path(__file__).parents[3]
RED = perhop.scenario.Red(thresholds="5/15/0.1", weight=0.25, limit="60p")


def test_reds_average_by_hand() -> None:
    # Weight 1/4: avg <- avg + (q - avg) / 4 with the queue that the arrival finds.
    queue = perhop.drive(RED)
    averages = []
    for _ in range(5):
        assert queue.offer(at=0).verdict == "pass"
        averages.append(queue.gauges["average total"])
    assert averages == [0, 0.25, 0.6875, 1.265625, 1.94921875]
    assert (queue.length, queue.bytes) == (5, 5000)
    # 1000 bytes take 0.8 ms at 10 Mbit/s. Empty from 1 ms on: at 1.8 ms one packet could have been sent,
    # avg <- (3/4)^1 avg, then the arrival finds an empty queue: 3/4 of that.
    for _ in range(5):
        assert queue.departure(at="1ms").packet is not None
    assert queue.departure(at="1ms").packet is None
    queue.offer(at="1.8ms")
    assert queue.gauges["average total"] == pytest.approx(1.94921875 * 0.75 * 0.75, abs=1e-12)


class PaperRed:
    """Floyd & Jacobson 1993, figure 2, in the paper's words; the thresholds meet, so nothing is random."""

    def __init__(self, weight: float, threshold: float, packet_time: float) -> None:
        self.w_q, self.th, self.s = weight, threshold, packet_time
        self.avg, self.q_time, self.q = 0.0, 0.0, 0

    def arrival(self, now: float) -> bool:
        """Whether the packet is dropped."""
        if self.q == 0:
            m = int((now - self.q_time) / self.s + 1e-9)
            self.avg *= (1 - self.w_q) ** m
        self.avg += self.w_q * (self.q - self.avg)
        if self.avg >= self.th:
            return True
        self.q += 1
        return False

    def departure(self, now: float) -> None:
        """The link asks for a packet."""
        if self.q:
            self.q -= 1
            if self.q == 0:
                self.q_time = now


def test_a_papers_pseudo_code_is_compared_decision_by_decision() -> None:
    # Thresholds 4/4: below the average of 4 every packet passes, from there on none does.
    queue = perhop.drive(
        perhop.scenario.Red(thresholds="4/4/1", weight=0.25, limit="60p", wait=False), rate="8Mbps"
    )
    paper = PaperRed(0.25, 4, 0.001)
    decisions = []
    for n in range(400):
        now = n * 0.0005
        burst = n % 40 < 24
        if burst:
            dropped = paper.arrival(now)
            decision = queue.offer(at=now)
            decisions.append(decision.verdict)
            assert (decision.verdict == "drop") == dropped, n
            assert queue.gauges["average total"] == pytest.approx(paper.avg, abs=1e-9), n
        if n % 2:
            paper.departure(now)
            queue.departure(at=now)
            if queue.length == 0:
                queue.departure(at=now)
    assert 0.05 < decisions.count("drop") / len(decisions) < 0.9


def test_two_implementations_are_compared_decision_by_decision() -> None:
    # RI+O whose third test never acts is RIO; they draw the same random numbers.
    common: dict[str, Any] = {"in_": "20/40/0.02", "total": "5/15/0.2", "limit": "60p", "weight": 0.05}
    rio = perhop.drive(perhop.scenario.Rio(**common), seed=3)
    plus = perhop.drive(perhop.scenario.RioPlusOut(**common, out="1000/1000/0"), seed=3)
    verdicts = []
    for n in range(3000):
        color = "green" if n % 3 == 0 else "yellow"
        pair = [queue.offer(at=n * 4e-4, color=color, name=str(n)) for queue in (rio, plus)]
        assert pair[0] == pair[1], n
        verdicts.append(pair[0].verdict)
        if n % 7 < 5:
            assert rio.departure(at=n * 4e-4) == plus.departure(at=n * 4e-4)
    assert verdicts.count("drop") > 100
    assert rio.gauges["average total"] == plus.gauges["average total"]


def test_a_packet_is_marked_pushed_out_or_dropped_at_its_departure() -> None:
    red = perhop.drive(perhop.scenario.Red(thresholds="0/10/1", weight=1, limit="60p", wait=False, ecn=True))
    assert red.offer(at=0, ecn="ect0").verdict == "pass"
    marked = [red.offer(at=0, ecn="ect0") for _ in range(9)]
    assert {decision.packet.ecn for decision in marked if decision.verdict == "mark"} == {"ce"}
    assert {decision.reason for decision in marked if decision.verdict == "mark"} == {"early"}
    assert any(decision.verdict == "mark" for decision in marked)
    counters = red.counters
    assert counters.notified["early"].yellow == sum(decision.verdict == "mark" for decision in marked)
    fq = perhop.drive(perhop.scenario.FqCodel(limit="2p"))
    decisions = [fq.offer(at=0, flow=flow, name=f"{flow}") for flow in (1, 1, 1, 2)]
    assert [packet.flow for decision in decisions for packet in decision.pushed_out] == [1, 1]
    assert fq.length == 2
    codel = perhop.drive(
        perhop.scenario.Codel(target="1ms", interval="10ms", limit="99p", mtu="0B"), rate="1Mbps"
    )
    for n in range(20):
        codel.offer(at=0, name=str(n))
    sent, dropped = [], []
    for n in range(20):
        departure = codel.departure(at=0.008 * n)
        sent += [departure.packet.name] if departure.packet else []
        dropped += [packet.name for packet in departure.dropped]
    assert dropped
    assert sorted(sent + dropped, key=int) == [str(n) for n in range(20)]


def test_a_token_bucket_by_hand() -> None:
    # 1 Mbit/s and 3000 bytes: three packets at once are green; after 8 ms there is room for one more.
    meter = perhop.drive(perhop.scenario.TokenBucket(rate="1Mbps", burst="3000B"))
    assert repr(meter) == "DrivenMeter of token-bucket at 0 s"
    at_once = [meter.offer(at=0).packet.color for _ in range(4)]
    assert at_once == ["green", "green", "green", "yellow"]
    assert [meter.offer(at="8ms").packet.color for _ in range(2)] == ["green", "yellow"]
    policer = perhop.drive({"marker": "token-bucket", "rate": "1Mbps", "burst": "1kB", "out": "drop"})
    assert [policer.offer(at=0).verdict for _ in range(2)] == ["pass", "drop"]
    assert "TokenBucket" in meter.state


def test_the_documentations_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs/stepping.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    shown = []
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(code, names)  # noqa: S102 - it is ours
        shown.append(capsys.readouterr().out)
    assert len(shown) == 4
    assert shown[0].count("\n") == 3 + 10, "two readings, the drops, the samples from 11 s to 20 s"
    assert shown[1].startswith("Estimate(mean="), "a paired difference"
    assert f"```\n{shown[2]}```" in text
    assert shown[3].startswith("1.0964")


def ordinary(role: str) -> list[dict[str, Any]]:
    """The tables of this role with which the core's benchmarks measure every block."""
    text = (ROOT / "crates/perhop-core/tests/common/ordinary.rs").read_text(encoding="utf-8")
    part = re.split(r"^pub const (\w+):", text, flags=re.MULTILINE)
    tag, section = {
        "aqm": ("aqm", "AQMS"),
        "scheduler": ("scheduler", "SCHEDULERS"),
        "meter": ("marker", "METERS"),
    }[role]
    rows = re.findall(r'\(\s*"([^"]+)",\s*r#"(.*?)"#', part[part.index(section) + 1], flags=re.DOTALL)
    return [{tag: name.partition(" ")[0], **json.loads(table)} for name, table in rows]


@pytest.mark.parametrize("role", ["aqm", "scheduler", "meter"])
def test_every_registered_block_can_be_driven(role: str) -> None:
    tables = ordinary(role)
    registered = {block["name"] for block in catalogue.registered() if block["role"] == role}
    assert {next(iter(table.values())) for table in tables} >= registered - {"python"}
    for table in tables:
        one = perhop.drive(table, rate="8Mbps")
        verdicts = [
            one.offer(at=n * 1e-4, flow=n % 3, color="green" if n % 2 else "yellow").verdict
            for n in range(200)
        ]
        assert verdicts.count("pass") > 20, table
        if isinstance(one, driving.DrivenQueue):
            sent = [one.departure(at=0.03 + n * 1e-3).packet for n in range(300)]
            counters = one.counters
            assert sum(packet is not None for packet in sent) == counters.sent.total, table
            assert counters.arrived.total == 200 == counters.sent.total + counters.drops + one.length, table
        assert one.state


def test_wrong_input_is_refused_in_one_line() -> None:
    wrong: list[tuple[Any, str]] = [
        ({"aqm": "redd"}, "redd"),
        ({"aqm": "red", "limit": "60p"}, "thresholds"),
        ({"aqm": "red", "limit": "60p", "thresholds": "15/5/0.1"}, "min"),
        ({"queue": 1}, "a block is an AQM"),
        (perhop.scenario.Red, r"^Red is a class; write Red\(…\) with its parameters$"),
        (7, "a block is an AQM"),
        ({"aqm": "codell"}, "unknown aqm `codell`, .*; did you mean `codel`[?]$"),
    ]
    for block, message in wrong:
        with pytest.raises(PerhopError, match=message) as refused:
            perhop.drive(block)
        assert "\n" not in str(refused.value)
    with pytest.raises(PerhopError, match="rate"):
        perhop.drive(RED, rate="fast")
    with pytest.raises(PerhopError, match="rate: a text such as '10Mbps', not 10"):
        perhop.drive(RED, rate=10)  # type: ignore[call-overload]
    with pytest.raises(PerhopError, match="seed: a whole number from 0, not -1"):
        perhop.drive(RED, seed=-1)
    queue = perhop.drive(RED)
    queue.offer(at="5ms")
    assert repr(queue) == "DrivenQueue of red: 1 packet at 0.005 s"
    for fields, message in [
        ({"at": "4ms"}, "has passed"),
        ({"at": "5ms", "size": 70000}, "1 to 65535"),
        ({"at": "5ms", "color": "blue"}, "color is one of green, yellow, red, not 'blue'"),
        ({"at": "5ms", "dscp": 64}, "dscp is a whole number from 0 to 63, not 64"),
        ({"at": "5ms", "ecn": 3}, "ecn is one of"),
        ({"at": "5ms", "weight": 3}, "unknown field `weight` .*size, color"),
        ({"at": "5ms", "size": "1kB"}, "size is a whole number from 1 to 65535 bytes, not '1kB'"),
        ({"at": "5ms", "size": True}, "size is a whole number"),
        ({"at": "5ms", "dscp": "EF"}, "dscp is a whole number from 0 to 63, not 'EF'"),
        ({"at": "5ms", "flow": -1}, "flow is a whole number from 0 to 4294967295, not -1"),
        ({"at": "5ms", "path": 2**32}, "path is a whole number from 0 to 4294967295"),
        ({"at": "5ms", "contracted_bps": 1.5}, "contracted_bps is a whole number"),
        ({"at": "5ms", "rate": 10}, "unknown field `rate`"),
        ({"at": "5ms", "packet": "big"}, "give a perhop.Packet"),
        ({"at": "soon"}, "at"),
    ]:
        with pytest.raises(PerhopError, match=message):
            queue.offer(**fields)  # type: ignore[arg-type]
    assert queue.length == 1
    queue.offer(at="5ms", size=np.int64(500), flow=np.uint32(3))
    assert queue.bytes == 1500
