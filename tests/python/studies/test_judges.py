"""The vocabulary of judges: numbers by name, what must hold of each, and the sentence that shows them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from perhop.statistics.intervals import Estimate
from perhop.statistics.judging import (
    STATES,
    Check,
    Judgement,
    above,
    any_of,
    at_least,
    at_most,
    below,
    fact,
    near,
)
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.judges import (
    Judge,
    bounded,
    combined,
    compared,
    difference,
    differences,
    failing,
    grouped,
    less_means,
    level,
    levels,
    made,
    mean_differences,
    of_pairs,
    of_runs,
    of_statements,
    readings_by_rule,
    readings_together,
    show,
    stated,
    together,
    variants,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

A, B, C = {"queue": "a"}, {"queue": "b"}, {"queue": "c"}
PLACES: Mapping[str, dict[str, Any]] = {"first": A, "second": B, "third": C}


def evidence(*values: Sequence[float], metric: str = "rate") -> Evidence:
    """The values of runs 1, 2, … of a metric under queues a, b, c."""
    return Evidence(
        [
            (seed, Sample(key, metric, "", value))
            for key, runs in zip((A, B, C), values, strict=False)
            for seed, value in enumerate(runs, start=1)
        ],
        (),
    )


FOUND = evidence([5.0, 5.2, 5.1], [2.0, 2.2, 2.1], [3.0, 3.6, 3.3])


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("", "1.500 ± 0.250"),
        (".1", "1.5 ± 0.2"),
        ("+", "+1.500 ± 0.250"),
        ("+.2", "+1.50 ± 0.25"),
        (".2f", "1.50"),
        ("+.0%", "+150%"),
        ("~", "1.50 ± 0.25"),
    ],
)
def test_a_form_chooses_digits_sign_and_interval(form: str, text: str) -> None:
    assert show(Estimate(1.5, (1.25, 1.75), 3), form) == text


@pytest.mark.parametrize(
    ("mean", "text"), [(0.25, "0.250"), (1.0, "1.00"), (99.0, "99.00"), (100.0, "100.0"), (-100.0, "−100.0")]
)
def test_about_three_digits(mean: float, text: str) -> None:
    assert show(Estimate(mean, None, 1), "~") == text


def test_a_negative_value_alone_has_a_minus_sign_and_an_unknown_one_says_so() -> None:
    assert show(Estimate(-1.5, None, 1), ".1f") == "−1.5"
    assert show(Estimate(math.nan, None, 1), "~") == "not known"


def test_all_any_and_most_are_of_the_numbers() -> None:
    found = levels("rate", PLACES)
    one, two, three = (found.all(above, 1.0), found.any(above, 5.5), found.most(2, above, 3.0))
    assert one.said("{:.1}.")(FOUND).evidence == "first 5.1 ± 0.2, second 2.1 ± 0.2, third 3.3 ± 0.7."
    assert [one.said("")(FOUND).holds, two.said("")(FOUND).holds] == [True, False]
    assert three.said("")(FOUND).holds is None
    assert found.most(1, above, 3.0).said("")(FOUND).holds is True
    assert found.all(above, 2.1).said("")(FOUND).holds is None
    assert found.any(above, 2.1).said("")(FOUND).holds is True


def test_a_bound_is_one_for_all_or_one_for_each() -> None:
    found = levels("rate", PLACES)
    limits = {"first": 5.5, "second": 2.5, "third": 4.5}
    assert found.all(at_most, limits).said("")(FOUND).holds is True
    assert found.all(at_most, lambda name: limits[name] - 1).said("")(FOUND).holds is False
    assert found.all(near, limits, 3.0).said("")(FOUND).holds is True


def test_differences_are_paired_and_show_both_sides() -> None:
    pairs = {"a over b": (A, B), "c over b": (C, B)}
    judged = differences("rate", pairs).reads("{name}: {first:.1f} − {second:.1f} = {value}", "; ")
    by = judged.all(above).said("{:+.1} ({failing}; {held}).")(FOUND)
    assert by.evidence == (
        "a over b: 5.1 − 2.1 = +3.0 ± 0.0; c over b: 3.3 − 2.1 = +1.2 ± 0.5 (against: none; open: none; 2)."
    )
    assert by.holds is True
    assert difference("rate", A, B, factor=2.0).all(above, 0.5).said("{:.1f}")(FOUND) == Judgement(
        holds=True, evidence="0.9"
    )
    against = difference("rate", B, A).all(above).said("{}")(FOUND)
    assert (against.holds, against.evidence) == (False, "−3.000 ± 0.000")


def test_a_second_metric_is_that_of_the_second_place() -> None:
    both = Evidence(
        [(n, Sample(A, name, "", value)) for n in (1, 2) for name, value in (("x", 3.0 + n), ("y", 1.0 + n))],
        (),
    )
    found = differences("x", {"": (A, A)}, second_metric="y").reads("{first:.1f} {second:.1f} {value:.1f}")
    assert found.all(above, 1.5).said("{}")(both).evidence == "4.5 2.5 2.0"


def test_of_runs_combines_numbers_of_a_run() -> None:
    ratio = of_runs({"ratio": (lambda a, b: a / b, ("rate", A), ("rate", B))})
    assert ratio(FOUND)["ratio"].mean == pytest.approx((5 / 2 + 5.2 / 2.2 + 5.1 / 2.1) / 3)
    partial = Evidence(
        [(1, Sample(A, "rate", "", 1.0)), (2, Sample(A, "rate", "", 2.0)), (2, Sample(B, "rate", "", 5.0))],
        (),
    )
    assert combined(partial, lambda a, b: a + b, ("rate", A), ("rate", B)).mean == 7.0
    assert less_means(4.0, 6.0, 1.0, 2.0) == 3.5


def test_groups_are_listed_one_after_the_other() -> None:
    groups = {"low": levels("rate", {"b": B}), "high": levels("rate", {"a": A, "c": C})}
    found = grouped(groups)
    assert found.all(above, 1.0).said("{:.1f}.")(FOUND).evidence == "low: b 2.1; high: a 5.1, c 3.3."
    assert found.all(above, lambda name: {"low": 2.5, "high": 1.0}[name[0]]).said("")(FOUND).holds is False
    assert grouped(groups, "{name} {all:.0f}", " | ").all(above).said("{:.1f}")(FOUND).evidence == (
        "low b 2 | high a 5, c 3"
    )


def test_the_lowest_the_highest_and_one_by_name() -> None:
    found = levels("rate", PLACES).reads("{name}")
    shown = [found.lowest(), found.highest(), found.lowest(lambda one: -one.mean), found.only("third")]
    assert [one.all(above).said("{}")(FOUND).evidence for one in shown] == [
        "second",
        "first",
        "first",
        "third",
    ]


def test_of_many_numbers_only_the_ends_are_listed() -> None:
    places = {f"cell {n}": {"n": n} for n in range(9)}
    many = Evidence([(1, Sample(key, "rate", "", float(key["n"]))) for key in places.values()], ())
    found = levels("rate", places).few().all(above, -1.0)
    assert found.said("{:.0f}")(many).evidence == "9 cells, from cell 0 0 to cell 8 8"
    eight = levels("rate", dict(list(places.items())[:8])).few().all(above, -1.0)
    assert eight.said("{:.0f}")(many).evidence.startswith("cell 0 0, cell 1 1, ")


def test_numbers_in_other_units_and_unions() -> None:
    found = (levels("rate", {"a": A}) | levels("rate", {"b": B})).scaled(lambda rate: 10 * rate)
    assert found.all(above, 20.5).said("{:.0f}")(FOUND) == Judgement(
        holds=None, evidence="a 51, b 21", runs_needed=18
    )
    assert level("rate", A).mapped(lambda one: Estimate(-one.mean, None, 1))(FOUND)[""].mean == pytest.approx(
        -5.1
    )


def test_statements_join() -> None:
    low, high = level("rate", B).all(below, 3.0), level("rate", A).all(above, 4.0)
    wrong = level("rate", A).all(below, 4.0)
    both = (low & high).said(
        "{:.1f} and {other:.1f}, {runs}.", other=level("rate", A), runs=lambda e: str(e.runs)
    )
    assert both(FOUND) == Judgement(holds=True, evidence="2.1 and 5.1, 3.")
    assert (low & wrong).said("")(FOUND).holds is False
    named = {"low": low, "wrong": wrong}
    assert (
        of_statements(named).said("{failing:not}, {holding}")(FOUND).evidence == "not: wrong; open: none, low"
    )
    assert of_statements(named, any_of).said("")(FOUND).holds is True
    assert stated(lambda found: fact(holds=found.runs == 3)).said("{holding}")(FOUND) == Judgement(
        holds=True, evidence="none"
    )


def test_a_bounded_metric_leaves_out_what_no_run_measured() -> None:
    places = {**PLACES, "fourth": {"queue": "d"}}
    by = bounded("rate", places, at_least, 2.0, "Here: ")(FOUND)
    assert by.evidence == (
        "Here: first 5.10 ± 0.25, second 2.10 ± 0.25, third 3.30 ± 0.75; bound 2; against it: none; "
        "open: second."
    )
    assert (by.holds, by.runs_needed) == (None, 7)


def test_compared_names_pairs_and_the_factor() -> None:
    by = compared("rate", {"a and b": (A, B)}, above, factor=2.0)(FOUND)
    assert by.evidence == (
        "a and b: 5.10 ± 0.25 against 2.10 ± 0.25; compared with 2 times the second; against it: none; "
        "open: none."
    )
    assert by.holds is True
    assert "compared with" not in compared("rate", {"a and b": (A, B)}, below)(FOUND).evidence


def test_together_and_readings_together() -> None:
    true, false = Judgement(holds=True, evidence="Yes."), Judgement(holds=False, evidence="No.")
    assert together(lambda _: true, lambda _: true)(FOUND) == Judgement(holds=True, evidence="Yes. Yes.")
    assert together(lambda _: true, lambda _: false)(FOUND).holds is False
    assert (
        together(lambda _: Judgement(holds=None, evidence="", runs_needed=7), lambda _: true)(
            FOUND
        ).runs_needed
        == 7
    )
    by = readings_together({"strict": lambda _: true, "wide": lambda _: false})(FOUND)
    assert (by.holds, by.differ) == (None, True)
    assert by.evidence == f"“strict”: {STATES[True]}. Yes. “wide”: {STATES[False]}. No."


def test_what_fails_and_what_is_open_is_named() -> None:
    checks = {"a": Check(holds=False), "b": Check(None), "c": Check(holds=True), "d": Check(holds=False)}
    assert failing(checks) == "against: a, d; open: b"
    assert failing({}, "against it") == "against it: none; open: none"


def test_a_bound_is_made_of_numbers_of_the_same_evidence() -> None:
    found = levels("rate", PLACES)
    said = found.only("first").all(above, found.only("second").bound(lambda one: 2 * one.high)).said("{:.1}")
    assert said(FOUND).holds is True
    own = found.all(at_least, found.bound()).said("{failing}")
    assert own(FOUND).evidence == "against: none; open: first, second, third"


def test_variants_of_a_rule_differ_in_a_number() -> None:
    rules = variants(lambda most: level("rate", B).all(below, most).said("{}"), {"": 3.0, "strict": 1.5})
    assert {name: judged(FOUND).holds for name, judged in rules.items()} == {"": True, "strict": False}


def test_rules_of_readings_differ_in_a_value() -> None:
    def readings(most: float) -> dict[str, Judge]:
        return {name: level("rate", key).all(below, most).said("{}") for name, key in PLACES.items()}

    rules = readings_by_rule(readings, {"": 4.5, "lenient": 9.0})
    assert {name: judged(FOUND).holds for name, judged in rules.items()} == {
        "first": False,
        "second": True,
        "third": True,
        "lenient": True,
    }
    strict = readings_by_rule(readings, {"": 9.0, "strict": 4.5})["strict"](FOUND)
    assert (strict.holds, strict.differ) == (None, True)


def test_numbers_of_the_same_names_are_shown_beside_each_other() -> None:
    found = levels("rate", {"first": A, "second": B})
    other = levels("rate", {"first": C, "second": A})
    listed = found.reads("{name} {value:.1f} of {other:.2f} ({part:+.0f} %)", "; ", other=other, part=found)
    assert (
        listed.all(above).said("{}.")(FOUND).evidence
        == "first 5.1 of 3.30 (+5 %); second 2.1 of 5.10 (+2 %)."
    )
    sides = differences("rate", {"a over b": (A, B)}).reads(
        "{first:.1f} {second:.1f} {value:.1f} {c:.1f}",
        c=made({"a over b": lambda evidence: evidence.estimate("rate", C)}),
    )
    assert sides.all(above).said("{}")(FOUND).evidence == "5.1 2.1 3.0 3.3"


def test_numbers_are_put_in_order_and_set_against_a_whole() -> None:
    found = levels("rate", PLACES)
    assert list(found.ordered()(FOUND)) == ["second", "third", "first"]
    assert list(found.ordered().first(2)(FOUND)) == ["second", "third"]
    assert list(found.first()(FOUND)) == ["first"]
    parts = found.relative(levels("rate", dict.fromkeys(PLACES, A)))(FOUND)
    assert [one.mean for one in parts.values()] == pytest.approx([1.0, 2.1 / 5.1, 3.3 / 5.1])


def test_means_over_places_and_pairs_are_taken_run_by_run() -> None:
    assert mean_differences("rate", {"a": ([A, A], [B, C])})(FOUND)["a"].mean == pytest.approx(
        5.1 - (2.1 + 3.3) / 2
    )
    ratio = of_pairs(lambda a, b: a / b, "rate", {"a over b": (A, B)})(FOUND)["a over b"]
    assert ratio.mean == pytest.approx((5 / 2 + 5.2 / 2.2 + 5.1 / 2.1) / 3)


def test_pairs_without_a_measured_place_are_left_out() -> None:
    pairs = {"a over b": (A, B), "d over b": ({"queue": "d"}, B)}
    assert list(differences("rate", pairs, measured=True)(FOUND)) == ["a over b"]
