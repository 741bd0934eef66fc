"""Curves as ramps and points, and coloring, against values worked out by hand."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perhop.routers import curves, units
from perhop.routers.curves import Ramp
from perhop.routers.dialects.junos.reader import interpolated
from perhop.routers.model import How, Selector


def test_a_ramp_is_itself() -> None:
    assert curves.fit([(30, 0.0), (70, 0.2)], "linear", 100) == curves.Fit((30, 70, 0.2))
    assert curves.fit([(0, 0), (30, 0.0), (70, 1.0), (100, 1.0)], "linear", 100) == curves.Fit((30, 70, 1.0))


def test_a_jump_within_one_percent_of_the_limit_is_a_step() -> None:
    points = [(0, 0.0), (20, 0.0), (60, 0.1), (61, 1.0), (100, 1.0)]
    assert curves.fit(points, "linear", 100) == curves.Fit((20, 60, 0.1))


def test_two_segments_become_one_with_the_largest_difference() -> None:
    # min 0 and max 80, where p is 0.3; behind it all drop here, but only 0.3 and more there.
    fitted = curves.fit([(0, 0.0), (40, 0.08), (80, 0.3), (100, 1.0)], "linear", 100)
    assert list(fitted.ramp or ()) == [0, 80, 0.3]
    assert fitted.deviation == pytest.approx(0.7, abs=1e-6)
    assert fitted.at == pytest.approx(80, abs=1e-3)
    # Without what is behind max: at 40 the ramp has 0.15 in place of 0.08.
    ramp = Ramp(0, 80, 0.3, 0, How.CONFIGURED)
    assert ramp.probability(40) - curves.probability([(0, 0), (40, 0.08), (80, 0.3)], "linear", 40) == (
        pytest.approx(0.07)
    )


def test_steps_that_never_reach_one_end_at_the_limit() -> None:
    # 0.1 from 50 on, 0.4 from 80 on; the ramp from 50 to 100 has 0.24 at 80.
    fitted = curves.fit([(50, 0.1), (80, 0.4)], "step", 100)
    assert list(fitted.ramp or ()) == [50, 100, 0.4]
    assert fitted.deviation == pytest.approx(0.16, abs=1e-6)


def test_a_curve_that_drops_at_the_limit_only_is_none() -> None:
    assert curves.fit([(0, 0.0), (100, 1.0)], "step", 100).ramp is None
    assert curves.fit([(0, 0.0), (100, 0.0)], "linear", 100).ramp is None


@given(low=st.integers(0, 90), width=st.integers(1, 10), most=st.floats(0.01, 1.0), fill=st.floats(0, 99.0))
def test_fitting_a_ramp_changes_no_probability(low: int, width: int, most: float, fill: float) -> None:
    points = [(float(low), 0.0), (float(low + width), most)]
    fitted = curves.fit(points, "linear", 100.0)
    assert fitted.ramp is not None
    ramp = Ramp(*fitted.ramp, 0, How.CONFIGURED)
    if fill != low + width:
        assert ramp.probability(fill) == pytest.approx(curves.probability(points, "linear", fill), abs=1e-9)


def of(low: float, high: float, most: float, name: str) -> Ramp:
    value = units.codepoint(name)
    assert value is not None
    return Ramp(low, high, most, 1, How.CONFIGURED, (Selector(name, frozenset({value})),))


def test_drop_precedences_of_one_class_are_the_colors() -> None:
    ramps = [of(10, 40, 0.2, "af23"), of(30, 60, 0.05, "af21")]
    found = curves.colored(ramps) or {}
    assert {color: shape.low for color, shape in found.items()} == {"green": 30, "red": 10}
    both = curves.colored(curves.joined([ramps[0], of(10, 40, 0.2, "af22")])) or {}
    assert list(both) == ["yellow", "red"]


def test_codepoints_of_other_classes_have_no_colors() -> None:
    assert curves.colored([of(10, 40, 0.2, "ef"), of(30, 60, 0.05, "cs1")]) is None
    assert curves.colored([of(10, 40, 0.2, "af11"), of(30, 60, 0.05, "af21")]) is None


def test_equal_curves_are_joined() -> None:
    ramps = [of(30, 60, 0.1, "af11"), of(10, 40, 0.5, "af12"), of(30, 60, 0.1, "cs1")]
    assert [(shape.low, len(shape.selectors)) for shape in curves.joined(ramps)] == [(30, 2), (10, 1)]


def test_curves_that_are_no_ramps_keep_their_points() -> None:
    def made(points: list[tuple[float, float]], kind: Literal["linear", "step"]) -> object:
        shape, fell = curves.shaped(points, kind, 100, 1, How.CONFIGURED)
        return None if shape is None else shape.numbers, fell

    assert made([(0, 0), (20, 0), (60, 0.1), (61, 1), (100, 1)], "linear") == ((20, 60, 0.1), False)
    assert made([(0, 0), (20, 0), (60, 0.1), (100, 1)], "linear") == (
        ("linear", (20, 0.0), (60, 0.1), (100, 1)), False,
    )  # fmt: skip
    assert made([(50, 0.0), (60, 0.1), (80, 0.4)], "step") == (("step", (60, 0.1), (80, 0.4)), False)
    assert made([(50, 0.4), (80, 0.1)], "step") == (("step", (50, 0.4), (80, 0.4)), True)
    assert made([(0, 0), (100, 1)], "step") == (None, False)


def table(profile: list[tuple[float, float]]) -> list[int]:
    """The drop probability in percent of each fill from 0 to 100, as Junos makes it of `interpolate`.

    Straight lines through the points, (0, 0) and (100, 100), in whole percents, truncated.
    """
    points = interpolated(profile)
    result = []
    for fill in range(101):
        at = max(i for i, (x, _) in enumerate(points) if x <= fill)
        if at == len(points) - 1:
            result.append(int(points[-1][1]))
            continue
        (x0, y0), (x1, y1) = points[at], points[at + 1]
        result.append(int(y0 + (y1 - y0) * (fill - x0) / (x1 - x0) + 1e-9))
    return result


def test_junos_samples_its_curves_in_whole_percents() -> None:
    # A published listing of a device, and the curve of a minimum.
    sampled = table([(40, 8), (80, 30)])
    assert [sampled[fill] for fill in (20, 40, 50, 70, 95)] == [4, 8, 13, 24, 82]
    sampled = table([(30, 0), (70, 20), (71, 100)])
    assert [sampled[fill] for fill in (30, 50, 70, 71)] == [0, 10, 20, 100]
