"""`perhop init`: three questions, and a first scenario that runs as it is."""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from perhop import _engine
from perhop.commands import options, terminal
from perhop.errors import PerhopError, ScenarioError
from perhop.files import filesystem
from perhop.plurals import counted, lasting
from perhop.processes import interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")
NOTHING = "nothing"
"""Nobody was promised anything."""
PACKET_BITS = 12_000
"""Of the senders' packet of 1500 bytes."""
LIMIT_S = 0.16
"""A full queue delays a packet by this long: a few round-trip times, as access routers have it."""
TARGET_US = 5_000
"""CoDel's target by default."""
LEAST_LIMIT = 20
"""Packets: a slow link needs them for its thresholds to lie apart."""
BURST_S = 0.08
"""A token bucket holds what is promised for this long: a burst of a TCP window."""
LEAST_BURST = 3_000
"""Bytes: two full packets."""
MOST_USERS = 10_000
WARMUP_S = 10
"""The shortest warm-up, and what a longer one is a multiple of."""
MOST_WARMUP_S = 600
"""The longest warm-up, with which a run lasts an hour: a link on which it would be longer is too slow."""
WARMUP_BURSTS = 3
"""A warm-up lasts as many times what the burst at the start takes, which others delay, and which must ebb."""
DURATION_WARMUPS = 6
"""A run lasts as many warm-ups."""
PAGE_BITS = 2.5e6 * 8
"""Of a page of the web, on average."""
VIDEO_BUFFER_S, VIDEO_BPS = 60, 4_300_000
"""What a viewer's buffer holds, and the highest rate of the video: the defaults of the model `video`."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What users do.

    Attributes:
        name: As messages list it.
        words: Which words say so, in the singular; plurals are known, too.
        does: For a comment.
        keys: Of their flows in the scenario.
        ends: Between what their data go.
        burst_bits: What each asks for at once when it starts.
        burst_s: How long that takes at most: the rate of a video follows that of the line.
    """

    name: str
    words: frozenset[str]
    does: str
    keys: str
    ends: tuple[str, str] = ("internet", "office")
    burst_bits: float = 0.0
    burst_s: float = math.inf


_TCP = 'transport = { tcp = "linux" } # as hosts of today have it: CUBIC, packets of 1500 bytes\n'
CONGESTION = frozenset({"bbr", "bbr3", "cubic", "ledbat", "reno"})
"""Congestion controls that the name of a group may have, as scenarios have them, and which need no ECN."""
_PAGES = """\
# Pages of today: 2.5 MB in 68 requests on average, over HTTP/2 (HTTP Archive, Web Almanac 2024, page weight:
# medians 2.3 to 2.7 MB and 66 to 71). With `model` alone they are of the model's year, 2004: 57 kB in 7.
application.model = "web"
application.connections = 1
application.scale = 4.5 # of the sizes of all objects
application.objects = { alpha = 2, least = 36, most = 400, less = 1 } # beside the page itself
"""
DOWNLOADS = Kind("downloads", frozenset({"download", "transfer"}), "download without end", _TCP)
UPLOADS = Kind("uploads", frozenset({"upload", "backup"}), "upload without end", _TCP, ("office", "internet"))
KINDS = (
    DOWNLOADS,
    UPLOADS,
    Kind(
        "calls",
        frozenset({"call", "voip"}),
        "speak, as G.711 sends it, over UDP",
        'application = { model = "call" }\n',
    ),
    Kind(
        "videos",
        frozenset({"video", "stream", "viewer"}),
        "watch video at a rate that adapts",
        f'application = {{ model = "video" }}\n{_TCP}',
        burst_bits=VIDEO_BUFFER_S * VIDEO_BPS,
        burst_s=VIDEO_BUFFER_S,
    ),
    Kind(
        "web users",
        frozenset({"web", "browser", "surfer", "page"}),
        "load pages of the web and read them",
        f"{_PAGES}{_TCP}",
        burst_bits=PAGE_BITS,
    ),
    Kind(
        "games", frozenset({"game", "gamer", "player"}), "play over UDP", 'application = { model = "game" }\n'
    ),
    Kind(
        "requests",
        frozenset({"request", "query", "transaction"}),
        "ask, wait for the response and think",
        f'application = {{ model = "request-response" }}\n{_TCP}',
    ),
)
PEOPLE = frozenset(
    {
        "client", "customer", "employee", "everybody", "guest", "host", "other", "people", "person", "staff",
        "student", "subscriber", "tenant", "user",
    }
)  # fmt: skip
"""Words for users that do not say what they do: they download."""
_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NUMBERS: Mapping[str, int] = {"a": 1, "an": 1, **{word: number for number, word in enumerate(_WORDS, 1)}}


@dataclass(frozen=True, slots=True)
class Group:
    """Users of one kind; each promised this rate in bit/s, as it was typed, or nothing."""

    name: str
    count: int
    kind: Kind = DOWNLOADS
    promised_bps: float = 0.0
    promised: str = ""

    @property
    def keys(self) -> str:
        """Return the keys of its flows in the scenario."""
        control = next((word for word in _words(self.name) if word in CONGESTION), None)
        tcp = f'transport = {{ tcp = "linux", congestion = "{control}" }} # packets of 1500 bytes\n'
        return self.kind.keys if control is None else self.kind.keys.replace(_TCP, tcp)

    @property
    def idle_words(self) -> list[str]:
        """Words of its name that look as if they said more than a name does, such as `1080p`."""
        controls = CONGESTION if _TCP not in self.kind.keys else frozenset()
        return [word for word in _words(self.name) if word[0].isdigit() or word in controls]


def init(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="[SCENARIO.toml]", help="The file to write (default: my.toml).", show_default=False
        ),
    ] = Path("my.toml"),
    *,
    rate: Annotated[
        str | None,
        options.option(
            "--rate",
            "10Mbps",
            "The rate of the link that is shared; 20/5Mbps where it is another one upstream.",
        ),
    ] = None,
    rtt: Annotated[
        str, options.option("--rtt", "40ms", "The round-trip time, without waiting in queues.")
    ] = "40ms",
    users: Annotated[
        str | None,
        options.option(
            "--users",
            '"2 downloads, 1 call"',
            "Who uses it: how many downloads, uploads, calls, videos, web users, games, requests; people "
            "such as customers download.",
        ),
    ] = None,
    promised: Annotated[
        str | None,
        options.option(
            "--promised", '"customers 2Mbps"', f"What each user of a group was promised; or {NOTHING}."
        ),
    ] = None,
    yes: Annotated[
        bool, options.flag("--yes", "Ask nothing: take the offered answer for what is not given.")
    ] = False,
) -> None:
    """Ask three questions and write a first scenario, with comments, that runs as it is.

    The questions: how fast is the link, who uses it, and what was promised to them? Each has an option, so
    that scripts need not answer. The scenario has one link. Its users do what their name says: downloads,
    uploads, calls, videos, web users, games, requests; other people, such as customers and staff,
    download without end by TCP. A congestion control may stand in a name (`2 bbr downloads`); CUBIC is the
    default. Nothing is promised unless it is said. Where something was promised, the queue is RIO, and token
    buckets color what keeps to the promise; else it is CoDel. A file that exists is not written over.

    \b
    Examples:
      perhop init
      perhop init --rate 50Mbps --users "9 staff" --promised "staff 2Mbps"
      perhop init --rate 1Gbps --rtt 10ms --users "1 download" --yes
      perhop init --rate "100 Mbit/s" --users "2 downloads, 3 calls" --yes
      perhop init --yes
    """
    with interrupts.loading():
        from perhop.show.numbers import exact
    if file.exists() or file.is_symlink():
        raise PerhopError(f"{file}: exists and is left as it is; name another file, or remove this one")
    link, up = _answer("--rate", "How fast is the link?", rate, "10Mbps", _rates, yes=yes)
    groups = _answer(
        "--users", "Who uses it? How many, of what name:", users, "2 customers, 8 others", _users, yes=yes
    )
    groups = _answer(
        "--promised",
        f"What was each of them promised? Name and rate, or {NOTHING}:",
        promised,
        NOTHING,
        lambda text: _promised(text, groups),
        yes=yes,
        at_end=NOTHING,
    )
    text = scenario(file.name, link, _delay(rtt), groups, up)
    _check(text, file)
    _write(file, text)
    total = sum(group.count * group.promised_bps for group in groups)
    if total > _bps(link):
        terminal.warn(
            [f"{file}: {exact(total / 1e6)} Mbit/s are promised on a link of {link}: not everyone can get it"]
        )
    burst_s = _burst_s(link, groups, up)
    if WARMUP_BURSTS * burst_s > MOST_WARMUP_S:
        asked = f"what users ask for at the start takes {lasting(burst_s)} on this link"
        cut = f"the warm-up is cut to {MOST_WARMUP_S} s and the run to an hour, so figures include the start"
        terminal.warn([f"{file}: {asked}; {cut}; take fewer users or a faster link"])
    terminal.warn(
        [
            f"--users: `{word}` is a part of the name `{group.name}` and changes no traffic; set it in {file}"
            for group in groups
            for word in group.idle_words
        ]
    )
    terminal.say(f"{file}: written; next: {terminal.command('run', str(file))}")


def scenario(name: str, rate: str, delay: str, groups: list[Group], up: str | None = None) -> str:
    """The scenario as commented TOML.

    Args:
        name: Of the file, for its comments.
        rate: Of the link, such as `10Mbps`.
        delay: Of each direction of the link, such as `20ms`.
        groups: Who uses it.
        up: Of the link, away from those who download; None for the same rate.
    """

    def queue(ends: tuple[str, str], table: str, of: str) -> str:
        promised = any(group.promised for group in groups if group.kind.ends == ends)
        return _queue(of, table, promised=promised)

    queues = queue(DOWNLOADS.ends, "links.access.queue", rate)
    if up is not None:
        queues += f'\n# The other direction, upstream.\n[links.access.reverse]\nrate = "{up}"\n'
    if any(group.kind is UPLOADS for group in groups):
        own = "" if up is not None else "; a key `rate` would give it its own"
        reverse = queue(UPLOADS.ends, "links.access.reverse.queue", up or rate)
        queues += f"\n# The other direction, in which data are sent, too{own}.\n{reverse}"
    run = terminal.escaped(terminal.command("run", name))
    report = f"{run} --out results/first"
    rates = rate if up is None else f"{rate} down and {up} up"
    return f"""\
# Who gets what at a link of {rates}? Written by `perhop init`; change what you like.
#
#   {run.ljust(len(report))}    means over several runs, with 95 % intervals
#   {report}    the same, with plots and a report
#
# docs/scenario.md has every key; `perhop list blocks` has all queue rules, meters and congestion controls.

{_times(rate, groups, up)}
[links.access]
from = "internet"
to = "office"
rate = "{rate}"
delay = "{delay}" # one way, without waiting: half of the round-trip time

{queues}{"".join(map(_flows, groups))}"""


def _times(rate: str, groups: list[Group], up: str | None = None) -> str:
    """Return the length of a run and its warm-up, with a comment where a first burst makes them longer."""
    burst_s = _burst_s(rate, groups, up)
    wanted = max(1, math.ceil(WARMUP_BURSTS * burst_s / WARMUP_S)) * WARMUP_S
    warmup = min(wanted, MOST_WARMUP_S)
    length = (
        "The warm-up is three times as long, rounded up: none of it is in figures."
        if warmup == wanted
        else f"The warm-up has {warmup} s all the same: part of it is in figures."
    )
    why = f"""\
# At the start every web user loads a page, and every viewer fills a buffer. With equal shares of the link
# that takes {math.ceil(burst_s)} s. {length}
"""
    return f"""\
{why if warmup > WARMUP_S else ""}duration = "{DURATION_WARMUPS * warmup}s"
warmup = "{warmup}s" # left out of all figures
"""


def _burst_s(rate: str, groups: list[Group], up: str | None = None) -> float:
    """Return how long the first requests of all users take together, with equal shares of the link."""
    burst_s = 0.0
    for group in groups:
        users = sum(other.count for other in groups if other.kind.ends == group.kind.ends)
        of = up if up is not None and group.kind is UPLOADS else rate
        burst_s = max(burst_s, min(group.kind.burst_s, group.kind.burst_bits * users / _bps(of)))
    return burst_s


def _queue(rate: str, table: str, *, promised: bool) -> str:
    """The queue of a direction, with comments."""
    limit = max(LEAST_LIMIT, round(_bps(rate) * LIMIT_S / PACKET_BITS))
    full = (
        f'limit = "{limit}p" # full after {LIMIT_S * 1e3:.0f} ms at this rate, at least {LEAST_LIMIT} packets'
    )
    if promised:
        return f"""\
# RIO drops early and at random, by the average queue: packets beyond a promise ("total") sooner than
# those within it ("in"). Each is lowest/highest average in packets, and the probability reached there.
[{table}]
aqm = "rio"
{full}
in = "{limit * 3 // 10}/{limit * 9 // 10}/0.02"
total = "{limit * 3 // 20}/{limit * 9 // 20}/0.05"
"""
    packet_us = math.ceil(PACKET_BITS * 1e6 / _bps(rate))
    slow = packet_us > TARGET_US
    target = f'target = "{packet_us}us" # not below the time of a packet (RFC 8290, 5.2.2)\n' if slow else ""
    waits = "one packet takes to leave" if slow else f"{TARGET_US / 1000:.0f} ms"
    return f"""\
# CoDel drops where packets have waited longer than {waits} for 100 ms.
[{table}]
aqm = "codel"
{target}{full}
"""


def _flows(group: Group) -> str:
    each = f", each promised {group.promised}" if group.promised else ", promised nothing"
    text = f"""
# {counted(group.count, "user")}, who {group.kind.does}{each}.
[[flows]]
name = {json.dumps(group.name, ensure_ascii=False)}
count = {group.count}
from = "{group.kind.ends[0]}"
to = "{group.kind.ends[1]}"
{group.keys}start = "0s..1s" # each at random
"""
    if not group.promised:
        return text
    burst = max(LEAST_BURST, round(group.promised_bps * BURST_S / 8))
    return f"""{text}\
# Packets within this rate and burst (in bytes) leave green, others yellow; the queue drops yellow ones first.
profile = {{ rate = "{group.promised}", marker = "token-bucket", burst = "{burst}B" }}
"""


def _answer(
    option: str,
    question: str,
    given: str | None,
    offered: str,
    parse: Callable[[str], T],
    *,
    yes: bool,
    at_end: str | None = None,
) -> T:
    """The answer to a question, from its option or by asking; a terminal is asked again after a mistake.

    Args:
        option: Its name.
        question: What is asked.
        given: What the option says.
        offered: The answer of an empty line, and of `yes`.
        parse: Reads an answer.
        yes: Ask nothing.
        at_end: What holds where there is nobody to ask; None for an error.

    Raises:
        PerhopError: It is none, or there is nobody to ask.
    """
    if given is not None or yes:
        return parse(offered if given is None else given)
    while True:
        sys.stderr.write(f"{question} [{offered}] ")
        sys.stderr.flush()
        line = sys.stdin.readline() if sys.stdin is not None else ""
        if not line:
            terminal.note("")
            if at_end is not None:
                return parse(at_end)
            raise PerhopError(f"no answer; give {option}, such as {option} '{offered}', or --yes")
        try:
            return parse(line.strip() or offered)
        except PerhopError as error:
            if not sys.stdin.isatty():
                raise
            terminal.fail(error)


def _rates(text: str) -> tuple[str, str | None]:
    """The rate of a link as the scenario has it, and the one upstream if it is another: `20/5Mbps`.

    Raises:
        PerhopError: It is none.
    """
    found = _BOTH.fullmatch(text.strip())
    if found is None:
        _bps(text, "--rate")
        return text, None
    down, up = found.groups()
    if re.fullmatch(r"[0-9.]+", down):
        down += up.lstrip("0123456789.")
    _bps(down, "--rate")
    _bps(up, "--rate")
    return down, up


_BOTH = re.compile(r"(.+?)\s*/\s*([0-9].*)")
"""A rate downstream and one upstream."""


def _delay(rtt: str) -> str:
    """Half of a round-trip time.

    Raises:
        PerhopError: It is none.
    """
    from perhop.show.numbers import exact

    try:
        return f"{exact(_engine.duration_ns(rtt) / 2e6)}ms"
    except ValueError as error:
        raise PerhopError(f"--rtt: {error}") from None


def _bps(rate: str, option: str = "rate") -> int:
    """A rate in bit/s, as the engine reads it: what it accepts is what a scenario may say.

    Raises:
        PerhopError: It is none; the message names the option.
    """
    try:
        bps: int = _engine.quantity("rate", rate)[0]
    except ValueError as error:
        raise PerhopError(f"{option}: {error}") from None
    return bps


def _users(text: str) -> list[Group]:
    """Groups, such as `2 downloads, 3 calls`.

    Raises:
        PerhopError: It is no such list.
    """
    groups: dict[str, Group] = {}
    for part in _parts(text):
        found = re.fullmatch(rf"([0-9]{{1,9}}|{'|'.join(NUMBERS)}) +(.+)", part, re.IGNORECASE)
        if found is None or not found[2].isprintable():
            raise PerhopError(
                f"--users: `{part}` is no number and name; write such as `2 downloads, 3 calls`"
            )
        count, name = NUMBERS.get(found[1].lower()) or int(found[1]), found[2]
        if not 1 <= count <= MOST_USERS:
            raise PerhopError(f"--users: `{part}`: a group has 1 to {MOST_USERS} users")
        if name in groups:
            raise PerhopError(f"--users: `{name}` is there twice; give each group a name of its own")
        groups[name] = Group(name, count, _kind(name))
    return list(groups.values())


def _parts(text: str) -> list[str]:
    """The parts of a list such as `2 downloads, 3 calls and 1 video`."""
    return [part.strip() for part in re.split(r",(?:\s*and\s)?|\sand\s", text)]


def _kind(name: str) -> Kind:
    """What users of this name do: a word of it says so.

    Raises:
        PerhopError: No word does, or two say different things.
    """
    words = {singular for word in _words(name) for singular in _singulars(word)}
    kinds = [kind for kind in KINDS if kind.words & words]
    if len(kinds) > 1:
        both = " and ".join(kind.name for kind in kinds)
        raise PerhopError(f"--users: `{name}` may be {both}; give each a group of its own")
    if kinds or PEOPLE & words:
        return kinds[0] if kinds else DOWNLOADS
    known = ", ".join(kind.name for kind in KINDS)
    raise PerhopError(
        f"--users: `{name}` does not say what they do; there are {known}, and customers, staff, guests "
        f"and others, who download; a name may come before, such as `2 {name} downloads`"
    )


def _words(name: str) -> list[str]:
    return re.findall(r"\w+", name.lower())


def _singulars(word: str) -> list[str]:
    """A word, and what it may be the plural of."""
    return [word, word.removesuffix("s"), re.sub("ies$", "y", word)]


def _promised(text: str, groups: list[Group]) -> list[Group]:
    """The groups with what each was promised, such as `customers 2Mbps, others 1 Mbit/s`.

    Raises:
        PerhopError: It is no such list, or names a group that is none.
    """
    if text.strip().lower() == NOTHING:
        return groups
    rates: dict[str, str] = {}
    for part in _parts(text):
        found = re.fullmatch(r"(.+?) +(\.?[0-9][^ ]*(?: [^ ]+)?)", part)
        if found is None:
            raise PerhopError(
                f"--promised: `{part}` is no name and rate; write such as "
                f"`{groups[0].name} 2Mbps`, or {NOTHING}"
            )
        name, rate = found[1], found[2]
        names = [group.name for group in groups]
        if name not in names:
            raise PerhopError(f"--promised: no group is called `{name}`; there are {', '.join(names)}")
        if name in rates:
            raise PerhopError(f"--promised: `{name}` is there twice; give each group one rate")
        _bps(rate, "--promised")
        rates[name] = rate
    return [
        replace(group, promised_bps=_bps(rates[group.name]), promised=rates[group.name])
        if group.name in rates
        else group
        for group in groups
    ]


def _check(text: str, file: Path) -> None:
    """Nothing is written that would not run.

    Raises:
        PerhopError: The engine refuses it.
    """
    try:
        _, notices = _engine.read_toml(text, str(file), real_packets=False, folder=Path())
    except ScenarioError as error:
        raise PerhopError(f"these answers make no scenario: {error}") from None
    terminal.warn(notices)


def _write(file: Path, text: str) -> None:
    """Write a new file; one that appeared meanwhile stays as it is.

    Raises:
        PerhopError: It cannot be written.
    """
    try:
        filesystem.write_new(file, text.encode())
    except FileExistsError:
        raise PerhopError(f"{file}: exists and is left as it is; name another file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PerhopError(f"{file}: cannot be written: {reason}") from None
