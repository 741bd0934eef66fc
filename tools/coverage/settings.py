"""Ten kinds of scenario under which intervals are tried: short, fast, and different in what makes them hard.

Each has a second setting for paired differences: the same text with one value replaced.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent / "scenarios"
EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True, slots=True)
class Setting:
    """A scenario and what is hard about it.

    Attributes:
        kind: What it is, for readers.
        text: The scenario as TOML.
        instead: A part of the text, and its replacement in the second setting.
    """

    kind: str
    text: str
    instead: tuple[str, str]

    @property
    def other(self) -> str:
        """The scenario in its second setting.

        Raises:
            ValueError: The part does not stand in the text exactly once.
        """
        before, after = self.instead
        if self.text.count(before) != 1:
            raise ValueError(f"`{before}` must stand in the scenario exactly once")
        return self.text.replace(before, after)


_INSTEAD = {
    "first": ("30/90/0.05", "30/90/0.1"),
    "md1": ('"1Mbps"', '"1.05Mbps"'),
    "voices": ('"20p"', '"16p"'),
    "radio": ("0.0001", "0.0002"),
    "heavy-tail": ('"60p"', '"30p"'),
    "lock-out": ('"10p"', '"12p"'),
    "transfers": ('"80p"', '"40p"'),
    "calls": ("5/25/0.05", "5/25/0.1"),
    "marks": ("10/40/0.05", "10/40/0.1"),
    "classes": ("10/40/0.1", "10/40/0.2"),
}


def _setting(name: str) -> Setting:
    path = EXAMPLES / "first.toml" if name == "first" else HERE / f"{name}.toml"
    text = path.read_text(encoding="utf-8")
    kind = tomllib.loads(text).get("title", "TCP over RIO: the README's example")
    return Setting(kind, text, _INSTEAD[name])


SETTINGS: dict[str, Setting] = {name: _setting(name) for name in _INSTEAD}
"""The scenarios by name."""
