"""The unit and the meaning of each column of the tables of `--csv DIR`, for `columns.csv`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from perhop.measures import listing, naming
from perhop.measures.run import COLORS

Explained: TypeAlias = tuple[str, str]
"""Unit and meaning."""
Section: TypeAlias = "Mapping[str, Explained]"
"""Units and meanings of columns, or of the last parts of the names of metrics."""

_COMMON: Section = {
    "class": ("", "The group of flows, or of packets at a link."),
    "link": ("", "The link and direction."),
    "seed": ("", "The seed of the run."),
    "runs": ("", "How many runs there are."),
    "member": ("", "The flow's number in its class, from 0."),
    "name": ("", "The name of what the record is about."),
    "title": ("", "The title of the file."),
    "measure": ("", "What was measured."),
    "unit": ("", "The unit of the numbers of the row; empty for a number without one."),
    "profile_bps": ("bit/s", "The profile's rate; 0 for best effort."),
    "flows": ("", "How many flows the class has."),
    "users": ("", "How many users the group has."),
    "scenario": ("", "The key of the row's scenario in the store of runs."),
    "error": ("", "The text of the error that ended the run."),
    "runs_needed": ("", "How many runs would tell; empty where the runs tell, or no number of runs would."),
    "p": ("", "The p-value of the verdict."),
    "table": ("", "The table that has the measure."),
    "of": ("", "The row of that table."),
}

_OVER_TIME: Section = {
    "time_s": ("s", "The time of the sample since the beginning of the run."),
    "throughput_bps": (
        "bit/s",
        "Rate of first deliveries at the receiver since the sample before, IP headers included.",
    ),
    "cwnd_packets": ("packets", "The congestion window at that time; none for a flow that has none."),
    "rtt_s": ("s", "The sender's smoothed round-trip time at that time; none before its first sample."),
    "seen_packets": (
        "packets",
        "The congestion window as the control of the flow's path last saw it; none for a flow without one.",
    ),
    "received_bytes": (
        "B",
        "Bytes that reached the receiver for the first time since the beginning of the run.",
    ),
    "quantity": ("", "What was sampled: the length of the queue, or what its AQM keeps track of."),
    "packets": ("packets", "The value, in packets unless the quantity's name says otherwise."),
}

_OF_POPULATIONS: Section = {
    "started_s": ("s", "When the flow began, from the beginning of the run."),
    "size_bytes": ("B", "The flow's payload."),
    "idle_s": ("s", "The least time that the flow's bytes take on its path, headers included."),
    "completion_s": (
        "s",
        (
            "From the flow's start to the arrival of its last byte; none for a flow that was unfinished at "
            "the end of the run."
        ),
    ),
    "slowdown": ("", "`completion_s` over `idle_s`."),
}

_CALLS: Section = {
    "calls": ("", "How many flows the class has, each of them one direction of a call."),
    "mouth_to_ear_s": (
        "s",
        (
            "Delay from mouth to ear: from the sending of a packet to its play-out, and the codec's delay; "
            "mean over the calls of which packets arrived."
        ),
    ),
    "lost_or_late": (
        "fraction",
        "Packets that were lost or came too late for their play-out, over all; mean over the calls.",
    ),
    "burst_ratio": (
        "",
        (
            "BurstR of ITU-T G.107: mean number of packets in a row that were lost or came too late, over "
            "what independent losses would give; 1 for those; mean over the calls."
        ),
    ),
}

_PARTS: Section = {"packets": ("packets", "Packets"), "bytes": ("B", "Bytes, IP headers included,")}
_WITNESSED: Section = {
    "asked": ("", "When perhop's block was asked for packets."),
    "alike": ("", "The share of packets with the same fate, mark and turn; of one packet: whether it has."),
    "differing": ("packets", "Packets with another fate, mark or turn."),
    "fates": ("packets", "Packets that one of both dropped and the other one sent."),
    "marks": ("packets", "Packets that both sent, one with a congestion mark."),
    "turns": ("packets", "Packets that both sent, in another order: the fewest that explain it."),
    "dropped_kernel": ("packets", "Packets that the kernel's discipline dropped."),
    "dropped_perhop": ("packets", "Packets that perhop's block dropped."),
    "tied": ("", "Alike in one order only of events that are too close to tell apart: how many, or whether."),
    "unexplained": ("packets", "Those of `differing` that differ at the kernel's times, too."),
    "packet": ("", "The packet's number in the order of arrival, from 0."),
    "flow": ("", "The number of the packet's flow."),
    "dscp": ("", "The codepoint of the packet."),
    "size": ("B", "The size of the IP packet."),
    "came_s": ("s", "When the packet was handed to the kernel."),
    "began_s": ("s", "When the call began that handed the packet to the kernel."),
    "ended_s": ("s", "When that call ended."),
    "kernel_left_s": ("s", "When the packet left the kernel's discipline; empty if it was dropped."),
    "perhop_left_s": ("s", "When the packet left perhop's block; empty if it was dropped."),
    "kernel_marked": ("", "Whether the kernel's discipline marked the packet."),
    "perhop_marked": ("", "Whether perhop's block marked the packet."),
    "alike_own_time": ("", "Whether perhop's block fares alike with the packet in its own time."),
    "differs": ("", "What differs: fate, mark or turn."),
    "because": ("", "The cause, as far as it is known."),
    "place": ("", "The key of the scenario."),
    "kind": ("", "How what tc is told differs from the scenario: rounded or differs."),
    "text": ("", "What differs."),
}

_REPLAYED: Section = {
    "flow": ("", "The name of the flow; of one in a capture its addresses, ports and protocol."),
    "codepoint": ("", "The codepoint (DSCP) with which packets came."),
    "color": ("", "The color that the meter gave; empty without a meter."),
    "left": ("", "The codepoint with which packets left; empty for packets that were dropped."),
    "reason": ("", "Why packets were dropped; empty for packets that left."),
    "colors": ("packets", "Packets by the color that the meter gave: green, yellow, red; empty without one."),
    "packets": ("packets", "How many packets fared like this."),
    "bytes": ("B", "The bytes of these packets, IP headers included."),
    "dropped": ("packets", "Packets that the queue dropped, by reason."),
    "marked": ("packets", "Packets that the queue marked as having met congestion (CE), by reason."),
    **{
        f"{fate}_{unit}": (_PARTS[unit][0], f"{_PARTS[unit][1]} that {what}.")
        for fate, what in (("arrived", "came"), ("forwarded", "left"))
        for unit in _PARTS
    },
    "sent_packets": ("packets", "Packets that left."),
    "policed_packets": ("packets", "Packets that the meter dropped."),
    "dropped_packets": ("packets", "Packets that the queue dropped."),
    "marked_packets": ("packets", "Packets that the queue marked as having met congestion (CE)."),
    "delay_mean_s": ("s", "Waiting time in the queue of packets that left: mean."),
    "delay_p50_s": ("s", "Waiting time in the queue of packets that left: median."),
    "delay_p99_s": ("s", "Waiting time in the queue of packets that left: 99th percentile."),
    "delay_max_s": ("s", "Waiting time in the queue of packets that left: the longest."),
}

_PLANNED: Section = {
    "objective": ("", "The objective, as the plan states it."),
    "state": ("", "The verdict on the objective: holds, does not hold, or cannot tell."),
    "metrics": ("", "The metrics that the objective is about."),
    "bound": ("", "The bound of the objective, in the row's unit."),
    "measured": ("", "What the runs gave, in the row's unit."),
    "margin": (
        "",
        (
            "By how much the objective is kept, as a part of its bound, or of the share that it asks for; "
            "negative where it is not kept."
        ),
    ),
    "guaranteed": (
        "",
        "The bound of what the objective is about in any run, in the row's unit; empty where there is none.",
    ),
    "is_guaranteed": ("", "Whether the objective is kept in any run."),
    "kept": ("", "In how many runs the objective is kept."),
    "runs_that_keep_it": ("", "In how many runs the objective is kept; empty for one not about runs."),
    "runs_without_a_value": ("", "How many runs have no value."),
    "demand": ("", "What grows."),
    "count": ("", "How many there are."),
    "multiple": ("", "The multiple of today's demand."),
    "objectives": ("", "The objectives that are guaranteed today."),
    "guaranteed_up_to": ("", "Where all that is guaranteed today still is; empty where nothing is."),
    "breaks_at": ("", "Where an objective breaks first; empty where all hold up to the most looked at."),
    "first_to_break": ("", "The objectives that break first."),
    "cannot_be_told_today": ("", "The objectives of which today's runs cannot tell whether they hold."),
    "most": ("", "The largest multiple of today's demand that was looked at."),
    "point": ("", "The setting and the demand of the run."),
}

_ESTIMATED: Section = {
    "value": ("", "The estimate, in the unit of the row: a share of packets, or a wait."),
}

_LEVELS: Section = {
    "level": ("", "The number of the level, from 1 for the lowest."),
    "backlog": ("", "The least backlog of the level, in the unit of the row."),
    "trials": ("", "How many trials go on where one rises to the level, the original included."),
    "rises": ("", "How often trials rose to the level, over all runs."),
    "copies": ("", "The trials that were copied there, over all runs."),
}

_SPLIT: Section = {
    "events": ("", "Events of all trials of the run."),
    "main_events": ("", "Events of its main trial, which is a plain run."),
    "stays": ("", "Stays of its main trial above the first level."),
    "rare_stays": ("", "Stays in which the event happened, in any trial."),
    "rare": ("", "How often the event happened, by weight: on average as often as in a plain run."),
}

_BOUNDED: Section = {
    **{
        f"{of}_reason": ("", f"Why there is no bound of the {of}; empty where there is one.")
        for of in ("delay", "backlog")
    },
    "loss_reason": ("", "Why loss is not excluded; empty where it is."),
    "method": ("", "The analysis that gave the least bound."),
    "route": ("", "The links that the flow passes."),
    "step": ("", "The number of the step of the derivation, from 1."),
    "formula": ("", "The formula of the step, with its values."),
    "source": (
        "",
        "The paper, book or RFC from which the formula is; empty for one that follows from those before.",
    ),
}

_SEARCHED: Section = {
    "trial": ("", "The number of the trial, from 0."),
    "feasible": ("", "Whether the trial keeps all constraints."),
    "holds": ("", "Whether the constraints hold on fresh seeds; empty where the runs cannot tell."),
    "within": ("", "Whether the intervals are as narrow as `until` asks."),
    "widest": ("fraction", "The longest side of the intervals that `until` asks for, over its value."),
    "scenario": _COMMON["scenario"],
    "runs": ("", "How many runs the point has."),
    "seed": _COMMON["seed"],
    "error": _COMMON["error"],
    "point": _PLANNED["point"],
}

_COMPARED: Section = {
    "simulated": ("", "Of simulated runs, in the row's unit."),
    "live": ("", "Of runs on real packets, in the row's unit."),
    "difference": ("", "Live minus simulated, in the row's unit."),
    "margin": ("", "The difference that is allowed, in the row's unit."),
    "verdict": ("", "Whether simulation and real packets differ by more than the margin."),
    "agree": ("", "Whether both have one sign; empty where that is open."),
    "otherwise": ("", "What the kernel does otherwise than the simulation."),
    "left_out": ("", "The live runs that the machine may have changed: their seeds, or how many they are."),
    "id": ("", "The name of the change."),
    "text": ("", "What was changed."),
    "where": ("", "Whether the kernel was changed or the simulation."),
    "change": ("", "By how much the change moves the measure, in the row's unit."),
    "left": ("", "What is left of the difference between live and simulated, in the row's unit."),
}

_LIVE: Section = {
    "valid": ("", "Whether nothing that the machine did could have changed the result."),
    "invalid": ("", "What the machine did that could have changed the result."),
    "notes": ("", "What the kernel did in place of what the scenario asks for."),
    "kernel": ("", "The release of the kernel."),
    "senders": ("", "The congestion control of each group of flows."),
    "real_time": ("", "Whether the router's thread had real-time priority."),
    "cpu_s": ("s", "CPU time of the router's thread."),
    "wall_s": ("s", "How long the run took."),
    "p50": ("s", "How late packets left the router: median."),
    "p90": ("s", "How late packets left the router: 90th percentile."),
    "p99": ("s", "How late packets left the router: 99th percentile."),
    "p99.9": ("s", "How late packets left the router: 99.9th percentile."),
    "max": ("s", "How late packets left the router: the latest."),
    "allowed": ("s", "How late the 99th percentile may be in a valid run."),
    "pause": ("s", "The longest time in which the router did not read its devices."),
    "to_router": ("packets", "Packets lost in the kernel's queues to the router."),
    "to_hosts": ("packets", "Packets lost in the kernel's queues to a host."),
    "no_buffer": ("packets", "Packets that found no buffer in the router."),
    "unsent": ("packets", "Packets that a device did not take."),
    "packets": ("packets", "Packets that the router's device passed or lost, as the column's name says."),
    "bytes": ("B", "The bytes of these packets."),
}

_KEYS: Mapping[str, str] = {
    "factors": "The value that the row's runs have for this name or path of the file.",
    "values": "The value of this key of the scenario.",
    "today": "The value of this key of the scenario.",
    "sysctl": "The value of this setting of the kernel.",
    "transport": "The value of this key of the TCP transports.",
    "seeds": "The seeds of these runs.",
}
"""Parts of the name of a column whose last part somebody else has named."""
_WITHIN: Mapping[str, str] = {
    "searched": "In the search",
    "fresh": "On fresh seeds",
    "holds_up_to": "Where all objectives hold",
    "breaks_at": "Where an objective breaks first",
    "guaranteed_up_to": "Where all that is guaranteed today still is",
    "today": "Today",
}
"""First parts of the names of columns."""
_REASONS: Mapping[str, str] = {
    "overflow": "the queue had no room",
    "early": "by chance, the average queue being between `min` and `max`",
    "forced": "the average queue was at or above `max`",
    "early-out": "by chance, the average of OUT packets being between its `min` and `max`",
    "forced-out": "the average of OUT packets was at or above its `max`",
    "delay-control": "a green packet would have waited longer than its service allows",
    "late": "a packet could no longer be sent by its deadline",
    "target": "waiting times stayed above the target for too long",
    "controller": "by chance, with a probability that a controller adapts",
    "step": "the waiting time was above the threshold of a low-latency queue",
    "overload": "marking every packet of a low-latency queue did not suffice",
    "policed": "a packet was out of profile",
}
_DONE: Mapping[str, str] = {
    "dropped": "Packets that the queue dropped",
    "notified": "Packets that the queue marked as having met congestion (CE) and let in",
}
_BY_REASON = re.compile(rf"({'|'.join(_DONE)})_(.+)")
_BY_COLOR = re.compile(rf"(.+)_({'|'.join(COLORS)})")
_END = re.compile(r"_(low|high)(?=_|$)")
_METRIC = re.compile(r"(?:^|\.)(flows|populations|links|applications)\.")
_FACTORS = frozenset({"points", "trials", "front", "failed"})
"""Tables in which the names of factors are columns."""


class Columns:
    """The units and meanings of the columns of a result's tables."""

    def __init__(self) -> None:
        lines = listing.lines()
        columns = {of: {one.name: (one.unit, one.description) for one in some} for of, some in lines.items()}
        metrics = {
            of: {one.metric.rpartition(".")[2]: (one.unit, one.description) for one in some}
            for of, some in lines.items()
        }
        link, queue = "link", "queue of a link, and each class that it distinguishes"
        population = "population, and a range of sizes of its flows"
        users = {of: some for of, some in columns.items() if of.startswith("group of users: ")}
        calls = {**_CALLS, **{name: metrics["class of flows"][name] for name in sorted(naming.RATINGS)}}
        self._run = metrics["run"]
        self._of_metrics: Mapping[str, Section] = {
            "flows": metrics["class of flows"],
            "populations": metrics[population],
            "links": {**metrics[queue], **metrics[link]},
            "applications": {name: one for some in users.values() for name, one in some.items()},
        }
        bounds_of_flows = columns[listing.BOUNDS_OF_FLOWS]
        bounds_of_queues = columns[listing.BOUNDS_OF_QUEUES]
        of_queue = {**columns[queue], **columns[link], **bounds_of_queues}
        self._of_tables: Mapping[str, Section] = {
            "classes": {**columns["class of flows"], **bounds_of_flows},
            "links": of_queue,
            "link_classes": of_queue,
            "flows": {**columns["flow"], **bounds_of_flows},
            "estimates": _ESTIMATED,
            "levels": _LEVELS,
            "runs": _SPLIT,
            "steps": {"text": ("", "What the step of the derivation says.")},
            "flows-over-time": _OVER_TIME,
            "queues-over-time": _OVER_TIME,
            "flows-of-populations": _OF_POPULATIONS,
            "populations": {**columns[population], "sizes": ("", "`all`, or a range of the flows' payload.")},
            "applications-call": calls,
            **dict.fromkeys(("decisions", "differing", "packets", "remarks"), _WITNESSED),
            **{f"applications-{of.rpartition(' ')[2]}": some for of, some in users.items()},
        }

    def explain(self, table: str, column: str) -> Explained:
        """The unit and the meaning of a column; both empty where nobody has said them."""
        last = column.rpartition(".")[2]
        found = self._named(table, column)
        if found is None and (end := _END.search(last)) is not None:
            of = f"{column.removesuffix(last)}{last[: end.start()]}{last[end.end() :]}"
            if (unit_and_meaning := self._named(table, of)) is not None:
                side = "lower" if end[1] == "low" else "upper"
                return unit_and_meaning[0], f"The {side} end of the 95 % interval of {of}."
        if found is None and table in _FACTORS:
            return "", _KEYS["factors"]
        unit, meaning = found or ("", "")
        where = _WITHIN.get(column.partition(".")[0]) if column != last else None
        return unit, meaning if where is None else f"{where}: {_continued(meaning)}"

    def _named(self, table: str, column: str) -> Explained | None:
        """Explain a column by a name of perhop's, or by a key whose kind such a name says."""
        *places, last = column.split(".")
        metric = _METRIC.search(column)
        if metric is not None and last in self._of_metrics[metric[1]]:
            return self._of_metrics[metric[1]][last]
        if kinds := [_KEYS[place] for place in places if place in _KEYS]:
            return "", kinds[0]
        if table in _FACTORS:
            return _SEARCHED.get(column, self._run.get(last)) if metric is None else None
        if column.endswith(".p99.9"):
            last = "p99.9"
        for section in self._sections(table):
            if last in section:
                return section[last]
        return self._by_part(table, last)

    def _sections(self, table: str) -> Iterator[Section]:
        """Return the places where the names of a table's columns are looked up, one after another."""
        if table in self._of_tables:
            yield self._of_tables[table]
        if table.startswith("scenarios-live"):
            yield _LIVE
        if table.startswith(("scenarios", "directions")):
            yield _COMPARED
        yield from (_COMMON, _PLANNED, _BOUNDED, _REPLAYED)

    def _by_part(self, table: str, name: str) -> Explained | None:
        """Explain a column of one color or one reason of what a table counts."""
        color, section = _BY_COLOR.fullmatch(name), self._of_tables.get(table, {})
        if color is not None and color[1] in section:
            unit, meaning = section[color[1]]
            return unit, f"Of color {color[2]}: {_continued(meaning)}"
        reason = _BY_REASON.fullmatch(name)
        if reason is None or reason[2] not in _REASONS:
            return None
        return "packets", f"{_DONE[reason[1]]} (`{reason[2]}`: {_REASONS[reason[2]]}), mean over the runs."


def _continued(sentence: str) -> str:
    """A sentence as what follows a colon."""
    return sentence if sentence[1:2].isupper() else f"{sentence[:1].lower()}{sentence[1:]}"
