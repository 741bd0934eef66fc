"""The search of a plan: `perhop tune` for the largest margins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from perhop.planning.verdicts import score
from perhop.statistics.observations import Observations
from perhop.sweeps.tuning import Objective, TuningPlan

if TYPE_CHECKING:
    from perhop.planning.document import Plan

SCORE = "score"
"""What the search maximizes: see `perhop.planning.verdicts.score`."""


def tuning_plan(plan: Plan) -> TuningPlan:
    """The search of a plan. Trials use the seeds after those of the verdicts, which no trial sees."""
    search = plan.search
    assert search is not None

    def derive(observed: Mapping[str, Observations]) -> dict[str, Observations]:
        return {SCORE: Observations((score(plan.bounds, observed),))}

    return TuningPlan(
        title=plan.title,
        base=plan.base(search.demands, templates=True),
        search=search.factors,
        objectives=(Objective(SCORE, maximize=True),),
        constraints=(),
        trials=search.trials,
        batch=search.batch,
        runs=search.runs,
        seed=plan.seeds.stop,
        validation_runs=plan.runs,
        sampler=search.sampler,
        population=search.population,
        derive=derive,
        observed=plan.metrics,
        fresh=plan.seeds,
    )
