"""The classes of a port: a name for each, and the packets that no earlier one takes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import ALL_CODEPOINTS, Match, Port, PortQueue
from perhop.routers.reading.document import fresh

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perhop.routers.reading.amounts import Amounts, Answers
    from perhop.routers.source import Account

LOCAL_USE = tuple(range(3, 64, 4))
"""Codepoints xxxx11, for local use (RFC 2474, section 6): with `--lenient` those of classes without any."""


class Classes:
    """The classes of one port; answers that are missing go to its amounts."""

    def __init__(self, port: Port, answers: Answers, amounts: Amounts, account: Account) -> None:
        """Findings go to the account."""
        self._port = port
        self._answers = answers
        self._amounts = amounts
        self._account = account
        self.local: Iterator[int] = iter(LOCAL_USE)
        """The codepoints for classes without any."""

    def named(self, queues: list[PortQueue]) -> list[PortQueue]:
        """Give each queue a name of its own."""
        result: list[PortQueue] = []
        names: set[str] = set()
        for queue in queues:
            name = fresh(queue.name.strip() or "unnamed", names)
            if name != queue.name:
                self._account.find("W14", queue.line, f"class {queue.name!r} is called {name} here")
            result.append(queue if name == queue.name else replace(queue, name=name))
        return result

    def disjoint(self, queues: list[PortQueue]) -> list[PortQueue]:
        """Give each class the packets that no earlier one takes; the last takes all others."""
        taken: set[int] = set()
        result: list[PortQueue] = []
        rest: PortQueue | None = None
        for queue in queues:
            line = queue.match.line or queue.line
            if rest is not None:
                text = f"class {queue.name} can never match: class {rest.name} before it takes all packets"
                self._account.find("W14", queue.line, text)
                continue
            codepoints = self.codepoints(queue.match, queue.name, "class")
            if codepoints is None:
                rest = queue
                continue
            left = codepoints - taken
            if not left:
                why = "earlier classes take all its packets" if codepoints else "no packet fulfills it"
                self._account.find("W14", line, f"class {queue.name}: {why}")
                continue
            if left != codepoints:
                double = units.listed(codepoints - left)
                self._account.find("W14", line, f"class {queue.name}: an earlier class takes {double}")
            taken |= left
            result.append(replace(queue, match=replace(queue.match, codepoints=left, unknown=())))
        if taken == ALL_CODEPOINTS:
            if rest is not None and rest.line > 0:
                self._account.find("W14", rest.line, f"class {rest.name}: earlier classes take all packets")
            rest = result.pop()
        elif rest is None and result:
            rest = PortQueue(self._port.default_name, 0)
            self._account.find("W04", self._port.line, "no class for other packets: they get a queue")
        return result if rest is None else [*result, replace(rest, match=Match(None))]

    def codepoints(self, match: Match, name: str, what: str) -> frozenset[int] | None:
        """The packets of a class or policer; None: all others. An answer is for conditions beside these."""
        answered = self._answers.matches.get(name)
        if answered is not None:
            return self._answered(match, name, answered)
        if not match.unknown:
            return match.codepoints
        subject = f"{what} {name}"
        line, text = match.unknown[0]
        known = match.codepoints if match.possible == ALL_CODEPOINTS else match.most
        if not self._answers.lenient:
            why = f"{subject} is chosen by `{text}`, not by codepoint"
            if known:
                why = f"{subject}: `{text}` is no codepoint"
            quoted = f"'{name}'" if " " in name else name
            self._amounts.need(f"--match {quoted}=DSCP", line, why)
            return known or frozenset({next(self.local, 63)})
        if known:
            for place, other in match.unknown:
                why = f"{subject}: `{other}` is no codepoint; only its codepoints are used"
                self._account.find("W13", place, why)
            return known
        value = next(self.local, 63)
        said = f"{subject} is chosen by `{text}`: codepoint {value} is used for it; give --match"
        for place, _ in match.unknown:
            self._account.find("W13", place, said)
        return frozenset({value})

    def _answered(self, match: Match, name: str, answered: frozenset[int]) -> frozenset[int]:
        """The packets of a class with an answer, which replaces its conditions beside codepoints."""
        if not match.unknown:
            if match.codepoints is not None and match.codepoints != answered:
                before = units.listed(match.codepoints) or "no codepoint"
                text = f"--match {name}: {units.listed(answered)} in place of {before}"
                self._account.find("W14", match.line, f"{text}, which the configuration says")
            return answered
        kept = answered & match.most
        if kept != answered:
            text = f"--match {name}: the class does not take {units.listed(answered - kept)}"
            self._account.find("W14", match.unknown[0][0], f"{text}, by its other lines")
        return match.sure | kept


def explicit(queues: list[PortQueue]) -> list[PortQueue]:
    """Queues of which only the last may take all that others do not: one before it names its packets."""
    named = frozenset[int]().union(*(queue.match.codepoints or () for queue in queues))
    return [
        replace(queue, match=replace(queue.match, codepoints=ALL_CODEPOINTS - named))
        if queue.match.codepoints is None and queue is not queues[-1]
        else queue
        for queue in queues
    ]


def complete(queues: list[PortQueue], own: frozenset[int]) -> list[PortQueue]:
    """Queues within a class of these packets: if they take all of them, the last one takes all others."""
    codes = [queue.match.codepoints for queue in queues]
    known = [code for code in codes if code is not None]
    last = next((queue for queue in reversed(queues) if queue.match.codepoints), None)
    if last is None or len(known) < len(codes) or frozenset[int]().union(*known) != own:
        return queues
    rest = replace(last, match=replace(last.match, codepoints=None))
    return [*(queue for queue in queues if queue is not last), rest]
