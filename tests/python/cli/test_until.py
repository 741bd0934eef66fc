"""`perhop run --until`: runs are added until intervals are narrow."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

import perhop as package
from perhop.show.metric_names import WIDENED
from perhop.statistics import stopping
from perhop.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]


def test_runs_are_the_first_seeds_on_any_number_of_threads(small: Path) -> None:
    found = [package.run(small, until="5%", jobs=jobs) for jobs in (1, 3)]
    assert found[0].json() == found[1].json()
    (result, _) = found
    runs = len(result.runs)
    assert 5 < runs < 1000
    fixed = package.run(small, runs=runs)
    assert result.flows.equals(fixed.flows)
    assert result.by_default is False
    # Each interval is that of fewer runs.
    here, there = (one.group_summary().row(0, named=True) for one in (result, fixed))
    assert here["throughput_bps"] == there["throughput_bps"]
    ends = there["throughput_low_bps"], there["throughput_high_bps"]
    wider = stopping.widened(Estimate(there["throughput_bps"], ends, runs), runs)
    assert wider is not None
    assert (here["throughput_low_bps"], here["throughput_high_bps"]) == pytest.approx(wider.ci95)
    # And narrow enough, at the last look alone.
    reached = result.reached
    assert reached is not None
    assert reached.look.estimate == pytest.approx(wider) or reached.look.metric != "flows.one.throughput_bps"
    assert reached.rule.is_met(reached.look)


def test_the_limit_may_come_first(small: Path, perhop: Perhop) -> None:
    done = perhop("run", small.name, "--until", "0.1%", "--runs", "6", "--json", "out.json")
    assert done.code == 0
    said = " ".join(done.out.split())
    assert "Not as `until` asks: after 6 runs, the most that may be made, not all intervals of" in said
    assert " runs would be enough. " in said
    assert WIDENED in said
    until = json.loads((small.parent / "out.json").read_text(encoding="utf-8"))["until"]
    assert (until["width"], until["most_runs"], until["within"]) == (0.001, 6, False)
    assert until["widest"]["width"] > 0.001
    assert until["metrics"] == ["flows.*.throughput_bps"]


def test_what_no_run_has_is_not_waited_for(small: Path, perhop: Perhop) -> None:
    """No run of a millisecond has a throughput: more of them will have none either."""
    text = re.sub(r'duration = "[^"]*"', 'duration = "1ms"', small.read_text(encoding="utf-8"))
    small.write_text(re.sub(r'warmup = "[^"]*"', 'warmup = "0s"', text), encoding="utf-8")
    done = perhop("run", small.name, "--until", "2%", "--json", "out.json")
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "Not as `until` asks: none of 5 runs has a value of each class's throughput." in said
    until = json.loads((small.parent / "out.json").read_text(encoding="utf-8"))["until"]
    assert (until["widest"]["metric"], until["within"]) == (None, False)


def test_other_metrics_than_throughput(small: Path, perhop: Perhop) -> None:
    asked = ("--until", "3%", "--until-of", "links.*.utilization", "--until-of", "links.*.mean_queue_packets")
    done = perhop("run", small.name, *asked, "--warmup", "1s", "--out", "out")
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    of = "links.*.utilization, links.*.mean_queue_packets"
    assert f"As `until` asks, the intervals of {of} are within ±3 %; the last to be so is that of" in said
    page = (small.parent / "out" / "report.html").read_text(encoding="utf-8")
    assert "--until 3%" in page
    assert " --runs" not in page.split("--until 3%")[1].split("<")[0]
    again = perhop("rerun", "out")
    assert again.code == 0, again.out + again.err
    assert "numbers agree" in again.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--until", "2"), "--until must be a fraction such as \"2%\", not '2'"),
        (("--until", "0%"), "--until must be a fraction"),
        (("--until", "2%", "--runs", "3"), "--runs must be at least 4 where intervals decide"),
        (("--until-of", "links.*.loss"), "--until-of has no effect without `until`"),
        (
            ("--until", "2%", "--until-of", "links.*.los"),
            "--until-of: nothing measured is called `links.*.los`",
        ),
        (("--until", "2%", "--seed", str(2**64 - 10)), "--seed 18446744073709551606 leaves no room for 1000"),
    ],
)
def test_what_makes_no_rule_is_refused(
    small: Path, perhop: Perhop, options: tuple[str, ...], said: str
) -> None:
    done = perhop("run", small.name, *options)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith(f"error: {said}")


def test_a_difference_to_runs_that_intervals_have_decided_on_is_as_wide_as_theirs(small: Path) -> None:
    """Either result may be the one."""
    stopped = package.run(small, until="5%")
    runs = len(stopped.runs)
    fixed, other = package.run(small, runs=runs), package.run(small, runs=runs, warmup="2s")
    plain = fixed.difference(other, "throughput_bps").row(0, named=True)
    value = plain["throughput_bps"]
    ends = plain["throughput_low_bps"], plain["throughput_high_bps"]
    wider = stopping.widened(Estimate(value, ends, runs), runs)
    assert wider is not None
    assert wider.high > ends[1]
    for sign, pair in ((1, (stopped, other)), (-1, (other, stopped))):
        row = pair[0].difference(pair[1], "throughput_bps").row(0, named=True)
        assert row["throughput_bps"] == pytest.approx(sign * value)
        found = sorted(sign * row[end] for end in ("throughput_low_bps", "throughput_high_bps"))
        assert found == pytest.approx(wider.ci95)


def test_runs_without_chance_say_so() -> None:
    """TCP that begins at a fixed time sends the same in every run."""
    link = {
        "from": "a",
        "to": "b",
        "rate": "1Mbps",
        "delay": "1ms",
        "queue": {"aqm": "drop-tail", "limit": "9p"},
    }
    flow = {
        "name": "one",
        "from": "a",
        "to": "b",
        "start": "0s",
        "transport": {"tcp": "newreno"},
    }
    scenario = {"duration": "5s", "warmup": "0s", "links": {"link": link}, "flows": [flow]}
    said = "All runs are the same: no random number decides anything here"
    assert said in " ".join(package.run(scenario, runs=3).text().split())
    chance = {**scenario, "flows": [{**flow, "start": "0s..1s"}]}
    assert said not in " ".join(package.run(chance, runs=3).text().split())
