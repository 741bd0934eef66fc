"""What users of ns-3, tc, Mininet, mahimahi and iperf write: each message has what to write here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perhop import _engine
from perhop.errors import ScenarioError

GOOD = """title = "Assured Service sold at 76 %"
duration = "100s"

[links.bottleneck]
from = "edge"
to = "core"
rate = "20Mbps"
delay = "48ms"
queue = { aqm = "rio-plus-out", limit = "868p", in = "390/694/0.02", total = "347/694/0.05", out = "10/30/0.01" }

[[flows]]
name = "gold"
count = 4
from = "edge"
to = "core"
access = { rate = "10Mbps", delay = "1ms" }
transport = { tcp = "newreno", packet = "576B" }
profile = { rate = "2Mbps", marker = "token-bucket", burst = "40kB" }
"""  # noqa: E501
TRANSPORT = 'tcp = "newreno", packet = "576B"'
QUEUE = GOOD.partition("queue = { ")[2].partition(" }")[0]
CONTROLS = ("cubic", "scalable", "dctcp", "bbr", "bbr3", "prague", "ledbat")

WORDS = [
    (
        'delay = "48ms"',
        'rtt = "96ms"',
        "bottleneck.rtt: unknown key `rtt`; write `delay`, which is one way: half of the",
    ),
    ('delay = "48ms"', 'latency = "48ms"', "unknown key `latency`; write `delay` (valid"),
    ('rate = "20Mbps"', 'bandwidth = "20Mbps"', "unknown key `bandwidth`; write `rate` (valid"),
    ('rate = "20Mbps"', "bw = 20", "unknown key `bw`; write `rate` (valid"),
    ('delay = "48ms"', 'delay = "48ms"\nplr = 0.1', "unknown key `plr`; write `loss` (valid"),
    (
        'delay = "48ms"',
        'delay = "48ms"\nmtu = 1500',
        "unknown key `mtu`; packets have the size `packet` of a flow's transport",
    ),
    (
        'delay = "48ms"',
        'delay = "48ms"\nqdisc = "fq"',
        "unknown key `qdisc`; write the table `queue`, such as queue = {",
    ),
    (
        'delay = "48ms"',
        'delay = "48ms"\njitter = "5ms"',
        "expected a table (Jitter), such as { distribution =",
    ),
    (
        'delay = "48ms"',
        'delay = "48ms"\nloss = "101%"',
        "links.bottleneck.loss: `101%`: at most 100 % and at least 0 %",
    ),
    (
        QUEUE,
        'scheduler = "priority", queues = [{ match = { host = "10.0.0.1" }, rule = { aqm = "codel" } }]',
        (
            "unknown key `host`; a queue distinguishes packets by their codepoint: "
            'write match = { dscp = "EF" };'
        ),
    ),
    (
        QUEUE,
        'scheduler = "priority", queues = [{ match = { flow = "gold" }, rule = { aqm = "codel" } }]',
        'flows of a scenario have it with dscp = "EF" beside `transport` (valid keys: path, dscp',
    ),
    ('delay = "48ms"', 'delay = "48ms"\nloss = 5', 'a probability lies between 0 and 1, not 5; 5 % is "5%"'),
    ('limit = "868p", ', "maxsize = 868, ", "unknown key `maxsize`; write `limit` (valid"),
    (
        'limit = "868p", ',
        'limit = "1bdp", ',
        "`1bdp`: a bandwidth-delay product needs a round-trip time; write it as this time",
    ),
    (
        'from = "edge"\nto = "core"\naccess',
        'src = "edge"\nto = "core"\naccess',
        "unknown key `src`; write `from` (valid",
    ),
    ("count = 4", "n = 4", "unknown key `n`; write `count` (valid"),
    (
        "count = 4",
        "ecn = true",
        'not true; a flow is capable with the key `ecn` beside `transport`, such as ecn = "classic" (RFC 3168)',  # noqa: E501
    ),
    (
        "count = 4",
        'rate = "1Mbps"',
        'it belongs to the transport, such as transport = { udp = "cbr", rate = "1Mbps" }',
    ),
    (
        "count = 4",
        'size = "1MB"',
        "unknown key `size`; write `volume` for what each flow sends, or, beside `arrivals`, `sizes`",
    ),
    ("count = 4", 'duration = "5s"', "unknown key `duration`; a flow lasts from `start` to `stop`"),
    ("count = 4", "uplink = true", "data goes from `from` to `to`; swap them for the other direction"),
    ("count = 4", 'rtt = "20ms"', "delays stand in the tables of links and in `access`, one way"),
    ("count = 4", "start = 5", 'expected text in quotes, such as "2s" or "0s..1s", not 5'),
    (
        "count = 4",
        'arrivals = "poisson"',
        'expected a table (Arrivals), such as { rate = "40/s" }, a Poisson process, not',
    ),
    (
        "transport = { tcp",
        'tcp = "newreno"\ntransport = { tcp',
        "unknown key `tcp`; write the table `transport`, such as",
    ),
    (TRANSPORT, 'tcp = "newreno", mss = "1448B"', "unknown key `mss`; write `packet` (valid"),
    (TRANSPORT, 'tcp = "newreno", cc = "cubic"', "unknown key `cc`; write `congestion` (valid"),
    (TRANSPORT, 'tcp = "newreno", iw = 10', "unknown key `iw`; write `initial-window` (valid"),
    (
        TRANSPORT,
        'tcp = "newreno", ecn = true',
        "unknown key `ecn`; a flow is capable with the key `ecn` beside `transport`",
    ),
    (
        TRANSPORT,
        'tcp = "newreno", congestion = "vegas"',
        "unknown value `vegas`; it is not built in; one of your own is a class",
    ),
    (
        TRANSPORT,
        'udp = "poisson", rate = "1Mbps"',
        "unknown value `poisson`; packets at random times are a population: transport = {",
    ),
    (TRANSPORT, 'udp = "cbr", bandwidth = "1Mbps"', "unknown key `bandwidth`; write `rate` (valid"),
    (
        QUEUE,
        'aqm = "netem"',
        "unknown aqm `netem`; `delay`, `loss`, `burst-loss` and `jitter` are keys of the link",
    ),
    (QUEUE, 'aqm = "tbf"', 'unknown aqm `tbf`; a token-bucket shaper is scheduler = "shaper"'),
    (QUEUE, 'aqm = "red", limit = "9p", minth = 5', "unknown key `minth`; write `thresholds` (valid"),
    ('duration = "100s"', 'time = "100s"', "unknown key `time`; write `duration` (valid"),
    (
        'duration = "100s"',
        'duration = "100s"\nseed = 3',
        "unknown key `seed`; it is an option of the command: perhop run SCENARIO",
    ),
    (
        "[[flows]]",
        "[flows]",
        "expected a list, such as [[flows]], in double brackets, once for each group, not a table",
    ),
]


def read(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_engine.read_toml(text, "s.toml", folder=Path())[0])
    return found


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def refusal(old: str, new: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        read(changed(old, new))
    return str(caught.value)


@pytest.mark.parametrize(("old", "new", "hint"), WORDS)
def test_words_of_other_programs_have_a_hint(old: str, new: str, hint: str) -> None:
    assert hint in refusal(old, new)


@pytest.mark.parametrize("control", CONTROLS)
def test_a_value_of_another_key_is_sent_there(control: str) -> None:
    for written in (control, control.upper(), f"Tcp{control}"):
        found = refusal(TRANSPORT, f'tcp = "{written}"')
        hint = (
            f'`{control}` is a value of the key `congestion`: write tcp = "linux", congestion = "{control}"'
        )
        assert f"unknown value `{written}`; {hint} (one of reno," in found


def test_a_word_that_is_a_key_of_its_own_is_said_to_be_one() -> None:
    assert "`sack` is a key of its own, beside tcp" in refusal(TRANSPORT, 'tcp = "sack"')
    assert "`rack` is a value of the key `loss-detection`" in refusal(TRANSPORT, 'tcp = "rack"')


def tail(limit: str) -> str:
    return f'aqm = "drop-tail", limit = "{limit}"'


@pytest.mark.parametrize(
    ("time", "size"),
    [
        (tail("50ms"), tail("125kB")),
        (tail("1 s"), tail("2.5MB")),
        (tail("3us"), tail("7B")),
        ('aqm = "codel", limit = "50ms"', 'aqm = "codel", limit = "125kB"'),
        ('scheduler = "dualpi2", limit = "50ms"', 'scheduler = "dualpi2", limit = "125kB"'),
    ],
)
def test_a_limit_may_be_a_time_at_the_rate_of_the_link(time: str, size: str) -> None:
    assert read(changed(QUEUE, time)) == read(changed(QUEUE, size))


def test_the_reverse_direction_has_its_own_rate() -> None:
    delay = 'delay = "48ms"'
    for rate, size in (("", "125kB"), ('rate = "2Mbps", ', "12500B")):
        time, same = (f"{delay}\nreverse = {{ {rate}queue = {{ {tail(one)} }} }}" for one in ("50ms", size))
        assert read(changed(delay, time)) == read(changed(delay, same))


@pytest.mark.parametrize(
    ("percentage", "fraction"),
    [('"1%"', "0.01"), ('"0.7 %"', "0.007"), ('"100%"', "1"), ('".5%"', "0.005"), ('"0%"', "0")],
)
def test_a_fraction_may_be_a_percentage(percentage: str, fraction: str) -> None:
    delay = 'delay = "48ms"'
    one, other = (read(changed(delay, f"{delay}\nloss = {loss}")) for loss in (percentage, fraction))
    assert one == other
    assert read(changed("390/694/0.02", "390/694/2%")) == read(GOOD)


@pytest.mark.parametrize("loss", ['"one"', '"-1%"', "true"])
def test_what_is_no_fraction_is_refused_with_an_example(loss: str) -> None:
    found = refusal('delay = "48ms"', f'delay = "48ms"\nloss = {loss}')
    assert "links.bottleneck.loss: " in found
    assert "1%" in found


@pytest.mark.parametrize("loss", ['"101%"', '"100.5 %"', '"1000%"'])
def test_a_percentage_above_100_is_not_taken_for_a_number_without_its_sign(loss: str) -> None:
    found = refusal('delay = "48ms"', f'delay = "48ms"\nloss = {loss}')
    assert "at most 100 %" in found
    assert ' is "' not in found


def test_a_link_that_loses_all_has_a_notice() -> None:
    text = changed('delay = "48ms"', 'delay = "48ms"\nloss = 1')
    _, notices = _engine.read_toml(text, "s.toml", folder=Path())
    assert any("links.bottleneck.loss: `1`: the link loses every packet" in notice for notice in notices)
