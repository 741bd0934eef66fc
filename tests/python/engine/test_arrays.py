"""The arrays of an outcome are ordinary arrays of numpy: of the documented types, and their reader's own."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from perhop import _engine
from perhop.scenario.reading import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray


def arrays_in(found: object, path: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    if isinstance(found, np.ndarray):
        yield path, found
    elif isinstance(found, dict | list):
        for key, inner in found.items() if isinstance(found, dict) else enumerate(found):
            yield from arrays_in(inner, f"{path}/{key}")


def test_types_and_shapes(small: Path) -> None:
    outcome = _engine.simulate(canonical(small), 1)
    assert {array.dtype for _, array in arrays_in(outcome)} == {np.dtype(np.int64), np.dtype(np.float64)}
    flows, series = outcome["flows"], outcome["series"]
    count, looks = len(flows["group"]), len(series["time_s"])
    assert series["cwnd_packets"].shape == (looks, count)
    assert {array.shape for _, array in arrays_in(flows)} == {(count,), (count, 3)}
    assert sum(flows["group"]) > 0


def test_an_array_outlives_its_outcome_and_can_be_written(small: Path) -> None:
    outcome = _engine.simulate(canonical(small), 1)
    arrays = dict(arrays_in(outcome))
    before = {path: array.copy() for path, array in arrays.items()}
    del outcome
    gc.collect()
    _engine.simulate(canonical(small), 2)
    for path, array in arrays.items():
        np.testing.assert_array_equal(array, before[path], err_msg=path)
        assert array.flags.carray, path  # in order, aligned and writable
        array[...] = 7
    for path, array in arrays.items():
        assert (array == 7).all(), path  # no two have values in common


def test_arrays_that_are_read() -> None:
    times = np.arange(10.0)
    strided = _engine.product_limit(times[::2], np.empty(0))
    for one, other in zip(strided, _engine.product_limit(times[::2].copy(), np.empty(0)), strict=True):
        np.testing.assert_array_equal(one, other)
    times.flags.writeable = False
    assert _engine.product_limit(times, times[:0])[2] == pytest.approx(4.5)
    with pytest.raises(BufferError, match="f64"):
        _engine.product_limit(np.arange(3), times)  # type: ignore[arg-type]
