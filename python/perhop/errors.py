"""Errors that a user can mend: a wrong file, a wrong option, a wrong scenario."""

from perhop._engine import ScenarioError

__all__ = ["PerhopError", "ScenarioError"]


class PerhopError(Exception):
    """A request that cannot be met; `str()` is one sentence that says what to change.

    The command line prints it as `error: …` and exits with status 2.
    """
