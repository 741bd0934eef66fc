"""Errors that a user can correct: a wrong file, a wrong option, a wrong scenario."""

from perhop._engine import ScenarioError

__all__ = ["ArgumentError", "BlockError", "PerhopError", "PerhopWarning", "ScenarioError"]


class PerhopError(Exception):
    """A request that cannot be met; `str()` is one sentence that says what to change.

    The command line prints it as `error: …` and exits with status 2.
    """


_OPTIONS = {
    "capture_links": "--capture-link",
    "end": "--to",
    "everything": "--all",
    "folder": "--out",
    "margins": "--margin",
    "start": "--from",
}
"""Options whose names are not those of their arguments."""


class ArgumentError(PerhopError):
    """An argument that cannot be; `str()` names it as Python does, and the command line as its option.

    Attributes:
        name: The argument, such as `sim_runs`.
        says: What it must be, such as `must be at least 1`.
    """

    def __init__(self, name: str, says: str) -> None:
        super().__init__(f"{name}{says}" if says.startswith(":") else f"{name} {says}")
        self.name = name
        self.says = says

    @property
    def of_option(self) -> str:
        """The message with the option's name, such as `--sim-runs must be at least 1`."""
        option = _OPTIONS.get(self.name, f"--{self.name.replace('_', '-')}")
        return f"{option}{self.says}" if self.says.startswith(":") else f"{option} {self.says}"


class PerhopWarning(UserWarning):
    """Something that can be done, but hardly as it was meant; `str()` says where, what and what to change.

    The command line prints it as `warning: …`.
    """


class BlockError(PerhopError):
    """A block in Python failed in a run; `str()` names the class, the method, the time and the packet.

    `__cause__` is the error itself, with its traceback.
    """
