"""Parameters of congestion controls: keys of the transport once, and of the table `congestion` now."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

import perhop
from perhop import _engine
from perhop.scenario import Tcp
from perhop.scenario.builder import Cubic, Dctcp, Flow, Ledbat, Link, Prague, Reno, Scenario
from perhop.scenario.paths import put

Ecn = Literal["off", "classic", "accurate", "l4s"] | None


def scenario(transport: Tcp, ecn: Ecn = None) -> Scenario:
    """Two flows over a link of 2 Mbit/s."""
    return Scenario(
        duration="3s",
        links={
            "line": Link(
                from_="a",
                to="b",
                rate="2Mbps",
                delay="5ms",
                queue=perhop.scenario.Codel(limit="50p", ecn=ecn is not None),
            )
        },
        flows=[Flow(name="f", count=2, from_="a", to="b", transport=transport, ecn=ecn)],
    )


@pytest.mark.parametrize(
    ("former", "now", "ecn"),
    [
        ({"congestion": "dctcp", "estimation_gain": 0.5}, Dctcp(estimation_gain=0.5), "classic"),
        ({"congestion": "prague", "target_rtt": "50ms"}, Prague(target_rtt="50ms"), "accurate"),
        ({"congestion": "ledbat", "target_delay": "5ms"}, Ledbat(target_delay="5ms"), None),
        ({"congestion": "cubic", "cubic_alpha": "constant"}, Cubic(alpha="constant"), None),
        ({"congestion": "cubic", "slow_start": "hystart"}, Cubic(hystart=True), None),
        ({"ecn_backoff": True}, Reno(ecn_backoff=True), "classic"),
    ],
)
def test_former_keys_give_the_run_of_the_parameters(
    former: dict[str, Any], now: Dctcp | Prague | Ledbat | Cubic | Reno, ecn: Ecn
) -> None:
    with pytest.warns(perhop.PerhopWarning, match=r"by now: write congestion = \{ control = "):
        before = perhop.run(scenario(Tcp(tcp="newreno", sack=True, **former), ecn), runs=1)
    after = perhop.run(scenario(Tcp(tcp="newreno", sack=True, congestion=now), ecn), runs=1)
    assert before.scenario == after.scenario
    written = json.loads(after.scenario)["flows"][0]["transport"]["congestion"]
    assert written | now.to_dict() == written
    assert before.flows.equals(after.flows)


def test_a_sweep_sets_a_parameter_of_a_control_that_is_named() -> None:
    plain = {"flows": [{"name": "f", "transport": {"tcp": "newreno", "congestion": "dctcp"}}]}
    put(plain, "flows.f.transport.congestion.estimation-gain", 0.5, "here")
    assert plain["flows"][0]["transport"] == {
        "tcp": "newreno",
        "congestion": {"control": "dctcp", "estimation-gain": 0.5},
    }


@pytest.mark.parametrize("tcp", ["reno", "newreno", "linux", "quic", "ns-1998"])
def test_a_sweep_sets_a_parameter_of_the_default_control(tcp: str) -> None:
    plain: dict[str, Any] = {"flows": [{"name": "f", "transport": {"tcp": tcp}}]}
    keys = put(plain, "flows.f.transport.congestion.ecn-backoff", False, "here")  # noqa: FBT003 - a value
    assert keys == ("flows", 0, "transport", "congestion", "ecn-backoff")
    named = scenario(Tcp(tcp="reno")).to_dict()
    named["flows"][0]["transport"] = {"tcp": tcp}
    text, _ = _engine.read_json(json.dumps(named), "here")
    default = json.loads(text)["flows"][0]["transport"]["congestion"]
    assert plain["flows"][0]["transport"]["congestion"] == {"control": default, "ecn-backoff": False}
