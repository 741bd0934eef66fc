"""The link of a scenario that is exported: its scheduler, queues and meters, as a dialect can write them."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING

from perhop import _engine
from perhop.errors import PerhopError
from perhop.routers import outgoing
from perhop.routers.curves import drop_precedence
from perhop.routers.model import ALL_CODEPOINTS
from perhop.routers.outgoing import MeterOut, Outgoing, QueueOut, codepoints, rate, size, takes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perhop.routers.curves import Color
    from perhop.routers.dialect import Dialect
    from perhop.routers.outgoing import Table

Codes = frozenset[int]
FLOW_QUEUES = frozenset({"fq-codel", "dualpi2"})
"""Schedulers that are one queue to what is around them."""
SIDE_BY_SIDE = frozenset({"wfq", "drr"})
"""Schedulers of queues that share what priority queues leave."""
MOST_NAMES = 8
"""Names of links in a message."""


def as_flows(queues: list[QueueOut], scenario: Table, metered: Codes) -> None:
    """Give queues the codepoints that flows of the scenario have, and their colors."""
    colors = _colors(scenario, metered)
    codes = [flow.get("dscp", 0) for flow in scenario.get("flows") or []]
    used = frozenset(code for code in codes if isinstance(code, int))
    for one in queues:
        one.colors = {code: color for code, color in colors.items() if code in one.codepoints}
        one.used = used & one.codepoints


def policed(tables: list[Table], path: str, origin: str) -> list[QueueOut]:
    """The priority queues of `llq`, whose rate is that of a policer."""
    queues = sharing(tables, path, origin, frozenset())
    for one, given in zip(queues, tables, strict=True):
        one.strict, one.policed_always = True, given.get("police") == "always"
        one.cap, one.rate = one.rate, None
        if one.cap is not None:
            one.burst = size(given["burst"]) if "burst" in given else one.cap / 8 * outgoing.DEFAULT_BURST_S
    return queues


def shaped(queue: Table, path: str, origin: str, taken: Codes) -> list[QueueOut]:
    """The classes of a tree of one level: their guaranteed rates, and their ceilings as shapers."""
    (root,), path = queue["classes"], f"{path}.classes[0]"
    tables = [{**leaf, "rule": leaf["queue"]} for leaf in root["classes"]]
    queues = sharing(tables, f"{path}.classes", origin, taken)
    most = rate(root.get("ceil", root["rate"]))
    first = outgoing.strict_classes(root["classes"])
    for one, leaf, strict in zip(queues, root["classes"], first, strict=True):
        ceil = rate(leaf.get("ceil", leaf["rate"]))
        one.rule_place, one.strict, one.prio = f"{one.place}.queue", strict, leaf.get("prio") or 0
        if ceil < most:
            one.ceil, one.ceil_burst = ceil, size(leaf["cburst"])
        if strict:
            one.rate = None
    ahead = sorted((one for one in queues if one.strict), key=lambda one: one.prio)
    return ahead + [one for one in queues if not one.strict]


def _left(table: Table, place: str, origin: str, taken: Codes) -> Codes:
    """The codepoints of a queue or a meter, without those that earlier ones take."""
    match = table.get("match") or {}
    excluded = match.get("not") or {}
    known = {"dscp", "precedence"}
    others = sorted(match.keys() - known - {"not"}) + sorted(excluded.keys() - known)
    if others:
        text = "only `dscp` and `precedence` can be exported"
        raise PerhopError(f"{origin}: {place}.match: {text}, not `{others[0]}`")
    return frozenset(code for code in ALL_CODEPOINTS - taken if takes(match, code, "green"))


def sharing(tables: list[Table], path: str, origin: str, taken: Codes) -> list[QueueOut]:
    """Queues side by side, with their rates and weights; `taken` are the codepoints of those before them."""
    result = []
    for number, table in enumerate(tables):
        place = f"{path}[{number}]"
        codes = _left(table, place, origin, taken)
        if "queue-protection" in table:
            raise PerhopError(f"{origin}: {place}.queue-protection: no dialect here can express it")
        taken |= codes
        result.append(
            QueueOut(
                place,
                table.get("name") or f"queue-{number}",
                codes,
                rest="match" not in table,
                rule=table["rule"],
                rate=None if "rate" not in table else rate(table["rate"]),
                weight=table.get("weight"),
                cap=None if "cap" not in table else rate(table["cap"]),
                rule_place=f"{place}.rule",
            )
        )
    return result


def leaves(tables: list[Table], path: str, origin: str, taken: Codes) -> tuple[list[QueueOut], Codes]:
    """The queues of a tree of classes, in the order of their matches, and the codepoints taken so far."""
    result = []
    for number, table in enumerate(tables):
        place = f"{path}[{number}]"
        if inner := table.get("classes"):
            found, taken = leaves(inner, f"{place}.classes", origin, taken)
            result += found
            continue
        codes = _left(table, place, origin, taken)
        taken |= codes
        rule = table["queue"]
        if rule.get("scheduler") == "fifo":
            rule = rule["rule"]
        made = QueueOut(place, table["name"], codes, rest="match" not in table, rule=rule)
        made.rate, made.rule_place = rate(table["rate"]), f"{place}.queue"
        result.append(made)
    return result, taken


def metered(tables: list[Table], place: str, origin: str) -> list[MeterOut]:
    """The meters of a link; one for which no packet is left is none."""
    taken = Codes()
    result = []
    for number, table in enumerate(tables):
        where = f"{place}.meters[{number}]"
        codes = _left(table, where, origin, taken)
        taken |= codes
        if codes:
            name = table.get("name") or f"meter-{number}"
            result.append(MeterOut.of_profile(where, name, codes, table["profile"]))
    return result


def _colors(scenario: Table, metered: Codes) -> dict[int, Color]:
    """The color of each codepoint whose flows agree about it.

    A flow with a profile has its marker's codepoints; packets that a meter of the link takes get its colors.
    """
    found: dict[int, set[Color]] = {}
    for flow in scenario.get("flows") or []:
        code = flow.get("dscp", 0)
        if isinstance(code, int) and "profile" not in flow:
            found.setdefault(code, set()).add(flow.get("color") or drop_precedence(code) or "yellow")
    agreed = {code: next(iter(colors)) for code, colors in found.items() if len(colors) == 1}
    return {code: color for code, color in agreed.items() if code not in metered}


def chosen(scenario: Table, origin: str, link: str | None, where: str) -> str:
    """The name of the link: the one asked for, or the only one with a queue, which `where` gives them."""
    links: Table = scenario.get("links") or {}
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


def outgoing_link(
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


def _schedule(made: Outgoing, queue: Table, dialect: Dialect, others: Iterable[Dialect]) -> None:
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


def _kind(queue: Table) -> tuple[str, Table]:
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


def _flat(tree: Table, bps: float) -> bool:
    """Whether a tree of htb is one level of classes with AQMs that share this rate."""
    if len(tree["classes"]) != 1:
        return False
    (root,) = tree["classes"]
    leaves = root.get("classes") or []
    plain = all("queue" in leaf and "scheduler" not in leaf["queue"] for leaf in leaves)
    return bool(leaves) and plain and rate(root.get("ceil", root["rate"])) == bps
