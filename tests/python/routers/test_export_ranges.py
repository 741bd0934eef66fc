"""Exports write no number that the device does not take; each number of a line is in the table of ranges."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.python.routers.importing import CONFIGURATIONS, PORTS, buffer
from tests.python.routers.test_export_ios import EXAMPLES, FLOW, HEAD, written

from perhop.errors import PerhopError
from perhop.routers import Answers, Source, exported, imported
from perhop.routers.dialects.cisco import queue_lines as ios
from perhop.routers.dialects.cisco.writer import MOST_NAME
from perhop.routers.dialects.junos import words as junos
from perhop.routers.dialects.tc import writer as tc
from perhop.routers.units import SHOWN
from perhop.scenario import reading

RANGES = {"ios": ios.RANGES, "junos": junos.RANGES, "tc": tc.RANGES}
LINES = {
    "ios": {
        "bandwidth": r"^  bandwidth (\d+)$",
        "bandwidth percent": r"^  bandwidth percent (\d+)$",
        "ratio": r"^  bandwidth remaining ratio (\d+)$",
        "priority": r"^  priority (?:level \d+ )?(\d+)\b",
        "priority burst": r"^  priority (?:level \d+ )?(?:percent )?\d+ (\d+)$",
        "shape": r"^  shape average (\d+)\b",
        "shape bc": r"^  shape average \d+ (\d+) \d+$",
        "queue-limit": r"^  queue-limit (?:dscp \S+ )?(\d+) (?:packets|bytes)$",
        "min packets": r"^  random-detect (?:dscp|precedence) \S+ (\d+) \d+ \d+$",
        "max packets": r"^  random-detect (?:dscp|precedence) \S+ \d+ (\d+) \d+$",
        "min bytes": r"^  random-detect (?:dscp|precedence) \S+ (\d+) bytes \d+ bytes \d+$",
        "max bytes": r"^  random-detect (?:dscp|precedence) \S+ \d+ bytes (\d+) bytes \d+$",
        "denominator": r"^  random-detect (?:dscp|precedence) .* (\d+)$",
        "exponent": r"^  random-detect exponential-weighting-constant (\d+)$",
        "cir": r"^  police cir (\d+) ",
        "pir": r"^  police .* pir (\d+) ",
        "bc": r"^  police .* bc (\d+) ",
        "be": r"^  police .* be (\d+) ",
        "interface": r"^ bandwidth (\d+)$",
    },
    "junos": {
        "transmit-rate": r"transmit-rate (\d+[kmg]?);",
        "shaping-rate": r"shaping-rate (\d+[kmg]?)\b",
        "burst-size": r"shaping-rate \S+ burst-size (\d+[kmg]?);",
        "rate": r"(?:bandwidth-limit|information-rate) (\d+[kmg]?);",
        "burst": r"(?:burst-size-limit|burst-size) (\d+[kmg]?);",
    },
    "tc": {
        "size": r"\b(?:limit|burst|cburst|min|max|avpkt|memory_limit) (\d+)\b",
        "quantum": r"\bquantum (\d+)\b",
    },
}
"""Regular expressions of lines with the numbers of `RANGES`; the group is the number."""
OTHERS = {
    "ios": {
        "level": (1, 2, r"^  priority level (\d+)\b"),  # (1)
        "priority percent": (1, 100, r"^  priority (?:level \d+ )?percent (\d+)\b"),  # (3)
        "shape be": (0, 154_400_000, r"^  shape average \d+ \d+ (\d+)$"),  # (1)
        "precedence": (0, 7, r"^  random-detect precedence (\d+) "),  # (2)
        "dscp": (0, 63, r"^  (?:random-detect|queue-limit) dscp (\d+) "),  # (2)
    },
    "junos": {
        "transmit-rate percent": (1, 100, r"transmit-rate percent (\d+);"),  # (1)
        "temporal": (1, 32_000_000, r"buffer-size temporal (\d+);"),  # (3)
        "queue-num": (0, 7, r"queue-num (\d+);"),  # (1)
        "fill-level": (0, 100, r"(?:fill-level|drop-probability) (\d+)\b"),  # (1)
    },
    "tc": {
        "flows": (1, 65536, r"\bflows (\d+)\b"),  # (1)
        "r2q": (1, tc.FIELD, r"\br2q (\d+)\b"),  # (1)
        "htb prio": (0, 7, r"\bhtb .*\bprio (\d+)\b"),  # (1)
        "gred prio": (1, 16, r"\bvq \d+ .* prio (\d+)$"),  # (1)
        "vq": (0, 15, r"\bvq (\d+)\b"),  # (1)
        "vqs": (1, 16, r"\bvqs (\d+)\b"),  # (1)
        "bands": (1, 16, r"\bbands (\d+)\b"),  # (1)
        "strict": (1, 16, r"\bstrict (\d+)\b"),  # (1)
        "prio": (1, 65535, r"\bfilter .*\bprio (\d+)\b"),  # (1)
        "probability": (0, 1, r"\bprobability (\S+)"),  # (1)
    },
}
"""Numbers that an export writes within these bounds anyway; the sources are those of the dialects' ranges."""
ANSWERS = Answers(1e9, 1000.0, buffer(1e6), {}, lenient=True)
UNITS = {"k": 1e3, "m": 1e6, "g": 1e9}
NUMBER = re.compile(r"(?<![\w./:-])\d+(?:\.\d+)?[kmg]?(?![\w./:-])")
NAMES = {
    "ios": re.compile(r"^(class-map|policy-map|interface| class| match|.*service-policy)|^!"),
    "junos": re.compile(
        r"code-points|dscp \[|unit \d|class \S+ (queue-num|scheduler|\{)|^#|fill-level \[|drop-probability \["
    ),
    "tc": re.compile(r"^(#|tc filter)|priomap|default \d"),
}
"""Lines whose numbers are names, codepoints or lists."""


def bounds(dialect: str) -> dict[str, tuple[float, float, str]]:
    """The least and the largest number of each command, and the pattern of its lines."""
    taken = RANGES[dialect]
    assert taken.keys() == LINES[dialect].keys()
    known = {name: (taken[name].least, taken[name].most, line) for name, line in LINES[dialect].items()}
    return known | OTHERS[dialect]


def check(text: str, dialect: str) -> None:
    """Every line has numbers that the device takes."""
    for line in text.splitlines():
        if line[:1] in {"#", "!"}:
            continue
        known: set[int] = set()
        for name, (least, most, pattern) in bounds(dialect).items():
            for found in re.finditer(pattern, line):
                digits = found[1].rstrip(";")
                value = float(digits.rstrip("kmg")) * UNITS.get(digits[-1], 1)
                assert least <= value <= most, (name, line)
                known.add(found.start(1))
        lists = re.fullmatch(r"\s*(?:fill-level|drop-probability) \[ ([\d ]+) \];", line)
        assert all(int(number) <= 100 for number in (lists[1].split() if lists else [])), line
        if NAMES[dialect].search(line):
            continue
        missing = [found[0] for found in NUMBER.finditer(line) if found.start() not in known]
        assert not missing, f"no range for {missing} of `{line}`"
    if dialect == "ios":
        names = re.findall(r"(?m)^(?:class-map match-any| class|policy-map|   service-policy) (\S+)$", text)
        assert max(len(name) for name in names) <= MOST_NAME
        classes = re.split(r"(?m)^ class ", text)
        for one in classes:
            named = re.findall(r"(?m)^  random-detect dscp (\S+)", one)
            others = [name for name in named if name.isdecimal() and int(name) not in SHOWN]
            assert len(others) <= ios.OTHER_CODEPOINTS, one


@pytest.mark.parametrize("dialect", RANGES)
def test_every_export_of_examples_and_configurations_is_within_them(dialect: str) -> None:
    texts = []
    for path in EXAMPLES:
        try:
            texts.append(reading.canonical(path))
        except PerhopError:  # examples/ has plans and configurations of perhop-router, too
            continue
    for path in sorted(CONFIGURATIONS.glob("*.*")):
        source = Source([(path.name, path.read_bytes())])
        texts.append(reading.canonical(imported(source, ANSWERS, interface=PORTS.get(path.name)).toml))
    made = 0
    for text in texts:
        for name, table in (json.loads(text).get("links") or {}).items():
            for shape in (False, True):
                if "queue" not in table:
                    continue
                try:
                    done = exported(text, "x.toml", dialect, link=name, lenient=True, shape=shape)
                except PerhopError:
                    continue
                check(done.text, dialect)
                made += 1
    assert made > 40


WRED = 'aqm = "wred", green = "{low}{u}/{high}{u}/{p}", yellow = "1{u}/{high}{u}/1", limit = "{limit}{u}"'
SHAPES = (
    # A strict queue that is policed, with others in parts of the rest.
    """[links.wan.queue]
scheduler = "llq"
[[links.wan.queue.priority]]
name = "v"
match = {{ dscp = "EF" }}
rate = "{part}bps"
burst = "{burst}B"
rule = {{ aqm = "drop-tail", limit = "{limit}p" }}
[links.wan.queue.queue]
scheduler = "wfq"
[[links.wan.queue.queue.queues]]
name = "d"
match = {{ dscp = [10, 12, 14] }}
weight = {weight}
rule = {{ WRED }}
[[links.wan.queue.queue.queues]]
name = "r"
weight = 1
rule = {{ WRED }}
""",
    # Guaranteed rates below a shaper.
    """[links.wan.queue]
scheduler = "shaper"
rate = "{part}bps"
burst = "{burst}B"
[links.wan.queue.queue]
scheduler = "wfq"
[[links.wan.queue.queue.queues]]
name = "d"
match = {{ dscp = [10, 12, 14] }}
rate = "{tenth}bps"
rule = {{ WRED }}
[[links.wan.queue.queue.queues]]
name = "r"
rate = "{tenth}bps"
rule = {{ WRED }}
""",
    # One level of a tree, with a strict class that is shaped.
    """[links.wan.queue]
scheduler = "htb"
[[links.wan.queue.classes]]
name = "all"
rate = "{rate}bps"
[[links.wan.queue.classes.classes]]
name = "v"
match = {{ dscp = "EF" }}
rate = "{tenth}bps"
cburst = "{burst}B"
quantum = "1.5kB"
prio = 0
queue = {{ aqm = "drop-tail", limit = "{limit}p" }}
[[links.wan.queue.classes.classes]]
name = "d"
match = {{ dscp = [10, 12, 14] }}
rate = "{tenth}bps"
ceil = "{part}bps"
cburst = "{burst}B"
quantum = "1.5kB"
prio = 1
queue = {{ WRED }}
[[links.wan.queue.classes.classes]]
name = "r"
rate = "{tenth}bps"
ceil = "{rate}bps"
quantum = "1.5kB"
prio = 1
queue = {{ aqm = "drop-tail", limit = "{limit}p" }}
""",
)


@pytest.mark.parametrize("dialect", RANGES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    shape=st.sampled_from(SHAPES),
    rate=st.sampled_from([10_000, 10**6, 3 * 10**9, 10**11, 4 * 10**11, 16 * 10**11]),
    burst=st.sampled_from([1500, 40_000, 3_000_000, 7_500_000, 10**9, 10**10]),
    limit=st.sampled_from([2, 100, 5000, 10**6, 10**8]),
    p=st.sampled_from(["1", "0.1", "0.00001"]),
    weight=st.sampled_from([1, 40, 1000, 10_000]),
    unit=st.sampled_from(["p", "B"]),
)
def test_extreme_values_are_fitted(  # noqa: PLR0917 - hypothesis gives them by name
    dialect: str, shape: str, rate: int, burst: int, limit: int, p: str, weight: int, unit: str
) -> None:
    values = {"rate": rate, "part": rate // 2, "tenth": rate // 10, "burst": burst, "weight": weight}
    limit = max(limit, 3000) if unit == "B" else limit
    low, high = max(1, limit // 3), max(2, limit // 2)
    curve = WRED.format(low=low, high=high, limit=limit, p=p, u="" if unit == "p" else unit)
    curve = curve.replace(f'limit = "{limit}"', f'limit = "{limit}p"')
    table = shape.replace("{{ WRED }}", "{{ " + curve.replace("{", "{{").replace("}", "}}") + " }}")
    text = HEAD.replace('"20Mbps"', f'"{rate}bps"') + table.format(limit=limit, **values) + FLOW
    try:
        canonical = reading.canonical(text)
    except PerhopError:  # such as a shaper whose burst is below a packet
        return
    done = exported(canonical, "x.toml", dialect, lenient=True, shape=True)
    check(done.text, dialect)


def test_long_names_are_shorter_words_of_their_own() -> None:
    long = "a-class-with-a-name-that-is-longer-than-forty-characters"
    head, rest = HEAD.replace("links.wan", f'links."{long}"'), 'rule = { aqm = "drop-tail", limit = "9p" }\n'
    path = f'links."{long}".queue'
    table = f'[{path}]\nscheduler = "wfq"\n'
    for code, name in ((10, f"{long}-1"), (12, f"{long}-2")):
        table += f'[[{path}.queues]]\nname = "{name}"\nmatch = {{ dscp = {code} }}\nweight = 1\n{rest}'
    table += f'[[{path}.queues]]\nname = "rest"\nweight = 1\n{rest}'
    done = exported(reading.canonical(head + table + FLOW), "x.toml", "ios", shape=True)
    check(done.text, "ios")
    maps = re.findall(r"class-map match-any (\S+)", done.text)
    assert maps == ["a-class-with-a-name-that-is-longer-than-", "a-class-with-a-name-that-is-longer-tha-2"]


PRIORITY = """\
[links.wan.queue]
scheduler = "llq"
[[links.wan.queue.priority]]
name = "V"
match = {{ dscp = "EF" }}
rate = "300Mbps"
burst = "{burst}"
rule = {{ aqm = "drop-tail", limit = "50p" }}
[links.wan.queue.queue]
aqm = "drop-tail"
limit = "64p"
"""


@pytest.mark.parametrize(
    ("burst", "line", "said"),
    [
        ("7.5MB", "  priority 300000", []),  # 200 ms of the rate, the device's own
        ("1.5MB", "  priority 300000 1500000", []),
        (
            "5MB",
            "  priority 300000 2000000",
            ["burst 5000000 B becomes 2000000 B, the most that the command takes"],
        ),
    ],
)
def test_the_burst_of_a_priority_class(burst: str, line: str, said: list[str]) -> None:
    head = HEAD.replace("20Mbps", "1Gbps")
    done = exported(reading.canonical(head + PRIORITY.format(burst=burst) + FLOW), "x.toml", "ios")
    assert line in done.text.splitlines()
    rounded = [remark.text.partition(", off")[0] for remark in done.remarks if remark.kind == "rounded"]
    assert rounded == said


def test_a_rate_above_the_range_is_a_percentage() -> None:
    table = PRIORITY.format(burst="60MB").replace("300Mbps", "3Gbps")
    head = HEAD.replace("20Mbps", "10Gbps")
    done = exported(reading.canonical(head + table + FLOW), "x.toml", "ios")
    assert "  priority percent 30 2000000" in done.text.splitlines()
    assert ios.RANGES["priority"].most == 2e6


def test_curves_of_all_codepoints_are_those_of_precedences() -> None:
    rule = '[links.wan.queue]\naqm = "wred"\nlimit = "200p"\nweight = 0.015625\nwait = false\nprofiles = ['
    rule += ", ".join(f'{{ match = {{ precedence = {p} }}, curve = "{20 + p}/40/0.1" }}' for p in range(7))
    lines = written(rule + ', { curve = "30/60/0.05" }]\n').text.splitlines()
    found = [line for line in lines if line.startswith("  random-detect")]
    assert found == [
        "  random-detect",
        "  random-detect exponential-weighting-constant 6",
        *(f"  random-detect precedence {p} {20 + p} 40 10" for p in range(7)),
        "  random-detect precedence 7 30 60 20",
    ]


def test_more_codepoints_than_a_class_has_lines_for() -> None:
    codes = [code for code in range(1, 64) if code not in SHOWN][:9]
    rule = '[links.wan.queue]\naqm = "wred"\nlimit = "200p"\nweight = 0.015625\nwait = false\n'
    rule += f'profiles = [{{ match = {{ dscp = {codes} }}, curve = "5/9/0.5" }}, {{ curve = "20/40/0.1" }}]\n'
    with_flow = FLOW.replace("count = 1", f"count = 1\ndscp = {codes[8]}")
    text = reading.canonical(HEAD + rule + with_flow)
    done = exported(text, "x.toml", "ios")
    # That of the flow is among them; the other curve is the device's own, and needs no lines.
    assert f"  random-detect dscp {codes[8]} 5 9 2" in done.text
    assert done.text.count("random-detect dscp ") == ios.OTHER_CODEPOINTS + len(SHOWN)
    said = "has curves for 9 codepoints beside class selectors, AF and EF"
    assert any(said in remark.text for remark in done.remarks)
