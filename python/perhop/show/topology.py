"""A picture of a scenario's network, drawn from the scenario itself: routers, links, queues, hosts, flows.

Everything is placed by measured boxes, in points from the upper left corner: no text covers another. What
finds no place beside its link is numbered and named below the drawing.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from perhop import _engine
from perhop.errors import PerhopError
from perhop.plurals import counted
from perhop.show.numbers import quantity
from perhop.show.sheet import (
    INK,
    MUTED,
    SERIES,
    SMALL,
    Picture,
    Shown,
    styled,
    text_width,
    to_png,
    to_svg,
    whole,
)
from perhop.show.text import label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE = 11.5
"""Height of a line of text, of which BASE lie above its base line."""
BASE = 8.5
MARGIN = 10.0
BOX = 18.0
"""Height of a router."""
GAP = 4.0
"""The free space between two texts."""
ABOVE, BELOW = 3 * LINE + GAP, BOX / 2 + 14.0
"""Room of a row of routers above their middle line, and below it without hosts."""
LEAST_STEP = 110.0
ARROW = 20.0
"""The length of a link's line that is visible on both sides of its name."""
MOST_ROUTERS = 60
"""Networks of more routers are described in words."""
NAME_CHARACTERS, LINE_CHARACTERS = 20, 110
MOST_HOSTS = 3
"""Kinds of hosts at a router that are drawn one by one; more are drawn as one."""
MOST_LINES = 8
"""Lines on flows at a router; what does not fit is counted."""
MOST_NAMED = 40
"""Lines below the drawing, on links and on flows; what does not fit is counted."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle; y grows downward."""

    x: float
    y: float
    width: float
    height: float

    def meets(self, other: Box) -> bool:
        """Whether they overlap, or nearly so."""
        return (
            self.x < other.x + other.width + GAP / 2
            and other.x < self.x + self.width + GAP / 2
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text that begins at x."""

    x: float
    base: float
    text: str
    color: str = INK

    @property
    def box(self) -> Box:
        """The area that the text covers."""
        return Box(self.x, self.base - BASE, 1.03 * text_width(self.text, SMALL), LINE)


@dataclass(frozen=True, slots=True)
class Arc:
    """A link: a curve from one router to another, bent by its middle's distance from the straight line."""

    begin: tuple[float, float]
    end: tuple[float, float]
    bend: float

    def at(self, part: float) -> tuple[float, float]:
        """The point after a part of the curve."""
        (x0, y0), (x1, y1) = self.begin, self.end
        size = math.hypot(x1 - x0, y1 - y0) or 1.0
        # A quadratic curve's control point lies twice as far out as its middle; y grows downward.
        reach = 4.0 * part * (1.0 - part) * self.bend
        return (
            x0 + part * (x1 - x0) + reach * (y1 - y0) / size,
            y0 + part * (y1 - y0) - reach * (x1 - x0) / size,
        )


@dataclass(slots=True)
class Layout:
    """The place of everything."""

    routers: dict[str, Box] = field(default_factory=dict)
    arcs: list[Arc] = field(default_factory=list)
    ends: list[tuple[str, str]] = field(default_factory=list)
    hosts: list[tuple[tuple[float, float], Sequence[Line]]] = field(default_factory=list)
    labels: list[tuple[Box, Sequence[Line]]] = field(default_factory=list)
    below: list[Line] = field(default_factory=list)

    @property
    def taken(self) -> Iterator[Box]:
        """All that a text must not cover."""
        yield from self.routers.values()
        yield from (line.box for _, lines in self.hosts for line in lines)
        yield from (box for box, _ in self.labels)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of all that is there, with a margin."""
        boxes = [*self.taken, *(line.box for line in self.below)]
        points = [arc.at(part / 8) for arc in self.arcs for part in range(9)]
        across = [x for box in boxes for x in (box.x, box.x + box.width)] + [x for x, _ in points]
        down = [y for box in boxes for y in (box.y, box.y + box.height)] + [y for _, y in points]
        left, right = min(across, default=0.0), max(across, default=0.0)
        return left - MARGIN, min(down, default=0.0) - MARGIN, right + MARGIN, max(down, default=0.0) + MARGIN


def topology(scenario: Mapping[str, Any], name: str) -> Picture:
    """The picture for a file.

    Args:
        scenario: As canonical JSON reads.
        name: For the file's name.
    """
    return draw_network(scenario, name)[1]


def network_svg(scenario: Mapping[str, Any]) -> tuple[str, str]:
    """The picture as an SVG document, and what it shows, for readers who do not see it."""
    written = written_out(scenario)
    with styled():
        return to_svg(draw(layout(written))), _described(written)


def network_figure(scenario: Mapping[str, Any]) -> Figure:
    """The picture as a figure."""
    with styled():
        return draw(layout(written_out(scenario)))


def _described(scenario: Mapping[str, Any]) -> str:
    routers, links = _size(scenario)
    return f"Network of {routers} routers and {links} link{'s' if links > 1 else ''}"


def draw_network(scenario: Mapping[str, Any], name: str) -> tuple[str, Picture]:
    """The picture as an SVG element for a page, and for a file."""
    with styled():
        written = written_out(scenario)
        figure = draw(layout(written))
        alt = _described(written)
        picture = Picture(f"{name}-network", alt, to_svg(figure), to_png(figure))
    element = whole(picture.svg, picture.name, alt)
    pixels = float(figure.get_figwidth()) * 96
    return element.replace("<svg", f'<svg style="width:{pixels:.0f}px"', 1), picture


def check_size(routers: int) -> None:
    """Refuse to draw what would only be described in words.

    Raises:
        PerhopError: There are too many routers.
    """
    if routers > MOST_ROUTERS:
        raise PerhopError(f"--plot: {routers} routers; networks of at most {MOST_ROUTERS} are drawn")


def written_out(scenario: Mapping[str, Any]) -> Mapping[str, Any]:
    """The scenario with a table for each link of its topology, unless it is too large to be drawn."""
    if "topology" not in scenario or _size(scenario)[0] > MOST_ROUTERS:
        return scenario
    written: dict[str, Any] = json.loads(_engine.written_out(json.dumps(scenario)))
    return written


def _size(scenario: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many routers and links a scenario has."""
    if "topology" not in scenario:
        return len(places(scenario)), len(scenario["links"])
    shape = json.loads(_engine.shape(json.dumps(scenario)))
    return shape["routers"], shape["links"]


def distinct(scenarios: Iterable[Mapping[str, Any]], name: str) -> list[tuple[Mapping[str, Any], str]]:
    """The first scenario on each graph of routers, with its picture's name; others differ in queues."""
    found: dict[frozenset[tuple[str, str, str]], Mapping[str, Any]] = {}
    for scenario in scenarios:
        links = written_out(scenario)["links"]
        graph = frozenset((link, at["from"], at["to"]) for link, at in links.items())
        found.setdefault(graph, scenario)
    return [(one, f"{name}-{n}" if n > 1 else name) for n, one in enumerate(found.values(), start=1)]


def places(scenario: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Column and row of each router: columns by hops from where most flows begin, rows by name."""
    links = list(scenario["links"].values())
    neighbours: dict[str, set[str]] = {}
    for link in links:
        neighbours.setdefault(link["from"], set()).add(link["to"])
        neighbours.setdefault(link["to"], set()).add(link["from"])
    found: dict[str, tuple[int, int]] = {}
    column = 0
    for start in _starts(scenario, neighbours):
        layer = [start] if start not in found else []
        while layer:
            taken = sum(place[0] == column for place in found.values())
            found |= {router: (column, taken + row) for row, router in enumerate(layer)}
            layer = sorted({n for router in layer for n in neighbours[router]} - found.keys())
            column += 1
    return found


def _starts(scenario: Mapping[str, Any], neighbours: Mapping[str, set[str]]) -> list[str]:
    """Routers to lay out from: where most flows begin first, then whatever is not joined to it."""
    begins: Counter[str] = Counter()
    for flow in _between_two(scenario):
        begins[ends(scenario, flow)[0]] += int(flow["count"])
    return [router for router, _ in begins.most_common()] + sorted(neighbours)


def _between_two(scenario: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The groups of flows between two routers; a matrix spreads others."""
    return (flow for flow in scenario["flows"] if "between" not in flow)


def _matrix_lines(scenario: Mapping[str, Any]) -> list[str]:
    """The groups that a matrix spreads: `100 × tcp (tcp newreno), by gravity`."""
    lines = []
    for flow in scenario["flows"]:
        if (matrix := flow.get("between")) is not None:
            how = matrix.get("name", "given demands") if "demands" in matrix else "gravity"
            lines.append(f"{flow['count']} × {label(flow['name'], 32)} ({_kind(flow)}), by {how}")
    return lines


def ends(scenario: Mapping[str, Any], flow: Mapping[str, Any]) -> tuple[str, str]:
    """The routers of a group's hosts; a path's where the group names one."""
    via = scenario.get("paths", {}).get(flow.get("path"), {}).get("via", [flow.get("from"), flow.get("to")])
    return str(flow.get("from") or via[0]), str(flow.get("to") or via[-1])


def layout(scenario: Mapping[str, Any]) -> Layout:
    """Place routers, hosts and the names of links; list flows below."""
    made = Layout()
    if "topology" in scenario:
        shape = json.loads(_engine.shape(json.dumps(scenario)))
        words = f"{shape['words']}: {counted(shape['routers'], 'router')}, {counted(shape['links'], 'link')}"
        _place_list(made, [words, *_matrix_lines(scenario)], "")
        return made
    links = [(label(name, NAME_CHARACTERS), link) for name, link in scenario["links"].items()]
    at = places(scenario)
    unnamed = links
    if len(at) <= MOST_ROUTERS:
        _place_routers(made, scenario, at, links)
        unnamed = _place_links(made, links)
    _place_list(made, _link_lines(unnamed, scenario), "Links:" if len(unnamed) == len(links) else "")
    flows = [
        f"{label(router, NAME_CHARACTERS)}: {text}" for router in at for text in _flow_texts(scenario, router)
    ]
    _place_list(made, [*flows, *_matrix_lines(scenario)], "")
    return made


def _place_routers(
    made: Layout,
    scenario: Mapping[str, Any],
    at: Mapping[str, tuple[int, int]],
    links: Sequence[tuple[str, Mapping[str, Any]]],
) -> None:
    names = {router: label(router, NAME_CHARACTERS) for router in at}
    wide = {router: text_width(name, SMALL) + 16.0 for router, name in names.items()}
    hosts = {router: _host_texts(scenario, router) for router in at}
    columns = max(column for column, _ in at.values()) + 1
    steps = [LEAST_STEP] * columns
    for name, link in links:
        (x0, y0), (x1, y1) = sorted((at[link["from"]], at[link["to"]]))
        if x1 - x0 == 1 and y0 == y1:
            room = (wide[link["from"]] + wide[link["to"]]) / 2 + _widest(_label_texts(name, link)) + ARROW
            steps[x0] = max(steps[x0], room)
    for router, (column, _) in at.items():
        steps[column] = max(steps[column], _widest(hosts[router]) + 24.0)
    half = max(wide[router] / 2 for router, (column, _) in at.items() if column == 0)
    middles = [MARGIN + half + sum(steps[:column]) for column in range(columns)]
    y = MARGIN
    for row in range(max(row for _, row in at.values()) + 1):
        mine = [router for router, place in at.items() if place[1] == row]
        y += ABOVE
        for router in mine:
            x = middles[at[router][0]]
            made.routers[router] = Box(x - wide[router] / 2, y - BOX / 2, wide[router], BOX)
            texts = hosts[router]
            bases = [y + BELOW + BASE + LINE * number for number in range(len(texts))]
            lines = [Line(x + 9.0, base, text, MUTED) for base, text in zip(bases, texts, strict=True)]
            made.hosts.append(((x, y), lines))
        y += BELOW + LINE * max(len(hosts[router]) for router in mine) + 2 * GAP


def _widest(texts: Sequence[str]) -> float:
    return max((text_width(text, SMALL) for text in texts), default=0.0)


def _place_links(
    made: Layout, links: Sequence[tuple[str, Mapping[str, Any]]]
) -> list[tuple[str, Mapping[str, Any]]]:
    """Draw the links and name those whose names find a place; the others."""
    ranks: Counter[tuple[str, ...]] = Counter()
    for _, link in links:
        pair = tuple(sorted((link["from"], link["to"])))
        made.arcs.append(_arc(made, link["from"], link["to"], ranks[pair]))
        made.ends.append((link["from"], link["to"]))
        ranks[pair] += 1
    unnamed: list[tuple[str, Mapping[str, Any]]] = []
    for arc, (name, link) in zip(made.arcs, links, strict=True):
        if not _place_label(made, arc, _label_texts(name, link)):
            number = str(len(unnamed) + 1)
            _place_label(made, arc, [number])
            unnamed.append((name, link))
    return unnamed


def _arc(made: Layout, source: str, target: str, rank: int) -> Arc:
    begin, end = (
        (box.x + box.width / 2, box.y + box.height / 2)
        for box in (made.routers[source], made.routers[target])
    )
    # Links between the same routers, and those with a router in between, go around.
    bends = [0.0] if rank == 0 else []
    bends += [side * size for size in (26.0, 44.0, 62.0, 80.0) for side in (1.0, -1.0)]
    others = [box for name, box in made.routers.items() if name not in {source, target}]
    free = [bend for bend in bends if not _crosses(Arc(begin, end, bend), others)]
    possible = free or bends
    return Arc(begin, end, possible[min(max(rank - 1, 0), len(possible) - 1)])


def _crosses(arc: Arc, boxes: Sequence[Box]) -> bool:
    points = [arc.at(part / 24) for part in range(25)]
    return any(box.meets(Box(x, y, 0.0, 0.0)) for x, y in points for box in boxes)


def _label_texts(name: str, link: Mapping[str, Any]) -> list[str]:
    rule = label(queue_text(link.get("queue")), NAME_CHARACTERS + 8)
    return [text for text in (name, f"{quantity(link['rate'])}, {quantity(link['delay'])}", rule) if text]


def _place_label(made: Layout, arc: Arc, texts: Sequence[str]) -> bool:
    """Put a link's name above, below, on or beside it, where it covers nothing."""
    width, height = _widest(texts) + 2.0, LINE * len(texts)
    level = abs(arc.begin[1] - arc.end[1]) < 1.0
    taken = list(made.taken)
    for part in (0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78):
        x, y = arc.at(part)
        tops = (y - GAP - height, y + GAP + 1.0, y - height / 2) if level else (y - height / 2,)
        for top in tops:
            box = Box(x - width / 2, top, width, height)
            if not any(box.meets(other) for other in taken):
                bases = [top + BASE + LINE * number for number in range(len(texts))]
                lines = [
                    Line(x - text_width(text, SMALL) / 2, base, text, INK if not number else MUTED)
                    for number, (base, text) in enumerate(zip(bases, texts, strict=True))
                ]
                made.labels.append((box, lines))
                return True
    return False


def _link_lines(links: Sequence[tuple[str, Mapping[str, Any]]], scenario: Mapping[str, Any]) -> list[str]:
    numbered = len(places(scenario)) <= MOST_ROUTERS
    out = []
    for number, (name, link) in enumerate(links, 1):
        ends = " → ".join(label(link[end], NAME_CHARACTERS) for end in ("from", "to"))
        what = ", ".join(_label_texts(name, link)[1:])
        out.append(f"{number}  {name}: {ends}, {what}" if numbered else f"{name}: {ends}, {what}")
    return out


def _place_list(made: Layout, texts: Sequence[str], title: str) -> None:
    """Lines below all that is there."""
    if not texts:
        return
    shown = [label(text, LINE_CHARACTERS) for text in texts[:MOST_NAMED]]
    if len(texts) > MOST_NAMED:
        shown.append(f"and {len(texts) - MOST_NAMED} more")
    top = made.bounds[3]
    for number, text in enumerate([title, *shown] if title else shown):
        made.below.append(Line(MARGIN, top + BASE + LINE * 1.1 * number, text))


def draw(made: Layout) -> Figure:
    """The picture of a layout."""
    left, top, right, bottom = made.bounds
    figure = Shown(figsize=((right - left) / 72, (bottom - top) / 72))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    for arc, ends in zip(made.arcs, made.ends, strict=True):
        _draw_arc(axes, arc, *(made.routers[end] for end in ends))
    for (x, y), lines in made.hosts:
        _draw_hosts(axes, x, y, lines)
    for box, _ in made.labels:
        axes.add_patch(
            Rectangle((box.x, box.y), box.width, box.height, facecolor="#ffffff", linewidth=0, zorder=2)
        )
    for router, box in made.routers.items():
        _draw_router(axes, label(router, NAME_CHARACTERS), box)
    for line in [*(one for _, lines in made.labels for one in lines), *made.below]:
        _write(axes, line)
    return figure


def _draw_arc(axes: Axes, arc: Arc, source: Box, target: Box) -> None:
    (x0, y0), (x1, y1) = arc.begin, arc.end
    size = math.hypot(x1 - x0, y1 - y0) or 1.0
    axes.add_patch(
        FancyArrowPatch(
            arc.begin,
            arc.end,
            connectionstyle=f"arc3,rad={-2.0 * arc.bend / size:.4f}",
            arrowstyle="-|>",
            mutation_scale=9,
            color=MUTED,
            linewidth=1.3,
            shrinkA=_inside(source, arc.at(0.15)),
            shrinkB=_inside(target, arc.at(0.85)) + 1.0,
            zorder=1,
        )
    )


def _inside(box: Box, toward: tuple[float, float]) -> float:
    """Return how far it is from a router's middle to its edge, toward a point."""
    across, down = (
        abs(toward[0] - box.x - box.width / 2) or 1e-9,
        abs(toward[1] - box.y - box.height / 2) or 1e-9,
    )
    part = min(box.width / 2 / across, box.height / 2 / down)
    return part * math.hypot(across, down)


def _draw_hosts(axes: Axes, x: float, y: float, lines: Sequence[Line]) -> None:
    """Small nodes that hang below a router, one for all hosts that are alike, with what joins them to it."""
    if not lines:
        return
    heights = [line.base - BASE / 2 + 1.0 for line in lines]
    axes.plot([x, x], [y, heights[-1]], color=MUTED, linewidth=0.9, zorder=1)
    axes.plot(
        [x] * len(heights),
        heights,
        linestyle="none",
        marker="o",
        markersize=4.5,
        markerfacecolor="white",
        markeredgecolor=MUTED,
        zorder=3,
    )
    for line in lines:
        _write(axes, line)


def _draw_router(axes: Axes, name: str, box: Box) -> None:
    style: dict[str, Any] = {"facecolor": SERIES[1], "boxstyle": "round,pad=0,rounding_size=4"}
    axes.add_patch(FancyBboxPatch((box.x, box.y), box.width, box.height, **style, linewidth=0, zorder=4))
    left = box.x + (box.width - text_width(name, SMALL)) / 2
    _write(axes, Line(left, box.y + box.height / 2 + 3.0, name, "white"))


def _write(axes: Axes, line: Line) -> None:
    axes.text(line.x, line.base, line.text, color=line.color, fontsize=SMALL, va="baseline", zorder=5)


def queue_text(queue: Mapping[str, Any] | None) -> str:
    """A queue's rule in a few words: `rio`, `edf: abe`, `wfq: a red, b red`, `fq-codel`; else empty."""
    if queue is None:
        return ""
    if "scheduler" not in queue:
        return str(queue["aqm"])
    inner = queue.get("queues", [queue] if "rule" in queue else [])
    if not inner:
        return str(queue["scheduler"])
    rules = [" ".join(filter(None, (one.get("name"), one["rule"]["aqm"]))) for one in inner]
    return f"{queue['scheduler']}: {', '.join(rules)}"


def _host_texts(scenario: Mapping[str, Any], router: str) -> Sequence[str]:
    """The hosts at a router, by their links to it: `20 hosts, 10Mbps, 1ms`."""
    alike: Counter[str] = Counter()
    for flow in _between_two(scenario):
        sends = flow.get("access")
        links = (sends, flow.get("egress") or sends)
        for end, link in zip(ends(scenario, flow), links, strict=True):
            if end == router and link:
                alike[f"{quantity(link['rate'])}, {quantity(link['delay'])}"] += int(flow["count"])

    def text(count: int, link: str) -> str:
        return f"{count} host{'s' if count > 1 else ''}, {link}"

    if len(alike) > MOST_HOSTS:
        return [text(sum(alike.values()), f"{len(alike)} kinds of links")]
    return [text(count, link) for link, count in alike.items()]


def _flow_texts(scenario: Mapping[str, Any], router: str) -> Sequence[str]:
    """The flows that begin at a router: a line for each group, or one for many neighbours alike."""
    lines: list[tuple[str, str, int]] = []
    for flow in _between_two(scenario):
        begin, end = ends(scenario, flow)
        if begin != router:
            continue
        kind = _kind(flow)
        way = f" on {label(flow['path'], NAME_CHARACTERS)}" if flow.get("path") else ""
        lines.append(
            (label(flow["name"], 32), f"({kind}) → {label(end, NAME_CHARACTERS)}{way}", int(flow["count"]))
        )
    if len(lines) > MOST_LINES:
        lines = [_together(list(alike)) for _, alike in groupby(lines, key=lambda line: line[1])]
    texts = [f"{count} × {name} {what}" for name, what, count in lines]
    if len(texts) > MOST_LINES:
        rest = len(texts) - MOST_LINES + 1
        texts[MOST_LINES - 1 :] = [f"and {rest} more"]
    return texts


def _kind(flow: Mapping[str, Any]) -> str:
    """Return how a group's flows send: `tcp newreno`, `web over tcp linux`."""
    transport = flow.get("transport", {})
    kinds = [f"{key} {transport[key]}" for key in ("tcp", "udp", "rap", "tfrc") if key in transport]
    kinds += ["replay"] if "replay" in flow else []
    return " over ".join([*([flow["application"]["model"]] if "application" in flow else []), *kinds])


def _together(alike: Sequence[tuple[str, str, int]]) -> tuple[str, str, int]:
    """One line for groups that differ by name: `flow 1 … flow 10`."""
    names = [name for name, _, _ in alike]
    name = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
    return name, alike[0][1], sum(count for _, _, count in alike)
