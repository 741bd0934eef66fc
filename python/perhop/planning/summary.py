"""What a plan says, in sentences, tables and JSON."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from perhop.measures import absent, catalog, finite_flows
from perhop.planning.job import Better, JudgedSetting, Limit, Planned
from perhop.planning.verdicts import BREAKS, HOLDS, STATES, ObjectiveVerdict, corrected
from perhop.planning.words import NO_LOSS
from perhop.plurals import counted
from perhop.scenario.ranges import text_of
from perhop.show.numbers import MISSING, at_most, exact, fixed, rounded, short, shown
from perhop.show.report import Code, Part, Records, Report, Text
from perhop.statistics.intervals import MOST_RUNS, Estimate
from perhop.statistics.multiplicity import family, p_text
from perhop.stores.metrics import engine_id
from perhop.sweeps import failing, tune_answers, warm_ups
from perhop.sweeps.summary import estimate_json, short_names

MOST_LINES = 60
"""Changed lines of a configuration that a terminal gets."""
MOST_NAMED = 2
"""Guaranteed objectives that a sentence names; more are counted."""
NOW, BETTER, TRIED = "as it is", "with the better setting", "with the best setting tried"
"""What settings are called."""


def as_report(planned: Planned) -> Report:
    """The plan as a terminal and a notebook show it."""
    changed = list(planned.changes[:MOST_LINES])
    if more := len(planned.changes) - len(changed):
        changed.append(f"… {counted(more, 'line')} more")
    parts: list[Part] = [
        *tables(planned),
        Text(notes(planned)),
        Text(failing.sentences(planned.failures, planned.names)),
        *([Code("Changed lines of the configuration:", changed)] if changed else []),
    ]
    return Report(planned.plan.title, [f"{lead(planned)}."], parts, answers(planned))


def tables(planned: Planned) -> list[Records]:
    """The objectives of each setting, and how far each demand can grow under it."""
    found = []
    for (setting, what), rows in zip(settings(planned), verdict_rows(planned), strict=True):
        found.append(Records(f"Objectives {what}", rows, states={HOLDS: "yes", BREAKS: "no"}))
        if setting.limits:
            # The objectives that break may take several lines.
            grown = limit_rows(setting.limits)
            states = {row["first to break"]: "text" for row in grown}
            found.append(Records(f"Growth {what}", grown, states=states))
    return found


def settings(planned: Planned) -> list[tuple[JudgedSetting, str]]:
    """The configuration as it is, and the better one where the search found one."""
    found = [(planned.now, NOW)]
    if planned.better is not None:
        found.append(
            (planned.better.setting, BETTER if planned.better.sure else "with the best setting tried")
        )
    return found


def lead(planned: Planned) -> str:
    """Say what was planned, and how it was measured."""
    plan = planned.plan
    if not plan.measured:
        return f"{plan.subject}; guarantees alone, which need no runs"
    chosen = " (by default, by the length of a run)" if plan.runs_by_default else ""
    return (
        f"{plan.subject}; {counted(plan.runs, 'run')}{chosen} on seeds {plan.seeds[0]} to {plan.seeds[-1]}; "
        "means with 95 % intervals; warm-up excluded"
    )


# ---------------------------------------------------------------- sentences


def answers(planned: Planned) -> list[str]:
    """Which promises are kept, what grows how far, and what would be better, in sentences of Markdown."""
    said = [_kept(planned.now.verdicts)]
    broken = [_quoted(verdict) for verdict in planned.now.verdicts if verdict.holds is False]
    if broken and planned.now.limits:
        listed = f"{' and '.join(broken)} {'breaks' if len(broken) == 1 else 'break'}"
        said.append(f"{listed} already, and how far a demand can grow counts the other objectives alone.")
    said += [*map(_limit, planned.now.limits), *_guaranteed_growth(planned.now.limits)]
    if not planned.now.limits and planned.plan.demands:
        said.append("No objective holds today, so there is no growth to look for.")
    if planned.plan.search is None:
        return said
    if planned.better is None:
        lacking = [
            one.bound.metrics
            for one in planned.now.verdicts
            if one.found is None and not one.bound.is_guarantee
        ]
        metrics = (
            itertools.chain(*lacking) if lacking else filter(finite_flows.needs_many, planned.plan.metrics)
        )
        remedy = tune_answers.remedy(metrics, planned.plan.search.runs, "`runs` in [tuning]")
        return [*said, f"**No setting that was tried** gives every objective a value; {remedy}."]
    return [*said, *_better(planned, planned.better)]


def _kept(verdicts: Sequence[ObjectiveVerdict]) -> str:
    """Return how many objectives hold, and which do not."""
    holding = sum(verdict.holds is True for verdict in verdicts)
    hold = "holds" if 1 in {holding, len(verdicts)} else "hold"
    every = f"**{holding} of {counted(len(verdicts), 'objective')} {hold}** {NOW}"
    others = [
        f"{_quoted(verdict)} {'breaks' if verdict.holds is False else 'is undecided'}"
        for verdict in verdicts
        if not verdict.holds
    ]
    return f"{every}; {', '.join(others)}." if others else f"{every}."


def _quoted(verdict: ObjectiveVerdict) -> str:
    return f"“{verdict.text}”"


def _limit(limit: Limit) -> str:
    """Return how far a demand can grow, and what is not known of that."""
    demand, last = limit.demand, limit.demand.levels[-1]
    if limit.breaks is None and limit.bracket.holds == len(demand.levels) - 1:
        said = f"**{demand.name}** can grow to {_level(limit, last)}, the most that was tried"
    else:
        held = (
            f"can grow to {_level(limit, limit.holds)}" if limit.bracket.holds else "may have no room to grow"
        )
        said = f"**{demand.name}** {held}; {_end(limit)}"
    unknown = [verdict for verdict in limit.untold if verdict.bound not in [one.bound for one in limit.first]]
    if not limit.untold:
        return f"{said}."
    if not unknown:
        return f"{said}; today's runs cannot tell whether it holds, so it may break earlier."
    listed = " and ".join(_quoted(verdict) for verdict in unknown)
    return f"{said}, if {listed} holds; today's runs cannot tell."


def _end(limit: Limit) -> str:
    """Say where a growth ends."""
    if limit.breaks is None:
        return f"up to {_level(limit, limit.demand.levels[-1])} no objective surely breaks"
    first = " and ".join(_quoted(verdict) for verdict in limit.first)
    return f"at {_level(limit, limit.breaks)} {first} {'breaks' if len(limit.first) == 1 else 'break'}"


def _level(limit: Limit, multiple: float) -> str:
    """A level as `17 users (+42 %)`."""
    return f"{limit.demand.shown(multiple)} ({growth_text(multiple)})"


def growth_text(multiple: float) -> str:
    """A multiple as growth: `+42 %`."""
    return f"{fixed(100 * (multiple - 1), 0, sign=True)} %" if round(100 * (multiple - 1)) else "today"


def _better(planned: Planned, better: Better) -> list[str]:
    plan = planned.plan
    assert plan.search is not None
    factors = better.winner.trial.factors
    names = short_names(list(factors))
    listed = ", ".join(f"{names[name]} = {text_of(value)}" for name, value in factors.items())
    under = ", ".join(f"{exact(value)} times {name}" for name, value in plan.search.demands.items())
    where = f" under {under}" if under else ""
    tried = len(better.tuned.trials)
    trial = f"trial {better.winner.trial.number} of {tried}"
    if tried == better.tuned.plan.size:
        trial += ", all settings tried"
    if better.gain is None or planned.now.margin is None or better.setting.margin is None:
        return [f"**Best setting tried: {listed}** ({trial}); an objective has no value in some run."]
    margins = f"{percent(planned.now.margin)} % to {percent(better.setting.margin)} %"
    if not better.sure:
        said = (
            f"The search found **nothing that is surely better**: its best, {listed} ({trial}), takes the "
            f"smallest margin{where} from {margins} (difference {percent(better.gain, sign=True)})."
        )
        return [said]
    said = (
        f"**Better: {listed}** ({trial}): the smallest margin{where} rises from {margins} "
        f"(difference {percent(better.gain, sign=True)}), on seeds that the search did not use."
    )
    return [
        said,
        _kept(better.setting.verdicts).replace(NOW, "then"),
        *(f"Then: {_limit(limit)}" for limit in better.setting.limits),
        *(f"Then: {sentence}" for sentence in _guaranteed_growth(better.setting.limits)),
    ]


def percent(found: Estimate, *, sign: bool = False) -> str:
    """A margin in per cent with its interval."""
    text = shown(found, 100)
    return f"+{text}" if sign and found.mean > 0 else text


def notes(planned: Planned) -> list[str]:
    """Say how to read the tables."""
    plan = planned.plan
    margin = (
        "Margin: 0 % is at the bound, 100 % the best possible value, or twice the bound where there is "
        "none. An objective holds where the whole interval keeps its bound, and breaks where none of it does."
    )
    said = [margin, *_family(planned)]
    if planned.now.limits:
        said.append(
            "Growth: one demand grows while the others stay. Up to the first level every objective that "
            "holds today still does; at the second one breaks; between them the runs cannot tell. An "
            "objective on which today's runs cannot decide ends growth where it breaks. Levels are "
            f"{_step(planned)} apart."
        )
    if has_guarantees(planned):
        grown = "; growth up to which all that is today still is" if planned.now.limits else ""
        said.append(
            "Guaranteed: at most this in any run, by network calculus (`perhop bound`); an objective that it "
            f"keeps holds{grown}."
        )
    missing = [
        verdict
        for setting, _ in settings(planned)
        for verdict in setting.verdicts
        if verdict.missing and verdict.found is None
    ]
    said += [_without_value(verdict, plan.runs) for verdict in missing]
    said += warm_ups.sentences(list(planned.warm_ups.values()), len(planned.warm_ups), "point")
    return said + [text for one in planned.now.verdicts if (text := what_would_tell(one))]


def what_would_tell(verdict: ObjectiveVerdict) -> str:
    """What to do where the runs cannot tell, in a sentence; empty where they can, or lack values."""
    if verdict.holds is not None or verdict.found is None:
        return ""
    if verdict.runs_needed is not None:
        return f"{_quoted(verdict)} needs about {counted(verdict.runs_needed, 'run')} to tell."
    if math.isinf(verdict.found.high) and verdict.share is None:
        if verdict.found.mean == 0:
            return (
                f"{_quoted(verdict)}: it was 0 in every run, which does not bound it; ask for a share of the "
                "runs, such as `in 90 % of runs`."
            )
        return (
            f"{_quoted(verdict)} has no upper end of its interval: a longer duration decides or, of a "
            "percentile, more runs."
        )
    if verdict.share is not None:
        return ""
    return (
        f"{_quoted(verdict)} may need more than {MOST_RUNS} runs to tell: the value is near its bound for "
        "how much the runs differ."
    )


def _without_value(verdict: ObjectiveVerdict, runs: int) -> str:
    """Why runs have no value of an objective, and what to change."""
    if verdict.bound.is_guarantee:
        return f"{_quoted(verdict)}: there is no bound; `perhop bound` says why."
    reasons = dict.fromkeys(absent.why(metric, runs) for metric in verdict.bound.metrics)
    of = f" in {verdict.missing} of {counted(runs, 'run')}" if verdict.missing < runs else ""
    return f"{_quoted(verdict)} has no value{of}: {'; '.join(reasons)}."


def _family(planned: Planned) -> list[str]:
    """What the number of verdicts means for all of them: on today's demand and on each grown one."""
    found = [setting for setting, _ in settings(planned)]
    today = sum(len(setting.verdicts) for setting in found)
    grown = sum(len(verdicts) for one in found for limit in one.limits for verdicts in limit.looked.values())
    what = "objectives, today and at levels of growth," if grown else "objectives"
    said = [text] if (text := family(today + grown, what)) else []
    if planned.holm:
        without = " on objectives today" if grown else ""
        said.append(
            f"Holm: the verdict after Holm's correction, by which with 95 % none of all verdicts{without} "
            "errs; p, Holm: the corrected two-sided p value, at most 0.05 where it is decided."
        )
    return said


def _step(planned: Planned) -> str:
    return f"{exact(100 * planned.plan.precision)} %, or one user or flow,"


# ---------------------------------------------------------------- tables


def verdict_rows(planned: Planned) -> list[list[dict[str, str]]]:
    """Return one line for each objective of each setting."""
    out = []
    with_guarantees = has_guarantees(planned)
    after = iter(corrected([verdict for setting, _ in settings(planned) for verdict in setting.verdicts]))
    for setting, _ in settings(planned):
        rows = []
        for verdict in setting.verdicts:
            row = {
                "objective": verdict.text,
                "measured": _measured(verdict),
                **({"guaranteed": _guaranteed(verdict)} if with_guarantees else {}),
                "margin, %": _margin(verdict),
                "verdict": verdict.state,
            }
            holds, p = next(after)
            if planned.holm:
                row |= {"Holm": STATES[holds], "p, Holm": MISSING if p is None else p_text(p)}
            rows.append(row)
        out.append(rows)
    return out


def has_guarantees(planned: Planned) -> bool:
    """Whether something that an objective is about has a bound."""
    return any(
        verdict.guaranteed is not None for setting, _ in settings(planned) for verdict in setting.verdicts
    )


def _guaranteed(verdict: ObjectiveVerdict) -> str:
    """The bound of what an objective is about, with its unit."""
    if verdict.guaranteed is None:
        return MISSING
    if verdict.bound.objective.measure is NO_LOSS:
        return "yes" if verdict.guaranteed else "no"
    factor, symbol = _unit(verdict.bound.unit)
    return f"{at_most(verdict.guaranteed, factor)} {symbol}".rstrip()


def _margin(verdict: ObjectiveVerdict) -> str:
    """The margin in per cent with its interval; a guarantee has none."""
    if verdict.margin is None or verdict.bound.objective.measure is NO_LOSS:
        return MISSING
    if verdict.bound.is_guarantee:
        return short(100 * verdict.margin.mean)
    return percent(verdict.margin)


def _measured(verdict: ObjectiveVerdict) -> str:
    if verdict.found is None or verdict.bound.is_guarantee:
        return MISSING
    factor, symbol = _unit(verdict.bound.unit)
    text = f"{shown(verdict.found, factor)} {symbol}".rstrip()
    if verdict.share is None:
        return text
    return f"{text}; {verdict.share.kept} of {counted(verdict.share.runs, 'run')}"


def _unit(unit: str) -> tuple[float, str]:
    """The factor and the symbol with which values are shown."""
    if unit not in catalog.SHOWN:
        return 1.0, unit
    shown = next(one for key, one in catalog.SHOWN.items() if key == unit)
    return shown.factor, shown.symbol


def limit_rows(limits: Sequence[Limit]) -> list[dict[str, str]]:
    """One line for each demand."""
    with_guarantees = any(limit.guaranteed is not None for limit in limits)
    return [
        {
            "demand": limit.demand.name,
            "today": limit.demand.shown(1.0),
            **({"guaranteed up to": _guaranteed_level(limit) or MISSING} if with_guarantees else {}),
            "holds up to": _level(limit, limit.holds),
            "breaks at": MISSING if limit.breaks is None else _level(limit, limit.breaks),
            "first to break": "; ".join(verdict.text for verdict in limit.first) or MISSING,
        }
        for limit in limits
    ]


def _guaranteed_level(limit: Limit) -> str:
    """The growth that what is guaranteed today bears; empty where nothing is."""
    return "" if limit.guaranteed is None else _level(limit, limit.demand.levels[limit.guaranteed.level])


def _guaranteed_growth(limits: Sequence[Limit]) -> Iterator[str]:
    """Yield a sentence on what is guaranteed in any run, and up to which growth of each demand."""
    found = [limit.guaranteed.objectives for limit in limits if limit.guaranteed is not None]
    if not found:
        return
    objectives, are = found[0], "is" if len(found[0]) == 1 else "are"
    named = " and ".join(f"“{text}”" for text in objectives)
    if len(objectives) > MOST_NAMED:
        named = counted(len(objectives), "objective")
    levels = ", ".join(f"{limit.demand.name} {_guaranteed_level(limit)}" for limit in limits)
    yield f"{named} {are} **guaranteed** in any run, up to {levels}."


# ---------------------------------------------------------------- JSON


def to_json(planned: Planned) -> str:
    """The plan as JSON text, byte for byte the same for the same file and engine."""
    plan = planned.plan
    content = {
        "title": plan.title,
        "subject": plan.subject,
        "engine": engine_id(),
        "seeds": [plan.seeds[0], plan.seeds[-1]],
        "runs_by_default": plan.runs_by_default,
        "now": _setting_json(planned.now),
        "better": None if planned.better is None else _better_json(planned.better),
        "trials": None if planned.searched is None else len(planned.searched.trials),
        "export": None if planned.lines is None else json.loads(planned.lines.to_json()),
        "changes": list(planned.changes),
        **_warm_ups_json(planned),
        "failed": [
            {**entry, "point": planned.names.get(entry["scenario"])}
            for entry in failing.as_json(planned.failures)
        ],
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _warm_ups_json(planned: Planned) -> dict[str, Any]:
    found = [{"point": one.name, **one.json()} for one in planned.warm_ups.values()]
    return {"warm_ups": found} if found else {}


def _setting_json(setting: JudgedSetting) -> dict[str, Any]:
    return {
        "scenario": json.loads(setting.scenario),
        "smallest_margin": estimate_json(setting.margin),
        "objectives": [_verdict_json(verdict) for verdict in setting.verdicts],
        "growth": [_limit_json(limit) for limit in setting.limits],
    }


def _better_json(better: Better) -> dict[str, Any]:
    return {
        "trial": better.winner.trial.number,
        "factors": dict(better.winner.trial.factors),
        "gain": estimate_json(better.gain),
        "surely_better": better.sure,
        **_setting_json(better.setting),
    }


def _verdict_json(verdict: ObjectiveVerdict) -> dict[str, Any]:
    share = verdict.share
    return {
        "objective": verdict.text,
        "state": STATES[verdict.holds],
        "metrics": list(verdict.bound.metrics),
        "bound": verdict.bound.objective.bound,
        "unit": verdict.bound.unit,
        "measured": estimate_json(verdict.found),
        "guaranteed": verdict.guaranteed,
        "is_guaranteed": verdict.is_guaranteed,
        "margin": estimate_json(verdict.margin),
        "runs_that_keep_it": None
        if share is None
        else {"kept": share.kept, "runs": share.runs, "ci95": [rounded(share.low), rounded(share.high)]},
        "runs_without_a_value": verdict.missing,
        "runs_needed": verdict.runs_needed,
        "p": None if verdict.p is None else rounded(verdict.p),
    }


def _limit_json(limit: Limit) -> dict[str, Any]:
    levels = limit.demand.levels
    return {
        "demand": limit.demand.name,
        "today": dict(limit.demand.at(1.0)),
        "holds_up_to": {"multiple": rounded(limit.holds), "values": dict(limit.demand.at(limit.holds))},
        "guaranteed_up_to": None
        if limit.guaranteed is None
        else {
            "multiple": rounded(levels[limit.guaranteed.level]),
            "values": dict(limit.demand.at(levels[limit.guaranteed.level])),
            "objectives": list(limit.guaranteed.objectives),
        },
        "breaks_at": None
        if limit.breaks is None
        else {"multiple": rounded(limit.breaks), "values": dict(limit.demand.at(limit.breaks))},
        "first_to_break": [verdict.text for verdict in limit.first],
        "cannot_be_told_today": [verdict.text for verdict in limit.untold],
        "most": rounded(levels[-1]),
        "looked_at": {
            f"{levels[level]:.6g}": {verdict.text: STATES[verdict.holds] for verdict in verdicts}
            for level, verdicts in sorted(limit.looked.items())
        },
    }
