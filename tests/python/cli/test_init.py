"""`perhop init`: three questions, and a scenario that runs as it is."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import perhop as package
from perhop.files import filesystem
from perhop.runs import simulate
from perhop.scenario import reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

ROOT = Path(__file__).parents[3]


def classes(path: Path) -> dict[str, dict[str, object]]:
    """What each class of a scenario gets in two runs."""
    return {row["class"]: row for row in package.run(path, runs=2).classes().iter_rows(named=True)}


def asked(place: Path, answers: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `perhop init` with answers on its standard input."""
    return subprocess.run(
        [sys.executable, "-m", "perhop", "init", *arguments],
        input=answers,
        cwd=place,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_is_offered_is_a_scenario_that_runs_without_notices(perhop: Perhop, tmp_path: Path) -> None:
    done = perhop("init", "--yes")
    assert (done.code, done.err) == (0, "")
    assert done.out == "my.toml: written; next: perhop run my.toml\n"
    got = classes(tmp_path / "my.toml")
    assert (got["customers"]["flows"], got["others"]["flows"]) == (2, 8)
    assert got["customers"]["profile_bps"] == 0.0, "nothing is promised unless it is said"
    assert perhop("run", "my.toml", "--runs", "1").err == ""


def test_a_promise_that_the_link_can_keep_is_kept(perhop: Perhop, tmp_path: Path) -> None:
    assert perhop("init", "--yes", "--promised", "customers 2 Mbit/s").code == 0
    got = classes(tmp_path / "my.toml")
    # Who was promised 2 Mbit/s gets it; of ten equal users, each would get 1.
    assert float(str(got["customers"]["throughput_bps"])) > 1.9e6
    assert float(str(got["others"]["throughput_bps"])) < 1e6


def test_three_answers_or_none(tmp_path: Path) -> None:
    done = asked(tmp_path, "50Mbps\n3 staff, 5 guests\nstaff 4 Mbps\n")
    assert done.returncode == 0
    assert done.stderr.count("?") == 3
    text = (tmp_path / "my.toml").read_text()
    assert 'rate = "50Mbps"' in text
    assert 'rate = "4 Mbps"' in text
    assert asked(tmp_path, "\n\n\n", "one.toml").returncode == 0
    assert asked(tmp_path, "", "two.toml", "--yes").returncode == 0
    one, two = (tmp_path / name for name in ("one.toml", "two.toml"))
    assert one.read_text().replace("one.toml", "two.toml") == two.read_text()


def flows(path: Path) -> dict[str, dict[str, object]]:
    """The groups of a scenario, by name."""
    return {group["name"]: group for group in tomllib.loads(path.read_text())["flows"]}


@pytest.mark.parametrize(
    ("said", "counts"),
    [
        ("1 download", {"downloads": 1}),
        ("two downloads", {"downloads": 2}),
        ("3 calls", {"call": 3}),
        ("a call", {"call": 1}),
        ("1 video, 2 videos at home", {"video": 3}),
        ("4 viewers", {"video": 4}),
        ("30 web users", {"web": 30}),
        ("1 browser and 2 pages", {"web": 3}),
        ("2 games, 1 gamer, and 3 players", {"game": 6}),
        ("2 Requests, 1 query, 5 queries", {"request-response": 8}),
        ("9 staff, 5 gold customers, 1 other", {"downloads": 15}),
        ("2 downloads, 3 calls, 1 video", {"downloads": 2, "call": 3, "video": 1}),
    ],
)
def test_users_do_what_their_name_says(
    perhop: Perhop, tmp_path: Path, said: str, counts: dict[str, int]
) -> None:
    done = perhop("init", "--yes", "--rate", "100 Mbit/s", "--users", said)
    assert (done.code, done.err) == (0, "")
    found: Counter[str] = Counter()
    for group in flows(tmp_path / "my.toml").values():
        application = group.get("application", {"model": "downloads"})
        found[application["model"]] += group["count"]  # type: ignore[index, operator]
    assert found == counts
    assert perhop("run", "my.toml", "--runs", "1").code == 0


def test_a_congestion_control_in_a_name_is_that_of_the_flows(perhop: Perhop, tmp_path: Path) -> None:
    done = perhop(
        "init",
        "--rate",
        "50Mbps",
        "--users",
        "1 BBR download, 2 reno web users, 1 game, 3 downloads",
        "--yes",
    )
    assert (done.code, done.err) == (0, "")
    flows = tomllib.loads((tmp_path / "my.toml").read_text(encoding="utf-8"))["flows"]
    assert [flow.get("transport") for flow in flows] == [
        {"tcp": "linux", "congestion": "bbr"},
        {"tcp": "linux", "congestion": "reno"},
        None,
        {"tcp": "linux"},
    ]
    assert "CUBIC" in (tmp_path / "my.toml").read_text(encoding="utf-8").partition('name = "downloads"')[2]


@pytest.mark.parametrize(
    ("users", "word"),
    [("5 videos at 1080p", "1080p"), ("9 customers with 2 downloads", "2"), ("1 bbr call", "bbr")],
)
def test_what_a_name_says_in_vain_is_said(perhop: Perhop, users: str, word: str) -> None:
    done = perhop("init", "--users", users, "--yes")
    assert done.code == 0
    assert f"warning: --users: `{word}` is a part of the name" in done.err


def test_uploads_go_the_other_way(perhop: Perhop, tmp_path: Path) -> None:
    done = perhop("init", "--rate", "10Mbps", "--users", "1 download, 1 upload", "--yes")
    assert (done.code, done.err) == (0, "")
    scenario = tomllib.loads((tmp_path / "my.toml").read_text())
    assert [(flow["from"], flow["to"]) for flow in scenario["flows"]] == [
        ("internet", "office"), ("office", "internet"),
    ]  # fmt: skip
    assert scenario["links"]["access"]["reverse"]["queue"] == scenario["links"]["access"]["queue"]
    got = classes(tmp_path / "my.toml")
    rates = [float(str(got[name]["throughput_bps"])) for name in ("download", "upload")]
    assert min(rates) > 8e6, "each has a direction for itself"
    assert perhop("run", "my.toml", "--runs", "1").err == ""
    promised = perhop(
        "init",
        "up.toml",
        "--users",
        "2 downloads, 3 backups",
        "--promised",
        "backups 1Mbps",
        "--rate",
        "10Mbps",
    )
    assert promised.code == 0
    link = tomllib.loads((tmp_path / "up.toml").read_text())["links"]["access"]
    assert (link["queue"]["aqm"], link["reverse"]["queue"]["aqm"]) == ("codel", "rio")


@pytest.mark.parametrize(
    ("rate", "target"), [("64kbps", "187500us"), ("1Mbps", "12000us"), ("2.4Mbps", None)]
)
def test_a_slow_link_has_a_target_of_a_packet(
    perhop: Perhop, tmp_path: Path, rate: str, target: str | None
) -> None:
    done = perhop("init", "--rate", rate, "--users", "1 download", "--yes")
    assert (done.code, done.err) == (0, "")
    queue = tomllib.loads((tmp_path / "my.toml").read_text())["links"]["access"]["queue"]
    assert queue.get("target") == target


def test_calls_are_calls(perhop: Perhop, tmp_path: Path) -> None:
    done = perhop("init", "--rate", "1Gbps", "--users", "3 calls", "--yes")
    assert (done.code, done.err) == (0, "")
    assert "profile =" not in (tmp_path / "my.toml").read_text(), "nobody has said that something is promised"
    result = package.run(tmp_path / "my.toml", runs=2)
    table = result.applications()["call"]
    assert table["calls"].to_list() == [3, 3]
    assert table["r"].to_list() == pytest.approx([93.2, 93.2])
    assert table["lost_or_late"].to_list() == [0.0, 0.0]


def test_yes_beside_all_answers_has_nothing_to_add(perhop: Perhop, tmp_path: Path) -> None:
    answers = ("--rate", "5 Mbit/s", "--users", "2 downloads", "--promised", "downloads 1 Mbit/s")
    assert perhop("init", "one.toml", *answers).code == 0
    assert perhop("init", "two.toml", "--yes", *answers).code == 0
    one, two = ((tmp_path / name).read_text() for name in ("one.toml", "two.toml"))
    assert one.replace("one.toml", "two.toml") == two


def test_nobody_answers(tmp_path: Path) -> None:
    done = asked(tmp_path, "50Mbps\n")
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last == "error: no answer; give --users, such as --users '2 customers, 8 others', or --yes"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("rate", "down", "up"),
    [("20/5Mbps", "20Mbps", "5Mbps"), ("100 Mbit/s / 40 Mbit/s", "100 Mbit/s", "40 Mbit/s")],
)
def test_a_line_may_have_a_rate_of_its_own_upstream(
    perhop: Perhop, tmp_path: Path, rate: str, down: str, up: str
) -> None:
    done = perhop("init", "my.toml", "--rate", rate, "--users", "1 download, 1 upload", "--yes")
    assert done.code == 0, done.err
    link = tomllib.loads((tmp_path / "my.toml").read_text(encoding="utf-8"))["links"]["access"]
    assert (link["rate"], link["reverse"]["rate"]) == (down, up)
    alone = perhop("init", "alone.toml", "--rate", rate, "--users", "1 download", "--yes")
    assert alone.code == 0, alone.err


def test_nothing_is_promised_where_nobody_is_asked(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "perhop", "init", "--rate", "10Mbps", "--users", "1 download"]
    done = subprocess.run(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert 'aqm = "codel"' in (tmp_path / "my.toml").read_text(encoding="utf-8")


def test_nothing_promised_is_codel(perhop: Perhop, tmp_path: Path) -> None:
    done = perhop("init", "--rate", "20Mbps", "--users", "4 people", "--promised", "nothing")
    assert done.code == 0
    text = (tmp_path / "my.toml").read_text()
    assert 'aqm = "codel"' in text
    assert "profile =" not in text
    assert float(str(classes(tmp_path / "my.toml")["people"]["throughput_bps"])) > 4e6


def test_one_download_over_a_gigabit_is_held_by_what_its_host_allows(perhop: Perhop, tmp_path: Path) -> None:
    done = perhop("init", "--rate", "1Gbps", "--users", "1 download", "--promised", "nothing")
    assert done.code == 0
    (download,) = package.run(tmp_path / "my.toml", runs=1).flows.iter_rows(named=True)
    # Linux keeps at most 4 MiB unacknowledged (`tcp_wmem`): segments of 1448 bytes in packets of 1500.
    held = 2**22 * 8 / download["mean_rtt_s"] * 1500 / 1448
    assert download["mean_rtt_s"] == pytest.approx(0.040, rel=0.01)
    assert download["throughput_bps"] == pytest.approx(held, rel=0.01)
    said = " ".join(perhop("run", "my.toml", "--runs", "1").out.split())
    assert "download was limited by its sender's buffer, 4.19 MB, for 100 % of the time" in said


@pytest.mark.parametrize(
    ("rtt", "delay"), [("50ms", "25ms"), ("25 ms", "12.5ms"), ("1s", "500ms"), (None, "20ms")]
)
def test_a_round_trip_is_twice_the_delay_of_the_link(
    perhop: Perhop, tmp_path: Path, rtt: str | None, delay: str
) -> None:
    done = perhop("init", *(["--rtt", rtt] if rtt else []), "--users", "1 call", "--yes")
    assert (done.code, done.err) == (0, "")
    link = tomllib.loads((tmp_path / "my.toml").read_text())["links"]["access"]
    assert (link["delay"], "reverse" in link) == (delay, False)
    call, _ = package.run(tmp_path / "my.toml", runs=1).flows.iter_rows(named=True)
    assert call["one_way_delay_s"] >= float(delay.removesuffix("ms")) / 1e3


@pytest.mark.parametrize("rate", ["1bps", "64kbps", "2.5Gbps", "40Gbps"])
def test_any_rate_makes_a_valid_scenario(perhop: Perhop, tmp_path: Path, rate: str) -> None:
    assert perhop("init", "--yes", "--rate", rate).code == 0
    reading.read(tmp_path / "my.toml")


def test_strange_names_stay_names(perhop: Perhop, tmp_path: Path) -> None:
    users = '2 a "b\\c# call, 1 ☃ 日 page'
    done = perhop("init", "a\nduration = 1.toml", "--yes", "--rate", "1Mbps", "--users", users)
    assert done.code == 0
    assert set(classes(next(tmp_path.iterdir()))) >= {'a "b\\c# call', "☃ 日 page"}


def test_a_file_that_is_there_stays(perhop: Perhop, tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text("mine")
    done = perhop("init", "--yes")
    assert done.code == 2
    assert "my.toml: exists" in done.err
    assert file.read_text() == "mine"
    with pytest.raises(FileExistsError):
        filesystem.write_new(file, b"theirs")
    assert file.read_text() == "mine"


def test_more_promised_than_there_is_is_said(perhop: Perhop) -> None:
    done = perhop("init", "--yes", "--promised", "customers 6Mbps")
    assert done.code == 0
    assert done.err.startswith("warning: my.toml: 12 Mbit/s are promised on a link of 10Mbps")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rate", "5mbps"], ["--rate", "5mbps"]),
        (["--rate", "0Mbps"], ["--rate", "0Mbps"]),
        (["--rate", ""], ["--rate"]),
        (["--rtt", "50"], ["--rtt", "unit"]),
        (["--rtt", "1ns"], ["delay", "whole number of ns"]),
        (["--users", "customers 2"], ["--users", "customers 2", "2 downloads"]),
        (["--users", "0 customers"], ["--users", "1 to"]),
        (["--users", "2 users, 3 users"], ["--users", "`users`", "twice"]),
        (
            ["--users", "5 printers"],
            [
                "`printers`",
                "downloads, uploads, calls, videos, web users, games, requests",
                "staff",
                "2 printers downloads",
            ],
        ),
        (["--users", "3 video calls"], ["`video calls` may be calls and videos"]),
        (["--users", "calls"], ["--users", "3 calls"]),
        (["--users", "2 a\tuser"], ["--users"]),
        (["--users", "2 users,"], ["--users"]),
        (["--promised", "clients 2Mbps"], ["--promised", "clients", "customers, others"]),
        (["--promised", "customers"], ["--promised", "customers 2Mbps", "nothing"]),
        (["--promised", "customers 2"], ["--promised", "unit"]),
        (["--promised", "customers 2Mbps, customers 3Mbps"], ["--promised", "twice"]),
        (["--rate", "100 mbit/s"], ["--rate", "ambiguous", "100Mbps"]),
        (["none/my.toml"], ["none/my.toml", "No such file"]),
        (["."], ["exists"]),
    ],
)
def test_an_answer_that_is_none(
    perhop: Perhop, tmp_path: Path, arguments: list[str], said: list[str]
) -> None:
    done = perhop("init", "--yes", *arguments)
    assert done.code == 2
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert line.startswith("error: ")
    for word in said:
        assert word in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("rate", "users", "warmup"),
    [
        ("50Mbps", "20 downloads, 1 call", "10s"),  # no burst
        ("1Gbps", "50 web users", "10s"),  # 50 pages of 20 Mbit take 1 s
        ("50Mbps", "50 web users", "60s"),  # 20 s
        ("50Mbps", "50 web users, 50 uploads", "60s"),  # uploads go the other way
        ("50Mbps", "25 web users, 25 downloads", "60s"),  # downloads take half of the link
        ("100Mbps", "5 videos", "40s"),  # 5 buffers of 258 Mbit take 13 s
        ("1Mbps", "5 videos", "180s"),  # a buffer of 60 s, by then at a lower rate
    ],
)
def test_the_warm_up_outlasts_the_burst_at_the_start(
    perhop: Perhop, tmp_path: Path, rate: str, users: str, warmup: str
) -> None:
    assert perhop("init", "--rate", rate, "--users", users, "--yes").code == 0
    text = (tmp_path / "my.toml").read_text()
    scenario = tomllib.loads(text)
    assert scenario["warmup"] == warmup
    assert scenario["duration"] == f"{6 * int(warmup.removesuffix('s'))}s"
    assert ("At the start every web user" in text) == (warmup != "10s")


@pytest.mark.parametrize(("rate", "burst"), [("64kbps", "4 h"), ("1Mbps", "17 min")])
def test_a_line_that_is_too_slow_has_no_run_of_days_and_is_told_so(
    perhop: Perhop, tmp_path: Path, rate: str, burst: str
) -> None:
    """Fifty pages of 2.5 MB take four hours at 64 kbit/s; a run would last three days."""
    done = perhop("init", "--rate", rate, "--users", "50 web users", "--yes")
    assert done.code == 0
    text = (tmp_path / "my.toml").read_text()
    scenario = tomllib.loads(text)
    assert (scenario["warmup"], scenario["duration"]) == ("600s", "3600s")
    assert "The warm-up has 600 s all the same: part of it is in figures." in text
    said = f"what users ask for at the start takes {burst} on this link; the warm-up is cut to 600 s"
    assert said in done.err


def test_web_users_load_pages_of_today(perhop: Perhop, tmp_path: Path) -> None:
    """Some 2.5 MB on average, of which the comment names the source; the model's own pages have 57 kB."""
    assert perhop("init", "--rate", "1Gbps", "--users", "60 web users", "--yes").code == 0
    text = (tmp_path / "my.toml").read_text(encoding="utf-8")
    assert "HTTP Archive" in text
    (row,) = simulate.run(text, runs=3, seed=1).applications()["web"].to_dicts()
    assert 1.5e6 < row["page_mean_bytes"] < 4e6
