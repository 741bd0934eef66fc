"""What a search says in sentences: which setting to take, if any is surely better, and how it was found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from perhop.measures import absent
from perhop.plurals import counted
from perhop.scenario.ranges import text_of
from perhop.show.metric_names import shown_name, shown_text, unit_of
from perhop.statistics.intervals import Estimate
from perhop.sweeps import warm_ups
from perhop.sweeps.summary import short_names
from perhop.sweeps.tuning import Constraint

if TYPE_CHECKING:
    from perhop.sweeps.tune import Trial, Tuned, Winner

KEPT: Mapping[bool | None, str] = {True: "kept", False: "missed", None: "cannot tell"}
"""What runs say of the constraints, in tables."""
_NOTHING_BETTER = "**Nothing is surely better than the scenario as it is"


def answers(tuned: Tuned) -> list[str]:
    """What to set, and how sure it is that this is better, in sentences of Markdown."""
    if not tuned.front:
        return _nothing_feasible(tuned)
    choice = tuned.choice
    if choice.best is None and not choice.tied:
        goals = [one.metric for one in tuned.plan.objectives]
        lacking = [name for name in goals if any(winner.fresh[name] is None for winner in tuned.front)]
        why = _why_absent(lacking, len(tuned.plan.validation_seeds), "`validation-runs`")
        no_value = "an objective has no value in some run on fresh seeds"
        return [f"**No setting is recommended**: {no_value}{f'; {why}' if why else ''}."]
    if not choice.differ and (choice.compared or len(tuned.front) > 1):
        return [_no_difference(tuned), *_constraints(tuned, tuned.front)]
    if choice.best is None:
        tied = [tuned.front[place] for place in choice.tied]
        return [_tie(tuned, tied), *_as_it_is(tuned), *_ahead(tuned), *_constraints(tuned, tied)]
    best = tuned.front[choice.best]
    ahead = [] if choice.better else _ahead(tuned)
    said = [_best(tuned, best), *_as_it_is(tuned), *ahead, *_others(tuned), *_constraints(tuned, [best])]
    if len(tuned.plan.objectives) > 1 and len(tuned.front) > 1:
        said.append(
            f"{len(tuned.front)} trials are on the Pareto front: none of them beats another by every "
            "objective. The nearest to the best values of all objectives, each measured as a part of its "
            "range over the front, is taken as the best; with other weights, choose another row."
        )
    return said


def _best(tuned: Tuned, best: Winner) -> str:
    """The best setting on fresh seeds, and how it compares with the scenario as it is."""
    choice = tuned.choice
    what = f"{setting(tuned, best.trial)} (trial {best.trial.number}): {_goals(tuned, best.fresh)}"
    if choice.is_as_it_is:
        return f"{_NOTHING_BETTER}**, which is the best: {what}."
    if not choice.compared:
        return f"**Recommended: {what}**."
    if not choice.better:
        side = (
            _by(tuned, choice.worse, "is surely worse")
            if choice.worse
            else "cannot be distinguished from as it is"
        )
        nothing = f"{_NOTHING_BETTER}.** The" if not choice.ahead else "**No setting is recommended.** The"
        return f"{nothing} best on fresh seeds, {what}, {side}."
    better = _by(tuned, choice.better, "is surely better than the scenario as it is")
    if choice.worse:
        return f"**Recommended, as a trade: {what}**. It {better}, and {_by(tuned, choice.worse, 'worse')}."
    return f"**Recommended: {what}**. It {better}."


def _by(tuned: Tuned, metrics: Sequence[str], said: str) -> str:
    """A verdict, with the objectives by which it is so where there are several."""
    if len(tuned.plan.objectives) == 1:
        return said
    return f"{said} by {_listed(map(plain, metrics))}"


def _others(tuned: Tuned) -> list[str]:
    """Which winners cannot be distinguished from the best one."""
    choice = tuned.choice
    if len(tuned.front) < 2:
        return []
    listed = _trials([tuned.front[place] for place in choice.alike]) if choice.alike else ""
    if len(tuned.plan.objectives) > 1:
        if listed:
            return [
                f"That it is nearer to the best values of all objectives than {listed} **may be chance**."
            ]
        return ["It is surely the nearest to the best values of all objectives."]
    if listed:
        return [f"It is **not distinguishable from {listed}** on {_seeds(tuned)}."]
    return [f"It is surely better than the other trials that ran again, on {_seeds(tuned)}."]


def _as_it_is(tuned: Tuned) -> list[str]:
    """What the scenario as it is gives."""
    found = tuned.as_it_is
    if found is None:
        if not tuned.plan.compared:
            return []
        return [
            "The scenario as it is could not run with what the file sets, so nothing is compared with it."
        ]
    if not tuned.choice.compared:
        return ["The scenario as it is lacks a value of an objective, so nothing is compared with it."]
    missed = "; it misses a constraint" if found.holds is False else ""
    return [f"The scenario as it is: {_goals(tuned, found.estimates)}{missed}."]


def _ahead(tuned: Tuned) -> list[str]:
    """Which trials of a front are surely better than as it is."""
    choice = tuned.choice
    if not choice.compared or len(tuned.plan.objectives) == 1:
        return []
    if choice.ahead:
        listed = _trials([tuned.front[place] for place in choice.ahead])
        return [f"Surely better than as it is by an objective, and surely worse by none: {listed}."]
    return ["No trial is surely better than as it is by an objective without being surely worse by another."]


def _no_difference(tuned: Tuned) -> str:
    front, choice = tuned.front, tuned.choice
    kind = "trials of the Pareto front" if len(tuned.plan.objectives) > 1 else "best trials"
    if len(front) == 1:
        which = f"{setting(tuned, front[0].trial)} (trial {front[0].trial.number}) cannot be distinguished "
        which += "from the scenario as it is"
    elif choice.compared:
        which = f"the {len(front)} {kind} can be distinguished neither from each other "
        which += "nor from the scenario as it is"
    else:
        which = f"the {len(front)} {kind} cannot be distinguished from each other"
    by = " by any objective" if len(tuned.plan.objectives) > 1 else ""
    nothing = "nothing is surely better than as it is" if choice.compared else "no setting is recommended"
    few = "; single runs have no interval" if len(tuned.plan.validation_seeds) == 1 else ""
    return f"**No difference found**: on {_seeds(tuned)} {which}{by}, so **{nothing}**{few}."


def _tie(tuned: Tuned, tied: Sequence[Winner]) -> str:
    why = "are equally near to the best values of all objectives"
    if len(tied) == 2 and len(tuned.plan.objectives) == 2:
        why += ": each is the best by one of them"
    listed = "; ".join(
        f"{setting(tuned, one.trial)} (trial {one.trial.number}): {_goals(tuned, one.fresh)}" for one in tied
    )
    return f"**A tie**: {_trials(tied)} {why}. Choose by what counts more: {listed}."


def _constraints(tuned: Tuned, winners: Sequence[Winner]) -> list[str]:
    if not tuned.plan.constraints:
        return []
    of = {state: [one for one in winners if one.holds is state] for state in (True, False, None)}
    some = _trials if len(winners) > 1 else lambda _: "it"
    said = []
    if kept := of[True]:
        said.append(f"{some(kept)} **{'keeps' if len(kept) == 1 else 'keep'} all constraints**")
    if missed := of[False]:
        said.append(f"{some(missed)} **{'misses' if len(missed) == 1 else 'miss'} a constraint**")
    if unsure := of[None]:
        open_ = _open(tuned.plan.constraints, unsure)
        verb = "keeps" if len(unsure) == 1 else "keep"
        said.append(f"these runs **cannot tell** whether {some(unsure)} {verb} {open_}")
    return [f"On {_seeds(tuned)} {'; '.join(said)}."]


def _open(constraints: Sequence[Constraint], winners: Sequence[Winner]) -> str:
    """The constraints that runs leave open, and about how many fresh seeds would tell."""
    checks = [(entry, entry.check(one.fresh)) for entry in constraints for one in winners]
    unsure = [(entry, check) for entry, check in checks if check.holds is None]
    listed = _listed(dict.fromkeys(f"“{entry.text}”" for entry, _ in unsure))
    needed = [check.runs_needed for _, check in unsure]
    if None in needed:
        return listed
    return f"{listed} (about {max(n for n in needed if n is not None)} would, as `validation-runs`)"


def _seeds(tuned: Tuned) -> str:
    return counted(len(tuned.plan.validation_seeds), "fresh seed")


def _trials(winners: Sequence[Winner]) -> str:
    numbers = [str(one.trial.number) for one in winners]
    return f"trial{'s' if len(numbers) > 1 else ''} {_listed(numbers)}"


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def setting(tuned: Tuned, trial: Trial) -> str:
    """A trial's setting, as a file would have it."""
    short = short_names(list(tuned.plan.search))
    return ", ".join(f"{short[name]} = {text_of(value)}" for name, value in trial.factors.items())


def plain(metric: str) -> str:
    """A metric as readers call it, without its unit."""
    return shown_name(metric).partition(",")[0]


def _goals(tuned: Tuned, found: Mapping[str, Estimate | None]) -> str:
    return "; ".join(f"{plain(one.metric)} {_value(found, one.metric)}" for one in tuned.plan.objectives)


def _value(found: Mapping[str, Estimate | None], metric: str) -> str:
    return f"{shown_text(found.get(metric), metric)} {unit_of(metric).text}".rstrip()


# ---------------------------------------------------------------- nothing feasible


def _nothing_feasible(tuned: Tuned) -> list[str]:
    """Lines for a search without a feasible trial: the nearest one, and which constraints it breaks."""
    plan = tuned.plan
    known = [trial for trial in tuned.trials if trial.point and None not in trial.found.values()]
    if not known:
        return [
            f"**No trial has a value of every objective and constraint**; {remedy(_never(tuned), plan.runs)}."
        ]
    nearest = min(known, key=lambda trial: (_missed(plan.constraints, trial), trial.number))
    bounds = [entry for entry in plan.constraints if entry.violation(nearest.found) > 0]
    by = "; ".join(f"{plain(entry.metric)} is {_value(nearest.found, entry.metric)}" for entry in bounds)
    return [
        "**No trial keeps the constraints**; widen the search, or relax them.",
        f"The nearest: {setting(tuned, nearest)} (trial {nearest.number}), where {by}.",
        *_in_the_way(plan.constraints, known),
    ]


def remedy(metrics: Iterable[str], runs: int, key: str = "`runs`") -> str:
    """What to change where no trial has a value of every metric.

    Args:
        metrics: Those that runs lack.
        runs: Of each trial.
        key: What says how many.
    """
    return _why_absent(metrics, runs, key) or "widen the search"


def _never(tuned: Tuned) -> list[str]:
    """The metrics of which no trial has a value."""
    run = _run(tuned)
    return [name for name in tuned.plan.metrics if run and all(trial.found[name] is None for trial in run)]


def _run(tuned: Tuned) -> list[Trial]:
    """The trials of which no run failed."""
    failed = {one.point.key for one in tuned.failures}
    return [trial for trial in tuned.trials if trial.point is not None and trial.point.key not in failed]


def _why_absent(metrics: Iterable[str], runs: int, key: str = "`runs`") -> str:
    """Why runs have no value of these metrics."""
    return "; ".join(f"{plain(metric)}: {absent.why(metric, runs, key)}" for metric in metrics)


def _missed(constraints: Sequence[Constraint], trial: Trial) -> float:
    """The sum of the misses of all constraints, each relative to its bound."""
    return math.fsum(max(0.0, entry.violation(trial.found)) for entry in constraints)


def _in_the_way(constraints: Sequence[Constraint], trials: Sequence[Trial]) -> list[str]:
    kept = {entry.text: sum(entry.violation(trial.found) <= 0 for trial in trials) for entry in constraints}
    never = [f"“{text}”" for text, count in kept.items() if count == 0]
    said = [f"No trial keeps {' or '.join(never)}."] if never else []
    others = [f"“{text}” by {counted(count, 'trial')}" for text, count in kept.items() if count]
    if not never:
        said.append(f"Each is kept by some trial, and none keeps all: {_listed(others)}.")
    return said


# ---------------------------------------------------------------- what was searched


def lead(tuned: Tuned) -> list[str]:
    """What was searched and how it was validated, in sentences."""
    plan = tuned.plan
    goal = "; ".join(entry.text.replace(entry.metric, plain(entry.metric)) for entry in plan.objectives)
    bounds = ", ".join(entry.text.replace(entry.metric, plain(entry.metric)) for entry in plan.constraints)
    lines = [f"{goal}, subject to {bounds}" if bounds else goal, _searched(tuned)]
    tried = len({trial.point.key for trial in tuned.trials if trial.point is not None})
    lines += warm_ups.sentences(list(tuned.warm_ups.values()), tried, "setting")
    if not tuned.front:
        return lines
    seeds = plan.validation_seeds
    if len(plan.objectives) > 1:
        what = f"The Pareto front of {len(tuned.front)}"
    else:
        what = "The best trial" if len(tuned.front) == 1 else f"The {len(tuned.front)} best trials"
    beside = "" if tuned.as_it_is is None else " and the scenario as it is"
    lines.append(
        f"{what}{beside}, run again on {_named(seeds)}, {_known(seeds)}; "
        "the column “searched” has the values by which the search chose, which are biased."
    )
    return lines


def _named(seeds: Sequence[int]) -> str:
    return f"fresh seeds ({seeds[0]} to {seeds[-1]})" if len(seeds) > 1 else f"a fresh seed ({seeds[0]})"


def _known(seeds: Sequence[int]) -> str:
    return "with 95 % intervals" if len(seeds) > 1 else "without intervals, as one run of each has none"


def unbiased(tuned: Tuned) -> str:
    """What to think of the numbers, in sentences."""
    seeds = tuned.plan.validation_seeds
    have = f"Values on {_named(seeds)}, which no trial used, are unbiased, {_known(seeds)}."
    return f"{have} Values of the search itself are biased toward better ones, since it chose by them."


def _searched(tuned: Tuned) -> str:
    """Return how many settings were tried, and how many of them count."""
    plan, trials = tuned.plan, tuned.trials
    refused = sum(trial.point is None for trial in trials)
    keys = {one.point.key for one in tuned.failures}
    failed = sum(trial.point is not None and trial.point.key in keys for trial in trials)
    run = _run(tuned)
    lacking = sum(None in trial.found.values() for trial in run)
    names = [name for name in plan.metrics if any(trial.found[name] is None for trial in run)]
    if plan.size is not None and len(trials) == plan.size:
        text = f"{counted(len(trials), 'setting')}, all tried, with {counted(plan.runs, 'run')} of each"
    else:
        text = f"{counted(len(trials), 'trial')} of {counted(plan.runs, 'run')}"
    if plan.constraints:
        text += f", {sum(trial.feasible for trial in trials)} within the constraints"
    if lacking:
        text += f", {lacking} without a value of a metric in some run ({_why_absent(names, plan.runs)})"
    if failed:
        text += f", {failed} failed"
    return text + (f", {refused} were no valid scenario" if refused else "")
