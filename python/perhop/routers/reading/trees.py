"""A hierarchical token bucket of a configuration as tables of a scenario."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import How, Quantity, Rate, RateUnit, TreeClass, Unit
from perhop.routers.reading.document import Entry, Section, bytes_entry, configured, fresh, rate_entry
from perhop.routers.units import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perhop.routers.model import Port, PortQueue

    First = tuple[PortQueue, tuple[Rate, Rate]]

PACKET = 1500.0
MOST_QUANTUM = 200_000.0
"""Bytes of the largest turn among classes whose turns are as their rates: the most that Linux chooses."""
LEAST = 1000.0
"""Bit/s of a class that is sure of nothing."""
BYPASS = 0.01
"""The part of the link's rate for packets that bypass a tree with all of the link's rate."""
BISECTIONS = 60
LAST_PRIO = 7
"""The highest `prio` that there is, which goes last."""


def sections(
    port: Port,
    path: str,
    queues: list[PortQueue],
    link_bps: float,
    leaf: Callable[[PortQueue, TreeClass, str], tuple[list[Entry], list[Section]]],
) -> list[Section]:
    """The tables of a port's tree on a link of this rate.

    `leaf` gives the keys of a queue's class, and the tables of its queue.
    """
    top = Section(f"[{path}]", queue="scheduler")
    top.entries.append(configured("scheduler", '"htb"', port.line, "classes within classes"))
    if port.quantum_divisor is not None:
        divisor, line = port.quantum_divisor
        top.entries.append(configured("r2q", str(divisor), line))
    named = {queue.name: queue for queue in queues}
    given = [_resolved(root, link_bps) for root in port.tree]
    _settle(given, link_bps)
    roots = [made for root in given if (made := _kept(root, named)) is not None]
    known = _queues(roots)
    others = [queue for queue in queues if queue.name not in known]
    for queue in others:  # what bypasses the tree
        _bypass(queue, roots, link_bps)
    result = [top]
    for root in _last_last(roots, queues[-1].name):
        result += _tables(root, f"{path}.classes", named, leaf)
    return result


def shared(
    queues: list[PortQueue],
    rates: Sequence[float],
    ceilings: Sequence[float | None],
    most: Rate,
    first: Sequence[First],
) -> TreeClass:
    """A tree of one level: a class for each queue with its part of a rate, and its ceiling if it has one.

    Strict queues come `first`, each with its rate and its ceiling.
    """
    listed = [*(queue for queue, _ in first), *queues]
    name = fresh("all", {queue.name for queue in listed})
    root = TreeClass(name, listed[0].line, most, most)  # it borrows of none, so its rate is what it reaches
    sure = [
        max(float(int(min(rate, math.inf if ceiling is None else ceiling) + 1e-3)), LEAST)
        for rate, ceiling in zip(rates, ceilings, strict=True)
    ]
    root.burst = root.cburst = _bucket(most.number)
    root.classes = _strict(first)
    parts = [max(rate, LEAST) for rate in rates]  # which a ceiling does not make smaller
    unit = min(PACKET, MOST_QUANTUM * min(parts) / max(parts)) if parts else PACKET
    for queue, bps, ceiling, part in zip(queues, sure, ceilings, parts, strict=True):
        given = queue.guarantee or queue.share
        text = "what others leave" if given is None else f"{given.text}, {units.shown_rate(bps)}"
        line, how = (queue.line, How.ASSUMED) if given is None else (given.line, given.how)
        rate = Rate(bps, RateUnit.BPS, line, how, text)
        ceil = most if ceiling is None or queue.ceiling is None else queue.ceiling
        ceil = replace(ceil, number=max(bps, most.number if ceiling is None else ceiling), unit=RateUnit.BPS)
        made = TreeClass(queue.name, queue.line, rate, ceil, queue=queue.name)
        made.burst, made.cburst = _bucket(bps), _bucket(ceil.number)
        quantum = max(1.0, unit * part / min(parts))
        made.quantum = Quantity(quantum, Unit.BYTES, 0, How.ASSUMED, text="in proportion to its rate")
        if first:
            made.prio = (min(len(first), LAST_PRIO), 0)
        root.classes.append(made)
    return root


def _strict(first: Sequence[First]) -> list[TreeClass]:
    """The classes of strict queues, each with its rate and ceiling: the highest priority has `prio` 0."""
    result = []
    for number, (queue, (rate, ceil)) in enumerate(first):
        made = TreeClass(queue.name, queue.line, rate, ceil, queue=queue.name)
        made.burst, made.cburst = _bucket(rate.number), _bucket(ceil.number)
        made.prio = (min(number, LAST_PRIO), queue.level_line)
        made.quantum = Quantity(PACKET, Unit.BYTES, 0, How.ASSUMED, text="alone at its priority")
        result.append(made)
    return result


def _bucket(bps: float) -> Quantity:
    """4 ms of a rate, at least two packets."""
    number = max(bps * 0.004 / 8, 2 * PACKET)
    return Quantity(number, Unit.BYTES, 0, How.ASSUMED, text="4 ms of the rate, at least two packets")


def _resolved(tree: TreeClass, link_bps: float) -> TreeClass:
    """A tree whose rates in percent of the link are rates, none of them above its ceiling."""
    rate, ceil = (
        replace(rate, number=rate.number * link_bps / 100, unit=RateUnit.BPS)
        if rate.unit is RateUnit.PERCENT
        else rate
        for rate in (tree.rate, tree.ceil)
    )
    rate = replace(rate, number=min(rate.number, ceil.number))
    return replace(tree, rate=rate, ceil=ceil, classes=[_resolved(c, link_bps) for c in tree.classes])


def _settle(classes: list[TreeClass], capacity: float) -> None:
    """Give classes of hfsc what they have if all of them send: the real-time curve, or a larger share.

    Real-time service counts for the shares (Linux, net/sched/sch_hfsc.c: `cl_total` is of both criteria).
    """
    curves = [made.curves for made in classes if made.curves is not None]
    if curves and len(curves) == len(classes):
        most = [min(made.ceil.number, capacity) for made in classes]
        least = [min(_real_time(made), limit) for made, limit in zip(classes, most, strict=True)]
        shares = [curve.link_share for curve in curves]
        if sum(least) <= capacity:
            for made, rate in zip(classes, _filled(capacity, least, shares, most), strict=True):
                made.rate = replace(made.rate, number=float(int(max(rate, LEAST) + 1e-3)))
    for made in classes:
        _settle(made.classes, min(made.rate.number if made.curves else capacity, made.ceil.number))


def _real_time(made: TreeClass) -> float:
    """The guarantee of a class of hfsc: the sum over its leaves, since only these have a real-time curve."""
    if made.classes:
        return sum(_real_time(inner) for inner in made.classes)
    return made.curves.real_time if made.curves is not None else 0.0


def _filled(capacity: float, least: list[float], shares: list[float], most: list[float]) -> list[float]:
    """A capacity in proportion to shares, each part within its bounds."""

    def at(level: float) -> list[float]:
        bounds = zip(least, shares, most, strict=True)
        return [min(max(bottom, level * share), top) for bottom, share, top in bounds]

    low, high = 0.0, capacity / min((share for share in shares if share > 0), default=1.0)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(at(middle)) <= capacity else (low, middle)
    return at(low)


def _kept(tree: TreeClass, named: Mapping[str, PortQueue]) -> TreeClass | None:
    if not tree.classes:
        return tree if tree.queue in named else None
    classes = [made for inner in tree.classes if (made := _kept(inner, named)) is not None]
    return replace(tree, classes=classes) if classes else None


def _queues(trees: list[TreeClass]) -> set[str]:
    return {name for tree in trees for name in ({tree.queue} if tree.queue else _queues(tree.classes))}


def _bypass(queue: PortQueue, roots: list[TreeClass], link: float) -> None:
    """A class for packets that the device does not shape: up to the link's rate, if the tree leaves any."""
    left = link - sum(root.rate.number for root in roots)
    said = "bypasses the tree"
    if left >= BYPASS * link or not roots or not roots[-1].classes:
        rate = Rate(link, RateUnit.BPS, 0, How.ASSUMED, said)
        roots.append(TreeClass(queue.name, queue.line, rate, rate, queue=queue.name))
        return
    rate = Rate(BYPASS * link, RateUnit.BPS, 0, How.ASSUMED, said)
    roots[-1].classes.append(TreeClass(queue.name, queue.line, rate, roots[-1].ceil, queue=queue.name))


def _last_last(trees: list[TreeClass], last: str) -> list[TreeClass]:
    """The trees with the class of this queue at the end, so that it takes what no other does."""
    moved = [replace(tree, classes=_last_last(tree.classes, last)) for tree in trees]
    return sorted(moved, key=lambda tree: last in _queues([tree]))


def _tables(
    tree: TreeClass,
    path: str,
    named: Mapping[str, PortQueue],
    leaf: Callable[[PortQueue, TreeClass, str], tuple[list[Entry], list[Section]]],
) -> list[Section]:
    section = Section(f"[[{path}]]", queue=tree.name)
    section.entries.append(Entry("name", quoted(tree.name), tree.line))
    inner: list[Section] = []
    if tree.queue:
        keys, inner = leaf(named[tree.queue], tree, path)
        section.entries += keys
    for key, rate in (("rate", tree.rate), ("ceil", tree.ceil)):
        if key == "rate" or rate.number != tree.rate.number:
            section.entries.append(rate_entry(key, rate.number, rate))
    amounts: list[tuple[str, Quantity | None]] = [("burst", tree.burst), ("cburst", tree.cburst)]
    for key, amount in [*amounts, ("quantum", tree.quantum)]:
        if amount is not None:
            section.entries.append(bytes_entry(key, amount.number, amount))
    if tree.prio is not None:
        section.entries.append(configured("prio", str(tree.prio[0]), tree.prio[1]))
    result = [section, *inner]
    for child in tree.classes:
        result += _tables(child, f"{path}.classes", named, leaf)
    return result
