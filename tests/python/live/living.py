"""What the tests of runs on real packets share."""

from __future__ import annotations

import pytest
from tests.python.conftest import TWO_CLASSES

from perhop import live

LACKS = live.available()
needs_live = pytest.mark.skipif(LACKS is not None, reason=f"needs network namespaces: {LACKS}")

LIVE = TWO_CLASSES.format(
    title="Two classes on real packets",
    duration="2s",
    settings='warmup = "500ms"\n\n[live]\nmax-lateness = "100ms"\n',
    rate="5Mbps",
    delay="20ms",
    access="5ms",
    profile="1Mbps",
    start="200ms",
)
"""Short, and lenient about lateness: what is tested is what perhop does, not how fast the machine is."""

INVALID = 3
"""How a command ends that had an invalid run; a loaded machine may bring that about."""
