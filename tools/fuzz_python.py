"""Fuzzes one of Python's inputs, those of tests/python/fuzzing/targets.py.

    python -m tools.fuzz_python TARGET [libFuzzer's options]

Where Atheris is installed, it looks for inputs by what they reach; elsewhere hypothesis draws mutations of
the seeds. Ends with an error at the first input that something raises for.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.python.fuzzing.targets import Target

TARGETS = "tests.python.fuzzing.targets"


def main() -> None:
    """Fuzz the target that the command line names, for as long as -max_total_time=SECONDS says."""
    name, *options = sys.argv[1:]
    if importlib.util.find_spec("atheris") is None:
        _by_mutation(_target(name), _seconds(options))
        return
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["perhop", "tomllib", "json"]):
        target = _target(name)
    with tempfile.TemporaryDirectory(prefix="perhop-") as corpus:
        for number, seed in enumerate([*target.seeds, *target.refused]):
            (Path(corpus) / f"seed-{number}").write_bytes(seed)
        atheris.Setup([sys.argv[0], *options, corpus], target.take)
        atheris.Fuzz()


def _target(name: str) -> Target:
    targets = {target.name: target for target in importlib.import_module(TARGETS).TARGETS}
    if name not in targets:
        sys.exit(f"error: no target `{name}`; there are {', '.join(targets)}")
    return targets[name]  # type: ignore[no-any-return]


def _seconds(options: list[str]) -> float:
    prefix = "-max_total_time="
    return next((float(option[len(prefix) :]) for option in options if option.startswith(prefix)), 60.0)


def _by_mutation(target: Target, seconds: float) -> None:
    from hypothesis import HealthCheck, given, settings  # noqa: PLC0415 - Atheris needs none of it

    mutations = importlib.import_module(TARGETS).mutations([*target.seeds, *target.refused])
    tried, end = 0, time.monotonic() + seconds

    @settings(max_examples=500, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(mutations)
    def search(data: bytes) -> None:
        nonlocal tried
        if time.monotonic() < end:
            tried += 1
            target.take(data)

    while time.monotonic() < end:
        search()
    print(f"{target.name}: {tried} inputs drawn by hypothesis")


if __name__ == "__main__":
    main()
