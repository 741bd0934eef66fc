"""VyOS: policies of `qos` (before 1.4 `traffic-policy`), which it turns into qdiscs of Linux."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.linux import cake, hfsc
from perhop.routers.linux import quantities as tc_units
from perhop.routers.model import (
    ALL_CODEPOINTS,
    Average,
    Block,
    Curve,
    Drop,
    How,
    Match,
    Meter,
    Port,
    Quantity,
    Queue,
    Rate,
    RateUnit,
    Selector,
    TreeClass,
    Unit,
)
from perhop.routers.source import MEANINGS
from perhop.routers.syntax.statements import Statement, statements
from perhop.routers.units import quoted

if TYPE_CHECKING:
    from perhop.routers.model import Action
    from perhop.routers.source import Account, Source

RATES = {
    "": 1e3,
    **{f"{p}{unit}": 1000.0**n for n, p in enumerate(["", "k", "m", "g"]) for unit in ("bit", "bps")},
}
"""A rate without a suffix is kbit/s in the code, although the help says bit/s."""
AVERAGE_PACKET = 1024
MAX_THRESHOLD = 18
MARK_PROBABILITY = 10
BURST = 15 * 1024
LATENCY_S = 0.05
QUANTUM = 1514
"""Bytes of a class's turn: VyOS gives htb the value of `codel-quantum`."""
MOST_PRIO = 7
LEAST = 1000.0
"""Bit/s of a class without the bandwidth that it needs."""
MOST_FLOWS = 65536
"""Queues of fq_codel."""
THRESHOLDS = {"average-packet", "maximum-threshold", "minimum-threshold", "queue-limit", "mark-probability"}
KINDS = ("shaper", "shaper-hfsc", "random-detect", "priority-queue", "rate-control", "drop-tail",
         "fair-queue", "fq-codel", "round-robin", "limiter", "cake", "network-emulator")  # fmt: skip
CURVES = ("realtime", "linkshare", "upperlimit")
"""The service curves of `shaper-hfsc`."""
EMULATED = {
    "delay": "network-delay", "loss": "packet-loss", "corruption": "packet-corruption",
    "reordering": "packet-reordering", "duplicate": "packet-duplicate",
}  # fmt: skip
"""The leaves of `network-emulator`, each with its name in VyOS 1.3."""
SHAPERS = {"shaper", "shaper-hfsc"}
KNOWN = {"bandwidth", "ceiling", "burst", "priority", "codel-quantum", "queue-type", "queue-limit",
         "quantum", "latency", "target", "interval", "flows", "rtt", "exceed", "not-exceed", *EMULATED,
         *EMULATED.values(), *THRESHOLDS}  # fmt: skip
"""Leaves that some policy or class has."""
ACTIONS = {"exceed": "drop", "not-exceed": "ok"}
"""What a limiter does, and its defaults."""
DROPS = {"drop", "shot"}
IGNORED = {"description", "mtu", "hash-interval", "set-dscp"}
DSCP_NAMES = {
    "default": 0, "reliability": 1, "throughput": 2, "lowdelay": 4, "priority": 8, "immediate": 16,
    "flash": 24, "flash-override": 32, "critical": 40, "internet": 48, "network": 56,
}  # fmt: skip
"""Names that VyOS has beside those of RFCs 2474 and 2597, of the TOS field (python/vyos/qos/base.py)."""


@dataclass(slots=True)
class Class:
    """A class of a policy: leaves by their words, and its matches."""

    name: str
    line: int
    values: dict[str, tuple[str, int]] = field(default_factory=dict)
    matches: dict[str, list[Match]] = field(default_factory=dict)
    """The conditions of each match, all of which a packet fulfills; one match is enough."""
    groups: list[tuple[str, int]] = field(default_factory=list)
    """Groups of matches that it names, with their lines."""
    lines: set[int] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    """Keys of `values` that something read; the others are reported."""

    def get(self, key: str, line: int = 0, default: str = "") -> tuple[str, int]:
        """The value of a leaf and its line; else the default with the given line."""
        self.read.add(key)
        return self.values.get(key, (default, line))


@dataclass(slots=True)
class Policy:
    """A policy of some kind."""

    kind: str
    name: str
    line: int
    own: Class
    classes: dict[str, Class] = field(default_factory=dict)
    lines: set[int] = field(default_factory=set)


class Reader:
    """Reads the statements of a source."""

    def __init__(self, source: Source, account: Account) -> None:
        """Findings go to the account."""
        self._account = account
        self.policies: dict[str, Policy] = {}
        self.attached: list[tuple[str, str, str, Statement]] = []
        self.groups: dict[str, Class] = {}
        """Matches that classes share."""
        for statement in statements(source, account, by_line=True):
            if self._statement(statement):
                account.understand(*statement.lines)
            else:
                account.comment(*statement.around)
                if statement.words[:1] in {("qos",), ("traffic-policy",)}:
                    account.miss_part(statement.line, f"not understood: `{' '.join(statement.words)}`")
                else:
                    account.find("W13", statement.line, f"not about queues: `{' '.join(statement.words)}`")

    def _statement(self, statement: Statement) -> bool:
        words = statement.words
        if words[:2] == ("qos", "policy"):
            return self._policy(words[2:], statement)
        if words[:1] == ("traffic-policy",):
            return self._policy(words[1:], statement)
        if words[:2] == ("qos", "traffic-match-group") and len(words) > 5 and words[3] == "match":
            group = self.groups.setdefault(words[2], Class(words[2], statement.line))
            group.lines.update(statement.lines)
            return self._match(group, f"{words[2]} {words[4]}", words[5:], statement)
        if words[:2] == ("qos", "interface") and len(words) == 5 and words[3] in {"egress", "ingress"}:
            self.attached.append((words[2], words[3], words[4], statement))
            return True
        if words[:1] == ("interfaces",) and "traffic-policy" in words and words[-2:-1] in {("out",), ("in",)}:
            direction = "egress" if words[-2] == "out" else "ingress"
            self.attached.append((words[2], direction, words[-1], statement))
            return True
        return False

    def _policy(self, words: tuple[str, ...], statement: Statement) -> bool:
        if len(words) < 2 or words[0] not in KINDS:
            return False
        line = statement.line
        policy = self.policies.setdefault(words[1], Policy(words[0], words[1], line, Class("", line)))
        rest = words[2:]
        policy.lines.update(statement.lines)
        owner = policy.own
        if rest[:1] in {("class",), ("precedence",)} and len(rest) > 1:
            owner = policy.classes.setdefault(rest[1], Class(rest[1], line))
            rest = rest[2:]
        elif rest[:1] == ("default",):
            owner = policy.classes.setdefault("default", Class("default", line))
            rest = rest[1:]
        owner.lines.update(statement.lines)
        if not rest:
            return True
        if rest[0] == "match" and len(rest) > 2:
            return self._match(owner, rest[1], rest[2:], statement)
        if rest[0] == "match-group" and len(rest) == 2:
            owner.groups.append((rest[1], line))
            return True
        if rest[0] in CURVES and len(rest) == 3 and rest[1] in {"m1", "m2", "d"}:
            return self._curve(owner, rest, line)
        if len(rest) == 1:
            owner.values[rest[0]] = ("", line)
            return policy.kind == "cake"
        if policy.kind == "cake" and rest[0] == "flow-isolation":
            rest = (rest[0], "-".join(rest[1:]))
        if len(rest) != 2:
            return False
        if rest[0] in IGNORED:
            text = f"`{' '.join(rest)}` has no effect here"
            self._account.find("W13", line, text)
        owner.values[rest[0]] = (rest[1], line)
        return True

    def _curve(self, owner: Class, rest: tuple[str, ...], line: int) -> bool:
        """A value of a service curve of hfsc: its rate in the long run is that of a class of htb."""
        text = " ".join(rest)
        if rest[1] != "m2":
            said = f"`{text}`: what a service curve says of the first moments is not simulated"
            self._account.find("W06", line, said)
            return True
        owner.values[f"{rest[0]} m2"] = (rest[2], line)
        return True

    def _match(self, owner: Class, name: str, rest: tuple[str, ...], statement: Statement) -> bool:
        if rest[0] == "description":
            return True
        line = statement.line
        found = Match(None, ((line, f"match {' '.join(rest)}"),), line)
        if rest[0] in {"ip", "ipv6"} and len(rest) == 3 and rest[1] == "dscp":
            value = DSCP_NAMES.get(rest[2].lower(), units.codepoint(rest[2]))
            if value is not None:
                found = Match(frozenset({value}), (), line)
            if rest[2].lower() == "critical":
                text = "`dscp critical` is 0x0a in VyOS's code, which hardly a packet has; CS5 here, as meant"
                self._account.find("W17", line, text)
        owner.matches.setdefault(name, []).append(found)
        return True

    def read(self) -> list[Port]:
        """A port for each interface with a policy; policies that are not attached are ports of their name."""
        ports: list[Port] = []
        for interface, direction, name, statement in self.attached:
            policy = self.policies.get(name)
            if policy is None:
                self._account.find("W15", statement.line, f"policy {name} is not defined")
                continue
            port = self._port(interface, policy, statement.line, incoming=direction == "ingress")
            port.lines.update(statement.lines)
            ports.append(port)
        used = {name for _, _, name, _ in self.attached}
        for name, policy in self.policies.items():
            if name not in used:
                self._account.find("W15", policy.line, f"policy {name} is attached to no interface")
                ports.append(self._port(name, policy, policy.line, incoming=False))
        return ports

    def _port(self, name: str, policy: Policy, line: int, *, incoming: bool) -> Port:
        for entry in policy.classes.values():
            self._grouped(entry, policy)
        port = self._filled(name, policy, line, incoming=incoming)
        self._unused(policy)
        return port

    def _grouped(self, entry: Class, policy: Policy) -> None:
        """Give a class the matches of the groups that it names."""
        groups, entry.groups = entry.groups, []
        for name, line in groups:
            group = self.groups.get(name)
            if group is None:
                self._account.find("W15", line, f"traffic match group {name} is not defined")
                entry.matches[f"group {name}"] = [Match(None, ((line, f"match-group {name}"),), line)]
                continue
            policy.lines |= group.lines
            entry.matches |= group.matches

    def _filled(self, name: str, policy: Policy, line: int, *, incoming: bool) -> Port:
        port = Port(name, line, "input" if incoming else "output")
        port.lines |= policy.lines
        if policy.kind == "limiter" or incoming:
            port.direction = "input"
            for entry in policy.classes.values():
                meter = self._meter(entry)
                if meter is not None:
                    port.meters.append((self._matched(entry), f"{policy.name} {entry.name}", meter))
            return port
        bandwidth = self._rate(policy.own, "bandwidth")
        shaping = {*SHAPERS, "random-detect", "rate-control", "cake", "network-emulator"}
        if policy.kind in shaping and bandwidth is not None:
            port.shaper = bandwidth
        if policy.kind == "rate-control":
            port.shaper_burst = self._burst(policy.own)
        if policy.kind in {*SHAPERS, "priority-queue", "round-robin"}:
            self._classes(port, policy)
        elif policy.kind == "network-emulator":
            self._emulator(port, policy.own)
        else:
            queue = Queue("all", policy.line, spacing_known=True)
            if policy.kind == "rate-control" and bandwidth is not None:
                self._latency(queue, port, policy.own, bandwidth)
            else:
                self._leaf(queue, policy.own, policy, policy.kind)
            port.queues = [queue]
        return port

    def _emulator(self, port: Port, entry: Class) -> None:
        """The delay and the losses of netem (python/vyos/qos/netem.py); a wrong bit is a loss, too."""
        name, value, line = self._emulated(entry, "delay")
        delay = units.scaled(value, {"": 1e-3, "ms": 1e-3, "s": 1.0, "us": 1e-6}) if value else None
        if delay:
            port.delay = Quantity(delay, Unit.SECONDS, line, text=f"{name} {value}")
        elif value:
            self._bad(name, value, line)
        for key in ("loss", "corruption"):
            name, value, line = self._emulated(entry, key)
            percent = units.number(value.removesuffix("%")) if value else None
            if value and (percent is None or percent > 100):
                self._bad(name, value, line)
            elif percent is not None:
                probability, _, said = port.loss or (0.0, 0, "")
                probability = round(1 - (1 - probability) * (1 - percent / 100), 12)
                port.loss = (probability, line, ", ".join(filter(None, (said, f"{name} {value}"))))
            if key == "corruption" and percent:
                text = f"`{name} {value}`: a corrupted packet is lost on the link here, not where it arrives"
                self._account.find("W06", line, text)
        for key in ("duplicate", "reordering"):
            name, value, line = self._emulated(entry, key)
            if value:
                self._account.miss_part(line, f"`{name} {value}` is not simulated")
        queue = Queue("all", entry.line)
        queue.limit = self._packets(entry, "queue-limit", 1000, "all")
        port.queues = [queue]

    def _emulated(self, entry: Class, key: str) -> tuple[str, str, int]:
        """The name of a leaf of an emulator in its version of VyOS, its value and its line."""
        name = EMULATED[key] if EMULATED[key] in entry.values else key
        return name, *entry.get(name)

    def _latency(self, queue: Queue, port: Port, entry: Class, bandwidth: Rate) -> None:
        """The limit of a token bucket: latency · rate + burst."""
        value, line = entry.get("latency")
        time = units.scaled(value, {"": 1e-3, "ms": 1e-3, "s": 1.0, "us": 1e-6}) if value else None
        if not time:
            time, how = LATENCY_S, How.DEFAULT
            self._account.find("W04", entry.line, f"{queue.name}: no latency; {LATENCY_S * 1000:g} ms")
        else:
            how = How.CONFIGURED
        burst = port.shaper_burst.number if port.shaper_burst is not None else 0.0
        if bandwidth.unit is RateUnit.BPS:
            number = time * bandwidth.number / 8 + burst
            self._account.find("W05", line or entry.line, f"latency of {time * 1000:g} ms is {number:.0f} B")
            queue.limit = Quantity(number, Unit.BYTES, line, how, text="latency · rate + burst")

    def _classes(self, port: Port, policy: Policy) -> None:
        port.sharing = "drr" if policy.kind == "round-robin" else "wfq"
        numbered = sorted(
            (entry for name, entry in policy.classes.items() if name != "default"),
            key=lambda entry: (len(entry.name), entry.name),
        )
        entries = [*numbered, *([policy.classes["default"]] if "default" in policy.classes else [])]
        for index, entry in enumerate(entries):
            queue = Queue(entry.name, entry.line, spacing_known=True)
            queue.match = Match(None, (), entry.line) if entry.name == "default" else self._matched(entry)
            kind = entry.get("queue-type", 0, "fq-codel" if policy.kind in SHAPERS else "drop-tail")[0]
            self._leaf(queue, entry, None, kind, bands=policy.kind != "priority-queue")
            if policy.kind == "priority-queue":
                queue.level, queue.level_line = (None if entry.name == "default" else index), entry.line
            elif policy.kind == "round-robin":
                value, place = entry.get("quantum", entry.line, "1514")
                quantum = units.number(value) or 0.0
                if not quantum:
                    self._bad("quantum", value, place)
                    quantum = 1514.0
                queue.share = Rate(
                    max(1, round(quantum)), RateUnit.WEIGHT, place, text=f"quantum {quantum:g}"
                )
            port.queues.append(queue)
        if policy.kind in SHAPERS:
            self._tree(port, policy, entries)

    def _tree(self, port: Port, policy: Policy, entries: list[Class]) -> None:
        """The classes of htb that VyOS makes of a shaper (python/vyos/qos/trafficshaper.py)."""
        whole = port.shaper or Rate(100, RateUnit.PERCENT, policy.line, How.DEFAULT, "bandwidth of the link")
        root = TreeClass(policy.name, policy.line, whole, whole)
        for queue, entry in zip(port.queues, entries, strict=True):
            if policy.kind == "shaper-hfsc":
                root.classes.append(replace(self._of_curves(entry, whole), queue=queue.name))
                continue
            rate = self._share(entry, "bandwidth", whole)
            if rate is None:
                text = f"class {entry.name}: no bandwidth, which VyOS demands; sure of {LEAST:g} bit/s here"
                self._account.find("W04", entry.line, text)
                rate = Rate(LEAST, RateUnit.BPS, 0, How.ASSUMED, "no bandwidth")
            ceil = self._share(entry, "ceiling", whole)
            if ceil is None:
                text = f"class {entry.name}: no ceiling: `{rate.text}` is htb's; it borrows nothing"
                self._account.find("W04", entry.line, text)
                ceil = replace(rate, how=How.DEFAULT, text="no ceiling: that of htb is the rate")
            if ceil.unit is rate.unit and rate.number > ceil.number:
                text = f"class {entry.name}: `{rate.text}` is above `{ceil.text}`, which is its rate here"
                self._account.find("W16", rate.line, text)
                rate = ceil
            made = TreeClass(entry.name, entry.line, rate, ceil, self._burst(entry), queue=queue.name)
            made.prio, made.quantum = self._prio(entry), self._quantum(entry)
            if rate.unit is RateUnit.BPS:
                queue.guarantee = rate
            root.classes.append(made)
        if policy.kind == "shaper-hfsc":
            hfsc.turns(root.classes)
        total = sum(
            made.curves.real_time if made.curves else made.rate.number
            for made in root.classes
            if made.rate.unit is whole.unit
        )
        if total > whole.number * (1 + 1e-9):
            shown = units.shown_rate(total) if whole.unit is RateUnit.BPS else f"{total:g} %"
            text = f"its classes are sure of {shown} together, above `{whole.text}`: Linux gives them that"
            self._account.find("W17", policy.line, f"policy {policy.name}: {text}")
        port.tree = [root]

    def _of_curves(self, entry: Class, whole: Rate) -> TreeClass:
        """A class of hfsc (python/vyos/qos/trafficshaper.py)."""
        sure, share, most = (self._share(entry, f"{curve} m2", whole) for curve in CURVES)
        if sure is None and share is None:
            text = f"class {entry.name}: neither realtime nor linkshare; sure of {LEAST:g} bit/s here"
            self._account.find("W04", entry.line, text)
        if most is None and share is not None:
            most = replace(whole, line=0, how=How.DEFAULT, text="no upperlimit: that of the policy")
        made = hfsc.of_curves(entry.name, entry.line, (sure, share, most), self._account)
        if RateUnit.PERCENT in {rate.unit for rate in (sure, share) if rate is not None}:
            made.curves = None
        return made

    def _share(self, entry: Class, key: str, whole: Rate) -> Rate | None:
        """A rate of a class; percent is of the policy's bandwidth, and so is `auto`."""
        value, line = entry.get(key)
        if value == "auto":
            return replace(whole, line=line, text=f"{key} auto")
        found = self._rate(entry, key)
        if found is None or found.unit is not RateUnit.PERCENT:
            return found
        number = min(found.number, 100) * whole.number / 100
        return Rate(number, whole.unit, found.line, text=f"{found.text} of {whole.text}")

    def _prio(self, entry: Class) -> tuple[int, int] | None:
        value, line = entry.get("priority")
        found = units.whole(value) if value else None
        if value and found is None:
            self._bad("priority", value, line)
        if found is not None and found > MOST_PRIO:
            text = f"`priority {value}` is above {MOST_PRIO}: the kernel takes {MOST_PRIO}"
            self._account.find("W16", line, text)
            found = MOST_PRIO
        return None if found is None else (found, line)

    def _quantum(self, entry: Class) -> Quantity:
        value, line = entry.get("codel-quantum")
        found = units.whole(value) if value else None
        if found:
            return Quantity(found, Unit.BYTES, line, text=f"codel-quantum {value}")
        if value:
            self._bad("codel-quantum", value, line)
        return Quantity(QUANTUM, Unit.BYTES, 0, How.DEFAULT, text=f"codel-quantum {QUANTUM}")

    def _unused(self, policy: Policy) -> None:
        """Report each leaf that nothing read."""
        for entry in (policy.own, *policy.classes.values()):
            for key, (value, line) in entry.values.items():
                if key in entry.read or key in IGNORED:
                    continue
                if key in KNOWN:
                    self._account.find("W13", line, f"`{key} {value}` has no effect here")
                else:
                    self._bad(key, value, line)
            if entry.name == "default":
                for line, text in self._matched(entry).unknown:
                    self._account.find("W13", line, f"`{text}` has no effect in the default class")

    def _bad(self, key: str, value: str, line: int) -> None:
        text = f"not understood: `{key} {value}`"
        if MEANINGS.search(key):
            self._account.miss_part(line, text)
        else:
            self._account.find("W13", line, text)

    def _matched(self, entry: Class) -> Match:
        if entry.matches:
            return Match.either(
                [Match.every(found, entry.line) for found in entry.matches.values()], entry.line
            )
        return Match(
            None, () if entry.name == "default" else ((entry.line, f"class {entry.name}"),), entry.line
        )

    def _rate(self, entry: Class, key: str) -> Rate | None:
        value, line = entry.get(key)
        if not value:
            return None
        text = f"{key} {value}"
        if value == "auto":
            self._account.find("W01", line, f"`{text}`: the speed of the interface; give --rate")
            return None
        if value.endswith("%") and units.number(value[:-1]):
            return Rate(float(value[:-1]), RateUnit.PERCENT, line, text=text)
        bps = units.scaled(value, RATES)
        if not bps:
            self._bad(key, value, line)
            return None
        if units.number(value) is not None:
            self._account.find("W01", line, f"`{text}`: a rate without a suffix is kbit/s in VyOS's code")
        return Rate(bps, RateUnit.BPS, line, text=text)

    def _burst(self, entry: Class) -> Quantity:
        value, line = entry.get("burst")
        size = tc_units.size(value) if value else None
        if size:
            return Quantity(size, Unit.BYTES, line, text=f"burst {value}")
        if value:
            self._bad("burst", value, line)
        return Quantity(BURST, Unit.BYTES, 0, How.DEFAULT, text="burst 15k")

    def _meter(self, entry: Class) -> Meter | None:
        rate = self._rate(entry, "bandwidth")
        actions = {key: entry.get(key, entry.line, default) for key, default in ACTIONS.items()}
        if rate is None:
            return None
        if actions["not-exceed"][0] in DROPS:
            text = f"`not-exceed {actions['not-exceed'][0]}`: a policer that drops what conforms is left out"
            self._account.find("W10", actions["not-exceed"][1], text)
            return None
        action, line = actions["exceed"]
        if action not in DROPS:
            text = f"`exceed {action}`: what exceeds is not dropped; here it becomes yellow"
            self._account.find("W10", line, text)
        exceed: Action = "drop" if action in DROPS else "mark"
        return Meter("one-bucket", rate, self._burst(entry), entry.line, exceed=exceed)

    def _packets(self, entry: Class, key: str, default: int, who: str) -> Quantity:
        value, line = entry.get(key)
        number = units.whole(value) if value else None
        if number:
            return Quantity(number, Unit.PACKETS, line, text=f"{key} {value}")
        if value:
            self._bad(key, value, line)
        self._account.find("W04", entry.line, f"{who}: no {key}; {default} packets")
        return Quantity(default, Unit.PACKETS, 0, How.DEFAULT, text=f"{default} packets")

    # Queues

    def _leaf(
        self, queue: Queue, entry: Class, policy: Policy | None, kind: str, *, bands: bool = False
    ) -> None:
        """The queue of a class or of a policy; `bands`: a scheduler within the class is simulated."""
        line = entry.get("queue-type", queue.line)[1]
        if kind == "fq-codel":
            limit = self._packets(entry, "queue-limit", 10240, queue.name)
            keys = [("limit", quoted(f"{limit.number:.0f}p"), limit.line or line)]
            for key in ("target", "interval"):
                value, place = entry.get(key)
                time = (
                    tc_units.time(value) if re.search("[a-z]", value) else (units.number(value) or 0) / 1000
                )
                if value and time:
                    keys.append((key, quoted(f"{units.plain(time * 1000, 6)}ms"), place))
                elif value:
                    self._bad(key, value, place)
            quantum, place = entry.get("codel-quantum")
            if units.whole(quantum):
                keys.append(("quantum", quoted(f"{quantum}B"), place))
            flows, place = entry.get("flows")
            if 1 <= (units.whole(flows) or 0) <= MOST_FLOWS:
                keys.append(("flows", flows, place))
            elif flows:
                self._bad("flows", flows, place)
            keys.append(("ecn", "false", line))  # VyOS gives `noecn`
            queue.block = Block("scheduler", "fq-codel", (*keys, ("law", '"linux"', line)), line)
            return
        if kind == "cake":
            self._cake(queue, entry)
            return
        if kind == "random-detect":
            if policy is None:
                self._red(queue, entry)
            else:
                self._random_detect(queue, policy)
            return
        if kind not in {"fair-queue", "priority", "drop-tail", "rate-control"}:
            self._account.miss_part(line, f"not understood: `queue-type {kind}`")
        if kind == "priority" and bands:
            self._bands(queue, entry, line)
            return
        if kind in {"fair-queue", "priority"}:
            text = f"class {queue.name}: {kind} within it is not simulated; a FIFO in its place"
            self._account.find("W06", line, text)
        queue.limit = self._packets(entry, "queue-limit", 127 if kind == "fair-queue" else 1000, queue.name)

    def _cake(self, queue: Queue, entry: Class) -> None:
        """The policy `cake` (python/vyos/qos/cake.py)."""
        value, line = entry.get("rtt", entry.line)
        rtt = units.number(value) if value else cake.RTT * 1000
        if not rtt:
            self._bad("rtt", value, line)
        self._account.find("W06", entry.line, f"class {queue.name}: cake: {cake.LOST}")
        queue.block = cake.block(
            (rtt or cake.RTT * 1000) / 1000, self._rate(entry, "bandwidth"), line, entry.line
        )

    def _bands(self, queue: Queue, entry: Class, line: int) -> None:
        """A class with `queue-type priority`: three bands by the TOS field, each with the limit."""
        limit = self._packets(entry, "queue-limit", 1000, queue.name)
        for band in range(3):
            inner = Queue(f"{queue.name}.{band + 1}", line, limit=limit, level=band, level_line=line)
            codes = {code for code in ALL_CODEPOINTS if tc_units.band(code, tc_units.PRIOMAP, 3) == band}
            inner.match = Match(frozenset(codes), (), line)
            queue.within.append(inner)

    def _random_detect(self, queue: Queue, policy: Policy) -> None:
        """A policy: gred with a virtual queue for each precedence, as intended, with one average."""
        text = (
            "VyOS chooses gred's virtual queue by tcindex, which is gone from the kernel: there all packets "
            "get the curve of precedence 0; here precedences have their own, as intended"
        )
        self._account.find("W17", policy.line, text)
        limits = []
        for p in range(8):
            entry = policy.classes.get(str(p)) or Class(str(p), policy.line)
            curve, limit = self._precedence(queue, entry, p)
            limits.append(limit)
            if curve is not None:
                own = Quantity(limit, Unit.BYTES, entry.line, curve.how, text="queue-limit")
                queue.curves.append(Drop(Selector(f"precedence {p}", units.of_precedence(p)), curve, own))
        most = max(limits)
        queue.limit = Quantity(most, Unit.BYTES, policy.line, How.DEFAULT, text="the largest queue-limit")
        queue.curves = [
            replace(drop, limit=None) if drop.limit is not None and drop.limit.number >= most else drop
            for drop in queue.curves
        ]

    def _red(self, queue: Queue, entry: Class) -> None:
        """A class with `queue-type random-detect`: red with the values of precedence 0."""
        text = f"class {queue.name}: red without `bandwidth`: idle time is at 10 Mbit/s"
        self._account.find("W02", entry.line, text)
        curve, limit = self._precedence(queue, entry, 0)
        queue.limit = Quantity(limit, Unit.BYTES, entry.line, How.DEFAULT, text="4 max")
        if curve is not None:
            queue.curves = [Drop(Selector("all"), curve)]

    def _precedence(self, queue: Queue, entry: Class, p: int) -> tuple[Curve | None, float]:
        """The curve of a precedence and the limit of its virtual queue, in bytes."""
        found = {key: entry.get(key) for key in sorted(THRESHOLDS & set(entry.values))}
        given = {key: units.whole(value) for key, (value, _) in found.items()}
        for key, (value, line) in found.items():
            if not given[key]:
                self._bad(key, value, line)
        size = given.get("average-packet") or AVERAGE_PACKET
        most = given.get("maximum-threshold") or MAX_THRESHOLD
        least = given.get("minimum-threshold")
        least = (9 + p) * most // MAX_THRESHOLD if least is None else least
        limit = float((given.get("queue-limit") or 4 * most) * size)
        chance = 1 / (given.get("mark-probability") or MARK_PROBABILITY)
        if least > most:
            self._account.find(
                "W16", entry.line, f"precedence {p}: min {least} is above max {most}; left out"
            )
            return None, limit
        how = How.CONFIGURED if given else How.DEFAULT
        said = f"packets of {size} bytes"
        low = Quantity(least * size, Unit.BYTES, entry.line, how, text=said)
        high = Quantity(most * size, Unit.BYTES, entry.line, how, text=said)
        if p == 0:
            exponent = tc_units.wlog(least * size, (2 * least + most) // 3, size)
            if exponent is not None:
                queue.average = Average(2.0**-exponent, entry.line, How.DEFAULT, f"Wlog {exponent}")
            queue.mean_packet = Quantity(size, Unit.BYTES, entry.line, how, text=f"average-packet {size}")
        return Curve.ramp(low, high, chance, entry.line, how), limit


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a configuration."""
    return Reader(source, account).read()
