"""Linux tc as commands: from shell scripts, from what `tc … show` prints, and from `tc -j`; by device."""

from __future__ import annotations

import ast
import operator
import re
import shlex
from dataclasses import dataclass, field
from itertools import dropwhile, pairwise
from typing import TYPE_CHECKING

from perhop.routers.source import lines_of
from perhop.routers.syntax import jsontree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from perhop.routers.source import Account, Source

VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
FALLBACK = re.compile(r"\$\{([A-Za-z0-9_]+):?-([^${}]*)\}")
"""A variable with the text for it where it has none."""
ARITHMETIC = re.compile(r"\$\(\(([0-9A-Za-z_+*/() $-]{1,80})\)\)|\$\[([0-9A-Za-z_+*/() $-]{1,80})\]")
OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.floordiv, ast.FloorDiv: operator.floordiv,
}  # fmt: skip
ASSIGNMENT = re.compile(r"(?:export\s+|local\s+|readonly\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)")
OPENING = {"for", "while", "until", "if", "case", "select", "function"}
CLOSING = re.compile(r"(?:done|fi|esac|\})(?![\w.-])")
CONTROL = re.compile(
    rf"(?:{'|'.join(sorted(OPENING))}|do|then|else|elif|done|fi|esac)(?![\w.-])|\}}|[\w-]+ *\(\) *\{{"
)
QUOTES = re.compile(r"""["'\\]""")
WORD = re.compile(r"[;&|]+|[^\s;&|]+")
VERBS = {"add", "replace", "change", "link", "del", "delete", "show", "list", "ls"}
DEEPEST = 8
Variables = dict[str, str]
LENGTHS = {"txqueuelen", "txqlen", "qlen"}
"""Words of `ip link` and ifconfig before the length of the queues that a device makes by default."""
OBJECTS = {"qdisc": "qdisc", "class": "class", "filter": "filter", "q": "qdisc", "c": "class", "f": "filter"}


@dataclass(slots=True)
class Command:
    """A qdisc, class, filter or length of queues (`link`): where it is, its kind, its parameters as words."""

    object: str
    verb: str
    line: int
    dev: str = ""
    parent: str = ""
    handle: str = ""
    kind: str = ""
    words: list[str] = field(default_factory=list)
    prio: float = 0.0
    json: bool = False
    """From `tc -j`: rates are in bytes a second, sizes in bytes, times in microseconds."""
    lines: set[int] = field(default_factory=set)
    read: bool = False
    """Whether something asked for its parameters."""


def major(handle: str) -> str:
    """The major part of a handle: `1` of `1:` and `1:10`."""
    return _part(handle.partition(":")[0])


def class_of(handle: str) -> tuple[str, str]:
    """The class that a handle names: two handles of one class give the same."""
    return major(handle), _part(handle.partition(":")[2])


def _part(text: str) -> str:
    """A part of a handle, which is hexadecimal with and without `0x`."""
    return text.lower().removeprefix("0x").lstrip("0") or "0"


@dataclass(slots=True)
class Device:
    """The configuration of a device."""

    name: str
    line: int
    qdiscs: list[Command] = field(default_factory=list)
    classes: list[Command] = field(default_factory=list)
    filters: list[Command] = field(default_factory=list)
    lengths: list[Command] = field(default_factory=list)
    """Commands that set the length of queues that say none."""

    @property
    def empty(self) -> bool:
        """Whether it has no queues."""
        return not (self.qdiscs or self.classes or self.filters)


def devices(source: Source, account: Account) -> list[Device]:
    """The devices that the commands of a source configure; other lines are reported."""
    made = _Devices(account)
    for index, text in enumerate(source.texts):
        read = _json if text.lstrip()[:1] in {"[", "{"} else _script
        for command in read(text, source.first(index), account):
            made.take(command)
    return made.listed()


def _script(text: str, first: int, account: Account) -> Iterator[Command]:
    variables: Variables = {}
    loops: list[int] = []
    joined, places = "", list[int]()
    lines = lines_of(text)
    for number, raw in enumerate(lines, first):
        line = raw.strip()
        joined = f"{joined} {line}" if joined else line
        places.append(number)
        if joined.endswith("\\") and number < first + len(lines) - 1:
            joined = joined[:-1].rstrip()
            continue
        whole, here = joined.strip(), places
        joined, places = "", []
        if not whole or whole.startswith("#"):
            account.comment(*here)
            continue
        yield from _line(whole, here, variables, loops, account)


def _line(
    text: str, places: list[int], variables: Variables, loops: list[int], account: Account
) -> Iterator[Command]:
    def ignore(why: str = "not understood", *, missed: bool = False) -> None:
        account.ignore_whole(places, why, missed=missed)

    inside = bool(loops)
    if inside or CONTROL.match(text):
        _nest(text, places[0], loops)
    if CONTROL.match(text):
        runs = any(_tool(words) == "tc" for words in _commands(re.sub(r"\b(do|then)\b", ";", text)))
        return ignore("shell control is not followed", missed=runs)
    given = ASSIGNMENT.fullmatch(text)
    if given and not inside:
        value = _expanded(given[2].strip(), variables)
        parts = _split(value.partition(" #")[0].rstrip(";"))
        if len(parts) <= 1 and "$(" not in value and "`" not in value:
            variables[given[1]] = parts[0] if parts else ""
            account.comment(*places)
            return None
        return ignore("only simple assignments are followed")
    expanded = _expanded(text, variables)
    parts = _split(expanded)
    batch = len(parts) > 2 and parts[0] in OBJECTS and parts[1] in VERBS
    if parts and parts[0] in {"qdisc", "class", "filter"} and len(parts) > 2 and not batch:
        return (yield from _shown(parts, places, account))
    listed = [words for words in _commands(expanded) if _tool(words) == "tc" or _length(words, 0)]
    listed = [["tc", *parts]] if batch else listed
    if not listed:
        return ignore("not a tc command")
    if inside:
        return ignore("within a loop or condition, which is not followed", missed=True)
    if VARIABLE.search(expanded):
        return ignore("a variable without a simple assignment", missed=True)
    found = [_length(words, places[0]) or _command(_plain(words), places[0]) for words in listed]
    for command in found:
        if command is None:
            ignore(missed=True)
            continue
        if command.verb in {"show", "list", "ls"}:
            ignore("shows, changes nothing")
            continue
        command.lines = set(places)
        account.understand(*places)
        yield command
    return None


def _commands(text: str) -> list[list[str]]:
    """The words of each command of a line, without what runs it as another user and where its output goes."""
    found = _parted(text, posix=True)
    for words in found:
        while words and (words[0] in {"sudo", "doas", "exec"} or words[0] == "-n"):
            del words[0]
        if (end := next((i for i, word in enumerate(words) if ">" in word), None)) is not None:
            del words[end:]
    return [words for words in found if words]


def _tool(words: list[str]) -> str:
    """The program of a command without its folder."""
    return words[0].rsplit("/", 1)[-1]


def _plain(words: list[str]) -> list[str]:
    """The words of a command behind its program and the options of that."""
    return [*dropwhile(lambda word: word.startswith("-"), words[1:])]


def _length(words: list[str], line: int) -> Command | None:
    """`ip link set dev eth0 txqueuelen 200` or `ifconfig eth0 txqueuelen 200`; None of other commands."""
    rest = _plain(words)
    at = next((i for i, word in enumerate(rest[:-1]) if word in LENGTHS), None)
    if at is None or _tool(words) not in {"ip", "ifconfig"}:
        return None
    if _tool(words) == "ip":
        if rest[0] not in {"link", "l"} or rest[1] not in {"add", "set", "s"}:
            return None
        rest = rest[2:]
        at -= 2
    before = rest[:at]
    named = next((after for word, after in pairwise(before) if word in {"dev", "name"}), "")
    return Command("link", "set", line, named or "".join(before[:1]), words=rest[at : at + 2], read=True)


def _nest(text: str, line: int, loops: list[int]) -> None:
    """Open and close blocks by each command of a line, as in `for i in 1 2; do echo $i; done`."""
    for part in _parted(text, posix=False):
        words = " ".join(part).split()
        while words and words[0] in {"do", "then", "else", "{"}:
            words = words[1:]
        if words and words[0] in OPENING:
            loops.append(line)
        elif words and CLOSING.match(words[0]) and loops:
            loops.pop()


def _parted(text: str, *, posix: bool) -> list[list[str]]:
    """The words of each command of a line: what `;`, `&` and `|` part outside quotes."""
    parts: list[list[str]] = [[]]
    try:
        for word in _lexed(text, posix=posix):
            if posix and word.startswith("#"):
                break
            if word and set(word) <= set(";&|"):
                parts.append([])
            else:
                parts[-1].append(word)
    except ValueError:
        return [part.split() for part in re.split("[;&|]+", text)]
    return parts


def _lexed(text: str, *, posix: bool) -> Iterable[str]:
    """Words and what parts commands; only text with quotes needs the lexer, which reads single characters."""
    if not QUOTES.search(text) and (posix or "#" not in text):
        return WORD.findall(text)
    lexer = shlex.shlex(text, posix=posix, punctuation_chars=";&|")
    lexer.whitespace_split = True
    lexer.commenters = "" if posix else lexer.commenters
    return lexer


def _split(text: str) -> list[str]:
    if "#" not in text and not QUOTES.search(text):
        return text.split()
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()


def _expanded(text: str, variables: Variables) -> str:
    for _ in range(DEEPEST):
        before = text
        text = VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[0])[:200], text)
        text = FALLBACK.sub(lambda found: variables.get(found[1], found[2])[:200], text)
        text = ARITHMETIC.sub(lambda found: _computed(found, variables), text)
        if text == before or len(text) > 4000:
            break
    return text


def _computed(found: re.Match[str], variables: Variables) -> str:
    """An expression of whole numbers as its value; other ones stay."""
    text = found[1] or found[2]
    text = re.sub(r"\$?([A-Za-z_][A-Za-z0-9_]*)", lambda name: variables.get(name[1], name[0]), text)
    try:
        value = _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        value = None
    return found[0] if value is None else str(value)


def _value(node: ast.expr) -> int | None:
    """The value of an expression of whole numbers below 2^63; a division drops its fraction."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if not isinstance(node, ast.BinOp) or type(node.op) not in OPERATIONS:
        return None
    left, right = _value(node.left), _value(node.right)
    if left is None or right is None or max(abs(left), abs(right)) >= 1 << 63:
        return None
    operation = OPERATIONS[type(node.op)]
    if operation is operator.floordiv and (right <= 0 or left < 0):
        return None
    return operation(left, right)


def _command(words: list[str], line: int) -> Command | None:
    if len(words) < 2 or words[0] not in OBJECTS or words[1] not in VERBS:
        return None
    verb = {"link": "add", "delete": "del"}.get(words[1], words[1])
    command = Command(OBJECTS[words[0]], verb, line)
    rest = words[2:]
    while rest:
        word = rest[0]
        value = rest[1] if len(rest) > 1 else ""
        if word == "dev" and value:
            command.dev, rest = value, rest[2:]
        elif word == "root":
            command.parent, rest = "root", rest[1:]
        elif word in {"ingress", "clsact", "egress"} and not command.kind:
            if command.object == "qdisc":
                command.kind = word
            command.parent, rest = command.parent or word, rest[1:]
        elif word in {"parent", "handle", "classid"} and value:
            if word == "parent":
                command.parent = value
            elif command.object == "filter":
                command.words += [word, value]
            else:
                command.handle = value
            rest = rest[2:]
        elif word in {"prio", "pref", "preference", "priority"} and command.object == "filter" and value:
            command.prio = float(value) if value.isdecimal() and len(value) < 10 else 0.0
            rest = rest[2:]
        elif word in {"protocol", "proto"} and command.object == "filter" and value:
            if value not in {"ip", "all", "ipv6", "0x800", "0x0800"}:
                command.words += ["other-protocol", value]
            rest = rest[2:]
        elif word in {"estimator", "est"} and len(rest) > 2:
            rest = rest[3:]
        else:
            command.kind, command.words = word, [*command.words, *rest[1:]]
            break
    return command


def _shown(words: list[str], places: list[int], account: Account) -> Iterator[Command]:
    """A line that `tc qdisc show` or `tc class show` prints."""
    if words[0] == "filter":
        account.ignore_whole(places, "shown filters are not read; give the commands", missed=True)
        return
    command = Command(words[0], "add", places[0], kind=words[1], handle=words[2], lines=set(places))
    rest = words[3:]
    while rest:
        word, value = rest[0], rest[1] if len(rest) > 1 else ""
        if word == "dev":
            command.dev, rest = value, rest[2:]
        elif word == "root":
            command.parent, rest = "root", rest[1:]
        elif word == "parent":
            command.parent, rest = value, rest[2:]
        elif word in {"refcnt", "leaf"}:
            rest = rest[2:]
        else:
            command.words = [w for w in rest if w != "pkt"]
            break
    account.understand(*places)
    yield command


def _json(text: str, first: int, account: Account) -> Iterator[Command]:
    root = jsontree.read(text, first, account)
    for item in [root] if root and root.items is None else root.items or ():
        kind = item.get("kind") or item.get("class")
        if not kind.text:
            for line in set(item.lines()):
                account.ignore(line)
            continue
        shown = bool(item.get("class"))
        filtered = item.get("protocol") or item.get("pref")
        what = "class" if shown else "filter" if filtered else "qdisc"
        command = Command(what, "add", item.line, kind=kind.text, json=True, lines=set(item.lines()))
        command.dev = item.get("dev").text
        command.handle = item.get("handle").text
        command.parent = "root" if item.get("root") else item.get("parent").text
        options = item.get("options")
        if command.object == "filter" and command.kind == "u32":
            if _u32(command, options):
                yield command
            account.understand(*command.lines)
            continue
        for source in (options, item) if shown else (options,):
            for key, member in source.pairs():
                if key not in {"class", "handle", "parent", "root", "dev", "kind", "leaf", "stats", "stats2"}:
                    command.words += _words(key, member)
        account.understand(*command.lines)
        yield command


def _u32(command: Command, options: jsontree.Node) -> bool:
    """The words of a u32 filter; False for its hash tables, which choose nothing."""
    flow = options.get("flowid")
    if not flow:
        return False
    command.prio = 0.0
    match = options.get("match")
    if match:
        value, mask, off = (match.get(key).text for key in ("value", "mask", "off"))
        parts = [int(part, 16) if re.fullmatch("[0-9a-fA-F]{1,8}", part) else -1 for part in (value, mask)]
        if off == "0" and min(parts) >= 0 and parts[1] & ~0x00FF0000 == 0:
            # The first word of an IPv4 header: its second byte is the TOS field.
            command.words += ["match", "u8", hex(parts[0] >> 16), hex(parts[1] >> 16), "at", "1"]
        else:
            command.words += ["match", "u32", f"0x{value}", f"0x{mask}", "at", off or "0"]
    command.words += ["flowid", flow.text]
    return True


def _words(key: str, node: jsontree.Node) -> list[str]:
    if node.items is not None:
        return [key, *(item.text for item in node.items if item.members is None)]
    if node.members is not None:
        return [word for name, member in node.pairs() for word in _words(name, member)]
    if node.text == "false":
        return []
    return [key] if node.text in {"true", "null"} else [key, node.text]


class _Devices:
    def __init__(self, account: Account) -> None:
        self._account = account
        self._devices: dict[str, Device] = {}
        self._kept: dict[str, dict[tuple[str, ...], list[Command]]] = {}
        """The commands of each device by what they are about, without those that others replace."""
        self._replaced: set[int] = set()

    def listed(self) -> list[Device]:
        for device in self._devices.values():
            device.qdiscs = self._left(device.qdiscs)
            device.classes = self._left(device.classes)
        named = [device for device in self._devices.values() if device.name and not device.empty]
        blank = self._devices.get("")
        if blank is not None and len(named) == 1:  # `tc -j class show` has no device
            named[0].classes += blank.classes
            named[0].filters += blank.filters
            del self._devices[""]
        return list(self._devices.values())

    def take(self, command: Command) -> None:
        device = self._devices.setdefault(command.dev, Device(command.dev, command.line))
        if command.object == "link":
            device.lengths.append(command)
            return
        if command.verb == "del":
            self._delete(device, command)
            return
        kept = self._kept.setdefault(command.dev, {}).setdefault(_place(command), [])
        adds = command.kind == "gred" and command.verb == "change"  # a virtual queue
        if command.object != "filter" and kept and not adds:
            replaced = [other for other in kept if _replaces(command, other)]
            for old in replaced:
                self._account.find("W17", old.line, f"replaced by a later command: {_shown_old(old)}")
            self._replaced.update(map(id, replaced))
            kept[:] = self._left(kept)
        kept.append(command)
        listed = {"qdisc": device.qdiscs, "class": device.classes, "filter": device.filters}
        listed[command.object].append(command)

    def _left(self, listed: list[Command]) -> list[Command]:
        """The commands that no later one replaces."""
        return [command for command in listed if id(command) not in self._replaced]

    def _delete(self, device: Device, command: Command) -> None:
        if command.object == "qdisc" and command.parent == "root":
            for old in self._left([*device.qdiscs, *device.classes, *device.filters]):
                self._account.find("W17", old.line, f"deleted by a later command: {_shown_old(old)}")
            device.qdiscs, device.classes, device.filters = [], [], []
            self._kept[command.dev] = {}
        elif deleted := self._kept.get(command.dev, {}).get(_place(command)):
            deleted[0].lines.update(command.lines)  # of the same port
            text = "deletes a part of what comes before, which is simulated all the same"
            self._account.ignore_whole(command.lines, text, missed=True)
            return
        self._account.ignore_whole(command.lines, "deletes; nothing of it is left")


def _shown_old(command: Command) -> str:
    return f"`tc {command.object} … {command.kind}`"


def _place(command: Command) -> tuple[str, ...]:
    """The place of a command: a class by its handle, a qdisc or a filter by its parent."""
    of_class = command.object == "class"
    return ("class", *class_of(command.handle)) if of_class else (command.object, command.parent)


def _replaces(command: Command, old: Command) -> bool:
    """Whether a qdisc or class takes the place of an earlier one."""
    if command.parent != old.parent:
        return False
    if command.object == "class":
        return command.verb in {"change", "replace"} and command.handle == old.handle
    return command.verb in {"add", "replace"} or command.kind == old.kind
