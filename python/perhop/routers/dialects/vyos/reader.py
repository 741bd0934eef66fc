"""VyOS: policies of `qos` (before 1.4 `traffic-policy`), which it turns into qdiscs of Linux."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from perhop.routers import linux, model, units
from perhop.routers.dialects.vyos.policies import CURVES, IGNORED, TIMES, Class, Policies, Policy
from perhop.routers.model import How, Match, Port, PortQueue, Quantity, Rate, RateUnit, TreeClass, Unit
from perhop.routers.units import quoted

if TYPE_CHECKING:
    from perhop.routers.model import Action
    from perhop.routers.source import Account, Source

AVERAGE_PACKET = 1024
MAX_THRESHOLD = 18
MARK_PROBABILITY = 10
THRESHOLDS = {"average-packet", "maximum-threshold", "minimum-threshold", "queue-limit", "mark-probability"}
LATENCY_S = 0.05
QUANTUM = 1514
"""Bytes of a class's turn: VyOS gives htb the value of `codel-quantum`."""
MOST_PRIO = 7
EMULATED = {
    "delay": "network-delay", "loss": "packet-loss", "corruption": "packet-corruption",
    "reordering": "packet-reordering", "duplicate": "packet-duplicate",
}  # fmt: skip
"""The leaves of `network-emulator`, each with its name in VyOS 1.3."""
SHAPERS = {"shaper", "shaper-hfsc"}
KNOWN = {"bandwidth", "ceiling", "burst", "priority", "codel-quantum", "queue-type", "queue-limit",
         "quantum", "latency", "target", "interval", "flows", "rtt", "exceed", "not-exceed", *EMULATED,
         *EMULATED.values(), *THRESHOLDS}  # fmt: skip
"""_Leaves that some policy or class has."""
ACTIONS = {"exceed": "drop", "not-exceed": "ok"}
"""The actions of a limiter, and their defaults."""
DROPS = {"drop", "shot"}


class _Leaves:
    def __init__(self, account: Account) -> None:
        self._account = account

    def fill(
        self, queue: PortQueue, entry: Class, policy: Policy | None, kind: str, *, bands: bool = False
    ) -> None:
        """The queue of a class or of a policy; `bands`: a scheduler within the class is simulated."""
        line = entry.get("queue-type", queue.line)[1]
        match kind:
            case "fq-codel":
                self._fq_codel(queue, entry, line)
            case "cake":
                self._cake(queue, entry)
            case "random-detect" if policy is not None:
                self._random_detect(queue, policy)
            case "random-detect":
                self._red(queue, entry)
            case "priority" if bands:
                self._bands(queue, entry, line)
            case _:
                self._fifo(queue, entry, kind, line)

    def _fq_codel(self, queue: PortQueue, entry: Class, line: int) -> None:
        limit = entry.packets("queue-limit", 10240, queue.name)
        keys = [("limit", quoted(f"{limit.number:.0f}p"), limit.line or line)]
        for key in ("target", "interval"):
            value, place = entry.get(key)
            time = linux.time(value) if re.search("[a-z]", value) else (units.number(value) or 0) / 1000
            if value and time:
                keys.append((key, quoted(f"{units.plain(time * 1000, 6)}ms"), place))
            elif value:
                entry.bad(key, value, place)
        quantum, place = entry.get("codel-quantum")
        if units.whole(quantum):
            keys.append(("quantum", quoted(f"{quantum}B"), place))
        flows, place = entry.get("flows")
        if 1 <= (units.whole(flows) or 0) <= linux.MOST_FLOWS:
            keys.append(("flows", flows, place))
        elif flows:
            entry.bad("flows", flows, place)
        keys.append(("ecn", "false", line))  # VyOS gives `noecn`
        queue.block = model.Block("scheduler", "fq-codel", (*keys, ("law", '"linux"', line)), line)

    def _fifo(self, queue: PortQueue, entry: Class, kind: str, line: int) -> None:
        if kind not in {"fair-queue", "priority", "drop-tail", "rate-control"}:
            self._account.miss_part(line, f"not understood: `queue-type {kind}`")
        if kind in {"fair-queue", "priority"}:
            text = f"class {queue.name}: {kind} within it is not simulated; a FIFO in its place"
            self._account.find("W06", line, text)
        most = 127 if kind == "fair-queue" else 1000
        queue.limit = entry.packets("queue-limit", most, queue.name)

    def _cake(self, queue: PortQueue, entry: Class) -> None:
        """The policy `cake` (python/vyos/qos/cake.py)."""
        value, line = entry.get("rtt", entry.line)
        rtt = units.number(value) if value else linux.CAKE_RTT * 1000
        if not rtt:
            entry.bad("rtt", value, line)
        self._account.find("W06", entry.line, f"class {queue.name}: cake: {linux.CAKE_LOST}")
        rtt, bandwidth = rtt or linux.CAKE_RTT * 1000, entry.rate("bandwidth")
        queue.block = linux.cake(rtt / 1000, bandwidth, line, entry.line)

    def _bands(self, queue: PortQueue, entry: Class, line: int) -> None:
        """A class with `queue-type priority`: three bands by the TOS field, each with the limit."""
        limit = entry.packets("queue-limit", 1000, queue.name)
        for band in range(3):
            inner = PortQueue(f"{queue.name}.{band + 1}", line, limit=limit, level=band, level_line=line)
            codes = {code for code in model.ALL_CODEPOINTS if linux.band(code, linux.PRIOMAP, 3) == band}
            inner.match = Match(frozenset(codes), (), line)
            queue.within.append(inner)

    def _random_detect(self, queue: PortQueue, policy: Policy) -> None:
        """A policy: gred with a virtual queue for each precedence, as intended, with one average."""
        text = (
            "VyOS chooses gred's virtual queue by tcindex, which is gone from the kernel: there all packets "
            "get the curve of precedence 0; here precedences have their own, as intended"
        )
        self._account.find("W17", policy.line, text)
        limits = []
        for p in range(8):
            entry = policy.classes.get(str(p)) or Class(str(p), policy.line, self._account)
            curve, limit = self._precedence(queue, entry, p)
            limits.append(limit)
            if curve is not None:
                own = Quantity(limit, Unit.BYTES, entry.line, curve.how, text="queue-limit")
                selector = model.Selector(f"precedence {p}", units.of_precedence(p))
                queue.curves.append(model.Drop(selector, curve, own))
        most = max(limits)
        queue.limit = Quantity(most, Unit.BYTES, policy.line, How.DEFAULT, text="the largest queue-limit")
        for at, drop in enumerate(queue.curves):
            if drop.limit is not None and drop.limit.number >= most:
                queue.curves[at] = replace(drop, limit=None)

    def _red(self, queue: PortQueue, entry: Class) -> None:
        """A class with `queue-type random-detect`: red with the values of precedence 0."""
        text = f"class {queue.name}: red without `bandwidth`: idle time is at 10 Mbit/s"
        self._account.find("W02", entry.line, text)
        curve, limit = self._precedence(queue, entry, 0)
        queue.limit = Quantity(limit, Unit.BYTES, entry.line, How.DEFAULT, text="4 max")
        if curve is not None:
            queue.curves = [model.Drop(model.Selector("all"), curve)]

    def _precedence(self, queue: PortQueue, entry: Class, p: int) -> tuple[model.Curve | None, float]:
        """The curve of a precedence and the limit of its virtual queue, in bytes."""
        found = {key: entry.get(key) for key in sorted(THRESHOLDS & set(entry.values))}
        given = {key: units.whole(value) for key, (value, _) in found.items()}
        for key, (value, line) in found.items():
            if not given[key]:
                entry.bad(key, value, line)
        size = given.get("average-packet") or AVERAGE_PACKET
        most = given.get("maximum-threshold") or MAX_THRESHOLD
        least = given.get("minimum-threshold")
        least = (9 + p) * most // MAX_THRESHOLD if least is None else least
        limit = float((given.get("queue-limit") or 4 * most) * size)
        chance = 1 / (given.get("mark-probability") or MARK_PROBABILITY)
        if least > most:
            text = f"precedence {p}: min {least} is above max {most}; left out"
            self._account.find("W16", entry.line, text)
            return None, limit
        how = How.CONFIGURED if given else How.DEFAULT
        said = f"packets of {size} bytes"
        low = Quantity(least * size, Unit.BYTES, entry.line, how, text=said)
        high = Quantity(most * size, Unit.BYTES, entry.line, how, text=said)
        if p == 0:
            exponent = linux.wlog(least * size, (2 * least + most) // 3, size)
            if exponent is not None:
                queue.average = model.Average(2.0**-exponent, entry.line, How.DEFAULT, f"Wlog {exponent}")
            queue.mean_packet = Quantity(size, Unit.BYTES, entry.line, how, text=f"average-packet {size}")
        return model.Curve.ramp(low, high, chance, entry.line, how), limit


class _Ports:
    def __init__(self, found: Policies, account: Account) -> None:
        self._found = found
        self._account = account
        self._leaves = _Leaves(account)

    def ports(self) -> list[Port]:
        """A port for each interface with a policy; policies that are not attached are ports of their name."""
        ports: list[Port] = []
        for interface, direction, name, statement in self._found.attached:
            policy = self._account.defined(self._found.policies, name, statement.line, "policy")
            if policy is None:
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
        groups, entry.groups = entry.groups, []
        for name, line in groups:
            group = self._account.defined(self._found.groups, name, line, "traffic match group")
            if group is None:
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
        bandwidth = policy.own.rate("bandwidth")
        shaping = {*SHAPERS, "random-detect", "rate-control", "cake", "network-emulator"}
        if policy.kind in shaping and bandwidth is not None:
            port.shaper = bandwidth
        if policy.kind == "rate-control":
            port.shaper_burst = policy.own.burst()
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
            entry.bad(name, value, line)
        for key in ("loss", "corruption"):
            name, value, line = self._emulated(entry, key)
            percent = units.number(value.removesuffix("%")) if value else None
            if value and (percent is None or percent > 100):
                entry.bad(name, value, line)
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
        queue.limit = entry.packets("queue-limit", 1000, "all")
        port.queues = [queue]

    def _emulated(self, entry: Class, key: str) -> tuple[str, str, int]:
        """The name of a leaf of an emulator in its version of VyOS, its value and its line."""
        name = EMULATED[key] if EMULATED[key] in entry.values else key
        return name, *entry.get(name)

    def _latency(self, queue: PortQueue, port: Port, entry: Class, bandwidth: Rate) -> None:
        """The limit of a token bucket: latency · rate + burst."""
        time, line = entry.time("latency")
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
                    entry.bad("quantum", value, place)
                    quantum = 1514.0
                text = f"quantum {quantum:g}"
                queue.share = Rate(max(1, round(quantum)), RateUnit.WEIGHT, place, text=text)
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
                text = f"class {entry.name}: no bandwidth, which VyOS demands"
                self._account.find("W04", entry.line, f"{text}; sure of {linux.LEAST_RATE:g} bit/s here")
                rate = Rate(linux.LEAST_RATE, RateUnit.BPS, 0, How.ASSUMED, "no bandwidth")
            ceil = self._share(entry, "ceiling", whole)
            if ceil is None:
                text = f"class {entry.name}: no ceiling: `{rate.text}` is htb's; it borrows nothing"
                self._account.find("W04", entry.line, text)
                ceil = replace(rate, how=How.DEFAULT, text="no ceiling: that of htb is the rate")
            if ceil.unit is rate.unit and rate.number > ceil.number:
                text = f"class {entry.name}: `{rate.text}` is above `{ceil.text}`, which is its rate here"
                self._account.find("W16", rate.line, text)
                rate = ceil
            made = TreeClass(entry.name, entry.line, rate, ceil, entry.burst(), queue=queue.name)
            turn = Quantity(QUANTUM, Unit.BYTES, 0, How.DEFAULT, text=f"codel-quantum {QUANTUM}")
            made.prio, made.quantum = self._prio(entry), entry.amount("codel-quantum", Unit.BYTES) or turn
            if rate.unit is RateUnit.BPS:
                queue.guarantee = rate
            root.classes.append(made)
        if policy.kind == "shaper-hfsc":
            linux.hfsc_turns(root.classes)
        of_whole = [made for made in root.classes if made.rate.unit is whole.unit]
        total = sum(made.curves.real_time if made.curves else made.rate.number for made in of_whole)
        if total > whole.number * (1 + 1e-9):
            shown = units.shown_rate(total) if whole.unit is RateUnit.BPS else f"{total:g} %"
            text = f"its classes are sure of {shown} together, above `{whole.text}`: Linux gives them that"
            self._account.find("W17", policy.line, f"policy {policy.name}: {text}")
        port.tree = [root]

    def _of_curves(self, entry: Class, whole: Rate) -> TreeClass:
        """A class of hfsc (python/vyos/qos/trafficshaper.py)."""
        sure, share, most = (self._share(entry, f"{curve} m2", whole) for curve in CURVES)
        if sure is None and share is None:
            text = f"class {entry.name}: neither realtime nor linkshare"
            self._account.find("W04", entry.line, f"{text}; sure of {linux.LEAST_RATE:g} bit/s here")
        if most is None and share is not None:
            most = replace(whole, line=0, how=How.DEFAULT, text="no upperlimit: that of the policy")
        made = linux.hfsc_class(entry.name, entry.line, (sure, share, most), self._account)
        if RateUnit.PERCENT in {rate.unit for rate in (sure, share) if rate is not None}:
            made.curves = None
        return made

    def _share(self, entry: Class, key: str, whole: Rate) -> Rate | None:
        """A rate of a class; percent is of the policy's bandwidth, and so is `auto`."""
        value, line = entry.get(key)
        if value == "auto":
            return replace(whole, line=line, text=f"{key} auto")
        found = entry.rate(key)
        if found is None or found.unit is not RateUnit.PERCENT:
            return found
        number = min(found.number, 100) * whole.number / 100
        return Rate(number, whole.unit, found.line, text=f"{found.text} of {whole.text}")

    def _prio(self, entry: Class) -> tuple[int, int] | None:
        value, line = entry.get("priority")
        found = units.whole(value) if value else None
        if value and found is None:
            entry.bad("priority", value, line)
        if found is not None and found > MOST_PRIO:
            text = f"`priority {value}` is above {MOST_PRIO}: the kernel takes {MOST_PRIO}"
            self._account.find("W16", line, text)
            found = MOST_PRIO
        return None if found is None else (found, line)

    def _unused(self, policy: Policy) -> None:
        for entry in (policy.own, *policy.classes.values()):
            for key, (value, line) in entry.values.items():
                if key in entry.read or key in IGNORED:
                    continue
                if key in KNOWN:
                    self._account.find("W13", line, f"`{key} {value}` has no effect here")
                else:
                    entry.bad(key, value, line)
            if entry.name == "default":
                for line, text in self._matched(entry).unknown:
                    self._account.find("W13", line, f"`{text}` has no effect in the default class")

    def _matched(self, entry: Class) -> Match:
        if entry.matches:
            line = entry.line
            return Match.either([Match.every(found, line) for found in entry.matches.values()], line)
        unknown = () if entry.name == "default" else ((entry.line, f"class {entry.name}"),)
        return Match(None, unknown, entry.line)

    def _meter(self, entry: Class) -> model.PortMeter | None:
        rate = entry.rate("bandwidth")
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
        return model.PortMeter("one-bucket", rate, entry.burst(), entry.line, exceed=exceed)


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a configuration."""
    return _Ports(Policies(source, account), account).ports()
