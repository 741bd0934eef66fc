"""Policers of Cisco's systems: `police` with its rates, bursts and actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.dialects.cisco.quantities import AMOUNTS, rate
from perhop.routers.model import Action, How, PortMeter, Quantity, Rate, RateUnit, Unit

if TYPE_CHECKING:
    from collections.abc import Callable

    from perhop.routers.source import Account

ACTIONS = ("conform", "exceed", "violate")


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
        rest = self._words[1:]
        text = " ".join(self._words)
        while rest:
            word = rest[0].lower()
            action = action_name(word)
            if action:
                found, rest = _action(rest[1:])
                if found is None:
                    return False
                self.actions[action] = found
                continue
            if word in {"cir", "rate"}:
                self.cir, rest = rate(rest[1:], self._line, text)
                if self.cir is None:
                    return False
            elif word in {"pir", "peak-rate"}:
                self.pir, rest = rate(rest[1:], self._line, text)
                if self.pir is None:
                    return False
            elif word in {"bc", "burst", "be", "peak-burst"}:
                burst, rest = self._burst(rest[1:], text)
                if burst is None:
                    return False
                if word == "peak-burst" or (word == "be" and self.pir is not None):
                    self.peak_burst = burst
                else:
                    self.bursts.append(burst)
            elif self.cir is None:
                self.cir, rest = rate(rest, self._line, text)
                if self.cir is None:
                    return False
            else:
                burst, rest = self._burst(rest, text)
                if burst is None:
                    return False
                self.bursts.append(burst)
        return self.cir is not None and self.cir.number > 0 and len(self.bursts) <= 2

    def _burst(self, words: list[str], text: str) -> tuple[Quantity | None, list[str]]:
        if not words:
            return None, words
        factors = {"k": 1e3, "m": 1e6}
        plain = units.number(words[0])
        if plain and len(words) > 1 and words[1].lower() in AMOUNTS and words[1].lower() != "percent":
            unit, factor = AMOUNTS[words[1].lower()]
            return Quantity(float(words[0]) * factor, unit, self._line, text=text), words[2:]
        scaled = units.scaled(words[0], {"": 1.0, **factors})
        return (None if not scaled else Quantity(scaled, Unit.BYTES, self._line, text=text)), words[1:]

    def meter(self, default: Callable[[float], Quantity], account: Account) -> PortMeter:
        """The meter that the words describe; actions that are not said are the system's defaults."""
        cir = self.cir or Rate(1.0)
        text = f"`{' '.join(self._words)}`"
        conform = self.actions.get("conform", ("transmit", ""))
        exceed = self.actions.get("exceed", ("drop", ""))
        violate = self.actions.get("violate", exceed)
        if "violate" in self.actions and "exceed" not in self.actions and self.pir is None:
            exceed = violate  # NX-OS: one rate, two outcomes
        burst = self.bursts[0] if self.bursts else None
        if burst is None:
            burst = default(cir.number if cir.unit is RateUnit.BPS else 0.0)
            burst = Quantity(burst.number, burst.unit, self._line, How.DEFAULT, text=burst.text)
            account.find("W04", self._line, f"{text}: burst not configured; {burst.text}")
        for name, (kind, value) in (("exceed", exceed), ("violate", violate)):
            if kind == "mark" and name in self.actions:
                said = (
                    "here AFn2 for yellow and AFn3 for red, only of AF codepoints and in the class of theirs"
                )
                account.find("W10", self._line, f"{text}: {name} sets {value or 'a field'}; {said}")
        if conform[0] == "mark":
            account.find("W10", self._line, f"{text}: conform sets {conform[1]}; not simulated")
        if self.pir is not None:
            second = self.peak_burst or (self.bursts[1] if len(self.bursts) > 1 else None)
            if second is None:
                found = default(self.pir.number if self.pir.unit is RateUnit.BPS else 0.0)
                second = Quantity(found.number, found.unit, self._line, How.DEFAULT, text=found.text)
                account.find("W04", self._line, f"{text}: peak burst not configured; {found.text}")
            return PortMeter(
                "rfc2698", cir, burst, self._line, self.pir, second,
                exceed=exceed[0], violate=violate[0] if "violate" in self.actions else "drop",
            )  # fmt: skip
        two = "violate" in self.actions and "exceed" in self.actions
        if two:
            second = self.bursts[1] if len(self.bursts) > 1 else None
            if second is None:
                second = Quantity(burst.number, burst.unit, self._line, How.DEFAULT, text="be as bc")
                account.find("W04", self._line, f"{text}: excess burst not configured; as bc")
            return PortMeter(
                "rfc2697", cir, burst, self._line, None, second, exceed=exceed[0], violate=violate[0]
            )
        if len(self.bursts) > 1:
            account.find(
                "W10", self._line, f"{text}: without a violate action there is one bucket; be is left out"
            )
        return PortMeter("one-bucket", cir, burst, self._line, exceed=exceed[0])


SETTERS = ("set-dscp-transmit", "set-dscp-tunnel-transmit", "set-prec-transmit", "set-qos-transmit",
           "set-cos-transmit", "set-mpls-exp-transmit", "set-mpls-exp-imposition-transmit",
           "set-mpls-exp-topmost-transmit", "set-clp-transmit", "set-discard-class-transmit",
           "set-cos-inner-transmit", "set-frde-transmit")  # fmt: skip
VALUELESS = ("set-clp-transmit", "set-frde-transmit")


def _action(words: list[str]) -> tuple[tuple[Action, str] | None, list[str]]:
    """An action at the head of words, with what it sets, and the words after it."""
    if not words:
        return None, words
    head = words[0].lower()
    if head == "transmit":
        return ("transmit", ""), words[1:]
    if head == "drop":
        return ("drop", ""), words[1:]
    if head == "policed-dscp-transmit":
        return ("mark", "a table's codepoint"), words[1:]
    if head in VALUELESS:
        return ("mark", head), words[1:]
    if head in SETTERS and len(words) > 1:
        return ("mark", words[1].lower()), words[2:]
    if head == "set" and words[1:3] == ["mpls", "experimental"] and len(words) > 4:
        return ("mark", words[4].lower()), words[5:]
    if head == "set" and len(words) > 2:
        return ("mark", words[2].lower()), words[3:]
    return None, words
