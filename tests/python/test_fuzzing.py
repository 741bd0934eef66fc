"""Whatever bytes come as a file: they are refused in words, or taken for what they are."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.python.fuzzing import TARGETS, Target, mutations

EXAMPLES = int(os.environ.get("PERHOP_FUZZ_EXAMPLES", "100"))
"""Of each target; `make fuzz` takes more."""


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_seed_is_taken(target: Target) -> None:
    for seed in target.seeds:
        target.take(seed)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_no_bytes_end_in_anything_but_an_answer(target: Target) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def search(data: st.DataObject) -> None:
        target.take(data.draw(mutations(target.seeds)))

    search()
