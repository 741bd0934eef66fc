"""The imports of a class in Python: the sources that its results depend on, beside those of its own module.

Every statement `import` counts, wherever it is, also those of modules that are imported in turn, and what
the loaded module refers to. Left out are the standard library, installed packages (another package than the
module's own, in a directory for them) and perhop. Files that the code reads as data are not part of it.

Some imports cannot be known without running the code: of a name that is computed, or of code that is a text.
`Sources.unknown` names them; see `perhop.blocks.digests.digest_of` for what follows.
"""

from __future__ import annotations

import ast
import importlib.util
import site
import sys
import sysconfig
import types
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from importlib.machinery import ModuleSpec

SOURCE = "__perhop_source__"
"""The name under which a module received from another process holds its source."""
_HERE = Path(__file__).resolve().parent.parent
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_IMPORTERS = frozenset({"__import__", "import_module"})
_RUNNERS = frozenset(
    {
        "exec",
        "eval",
        "execfile",
        "run_module",
        "run_path",
        "spec_from_file_location",
        "spec_from_loader",
        "module_from_spec",
        "exec_module",
        "load_module",
        "SourceFileLoader",
        "ExtensionFileLoader",
        "SourcelessFileLoader",
    }
)
"""Functions that run code of which the source is not known."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources that results of some modules depend on.

    Attributes:
        found: By the name of the module, sorted by it.
        packages: Those of `found` that are packages.
        compiled: Those of `found` that are no source text, such as extension modules.
        unknown: Where something is imported that cannot be known, and what; a text each.
        stamps: How each module was loaded, None where it was not yet: as long as they are the same, so are
            the sources of the code that runs.
    """

    found: Mapping[str, bytes]
    packages: frozenset[str]
    compiled: frozenset[str]
    unknown: tuple[str, ...]
    stamps: Mapping[str, object]

    @property
    def is_current(self) -> bool:
        """Whether no module was loaded, or loaded again, since."""
        return all(_stamp(name) is stamp for name, stamp in self.stamps.items())


def sources(roots: Iterable[str]) -> Sources:
    """The sources of modules and of all that they import.

    Args:
        roots: Names of loaded modules.
    """
    roots = tuple(dict.fromkeys(roots))
    own = frozenset(name.partition(".")[0] for name in roots) - {"perhop"}
    found: dict[str, bytes] = {}
    packages, compiled, unknown = set[str](), set[str](), list[str]()
    stamps: dict[str, object] = {}
    left = list(roots)
    while left:
        name = left.pop()
        if name in stamps:
            continue
        stamps[name] = _stamp(name)
        file = _File.of(name)
        if file is None or not (name in roots or file.is_local(own)):
            continue
        content = file.content()
        if content is None:
            unknown.append(f"`{name}`, which has no file that can be read")
            continue
        found[name] = content
        if file.is_package:
            packages.add(name)
        names = list(_referred(name))
        if file.is_text:
            static = _Imports.of(content, file.package)
            names += static.names
            unknown += [f"{file.shown}:{line}: `{text}`" for line, text in static.unknown]
        else:
            compiled.add(name)
            unknown.append(f"{file.shown}, which is compiled")
        for one in names:
            parts = one.split(".")
            left += [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return Sources(
        dict(sorted(found.items())), frozenset(packages), frozenset(compiled), tuple(sorted(unknown)), stamps
    )


def _stamp(name: str) -> object:
    """An object that changes when a module is loaded or reloaded."""
    module = sys.modules.get(name)
    return None if module is None else getattr(module, "__spec__", None) or module


_READ: dict[str, tuple[object, bytes]] = {}
"""Sources of loaded modules as first read: later changes of their files do not affect the running code."""


@dataclass(frozen=True, slots=True)
class _File:
    """The place that a module comes from.

    Attributes:
        origin: Its file; None where it has none, such as one of a notebook.
        received: Its source, if it came from another process.
    """

    name: str
    origin: str | None
    is_package: bool
    received: bytes | None
    loader: Any

    @classmethod
    def of(cls, name: str) -> _File | None:
        """The file of a module; None where there is no such module, or it is built in or a mere directory."""
        module = sys.modules.get(name)
        spec = getattr(module, "__spec__", None) or (_spec(name) if module is None else None)
        if spec is None and module is None:
            return None
        received = getattr(module, SOURCE, getattr(getattr(spec, "loader", None), "data", None))
        origin = getattr(module, "__file__", None) or (spec.origin if spec is not None else None)
        if origin in ("built-in", "frozen"):
            return None
        is_package = hasattr(module, "__path__") or bool(spec and spec.submodule_search_locations is not None)
        if origin is None and received is None and is_package:
            return None
        return cls(name, origin, is_package, received, getattr(spec, "loader", None))

    @property
    def is_text(self) -> bool:
        """Whether its source can be read by people."""
        return self.received is not None or (self.origin is not None and self.origin.endswith(".py"))

    @property
    def package(self) -> str:
        """The package of relative imports; for the main program, the one it was started in."""
        if self.name == "__main__":
            return getattr(sys.modules[self.name], "__package__", None) or ""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @property
    def shown(self) -> str:
        """The module's name in messages."""
        return self.name if self.origin is None else Path(self.origin).name

    def is_local(self, own: frozenset[str]) -> bool:
        """Whether it is neither perhop's nor of the standard library, nor of another installed package."""
        if self.received is not None:
            return True
        if self.origin is None:
            return False
        path = Path(self.origin).resolve()
        if path.is_relative_to(_HERE):
            return False
        if _is_installed(path):
            return self.name.partition(".")[0] in own
        return not any(path.is_relative_to(one) for one in _standard())

    def content(self) -> bytes | None:
        """The module's bytes, of a loaded one those of the first request; None if they cannot be read."""
        if self.received is not None:
            return self.received
        stamp = _stamp(self.name)
        kept = _READ.get(self.name)
        if stamp is not None and kept is not None and kept[0] is stamp:
            return kept[1]
        if self.origin is None:
            return None
        try:
            found = Path(self.origin).read_bytes()
        except OSError:
            try:
                found = bytes(self.loader.get_data(self.origin))  # such as of a module in a ZIP file
            except (AttributeError, OSError):
                return None
        if stamp is not None:
            _READ[self.name] = stamp, found
        return found


def _spec(name: str) -> ModuleSpec | None:
    """Find a module that is not loaded, without loading it."""
    above, _, _ = name.rpartition(".")
    path = None
    if above:
        package = sys.modules.get(above)
        over = None if package is not None else _spec(above)
        path = getattr(package, "__path__", None) if over is None else over.submodule_search_locations
        if path is None:
            return None
    for finder in sys.meta_path:
        try:
            found = finder.find_spec(name, path)
        except (AttributeError, ImportError, ValueError):
            continue
        if found is not None:
            return found
    return None


def _standard() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple({Path(paths[key]).resolve() for key in ("stdlib", "platstdlib")})


def _is_installed(path: Path) -> bool:
    """Whether a file is in a directory of installed packages."""
    if not _INSTALLED.isdisjoint(path.parts):
        return True
    return any(path.is_relative_to(Path(one).resolve()) for one in (*site.getsitepackages(), _user_site()))


def _user_site() -> str:
    return site.getusersitepackages()


def _referred(name: str) -> Iterator[str]:
    """The modules that a loaded module has values of, however these came there."""
    for value in list(vars(sys.modules[name]).values()) if name in sys.modules else ():
        if isinstance(value, types.ModuleType):
            yield value.__name__
        else:
            module = getattr(value, "__module__", None)
            if isinstance(module, str) and isinstance(value, type | types.FunctionType):
                yield module


class _Imports(ast.NodeVisitor):
    """The imports of a source.

    Attributes:
        names: Modules, and what may be one: `from package import name`.
        unknown: The line and the text of what is imported otherwise.
    """

    def __init__(self, package: str) -> None:
        self.names: set[str] = set()
        self.unknown: list[tuple[int, str]] = []
        self._package = package
        self._called: dict[str, str] = {}

    @classmethod
    def of(cls, source: bytes, package: str) -> _Imports:
        """Find the imports of a source file; relative ones are resolved against its package."""
        found = cls(package)
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError) as error:
            found.unknown.append((getattr(error, "lineno", None) or 1, type(error).__name__))
            return found
        # Names first: a function may be called above the statement that imports it, in another function.
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                found._called |= {one.asname or one.name: one.name for one in node.names}
        found.visit(tree)
        return found

    def visit_Import(self, node: ast.Import) -> None:
        """`import a.b`."""
        self.names.update(one.name for one in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """`from a import b`: `a.b` may be a module."""
        base = self._absolute("." * node.level + (node.module or ""))
        if base is not None:
            self.names.add(base)
            self.names.update(f"{base}.{one.name}" for one in node.names if one.name != "*")

    def visit_Call(self, node: ast.Call) -> None:
        """`import_module("a")` and its like."""
        self.generic_visit(node)
        called = node.func
        if isinstance(called, ast.Name):
            name = self._called.get(called.id, called.id)
        else:
            name = called.attr if isinstance(called, ast.Attribute) else ""
            if name in ("eval", "exec"):
                return  # a method of this name, such as a data frame's
        if name in _IMPORTERS:
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                base = self._absolute(first.value)
                if base is not None:
                    self.names.add(base)
                    return
            self.unknown.append((node.lineno, ast.unparse(node)))
        elif name in _RUNNERS:
            self.unknown.append((node.lineno, ast.unparse(node)))

    def _absolute(self, name: str) -> str | None:
        """A name without leading dots; None beyond the uppermost package."""
        if not name.startswith("."):
            return name
        try:
            return importlib.util.resolve_name(name, self._package)
        except (ImportError, ValueError):
            return None
