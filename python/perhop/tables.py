"""What the builder classes of `perhop.scenario` share: a table of a scenario, as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table of a scenario."""

    TAG: ClassVar[tuple[str, str] | None] = None
    """The key and name by which a scenario chooses among alternatives, such as `aqm = "rio"`."""

    def to_dict(self) -> dict[str, Any]:
        """The table as a scenario's plain data: what is left open is left out."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        table = {_key(name): _plain(value) for name, value in values.items() if value is not None}
        return dict([self.TAG], **table) if self.TAG else table

    def to_json(self) -> str:
        """The table as JSON text, which `perhop run` and the engine read."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)


def _key(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _plain(value: object) -> object:
    if isinstance(value, Table):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(inner) for inner in value]
    return value
