"""VyOS: policies of `qos` (before 1.4 `traffic-policy`), which it turns into qdiscs of Linux."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.dialects.vyos.policies import CURVES, IGNORED, Class, Policies, Policy
from perhop.routers.dialects.vyos.queues import THRESHOLDS, Leaves
from perhop.routers.dialects.vyos.values import TIMES, Values
from perhop.routers.linux import hfsc
from perhop.routers.model import (
    How,
    Match,
    Port,
    PortMeter,
    PortQueue,
    Quantity,
    Rate,
    RateUnit,
    TreeClass,
    Unit,
)

if TYPE_CHECKING:
    from perhop.routers.model import Action
    from perhop.routers.source import Account, Source

LATENCY_S = 0.05
QUANTUM = 1514
"""Bytes of a class's turn: VyOS gives htb the value of `codel-quantum`."""
MOST_PRIO = 7
LEAST = 1000.0
"""Bit/s of a class without the bandwidth that it needs."""
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
"""The actions of a limiter, and their defaults."""
DROPS = {"drop", "shot"}


class Ports:
    """Makes the ports of policies."""

    def __init__(self, found: Policies, account: Account) -> None:
        """Findings go to the account."""
        self._found = found
        self._account = account
        self._values = Values(account)
        self._leaves = Leaves(self._values, account)

    def ports(self) -> list[Port]:
        """A port for each interface with a policy; policies that are not attached are ports of their name."""
        ports: list[Port] = []
        for interface, direction, name, statement in self._found.attached:
            policy = self._found.policies.get(name)
            if policy is None:
                self._account.find("W15", statement.line, f"policy {name} is not defined")
                continue
            port = self._port(interface, policy, statement.line, incoming=direction == "ingress")
            port.lines.update(statement.lines)
            ports.append(port)
        used = {name for _, _, name, _ in self._found.attached}
        for name, policy in self._found.policies.items():
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
            group = self._found.groups.get(name)
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
        bandwidth = self._values.rate(policy.own, "bandwidth")
        shaping = {*SHAPERS, "random-detect", "rate-control", "cake", "network-emulator"}
        if policy.kind in shaping and bandwidth is not None:
            port.shaper = bandwidth
        if policy.kind == "rate-control":
            port.shaper_burst = self._values.burst(policy.own)
        if policy.kind in {*SHAPERS, "priority-queue", "round-robin"}:
            self._classes(port, policy)
        elif policy.kind == "network-emulator":
            self._emulator(port, policy.own)
        else:
            queue = PortQueue("all", policy.line, spacing_known=True)
            if policy.kind == "rate-control" and bandwidth is not None:
                self._latency(queue, port, policy.own, bandwidth)
            else:
                self._leaves.fill(queue, policy.own, policy, policy.kind)
            port.queues = [queue]
        return port

    def _emulator(self, port: Port, entry: Class) -> None:
        """The delay and the losses of netem (python/vyos/qos/netem.py); a wrong bit is a loss, too."""
        name, value, line = self._emulated(entry, "delay")
        delay = units.scaled(value, TIMES) if value else None
        if delay:
            port.delay = Quantity(delay, Unit.SECONDS, line, text=f"{name} {value}")
        elif value:
            self._values.bad(name, value, line)
        for key in ("loss", "corruption"):
            name, value, line = self._emulated(entry, key)
            percent = units.number(value.removesuffix("%")) if value else None
            if value and (percent is None or percent > 100):
                self._values.bad(name, value, line)
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
        queue = PortQueue("all", entry.line)
        queue.limit = self._values.packets(entry, "queue-limit", 1000, "all")
        port.queues = [queue]

    def _emulated(self, entry: Class, key: str) -> tuple[str, str, int]:
        """The name of a leaf of an emulator in its version of VyOS, its value and its line."""
        name = EMULATED[key] if EMULATED[key] in entry.values else key
        return name, *entry.get(name)

    def _latency(self, queue: PortQueue, port: Port, entry: Class, bandwidth: Rate) -> None:
        """The limit of a token bucket: latency · rate + burst."""
        time, line = self._values.time(entry, "latency")
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
            queue = PortQueue(entry.name, entry.line, spacing_known=True)
            queue.match = Match(None, (), entry.line) if entry.name == "default" else self._matched(entry)
            kind = entry.get("queue-type", 0, "fq-codel" if policy.kind in SHAPERS else "drop-tail")[0]
            self._leaves.fill(queue, entry, None, kind, bands=policy.kind != "priority-queue")
            if policy.kind == "priority-queue":
                queue.level, queue.level_line = (None if entry.name == "default" else index), entry.line
            elif policy.kind == "round-robin":
                value, place = entry.get("quantum", entry.line, "1514")
                quantum = units.number(value) or 0.0
                if not quantum:
                    self._values.bad("quantum", value, place)
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
            made = TreeClass(entry.name, entry.line, rate, ceil, self._values.burst(entry), queue=queue.name)
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
        found = self._values.rate(entry, key)
        if found is None or found.unit is not RateUnit.PERCENT:
            return found
        number = min(found.number, 100) * whole.number / 100
        return Rate(number, whole.unit, found.line, text=f"{found.text} of {whole.text}")

    def _prio(self, entry: Class) -> tuple[int, int] | None:
        value, line = entry.get("priority")
        found = units.whole(value) if value else None
        if value and found is None:
            self._values.bad("priority", value, line)
        if found is not None and found > MOST_PRIO:
            text = f"`priority {value}` is above {MOST_PRIO}: the kernel takes {MOST_PRIO}"
            self._account.find("W16", line, text)
            found = MOST_PRIO
        return None if found is None else (found, line)

    def _quantum(self, entry: Class) -> Quantity:
        """The turn of a class."""
        given = self._values.amount(entry, "codel-quantum", Unit.BYTES)
        return given or Quantity(QUANTUM, Unit.BYTES, 0, How.DEFAULT, text=f"codel-quantum {QUANTUM}")

    def _unused(self, policy: Policy) -> None:
        """Report each leaf that nothing read."""
        for entry in (policy.own, *policy.classes.values()):
            for key, (value, line) in entry.values.items():
                if key in entry.read or key in IGNORED:
                    continue
                if key in KNOWN:
                    self._account.find("W13", line, f"`{key} {value}` has no effect here")
                else:
                    self._values.bad(key, value, line)
            if entry.name == "default":
                for line, text in self._matched(entry).unknown:
                    self._account.find("W13", line, f"`{text}` has no effect in the default class")

    def _matched(self, entry: Class) -> Match:
        if entry.matches:
            return Match.either(
                [Match.every(found, entry.line) for found in entry.matches.values()], entry.line
            )
        return Match(
            None, () if entry.name == "default" else ((entry.line, f"class {entry.name}"),), entry.line
        )

    def _meter(self, entry: Class) -> PortMeter | None:
        rate = self._values.rate(entry, "bandwidth")
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
        return PortMeter("one-bucket", rate, self._values.burst(entry), entry.line, exceed=exceed)


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a configuration."""
    return Ports(Policies(source, account), account).ports()
