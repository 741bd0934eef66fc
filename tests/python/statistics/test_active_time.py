"""Rates of flows are over the time in which they were active; use of a link is of what it could have sent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import pytest

import perhop as package
from perhop.errors import ScenarioError
from perhop.measures import flow_table
from perhop.runs.metrics import measure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perhop.runs.result import Result

Engine = Literal["batched", "reference"]
ENGINES: tuple[Engine, ...] = ("batched", "reference")


def scenario(
    flows: str, *, rate: str = "10Mbps", duration: str = "60s", head: str = "", link: str = ""
) -> str:
    """Flows from `a` to `b` over one link."""
    return f"""\
duration = "{duration}"
{head}

[links.link]
from = "a"
to = "b"
rate = "{rate}"
delay = "10ms"
queue = {{ aqm = "drop-tail", limit = "200p" }}
{link}
{flows}
"""


def flow(name: str, transport: str, keys: str = "") -> str:
    """A `[[flows]]` entry."""
    return f"""
[[flows]]
name = "{name}"
from = "a"
to = "b"
transport = {{ {transport} }}
{keys}
"""


def column(result: Result, name: str) -> list[float]:
    """A column of the engine's table of flows."""
    values: list[float] = result.runs[0].raw["flows"][name].tolist()
    return values


def metrics(result: Result) -> Mapping[str, float]:
    """What a sweep measures of the run."""
    return dict(measure(result.runs[0].raw))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_rate_of_a_download_is_over_its_completion_time(engine: Engine) -> None:
    text = scenario(flow("f", 'tcp = "linux"', 'volume = "1MB"'))
    result = package.run(text, engine=engine, runs=1)
    (rate,), (time,), (active,) = (
        column(result, name) for name in ("throughput_bps", "completion_s", "active_s")
    )
    (delivered,) = column(result, "delivered_bytes")
    assert 0.8 < time < 1.0
    assert active == time
    assert rate == delivered * 8 / time
    assert rate > 8e6, "it was .13 Mbit/s over the whole run"
    assert column(result, "acked_bps") == [rate]
    # The link, and all flows together, are measured over the whole interval.
    total = metrics(result)["throughput_bps"]
    assert total == delivered * 8 / 60
    assert result.links["utilization"][0] < 0.02


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("delay", ["10ms", "50ms"])
def test_flows_at_exactly_their_profile_reach_it_whenever_they_begin(engine: Engine, delay: str) -> None:
    profile = 'profile = { rate = "250kbps", marker = "token-bucket", burst = "20kB" }'
    cbr = 'udp = "cbr", rate = "250kbps", packet = "1000B", jitter = 0'
    flows = "".join(flow(name, cbr, profile) for name in ("one", "two"))
    late = flow("late", cbr, f'{profile}\nstart = "50s"')
    text = scenario(flows + late, duration="100s", head='warmup = "10s"', rate="750kbps")
    result = package.run(text.replace('"10ms"', f'"{delay}"'), engine=engine, runs=1)
    found = metrics(result)
    assert [found[f"flows.{name}.profile_success"] for name in ("one", "two", "late")] == [1, 1, 1]
    assert found["reservation_success"] == 1
    assert found["jain_index"] == pytest.approx(1, abs=1e-5)
    assert column(result, "active_s") == [90, 90, 50]
    assert column(result, "throughput_bps") == pytest.approx([250e3] * 3, rel=2e-3)


@pytest.mark.parametrize("engine", ENGINES)
def test_flows_of_one_class_that_begin_at_other_times_have_equal_shares(engine: Engine) -> None:
    cbr = 'udp = "cbr", rate = "250kbps", packet = "500B", jitter = 0'
    text = scenario(flow("all", cbr, 'count = 9\nstart = "0s..80s"'), duration="100s")
    result = package.run(text, engine=engine, runs=1)
    started, active = column(result, "started_s"), column(result, "active_s")
    assert [begin + span for begin, span in zip(started, active, strict=True)] == pytest.approx([100] * 9)
    assert metrics(result)["flows.all.jain_index"] > 0.99999
    assert metrics(result)["flows.all.throughput_min_bps"] == pytest.approx(250e3, rel=2e-3)


@pytest.mark.filterwarnings("ignore:.*never begin")
@pytest.mark.parametrize("engine", ENGINES)
def test_when_a_flow_is_active(engine: Engine) -> None:
    cbr = 'udp = "cbr", rate = "1Mbps", packet = "1250B", jitter = 0'
    on_off = cbr.replace("cbr", "on-off") + ', on = "1s", off = "1s", periods = "constant"'
    flows = {
        # A packet each 10 ms; it takes 11 ms (1 ms on the link).
        "stopped": flow("stopped", cbr, 'start = "5s"\nstop = "15s"'),
        "in the warm-up": flow("in the warm-up", cbr, 'stop = "5s"'),
        "across its end": flow("across its end", cbr, 'start = "5s"\nstop = "20s"'),
        "never": flow("never", cbr, 'start = "70s"'),
        "on and off": flow("on and off", on_off, 'start = "20s"'),
    }
    text = scenario("".join(flows.values()), head='warmup = "10s"')
    result = package.run(text, engine=engine, runs=1)
    active = dict(zip(flows, column(result, "active_s"), strict=True))
    rates = dict(zip(flows, column(result, "throughput_bps"), strict=True))
    started = dict(zip(flows, column(result, "started_s"), strict=True))
    # The last packet leaves at 14.99 s and comes by 15.001 s, later than the stop, if the link was free.
    assert active["stopped"] == pytest.approx(5.001, abs=2e-3)
    assert rates["stopped"] == pytest.approx(1e6, rel=2e-3)
    assert active["in the warm-up"] == 0
    assert math.isnan(rates["in the warm-up"])
    assert active["across its end"] == pytest.approx(10.001, abs=2e-3)
    assert active["never"] == 0
    assert math.isnan(rates["never"])
    assert math.isnan(started["never"])
    assert active["on and off"] == 40
    assert rates["on and off"] == pytest.approx(0.5e6, rel=0.01)
    classes = result.classes()
    assert classes.filter(classes["class"] == "never")["throughput_bps"].to_list() == [None]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_flow_that_is_active_too_briefly_for_data_to_arrive_has_no_rate(engine: Engine) -> None:
    cbr = 'udp = "cbr", rate = "1Mbps", packet = "1250B", jitter = 0'
    tcp = 'tcp = "linux"'
    # At 10 Mbit/s and 10 ms a packet of 1250 bytes takes 11 ms; TCP sends data after a round trip of 20 ms.
    flows = {
        "late": flow("late", cbr, 'start = "59.990s"'),
        "just in time": flow("just in time", cbr, 'start = "59.9885s"'),
        "late TCP": flow("late TCP", tcp, 'start = "59.97s"'),
        "TCP in time": flow("TCP in time", tcp, 'start = "59.95s"'),
        "stopped before it was open": flow(
            "stopped before it was open", tcp, 'start = "5s"\nstop = "5.015s"'
        ),
        "late volume": flow("late volume", tcp, 'start = "59.97s"\nvolume = "1MB"'),
        "begun in the warm-up": flow("begun in the warm-up", cbr, 'start = "1.999s"'),
    }
    text = scenario("".join(flows.values()), head='warmup = "2s"')
    result = package.run(text, engine=engine, runs=1)
    rates = dict(zip(flows, column(result, "throughput_bps"), strict=True))
    acked = dict(zip(flows, column(result, "acked_bps"), strict=True))
    none = {name for name, rate in rates.items() if math.isnan(rate)}
    assert none == {"late", "late TCP", "stopped before it was open", "late volume"}
    assert math.isnan(acked["late TCP"])
    assert all(rate > 0 for name, rate in rates.items() if name not in none)
    classes = result.classes().iter_rows(named=True)
    assert {row["class"] for row in classes if row["throughput_bps"] is None} == none


@pytest.mark.parametrize("engine", ENGINES)
def test_a_flow_of_which_nothing_arrives_has_a_rate_of_zero(engine: Engine) -> None:
    cbr = 'udp = "cbr", rate = "1Mbps", packet = "1250B", jitter = 0'
    flows = flow("always", cbr) + flow("brief", cbr, 'start = "5s"\nstop = "5.005s"')
    down = 'outages = [{ from = "0s", to = "60s" }]'
    result = package.run(scenario(flows, link=down), engine=engine, runs=1)
    assert column(result, "throughput_bps") == [0, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_source_that_lost_packets_of_its_volume_ends_with_its_last_one(engine: Engine) -> None:
    lossy = flow("f", 'udp = "cbr", rate = "20Mbps", packet = "1250B", jitter = 0', 'volume = "1MB"')
    result = package.run(scenario(lossy, link="").replace("200p", "10p"), engine=engine, runs=1)
    assert column(result, "unfinished") == [1]
    # It sends for .4 s; the queue's last packets arrive some ms later.
    assert column(result, "active_s") == [pytest.approx(0.42, abs=0.03)]
    assert column(result, "throughput_bps") == [pytest.approx(10e6, rel=0.05)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_population_has_the_rate_of_all_its_flows_over_the_measured_interval(engine: Engine) -> None:
    population = flow(
        "p", 'tcp = "linux"', 'start = "30s"\narrivals = { every = "1s" }\nsizes = { constant = "10kB" }'
    )
    result = package.run(scenario(population), engine=engine, runs=1)
    (delivered,) = column(result, "delivered_bytes")
    assert column(result, "throughput_bps") == [delivered * 8 / 60]
    assert column(result, "started_s") == [30]
    assert math.isnan(column(result, "active_s")[0])


@pytest.mark.parametrize("engine", ENGINES)
def test_the_use_of_a_link_is_of_the_integral_of_its_rate(engine: Engine) -> None:
    cbr = 'udp = "cbr", rate = "400kbps", packet = "500B", jitter = 0'
    steady = flow("f", cbr, 'start = "0s"')
    halved = 'changes = [{ at = "30s", rate = "500kbps" }]'
    result = package.run(scenario(steady, rate="1Mbps", link=halved), engine=engine, runs=1)
    link = result.runs[0].raw["links"][0]
    assert (link["rate_bps"], link["mean_rate_bps"]) == (1e6, 750e3)
    assert link["utilization"] == pytest.approx(0.4 / 0.75, rel=1e-3)
    # A link that became faster was 150 % used.
    greedy = 'udp = "cbr", rate = "3Mbps", packet = "500B", jitter = 0'
    doubled = 'changes = [{ at = "30s", rate = "2Mbps" }]'
    result = package.run(
        scenario(flow("f", greedy, 'start = "0s"'), rate="1Mbps", link=doubled), engine=engine, runs=1
    )
    link = result.runs[0].raw["links"][0]
    assert link["mean_rate_bps"] == 1.5e6
    assert link["utilization"] == pytest.approx(1, rel=1e-4)
    # An outage is a rate of zero.
    down = 'outages = [{ from = "10s", to = "40s" }]'
    result = package.run(
        scenario(flow("f", greedy, 'start = "0s"'), rate="1Mbps", link=down), engine=engine, runs=1
    )
    link = result.runs[0].raw["links"][0]
    assert link["mean_rate_bps"] == 0.5e6
    assert link["utilization"] == pytest.approx(1, rel=1e-3)


@pytest.mark.filterwarnings("ignore:.*never begin")
@pytest.mark.parametrize("engine", ENGINES)
def test_the_target_of_a_flow_is_its_part_of_the_link_while_it_was_active(engine: Engine) -> None:
    tcp = 'tcp = "newreno"'
    link = 'changes = [{ at = "50s", rate = "500kbps" }]'
    always, late = flow("always", tcp, 'start = "0s"'), flow("late", tcp, 'start = "50s"')
    never = flow("never", tcp, 'start = "200s"')
    text = scenario(always + late + never, rate="1Mbps", duration="100s", link=link)
    found = flow_table.Flows.of(package.run(text, engine=engine, runs=1).runs[0].raw)
    assert found.targets == pytest.approx([375e3, 250e3])
    assert len(found.aimed) == 2


@pytest.mark.filterwarnings("ignore:.*begin during the warm-up")
@pytest.mark.parametrize("engine", ENGINES)
def test_every_flow_counts_by_its_beginning(engine: Engine) -> None:
    tcp, starts = 'tcp = "newreno"', ("9.9s", "10s", "10.1s")
    sized = "".join(flow(at, tcp, f'volume = "100kB"\nstart = "{at}"') for at in starts)
    listed = ", ".join(f'["{at}", "100kB"]' for at in starts)
    population = flow("population", tcp, f"arrivals = {{ list = [{listed}] }}")
    text = scenario(sized + population, head='warmup = "10s"', duration="20s")
    result = package.run(text, engine=engine, runs=1)
    times = column(result, "completion_s")[:3]
    assert [math.isnan(time) for time in times] == [True, False, False]
    assert [math.isnan(one) for one in column(result, "unfinished")[:3]] == [True, False, False]
    assert metrics(result)["populations.population.flows_begun"] == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_a_volume_is_payload_as_the_sizes_of_a_population_are(engine: Engine) -> None:
    tcp = 'tcp = "newreno", packet = "1500B", ack = "40B"'
    flows = flow("sized", tcp, 'volume = "100kB"\nstart = "1s"')
    flows += flow("population", tcp, 'arrivals = { list = [["30s", "100kB"]] }')
    result = package.run(scenario(flows), engine=engine, runs=1)
    # 68.5 packets with 1460 bytes of payload; the last of a volume is full.
    assert column(result, "delivered_packets") == [69, 69]
    assert column(result, "delivered_bytes") == [69 * 1500, 100_000 + 69 * 40]


def test_packets_of_a_volume_have_room_for_payload() -> None:
    text = scenario(flow("f", 'tcp = "newreno", packet = "40B", ack = "40B"', 'volume = "1kB"'))
    with pytest.raises(ScenarioError, match=r"transport\.packet: packets of a flow with a `volume` need"):
        package.run(text, runs=1)


def test_a_load_is_of_the_mean_rate_of_a_link_while_flows_begin() -> None:
    keys = 'arrivals = { load = 0.5 }\nsizes = { constant = "10kB" }'
    halved = 'changes = [{ at = "30s", rate = "5Mbps" }]'
    begun = [
        metrics(package.run(scenario(flow("p", 'tcp = "newreno"', keys), link=link), runs=1))[
            "populations.p.flows_begun"
        ]
        for link in ("", halved)
    ]
    # 62.5 flows a second at 10 Mbit/s, for 60 s, and three quarters of them.
    assert begun == [pytest.approx(3750, rel=0.08), pytest.approx(2812, rel=0.08)]


@pytest.mark.filterwarnings("ignore:.*never begin")
def test_what_flows_that_come_and_go_carry_together_is_of_the_whole_time() -> None:
    """A flow of 500 kbit/s, one that begins in the middle, and one after the end: on average 750 kbit/s."""
    udp = {"from": "a", "to": "b", "transport": {"udp": "cbr", "rate": "500kbps"}}
    result = package.run(
        {
            "duration": "20s",
            "warmup": "2s",
            "links": {"l": {"from": "a", "to": "b", "rate": "1Mbps", "delay": "1ms"}},
            "flows": [
                {"name": "all", **udp},
                {"name": "half", **udp, "start": "11s"},
                {"name": "never", **udp, "start": "30s"},
            ],
        },
        runs=1,
    )
    (run,) = result.runs
    assert run.carried_bps("all", "half", "never") == pytest.approx(750e3, rel=0.01)
    assert run.carried_bps("never") == 0.0
    assert run.carried_bps("all", "half", "never") == pytest.approx(
        1e6 * run.link("l")["utilization"], rel=0.01
    )
