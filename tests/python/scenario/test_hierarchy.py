"""Queues within queues as a user writes them: classes, engines, changes during a run, errors and notices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

import perhop
from perhop.errors import PerhopError
from perhop.runs import simulate
from perhop.scenario.builder import (
    DropTail,
    Flow,
    Htb,
    HtbClass,
    Link,
    Llq,
    LlqQueue,
    Match,
    Red,
    Scenario,
    Tcp,
    Wfq,
)
from perhop.scenario.builder import SharingQueue as Share

EXAMPLE = Path(__file__).parents[3] / "examples" / "hierarchy.toml"

VOICE = LlqQueue(name="voice", match=Match(dscp="EF"), rate="1Mbps", rule=DropTail(limit="50p"))
REST = Wfq(
    queues=[
        Share(
            name="data", match=Match(dscp="AF11"), rate="2Mbps", rule=Red(thresholds="5/15/0.1", limit="60p")
        ),
        Share(name="default", rule=DropTail(limit="60p")),
    ]
)


def built() -> dict[str, Any]:
    """A tree with a priority class and shares in one of its classes, by the builder."""
    office = HtbClass(name="office", rate="6Mbps", queue=Llq(priority=[VOICE], queue=REST))
    guests = HtbClass(
        name="guests", match=Match(dscp="CS1"), rate="2Mbps", ceil="8Mbps", queue=DropTail(limit="60p")
    )
    root = HtbClass(name="link", rate="8Mbps", classes=[guests, office])
    link = Link(from_="a", to="b", rate="10Mbps", delay="5ms", queue=Htb(classes=[root]))
    flows = [
        Flow(name=name, from_="a", to="b", dscp=dscp, transport=Tcp(tcp="linux"))
        for name, dscp in (("voice", 46), ("data", 10), ("rest", 0), ("guests", 8))
    ]
    return Scenario(duration="4s", links={"l": link}, flows=flows).to_dict()


@pytest.mark.parametrize("scenario", [EXAMPLE, built()], ids=["example", "built"])
def test_both_engines_run_a_tree_alike(scenario: Any) -> None:  # noqa: ANN401 - of several types
    batched = perhop.run(scenario, runs=1)
    reference = perhop.run(scenario, runs=1, engine="reference")
    assert (batched.engine, reference.engine) == ("batched", "reference")
    assert_frame_equal(batched.flows, reference.flows)
    assert_frame_equal(batched.links, reference.links)


def test_classes_within_a_class_have_the_names_of_both() -> None:
    (run,) = simulate.run(built(), runs=1).runs
    names = [entry["name"] for entry in run.raw["links"][0]["classes"]]
    assert names == ["guests", "office/voice", "office/data", "office/default"]


def test_an_aqm_within_a_tree_changes_during_a_run() -> None:
    sim = perhop.Simulation(built())
    sim.run_until("2s")
    sim.set("links.l.queue.classes.link.classes.office.queue.queue.queues.data.rule.max_p", 0.5)
    sim.run_until("4s")
    with pytest.raises(PerhopError, match="rate"):
        sim.set("links.l.queue.classes.link.rate", "7Mbps")


def changed(keys: dict[str, Any], *path: int) -> None:
    """Run the tree with other keys of a class: the root, or one within it."""
    scenario = json.loads(json.dumps(built()))
    table = scenario["links"]["l"]["queue"]["classes"][0]
    for number in path:
        table = table["classes"][number]
    table.update(keys)
    perhop.run(scenario, runs=1)


@pytest.mark.parametrize(
    ("keys", "path", "said"),
    [
        ({"prio": 1}, (), r"classes\[0\].prio: .*has an effect in classes with `queue` only"),
        ({"ceil": "1Mbps"}, (0,), r"classes\[0\].classes\[0\].ceil: .*must be at least `rate`"),
        (
            {"rate": "2.5Mbps"},
            (1,),
            r"classes\[1\].queue.queue.queues: the rates add up to 2Mbps, but .*1.5",
        ),
        ({"queue": {"aqm": "none"}}, (0,), r"classes\[0\].queue.aqm: .*unknown aqm `none`"),
    ],
)
def test_a_wrong_key_of_a_class_is_named(keys: dict[str, Any], path: tuple[int, ...], said: str) -> None:
    with pytest.raises(perhop.ScenarioError, match=said) as raised:
        changed(keys, *path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("keys", "path", "said"),
    [
        ({"ceil": "20Mbps"}, (), r"classes\[0\].ceil: `20Mbps`: a root class borrows from none"),
        ({"ceil": "20Mbps"}, (0,), r"classes\[0\].classes\[0\].ceil.*above the link's 10Mbps"),
        ({"rate": "3Mbps"}, (0,), r"classes\[0\].classes.*add up to 9Mbps, more than the 8Mbps of `link`"),
        ({"rate": "12Mbps"}, (), r"classes\[0\].rate.*`12Mbps`: above the link's 10Mbps"),
        ({"match": {"dscp": 9}}, (0,), r"classes\[0\].classes\[0\].match.*the queue `guests` stays empty"),
    ],
)
def test_what_a_class_cannot_keep_is_said(keys: dict[str, Any], path: tuple[int, ...], said: str) -> None:
    with pytest.warns(perhop.PerhopWarning, match=said):
        changed(keys, *path)
