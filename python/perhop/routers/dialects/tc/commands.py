"""Linux tc as commands: from shell scripts, from what `tc … show` prints, and from `tc -j`."""

from __future__ import annotations

import ast
import re
import shlex
from dataclasses import dataclass, field
from itertools import dropwhile, pairwise
from typing import TYPE_CHECKING

from perhop.routers.source import lines_of
from perhop.routers.syntax import jsontree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from perhop.routers.source import Account, Source

VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
FALLBACK = re.compile(r"\$\{([A-Za-z0-9_]+):?-([^${}]*)\}")
"""A variable with the text for it where it has none."""
ARITHMETIC = re.compile(r"\$\(\(([0-9A-Za-z_+*/() $-]{1,80})\)\)|\$\[([0-9A-Za-z_+*/() $-]{1,80})\]")
OPERATIONS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "/"}
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
LENGTHS = {"txqueuelen", "txqlen", "qlen"}
"""Words of `ip link` and ifconfig before the length of the queues that a device makes by default."""


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


def commands(source: Source, account: Account) -> list[Command]:
    """The commands of a source, in order; other lines are reported."""
    result = []
    for index, text in enumerate(source.texts):
        first = source.first(index)
        if text.lstrip()[:1] in {"[", "{"}:
            result += list(_json(text, first, account))
        else:
            result += list(_script(text, first, account))
    return result


def _script(text: str, first: int, account: Account) -> Iterator[Command]:
    variables: dict[str, str] = {}
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
    text: str, places: list[int], variables: dict[str, str], loops: list[int], account: Account
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
    found: list[list[str]] = [[]]
    try:
        for word in _lexed(text, posix=True):
            if word and set(word) <= set(";&|"):
                found.append([])
            elif word.startswith("#"):
                break
            else:
                found[-1].append(word)
    except ValueError:
        found = [part.split() for part in re.split("[;&|]+", text)]
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
    for part in _parts(text):
        words = part.split()
        while words and words[0] in {"do", "then", "else", "{"}:
            words = words[1:]
        if words and words[0] in OPENING:
            loops.append(line)
        elif words and CLOSING.match(words[0]) and loops:
            loops.pop()


def _parts(text: str) -> list[str]:
    """The commands of a line: what `;`, `&` and `|` part outside quotes."""
    parts: list[list[str]] = [[]]
    try:
        for word in _lexed(text, posix=False):
            if word and set(word) <= set(";&|"):
                parts.append([])
            else:
                parts[-1].append(word)
    except ValueError:
        return re.split("[;&|]+", text)
    return [" ".join(part) for part in parts]


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


def _expanded(text: str, variables: dict[str, str]) -> str:
    for _ in range(DEEPEST):
        before = text
        text = VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[0])[:200], text)
        text = FALLBACK.sub(lambda found: variables.get(found[1], found[2])[:200], text)
        text = ARITHMETIC.sub(lambda found: _computed(found, variables), text)
        if text == before or len(text) > 4000:
            break
    return text


def _computed(found: re.Match[str], variables: dict[str, str]) -> str:
    """An expression of whole numbers as its value; other ones stay."""
    text = re.sub(
        r"\$?([A-Za-z_][A-Za-z0-9_]*)", lambda name: variables.get(name[1], name[0]), found[1] or found[2]
    )
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
    match OPERATIONS[type(node.op)]:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            return left // right if right > 0 and left >= 0 else None


OBJECTS = {"qdisc": "qdisc", "class": "class", "filter": "filter", "q": "qdisc", "c": "class", "f": "filter"}


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
    for item in [] if root is None else [root] if root.items is None else root.items:
        kind = item.get("kind") or item.get("class")
        if kind is None or not kind.text:
            for line in set(item.lines()):
                account.ignore(line)
            continue
        shown = item.get("class") is not None
        filtered = item.get("protocol") is not None or item.get("pref") is not None
        command = Command(
            "class" if shown else "filter" if filtered else "qdisc", "add", item.line, json=True
        )
        command.kind, command.lines = kind.text, set(item.lines())
        command.dev = _text(item.get("dev"))
        command.handle = _text(item.get("handle"))
        command.parent = "root" if item.get("root") is not None else _text(item.get("parent"))
        options = item.get("options")
        if command.object == "filter" and command.kind == "u32":
            if _u32(command, options):
                yield command
            account.understand(*command.lines)
            continue
        for source in (options, item if shown else None):
            for key, member in source.pairs() if source is not None else ():
                if key not in {"class", "handle", "parent", "root", "dev", "kind", "leaf", "stats", "stats2"}:
                    command.words += _words(key, member)
        account.understand(*command.lines)
        yield command


def _u32(command: Command, options: jsontree.Node | None) -> bool:
    """The words of a u32 filter; False for its hash tables, which choose nothing."""
    flow = None if options is None else options.get("flowid")
    if options is None or flow is None:
        return False
    command.prio = 0.0
    match = options.get("match")
    if match is not None:
        value, mask, off = (_text(match.get(key)) for key in ("value", "mask", "off"))
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


def _text(node: jsontree.Node | None) -> str:
    return "" if node is None else node.text
