"""Sweeps over parameters of a class in Python, and what its store keeps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

RULE = """\
from perhop import Aqm, Duration, Verdict


class Rare(Aqm):
    gap: Duration = Duration("1ms")

    last = 0

    def on_arrival(self, packet, queue, now, random):
        if now - self.last < self.gap or len(queue) < 2:
            return Verdict.PASS
        self.last = now
        return Verdict.DROP
"""
SWEEP = """\
scenario = "small.toml"
runs = 2
[set]
duration = "3s"
warmup = "0s"
[grid]
"links.bottleneck.queue.gap" = ["10ms", "1s"]
"""


def test_a_sweep_keeps_runs_until_the_class_changes(perhop: Perhop, small: Path) -> None:
    folder = small.parent
    (folder / "rare.py").write_text(RULE, encoding="utf-8")
    (folder / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    text = re.sub(
        r"^queue = .*$",
        'queue = { aqm = "rare:Rare" }',
        small.read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    small.write_text(text, encoding="utf-8")
    tables = []
    for jobs, counts in (("2", "4 runs simulated, 0 reused"), ("1", "0 runs simulated, 4 reused")):
        done = perhop("sweep", "sweep.toml", "--store", "store", "--jobs", jobs)
        assert counts in done.out + done.err
        tables.append(done.out.partition("runs simulated")[0][:-2])
    assert tables[0] == tables[1]
    (folder / "rare.py").write_text(RULE.replace("len(queue) < 2", "len(queue) < 9"), encoding="utf-8")
    done = perhop("sweep", "sweep.toml", "--store", "store")
    assert "4 runs simulated, 0 reused" in done.out + done.err
