"""Measures against arithmetic on published tables."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perhop.measures.fairness import (
    differentiation,
    differentiation_by_rtt,
    fairness,
    fairness_by_rtt,
    histogram_quantile,
    holds_up_to,
    jain_index,
    quantile,
    reservation_success,
    rmse,
    subscription,
    targets,
    utilization,
)

if TYPE_CHECKING:
    from collections.abc import Callable

profiles = st.lists(st.floats(0, 100), min_size=1, max_size=30)

# Kim, Park and Bahk, Table 1: profile rates with 4 flows each, then 20 best-effort flows.
KIM_PROFILES = [2.0, 1.0, 0.5, 0.2, 0.1, 0.0]
KIM_COUNTS = [4, 4, 4, 4, 4, 20]
KIM_ROWS = [
    ("Best RIO", [1.765, 1.009, 0.568, 0.333, 0.276, 0.253], 20.864, 0.153),
    ("200/600/0.01", [1.633, 0.912, 0.557, 0.322, 0.267, 0.253], 19.824, 0.194),
    ("100/300/0.01", [1.657, 0.962, 0.586, 0.346, 0.277, 0.229], 19.892, 0.174),
    ("30/90/0.01", [1.751, 1.013, 0.594, 0.342, 0.276, 0.198], 19.864, 0.135),
    ("10/30/0.01", [1.781, 1.023, 0.592, 0.345, 0.272, 0.186], 19.772, 0.123),
    ("5/15/0.01", [1.788, 1.028, 0.591, 0.339, 0.271, 0.179], 19.648, 0.118),
]

# Yeom and Reddy, Table 1: two flows of each rate; (capacity, rates, derived RMSE, published "MSE").
YEOM_PROFILES = [0.0, 0.1, 0.5, 1.0, 2.0]
YEOM_ROWS = [
    (12, [0.63, 0.66, 0.80, 1.10, 2.01], 0.292, 0.29),
    (12, [0.33, 0.35, 0.83, 1.49, 2.77], 0.191, 0.19),
    (12, [1.66, 0.24, 0.62, 1.12, 2.12], 0.616, 0.61),
    (12, [0.38, 0.52, 0.71, 1.06, 2.46], 0.229, 0.23),
    (12, [0.56, 0.65, 0.81, 1.20, 2.12], 0.223, 0.22),
    (8, [0.09, 0.35, 0.64, 1.04, 1.81], 0.146, 0.15),
    (8, [0.02, 0.17, 0.59, 1.05, 2.11], 0.033, 0.03),
    (8, [0.30, 0.16, 0.53, 1.04, 1.91], 0.128, 0.13),
    (8, [0.04, 0.07, 0.58, 0.89, 2.17], 0.108, 0.10),
    (8, [0.20, 0.21, 0.57, 0.99, 1.97], 0.084, 0.09),
    (6, [0.01, 0.09, 0.43, 0.78, 1.67], 0.024, 0.03),
    (6, [0.01, 0.08, 0.42, 0.82, 1.65], 0.011, 0.01),
    (6, [0.01, 0.09, 0.42, 0.82, 1.65], 0.012, 0.01),
    (6, [0.01, 0.04, 0.26, 0.66, 1.81], 0.123, 0.12),
    (6, [0.01, 0.09, 0.47, 0.88, 1.54], 0.066, 0.06),
]


def each(values: list[float], counts: list[int]) -> list[float]:
    return [value for value, count in zip(values, counts, strict=True) for _ in range(count)]


def test_kim_fair_share() -> None:
    flows = each(KIM_PROFILES, KIM_COUNTS)
    shares = dict(zip(flows, targets(flows, 20.0), strict=True))
    assert [shares[rate] for rate in KIM_PROFILES] == pytest.approx([2.12, 1.12, 0.62, 0.32, 0.22, 0.12])
    assert subscription(flows, 20.0) == pytest.approx(0.76)


@pytest.mark.parametrize(("row", "rates", "total", "error"), KIM_ROWS, ids=[row[0] for row in KIM_ROWS])
def test_kim_rows(row: str, rates: list[float], total: float, error: float) -> None:
    flows = each(rates, KIM_COUNTS)
    wanted = targets(each(KIM_PROFILES, KIM_COUNTS), 20.0)
    assert sum(flows) == pytest.approx(total, abs=5e-4)
    assert rmse(flows, wanted) == pytest.approx(error, abs=5e-4)
    by_class = targets(each(KIM_PROFILES, KIM_COUNTS), 20.0)
    class_targets = [by_class[sum(KIM_COUNTS[:i])] for i in range(6)]
    assert rmse(rates, class_targets, KIM_COUNTS) == pytest.approx(rmse(flows, wanted))
    assert (utilization(flows, 20.0) > 1) == (row == "Best RIO")
    assert reservation_success(flows, each(KIM_PROFILES, KIM_COUNTS)) == (
        0.6 if row in {"200/600/0.01", "100/300/0.01"} else 0.8
    )


def test_yeom_oversubscribed_targets_are_proportional() -> None:
    wanted = targets(each(YEOM_PROFILES, [2] * 5), 6.0)
    assert wanted[::2] == pytest.approx([0.0, 0.0833, 0.4167, 0.8333, 1.6667], abs=1e-4)


@pytest.mark.parametrize(("capacity", "rates", "error", "printed"), YEOM_ROWS)
def test_yeom_mse_is_a_root(capacity: float, rates: list[float], error: float, printed: float) -> None:
    # Targets as the paper prints them, to two decimals.
    wanted = [round(t, 2) for t in targets(each(YEOM_PROFILES, [2] * 5), capacity)[::2]]
    found = rmse(rates, wanted)
    assert found == pytest.approx(error, abs=1e-3)
    assert found == pytest.approx(printed, abs=0.0105)


def test_reservation_success_leaves_best_effort_out() -> None:
    assert reservation_success([0.0, 1.0, 0.9], [0.0, 1.0, 1.0]) == 0.5
    assert reservation_success([1.0], [0.0]) is None


# Yeom and Reddy, Table 2 by class (BE, 0.5, 1 Mbit/s), at 20, 40, 60, 80, 100 ms; and Table 3's figures.
YEOM_RTT = {
    ("RIO", 10): [
        [0.46, 0.29, 0.23, 0.27, 0.18],
        [0.71, 0.68, 0.61, 0.61, 0.50],
        [1.23, 1.09, 1.09, 0.90, 0.92],
    ],
    ("three-drop", 10): [
        [0.43, 0.28, 0.25, 0.19, 0.20],
        [0.69, 0.70, 0.62, 0.52, 0.53],
        [1.19, 1.12, 1.02, 1.01, 1.02],
    ],
    ("two-windows", 10): [
        [0.15, 0.01, 0.02, 0.03, 0.01],
        [1.04, 0.70, 0.53, 0.51, 0.46],
        [1.27, 1.03, 0.99, 0.93, 0.91],
    ],
    ("inverse-rate", 30): [
        [1.03, 0.46, 0.29, 0.23, 0.19],
        [2.87, 1.81, 1.08, 0.94, 0.87],
        [6.84, 4.58, 3.28, 2.12, 2.32],
    ],
    ("two-windows", 30): [
        [1.98, 1.42, 0.93, 0.73, 0.63],
        [3.22, 2.02, 1.63, 1.12, 1.10],
        [4.01, 2.66, 1.82, 1.56, 1.26],
    ],
}
YEOM_TABLE3 = {
    ("RIO", 10): (0.14, 0.8),
    ("three-drop", 10): (0.12, 1.0),
    ("two-windows", 10): (0.18, 0.6),
    ("inverse-rate", 30): (1.50, 1.0),
    ("two-windows", 30): (0.82, 1.0),
}


@pytest.mark.parametrize("row", YEOM_RTT, ids=str)
def test_yeom_table3_follows_from_table2(row: tuple[str, int]) -> None:
    error, success = YEOM_TABLE3[row]
    profiles = each([0.0, 0.5, 1.0], [5, 5, 5])
    values = [value for group in YEOM_RTT[row] for value in group]
    assert rmse(values, targets(profiles, row[1])) == pytest.approx(error, abs=0.0105)
    assert reservation_success(values, profiles) == success


def test_yeom_fairness_and_differentiation_in_both_readings() -> None:
    best_effort, half, one = YEOM_RTT["inverse-rate", 30]
    assert fairness(one) == pytest.approx(6.84 / 2.12)
    assert fairness_by_rtt(one) == pytest.approx(2.95, abs=0.005)  # as printed
    assert differentiation(one, half) == pytest.approx(2.12 / 2.87)
    assert differentiation_by_rtt(one, half) == pytest.approx(0.80, abs=0.01)  # as printed
    assert differentiation(half, best_effort) == pytest.approx(0.84, abs=0.005)  # the readings agree
    best_effort, half, one = YEOM_RTT["RIO", 10]
    assert fairness(best_effort) == fairness_by_rtt(best_effort) == pytest.approx(2.53, abs=0.03)
    assert differentiation(one, half) == pytest.approx(1.27, abs=0.005)
    assert differentiation_by_rtt(one, half) == pytest.approx(1.30, abs=0.005)  # as printed
    assert differentiation_by_rtt(half, best_effort) == pytest.approx(1.09, abs=0.005)  # as printed


def test_ratios_to_nothing_do_not_exist() -> None:
    assert fairness([1.0, 0.0]) is None
    assert fairness_by_rtt([1.0, 0.0]) is None
    assert differentiation([1.0], [0.0, 0.0]) is None
    assert differentiation_by_rtt([1.0], [0.0, 1.0]) is None


def test_jain() -> None:
    assert jain_index([1.0, 2.0, 4.0], [2.0, 4.0, 8.0]) == pytest.approx(1.0)
    assert jain_index([1.0, 0.0], [1.0, 1.0]) == pytest.approx(0.5)
    assert jain_index([0.0, 0.0], [1.0, 1.0]) is None


def test_holds_up_to_stops_at_the_first_gap() -> None:
    assert holds_up_to([0, 1, 2, 6], [3.0, 2.0, 1.9, 2.1], 2.0) == 1
    assert holds_up_to([0, 1], [1.9, 2.5], 2.0) is None
    assert holds_up_to([10, 20], [2.0, 2.0], 2.0) == 20


def test_histogram_quantile() -> None:
    assert histogram_quantile([0.0, 1.0, 2.0], [1, 1], 0.5) == 1.0
    assert histogram_quantile([0.0, 1.0, 2.0, 4.0], [0, 2, 2], 0.75) == 4.0
    assert histogram_quantile([0.0, 1.0, math.inf], [0, 3], 0.99) == 1.0
    assert histogram_quantile([0.0, 1.0, math.inf], [0, 3], 0.99, longest=7.0) == 7.0
    assert histogram_quantile([0.0, 1.0], [0], 0.5) is None
    assert histogram_quantile([0.0, 1.0, 2.0], [2, 2], 1.0, longest=1.5) == 1.5
    assert histogram_quantile([0.0, 1.0, 2.0], [2, 2], 0.75, longest=1.5) == 1.5
    assert histogram_quantile([0.0, 1.0, 2.0], [2, 2], 0.5, longest=[0.7, 1.5]) == 0.7


@given(
    st.lists(st.floats(0, 19.9), min_size=1, max_size=50),
    st.integers(0, 1000),
    st.booleans(),
    st.integers(1, 40),
)
# .56 * 25 exceeds 14 in floating point.
@example(values=[0.0] * 14 + [1.0] * 11, thousandths=560, known=True, repeats=1)
def test_one_definition_of_a_quantile(
    values: list[float], thousandths: int, known: bool, repeats: int
) -> None:
    """A histogram's quantile lies in the bin of that of the numbers; a constant is its own quantile."""
    q = thousandths / 1000
    edges = [float(edge) for edge in range(21)]
    counts = np.histogram(values, edges)[0].tolist()
    longest = [max((v for v in values if low <= v < low + 1), default=0.0) for low in edges[:-1]]
    exact = quantile(values, q)
    found = histogram_quantile(edges, counts, q, longest if known else max(values))
    assert found is not None
    assert exact <= found <= min(math.floor(exact) + 1, max(values))
    assert exact == sorted(values)[max(1, -(-thousandths * len(values) // 1000)) - 1]
    constant = values[0]
    in_bin = [len(values) * repeats if low <= constant < low + 1 else 0 for low in edges[:-1]]
    assert histogram_quantile(edges, in_bin, q, constant) == quantile([constant] * repeats, q) == constant


@pytest.mark.parametrize(
    "call",
    [
        lambda: targets([], 1.0),
        lambda: targets([1.0], 0.0),
        lambda: targets([-1.0], 1.0),
        lambda: rmse([], []),
        lambda: rmse([1.0], [1.0, 2.0]),
        lambda: jain_index([1.0], []),
        lambda: holds_up_to([1], [], 1.0),
    ],
)
def test_refuses_nonsense(call: object) -> None:
    assert callable(call)
    with pytest.raises(ValueError):  # noqa: PT011 - the message is each measure's own
        call()


@given(profiles, st.floats(0.1, 1000))
def test_targets_share_out_the_link(rates: list[float], capacity: float) -> None:
    assert sum(targets(rates, capacity)) == pytest.approx(capacity)


@given(profiles, st.floats(0.1, 1000))
def test_a_larger_profile_never_has_a_smaller_target(rates: list[float], capacity: float) -> None:
    ordered = targets(sorted(rates), capacity)
    assert all(a <= b + 1e-9 for a, b in itertools.pairwise(ordered))


@given(st.lists(st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)), min_size=1))
def test_jain_lies_between_one_nth_and_one(pairs: list[tuple[float, float]]) -> None:
    index = jain_index([x for x, _ in pairs], [t for _, t in pairs])
    assert index is not None
    assert 1 / len(pairs) - 1e-9 <= index <= 1 + 1e-9


@given(st.lists(st.integers(0, 100), min_size=1, max_size=20).filter(any), st.floats(0, 1), st.floats(0, 1))
def test_quantiles_rise(counts: list[int], p: float, q: float) -> None:
    edges = [float(i) for i in range(len(counts) + 1)]
    low, high = (histogram_quantile(edges, counts, x) for x in sorted((p, q)))
    assert low is not None
    assert high is not None
    assert edges[0] <= low <= high + 1e-12
    assert high <= edges[-1]


@pytest.mark.parametrize("measure", [subscription, utilization])
@pytest.mark.parametrize("capacity", [0.0, -1.0, float("nan")])
def test_a_share_of_no_capacity_is_refused(
    measure: Callable[[list[float], float], float], capacity: float
) -> None:
    with pytest.raises(ValueError, match="above 0"):
        measure([1.0], capacity)
