"""Quanta of `htb` below a packet: what they share, and the notice, also of those by `r2q` and in imports."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

import pytest

import perhop
from perhop import _engine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

SHARED = """\
duration = "30s"
warmup = "5s"

[links.up]
from = "a"
to = "b"
rate = "10Mbps"
delay = "5ms"

[links.up.queue]
scheduler = "htb"
{r2q}
[[links.up.queue.classes]]
name = "all"
rate = "8.1Mbps"
classes = [
  {{ name = "one", match = {{ dscp = "AF11" }}, rate = "{first}", {quanta[0]}{rest} }},
  {{ name = "two", rate = "{second}", {quanta[1]}{rest} }},
]

[[flows]]
name = "first"
from = "a"
to = "b"
dscp = "AF11"
transport = {{ udp = "cbr", rate = "20Mbps", packet = "{packet}" }}

[[flows]]
name = "second"
from = "a"
to = "b"
transport = {{ udp = "cbr", rate = "20Mbps", packet = "{packet}" }}
"""
SAID = re.compile(
    r"classes\[0\]\.classes\[([01])\]\.quantum: `(\S+)`( by `r2q`)?: packets here have up to (\S+), and"
)


def scenario(
    quanta: tuple[str, str] = ("500B", "1.4kB"),
    *,
    rates: tuple[str, str] = ("0.05Mbps", "0.05Mbps"),
    r2q: int | None = None,
    packet: str = "1500B",
) -> str:
    """Two classes that borrow from one, with these quanta."""
    return SHARED.format(
        r2q="" if r2q is None else f"r2q = {r2q}",
        quanta=[f'quantum = "{one}", ' if one else "" for one in quanta],
        first=rates[0],
        second=rates[1],
        rest='ceil = "8.1Mbps", queue = { aqm = "drop-tail", limit = "50p" }',
        packet=packet,
    )


def noticed(text: str) -> list[tuple[str | None, ...]]:
    """The notices of small quanta."""
    _, notices = _engine.read_toml(text, "here.toml")
    return [found.groups() for notice in notices if (found := SAID.search(notice))]


def rates_in_mbps(text: str) -> tuple[float, float]:
    """What the two classes get."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", perhop.PerhopWarning)
        rows = perhop.run(text, runs=1).flows
    first, second = (
        float(rows["throughput_bps"][rows["class"].to_list().index(name)]) / 1e6
        for name in ("first", "second")
    )
    return first, second


def test_quanta_below_a_packet_share_packet_by_packet_and_are_noticed(perhop: Perhop, tmp_path: Path) -> None:
    text = scenario()
    assert noticed(text) == [("0", "500B", None, "1.5kB"), ("1", "1.4kB", None, "1.5kB")]
    first, second = rates_in_mbps(text)
    assert first + second == pytest.approx(8.1, rel=0.01)
    assert first == pytest.approx(second, rel=0.05)  # 500 : 1400 by the quanta
    path = tmp_path / "shared.toml"
    path.write_text(text)
    done = perhop("run", path)
    assert done.code == 0, done.err
    assert len(SAID.findall(done.err)) == 2
    # A quantum of a packet or more is in proportion again, and nothing is said.
    right = scenario(("1500B", "4200B"))
    assert noticed(right) == []
    first, second = rates_in_mbps(right)
    assert second / first == pytest.approx(4200 / 1500, rel=0.05)


def test_quanta_by_r2q_are_noticed_too() -> None:
    rates = ("1Mbps", "3Mbps")
    # 1 Mbit/s in bytes over 125 is 1000 bytes, 3 Mbit/s are 3000.
    assert noticed(scenario(("", ""), rates=rates, r2q=125)) == [("0", "1kB", " by `r2q`", "1.5kB")]
    assert noticed(scenario(("", ""), rates=rates, r2q=10)) == []


def test_what_does_not_share_by_small_quanta_has_no_notice() -> None:
    assert noticed(scenario(("500B", "500B"))) == [], "alike: they share packet by packet anyway"
    assert noticed(scenario(("1500B", "3000B"))) == []
    assert noticed(scenario(("500B", "1.4kB"), packet="500B")) == []


TC = """\
tc qdisc add dev eth0 root handle 1: htb default 20{r2q}
tc class add dev eth0 parent 1: classid 1:1 htb rate 8100kbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 50kbit ceil 8100kbit{first}
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 90kbit ceil 8100kbit{second}
tc qdisc add dev eth0 parent 1:10 pfifo limit 50
tc qdisc add dev eth0 parent 1:20 pfifo limit 50
tc filter add dev eth0 parent 1: protocol ip u32 match ip tos 0x28 0xfc flowid 1:10
"""


@pytest.mark.parametrize(
    ("fields", "quanta"),
    [
        ({"r2q": "", "first": " quantum 500", "second": " quantum 1400"}, ["500B", "1.4kB"]),
        ({"r2q": "", "first": " quantum 1500", "second": " quantum 3000"}, []),
        ({"r2q": " r2q 10", "first": "", "second": ""}, ["1kB", "1.125kB"]),
    ],
)
def test_an_import_says_it(perhop: Perhop, tmp_path: Path, fields: dict[str, str], quanta: list[str]) -> None:
    (tmp_path / "shared.sh").write_text(TC.format(**fields))
    done = perhop("import", "shared.sh", "--rate", "10Mbps", "--packet-size", "1500B", "-o", "out.toml")
    assert done.code == 0, done.err
    found = [quantum for _, quantum, _, _ in SAID.findall(done.err)]
    assert found == quanta, done.err
