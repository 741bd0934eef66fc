"""Rates, amounts and policers of Cisco's commands, and keywords that are abbreviated."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import Action, How, PortMeter, Quantity, Rate, RateUnit, Unit

if TYPE_CHECKING:
    from collections.abc import Callable

    from perhop.routers.source import Account

AMOUNTS: dict[str, tuple[Unit, float]] = {
    "packets": (Unit.PACKETS, 1), "packet": (Unit.PACKETS, 1), "bytes": (Unit.BYTES, 1),
    "kbytes": (Unit.BYTES, 1e3), "mbytes": (Unit.BYTES, 1e6), "gbytes": (Unit.BYTES, 1e9),
    "ms": (Unit.SECONDS, 1e-3), "us": (Unit.SECONDS, 1e-6), "percent": (Unit.PERCENT, 1),
}  # fmt: skip
RATES: dict[str, tuple[RateUnit, float]] = {
    "bps": (RateUnit.BPS, 1), "kbps": (RateUnit.BPS, 1e3), "kbit": (RateUnit.BPS, 1e3),
    "mbps": (RateUnit.BPS, 1e6), "gbps": (RateUnit.BPS, 1e9), "pps": (RateUnit.PACKETS, 1),
    "percent": (RateUnit.PERCENT, 1), "%": (RateUnit.PERCENT, 1),
    "per-thousand": (RateUnit.PERCENT, 0.1), "per-million": (RateUnit.PERCENT, 1e-4),
}  # fmt: skip
"""Percents are of the port's rate."""
LEADING = RATES.keys() - {"pps", "%"}
"""Units that may stand before the number."""
ACTIONS = ("conform", "exceed", "violate")
RATE_WORDS, PEAK_WORDS = {"cir", "rate"}, {"pir", "peak-rate"}
BURST_WORDS = {"bc", "burst", "be", "peak-burst"}
SETTERS = ("set-dscp-transmit", "set-dscp-tunnel-transmit", "set-prec-transmit", "set-qos-transmit",
           "set-cos-transmit", "set-mpls-exp-transmit", "set-mpls-exp-imposition-transmit",
           "set-mpls-exp-topmost-transmit", "set-clp-transmit", "set-discard-class-transmit",
           "set-cos-inner-transmit", "set-frde-transmit")  # fmt: skip
VALUELESS = ("set-clp-transmit", "set-frde-transmit")


def rate(words: list[str], line: int, text: str, bare: float = 1.0) -> tuple[Rate | None, list[str]]:
    """Read a rate at the head of words, whose bare numbers count in `bare` bit/s; and what follows it.

    >>> rate(["percent", "20", "5"], 1, "")[0].unit, rate(["2", "mbps", "5"], 1, "")[1], rate(["x"], 1, "")
    (<RateUnit.PERCENT: 'percent'>, ['5'], (None, ['x']))
    """
    if len(words) > 1 and words[0].lower() in LEADING and units.number(words[1]) is not None:
        words = [words[1], words[0], *words[2:]]
    value = units.number(words[0]) if words else None
    if value is None:
        bps = units.scaled(words[0], units.DECIMAL) if words else None
        return (None, words) if bps is None else (Rate(bps, line=line, text=text), words[1:])
    unit = words[1].lower() if len(words) > 1 else ""
    if unit not in RATES:
        return Rate(value * bare, line=line, text=text), words[1:]
    kind, factor = RATES[unit]
    return Rate(value * factor, kind, line, text=text), words[2:]


def amount(words: list[str], line: int, text: str, each: float | None) -> tuple[Quantity | None, list[str]]:
    """Read an amount at the head of words, and what follows it; `each`: bytes of what is called a packet."""
    # Catalyst writes the unit first, NX-OS bytes.
    if len(words) > 1 and words[0].lower() in {"percent", "bytes"}:
        words = [words[1], words[0], *words[2:]]
    if not words or units.number(words[0]) is None:
        return None, words
    unit = words[1].lower() if len(words) > 1 else ""
    rest = words[2:] if unit in AMOUNTS else words[1:]
    kind, factor = AMOUNTS.get(unit, (Unit.PACKETS, 1))
    each = each if kind is Unit.PACKETS else None
    return Quantity(float(words[0]) * factor, kind, line, each=each, text=text), rest


def keyword(word: str, *choices: str) -> str | None:
    """The keyword that a word is, or abbreviates without doubt (three letters at least)."""
    word = word.lower()
    if word in choices:
        return word
    if len(word) < 3:
        return None
    found = [choice for choice in choices if choice.startswith(word)]
    return found[0] if len(found) == 1 else None


def action_name(word: str) -> str | None:
    """The outcome of a policer that a word names, such as `exceed-action`."""
    base = word.removesuffix("-action")
    return base if base in ACTIONS else None


class Policer:
    """The words of `police`, with those of actions on lines after it."""

    def __init__(self, line: int, words: list[str]) -> None:
        """Takes the words of a line; `read` reads them."""
        self._line = line
        self._words = words
        self.cir: Rate | None = None
        self.pir: Rate | None = None
        self.bursts: list[Quantity] = []
        """bc, be."""
        self.peak_burst: Quantity | None = None
        self.actions: dict[str, tuple[Action, str]] = {}

    def read(self) -> bool:
        """Read all words; False if one is not understood."""
        rest, text = self._words[1:], " ".join(self._words)
        while rest:
            word = rest[0].lower()
            action = action_name(word)
            named = word in {*RATE_WORDS, *PEAK_WORDS, *BURST_WORDS}
            after = rest[1:] if named else rest
            found: object
            if action:
                found, rest = _action(rest[1:])
                self.actions |= {} if found is None else {action: found}
            elif word in PEAK_WORDS:
                self.pir, rest = rate(after, self._line, text)
                found = self.pir
            elif word in RATE_WORDS or (not named and self.cir is None):
                self.cir, rest = rate(after, self._line, text)
                found = self.cir
            else:
                burst, rest = self._burst(after, text)
                found = burst
                if word == "peak-burst" or (word == "be" and self.pir is not None):
                    self.peak_burst = burst
                elif burst is not None:
                    self.bursts.append(burst)
            if found is None:
                return False
        return self.cir is not None and self.cir.number > 0 and len(self.bursts) <= 2

    def _burst(self, words: list[str], text: str) -> tuple[Quantity | None, list[str]]:
        if not words:
            return None, words
        unit = words[1].lower() if len(words) > 1 else ""
        if units.number(words[0]) and unit in AMOUNTS and unit != "percent":
            kind, factor = AMOUNTS[unit]
            return Quantity(float(words[0]) * factor, kind, self._line, text=text), words[2:]
        scaled = units.scaled(words[0], {"": 1.0, "k": 1e3, "m": 1e6})
        return (Quantity(scaled, Unit.BYTES, self._line, text=text) if scaled else None), words[1:]

    def meter(self, default: Callable[[float], Quantity], account: Account) -> PortMeter:
        """The meter that the words describe; actions that are not said are the system's defaults."""
        line, said = self._line, f"`{' '.join(self._words)}`"
        cir, bursts = self.cir or Rate(1.0), self.bursts
        both = {"violate", "exceed"} <= self.actions.keys()
        exceed = self.actions.get("exceed", ("drop", ""))
        violate = self.actions.get("violate", exceed)
        if "violate" in self.actions and not both and self.pir is None:
            exceed = violate  # NX-OS: one rate, two outcomes

        def implied(which: str, of: Rate) -> Quantity:
            """The system's own burst at a rate."""
            found = default(of.number if of.unit is RateUnit.BPS else 0.0)
            account.find("W04", line, f"{said}: {which} not configured; {found.text}")
            return replace(found, line=line, how=How.DEFAULT)

        burst = bursts[0] if bursts else implied("burst", cir)
        for name, (kind, value) in (("exceed", exceed), ("violate", violate)):
            if kind == "mark" and name in self.actions:
                text = f"{said}: {name} sets {value or 'a field'}; here AFn2 for yellow and AFn3 for red"
                account.find("W10", line, f"{text}, only of AF codepoints and in the class of theirs")
        conform = self.actions.get("conform", ("transmit", ""))
        if conform[0] == "mark":
            account.find("W10", line, f"{said}: conform sets {conform[1]}; not simulated")
        second = bursts[1] if len(bursts) > 1 else None
        if self.pir is not None:
            second = self.peak_burst or second or implied("peak burst", self.pir)
            last = violate[0] if "violate" in self.actions else "drop"
            return PortMeter("rfc2698", cir, burst, line, self.pir, second, exceed=exceed[0], violate=last)
        if both:
            if second is None:
                second = replace(burst, line=line, how=How.DEFAULT, text="be as bc")
                account.find("W04", line, f"{said}: excess burst not configured; as bc")
            return PortMeter("rfc2697", cir, burst, line, None, second, exceed=exceed[0], violate=violate[0])
        if second is not None:
            account.find("W10", line, f"{said}: without a violate action there is one bucket; be is left out")
        return PortMeter("one-bucket", cir, burst, line, exceed=exceed[0])


def _action(words: list[str]) -> tuple[tuple[Action, str] | None, list[str]]:
    """An action at the head of words, with what it sets, and the words after it."""
    match [word.lower() for word in words]:
        case ["transmit", *_]:
            return ("transmit", ""), words[1:]
        case ["drop", *_]:
            return ("drop", ""), words[1:]
        case ["policed-dscp-transmit", *_]:
            return ("mark", "a table's codepoint"), words[1:]
        case [head, *_] if head in VALUELESS:
            return ("mark", head), words[1:]
        case [head, value, *_] if head in SETTERS:
            return ("mark", value), words[2:]
        case ["set", _, _, _, value, *_] if words[1:3] == ["mpls", "experimental"]:
            return ("mark", value), words[5:]
        case ["set", _, value, *_]:
            return ("mark", value), words[3:]
    return None, words
