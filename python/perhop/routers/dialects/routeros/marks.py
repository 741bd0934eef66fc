"""MikroTik RouterOS: which codepoints have which packet mark, by the rules of the mangle.

Source: MikroTik's manual, "Mangle": rules act in their order; `passthrough=no` ends a packet's way through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import ALL_CODEPOINTS

if TYPE_CHECKING:
    from perhop.routers.dialects.routeros.lines import Entry
    from perhop.routers.source import Account

NEUTRAL = {"action", "chain", "comment", "disabled", "passthrough", "new-packet-mark", "new-connection-mark",
           "log", "log-prefix", "new-dscp", "new-routing-mark", "new-priority", "new-mss",
           "new-ttl"}  # fmt: skip
"""Keys of a rule that are no condition."""
MARKING = {"mark-packet", "mark-connection"}


class Marks:
    """The marks of packets that leave by an interface."""

    def __init__(self, rules: list[Entry], interface: str, account: Account) -> None:
        """Follows the rules in their order, for packets that leave by this interface."""
        self._account = account
        self._codes: dict[str, set[int]] = {}
        self._unknown: dict[str, list[tuple[int, str]]] = {}
        self._connections: dict[str, list[tuple[int, str]]] = {}
        """Connection marks whose conditions are not known, with these."""
        self._lines: dict[str, set[int]] = {}
        self.lines: set[int] = set()
        """The lines of rules that set marks which something asked for."""
        marks: dict[int, str] = {}
        connections: dict[int, str] = {}
        done: set[int] = set()
        for rule in rules:
            self._rule(rule, interface, marks, connections, done)
        for code in sorted(ALL_CODEPOINTS):
            self._codes.setdefault(marks.get(code, "no-mark"), set()).add(code)

    def of(self, mark: str) -> tuple[frozenset[int], list[tuple[int, str]]]:
        """The codepoints of a packet mark, and conditions beside codepoints of rules that set it."""
        self.lines |= self._lines.get(mark, set())
        return frozenset(self._codes.get(mark, ())), list(self._unknown.get(mark, ()))

    def _rule(
        self, rule: Entry, interface: str, marks: dict[int, str], connections: dict[int, str], done: set[int]
    ) -> None:
        action = rule.get("action", "accept")
        if action not in MARKING:
            self._account.ignore_whole(rule.lines, "marks no packets for queues")
            return
        packet = action == "mark-packet"
        mark = rule.get("new-packet-mark" if packet else "new-connection-mark")
        codes = set(ALL_CODEPOINTS) - done
        unknown: list[tuple[int, str]] = []
        needed: set[str] = set()
        for key in rule.values:
            value = rule.get(key)
            if key in NEUTRAL:
                continue
            if key == "dscp" and (found := units.codepoint(value.removeprefix("!"))) is not None:
                codes &= ALL_CODEPOINTS - {found} if value.startswith("!") else {found}
            elif key == "out-interface" and interface and not value.startswith("!"):
                if value != interface:
                    return
            elif key == "connection-mark" and value in self._connections:
                unknown += self._connections[value]
                needed.add(value)
            elif key == "connection-mark":
                codes &= {c for c in ALL_CODEPOINTS if connections.get(c, "no-mark") == value}
                needed.add(value)
            elif key == "packet-mark":
                codes &= {c for c in ALL_CODEPOINTS if marks.get(c, "no-mark") == value}
            else:
                unknown.append((rule.place(key), f"{key}={value}"))
        lines = rule.lines.union(*(self._lines.get(f"connection {name}", set()) for name in needed))
        self._lines.setdefault(mark if packet else f"connection {mark}", set()).update(lines)
        if unknown:
            known = codes != ALL_CODEPOINTS - done
            if not known and packet:
                self._unknown.setdefault(mark, []).extend(unknown)
                return
            if not known:
                self._connections.setdefault(mark, []).extend(unknown)
                return
            for line, text in unknown:
                said = f"mark {mark}: `{text}` is no codepoint; all packets of its codepoints have it here"
                self._account.find("W13", line, said)
        for code in codes:
            (marks if packet else connections)[code] = mark
        if rule.get("passthrough", "yes") == "no":
            done |= codes
