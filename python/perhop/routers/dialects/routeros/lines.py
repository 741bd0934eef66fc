"""MikroTik RouterOS: what `/export` prints, as entries with their keys and lines, and the marks of packets.

A line that ends with a backslash goes on in the next one, whose indentation is none of the text. `/queue
tree` and `/queue/tree` (RouterOS 7) are the same menu. Source: MikroTik's manual, "Configuration Management",
section "Configuration Export and Import", "Command Line Interface", and "Mangle".
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import ALL_CODEPOINTS

if TYPE_CHECKING:
    from perhop.routers.source import Account, Source

VERBS = {"add", "set", "remove", "disable", "enable", "move", "print", "reset", "unset", "comment", "edit"}
TOKEN = re.compile(r'\[[^\]]*\]|(?:[^\s"\[\]]|"(?:[^"\\]|\\.)*")+|["\[\]]')
RATES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "bps": 1.0, "kbps": 1e3, "mbps": 1e6, "gbps": 1e9}
SIZES = {"": 1.0, "b": 1.0, "k": 1e3, "m": 1e6, "g": 1e9,
         **{f"{p}ib": 1024.0**n for n, p in enumerate(["k", "m", "g"], 1)}}  # fmt: skip
TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
END = "\ue000"
"""Marks the end of a line within a command: a character for private use, which is left out of words."""
NEUTRAL = {"action", "chain", "comment", "disabled", "passthrough", "new-packet-mark", "new-connection-mark",
           "log", "log-prefix", "new-dscp", "new-routing-mark", "new-priority", "new-mss",
           "new-ttl"}  # fmt: skip
"""Keys of a rule that are no condition."""
MARKING = {"mark-packet", "mark-connection"}


@dataclass(slots=True)
class Entry:
    """An entry of a menu: its keys with the line of each, and all its lines."""

    menu: str
    line: int
    order: int = -1
    """The place of the entry in the menu; -1 of one that is not there."""
    values: dict[str, tuple[str, int]] = field(default_factory=dict)
    lines: set[int] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    """Keys that something asked for."""

    def get(self, key: str, default: str = "") -> str:
        """The value of a key."""
        self.read.add(key)
        return self.values.get(key, (default, 0))[0]

    def place(self, key: str) -> int:
        """The line of a key; of the entry, if it has none."""
        return self.values.get(key, ("", self.line))[1]

    def has(self, key: str) -> bool:
        """Whether a key is set."""
        return key in self.values

    def unread(self, *known: str) -> list[tuple[str, tuple[str, int]]]:
        """Keys with their values that nothing asked for, but for some and those that only name the entry."""
        left = [key for key in self.values if key not in self.read and key not in known]
        return [(key, self.values[key]) for key in left if self.values[key][1]]

    def say(self, account: Account, code: str, key: str, said: str) -> None:
        """Report the value of a key."""
        account.find(code, self.place(key), f"{self.name}: `{key}={self.get(key)}`{said}")

    @property
    def name(self) -> str:
        """The name of the entry."""
        return self.get("name")

    @property
    def off(self) -> bool:
        """Whether it is disabled."""
        return self.get("disabled") in {"yes", "true"}


class Menus:
    """The entries of each menu, in their order."""

    def __init__(self, source: Source, account: Account, known: frozenset[str]) -> None:
        """Menus that are not known are reported as not about queues."""
        self._account = account
        self._known = known
        self.entries: dict[str, list[Entry]] = {menu: [] for menu in known}
        self._valued: dict[tuple[str, str, str], list[Entry]] = {}
        """The entries that had a value, in their order, by menu, key and value."""
        self._menu = ""
        for numbers, text in _logical(source):
            if not text.strip():
                continue
            if text.lstrip().startswith("#"):
                account.comment(*numbers)
            elif not self._command(numbers, text.strip()):
                account.ignore_whole(numbers, missed=self._menu.startswith("queue"))

    def _command(self, numbers: list[int], text: str) -> bool:
        tokens = [
            (word, numbers[min(text.count(END, 0, found.start()), len(numbers) - 1)])
            for found in TOKEN.finditer(text)
            if (word := str(found[0]).replace(END, ""))
        ]
        if not tokens:
            return True
        words = [token for token, _ in tokens]
        if words[0].startswith("/"):
            path: list[str] = []
            while words and words[0] not in VERBS and "=" not in words[0] and not words[0].startswith("["):
                parts = [part for part in words[0].split("/") if part]
                if parts and parts[-1] in VERBS:
                    path += parts[:-1]
                    words[0] = parts[-1]
                    break
                path += parts
                words, tokens = words[1:], tokens[1:]
            self._menu = " ".join(path)
            if not words:
                if self._menu in self._known:
                    self._account.comment(*numbers)
                else:
                    self._account.ignore_whole(numbers, "not about queues")
                return True
            tokens = [(words[0], tokens[0][1]), *tokens[1:]]
        elif f"{self._menu} {words[0]}" in self._known and len(words) > 1:
            outer, self._menu = self._menu, f"{self._menu} {words[0]}"
            done = self._verb(numbers, tokens[1:])
            self._menu = outer
            return done
        if self._menu.startswith("queue ") and self._menu not in self._known:
            return False
        if self._menu not in self._known:
            if self._menu:
                self._account.ignore_whole(numbers, "not about queues")
            return bool(self._menu)
        return self._verb(numbers, tokens)

    def _verb(self, numbers: list[int], tokens: list[tuple[str, int]]) -> bool:
        verb, rest = tokens[0][0], tokens[1:]
        if verb not in {"add", "set"}:
            return False
        listed = self.entries[self._menu]
        entry = Entry(self._menu, numbers[0])
        if verb == "set":
            keys = [token for token, _ in rest if "=" not in token or token.startswith("[")]
            rest = [(token, line) for token, line in rest if token not in keys]
            own = {token.partition("=")[0]: _plain(token.partition("=")[2]) for token, _ in rest}
            found = self._found(keys, own)
            if found is None:
                return False
            entry = found
        if any("=" not in token for token, _ in rest):
            return False
        for token, line in rest:
            key, _, value = token.partition("=")
            before = entry.values.get(key)
            if before is not None and before[0] != _plain(value):
                text = f"`{key}={before[0]}` is replaced by `{key}={_plain(value)}` further down"
                self._account.find("W17", before[1], text)
            entry.values[key] = (_plain(value), line)
        entry.lines.update(numbers)
        self._account.understand(*numbers)
        if entry.order < 0:
            entry.order = len(listed)
            listed.append(entry)
        for key, (value, _) in entry.values.items():
            had = self._valued.setdefault((self._menu, key, value), [])
            at = bisect.bisect_left(had, entry.order, key=lambda one: one.order)
            if at == len(had) or had[at] is not entry:
                had.insert(at, entry)
        return True

    def _found(self, keys: list[str], own: dict[str, str]) -> Entry | None:
        """The entry that `set` changes, or a new one with what names it."""
        if len(keys) != 1:
            return None
        wanted: dict[str, str] = {}
        if keys[0].startswith("["):
            inner = [m[0] for m in TOKEN.finditer(keys[0].strip("[] "))]
            inner = [word for word in inner if word not in {"find", "where"}]
            if not inner or any("=" not in word for word in inner):
                return None
            wanted = {w.partition("=")[0]: _plain(w.partition("=")[2]) for w in inner}
        elif re.fullmatch(r"\*?[0-9A-Fa-f]{1,4}", keys[0]) and ("name" in own or "interface" in own):
            wanted = {key: own[key] for key in ("name", "interface") if key in own}
        elif not re.fullmatch(r"\*?[0-9]{1,4}", keys[0]):
            wanted = {"interface" if self._menu == "queue interface" else "name": _plain(keys[0])}
        if not wanted or set(wanted) == {"default"}:
            return None
        indexed = [self._valued.get((self._menu, *item), []) for item in wanted.items() if item[1]]
        for entry in min(indexed, key=len) if indexed else self.entries[self._menu]:
            if all(entry.values.get(key, ("", 0))[0] == value for key, value in wanted.items()):
                return entry
        made = Entry(self._menu, 0)
        made.values = {key: (value, 0) for key, value in wanted.items()}
        return made


def _logical(source: Source) -> list[tuple[list[int], str]]:
    """Lines that belong together as one text, with their numbers; `END` is where a line ends."""
    result: list[tuple[list[int], str]] = []
    numbers: list[int] = []
    text = ""
    for number, raw in source.numbered():
        part = raw.lstrip() if numbers else raw
        numbers.append(number)
        if part.endswith("\\") and not part.lstrip().startswith("#"):
            text += part[:-1] + END
            continue
        result.append((numbers, text + part))
        numbers, text = [], ""
    if numbers:
        result.append((numbers, text))
    return [(numbers, text.replace(f" {END}", f"{END} ")) for numbers, text in result]


def _plain(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == '"':
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    return value


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
