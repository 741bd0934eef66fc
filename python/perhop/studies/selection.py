"""Studies by their names: one, all of a paper, or all of a group of questions."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from perhop import studies
from perhop.errors import ArgumentError, PerhopError
from perhop.studies.study import Study


def chosen(names: Sequence[str], *, everything: bool = False) -> list[Study]:
    """Choose studies, in the order in which to run them.

    Args:
        names: See `named`; without names, the printed items of all papers.
        everything: All studies.

    Raises:
        PerhopError: There is no such study, or both are given.
    """
    if names and everything:
        raise ArgumentError("everything", "has no effect beside named studies; leave one of them out")
    if names:
        found = {one.id: one for name in names for one in named(name)}
        return studies.in_order(found.values())
    return studies.in_order(one for one in studies.STUDIES.values() if everything or not one.extra)


def named(name: str) -> Sequence[Study]:
    """Return the study of this name, the printed items of a paper, or all studies of a group.

    Raises:
        PerhopError: There is none.
    """
    for group in studies.GROUPS:
        if group.id == name:
            return [one for one in group.studies if group in studies.QUESTIONS or not one.extra]
    return [study(name)]


def study(name: str) -> Study:
    """Return the study of this name.

    Raises:
        PerhopError: There is none; the message names what was meant, as far as that can be seen.
    """
    if name in studies.STUDIES:
        return studies.STUDIES[name]
    raise PerhopError(f"no study `{name}`; {_hint(name)}")


def _hint(name: str) -> str:
    """Return a hint on a name that is no study's."""
    if name.endswith(".toml") or Path(name).is_file():
        return f"to simulate a scenario file, use `perhop run {name}`"
    kinds = {group.id: "group" if group in studies.QUESTIONS else "paper" for group in studies.GROUPS}
    listed = {group.id: ", ".join(one.id for one in group.studies) for group in studies.GROUPS}
    if name.lower() in kinds:
        return f"`{name.lower()}` is a {kinds[name.lower()]}; its studies are {listed[name.lower()]}"
    papers = [paper.id for paper in studies.PAPERS]
    near = difflib.get_close_matches(name.lower(), [*studies.STUDIES, *papers], n=1, cutoff=0.6)
    if near and near[0] in papers:
        return f"did you mean `{near[0]}`? The studies of that paper are {listed[near[0]]}"
    if near:
        return f"did you mean `{near[0]}`? (`perhop list studies`)"
    return f"there are {', '.join(studies.STUDIES)} (`perhop list studies` says what each shows)"
