"""What a paper says, read from the `published.toml` beside its studies."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from perhop.study import Claim, Statement, statement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perhop.study import Evidence, Judgement


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper's `published.toml`: `method` and `assumptions` for all of it, and a table for each item.

    Attributes:
        package: The package that holds the file, such as `perhop.studies.hurley`.
    """

    package: str

    def item(self, name: str) -> Statement:
        """What the paper says about one item ("table1", …), with what holds for the whole paper in front."""
        text = files(self.package).joinpath("published.toml").read_text(encoding="utf-8")
        data: dict[str, Any] = tomllib.loads(text)
        own = data[name]
        method = " ".join(part for part in (data.get("method", ""), own.get("method", "")) if part)
        assumptions = [*data.get("assumptions", []), *own.get("assumptions", [])]
        return statement({**own, "method": method, "assumptions": assumptions})


def claims(
    texts: Mapping[str, tuple[str, str]], judges: Mapping[str, Callable[[Evidence], Judgement]]
) -> Sequence[Claim]:
    """Claim texts joined with the functions that judge them.

    Raises:
        ValueError: A text has no judge, or a judge no text.
    """
    if texts.keys() != judges.keys():
        raise ValueError(f"claims without text or judge: {sorted(texts.keys() ^ judges.keys())}")
    return [Claim(name, text, judges[name], tried) for name, (text, tried) in texts.items()]
