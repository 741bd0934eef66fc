"""Whatever bytes come as a file: they are refused in words, or taken for what they are."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.python.fuzzing.targets import TARGETS, Target, mutations, take_record

EXAMPLES = int(os.environ.get("PERHOP_FUZZ_EXAMPLES", "100"))
"""Of each target; `make fuzz` takes more."""


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_seed_is_accepted(target: Target) -> None:
    """A seed that is refused for a mistake in it leads nowhere behind what refuses it."""
    assert [seed for seed in target.seeds if not target.take(seed)] == []
    assert [seed for seed in target.refused if target.take(seed)] == []


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_no_bytes_end_in_anything_but_an_answer(target: Target) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def search(data: st.DataObject) -> None:
        target.take(data.draw(mutations([*target.seeds, *target.refused])))

    search()


@pytest.mark.parametrize(
    "content",
    [
        *(b"S", b"S{}", b"S[1]", b"S\xff", b'S{"metrics": 1}', b"S" + b"[" * 100_000),
        *(b"R", b"R123", b"R" + bytes(21), b"R" + bytes(20) + b"123"),
        *(b"O", b"Oabcd", b"O\xff\xff\xff\xff", b"O\x02\0\0\0{}", b"O\x02\0\0\0[]x"),
        *(b'S{"number": Infinity, "metrics": [], "scenario": "", "engine": ""}', b"X", b"O" + bytes(4)),
    ],
    ids=lambda content: repr(content[:20]),
)
def test_a_record_that_is_none_under_its_good_checksum_is_not_taken(content: bytes) -> None:
    take_record(content)


ROOT = Path(__file__).parents[3]


def test_the_lock_file_of_the_fuzz_targets_has_what_our_crates_need() -> None:
    """The fuzz targets are a workspace of their own, so no build of ours looks at their lock file."""
    lock = tomllib.loads((ROOT / "fuzz" / "Cargo.lock").read_text(encoding="utf-8"))
    locked = {
        one["name"]: {text.split()[0] for text in one["dependencies"]}
        for one in lock["package"]
        if "source" not in one
    }
    for name in locked.keys() - {"perhop-fuzz"}:
        manifest = tomllib.loads((ROOT / "crates" / name / "Cargo.toml").read_text(encoding="utf-8"))
        tables = [manifest, *manifest.get("target", {}).values()]
        needed = {
            entry.get("package", key) if isinstance(entry, dict) else key
            for table in tables
            for kind in ("dependencies", "build-dependencies")
            for key, entry in table.get(kind, {}).items()
            if not (isinstance(entry, dict) and entry.get("optional"))
        }
        assert needed <= locked[name], name
