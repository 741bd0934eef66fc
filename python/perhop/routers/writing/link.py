"""The link of a scenario that is exported, with its scheduler as a dialect can write it."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any

from perhop import _engine
from perhop.errors import PerhopError
from perhop.routers.model import ALL_CODEPOINTS
from perhop.routers.outgoing import Outgoing, QueueOut, codepoints, rate, size
from perhop.routers.writing.queues import as_flows, leaves, metered, policed, shaped, sharing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perhop.routers.dialect import Dialect

FLOW_QUEUES = frozenset({"fq-codel", "dualpi2"})
"""Schedulers that are one queue to what is around them."""
SIDE_BY_SIDE = frozenset({"wfq", "drr"})
"""Schedulers of queues that share what priority queues leave."""
MOST_NAMES = 8
"""Names of links in a message."""


def chosen(scenario: dict[str, Any], origin: str, link: str | None, where: str) -> str:
    """The name of the link: the one asked for, or the only one with a queue, which `where` gives them."""
    links: dict[str, Any] = scenario.get("links") or {}
    queued = [name for name, table in links.items() if "queue" in table]
    named = queued
    if link is not None:
        near = difflib.get_close_matches(link, queued, MOST_NAMES, 0.5)
        named = near + [name for name in queued if name not in near]
    more = f" and {len(queued) - MOST_NAMES} more" if len(queued) > MOST_NAMES else ""
    listed = (", ".join(named[:MOST_NAMES]) + more) or "none"
    if link is not None:
        if link not in links:
            raise PerhopError(f"{origin}: --link {link}: there is no such link; those with a queue: {listed}")
        if link not in queued:
            raise PerhopError(f"{origin}: --link {link}: has no queue to export; those with one: {listed}")
        return link
    if not queued:
        raise PerhopError(f"{origin}: no link has a queue; give {where} one")
    if len(queued) > 1:
        raise PerhopError(f"{origin}: several links have queues; choose one with --link: {listed}")
    return queued[0]


def outgoing(
    canonical: str, origin: str, link: str | None, dialect: Dialect, others: Iterable[Dialect]
) -> Outgoing:
    """The link of a checked scenario.

    Args:
        canonical: The scenario.
        origin: Its name in messages.
        link: The link's name.
        dialect: The one that is written; if it is native, the queues stay the scenario's tables.
        others: All dialects, to name those that can express what this one cannot.

    Raises:
        PerhopError: There is no such link, or its queue is of a kind that no router's configuration has.
    """
    scenario = json.loads(canonical if dialect.native else _engine.with_limits(canonical))
    where = "[links.NAME]"
    if "topology" in scenario:  # its links follow from a rule
        scenario, where = json.loads(_engine.written_out(canonical)), "[topology.link] or a tier"
    name = chosen(scenario, origin, link, where)
    table = scenario["links"][name]
    made = Outgoing(name, f"links.{name}", rate(table["rate"]), scenario=scenario, origin=origin)
    if dialect.native:
        return made
    _schedule(made, table["queue"], dialect, others)
    meters = metered(table.get("meters") or [], made.place, origin)
    as_flows(made.queues, scenario, codepoints(meters))
    by_packets = {one.codepoints: one for one in made.queues}
    if any(meter.codepoints not in by_packets for meter in meters):
        made.meters = meters
        return made
    for meter in meters:
        by_packets[meter.codepoints].meter = meter
    return made


def _schedule(made: Outgoing, queue: dict[str, Any], dialect: Dialect, others: Iterable[Dialect]) -> None:
    """Fill in the scheduler of a link, and its queues."""
    origin, path = made.origin, f"{made.place}.queue"
    if queue.get("scheduler") == "shaper":
        made.shaper = (rate(queue["rate"]), size(queue["burst"]))
        queue, path = queue["queue"], f"{path}.queue"
    kind, queue = _kind(queue)
    ahead: list[QueueOut] = []
    if kind in FLOW_QUEUES & dialect.schedulers:
        kind = "single"
    elif kind == "llq":
        ahead = policed(queue["priority"], f"{path}.priority", origin)
        path += ".queue"
        kind, queue = _kind(queue["queue"])
    taken = codepoints(ahead)
    if kind == "htb" and dialect.flattens and _flat(queue, made.whole):
        ahead += shaped(queue, path, origin, taken)
        taken = codepoints(ahead)
        kind, queue = "wfq", {"queues": []}
    known = {"single", *(SIDE_BY_SIDE if ahead else dialect.schedulers - FLOW_QUEUES)}
    if kind not in known:
        raise PerhopError(f"{origin}: {path}: {_refusal(dialect, others, kind, within=bool(ahead))}")
    made.kind, made.path = kind, path
    match kind:
        case "single":
            rest = ALL_CODEPOINTS - taken
            found = [QueueOut(path, "class-default", rest, rest=True, rule=queue, rule_place=path)]
        case "htb":
            found = leaves(queue["classes"], f"{path}.classes", origin, frozenset())[0]
        case _:
            found = sharing(queue["queues"], f"{path}.queues", origin, taken)
    made.queues = ahead + found
    made.scheduler = {} if kind == "single" else {key: queue[key] for key in queue if key != "queues"}


def _kind(queue: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The scheduler of a queue, and its table; `single` has the table of an AQM."""
    kind = queue.get("scheduler", "single")
    return ("single", queue["rule"]) if kind == "fifo" else (kind, queue)


def _refusal(dialect: Dialect, others: Iterable[Dialect], kind: str, *, within: bool) -> str:
    """Why a scheduler is not written, and which dialects can; `within`: behind the queues of `llq`."""
    able = [other for other in others if other is not dialect and (other.native or not within)]
    listed = [f"--to {other.name}" for other in able if other.writes(kind)]
    before = ", ".join(listed[:-1])
    shown = f"{before} and {listed[-1]}" if before else listed[-1]
    place = ""
    if within:
        place = " within llq"
    elif kind == "htb":
        place = " of several levels or with schedulers within it"
    return f"--to {dialect.name} cannot express the scheduler {kind}{place}; {shown} can"


def _flat(tree: dict[str, Any], bps: float) -> bool:
    """Whether a tree of htb is one level of classes with AQMs that share this rate."""
    if len(tree["classes"]) != 1:
        return False
    (root,) = tree["classes"]
    leaves = root.get("classes") or []
    plain = all("queue" in leaf and "scheduler" not in leaf["queue"] for leaf in leaves)
    return bool(leaves) and plain and rate(root.get("ceil", root["rate"])) == bps
