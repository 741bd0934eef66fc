"""Sources of classes in Python, sent to processes on other machines and loaded there."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence
from typing import TypeAlias

from perhop.blocks.imported import SOURCE, sources


def shipped(modules: set[str]) -> Sent:
    """The sources of modules and of what they import, for processes on other machines.

    Those of installed packages must be installed there.

    Args:
        modules: Their names, as `simulating.modules` finds them.
    """
    found = sources(modules - {"__main__"})
    return {
        name: (source, name in found.packages)
        for name, source in found.found.items()
        if name not in found.compiled
    }


def receive(sent: Sent) -> None:
    """Find modules of such sources where they are not here.

    A class whose source is another one here is refused when it is created.
    """
    if any(_RECEIVED.sent.get(name, one) != one for name, one in sent.items()):
        for name in _RECEIVED.sent:
            sys.modules.pop(name, None)
    _RECEIVED.sent.update(sent)
    if _RECEIVED not in sys.meta_path:
        sys.meta_path.append(_RECEIVED)


Sent: TypeAlias = "dict[str, tuple[bytes, bool]]"
"""The sources of modules, by their names, and whether each is a package."""


class _Received(importlib.abc.MetaPathFinder):
    """Finds modules that another process has sent."""

    def __init__(self) -> None:
        self.sent: dict[str, tuple[bytes, bool]] = {}

    def find_spec(
        self, name: str, _path: Sequence[str] | None, _target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """See `importlib`."""
        if name not in self.sent:
            return None
        source, is_package = self.sent[name]
        return importlib.util.spec_from_loader(name, _Loader(source), is_package=is_package)


class _Loader(importlib.abc.Loader):
    """Loads a module of a source.

    Attributes:
        data: The source.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data

    def exec_module(self, module: types.ModuleType) -> None:
        """See `importlib`."""
        vars(module)[SOURCE] = self.data
        exec(compile(self.data, f"{module.__name__}.py", "exec"), vars(module))  # noqa: S102 - the driver's own


_RECEIVED = _Received()
