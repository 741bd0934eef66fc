"""The parameters of tc's commands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perhop.routers import linux, units
from perhop.routers.model import Quantity, Rate, RateUnit, Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perhop.routers.dialects.tc.commands import Command
    from perhop.routers.source import Account

DIGITS = frozenset("0123456789.")


class Options:
    """The parameters of a command as words; what is not asked for is reported by `close`."""

    def __init__(self, command: Command, account: Account) -> None:
        """Takes the words of a command."""
        self._command = command
        self._account = account
        self._words = list(command.words)
        self.line = command.line
        command.read = True

    def find(self, code: str, text: str, line: int = 0) -> bool:
        """Report something of the line of the command, or of another one."""
        return self._account.find(code, line or self.line, text)

    def say(self, code: str, text: str) -> bool:
        """Report something of the command, which the report names by its kind."""
        return self.find(code, f"{self._command.kind}: {text}")

    def miss(self, text: str) -> bool:
        """Report something without effect, as `Account.miss_part` does."""
        return self._account.miss_part(self.line, f"{self._command.kind}: {text}")

    def _value(self, *names: str) -> tuple[str, str] | None:
        for name in names:
            if name in self._words and self._words.index(name) + 1 < len(self._words):
                at = self._words.index(name)
                value = self._words[at + 1]
                del self._words[at : at + 2]
                return name, value
        return None

    def flag(self, name: str) -> bool:
        """Whether a word is there."""
        if name in self._words:
            self._words.remove(name)
            return True
        return False

    def text(self, name: str) -> str | None:
        """A value as text."""
        found = self._value(name)
        return None if found is None else found[1]

    def _bad(self, name: str, value: str) -> None:
        self.miss(f"`{name} {value}` is no value that tc takes; left out")

    def number(self, name: str) -> float | None:
        """A plain number."""
        found = self._value(name)
        if found is None:
            return None
        value = units.number(found[1])
        if value is None:
            self._bad(*found)
        return value

    def rate(self, *names: str) -> Rate | None:
        """A rate; of `tc -j` in bytes a second."""
        found = self._value(*names)
        if found is None:
            return None
        percent = units.number(found[1].removesuffix("%")) if found[1].endswith("%") else None
        if percent:
            return Rate(percent, RateUnit.PERCENT, self.line, text=" ".join(found))
        bare = self._command.json and units.number(found[1]) is not None
        bps = float(found[1]) * 8 if bare else linux.rate(found[1])
        if not bps:
            self._bad(*found)
            return None
        return Rate(bps, RateUnit.BPS, self.line, text=" ".join(found))

    def _quantity(
        self, names: Sequence[str], unit: Unit, parse: Callable[[str], float | None]
    ) -> Quantity | None:
        found = self._value(*names)
        if found is None:
            return None
        value = parse(found[1])
        if not value:
            self._bad(*found)
            return None
        return Quantity(value, unit, self.line, text=" ".join(found))

    def size(self, *names: str) -> Quantity | None:
        """A size in bytes."""
        return self._quantity(names, Unit.BYTES, lambda text: linux.size(text.partition("/")[0]))

    def packets(self, *names: str) -> Quantity | None:
        """A number of packets, perhaps with `p`."""
        return self._quantity(names, Unit.PACKETS, lambda text: units.whole(text.removesuffix("p")))

    def time(self, *names: str) -> Quantity | None:
        """A time in seconds."""
        return self._quantity(names, Unit.SECONDS, linux.time)

    def sizes(self, *names: str) -> None:
        """Report words that count headers beside the packet: packets have their IP size here."""
        for name in names:
            value = self.text(name)
            if value is not None and value not in {"0", "0b", "ethernet"}:
                self.say("W18", f"`{name} {value}`: packets have their IP size here")

    def series(self, name: str) -> list[str]:
        """The values after a word; `tc -j` names those behind the first one."""
        if name not in self._words:
            return []
        at = self._words.index(name)
        end = at + 1
        labels = {"jitter", "correlation"} if self._command.json else {"random"}
        while end < len(self._words) and (self._words[end] in labels or self._words[end][:1] in DIGITS):
            end += 1
        found = [word for word in self._words[at + 1 : end] if word not in labels]
        if found:  # else a model of losses with states: `close` reports it
            del self._words[at:end]
        return found

    def chance(self, name: str) -> tuple[float, str] | None:
        """A probability of netem, each packet for itself, and its text."""
        found = self.series(name)
        value = linux.probability(found[0]) if found else None
        if not found or value is None or len(found) > 2:
            if found:
                self._bad(name, " ".join(found))
            return None
        self.uncorrelated(name, found[1:])
        return value, f"{name} {found[0]}"

    def uncorrelated(self, name: str, found: list[str]) -> None:
        """The correlation of a value with that of the packet before."""
        if any(linux.probability(word) for word in found):
            text = f"its correlation `{found[0]}` is not simulated; packets are independent"
            self.say("W06", f"`{name}`: {text}")

    def delay(self) -> list[float]:
        """The delay of netem and its jitter in seconds, as far as they are there."""
        found = self.series("delay") or self.series("latency")
        values = [units.number(word) if self._command.json else linux.time(word) for word in found[:2]]
        self.uncorrelated("delay", found[2:])
        times = [value for value in values if value is not None]
        if len(times) < len(values) or len(found) > 3:
            self._bad("delay", " ".join(found))
            return []
        return times

    def list(self, name: str) -> list[int]:
        """Whole numbers after a word."""
        if name not in self._words:
            return []
        at = self._words.index(name)
        end = at + 1
        while end < len(self._words) and re.fullmatch("[0-9]{1,9}", self._words[end]):
            end += 1
        values = [int(word) for word in self._words[at + 1 : end]]
        del self._words[at:end]
        return values

    def skip(self, *names: str) -> None:
        """Values without effect on what is simulated."""
        for name in names:
            while (found := self._value(name)) is not None:
                self.say("W13", f"`{' '.join(found)}` has no effect here")

    def rest(self) -> str:
        """The words that nobody asked for."""
        words, self._words = self._words, []
        return " ".join(words)

    def close(self) -> None:
        """Report the words that nobody asked for."""
        if self._words:
            self.miss(f"not understood: `{' '.join(self._words)}`")
