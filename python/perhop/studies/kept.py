"""Judged studies in files, so that stored runs are not read and judged again where nothing about them is new.

A study's key (`perhop.files.kept`) is of its name, of the versions of the libraries that compute, and of the
record of each of its runs, to the byte. So what is kept follows from the runs that the store holds: if one of
them is missing, or is another, it is not found.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from perhop.files.kept import KeptWork, key_of
from perhop.show.declared import Row
from perhop.statistics.judging import Judgement
from perhop.studies.evidence import Sample

MOST = 200
"""The studies that stay, those that were judged last; `perhop reproduce --all` has about 50."""
Verdict: TypeAlias = "tuple[str, Judgement, Mapping[str, Judgement], Mapping[str, Judgement]]"
"""A claim's id, its judgement, and those by its readings and by other rules, by their names."""
Judged: TypeAlias = "tuple[Sequence[tuple[int, Sample]], Sequence[Row], Sequence[Verdict]]"
"""The samples of a study with their seeds, its rows, and its verdicts."""


class KeptStudies:
    """The judged studies in a directory."""

    def __init__(self, directory: Path) -> None:
        """Studies are in this directory, which is made with the first of them."""
        self._kept = KeptWork(directory, MOST)

    def find(self, study: str, runs: Sequence[bytes]) -> Judged | None:
        """The judged study of this name; None if it is not kept.

        Args:
            study: Its id.
            runs: The digest of each run's record, in the order of cells and seeds.
        """
        key = _key(study, runs)
        if key is None or (found := self._kept.find(key)) is None:
            return None
        try:
            return _of_json(found)
        except (ValueError, KeyError, IndexError, TypeError):
            return None

    def keep(self, study: str, runs: Sequence[bytes], judged: Judged) -> None:
        """Keep a judged study; arguments as in `find`."""
        if (key := _key(study, runs)) is not None:
            self._kept.keep(key, _json(*judged))
            self._kept.tidy()


def _key(study: str, runs: Sequence[bytes]) -> str | None:
    return key_of(np.__version__, study, tuple(runs))


def _json(
    samples: Sequence[tuple[int, Sample]], rows: Sequence[Row], verdicts: Sequence[Verdict]
) -> dict[str, Any]:
    """A judged study as JSON; a sample's factors, metric and unit are there once for all of its runs."""
    places: dict[str, int] = {}
    names = (json.dumps([dict(one.factors), one.metric, one.unit]) for _, one in samples)
    of = [places.setdefault(name, len(places)) for name in names]
    return {
        "names": list(map(json.loads, places)),
        "of": of,
        "seeds": [seed for seed, _ in samples],
        "values": [sample.value for _, sample in samples],
        "rows": [[getattr(row, name) for name in Row.__slots__] for row in rows],
        "verdicts": [
            [
                claim,
                _judgement(whole),
                *({name: _judgement(one) for name, one in some.items()} for some in by),
            ]
            for claim, whole, *by in verdicts
        ],
    }


def _of_json(found: Mapping[str, Any]) -> Judged:
    """Raise KeyError, IndexError, ValueError or TypeError where it is no judged study."""
    names = (found["names"][place] for place in found["of"])
    columns = zip(found["seeds"], names, found["values"], strict=True)
    samples = [
        (seed, Sample(factors, metric, unit, value)) for seed, (factors, metric, unit), value in columns
    ]
    verdicts = [
        (claim, Judgement(*whole), *({name: Judgement(*one) for name, one in some.items()} for some in by))
        for claim, whole, *by in found["verdicts"]
    ]
    return samples, list(map(_row, found["rows"])), verdicts


def _judgement(one: Judgement) -> list[Any]:
    return [one.holds, one.evidence, one.runs_needed, one.differ]


def _row(cells: Iterable[Any]) -> Row:
    """A row of its fields, in which JSON has lists for tuples."""
    fields: list[Any] = [tuple(cell) if isinstance(cell, list) else cell for cell in cells]
    return Row(*fields)
