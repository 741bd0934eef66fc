"""`perhop.run` and the frames it returns."""

from __future__ import annotations

import threading
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.python.work import lines_run

import perhop
from perhop import _engine
from perhop.errors import PerhopError
from perhop.runs import pictures
from perhop.runs.extent import seeds
from perhop.scenario.reading import canonical

if TYPE_CHECKING:
    from perhop.scenario.builder import Transport


def test_frames(small: Path) -> None:
    result = perhop.run(small, runs=3, seed=7)
    flows = result.flows
    assert flows.height == 3 * 4
    assert flows["seed"].unique(maintain_order=True).to_list() == [7, 8, 9]
    assert flows["class"].unique(maintain_order=True).to_list() == ["gold", "best-effort"]
    assert flows.filter(pl.col("class") == "gold")["profile_bps"].unique().to_list() == [0.5e6]
    assert result.links.columns[:3] == ["seed", "link", "rate_bps"]
    bottleneck = result.links.filter(pl.col("link") == "bottleneck")
    assert bottleneck.height == 3
    balance = bottleneck.select(
        pl.col("arrived_whole_run")
        - pl.col("sent_whole_run")
        - pl.col("waiting_packets")
        - pl.col("dropped_whole_run")
    )
    assert balance.to_series().to_list() == [0, 0, 0]
    dropped = (
        result.drops.filter(pl.col("link") == "bottleneck").group_by("seed").agg(pl.col("packets").sum())
    )
    assert dropped.sort("seed")["packets"].to_list() == bottleneck["dropped_packets"].to_list()
    assert result.series.is_empty()
    assert result.queues.is_empty()


def test_classes(small: Path) -> None:
    result = perhop.run(small, runs=2)
    classes = result.classes()
    assert classes["class"].to_list() == ["gold", "best-effort"]
    gold = classes.row(0, named=True)
    each = (
        result.flows.filter(pl.col("class") == "gold").group_by("seed").agg(pl.col("throughput_bps").mean())
    )
    assert gold["throughput_bps"] == pytest.approx(each["throughput_bps"].mean())
    assert gold["throughput_low_bps"] < gold["throughput_bps"] < gold["throughput_high_bps"]
    assert classes["dropped_red"].to_list() == [None, None]
    assert 0.02 < gold["mean_rtt_s"] < 1


def test_every_transport_and_what_is_measured_of_it() -> None:
    transports: dict[str, Transport] = {
        "tcp": perhop.scenario.Tcp(tcp="reno"),
        "cbr": perhop.scenario.Udp(udp="cbr", rate="100kbps"),
        "speech": perhop.scenario.Udp(udp="on-off", rate="64kbps", packet="200B", on="1.004s", off="1.587s"),
        "rap": perhop.scenario.Rap(rap="aimd"),
        "tfrc": perhop.scenario.Tfrc(tfrc="rfc5348", history_discounting=False),
    }
    access = perhop.scenario.Access(rate="10Mbps", delay="1ms")
    red = perhop.scenario.Red(thresholds="0/40/0.2", limit="60p", weight=0.02)
    scenario = perhop.Scenario(
        duration="30s",
        warmup="5s",
        links={"link": perhop.scenario.Link(from_="a", to="b", rate="1Mbps", delay="20ms", queue=red)},
        flows=[
            perhop.scenario.Flow(
                name=name, from_="a", to="b", access=access, transport=transport, service="green"
            )
            for name, transport in transports.items()
        ],
    )
    flows = {row["class"]: row for row in perhop.run(scenario, runs=1).flows.iter_rows(named=True)}
    for name, row in flows.items():
        assert row["throughput_bps"] > 0
        assert (row["loss_events"] is not None) == (name in {"rap", "tfrc"})
        assert row["loss_events"] != 0
        assert (row["mean_rtt_s"] is None) == (name in {"cbr", "speech"})
        if name == "tcp":
            assert row["one_way_delay_s"] is None
            assert row["jitter_s"] is None
        else:
            assert 0.03 < row["one_way_delay_s"] < row["one_way_delay_p99_s"] < 0.5
            assert 0 < row["jitter_s"] < row["one_way_delay_s"]


def test_each_queue_of_a_port_is_shown() -> None:
    text = Path("examples/queues.toml").read_text(encoding="utf-8")
    result = perhop.run(text + '[probes]\ninterval = "1s"\n', runs=2)
    names = ["ef", "near", "far", "rest"]
    assert result.link_classes["class"].to_list() == names * 2
    books = {row["class"]: row for row in result.link_class_summary().iter_rows(named=True)}
    assert books["ef"]["loss"] == 0
    assert books["rest"]["arrived_packets"] == 0
    assert {"near average total", "far average total", "ef packets", "rest dropped"} <= set(
        result.queues["quantity"].unique()
    )
    means = {row["class"]: row["throughput_bps"] for row in result.classes().iter_rows(named=True)}
    # Each path has at least its 7 Mbit/s, for all that the one round trip is six times the other.
    assert 5 * means["near"] > 6.9e6
    assert 5 * means["far"] > 6.9e6


def test_one_run_has_no_interval(small: Path) -> None:
    classes = perhop.run(small, runs=1).classes()
    assert classes["throughput_low_bps"].to_list() == [None, None]


def test_what_is_drawn_in_time_are_the_means_of_the_samples(small: Path) -> None:
    result = perhop.run(small.read_text() + '[probes]\ninterval = "1s"\n', runs=2)
    (drawn,) = (rows for plot, rows in pictures.of_result(result) if plot.id == "throughput-in-time")
    of_runs = result.series.group_by(["class", "time_s", "seed"], maintain_order=True).agg(
        pl.col("throughput_bps").mean()
    )
    classes = [group.name for group in result.runs[0].groups]
    means = (
        of_runs.group_by(["class", "time_s"], maintain_order=True)
        .agg(pl.col("throughput_bps").mean())
        .sort(pl.col("class").replace_strict(classes, range(len(classes))), "time_s")
    )
    assert [(row.factors["class"], row.factors["time_s"]) for row in drawn] == list(
        zip(means["class"], means["time_s"], strict=True)
    )
    assert [row.mean for row in drawn] == pytest.approx((means["throughput_bps"] / 1e6).to_list(), rel=1e-12)


def test_probes(small: Path) -> None:
    text = small.read_text() + '\n[probes]\ninterval = "1s"\n'
    result = perhop.run(text, runs=2)
    assert set(result.series.columns) >= {
        "seed",
        "class",
        "member",
        "time_s",
        "throughput_bps",
        "cwnd_packets",
        "rtt_s",
    }
    assert result.series.height == 2 * 4 * result.series["time_s"].n_unique()
    assert {"queue", "average in", "average total"} <= set(result.queues["quantity"].unique())
    mean = result.series.group_by("seed").agg(pl.col("throughput_bps").mean()).sort("seed")["throughput_bps"]
    # Probes have the whole run, also before flows begin.
    rate = pl.col("delivered_bytes") * 8 / result.runs[0].raw["duration_s"]
    whole = result.flows.group_by("seed").agg(rate.mean()).sort("seed")["delivered_bytes"]
    assert mean.to_list() == pytest.approx(whole.to_list(), rel=1e-6)


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_threads_do_not_change_the_result(small: Path, jobs: int) -> None:
    assert_frame_equal(perhop.run(small, runs=5, jobs=jobs).flows, perhop.run(small, runs=5, jobs=1).flows)


def test_progress(small: Path) -> None:
    seen: list[tuple[int, int]] = []
    perhop.run(small, runs=3, progress=lambda done, runs: seen.append((done, runs)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_plain_data_and_text_are_the_same_scenario(small: Path) -> None:
    text = small.read_text()
    frames = [perhop.run(source, runs=1).flows for source in (small, text, tomllib.loads(text))]
    assert_frame_equal(frames[0], frames[1])
    assert_frame_equal(frames[0], frames[2])


def test_the_builder_is_the_same_scenario(small: Path) -> None:
    def flow(name: str, profile: perhop.scenario.TokenBucket | None) -> perhop.scenario.Flow:
        return perhop.scenario.Flow(
            name=name,
            count=2,
            from_="edge",
            to="core",
            access=perhop.scenario.Access(rate="10Mbps", delay="1ms"),
            transport=perhop.scenario.Tcp(tcp="newreno", packet="1000B"),
            profile=profile,
            start="0s..1s",
        )

    queue = perhop.scenario.Rio(limit="50p", in_="10/30/0.02", total="5/15/0.1")
    built = perhop.Scenario(
        title="Two classes at a small link",
        duration="5s",
        warmup="0s",
        links={
            "bottleneck": perhop.scenario.Link(
                from_="edge", to="core", rate="2Mbps", delay="10ms", queue=queue
            )
        },
        flows=[
            flow("gold", perhop.scenario.TokenBucket(rate="0.5Mbps", burst="10kB")),
            flow("best-effort", None),
        ],
    )
    assert canonical(built) == canonical(small)
    assert_frame_equal(perhop.run(built, runs=1).flows, perhop.run(small, runs=1).flows)


def test_cancel(small: Path) -> None:
    text = small.read_text().replace('duration = "5s"', 'duration = "1000000s"')
    cancel = _engine.Cancel()
    threading.Timer(0.3, cancel.cancel).start()
    with pytest.raises(_engine.Cancelled):
        perhop.run(text, runs=4, cancel=cancel)


def test_refusals(small: Path, tmp_path: Path) -> None:
    with pytest.raises(perhop.PerhopError, match="runs must be at least 1"):
        perhop.run(small, runs=0)
    with pytest.raises(perhop.PerhopError, match="no such file"):
        perhop.run(tmp_path / "nowhere.toml", runs=1)
    with pytest.raises(perhop.ScenarioError, match="duraton"):
        perhop.run(small.read_text().replace("duration", "duraton"), runs=1)
    assert issubclass(perhop.ScenarioError, ValueError)
    with pytest.raises(perhop.PerhopError, match=f"leaves no room for 2 runs.*{2**64 - 2} or below"):
        perhop.run(small, seed=2**64 - 1, runs=2)
    with pytest.raises(perhop.PerhopError, match="no such file"):
        perhop.run(str(tmp_path / "nowhere.toml"), runs=1)
    wrong: Any = 5
    with pytest.raises(perhop.PerhopError, match="the path of a TOML file, or TOML text, not int"):
        perhop.run(wrong, runs=1)
    for name in ("runs", "seed", "jobs"):
        with pytest.raises(perhop.PerhopError, match=f"{name} must be a whole number, not '3'"):
            perhop.run(small, **{name: "3"})  # type: ignore[arg-type]
    plain = tomllib.loads(small.read_text())
    plain["flows"][0]["count"] = float("inf")
    with pytest.raises(perhop.PerhopError, match=r"`flows\[0\].count` must be a finite number, not inf"):
        perhop.run(plain, runs=1)
    with pytest.raises(perhop.PerhopError, match="plain dicts, lists, strings and numbers"):
        perhop.run({"duration": object()}, runs=1)


def test_a_path_may_be_text(small: Path) -> None:
    assert perhop.run(str(small), runs=1).scenario == perhop.run(small, runs=1).scenario


def test_the_work_of_classes_grows_with_their_number(small: Path) -> None:
    plain = tomllib.loads(small.read_text())
    plain["duration"] = "0.1s"
    several = {**plain["flows"][1], "count": 1, "start": "0s"}

    def work(groups: int) -> int:
        plain["flows"] = [{**several, "name": f"c{n}"} for n in range(groups)]
        result = perhop.run(plain, runs=1)
        lines = lines_run(result.classes)
        classes = result.classes()
        assert classes["class"].to_list() == [f"c{n}" for n in range(groups)]
        assert classes["throughput_bps"].to_list() == result.flows["throughput_bps"].to_list()
        return lines

    assert work(800) < 2.3 * work(400)


def test_numpy_integers_do_not_overflow() -> None:
    assert seeds(np.uint32(2**32 - 1), 2) == (2**32 - 1, 2**32)  # type: ignore[arg-type]
    assert seeds(100, np.int8(100)) == tuple(range(100, 200))  # type: ignore[arg-type]
    with pytest.raises(PerhopError, match=r"leaves no room for 2 runs"):
        seeds(np.uint64(2**64 - 1), 2)  # type: ignore[arg-type]
    with pytest.raises(PerhopError, match=r"runs must be at least 1 and at most 100,000, not 1000000000000"):
        seeds(1, 10**12)
