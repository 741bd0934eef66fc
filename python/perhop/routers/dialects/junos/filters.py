"""Meters as policers of Junos, and the firewall filter that applies them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers.dialects.junos.ranges import RANGES
from perhop.routers.dialects.junos.words import Block, code_points, short, word
from perhop.routers.model import ALL_CODEPOINTS
from perhop.routers.outgoing import MARKERS, MeterOut, codepoints, unique

if TYPE_CHECKING:
    from perhop.routers.dialects.junos.words import Node
    from perhop.routers.outgoing import Outgoing, QueueOut, Remarks

SLOWEST = 61_000.0
"""Bit/s: slower policers have coarse steps on old platforms (Junos 9.3)."""
KINDS = {"srtcm": "single-rate", "trtcm": "two-rate"}


def filters(link: Outgoing, remarks: Remarks) -> tuple[list[Node], list[Node]]:
    """The policers of a link, and the terms of the filter that applies them."""
    return _Filters(remarks).made(link)


class _Filters:
    def __init__(self, remarks: Remarks) -> None:
        self._remarks = remarks

    def made(self, link: Outgoing) -> tuple[list[Node], list[Node]]:
        policers: list[Node] = []
        terms: list[Node] = []
        used = {"others"}
        meters = self._meters(link)
        for meter in meters:
            name = unique(word(meter.name), used)
            used.add(name.lower())
            found = self._policer(meter, name)
            then: list[Node] = []
            if found is not None:
                policers.append(found[0])
                then = [found[1]]
            others = codepoints(one for one in meters if one is not meter)
            held: list[Node] = [Block("then", [*then, "accept"])]
            if not (meter is meters[-1] and meter.codepoints == ALL_CODEPOINTS - others):
                held.insert(0, Block("from", [f"dscp {code_points(meter.codepoints)}"]))
            terms.append(Block(f"term {name}", held))
        if not policers:
            return [], []
        if terms:
            terms.append(Block("term others", [Block("then", ["accept"])]))
            text = "the filter is for IPv4; one for IPv6 has the same terms with `traffic-class`"
            self._remarks.differs(f"{link.place}.meters", text)
        return policers, terms

    def _meters(self, link: Outgoing) -> list[MeterOut]:
        """Every meter, also the policers of strict queues; one that takes all others is the last."""
        meters = [queue.meter for queue in link.queues if queue.meter is not None] + link.meters
        taken = codepoints(meters)
        for queue in link.queues:
            if queue.strict and queue.cap is not None:
                if queue.codepoints & taken:
                    text = "a packet passes one policer of a filter; that of the meter is written"
                    self._remarks.left_out(f"{queue.place}.rate", text)
                else:
                    meters.insert(0, self._of_strict(queue))
        rest = [queue.codepoints for queue in link.queues if queue.rest]
        return sorted(meters, key=lambda meter: meter.codepoints in rest)

    def _of_strict(self, queue: QueueOut) -> MeterOut:
        """The policer of a strict queue."""
        text = "the policer acts always; import reads it as a meter of the link"
        if not queue.policed_always:
            text = "the policer acts always, not in congestion only; import reads it as a meter of the link"
        self._remarks.differs(f"{queue.place}.rate", text)
        return MeterOut.of_strict(queue)

    def _policer(self, meter: MeterOut, name: str) -> tuple[Node, Node] | None:
        """A policer, and the statement that applies it."""
        place, marker, out = f"{meter.place}.profile", meter.marker, meter.out
        if marker not in MARKERS:
            self._remarks.left_out(f"{place}.marker", f"Junos has no policer like {marker}")
            return None
        cir = self._bps(place, "rate", meter.rate)
        cbs = self._bytes(place, "burst", meter.burst)
        if out != "drop":
            text = "loss priorities, which drop profiles see; codepoints are those of rewrite rules"
            self._remarks.differs(f"{place}.out", text)
        if marker == "token-bucket":
            limits: list[Node] = [f"bandwidth-limit {cir}", f"burst-size-limit {cbs}"]
            action = "then discard" if out in {"drop", "drop-red"} else "then loss-priority high"
            return Block(f"policer {name}", [Block("if-exceeding", limits), action]), f"policer {name}"
        if out == "drop":
            text = "a three-color policer drops red packets only; here also yellow ones"
            self._remarks.left_out(f"{place}.out", text)
        kind = KINDS[marker]
        held: list[Node] = [meter.mode]
        held += [f"committed-information-rate {cir}", f"committed-burst-size {cbs}"]
        if marker == "trtcm":
            held.append(f"peak-information-rate {self._bps(place, 'peak-rate', meter.peak_rate)}")
        held.append(f"{meter.second}-size {self._bytes(place, meter.second, meter.second_burst)}")
        inner: list[Node] = [Block(kind, held)]
        if out != "mark":
            inner.insert(0, Block("action", ["loss-priority high then discard"]))
        return Block(f"three-color-policer {name}", inner), Block("three-color-policer", [f"{kind} {name}"])

    def _bps(self, place: str, key: str, bps: float) -> str:
        whole = self._remarks.rate(place, key, bps, RANGES["rate"])
        if whole < SLOWEST:
            text = f"below {SLOWEST / 1000:g} kbit/s some platforms round coarsely"
            self._remarks.differs(f"{place}.{key}", text)
        return short(whole)

    def _bytes(self, place: str, key: str, value: float) -> str:
        return short(self._remarks.bytes(place, key, value, RANGES["burst"]))
