"""What `perhop.rare` found: estimates, their cost beside that of plain runs, and how far to trust them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from perhop import _engine
from perhop.measures.run import COLORS
from perhop.plurals import counted
from perhop.show.numbers import exact
from perhop.show.report import Items, Records, Report
from perhop.show.written import Shown
from perhop.splitting import estimates
from perhop.splitting.estimates import Counts
from perhop.statistics.intervals import Estimate

FEWEST_STAYS = 30
"""An interval from fewer stays above the first level in which the event happened is not to be trusted."""
MORE = "Give more --runs, or the scenario a longer duration."
BEYOND_REACH = {
    "stuck": "In the pilot no trial came beyond",
    "given-up": "The pilot took too many events to look for levels beyond",
}
"""The notes on a pilot by how it ended, where no run saw the event."""
PERCENTILES = (0.99, 0.999, 0.9999, 0.99999)
"""Quantiles of waits that are shown as far as the runs reach."""


@dataclass(frozen=True, slots=True)
class Event:
    """A rare event.

    Attributes:
        kind: `loss`, `wait` or `quantile`.
        wait_ns: For `wait`: a packet that waits longer than this counts.
        level: For `quantile`: its level.
        text: What it is, for readers.
    """

    kind: str
    text: str
    wait_ns: int = 0
    level: float = 0.0


@dataclass(frozen=True, repr=False, eq=False)
class Rare(Shown):
    """The probability of a rare event at a link, or a quantile of its waits, by runs with splitting.

    Attributes:
        scenario: The scenario as canonical JSON.
        link: The link.
        class_name: The class of packets at the link that the event is about; None for all packets.
        event: What is rare.
        unit: The unit of levels: `packets` or `bytes` of backlog.
        levels: The least backlog of each level, and how many trials go on from a rise to it.
        pilot: What the pilot found, and its events; None where levels were given.
        seeds: The seed of each run.
        counts: What each run counted.
        name: The title where the scenario has none: the name of its file.
    """

    TABLE: ClassVar = "estimates"
    scenario: str
    link: str
    class_name: str | None
    event: Event
    unit: str
    levels: Sequence[tuple[int, int]]
    pilot: Mapping[str, Any] | None
    seeds: Sequence[int]
    counts: Sequence[Counts]
    name: str = ""

    @property
    def title(self) -> str:
        """The scenario's title."""
        return json.loads(self.scenario).get("title") or self.name or "a scenario"

    @property
    def warmup_s(self) -> float:
        """The part of each run at its beginning that does not count, in seconds."""
        nanoseconds, _ = _engine.quantity("duration", json.loads(self.scenario)["warmup"])
        return float(nanoseconds / 1e9)

    @cached_property
    def estimate(self) -> Estimate | None:
        """The probability of the event for a packet, or the quantile of waits in seconds.

        None where no packet came, or none was sent.
        """
        if self.event.kind == "quantile":
            return estimates.quantile(self.counts, self.event.level)
        wholes = [self._whole(one) for one in self.counts]
        return estimates.share([one["rare"] for one in self.counts], wholes) if min(wholes) > 0 else None

    @property
    def plain_events(self) -> float | None:
        """About how many events plain runs would need for an interval as narrow; None where it is not known.

        A plain run counts the event in independent stays above the first level, so its variance is the mean
        of the sum of their squares, which runs with splitting estimate without bias.
        """
        if self.event.kind == "quantile" or len(self.counts) < 2 or not self.levels:
            return None
        wholes = [self._whole(one) for one in self.counts]
        if min(wholes) <= 0 or not any(one["rare"] for one in self.counts):
            return None
        split = estimates.variance([one["rare"] for one in self.counts], wholes)
        runs = len(self.counts)
        plain = self._sum("squares") / runs / (math.fsum(wholes) / runs) ** 2
        return None if split == 0 else self._sum("main_events") * plain / split

    @property
    def events(self) -> int:
        """Events of all runs, those of the pilot included."""
        return int(self._sum("events")) + (0 if self.pilot is None else int(self.pilot["events"]))

    @property
    def gain(self) -> float | None:
        """How many times as many events plain runs would need for an interval as narrow; None if unknown."""
        return None if self.plain_events is None else self.plain_events / self.events

    @property
    def rare_stays(self) -> int:
        """Stays of main trials above the first level in which the event happened, in any trial."""
        return int(self._sum("rare_stays"))

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before the numbers are used."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        ending = None if self.pilot is None else self.pilot["ending"]
        is_seen = self.rare_stays > 0 and self.event.kind != "quantile"
        if ending in BEYOND_REACH and not is_seen:
            last = f"{self.levels[-1][0]:,} {self.unit}" if self.levels else "the usual backlog"
            yield (
                f"{BEYOND_REACH[ending]} {last}: the event may be impossible, or come about in another way "
                "than by a long queue."
            )
        if not self.levels:
            yield "These are plain runs, without levels."
        elif self.rare_stays == 0 and self.event.kind != "quantile":
            yield f"No run saw the event, so how likely it is at most is not known. {MORE}"
        elif self.rare_stays < FEWEST_STAYS and self.event.kind != "quantile":
            yield (
                f"The event happened in {counted(self.rare_stays, 'independent stay')} above the first "
                f"level, and its interval needs {FEWEST_STAYS}: it may be too narrow. {MORE}"
            )
        if self.pilot is None and (unreached := self._unreached) is not None:
            yield f"No run came to {unreached:,} {self.unit}; levels from there on have no effect."
        plain = self.plain_events
        if plain is not None and plain < self.events:
            yield "Splitting does not pay here: plain runs give such an interval with fewer events."

    @property
    def _unreached(self) -> int | None:
        """The lowest level to which no run rose."""
        rises = [
            sum(counts["levels"][number]["rises"] for counts in self.counts)
            for number in range(len(self.levels))
        ]
        return next((self.levels[number][0] for number, seen in enumerate(rises) if not seen), None)

    def _whole(self, counts: Counts) -> float:
        """The weighted number of packets of which the event is a share."""
        if self.event.kind == "loss":
            return math.fsum(sum(one["arrived"]) for one in self._classes(counts))
        return math.fsum(one["packets"] for one in counts["waits"])

    def _classes(self, counts: Counts) -> list[dict[str, Any]]:
        return [one for one in counts["classes"] if self.class_name in (None, one["name"])]

    def _sum(self, name: str) -> float:
        return math.fsum(one[name] for one in self.counts)

    # ------------------------------------------------------------ rows

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of estimates: the event first, then what else the runs tell."""
        rows = [self._row(self.event.text, self.estimate, "s" if self.event.kind == "quantile" else "")]
        if self.event.kind == "loss":
            return rows + list(self._losses())
        for level in PERCENTILES:
            found = estimates.quantile(self.counts, level)
            is_known = found is not None and (found.ci95 is None or math.isfinite(found.ci95[1]))
            if is_known and (self.event.kind != "quantile" or level < self.event.level):
                rows.append(self._row(percentile(level), found, "s"))
        return rows

    def _losses(self) -> Iterator[dict[str, Any]]:
        """The losses of each class and of each color, where there are several."""
        names = [one["name"] for one in self._classes(self.counts[0])]
        for name in names if len(names) > 1 else ():
            yield from self._loss(f"loss of {name}", (name,), range(len(COLORS)))
        colors = [n for n in range(len(COLORS)) if self._counted(names, (n,), "arrived")[1]]
        for color in colors if len(colors) > 1 else ():
            yield from self._loss(f"loss of {COLORS[color]}", names, (color,))

    def _loss(self, text: str, names: Sequence[str], colors: Sequence[int]) -> Iterator[dict[str, Any]]:
        (dropped, _), (arrived, _) = (self._counted(names, colors, what) for what in ("dropped", "arrived"))
        if min(arrived) > 0:
            yield self._row(text, estimates.share(dropped, arrived))

    def _counted(self, names: Sequence[str], colors: Sequence[int], what: str) -> tuple[list[float], float]:
        """What each run counted of some classes and colors, and the sum over the runs."""
        of_runs = [
            math.fsum(
                one[what][color] for one in counts["classes"] if one["name"] in names for color in colors
            )
            for counts in self.counts
        ]
        return of_runs, math.fsum(of_runs)

    @staticmethod
    def _row(measure: str, found: Estimate | None, unit: str = "") -> dict[str, Any]:
        ends = None if found is None else found.ci95
        known = None if ends is None else [ends[0], ends[1] if math.isfinite(ends[1]) else None]
        value = None if found is None else {"mean": found.mean, "ci95": known}
        return {"measure": measure, "unit": unit, "value": value}

    def to_dict(self) -> dict[str, Any]:
        """Return what `perhop rare --json` writes as plain data."""
        visits = [one["levels"] for one in self.counts]
        levels = [
            {
                "level": number + 1,
                "backlog": backlog,
                "unit": self.unit,
                "trials": trials,
                "rises": sum(one[number]["rises"] for one in visits),
                "copies": sum(one[number]["copies"] for one in visits),
            }
            for number, (backlog, trials) in enumerate(self.levels)
        ]
        runs = [
            {
                "seed": seed,
                "events": one["events"],
                "main_events": one["main_events"],
                "stays": one["stays"],
                "rare_stays": one["rare_stays"],
                "rare": one["rare"],
            }
            for seed, one in zip(self.seeds, self.counts, strict=True)
        ]
        return {
            "title": self.title,
            "link": self.link,
            "class": self.class_name,
            "event": self.event.text,
            "estimates": self.rows,
            "levels": levels,
            "runs": runs,
            "work": {
                "events": self.events,
                "pilot_events": None if self.pilot is None else self.pilot["events"],
                "plain_events": self.plain_events,
                "gain": self.gain,
            },
            "notes": list(self.notes),
        }

    def json(self) -> str:
        """Return what `perhop rare --json` writes: the same bytes for the same runs."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def _outline(self) -> str:
        found = self.estimate
        said = "no packet came" if found is None else shown(self.rows[0])
        return (
            f"{self.title!r}, {counted(len(self.counts), 'run')}: {self.event.text} at `{self.link}`: {said}"
        )

    def __str__(self) -> str:
        """The text that `perhop rare` prints, without a limit of width."""
        return self.text()

    def _reports(self, width: int | None) -> Sequence[Report]:  # noqa: ARG002 - the same for any width
        of = f", class `{self.class_name}`" if self.class_name else ""
        runs, behind = counted(len(self.counts), "run"), f", the first {exact(self.warmup_s)} s excluded"
        intervals = "95 % intervals" if len(self.counts) > 1 else "without intervals"
        where = (
            f"Link `{self.link}`{of}: {runs} with splitting{behind if self.warmup_s else ''}; {intervals}."
        )
        content = self.to_dict()
        values = Records("", [{"measure": row["measure"], "value": shown(row)} for row in self.rows])
        heads = {"level": "level", "backlog": f"from, {self.unit}", "trials": "trials", "rises": "rises"}
        levels = [{head: f"{row[key]:,}" for key, head in heads.items()} for row in content["levels"]]
        parts = [values, *([Records("Levels of backlog", levels)] if levels else [])]
        return [Report(self.title, [where], [*parts, Items("Work:", [[self._work()]]), *self._warned()])]

    def _warned(self) -> list[Items]:
        return [Items("Note:", [[note] for note in self.notes])] if self.notes else []

    def _work(self) -> str:
        said = f"{self.events:,} events"
        if self.pilot is not None:
            said += f", {self.pilot['events']:,} of them to find the levels"
        if self.plain_events is None or self.gain is None:
            return f"{said}."
        return (
            f"{said}; plain runs would need about {self.plain_events:.2g} for an interval as narrow, "
            f"{self.gain:.2g} times as many."
        )


def percentile(level: float) -> str:
    """The name of a quantile of waits, such as `P99.99 of waits`."""
    return f"P{round(100 * level, 10):g} of waits"


def shown(row: Mapping[str, Any]) -> str:
    """A value with its interval: a probability as `1.1e-06 (9.8e-07 to 1.3e-06)`, a time in ms."""
    if row["value"] is None:
        return "none"
    if row["unit"] == "s":
        value, *ends = (_milliseconds(one) for one in (row["value"]["mean"], *(row["value"]["ci95"] or ())))
    else:
        value, *ends = (_share(one) for one in (row["value"]["mean"], *(row["value"]["ci95"] or ())))
    if not ends:
        return value
    if row["value"]["ci95"][1] is None:
        return f"{value} (or more)" if ends[0] == value else f"{value} (over {ends[0]})"
    return f"{value} ({ends[0]} to {ends[1]})"


def _share(one: float | None) -> str:
    return "" if one is None else f"{one:.3g}"


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds:.4g} ms"
