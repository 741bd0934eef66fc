"""A router's configuration as bytes, and what a user says beside it, as text with units."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from perhop.errors import PerhopError
from perhop.files import inputs
from perhop.routers import model, units
from perhop.routers.reading.amounts import Answers, Traffic
from perhop.scenario import quantities

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LIMIT = 16_000_000
"""Bytes of a configuration; anything larger is the wrong file."""
RATES = quantities.with_printed(quantities.RATES)
BYTES = quantities.with_printed({"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9})
TIMES = quantities.with_printed(quantities.TIMES)
PACKETS = quantities.with_printed({"p": 1.0})


def answers(
    rate: str | None,
    packet_size: str | None,
    buffer: str | None,
    segment_size: str | None = None,
    *,
    matches: Sequence[str] = (),
    lenient: bool = False,
    demand: Path | None = None,
) -> Answers:
    """Read what a user says beside a configuration, from text as the options of the command have it.

    `demand` is the file with the traffic.

    Raises:
        PerhopError: One of them cannot be read; the message names the option.
    """
    return Answers(
        link_rate=_quantity("--rate", rate, RATES, "20Mbps"),
        packet_size=_quantity("--packet-size", packet_size, BYTES, "1000B"),
        buffer=_buffer(buffer),
        segment_size=_quantity("--segment-size", segment_size, BYTES, "208B"),
        matches=_matches(matches),
        lenient=lenient,
        traffic=None if demand is None else _traffic(demand),
    )


def _traffic(path: Path) -> Traffic:
    """The `[[flows]]` and `[profiles]` of a plan or a scenario."""
    data = inputs.toml(inputs.read_text(path, "traffic needs [[flows]]"), str(path))
    flows, profiles = data.get("flows"), data.get("profiles", {})
    if not isinstance(flows, list) or not flows or not all(isinstance(one, dict) for one in flows):
        raise PerhopError(f"--traffic {path}: has no [[flows]]; give a plan or a scenario")
    if not isinstance(profiles, dict) or not all(isinstance(one, dict) for one in profiles.values()):
        raise PerhopError(f"--traffic {path}: `profiles` must have a table for each profile")
    return Traffic(path.name, flows, profiles)


def read(path: Path) -> bytes:
    """The bytes of a configuration; `-` is standard input.

    Raises:
        PerhopError: It cannot be read, or is too large for a configuration.
    """
    try:
        with (Path("/dev/stdin") if str(path) == "-" else path).open("rb") as file:
            data = file.read(LIMIT + 1)
    except FileNotFoundError:
        raise PerhopError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise PerhopError(f"{path}: is a directory; give a configuration as a file") from None
    except OSError as error:
        raise PerhopError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise PerhopError(f"{str(path)!r}: is not a file name") from None
    if len(data) > LIMIT:
        raise PerhopError(f"{path}: larger than {LIMIT // 1_000_000} MB; give one device's configuration")
    inputs.expect_no_utf16(data, str(path))
    return data


def _quantity(option: str, text: str | None, factors: Mapping[str, float], example: str) -> float | None:
    if text is None:
        return None
    found = units.scaled(text.replace(" ", ""), _lowered(factors))
    if found is not None and found <= 0:
        raise PerhopError(f"{option} must be above 0, such as {example}, not `{text}`")
    if not found:
        raise PerhopError(f"{option} must be a number with a unit, such as {example}, not `{text}`")
    return found


def _lowered(factors: Mapping[str, float]) -> dict[str, float]:
    """Factors of units whatever their case, as configurations have them."""
    return {unit.lower(): factor for unit, factor in factors.items()}


def _buffer(text: str | None) -> model.Quantity | None:
    if text is None:
        return None
    bare = text.replace(" ", "")
    kinds = ((model.Unit.BYTES, BYTES), (model.Unit.PACKETS, PACKETS), (model.Unit.SECONDS, TIMES))
    for unit, factors in kinds:
        found = units.scaled(bare, _lowered(factors))
        if found:
            return model.Quantity(found, unit, 0, model.How.ASKED, text=f"--buffer {text}")
    raise PerhopError(f"--buffer must be bytes, packets or a time, such as 1MB, 200p or 50ms, not `{text}`")


def _matches(texts: Sequence[str]) -> dict[str, frozenset[int]]:
    result = {}
    for text in texts:
        name, equals, values = text.rpartition("=")
        codepoints = units.codepoints(re.sub(r"\s", "", values))
        if not equals or not name or codepoints is None:
            raise PerhopError(f"--match must be CLASS=DSCP, such as VOICE=ef or DATA=af21,af22, not `{text}`")
        result[name] = codepoints
    return result
