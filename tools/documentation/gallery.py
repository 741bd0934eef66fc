"""The gallery: examples, run while the site is built, with a picture and what one sees in it.

What a page states is computed from the run whose picture it shows; a statement whose condition does not
hold ends the build.
An example without an entry in `EXHIBITS` has a page with its text alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import perhop
from perhop.runs.summary import summarize
from perhop.show.numbers import short

RUNS = 3

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """The values of a run by class of flows, link, and class at a link."""

    flows: dict[str, Row]
    links: dict[str, Row]
    parts: dict[str, Row]
    users: dict[str, dict[str, Row]]


@dataclass(frozen=True, slots=True)
class Exhibit:
    """An example with its pictures: methods of `Result.plot`, and what one sees in them.

    `sees` returns the sentences and the conditions on which they are true.
    """

    heading: str
    pictures: tuple[str, ...]
    sees: Callable[[Seen], tuple[str, bool]]
    before: str = ""


def mbps(value: float) -> str:
    """A rate in Mbit/s."""
    return f"{short(value / 1e6, 3)} Mbit/s"


def ms(value: float) -> str:
    """A time in ms."""
    return f"{short(value * 1e3, 3)} ms"


def percent(value: float) -> str:
    """A share in percent."""
    return f"{short(value * 100, 2)} %"


def _first(seen: Seen) -> tuple[str, bool]:
    sold, rest = seen.flows["sold 2 Mbps"], seen.flows["best effort"]
    text = f"""
        The flows that were sold 2 Mbit/s get {mbps(sold["throughput_bps"])}, those without a profile
        {mbps(rest["throughput_bps"])}. RIO drops {percent(sold["dropped_yellow"])} of what is beyond the
        profile, and next to nothing of what is within it."""
    green, yellow = sold["dropped_green"], sold["dropped_yellow"]
    return text, sold["throughput_bps"] > 2e6 > rest["throughput_bps"] and green < 1e-3 < yellow


def _asymmetric(seen: Seen) -> tuple[str, bool]:
    green, blue = seen.parts["green"], seen.parts["blue"]
    text = f"""
        Half of the calls' packets wait at most {ms(green["delay_p50_s"])}, those of the downloads
        {ms(blue["delay_p50_s"])}. The price is loss: {percent(green["loss"])} of the green packets,
        {percent(blue["loss"])} of the blue ones. Neither service is better; an application chooses the one
        that suits it."""
    return text, green["delay_p50_s"] < blue["delay_p50_s"] and green["loss"] > 5 * blue["loss"]


def _cellular(seen: Seen) -> tuple[str, bool]:
    download, wait = seen.flows["download"], seen.links["radio"]["delay_p50_s"]
    text = f"""
        The download gets {mbps(download["throughput_bps"])} of a link that has 20 Mbit/s for most of the
        time: losses on the air ({percent(download["link_loss"])}) look like congestion to the sender. So
        the queue stays short: the median wait is {ms(wait)}."""
    return text, download["throughput_bps"] < 12e6 and 0 < download["link_loss"] < 0.01 and wait < 5e-3


def _dualpi2(seen: Seen) -> tuple[str, bool]:
    low, classic = (seen.parts[name]["delay_p50_s"] for name in ("l4s", "classic"))
    prague, cubic = (seen.flows[name]["throughput_bps"] for name in ("prague", "cubic"))
    text = f"""
        The L4S queue waits {ms(low)} in the median, the classic one {ms(classic)}, on the same full link;
        Prague gets {mbps(prague)} beside CUBIC's {mbps(cubic)}."""
    return text, low < 1e-3 and classic > 10e-3 and 0.5 < prague / cubic < 2


def _fq_codel(seen: Seen) -> tuple[str, bool]:
    call, used = seen.flows["call"], seen.links["uplink"]["utilization"]
    text = f"""
        The call's packets need {ms(call["one_way_delay_s"])} from host to host, of which 20 ms are the cable,
        and none is lost, while four downloads use {percent(used)} of the link."""
    return text, call["one_way_delay_s"] < 0.025 and call["dropped_yellow"] == 0 and used > 0.98


def _network(seen: Seen) -> tuple[str, bool]:
    voice, assured, rest = (seen.flows[name] for name in ("voice", "assured", "best effort"))
    text = f"""
        Over all links of the network, flows with a profile get {mbps(assured["throughput_bps"])}, best effort
        {mbps(rest["throughput_bps"])}, and voice loses {percent(voice["dropped_yellow"])}."""
    return text, assured["throughput_bps"] > rest["throughput_bps"] and voice["dropped_yellow"] < 1e-3


def _nqb(seen: Seen) -> tuple[str, bool]:
    shallow, deep = seen.parts["nqb"], seen.parts["default"]
    text = f"""
        In the shallow queue 99 of 100 packets wait at most {ms(shallow["delay_p99_s"])}, in the deep one
        {ms(deep["delay_p99_s"])}. A download that claims the shallow queue does not spoil it: queue
        protection sends its excess to the deep one."""
    return text, shallow["delay_p99_s"] < 4e-3 and deep["delay_p99_s"] > 50e-3 and shallow["loss"] == 0


def _office(seen: Seen) -> tuple[str, bool]:
    gold, basic = (seen.users["web"][name]["page_p50_s"] for name in ("gold web", "basic web"))
    score = seen.users["call"]["calls"]["mos"]
    text = f"""
        Half of the pages of the customer with the larger profile are complete within {ms(gold)}, of the other
        within {ms(basic)}. The calls have a queue of their own and do not notice: mean opinion score
        {score:.1f}."""
    return text, gold < 0.8 * basic and score > 4.3


def _pie(seen: Seen) -> tuple[str, bool]:
    full, kept = seen.links["buffer"], seen.links["pie"]
    text = f"""
        Both links are full, but packets wait {ms(full["delay_p50_s"])} in the buffer and
        {ms(kept["delay_p50_s"])} under PIE (medians). PIE drops {percent(kept["loss"])} of the packets for
        it, the buffer {percent(full["loss"])}."""
    return text, full["delay_p50_s"] > 0.2 and 0.01 < kept["delay_p50_s"] < 0.02


def _policer(seen: Seen) -> tuple[str, bool]:
    modest, policed = seen.flows["modest"]["throughput_bps"], seen.flows["greedy"]["policing_ratio"]
    text = f"""
        The meter drops {percent(policed)} of what the greedy customer sends, before the queue, and nothing of
        the modest one's; each modest flow keeps {mbps(modest)}, its share of the agreed 6 Mbit/s."""
    return text, abs(policed - 0.4) < 0.01 and modest * 3 > 6e6


def _queues(seen: Seen) -> tuple[str, bool]:
    near, far, ef = (seen.flows[name] for name in ("near", "far", "ef"))
    times = far["mean_rtt_s"] / near["mean_rtt_s"]
    text = f"""
        The round trip of the far customer is {times:.1f} times that of the near one, which costs it nothing:
        a flow gets {mbps(far["throughput_bps"])} and {mbps(near["throughput_bps"])}. Expedited
        forwarding waits {ms(seen.parts["ef"]["delay_p99_s"])} at most, for 99 of 100 packets."""
    alike = abs(far["throughput_bps"] / near["throughput_bps"] - 1) < 0.05
    return text, times > 2 and alike and ef["dropped_yellow"] == 0


def _train(seen: Seen) -> tuple[str, bool]:
    late, wait = seen.flows["music"]["one_way_delay_p99_s"], seen.links["radio"]["delay_p50_s"]
    text = f"""
        The second in the tunnel is the tail of the distribution: 99 of 100 packets of the music arrive within
        {ms(late)}, while the median wait at the radio link is {ms(wait)}."""
    return text, late > 0.5 and wait < 0.02


def _transfers(seen: Seen) -> tuple[str, bool]:
    full, fair = (seen.links[name]["delay_p50_s"] for name in ("buffer", "fq-codel"))
    text = f"""
        Beside a download, transfers wait in its buffer: {ms(full)} in the median; with FQ-CoDel
        {ms(fair)}."""
    return text, fair < 0.1 * full


EXHIBITS = {
    "first": Exhibit("Sold and best effort under RIO", ("throughput", "delay_cdf"), _first),
    "pie": Exhibit("Bufferbloat, and PIE", ("delay_cdf", "throughput"), _pie),
    "dualpi2": Exhibit("L4S: low delay at full rate", ("delay_cdf", "throughput"), _dualpi2),
    "fq-codel": Exhibit("A call beside downloads", ("delay_cdf", "network"), _fq_codel),
    "asymmetric": Exhibit(
        "Asymmetric Best-Effort: delay against loss", ("delay_cdf", "throughput"), _asymmetric
    ),
    "policer": Exhibit("The network's edge polices", ("throughput", "network"), _policer),
    "queues": Exhibit("A queue for each customer's path", ("throughput", "delay_cdf"), _queues),
    "office": Exhibit("Pages, video and calls of an office", ("page_times", "throughput"), _office),
    "transfers": Exhibit("Short transfers beside a download", ("completion_times", "delay_cdf"), _transfers),
    "nqb": Exhibit("A shallow queue for smooth traffic", ("delay_cdf", "throughput"), _nqb),
    "cellular": Exhibit("A radio link that changes", ("throughput", "delay_cdf"), _cellular),
    "train": Exhibit("A train in a tunnel", ("delay_cdf", "throughput"), _train),
    "network": Exhibit("A network of 55 routers", ("throughput",), _network),
}
REAL = "It runs on real packets, which need root or user namespaces."
LONG = "It is a plan of many runs; [sweeps](../sweeps.md) explains such plans."
WITHOUT = {
    "large": (
        "A network of 5000 routers",
        f"It takes minutes; [{EXHIBITS['network'].heading.lower()}](network.md) is the same in small.",
    ),
    "live-rio": ("On real packets: RIO", REAL),
    "live-rio-plus-out": ("On real packets: RI+O", REAL),
    "live-transfers": ("On real packets: transfers", REAL),
    "live-users": ("On real packets: users", REAL),
    "sweep-thresholds": ("A sweep of thresholds", LONG),
    "sweep-sample": ("A sample of four ranges", LONG),
    "tune-thresholds": ("A search for thresholds", LONG),
}
"""Examples that the build does not run, their headings and the reason. Their pages have the text alone."""


def write(examples: Path, folder: Path) -> None:
    """Write the pages of all scenarios in `examples`, their pictures, and the list of them.

    Raises:
        ValueError: An example does not show what its page says.
    """
    (folder / "pictures").mkdir(parents=True)
    cards = []
    for name, exhibit in EXHIBITS.items():
        (folder / f"{name}.md").write_text(page(examples / f"{name}.toml", exhibit, folder), encoding="utf-8")
        cards.append(CARD.format(name=name, heading=exhibit.heading, picture=exhibit.pictures[0]))
    plain = sorted(path.stem for path in examples.glob("*.toml") if path.stem not in EXHIBITS)
    lines = []
    for name in plain:
        heading, reason = _unseen(examples / f"{name}.toml")
        text = (examples / f"{name}.toml").read_text(encoding="utf-8")
        parts = [f"# {heading}", reason, f"```toml\n{text}```"]
        (folder / f"{name}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
        lines.append(f"- [{heading}]({name}.md) (`examples/{name}.toml`)")
    grid = "\n".join([":::::{grid} 1 2 2 2", ":gutter: 3", "", *cards, ":::::"])
    names = ["```{toctree}", ":hidden:", "", *EXHIBITS, *plain, "```"]
    parts = [LEAD.rstrip(), grid, "## More examples", "\n".join(lines), "\n".join(names)]
    (folder / "index.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


CARD = """\
::::{{grid-item-card}} {heading}
:link: {name}
:link-type: doc
:img-top: pictures/{name}-{picture}.png

`examples/{name}.toml`
::::"""
LEAD = f"""\
# Gallery

Scenarios of the folder `examples`, and what one sees when they run. Each picture comes from a run of
{RUNS} seeds at the time when these pages were made; intervals are 95 %.
"""


def _unseen(path: Path) -> tuple[str, str]:
    """The heading of an example that the build does not run, and the reason."""
    unknown = (
        path.stem.replace("-", " ").capitalize(),
        "It has no entry in `tools/documentation/gallery.py` yet.",
    )
    heading, reason = WITHOUT.get(path.stem, unknown)
    command = path.stem.partition("-")[0] if path.stem.startswith(("live-", "sweep-", "tune-")) else "run"
    return heading, f"For `perhop {command} examples/{path.name}`. The build does not run it. {reason}"


def page(example: Path, exhibit: Exhibit, folder: Path) -> str:
    """The page of one example; its pictures go to `pictures` in the folder.

    Raises:
        ValueError: The run does not show what the page says.
    """
    result = perhop.run(example, runs=RUNS)
    sentences, holds = exhibit.sees(seen(result))
    if not holds:
        raise ValueError(f"{example}: the run does not show what the gallery says: {sentences}")
    pictures = []
    for name in exhibit.pictures:
        figure = getattr(result.plot, name)()
        path = f"pictures/{example.stem}-{name}.png"
        figure.savefig(folder / path, dpi=144)
        pictures.append(f"![{exhibit.heading}: {name.replace('_', ' ')}]({path})")
    text = example.read_text(encoding="utf-8")
    return (
        "\n\n".join(
            [
                f"# {exhibit.heading}",
                " ".join(sentences.split()),
                pictures[0],
                "## Run it",
                f"```sh\nperhop run examples/{example.name} --runs {RUNS}\n```",
                f"```text\n{summarize(result).text(78)}\n```",
                *pictures[1:],
                "## The scenario",
                f"```toml\n{text}```",
            ]
        )
        + "\n"
    )


def seen(result: perhop.Result) -> Seen:
    """A result's means by name."""
    return Seen(
        _by(result.group_summary(), "class"),
        _by(result.link_summary(), "link"),
        _by(result.link_class_summary(), "class"),
        {model: _by(frame, "class") for model, frame in result.application_summary().items()},
    )


def _by(frame: pl.DataFrame, key: str) -> dict[str, Row]:
    return {row[key]: row for row in frame.iter_rows(named=True)} if frame.height else {}
