"""Plans that tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import perhop

if TYPE_CHECKING:
    from pathlib import Path

    from perhop.planning.job import Planned

POLICED = """\
title = "Sources into a policer"
runs = 30
objectives = ["loss of sources < 1 %"]
[scenario]
duration = "12s"
warmup = "3s"
[scenario.links.edge]
from = "a"
to = "b"
rate = "10Mbps"
delay = "1ms"
queue = { aqm = "drop-tail", limit = "50p" }
[[scenario.links.edge.meters]]
name = "policer"
profile = { marker = "token-bucket", rate = "1.05Mbps", burst = "6kB", out = "drop" }
[[flows]]
name = "sources"
count = 4
transport = { udp = "cbr", rate = "100kbps", packet = "500B" }
"""
"""Ten sources of 100 kbit/s keep within 1.05 Mbit/s, and eleven lose 4.5 %."""

BURSTY = """\
runs = 5
objectives = ["P99 of one-way delay of talk < 12 ms", "loss of talk < 0.5 %"]
[scenario]
duration = "8s"
warmup = "1s"
[scenario.links.edge]
from = "a"
to = "b"
rate = "4Mbps"
delay = "1ms"
queue = { aqm = "drop-tail", limit = "60p" }
[[flows]]
name = "talk"
count = 30
transport = { udp = "on-off", rate = "100kbps", packet = "250B", on = "300ms", off = "300ms" }
[growth]
most = 3
precision = "2%"
"""
"""Sources that are on and off: their delay grows with their number, and runs differ."""

TUNED = """\
runs = 5
objectives = ["P99 of one-way delay of talk < 30 ms", "loss of talk < 50 %"]
[scenario]
duration = "8s"
warmup = "0s"
[scenario.links.edge]
from = "a"
to = "b"
rate = "600kbps"
delay = "1ms"
queue = { aqm = "drop-tail", limit = "100p" }
[set]
"links.edge.queue.limit" = "{limit}"
[[flows]]
name = "talk"
count = 8
transport = { udp = "on-off", rate = "200kbps", packet = "250B", on = "300ms", off = "300ms" }
[growth]
most = 1.5
[search]
limit = "3p..60p"
[tuning]
trials = 8
runs = 2
"""
"""A queue that is too long for its objective, of which a search finds the right length."""


def done(folder: Path, text: str, *, holm: bool = False, **options: Any) -> Planned:  # noqa: ANN401 - as of perhop.plan
    """A finished plan of this text, with its store in the folder."""
    path = folder / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return perhop.plan(path, store=folder / "store", holm=holm, **options)
