"""Sweeps: what a file means, what is refused, and that results depend on file and engine alone."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import qmc
from tests.python.output.pages import check, titles
from tests.python.sweeps.running import quietly

import perhop as package
from perhop import _engine
from perhop.errors import PerhopError, ScenarioError
from perhop.measures.fairness import histogram_quantile
from perhop.runs.companions import Gathered, companions
from perhop.runs.metrics import measure, names_of
from perhop.scenario.document import fraction
from perhop.scenario.paths import put
from perhop.scenario.ranges import parse_range, plain, text_of
from perhop.show.metric_names import shown_name
from perhop.show.numbers import short
from perhop.show.sheet import styled
from perhop.statistics.intervals import Estimate, estimate
from perhop.stores.sweeps import SweepStore
from perhop.sweeps.backend import Failed, LocalBackend, Task
from perhop.sweeps.job import Swept, Workplace
from perhop.sweeps.pictures import Marks, _marks_sheet, drawn, html_plots, waiting_times
from perhop.sweeps.plan import Given, Point, SweepPlan, read_plan, sample
from perhop.sweeps.report import write_sweep
from perhop.sweeps.summary import PointSummary, sample_frame
from perhop.sweeps.tuning import read_tuning

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

GRID = """\
scenario = "small.toml"
runs = 3
[set]
duration = "1s"
[grid]
"flows.gold.count" = [1, 2]
"links.bottleneck.queue.total" = ["5/15/0.1", "3/9/0.1"]
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "sweep.toml"
    path.write_text(text, encoding="utf-8")
    return path


def plan_of(tmp_path: Path, text: str) -> SweepPlan:
    return read_plan(write(tmp_path, text), Given())


def sweep(path: Path, store: Path, given: Given | None = None, jobs: int = 2) -> Swept:
    return quietly(path, Workplace(store, "local", jobs, None), given)


def factors(plan: SweepPlan) -> list[tuple[Any, ...]]:
    return [tuple(point.factors.values()) for point in plan.points]


# ---------------------------------------------------------------- what a file means


@pytest.mark.usefixtures("small")
def test_a_grid_is_every_combination(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, GRID)
    assert factors(plan) == [(1, "5/15/0.1"), (1, "3/9/0.1"), (2, "5/15/0.1"), (2, "3/9/0.1")]
    last = json.loads(plan.points[3].scenario)
    assert last["duration"] == "1s"
    assert last["flows"][0]["count"] == 2
    assert last["links"]["bottleneck"]["queue"]["total"] == "3/9/0.1"
    assert (plan.runs, plan.seed, plan.until) == (3, 1, None)


@pytest.mark.usefixtures("small")
def test_a_value_may_stand_in_several_rows_of_a_list(tmp_path: Path) -> None:
    text = """
scenario = "small.toml"
[set]
"links.bottleneck.queue.total" = "{min}/{max}/0.1"
[list]
min = [3, 3, 5]
max = [9, 15, 15]
"""
    assert factors(plan_of(tmp_path, text)) == [(3, 9), (3, 15), (5, 15)]


@pytest.mark.usefixtures("small")
def test_a_list_is_one_point_a_line_and_designs_combine(tmp_path: Path) -> None:
    text = """
scenario = "small.toml"
[set]
"links.bottleneck.queue.total" = "{min}/{max}/0.1"
[list]
min = [3, 5]
max = [9, 15]
[grid]
"flows.gold.profile.rate" = ["0.2Mbps", "0.4Mbps"]
"""
    plan = plan_of(tmp_path, text)
    assert factors(plan) == [("0.2Mbps", 3, 9), ("0.2Mbps", 5, 15), ("0.4Mbps", 3, 9), ("0.4Mbps", 5, 15)]
    assert json.loads(plan.points[1].scenario)["links"]["bottleneck"]["queue"]["total"] == "5/15/0.1"


TRAFFIC = """
duration = "1s"
links.line = { from = "a", to = "b", rate = "5Mbps", delay = "1ms", queue = { aqm = "codel" } }
flows = [
  { name = "bulk", from = "a", to = "b", transport = { tcp = "linux" } },
  { name = "file", from = "a", to = "b", volume = "30kB", transport = { tcp = "linux" } },
  { name = "web", from = "a", to = "b", arrivals = { rate = "9/s" }, sizes = { constant = "9kB" }, transport = { tcp = "linux" } },
  { name = "voice", from = "a", to = "b", transport = { udp = "cbr", rate = "80kbps", packet = "200B" } },
  { name = "call", from = "a", to = "b", codec = "g711-plc", transport = { udp = "cbr", rate = "80kbps", packet = "200B" } },
  { name = "office", from = "a", to = "b", application = { model = "web" }, transport = { tcp = "linux" } },
]
"""  # noqa: E501


def test_a_sweep_without_metrics_shows_what_its_traffic_is_about(tmp_path: Path) -> None:
    (tmp_path / "traffic.toml").write_text(TRAFFIC, encoding="utf-8")
    text = 'scenario = "traffic.toml"\nruns = 1\n[grid]\n"links.line.rate" = ["5Mbps", "9Mbps"]\n'
    plan = plan_of(tmp_path, text)
    assert plan.metrics == (
        "flows.bulk.throughput_bps",
        *(f"flows.file.{name}" for name in ("completion_s", "unfinished")),
        *(f"populations.web.{name}" for name in ("completion_p50_s", "completion_p99_s", "unfinished")),
        *(f"flows.voice.{name}" for name in ("throughput_bps", "one_way_delay_p99_s", "loss")),
        *(f"flows.call.{name}" for name in ("mos", "one_way_delay_p99_s", "loss")),
        *(f"applications.office.{name}" for name in ("page_mean_s", "page_p95_s")),
        *(f"links.line.{name}" for name in ("utilization", "delay_p99_s")),
    )
    known = names_of(plan.points[0].scenario)
    assert set(plan.metrics) <= set(known)


def test_a_link_of_a_topology_can_be_varied(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "graph.graphml").write_text(
        '<graphml><graph><node id="a"/><node id="b.c"/><node id="d"/>'
        '<edge source="a" target="b.c"/><edge source="b.c" target="d"/></graph></graphml>',
        encoding="utf-8",
    )
    (tmp_path / "net" / "scenario.toml").write_text(
        """
duration = "1s"
[topology]
graph = { file = "graph.graphml" }
link = { rate = "5Mbps", delay = "1ms" }
[[flows]]
name = "tcp"
from = "a"
to = "d"
transport = { tcp = "newreno" }
""",
        encoding="utf-8",
    )
    text = """
scenario = "net/scenario.toml"
[set]
"topology.link.delay" = "7ms"
[list]
"links.a--b.c.rate" = ["2Mbps", "3Mbps"]
"topology.link.rate" = ["8Mbps", "9Mbps"]
"""
    plan = plan_of(tmp_path, text)
    found = [json.loads(_engine.written_out(point.scenario))["links"] for point in plan.points]
    # Whatever is written first, the link has what it is not given from the topology of its point.
    assert [{name: (link["rate"], link["delay"]) for name, link in links.items()} for links in found] == [
        {"a--b.c": ("2Mbps", "7ms"), "b.c--d": ("8Mbps", "7ms")},
        {"a--b.c": ("3Mbps", "7ms"), "b.c--d": ("9Mbps", "7ms")},
    ]
    with pytest.raises(PerhopError, match=r"`links` has no `a--b`; did you mean `a--b\.c`\?"):
        plan_of(tmp_path, text.replace("a--b.c", "a--b"))


@pytest.mark.usefixtures("small")
def test_named_values_may_be_tables(tmp_path: Path) -> None:
    text = """
scenario = "small.toml"
[grid]
[grid."links.bottleneck.queue"]
red = { aqm = "red", limit = "50p", thresholds = "5/15/0.1" }
tail = { aqm = "drop-tail", limit = "50p" }
"""
    plan = plan_of(tmp_path, text)
    assert factors(plan) == [("red",), ("tail",)]
    rules = [json.loads(point.scenario)["links"]["bottleneck"]["queue"]["aqm"] for point in plan.points]
    assert rules == ["red", "drop-tail"]


@pytest.mark.parametrize(("dimensions", "samples", "seed"), [(1, 1, 0), (3, 10, 5), (7, 100, 42)])
def test_a_latin_hypercube_is_that_of_scipy(dimensions: int, samples: int, seed: int) -> None:
    expected = qmc.LatinHypercube(dimensions, rng=np.random.default_rng(seed)).random(samples)
    np.testing.assert_array_equal(sample(dimensions, samples, seed), expected)


@pytest.mark.usefixtures("small")
def test_a_latin_hypercube_has_one_point_in_each_part_of_each_range(tmp_path: Path) -> None:
    text = """
scenario = "small.toml"
[set]
"links.bottleneck.queue.total" = "5/15/{p}"
[latin-hypercube]
samples = 8
"links.bottleneck.rate" = "1Mbps..9Mbps"
p = "0.001..0.1 log"
"flows.gold.count" = "1..8"
"""
    plan = plan_of(tmp_path, text)
    rates = sorted(float(str(rate).removesuffix("Mbps")) for rate, _, _ in factors(plan))
    assert [math.floor(rate) for rate in rates] == [1, 2, 3, 4, 5, 6, 7, 8]
    decades = sorted(8 * (3 + math.log10(p)) / 2 for _, p, _ in factors(plan))
    assert [math.floor(part) for part in decades] == list(range(8))
    assert sorted(count for _, _, count in factors(plan)) == list(range(1, 9))
    assert factors(plan_of(tmp_path, text)) == factors(plan)
    assert factors(plan_of(tmp_path, text.replace("samples = 8", "samples = 8\nseed = 2"))) != factors(plan)


@pytest.mark.usefixtures("small")
def test_an_inline_scenario(tmp_path: Path) -> None:
    scenario = json.loads(_engine.scenario_from_toml((tmp_path / "small.toml").read_text(), "x"))
    text = GRID.replace('scenario = "small.toml"\n', "") + "[scenario]\n"
    text += (
        'duration = "2s"\n[scenario.links.bottleneck]\nfrom = "a"\nto = "b"\nrate = "1Mbps"\ndelay = "1ms"\n'
    )
    text += 'queue = { aqm = "rio", limit = "50p", in = "10/30/0.02", total = "5/15/0.1" }\n'
    text += '[[scenario.flows]]\nname = "gold"\nfrom = "a"\nto = "b"\ntransport = { tcp = "newreno" }\n'
    plan = plan_of(tmp_path, text)
    assert len(plan.points) == 4
    assert json.loads(plan.points[0].scenario)["links"] != scenario["links"]


@given(st.floats(1e-6, 1e9), st.floats(0, 1, exclude_max=True), st.booleans())
def test_a_range_keeps_its_ends_and_six_digits(low: float, part: float, log: bool) -> None:
    text = f"{low:.6f}..{low * 3 + 1:.6f}Mbps".replace("..", "Mbps..") + (" log" if log else "")
    if not float(f"{low:.6f}"):
        return
    value = str(parse_range(text, "x").at(part))
    number = float(value.removesuffix("Mbps"))
    assert "e" not in value
    assert low * (1 - 1e-5) - 1e-6 <= number <= (low * 3 + 1) * (1 + 1e-5) + 1e-6


def test_plain_numbers() -> None:
    assert [plain(x) for x in (0.000123456789, 1234567.8, 20.0, 0.05)] == [
        "0.000123457",
        "1234568",
        "20",
        "0.05",
    ]
    assert [text_of(x) for x in (True, 1e-05, 3, "rio")] == ["true", "0.00001", "3", "rio"]


def test_paths_take_the_longest_name_and_count_lists() -> None:
    scenario: dict[str, Any] = {
        "links": {"a": {"rate": 1}, "a.b": {"rate": 2}},
        "flows": [{"name": "x.y"}, {"name": "z"}],
        "paths": {"p": {"via": ["r", "s"]}},
    }
    put(scenario, "links.a.b.rate", 3, "here")
    put(scenario, "flows.x.y.count", 4, "here")
    put(scenario, "flows.1.count", 5, "here")
    put(scenario, "paths.p.via.0", "q", "here")
    put(scenario, "probes", {"interval": "1s"}, "here")
    assert scenario["links"] == {"a": {"rate": 1}, "a.b": {"rate": 3}}
    assert scenario["flows"] == [{"name": "x.y", "count": 4}, {"name": "z", "count": 5}]
    assert scenario["paths"]["p"]["via"] == ["q", "s"]
    assert scenario["probes"] == {"interval": "1s"}


def test_a_parameter_of_a_congestion_control_is_one_of_the_control_that_other_paths_choose(
    tmp_path: Path,
) -> None:
    (tmp_path / "traffic.toml").write_text(TRAFFIC, encoding="utf-8")
    text = """
scenario = "traffic.toml"
[set]
"flows.bulk.ecn" = "classic"
"flows.web.transport.tcp" = "quic"
[grid]
"flows.bulk.transport.congestion.ecn-backoff" = [true]
"flows.bulk.transport.tcp" = ["newreno", "linux"]
"flows.web.transport.congestion.alpha" = ["raised"]
"flows.web.transport.congestion" = ["cubic"]
"""
    points = [json.loads(point.scenario)["flows"] for point in plan_of(tmp_path, text).points]
    assert [point[0]["transport"]["congestion"] for point in points] == [
        {"control": "reno", "ecn-backoff": True},
        {"control": "cubic", "ecn-backoff": True},
    ]
    assert points[0][2]["transport"]["congestion"]["alpha"] == "raised"


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("runs = 3", "rums = 3", "sweep.toml: unknown key `rums`; did you mean `runs`?"),
        ("runs = 3", "runs = 0", "`runs` must be a whole number from 1, not 0"),
        ("runs = 3", 'runs = "3"', "`runs` must be a whole number"),
        ("runs = 3", "runs = 1000000000000", "`runs` must be at most 100,000, not 1000000000000"),
        ("runs = 3", "seed = -1", "`seed` must be a whole number from 0"),
        ("runs = 3", 'metrics = "x"', "`metrics` must be a list of text"),
        ("runs = 3", 'metrics = ["flow.*"]', "`metrics`: nothing measured is called `flow.*`"),
        ("runs = 3", 'until = "two"', "must be a fraction such as \"2%\", not 'two'"),
        ("runs = 3", 'until = { with = "2%" }', "unknown key `with`; did you mean `width`?"),
        ("runs = 3", "runs = 3\nruns = 4", "sweep.toml: "),
        ("runs = 3", f"runs = {'1' * 5000}", "sweep.toml: a number has more than 4300 digits"),
        ("runs = 3", f"x = {'[' * 3000}{']' * 3000}", ": tables and lists lie more than 80 deep"),
        ("runs = 3", f"x{'.x' * 3000} = 1", ": tables and lists lie more than 80 deep"),
        ('"small.toml"', '"smal.toml"', "smal.toml: no such file"),
        ('scenario = "small.toml"', "", "needs a `scenario`"),
        ("flows.gold.count", "flows.gold.cont", "unknown key `cont`"),
        ("flows.gold.count", "flows.god.count", "`flows` has no `god`; did you mean `gold`?"),
        ("flows.gold.count", "flows.gold.name.count", "is 'gold', no table with a `count`"),
        ('"flows.gold.count"', "flows.gold.count", 'write a path in quotes, such as "flows.gold"'),
        ('duration = "1s"', 'links.bottleneck.rate = "1Mbps"', 'quotes, such as "links.bottleneck"'),
        ("[1, 2]", "[1, 0]", "point 3 (flows.gold.count = 0, links.bottleneck.queue.total = 5/15/0.1)"),
        ("[1, 2]", "[1, 1]", "has a value twice"),
        ("[1, 2]", "[]", "must be a list of values"),
        ("[1, 2]", "[[1], [2]]", "is no plain value"),
        ("[1, 2]", "[inf, 2.0]", "text, numbers, true and false only"),
        ('"3/9/0.1"', '"9/3/0.1"', "links.bottleneck.queue.total"),
        ('duration = "1s"', 'duration = "{time}"', "asks for `time`"),
        (
            "[grid]",
            "[list]\nx = [1, 2, 3]\ny = [1]\n[grid]",
            "columns must be of one length: `x` has 3, `y` has 1",
        ),
        ("[grid]", "[list]\nx = [1, 2, 1]\ny = [3, 3, 3]\n[grid]", "row 3 is row 1 again"),
        ("[grid]", '[list]\n"flows.gold.count" = [3]\n[grid]', "`flows.gold.count` is varied twice"),
        ('duration = "1s"', '"flows.0.count" = 3', "[set] `flows.0.count` overwrites `flows.gold.count`"),
        ("[grid]", '[list]\n"flows.0.count" = [3]\n[grid]', "`flows.0.count` overwrites `flows.gold.count`"),
        (
            'duration = "1s"',
            '"links.bottleneck.queue" = { aqm = "drop-tail", limit = "9p" }',
            "[set] `links.bottleneck.queue` overwrites `links.bottleneck.queue.total`",
        ),
        ("[grid]", '[latin-hypercube]\nx = "1..2"\n[grid]', "`samples` must be a whole number from 1"),
        ("[grid]", '[latin-hypercube]\nsamples = 2\nx = "1kbps..2Mbps"\n[grid]', "the same unit"),
        ("[grid]", '[latin-hypercube]\nsamples = 2\nx = "5..2"\n[grid]', "the lower one"),
        ("[grid]", f'[latin-hypercube]\nsamples = 2\nx = "5..{"9" * 400}"\n[grid]', "than any number"),
        ("[grid]", '[latin-hypercube]\nsamples = 2\nx = "0..2 log"\n[grid]', "begins above 0"),
        ("[grid]", '[latin-hypercube]\nsamples = 2\nx = "a few"\n[grid]', "is no range"),
    ],
)
@pytest.mark.usefixtures("small")
def test_a_wrong_sweep_is_named_by_file_and_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GRID
    with pytest.raises((PerhopError, ScenarioError)) as caught:
        plan_of(tmp_path, GRID.replace(old, new, 1))
    message = str(caught.value)
    assert said in message
    assert ".toml" in message
    assert "\n" not in message


def test_a_broken_base_is_named_by_its_own_file(tmp_path: Path, small: Path) -> None:
    small.write_text(small.read_text().replace('rate = "2Mbps"', 'rate = "2mbps"'))
    with pytest.raises(ScenarioError, match=r"small\.toml:7: links\.bottleneck\.rate"):
        plan_of(tmp_path, GRID)


@pytest.mark.usefixtures("small")
def test_too_much_is_refused_before_it_is_made(tmp_path: Path) -> None:
    many = ", ".join(map(str, range(1, 2001)))
    text = GRID.replace("[1, 2]", f"[{many}]") + f"a = [{many}]\n"
    with pytest.raises(PerhopError, match="more than 1,000,000"):
        plan_of(tmp_path, text)


@pytest.mark.usefixtures("small")
def test_the_command_refuses_before_the_work(perhop: Perhop, tmp_path: Path) -> None:
    write(tmp_path, GRID.replace("flows.gold.count", "flows.god.count"))
    done = perhop("sweep", "sweep.toml", "--store", "kept")
    assert (done.code, done.out) == (2, "")
    assert (
        done.err.strip().splitlines()[-1].startswith("error: sweep.toml: `flows.god.count`: `flows` has no")
    )
    assert not (tmp_path / "kept").exists()


# ---------------------------------------------------------------- what is measured


@pytest.mark.usefixtures("small")
def test_metrics_are_those_of_a_run(tmp_path: Path) -> None:
    swept = sweep(write(tmp_path, GRID), tmp_path / "store")
    with SweepStore(tmp_path / "store", lambda _: None) as store:
        frame = sample_frame(swept.plan, swept.counts, store)
    result = package.run(json.loads(swept.plan.points[2].scenario), runs=3)
    own = frame.filter(pl.col("point") == 2)

    def mean(metric: str) -> float:
        values = own.filter(pl.col("metric") == metric)["value"]
        assert len(values) == 3
        return float(values.to_numpy().mean())

    classes = {row["class"]: row for row in result.classes().iter_rows(named=True)}
    link = next(result.link_summary().iter_rows(named=True))
    assert mean("flows.gold.throughput_bps") == pytest.approx(classes["gold"]["throughput_bps"], rel=1e-12)
    assert mean("links.bottleneck.utilization") == pytest.approx(link["utilization"], rel=1e-12)
    kept = [measure(run.raw) | dict(companions(run.raw, result.scenario)) for run in result.runs]
    p95 = Gathered({name: [run[name] for run in kept] for name in kept[0]}).of("links.bottleneck.delay_p95_s")
    assert p95.values == tuple(own.filter(pl.col("metric") == "links.bottleneck.delay_p95_s")["value"])
    assert p95.estimate is not None
    assert p95.estimate.mean == pytest.approx(link["delay_p95_s"], rel=1e-3)
    assert mean("links.bottleneck.mean_queue_packets") == pytest.approx(link["mean_queue_packets"], rel=1e-12)
    bottleneck = result.runs[0].raw["links"][0]
    assert bottleneck["name"] == "bottleneck"
    first = own.filter((pl.col("metric") == "links.bottleneck.delay_p99_s") & (pl.col("seed") == 1))["value"][
        0
    ]
    counts = bottleneck["delay_s"]["counts"].sum(axis=1).tolist()
    edges = bottleneck["delay_s"]["edges"].tolist()
    assert first == histogram_quantile(edges, counts, 0.99, bottleneck["delay_s"]["longest"].tolist())


def test_every_metric_is_in_the_documentation(small: Path) -> None:
    documented = set(re.findall(r"`([^`]+)`", Path("docs/measures.md").read_text(encoding="utf-8")))
    examples = ("queues", "asymmetric", "cellular", "transfers")
    for path in (small, *(Path(f"examples/{name}.toml") for name in examples)):
        text = path.read_text(encoding="utf-8")
        names = names_of(_engine.scenario_from_toml(text, "x"))
        assert len(set(names)) == len(names)
        for name in names:
            kind, _, rest = name.partition(".")
            last = rest.rpartition(".")[2]
            of_link = [f"links.NAME.{last}", f"links.NAME[.classes.CLASS].{last}"]
            forms = {
                "flows": [f"flows.NAME.{last}"],
                "links": of_link,
                "populations": [f"populations.NAME.{last}", f"populations.NAME[.SIZE].{last}"],
            }
            assert documented & set(forms.get(kind, [name])), name


@pytest.mark.parametrize("name", ["sweep-thresholds", "sweep-sample", "tune-thresholds"])
def test_the_examples_are_valid(name: str) -> None:
    path = Path("examples") / f"{name}.toml"
    if name.startswith("tune"):
        assert read_tuning(path, trials=None, runs=None, seed=None).trials == 60
    else:
        assert read_plan(path, Given()).points


# ---------------------------------------------------------------- that it is the same every time


@pytest.mark.usefixtures("small")
def test_results_do_not_depend_on_threads_or_on_what_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path, GRID)
    one = sweep(path, tmp_path / "one", jobs=1)
    two = sweep(path, tmp_path / "two", jobs=2)
    assert (one.work.simulated, one.work.found) == (12, 0)
    part = sweep(path, tmp_path / "three", Given(runs=2))
    rest = sweep(path, tmp_path / "three")
    assert (part.work.simulated, rest.work.simulated, rest.work.found) == (8, 4, 8)
    again = sweep(path, tmp_path / "one")
    assert (again.work.simulated, again.work.found) == (0, 12)
    assert one.json() == two.json() == rest.json() == again.json()
    assert one.json() != part.json()
    with SweepStore(tmp_path / "three", pytest.fail) as store:
        assert store.runs().select("scenario", "seed").n_unique() == 12


@pytest.mark.usefixtures("small")
def test_points_that_are_alike_share_their_runs(tmp_path: Path) -> None:
    text = GRID.replace('"3/9/0.1"', '"5/15/0.10"')
    swept = sweep(write(tmp_path, text), tmp_path / "store")
    distinct = len({point.key for point in swept.plan.points})
    assert swept.work.simulated == 3 * distinct
    assert [len(summary.estimates) for summary in swept.summaries] == [5] * 4


@pytest.mark.usefixtures("small")
def test_what_the_command_leaves(perhop: Perhop, tmp_path: Path) -> None:
    write(tmp_path, GRID)
    done = perhop("sweep", "sweep.toml", "--store", "kept", "--out", "out", "--json", "-")
    assert done.code == 0, done.err
    content = json.loads(done.out)
    assert [point["factors"]["flows.gold.count"] for point in content["points"]] == [1, 1, 2, 2]
    assert content["points"][0]["metrics"]["flows.gold.throughput_bps"]["runs"] == 3
    assert "12 runs simulated, 0 reused from kept" in done.err
    frame = pl.read_parquet(tmp_path / "out" / "samples.parquet")
    assert frame.columns[:3] == ["point", "flows.gold.count", "links.bottleneck.queue.total"]
    assert frame["seed"].unique().sort().to_list() == [1, 2, 3]
    page = check((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert "perhop sweep sweep.toml --store kept --out out" in page.text
    assert len(set(titles(page))) == len(titles(page))
    # The answer, then every picture, then every point.
    first = page.source[: page.source.index("<main>")]
    assert "<strong>gold throughput</strong> goes from " in first
    assert page.source.rindex("<svg") < page.source.index("<table")
    plots = sorted(path.name for path in (tmp_path / "out" / "plots").iterdir())
    assert {"sweep-flows-gold-throughput-bps.png", "sweep-waiting-times.png"} <= set(plots)
    again = perhop("sweep", "sweep.toml", "--store", "kept")
    assert "0 runs simulated, 12 reused from kept" in again.out
    assert max(map(len, again.out.splitlines())) <= 110


@pytest.mark.usefixtures("small")
def test_settings_are_shown_as_they_were_written(tmp_path: Path) -> None:
    text = GRID.replace('"links.bottleneck.queue.total" = ["5/15/0.1", "3/9/0.1"]', "").replace(
        "[1, 2]", "[1]"
    )
    text += '"links.bottleneck.delay" = ["20.315578ms", "20.3001ms", "20.3002ms"]\n'
    swept = sweep(write(tmp_path, text), tmp_path / "store")
    write_sweep(tmp_path / "out", swept, tmp_path / "store", "perhop sweep")
    source = check((tmp_path / "out" / "report.html").read_text(encoding="utf-8")).source
    answer = source[: source.index("<main>")]
    assert re.search(r"\(at delay 20\.3\d+ms\) to .*\(at delay 20\.3\d+ms\)", answer)
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", source)
    for summary in swept.summaries:
        assert cells.count(str(summary.point.factors["links.bottleneck.delay"])) >= 1
    # Two values that differ in the fourth digit are two ticks that differ.
    ticks = re.findall(r">(20\.3\d*)</text>", html_plots(swept.summaries, "sweep")[0].panels[0])
    assert len(ticks) == len(set(ticks)) > 0


@pytest.mark.usefixtures("small")
def test_a_sample_is_drawn_as_marks(tmp_path: Path) -> None:
    text = GRID.partition("[grid]")[0] + '[latin-hypercube]\nsamples = 3\n"flows.gold.count" = "1..3"\n'
    text += (
        '"links.bottleneck.rate" = "1Mbps..2Mbps"\n[grid]\n"flows.gold.transport.tcp" = ["reno", "newreno"]\n'
    )
    swept = sweep(write(tmp_path, text), tmp_path / "store")
    assert all(isinstance(entry, Marks) for entry in drawn(swept.summaries))
    page = html_plots(swept.summaries, "sweep")
    assert len({plot.picture.name for plot in page}) == 5
    assert len(page[0].panels) == 2
    assert "newreno" in page[0].panels[0]


def test_error_bars_of_a_sample_are_the_intervals() -> None:
    """Error bars may be longer on one side, and a mark of fewer runs is hollow."""

    def point(at: float, mean: float, low: float, high: float, of: int) -> PointSummary:
        found = Estimate(mean, (low, high), 6, of)
        return PointSummary(Point({"a.count": at, "b.delay": f"{2 * at}ms"}, "{}", ""), 6, {"loss": found})

    ends = [(0.0, 0.0, 0.05), (0.9, 0.2, 1.0), (0.5, 0.4, 0.6)]
    points = [point(at, *one, 7 if at == 2 else 6) for at, one in enumerate(ends)]
    (marks,) = drawn(points)
    assert isinstance(marks, Marks)
    with styled():
        axes = _marks_sheet(marks).figure.axes[0]
    bars: list[Any] = list(axes.containers)
    found = sorted((tuple(bar[0]), tuple(bar[1])) for one in bars for bar in one.lines[2][0].get_segments())
    assert np.asarray(found) == pytest.approx(
        np.array([[(at, 100 * low), (at, 100 * high)] for at, (_, low, high) in enumerate(ends)])
    )
    hollow = [one for one in bars if one.lines[0].get_markerfacecolor() == "white"]
    assert [list(one.lines[0].get_xdata()) for one in hollow] == [[2.0]]
    assert "1 of 3 marks are hollow" in html_plots(points, "sweep")[0].caption


def test_a_sample_has_no_empty_pictures_and_ticks_that_do_not_overlap() -> None:
    at = [13.2191, 20.3981, 30.9019, 33.9267, 47.7044, 52.5514]
    points = [
        PointSummary(
            Point({"a.count": count, "b.delay": f"{delay}ms"}, "{}", ""),
            2,
            {"loss": estimate([0.1, 0.2]), "throughput_bps": None},
        )
        for count, delay in zip((4, 8, 5, 1, 2, 6), at, strict=True)
    ]
    (plot,) = html_plots(points, "sweep")
    assert plot.title == "loss, %"
    counts, delays = (re.findall(r">([\d.]+)</text>", panel) for panel in plot.panels)
    assert {"1", "2", "4", "5", "6", "8"} <= set(counts)
    assert not {str(delay) for delay in at} & set(delays)


def test_waiting_times_are_drawn_by_class_where_a_queue_tells_classes_apart() -> None:
    def point(count: int, kind: str, scale: float) -> PointSummary:
        ms = {
            f"links.up.classes.{name}.delay_p99_s": estimate([at * scale, at * scale])
            for name, at in (("ef", 1e-3), ("rest", 2e-3))
        }
        whole = {"links.up.delay_p50_s": estimate([9.0]), "links.down.delay_p50_s": None}
        factors: dict[str, str | int | float | bool] = {"flows.x.count": count, "flows.x.transport.tcp": kind}
        return PointSummary(Point(factors, "{}", ""), 2, {**ms, **whole})

    points = [point(count, kind, 1.0 + count) for count in (1, 2, 3) for kind in ("reno", "newreno")]
    ((plot, rows),) = waiting_times(points)
    found = {(row.factors["panel"], row.factors["x"]): row.mean for row in rows}
    assert len(found) == 12
    assert found["up ef, tcp reno", 2.0] == pytest.approx(3.0)
    assert found["up rest, tcp newreno", 3.0] == pytest.approx(8.0)
    assert plot.title == "Waiting time of packets: median and tail"
    assert waiting_times(points[:1]) == []


def test_names_for_readers() -> None:
    assert shown_name("flows.gold.throughput_bps") == "gold throughput, Mbit/s"
    assert shown_name("links.up.classes.ef.delay_p95_s") == "up ef delay p95, ms"
    assert shown_name("utilization") == "utilization, %"
    # As tables of `perhop run` call it.
    assert shown_name("flows.files.completion_s") == "files FCT, ms"
    assert shown_name("populations.web.completion_p99_s") == "web FCT p99, ms"
    assert shown_name("populations.web.short.completion_p50_s") == "web short FCT p50, ms"
    assert shown_name("applications.office.page_p95_s") == "office page p95, ms"
    assert shown_name("applications.film.stall_seconds_per_hour") == "film stalled, s/h"
    assert shown_name("flows.calls.mos") == "calls MOS"


# ---------------------------------------------------------------- stopping early


@pytest.mark.usefixtures("small")
def test_a_point_stops_when_its_intervals_are_tight(tmp_path: Path) -> None:
    text = GRID.replace(
        "runs = 3",
        'runs = 12\nuntil = { width = "8%", metrics = ["links.*.utilization"], least-runs = 4 }',
    )
    text = text.replace('duration = "1s"', 'duration = "4s"')
    path = write(tmp_path, text)
    stopped = sweep(path, tmp_path / "a")
    assert min(stopped.counts) < 12
    assert (stopped.work.simulated, stopped.work.found) == (sum(stopped.counts), 0)
    assert min(stopped.counts) >= 4
    for runs, point in zip(stopped.counts, json.loads(stopped.json())["points"], strict=True):
        used = point["runs"]
        assert used == runs
    within = [point["within"] for point in json.loads(stopped.json())["points"]]
    assert all(tight for runs, tight in zip(stopped.counts, within, strict=True) if runs < 12)
    fixed = sweep(path, tmp_path / "b", Given(runs=12, until="0.01%"))
    assert fixed.counts == [12] * 4
    assert not any(point["within"] for point in json.loads(fixed.json())["points"])
    said = " ".join(fixed.text().split())
    assert "At 4 of 4 points, first at " in said
    assert "links.*.utilization are wider than ±0.01 % after 12 runs, the most that it makes; the" in said
    widest = [point["widest"] for point in json.loads(fixed.json())["points"]]
    assert f"the widest is ±{short(100 * max(widest), 2)} %." in said
    said = " ".join(sweep(path, tmp_path / "a", Given(until="50%")).text().split())
    assert re.search(r"of links\.\*\.utilization are within ±50 %; the widest is ±[0-9.]+ %\.", said)
    # A store that holds more runs than it takes gives the same points the same runs.
    assert sweep(path, tmp_path / "b", jobs=1).json() == stopped.json()
    for index, runs in enumerate(stopped.counts):
        watched = [
            s for n, s in stopped.summaries[index].estimates.items() if n == "links.bottleneck.utilization"
        ]
        found = watched[0]
        assert found is not None
        assert found.half_width is not None
        assert runs == 12 or found.half_width <= 0.08 * found.mean


def test_the_former_name_of_the_key_is_refused_with_the_new_one(tmp_path: Path) -> None:
    path = write(tmp_path, GRID.replace("runs = 3", 'until-ci = "2%"'))
    with pytest.raises(PerhopError, match="unknown key `until-ci`; did you mean `until`"):
        read_plan(path, Given())


@pytest.mark.usefixtures("small")
def test_intervals_that_decide_need_some_runs(tmp_path: Path) -> None:
    with pytest.raises(PerhopError, match=r"sweep\.toml: `runs` must be at least 4 where intervals decide"):
        read_plan(write(tmp_path, GRID), Given(until="2%"))
    with pytest.raises(PerhopError, match=r"^runs must be at least 4 where intervals decide"):
        read_plan(write(tmp_path, GRID), Given(until="2%", runs=3))


# ---------------------------------------------------------------- the backend


def test_a_failing_run_is_handed_over_as_such_and_the_others_go_on(small: Path) -> None:
    scenario = _engine.scenario_from_toml(small.read_text().replace("5s", "0.2s"), "x")
    tasks = [Task(0, 1), Task(1, 1), Task(0, 2)]
    found = [one for group in LocalBackend(1).run([scenario, "{}"], tasks) for one in group]
    assert [(task, isinstance(run, Failed)) for task, run in found] == [
        (tasks[0], False),
        (tasks[1], True),
        (tasks[2], False),
    ]
    run = found[1][1]
    assert isinstance(run, Failed)
    assert "missing" in run.text


# ---------------------------------------------------------------- the command


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--runs", "0"), "--runs must be at least 1"),
        (("--jobs", "0"), "--jobs must lie between"),
        (("--until", "2"), '--until must be a fraction such as "2%"'),
        (("--address", "head:6379"), "--address names a Ray cluster; give the backend ray, too"),
        (("--store", ""), "--store: a name is empty"),
        (("--until", "tight"), '--until must be a fraction such as "2%"'),
        (("--store", "small.toml"), "--store small.toml: not a directory"),
        (("--backend", "cloud"), "--backend must be local or ray, not 'cloud'"),
        (("--store", "-"), "--store -: standard output takes no folder"),
        (("--csv", "-"), "--csv -: standard output takes no folder"),
        (("--json", "nowhere/x.json"), "--json nowhere/x.json: cannot be written"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, tuple) else "",
)
@pytest.mark.usefixtures("small")
def test_a_wrong_option_is_refused(
    perhop: Perhop, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    write(tmp_path, GRID)
    done = perhop("sweep", "sweep.toml", *options)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
    assert done.err.strip().splitlines()[-1].startswith("error: ")
    assert said in done.err


@pytest.mark.parametrize("text", ["2%", " 2 % ", "0.02"])
def test_a_width_is_a_percentage_or_a_fraction(text: str) -> None:
    assert fraction(text, "--until") == 0.02


@pytest.mark.usefixtures("small")
def test_a_pipe_gets_no_progress(perhop: Perhop, tmp_path: Path) -> None:
    write(tmp_path, GRID)
    done = perhop("sweep", "sweep.toml", "--until", "90%", "--runs", "4")
    assert done.code == 0
    assert done.err.splitlines() == [
        "4 points, 4 runs of each, until the 95 % intervals of flows.*.throughput_bps are within ±90 %"
    ]


@pytest.mark.parametrize("command", ["sweep", "tune"])
def test_a_file_that_is_refused_leaves_nothing_behind(tmp_path: Path, perhop: Perhop, command: str) -> None:
    path = write(tmp_path, GRID)  # names a scenario that is not there
    before = sorted(tmp_path.iterdir())
    done = perhop(command, str(path), "--store", str(tmp_path / "store"), "--out", str(tmp_path / "out"))
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert sorted(tmp_path.iterdir()) == before
