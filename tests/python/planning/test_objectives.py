"""Objectives: sentences of an agreement become bounds on metrics, or are met with what to write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.python.planning.planned import POLICED

from perhop.errors import PerhopError
from perhop.planning.document import read_plan
from perhop.planning.objectives import Objective, Subjects, parse
from perhop.runs.metrics import names_of
from perhop.scenario.reading import canonical

if TYPE_CHECKING:
    from pathlib import Path

SCENARIO = """\
duration = "5s"
warmup = "0s"
[links.uplink]
from = "a"
to = "b"
rate = "5Mbps"
delay = "5ms"
[links.uplink.queue]
scheduler = "wfq"
queues = [
  { name = "VOICE", match = { dscp = ["EF"] }, rate = "1Mbps", rule = { aqm = "drop-tail", limit = "50p" } },
  { name = "REST", rate = "4Mbps", rule = { aqm = "drop-tail", limit = "50p" } },
]
[[flows]]
name = "calls"
count = 2
dscp = "EF"
from = "a"
to = "b"
application = { model = "call" }
codec = "g711-plc"
[[flows]]
name = "surfers"
from = "a"
to = "b"
dscp = "AF21"
transport = { tcp = "linux" }
application = { model = "web" }
[[flows]]
name = "gold"
count = 2
from = "a"
to = "b"
dscp = "AF11"
transport = { udp = "cbr", rate = "100kbps" }
[[flows]]
name = "sold"
from = "a"
to = "b"
transport = { tcp = "linux" }
profile = { rate = "1Mbps", marker = "token-bucket", burst = "10kB" }
[[flows]]
name = "gold mail"
from = "a"
to = "b"
dscp = "AF11"
transport = { tcp = "linux" }
arrivals = { rate = "2/s" }
sizes = { constant = "20kB" }
"""


@pytest.fixture(scope="module")
def subjects() -> Subjects:
    """The subjects that the scenario's objectives may name."""
    text = canonical(SCENARIO)
    return Subjects.of(text, names_of(text))


PARSED = [
    ("P99 of one-way delay of `voice` < 20 ms", ("one-way delay", "P99", "voice", "<", 0.02, None)),
    ("page load P95 < 2 s", ("page load time", "P95", "", "<", 2.0, None)),
    ("page load time P95 of web < 2s", ("page load time", "P95", "web", "<", 2.0, None)),
    ("median of the page load of gold web <= 800ms", ("page load time", "P50", "gold web", "<=", 0.8, None)),
    ("loss of AF11 < 0.1 %", ("loss", "", "AF11", "<", 0.001, None)),
    ("packet loss of AF11 ≤ 0.001", ("loss", "", "AF11", "<=", 0.001, None)),
    ("R-factor of calls >= 80", ("R-factor", "", "calls", ">=", 80.0, None)),
    ("R of calls > 80 in 90 % of runs", ("R-factor", "", "calls", ">", 80.0, 0.9)),
    ("MOS of `my calls` ≥ 4.0", ("MOS", "", "my calls", ">=", 4.0, None)),
    ("throughput of gold > 2 Mbit/s", ("throughput", "", "gold", ">", 2e6, None)),
    ("minimum throughput of gold >= 500kbps", ("throughput", "minimum", "gold", ">=", 5e5, None)),
    ("stalling of viewers < 10 s/h", ("stalling", "", "viewers", "<", 10.0, None)),
    ("longest waiting time of VOICE < 1500us", ("waiting time", "maximum", "VOICE", "<", 0.0015, None)),
    (
        "95 % of `gold` flows get their profile in 99 % of runs",
        ("flows that get their profile", "", "gold", ">=", 0.95, 0.99),
    ),
    (
        "at least 90% of gold flows reach their profiles",
        ("flows that get their profile", "", "gold", ">=", 0.9, None),
    ),
]


@pytest.mark.parametrize(("text", "wanted"), PARSED, ids=[text for text, _ in PARSED])
def test_sentences_become_bounds(text: str, wanted: tuple[object, ...]) -> None:
    found = parse(text, "plan.toml")
    assert found.measure is not None
    name = found.measure.name
    assert (name, found.statistic, found.subject, found.comparison, found.bound, found.runs) == wanted


def test_a_metric_by_name_has_its_own_unit() -> None:
    found = parse("links.uplink.classes.VOICE.delay_p99_s < 3 ms", "plan.toml")
    assert (found.measure, found.subject, found.bound) == (
        None,
        "links.uplink.classes.VOICE.delay_p99_s",
        0.003,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("voice is good", "is no objective; write a measure, <, <=, > or >=, and a value"),
        ("one-way delay of voice < 20 ms", "say which: `mean of one-way delay` or `P99 of one-way delay`"),
        ("P95 of one-way delay of voice < 20 ms", "one-way delay is measured as mean, P99, not as P95"),
        ("P99 of one-way delay of voice < 20", "the bound must be a time such as 20 ms, not `20`"),
        ("loss of voice < 5 ms", "the bound must be a share such as 0.1 %, not `5 ms`"),
        ("throughput of voice > 2 Mb", "the bound must be a rate such as 2 Mbit/s"),
        ("jittr of voice < 5 ms", "nothing measured is called `jittr`; did you mean `jitter`?"),
        ("loss voice < 1 %", "write `loss of NAME` in place of `loss voice`"),
        ("loss of voice < 1 % in 100 % of runs", "no number of runs shows that all do"),
        ("120 % of gold flows get their profile", "a share must lie above 0 % and be at most 100 %"),
    ],
)
def test_what_is_no_objective_is_met_with_what_to_write(text: str, message: str) -> None:
    with pytest.raises(PerhopError) as caught:
        parse(text, "plan.toml: `objectives`")
    assert str(caught.value).startswith("plan.toml: `objectives`: ")
    assert message in str(caught.value)


BOUND = [
    ("P99 of one-way delay of calls < 20 ms", [("flows.calls.one_way_delay_p99_s",)]),
    ("P99 of one-way delay of EF < 20 ms", [("flows.calls.one_way_delay_p99_s",)]),
    ("P99 of waiting time of VOICE < 20 ms", [("links.uplink.classes.VOICE.delay_p99_s",)]),
    ("P99 of waiting time of uplink < 20 ms", [("links.uplink.delay_p99_s",)]),
    ("page load P95 < 2 s", [("applications.surfers.page_p95_s",)]),
    ("loss of VOICE < 1 %", [("links.uplink.classes.VOICE.loss",)]),
    ("R of calls > 80", [("flows.calls.r",)]),
    ("median of completion time of gold mail < 1 s", [("populations.gold mail.completion_p50_s",)]),
    ("90 % of sold flows get their profile", [("flows.sold.profile_success",)]),
    ("links.uplink.utilization > 10 %", [("links.uplink.utilization",)]),
    (
        "loss of AF11 < 1 %",
        [
            tuple(f"flows.{name}.{metric}" for metric in ("loss", "policing_ratio", "link_loss"))
            for name in ("gold", "gold mail")
        ],
    ),
]


@pytest.mark.parametrize(("text", "parts"), BOUND, ids=[text for text, _ in BOUND])
def test_names_become_metrics(text: str, parts: list[tuple[str, ...]], subjects: Subjects) -> None:
    assert list(subjects.bind(parse(text, "plan.toml"), "plan.toml").parts) == parts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "P99 of one-way delay of surfers < 1 s",
            "one-way delay is not measured of `surfers`; write such as",
        ),
        ("P99 of one-way delay < 1 s", "say whose one-way delay: of `calls`, `gold`"),
        ("R of gold > 80", 'it needs a codec: give the flows `codec = "g711-plc"`'),
        ("loss of EFF < 1 %", "there is no `EFF` with a loss"),
        ("loss of CS7 < 1 %", "no flows have the codepoint CS7"),
        ("loss of surfer < 1 %", "did you mean `surfers`?"),
        ("90 % of gold flows get their profile", "is not measured of `gold`"),
        ("links.uplink.utilisation > 0.1", "no such metric; near it are links.uplink.utilization"),
    ],
)
def test_names_that_lack_a_measure_are_refused(text: str, message: str, subjects: Subjects) -> None:
    with pytest.raises(PerhopError) as caught:
        subjects.bind(parse(text, "plan.toml"), "plan.toml")
    assert message in str(caught.value)


def test_a_codepoint_stands_for_all_groups_that_have_it_with_all_their_losses(subjects: Subjects) -> None:
    bound = subjects.bind(parse("loss of AF11 < 5 %", "plan.toml"), "plan.toml")
    losses = ("loss", "policing_ratio", "link_loss")
    assert bound.parts == tuple(
        tuple(f"flows.{name}.{loss}" for loss in losses) for name in ("gold", "gold mail")
    )


def objective(text: str) -> Objective:
    return parse(text, "plan.toml")


def test_margins_lead_from_the_bound_to_the_best_value() -> None:
    assert objective("P99 of one-way delay of voice < 20 ms").margin(0.015) == pytest.approx(0.25)
    assert objective("P99 of one-way delay of voice < 20 ms").margin(0.03) == pytest.approx(-0.5)
    assert objective("R of voice > 80").margin(93.2) == pytest.approx(1.0)
    assert objective("MOS of voice > 4").margin(4.25) == pytest.approx(0.5)
    assert objective("throughput of gold > 2 Mbit/s").margin(3e6) == pytest.approx(0.5)
    assert objective("90 % of gold flows get their profile").margin(0.95) == pytest.approx(0.5)
    assert objective("100 % of gold flows get their profile").margin(0.95) == pytest.approx(-0.05)


@pytest.mark.parametrize(
    "pair",
    [
        ("loss of sources < 1 %", "loss of sources > 2 %"),
        ("loss of sources < 1 %", "loss of sources >= 1 %"),
        ("loss of sources < 1 %", "flows.sources.loss > 2 %"),
        ("P50 of waiting time of edge > 20 ms", "P99 of waiting time of edge < 10 ms"),
        ("loss of sources < 1 % in 60 % of runs", "loss of sources > 2 % in 60 % of runs"),
    ],
)
def test_objectives_that_contradict_each_other_are_refused(tmp_path: Path, pair: tuple[str, str]) -> None:
    path = tmp_path / "plan.toml"
    for listed in (pair, pair[::-1]):
        text = POLICED.replace('["loss of sources < 1 %"]', json.dumps(listed))
        path.write_text(text, encoding="utf-8")
        with pytest.raises(PerhopError, match="contradict each other") as caught:
            read_plan(path)
        assert "plan.toml: `objectives`" in str(caught.value)
        assert all(repr(one) in str(caught.value) for one in pair)


@pytest.mark.parametrize(
    "pair",
    [
        ("loss of sources < 2 %", "loss of sources > 1 %"),
        ("loss of sources <= 1 %", "loss of sources >= 1 %"),
        ("P99 of waiting time of edge > 20 ms", "P50 of waiting time of edge < 10 ms"),
        ("loss of sources < 1 % in 50 % of runs", "loss of sources > 2 % in 50 % of runs"),
        ("loss of sources < 1 % in 60 % of runs", "loss of sources > 2 %"),
        ("utilization of edge > 50 %", "loss of sources < 1 %"),
    ],
)
def test_objectives_that_may_both_hold_are_taken(tmp_path: Path, pair: tuple[str, str]) -> None:
    path = tmp_path / "plan.toml"
    text = POLICED.replace('["loss of sources < 1 %"]', json.dumps(pair))
    path.write_text(text, encoding="utf-8")
    assert len(read_plan(path).bounds) == 2
