"""`random-detect` of Cisco's systems: which packets have which drop curve, averages and ECN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.dialects.cisco.quantities import AMOUNTS, amount
from perhop.routers.model import Average, Curve, Drop, Ecn, How, Quantity, Selector, Unit

if TYPE_CHECKING:
    from perhop.routers.dialects.cisco.policies import Flavour, PolicyClass
    from perhop.routers.source import Account


class Thresholds:
    """Reads the lines `random-detect` of a class."""

    def __init__(self, entry: PolicyClass, account: Account, flavour: Flavour) -> None:
        """Findings go to the account."""
        self.entry = entry
        self._account = account
        self._packet = flavour.packet_bytes

    def command(self, line: int, words: list[str]) -> bool:
        """Read a line; False if a word of it is not understood."""
        entry, queue, rest = self.entry, self.entry.queue, words[1:]
        entry.random_detect_line = entry.random_detect_line or line
        word = rest[0].lower() if rest else ""
        if not rest or word in {"dscp-based", "precedence-based", "prec-based"}:
            if rest[1:2] == ["aggregate"] and len(rest) > 2:
                entry.random_detect = "dscp" if word == "dscp-based" else "precedence"
                return self._thresholds(line, [words[0], "default", *rest[2:]])
            if len(rest) > 1 and rest[1:] != ["aggregate"]:
                return False
            entry.random_detect = "dscp" if word == "dscp-based" else "precedence"
            return True
        entry.random_detect = entry.random_detect or "precedence"
        if word == "ecn" and len(rest) == 1:
            queue.ecn, queue.ecn_line = Ecn.BELOW_MAX, line
            return True
        if word == "exponential-weighting-constant" and len(rest) == 2 and units.whole(rest[1]):
            self._weight(int(rest[1]), line, " ".join(words))
            return True
        if word == "default" and len(rest) == 1:  # IOS-XR: the thresholds are the platform's
            return True
        if word == "threshold" and len(rest) > 1:
            return self._account.miss(
                line, "a preset whose numbers depend on the device; give them in its place"
            )
        if word in {"minimum-threshold", "maximum-threshold"}:
            return self._named_thresholds(line, words)
        return self._thresholds(line, words)

    def _weight(self, exponent: int, line: int, text: str) -> None:
        if not 1 <= exponent <= 16:
            self._account.find("W16", line, f"`{text}`: the constant is 1 to 16")
        said = f"2^-{exponent}" if exponent else "0, instantaneous"
        weight = 2.0 ** -min(exponent, 32)
        self.entry.queue.average = Average(weight, line, How.CONFIGURED, said)

    def _thresholds(self, line: int, words: list[str]) -> bool:
        """`random-detect [WHICH] MIN [UNIT] MAX [UNIT] [D]`."""
        text = " ".join(words)
        which, rest = selector(words[1:])
        if which is None:
            return False
        if words[1].lower() == "dscp":
            self.entry.random_detect = "dscp"
        rest = [word for word in rest if word.lower() not in {"minimum-thresh", "maximum-thresh"}]
        if len(rest) > 2 and rest[0].lower() == "percent":  # Catalyst: once for both
            rest = ["percent", rest[1], "percent", *rest[2:]]
        low, rest = amount(rest, line, text, self._packet)
        high, rest = amount(rest, line, text, self._packet)
        if low is None or high is None:
            return False
        # IOS writes the unit once for each; XR may leave out the first one's.
        most, how = 0.1, How.DEFAULT
        lowered = [word.lower() for word in rest]
        if lowered and lowered[0] in {"mark-prob", "mark-probability"}:
            rest = rest[1:]
        if len(rest) == 1 and units.number(rest[0]) == 0:
            said = f"`{text}`: the denominator of the probability at max is 0; the line is left out"
            return self._account.find("W16", line, said)
        if len(rest) == 1 and units.number(rest[0]):
            most, how = 1 / float(rest[0]), How.CONFIGURED
        elif (
            lowered[:2] == ["probability", "percent"] and len(rest) == 3 and units.number(rest[2]) is not None
        ):
            most, how = float(rest[2]) / 100, How.CONFIGURED
        elif rest:
            return False
        return self._curve(which, low, high, most, line, text, how)

    def _named_thresholds(self, line: int, words: list[str]) -> bool:
        """NX-OS: `random-detect minimum-threshold A UNIT maximum-threshold B UNIT …`."""
        text = " ".join(words)
        rest = words[1:]
        low = high = None
        most, how, ecn = 1.0, How.DEFAULT, False
        average: Average | None = None
        while rest:
            word = rest[0].lower()
            if word == "minimum-threshold":
                low, rest = amount(rest[1:], line, text, self._packet)
            elif word == "maximum-threshold":
                high, rest = amount(rest[1:], line, text, self._packet)
            elif word == "drop-probability" and len(rest) > 1 and units.number(rest[1]) is not None:
                most, how, rest = float(rest[1]) / 100, How.CONFIGURED, rest[2:]
            elif word == "weight" and len(rest) > 1 and units.whole(rest[1]) is not None:
                exponent = int(rest[1])
                average = Average(2.0 ** -min(exponent, 32), line, How.CONFIGURED, f"weight {exponent}")
                rest = rest[2:]
            elif word == "ecn":
                ecn, rest = True, rest[1:]
            elif word == "cap-average":
                self._account.find("W02", line, f"`{text}`: that the average is capped is not simulated")
                rest = rest[1:]
            else:
                return False
            if low is None and word == "minimum-threshold":
                return False
        if low is None or high is None:
            return False
        if any("kbytes" in w.lower() or "mbytes" in w.lower() for w in words):
            self._account.find("W05", line, f"`{text}`: kbytes of 1000 bytes assumed")
        self.entry.queue.average = average or self.entry.queue.average
        if ecn:
            self.entry.queue.ecn, self.entry.queue.ecn_line = Ecn.BELOW_MAX, line
        return self._curve(Selector("all"), low, high, most, line, text, how)

    def _curve(
        self, selector: Selector, low: Quantity, high: Quantity, most: float, line: int, text: str, how: How
    ) -> bool:
        if low.unit != high.unit:
            # `10 20 ms`: the unit is given once, at the end.
            if low.unit is not Unit.PACKETS:
                return False
            factor = next(f for u, f in AMOUNTS.values() if u is high.unit)
            words = text.lower().split()
            factor = next((AMOUNTS[w][1] for w in reversed(words) if w in AMOUNTS), factor)
            low = Quantity(low.number * factor, high.unit, line, each=high.each, text=text)
        if low.number > high.number:
            return self._account.find("W16", line, f"`{text}`: min is above max; the line is left out")
        if how is How.DEFAULT:
            shown = units.plain(most, 6)
            self._account.find("W04", line, f"`{text}`: probability at max not configured; {shown} assumed")
        if not 0 < most <= 1:
            self._account.find("W16", line, f"`{text}`: the probability at max is above 0 and at most 1")
            most = min(max(most, 1e-6), 1.0)
        curves = self.entry.queue.curves
        curves[:] = [drop for drop in curves if drop.selector.codepoints != selector.codepoints]
        curves.append(Drop(selector, Curve.ramp(low, high, most, line)))
        return True


def selector(words: list[str]) -> tuple[Selector | None, list[str]]:
    """Read the packets that a curve is for; returns the words after them, too."""
    kind = words[0].lower()
    if kind == "default":
        return Selector("all others"), words[1:]
    if kind == "dscp" and len(words) > 1 and words[1].lower() == "values":
        values: set[int] = set()
        rest = words[2:]
        while rest and (found := units.codepoints(rest[0])) is not None:
            values |= found
            rest = rest[1:]
        return (Selector(_label("dscp", values), frozenset(values)) if values else None), rest
    if kind in {"dscp", "precedence", "prec"} and len(words) > 1:
        if kind == "dscp":
            found = units.codepoints(words[1])
            return (None if found is None else Selector(words[1], found)), words[2:]
        codes = units.precedences(words[1])
        return (None, words) if codes is None else (Selector(f"precedence {words[1]}", codes), words[2:])
    if units.number(kind) is not None:
        return Selector("all"), words
    return None, words


def _label(kind: str, values: set[int]) -> str:
    return f"{kind} {' '.join(map(str, units.shown_codepoints(values)))}"
