"""Runs of a lab's scenarios, each done once, and what they measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from perhop import _engine
from perhop.bounds import deriving
from perhop.bounds.metrics import at_most
from perhop.coursework.lab import FILE, Lab, LabMeasure
from perhop.errors import PerhopError
from perhop.planning import guarantees
from perhop.runs.parallel import available_cores, parallel_map
from perhop.scenario import document
from perhop.scenario.ranges import Value
from perhop.stores import metrics
from perhop.sweeps.plan import make_point

Samples = "dict[int, float]"
"""A value by seed."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A scenario of a lab, as canonical JSON, in one run."""

    scenario: str
    seed: int


class Bench:
    """The runs of a lab's scenarios."""

    def __init__(self, lab: Lab) -> None:
        """Begin without runs."""
        self._lab = lab
        self._done: dict[Cell, dict[str, float]] = {}
        self._bounds: dict[str, deriving.Bounds] = {}

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of all runs."""
        return tuple(range(1, self._lab.runs + 1))

    def scenario(
        self, name: str, settings: Mapping[str, object], values: Mapping[str, Value], label: str
    ) -> str:
        """A scenario of the lab with settings, as canonical JSON.

        Args:
            name: Its file.
            settings: Values by path; `{name}` in their text is replaced by one of `values`.
            values: What a student chose.
            label: What names it in messages.

        Raises:
            PerhopError, ScenarioError: It is none.
        """
        base = document.read_base({"scenario": name, "set": settings}, self._lab.folder / FILE)
        return make_point(base, values, values, label).scenario

    def run(
        self, scenarios: Iterable[str], progress: Callable[[int], Callable[[], None]] | None = None
    ) -> None:
        """Run what has not been run.

        Args:
            scenarios: Canonical JSON.
            progress: Called with the number of runs; what it returns is called after each.
        """
        wanted = dict.fromkeys(Cell(text, seed) for text in scenarios for seed in self.seeds)
        cells = [cell for cell in wanted if cell not in self._done]
        if not cells:
            return
        step = progress(len(cells)) if progress else None
        flag = _engine.Cancel()

        def work(cell: Cell) -> dict[str, float]:
            measured = metrics.simulate(cell.scenario, cell.seed, flag)
            return dict(zip(measured.names, measured.values, strict=True))

        def finished(place: int, values: dict[str, float]) -> None:
            self._done[cells[place]] = values
            if step is not None:
                step()

        parallel_map(work, cells, jobs=available_cores(), cancel=flag, finished=finished)

    def metric(self, scenario: str, name: str, scale: float = 1.0) -> dict[int, float]:
        """A metric of all runs of a scenario, by seed; a bound holds for each of them.

        Raises:
            PerhopError: The scenario does not measure this.
        """
        if guarantees.is_bound(name):
            value = at_most(name, self._bounds_of(scenario))
            found = dict.fromkeys(self.seeds, math.nan if value is None else value)
        else:
            self.run([scenario])
            found = {seed: self._done[Cell(scenario, seed)].get(name, math.nan) for seed in self.seeds}
        if not all(map(math.isfinite, found.values())):
            raise PerhopError(f"{self._lab.folder / FILE}: no value of `{name}` in some run")
        return {seed: value * scale for seed, value in found.items()}

    def _bounds_of(self, scenario: str) -> deriving.Bounds:
        if scenario not in self._bounds:
            self._bounds[scenario] = deriving.of_text(scenario)
        return self._bounds[scenario]

    def scenario_of(self, measure: LabMeasure) -> str:
        """The scenario that a measure is taken from, as canonical JSON."""
        return self.scenario(measure.scenario, measure.settings, {}, measure.scenario)

    def samples(self, name: str) -> dict[int, float]:
        """A measure of the lab in all runs, by seed."""
        measure = self._lab.measures[name]
        found = self.metric(self.scenario_of(measure), measure.metric, measure.scale)
        if measure.minus:
            other = self.samples(measure.minus)
            found = {seed: value - other[seed] for seed, value in found.items()}
        if measure.over:
            other = self.samples(measure.over)
            found = {seed: value / other[seed] for seed, value in found.items()}
        return found
