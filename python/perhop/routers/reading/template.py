"""A template of traffic for an imported port: a flow for each class, drop curve and meter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import ALL_CODEPOINTS, PortQueue
from perhop.routers.reading.document import Entry, Section
from perhop.routers.reading.rules import Colors
from perhop.routers.units import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perhop.routers.curves import Color

PROBE = 0.05
"""A flow of the template in a strict queue sends this part of the link's rate."""


def traffic(
    order: list[tuple[PortQueue, Colors]],
    policing: Sequence[tuple[str, frozenset[int]]],
    default_name: str,
    packet_size: float | None,
    bps: float,
) -> list[Section]:
    """A flow for each class, color and meter, to be replaced by the traffic of a link of this rate."""
    packet = "1kB" if packet_size is None else units.bytes_text(packet_size)
    greedy = f'{{ tcp = "linux", packet = "{packet}" }}'
    taken = {c for queue, _ in order for c in queue.match.codepoints or ()}
    result: list[Section] = []
    names: set[str] = set()
    sent: set[int] = set()

    def add(name: str, value: int, color: Color, transport: str) -> None:
        while name in names:
            name += "+"
        names.add(name)
        sent.add(value)
        shown = units.SHOWN.get(value)
        entries = [
            Entry("name", quoted(name)),
            Entry("count", "1", 0, None, "how many"),
            Entry("from", '"router"'),
            Entry("to", '"next"'),
            Entry("dscp", quoted(shown) if shown else str(value)),
            Entry("color", quoted(color), 0, None, "the drop curve of these packets"),
            Entry("transport", transport),
        ]
        result.append(Section("[[flows]]", entries))

    for queue, colors in order or [(PortQueue(default_name, 0), Colors())]:
        codepoints = sorted(queue.match.codepoints or ())
        if not codepoints:
            named = [c for c in colors.codepoints if c not in taken]
            codepoints = named or [c for c in range(64) if c not in taken][:1] or [0]
        free = ALL_CODEPOINTS - taken if queue.match.codepoints is None else ALL_CODEPOINTS
        probe = f'{{ udp = "cbr", rate = "{units.rate_text(max(1.0, bps * PROBE))}", packet = "{packet}" }}'
        for label, color, value in _kinds(colors, codepoints, free):
            name = f"{queue.name}-{label}" if label else queue.name
            add(name, value, color, greedy if queue.level is None else probe)
    for name, codes in policing:
        if codes and not codes & sent:
            add(name, min(codes), "green", greedy)
    if result:
        result[0].comments = (
            "Traffic is not part of a router's configuration. This is a template, a flow for each class,",
            "drop curve and meter: replace numbers, round-trip times (access) and transports by your own.",
        )
    return result


def _kinds(colors: Colors, codepoints: list[int], free: frozenset[int]) -> list[tuple[str, Color, int]]:
    """The kinds of packets of a queue, for flows: a name (none for the first), a color, a codepoint."""
    samples = [(label, next((c for c in codes if c in free), None)) for label, codes in colors.samples]
    known = [(label, value) for label, value in samples if value is not None]
    if known:
        return [(label if number else "", "green", value) for number, (label, value) in enumerate(known)]
    flows: dict[Color, int] = {}
    for value in codepoints:
        flows.setdefault(colors.codepoints.get(value, colors.listed[0]), value)
    for color in colors.listed:
        flows.setdefault(color, codepoints[0])
    return [(color if number else "", color, value) for number, (color, value) in enumerate(flows.items())]
