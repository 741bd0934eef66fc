"""The parser and the JSON Schema are two views of one format: they accept the same texts and numbers."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tools import generate

from perhop import _engine

PLACES: dict[str, tuple[str | int, ...]] = {
    "Bitrate": ("links", "l", "rate"),
    "Duration": ("links", "l", "delay"),
    "Warmup": ("warmup",),
    "Bytes": ("flows", 0, "volume"),
    "Packets": ("flows", 0, "transport", "initial-ssthresh"),
    "Depth": ("flows", 0, "transport", "window"),
    "Limit": ("links", "l", "queue", "limit"),
    "Probability": ("links", "l", "loss"),
    "Load": ("flows", 2, "arrivals", "load"),
    "Thresholds": ("links", "l", "queue", "thresholds"),
    "DropCurve": ("links", "m", "queue", "profiles", 0, "curve"),
    "Start": ("flows", 0, "start"),
    "SampleInterval": ("paths", "p", "control", "interval"),
    "Frequency": ("flows", 1, "arrivals", "rate"),
}
"""A place in a scenario for each quantity that is written as text."""

VALUES = re.compile(
    r"whole number|too large|above zero|between 0 and 1|at most 100 %|min .* is above max"
    r"|ends before it begins|is not a queue size; write whole packets|sends nothing|at least 1p|at least 1ms"
    r"|must end before the run does"
    r"|write rising fills|it must not fall"
    r"|windows are first sampled|no flow begins|flows would begin|write min/max/max_p.*"
    r"|a segment|segments fit in|from 1p to|above 0"
)
"""The messages about a text of the right form whose value cannot be."""

NUMBERS = (
    "0",
    "1",
    "7",
    "007",
    "40",
    "1.5",
    "0.25",
    "1.0",
    ".5",
    "5.",
    "1e-3",
    "+1",
    "-1",
    "",
    "99999999999999999999",
)
SPACES = ("", " ", "  ", "\t", "\n")
UNITS = (
    "bps",
    "kbps",
    "Mbps",
    "Gbps",
    "mbps",
    "ns",
    "us",
    "ms",
    "s",
    "B",
    "kB",
    "KB",
    "MB",
    "GB",
    "p",
    "P",
    "/s",
    "/min",
    "/h",
    "%",
    "",
)
BETWEEN = ("/", "..", " / ", " .. ", "-", ",")


def scenario() -> dict[str, Any]:
    """A scenario that has every place."""
    return {
        "duration": "10s",
        "links": {
            "l": {
                "from": "a",
                "to": "b",
                "rate": "1Mbps",
                "delay": "1ms",
                "queue": {"aqm": "red", "limit": "100p", "thresholds": "10/20/0.1"},
            },
            "m": {
                "from": "b",
                "to": "c",
                "rate": "1Mbps",
                "delay": "1ms",
                "queue": {"aqm": "wred", "limit": "100p", "profiles": [{"curve": "10/20/0.1"}]},
            },
        },
        "paths": {"p": {"via": ["a", "b"], "control": {"interval": "40ms"}}},
        "flows": [
            {
                "name": "f",
                "path": "p",
                "transport": {"tcp": "newreno"},
                "profile": {"marker": "tsw", "rate": "1Mbps"},
            },
            {
                "name": "population",
                "from": "a",
                "to": "b",
                "transport": {"tcp": "newreno"},
                "arrivals": {"rate": "1/s"},
                "sizes": {"constant": "30kB"},
            },
            {
                "name": "loaded",
                "from": "a",
                "to": "b",
                "transport": {"tcp": "newreno"},
                "arrivals": {"load": 0.1},
                "sizes": {"constant": "30kB"},
            },
        ],
    }


@cache
def schema() -> dict[str, Any]:
    """The published schema."""
    found: dict[str, Any] = json.loads(_engine.scenario_schema())
    return found


def refusal(place: tuple[str | int, ...], value: object) -> str | None:
    """Why the engine refuses this value at this place, if it does for its own sake."""
    content: Any = scenario()
    inside = content
    for step in place[:-1]:
        inside = inside[step]
    inside[place[-1]] = value
    try:
        _engine.scenario_from_json(json.dumps(content), "x")
    except _engine.ScenarioError as error:
        return str(error)
    return None


def matches(name: str, text: str) -> bool:
    """Whether a text has the form that the schema gives; `$` is the end there, and not a line's."""
    pattern = schema()["$defs"][name]["pattern"]
    return re.search(re.sub(r"\$$", r"\\Z", pattern), text) is not None


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Numbers with units, alone, as ranges and as thresholds, rightly and wrongly spaced."""
    quantity = st.tuples(st.sampled_from(NUMBERS), st.sampled_from(SPACES), st.sampled_from(UNITS))
    count = draw(st.sampled_from([1, 1, 1, 2, 3]))
    between = draw(st.sampled_from(BETWEEN))
    text = between.join("".join(parts) for parts in draw(st.tuples(*[quantity] * count)))
    if not draw(st.integers(0, 3)):
        points = st.lists(
            st.tuples(st.sampled_from(NUMBERS), st.sampled_from(["", "p", "B", "kB"])), max_size=4
        )
        comma = draw(st.sampled_from([",", ", ", " , ", " "]))
        listed = [f"{fill}{unit}/{draw(st.sampled_from(NUMBERS))}" for fill, unit in draw(points)]
        word = draw(st.sampled_from(["interpolate", "segmented", "steps"]))
        text = word + draw(st.sampled_from(SPACES)) + comma.join(listed)
    cut = draw(st.integers(0, 9))
    return text if cut else draw(st.sampled_from(SPACES)) + text + draw(st.sampled_from(SPACES))


@pytest.mark.parametrize("name", PLACES)
def test_every_quantity_has_its_place(name: str) -> None:
    assert refusal(PLACES[name], schema()["$defs"][name]["examples"][0]) is None


def test_no_quantity_is_left_out() -> None:
    assert {name for name, part in schema()["$defs"].items() if "pattern" in part} == set(PLACES)


@pytest.mark.parametrize("name", PLACES)
@settings(max_examples=400, deadline=None)
@given(text=st.one_of(texts(), st.text(alphabet="0123456789. /pBkMGbsmune+-\n", max_size=12)))
@example("10 Mbps")
@example("10  Mbps")
@example("10\tMbps")
@example("48 ms")
@example("0s .. 1s")
@example("1s..2s..3s")
@example("30 / 90 / 0.05")
@example("30/90/1e-2")
@example("30/90/+0.1")
@example("+30/90/0.1")
@example("30/90/5.")
@example(" 30/90/0.1")
@example("30 p/90p/.5")
@example("1.5kB/2 kB/0.1")
@example("interpolate 30/0, 60/0.1 ,90p/1")
@example("segmented  1.5kB/.1,2 kB / 0.2")
@example("segmented 30/0.1,")
@example("interpolate 30/0, 40kB/0.1")
@example("interpolate 30/0, 30/0.1")
@example("868 p")
@example("868.0p")
@example("1%")
@example(".5 %")
@example("1.%")
@example("101%")
@example("0.5p")
@example("500 kB\n")
@example("10s")
@example("measured")
def test_parser_and_schema_accept_the_same_texts(name: str, text: str) -> None:
    why = refusal(PLACES[name], text)
    if why is None:
        assert matches(name, text), f"{text!r} is read, and the schema refuses it"
    elif matches(name, text):
        assert VALUES.search(why), f"{text!r} fits the schema, and is refused: {why}"


@pytest.mark.parametrize("text", ["10 Mbps", "0.5 Gbps", "20Mbps"])
def test_one_space_may_stand_before_a_unit(text: str) -> None:
    assert refusal(PLACES["Bitrate"], text) is None
    assert matches("Bitrate", text)
    content = json.loads(_engine.scenario_from_json(json.dumps(scenario() | {"duration": "10 s"}), "x"))
    assert content["duration"] == "10s"


def profiled(key: str, value: object) -> str | None:
    """Why the engine refuses this key in a profile."""
    return refusal(("flows", 0, "profile"), {"marker": "tsw", "rate": "1Mbps", key: value})


NUMERIC = {
    "Probability": lambda value: refusal(("paths", "p", "control"), {"interval": "40ms", "loss": value}),
    "Weight": lambda value: refusal(
        ("links", "l", "queue"),
        {"aqm": "red", "limit": "100p", "thresholds": "10/20/0.1", "weight": value},
    ),
    "AfClass": lambda value: profiled("af", value),
    "Dscp": lambda value: refusal(
        ("flows", 0),
        {"name": "f", "path": "p", "transport": {"tcp": "newreno"}, "dscp": value},
    ),
    "EcnMode": lambda value: refusal(
        ("links", "l", "queue"),
        {"aqm": "red", "limit": "100p", "thresholds": "10/20/0.1", "ecn": value},
    ),
    "Precedences": lambda value: refusal(
        ("links", "m", "queue", "profiles", 0),
        {"match": {"precedence": value}, "curve": "10/20/0.1"},
    ),
    "Codepoints": lambda value: refusal(
        ("links", "l", "queue"),
        {
            "scheduler": "drr",
            "queues": [
                {"name": "some", "match": {"dscp": value}, "rule": {"aqm": "drop-tail", "limit": "9p"}},
                {"name": "rest", "rule": {"aqm": "drop-tail", "limit": "9p"}},
            ],
        },
    ),
}
OTHERS: tuple[object, ...] = (
    *(
        -1,
        0,
        1,
        2,
        4,
        5,
        46,
        63,
        64,
        0.5,
        1.5,
        1e300,
        2**40,
        True,
        "1",
        "EF",
        "ef",
        "AF11",
        "AF14",
        "CS8",
        "DF",
        "mark-only",
        "mark-above-max",
    ),
    *([], [7], [0, 8], [1, True], [46], ["EF", "AF11", 12], [64], ["EF", "ef"], [["EF"]], {}, {"EF": 1}),
)


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize("value", OTHERS, ids=repr)
def test_parser_and_schema_accept_the_same_numbers_and_names(name: str, value: object) -> None:
    part = {"$ref": f"#/$defs/{name}", "$defs": schema()["$defs"]}
    valid = jsonschema.Draft202012Validator(part).is_valid(value)
    why = NUMERIC[name](value)
    assert (why is None) == valid, why


@pytest.mark.parametrize(
    ("part", "table", "is_valid"),
    [
        ("Aqm", {"aqm": "my_aqm:MyBlue", "limit": "9p"}, True),
        ("Aqm", {"aqm": "python", "class": "my_aqm:MyBlue"}, True),
        ("Aqm", {"aqm": "python", "limit": "9p"}, False),
        ("Aqm", {"aqm": "blu", "limit": "9p"}, False),
        ("Meter", {"marker": "my_meter:MyBucket", "rate": "1Mbps", "burst": "9kB"}, True),
        ("Meter", {"marker": "my_meter:MyBucket"}, False),
        ("Application", {"model": "my_poll:MyPoll", "every": "1s"}, True),
        ("Congestion", "my_aimd:MyAimd", True),
        ("Congestion", {"control": "my_aimd:MyAimd", "left": 0.7}, True),
        ("Congestion", {"left": 0.7}, False),
        ("Congestion", "renoo", False),
    ],
)
def test_the_schema_takes_classes_in_python_by_their_path(part: str, table: object, is_valid: bool) -> None:
    schema = json.loads(_engine.scenario_schema())
    schema = {"$ref": f"#/$defs/{part}", "$defs": schema["$defs"]}
    assert jsonschema.Draft202012Validator(schema).is_valid(table) == is_valid


def test_every_alternative_of_the_documentation_has_a_description() -> None:
    alternatives = [line for line in generate.scenario_format().splitlines() if line.startswith("- ")]
    assert "- [Aqm](#aqm): A FIFO queue under this AQM." in alternatives
    assert not [line for line in alternatives if ": " not in line or not line.partition(": ")[2].strip()]


def test_meters_show_the_default_of_a_key_that_canonical_text_leaves_out() -> None:
    meters = [block for block in json.loads(_engine.blocks()) if block["role"] == "meter"]
    assert meters
    for meter in meters:
        assert meter["parameters"]["out"]["default"] == "mark", meter["name"]
