"""An answer of the engine by hand, of a network with everything that tables must show."""

from __future__ import annotations

import json
from typing import Any

from perhop.bounds.deriving import Bounds
from perhop.scenario import reading

SCENARIO = """\
title = "Two classes"
duration = "2s"

[links.uplink]
from = "edge"
to = "core"
rate = "10Mbps"
delay = "10ms"

[links.uplink.queue]
scheduler = "priority"
queues = [
  { name = "voice", match = { dscp = [46] }, rule = { aqm = "drop-tail", limit = "50p" } },
  { name = "data", rule = { aqm = "drop-tail", limit = "100p" } },
]

[[flows]]
name = "calls"
count = 3
dscp = 46
from = "edge"
to = "core"
transport = { udp = "cbr", rate = "80kbps", packet = "200B" }

[[flows]]
name = "bulk"
from = "edge"
to = "core"
transport = { tcp = "newreno", packet = "1500B" }
"""
WHY = "`bulk`: TCP without a window limit bounds nothing; a `window` would"
FULL = "the arrivals of `bulk` have no bound, and the queue's limit is 100p"
STEP = {
    "text": "arrivals of 3 flows of `calls`: each at most 200 B + 80 kbit/s · t",
    "formula": "α(t) = 600 B + 240 kbit/s · t",
    "source": "RFC 3290, section 5.1",
}
LAST = {"text": "horizontal deviation", "formula": "1.2 ms + 600 B / 10 Mbit/s = 1.68 ms", "source": ""}


def _call(number: int, delay: float) -> dict[str, Any]:
    return {
        "name": f"calls/{number}",
        "delay": {"at_most_s": delay},
        "loss": {"excluded": True},
        "method": "total flow analysis",
        "route": ["uplink"],
        "steps": [STEP, LAST],
    }


def answer() -> dict[str, Any]:
    """The answer, which a test may change."""
    voice = {
        "name": "voice",
        "delay": {"at_most_s": 0.00168},
        "backlog": {"at_most_bytes": 2400},
        "loss": {"excluded": True},
        "steps": [STEP, LAST],
    }
    data = {
        "name": "data",
        "delay": {"reason": WHY},
        "backlog": {"at_most_bytes": 150_000},
        "loss": {"excluded": False, "reason": FULL},
        "steps": [],
    }
    uplink = {
        "name": "uplink",
        "classes": [voice, data],
        "delay": {"reason": WHY},
        "backlog": {"at_most_bytes": 152_400},
        "loss": {"excluded": False, "reason": FULL},
    }
    bulk = {
        "name": "bulk/0",
        "delay": {"reason": WHY},
        "loss": {"excluded": False, "reason": f"`uplink`: {FULL}"},
        "method": None,
        "route": ["uplink"],
        "steps": [],
    }
    calls = [_call(0, 0.0118411), _call(1, 0.0118421), _call(2, 0.01184)]
    return {"links": [uplink], "flows": [*calls, bulk], "notes": ["Routes have no cycle."]}


def bounds(**changed: Any) -> Bounds:  # noqa: ANN401 - attributes of it
    """The bounds of the answer."""
    return Bounds(**{"scenario": reading.canonical(SCENARIO), "content": answer(), **changed})


def engine(text: str, _cancel: object = None) -> str:
    """Answer as the engine does, whatever the scenario."""
    assert json.loads(text)["links"]
    return json.dumps(answer())
