"""Linux tc: filters, with the packets that they take, the class to which they lead, and their policers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perhop.routers import linux, units
from perhop.routers.dialects.tc.commands import major
from perhop.routers.model import ALL_CODEPOINTS, Match, PortMeter, Quantity, Rate, RateUnit, Unit

if TYPE_CHECKING:
    from perhop.routers.dialects.tc.commands import Command
    from perhop.routers.source import Account

BY_MARK = {"fw", "route", "bpf", "cgroup", "flow", "tcindex", "rsvp"}
"""Filters that look at something else than the packet's header."""
KINDS = {"u32", "flower", "matchall", "basic", *BY_MARK}
NOT_IP = {"arp", "0x806", "0x0806", "rarp", "802.3", "802_3", "ipx", "loop", "lldp"}
PASSING = (["ok"], ["pass"], ["gact", "ok"], ["gact", "pass"])
"""Actions that end classification, without a class."""
FLAGS = {"skip_hw", "skip_sw", "not_in_hw", "direct-action", "da"}
MATCH_WORDS = {"src": 3, "dst": 3, "nofrag": 2, "firstfrag": 2, "df": 2, "mf": 2}
"""Words of `match ip …` by its second one: addresses have no mask behind them, flags no value."""
LONGEST = 8
"""Words of the longest condition, with its offset."""
EVERY_ADDRESS = {"any", "all", "default", "0/0", "0.0.0.0/0", "::/0"}


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter: which packets, to which class, with which policer."""

    match: Match
    target: str
    meter: PortMeter | None
    line: int
    order: float
    parent: str
    lines: frozenset[int]
    shared: str = ""
    """The index of a policer that filters share."""
    continues: str = ""
    """The packets that its policer sends on to later filters, in words."""
    before: frozenset[int] = frozenset()
    """The codepoints of packets that earlier filters take."""

    @property
    def policed(self) -> Match:
        """The packets that come to its policer."""
        left = self.match.sure - self.before
        return Match.between(left, self.match.most - self.before, self.match.unknown, self.match.line)

    @property
    def incoming(self) -> bool:
        """Whether it is for packets that arrive."""
        return arriving(self.parent)


def arriving(parent: str) -> bool:
    """Whether a filter with this parent is for packets that arrive."""
    return parent == "ingress" or (major(parent) == "ffff" and not parent.endswith(":fff3"))


def read(commands: list[Command], account: Account) -> list[Filter]:
    """Filters in the order in which they are tried, each with the packets that no earlier one takes."""
    found = [_filter(command, account) for command in commands if _of_ip(command, account)]
    return _first([one for one in found if one is not None], account)


def _of_ip(command: Command, account: Account) -> bool:
    """Whether it is a filter for IP packets; others are not simulated."""
    words = command.words
    if command.kind not in KINDS:
        account.ignore_whole(command.lines, missed=True)
        return False
    protocol = words[words.index("other-protocol") + 1] if "other-protocol" in words[:-1] else ""
    if protocol in NOT_IP:
        account.ignore_whole(command.lines, f"of packets of {protocol}, which are not simulated")
    return protocol not in NOT_IP


def policers(filters: list[Filter], account: Account) -> list[tuple[Filter, PortMeter, Match]]:
    """The first filter of each policer, the policer, and the packets of all filters that share it."""
    groups: dict[str, list[Filter]] = {}
    for found in filters:
        if found.meter is not None or found.shared:
            groups.setdefault(found.shared or f"line {found.line}", []).append(found)
    result = []
    for index, group in groups.items():
        meter = next((found.meter for found in group if found.meter is not None), None)
        if meter is None:
            account.find("W15", group[0].line, f"police: index {index} is not defined")
            continue
        match = Match.either([found.policed for found in group], group[0].match.line)
        result.append((group[0], meter, match))
    return result


def _first(filters: list[Filter], account: Account) -> list[Filter]:
    taken: dict[str, frozenset[int]] = {}
    open_ended: dict[str, list[Filter]] = {}
    result = []
    for found in sorted(filters, key=lambda f: f.order or math.inf):
        before = taken.get(found.parent, frozenset())
        codes, match = found.match.codepoints, found.match
        if codes is not None:
            on = [one for one in open_ended.get(found.parent, []) if one.match.sure & codes]
            for one in on:
                text = f"police: {one.continues} goes on to the filter of line {found.line}, "
                text += f"to {found.target or 'its policer'}; here all its packets are of"
                account.find("W10", one.line, f"{text} {one.target or 'this'}")
            double = (codes & before).difference(*(one.match.sure for one in on))
            if double == codes:
                account.find("W14", found.line, "a filter whose packets earlier ones take")
            elif double:
                account.find("W14", found.line, f"earlier filters take {units.listed(double)}")
            if codes <= before:
                continue
            match = replace(match, codepoints=codes - before)
        result.append(replace(found, match=match, before=before))
        taken[found.parent] = before | found.match.sure
        if found.continues:
            open_ended.setdefault(found.parent, []).append(found)
    return result


def _filter(command: Command, account: Account) -> Filter | None:
    """A filter; None (with a finding) if it does nothing with queues."""
    at, line, target = 0, command.line, ""
    command.read = True
    codes: frozenset[int] | None = None
    unknown: list[tuple[int, str]] = []
    police: list[str] | None = None
    shown = " ".join([command.kind, *command.words])
    if command.kind in BY_MARK:
        unknown.append((line, shown))
        if command.kind == "tcindex":
            account.find("W17", line, "tcindex is gone from the kernel: this filter matches nothing")
    while words := command.words[at : at + LONGEST]:
        word, used = words[0], 1
        if word in {"flowid", "classid"} and len(words) > 1:
            target, used = words[1], 2
        elif word == "police" or (word == "action" and words[1:2] == ["police"]):
            police = command.words[at + 1 + (word == "action") :]
            break
        elif word == "action":
            target = _chosen(command.words[at + 1 :]) or target
            if not target and not _passes(command):
                drops = bool({"drop", "shot"} & set(command.words))
                text = "its action chooses no class and is not simulated"
                account.ignore_whole(command.lines, text, missed=drops)
                return None
            break
        elif word in {"match", "ip_tos", "dsfield", "ip_dsfield"} and len(words) > 1:
            used, found = _condition(words)
            if found is None:
                unknown.append((line, " ".join(words[:used]) if word == "match" else shown))
            else:
                codes = found if codes is None else codes & found
        elif word in {"handle", "eth_type"} and len(words) > 1:
            used = 2
        elif word not in FLAGS:
            unknown.append((line, shown))
        at += used
    if codes is None and not unknown and command.kind not in {"u32", "matchall", "flower", "basic"}:
        unknown.append((line, shown))
    own = ALL_CODEPOINTS if codes is None else codes
    match = Match.between(frozenset() if unknown else own, own, unknown, line)
    target, shared = target or _target(police or []), _index(police or [])
    defined = police is not None and (not shared or bool({"rate", "pkts_rate"} & set(police)))
    meter = _police(police or [], line, shown, account) if defined else None
    if not target and meter is None and not shared and not _passes(command):
        if police is None:  # else a report of the policer has said so
            text = "a filter without a class or policer"
            account.ignore_whole(command.lines, text, missed=True)
        return None
    lines = frozenset(command.lines)
    on = "" if meter is None else _continues(police or [])
    return Filter(match, target, meter, line, command.prio, command.parent, lines, shared, on)


def _police(words: list[str], line: int, shown: str, account: Account) -> PortMeter | None:
    rate = burst = None
    exceed = "reclassify"
    silent = {"flowid", "classid", "index", "conform", "minburst"}
    while words:
        word, value = words[0], words[1] if len(words) > 1 else ""
        if word == "rate":
            found = linux.rate(value)
            rate = None if not found else Rate(found, line=line, text=f"rate {value}")
        elif word in {"burst", "buffer", "maxburst"}:
            size = linux.size(value.partition("/")[0])
            burst = None if not size else Quantity(size, Unit.BYTES, line, text=f"burst {value}")
        elif word == "pkts_rate" and (number := units.number(value)):
            rate = Rate(number, RateUnit.PACKETS, line, text=f"pkts_rate {value}")
        elif word == "pkts_burst" and (number := units.number(value)):
            burst = Quantity(number, Unit.PACKETS, line, text=f"pkts_burst {value}")
        elif word in {"conform-exceed", "action"} and value:
            exceed = value.partition("/")[0]
        elif word in {"drop", "pass", "ok", "continue", "reclassify", "pipe", "shot"}:
            exceed, words = word, ["", *words]
        elif word in {"mtu", "mpu", "overhead", "linklayer"}:
            if value not in {"0", "0b", "ethernet"} and word != "mtu":
                account.find("W18", line, f"police: `{word} {value}`: packets have their IP size here")
        elif word not in silent:
            account.find("W10", line, f"police: `{word} {value}` is not simulated")
        words = words[2:]
    if rate is None or burst is None:
        account.miss_part(line, f"police without rate and burst is left out: `{shown}`")
        return None
    if exceed not in {"drop", "shot"}:
        text = f"police: what exceeds is not dropped but `{exceed}`; here it becomes yellow"
        account.find("W10", line, text)
    drops = exceed in {"drop", "shot"}
    return PortMeter("one-bucket", rate, burst, line, exceed="drop" if drops else "mark")


def _chosen(words: list[str]) -> str:
    """The class that an action other than a policer chooses by the packet's priority."""
    at = words.index("priority") + 1 if "skbedit" in words and "priority" in words[:-1] else 0
    return words[at] if at and ":" in words[at] else _target(words)


def _passes(command: Command) -> bool:
    words = command.words
    return "action" in words and words[words.index("action") + 1 :] in PASSING


def _target(words: list[str]) -> str:
    for word in ("flowid", "classid"):
        if word in words[:-1]:
            return words[words.index(word) + 1]
    return ""


def _continues(words: list[str]) -> str:
    """The packets of a policer that come to later filters (iproute2: `conform-exceed EXCEED/CONFORM`)."""
    at = words.index("conform-exceed") + 1 if "conform-exceed" in words[:-1] else 0
    given = words[at] if at else "continue" if "continue" in words else ""
    exceed, _, conform = given.partition("/")
    actions = ((exceed, "what exceeds"), (conform, "what conforms"))
    return " and ".join(text for action, text in actions if action == "continue")


def _index(words: list[str]) -> str:
    return words[words.index("index") + 1] if "index" in words[:-1] else ""


def _condition(words: list[str]) -> tuple[int, frozenset[int] | None]:
    """A condition: how many words it has, and its codepoints if it is about the TOS field only."""
    if words[0] == "match":
        used, found = _u32(words[1:])
        return 1 + used, found
    value, _, mask = words[1].partition("/")
    return 2, _tos(value, mask or "fc")


def _u32(words: list[str]) -> tuple[int, frozenset[int] | None]:
    """Read the words after `match` of u32 (iproute2, tc/f_u32.c)."""
    head, second = words[0], words[1] if len(words) > 1 else ""
    if head in {"ip", "ip6"} and second in {"dsfield", "tos", "priority", "precedence"} and len(words) > 3:
        return _offset(words, 4), _tos(words[2], words[3])
    if head in {"ip", "ip6", "tcp", "udp", "icmp", "ether", "mark"}:
        if head in {"tcp", "udp", "mark"}:
            return _offset(words, min(3 if head == "mark" else 4, len(words))), None
        every = second in {"src", "dst"} and len(words) > 2 and words[2] in EVERY_ADDRESS
        used = min(MATCH_WORDS.get(second, 4), len(words))
        return _offset(words, used), ALL_CODEPOINTS if every else None
    if head in {"u8", "u16", "u32"} and len(words) > 2:
        used = _offset(words, 3)
        if _mask(words[2]) == 0:
            return used, ALL_CODEPOINTS
        return used, _tos(words[1], words[2]) if (head, words[3:5]) == ("u8", ["at", "1"]) else None
    return 1, None


def _offset(words: list[str], used: int) -> int:
    """The number of words with those of `at OFFSET` behind them."""
    return used + 2 if words[used : used + 1] == ["at"] and len(words) > used + 1 else used


def _number(text: str) -> int | None:
    return int(text, 0) if re.fullmatch(r"0x[0-9a-fA-F]{1,8}|0|[1-9][0-9]{0,9}", text) else None


def _mask(text: str) -> int | None:
    """A mask, which is hexadecimal also without `0x`."""
    return int(text, 16) if re.fullmatch(r"(0x)?[0-9a-fA-F]{1,8}", text) else None


def _tos(value: str, mask: str) -> frozenset[int] | None:
    first, bits = _number(value), _mask(mask)
    if first is None or bits is None:
        return None
    bits &= 0xFC
    return frozenset(c for c in range(64) if (c << 2) & bits == first & bits)
