"""Modules that are loaded when something of them is first used: `perhop --help` need not wait for them."""

from __future__ import annotations

import importlib
from typing import Any

from perhop.processes import interrupts


class Lazy:
    """A proxy of a module; type checkers are shown the module itself under TYPE_CHECKING."""

    def __init__(self, name: str) -> None:
        """A module by its full name."""
        self._name = name

    def __getattr__(self, attribute: str) -> Any:  # noqa: ANN401 - whatever the module has
        """An attribute of the module."""
        with interrupts.deferred():
            module = importlib.import_module(self._name)
        return getattr(module, attribute)
