"""Every measure is one entry of the catalog, and everything that shows measures follows from it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import perhop as package
from perhop import _engine
from perhop.commands.cli import app
from perhop.measures import catalog, finite_flows, flow_table, listing, naming
from perhop.measures.fairness import histogram_quantile
from perhop.runs import outcome
from perhop.runs.companions import Gathered, companions
from perhop.runs.metrics import measure
from perhop.runs.summary import to_json
from perhop.show.readable import LEFT_OUT_FIRST, end_names, readable

if TYPE_CHECKING:
    from perhop.measures.run import Run
    from perhop.runs.result import Result

SIZED = """\
duration = "4s"

[links.link]
from = "a"
to = "b"
rate = "8Mbps"
delay = "10ms"
queue = { aqm = "drop-tail", limit = "50p" }

[[flows]]
name = "sized"
count = 2
from = "a"
to = "b"
transport = { udp = "cbr", rate = "4Mbps", packet = "1000B", jitter = 0 }
volume = "9720B"

[[flows]]
name = "stopped"
from = "a"
to = "b"
transport = { tcp = "newreno" }
volume = "100MB"
start = "0s"
stop = "1s"

[[flows]]
name = "endless"
from = "a"
to = "b"
transport = { udp = "cbr", rate = "1Mbps" }
"""


@pytest.fixture(scope="module")
def queues() -> Result:
    """Runs with every kind of number: several queues, colors, datagrams and TCP."""
    return package.run(Path("examples/queues.toml"), runs=2)


@pytest.fixture(scope="module")
def sized() -> Result:
    return package.run(SIZED, runs=2)


def link_of(run: Run) -> Any:  # noqa: ANN401
    return next(link for link in run.raw["links"] if link["classes"])


def test_the_engines_dictionaries_have_what_is_declared(queues: Result) -> None:
    raw = queues.runs[0].raw
    link = link_of(queues.runs[0])
    assert list(raw["flows"])[2:] == [entry.name for entry in catalog.FLOW]
    for found, entries in ((link, (*catalog.LINK, *catalog.QUEUE)), (link["classes"][0], catalog.QUEUE)):
        assert list(found)[1 : len(entries) + 1] == [entry.name for entry in entries]
        for entry in entries:
            kinds: dict[str, tuple[type, ...]]
            kinds = {
                "count": (int,),
                "number": (float,),
                "optional-count": (int, type(None)),
                "optional": (float, type(None)),
            }
            assert isinstance(found[entry.name], kinds[entry.kind]), entry.name


def test_the_typed_dictionaries_are_the_engines(queues: Result) -> None:
    raw = queues.runs[0].raw
    link = link_of(queues.runs[0])
    pairs = [
        (outcome.Outcome, raw),
        (outcome.Flows, raw["flows"]),
        (outcome.Link, link),
        (outcome.PacketsOfQueue, link["classes"][0]),
        (outcome.Delays, link["delay_s"]),
        (outcome.Packets, link["measured"]),
        (outcome.Group, raw["groups"][0]),
        (outcome.Series, raw["series"]),
    ]
    for typed, found in pairs:
        assert set(get_type_hints(typed)) == set(found), typed


def test_frames_and_tables_have_the_columns_that_are_declared(queues: Result) -> None:
    colors = [f"_{color}" for color in ("green", "yellow", "red")]
    by_flow = [
        f"{entry.name}{color}"
        for entry in catalog.FLOW
        for color in (colors if entry.kind.endswith("by-color") else [""])
    ]
    of_flows, of_queues = ([one.name for one in of] for of in (catalog.FLOW_BOUNDS, catalog.QUEUE_BOUNDS))
    assert queues.flows.columns[4:] == by_flow + of_flows
    of_links = [entry.name for entry in (*catalog.LINK, *catalog.QUEUE)]
    assert queues.links.columns[2:] == of_links + of_queues
    assert queues.link_classes.columns[3:] == [entry.name for entry in catalog.QUEUE] + of_queues
    classes = [name for name in queues.classes().columns if "_low" not in name and "_high" not in name]
    named = catalog.beside(catalog.CLASS, catalog.FLOW_BOUNDS)
    assert classes[3:] == [entry.name for entry in named if entry.name]
    for frame in (queues.flows, queues.links, queues.link_classes):
        numbers = frame.select(pl.selectors.float())
        assert not numbers.select(pl.all().is_nan().any()).to_numpy().any(), "null, not NaN"


def test_sweeps_have_the_metrics_that_are_declared(queues: Result) -> None:
    run = queues.runs[0]
    found = measure(run.raw)
    of_classes = [entry.summary.metric for entry in catalog.CLASS if entry.summary.metric]
    for group in run.groups:
        own = [name for name in found if name.startswith(f"flows.{group.name}.")]
        assert own == [f"flows.{group.name}.{metric}" for metric in of_classes]
    assert len(set(of_classes)) == len(of_classes)
    summaries = [entry.summary for entry in (*catalog.LINK, *catalog.QUEUE) if entry.summary is not None]
    link = link_of(run)["name"]
    own = [name for name in found if name.startswith(f"links.{link}.") and ".classes." not in name]
    assert own == [f"links.{link}.{summary.metric}" for summary in summaries]
    runs = [name for name in found if not name.startswith(("flows.", "links."))]
    assert set(runs) <= {entry.name for entry in catalog.RUN}


def test_a_class_is_summed_up_alike_in_tables_and_sweeps(queues: Result) -> None:
    swept = [measure(run.raw) | dict(companions(run.raw, queues.scenario)) for run in queues.runs]
    gathered = Gathered({name: [run[name] for run in swept] for name in swept[0]})
    for row in queues.classes().iter_rows(named=True):
        for entry in catalog.CLASS:
            if entry.name and entry.summary.metric:
                found = gathered.of(f"flows.{row['class']}.{entry.summary.metric}").estimate
                expected = None if found is None else found.mean
                if found is None or found.ci95 is None:
                    assert row[entry.name] == expected, entry.name
                    continue
                assert row[entry.name] == pytest.approx(expected, rel=1e-3), entry.name
                ends = [row[end] for end in end_names(entry.name)]
                assert ends == pytest.approx(found.ci95, rel=0.01, abs=1e-9), entry.name


def test_the_engines_quantiles_are_those_of_the_measures(queues: Result) -> None:
    for run in queues.runs:
        for link in run.raw["links"]:
            for books in (link, *link["classes"]):
                counts = books["delay_s"]["counts"].sum(axis=1).tolist()
                edges = books["delay_s"]["edges"].tolist()
                for name, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
                    assert books[f"delay_{name}_s"] == histogram_quantile(
                        edges, counts, q, books["delay_s"]["longest"].tolist()
                    )


def test_a_flow_with_a_volume_completes_or_is_counted(sized: Result) -> None:
    rows = {(row["class"], row["seed"]): row for row in sized.flows.iter_rows(named=True)}
    for seed in (1, 2):
        done = rows["sized", seed]
        # Ten packets of 1 ms, 2 ms apart; on an idle path they follow each other. Others use the link, too.
        assert done["completion_s"] >= 0.029
        assert done["slowdown"] == pytest.approx(done["completion_s"] / 0.020, rel=1e-12)
        assert done["unfinished"] == 0
        stopped, endless = rows["stopped", seed], rows["endless", seed]
        assert (stopped["completion_s"], stopped["slowdown"], stopped["unfinished"]) == (None, None, 1)
        assert (endless["completion_s"], endless["slowdown"], endless["unfinished"]) == (None, None, None)


def test_what_is_unfinished_is_null_in_json_and_an_empty_cell(sized: Result) -> None:
    classes = {row["class"]: row for row in json.loads(to_json(sized))["classes"]}
    assert classes["sized"]["completion_s"] > 0.029
    assert classes["sized"]["unfinished"] == 0
    stopped = classes["stopped"]
    assert (stopped["completion_s"], stopped["slowdown"], stopped["unfinished"]) == (None, None, 1)
    assert classes["endless"]["unfinished"] is None
    shown = {line["class"]: line for line in readable(sized.rows.groups)}
    assert shown["stopped"]["unfinished"].startswith("1")
    assert shown["stopped"]["FCT, ms"] == shown["endless"]["FCT, ms"] == "–"
    swept = measure(sized.runs[0].raw)
    assert math.isnan(swept["flows.stopped.completion_s"])
    assert swept["flows.stopped.unfinished"] == 1


def test_every_measure_is_listed() -> None:
    done = CliRunner().invoke(app, ["list", "measures", "--json"], catch_exceptions=False)
    listed = json.loads(done.stdout)["measures"]
    of_users = catalog.APPLICATION.values()
    assert len(listed) == sum(
        map(
            len,
            (
                catalog.RUN,
                catalog.CLASS,
                catalog.FLOW,
                (*finite_flows.MEASURES, finite_flows.OPEN),
                catalog.LINK,
                catalog.QUEUE,
                catalog.FLOW_BOUNDS,
                catalog.QUEUE_BOUNDS,
                *of_users,
            ),
        )
    )
    assert {entry["column"] for entry in listed if entry["of"] == "flow"} == {
        one.name for one in catalog.FLOW
    }
    text = CliRunner().invoke(app, ["list", "measures"], catch_exceptions=False).stdout
    text = " ".join(text.split())
    page = Path("docs/measures.md").read_text(encoding="utf-8")
    for entry in listed:
        assert entry["description"] in text
        assert entry["description"] in page
        assert all(f"`{name}`" in page for name in (entry["column"], entry["metric"]) if name)


def test_units_follow_from_the_entry() -> None:
    known: dict[str, set[str]] = {}
    for lines in listing.lines().values():
        for line in lines:
            if line.metric:
                known.setdefault(line.metric.rpartition(".")[2], set()).add(line.unit)
    for metric, units in known.items():
        assert units == {naming.unit_of_metric(f"links.any.{metric}")}, metric
    assert naming.unit_of_metric("flows.any.nothing_s") == ""
    heads = {head for head in LEFT_OUT_FIRST if isinstance(head, str) and head.endswith(", ms")}
    assert {"RTT, ms", "jitter, ms", "delay p50, ms"} <= heads


def test_no_module_but_the_catalog_lists_the_engines_measures() -> None:
    """Studies choose what they look at; what shows measures to readers does not name them."""
    declared = [entry.name for entry in catalog.FLOW if entry.kind == "optional"]
    for path in (
        "runs/result.py",
        "runs/metrics.py",
        "sweeps/summary.py",
        "real_packets/equivalence.py",
        "show/readable.py",
    ):
        text = (Path("python/perhop") / path).read_text(encoding="utf-8")
        code = text.split('"""')[::2]
        assert not [name for name in declared if any(f'"{name}"' in part for part in code)], path


def test_the_engine_describes_every_measure() -> None:
    declared = json.loads(_engine.measures())
    for of, entries in (*declared.pop("application").items(), *declared.items()):
        for entry in entries:
            assert entry["description"].endswith("."), (of, entry["name"])


@pytest.mark.parametrize(
    "name", [entry.name for entry in catalog.FLOW if entry.summary and entry.summary.share_of]
)
def test_a_share_of_a_class_is_that_of_all_its_packets(name: str) -> None:
    # One flow with 3 packets that had the event, one with 997 that had not, and one without a share.
    (entry,) = (entry for entry in catalog.CLASS if entry.name == name)
    one, *others = entry.summary.share_of
    columns = {name: np.array([1.0, 0.0, math.nan]), one: np.array([3, 997, 500])}
    columns |= {other: np.zeros(3) for other in others}
    if one == "marked":
        columns[one] = np.array([[3, 0, 0], [990, 7, 0], [500, 0, 0]])
    flows = flow_table.Members(flow_table.Columns(columns), slice(0, 3), None, 0.0, 0.0)
    assert entry.trials is not None
    assert (entry.value(flows), entry.trials(flows)) == (3 / 1000, 1000)
