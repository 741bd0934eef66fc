"""Quantities are read with the units that tables print, wherever they are read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import perhop
from perhop import _engine
from perhop.errors import PerhopError
from perhop.planning import objectives, words
from perhop.real_packets import equivalence
from perhop.routers import beside
from perhop.scenario import quantities, ranges
from perhop.show import numbers
from perhop.sweeps import tuning

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]


def scenario(rate: str, delay: str, limit: str) -> dict[str, object]:
    queue = {"aqm": "drop-tail", "limit": limit}
    link = {"from": "a", "to": "b", "rate": rate, "delay": delay, "queue": queue}
    flow = {"name": "one", "from": "a", "to": "b", "transport": {"tcp": "newreno"}}
    return {"duration": "1s", "links": {"l": link}, "flows": [flow]}


@pytest.mark.parametrize("printed", quantities.PRINTED)
def test_every_printed_unit_is_read_as_its_own(printed: str) -> None:
    """The engine, and what Python reads by itself, know the same units."""
    name = quantities.PRINTED[printed]
    values = {"rate": "1Mbps", "delay": "1ms", "limit": "10p"}
    key = {"bps": "rate", "kbps": "rate", "Mbps": "rate", "Gbps": "rate", "us": "delay"}.get(name, "limit")

    def read(text: str) -> str:
        return _engine.scenario_from_json(json.dumps(scenario(**{**values, key: text})), "")

    assert read(f"7 {printed}") == read(f"7{printed}") == read(f"7{name}")


def test_what_figures_print_is_read() -> None:
    for name, printed in numbers._UNITS.items():
        assert quantities.canonical(printed) == name


def test_ranges_constraints_bounds_and_margins() -> None:
    found = ranges.parse_range("2 Mbit/s..10 Mbit/s", "here")
    assert (found.low, found.high, found.unit) == (2.0, 10.0, "Mbps")
    assert ranges.parse_range("50 µs..1000 us log", "here").unit == "us"
    assert ranges.parse_range("10 packets..20p", "here").whole
    with pytest.raises(PerhopError, match="both ends need the same unit"):
        ranges.parse_range("2 Mbit/s..10 kbit/s", "here")
    assert tuning._UNITS["Mbit/s"] == tuning._UNITS["Mbps"] == 1e6
    assert words.UNITS["bit/s"]["kbit/s"] == 1e3
    assert words.UNITS["s"]["µs"] == 1e-6
    margins = equivalence.margins(["throughput=2 Mbit/s", "delay=50µs", "queue=3 packets"])
    found_margins = [margins[name].absolute for name in ("throughput", "delay", "queue")]
    assert found_margins == pytest.approx([2e6, 50e-6, 3.0])
    with pytest.raises(PerhopError, match="throughput=5Mbps"):
        equivalence.margins(["throughput=2 Mbit"])


def test_a_decimal_may_begin_with_its_point(perhop: Perhop) -> None:
    """The engine and all readers of Python: `.5Mbps` is 0.5 Mbit/s."""

    def read(rate: str, delay: str = "1ms") -> str:
        return _engine.scenario_from_json(json.dumps(scenario(rate, delay, "10p")), "")

    assert read(".5Mbps", ".25 ms") == read("0.5Mbps", "250us") == read("500kbps", "0.25ms")
    found = ranges.parse_range(".5Mbps..1.5Mbps", "here")
    assert (found.low, found.high) == (0.5, 1.5)
    margins = equivalence.margins(["throughput=.5Mbps"])
    assert margins["throughput"].absolute == 5e5
    assert beside._quantity("--rate", ".5Mbps", beside.RATES, "20Mbps") == 5e5
    assert words.UNITS["bit/s"]["Mbit/s"] == 1e6
    done = perhop("init", "--rate", ".5Mbps", "--users", "2 calls", "--promised", "calls .2Mbps")
    assert (done.code, done.err) == (0, "")
    bounds = [
        objectives.parse(f"throughput of gold >= {text} Mbit/s", "here").bound for text in (".5", "0.5")
    ]
    assert bounds == [5e5, 5e5]


@pytest.mark.parametrize("number", [".", "5.", "1.2.3", "..5"])
def test_what_is_no_decimal_is_said_to_be_none(number: str) -> None:
    with pytest.raises(perhop.ScenarioError, match=rf"has `{number}` where a number such as 1.5 or .5 must"):
        perhop.run(scenario(f"{number}Mbps", "1ms", "10p"), runs=1)
    with pytest.raises(perhop.ScenarioError, match="is not a whole number of bps, or too large"):
        perhop.run(scenario(".5bps", "1ms", "10p"), runs=1)


def test_options_of_import() -> None:
    read = beside._quantity
    for text in ("20Mbps", "20 mbps", "20 Mbit/s", "20000 kbit/s"):
        assert read("--rate", text, beside.RATES, "20Mbps") == 20e6
    assert read("--packet-size", "1500 bytes", beside.BYTES, "1000B") == 1500
    buffers = [beside._buffer(text) for text in ("200 packets", "50 µs")]
    assert [buffer.number for buffer in buffers if buffer is not None] == pytest.approx([200.0, 50e-6])


def test_a_sweep(perhop: Perhop, tmp_path: Path) -> None:
    assert perhop("init", "--rate", "100 Mbit/s", "--users", "2 downloads", "--yes").code == 0
    (tmp_path / "sweep.toml").write_text(
        'scenario = "my.toml"\nruns = 1\nset = { duration = "2 s", warmup = "1 s" }\n'
        '[grid]\n"links.access.rate" = ["20 Mbit/s", "40 Mbit/s"]\n'
    )
    done = perhop("sweep", "sweep.toml", "--out", "out")
    assert (done.code, "20 Mbit/s" in done.out) == (0, True)


def test_a_unit_that_is_none_has_a_remedy() -> None:
    with pytest.raises(perhop.ScenarioError, match="Mbps, kbps, bps; write a rate such as 20Mbps"):
        perhop.run(scenario("100 MB/s", "1ms", "10p"), runs=1)


@pytest.mark.parametrize(
    ("text", "meant"),
    [("10mbit", "10Mbps"), ("1gbit", "1Gbps"), ("1G", "1Gbps"), ("10,5 Mbit/s", "10.5Mbps")],
)
def test_rates_of_tc_and_routers_are_refused_with_what_they_mean(
    text: str, meant: str, perhop: Perhop, tmp_path: Path
) -> None:
    """In one way wherever a rate is typed."""
    assert perhop("init", "--rate", "100Mbps", "--users", "2 downloads", "--yes").code == 0
    head = 'scenario = "my.toml"\nruns = 2\n'
    files = {
        "sweep": f'{head}[grid]\n"links.access.rate" = ["{text}"]\n',
        "tune": f'{head}objectives = ["maximize links.access.utilization"]\ntrials = 1\n'
        f'[search]\n"links.access.rate" = ["{text}"]\n',
        "plan": f'{head}objectives = ["loss of downloads < 9 %"]\n[set]\n"links.access.rate" = "{text}"\n',
    }
    for command, content in files.items():
        (tmp_path / f"{command}.toml").write_text(content, encoding="utf-8")
        done = perhop(command, f"{command}.toml", "--out", command)
        assert done.code == 2
        assert f"; write {meant}" in done.err
    done = perhop("init", "other.toml", "--rate", text, "--users", "2 downloads", "--yes")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert f"; write {meant}" in done.err


def test_a_constraint_says_what_a_rate_of_tc_means() -> None:
    with pytest.raises(PerhopError, match=r"the unit `mbit`, .*; write 2Mbps"):
        tuning._constraint("flows.a.throughput_bps >= 2mbit", "here")
