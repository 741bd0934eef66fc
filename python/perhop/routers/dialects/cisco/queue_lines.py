"""The queue of a class for IOS: its limit and drop curves as lines, and the numbers that commands take.

Sources of the ranges: (1) Cisco's models of IOS-XE, as `CiscoDevNet/terraform-provider-iosxe` 0.14 documents
them (`policy_map`, `interface_ethernet`); (2) Cisco MWR 2941 and ME 3600X command references; (3) Cisco
Catalyst 3650 command reference, IOS-XE 16.5.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.curves import COLORS
from perhop.routers.outgoing import Range, by_size, depth, lost, red_keys, takes, thresholds

if TYPE_CHECKING:
    from perhop.routers.outgoing import Depth, QueueOut, Remarks, Table

RANGES = {
    "bandwidth": Range(1, 100_000_000), "bandwidth percent": Range(1, 100),  # (1)
    "queue-limit": Range(1, 64_000_000), "min bytes": Range(1, 64_000_000),  # (1)
    "max bytes": Range(1, 64_000_000),  # (1)
    "shape": Range(8000, 100_000_000_000), "shape bc": Range(32, 800_000_000),  # (1)
    "cir": Range(8000, 100_000_000_000), "pir": Range(8000, 64_000_000_000),  # (1)
    "bc": Range(1000, 512_000_000), "be": Range(1000, 512_000_000), "interface": Range(1, 200_000_000),  # (1)
    "ratio": Range(1, 1000), "min packets": Range(1, 4096), "max packets": Range(1, 4096),  # (2)
    "denominator": Range(1, 65535), "exponent": Range(1, 16),  # (2)
    "priority": Range(1, 2_000_000), "priority burst": Range(32, 2_000_000),  # (3)
}  # fmt: skip
"""Ranges by command. Thresholds in bytes are not above the largest queue limit."""
OTHER_CODEPOINTS = 8
"""Codepoints of a class with `random-detect dscp` lines beside class selectors, AF and EF (2)."""


CURVES = ("thresholds", *COLORS)
"""The keys of curves that are not those of profiles."""
DEFAULT_CURVE = "20 40 10"
"""The device's own thresholds of codepoints beside class selectors, AF and EF."""
WRITTEN = 1e-6
"""Scenarios have max_p with so many digits."""


class QueueLines:
    """Writes what classes say of their queues."""

    def __init__(self, remarks: Remarks) -> None:
        """Remarks take what the lines do not say."""
        self._remarks = remarks

    def lines(self, queue: QueueOut, *, priority: bool) -> list[str]:
        """The lines of a queue; `priority`: its class has strict priority."""
        rule = queue.rule
        place = queue.rule_place
        kind = rule.get("aqm")
        if kind is None:
            text = f"IOS has no scheduler such as {rule['scheduler']} within a class of a tree"
            self._remarks.left_out(place, text)
            return []
        result = []
        limit = None if "limit" not in rule else depth(rule["limit"])
        if limit is not None:
            unit = "packets" if limit.packets else "bytes"
            result.append(f"  queue-limit {self._amount(place, 'limit', limit, 'queue-limit')} {unit}")
        if kind == "drop-tail":
            return result
        if kind not in {"red", "wred"} or "target-delay" in rule:
            self._remarks.left_out(f"{place}.aqm", f"IOS cannot express {kind} as it is here")
            return result
        if priority:
            text = "IOS refuses `random-detect` in a class with `priority`; its queue limit only is written"
            self._remarks.left_out(f"{place}.aqm", text)
            return result
        red_keys(rule, place, self._remarks, "IOS", where=f" in {kind}")
        given = [rule.get(key) for key in CURVES] + [one.get("curve") for one in rule.get("profiles", [])]
        if any("B/" in text for text in given if text):
            by_size(rule, place, self._remarks, "IOS")
        curves = self._curves(queue, place)
        result += self._limits(queue, place, limit)
        profiled = any("curve" in profile for profile in rule.get("profiles", []))
        if kind == "wred" and not profiled and not any(key in rule for key in COLORS):
            return result  # limits only
        if kind == "wred":
            lost(queue, self._remarks)
        by_precedence, selectors = self._selectors(queue, place, curves)
        result.append("  random-detect" if by_precedence else "  random-detect dscp-based")
        result.append(f"  random-detect exponential-weighting-constant {self._exponent(place, rule)}")
        missing = [name for name, key in selectors if key not in curves]
        if missing:
            text = f"no thresholds for {', '.join(missing[:3])}: the device has its own defaults for them"
            self._remarks.left_out(place, text)
        result += [f"  random-detect {name} {curves[key]}" for name, key in selectors if key in curves]
        return [*result, *self._ecn(place, rule)]

    def _selectors(
        self, queue: QueueOut, place: str, curves: dict[str, str]
    ) -> tuple[bool, list[tuple[str, str]]]:
        """Choose the packets that have lines, each with the key of its curve; and whether by precedence.

        A class has lines for eight codepoints beside class selectors, AF and EF. Others have one by
        precedence, if all of a precedence have the same curve; else those that flows have come first, and
        those without a line have the device's own curve.
        """
        red = queue.rule["aqm"] == "red"
        keys = {code: "thresholds" if red else _key(queue, code) for code in sorted(queue.codepoints)}
        others = [code for code in keys if code not in units.SHOWN]
        if len(others) > OTHER_CODEPOINTS:
            kinds = {(code // 8, key) for code, key in keys.items()}
            if len(kinds) == len({precedence for precedence, _ in kinds}):
                return True, [(f"precedence {precedence}", key) for precedence, key in sorted(kinds)]
            others = [code for code in others if curves.get(keys[code]) != DEFAULT_CURVE]
            others.sort(key=lambda code: code not in queue.used)
        lost_ones = others[OTHER_CODEPOINTS:]
        if lost_ones:
            text = (
                f"has curves for {len(others)} codepoints beside class selectors, AF and EF; IOS takes lines "
                f"for {OTHER_CODEPOINTS} of these in a class"
            )
            if queue.used & set(lost_ones):
                self._remarks.left_out(place, text)
            else:
                said = f"{text}: the others keep the device's own thresholds; no flow here has them"
                self._remarks.differs(place, said)
        kept = {*units.SHOWN, *others[:OTHER_CODEPOINTS]}
        return False, [(f"dscp {dscp(code)}", key) for code, key in keys.items() if code in kept]

    def _ecn(self, place: str, rule: Table) -> list[str]:
        mode = rule.get("ecn", False)
        for number, profile in enumerate(rule.get("profiles", [])):
            if profile.get("ecn", mode) != mode:
                text = "IOS marks packets of all codepoints of a class, or none"
                self._remarks.left_out(f"{place}.profiles[{number}].ecn", text)
        if mode in {"mark-only", "mark-only-below-max"}:
            text = f"IOS drops packets that are not ECN-capable and cannot express {mode}"
            self._remarks.left_out(f"{place}.ecn", text)
            return []
        if mode == "mark-above-max":
            self._remarks.differs(f"{place}.ecn", "above max IOS drops ECN-capable packets, too")
        return ["  random-detect ecn"] if mode else []

    def _limits(self, queue: QueueOut, place: str, limit: Depth | None) -> list[str]:
        result = []
        for code in sorted(queue.codepoints):
            number = _profile(queue, code)
            text = None if number is None else queue.rule["profiles"][number].get("limit")
            if text is None or (limit is not None and depth(text) == limit):
                continue
            own = depth(text)
            amount = self._amount(f"{place}.profiles[{number}]", "limit", own, "queue-limit")
            unit = "packets" if own.packets else "bytes"
            result.append(f"  queue-limit dscp {dscp(code)} {amount} {unit}")
        return result

    def _curves(self, queue: QueueOut, place: str) -> dict[str, str]:
        """The words of each drop curve, by color; red falls back to yellow, as it does in perhop."""
        result = {}
        for key in CURVES:
            given = queue.rule.get(key)
            if isinstance(given, str):
                result[key] = self._curve(f"{place}.{key}", given)
        if "yellow" in result:
            result.setdefault("red", result["yellow"])
        for number, profile in enumerate(queue.rule.get("profiles", [])):
            where = f"{place}.profiles[{number}]"
            if {"traffic-class", "service"} & set(profile.get("match", {})):
                text = "only `dscp`, `precedence` and `color` can be exported; the profile is not"
                self._remarks.left_out(f"{where}.match", text)
            elif "curve" in profile:
                result[str(number)] = self._curve(f"{where}.curve", profile["curve"])
        return {key: words for key, words in result.items() if words}

    def _curve(self, place: str, text: str) -> str:
        if text.startswith(("interpolate", "segmented")):
            self._remarks.left_out(place, "IOS has one segment, from min to max, and cannot express more")
            return ""
        curve = thresholds(text)
        words = []
        for key, value in (("min", curve.low), ("max", curve.high)):
            unit = "" if value.packets else " bytes"
            command = f"{key} {'packets' if value.packets else 'bytes'}"
            words.append(f"{self._amount(place, key, value, command)}{unit}")
        if curve.most <= 0:
            self._remarks.left_out(place, "IOS writes max_p as 1/D and cannot express 0")
            return " ".join(words)
        denominator = int(RANGES["denominator"].fitted(math.floor(1 / curve.most + 0.5)))
        said = f"1/{denominator}"
        if abs(1 / denominator - curve.most) > WRITTEN:
            self._remarks.rounded(place, f"max_p {curve.most:g}", curve.most, 1 / denominator, said)
        return f"{' '.join(words)} {denominator}"

    def _amount(self, place: str, key: str, value: Depth, command: str) -> int:
        unit = "packets" if value.packets else "B"
        given = f"{key} {value.number:g} {unit}"
        return self._remarks.fitted(place, given, value.number, RANGES[command], unit)

    def _exponent(self, place: str, rule: Table) -> int:
        weight = float(rule["weight"])
        exponent = int(RANGES["exponent"].fitted(math.floor(-math.log2(weight) + 0.5)))
        said = f"2^-{exponent} = {2.0**-exponent:.4g}"
        self._remarks.rounded(f"{place}.weight", f"{weight:g}", weight, 2.0**-exponent, said)
        return exponent


def _profile(queue: QueueOut, codepoint: int) -> int | None:
    profiles = queue.rule.get("profiles", [])
    color = queue.color(codepoint)
    return next((n for n, p in enumerate(profiles) if takes(p.get("match", {}), codepoint, color)), None)


def _key(queue: QueueOut, codepoint: int) -> str:
    """The drop curve of a codepoint: the number of a profile, or a color."""
    number = _profile(queue, codepoint)
    return queue.color(codepoint) if number is None else str(number)


def dscp(codepoint: int) -> str:
    """A codepoint as IOS names it."""
    if codepoint == 0:
        return "default"
    return units.SHOWN.get(codepoint, str(codepoint)).lower()
