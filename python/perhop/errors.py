"""Errors that a user can correct: a wrong file, a wrong option, a wrong scenario."""

from perhop._engine import ScenarioError

__all__ = ["BlockError", "PerhopError", "PerhopWarning", "ScenarioError"]


class PerhopError(Exception):
    """A request that cannot be met; `str()` is one sentence that says what to change.

    The command line prints it as `error: …` and exits with status 2.
    """


class PerhopWarning(UserWarning):
    """Something that can be done, but hardly as it was meant; `str()` says where, what and what to change.

    The command line prints it as `warning: …`.
    """


class BlockError(PerhopError):
    """A block in Python failed in a run; `str()` names the class, the method, the time and the packet.

    `__cause__` is the error itself, with its traceback.
    """
