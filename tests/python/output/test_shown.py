"""Results that show themselves: in notebooks, as figures and as LaTeX."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

import perhop as package
from perhop import PerhopError
from perhop.runs import notebook, simulate
from perhop.runs.page import drawn
from perhop.runs.pictures import windows_over_time
from perhop.runs.summary import summarize
from perhop.scenario import reading
from perhop.show import limits
from perhop.show.estimates import Estimates
from perhop.show.latex import escaped, latex_table
from perhop.show.readable import readable
from perhop.show.sheet import to_png

EXAMPLES = Path(__file__).parents[3] / "examples"
EVIL = '<script>alert("&")</script>'


class _Texts(HTMLParser):
    """The tags and the text of a fragment; every tag is closed in its order."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.tags.add(tag)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def _read(fragment: str) -> _Texts:
    texts = _Texts()
    texts.feed(fragment)
    texts.close()
    assert not texts.open
    return texts


def _scenario(name: str = EVIL, rate: str = "2Mbps") -> package.Scenario:
    return package.Scenario(
        title=name,
        duration="3s",
        warmup="1s",
        links={
            name: package.scenario.Link(
                from_="edge", to="core", rate=rate, delay="5ms", queue=package.scenario.DropTail(limit="20p")
            )
        },
        flows=[
            package.scenario.Flow(
                name=name,
                count=2,
                from_="edge",
                to="core",
                transport=package.scenario.Tcp(tcp="newreno"),
                access=ACCESS,
            )
        ],
    )


ACCESS = package.scenario.Access(rate="10Mbps", delay="1ms")


def test_a_scenario_shows_its_network_links_and_flows() -> None:
    texts = _read(_scenario()._repr_html_())
    assert texts.tags == {"p", "img", "table", "thead", "tbody", "tr", "th", "td"}
    for word in (EVIL, "3s, the first 1s excluded", "drop-tail", "tcp newreno", "best effort", "2Mbps"):
        assert word in texts.text
    svg = re.search(r"data:image/svg\+xml;base64,([^\"]+)", _scenario()._repr_html_())
    assert svg is not None
    picture = base64.b64decode(svg[1]).decode()
    assert "edge" in picture
    assert "<script" not in picture


@pytest.mark.parametrize(("routers", "tables"), [(3, 2), (61, 1)])
def test_links_of_a_topology_are_shown_if_it_can_be_drawn(routers: int, tables: int) -> None:
    scenario = package.Scenario(
        duration="1s",
        topology=package.scenario.Topology(
            chain=routers, link=package.scenario.TopologyLink(rate="3Mbps", delay="1ms")
        ),
        flows=[
            package.scenario.Flow(
                name="tcp", from_="r1", to="r3", transport=package.scenario.Tcp(tcp="newreno")
            )
        ],
    )
    page = scenario._repr_html_()
    assert page.count("<table>") == tables
    assert ("r2--r3" in _read(page).text) == (tables == 2)


def test_a_scenario_that_cannot_be_run_shows_the_reason() -> None:
    texts = _read(_scenario(rate="2 bananas <b>")._repr_html_())
    assert texts.tags == {"p"}
    assert "cannot be run" in texts.text
    assert "bananas" in texts.text


def test_a_table_of_a_scenario_shows_its_keys() -> None:
    texts = _read(package.scenario.Link(from_=EVIL, to="b", rate="2Mbps", delay="1ms")._repr_html_())
    for word in ("Link", "from", EVIL, "rate", "2Mbps"):
        assert word in texts.text
    assert "script" not in texts.tags


@pytest.mark.parametrize("example", ["first", "office", "transfers", "queues"])
def test_every_kind_of_table_of_a_scenario_can_be_shown(example: str) -> None:
    checked = reading.read(EXAMPLES / f"{example}.toml")
    flows = list(notebook._flows(json.loads(checked.text)))
    assert len({tuple(flow) for flow in flows}) == 1
    assert all(text for flow in flows for text in flow.values())


def test_a_result_shows_its_network_and_tables_escaped() -> None:
    result = package.run(_scenario(), runs=2)
    texts = _read(result._repr_html_())
    assert texts.text.count(EVIL) == 3  # title, class, link
    assert texts.tags == {"p", "img", "table", "thead", "tbody", "tr", "th", "td"}
    assert "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}" in texts.text  # a number and its interval on one line
    assert _read(result.classes()._repr_html_()).text.count(EVIL) == 1


# ---------------------------------------------------------------- figures


@pytest.fixture(scope="module")
def sampled() -> package.Result:
    scenario = dataclasses.replace(_scenario("bulk & <b>"), probes=package.scenario.Probes(interval="100ms"))
    return package.run(scenario, runs=2)


def test_figures_are_those_of_the_report(sampled: package.Result) -> None:
    plots, network = drawn(sampled)
    report = {plot.picture.name: plot.picture.png for plot in plots}
    figures = {
        "run-throughput": sampled.plot.throughput(),
        "run-throughput-in-time": sampled.plot.throughput_over_time(),
        "run-queue-in-time": sampled.plot.queue(),
        "run-delay": sampled.plot.delay_cdf(),
    }
    assert set(figures) == set(report)
    for name, figure in figures.items():
        assert isinstance(figure, Figure)
        assert to_png(figure) == report[name], name
    assert to_png(sampled.plot.network()) == network.picture.png


def test_a_figure_can_show_one_link_only() -> None:
    queue = {"aqm": "drop-tail", "limit": "20p"}
    hops = {"first": ("a", "b"), "second": ("b", "c")}
    links = {
        name: {"from": start, "to": end, "rate": "1Mbps", "delay": "5ms", "queue": queue}
        for name, (start, end) in hops.items()
    }
    flows = [{"name": "tcp", "from": "a", "to": "c", "transport": {"tcp": "newreno"}}]
    result = package.run(
        {"duration": "5s", "probes": {"interval": "500ms"}, "links": links, "flows": flows}, runs=1
    )
    names = [link["name"] for link in result.runs[0].raw["links"]]
    assert len(result.plot.queue().axes) == len(names) == 2
    for draw in (result.plot.queue, result.plot.delay_cdf):
        assert len(draw(link=names[0]).axes) == 1
        with pytest.raises(
            PerhopError, match=f"there is no link `nope` with a queue; take one of {names[0]}"
        ):
            draw(link="nope")


def test_figures_of_users_are_those_of_the_report() -> None:
    scenario = tomllib.loads((EXAMPLES / "transfers.toml").read_text(encoding="utf-8")) | {"duration": "15s"}
    result = package.run(scenario, runs=1)
    report = {plot.picture.name: plot.picture.png for plot in drawn(result)[0]}
    assert to_png(result.plot.completion_times()) == report["run-completion-times"]


def test_windows_are_means_over_the_flows_that_have_one(sampled: package.Result) -> None:
    ((plot, rows),) = windows_over_time(sampled.runs)
    at = rows[10].factors["time_s"]
    by_run = sampled.series.filter(pl.col("time_s") == at).group_by("seed").agg(pl.col("cwnd_packets").mean())
    assert rows[10].mean == pytest.approx(by_run["cwnd_packets"].mean())
    assert plot.title.startswith("Congestion window over time")
    assert sampled.plot.windows().axes[0].get_ylabel() == "packets per flow"


def test_notebooks_show_figures_without_pyplot(sampled: package.Result) -> None:
    png, size = sampled.plot.throughput()._repr_png_()  # type: ignore[attr-defined]
    assert png.startswith(b"\x89PNG")
    assert size == {"width": 720}


@pytest.mark.parametrize("name", ["throughput_over_time", "windows", "queue"])
def test_a_picture_over_time_needs_samples(name: str) -> None:
    result = package.run(_scenario(), runs=1)
    with pytest.raises(package.PerhopError, match=r'samples nothing over time; .*interval = "100ms"'):
        getattr(result.plot, name)()
    assert f".{name}()" in repr(result.plot)


def test_a_picture_without_data_is_refused(sampled: package.Result) -> None:
    for name in ("completion_times", "page_times", "response_times"):
        with pytest.raises(package.PerhopError, match="nothing to draw: no "):
            getattr(sampled.plot, name)()
    datagrams = package.scenario.Flow(
        name="cbr",
        from_="edge",
        to="core",
        access=ACCESS,
        transport=package.scenario.Udp(udp="cbr", rate="1Mbps"),
    )
    scenario = dataclasses.replace(
        _scenario(), flows=[datagrams], probes=package.scenario.Probes(interval="100ms")
    )
    with pytest.raises(package.PerhopError, match="no flow has a congestion window"):
        package.run(scenario, runs=1).plot.windows()


def test_a_replay_shows_its_tables() -> None:
    replayed = package.replay(EXAMPLES / "capture.pcap", EXAMPLES / "first.toml")
    texts = _read(replayed._repr_html_())
    assert "capture.pcap" in texts.text
    assert "Delay: waiting time in the queue" in texts.text
    assert texts.tags == {"p", "small", "table", "thead", "tbody", "tr", "th", "td"}


# ---------------------------------------------------------------- LaTeX


NASTY = "[a]*_{b}% \\x^2 ~&$1 #3 --x"


def test_latex_is_written_as_booktabs_wants_it() -> None:
    lines = [
        {"class": NASTY, "throughput, Mbit/s": "1.534 ± 0.024", "lost, %": "−0.5"},
        {"class": "12 to 3", "throughput, Mbit/s": "20.0", "lost, %": "–"},
    ]
    assert latex_table(lines) == (
        "\\begin{tabular}{lrr}\n"
        "\\toprule\n"
        "class & throughput, Mbit/s & lost, \\% \\\\\n"
        "\\midrule\n"
        "{[}a{]}{*}\\_\\{b\\}\\% \\textbackslash{}x\\textasciicircum{}2 \\textasciitilde{}\\&\\$1 \\#3 -{}-x"
        " & $1.534 \\pm 0.024$ & $-0.5$ \\\\\n"
        "12 to 3 & 20.0 & -- \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )


@given(st.text())
def test_no_text_ends_a_cell_or_a_group(text: str) -> None:
    shown = escaped(text)
    assert "\n" not in shown
    bare = re.sub(
        r"\\(text[a-z]+|ensuremath|leq|geq|pm|dots|rightarrow|uparrow|downarrow|star)|\\[{}$&#_%]", "", shown
    )
    assert not set(bare) & set("\\$&#_%~^")
    assert re.sub(r"\{[^{}]*\}", "", bare).count("{") == 0
    assert bare.count("{") == bare.count("}")


def test_a_result_as_latex_has_the_numbers_of_its_tables(sampled: package.Result) -> None:
    text = sampled.to_latex()
    cell = readable(sampled.rows.groups)[0]["throughput, Mbit/s"]
    assert "$" + cell.replace("±", "\\pm") + "$" in text
    assert "bulk \\& \\textless{}b\\textgreater{} &" in text
    links = sampled.to_latex("links", caption="Links & 100 %", label="tab:links")
    assert "\\caption{Links \\& 100 \\%}\n\\label{tab:links}" in links
    assert links.startswith("\\begin{table}")
    assert links.rstrip().endswith("\\end{table}")
    frame = sampled.link_summary()
    assert isinstance(frame, Estimates)
    assert frame.to_latex("Links & 100 %", "tab:links") == links


def test_latex_that_cannot_be_made_is_refused(sampled: package.Result) -> None:
    with pytest.raises(package.PerhopError, match=r"no table `flows`; it has: classes, links$"):
        sampled.to_latex("flows")
    with pytest.raises(package.PerhopError, match="no table `link-classes`; it has"):
        sampled.to_latex("link-classes")
    with pytest.raises(ValueError, match="tab:classes"):
        sampled.to_latex(label="a}b")


def test_a_column_is_explained_below_the_tables_that_have_it() -> None:
    """A transfer that does not complete has no flow completion time."""
    queue = {"aqm": "drop-tail", "limit": "99p"}
    link = {"from": "A", "to": "B", "rate": "1Mbps", "delay": "1ms", "queue": queue}
    ends = {"from": "A", "to": "B", "transport": {"tcp": "linux"}}

    def heads_and_counts(volume: str) -> tuple[str, str]:
        flow = {"name": "f", **ends, "volume": volume}
        found = summarize(
            simulate.run({"duration": "2s", "links": {"up": link}, "flows": [flow]}, runs=1, seed=1)
        )
        return " ".join(found.classes[0]), found.counted

    for volume, completes in (("10MB", False), ("10kB", True)):
        heads, counted = heads_and_counts(volume)
        assert ("FCT" in heads) == completes
        assert ("FCT: flow completion time" in counted) == completes
        assert ("slowdown" in heads) == ("Slowdown: " in counted) == completes
        assert "Lost: packets dropped" in counted


@pytest.mark.parametrize("hours", [{}, {"stop": "2s"}, {"start": "2s"}])
def test_the_throughput_of_flows_that_come_and_go_says_of_which_time_it_is(hours: dict[str, str]) -> None:
    """Flows that begin by day alone have their throughput over day and night."""
    link = {"from": "A", "to": "B", "rate": "9Mbps", "delay": "1ms", "queue": {"aqm": "codel"}}
    flows = {"name": "f", "from": "A", "to": "B", "transport": {"tcp": "linux"}, **hours}
    flows |= {"arrivals": {"rate": "9/s"}, "sizes": {"constant": "9kB"}}
    result = simulate.run({"duration": "4s", "links": {"up": link}, "flows": [flows]}, runs=1, seed=1)
    said = "is that of all of a class together, over the whole measured time"
    part = ", also before its `start` and after its `stop`." if hours else "."
    assert f"{said}{part}" in summarize(result).counted


def test_one_of_several_flows_was_limited() -> None:
    """The verb and the noun are those of the flows that were."""
    group = simulate.run(_scenario("g"), runs=1, seed=1).runs[0].groups[0]
    two = dataclasses.replace(group, count=2)
    one = limits._sentence(two, limits._ENDS[1], np.array([0.5]), np.array([2e4]))
    assert one.startswith("1 of 2 flows of g was limited by its sender's buffer, 20 kB, for 50 % of the time")
    both = limits._sentence(two, limits._ENDS[1], np.array([0.5, 0.4]), np.array([2e4, 2e4]))
    assert both.startswith("All 2 flows of g were limited by their senders' buffer")
