"""Emulators of links."""

from __future__ import annotations

from typing import Any

import pytest
from tests.python.routers.importing import of_text

from perhop.errors import PerhopError

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
    assert (done.link["delay"], done.link["loss"], done.link["rate"]) == ("20ms", 0.0397, "8Mbps")
    assert ("W06", 4) in done.warnings
    assert "W13" not in {code for code, _ in done.warnings}


@pytest.mark.parametrize("version", VYOS)
@pytest.mark.parametrize("leaf", ["duplicate", "reordering"])
def test_what_the_emulator_of_vyos_does_otherwise_is_refused(version: str, leaf: str) -> None:
    name = leaf if version == "1.4" else f"packet-{leaf}"
    policy = "qos policy" if version == "1.4" else "traffic-policy"
    text = f"{VYOS[version]}set {policy} network-emulator NE {name} 5\n"
    with pytest.raises(PerhopError, match=f"line 6: `{name} 5` is not simulated; .*--lenient"):
        of_text(text)
    assert of_text(text, lenient=True).codes("W13") == [6]


def _netem(words: str, **answers: Any) -> dict[str, Any]:  # noqa: ANN401 - of several types
    done = of_text(f"tc qdisc add dev e root netem {words}\n", link_rate=1e7, **answers)
    assert done.codes("W13") == []
    return {key: done.link[key] for key in ("delay", "jitter", "reverse", "loss") if key in done.link}


@pytest.mark.parametrize(
    ("words", "link"),
    [
        ("delay 10ms", {"delay": "10ms"}),
        (
            "delay 10ms 3ms",
            {
                "delay": "7ms", "reverse": {"delay": "10ms"},
                "jitter": {"distribution": "uniform", "max": "6ms", "reorder": True},
            },
        ),
        (
            "latency 10ms 20ms rate 5mbit",
            {
                "delay": "0ns", "reverse": {"delay": "15ms"},
                "jitter": {"distribution": "uniform", "max": "30ms", "reorder": False},
            },
        ),
        (
            "limit 500 delay 40ms 5ms 25% distribution normal loss 1%",
            {
                "delay": "20ms", "reverse": {"delay": "40ms"}, "loss": 0.01,
                "jitter": {
                    "distribution": "normal", "mean": "20ms", "sd": "5ms", "max": "40ms", "reorder": True,
                },
            },
        ),
        ("loss random 2% 25% corrupt 1% 50%", {"delay": "5ms", "loss": 0.0298}),
        ("corrupt 1%", {"delay": "5ms", "loss": 0.01}),
    ],
)  # fmt: skip
def test_jitter_and_losses_of_netem(words: str, link: dict[str, Any]) -> None:
    assert _netem(words) == link


def test_the_jitter_of_netem_as_json() -> None:
    text = """[{"kind": "netem", "handle": "1:", "dev": "e", "root": true, "options": {"limit": 1000,
"delay": {"delay": 0.05, "jitter": 0.01, "correlation": 0.25},
"loss-random": {"loss": 0.01, "correlation": 0},
"corrupt": {"corrupt": 0.02, "correlation": 0}, "rate": {"rate": 1250000}, "ecn": false}}]
"""
    done = of_text(text, name="tc.json")
    assert (done.link["delay"], done.link["jitter"]["max"], done.link["loss"], done.link["rate"]) == (
        "40ms", "20ms", 0.0298, "10Mbps",
    )  # fmt: skip
    assert any("its correlation `0.25` is not simulated" in said for said in done.texts)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("delay 10ms duplicate 1%", "duplicate 1%"),
        ("delay 10ms reorder 25% 50% gap 5", "reorder 25% 50% gap 5"),
        ("delay 10ms rate 5mbit 10", "10"),
        ("slot 1ms 2ms", "slot 1ms 2ms"),
        ("delay 5ms loss 2% ecn", "ecn"),
        ("delay 10ms 20ms distribution normal", "delay 10ms 20ms"),
        ("loss 1% 2% 3%", "loss 1% 2% 3%"),
        ("loss 1% delay soon", "delay soon"),
    ],
)
def test_what_netem_does_otherwise_is_refused(words: str, said: str) -> None:
    text = f"tc qdisc add dev e root netem {words}\n"
    with pytest.raises(PerhopError, match=f"line 1: netem: .*`{said}`.*--lenient"):
        of_text(text, link_rate=1e7)
    assert of_text(text, link_rate=1e7, lenient=True).codes("W13") == [1]
