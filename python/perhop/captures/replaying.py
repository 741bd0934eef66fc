"""Captures replayed: the packets of a pcap or pcapng file into a meter, a queue or a link of a scenario.

The replay is open loop: packets come at the times at which they were captured, whatever becomes of them.
"""

from __future__ import annotations

import gzip
import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, cast

import numpy as np
import polars as pl

from perhop import _engine
from perhop.errors import ArgumentError, PerhopError, PerhopWarning, ScenarioError
from perhop.files import arguments
from perhop.measures.run import COLORS
from perhop.plurals import counted
from perhop.runs import extent
from perhop.runs.parallel import parallel_map
from perhop.scenario import reading
from perhop.scenario.base import Table, plain
from perhop.scenario.reading import ScenarioSource
from perhop.show.numbers import MISSING, exact, measured, short
from perhop.show.report import Records, Report, Text
from perhop.show.written import Shown

STDIN = Path("-")
"""The name of a capture that means standard input."""
_GZIP = b"\x1f\x8b"
_ENDS = {"from": "start", "to": "end"}
"""The arguments of the ends of a replay, by the keys that the engine has for them."""
_LEFT = 255
"""The verdict on a packet that left."""


@dataclass(frozen=True, repr=False, eq=False)
class Replay(Shown):
    """The packets of a capture that was replayed into a meter, a queue or a link, and what became of them.

    The frames have rates in bit/s and times in seconds.

    Attributes:
        capture: The name of the capture.
        target: What packets were replayed into, in words.
        report: Everything that was counted, as plain data; `perhop replay --json` writes the same.
        packets: One row for each packet, in the order of arrival, if that was asked for: `packet` (its number
            in the capture, from 1), `arrived_s`, `size` (of the IP packet, bytes), `flow` (a number that
            packets of the same addresses, protocol and ports share), `dscp_in`, `ecn_in`, `verdict`
            (`forwarded`, or the reason of its loss), `color` (null where nothing colors), `dscp_out`,
            `ecn_out` and `sent_s` (when its last bit had left); the last three are null if it was dropped.
    """

    TABLE: ClassVar = "outcomes"
    capture: str
    target: str
    report: Mapping[str, Any]
    packets: pl.DataFrame | None = None

    def outcomes(self) -> pl.DataFrame:
        """Packets by the codepoint with which they came and what became of them.

        Columns: `codepoint`, `color` (that of the meter, if there is one), `left` (the codepoint with which
        they left; null if they were dropped), `reason` (of their loss), `packets`, `bytes`, `share` of the
        packets of their codepoint, `rate_bps`.
        """
        frame = pl.DataFrame(self.report["outcomes"], schema=_OUTCOMES)
        share = pl.col("packets") / pl.col("packets").sum().over("codepoint")
        return frame.with_columns(share=share, rate_bps=self._rate("bytes"))

    def codepoints(self) -> pl.DataFrame:
        """Packets by the codepoint with which they came: counts, losses, and waiting times of a queue."""
        return self._fates("codepoints", {"codepoint": pl.String()}, _DELAYS)

    def flows(self) -> pl.DataFrame:
        """The flows (five-tuples) with the most bytes, the largest first."""
        return self._fates("flows", {"flow": pl.String()}, {})

    def classes(self) -> pl.DataFrame:
        """The classes of the queue, or the queue as a whole, as `all`; no rows without a queue.

        `dropped_REASON` and `marked_REASON` count packets by the reason of the queue's AQM.
        """
        rows = []
        for row in self.report["classes"]:
            counts = {
                f"{what}_{reason}": packets for what in ("dropped", "marked") for reason, packets in row[what]
            }
            rows.append({name: row[name] for name in _CLASSES} | counts)
        return pl.DataFrame(rows, infer_schema_length=None) if rows else pl.DataFrame(schema=_CLASSES)

    def _fates(
        self, table: str, first: Mapping[str, pl.DataType], more: Mapping[str, pl.DataType]
    ) -> pl.DataFrame:
        rows = [
            {
                **row,
                **{
                    f"{color}_packets": counts
                    for color, counts in zip(COLORS, row["colors"] or NONE, strict=True)
                },
            }
            for row in self.report[table]
        ]
        frame = pl.DataFrame(rows, schema={**first, **_FATES, **more})
        return frame.with_columns(arrived_bps=self._rate("arrived_bytes"))

    def _rate(self, name: str) -> pl.Expr:
        """Bytes over the time of the arrivals."""
        seconds = self.report["arrivals_s"]
        return pl.col(name) * (8.0 / seconds) if seconds else pl.lit(None, dtype=pl.Float64)

    def _outline(self) -> str:
        packets = counted(self.report["all"]["arrived_packets"], "packet")
        return f"{self.capture} into {self.target}: {packets}"

    def __str__(self) -> str:
        """The text that `perhop replay` prints, without a limit of width."""
        return self.text()

    def json(self) -> str:
        """Return what `perhop replay --json` writes: everything that was counted."""
        return json.dumps(self.report, indent=1, ensure_ascii=False) + "\n"

    def _reports(self, width: int | None) -> list[Report]:  # noqa: ARG002 - the same for any width
        rows = [self._outcome_rows(), *self._link_rows(), self._flow_rows()]
        tables = [Records("", table, gives_way=_GIVE_WAY) for table in rows if table]
        return [Report(self._title(), self._remarks(), [*tables, Text([self._notes()])])]

    def _title(self) -> str:
        """Say what was replayed, of which packets, and what was left out."""
        read, taken = self.report["capture"], self.report["all"]["arrived_packets"]
        of = "" if taken == read["packets"] else f"{taken:,} of "
        count = of + counted(read["packets"], "packet")
        rate = self._mbps(self.report["all"]["arrived_bytes"])
        span = f"{short(self.report['arrivals_s'])} s"
        chosen = ((read["outside"], "outside the chosen time"), (read["unmatched"], "not chosen"))
        left = [f"{packets:,} {what}" for packets, what in (*read["left_out"], *chosen) if packets]
        out = f" (left out: {', '.join(left)})" if left else ""
        return f"{self.capture}: {count}{out} in {span}, {rate} Mbit/s, into {self.target}"

    def _remarks(self) -> list[str]:
        """The remarks on packets that were incomplete, long or not chosen."""
        read = self.report["capture"]
        fills = {"no_checksum": "IPv4 checksum", "no_length": "length, which is then that of the frame"}
        filled = [f"{read[key]:,} without {text}" for key, text in fills.items() if read[key]]
        lines = []
        if filled:
            lines.append(
                f"Captured before the network card filled them in, and replayed: {', '.join(filled)}."
            )
        if read["long"]:
            lines.append(
                f"{read['long']:,} longer than 1500 bytes, up to {read['longest']:,}: jumbo frames, or "
                "segments that a host divides or joins (TSO, GRO) and that were apart on the wire."
            )
        if read["cut"]:
            lines.append("The file is cut off; what is whole of it was replayed.")
        if self.report["flows_forgotten"]:
            lines.append(
                f"There were {self.report['flow_count']:,} flows or more; small ones are not counted in full."
            )
        return lines

    def _mbps(self, of_bytes: int) -> str:
        seconds = self.report["arrivals_s"]
        return measured(of_bytes * 8e-6 / seconds) if seconds else MISSING

    def _metered(self) -> bool:
        return any(self.report["all"]["colors"] or NONE)

    def _fate_cells(self, row: Mapping[str, Any]) -> dict[str, str]:
        """Parts of the packets that arrived; those that are zero everywhere only where one looks for them."""
        shown = {
            "policed, %": ("policed_packets", False),
            "lost, %": ("dropped_packets", self.report["link"] is not None),
            "marked, %": ("marked_packets", False),
        }
        return {
            head: _percent(row[name], row["arrived_packets"])
            for head, (name, always) in shown.items()
            if always or self.report["all"][name]
        }

    def _outcome_rows(self) -> list[dict[str, str]]:
        """Codepoints in and out, where a meter may change them."""
        if not self._metered() and not self.report["meters"]:
            return []
        rows = []
        for row in self.outcomes().iter_rows(named=True):
            color = {"color": row["color"] or MISSING} if self._metered() else {}
            rows.append(
                {
                    "came as": row["codepoint"],
                    **color,
                    "left as": row["left"] or f"dropped: {row['reason']}",
                    "packets": f"{row['packets']:,}",
                    "share, %": measured(100 * row["share"]),
                    "Mbit/s": self._mbps(row["bytes"]),
                }
            )
        return rows

    def _link_rows(self) -> list[list[dict[str, str]]]:
        """The link, its queue's classes, and packets by codepoint; nothing without a link."""
        link = self.report["link"]
        if link is None:
            return []
        link_row = {
            "link": link["name"],
            "rate, Mbit/s": exact(link["rate_bps"] / 1e6),
            "used, %": MISSING if link["utilization"] is None else measured(100 * link["utilization"]),
            "queue, packets": MISSING
            if link["mean_queue_packets"] is None
            else measured(link["mean_queue_packets"]),
            **self._fate_cells(self.report["all"]),
        }
        classes = [
            {
                "class": row["name"],
                "arrived": f"{row['arrived_packets']:,}",
                "sent": f"{row['sent_packets']:,}",
                "dropped": _reasons(row["dropped"]),
                "marked": _reasons(row["marked"]),
                **_delay_cells(row),
            }
            for row in self.report["classes"]
        ]
        codepoints = [
            {
                "came as": row["codepoint"],
                "packets": f"{row['arrived_packets']:,}",
                "Mbit/s": self._mbps(row["arrived_bytes"]),
                **self._fate_cells(row),
                "delay mean, ms": _ms(row["delay_mean_s"]),
                **_delay_cells(row),
            }
            for row in self.report["codepoints"]
        ]
        return [[link_row], classes, codepoints]

    def _flow_rows(self) -> list[dict[str, str]]:
        link = self.report["link"] is not None
        rows = []
        for row in self.report["flows"]:
            colors = {
                f"{color}, %": _percent(packets, row["arrived_packets"])
                for color, packets, all_ in zip(
                    COLORS, row["colors"] or NONE, self.report["all"]["colors"] or NONE, strict=True
                )
                if all_
            }
            rows.append(
                {
                    "largest flows": row["flow"],
                    "packets": f"{row['arrived_packets']:,}",
                    "Mbit/s": self._mbps(row["arrived_bytes"]),
                    **colors,
                    **self._fate_cells(row),
                    **({"delay mean, ms": _ms(row["delay_mean_s"])} if link else {}),
                }
            )
        return rows

    def _notes(self) -> str:
        flows = counted(self.report["flow_count"], "flow")
        sizes = "Sizes are those of IP packets"
        shortened = self.report["capture"]["shortened"]
        if shortened:
            sizes += f"; of {shortened:,}, only the first bytes were captured"
        notes = [
            f"{flows}. {sizes}. Rates are over the {short(self.report['arrivals_s'])} s of the arrivals."
        ]
        if self.report["link"] is not None:
            notes.append(
                "Delay: waiting time in the queue of packets that left. Lost: dropped by the queue, of those "
                "that arrived."
            )
        return " ".join(notes)


NONE = [None] * len(COLORS)
"""Placeholder of counts by color where no meter counts."""

_FATES: Mapping[str, pl.DataType] = {
    "arrived_packets": pl.Int64(),
    "arrived_bytes": pl.Int64(),
    "forwarded_packets": pl.Int64(),
    "forwarded_bytes": pl.Int64(),
    "policed_packets": pl.Int64(),
    "dropped_packets": pl.Int64(),
    "marked_packets": pl.Int64(),
    **{f"{color}_packets": pl.Int64() for color in COLORS},
    "delay_mean_s": pl.Float64(),
}
_DELAYS: Mapping[str, pl.DataType] = {
    name: pl.Float64() for name in ("delay_p50_s", "delay_p99_s", "delay_max_s")
}
_CLASSES: Mapping[str, pl.DataType] = {
    "name": pl.String(),
    "arrived_packets": pl.Int64(),
    "sent_packets": pl.Int64(),
    **_DELAYS,
}
_OUTCOMES: Mapping[str, pl.DataType] = {
    "codepoint": pl.String(),
    "color": pl.String(),
    "left": pl.String(),
    "reason": pl.String(),
    "packets": pl.Int64(),
    "bytes": pl.Int64(),
}
_GIVE_WAY = ("delay p50, ms", "queue, packets", "delay max, ms", "share, %")
"""Columns that a narrow terminal does without, the least important one first."""


def _percent(part: float, whole: float) -> str:
    return measured(100 * part / whole) if whole else MISSING


def _ms(seconds: float | None) -> str:
    return MISSING if seconds is None else measured(seconds * 1e3)


def _delay_cells(row: Mapping[str, Any]) -> dict[str, str]:
    return {f"delay {name}, ms": _ms(row[f"delay_{name}_s"]) for name in ("p50", "p99", "max")}


def _reasons(counts: Sequence[Sequence[Any]]) -> str:
    return ", ".join(f"{reason} {packets:,}" for reason, packets in counts) or "0"


def replay(
    capture: str | Path,
    scenario: ScenarioSource | None = None,
    *,
    link: str | None = None,
    meter: Table | Mapping[str, Any] | None = None,
    queue: Table | Mapping[str, Any] | None = None,
    rate: str | None = None,
    interface: str | None = None,
    match: Mapping[str, Any] | None = None,
    start: str | None = None,
    end: str | None = None,
    speed: float = 1.0,
    seed: int = 1,
    top: int = 10,
    allow_cut: bool = False,
    data_plane: bool = False,
    packets: bool = False,
    cancel: _engine.Cancel | None = None,
) -> Replay:
    """Replay a capture into a meter, a queue, a meter before a queue, or a link of a scenario.

    Packets come at the times at which they were captured, whatever becomes of them (open loop). Memory does
    not grow with the capture, unless `packets` is asked for.

    Args:
        capture: A pcap or pcapng file, which gzip may have compressed; `-` is standard input.
        scenario: The scenario of `link`; see `perhop.scenario.reading.ScenarioSource`. The link's queue and
            meters act, nothing else.
        link: Its name; `NAME (reverse)` is the other direction. Not needed where one link has a queue.
        meter: A meter as the `profile` of a flow, such as `perhop.scenario.Srtcm(…)`. It sees each packet
            with the color of its codepoint, and its marker writes a codepoint of Assured Forwarding.
        queue: A queue as that of a link, such as `perhop.scenario.Codel()`.
        rate: The rate of the queue's link, such as `10Mbps`.
        interface: The name of the interface whose packets take part, in a pcapng file; all unless given.
        match: Which packets take part: `source`, `destination` (networks), `protocol`, `source-ports`,
            `destination-ports`, `dscp`. All packets unless given.
        start: Time zero of the replay, after the first packet of the file, such as `10s`.
        end: The end of the replay at the same clock.
        speed: How much faster than captured packets come.
        seed: Draws what an AQM decides by chance.
        top: How many of the largest flows the report names.
        allow_cut: Replay what is whole of a file that ends within a packet, instead of refusing it.
        data_plane: Forward the packets' bytes through the data plane of real packets instead of simulating
            the link. The verdicts are the same.
        packets: Keep what became of each packet, as `Replay.packets`; some 50 bytes a packet.
        cancel: Set it from another thread to stop; `perhop._engine.Cancelled` is then raised.

    Raises:
        PerhopError: The capture cannot be read, is damaged or has nothing to replay.
        ScenarioError: A table, an option or the scenario is wrong; the message names the key.

    Warns:
        PerhopWarning: A key has no effect on packets of a capture.
    """
    given = {
        "meter": meter,
        "queue": queue,
        "rate": rate,
        "link": link,
        "interface": interface,
        "match": match,
        "from": start,
        "to": end,
        "speed": arguments.finite("speed", speed),
        "seed": extent.seeds(seed, 1)[0],
        "top": arguments.whole("top", top, least=0),
        "allow-cut": allow_cut or None,
    }
    options = json.dumps({key: plain(value, key) for key, value in given.items() if value is not None})
    origin = str(scenario) if _is_file(scenario) else "scenario"
    text = None if scenario is None else (reading.canonical(scenario), origin)
    path = arguments.path("capture", capture)
    flag = cancel if cancel is not None else _engine.Cancel()

    def work(_task: None) -> tuple[str, dict[str, Any] | None]:
        with _opened(path) as file:
            return _engine.replay(file, options, text, flag, data_plane=data_plane, packets=packets)

    try:
        ((answer, columns),) = parallel_map(work, [None], jobs=1, cancel=flag)
    except ScenarioError as error:
        key, _, says = str(error).removeprefix("replay: ").partition(":")
        if key in _ENDS:
            raise ArgumentError(_ENDS[key], f":{says}") from None
        raise
    except _engine.CaptureError as error:
        name = "standard input" if path == STDIN else str(path)
        between = " " if str(error).startswith(("is ", "has ", "cannot ")) else ": "
        raise PerhopError(f"{name}:{between.removeprefix(':')}{error}") from None
    report = json.loads(answer)
    for notice in report["notices"]:
        warnings.warn(notice, PerhopWarning, stacklevel=2)
    name = "standard input" if path == STDIN else path.name
    each = None if columns is None else _packet_frame(columns)
    return Replay(name, _target(report, given), report, each)


def _is_file(scenario: object) -> bool:
    return isinstance(scenario, Path) or (isinstance(scenario, str) and "\n" not in scenario)


def _target(report: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Name the meter, queue or link that packets were replayed into."""
    meter, queue = plain(given["meter"]), plain(given["queue"])
    if report["link"] is None:
        return f"the meter {meter['marker']}"
    if queue is None:
        return f"the link {report['link']['name']}"
    discipline = queue.get("scheduler") or queue.get("aqm")
    before = "" if meter is None else f"the meter {meter['marker']} and "
    return f"{before}the queue {discipline} at {exact(report['link']['rate_bps'] / 1e6)} Mbit/s"


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A capture, unpacked if gzip has compressed it.

    Raises:
        PerhopError: It cannot be opened.
    """
    if path == STDIN:
        yield sys.stdin.buffer
        return
    try:
        with path.open("rb") as file:
            compressed = file.read(2) == _GZIP
            file.seek(0)
            if compressed:
                with gzip.open(file) as unpacked:
                    yield cast("BinaryIO", unpacked)
            else:
                yield file
    except FileNotFoundError:
        raise PerhopError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise PerhopError(f"{path}: is a directory; give a capture (pcap or pcapng)") from None
    except OSError as error:
        raise PerhopError(f"{path}: cannot be read: {error.strerror or error}") from None


def _packet_frame(columns: Mapping[str, Any]) -> pl.DataFrame:
    """One row for each packet."""
    reasons = np.array([*columns["reasons"], *[""] * (_LEFT - len(columns["reasons"])), "forwarded"])
    colors = np.array([*COLORS, *[""] * (256 - len(COLORS))])

    def optional(name: str) -> pl.Series:
        values = pl.Series(columns[name])
        return values.set(values == _LEFT, None)

    left = pl.Series(columns["verdict"]) == _LEFT
    color = pl.Series(colors[columns["color"]])
    return (
        pl.DataFrame(
            {
                "packet": pl.Series(columns["number"]),
                "arrived_s": pl.Series(columns["arrived_ns"] / 1e9),
                "size": pl.Series(columns["size"]),
                "flow": pl.Series(columns["flow"]),
                "dscp_in": pl.Series(columns["dscp_in"]),
                "ecn_in": pl.Series(columns["ecn_in"]),
                "verdict": pl.Series(reasons[columns["verdict"]]).cast(pl.Categorical),
                "color": color.set(color == "", None),
                "dscp_out": optional("dscp_out"),
                "ecn_out": optional("ecn_out"),
                "left_s": pl.Series(columns["left_ns"] / 1e9),
            }
        )
        .with_columns(pl.when(left).then(pl.col("left_s")).alias("sent_s"))
        .drop("left_s")
    )
