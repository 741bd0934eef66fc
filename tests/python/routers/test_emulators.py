"""Emulators of links."""

from __future__ import annotations

import pytest
from tests.python.routers.importing import of_text

VYOS = {
    "1.4": """set qos interface eth5 egress NE
set qos policy network-emulator NE delay 20ms
set qos policy network-emulator NE loss 3
set qos policy network-emulator NE corruption 1
set qos policy network-emulator NE bandwidth 8mbit
""",
    "1.3": """set interfaces ethernet eth5 traffic-policy out NE
set traffic-policy network-emulator NE network-delay 20ms
set traffic-policy network-emulator NE packet-loss 3
set traffic-policy network-emulator NE packet-corruption 1
set traffic-policy network-emulator NE bandwidth 8mbit
""",
}


@pytest.mark.parametrize("version", VYOS)
def test_the_emulator_of_vyos_has_two_names_for_each_leaf(version: str) -> None:
    done = of_text(VYOS[version])
    assert (done.link["delay"], done.link["loss"], done.link["rate"]) == ("20ms", 0.03, "8Mbps")
    assert ("W06", 4) in done.warnings
    assert "W13" not in {code for code, _ in done.warnings}
