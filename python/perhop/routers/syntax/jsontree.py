"""JSON with line numbers; total: damaged text gives the values before the damage."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perhop.routers.source import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perhop.routers.source import Account

TOKEN = re.compile(r'\s*(?:([{}\[\],:])|("(?:[^"\\\n]|\\.)*")|([^\s{}\[\],:"]+)|("))')
STRUCTURE = re.compile(r'(?:[\s{}\[\],]|"[^"]*"\s*:\s*[\[{])*')
DEEPEST = 60
MOST_VALUES = 20
"""Values on a line up to which its verbatim report says enough."""


@dataclass(slots=True)
class Node:
    """A value with its line: an object, a list, or a scalar as text. `NOTHING` is false: it is not there."""

    line: int
    members: dict[str, Node] | None = None
    items: list[Node] | None = None
    text: str = ""
    keys: dict[str, int] = field(default_factory=dict)
    """The lines of an object's keys."""
    quoted: bool = False

    def __bool__(self) -> bool:
        """Whether the value is there."""
        return self.line > 0

    def get(self, *path: str) -> Node:
        """A value within objects, by keys; a namespace before `:` does not count."""
        node = self
        for key in path:
            members = node.members or {}
            named = (member for name, member in members.items() if name.rpartition(":")[2] == key)
            node = members.get(key) or next(named, NOTHING)
        return node

    def objects(self, *path: str) -> Iterator[Node]:
        """The objects in a list within objects."""
        yield from (item for item in self.get(*path).items or () if item.members is not None)

    def pairs(self) -> Iterator[tuple[str, Node]]:
        """The members of an object."""
        yield from (self.members or {}).items()

    def lines(self) -> Iterator[int]:
        """The lines of the value, of its keys, and of all values in it."""
        yield from (line for line in (self.line, *self.keys.values()) if line)
        for _, member in self.pairs():
            yield from member.lines()
        for item in self.items or ():
            yield from item.lines()


NOTHING = Node(0)


class _Parser:
    def __init__(self, text: str, first: int) -> None:
        self._tokens = self._split(text, first)
        self._at = 0
        self.damage = 0
        """The line of the first thing that is no JSON; 0: none."""

    def _split(self, text: str, first: int) -> list[tuple[str, int]]:
        result = []
        line, at, end = first, 0, len(text)
        while at < end:
            found = TOKEN.match(text, at)
            if found is None:
                break
            start = found.end() - len(found[0].lstrip())
            line += text.count("\n", at, start)
            result.append((found[0].strip(), line))
            at = found.end()
        return result

    def _next(self) -> tuple[str, int]:
        if self._at >= len(self._tokens):
            return "", self._tokens[-1][1] if self._tokens else 1
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _peek(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _damaged(self, line: int) -> None:
        self.damage = self.damage or line

    def document(self) -> Node | None:
        """The first value; text behind it is damage."""
        root = self.value()
        if root is not None and not self.damage and self._peek():
            self._damaged(self._next()[1])
        return root

    def value(self, depth: int = 0) -> Node | None:
        """The next value."""
        token, line = self._next()
        if depth > DEEPEST or token in {"", "}", "]", ",", ":"}:
            self._damaged(line)
            return None
        if token == "{":
            return self._object(line, depth)
        if token == "[":
            return self._list(line, depth)
        return Node(line, text=_string(token), quoted=token.startswith('"'))

    def _object(self, line: int, depth: int) -> Node:
        node = Node(line, members={})
        while not self.damage:
            token, place = self._next()
            if token == "}":
                break
            if token == ",":
                continue
            if token == "" or not token.startswith('"') or self._peek() != ":":
                self._damaged(place)
                break
            self._next()
            member = self.value(depth + 1)
            if member is not None and node.members is not None:
                name = _string(token)
                node.members[name] = member
                node.keys[name] = place
        return node

    def _list(self, line: int, depth: int) -> Node:
        node = Node(line, items=[])
        while not self.damage:
            if self._peek() == "]":
                self._next()
                break
            if self._peek() == ",":
                self._next()
                continue
            item = self.value(depth + 1)
            if item is not None and node.items is not None:
                node.items.append(item)
        return node


def _string(token: str) -> str:
    if not token.startswith('"'):
        return token
    try:
        return str(json.loads(token))
    except ValueError:
        return token.strip('"')


def read(text: str, first: int, account: Account) -> Node:
    """The first value of a text, whose first line has this number; `NOTHING` if there is none.

    Damage is reported, and so are lines with more values than a verbatim report can tell apart; lines that
    only open or close objects and lists are comments.
    """
    parser = _Parser(text, first)
    root = parser.document()
    if parser.damage:
        account.find("W13", parser.damage, "no JSON from here on")
    for number, line in enumerate(lines_of(text), first):
        if STRUCTURE.fullmatch(line):
            account.comment(number)
        elif len(re.findall(r'"\s*:', line)) > MOST_VALUES:
            said = "many values on one line: those without effect are not named; format it"
            account.find("W13", number, f"{said} (python -m json.tool)")
    return root or NOTHING
