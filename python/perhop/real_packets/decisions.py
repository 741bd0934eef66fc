"""Decisions of two queues about the same packets: which leave, marked or not, and in which order.

One queue is the kernel's: of each packet it is known when it was handed over and when it left. The other one
is a block, which is called as the kernel calls a discipline: it is offered each packet as it arrives, and
asked for packets that may leave. No link follows it.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

NEVER = 2**63
"""A time after all others."""
CE = 3
"""The ECN field of a marked packet."""
RESOLUTION_NS = 10_000
"""The exactness of the times at which the kernel asked its queue. A departure's time follows the decision:
two packets that leave in a row are 5 to 8 µs apart. A packet is enqueued within the call that hands it over.
"""
MOST_AHEAD = 4
"""Departures that may have come before an arrival, at most: within the resolution there are no more."""
FORGOTTEN_NS = 1_000_000_000
"""A departure that was so long ago tells nothing about the buckets."""
MOST_OTHERS = 8
"""Blocks that are kept because the kernel may have decided earlier; the oldest one goes."""
STEP_NS = 500
"""Steps in which times within the resolution are tried."""
Fate = tuple[int, str, str | None, str, int]
"""The engine's report on a packet: its number, `pass`, `mark` or `drop`, the reason, color, ECN field."""
Fields = tuple[int, str, int, int, int, int, int]
"""The fields of a packet that blocks see: size, color, codepoint, ECN field, flow, path, contracted rate."""


class Queue(Protocol):
    """A queue that is driven by hand: `perhop._engine.QueueByHand`."""

    def copy(self) -> Queue:
        """A copy that goes on by itself."""

    def offer(self, ns: int, number: int, fields: Fields) -> list[Fate]:
        """A packet arrives."""

    def departure(self, ns: int) -> tuple[list[Fate], Fate | None, int | None]:
        """The packets dropped now, the one that leaves, and when to ask again."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A packet that was handed to the kernel; times are nanoseconds.

    Attributes:
        began_ns: When the call began that handed it over.
        ended_ns: When that call ended.
        fields: What a block sees of it.
    """

    began_ns: int
    ended_ns: int
    fields: Fields

    @property
    def latest_ns(self) -> int:
        """The latest time of a departure that may have come before the packet."""
        return self.ended_ns + RESOLUTION_NS


@dataclass(frozen=True, slots=True)
class Passed:
    """The fates of packets, in the order in which they were offered.

    Attributes:
        left_ns: When each left; None if it was dropped.
        marked: Whether each left with a congestion mark.
        refused: Whether each was dropped as it came.
    """

    left_ns: list[int | None]
    marked: list[bool]
    refused: list[bool]

    @classmethod
    def none(cls, packets: int) -> Passed:
        """Nothing has come yet."""
        return cls([None] * packets, [False] * packets, [False] * packets)

    def note(self, fate: Fate, ns: int) -> None:
        """A packet leaves."""
        self.left_ns[fate[0]], self.marked[fate[0]] = ns, fate[4] == CE


def own_time(queue: Queue, packets: Sequence[Offered]) -> Passed:
    """Drive a block that is asked for packets as soon as it has some that may leave."""
    found = Passed.none(len(packets))

    def serve(ns: int) -> int:
        """Take the packets that may leave now; return when to ask again."""
        while True:
            _, fate, until = queue.departure(ns)
            if fate is None:
                return NEVER if until is None else until
            found.note(fate, ns)

    again = NEVER
    for number, packet in enumerate(packets):
        while again <= packet.began_ns:
            again = serve(again)
        fate = queue.offer(packet.began_ns, number, packet.fields)[0]
        found.refused[number] = fate[1] == "drop"
        again = serve(packet.began_ns)
    while again < NEVER:
        again = serve(again)
    return found


@dataclass(frozen=True, slots=True)
class Followed:
    """The decisions of a block that followed the kernel's queue.

    Attributes:
        passed: What became of packets.
        tied: The packets about which it decided as the kernel only at another time within the resolution.
        late_ns: How long after the block could have sent one each packet left, in the order of departures;
            negative where the block would have waited longer.
    """

    passed: Passed
    tied: set[int]
    late_ns: list[int]


def following(queue: Queue, packets: Sequence[Offered], kernel: Passed) -> Followed:
    """Drive a block that is asked for a packet whenever the kernel's queue sent one.

    Where it would decide otherwise, and its answer depends on the order of events that are too close to tell
    apart, they have the order in which it decides as the kernel did. A departure's time may be that of the
    decision, or the kernel decided earlier, when the block could have sent the packet, and was interrupted
    before it left: then, too. Both can send the same packet at the cost of different buckets.
    """
    return _Follower(queue, packets, kernel).follow()


class _Follower:
    """A block on its way behind the kernel's queue."""

    def __init__(self, queue: Queue, packets: Sequence[Offered], kernel: Passed) -> None:
        self._packets, self._kernel = packets, kernel
        sent = [(ns, number) for number, ns in enumerate(kernel.left_ns) if ns is not None]
        self._sent = sorted(sent)
        self._found = Followed(Passed.none(len(packets)), set(), [])
        self._state = _State(queue, 0)
        self._could: _Asked | None = None
        """The next packet that the block sends if it is asked at all times, once any has come."""
        self._before: tuple[_State, int] | None = None
        """The packet that came last, and the block before, unless one left since."""
        self._others: list[_Other] = []
        """The blocks if the kernel had decided earlier than a packet left, the newest last."""

    def follow(self) -> Followed:
        """Go through arrivals and departures in the order of time."""
        arrivals, departures = 0, 0
        while arrivals < len(self._packets) or departures < len(self._sent):
            sent = self._sent[departures : departures + MOST_AHEAD]
            if arrivals == len(self._packets) or (sent and sent[0][0] < self._packets[arrivals].began_ns):
                self._depart(sent[0])
                departures += 1
            else:
                departures += self._arrive(arrivals, sent)
                arrivals += 1
        return self._found

    def _depart(self, sent: tuple[int, int]) -> None:
        """Let a packet leave when the kernel's queue sent one."""
        ns, number = sent
        could = self._could
        could_ns = NEVER if could is None or could.fate is None else could.state.clock
        asked, is_tied = _departure(self._state, sent, self._packets, self._before, could_ns)
        others = [(_departure(one.state, sent, self._packets, None)[0], one.since) for one in self._others]
        agreeing = [(one, since) for one, since in others if one.agrees(sent) and ns - since < FORGOTTEN_NS]
        if agreeing and not asked.agrees(sent):
            (asked, _), is_tied = agreeing.pop(), True
        self._others = [_Other(one.state, since) for one, since in agreeing]
        if could is not None and could.fate is not None:
            self._found.late_ns.append(ns - could.state.clock)
            early = self._state.asked(could.state.clock)
            if early.number == number and early.state.differs(asked.state, ns):
                self._others = [*self._others, _Other(early.state, ns)][-MOST_OTHERS:]
        if is_tied:
            self._found.tied.add(number)
        if asked.fate is not None:
            self._found.passed.note(asked.fate, ns)
        self._state, self._before = asked.state, None
        self._could = self._state.asked(ns)

    def _arrive(self, number: int, sent: Sequence[tuple[int, int]]) -> int:
        """Let a packet come, behind the next departures if only then it fares as in the kernel.

        Returns how many left before it.
        """
        packet, ahead = self._packets[number], 0
        after, is_refused = self._state.offered(packet, number)
        before: tuple[_State, int] | None = (self._state, number)
        if not _agrees(self._kernel, number, is_refused=is_refused):
            ahead = self._ahead(number, sent)
        if ahead:
            self._found.tied.add(number)
            for one in sent[:ahead]:
                self._depart(one)
            after, is_refused = self._state.offered(packet, number)
            before = None
        others = [(one.state.offered(packet, number), one.since) for one in self._others]
        agreeing = [one for one in others if _agrees(self._kernel, number, is_refused=one[0][1])]
        if agreeing and not _agrees(self._kernel, number, is_refused=is_refused):
            ((after, is_refused), _), before = agreeing.pop(), None
            self._found.tied.add(number)
        self._others = [_Other(one[0], since) for one, since in agreeing]
        self._found.passed.refused[number] = is_refused
        self._state, self._before = after, before
        could = self._could
        if could is None or could.fate is None or could.state.clock > packet.began_ns:
            self._could = after.asked(packet.began_ns)
        return ahead

    def _ahead(self, number: int, sent: Sequence[tuple[int, int]]) -> int:
        """Return how many departures before a packet's arrival make it fare as in the kernel, or 0."""
        packet, state = self._packets[number], self._state
        for count, one in enumerate(sent, 1):
            if one[0] > packet.latest_ns:
                return 0
            asked, _ = _departure(state, one, self._packets, None)
            if not asked.agrees(one):
                return 0
            state = asked.state
            _, is_refused = state.offered(packet, number)
            if _agrees(self._kernel, number, is_refused=is_refused):
                return count
        return 0


@dataclass(frozen=True, slots=True)
class _State:
    """A block and the time at which it was asked last. Whatever is done to it is done to a copy."""

    queue: Queue
    clock: int

    def offered(self, packet: Offered, number: int) -> tuple[_State, bool]:
        """The block after a packet has come, and whether it refused that."""
        queue = self.queue.copy()
        fate = queue.offer(max(self.clock, packet.began_ns), number, packet.fields)[0]
        return _State(queue, self.clock), fate[1] == "drop"

    def asked(self, ns: int) -> _Asked:
        """Ask it for a packet now or, if it names a later time, then."""
        queue, clock = self.queue.copy(), max(self.clock, ns)
        while True:
            _, fate, until = queue.departure(clock)
            if fate is not None or until is None or until <= clock:
                return _Asked(_State(queue, clock), fate)
            clock = until

    def differs(self, other: _State, ns: int) -> bool:
        """Whether the other block sends something else next, or at another time, if nothing comes."""
        ours, theirs = self.asked(ns), other.asked(ns)
        return ours.number != theirs.number or abs(ours.state.clock - theirs.state.clock) > RESOLUTION_NS


@dataclass(frozen=True, slots=True)
class _Other:
    """A block that differs from the one that is followed since a packet left."""

    state: _State
    since: int


@dataclass(frozen=True, slots=True)
class _Asked:
    """The answer of a block that is asked for a packet."""

    state: _State
    fate: Fate | None

    def agrees(self, sent: tuple[int, int]) -> bool:
        """Whether the block sends the packet that the kernel's queue sent, no later than that."""
        ns, number = sent
        return self.number == number and self.state.clock <= ns + RESOLUTION_NS

    @property
    def number(self) -> int | None:
        """The number of the packet."""
        return None if self.fate is None else self.fate[0]


def _departure(
    state: _State,
    sent: tuple[int, int],
    packets: Sequence[Offered],
    before: tuple[_State, int] | None,
    could_ns: int = NEVER,
) -> tuple[_Asked, bool]:
    """Ask a block for what the kernel's queue sent; also return whether the time decides the answer.

    Args:
        state: The block.
        sent: When what left the kernel's queue.
        packets: All packets.
        before: The block before the packet that came last, and this packet.
        could_ns: When the block could have sent a packet: the kernel decided then or later.
    """
    ns, number = sent
    first = state.asked(ns)
    if first.number == number:
        return first, False
    earliest = max(min(could_ns, ns - RESOLUTION_NS), state.clock)
    later = range(ns + STEP_NS, ns + RESOLUTION_NS + 1, STEP_NS)
    for time in sorted([*range(ns, earliest, -STEP_NS), earliest, *later], key=lambda time: abs(time - ns)):
        other = state.asked(time)
        if other.number == number:
            return other, True
    if before is not None and ns <= packets[before[1]].latest_ns:
        earlier, arrived = before
        other = earlier.asked(ns)
        if other.number == number:
            after, _ = other.state.offered(packets[arrived], arrived)
            return _Asked(after, other.fate), True
    return first, False


def _agrees(kernel: Passed, number: int, *, is_refused: bool) -> bool:
    """Whether a block takes a packet as the kernel's queue did; it may drop at once what that drops later."""
    return is_refused == kernel.refused[number] or (is_refused and kernel.left_ns[number] is None)


def out_of_turn(first: Sequence[int | None], second: Sequence[int | None]) -> set[int]:
    """The packets that left in another order: the fewest without which both orders are the same.

    Args:
        first: When each packet left one queue; None if it did not.
        second: When it left the other one.
    """
    both = [
        (one, other, n)
        for n, (one, other) in enumerate(zip(first, second, strict=True))
        if one is not None and other is not None
    ]
    ranks = {n: rank for rank, (_, n) in enumerate(sorted((other, n) for _, other, n in both))}
    # The longest increasing subsequence (Fredman 1975): the last packets of those of each length, and what
    # precedes each packet.
    ends: list[int] = []
    last: list[int] = []
    before: dict[int, int] = {}
    for _, n in sorted((one, n) for one, _, n in both):
        place = bisect.bisect_left(ends, ranks[n])
        before[n] = last[place - 1] if place else -1
        ends[place : place + 1] = [ranks[n]]
        last[place : place + 1] = [n]
    kept = set[int]()
    n = last[-1] if last else -1
    while n >= 0:
        kept.add(n)
        n = before[n]
    return set(ranks) - kept


@dataclass(frozen=True, slots=True)
class Differences:
    """The packets about which two queues decided differently.

    Attributes:
        fates: One dropped them, the other one did not.
        marks: Both sent them, one with a congestion mark.
        turns: Both sent them, in another order.
    """

    fates: set[int]
    marks: set[int]
    turns: set[int]

    @classmethod
    def between(cls, one: Passed, other: Passed) -> Differences:
        """Compare packet by packet."""
        pairs = list(enumerate(zip(one.left_ns, other.left_ns, strict=True)))
        fates = {n for n, (first, second) in pairs if (first is None) != (second is None)}
        sent = {n for n, (first, second) in pairs if first is not None and second is not None}
        marks = {n for n in sent if one.marked[n] != other.marked[n]}
        return cls(fates, marks, out_of_turn(one.left_ns, other.left_ns))

    @property
    def packets(self) -> set[int]:
        """All of them."""
        return self.fates | self.marks | self.turns
