"""Studies of one file each, which belong to no paper and to no group of questions.

Each module in this folder is one, by the name `STUDY`; nothing else registers it. The repository's
`examples/my_study.py` is a module to copy here.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from perhop.studies.study import Study


def found(package: str, folders: Iterable[str]) -> Sequence[Study]:
    """The studies of the modules of a package, by the modules' names.

    Args:
        package: The package's name, such as `perhop.studies.others`.
        folders: Where its modules are.
    """
    return [import_module(f"{package}.{module.name}").STUDY for module in iter_modules(folders)]


STUDIES = found(__name__, __path__)

__all__ = ["STUDIES", "found"]
