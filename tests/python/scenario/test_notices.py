"""What can hardly be meant is said once, with its key; what can have no effect is refused."""

from __future__ import annotations

import json
import tomllib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.python.conftest import SMALL

import perhop
from perhop import ScenarioError, _engine
from perhop.real_packets import laboratory
from perhop.scenario import reading
from perhop.studies import STUDIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

ROOT = Path(__file__).parents[3]
DIVIDED = """\
duration = "2s"

[links.bottleneck]
from = "edge"
to = "core"
rate = "2Mbps"
delay = "10ms"

[links.bottleneck.queue]
scheduler = "drr"

[[links.bottleneck.queue.queues]]
name = "assured"
match = { dscp = "AF11" }
rule = { aqm = "drop-tail", limit = "50p" }

[[links.bottleneck.queue.queues]]
name = "rest"
rule = { aqm = "drop-tail", limit = "50p" }

[[flows]]
name = "gold"
from = "edge"
to = "core"
transport = { tcp = "newreno" }
profile = { rate = "0.1Mbps", marker = "token-bucket", burst = "4kB" }
start = "0s"
"""
SAID = "links.bottleneck.queue.queues[0].match: packets of `gold` go to different queues"
BEYOND = SMALL.replace("5/15/0.1", "60/90/0.1")
"""Thresholds that the queue of 50 packets never reaches."""
BEYOND_SAID = "links.bottleneck.queue.total: `60/90/0.1`: the queue holds at most 50p"
ECN = SMALL.replace("5/15/0.1", '5/15/0.1", ecn = true, coupling = "coupled')


@pytest.fixture
def divided(tmp_path: Path) -> Path:
    """A scenario file in which a queue takes one of the codepoints that a marker writes."""
    path = tmp_path / "divided.toml"
    path.write_text(DIVIDED, encoding="utf-8")
    return path


def classes(text: str) -> dict[str, int]:
    """Packets that came to each queue of the bottleneck."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", perhop.PerhopWarning)
        rows = perhop.run(text, runs=1).link_classes
    return dict(zip(rows["class"], rows["arrived_packets"], strict=True))


def test_python_warns_once_in_each_call(divided: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        perhop.run(divided, runs=1)
        perhop.run(json.loads(reading.canonical(divided)), runs=1)
    assert [entry.category for entry in caught] == [perhop.PerhopWarning] * 2
    first, second = (str(entry.message) for entry in caught)
    assert first.startswith(f"{divided}:14: {SAID}")
    assert second.startswith(f"scenario: {SAID}")
    assert all(entry.filename == __file__ for entry in caught), "it points at the caller"


def test_run_says_it_once_and_goes_on(perhop: Perhop, divided: Path) -> None:
    done = perhop("run", divided)
    assert done.code == 0, done.err
    assert done.err.count("warning:") == 1
    assert f"warning: {divided}:14: {SAID}" in done.err


def test_codepoints_as_a_list_keep_a_flow_in_one_queue() -> None:
    divided = classes(DIVIDED)
    assert divided["assured"] > 0
    assert divided["rest"] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        perhop.run(DIVIDED.replace('"AF11"', '["AF11", "AF12"]'), runs=1)
    together = classes(DIVIDED.replace('"AF11"', '["AF11", "AF12"]'))
    assert together["assured"] > 0
    assert together["rest"] == 0


def test_a_profile_chooses_the_class_of_assured_forwarding() -> None:
    second = DIVIDED.replace('burst = "4kB"', 'burst = "4kB", af = 2')
    assert classes(second)["assured"] == 0
    assert classes(second.replace('"AF11"', '["AF21", "AF22", "AF23"]'))["rest"] == 0
    shared = second.replace(
        'profile = { rate = "0.1Mbps", marker = "token-bucket", burst = "4kB", af = 2 }', 'profile = "sold"'
    )
    shared += '[profiles.sold]\nrate = "0.1Mbps"\nmarker = "tsw"\naf = 2\n'
    assert classes(shared.replace('"AF11"', '["AF21", "AF22"]'))["rest"] == 0


def test_a_sweep_says_which_points_it_concerns(perhop: Perhop, small: Path, tmp_path: Path) -> None:
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(
        f'scenario = "{small.name}"\nruns = 1\n[set]\nduration = "1s"\n'
        '[grid]\n"links.bottleneck.queue.total" = ["5/15/0.1", "60/90/0.1", "70/90/0.1"]\n',
        encoding="utf-8",
    )
    report = tmp_path / "report"
    first, again = perhop("sweep", sweep, "--out", report), perhop("rerun", report)
    for done, place in ((first, sweep), (again, report / "manifest.json")):
        assert done.code == 0, done.err
        assert done.err.count("warning:") == 1
        assert f"warning: {place}: {BEYOND_SAID}" in done.err
        assert "(so at 2 of 3 points, first at links.bottleneck.queue.total = 60/90/0.1)" in done.err


def test_a_search_says_it_before_it_begins_and_of_its_winner(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "beyond.toml").write_text(BEYOND, encoding="utf-8")
    tune = tmp_path / "tune.toml"
    tune.write_text(
        'scenario = "beyond.toml"\ntrials = 2\nruns = 1\nvalidation-runs = 1\n'
        'objectives = ["maximize links.bottleneck.utilization"]\n[set]\nduration = "1s"\n'
        '[search]\n"links.bottleneck.rate" = "1Mbps..2Mbps"\n',
        encoding="utf-8",
    )
    done = perhop("tune", tune)
    assert done.code == 0, done.err
    assert done.err.count(f"warning: {tune}: {BEYOND_SAID}") == 1
    assert done.err.count(f"warning: {tune}: a winner: {BEYOND_SAID}") == 1


def test_ecn_without_capable_flows_is_noticed(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "ecn.toml").write_text(ECN, encoding="utf-8")
    done = perhop("run", "ecn.toml")
    assert done.code == 0
    said = "ecn.toml:9: links.bottleneck.queue.ecn: no flow that passes this link is ECN-capable"
    assert done.err.count(said) == 1


def test_marks_of_capable_flows_are_counted() -> None:
    with pytest.warns(perhop.PerhopWarning, match="no flow that passes this link is ECN-capable"):
        assert perhop.run(ECN, runs=1).flows["congestion_marked_packets"].null_count() > 0
    table = json.loads(json.dumps(perhop_table()))
    for flow in table["flows"]:
        flow["ecn"] = "classic"
    with warnings.catch_warnings():
        warnings.simplefilter("error", perhop.PerhopWarning)
        result = perhop.run(table, runs=2)
    columns = (
        result.flows["congestion_marked_packets"],
        result.flows["ecn_reductions"],
        result.notifications["packets"],
    )
    marked, reductions, notified = (sum(column.to_list()) for column in columns)
    assert marked > 0
    assert reductions > 0
    assert abs(notified - marked) < 20, "the rest is under way, or was marked before the warm-up"


def perhop_table() -> dict[str, object]:
    """`ECN` as plain data."""
    checked = reading.read('live = { sysctl = { "net.ipv4.tcp_ecn" = 1 } }\n' + ECN, real_packets=True)
    table: dict[str, object] = json.loads(checked.text)
    return table


def test_on_real_packets_ecn_needs_a_kernel_that_asks_for_it(perhop: Perhop, tmp_path: Path) -> None:
    assert perhop_table()["live"]
    with pytest.raises(ScenarioError, match="the kernel's TCP does not ask for ECN by itself"):
        laboratory.run(ECN)
    (tmp_path / "ecn.toml").write_text(ECN, encoding="utf-8")
    done = perhop("live", "ecn.toml")
    assert done.code == 2
    assert done.err.startswith("error: ecn.toml:9: links.bottleneck.queue.ecn: the kernel's TCP does not ask")


@pytest.mark.parametrize("folder", ["examples", "explorer/gallery", "python/perhop/coursework/labs"])
def test_nothing_is_to_be_said_of_what_we_show(folder: str) -> None:
    """Examples, gallery and labs: none has a control of today in a window of 1998."""
    paths = [
        path for path in sorted((ROOT / folder).rglob("*.toml")) if "links" in tomllib.loads(path.read_text())
    ]
    assert len(paths) > 8
    for path in paths:
        assert list(reading.read(path).notices) == [], path


@pytest.mark.parametrize("name", STUDIES)
def test_nothing_is_to_be_said_of_the_studies(name: str) -> None:
    study = STUDIES[name]
    for cell in study.cells:
        _, notices = _engine.read_json(json.dumps(study.scenario(cell)), name)
        if cell.get("rule") == "dualpi2" and "prague" not in cell.values():  # held against its classic queue
            notices = [text for text in notices if "so the L4S queue stays empty" not in text]
        if (
            cell.get("rule") == "wfq"
        ):  # the question is about the default target, also of a queue with 800 kbit/s
            notices = [text for text in notices if "queues[4].rule.target: `5ms`: a packet" not in text]
        assert notices == [], cell


def test_another_name_gives_another_run_of_this_flow_alone() -> None:
    """What the documentation says of seeds and names."""
    udp = SMALL.replace('tcp = "newreno", packet = "1000B"', 'udp = "cbr", rate = "0.1Mbps"')

    def starts(text: str) -> dict[str, list[float]]:
        flows = perhop.run(text, seed=7, runs=1).flows
        return {
            str(name): flows.filter(flows["class"] == name)["started_s"].to_list()
            for name in flows["class"].unique(maintain_order=True)
        }

    before = starts(udp)
    assert starts(udp) == before
    after = starts(udp.replace('name = "gold"', 'name = "platinum"'))
    assert after["platinum"] != before["gold"]
    assert after["best-effort"] == before["best-effort"]
