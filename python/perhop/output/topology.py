"""A picture of a scenario's network, drawn from the scenario itself: routers, links, queues, hosts, flows."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from perhop.output.plot import GRID, INK, MUTED, SERIES, STYLE, Picture, inline_svg, to_png, to_svg

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes

STEP_INCHES = 2.3
LINE_INCHES = 0.145
ABOVE_INCHES, BELOW_INCHES = 0.6, 0.45
"""Room of a row of routers over and under it, without the flows' lines."""
FLOWS_INCHES = 0.25
"""How far below a router the lines on its flows begin, if it has no hosts."""
HOSTS_INCHES, HOST_INCHES = 0.42, 0.17
"""How far below a router its first hosts stand, and others below those; lines on flows begin below them."""
RULE_INCHES = 0.08
MOST_HOSTS = 3
"""Kinds of hosts at a router that are drawn one by one; more are drawn as one."""
MOST_LINES = 8
"""Lines on flows at a router; what does not fit is counted."""
SHORT_LINE = 36
"""Letters of a line that fits between the last router and the margin."""


def topology(scenario: Mapping[str, Any], name: str) -> Picture:
    """The picture for a file.

    Args:
        scenario: As canonical JSON reads.
        name: For the file's name.
    """
    with mpl.rc_context({**STYLE, "svg.fonttype": "path"}):
        figure = _figure(scenario)
        return Picture(f"{name}-network", "Network", to_svg(figure), to_png(figure))


def inline_topology(scenario: Mapping[str, Any], name: str) -> str:
    """The picture as an SVG element for a page."""
    with mpl.rc_context({**STYLE, "svg.fonttype": "none"}):
        return inline_svg(to_svg(_figure(scenario)), f"{name}-network", "Network")


def distinct(scenarios: Iterable[Mapping[str, Any]], name: str) -> list[tuple[Mapping[str, Any], str]]:
    """The first scenario on each graph of routers, with its picture's name; others differ in queues."""
    found: dict[frozenset[tuple[str, str, str]], Mapping[str, Any]] = {}
    for scenario in scenarios:
        graph = frozenset((link, at["from"], at["to"]) for link, at in scenario["links"].items())
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
    for flow in scenario["flows"]:
        begins[_ends(scenario, flow)[0]] += int(flow["count"])
    return [router for router, _ in begins.most_common()] + sorted(neighbours)


def _ends(scenario: Mapping[str, Any], flow: Mapping[str, Any]) -> tuple[str, str]:
    """The routers of a group's hosts; a path's where the group names one."""
    via = scenario.get("paths", {}).get(flow.get("path"), {}).get("via", [flow.get("from"), flow.get("to")])
    return str(flow.get("from") or via[0]), str(flow.get("to") or via[-1])


def _figure(scenario: Mapping[str, Any]) -> Figure:
    at = places(scenario)
    texts = _staggered({router: _flow_texts(scenario, router) for router in at}, at)
    columns = max(column for column, _ in at.values()) + 1
    rows = max(row for _, row in at.values()) + 1
    stands = {router: _host_texts(scenario, router) for router in at}
    most = max(map(len, stands.values()))
    hosts = HOSTS_INCHES - FLOWS_INCHES / 2 + HOST_INCHES * (most - 1) if most else 0.0
    below = BELOW_INCHES + hosts + LINE_INCHES * max(map(len, texts.values()))
    row_inches = ABOVE_INCHES + below
    figure = Figure(figsize=(STEP_INCHES * columns + 0.6, rows * row_inches))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(-0.25, columns - 0.1)
    axes.set_ylim(-(rows - 1) - below / row_inches, ABOVE_INCHES / row_inches)
    for name, link in scenario["links"].items():
        _draw_link(axes, name, link, at, RULE_INCHES / row_inches)
    for router, (column, row) in at.items():
        _draw_hosts(axes, stands[router], column, -row, row_inches)
        box = {"facecolor": SERIES[1], "edgecolor": SERIES[1], "boxstyle": "round,pad=0.45"}
        axes.text(
            column, -row, router, color="white", ha="center", va="center", fontsize=8, bbox=box, zorder=4
        )
        if texts[router]:
            axes.text(
                column,
                -row - (FLOWS_INCHES + hosts) / row_inches,
                "\n".join(texts[router]),
                ha="left"
                if column < columns - 1 or len(max(texts[router], key=len)) <= SHORT_LINE
                else "center",
                va="top",
                fontsize=7.5,
                color=INK,
                linespacing=1.35,
            )
    return figure


def _staggered(
    texts: Mapping[str, Sequence[str]], at: Mapping[str, tuple[int, int]]
) -> dict[str, Sequence[str]]:
    """Lines of the routers of one row, each below those of the columns before it: long ones would overlap."""
    used: Counter[int] = Counter()
    found: dict[str, Sequence[str]] = {}
    for router in sorted(at, key=at.__getitem__):
        row = at[router][1]
        found[router] = [""] * used[row] + list(texts[router]) if texts[router] else []
        used[row] += len(texts[router])
    return found


def _draw_link(
    axes: Axes, name: str, link: Mapping[str, Any], at: Mapping[str, tuple[int, int]], drop: float
) -> None:
    """An arrow with its name, rate and delay; the queue's rule `drop` below it."""
    (x0, y0), (x1, y1) = ((at[link[end]][0], -at[link[end]][1]) for end in ("from", "to"))
    axes.annotate(
        "",
        (x1, y1),
        (x0, y0),
        arrowprops={"arrowstyle": "-|>", "color": MUTED, "linewidth": 1.4, "shrinkA": 16, "shrinkB": 20},
    )
    middle = ((x0 + x1) / 2, (y0 + y1) / 2)
    text = f"{name}\n{link['rate']}, {link['delay']}"
    rule = queue_text(link.get("queue"))
    small: dict[str, Any] = {"ha": "center", "fontsize": 7.5}
    if y0 != y1:  # beside a slanting link there is room for one box only
        box = {"facecolor": "white", "edgecolor": GRID, "boxstyle": "round,pad=0.25"}
        axes.text(*middle, f"{text}\n{rule}".strip(), va="center", color=INK, bbox=box, zorder=3, **small)
        return
    axes.text(*middle, text, va="bottom", color=INK, linespacing=1.6, **small)
    if rule:
        box = {"facecolor": "white", "edgecolor": GRID, "boxstyle": "round,pad=0.25"}
        axes.text(middle[0], middle[1] - drop, rule, va="top", color=MUTED, bbox=box, **small)


def _draw_hosts(axes: Axes, texts: Sequence[str], x: float, y: float, row_inches: float) -> None:
    """Small nodes that hang below a router, one for all hosts that are alike, with what joins them to it."""
    heights = [y - (HOSTS_INCHES + HOST_INCHES * n) / row_inches for n in range(len(texts))]
    if heights:
        axes.plot([x, x], [y, heights[-1]], color=MUTED, linewidth=0.9, zorder=1)
    for text, height in zip(texts, heights, strict=True):
        axes.plot(
            [x], [height], marker="o", markersize=5, markerfacecolor="white", markeredgecolor=MUTED, zorder=2
        )
        axes.annotate(
            text, (x, height), (7, 0), textcoords="offset points", va="center", fontsize=7.5, color=MUTED
        )


def queue_text(queue: Mapping[str, Any] | None) -> str:
    """A queue's rule in a few words: `rio`, `edf: abe`, `wfq: a red, b red`; empty without one."""
    if queue is None:
        return ""
    if "scheduler" not in queue:
        return str(queue["aqm"])
    inner = queue.get("queues", [queue])
    rules = [" ".join(filter(None, (one.get("name"), one["rule"]["aqm"]))) for one in inner]
    return f"{queue['scheduler']}: {', '.join(rules)}"


def _host_texts(scenario: Mapping[str, Any], router: str) -> Sequence[str]:
    """The hosts at a router, by their links to it: `20 hosts, 10Mbps, 1ms`."""
    alike: Counter[str] = Counter()
    for flow in scenario["flows"]:
        sends = flow.get("access")
        links = (sends, flow.get("egress") or sends)
        for end, link in zip(_ends(scenario, flow), links, strict=True):
            if end == router and link:
                alike[f"{link['rate']}, {link['delay']}"] += int(flow["count"])

    def text(count: int, link: str) -> str:
        return f"{count} host{'s' if count > 1 else ''}, {link}"

    if len(alike) > MOST_HOSTS:
        return [text(sum(alike.values()), f"{len(alike)} kinds of links")]
    return [text(count, link) for link, count in alike.items()]


def _flow_texts(scenario: Mapping[str, Any], router: str) -> Sequence[str]:
    """What begins at a router: a line for each group of flows; one for neighbours alike, if they are many."""
    lines: list[tuple[str, str, int]] = []
    for flow in scenario["flows"]:
        begin, end = _ends(scenario, flow)
        if begin != router:
            continue
        transport = flow["transport"]
        kind = next(f"{key} {transport[key]}" for key in ("tcp", "udp", "rap", "tfrc") if key in transport)
        way = f" on {flow['path']}" if flow.get("path") else ""
        lines.append((flow["name"], f"({kind}) → {end}{way}", int(flow["count"])))
    if len(lines) > MOST_LINES:
        lines = [_together(list(alike)) for _, alike in groupby(lines, key=lambda line: line[1])]
    texts = [f"{count} × {name} {what}" for name, what, count in lines]
    if len(texts) > MOST_LINES:
        rest = len(texts) - MOST_LINES + 1
        texts[MOST_LINES - 1 :] = [f"and {rest} more"]
    return texts


def _together(alike: Sequence[tuple[str, str, int]]) -> tuple[str, str, int]:
    """One line for groups that differ by name: `flow 1 … flow 10`."""
    names = [name for name, _, _ in alike]
    name = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
    return name, alike[0][1], sum(count for _, _, count in alike)
