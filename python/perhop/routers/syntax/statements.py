"""Junos-like text as statements: the words of a leaf with those of the blocks around it.

Braces, `set` lines and JSON give the same statements, so that a reader knows one form only. Lists stand
between the words `[` and `]`. Text that ends within a block or a list is read as far as it goes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perhop.errors import PerhopError
from perhop.routers.source import START, lines_of
from perhop.routers.syntax import jsontree
from perhop.routers.syntax.jsontree import Node

if TYPE_CHECKING:
    from perhop.routers.source import Account, Source

SET = re.compile(f"{START}(?:set|delete|deactivate|activate) ")
DEEPEST = 60
"""Blocks within blocks: several times what a device has."""
TOKEN = re.compile(r'"[^"\n]*"|[{};\[\]]|[^\s{};\[\]"]+|"')


@dataclass(frozen=True, slots=True)
class Statement:
    """Words from the root on, the line of the last ones, and the lines of the blocks around them."""

    words: tuple[str, ...]
    line: int
    around: tuple[int, ...] = ()

    @property
    def lines(self) -> tuple[int, ...]:
        """The lines of the statement and of the blocks around it."""
        return (self.line, *self.around)


def statements(source: Source, account: Account, *, by_line: bool = False) -> list[Statement]:
    """The statements of a source in whichever form each file has.

    `by_line`: within braces a statement ends with its line, as in VyOS's configuration, and not with `;`.

    Raises:
        PerhopError: More blocks are within one another than in any configuration; the message names the line.
    """
    result = []
    for index, text in enumerate(source.texts):
        first = source.first(index)
        if text.lstrip()[:1] == "{" and '"' in text:
            result += _json(text, first, account)
        elif SET.search(text) and "{" not in text.replace("{ ", ""):
            result += _set(text, first, account)
        else:
            result += _braces(text, first, source, account, by_line=by_line)
    return result


def _set(text: str, first: int, account: Account) -> list[Statement]:
    result: list[Statement] = []
    off: list[tuple[str, ...]] = []
    for number, raw in enumerate(lines_of(text), first):
        line = raw.strip()
        if not line or line.startswith(("#", "/*")):
            account.comment(number)
            continue
        words = tuple(_unquoted(word) for word in TOKEN.findall(line))
        if words and words[0] in {"delete", "deactivate"}:
            off.append(words[1:])
            account.ignore(number, f"{words[0]}d, with all that begins so")
        elif words and words[0] == "set" and len(words) > 1:
            result.append(Statement(tuple(word for word in words[1:] if word != ";"), number))
        else:
            account.ignore(number)
    kept, prefixes = [], set(off)
    lengths = {len(prefix) for prefix in off}
    for statement in result:
        if any(statement.words[:length] in prefixes for length in lengths):
            account.ignore(statement.line, "not active")
        else:
            kept.append(statement)
    return kept


def _unquoted(word: str) -> str:
    if len(word) > 1 and word[0] == word[-1] and word[0] in "\"'":
        return word[1:-1]
    return word


def _tokens(text: str, first: int, account: Account) -> list[tuple[str, int]]:
    """Words and braces with their lines; lines of comments and of closing braces alone are said to be."""
    result: list[tuple[str, int]] = []
    comment = False
    for number, raw in enumerate(lines_of(text), first):
        rest, kept = raw, ""
        while rest:
            if comment:
                before, end, rest = rest.partition("*/")
                comment = not end
                continue
            before, begin, rest = rest.partition("/*")
            kept += before + " "
            comment = bool(begin)
        found = re.match(r"\s*#", kept)
        words = [] if found else TOKEN.findall(re.sub(r"\s##? .*$", "", kept))
        if not words or all(word in {"}", ";", "]"} for word in words):
            account.comment(number)
        result += [(word, number) for word in words]
    return result


def _braces(text: str, first: int, source: Source, account: Account, *, by_line: bool) -> list[Statement]:
    result: list[Statement] = []
    blocks: list[tuple[tuple[str, ...], tuple[int, ...], bool]] = [((), (), False)]
    words: list[str] = []
    lines: list[int] = []
    listed = False

    def close(*, leaf: bool) -> None:
        nonlocal words, lines
        outer, around, off = blocks[-1]
        inactive = off or (bool(words) and words[0] == "inactive:")
        kept = [word for word in words if word not in {"inactive:", "replace:", "protect:"}]
        if leaf and kept:
            if inactive:
                for place in dict.fromkeys(lines):
                    account.ignore(place, "inactive")
            else:
                inner = tuple(dict.fromkeys(lines[:-1]))
                result.append(Statement((*outer, *kept), lines[-1], (*around, *inner)))
        elif not leaf:
            if inactive:
                for place in dict.fromkeys(lines):
                    account.ignore(place, "inactive")
            blocks.append(((*outer, *kept), (*around, *dict.fromkeys(lines)), inactive))
        words, lines = [], []

    for token, number in _tokens(text, first, account):
        if by_line and lines and number > lines[-1] and token != "{" and not listed:
            close(leaf=True)
        if token == "{":
            close(leaf=False)
            listed = False
            if len(blocks) > DEEPEST:
                text = f"more than {DEEPEST} blocks within one another; is a brace not closed?"
                raise PerhopError(f"{source.names[0]}: {source.place(number)}: {text}")
        elif token == "}":
            close(leaf=True)
            listed = False
            if len(blocks) > 1:
                blocks.pop()
            else:
                account.ignore(number, "a brace too many")
        elif token == ";":
            if not listed:
                close(leaf=True)
        else:
            listed = token == "[" or (listed and token != "]")
            words.append(_unquoted(token))
            lines.append(number)
    close(leaf=True)
    return result


def _json(text: str, first: int, account: Account) -> list[Statement]:
    root = jsontree.read(text, first, account)
    result: list[Statement] = []
    inner = root.get("configuration") or root
    account.comment(root.keys.get("configuration", 0), inner.keys.get("@", 0))
    _walk(inner, (), (), result)
    return result


def _walk(node: Node, words: tuple[str, ...], around: tuple[int, ...], result: list[Statement]) -> None:
    for key, member in node.pairs():
        place = node.keys[key]
        if key.startswith("@"):
            continue
        here = (*words, key)
        if member.members is not None:
            _walk(member, here, (*around, place, member.line), result)
        elif member.items is not None:
            _list(member, here, (*around, place, member.line), result)
        else:
            result.append(Statement((*here, member.text), member.line, (*around, place)))


def _list(node: Node, words: tuple[str, ...], around: tuple[int, ...], result: list[Statement]) -> None:
    for item in node.items or ():
        if item.members is None:
            if item.text == "null":
                result.append(Statement(words, item.line, around))
            elif item.items is None:
                result.append(Statement((*words, item.text), item.line, around))
            continue
        name = item.get("name")
        members = {key: value for key, value in item.pairs() if key != "name"}
        rest = Node(item.line, members=members, keys=item.keys)
        lines = (*around, item.line)
        if name:
            lines = (*lines, name.line, item.keys["name"])
            if not rest.members:
                result.append(Statement((*words, name.text), name.line, lines))
            _walk(rest, (*words, name.text), lines, result)
        elif all(member.members is None and member.items is None for _, member in rest.pairs()):
            flat = [word for key, member in rest.pairs() for word in (key, member.text)]
            places = [member.line for _, member in rest.pairs()]
            if places:
                result.append(Statement((*words, *flat), places[-1], (*lines, *places)))
        else:
            _walk(rest, words, lines, result)
