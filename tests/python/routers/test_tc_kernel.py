"""What the kernel shows of a configuration is what its script says."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.python.routers.importing import of_text

from perhop.routers import Answers, Source, imported

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """\
tc qdisc add dev lo root handle 1: htb default 30
tc class add dev lo parent 1: classid 1:1 htb rate 20mbit burst 15k
tc class add dev lo parent 1:1 classid 1:10 htb rate 4mbit ceil 20mbit
tc class add dev lo parent 1:1 classid 1:30 htb rate 12mbit ceil 20mbit
tc qdisc add dev lo parent 1:10 handle 10: pfifo limit 50
tc qdisc add dev lo parent 1:30 handle 30: bfifo limit 30000
tc filter add dev lo parent 1: protocol ip prio 1 u32 match ip tos 0xb8 0xfc flowid 1:10
"""
TBF = "tc qdisc add dev lo root tbf rate 3mbit burst 10k latency 50ms\n"
SHOWN = "tc -j -d qdisc show dev lo > q.json; tc class show dev lo > c.txt; tc -j filter show dev lo > f.json"


def shown(script: str, folder: Path, wanted: str = "all of it") -> dict[str, bytes]:
    """Run a script at the loopback of a network namespace of its own; what the kernel shows then.

    Skips, with the name of what is `wanted`, where the kernel lacks it.
    """
    if shutil.which("tc") is None or shutil.which("unshare") is None:
        pytest.skip("needs tc (iproute2) and unshare")
    done = subprocess.run(
        ["unshare", "-rn", "sh", "-c", f"set -e\nip link set lo up\n{script}{SHOWN}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode != 0:
        lacking = done.stderr.strip().replace("\n", " ")[-200:]
        pytest.skip(f"this kernel has not {wanted}, or no namespaces: {lacking}")
    return {name: (folder / name).read_bytes() for name in ("q.json", "c.txt", "f.json")}


def test_a_tree_of_htb_is_shown_as_it_was_written(tmp_path: Path) -> None:
    files = shown(SCRIPT, tmp_path)
    answers = Answers(1e8, 1000.0)
    done = imported(Source(list(files.items())), answers)
    expected = of_text(SCRIPT, link_rate=1e8)
    values = {
        (row.queue, row.parameter): row.value
        for row in done.rows
        if row.parameter not in {"scheduler", "burst"}
    }
    assert values["1:1", "rate"] == '"20Mbps"'
    for name, queue in expected.queues.items():
        assert values[name, "rate"] == f'"{queue["rate"]}"'
        assert values[name, "ceil"] == f'"{queue["ceil"]}"'
        assert values[name, "limit"] == f'"{queue["queue"]["limit"]}"'
        if "match" in queue:
            assert values[name, "match"] == '{ dscp = ["EF"] }'


def test_a_token_bucket_is_shown_as_it_was_written(tmp_path: Path) -> None:
    files = shown(TBF, tmp_path)
    done = imported(Source([("q.json", files["q.json"])]), Answers(1e8, 1000.0))
    values = {(row.queue, row.parameter): row.value for row in done.rows}
    # 50 ms at 3 Mbit/s and the burst; the kernel rounds the latency to its clock.
    assert values["shaper", "rate"] == '"3Mbps"'
    assert values["shaper", "burst"] == '"10.24kB"'
    limit = float(values["all", "limit"].strip('"').removesuffix("kB"))
    assert limit == pytest.approx(28.99, rel=0.01)
