"""One number of perhop beside the same number of a peer, and whether they agree.

A peer is another simulator, the Linux kernel, or a formula. The verdict is that of two one-sided tests over
independent runs (`perhop.statistics.equivalence`): *agrees* if the difference lies within the margin,
*differs* if it lies beyond it, *cannot tell* if more runs would be needed. A bound is met or it is not.
"""

from __future__ import annotations

import functools
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from perhop import _engine
from perhop.runs.parallel import available_cores
from perhop.statistics.intervals import Estimate, equivalence, estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

State: TypeAlias = Literal["agrees", "differs", "cannot tell"]
STATES: tuple[State, ...] = ("agrees", "cannot tell", "differs")
_STATE: dict[str, State] = {
    "equivalent": "agrees",
    "different": "differs",
    "cannot tell": "cannot tell",
}


@dataclass(frozen=True, slots=True)
class Agreement:
    """One comparison.

    Attributes:
        peer: `theory`, `ns-2`, `ns-3` or `kernel`.
        setting: What was simulated.
        quantity: What was measured, with its unit.
        ours: perhop's mean over runs.
        theirs: The peer's; without an interval where it is a formula.
        margin: What counts as no difference, in the unit of the means; 0 for a bound.
        state: The verdict.
    """

    peer: str
    setting: str
    quantity: str
    ours: Estimate
    theirs: Estimate
    margin: float
    state: State

    @property
    def difference(self) -> float:
        """perhop's mean against the peer's, as a part of the peer's."""
        return self.ours.mean / self.theirs.mean - 1

    def to_json(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        return {
            "peer": self.peer,
            "setting": self.setting,
            "quantity": self.quantity,
            "perhop": _number(self.ours),
            "theirs": _number(self.theirs),
            "margin": float(f"{self.margin:.4g}"),
            "state": self.state,
        }


def compared(
    peer: str,
    setting: str,
    quantity: str,
    *,
    ours: Sequence[float],
    theirs: Sequence[float],
    margin: float,
    paired: bool = False,
) -> Agreement:
    """Hold the runs of perhop against those of a peer.

    Args:
        peer: Its name.
        setting: What was simulated.
        quantity: What was measured, with its unit.
        ours: One value for each run, at least two.
        theirs: Likewise; a single value is that of a formula.
        margin: What counts as no difference, as a part of the peer's mean.
        paired: Run by run both have the same arrivals, so that the differences of the runs are what counts.
    """
    peers = estimate(theirs)
    allowed = margin * abs(peers.mean)
    if paired:
        differences = [own - other for own, other in zip(ours, theirs, strict=True)]
        verdict = equivalence([0.0] * len(differences), differences, allowed).verdict
        return Agreement(peer, setting, quantity, estimate(ours), peers, allowed, _STATE[verdict])
    # A formula has no spread: two equal values say so to the test.
    found = equivalence(list(theirs) * (2 if len(theirs) == 1 else 1), ours, allowed)
    return Agreement(peer, setting, quantity, estimate(ours), peers, allowed, _STATE[found.verdict])


def bounded(
    setting: str,
    quantity: str,
    *,
    ours: Sequence[float],
    most: float | None = None,
    least: float | None = None,
) -> Agreement:
    """Hold every run of perhop against a bound of theory: an upper one (`most`) or a lower one (`least`)."""
    if most is not None:
        side, bound, meets = "at most", most, max(ours) <= most
    else:
        assert least is not None, "a bound has one side"
        side, bound, meets = "at least", least, min(ours) >= least
    state: State = "agrees" if meets else "differs"
    return Agreement("theory", setting, f"{quantity}, {side}", estimate(ours), estimate([bound]), 0.0, state)


def simulate(
    scenario: Mapping[str, Any] | Callable[[int], Mapping[str, Any]], seeds: Sequence[int]
) -> list[dict[str, Any]]:
    """The raw results of a scenario for each seed; the scenario may itself depend on the seed."""

    def one(seed: int) -> dict[str, Any]:
        described = scenario(seed) if callable(scenario) else scenario
        return {**_engine.simulate(_engine.scenario_from_json(json.dumps(described), "oracle"), seed)}

    with ThreadPoolExecutor(available_cores()) as pool:
        return list(pool.map(functools.partial(one), seeds))


def _number(found: Estimate) -> dict[str, Any]:
    mean = float(f"{found.mean:.5g}")
    if found.half_width is None:
        return {"mean": mean}
    return {"mean": mean, "half_width": float(f"{found.half_width:.3g}"), "runs": found.runs}
