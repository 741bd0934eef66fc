"""The body of a block in Python: parameters that stay, and state of each object's own."""

from __future__ import annotations

import inspect
import types
from dataclasses import field, fields
from typing import Any

_OURS = ("builtins", "typing", "perhop.scenario.base")
"""Modules whose classes need no check."""


class _Fixed:
    """A parameter of a block, which cannot change once the block is made. Reading it costs nothing more.

    Without `__get__`, an object's own value is found directly.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __set__(self, block: object, value: object) -> None:
        """Take the value while the object is made.

        Raises:
            AttributeError: It is made.
        """
        if "_table" in vars(block):
            raise AttributeError(
                f"`{self._name}` is a parameter, which cannot change; keep state under another name"
            )
        vars(block)[self._name] = value


def refuse_shared(cls: type, root: type) -> None:
    """Refuse what makes results depend on which objects of a class were there before.

    Args:
        cls: A class that is being defined.
        root: What all blocks are subclasses of; its subclasses were checked when they were defined.

    Raises:
        TypeError: Its body, or that of a class it mixes in, has `__init__`, or a list, dict or set without
            annotation.
    """
    for one in cls.__mro__:
        if (issubclass(one, root) and one is not cls) or one.__module__ in _OURS:
            continue
        if "__init__" in vars(one):
            raise TypeError(
                f"{one.__name__} has a method __init__; annotated attributes are its parameters, and "
                "__post_init__ creates its state"
            )
        annotated = inspect.get_annotations(one)
        for name, value in vars(one).items():
            if name.startswith("__") or name in annotated or isinstance(value, types.MappingProxyType):
                continue
            if type(value).__hash__ is None:
                raise TypeError(
                    f"`{name}` of {one.__name__} is a {type(value).__name__} that all its objects would "
                    "share; create it in __post_init__, or write a ClassVar if nothing changes it"
                )


def keep_defaults(cls: type) -> None:
    """Keep the inherited default of a parameter that a class annotates anew without a value."""
    inherited = {one.name: one for one in fields(cls)} if hasattr(cls, "__dataclass_fields__") else {}
    for name in inspect.get_annotations(cls):
        if name in inherited and name not in vars(cls):
            setattr(cls, name, field(default=inherited[name].default))


def fix_parameters(cls: Any) -> None:  # noqa: ANN401 - a dataclass
    """Make the parameters of a class read-only once an object of it is made."""
    for one in fields(cls):
        setattr(cls, one.name, _Fixed(one.name))
