"""The optional parts of perhop: what each is for, and which package brings it.

The extras of `pyproject.toml` have the same names and packages; a test compares them.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from perhop.errors import PerhopError


@dataclass(frozen=True, slots=True)
class Extra:
    """Packages that `pip install 'perhop[NAME]'` adds.

    Attributes:
        name: As pip has it.
        module: What is imported of it.
        title: What its makers call it.
        purpose: What needs it, as the beginning of a sentence.
    """

    name: str
    module: str
    title: str
    purpose: str

    @property
    def missing(self) -> PerhopError:
        """The one line that says what to install."""
        return PerhopError(f"{self.purpose} needs {self.title}: pip install 'perhop[{self.name}]'")

    @property
    def present(self) -> bool:
        """Whether it is installed; nothing is imported."""
        return importlib.util.find_spec(self.module) is not None

    def demand(self) -> None:
        """Refuse before any work begins.

        Raises:
            PerhopError: It is not installed.
        """
        if not self.present:
            raise self.missing


TUNE = Extra("tune", "optuna", "Optuna", "perhop tune")
RAY = Extra("ray", "ray", "Ray", "--backend ray")
GYM = Extra("gym", "gymnasium", "Gymnasium", "perhop.gym")
ALL = (TUNE, RAY, GYM)
