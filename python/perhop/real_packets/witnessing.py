"""The kernel's queueing discipline as a witness: a link's packets go through it and through perhop's block.

The link's queue is exported to `tc` and set up in a private network namespace. The packets that come to the
link in a simulation, or those of a capture, are sent into it in real time; the block then decides about what
was really offered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from perhop import _engine
from perhop.captures import replaying
from perhop.errors import PerhopError
from perhop.files import arguments
from perhop.plurals import counted
from perhop.real_packets import decisions, laboratory
from perhop.real_packets.decisions import RESOLUTION_NS, Differences, Offered, Passed
from perhop.routers import exporting, outgoing, writing
from perhop.routers.curves import drop_precedence
from perhop.runs import events, extent
from perhop.runs.parallel import parallel_map
from perhop.scenario import reading
from perhop.scenario.reading import ScenarioSource
from perhop.show.numbers import measured, short
from perhop.show.report import Code, Origin, Part, Records, Report, Text
from perhop.show.report_files import write_report
from perhop.show.written import Written

OWN_RATES = ("shaper", "htb")
"""The schedulers that limit the rate themselves; others get a shaper of the link's rate around them."""
BURST_S, FRAME = 0.004, 1514
"""The burst of that shaper, as `perhop export --shape` sets it: the bytes of so many seconds, or a frame."""
LEAST_SIZE = 32
"""Bytes of the shortest packet: headers of IPv4 and UDP, and its number."""
MOST_STEP_NS = 1_000_000
"""The most by which the system's clock may be set during a run."""
SWAP_S = 3 * RESOLUTION_NS / 1e9
"""Packets that leave within so many seconds could leave in either order."""
SHOWN = 20
"""Packets that a text lists."""
FOLLOWING, OWN = "whenever the kernel's was", "in its own time"
_RENAMED = re.compile(r"'.*' is \S+ there")
"""A remark of an export that says another name only."""


@dataclass(frozen=True, repr=False, eq=False)
class Witnessed(Written):
    """The decisions of the kernel's queueing discipline and of perhop's block about the same packets.

    Attributes:
        name: The name of the scenario.
        report: Everything that was found, as plain data; `perhop witness --json` writes the same.
        packets: One row for each packet, in the order of arrival: `packet` (from 0), `flow`, `dscp`, `size`,
            `began_s` and `ended_s` (of the call that handed it to the kernel), `kernel_left_s`,
            `perhop_left_s` (asked in its own time; null if it was dropped), `kernel_marked`,
            `perhop_marked`, `alike` (asked when the kernel was), `tied` (alike in one order only of events
            that are too close to tell apart), `alike_own_time`.
        scenario: The scenario whose queue both have, as canonical JSON.
        command: What to type for the same.
    """

    COMMAND: ClassVar = "perhop witness"
    TABLE: ClassVar = "decisions"
    name: str
    report: Mapping[str, Any]
    packets: pl.DataFrame
    scenario: str
    command: str = ""

    @property
    def alike(self) -> float:
        """The share of packets about which both decided alike, the block being asked when the kernel was."""
        return float(self.report["decisions"][0]["alike"])

    @property
    def valid(self) -> bool:
        """Whether everything that left the kernel's discipline was seen, at times that count."""
        return not self.report["invalid"]

    def _outline(self) -> str:
        return f"{self.name}, link {self.report['link']}: {100 * self.alike:.3f} % of {self._count()} alike"

    def _count(self) -> str:
        return counted(self.report["packets"], "packet")

    def __str__(self) -> str:
        """The text that `perhop witness` prints, without a limit of width."""
        return self.text()

    def json(self) -> str:
        """Return what `perhop witness --json` writes."""
        return json.dumps(self.report, indent=1, ensure_ascii=False) + "\n"

    def _more_frames(self) -> dict[str, pl.DataFrame]:
        return {"packets": self.packets}

    def _reports(self, width: int | None) -> Sequence[Report]:  # noqa: ARG002 - the same for any width
        return [Report(self._title(), self._lead(), self._parts())]

    def _title(self) -> str:
        return f"{self.name}: link {self.report['link']}, {self.report['discipline']} of Linux and of perhop"

    def _lead(self) -> list[str]:
        report = self.report
        following, own = report["decisions"]
        rest = following["differing"]
        lines = [f"INVALID: {why}." for why in report["invalid"]]
        lines.append(
            f"{self._count()} in {short(report['span_s'])} s. Asked whenever the kernel's discipline was, "
            f"perhop's block makes the same decision for {100 * following['alike']:.3f} % of them; "
            f"{rest or 'none'} {'differs' if rest == 1 else 'differ'}."
        )
        if following["tied"]:
            lines.append(
                f"About {following['tied']} of them only in one order of events that are less than "
                f"{RESOLUTION_NS // 1000} µs apart, which cannot be told apart."
            )
        if own["differing"]:
            explained = own["differing"] - own["unexplained"]
            lines.append(
                f"Asked in its own time it decides otherwise about {own['differing']:,}, {explained:,} of "
                "them because the kernel serves its discipline later (below): asked at the kernel's times, "
                "it decides about these as the kernel did."
            )
        return lines

    def _parts(self) -> list[Part]:
        report = self.report
        rows = [
            {
                "perhop asked": row["asked"],
                "alike, %": f"{100 * row['alike']:.3f}",
                "fates differ": f"{row['fates']:,}",
                **({"marks differ": f"{row['marks']:,}"} if report["marked_kernel"] else {}),
                "turns differ": f"{row['turns']:,}",
                "dropped, perhop": f"{row['dropped_perhop']:,}",
                "dropped, kernel": f"{row['dropped_kernel']:,}",
            }
            for row in report["decisions"]
        ]
        late = {f"{name}, µs": measured(value * 1e6) for name, value in report["late_s"].items()}
        call = {f"{name}, µs": measured(value * 1e6) for name, value in report["call_s"].items()}
        times = [
            {"time": "the kernel sent after the block could", **late},
            {"time": "length of the call that hands a packet over", **call},
        ]
        parts: list[Part] = [Records("", rows), Records("", times)]
        shown = [
            {
                "packet": str(row["packet"]),
                "came, s": f"{row['came_s']:.6f}",
                "size": str(row["size"]),
                "DSCP": str(row["dscp"]),
                "differs": row["differs"],
                "kernel": _fate(row["kernel_left_s"]),
                "perhop": _fate(row["perhop_left_s"]),
                "because": row["because"],
            }
            for row in report["differing"][:SHOWN]
        ]
        if shown:
            more = len(report["differing"]) - len(shown)
            title = "Different decisions" + (f", the first {SHOWN} of {SHOWN + more}" if more else "")
            parts.append(Records(title, shown))
        priority = "real-time" if report["real_time"] else "normal"
        notes = [f"Linux {report['kernel']}; the sender had {priority} priority."]
        notes += [f"{remark['place']}: {remark['text']}." for remark in report["remarks"]]
        return [*parts, Text(notes)]

    def _write(self, place: Path, command: str, jobs: int) -> None:  # noqa: ARG002 - no picture
        report = Report(
            self._title(),
            self._lead(),
            [*self._parts(), Code("The kernel's discipline", self.report["commands"], "All commands")],
            origin=Origin(
                command,
                "every packet",
                "The same command sends the same packets; when the kernel serves them differs:",
                f"perhop {_engine.version} on Linux {self.report['kernel']}",
            ),
        )
        entry = {"seeds": [self.report["seed"]], **json.loads(self.scenario)}
        write_report(place, report, self.packets, [entry])


def _fate(left_s: float | None) -> str:
    return "dropped" if left_s is None else f"{left_s:.6f} s"


@dataclass(frozen=True, slots=True)
class _Setting:
    """The queue that both have.

    Attributes:
        origin: The name of the scenario in messages.
        link: The name of the link.
        scenario: The scenario with the queue, as canonical JSON.
        queue: The table of the queue.
        rate: The rate of the link, which is above that of the queue.
        commands: The commands of tc.
        remarks: What these do not say as the scenario does.
    """

    origin: str
    link: str
    scenario: str
    queue: dict[str, Any]
    rate: str
    commands: list[str]
    remarks: list[dict[str, str]]

    @property
    def device(self) -> str:
        """The device that the commands name."""
        return self.commands[0].partition(" dev ")[2].partition(" ")[0]

    @property
    def discipline(self) -> str:
        """The kernel's name of the discipline that limits the rate."""
        scheduler = str(self.queue["scheduler"])
        return "tbf" if scheduler == "shaper" else scheduler


def witness(
    scenario: ScenarioSource,
    *,
    link: str | None = None,
    arrivals: str | Path | None = None,
    seed: int = 1,
    real_time: bool = True,
    cancel: _engine.Cancel | None = None,
) -> Witnessed:
    """Send a link's packets through the kernel's queueing discipline and through perhop's block, and compare.

    Both have the parameters of the link's queue, and neither has the link behind it: `shaper` and `htb` limit
    the rate themselves, other queues get a shaper of the link's rate around them. Which packets leave, with
    which marks and in which order is compared packet by packet. It takes as long as the packets take.

    Args:
        scenario: See `ScenarioSource`.
        link: The link's name; not needed where one link has a queue.
        arrivals: A pcap or pcapng file whose packets come in place of those of the simulation.
        seed: Of the simulation, and of what the block draws.
        real_time: Give the sender real-time priority where that is allowed.
        cancel: Set it from another thread to stop the simulation.

    Raises:
        ScenarioError: The scenario is wrong.
        PerhopError: The queue cannot be written for `tc`, or this kernel does not have it.
    """
    checked = reading.read(scenario)
    checked.warn()
    (seed,) = extent.seeds(seed, 1)
    origin = str(scenario) if isinstance(scenario, str | Path) and "\n" not in str(scenario) else "scenario"
    setting = _setting(checked.text, origin, link)
    flag = cancel if cancel is not None else _engine.Cancel()
    if arrivals is None:
        task = partial(events.arrivals, checked.text, seed, flag)
        (table,) = parallel_map(task, [setting.link], jobs=1, cancel=flag)
        packets = _of_events(table)
    else:
        path = arguments.path("arrivals", arrivals)
        packets = _of_capture(replaying.replay(path, scenario, link=setting.link, packets=True, cancel=flag))
    _check(packets, setting)
    columns = {name: packets[name].to_list() for name in ("at_ns", "size", "dscp", "ecn", "flow")}
    request = {"device": setting.device, "commands": setting.commands, "real_time": real_time, **columns}
    try:
        found = laboratory.ask({"kernel_queue": request}, None)
    except _engine.LiveUnavailable as error:
        raise PerhopError(f"no witness here: {error}") from None
    return _compared(setting, packets, found, seed)


def _check(packets: pl.DataFrame, setting: _Setting) -> None:
    """Refuse packets that cannot be sent.

    Raises:
        PerhopError: There are none, or one is too short.
    """
    place = f"{setting.origin}: links.{setting.link}"
    if not packets.height:
        raise PerhopError(f"{place}: no packet comes to it; lengthen `duration`, or send some")
    few = packets.filter(pl.col("size") < LEAST_SIZE).height
    if few:
        text = f"{counted(few, 'packet')} shorter than {LEAST_SIZE} bytes cannot be sent; make them longer"
        raise PerhopError(f"{place}: {text}")


def _setting(canonical: str, origin: str, link: str | None) -> _Setting:
    """The queue of a link, as a discipline that limits its rate itself."""
    scenario = json.loads(_engine.with_limits(canonical))
    if "topology" in scenario:
        scenario = json.loads(_engine.written_out(canonical))
    name = writing.chosen(scenario, origin, link, "[links.NAME]")
    table = scenario["links"][name]
    if table.get("meters"):
        text = "the witness compares queues, and packets come behind the meters; leave `meters` out"
        raise PerhopError(f"{origin}: links.{name}.meters: {text}")
    if table["queue"].get("scheduler") not in OWN_RATES:
        bps = outgoing.rate(table["rate"])
        burst = max(bps / 8 * BURST_S, FRAME)
        queue = {
            "scheduler": "shaper",
            "rate": table["rate"],
            "burst": f"{burst:.0f}B",
            "queue": table["queue"],
        }
        table["queue"], table["rate"] = queue, f"{2 * bps:.0f}bps"
    written = reading.canonical(scenario)
    table = json.loads(written)["links"][name]
    commands, remarks = _commands(written, name, origin)
    return _Setting(origin, name, written, table["queue"], table["rate"], commands, remarks)


def _commands(scenario: str, link: str, origin: str) -> tuple[list[str], list[dict[str, str]]]:
    """The commands of tc for a link's queue, and what they do not say as the scenario does."""
    exported = exporting.exported(scenario, origin, "tc", link=link, lenient=True)
    lost = [remark for remark in exported.remarks if remark.kind == "left out"]
    if lost:
        text = "so no discipline of the kernel has the same parameters; change it"
        raise PerhopError(f"{origin}: {lost[0].place}: {lost[0].text}, {text}")
    commands = [line for line in exported.text.splitlines() if line.startswith("tc ")]
    whole = f"links.{link}.rate"  # nothing else limits the rate, as it is to be here
    remarks = [
        {"place": remark.place, "kind": remark.kind, "text": remark.text}
        for remark in exported.remarks
        if remark.place != whole and not _RENAMED.fullmatch(remark.text)
    ]
    return commands, remarks


def _of_events(events: pl.DataFrame) -> pl.DataFrame:
    """Packets of a simulation as they come to the link."""
    return events.select(
        at_ns=(pl.col("time_s") * 1e9).round().cast(pl.UInt64),
        size=pl.col("size"),
        dscp=pl.col("dscp"),
        ecn=pl.col("ecn").to_physical(),
        flow=pl.col("flow"),
        color=pl.col("color").cast(pl.String),
    )


def _of_capture(replay: replaying.Replay) -> pl.DataFrame:
    """Packets of a capture; the color is that of the codepoint."""
    assert replay.packets is not None
    colors = {dscp: drop_precedence(dscp) or "green" for dscp in range(64)}
    return replay.packets.select(
        at_ns=(pl.col("arrived_s") * 1e9).round().cast(pl.UInt64),
        size=pl.col("size"),
        dscp=pl.col("dscp_in"),
        ecn=pl.col("ecn_in"),
        flow=pl.col("flow"),
        color=pl.col("dscp_in").replace_strict(colors, return_dtype=pl.String),
    )


def _compared(setting: _Setting, packets: pl.DataFrame, found: Mapping[str, Any], seed: int) -> Witnessed:
    """Have the block decide about what was offered, and compare."""
    fields = packets.select("size", "color", "dscp", "ecn", "flow").iter_rows()
    offered = [
        Offered(began, ended, (*seen, 0, 0))
        for began, ended, seen in zip(found["began_ns"], found["ended_ns"], fields, strict=True)
    ]
    came_marked = (packets["ecn"] == decisions.CE).to_list()
    marked = [
        left == decisions.CE and not came for left, came in zip(found["left_ecn"], came_marked, strict=True)
    ]
    kernel = Passed(found["left_ns"], marked, [not accepted for accepted in found["accepted"]])

    def block() -> _engine.QueueByHand:
        return _engine.QueueByHand(json.dumps(setting.queue), setting.rate, seed)

    followed = decisions.following(block(), offered, kernel)
    own = decisions.own_time(block(), offered)
    with_kernel, in_own_time = (Differences.between(kernel, one) for one in (followed.passed, own))
    rows = [
        _row(
            FOLLOWING,
            kernel,
            followed.passed,
            with_kernel,
            {"tied": len(followed.tied - with_kernel.packets)},
        ),
        _row(OWN, kernel, own, in_own_time, {"unexplained": len(in_own_time.packets & with_kernel.packets)}),
    ]
    differing = [
        {
            "packet": number,
            "came_s": offered[number].began_ns / 1e9,
            "size": offered[number].fields[0],
            "dscp": offered[number].fields[2],
            "differs": _differs(number, with_kernel),
            "kernel_left_s": _seconds(kernel.left_ns[number]),
            "perhop_left_s": _seconds(followed.passed.left_ns[number]),
        }
        for number in sorted(with_kernel.packets)
    ]
    _explain(differing)
    name = Path(setting.origin).stem
    report = {
        "scenario": name,
        "link": setting.link,
        "discipline": setting.discipline,
        "seed": seed,
        "kernel": found["kernel"],
        "real_time": found["real_time"],
        "packets": len(offered),
        "span_s": offered[-1].ended_ns / 1e9,
        "marked_kernel": sum(marked),
        "invalid": _invalid(kernel, found),
        "decisions": rows,
        "late_s": _quantiles(followed.late_ns),
        "call_s": _quantiles([one.ended_ns - one.began_ns for one in offered]),
        "differing": differing,
        "remarks": setting.remarks,
        "commands": setting.commands,
    }
    each = pl.DataFrame(
        {
            "packet": range(len(offered)),
            "flow": packets["flow"],
            "dscp": packets["dscp"],
            "size": packets["size"],
            "began_s": [one.began_ns / 1e9 for one in offered],
            "ended_s": [one.ended_ns / 1e9 for one in offered],
            "kernel_left_s": [_seconds(ns) for ns in kernel.left_ns],
            "perhop_left_s": [_seconds(ns) for ns in own.left_ns],
            "kernel_marked": marked,
            "perhop_marked": own.marked,
            "alike": [number not in with_kernel.packets for number in range(len(offered))],
            "tied": [number in followed.tied for number in range(len(offered))],
            "alike_own_time": [number not in in_own_time.packets for number in range(len(offered))],
        }
    )
    return Witnessed(name, report, each, setting.scenario)


def _row(
    asked: str, kernel: Passed, block: Passed, found: Differences, more: Mapping[str, int]
) -> dict[str, Any]:
    """The decisions of the kernel's discipline beside those of a block that was asked in one way."""
    packets = len(kernel.left_ns)
    return {
        "asked": asked,
        "alike": 1 - len(found.packets) / packets,
        "differing": len(found.packets),
        "fates": len(found.fates),
        "marks": len(found.marks),
        "turns": len(found.turns),
        "dropped_kernel": kernel.left_ns.count(None),
        "dropped_perhop": block.left_ns.count(None),
        **more,
    }


def _explain(differing: Sequence[dict[str, Any]]) -> None:
    """Add to each different decision its cause, `because`, as far as the record shows it."""

    def decided(row: Mapping[str, Any]) -> float:
        """The time at which the kernel decided."""
        left = row["kernel_left_s"]
        return float(row["came_s"] if left is None or row["differs"] == "fate" else left)

    apart: list[tuple[float, float, int]] = []
    """From when until when different packets wait in the two queues, because of which packet."""
    for row in sorted(differing, key=decided):
        left = [row[name] for name in ("kernel_left_s", "perhop_left_s") if row[name] is not None]
        now = decided(row)
        since = [packet for begins, ends, packet in apart if begins <= now <= ends]
        if row["differs"] == "turn" and max(left) - min(left) <= SWAP_S:
            row["because"] = f"two classes could send within {SWAP_S * 1e6:.0f} µs"
        elif since:
            row["because"] = f"other packets wait in perhop since {since[-1]}"
        else:
            row["because"] = "not explained"
        apart.append((row["came_s"] if len(left) == 1 else min(left), max(left), row["packet"]))


def _differs(number: int, found: Differences) -> str:
    kinds = {"fate": found.fates, "mark": found.marks, "turn": found.turns}
    return ", ".join(kind for kind, numbers in kinds.items() if number in numbers)


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e9


def _quantiles(times_ns: Sequence[int]) -> dict[str, float]:
    """Percentiles in seconds."""
    ordered = sorted(times_ns) or [0]
    names = {"p1": 0.01, "p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
    return {name: ordered[round(share * (len(ordered) - 1))] / 1e9 for name, share in names.items()}


def _invalid(kernel: Passed, found: Mapping[str, Any]) -> list[str]:
    """Reasons for which a run does not count: the kernel counted other packets, or the clock was set."""
    (root,) = (one for one in json.loads(found["counters"]) if one.get("root"))
    dropped = kernel.left_ns.count(None)
    seen = len(kernel.left_ns) - dropped
    reasons = []
    if (root["packets"], root["drops"]) != (seen, dropped):
        counts = f"{root['packets']:,} sent and {root['drops']:,} dropped"
        reasons.append(
            f"the kernel counts {counts}, but {seen:,} were seen to leave and {dropped:,} were not"
        )
    if found["clock_step_ns"] > MOST_STEP_NS:
        reasons.append(f"the system's clock was set by {found['clock_step_ns'] / 1e6:.1f} ms meanwhile")
    return reasons
