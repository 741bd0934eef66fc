"""Finished runs are kept exactly, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from perhop.store import DirectoryStore, atomic_write, pack, run_key, unpack

arrays = st.one_of(
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=2, min_side=0)),
    hnp.arrays(np.int64, hnp.array_shapes(min_dims=1, max_dims=2, min_side=0)),
)
texts = st.text(max_size=8).filter(lambda name: name != "$array")
values = st.recursive(
    st.one_of(arrays, st.floats(allow_nan=False), st.integers(-(2**53), 2**53), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)


def same(a: Any, b: Any) -> bool:  # noqa: ANN401 - any packed value
    if isinstance(a, np.ndarray):
        return (
            isinstance(b, np.ndarray)
            and a.dtype == b.dtype
            and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        )
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[name], b[name]) for name in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


@given(st.dictionaries(texts, values, max_size=4))
def test_packing_is_exact(run: dict[str, Any]) -> None:
    assert same(run, unpack(pack(run)))
    assert pack(run) == pack(run)


def test_keeps_and_finds(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "runs")
    assert store.load("a") is None
    store.save("a", {"x": np.arange(3), "name": "n"})
    found = DirectoryStore(tmp_path / "runs").load("a")
    assert found is not None
    assert found["name"] == "n"
    assert found["x"].tolist() == [0, 1, 2]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["a.npz"]


@pytest.mark.parametrize(
    "damage", [lambda d: d[: len(d) // 2], lambda _d: b"", lambda d: d[:60] + b"\0\0" + d[62:]]
)
def test_a_broken_file_counts_as_missing(tmp_path: Path, damage: Any) -> None:  # noqa: ANN401
    store = DirectoryStore(tmp_path)
    store.save("a", {"x": np.arange(1000)})
    path = tmp_path / "a.npz"
    path.write_bytes(damage(path.read_bytes()))
    assert store.load("a") is None
    assert store.broken == [path]
    store.save("a", {"x": np.arange(1000)})
    assert store.load("a") is not None


def test_keys_tell_scenarios_and_seeds_apart() -> None:
    keys = {run_key(scenario, seed) for scenario in ("a", "b", "a1") for seed in (1, 11)}
    assert len(keys) == 6
    assert run_key("a", 1) == run_key("a", 1)


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    atomic_write(path, b"old")

    def full(_self: Path, _target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        atomic_write(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
