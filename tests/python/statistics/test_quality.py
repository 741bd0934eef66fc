"""The E-model against G.107's own arithmetic, and the rating of a run's flows."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import polars as pl
import pytest

import perhop
from perhop import PerhopError
from perhop.measures.emodel import rated
from perhop.runs.companions import Gathered, companions, with_companions
from perhop.runs.metrics import measure
from perhop.runs.quality import (
    BASE_RATING,
    CODECS,
    call_summary,
    calls,
    delay_impairment,
    loss_impairment,
    measured_burst_ratio,
    opinion_score,
    rating,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCENARIO = """\
duration = "10s"
warmup = "1s"

[links.uplink]
from = "a"
to = "b"
rate = "1Mbps"
delay = "20ms"
queue = { aqm = "drop-tail", limit = "20p" }

[[flows]]
name = "calls"
count = 3
from = "a"
to = "b"
transport = { udp = "cbr", rate = "80kbps", packet = "200B" }

[[flows]]
name = "mute"
from = "a"
to = "b"
start = "0s"
stop = "500ms"
transport = { udp = "cbr", rate = "80kbps", packet = "200B" }

[[flows]]
name = "bulk"
from = "a"
to = "b"
transport = { tcp = "newreno" }
"""


@pytest.mark.parametrize(
    ("delay_ms", "impairment"),
    [
        (0, 0.0),
        (100, 0.0),
        (120, 0.001374083225),
        (150, 0.163531186587),
        (200, 3.044414223519),
        (300, 14.760694708940),
        (400, 24.070089219773),
    ],
)
def test_delay_impairment(delay_ms: float, impairment: float) -> None:
    assert delay_impairment(delay_ms / 1000) == pytest.approx(impairment, abs=1e-9)


@pytest.mark.parametrize(
    ("codec", "delay_ms", "percent", "r", "mos"),
    [
        ("g711-plc", 50, 0, 93.2, 4.409286),
        ("g711-plc", 150, 0, 93.036469, 4.406098),
        ("g711-plc", 150, 1, 89.396622, 4.323938),
        ("g711-plc", 250, 2, 77.272220, 3.916865),
        ("g711-plc", 400, 5, 53.349180, 2.751354),
        ("g711", 50, 1, 75.275472, 3.833651),
        ("g711", 250, 2, 54.124560, 2.792239),
        ("g729a-vad", 50, 0, 82.2, 4.104375),
        ("g729a-vad", 150, 1, 77.836469, 3.939668),
        ("g729a-vad", 250, 2, 65.283290, 3.368734),
    ],
)
def test_rating_and_score(codec: str, delay_ms: float, percent: float, r: float, mos: float) -> None:
    found = rating(delay_ms / 1000, percent / 100, codec)  # type: ignore[arg-type]
    assert found == pytest.approx(r, abs=1e-6)
    assert opinion_score(found) == pytest.approx(mos, abs=1e-6)


def test_score_is_clamped() -> None:
    scores = {
        50: 2.575,
        60: 3.1,
        70: 3.597,
        80: 4.024,
        90: 4.339,
        -5: 1.0,
        0: 1.0,
        3: 1.0,
        100: 4.5,
        120: 4.5,
    }
    assert {r: opinion_score(r) for r in scores} == pytest.approx(scores)


def test_bursts_cost_more_than_the_same_loss_at_random() -> None:
    random, bursts = (loss_impairment(0.05, burst_ratio=ratio) for ratio in (1.0, 2.0))
    # 95 × 5 / (5/2 + 25.1), by hand.
    assert bursts == pytest.approx(475 / 27.6)
    assert bursts > random


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: delay_impairment(-0.1), "a delay is at least 0 s"),
        (lambda: delay_impairment(float("nan")), "a delay is at least 0 s"),
        (lambda: loss_impairment(1.5), "between 0 and 1"),
        (lambda: loss_impairment(0.1, burst_ratio=0), "a burst ratio is above 0"),
        (lambda: loss_impairment(0.1, "opus"), "g711, g711-plc, g729a-vad, not 'opus'"),  # type: ignore[arg-type]
    ],
)
def test_arguments_out_of_range(call: Callable[[], float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_flows_of_a_run() -> None:
    result = perhop.run(SCENARIO, runs=2)
    rows = calls(result, ["calls", "mute"])
    flows = result.flows.filter(result.flows["class"] == "calls")
    assert rows["member"].to_list() == [0, 1, 2, 0] * 2
    first, flow = rows.row(0, named=True), flows.row(0, named=True)
    gone = sum(
        flow[f"{what}_{color}"] or 0
        for what in ("dropped", "policed")
        for color in ("green", "yellow", "red")
    )
    packets = flow["delivered_packets"] + gone
    assert gone, "the queue drops packets of calls"
    assert first["mouth_to_ear_s"] == flow["play_out_delay_s"] + CODECS["g711-plc"].delay_s
    assert flow["play_out_delay_s"] == pytest.approx(flow["one_way_delay_p99_s"], rel=0.032)
    assert 0 <= flow["late_packets"] <= 0.01 * flow["delivered_packets"]
    assert first["lost_or_late"] == (gone + flow["late_packets"]) / packets
    assert first["burst_ratio"] == measured_burst_ratio(flow["loss_burst_packets"], first["lost_or_late"])
    assert first["r"] == rating(
        first["mouth_to_ear_s"], first["lost_or_late"], burst_ratio=first["burst_ratio"]
    )
    mute = rows.row(3, named=True)
    assert [mute[name] for name in ("mouth_to_ear_s", "lost_or_late", "r", "mos")] == [None] * 4


def test_summary_by_class() -> None:
    result = perhop.run(SCENARIO, runs=3)
    summary = call_summary(result, ["calls"], codec="g711")
    row = summary.row(0, named=True)
    by_run = calls(result, ["calls"], codec="g711").group_by("seed").agg(pl.col("mos").mean())
    assert row["calls"] == 3
    assert row["mos"] == pytest.approx(by_run["mos"].mean())
    assert row["mos_low"] < row["mos"] < row["mos_high"]
    assert "MOS" in str(summary)


WITH_BUFFER = SCENARIO.replace('name = "calls"', 'name = "calls"\nplay-out = "60ms"\ncodec = "g711"')


def test_a_fixed_play_out_buffer() -> None:
    result = perhop.run(WITH_BUFFER, runs=2)
    flows = result.flows.filter(pl.col("class") == "calls")
    assert flows["late_packets"].sum() > 0, "the bulk transfer fills the queue after the first packets"
    for flow, call in zip(
        flows.iter_rows(named=True), calls(result, ["calls"]).iter_rows(named=True), strict=True
    ):
        gone = sum(
            flow[f"{what}_{color}"] or 0
            for what in ("dropped", "policed")
            for color in ("green", "yellow", "red")
        )
        packets = flow["delivered_packets"] + gone
        # 1.6 ms to send, 20 ms of propagation, no queue yet unless bulk's first packets are before it; 60 ms.
        assert 0.0816 <= flow["play_out_delay_s"] < 0.14
        assert call["mouth_to_ear_s"] == flow["play_out_delay_s"] + CODECS["g711"].delay_s
        assert call["lost_or_late"] == pytest.approx((gone + flow["late_packets"]) / packets)
        assert call["r"] == rating(
            call["mouth_to_ear_s"], call["lost_or_late"], "g711", burst_ratio=call["burst_ratio"]
        )
    assert result.flows.filter(pl.col("class") == "mute")["late_packets"].null_count() == 2


def test_a_buffer_longer_than_any_delay_loses_nothing() -> None:
    flows = perhop.run(WITH_BUFFER.replace("60ms", "10s"), runs=1).flows
    assert flows.filter(pl.col("class") == "calls")["late_ratio"].to_list() == [0.0] * 3


def test_classes_with_a_codec_have_ratings_in_the_tables() -> None:
    result = perhop.run(WITH_BUFFER, runs=2)
    rows = {row["class"]: row for row in result.classes().iter_rows(named=True)}
    rated = call_summary(result, ["calls"]).row(0, named=True)
    assert rows["calls"]["call_r"] == pytest.approx(rated["r"])
    assert rows["calls"]["call_mos"] == pytest.approx(rated["mos"])
    assert rows["calls"]["call_mos_low"] == pytest.approx(rated["mos_low"])
    assert rows["mute"]["call_r"] is rows["bulk"]["call_mos"] is None
    assert call_summary(result, ["calls"], codec="g711-plc").row(0, named=True)["r"] > rated["r"]
    buffered = WITH_BUFFER.replace('play-out = "60ms"', "")
    by_percentile = perhop.run(buffered, runs=2)
    row = by_percentile.classes().row(0, named=True)
    assert row["call_r"] == pytest.approx(call_summary(by_percentile, ["calls"], codec="g711")["r"][0])


def test_calls_none_of_whose_packets_arrive() -> None:
    def of(delivered: int, gone: int, late: int, burst: float | None) -> tuple[float | None, ...]:
        delay = 0.08 if delivered else None
        return rated(delivered=delivered, gone=gone, late=late, delay_s=delay, mean_burst=burst, codec="g711")

    assert of(0, 7, 0, None) == (None, 1.0, 1.0, 0.0, 1.0)
    assert of(0, 0, 0, None) == (None, None, None, None, None)
    # All late is as all lost.
    assert of(7, 0, 7, 7.0) == (0.1, 1.0, 1.0, 0.0, 1.0)
    # 3 of 100 packets are gone, 1 late, each alone: P = 4 %, BurstR = 0.96; 80 + 20 ms:
    # Ie,eff = 95 x 4 / (4 / 0.96 + 4.3), by hand.
    _, lost, ratio, r, _ = of(97, 3, 1, 1.0)
    assert (lost, ratio) == (0.04, 0.96)
    assert r == pytest.approx(93.2 - 380 / (4 / 0.96 + 4.3))


def test_a_rating_stays_on_its_scale() -> None:
    # 4.9 % in bursts: BurstR 9.5 gives 93.2 - 95 x 4.9 / (4.9 / 9.5 + 4.3) = -3.5, random losses 42.6.
    assert 93.2 - loss_impairment(0.049, "g711", burst_ratio=9.5) == pytest.approx(-3.5, abs=0.05)
    assert rating(0.05, 0.049, "g711", burst_ratio=9.5) == 0.0
    assert rating(0.25, 0.5, "g711") == 0.0
    assert [rating(0.0, 1.0, codec) for codec in CODECS] == [0.0] * 3
    assert opinion_score(rating(0.25, 0.5, "g711")) == 1.0


PERFECT = """\
duration = "20s"

[links.line]
from = "a"
to = "b"
rate = "8Mbps"
delay = "19830us"
queue = { aqm = "drop-tail", limit = "20p" }

[[flows]]
name = "calls"
from = "a"
to = "b"
KEYS
"""


@pytest.mark.parametrize("codec", list(CODECS))
@pytest.mark.parametrize("play_out", ["", 'play-out = "40ms"'])
def test_a_constant_delay_loses_nothing(codec: str, play_out: str) -> None:
    keys = f'codec = "{codec}"\n{play_out}\ntransport = {{ udp = "cbr", rate = "80kbps", packet = "200B" }}'
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", perhop.PerhopWarning)  # the rate is G.711's
        result = perhop.run(PERFECT.replace("KEYS", keys), runs=1)
    (call,) = calls(result, ["calls"]).iter_rows(named=True)
    # 200 bytes take 0.2 ms at 8 Mbit/s: each packet takes 20.03 ms.
    assert call["mouth_to_ear_s"] == pytest.approx(
        0.02003 + (0.04 if play_out else 0) + CODECS[codec].delay_s  # type: ignore[index]
    )
    assert (call["lost_or_late"], call["burst_ratio"]) == (0.0, 1.0)
    assert call["r"] == pytest.approx(93.2 - CODECS[codec].impairment)  # type: ignore[index]


def test_users_of_the_application_call_lose_nothing_either() -> None:
    result = perhop.run(PERFECT.replace("KEYS", 'application = { model = "call" }'), runs=1)
    for row in result.applications()["call"].iter_rows(named=True):
        assert (row["lost_or_late"], row["r"]) == (0.0, pytest.approx(93.2))


def test_a_replayed_call_loses_nothing_either(tmp_path: Path) -> None:
    packets = "\n".join(f"{20 * number},200" for number in range(500))
    (tmp_path / "calls.csv").write_text(f"time_ms,size_B\n{packets}\n")
    file = tmp_path / "replayed.toml"
    file.write_text(PERFECT.replace("KEYS", 'codec = "g711-plc"\nreplay = "calls.csv"'))
    (call,) = calls(perhop.run(file, runs=1), ["calls"]).iter_rows(named=True)
    assert (call["lost_or_late"], call["r"]) == (0.0, pytest.approx(93.2))
    assert call["mouth_to_ear_s"] == pytest.approx(0.04003)


def test_a_line_that_dies_is_one_long_burst() -> None:
    """The packets behind the last that came count, too: half of 20 s is lost in one burst."""
    dies = PERFECT.replace("queue = {", 'outages = [{ from = "10s", to = "20s" }]\nqueue = {')
    keys = 'codec = "g711"\ntransport = { udp = "cbr", rate = "80kbps", packet = "200B" }'
    result = perhop.run(dies.replace("KEYS", keys).replace('limit = "20p"', 'limit = "1p"'), runs=1)
    flow, call = (frame.row(0, named=True) for frame in (result.flows, calls(result, ["calls"])))
    gone = sum(flow[f"dropped_{color}"] for color in ("green", "yellow", "red"))
    assert gone > 490
    assert flow["loss_burst_packets"] == gone + flow["late_packets"]
    assert call["burst_ratio"] == pytest.approx(gone / 2, rel=0.05)
    assert (call["r"], call["mos"]) == (0.0, 1.0)


GILBERT = PERFECT.replace(
    "queue = {", "burst-loss = { good-to-bad = 0.00515, bad-to-good = 0.1 }\nqueue = {"
).replace("20s", "2000s")


def test_the_burst_ratio_of_losses_in_bursts() -> None:
    """Losses of ten in a row, 4.9 %: BurstR is 9.5, and R below 0 before it is clamped."""
    keys = 'codec = "g711"\ntransport = { udp = "cbr", rate = "80kbps", packet = "200B" }'
    result = perhop.run(GILBERT.replace("KEYS", keys), runs=3)
    flows = result.flows
    assert flows["loss_burst_packets"].mean() == pytest.approx(10, rel=0.1)
    for flow, call in zip(
        flows.iter_rows(named=True), calls(result, ["calls"]).iter_rows(named=True), strict=True
    ):
        packets = flow["delivered_packets"] + flow["lost_packets"]
        assert call["lost_or_late"] == flow["lost_packets"] / packets == pytest.approx(0.049, abs=0.01)
        assert call["burst_ratio"] == flow["loss_burst_packets"] * (1 - call["lost_or_late"])
        assert call["burst_ratio"] == pytest.approx(9.5, rel=0.15)
        assert call["r"] < 10
    random = calls(result, ["calls"], burst_ratio=1.0)["r"].mean()
    assert random == pytest.approx(42.7, abs=5)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["voice"], "there is no class 'voice'; classes: 'calls', 'mute', 'bulk'"),
        (["bulk"], "class 'bulk' is TCP"),
        ("calls", "classes must be a list of names"),
        ([], "classes must be a list of names"),
    ],
)
def test_classes_that_are_no_calls(classes: list[str], message: str) -> None:
    result = perhop.run(SCENARIO, runs=1)
    with pytest.raises(PerhopError, match=message):
        calls(result, classes)


LOSSLESS = """\
duration = "2s"

[links.uplink]
from = "a"
to = "b"
rate = "900kbps"
delay = "5ms"
queue = { aqm = "drop-tail", limit = "30p" }

[[flows]]
name = "voice"
count = 14
from = "a"
to = "b"
start = "0s"
codec = "g711-plc"
transport = { udp = "on-off", rate = "64kbps", packet = "160B", on = "352ms", off = "650ms" }
"""


def test_a_rating_is_as_uncertain_as_the_losses_that_no_run_shows() -> None:
    """Calls that lost nothing in any run have nearly the same rating in all of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = perhop.run(LOSSLESS, runs=8, jobs=1)
    (row,) = result.classes().to_dicts()
    assert row["dropped_yellow"] == 0 < row["dropped_yellow_high"]
    # 100 * 95 / 25.1 for each unit of loss (G.107, section 7.5, at no loss)
    fall = 100 * 95 / 25.1 * row["dropped_yellow_high"]
    assert row["call_r_low"] == pytest.approx(row["call_r"] - fall)
    assert row["call_r_high"] <= BASE_RATING
    assert row["call_mos_low"] < opinion_score(row["call_r_low"]) + 1e-9
    (summary,) = call_summary(result, ["voice"]).to_dicts()
    assert summary["r_low"] == pytest.approx(row["call_r_low"])
    assert summary["lost_or_late_high"] >= row["dropped_yellow_high"]
    columns = [measure(run.raw) | dict(companions(run.raw, result.scenario)) for run in result.runs]
    names = with_companions(["flows.voice.r"], columns[0])
    swept = Gathered({name: [of[name] for of in columns] for name in names}).of("flows.voice.r").estimate
    assert swept is not None
    assert swept.low == pytest.approx(row["call_r_low"], rel=0.005)  # by quantiles of the delays
