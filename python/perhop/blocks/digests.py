"""Digests of the sources of classes in Python, by which stores know whether kept runs are still current."""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import secrets
import types

from perhop.blocks.imported import Sources, sources
from perhop.blocks.parameters import path_of
from perhop.blocks.roles import Block
from perhop.scenario import base as scenario_base

_OURS = ("builtins", "perhop.blocks.roles", scenario_base.__name__)
"""Modules whose classes no digest includes."""


def digest_of(cls: type[Block]) -> str:
    """A digest of the sources of a class, its bases and all that they import: kept results depend on it.

    See `perhop.blocks.imported` for what counts. Of a class without a file it is that of the class. Where
    something is imported that cannot be known, the digest ends in `+` and what no other process has: its runs
    are not reused from a store, and `not_reused` says why.
    """
    kept: tuple[str, Sources] | None = vars(cls).get("_digest")
    if kept is None or not kept[1].is_current:
        kept = cls._digest = _digested(cls)  # type: ignore[attr-defined]
    text, found = kept
    return f"{text}+{_process()}" if found.unknown else text


def _digested(cls: type[Block]) -> tuple[str, Sources]:
    bases = [base for base in cls.__mro__ if base.__module__ not in _OURS]
    found = sources(base.__module__ for base in bases)
    digest = hashlib.sha256()
    for base in bases:
        if base.__module__ not in found.found:
            digest.update(_code_of(base))
    for name, source in found.found.items():
        digest.update(f"{name} {len(source)}\n".encode())
        digest.update(source)
    text = digest.hexdigest()[:16]
    if found.unknown:
        what = "; ".join(found.unknown[:_MOST_UNKNOWN])
        more = len(found.unknown) - _MOST_UNKNOWN
        _NOT_REUSED[text] = (
            f"runs of `{path_of(cls)}` are not reused from stores, since what it imports cannot be known: "
            f"{what}{f'; and {more} more' if more > 0 else ''}"
        )
    return text, found


_tokens: dict[int, str] = {}
"""A random token of each process, by its number: a fork is another process."""
_MOST_UNKNOWN = 3
_NOT_REUSED: dict[str, str] = {}
"""Reasons why runs of a class are not reused, by its digest."""
_FRESH = re.compile(r'"source": ?"([0-9a-f]+)\+[0-9a-f]+"')


def _process() -> str:
    return _tokens.setdefault(os.getpid(), secrets.token_hex(8))


def not_reused(scenario: str) -> set[str]:
    """Why runs of a scenario are not reused from stores: a sentence for each class of unknown source.

    Args:
        scenario: Canonical JSON, of this process.
    """
    return {_NOT_REUSED[digest] for digest in _FRESH.findall(scenario) if digest in _NOT_REUSED}


def is_same(one: str, other: str) -> bool:
    """Whether two digests are of the same sources, as far as these are known."""
    return one.partition("+")[0] == other.partition("+")[0]


def _code_of(cls: type) -> bytes:
    """The source of a class without a file, or its code."""
    try:
        return inspect.getsource(cls).encode()
    except (OSError, TypeError):
        codes = [member.__code__ for member in vars(cls).values() if isinstance(member, types.FunctionType)]
        return repr([(code.co_name, code.co_code, code.co_names, code.co_consts) for code in codes]).encode()
