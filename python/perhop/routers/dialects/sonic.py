"""SONiC's config_db: JSON whose values are all text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perhop.routers import model, units
from perhop.routers.curves import COLORS
from perhop.routers.dialect import Dialect
from perhop.routers.model import Ecn, How, Match, Port, PortQueue, Quantity, Rate, RateUnit, Selector, Unit
from perhop.routers.source import Finding
from perhop.routers.syntax import jsontree
from perhop.routers.syntax.jsontree import NOTHING, Node

if TYPE_CHECKING:
    from perhop.routers.source import Account, Source

TABLES = {
    "WRED_PROFILE", "SCHEDULER", "QUEUE", "DSCP_TO_TC_MAP", "TC_TO_QUEUE_MAP", "PORT_QOS_MAP", "PORT",
}  # fmt: skip
MAPS = ("tc_to_queue_map", "dscp_to_tc_map")
"""Keys that bind maps to a port."""
CHOICES = {"dot1p_to_tc_map", "mpls_tc_to_tc_map", "dscp_to_fc_map", "exp_to_fc_map"}
"""Further maps that choose queues; beside `dscp_to_tc_map` they are for packets without a codepoint."""
PAUSES = {"pfc_enable", "pfcwd_sw_enable", "pfc_to_queue_map", "pfc_to_pg_map", "tc_to_pg_map"}
"""Keys of priority flow control and of shared buffers."""
NAMES = {
    "ecn_none": (), "ecn_green": ("green",), "ecn_yellow": ("yellow",), "ecn_red": ("red",),
    "ecn_green_yellow": ("green", "yellow"), "ecn_green_red": ("green", "red"),
    "ecn_yellow_red": ("yellow", "red"), "ecn_all": ("green", "yellow", "red"),
}  # fmt: skip
"""The colors that each value of `ecn` covers."""


class _Reader:
    def __init__(self, source: Source, account: Account) -> None:
        self._account = account
        self._tables: dict[str, Node] = {}
        for index, text in enumerate(source.texts):
            root = jsontree.read(text, source.first(index), account)
            for name, table in root.pairs():
                place = root.keys[name]
                if name in TABLES and table.members is not None:
                    self._tables[name] = table
                    account.comment(place)
                    account.understand(*table.lines())
                    continue
                why = "not about queues"
                if name.startswith(("BUFFER", "DYNAMIC", "LOSSLESS")):
                    why = "shared buffers"
                    account.find("W09", place, f"{name}: shared and dynamic buffers are not simulated")
                account.find("W13", place, f"table {name}: {why}")
                for line in sorted(set(table.lines()) - {place}):
                    account.ignore(line, why)

    def _table(self, name: str) -> Node:
        return self._tables.get(name, NOTHING)

    def read(self) -> list[Port]:
        """A port for each one that QUEUE names."""
        ports: dict[str, Port] = {}
        table = self._table("QUEUE")
        for key, entry in table.pairs():
            place = table.keys[key]
            names, _, indices = key.rpartition("|")
            numbers = _range(indices)
            if not names or numbers is None:
                self._account.find("W13", place, f"QUEUE: not understood: `{key}`")
                continue
            for whole in names.split(","):
                name = whole.rpartition("|")[2]
                port = ports.setdefault(name, Port(name, place, default_name="other"))
                port.lines.update({place, *entry.lines()})
                port.queues += [self._queue(port, number, entry, place) for number in numbers]
        for port in ports.values():
            self._order(port)
            self._speed(port)
            self._bound(port)
        if not ports:
            ports = self._profiles()
        return list(ports.values())

    def _profiles(self) -> dict[str, Port]:
        """Profiles that no queue uses, each as a port of its name."""
        result = {}
        table = self._table("WRED_PROFILE")
        for name, node in table.pairs():
            place = table.keys[name]
            self._account.find("W15", place, f"WRED profile {name} is used by no queue")
            port = Port(name, place)
            port.lines.update({place, *node.lines()})
            queue = PortQueue("all", place)
            self._wred(queue, node, place)
            port.queues = [queue]
            result[name] = port
        return result

    def _speed(self, port: Port) -> None:
        """The rate of a port's link, in Mbit/s."""
        table = self._table("PORT")
        entry = table.get(port.name)
        if not entry:
            return
        port.lines.update({table.keys[port.name], entry.line})
        for key, member in entry.pairs():
            mbps = units.number(member.text.strip()) if key == "speed" else None
            if mbps:
                port.rate = Rate(mbps * 1e6, line=member.line, text=f"speed {member.text.strip()}, in Mbit/s")
                port.lines.add(member.line)
            elif member.line != entry.line:
                self._account.find("W13", member.line, f"PORT: not about queues: `{key}`")

    def _bound(self, port: Port) -> None:
        """Read from `PORT_QOS_MAP` the shaper of all queues of a port, and report pauses."""
        table = self._table("PORT_QOS_MAP")
        entry = table.get(port.name) or table.get("global")
        port.lines.update(entry.lines())
        for key, member in entry.pairs():
            if key == "scheduler":
                found = self._reference("SCHEDULER", member.text.strip(), member.line)
                if found is not None:
                    port.lines.update({self._tables["SCHEDULER"].keys[found[0]], *found[1].lines()})
                    whole = PortQueue(f"port {port.name}", member.line)
                    self._scheduler(whole, found[1])
                    port.shaper, port.shaper_burst = whole.ceiling, whole.ceiling_burst
            elif key in PAUSES:
                text = f"PORT_QOS_MAP: `{key} {member.text}`: pauses of lossless queues are not simulated"
                self._account.find("W09", member.line, text)
            elif key in CHOICES and not self._value(entry, "dscp_to_tc_map")[0]:
                text = f"PORT_QOS_MAP: `{key}` chooses queues by something else than codepoints"
                self._account.miss_part(member.line, f"{text}; no effect here")
            elif key not in MAPS:
                self._account.find("W13", member.line, f"PORT_QOS_MAP: `{key}` has no effect here")

    def _order(self, port: Port) -> None:
        """Queue 0 takes what no map names, as traffic class 0: it comes last."""
        port.queues.sort(key=lambda queue: int(queue.name), reverse=True)
        last = port.queues[-1] if len(port.queues) > 1 else None
        if last is not None and (last.name == "0" or last.match.unknown):
            last.match = Match(None, (), last.match.line)

    def _value(self, node: Node, key: str) -> tuple[str, int]:
        found = node.get(key)
        return found.text.strip(), found.line

    def _reference(self, table: str, text: str, line: int) -> tuple[str, Node] | None:
        """An entry of a table by name; old files write `[TABLE|NAME]`."""
        name = text.strip("[]").rpartition("|")[2]
        entry = (self._table(table).members or {}).get(name)
        if entry is None or entry.members is None:
            self._account.find("W15", line, f"{table} {name} is not defined")
            return None
        return name, entry

    def _queue(self, port: Port, number: int, entry: Node, place: int) -> PortQueue:
        queue = PortQueue(str(number), place, match=self._match(port, number, place))
        scheduler, line = self._value(entry, "scheduler")
        found = self._reference("SCHEDULER", scheduler, line) if scheduler else None
        if found is not None:
            port.lines.update({self._tables["SCHEDULER"].keys[found[0]], *found[1].lines()})
            self._scheduler(queue, found[1])
        profile, line = self._value(entry, "wred_profile")
        wred = self._reference("WRED_PROFILE", profile, line) if profile else None
        if wred is not None:
            port.lines.update({self._tables["WRED_PROFILE"].keys[wred[0]], *wred[1].lines()})
            self._wred(queue, wred[1], line)
        for key, member in entry.pairs():
            if key not in {"scheduler", "wred_profile"}:
                self._account.miss_part(member.line, f"QUEUE: not understood: `{key}`")
        text = f"queue {number}: buffers are shared between queues; a fixed limit here"
        self._account.find("W09", place, text)
        return queue

    def _match(self, port: Port, number: int, place: int) -> Match:
        """The codepoints of a queue, through its traffic classes."""
        bound = self._table("PORT_QOS_MAP")
        own = bound.get(port.name) or bound.get("global")
        nodes = []
        for key, table in ((key, self._table(key.upper())) for key in MAPS):
            name = self._value(own, key)[0].strip("[]").rpartition("|")[2]
            first = next((node for _, node in table.pairs()), NOTHING)
            nodes.append((table.get(name) if name else NOTHING) or first)
        queues, classes = nodes
        if not queues or not classes:
            return Match(None, ((place, f"queue {number}"),), place)
        if not all(self._value(own, key)[0] for key in MAPS):
            text = f"port {port.name}: PORT_QOS_MAP does not bind both maps; those that stand first are used"
            unsaid = Finding(port.line, "W15", text)
            port.findings += [] if unsaid in port.findings else [unsaid]
        port.lines.update([*queues.lines(), *classes.lines()])
        wanted = {tc for tc, node in queues.pairs() if node.text.strip() == str(number)}
        codes = {units.codepoint(code.strip()) for code, tc in classes.pairs() if tc.text.strip() in wanted}
        if not codes - {None}:
            return Match(None, ((place, f"queue {number}, to which no codepoint is mapped"),), place)
        return Match(frozenset(code for code in codes if code is not None), (), place)

    def _scheduler(self, queue: PortQueue, node: Node) -> None:
        kind, line = self._value(node, "type")
        weight, place = self._value(node, "weight")
        known = {"type", "weight", "meter_type", "cir", "pir", "cbs", "pbs", "priority"}
        if kind == "STRICT":
            queue.level, queue.level_line = 0, line
        elif kind not in {"", "WRR", "DWRR"}:
            self._account.miss_part(line, f"SCHEDULER: not understood: `type {kind}`")
        elif units.number(weight):
            queue.share = Rate(float(weight), RateUnit.WEIGHT, place, text=f"{kind or 'WRR'} weight {weight}")
        queue.guarantee, _ = self._rate(node, "cir", "cbs")
        queue.ceiling, queue.ceiling_burst = self._rate(node, "pir", "pbs")
        if queue.guarantee is not None and queue.level is not None:
            self._strict(queue)
        for key, member in node.pairs():
            if key not in known:
                self._account.miss_part(member.line, f"SCHEDULER: not understood: `{key}`")
            elif key == "cbs" and queue.level is None:
                text = f"`{key} {member.text}`: bursts of a queue's guaranteed rate are not simulated"
                self._account.find("W10", member.line, text)

    def _strict(self, queue: PortQueue) -> None:
        """The least rate of a strict queue, which needs none: its limit, if it has no other one."""
        sure, queue.guarantee = queue.guarantee, None
        if sure is None:
            return
        text = f"queue {queue.name}: `{sure.text}` is a guarantee (SAI), which a strict queue does not need"
        if queue.ceiling is None:
            queue.ceiling = sure
            self._account.find("W06", sure.line, f"{text}; here it is its limit, as `pir`; confirm it")
        else:
            self._account.find("W13", sure.line, f"{text}; no effect beside `{queue.ceiling.text}`")

    def _rate(self, node: Node, key: str, burst: str) -> tuple[Rate | None, Quantity | None]:
        """The least rate (`cir`) or the most (`pir`) of a scheduler, with its burst (SAI, orchagent)."""
        (text, line), (size, place) = self._value(node, key), self._value(node, burst)
        value, amount = units.number(text), units.number(size)
        if not value:
            return None, None
        if self._value(node, "meter_type")[0] == "packets":
            rate = Rate(value, RateUnit.PACKETS, line, text=f"{key} {text} packets/s")
            unit = Unit.PACKETS
        else:
            rate = Rate(value * 8, line=line, text=f"{key} {text} bytes/s")
            unit = Unit.BYTES
        return rate, Quantity(amount, unit, place, text=f"{burst} {size}") if amount else None

    def _wred(self, queue: PortQueue, node: Node, place: int) -> None:
        known = {"ecn"}
        ecn, ecn_line = self._value(node, "ecn")
        covered: tuple[str, ...] = NAMES.get(ecn or "ecn_none", ())
        if ecn and ecn not in NAMES:
            self._account.miss_part(ecn_line, f"WRED_PROFILE: not understood: `ecn {ecn}`")
        enabled = []
        for color in COLORS:
            parts = ("min_threshold", "max_threshold", "drop_probability")
            keys = [f"wred_{color}_enable", *(f"{color}_{part}" for part in parts)]
            known |= set(keys)
            on, place_of_on = self._value(node, keys[0])
            if on.lower() not in {"", "true", "false"}:
                self._account.miss_part(place_of_on, f"WRED_PROFILE: not understood: `{keys[0]} {on}`")
            (low, line), (high, _), (most, _) = (self._value(node, key) for key in keys[1:])
            if on.lower() != "true" and (color not in covered or not (low or high)):
                continue
            if on.lower() == "true":
                enabled.append(color)
            least, largest = units.whole(low) if low else None, units.whole(high) if high else None
            percent = units.number(most) if most else 100.0
            if largest is None or percent is None or not 0 < percent <= 100 or (least or 0) > largest:
                text = f"{color}: thresholds or probability missing or wrong; left out"
                self._account.find("W13", line or place, text)
                continue
            how = How.CONFIGURED if most else How.DEFAULT
            if not most:
                self._account.find("W04", line or place, f"{color}: no drop probability; 100 %, the default")
            texts = (f"{color}_min_threshold {low}", f"{color}_max_threshold {high}")
            quantities = [
                Quantity(float(n or 0), Unit.BYTES, line or place, how, text=t)
                for n, t in zip((least, largest), texts, strict=True)
            ]
            curve = model.Curve.ramp(quantities[0], quantities[1], percent / 100, line or place)
            marked = Ecn.BELOW_MAX if color in enabled else Ecn.ONLY
            mode = marked if color in covered else Ecn.OFF
            queue.curves.append(model.Drop(Selector(color, None, color), curve, ecn=mode))
        for key, member in node.pairs():
            if key not in known:
                self._account.miss_part(member.line, f"WRED_PROFILE: not understood: `{key}`")
        if not queue.curves:
            return
        text = "orchagent writes weight 0, which is instantaneous on most chips; so here"
        self._account.find("W02", place, f"queue {queue.name}: {text}")
        queue.average = model.Average(1.0, place, How.DEFAULT, "weight 0")
        modes = {drop.ecn for drop in queue.curves}
        queue.ecn, queue.ecn_line = (next(iter(modes)) or Ecn.OFF) if len(modes) == 1 else Ecn.OFF, ecn_line
        if any(drop.selector.color != "green" for drop in queue.curves):
            text = f"queue {queue.name}: no table maps codepoints to colors: all are green without a policer"
            self._account.find("W07", place, text)


def _range(text: str) -> list[int] | None:
    found = re.fullmatch(r"([0-9]{1,2})(?:-([0-9]{1,2}))?", text.strip())
    if found is None:
        return None
    first = int(found[1])
    return list(range(first, int(found[2] or first) + 1)) or None


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a configuration."""
    return _Reader(source, account).read()


def score(source: Source) -> float:
    """Count the names of tables that a file has."""
    return 9.0 * sum(f'"{table}"' in source.text for table in TABLES)


DIALECTS = (Dialect("sonic", "SONiC config_db", score=score, read=read),)
