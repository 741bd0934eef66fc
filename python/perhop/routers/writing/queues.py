"""The queues and the meters of a link, each with the packets that no earlier one takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perhop.errors import PerhopError
from perhop.routers.curves import drop_precedence
from perhop.routers.model import ALL_CODEPOINTS
from perhop.routers.outgoing import DEFAULT_BURST_S, MeterOut, QueueOut, rate, size, strict_classes, takes

if TYPE_CHECKING:
    from perhop.routers.curves import Color


def as_flows(queues: list[QueueOut], scenario: dict[str, Any], metered: frozenset[int]) -> None:
    """Give queues the codepoints that flows of the scenario have, and their colors."""
    colors = _colors(scenario, metered)
    codes = [flow.get("dscp", 0) for flow in scenario.get("flows") or []]
    used = frozenset(code for code in codes if isinstance(code, int))
    for one in queues:
        one.colors = {code: color for code, color in colors.items() if code in one.codepoints}
        one.used = used & one.codepoints


def policed(tables: list[dict[str, Any]], path: str, origin: str) -> list[QueueOut]:
    """The priority queues of `llq`, whose rate is that of a policer."""
    queues = sharing(tables, path, origin)
    for one, given in zip(queues, tables, strict=True):
        one.strict, one.policed_always = True, given.get("police") == "always"
        one.cap, one.rate = one.rate, None
        if one.cap is not None:
            one.burst = size(given["burst"]) if "burst" in given else one.cap / 8 * DEFAULT_BURST_S
    return queues


def shaped(queue: dict[str, Any], path: str, origin: str, taken: frozenset[int]) -> list[QueueOut]:
    """The classes of a tree of one level: their guaranteed rates, and their ceilings as shapers."""
    (root,), path = queue["classes"], f"{path}.classes[0]"
    tables = [{**leaf, "rule": leaf["queue"]} for leaf in root["classes"]]
    queues = sharing(tables, f"{path}.classes", origin, taken)
    most = rate(root.get("ceil", root["rate"]))
    first = strict_classes(root["classes"])
    for one, leaf, strict in zip(queues, root["classes"], first, strict=True):
        ceil = rate(leaf.get("ceil", leaf["rate"]))
        one.rule_place, one.strict, one.prio = f"{one.place}.queue", strict, leaf.get("prio") or 0
        if ceil < most:
            one.ceil, one.ceil_burst = ceil, size(leaf["cburst"])
        if strict:
            one.rate = None
    ahead = sorted((one for one in queues if one.strict), key=lambda one: one.prio)
    return ahead + [one for one in queues if not one.strict]


def _left(table: dict[str, Any], place: str, origin: str, taken: frozenset[int]) -> frozenset[int]:
    """The codepoints of a queue or a meter, without those that earlier ones take."""
    match = table.get("match") or {}
    excluded = match.get("not") or {}
    known = {"dscp", "precedence"}
    others = sorted(match.keys() - known - {"not"}) + sorted(excluded.keys() - known)
    if others:
        text = "only `dscp` and `precedence` can be exported"
        raise PerhopError(f"{origin}: {place}.match: {text}, not `{others[0]}`")
    return frozenset(code for code in ALL_CODEPOINTS - taken if takes(match, code, "green"))


def sharing(
    tables: list[dict[str, Any]], path: str, origin: str, taken: frozenset[int] = frozenset()
) -> list[QueueOut]:
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


def leaves(
    tables: list[dict[str, Any]], path: str, origin: str, taken: frozenset[int]
) -> tuple[list[QueueOut], frozenset[int]]:
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
        made = QueueOut(
            place, table["name"], codes, rest="match" not in table, rule=rule, rate=rate(table["rate"])
        )
        made.rule_place = f"{place}.queue"
        result.append(made)
    return result, taken


def metered(tables: list[dict[str, Any]], place: str, origin: str) -> list[MeterOut]:
    """The meters of a link; one for which no packet is left is none."""
    taken: frozenset[int] = frozenset()
    result = []
    for number, table in enumerate(tables):
        where = f"{place}.meters[{number}]"
        codes = _left(table, where, origin, taken)
        taken |= codes
        if codes:
            name = table.get("name") or f"meter-{number}"
            result.append(MeterOut.of_profile(where, name, codes, table["profile"]))
    return result


def _colors(scenario: dict[str, Any], metered: frozenset[int]) -> dict[int, Color]:
    """The color of each codepoint whose flows agree about it.

    A flow with a profile has its marker's codepoints; packets that a meter of the link takes get its colors.
    """
    found: dict[int, set[Color]] = {}
    for flow in scenario.get("flows") or []:
        code = flow.get("dscp", 0)
        if isinstance(code, int) and "profile" not in flow:
            found.setdefault(code, set()).add(flow.get("color") or drop_precedence(code) or "yellow")
    return {
        code: next(iter(colors)) for code, colors in found.items() if len(colors) == 1 and code not in metered
    }
