"""The batched engine against the reference engine, on random networks: they agree in every number."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from perhop import _engine
from perhop.stores.outcomes import pack

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

COST = {"events": 0, "engine": None, "engine_reason": None}
"""What may differ: how the numbers were computed."""

SCENARIOS = 30
"""In each batch; a batch takes about a second."""

DELAYS = ["0s", "0s", "1ns", "137us", "1ms", "5ms", "999999ns"]
RATES = ["8Mbps", "2Mbps", "1.7Mbps", "333kbps", "1Gbps"]
INSTANT = ["400Gbps", "8000Gbps"]
"""Acknowledgements pass such links in less than the clock's nanosecond."""

CONGESTION = [
    block["name"] for block in json.loads(_engine.blocks()) if block["role"] == "congestion-control"
]

PARAMETERS = [
    {"control": "reno", "ecn-backoff": True},
    {"control": "cubic", "ecn-backoff": True},
    {"control": "cubic", "hystart": True},
    {"control": "dctcp", "estimation-gain": 0.5},
    {"control": "ledbat", "target-delay": "5ms"},
    {"control": "prague", "target-rtt": "50ms"},
]
"""Congestion controls with other parameters than their defaults."""

TODAYS: dict[str, dict[str, Sequence[Any]]] = {
    "fq-codel": {
        "flows": [2],
        "hash": ["exact"],
        "quantum": ["300B"],
        "limit": ["10p"],
        "target": ["1ms"],
        "interval": ["10ms"],
        "backlog": ["queue"],
        "ecn": [False],
        "law": ["linux"],
    },
    "dualpi2": {
        "target": ["2ms"],
        "law": ["linux"],
        "order": ["time-shifted-fifo"],
        "overload": ["overflow"],
        "limit": ["20p"],
        "k": [1],
        "l4s_dscp": [46],
        "step_length": [3],
        "queue_protection": [{}, {"buckets": 1, "attempts": 1}],
    },
}
"""Schedulers whose parameters all have defaults, and other values of some of them."""

LIMITS = ["1p", "3p", "10p", "20kB", "200p"]


class Draw:
    """Draws a scenario; what fits together only by chance is left to the parser to refuse."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - no secret
        self.rates = RATES + self.random.choice([[], [], INSTANT])
        self.routers = [f"R{number}" for number in range(self.random.randint(2, 4))]

    def one(self, values: Sequence[T]) -> T:
        return self.random.choice(values)

    def some(self, **choices: Sequence[Any]) -> dict[str, Any]:
        """Some of these keys, `_` for `-`, each with one of its values."""
        drawn = {key.replace("_", "-"): self.one(values) for key, values in choices.items()}
        return {key: value for key, value in drawn.items() if self.random.random() < 0.35}

    def thresholds(self) -> str:
        least = self.random.randint(1, 20)
        return f"{least}/{least + self.random.randint(1, 40)}/{self.one(['0.02', '0.5'])}"

    def rule(self) -> dict[str, Any]:
        sets = {
            "drop-tail": [],
            "red": ["thresholds"],
            "rio": ["in", "total"],
            "rio-plus-out": ["in", "total", "out"],
            "rio-three": ["in", "out-in", "out-out"],
            "inverse-rate": ["in", "total"],
            "abe": ["thresholds"],
            "wred": ["yellow", "red"],
            "dwred": ["out"],
        }
        aqm = self.one(list(sets))
        more = (
            {} if aqm == "drop-tail" else self.some(weight=[0.02, 1], wait=[False], gentle=[True], ecn=[True])
        )
        return {"aqm": aqm, "limit": self.one(LIMITS), **more} | {key: self.thresholds() for key in sets[aqm]}

    def queue(self) -> dict[str, Any]:
        several = ["priority", "drr", "wfq"]
        scheduler = self.one(["", "", "", "edf", "dsd", "shaper", *several, "fq-codel", "dualpi2"])
        if not scheduler:
            return self.rule()
        if scheduler == "shaper":
            # Below the links' rates, since others are refused; bursts of one packet and of many.
            bucket = {"rate": self.one(["20kbps", "300kbps"]), "burst": self.one(["1500B", "20kB"])}
            return {"scheduler": scheduler, **bucket, "queue": self.queue()}
        if scheduler == "edf":
            return {"scheduler": "edf", "blue": self.one(["1ms", "50ms"]), "rule": self.rule()}
        if scheduler == "dsd":
            rule = {"aqm": "drop-tail", "limit": self.one(LIMITS)}
            more = self.some(bias=[0.5], green_drop=["late"], control=["50ms"])
            return {"scheduler": "dsd", "bound": self.one(["1ms", "20ms"]), "rule": rule, **more}
        if scheduler in TODAYS:
            return {"scheduler": scheduler, **self.some(**TODAYS[scheduler])}
        kinds = [{"dscp": 46}, {"color": "green"}, {"path": "pinned"}, {"service": "green"}]
        matches: list[dict[str, Any]] = [{"match": self.one(kinds)}, {}]
        share = self.some(cap=["100kbps"]) if scheduler == "priority" else self.some(rate=["50kbps"])
        queues = [
            {"name": f"q{number}", "rule": self.rule(), **match} for number, match in enumerate(matches)
        ]
        queues[0] |= share
        if scheduler != "priority":
            queues[0] |= self.some(queue_protection=[{}, {"buckets": 1, "attempts": 1}])
        more = self.some(excess=["idle"], meter=["tsw"]) if scheduler == "priority" else {}
        return {"scheduler": scheduler, "queues": queues, **more}

    def transport(self) -> dict[str, Any]:
        size = self.some(packet=["1500B", "576B", "100B"])
        kind = self.one(["tcp", "tcp", "tcp", "udp", "rap", "tfrc"])
        jitter = self.some(jitter=[0, 0.5])
        match kind:
            case "udp":
                periods = {"on": "100ms", "off": "70ms"}
                pattern = self.one([{"udp": "cbr"}, {"udp": "on-off", **periods}])
                return {**pattern, "rate": self.one(["100kbps", "1Mbps"]), **size, **jitter}
            case "rap":
                return {"rap": "aimd", "initial-rtt": "50ms", "max-rate": "4Mbps", **size, **jitter}
            case "tfrc":
                return {"tfrc": "rfc5348", "max-rate": "4Mbps", **size, **jitter}
            case _:
                more = self.some(
                    ack=["1B", "1500B"],
                    window=["5p", "20p"],
                    initial_window=["4p"],
                    delayed_ack=["1ms", "100ms"],
                    handshake=[True],
                    limited_transmit=[True],
                    send_jitter=["1us", "10ms"],
                    min_rto=["10ms"],
                    initial_rto=["500ms"],
                    congestion=[*CONGESTION, *PARAMETERS],
                    byte_counting=[True],
                    slow_start=["hystart++"],
                    pacing=["window"],
                    accecn=["ace"],
                    quick_acks=["3p"],
                    rtt_arithmetic=["fixed-point"],
                    newreno_timer=["slow-but-steady"],
                    partial_window_deflation=["to-ssthresh"],
                )
                rack: dict[str, Any] = {"sack": True, "loss-detection": "rack"}
                sack: list[dict[str, Any]] = [{"sack": True}, {"sack": True, "prr": True}, rack]
                recovery = self.one([{}, {}, *sack])
                variant = self.one(["reno", "newreno", "two-windows", "linux", "quic", "ns-1998"])
                return {"tcp": variant, **size, **more, **recovery}

    def profile(self, name: str, *, controlled: bool) -> dict[str, Any] | str:
        rate = {"rate": self.one(["100kbps", "1Mbps"])}
        return self.one(
            [
                {"marker": "token-bucket", "burst": "5kB", **rate},
                {"marker": "tsw", "window": "100ms", **rate},
                {"marker": "three-precedence", **rate},
                {"marker": "tswtcm", "peak-rate": "1.2Mbps", "window": "50ms", **rate},
                self.buckets() | rate,
                {"marker": "twam", **rate} if controlled else name,
            ]
        )

    def buckets(self) -> dict[str, Any]:
        more = self.one(
            [
                {"marker": "srtcm", "excess-burst": "4kB"},
                {"marker": "trtcm", "peak-rate": "1.2Mbps", "peak-burst": "4kB"},
                {"marker": "rfc4115", "excess-rate": "200kbps", "excess-burst": "4kB"},
            ]
        )
        return {"burst": "5kB", **more, **self.some(mode=["color-aware"], out=["drop-red"])}

    def meters(self) -> dict[str, Any]:
        if self.random.random() < 0.6:
            return {}
        match = self.one([{"dscp": "AF11"}, {"color": "yellow"}, {"path": "pinned"}])
        first = {"name": "first", "match": match, "profile": self.buckets() | {"rate": "300kbps"}}
        rest = {"name": "rest", "profile": {"marker": "tswtcm", "rate": "1Mbps", "peak-rate": "1.2Mbps"}}
        return {"meters": self.one([[first], [rest], [first, rest | {"promote": True}]])}

    def access(self) -> dict[str, Any]:
        return {"rate": self.one([*self.rates, "10Mbps"]), "delay": self.one([*DELAYS, "20ms"])}

    def flow(self, number: int, path: Sequence[str]) -> dict[str, Any]:
        transport = self.transport()
        pinned = self.random.random() < 0.5
        begin, end = (path[0], path[-1]) if pinned else self.random.sample(self.routers, 2)
        marked = self.random.random() < 0.6
        way: dict[str, Any] = {"path": "pinned"} if pinned else {"from": begin, "to": end}
        if marked:
            way["profile"] = self.profile(f"of {begin}", controlled=pinned and "tcp" in transport)
            way |= self.some(color=["green", "red"])
            if "udp" not in transport:
                way |= self.some(out_feedback=["0s", "1ns", "1ms"])
        else:
            way |= self.one([{"service": "green"}, {"color": "red"}, {"dscp": 46}, {}])
        if "tcp" in transport:
            way |= self.some(ecn=["classic", "classic", "accurate", "l4s"])
        # Without an end to them, windows would turn over a network without delays for ever.
        volume = self.some(volume=["1kB", "30kB"]) if "udp" in transport else {"volume": "30kB"}
        access = {key: self.access() for key in self.some(access=[1], egress=[1])}
        if "rap" in transport or "tfrc" in transport:  # Their timers go off each round trip, however short.
            access["access"] = {"rate": "10Mbps", "delay": self.one(["1ms", "20ms"])}
        when = self.some(start=["0s", "0s..100ms"], stop=["300ms"])
        comes_and_goes = not pinned and not {"rap", "tfrc"} & transport.keys()
        if comes_and_goes and self.random.random() < 0.5:
            volume, when = self.population(), self.some(start=["0s", "50ms"])
        return {"name": f"f{number}", "transport": transport, **way, **access, **when, **volume}

    def population(self) -> dict[str, Any]:
        """Flows that come and go, some of them at one time."""
        listed = [["10ms", "1B"], ["10ms", "5kB"], ["100ms", "300B"], ["100ms", "300B"], ["600ms", "9kB"]]
        arrivals: dict[str, Any] = self.one(
            [{"rate": "60/s"}, {"rate": "600/s"}, {"every": "10ms"}, {"list": listed}]
        )
        sizes = [{"constant": "1B"}, {"constant": "7kB"}, {"points": [[1, 0.5], [20_000, 1.0]]}]
        return {"arrivals": arrivals} | ({} if "list" in arrivals else {"sizes": self.one(sizes)})

    def scenario(self) -> dict[str, Any]:
        joined = [
            *zip(self.routers, self.routers[1:], strict=False),
            tuple(self.random.sample(self.routers, 2)),
        ]
        links: dict[str, Any] = {
            f"l{number}": {"from": begin, "to": end, "rate": self.one(self.rates), "delay": self.one(DELAYS)}
            for number, (begin, end) in enumerate(joined)
        }
        for link in links.values():
            if self.random.random() < 0.7:
                link |= {"queue": self.queue(), **self.meters()}
            if self.random.random() < 0.3:
                link["reverse"] = {"queue": self.queue(), **self.meters()}
        path = self.routers if self.random.random() < 0.5 else self.routers[::-1]
        control = {"interval": self.one(["1ms", "40ms", "33.3ms"]), **self.some(loss=[0.5])}
        control["window"] = self.one(["sender", "in-flight", "passed"])
        flows = [self.flow(number, path) for number in range(self.random.randint(1, 5))]
        return {
            "duration": "1s",
            "warmup": "0s",
            **self.some(warmup=["100ms", "70ms", "333.333ms", "999999999ns"]),
            "links": links,
            "paths": {"pinned": {"via": path, "control": control}},
            "profiles": {f"of {router}": {"marker": "tsw", "rate": "500kbps"} for router in self.routers},
            "flows": flows,
            "probes": self.some(interval=["1ms", "70ms", "100ms", "333.333ms", "5s"]),
        }


@pytest.mark.parametrize("batch", range(6))
def test_both_engines_give_the_same_numbers(batch: int) -> None:
    compared, packets, batched, shaped = 0, 0, 0, 0
    for seed in range(batch * 1000, (batch + 1) * 1000):
        try:
            scenario = _engine.scenario_from_json(json.dumps(Draw(seed).scenario()), "random")
        except _engine.ScenarioError:
            continue
        fast = _engine.simulate(scenario, seed)
        plain = _engine.simulate(scenario, seed, engine="reference")
        packets += plain["packets"]
        batched += fast["engine"] == "batched"
        assert pack({**fast, **COST}) == pack({**plain, **COST}), f"{seed}: {scenario}"
        compared += 1
        shaped += '"shaper"' in scenario
        if compared == SCENARIOS:
            break
    assert compared == SCENARIOS
    assert shaped > 0
    assert packets > 1000
    assert batched > SCENARIOS / 2
