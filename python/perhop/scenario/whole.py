"""The methods of `perhop.scenario.Scenario`: reading a file, and changing the value at a path."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

from perhop.errors import PerhopError
from perhop.files import inputs
from perhop.scenario.base import Table, attribute, plain


class Whole(Table):
    """A whole scenario, as opposed to one of its tables."""

    @classmethod
    def read(cls, source: Path | str) -> Self:
        """Read a scenario from a TOML file, or from TOML text.

        What the file leaves open stays open. If it names other files, such as traces, their contents become
        part of the scenario, and then every default is filled in, too.

        Args:
            source: The path of a file, or text.

        Raises:
            ScenarioError: It does not describe a network; the message names the file, the line and the key.
            PerhopError: The file cannot be read.
        """
        from perhop.scenario import reading  # noqa: PLC0415 - it reads what is built here

        canonical = reading.canonical(source)
        is_file = isinstance(source, Path) or reading.names_a_file(source)
        text = inputs.read_text(Path(source)) if is_file else str(source)
        table = inputs.toml(text, str(source) if is_file else "scenario")
        # A file that the scenario names is found from its own folder, which a table does not know.
        if is_file and reading.names_other_files(table, canonical):
            table = json.loads(canonical)
        return cls._of(table)

    def with_(self, path: str, value: object) -> Self:
        """Return this scenario with another value at a path; this one stays as it is.

        So `scenario.with_("links.uplink.queue", Codel())` is the scenario with another queue.

        Args:
            path: Keys from the top, joined by dots, such as `links.uplink.queue.limit` or
                `flows.gold.profile.rate`; an entry of a list goes by its `name`. All but the last must exist;
                whether the last one is a key, and takes this value, is checked when the scenario is read.
            value: What to put there: a quantity as text, a number, a table of the builder, or plain data;
                None leaves the key out.

        Raises:
            PerhopError: There is no such table; the message says what there is.
        """
        from perhop.scenario.paths import put  # noqa: PLC0415 - it needs the engine

        if not (isinstance(path, str) and path):  # type: ignore[redundant-expr] # a notebook checks no types
            raise PerhopError(f'with_: a path is text such as "links.uplink.queue", not {path!r}')
        table = deepcopy(self.to_dict())
        put(table, path, plain(value, path), f"with_({path!r})")
        return self._of(table)

    @classmethod
    def _of(cls, table: Mapping[str, Any]) -> Self:
        known = {field.name for field in fields(cls)}
        return cls(**{attribute(key): value for key, value in table.items() if attribute(key) in known})
