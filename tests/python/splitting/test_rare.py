"""`perhop.rare` and `perhop rare`: estimates against theory, their intervals, their cost, and refusals."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import perhop
from perhop.commands.cli import app
from perhop.errors import PerhopError
from perhop.splitting import estimates
from perhop.splitting.result import Event, Rare
from perhop.statistics.intervals import Estimate

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result as Ended

MD1 = """\
title = "M/D/1 at load 0.5, a packet takes 1 ms"
duration = "11s"
warmup = "1s"
[links.link]
from = "a"
to = "b"
rate = "8Mbps"
delay = "1ms"
queue = { aqm = "drop-tail", limit = "10p" }

[[flows]]
name = "packets"
from = "a"
to = "b"
transport = { udp = "cbr", rate = "8Gbps", packet = "1000B", jitter = 0.0 }
arrivals = { rate = "500/s" }
sizes = { constant = "972B" }
"""
LOSS = 1.154_941e-6
"""By the embedded Markov chain of M/D/1/K with ten waiting places."""
LEVELS = [(k, 3) for k in range(2, 11)]


def tail(wait_ms: float) -> float:
    """P(W > x) of M/D/1 at load 0.5, far out; tau = e^(rho (tau - 1))."""
    tau = 3.512_862_417
    return 0.5 / (0.5 * tau - 1) * math.exp(-0.5 * (tau - 1) * wait_ms)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the scenario."""
    (tmp_path / "md1.toml").write_text(MD1, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(*arguments: str) -> Ended:
    return CliRunner().invoke(app, ["rare", *arguments])


def test_a_loss_of_one_in_a_million_is_that_of_theory_for_a_hundredth_of_the_events(place: Path) -> None:
    found = perhop.rare(place / "md1.toml")
    estimate = found.estimate
    assert estimate is not None
    assert estimate.low < LOSS < estimate.high
    assert estimate.high < 2 * estimate.low
    assert found.gain is not None
    assert found.gain > 100
    assert found.notes == ()
    assert found.plain_events == pytest.approx(found.gain * found.events)


def test_waits_of_one_in_ten_thousand_and_less_are_those_of_theory(place: Path) -> None:
    (place / "md1.toml").write_text(MD1.replace('"10p"', '"1000p"'), encoding="utf-8")
    found = perhop.rare(place / "md1.toml", wait="8ms", runs=5)
    assert found.estimate is not None
    assert found.estimate.low < tail(8) < found.estimate.high
    far = perhop.rare(place / "md1.toml", quantile=0.9999, runs=5)
    expected = 1e-3 * math.log(0.5 / (0.5 * 3.512_862_417 - 1) / 1e-4) / (0.5 * 2.512_862_417)
    assert far.estimate is not None
    # A quantile is known to a bin of its histogram, which is 3.1 % wide.
    assert far.estimate.low / 1.032 < expected < far.estimate.high * 1.032
    assert [row["measure"] for row in far.rows] == ["P99.99 of waits", "P99 of waits", "P99.9 of waits"]


def test_intervals_hold_what_they_are_for(place: Path) -> None:
    groups = 40
    held = 0
    for group in range(groups):
        found = perhop.rare(place / "md1.toml", levels=LEVELS, runs=5, seed=1 + 5 * group)
        assert found.estimate is not None
        held += found.estimate.low <= LOSS <= found.estimate.high
    # Of 40 intervals with 95 %, fewer than 34 hold with a probability of 0.2 %.
    assert held >= 34


def test_the_same_on_any_number_of_threads_and_other_numbers_with_another_seed(place: Path) -> None:
    def json_of(jobs: int, seed: int) -> str:
        return perhop.rare(place / "md1.toml", runs=3, seed=seed, jobs=jobs).json()

    assert json_of(1, 1) == json_of(3, 1)
    assert json_of(1, 1) != json_of(1, 2)


@pytest.mark.usefixtures("place")
def test_a_quantile_in_percent_is_the_same() -> None:
    part, percent = (typed("md1.toml", "--quantile", one, "--runs", "2").output for one in ("0.999", "99.9%"))
    assert part == percent
    assert part.count("P99.9 of waits") == 1


def test_text_and_json(place: Path) -> None:
    done = typed("md1.toml", "--levels", "3:4,6:6", "--runs", "3", "--json", "out.json")
    assert done.exit_code == 0, done.output
    content = json.loads((place / "out.json").read_text(encoding="utf-8"))
    found = perhop.rare("md1.toml", levels=[(3, 4), (6, 6)], runs=3)
    assert content == found.to_dict()
    assert done.stdout.startswith(
        "M/D/1 at load 0.5, a packet takes 1 ms\nLink `link`: 3 runs with splitting"
    )
    assert [(row["backlog"], row["trials"]) for row in content["levels"]] == [(3, 4), (6, 6)]
    copies = [(row["copies"], row["rises"]) for row in content["levels"]]
    assert all(made == rises * (trials - 1) for (made, rises), trials in zip(copies, (4, 6), strict=True))
    assert content["work"]["pilot_events"] is None
    assert "No run saw the event, so how likely it is at most is not known." in " ".join(done.stdout.split())
    few = perhop.rare("md1.toml", levels=[(k, 3) for k in range(2, 9)], runs=2)
    assert 0 < few.rare_stays < 30
    assert "interval needs 30: it may be too narrow" in few.notes[0]


def test_classes_and_colors_have_losses_of_their_own() -> None:
    def counts(gold: float, rest: float) -> dict[str, Any]:
        none = [0.0, 0.0, 0.0]
        classes = [
            {"name": "gold", "arrived": [100.0, 0.0, 0.0], "dropped": [gold, 0.0, 0.0], "sent": none},
            {"name": "rest", "arrived": [0.0, 300.0, 0.0], "dropped": [0.0, rest, 0.0], "sent": none},
        ]
        work = {"events": 9, "main_events": 3, "stays": 2, "rare_stays": 1, "squares": 1.0, "levels": []}
        return {"classes": classes, "waits": [], "rare": gold + rest, **work}

    runs = [counts(0.1, 3.0), counts(0.3, 9.0)]
    found = Rare("{}", "line", None, Event("loss", "loss"), "packets", [], None, (1, 2), runs)
    values = {row["measure"]: row["value"]["mean"] for row in found.rows}
    assert values == pytest.approx(
        {
            "loss": 12.4 / 800,
            "loss of gold": 0.002,
            "loss of rest": 0.02,
            "loss of green": 0.002,
            "loss of yellow": 0.02,
        }
    )


def test_a_share_is_that_of_all_runs_together() -> None:
    found = estimates.share([1.0, 2.0, 6.0], [100.0, 200.0, 300.0])
    assert found.mean == pytest.approx(9 / 600)
    # Of p + (part - p whole) / 200: 0.0125, 0.01 and 0.0225.
    assert estimates.variance([1.0, 2.0, 6.0], [100.0, 200.0, 300.0]) == pytest.approx(4.375e-5)
    assert found.low < found.mean < found.high


def test_a_quantile_by_hand() -> None:
    def run(*packets: float) -> dict[str, Any]:
        bins = zip((0.001, 0.002, 0.003), (0.0015, 0.0025, 0.0035), packets, strict=True)
        return {"waits": [{"from_s": start, "longest_s": end, "packets": each} for start, end, each in bins]}

    found = estimates.quantile([run(98, 1.5, 0.5), run(98, 1.5, 0.5)], 0.99)
    assert found is not None
    assert (found.mean, found.ci95) == (0.0025, (0.0015, 0.0025))
    assert estimates.quantile([run(98, 1.5, 0.5), run(99, 0.9, 0.1)], 0.999) == Estimate(
        0.0035, (0.0, math.inf), 2
    )
    assert estimates.quantile([{"waits": []}], 0.9) is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--loss", "--wait", "1ms"), "--loss and --wait are two questions; give one of them"),
        (("--wait", "soon"), "wait `soon` has no number; write a duration such as 48ms"),
        (("--quantile", "1.5"), "quantile must be at least 0.5 and below 1, such as 0.9999, not 1.5"),
        (("--quantile", "nearly"), "--quantile: `nearly` is no part; write 0.9999 or 99.99%"),
        (("--quantile", "nan"), "quantile must be a finite number, not nan"),
        (("--quantile", "150%"), "quantile must be at least 0.5 and below 1, such as 0.9999, not 1.5"),
        (("--levels", "5"), "--levels: `5` is no level; write its backlog and its trials, such as 5:4"),
        (("--levels", "5:4,3:2"), "levels must rise from 1 on, such as 5 and 10"),
        (("--levels", "5:0"), "levels must each have 1 to 1000 trials"),
        (("--link", "lnk"), "link `lnk` has no queue; there are: link"),
        (("--class", "gold"), "the queue of link `link` has no class `gold`; it has: "),
        (("--wait", "11.1ms"), "wait must be below 11.000002 ms: no packet can wait longer at link `link`"),
        (("--wait", "9ms", "--levels", "10001:2"), "levels must be at most 10000 bytes: no more can wait"),
        (("--runs", "0"), "runs must be at least 1"),
        (("--most-events", "1000"), "the run takes more than 1000 events; give it a shorter duration"),
        (("--levels", "1:30,2:30,3:30", "--most-events", "200000"), "its trials multiply"),
    ],
)
@pytest.mark.usefixtures("place")
def test_what_cannot_be_is_refused_in_a_line(arguments: tuple[str, ...], says: str) -> None:
    refused = typed("md1.toml", *arguments).exception
    assert isinstance(refused, PerhopError | ValueError)
    assert says in str(refused)
    assert len(str(refused).splitlines()) == 1


def test_traffic_without_chance_and_queues_without_packets_are_refused(place: Path) -> None:
    tcp = MD1.partition("arrivals")[0].replace(
        'transport = { udp = "cbr", rate = "8Gbps", packet = "1000B", jitter = 0.0 }',
        'transport = { tcp = "newreno", packet = "1000B" }',
    )
    (place / "tcp.toml").write_text(tcp, encoding="utf-8")
    assert "splitting gives nothing here" in str(typed("tcp.toml").exception)
    (place / "idle.toml").write_text(MD1.replace("500/s", "0.1/s"), encoding="utf-8")
    assert "no packet waits at link `link` after the warm-up" in str(typed("idle.toml").exception)
    other = MD1[MD1.index("[links") : MD1.index("[[flows]]")].replace("link]", "other]").replace('"b"', '"c"')
    two = MD1.replace("[[flows]]", f"{other}[[flows]]")
    (place / "two.toml").write_text(two, encoding="utf-8")
    several = str(typed("two.toml").exception)
    assert several == "which link? Several have a queue: link, other; name one of them"


def test_a_queue_that_cannot_lose_a_packet_is_refused(place: Path) -> None:
    """One flow of 80 kbit/s over 8 Mbit/s, and room for ten packets."""
    cbr = MD1.partition("arrivals")[0].replace('rate = "8Gbps"', 'rate = "80kbps"')
    (place / "calm.toml").write_text(cbr, encoding="utf-8")
    assert str(typed("calm.toml").exception) == (
        "the queue of link `link` cannot lose a packet, as `perhop bound` derives"
    )


def test_levels_that_no_run_comes_to_are_named(place: Path) -> None:
    """In packets, where only the run tells how small they are."""
    found = perhop.rare(place / "md1.toml", levels=[(2, 3), (50, 4), (60, 4)], runs=2)
    assert "No run came to 50 packets; levels from there on have no effect." in found.notes
    assert not any("No run came" in one for one in perhop.rare(place / "md1.toml", runs=2).notes)


def test_what_no_run_has_seen_has_no_upper_end(place: Path) -> None:
    """Runs that are too short for one loss in a million do not say that there is none."""
    (place / "md1.toml").write_text(MD1.replace('"10p"', '"30p"'), encoding="utf-8")
    found = perhop.rare(place / "md1.toml", levels=[(5, 1)], runs=2)
    assert found.estimate is not None
    assert found.estimate.mean == 0
    assert found.estimate.high == math.inf
    assert "loss     0 (or more)" in found.text()
    assert found.notes[0].startswith("No run saw the event, so how likely it is at most is not known.")
    assert "without intervals" in perhop.rare(place / "md1.toml", levels=[(5, 1)], runs=1).text()
