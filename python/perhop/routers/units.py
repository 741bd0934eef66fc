"""Numbers, units and codepoints as routers write them, and as scenarios do."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,9})?")
NAMES = {
    **dict.fromkeys(("default", "be", "df"), 0),
    **dict.fromkeys(("va", "voice-admit"), 44),
    "ef": 46,
    "le": 1,
    "nc1": 48,
    "nc2": 56,
    **{f"cs{n}": 8 * n for n in range(8)},
    **{f"af{n}{p}": 8 * n + 2 * p for n in range(1, 5) for p in range(1, 4)},
}
SHOWN = {
    46: "EF",
    **{8 * n: f"CS{n}" for n in range(8)},
    **{8 * n + 2 * p: f"AF{n}{p}" for n in range(1, 5) for p in range(1, 4)},
}
PRECEDENCES = (
    "routine", "priority", "immediate", "flash", "flash-override", "critical", "internet", "network",
)  # fmt: skip
"""The names of precedences, from 0 on."""
DECIMAL = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}


def number(text: str) -> float | None:
    """A plain number that is not negative."""
    return float(text) if NUMBER.fullmatch(text) else None


def whole(text: str) -> int | None:
    """A whole number."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def scaled(text: str, factors: dict[str, float]) -> float | None:
    """A number with one of these suffixes, whatever their case, or with none if `""` is one."""
    found = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})([A-Za-zµμ%]*(?:/s)?)", text)
    if found is None:
        return None
    factor = factors.get(found[2].lower())
    return None if factor is None else float(found[1]) * factor


def codepoint(text: str) -> int | None:
    """A codepoint by number, name or as six bits."""
    if re.fullmatch(r"[01]{6}", text):
        return int(text, 2)
    if re.fullmatch(r"0x[0-9A-Fa-f]{1,2}", text):
        value = int(text, 16)
        return value if value < 64 else None
    found = whole(text)
    if found is not None:
        return found if found < 64 else None
    return NAMES.get(text.lower())


def codepoints(text: str) -> frozenset[int] | None:
    """Codepoints between commas, with ranges such as `8-15`."""
    result: set[int] = set()
    for part in filter(None, text.split(",")):
        low, dash, high = part.partition("-")
        first, last = codepoint(low), codepoint(high) if dash else None
        if dash and first is not None and last is not None and first <= last:
            result.update(range(first, last + 1))
            continue
        single = codepoint(part)
        if single is None:
            return None
        result.add(single)
    return frozenset(result) or None


def all_of(
    words: Iterable[str], parse: Callable[[str], frozenset[int] | None] = codepoints
) -> frozenset[int] | None:
    """The codepoints of several words; None: there is no word, or one is not understood."""
    result = frozenset[int]()
    for word in words:
        found = parse(word)
        if found is None:
            return None
        result |= found
    return result or None


def precedence(text: str) -> int | None:
    """An IP precedence by number or name."""
    found = whole(text)
    if found is not None:
        return found if found < 8 else None
    name = text.lower()
    return PRECEDENCES.index(name) if name in PRECEDENCES else None


def of_precedence(value: int) -> frozenset[int]:
    """The codepoints of a precedence."""
    return frozenset(range(8 * value, 8 * value + 8))


def precedences(text: str) -> frozenset[int] | None:
    """The codepoints of precedences between commas."""
    values = [precedence(part) for part in text.split(",") if part]
    if not values or None in values:
        return None
    return frozenset(code for value in values if value is not None for code in of_precedence(value))


def shown_codepoints(values: Iterable[int]) -> list[str | int]:
    """Codepoints as scenarios write them."""
    return [SHOWN.get(value, value) for value in sorted(values)]


def listed(values: Iterable[int]) -> str:
    """Codepoints as messages list them."""
    return ", ".join(map(str, shown_codepoints(values)))


def plain(value: float, digits: int = 9) -> str:
    """A number without an exponent and without zeros at its end."""
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def decimal(value: float) -> str:
    """A number as TOML writes one that need not be whole."""
    text = plain(value, 12)
    return text if "." in text else f"{text}.0"


def rate_text(bps: float) -> str:
    """A rate as scenarios write it, in whole bit/s, at least one."""
    bps = max(1.0, float(math.floor(bps + 1e-3)))
    for factor, unit in ((1e9, "Gbps"), (1e6, "Mbps"), (1e3, "kbps")):
        if bps >= factor:
            return f"{plain(bps / factor)}{unit}"
    return f"{plain(bps)}bps"


def packets_text(number: float) -> str:
    """A number of packets for readers: `1 packet`, `50 packets`."""
    return f"{number:g} packet{'' if number == 1 else 's'}"


def bytes_text(value: float) -> str:
    """An amount of bytes as scenarios write it, rounded to whole bytes, at least one."""
    whole_bytes = max(1, math.floor(value + 0.5))
    for factor, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if whole_bytes >= factor and whole_bytes % (factor // 1000) == 0:
            return f"{plain(whole_bytes / factor)}{unit}"
    return f"{whole_bytes}B"


def time_text(seconds: float) -> str:
    """A time as scenarios write it."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= factor:
            return f"{plain(seconds / factor, 6)}{unit}"
    return f"{plain(seconds * 1e9, 0)}ns"


def shown_rate(bps: float) -> str:
    """A rate as people read it."""
    for factor, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bps >= factor:
            return f"{bps / factor:.6g} {unit}"
    return f"{bps:.6g} bit/s"


def quoted(text: str) -> str:
    """A string as TOML."""
    return json.dumps("".join(c if c.isprintable() else "?" for c in text), ensure_ascii=False)


def toml_value(value: Any, name: str = "") -> str:  # noqa: ANN401 - of a scenario
    """A value of a scenario as TOML on one line; `name` is its key, by which codepoints have their names."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return quoted(value)
        case dict():
            inner = ", ".join(f"{key(k)} = {toml_value(v, k)}" for k, v in value.items() if v is not None)
            return f"{{ {inner} }}"
        case list():
            return "[" + ", ".join(toml_value(one, name) for one in value) + "]"
        case int() if name == "dscp":
            shown = shown_codepoints([value])[0]
            return quoted(shown) if isinstance(shown, str) else str(shown)
        case _:
            return repr(value)


def key(text: str) -> str:
    """A key as TOML: bare where it can be."""
    bare = text.replace("-", "").replace("_", "")
    return text if bare.isalnum() and text.isascii() else quoted(text)
