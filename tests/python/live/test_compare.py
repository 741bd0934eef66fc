"""Simulation beside real packets: margins, verdicts, directions, explanations, and the command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from tests.python.cli.test_cli import broken, refused
from tests.python.conftest import SMALL
from tests.python.live.living import INVALID, LIVE, needs_live, pretend
from tests.python.output.pages import check, titles

import perhop as package
from perhop.errors import ArgumentError, PerhopError
from perhop.real_packets import machine, report
from perhop.real_packets.equivalence import MARGINS, Comparison, Key, Margin, collect, directions, margins
from perhop.real_packets.explain import exchanges, explain, otherwise, variations
from perhop.real_packets.report import Compared
from perhop.runs import simulate
from perhop.runs.result import Result
from perhop.runs.simulate import run as simulated_run
from perhop.scenario import reading
from perhop.show.numbers import shown
from perhop.statistics.intervals import paired_difference

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    from perhop.real_packets.laboratory import LiveResult

    Perhop = Callable[..., Finished]

FASTER = broken(SMALL, 'rate = "2Mbps"', 'rate = "4Mbps"')


def comparison(live: str = SMALL, *, runs: int = 8, spoilt: tuple[int, ...] = ()) -> Comparison:
    return Comparison(simulate.run(SMALL, runs=20), pretend(live, runs, spoilt=spoilt), MARGINS)


# ---------------------------------------------------------------- margins


def test_margins() -> None:
    assert margins([]) == MARGINS
    wide = margins(["20%"])
    assert wide["throughput"] == Margin(0.2, 0.0)
    assert wide["delay"] == Margin(0.2, 2e-3), "the floor stays"
    assert wide["loss"] == MARGINS["loss"], "percentage points stay"
    named = margins(["5%", "delay=5ms", "loss=0.5pp", "queue=3p", "utilization=1%", "throughput=50kbps"])
    assert named["rtt"].relative == 0.05
    assert named["delay"] == Margin(0.0, 0.005)
    assert named["loss"] == Margin(0.0, 0.005)
    assert named["queue"] == Margin(0.0, 3.0)
    assert named["utilization"] == Margin(0.01, 0.0)
    assert named["throughput"] == Margin(0.0, 50e3)


def test_the_larger_of_part_and_floor() -> None:
    assert MARGINS["delay"].of(0.1) == pytest.approx(0.01)
    assert MARGINS["delay"].of(0.001) == pytest.approx(0.002)
    assert MARGINS["throughput"].of(0.0) == 0.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("much", "write `10%`"),
        ("10", "write `10%`"),
        ("-5%", "not a margin"),
        ("delays=5ms", "no margin is called `delays`"),
        ("delay=5pp", "`delay=5ms`"),
        ("loss=5ms", "`loss=5pp`"),
        ("=5%", "no margin is called ``"),
        ("nan%", "not a margin"),
    ],
)
def test_what_is_no_margin(text: str, said: str) -> None:
    with pytest.raises(PerhopError) as caught:
        margins([text])
    assert said in str(caught.value)
    assert text in str(caught.value)


# ---------------------------------------------------------------- verdicts


def test_numbers_are_those_of_the_frames() -> None:
    result = simulate.run(SMALL, runs=2)
    samples = collect(result.runs)
    assert {key.name for key in samples} == {"gold", "best-effort", "bottleneck"}
    rates = result.flows.filter((pl.col("class") == "gold") & (pl.col("seed") == 2))["throughput_bps"]
    assert samples[Key("class", "gold", "throughput")][2] == pytest.approx(rates.to_numpy().mean())
    links = result.links.filter(pl.col("seed") == 1)
    for measure, column in (
        ("utilization", "utilization"),
        ("queue", "mean_queue_packets"),
        ("delay-p95", "delay_p95_s"),
    ):
        assert samples[Key("link", "bottleneck", measure)][1] == links[column][0]
    assert Key("class", "best-effort", "loss-green") not in samples, "it has no green packets"
    assert Key("class", "gold", "one-way") not in samples, "TCP has no one-way delay"


def test_datagrams_have_a_one_way_delay() -> None:
    text = broken(SMALL, 'tcp = "newreno", packet = "1000B"', 'udp = "cbr", rate = "300kbps"')
    samples = collect(simulate.run(text, runs=1).runs)
    assert (
        samples[Key("class", "gold", "one-way-p99")][1] > samples[Key("class", "gold", "one-way")][1] > 0.012
    )


def test_the_same_network_is_equivalent_to_itself() -> None:
    lines = comparison(runs=20).lines
    verdicts = {line.verdict for line in lines}
    assert "different" not in verdicts
    assert sum(line.verdict == "equivalent" for line in lines) >= len(lines) / 2


def test_another_network_is_different() -> None:
    found = {line.key: line for line in comparison(FASTER).lines}
    rate = found[Key("class", "best-effort", "throughput")]
    assert rate.verdict == "different"
    assert rate.test is not None
    assert rate.test.margin == pytest.approx(rate.simulated.mean / 10)
    ends = rate.test.difference.interval()
    assert ends is not None
    assert ends[0] > rate.test.margin


def test_a_column_corrects_the_verdicts_for_their_number(tmp_path: Path) -> None:
    found = comparison(FASTER)
    both = Compared([found, found], ["a", "b"])
    plain = both.text(200)
    judged = 2 * len(found.lines) + len(both.directions)
    assert judged > 2 * len(found.lines)
    assert plain.count(f"{judged} lines are judged at 95 % each") == 1
    assert "Holm" not in plain
    compared = Compared([found, found], ["a", "b"], holm=True)
    assert "p, Holm" in compared.text(200)
    first, second = report.holm_cells(compared)
    assert first == second
    for line, cells in zip(found.lines, first, strict=True):
        if cells["Holm"] != line.verdict:
            assert cells["Holm"] == "cannot tell"
        if line.p is not None:
            assert cells["Holm"] == "cannot tell" or line.p <= 0.05 / 2
    sure = {line.key: cells["Holm"] for line, cells in zip(found.lines, first, strict=True)}
    assert sure[Key("class", "best-effort", "throughput")] == "different"
    report.write(tmp_path, compared, "perhop compare a.toml b.toml --holm")
    assert "p, Holm" in check((tmp_path / "report.html").read_text(encoding="utf-8")).text


def test_invalid_runs_are_left_out_and_said() -> None:
    found = comparison(runs=4, spoilt=(101, 103))
    assert [run.seed for run in found.valid] == [100, 102]
    assert all(line.live is None or line.live.runs <= 2 for line in found.lines)
    compared = Compared([found], ["small"])
    assert compared.left_out == 2
    text = compared.text()
    assert "2 valid of 4 on real packets" in text
    assert "LEFT OUT, seed 101: the machine slept." in text
    frame = report.sample_frame(compared)
    assert frame.filter(~pl.col("valid"))["seed"].unique().sort().to_list() == [101, 103]


def test_without_a_valid_run_nothing_is_told() -> None:
    found = comparison(runs=1, spoilt=(100,))
    assert {line.verdict for line in found.lines} == {"cannot tell"}
    content = json.loads(report.to_json(Compared([found], ["small"])))
    assert all(line["live"] is None for line in content["scenarios"][0]["lines"])
    assert "cannot tell" in Compared([found], ["small"]).text()


def test_one_run_cannot_tell() -> None:
    found = comparison(runs=1)
    assert {line.verdict for line in found.lines} == {"cannot tell"}
    assert report.verdict(found.lines[0]) == "cannot tell (needs ~2 runs)"


def test_numbers_read_as_those_of_run() -> None:
    """As many digits as the interval lets be known, and not a number of decimals of the measure's own."""
    found = comparison()
    text = Compared([found], ["small"]).text()
    for line in found.lines:
        assert line.live is not None
        for one in (line.simulated, line.live):
            assert shown(one, line.key.of.scale) in text
    assert "0.00" not in re.sub(r"0\.00\d", "", text)


def test_a_scenario_without_a_title_is_called_as_its_file() -> None:
    untitled = broken(SMALL, re.search("title = .*", SMALL)[0], "")  # type: ignore[index]
    found = Comparison(simulate.run(untitled, runs=2), pretend(untitled, 2), MARGINS)
    assert Compared([found], ["small"]).text().startswith("small\n")
    assert "Scenario" not in Compared([found, found], ["small", "other"]).text()
    (content,) = json.loads(report.to_json(Compared([found], ["small"])))["scenarios"]
    assert content["title"] == "small"


def test_a_loss_has_a_color_only_where_packets_differ_in_it() -> None:
    plain = re.sub("profile = .*", "", SMALL)
    found = Comparison(simulate.run(plain, runs=2), pretend(plain, 2), MARGINS)
    names = [line.key.text for line in found.lines]
    assert "gold: lost, %" in names
    assert not any("yellow" in name for name in names)
    assert any("yellow lost" in line.key.text for line in comparison().lines)


# ---------------------------------------------------------------- directions


def test_a_long_verdict_wraps_so_that_no_column_is_cut(tmp_path: Path) -> None:
    report.write(tmp_path, Compared([comparison(runs=1)], ["small"]), "perhop compare small.toml")
    page = check((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert re.search(r'<td class="unsure">cannot tell \(needs ', page.source)
    assert re.search(r"td\.unsure \{ white-space: normal;", page.source)


def test_the_sentences_of_two_scenarios_name_them(tmp_path: Path) -> None:
    found = comparison()
    report.write(tmp_path, Compared([found, found], ["slow", "fast"]), "perhop compare slow.toml fast.toml")
    text = " ".join(check((tmp_path / "report.html").read_text(encoding="utf-8")).text.split())
    assert f"slow: of {len(found.lines)} numbers, " in text
    assert f"fast: of {len(found.lines)} numbers, " in text


def test_directions() -> None:
    first = comparison()
    second = Comparison(simulate.run(FASTER, runs=20), pretend(FASTER, 8), MARGINS)
    found = {one.key: one for one in directions(first, second)}
    rate = found[Key("class", "best-effort", "throughput")]
    assert rate.agree is True
    assert rate.simulated.mean < 0
    key = Key("class", "gold", "throughput")
    expected = paired_difference(first.simulated_samples[key], second.simulated_samples[key])
    assert found[key].simulated == expected
    crossed = Comparison(second.simulated, first.live, MARGINS)
    opposite = {
        one.key: one for one in directions(Comparison(first.simulated, second.live, MARGINS), crossed)
    }
    assert opposite[rate.key].agree is False
    assert {one.key: one for one in directions(first, first)}[rate.key].agree is None
    text = Compared([first, second], ["slow", "fast"]).text()
    assert text.startswith("slow minus fast\n")
    assert "have the same direction" in text


# ---------------------------------------------------------------- explanations


def test_variations_are_what_their_names_say() -> None:
    canonical = reading.canonical(LIVE)
    found = {(one.where, one.id): json.loads(text) for one, text in variations(canonical)}
    assert found["live", "sack"]["live"]["sysctl"] == {"net.ipv4.tcp_sack": 0}
    assert found["live", "sack"]["flows"] == json.loads(canonical)["flows"]
    assert all(
        flow["transport"]["initial-window"] == "10p" for flow in found["simulated", "initial-window"]["flows"]
    )
    assert ("simulated", "linux") in found
    assert len(found) == len(variations(canonical)), "each once"


def test_what_a_user_has_set_is_not_varied() -> None:
    text = broken(LIVE, "[live]", '[live]\nsysctl = { "net.ipv4.tcp_sack" = 1 }')
    found = {(one.where, one.id) for one, _ in variations(reading.canonical(text))}
    assert ("live", "sack") not in found
    assert ("live", "tlp") in found


@pytest.mark.parametrize(
    ("release", "has"), [("6.16.12-amd64", True), ("6.17.0", False), ("7.0-rc1", False), ("unknown", False)]
)
def test_rack_is_turned_off_where_linux_can(release: str, has: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.release", lambda: release)
    found = {(one.where, one.id) for one, _ in variations(reading.canonical(LIVE))}
    assert (("live", "rack") in found) == has


def test_without_tcp_there_is_nothing_to_vary() -> None:
    text = SMALL.replace('tcp = "newreno", packet = "1000B"', 'udp = "cbr", rate = "300kbps"')
    assert variations(reading.canonical(text)) == []
    assert otherwise(reading.canonical(text)) == []


def test_what_the_kernel_does_otherwise_follows_the_scenario() -> None:
    said = "\n".join(otherwise(reading.canonical(LIVE)))
    assert "Initial window: 10 segments; simulated: 1." in said
    assert "simulated: 1000 packets from the start." in said
    like = broken(LIVE, 'packet = "1000B"', 'packet = "1000B", initial-window = "10p", handshake = true')
    said = "\n".join(
        otherwise(reading.canonical(like.replace('packet = "1000B" }', 'initial-window = "10p" }')))
    )
    assert "Initial window" not in said
    cubic = broken(LIVE, 'start = "0s..200ms"', 'live = { congestion = "cubic" }')
    assert "HyStart" in "\n".join(otherwise(reading.canonical(cubic)))


def test_changes_are_against_what_was_compared() -> None:
    found = comparison(runs=3)
    simulated: list[str] = []
    lived: list[str] = []

    def simulate(text: str) -> Result:
        simulated.append(text)
        return simulated_run(json.loads(text), runs=20)

    def live(text: str) -> LiveResult:
        lived.append(text)
        return pretend(SMALL, 3, spoilt=(102,))

    def virtual(text: str) -> LiveResult:
        assert text == exchanges(found.live.scenario)[1][1], "the scenario of the step after it, in real time"
        return pretend(FASTER, 20, seed=1)

    changes = list(explain(found, simulate, virtual, live))
    parts = [one for one in changes if one.variation.where in {"virtual", "exchanged"}]
    assert [one.variation.id for one in parts] == ["wire", "scheduling", "receiver", "sender"]
    assert len(simulated) + len(lived) == len(changes) - 2, "the last exchange is what was compared"
    ends = [json.loads(text)["flows"][0]["live"] for text in lived[:2]]
    assert ends == [{"sender": "perhop", "receiver": end} for end in ("perhop", "kernel")]
    assert parts[0].by[Key("class", "gold", "throughput")].freedom == 19, "the seeds of the simulation"
    key = Key("class", "gold", "throughput")
    whole = next(line for line in found.lines if line.key == key).test
    assert whole is not None
    assert sum(one.by[key].value for one in parts) == pytest.approx(whole.difference.value)
    for change in changes:
        if change.variation.where == "live":
            # The stand-in ignores settings, so only the run that was left out differs.
            assert (change.runs, change.left_out) == (2, 1)
    window = next(one for one in changes if one.variation.id == "initial-window")
    assert window.by[key].freedom == 19
    compared = Compared([found], ["small"], [changes])
    assert compared.left_out == len(lived)
    text = compared.text()
    assert "Effect of each change: throughput of a flow, Mbit/s" in text
    assert "Effect of each change: RTT, ms" in text
    assert "Parts of the difference: throughput of a flow, Mbit/s" in text
    assert "receiver: the kernel's in place of perhop's" in " ".join(text.split())
    assert "simulated: initial window of 10" in text
    assert "live: without SACK" in text
    content = json.loads(report.to_json(compared))
    entry = next(e for e in content["scenarios"][0]["explained"] if e["id"] == "initial-window")
    assert entry["transport"] == {"initial-window": "10p"}
    assert {change["measure"] for change in entry["changes"]} >= {"throughput", "rtt", "utilization"}


def test_without_tun_devices_no_end_is_exchanged() -> None:
    found = comparison(runs=3)

    def live(text: str) -> LiveResult:
        assert '"perhop"' not in text
        return pretend(SMALL, 3)

    def simulate(text: str) -> Result:
        return simulated_run(json.loads(text), runs=20)

    changes = list(explain(found, simulate, live, live, exchanged=False))
    assert {one.variation.where for one in changes} == {"live", "simulated"}
    text = " ".join(Compared([found], ["small"], [changes]).text().split())
    assert "not measured: perhop's own TCP needs TUN devices" in text
    assert "Effect of each change" in text


def test_more_throughput_than_links_have_is_noticed_in_any_run() -> None:
    links = pl.DataFrame({"seed": [1, 2], "rate_bps": [5e6, 5e6]})

    def flows(*rates: float) -> pl.DataFrame:
        return pl.DataFrame({"seed": [1, 1, 2, 2], "throughput_bps": list(rates)})

    assert not machine.exceed(flows(2e6, 3e6, 1e6, 1e6), links)
    assert machine.exceed(flows(2e6, 3e6, 4e6, 1.1e6), links)


# ---------------------------------------------------------------- files


def test_json_and_files(tmp_path: Path) -> None:
    compared = Compared([comparison(FASTER, runs=3, spoilt=(101,))], ["small"])
    (scenario,) = json.loads(report.to_json(compared))["scenarios"]
    assert scenario["seeds"] == {"simulated": list(range(1, 21)), "live": [100, 102], "left_out": [101]}
    line = scenario["lines"][0]
    assert (line["class"], line["measure"], line["unit"]) == ("gold", "throughput", "bit/s")
    assert line["difference"]["mean"] == pytest.approx(line["live"]["mean"] - line["simulated"]["mean"])
    low, high = line["difference"]["ci90"]
    assert low < line["difference"]["mean"] < high
    report.write(tmp_path, compared, "perhop compare small.toml")
    page = check((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "perhop compare small.toml" in page.text
    assert titles(page)[1] == "Live minus simulated, in units of the margin"
    assert titles(page)[2].startswith("Verdicts: ")
    first = " ".join(page.text.split()).partition("Live minus simulated")[0]
    assert re.search(r"Of \d+ numbers, \d+ (is|are) equivalent within their margins", first)
    assert "LEFT OUT, seed 101" in first
    assert re.search(r'<th scope="col">number</th><th scope="col">verdict</th>', page.source)
    assert "`" not in page.text
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert {"compare-differences.svg", "compare-throughput.png"} <= set(manifest["plots"])
    frame = pl.read_parquet(tmp_path / "samples.parquet")
    assert frame.columns == [
        "scenario",
        "source",
        "seed",
        "valid",
        "kind",
        "name",
        "measure",
        "unit",
        "value",
    ]
    assert frame["value"].is_finite().all()


def test_waiting_times_are_drawn_for_both_sources_without_runs_that_do_not_count() -> None:
    compared = Compared([comparison(FASTER, runs=3, spoilt=(101,))], ["small"])
    plots = {plot.id: (plot, rows) for plot, rows, _ in report.plots(compared)}
    plot, rows = plots["waiting-times"]
    assert {row.factors["source"]: row.runs for row in rows} == {"simulated": 20, "live": 2}
    assert {row.factors["queue"] for row in rows} == {"bottleneck, all packets"}
    assert plot.series.text("live") == "on real packets"
    assert "throughput-in-time" not in plots, "the scenario has no probes"


def test_two_scenarios_have_plots_of_their_own() -> None:
    compared = Compared([comparison(runs=2), comparison(FASTER, runs=2)], ["a", "b"])
    assert {name for _, _, name in report.plots(compared)} == {"compare-a", "compare-b"}


# ---------------------------------------------------------------- the command


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--margin", "much"), "--margin much: not a margin"),
        (("--runs", "0"), "--runs must be at least 1"),
        (("--sim-runs", "0"), "--sim-runs must be at least 1"),
        (("small.toml", "small.toml"), "compare takes one or two scenarios, not 3"),
    ],
)
def test_what_cannot_be_compared(perhop: Perhop, small: Path, arguments: tuple[str, ...], said: str) -> None:
    assert said in refused(perhop("compare", small, *arguments))


def test_what_only_the_simulator_has_is_named_by_file_and_line(perhop: Perhop, tmp_path: Path) -> None:
    text = broken(LIVE, 'start = "0s..200ms"', 'live = { sender = "perhop", congestion = "cubic" }')
    (tmp_path / "live.toml").write_text(text)
    line = 1 + text[: text.index("live = {")].count("\n")
    said = refused(perhop("compare", "live.toml"))
    assert said.startswith(f"error: live.toml:{line}: flows[0].live.congestion: `cubic` is the kernel's")


@pytest.mark.parametrize("name", ["live-rio", "live-rio-plus-out", "live-transfers", "live-users"])
def test_the_examples_are_valid(name: str) -> None:
    text = reading.canonical(Path("examples") / f"{name}.toml")
    assert variations(text)
    assert otherwise(text)


def test_of_perhops_own_sender_only_the_other_end_is_said() -> None:
    own = LIVE.replace("[live]", '[live]\nsender = "perhop"')
    said = otherwise(reading.canonical(own))
    assert [line.split(":")[0].split(" ")[0] for line in said] == ["ACKs", "Connections"]
    both = own.replace("[live]", '[live]\nreceiver = "perhop"')
    assert [line.split(" ")[0] for line in otherwise(reading.canonical(both))] == ["Connections"]


def test_linux_like_tcp_needs_fewer_words() -> None:
    found = otherwise(reading.canonical(LIVE.replace('tcp = "newreno"', 'tcp = "linux"')))
    said = "\n".join(found)
    assert "Timeouts" not in said
    assert "Acknowledgements" not in said
    assert "HyStart" not in said, "its congestion control is CUBIC unless it says otherwise, and has it"
    assert "RACK" not in said
    assert "simulated: up to 16.777216 MB, likewise." in said
    assert "Send buffer: grows up to the kernel's (tcp_wmem); simulated: 4.194304 MB." in said
    otherwise_linux = 'tcp = "linux", loss-detection = "duplicate-acks", pacing = "window"'
    plain = LIVE.replace('tcp = "newreno"', otherwise_linux)
    said = "\n".join(otherwise(reading.canonical(plain)))
    assert "by ACKs alone" in said
    assert "by the rate of the window" in said
    like = {one.id for one, _ in variations(reading.canonical(LIVE)) if one.where == "simulated"}
    assert {"sack", "prr", "tlp", "timeouts", "linux"} <= like


@pytest.mark.parametrize(
    ("kernels", "ours"), [("cubic", "cubic"), ("scalable", "scalable"), ("bbr", "bbr"), ("vegas", "reno")]
)
def test_linux_like_tcp_has_the_kernels_congestion_control_where_it_is_simulated(
    kernels: str, ours: str
) -> None:
    text = broken(LIVE, 'start = "0s..200ms"', f'live = {{ congestion = "{kernels}" }}')
    varied = {one.id: json.loads(made) for one, made in variations(reading.canonical(text))}
    flows = [flow for flow in varied["linux"]["flows"] if flow.get("live", {}).get("congestion") == kernels]
    assert [flow["transport"]["congestion"] for flow in flows] == [ours]


@needs_live
def test_compare_as_typed(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "live.toml").write_text(LIVE)
    arguments = ("--runs", "2", "--sim-runs", "4", "--margin", "50%", "--json", "-", "--out", "out")
    done = perhop("compare", "live.toml", *arguments)
    assert done.code in {0, INVALID}, done.err
    content: dict[str, Any] = json.loads(done.out)
    (scenario,) = content["scenarios"]
    assert len(scenario["seeds"]["live"]) + len(scenario["seeds"]["left_out"]) == 2
    assert (done.code == INVALID) == bool(scenario["seeds"]["left_out"])
    assert done.err.startswith("2 runs on real packets, 4 s in all; 4 simulated runs of each\n")
    assert "Two classes on real packets\n2 s, the first 0.5 s excluded" in done.err
    assert "How TCP on real packets differs from the simulated one" in done.err
    command = json.loads((tmp_path / "out" / "manifest.json").read_text())["command"]
    assert command == "perhop compare live.toml --margin 50% --runs 2 --sim-runs 4 --out out"


@needs_live
def test_compare_two_as_typed(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(LIVE)
    (tmp_path / "two.toml").write_text(broken(LIVE, 'rate = "5Mbps"', 'rate = "3Mbps"'))
    done = perhop("compare", "one.toml", "two.toml", "--runs", "2", "--sim-runs", "4")
    assert done.code in {0, INVALID}, done.err
    assert done.out.startswith("one minus two\n")
    assert "\none: Two classes on real packets\n" in done.out
    assert "\ntwo: Two classes on real packets\n" in done.out


@needs_live
def test_a_scenario_that_only_the_simulator_has(perhop: Perhop, tmp_path: Path) -> None:
    text = broken(LIVE, 'tcp = "newreno"', 'tcp = "quic"')
    (tmp_path / "live.toml").write_text(text)
    assert "QUIC" in refused(perhop("compare", "live.toml"))


def test_no_loss_on_both_sides_is_equivalent_within_what_so_many_packets_show() -> None:
    text = """
        duration = "2s"
        [links.l]
        from = "a"
        to = "b"
        rate = "1Mbps"
        delay = "1ms"
        queue = { aqm = "drop-tail", limit = "9p" }
        [[flows]]
        name = "calls"
        from = "a"
        to = "b"
        transport = { udp = "cbr", rate = "100kbps" }
    """
    simulated, live = simulate.run(text, runs=4), pretend(text, 4)
    key = Key("class", "calls", "loss-yellow")
    verdicts = []
    for margin in (0.1, 1e-6):
        lines = Comparison(simulated, live, {**MARGINS, "loss": Margin(0.0, margin)}).lines
        (line,) = (line for line in lines if line.key == key)
        assert line.test is not None
        assert (line.test.difference.value, line.test.difference.error) == (0.0, 0.0)
        verdicts.append(line.verdict)
    assert verdicts == ["equivalent", "cannot tell"]


@pytest.mark.parametrize("function", [package.live, package.compare])
def test_an_unknown_device_is_refused_as_an_argument(function: Callable[..., object]) -> None:
    with pytest.raises(ArgumentError, match="device must be auto, tun or packet, not 'x'"):
        function(LIVE, device="x")
