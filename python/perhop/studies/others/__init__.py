"""Studies of one file each, which belong to no paper and to no group of questions.

Each module in this folder is one, by the name `STUDY`; nothing else registers it. The repository's
`examples/my_study.py` is a module to copy here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from pkgutil import iter_modules

from perhop.errors import PerhopError
from perhop.studies.study import Study


def found(package: str, folders: Iterable[str]) -> Sequence[Study]:
    """Return the studies of the modules of a package, by the modules' names.

    Args:
        package: The package's name, such as `perhop.studies.others`.
        folders: Where its modules are.

    Raises:
        PerhopError: A module has no study, or two have one id.
    """
    studies: dict[str, Study] = {}
    for module in iter_modules(folders):
        name = f"{package}.{module.name}"
        study: Study | None = getattr(import_module(name), "STUDY", None)
        if study is None:
            raise PerhopError(
                f"{name}: has no `STUDY`; a module in this folder is a study (examples/my_study.py)"
            )
        if study.id in studies:
            raise PerhopError(
                f"{name}: another study has the id {study.id!r}; give this one an id of its own"
            )
        studies[study.id] = study
    return list(studies.values())


STUDIES = found(__name__, __path__)

__all__ = ["STUDIES", "found"]
