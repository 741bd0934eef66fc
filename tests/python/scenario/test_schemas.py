"""The JSON Schemas of sweeps, searches and plans: what they take and refuse is what the readers do."""

from __future__ import annotations

import functools
import json
import tomllib
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perhop.commands import schema
from perhop.errors import PerhopError, ScenarioError
from perhop.planning import document as plans
from perhop.scenario import file_kinds
from perhop.scenario.keys import Key, Table
from perhop.sweeps import plan, tuning
from perhop.sweeps.plan import Given

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.python.conftest import Finished

ROOT = Path(__file__).parents[3]
jsonschema = pytest.importorskip("jsonschema")

READERS: dict[str, Callable[[Path], object]] = {
    "sweep": lambda path: plan.read_plan(path, Given()),
    "tune": lambda path: tuning.read_tuning(path, trials=None, runs=None, seed=None),
    "plan": plans.read_plan,
}
KEYS: dict[str, Mapping[str, Key]] = {"sweep": plan.KEYS, "tune": tuning.KEYS, "plan": plans.KEYS}
SCENARIO = """
[scenario]
duration = "1s"
[scenario.links.up]
from = "A"
to = "B"
rate = "1Mbps"
delay = "1ms"
queue = { aqm = "drop-tail", limit = "9p" }
"""
FLOWS = """
[[{}flows]]
name = "bulk"
from = "A"
to = "B"
transport = {{ tcp = "newreno" }}
"""
WHOLE = {
    "sweep": """
title = "a sweep"
runs = 8
seed = 7
metrics = ["flows.*.throughput_bps"]
until = { width = "5%", metrics = ["flows.*.throughput_bps"], least-runs = 4 }
set = { duration = "30s", "links.up.queue.limit" = "{n}p" }
grid = { n = [1, 2], "links.up.delay" = ["1ms", "2ms"] }
list = { "flows.bulk.count" = [1, 2] }
latin-hypercube = { samples = 3, seed = 1, "links.up.rate" = "1Mbps..9Mbps log" }
""" + SCENARIO + FLOWS.format("scenario."),
    "tune": """
title = "a search"
objectives = ["maximize links.up.utilization"]
constraints = ["flows.bulk.throughput_bps >= 2kbps"]
trials = 6
batch = 2
runs = 2
seed = 1
validation-runs = 2
sampler = "tpe"
population = 20
search = { "links.up.queue.limit" = "5p..60p", "links.up.delay" = ["1ms", "2ms"] }
set = { duration = "30s" }
""" + SCENARIO + FLOWS.format("scenario."),
    "plan": """
title = "a plan"
objectives = ["loss of bulk < 1 %"]
runs = 2
seed = 1
growth = { demands = ["bulk"], together = true, most = 3, precision = 0.1 }
search = { limit = "5..60" }
set = { "links.up.queue.limit" = "{limit}p" }
tuning = { trials = 4, batch = 2, runs = 2, sampler = "tpe", population = 20, growth = { bulk = 1.5 } }
export = { to = "ios", link = "up", shape = true, lenient = true }
""" + SCENARIO + FLOWS.format(""),
}  # fmt: skip
"""A file of each kind with every key but `configuration`, which excludes `scenario`, and `import`."""


@functools.cache
def validator(kind: str) -> Any:  # noqa: ANN401 - of an untyped library
    found = schema.schema(kind)
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


def taken(kind: str, data: Mapping[str, Any], folder: Path) -> bool:
    """Whether the reader takes it; a refusal is one line."""
    path = folder / "file.toml"
    path.write_text(toml(data), encoding="utf-8")
    try:
        READERS[kind](path)
    except (PerhopError, ScenarioError) as error:
        assert "\n" not in str(error)  # noqa: PT017 - whether it raises depends on the file
        return False
    return True


def toml(data: Mapping[str, Any]) -> str:
    return "".join(f"{json.dumps(key)} = {value(one)}\n" for key, one in data.items())


def value(given: object) -> str:
    if isinstance(given, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {value(one)}" for key, one in given.items()) + " }"
    if isinstance(given, list):
        return "[" + ", ".join(map(value, given)) + "]"
    return json.dumps(given)


def tables(keys: Mapping[str, Key], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The places of all tables with keys of their own."""
    for name, key in keys.items():
        if isinstance(key, Table) and key.others is None:
            yield (*path, name)
            yield from tables(key.keys, (*path, name))


@pytest.mark.parametrize("kind", KEYS)
def test_every_key_is_taken_by_both(kind: str, tmp_path: Path) -> None:
    data = tomllib.loads(WHOLE[kind])
    assert set(data) == set(KEYS[kind]) - {"configuration", "import"}
    assert taken(kind, data, tmp_path)
    validator(kind).validate(data)


@pytest.mark.parametrize("kind", KEYS)
def test_wrong_keys_are_refused_by_both(kind: str, tmp_path: Path) -> None:
    places = [(), *(path for path in tables(KEYS[kind]) if path[0] != "import")]
    assert kind == "tune" or len(places) > 1
    for path in places:
        data = tomllib.loads(WHOLE[kind])
        table = data
        for name in path:
            table = table[name]
        table["nonsense"] = 1
        assert not taken(kind, data, tmp_path), path
        assert not validator(kind).is_valid(data), path


@pytest.mark.parametrize("kind", KEYS)
def test_wrong_values_are_refused_by_both(kind: str, tmp_path: Path) -> None:
    data = tomllib.loads(WHOLE[kind])
    both = validator(kind)
    for name, wrong in wrong_values(KEYS[kind]):
        if name[0] in {"import", "configuration"}:  # they need a configuration, which this file has not
            continue
        broken = deepcopy(data)
        table = broken
        for part in name[:-1]:
            table = table[part]
        table[name[-1]] = wrong
        assert not taken(kind, broken, tmp_path), (name, wrong)
        assert not both.is_valid(broken), (name, wrong)


def wrong_values(
    keys: Mapping[str, Key], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], object]]:
    """For each key values of types and sizes that it does not have."""
    for name, key in keys.items():
        own = key.schema()
        candidates: list[object] = [[[]], -1, True, {"a": {"b": []}}]
        for wrong in candidates:
            if name in {"scenario", "configuration", "flows"} and wrong == {"a": {"b": []}}:
                continue
            if not jsonschema.Draft202012Validator(_alone(own)).is_valid(wrong):
                yield (*path, name), wrong
        if "maximum" in own:
            yield (*path, name), own["maximum"] + 1
        if isinstance(key, Table):
            yield from wrong_values(key.keys, (*path, name))


def _alone(own: dict[str, Any]) -> dict[str, Any]:
    return {**own, "$defs": {"Scenario": {"type": "object"}}}


@pytest.mark.parametrize("kind", KEYS)
def test_required_keys_are_required_by_both(kind: str, tmp_path: Path) -> None:
    needed = [name for name, key in KEYS[kind].items() if key.required]
    assert needed
    for name in needed:
        data = tomllib.loads(WHOLE[kind])
        del data[name]
        assert not taken(kind, data, tmp_path), name
        assert not validator(kind).is_valid(data), name


def test_a_plan_has_a_scenario_or_a_configuration_with_flows() -> None:
    both = validator("plan")
    data = tomllib.loads(WHOLE["plan"])
    configured = {**data, "configuration": "x.cfg"}
    assert not both.is_valid(configured)
    del configured["scenario"]
    assert both.is_valid({**configured, "import": {"lenient": True, "match": {"A": "af11"}}})
    assert not both.is_valid({**configured, "import": {"lenent": True}})
    assert not both.is_valid({**data, "import": {}})
    del configured["flows"]
    assert not both.is_valid(configured)


def test_examples_are_valid() -> None:
    found = dict.fromkeys(schema.KINDS, 0)
    for path in sorted((ROOT / "examples").rglob("*.toml")):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        kind = file_kinds.kind_of(data)
        if kind in found:  # others are of perhop-router
            validator(kind).validate(data)
            found[kind] += 1
    assert all(found.values()), found


def test_the_command_prints_them(perhop: Callable[..., Finished]) -> None:
    for kind in schema.KINDS:
        done = perhop("schema", kind)
        assert done.code == 0
        assert done.out == (ROOT / "docs" / f"{kind}.schema.json").read_text(encoding="utf-8")
    assert perhop("schema").out == perhop("schema", "scenario").out
    done = perhop("schema", "plain")
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: there is a schema of scenario, sweep, tune, plan, not of `plain`\n"
