"""The rates of perhop's htb beside those of the kernel's, in a network namespace of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from perhop.runs import simulate

MEASURE = Path(__file__).parent / "htb_kernel.py"
EXAMPLE = Path(__file__).parents[3] / "examples" / "hierarchy.toml"
TREE = """\
tc qdisc add dev out0 root handle 1: htb default 40
tc class add dev out0 parent 1: classid 1:1 htb rate 10mbit burst 15000 cburst 15000
tc class add dev out0 parent 1:1 classid 1:2 htb rate 6mbit ceil 10mbit burst 15000 cburst 15000
tc class add dev out0 parent 1:2 classid 1:10 htb rate 2mbit ceil 10mbit burst 15000 cburst 15000 prio 0
tc class add dev out0 parent 1:2 classid 1:20 htb rate 3mbit ceil 10mbit burst 15000 cburst 15000 prio 1
tc class add dev out0 parent 1:2 classid 1:30 htb rate 1mbit ceil 10mbit burst 15000 cburst 15000 prio 1
tc class add dev out0 parent 1:1 classid 1:40 htb rate 4mbit ceil 8mbit burst 15000 cburst 15000 prio 1
tc filter add dev out0 parent 1: protocol ip prio 1 u32 match ip tos 0xb8 0xfc flowid 1:10
tc filter add dev out0 parent 1: protocol ip prio 1 u32 match ip tos 0x28 0xfc flowid 1:20
tc filter add dev out0 parent 1: protocol ip prio 1 u32 match ip tos 0x20 0xfc flowid 1:30
"""
"""The tree of examples/hierarchy.toml."""
CLASSES = {"calls": ("1:10", 46), "mail": ("1:20", 10), "backup": ("1:30", 8), "guests": ("1:40", 0)}
SECONDS = 3
MARGIN = 0.05


def of_kernel(active: tuple[str, ...]) -> dict[str, float]:
    """Bit/s of the classes that always have packets."""
    if sys.platform != "linux" or shutil.which("tc") is None or shutil.which("unshare") is None:
        pytest.skip("needs Linux, tc (iproute2) and unshare")
    tried = subprocess.run(
        [
            "unshare",
            "-rn",
            "sh",
            "-ec",
            "ip link add out0 type veth peer name in0\ntc qdisc add dev out0 root htb",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if tried.returncode != 0:
        pytest.skip(
            f"the kernel has no sch_htb, no pairs of devices or no namespaces: {tried.stderr.strip()}"
        )
    senders = {CLASSES[name][0]: CLASSES[name][1] << 2 for name in active}
    done = subprocess.run(
        ["unshare", "-rn", sys.executable, str(MEASURE), TREE, json.dumps(senders), str(SECONDS)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    rates = json.loads(done.stdout)
    return {name: rates[CLASSES[name][0]] for name in active}


def of_perhop(active: tuple[str, ...]) -> dict[str, float]:
    """Rates of the classes in a simulation, with packets of the size that the kernel counts."""
    scenario = tomllib.loads(EXAMPLE.read_text(encoding="utf-8"))
    scenario["duration"], scenario["warmup"] = "13s", "3s"
    scenario["flows"] = [
        {
            "name": name,
            "from": "office",
            "to": "internet",
            "dscp": CLASSES[name][1],
            "transport": {"udp": "cbr", "rate": "15Mbps", "packet": "1042B"},
        }
        for name in active
    ]
    (run,) = simulate.run(scenario, runs=1).runs
    rates = [float(rate) for rate in run.raw["flows"]["throughput_bps"]]
    return dict(zip(active, rates, strict=True))


@pytest.mark.filterwarnings("ignore:.*stays empty")
@pytest.mark.parametrize(
    ("active", "expected_mbps"),
    [
        # All: each its own rate.
        (("calls", "mail", "backup", "guests"), (2.0, 3.0, 1.0, 4.0)),
        # What the calls leave is lent within `staff`, by quanta of 3 to 1.
        (("mail", "backup", "guests"), (4.5, 1.5, 4.0)),
        # What the guests leave goes to the calls, whose `prio` is lower.
        (("calls", "mail", "backup"), (6.0, 3.0, 1.0)),
        # What the guests leave beyond is shared by quanta.
        (("mail", "backup"), (7.5, 2.5)),
        # The guests' ceiling.
        (("guests",), (8.0,)),
    ],
    ids=lambda value: "+".join(value) if isinstance(value[0], str) else "",
)
def test_a_tree_of_three_levels_shares_as_the_kernel_does(
    active: tuple[str, ...], expected_mbps: tuple[float, ...]
) -> None:
    ours = of_perhop(active)
    assert list(ours.values()) == pytest.approx([1e6 * rate for rate in expected_mbps], rel=MARGIN)
    theirs = of_kernel(active)
    assert ours == pytest.approx(theirs, rel=MARGIN)
