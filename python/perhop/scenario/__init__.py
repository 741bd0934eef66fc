"""Scenarios: the classes of the builder, such as `perhop.scenario.Link`, and the reading of files.

The builder's classes have the names and defaults of the scenario format (docs/scenario.md). They are loaded
when one of them is first asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as `typing` has it, which takes long to load

if TYPE_CHECKING:
    from perhop.scenario.builder import *  # noqa: F403 - the classes follow the engine's registered blocks

    __all__: list[str]
else:

    def __getattr__(name: str) -> object:
        """Load the builder when one of its classes is first asked for."""
        if name != "__all__" and not name[0].isupper():
            raise AttributeError(f"module 'perhop.scenario' has no attribute {name!r}")
        import importlib  # noqa: PLC0415 - nothing is loaded before

        builder = importlib.import_module("perhop.scenario.builder")
        if name != "__all__" and name not in builder.__all__:
            import difflib  # noqa: PLC0415 - for a message alone

            near = difflib.get_close_matches(name, builder.__all__, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"module 'perhop.scenario' has no attribute {name!r}{hint}")
        return getattr(builder, name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
