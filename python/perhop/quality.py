"""Quality of calls: the E-model of ITU-T Recommendation G.107, and a rating of a run's flows with it.

The transmission rating R starts at 93.2, the value of G.107's default parameters, and loses what delay and
packet loss take away:

    R = 93.2 - Idd(Ta) - Ie,eff

Echo is left out: the echo cancellers are perfect. The short form of Cole and Rosenbluth (2001),
94.2 - 0.024 d - 0.11 max(d - 177.3 ms, 0) - Ie, is another model, gives other values, and is not used here.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import polars as pl

from perhop import frames
from perhop.errors import PerhopError
from perhop.output.readable import Estimates
from perhop.runs import REVERSE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perhop.simulation import Result

CodecName: TypeAlias = Literal["g711", "g711-plc", "g729a-vad"]


@dataclass(frozen=True, slots=True)
class Codec:
    """What the E-model needs to know of a codec (ITU-T G.113, appendix I).

    Attributes:
        impairment: Ie, the equipment impairment factor without loss.
        robustness: Bpl, the packet-loss robustness factor.
        delay_s: From the first sample of a packet of 20 ms to the packet: framing and look-ahead.
    """

    impairment: float
    robustness: float
    delay_s: float


CODECS: Mapping[CodecName, Codec] = {
    "g711": Codec(impairment=0.0, robustness=4.3, delay_s=0.020),
    "g711-plc": Codec(impairment=0.0, robustness=25.1, delay_s=0.020),
    "g729a-vad": Codec(impairment=11.0, robustness=19.0, delay_s=0.025),
}
"""G.711 without and with packet-loss concealment, and G.729A with voice activity detection."""

BASE_RATING = 93.2
"""R of G.107's default parameters."""

LATE = 0.01
"""The share of the delivered packets that a play-out buffer as long as their P99 drops."""


def delay_impairment(delay_s: float) -> float:
    """Idd, what an absolute one-way delay takes from R (G.107, section 7.4); 0 up to 100 ms.

    Args:
        delay_s: Ta in seconds, from mouth to ear: network, codec and play-out buffer.

    Raises:
        ValueError: A delay that is negative or not finite.
    """
    if not 0 <= delay_s < math.inf:
        raise ValueError(f"a delay is at least 0 s and finite, not {delay_s:g}")
    if delay_s <= 0.1:
        return 0.0
    x = math.log2(delay_s / 0.1)
    return float(25 * ((1 + x**6) ** (1 / 6) - 3 * (1 + (x / 3) ** 6) ** (1 / 6) + 2))


def loss_impairment(lost: float, codec: CodecName = "g711-plc", *, burst_ratio: float = 1.0) -> float:
    """Ie,eff, what a codec and the loss of packets take from R (G.107, section 7.5).

    Args:
        lost: Fraction of the packets that are lost or come too late to be played, 0 to 1.
        codec: One of `CODECS`.
        burst_ratio: BurstR, the mean length of bursts of losses over that of random losses; 1 is random.

    Raises:
        ValueError: A fraction outside 0 to 1, a burst ratio that is not positive, or an unknown codec.
    """
    if not 0 <= lost <= 1:
        raise ValueError(f"a fraction of lost packets lies between 0 and 1, not {lost:g}")
    if not 0 < burst_ratio < math.inf:
        raise ValueError(f"a burst ratio is above 0 and finite, not {burst_ratio:g}")
    known = _codec(codec)
    percent = 100 * lost
    return known.impairment + (95 - known.impairment) * percent / (percent / burst_ratio + known.robustness)


def rating(
    delay_s: float, lost: float = 0.0, codec: CodecName = "g711-plc", *, burst_ratio: float = 1.0
) -> float:
    """The transmission rating R of a call; users are satisfied from 80 on (G.107, annex B).

    It can be negative: no upper part of the scale is left then.

    Args:
        delay_s: See `delay_impairment`.
        lost: See `loss_impairment`.
        codec: See `loss_impairment`.
        burst_ratio: See `loss_impairment`.

    Raises:
        ValueError: An argument is out of range.
    """
    return BASE_RATING - delay_impairment(delay_s) - loss_impairment(lost, codec, burst_ratio=burst_ratio)


def opinion_score(r: float) -> float:
    """The mean opinion score (MOS, 1 to 4.5) of a rating R (G.107, annex B).

    The polynomial dips below 1 for R below 6.5; there the score is 1.
    """
    if r <= 0:
        return 1.0
    if r >= 100:
        return 4.5
    return max(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6)


def calls(
    result: Result,
    classes: Sequence[str],
    *,
    codec: CodecName = "g711-plc",
    burst_ratio: float = 1.0,
) -> pl.DataFrame:
    """Rate the flows of some classes as calls, with a play-out buffer as long as the P99 of their delay.

    The buffer plays a packet if it arrives no later than 99 % of the delivered packets of its flow. Ta is
    this percentile of the one-way delay and the codec's delay, and 1 % of the delivered packets count as
    lost, beside those that queues or meters dropped or links lost. A buffer of a fixed length has another
    delay and loss.

    Args:
        result: Runs of a scenario, simulated or on real packets.
        classes: Names of groups of flows over UDP, RAP or TFRC.
        codec: One of `CODECS`. The flows' rate and packet size are the scenario's and do not follow it.
        burst_ratio: See `loss_impairment`.

    Returns:
        One row for each run and flow: `seed`, `class`, `member`, `mouth_to_ear_s` (Ta), `lost_or_late`
        (fraction of the packets), `r` and `mos`. A flow none of whose packets arrived has R 0, score 1 and
        no delay; one that sent nothing after the warm-up has no values.

    Raises:
        PerhopError: A name is no class of the scenario, or a class of TCP, whose delay is not measured.
        ValueError: An unknown codec, or a burst ratio that is not positive.
    """
    loss_impairment(0.0, codec, burst_ratio=burst_ratio)
    _check(result, classes)
    flows = result.flows.filter(pl.col("class").is_in(list(classes)))
    gone = [name for name in flows.columns if name.startswith(("dropped_", "policed_"))] + ["lost_packets"]
    rows = flows.with_columns(gone=pl.sum_horizontal(*gone)).iter_rows(named=True)
    return pl.DataFrame([_rate(row, codec, burst_ratio) for row in rows], schema=_SCHEMA, orient="row")


def call_summary(
    result: Result,
    classes: Sequence[str],
    *,
    codec: CodecName = "g711-plc",
    burst_ratio: float = 1.0,
) -> pl.DataFrame:
    """`calls` by class: means over the flows of a class and then over the runs, with 95 % intervals.

    Args:
        result: See `calls`.
        classes: See `calls`.
        codec: See `calls`.
        burst_ratio: See `calls`.

    Returns:
        One row for each class: `class`, `calls` (flows), and the measures of `calls`, each with the ends of
        its interval beside it, null for a single run.

    Raises:
        PerhopError: See `calls`.
        ValueError: See `calls`.
    """
    rated = calls(result, classes, codec=codec, burst_ratio=burst_ratio)
    measures = ("mouth_to_ear_s", "lost_or_late", "r", "mos")
    rows: list[dict[str, Any]] = []
    for name in classes:
        of_class = rated.filter(pl.col("class") == name)
        by_run = of_class.group_by("seed", maintain_order=True).agg(pl.col(measures).mean())
        flows = of_class["member"].n_unique()
        rows.append({"class": name, "calls": flows, **frames.estimates(by_run, measures)})
    return Estimates(rows, infer_schema_length=None)


_SCHEMA = {
    "seed": pl.UInt64,
    "class": pl.String,
    "member": pl.Int64,
    "mouth_to_ear_s": pl.Float64,
    "lost_or_late": pl.Float64,
    "r": pl.Float64,
    "mos": pl.Float64,
}


def _rate(row: Mapping[str, Any], codec: CodecName, burst_ratio: float) -> tuple[object, ...]:
    """The row of one flow, from its row in `Result.flows`."""
    identity = (row["seed"], row["class"], row["member"])
    delivered, packets = row["delivered_packets"], row["delivered_packets"] + row["gone"]
    if not packets:
        return (*identity, None, None, None, None)
    if not delivered:
        return (*identity, None, 1.0, 0.0, opinion_score(0.0))
    delay = row["p99_transit_s"] + _codec(codec).delay_s
    lost = 1 - (1 - LATE) * delivered / packets
    r = rating(delay, lost, codec, burst_ratio=burst_ratio)
    return (*identity, delay, lost, r, opinion_score(r))


def _check(result: Result, classes: Sequence[str]) -> None:
    """Refuse names that are no classes of datagrams.

    Raises:
        PerhopError: The first such name.
    """
    if isinstance(classes, str) or not classes:
        raise PerhopError(f'classes must be a list of names, such as ["calls"], not {classes!r}')
    entries = json.loads(result.scenario)["flows"]
    transports = {entry["name"]: entry.get("transport", {}) for entry in entries}
    transports |= {entry["name"] + REVERSE: transports[entry["name"]] for entry in entries}
    groups = {group.name: transports[group.name] for group in result.runs[0].groups}
    for name in classes:
        if name not in groups:
            raise PerhopError(f"there is no class {name!r}; classes: {', '.join(map(repr, groups))}")
        if "tcp" in groups[name]:
            raise PerhopError(
                f"class {name!r} is TCP, whose one-way delay is not measured; calls are UDP, RAP or TFRC"
            )


def _codec(name: CodecName) -> Codec:
    """The codec of this name.

    Raises:
        ValueError: There is none.
    """
    if name not in CODECS:
        raise ValueError(f"a codec is {', '.join(CODECS)}, not {name!r}")
    return CODECS[name]
