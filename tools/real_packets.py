"""Probes of what runs on real packets, for each block and each key, and the tables of docs/live.md.

Each probe is the smallest scenario with one block or one key. The engine says whether it accepts the probe
for real packets, so the tables cannot differ from what `perhop live` does. The registration and the schema
say which probes there must be.
"""

from __future__ import annotations

import copy
import functools
import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perhop import ScenarioError, _engine
from perhop.blocks import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Table = dict[str, Any]

BEGIN, END = "<!-- what runs live -->", "<!-- end of what runs live -->"
QUEUE = {"aqm": "drop-tail", "limit": "60p"}
LINK: Table = {"rate": "10Mbps", "delay": "1ms", "queue": QUEUE}
FLOW: Table = {"name": "one", "from": "a", "to": "b", "transport": {"tcp": "linux"}}
ON_PATH: Table = {"from": None, "to": None, "path": "p"}
UDP = {"udp": "cbr", "rate": "1Mbps"}
QUEUES = [{"name": "rest", "rule": QUEUE}]
OUTAGE = [{"from": "200ms", "to": "300ms"}]
METER = {"rate": "1Mbps", "marker": "token-bucket", "burst": "10kB"}
SENDERS: dict[str, Table] = {"": {}, 'with `live.sender = "perhop"`': {"sender": "perhop"}}
"""Keys of a group that choose another sender, by what the table calls it: tried in this order."""
VALUES: Table = {
    "rate": "1Mbps",
    "burst": "10kB",
    "excess-rate": "1Mbps",
    "excess-burst": "10kB",
    "peak-rate": "2Mbps",
    "peak-burst": "10kB",
    **dict.fromkeys(["in", "out", "total", "out-in", "out-out", "thresholds"], "10/30/0.05"),
    "limit": "60p",
    "bound": "48ms",
    "rule": QUEUE,
    "queue": QUEUE,
    "queues": QUEUES,
    "priority": [{"name": "first", "match": {"dscp": [46]}, "rate": "1Mbps", "burst": "10kB", "rule": QUEUE}],
    "classes": [{"name": "rest", "rate": "1Mbps", "queue": QUEUE}],
    "on": "1s",
    "off": "1s",
}
"""Values of parameters that blocks require."""
CLASSES = {
    "aqm": "tools.own_blocks:OwnAqm",
    "meter": "tools.own_blocks:OwnMeter",
    "application": "tools.own_blocks:OwnApplication",
    "congestion-control": "tools.own_blocks:OwnControl",
}
"""A class in Python for each role that can have one."""
ONE_OF: Table = {"thresholds": "10/30/0.05", "yellow": "10/30/0.05"}
"""Values of parameters of which some blocks require one."""
MEDIA: dict[str, Any] = {
    "rate-trace": {"format": "mahimahi", "data": "1\n2\n"},
    "changes": [{"at": "200ms", "rate": "8Mbps", "delay": "2ms"}],
    "outages": OUTAGE,
    "loss": 0.01,
    "burst-loss": {"good-to-bad": 0.01, "bad-to-good": 0.25},
    "jitter": {"distribution": "uniform", "max": "1ms", "reorder": True},
}
OWN_TCP = {"sender": "perhop", "receiver": "perhop"}
DIRECTION: dict[str, Any] = {"queue": QUEUE, "meters": [{"name": "all", "profile": METER}], **MEDIA}
KEYS: dict[str, dict[str, Table]] = {
    "Scenario": {
        "title": {"title": "A probe"},
        "warmup": {"warmup": "100ms"},
        "topology": {
            "topology": {"graph": {"links": [["a", "b"]]}, "link": {"rate": "10Mbps", "delay": "1ms"}},
            "links": None,
        },
        "paths": {"paths": {"p": {"via": ["a", "b"]}}},
        "profiles": {"profiles": {"shared": METER}, "flow": {"profile": "shared"}},
        "probes": {"probes": {"interval": "100ms"}},
        "live": {"live": {"ip": 6}},
    },
    "Link": {
        **{key: {"link": {key: value}} for key, value in DIRECTION.items()},
        "reverse": {"link": {"reverse": {}}},
    },
    "Reverse": {
        key: {"link": {"reverse": {"queue": QUEUE, key: value}}}
        for key, value in {"rate": "1Mbps", "delay": "2ms", **DIRECTION}.items()
    },
    "Flow": {
        "count": {"flow": {"count": 2}},
        "between": {"flow": {"from": None, "to": None, "between": {"among": ["a", "b"]}}},
        "path": {"paths": {"p": {"via": ["a", "b"]}}, "flow": ON_PATH},
        "access": {"flow": {"access": {"rate": "5Mbps", "delay": "1ms"}}},
        "egress": {"flow": {"egress": {"rate": "5Mbps", "delay": "1ms"}}},
        "dispatch-jitter": {"flow": {"dispatch-jitter": "200us"}},
        "application": {"flow": {"application": {"model": "request-response"}}},
        "profile": {"flow": {"profile": METER}},
        "color": {"flow": {"color": "green"}},
        "service": {"flow": {"service": "green"}},
        "dscp": {"flow": {"dscp": "EF"}},
        "ecn": {"flow": {"ecn": "classic"}},
        "play-out": {"flow": {"transport": UDP, "play-out": "60ms"}},
        "codec": {"flow": {"transport": UDP, "codec": "g711"}},
        "out-feedback": {"flow": {"profile": METER, "out-feedback": "0s"}},
        "start": {"flow": {"start": "0s..100ms"}},
        "stop": {"flow": {"stop": "900ms"}},
        "volume": {"flow": {"volume": "30kB"}},
        "arrivals": {"flow": {"arrivals": {"rate": "20/s"}, "sizes": {"constant": "3kB"}}},
        "sizes": {
            "flow": {"transport": UDP, "arrivals": {"every": "50ms"}, "sizes": {"constant": "3kB"}},
        },
        "replay": {
            "flow": {"transport": None, "replay": {"data": "time_s,size_B,dscp\n0,1500,10\n0.1,40,46\n"}},
        },
        "live": {"flow": {"live": {"congestion": "reno"}}},
    },
    "LabelSwitchedPath": {
        "via": {"paths": {"p": {"via": ["a", "b"]}}, "flow": ON_PATH},
        "back": {"paths": {"p": {"via": ["a", "b"], "back": ["b", "a"]}}, "flow": ON_PATH},
        "control": {"paths": {"p": {"via": ["a", "b"], "control": {"interval": "100ms"}}}, "flow": ON_PATH},
    },
    "Arrivals": {
        key: {"flow": {"arrivals": {key: value, **more}, "sizes": {"constant": "3kB"}}}
        for key, value, more in [
            ("load", 0.1, {}),
            ("of", "l", {"load": 0.1}),
            ("rate", "20/s", {}),
            ("every", "50ms", {}),
            ("trace", {"data": "time_s\n0.1\n0.2\n"}, {}),
        ]
    }
    | {"list": {"flow": {"arrivals": {"list": [["100ms", "3kB"]]}}}},
    "Live": {
        key: {"live": {key: value}}
        for key, value in {
            "ip": 6,
            "sysctl": {"net.ipv4.tcp_sack": 0},
            "max-lateness": "100ms",
            **OWN_TCP,
        }.items()
    },
    "FlowLive": {
        key: {"flow": {"live": {key: value}}} for key, value in {"congestion": "reno", **OWN_TCP}.items()
    },
}
"""For each key of a table of the schema what is changed of the smallest scenario; None takes a key away."""
BASE = {
    "Scenario": {"duration", "links", "flows"},
    "Link": {"from", "to", "rate", "delay"},
    "Flow": {"name", "from", "to", "transport"},
}
"""The keys that the smallest scenario has."""
PARTS = {
    "aqm": "AQMs",
    "scheduler": "schedulers",
    "meter": "meters",
    "application": "users",
    "congestion-control": "congestion controls of `tcp`",
    "transport": "transports",
    "Scenario": "keys of a scenario",
    "Link": "keys of a link",
    "Reverse": "keys of a link's `reverse`",
    "Flow": "keys of a group of flows",
    "LabelSwitchedPath": "keys of a path",
    "Arrivals": "keys of `arrivals`",
    "Live": "keys of `[live]`",
    "FlowLive": "keys of a group's `live`",
}
"""The names of the kinds of probes in the tables, in their order."""


@dataclass(frozen=True)
class Probe:
    """The smallest scenario with one block, or one key."""

    kind: str
    name: str
    changes: Table = field(hash=False)

    def scenario(self) -> Table:
        """The scenario."""
        changes = {key: value for key, value in self.changes.items() if key not in ("flow", "link")}
        link = {"from": "a", "to": "b", **LINK, **self.changes.get("link", {})}
        flow = merged(FLOW, self.changes.get("flow", {}))
        return merged({"duration": "1s", "links": {"l": link}, "flows": [flow]}, changes)

    def canonical(self, *, real_packets: bool) -> str:
        """The scenario as the engine reads it for the simulator, or for real packets."""
        text = json.dumps(self.scenario())
        return _engine.read_json(text, "scenario", real_packets=real_packets)[0]

    def is_valid(self) -> bool:
        """Whether the simulator takes it."""
        try:
            self.canonical(real_packets=False)
        except ScenarioError:
            return False
        return True

    def refusal(self) -> str | None:
        """Why real packets refuse it, with the key; None if they do not."""
        try:
            _engine.live_check(self.canonical(real_packets=True))
        except ScenarioError as error:
            return str(error).removeprefix("scenario: ")
        return None


def merged(table: Table, changes: Table) -> Table:
    """A table with other values; None takes a key away."""
    return {key: copy.deepcopy(value) for key, value in (table | changes).items() if value is not None}


@functools.cache
def probes() -> list[Probe]:
    """All probes, each valid in the simulator.

    Raises:
        ValueError: A block or a key has no valid probe; this module says how to make one.
    """
    return [*map(of_block, catalogue.registered()), *transports(), *keys()]


def of_block(block: Table) -> Probe:
    """The probe of a registered block."""
    role, name = block["role"], block["name"]
    known = {**VALUES, "class": CLASSES.get(role)}
    required = {key: known[key] for key, value in block["parameters"].items() if value["required"]}
    more = {key: value for key, value in ONE_OF.items() if key in block["parameters"]}
    used = [changes for given in (required, more | required) for changes in forms(role, name, given)]
    candidates = [Probe(role, name, changes) for changes in used]
    found = next((probe for probe in candidates if probe.is_valid()), None)
    if found is None:
        raise ValueError(f"{role} `{name}`: no probe is valid; see `forms` in {__name__}")
    return found


def forms(role: str, name: str, required: Table) -> Iterator[Table]:
    """The ways to use a block, the simplest first."""
    path: Table = {"paths": {"p": {"via": ["a", "b"], "control": {"interval": "100ms"}}}}
    if role in ("aqm", "scheduler"):
        queue = {"link": {"queue": {role: name, **required}}}
        yield queue
        yield {**path, **queue, "flow": ON_PATH}
    elif role == "meter":
        profile = {"profile": {"marker": name, **required}}
        yield {"flow": profile}
        yield {**path, "flow": {**profile, **ON_PATH}}
    elif role == "application":
        application = {"application": {"model": name, **required}}
        yield {"flow": application}
        yield {"flow": {**application, "transport": None}}
    else:
        control: str | Table = {"control": name, **required} if required else name
        yield {"flow": {"transport": {"tcp": "linux", "congestion": control}}}
        yield {"flow": {"ecn": "classic", "transport": {"tcp": "linux", "congestion": control}}}
        yield {"flow": {"ecn": "l4s", "transport": {"tcp": "linux", "congestion": control}}}
        yield {"flow": {"transport": {"tcp": name}, "profile": METER}}


def transports() -> Iterator[Probe]:
    """A probe for each value of the keys that name a transport."""
    schema = json.loads(_engine.scenario_schema())["$defs"]
    for option in schema["Transport"]["anyOf"]:
        table = schema[option["$ref"].rpartition("/")[2]]
        key = table["required"][0]
        choices = schema[table["properties"][key]["$ref"].rpartition("/")[2]]
        names = (
            [one["const"] for one in choices.get("oneOf", [])] or choices.get("enum") or [choices["const"]]
        )
        for name in names:
            transport = {key: name, **{more: VALUES[more] for more in table["required"][1:]}}
            times = {more: VALUES[more] for more in ("on", "off")}
            tried = [{"transport": transport}, {"transport": transport, "profile": METER}]
            tried.append({"transport": {**transport, **times}})
            found = [Probe("transport", f'{key} = "{name}"', {"flow": flow}) for flow in tried]
            yield next(probe for probe in found if probe.is_valid())


def keys() -> Iterator[Probe]:
    """A probe for each key of the schema's tables."""
    for kind, changes in KEYS.items():
        for name, change in changes.items():
            probe = Probe(kind, name, change)
            if not probe.is_valid():
                probe.canonical(real_packets=False)
            yield probe


def tables() -> str:
    """The tables: what runs on real packets, and what is refused."""
    accepted: dict[str, list[str]] = defaultdict(list)
    refused = []
    for probe in probes():
        if runs := running(probe):
            accepted[probe.kind].append(f"`{probe.name}`" + (f" ({runs[0]})" if runs[0] else ""))
        else:
            refused.append((probe, probe.refusal() or ""))
    rows = [f"| {part} | {', '.join(accepted[kind])} |" for kind, part in PARTS.items()]
    lines = ["| part of a scenario | runs on real packets |", "|---|---|", *rows, ""]
    lines += ["| refused | message |", "|---|---|"]
    for probe, message in refused:
        name = f"`{probe.name}` ({PARTS[probe.kind]})"
        lines.append(f"| {name} | {message.replace('|', chr(92) + '|')} |")
    return "\n".join(lines)


def running(probe: Probe) -> tuple[str, Probe] | None:
    """The probe with the first sender with which real packets accept it, and how that is called."""
    tried = ((name, with_sender(probe, keys)) for name, keys in SENDERS.items())
    return next((found for found in tried if found[1].refusal() is None), None)


def with_sender(probe: Probe, keys: Table) -> Probe:
    """A probe with other keys of its group for real packets."""
    flow = probe.changes.get("flow", {})
    changed = {**flow, "live": {**flow.get("live", {}), **keys}} if keys else flow
    return Probe(probe.kind, probe.name, {**probe.changes, "flow": changed})


def page(path: Path) -> str:
    """The page with its tables as they should be."""
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{rest.split(END)[1]}"
