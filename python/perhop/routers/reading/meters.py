"""Policers as perhop's meters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers.model import How
from perhop.routers.reading.document import Entry, bytes_entry, configured, rate_entry
from perhop.routers.units import quoted

if TYPE_CHECKING:
    from perhop.routers.model import PortMeter
    from perhop.routers.reading.amounts import Amounts
    from perhop.routers.source import Account

MARKERS = {"one-bucket": "token-bucket", "rfc2697": "srtcm", "rfc2698": "trtcm", "rfc4115": "rfc4115"}


def profile(meter: PortMeter, amounts: Amounts, account: Account, name: str) -> list[Entry] | None:
    """The keys of a meter's profile; None (with a finding) if it does nothing that perhop can do."""
    if meter.conform == "drop":
        account.find("W10", meter.line, f"policer of {name} drops what conforms; it is left out")
        return None
    kind = meter.kind
    actions = (meter.exceed, meter.violate)
    if kind != "one-bucket" and actions == ("drop", "drop"):
        lost = {"rfc2697": "excess burst", "rfc2698": "peak rate and burst", "rfc4115": "excess rate"}[kind]
        text = f"policer of {name} drops what exceeds: its {lost} has no effect, and is left out"
        account.find("W10", meter.line, text)
        kind = "one-bucket"
    out, text = _out(meter, kind)
    if text:
        account.find("W10", meter.line, f"policer of {name}: {text}")
    bps = amounts.rate(meter.rate)
    entries = [
        Entry(
            "marker",
            quoted(MARKERS[kind]),
            meter.line,
            How.CONFIGURED,
            f"{meter.kind}, from {meter.rate.text}",
        ),
        rate_entry("rate", bps, meter.rate),
        bytes_entry("burst", amounts.bytes(meter.burst, bps), meter.burst),
    ]
    if kind == "rfc2697" and meter.second_burst is not None:
        excess = amounts.bytes(meter.second_burst, bps)
        entries.append(bytes_entry("excess-burst", excess, meter.second_burst))
    elif kind in {"rfc2698", "rfc4115"} and meter.peak_rate is not None and meter.second_burst is not None:
        word, burst = ("peak-rate", "peak-burst") if kind == "rfc2698" else ("excess-rate", "excess-burst")
        peak = amounts.rate(meter.peak_rate)
        entries.append(rate_entry(word, peak, meter.peak_rate))
        entries.append(bytes_entry(burst, amounts.bytes(meter.second_burst, peak), meter.second_burst))
    if kind != "one-bucket" and meter.color_aware:
        entries.append(configured("mode", '"color-aware"', meter.line))
    said = f"exceed {meter.exceed}" + ("" if kind == "one-bucket" else f", violate {meter.violate}")
    entries.append(configured("out", quoted(out), meter.line, said))
    return entries


def _out(meter: PortMeter, kind: str) -> tuple[str, str]:
    """The value of `out`, and what is approximated."""
    passed = "what exceeds passes unchanged on the device; here it becomes yellow"
    if kind == "one-bucket":
        if meter.exceed == "drop":
            return "drop", ""
        return "mark", passed if meter.exceed == "transmit" else ""
    if meter.violate == "drop":
        return "drop-red", passed if meter.exceed == "transmit" else ""
    if meter.exceed == "drop":
        return "drop", "drops what exceeds but not what violates; here it drops both"
    return "mark", passed if "transmit" in {meter.exceed, meter.violate} else ""
