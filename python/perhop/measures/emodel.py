"""The E-model of ITU-T Recommendation G.107: the rating of a call from its delay and loss.

The transmission rating R starts at 93.2, the value of G.107's default parameters, and loses what delay and
packet loss take away:

    R = 93.2 - Idd(Ta) - Ie,eff

Echo is left out: the echo cancellers are perfect. The short form of Cole and Rosenbluth (2001),
94.2 - 0.024 d - 0.11 max(d - 177.3 ms, 0) - Ie, is another model, gives other values, and is not used here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

CodecName: TypeAlias = Literal["g711", "g711-plc", "g729a-vad"]


@dataclass(frozen=True, slots=True)
class Codec:
    """The parameters of a codec in the E-model (ITU-T G.113, appendix I).

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
        burst_ratio: BurstR, the mean length of bursts of losses over that of random losses; 1 is random. See
            `measured_burst_ratio`.

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


def rating_per_loss(codec: CodecName) -> float:
    """The steepest fall of R with the fraction of lost packets, which is that at no loss.

    Args:
        codec: See `loss_impairment`.

    Raises:
        ValueError: An unknown codec.
    """
    known = _codec(codec)
    return 100 * (95 - known.impairment) / known.robustness


def rating(
    delay_s: float, lost: float = 0.0, codec: CodecName = "g711-plc", *, burst_ratio: float = 1.0
) -> float:
    """The transmission rating R of a call, 0 to 100; users are satisfied from 80 on (G.107, annex B).

    Where delay and loss take away more than there is, R is 0, the end of the scale. So it is for a call all
    of whose packets are lost, for which the formula would leave some: nothing is heard.

    Args:
        delay_s: See `delay_impairment`.
        lost: See `loss_impairment`.
        codec: See `loss_impairment`.
        burst_ratio: See `loss_impairment`.

    Raises:
        ValueError: An argument is out of range.
    """
    r = BASE_RATING - delay_impairment(delay_s) - loss_impairment(lost, codec, burst_ratio=burst_ratio)
    return min(max(r, 0.0), 100.0) if lost < 1 else 0.0


SCORE_PER_RATING = 0.053
"""The steepest rise of the score for a unit of R, at R = 53.3."""


def opinion_score(r: float) -> float:
    """The mean opinion score (MOS, 1 to 4.5) of a rating R (G.107, annex B).

    The polynomial dips below 1 for R below 6.5; there the score is 1.
    """
    if r <= 0:
        return 1.0
    if r >= 100:
        return 4.5
    return max(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6)


def measured_burst_ratio(mean_burst: float | None, lost: float) -> float:
    """BurstR of a call (G.107, section 7.5): the mean length of bursts of losses over that of random ones.

    If packets are lost at random, a burst goes on with the probability of a loss, so its mean length is
    1 / (1 - lost).

    Args:
        mean_burst: How many packets in a row are lost or late, on average; None where none is.
        lost: Fraction of the packets that are lost or late.
    """
    if mean_burst is None or lost >= 1:
        return 1.0
    return mean_burst * (1 - lost)


class Rated(NamedTuple):
    """One call.

    Attributes:
        mouth_to_ear_s: Ta; None where no packet arrived.
        lost_or_late: Fraction of the packets; None without a packet.
        burst_ratio: BurstR; None without a packet.
        r: The transmission rating R; None without a packet.
        mos: The mean opinion score; None without a packet.
    """

    mouth_to_ear_s: float | None
    lost_or_late: float | None
    burst_ratio: float | None
    r: float | None
    mos: float | None


def rated(
    *,
    delivered: int,
    gone: int,
    late: int,
    delay_s: float | None,
    mean_burst: float | None,
    codec: CodecName,
    burst_ratio: float | None = None,
) -> Rated:
    """Rate a call from the counts of its packets.

    Args:
        delivered: Packets that arrived.
        gone: Packets that queues or meters dropped or links lost.
        late: Packets of `delivered` that came too late for the play-out buffer.
        delay_s: From the sending of a packet to its play-out; None where nothing arrived.
        mean_burst: See `measured_burst_ratio`.
        codec: See `loss_impairment`.
        burst_ratio: In place of the measured one. See `loss_impairment`.

    Raises:
        ValueError: An argument is out of range.
    """
    if not delivered + gone:
        return Rated(None, None, None, None, None)
    if not delivered or delay_s is None:
        return Rated(None, 1.0, 1.0 if burst_ratio is None else burst_ratio, 0.0, opinion_score(0.0))
    mouth_to_ear = delay_s + _codec(codec).delay_s
    lost = (gone + late) / (delivered + gone)
    ratio = measured_burst_ratio(mean_burst, lost) if burst_ratio is None else burst_ratio
    r = rating(mouth_to_ear, lost, codec, burst_ratio=ratio)
    return Rated(mouth_to_ear, lost, ratio, r, opinion_score(r))


def _codec(name: CodecName) -> Codec:
    """The codec of this name.

    Raises:
        ValueError: There is none.
    """
    if name not in CODECS:
        raise ValueError(f"a codec is {', '.join(CODECS)}, not {name!r}")
    return CODECS[name]
