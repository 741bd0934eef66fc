"""What the tests of runs on real packets share."""

from __future__ import annotations

import pytest

from perhop import live

LACKS = live.available()
needs_live = pytest.mark.skipif(LACKS is not None, reason=f"needs network namespaces: {LACKS}")

LIVE = """\
title = "Two classes on real packets"
duration = "2s"
warmup = "500ms"

[live]
max-lateness = "100ms"

[links.bottleneck]
from = "edge"
to = "core"
rate = "5Mbps"
delay = "20ms"
queue = { aqm = "rio", limit = "50p", in = "10/30/0.02", total = "5/15/0.1" }

[[flows]]
name = "gold"
count = 2
from = "edge"
to = "core"
access = { rate = "10Mbps", delay = "5ms" }
transport = { tcp = "newreno", packet = "1000B" }
profile = { rate = "1Mbps", marker = "token-bucket", burst = "10kB" }
start = "0s..200ms"

[[flows]]
name = "best-effort"
count = 2
from = "edge"
to = "core"
access = { rate = "10Mbps", delay = "5ms" }
transport = { tcp = "newreno", packet = "1000B" }
start = "0s..200ms"
"""
"""Short, and lenient about lateness: what is tested is what perhop does, not how fast the machine is."""

INVALID = 3
"""How a command ends that had an invalid run; a loaded machine may bring that about."""
