"""`perhop import` as a user types it: files, questions, the report, and a run of what it wrote."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perhop import bound, run
from perhop.routers import CODES, READERS, guaranteed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

ROOT = Path(__file__).parents[3]
BRANCH = ROOT / "examples" / "branch.cfg"
CONFIGURATIONS = Path(__file__).parent / "configurations"


def test_a_configuration_becomes_a_scenario_that_runs(perhop: Perhop, tmp_path: Path) -> None:
    done = perhop("import", str(BRANCH), "--packet-size", "1000B", "-o", "branch.toml")
    assert done.code == 0, done.err
    assert done.err == "branch.toml: written; fill in the traffic, then: perhop run branch.toml\n"
    assert done.out.splitlines()[0] == "GigabitEthernet0/0/0, read as Cisco IOS and IOS-XE"
    assert "W06" not in done.out
    assert "line 26: not about queues: `ip address 192.0.2.2 255.255.255.252`" in done.out
    text = (tmp_path / "branch.toml").read_text(encoding="utf-8")
    assert 'green = "48/96/0.05"' in text
    assert "# line 15: af21" in text
    classes = run(tmp_path / "branch.toml", runs=1).classes()
    assert (classes["throughput_bps"] > 0).all()
    # Voice sends 5 % of 20 Mbit/s, and 20 % would pass its policer: all of it arrives.
    voice = classes.filter(classes["class"] == "VOICE")["throughput_bps"][0]
    assert voice == pytest.approx(1e6, rel=0.01)


def test_the_report_as_json(perhop: Perhop) -> None:
    done = perhop("import", str(BRANCH), "--packet-size", "1kB", "-o", "b.toml", "--json", "-")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert (report["dialect"], report["port"]) == ("ios", "GigabitEthernet0/0/0")
    limit = next(v for v in report["values"] if (v["queue"], v["parameter"]) == ("BUSINESS", "limit"))
    assert limit == {
        "queue": "BUSINESS", "parameter": "limit", "value": '"128p"', "line": 12, "how": "configured",
        "said": "queue-limit 128 packets",
    }  # fmt: skip
    assert {w["code"] for w in report["warnings"]} == {"W04", "W05", "W12", "W13"}


USERS = """\
scenario = "other.toml"
[profiles.gold]
marker = "token-bucket"
rate = "1Mbps"
burst = "3kB"
out = "drop"
[[flows]]
name = "calls"
count = 4
dscp = 46
transport = { udp = "cbr", rate = "80kbps", packet = "200B" }
[[flows]]
name = "data"
dscp = "AF21"
color = "green"
from = "router"
to = "next"
transport = { tcp = "linux", packet = "1500B" }
access = { rate = "1Gbps", delay = "10ms" }
[[flows]]
name = "rest"
profile = "gold"
transport = { udp = "cbr", rate = "200kbps", packet = "1kB" }
"""


def test_each_class_has_its_guarantee_beside_what_runs_measure(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "users.toml").write_text(USERS, encoding="utf-8")
    words = ("--packet-size", "1kB", "-o", "b.toml", "--json", "b.json")
    done = perhop("import", str(BRANCH), *words, "--traffic", "users.toml", "--runs", "2")
    assert done.code == 0, done.err
    assert "b.toml: written; to run it: perhop run b.toml" in done.err
    written = tomllib.loads((tmp_path / "b.toml").read_text(encoding="utf-8"))
    given = tomllib.loads(USERS)
    ends = {"from": "router", "to": "next"}
    calls, data, rest = given["flows"]
    assert written["flows"] == [{**calls, "dscp": "EF", **ends}, data, {**rest, **ends}]
    assert written["profiles"] == given["profiles"]
    report = json.loads((tmp_path / "b.json").read_text(encoding="utf-8"))
    rows = {row["class"]: row for row in report["guarantees"]["queues"]}
    assert list(rows) == ["VOICE", "BUSINESS", "class-default"]
    link = bound(tmp_path / "b.toml").link_classes.to_dicts()
    assert [{name: row[name] for name in link[0]} for row in rows.values()] == link
    voice = rows["VOICE"]
    # Four packets at once, behind one of 1500 bytes: 20 Mbit/s.
    assert voice["delay_at_most_s"] == pytest.approx((1500 + 3 * 200) * 8 / 20e6, rel=1e-4)
    assert 0 < voice["delay_p99_low_s"] <= voice["delay_p99_s"] < voice["delay_at_most_s"]
    head = "Waiting time in each queue with the traffic of users.toml: at most in any run, and the 99th"
    assert f"{head} percentile in 2 runs" in " ".join(done.out.split())
    classes, _, table = done.out.partition("Waiting time in each queue")
    assert re.search(r"class +at most, ms +delay p99, ms +loss excluded\n", table)
    assert re.search(r"VOICE +0\.8401 +0\.\d+ .*yes\n", table)
    # A packet of a call waits, is sent, and takes 5 ms.
    calls, data, rest = report["guarantees"]["classes"]
    assert calls["one_way_delay_at_most_s"] == pytest.approx(0.84e-3 + 200 * 8 / 20e6 + 5e-3, rel=1e-4)
    assert 5e-3 < calls["one_way_delay_p99_s"] < calls["one_way_delay_at_most_s"]
    assert data["one_way_delay_at_most_s"] is None
    head = r"One-way delay of each class with the traffic of users.toml: at most in any run, and the 99th"
    assert head in " ".join(classes.split())
    assert re.search(r"class +one-way at most, ms +one-way delay p99, ms +loss excluded\n", classes)
    assert f"no bound for data: {data['delay_reason']}" in " ".join(classes.split())
    again = guaranteed(tmp_path / "b.toml", runs=2)
    assert again.to_dict() == report["guarantees"]
    assert again.classes["class"].to_list() == ["calls", "data", rest["class"]]


def test_a_template_has_guarantees_without_runs_and_a_reason_where_there_is_none(
    perhop: Perhop, tmp_path: Path
) -> None:
    (tmp_path / "tc.sh").write_text("tc qdisc add dev e root fq_codel\n", encoding="utf-8")
    words = ("--rate", "10Mbps", "--packet-size", "1kB", "-o", "e.toml", "--json", "e.json")
    done = perhop("import", "tc.sh", *words)
    assert done.code == 0, done.err
    assert "the template of traffic: at most in any run\n" in done.out
    assert "p99" not in done.out
    assert "One-way" not in done.out
    report = json.loads((tmp_path / "e.json").read_text(encoding="utf-8"))["guarantees"]
    assert report == guaranteed(tmp_path / "e.toml").to_dict()
    rows = report["queues"]
    assert [(row["class"], row["delay_at_most_s"]) for row in rows] == [(None, None)]
    assert f"no bound for e: {rows[0]['delay_reason']}" in " ".join(done.out.split())


def test_a_queue_without_classes_has_one_line(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "tc.sh").write_text("tc qdisc add dev e root pfifo limit 50\n", encoding="utf-8")
    done = perhop("import", "tc.sh", "--rate", "10Mbps", "--packet-size", "1kB", "-o", "e.toml")
    # Fifty packets before it, and the rest of one.
    assert re.search(r"\nall +40\.\d+ +no\n", done.out)


def test_lines_without_effect_are_as_wide_as_others(perhop: Perhop, tmp_path: Path) -> None:
    text = BRANCH.read_text(encoding="utf-8") + "interface Lo0\n description x\n ip " + "word " * 30 + "\n"
    (tmp_path / "wide.cfg").write_text(text, encoding="utf-8")
    done = perhop("import", "wide.cfg", "--packet-size", "1kB", "-o", "b.toml")
    part = done.out.partition("without effect (W13):")[2]
    assert "word word" in part
    assert max(map(len, part.splitlines())) <= 80


def test_the_scenario_on_standard_output(perhop: Perhop) -> None:
    done = perhop("import", str(BRANCH), "--packet-size", "1kB")
    assert done.code == 0
    assert tomllib.loads(done.out)["links"]["GigabitEthernet0/0/0"]["rate"] == "20Mbps"
    assert "GigabitEthernet0/0/0, read as" in done.err


def test_several_files_of_one_device(perhop: Perhop, tmp_path: Path) -> None:
    entries = json.loads((CONFIGURATIONS / "tc.json").read_text(encoding="utf-8"))
    (tmp_path / "qdisc.json").write_text(json.dumps(entries[:3], indent=1), encoding="utf-8")
    (tmp_path / "class.json").write_text(json.dumps(entries[3:]), encoding="utf-8")
    words = ("--rate", "10Mbps", "--packet-size", "1kB", "--buffer", "50p", "--match", "1:1=af11")
    done = perhop("import", "qdisc.json", "class.json", *words, "--match", "1:2=ef", "-o", "e.toml")
    assert done.code == 0, done.err
    assert "qdisc.json:10" in done.out
    queues = tomllib.loads((tmp_path / "e.toml").read_text(encoding="utf-8"))["links"]["eth0"]["queue"][
        "queues"
    ]
    assert [queue["weight"] for queue in queues[:2]] == [200, 100]
    assert [queue["match"]["dscp"] for queue in queues[:2]] == [["AF11"], ["EF"]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none.cfg",), "none.cfg: no such file"),
        ((".",), ".: is a directory; give a configuration as a file"),
        ((str(BRANCH),), "missing --packet-size (line 15: class BUSINESS: idle time"),
        ((str(BRANCH), "--from", "dos"), "--from must be one of ios, ios-xr, nx-os, junos"),
        (
            (str(BRANCH), "--interface", "eth9"),
            "--interface eth9: has no queues; there are GigabitEthernet0/0/0",
        ),
        ((str(BRANCH), "--rate", "fast"), "--rate must be a number with a unit, such as 20Mbps, not `fast`"),
        ((str(BRANCH), "--rate", "0Mbps"), "--rate must be above 0, such as 20Mbps, not `0Mbps`"),
        ((str(BRANCH), "--packet-size", "0B"), "--packet-size must be above 0, such as 1000B, not `0B`"),
        (
            (str(BRANCH), "--packet-size", "1kB", "--match", "NOPE=EF"),
            "--match NOPE: GigabitEthernet0/0/0 has no such class; there are VOICE,",
        ),
        (
            (str(BRANCH), "--packet-size", "1kB", "--json", "-"),
            "--output - and --json - both mean standard output; give one of them a file",
        ),
        ((str(BRANCH), "--buffer", "much"), "--buffer must be bytes, packets or a time"),
        ((str(BRANCH), "--match", "VOICE"), "--match must be CLASS=DSCP, such as VOICE=ef"),
        (("words.txt",), "words.txt: looks like no configuration with queues; name its dialect: --from ios,"),
        ((str(BRANCH), "--packet-size", "1kB", "-o", "no/such.toml"), "--output no/such.toml"),
        ((str(BRANCH), "--packet-size", "1kB", "--traffic", "no.toml"), "no.toml: no such file"),
        ((str(BRANCH), "--traffic", "none.toml"), "--traffic none.toml: has no [[flows]]; give a plan or a"),
        ((str(BRANCH), "--packet-size", "1kB", "--traffic", "bad.toml"), "`transport`"),
        ((str(BRANCH), "--traffic", ""), "--traffic: a name is empty"),
        ((str(BRANCH), "--packet-size", "1kB", "--runs", "0"), "--runs must be at least 1 and at most"),
        (
            (str(BRANCH), "--packet-size", "1kB", "--traffic", "bad.toml", "-o", "bad.toml"),
            "--output bad.toml",
        ),
    ],
)
def test_bad_input_is_one_line(perhop: Perhop, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "words.txt").write_text("once upon a time\n", encoding="utf-8")
    (tmp_path / "none.toml").write_text("flows = 3\n", encoding="utf-8")
    (tmp_path / "bad.toml").write_text('[[flows]]\nname = "x"\n', encoding="utf-8")
    done = perhop("import", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1, done.err
    assert said in done.err


def test_the_former_name_of_rate_is_read_and_shown_nowhere(perhop: Perhop) -> None:
    """`--rate` is the rate of a link in every command."""
    words = ("import", str(BRANCH), "--packet-size", "1kB")
    today, former = perhop(*words, "--rate", "30Mbps"), perhop(*words, "--link-rate", "30Mbps")
    assert today.code == 0
    assert (former.out, former.err) == (today.out, today.err)
    both = perhop(*words, "--rate", "30Mbps", "--link-rate", "30Mbps")
    assert (both.code, both.err.count("\n")) == (2, 1)
    assert "--link-rate is the former name of --rate" in both.err
    assert "--link-rate" not in perhop("import", "--help").out


def test_the_help_names_all_dialects(perhop: Perhop) -> None:
    shown = "".join(perhop("import", "--help").out.split())
    assert all(f"{name}," in shown or f"{name}." in shown for name in READERS)


def test_the_documentation_names_all_dialects_and_codes() -> None:
    text = (ROOT / "docs" / "configurations.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in text for name in READERS)
    assert all(f"| {code} |" in text for code in CODES)
