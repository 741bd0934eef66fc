"""Blocks in Python: what to subclass, and how a scenario's tables find their classes.

>>> class Shallow(Aqm):
...     \"\"\"Drops a packet that finds too many waiting.\"\"\"
...
...     limit: Depth = Depth("100p")
...
...     def on_arrival(self, packet, queue, now, random):
...         return Verdict.OVERFLOW if queue.is_full(self.limit) else Verdict.PASS
>>> Shallow(limit="20p").to_dict()["limit"]
'20p'

A table of a scenario names a class as `module:Class`, or by its own name if it is registered: by an entry
point of the group `perhop.blocks`, or by `--plugin module` on the command line.
"""

from __future__ import annotations

import dis
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import re
import signal
import sys
import traceback
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from perhop import _engine
from perhop._engine import Action, Depth, Verdict
from perhop.blocks.digests import digest_of, is_same
from perhop.blocks.parameters import (
    Bitrate,
    Bytes,
    Duration,
    ParameterError,
    Probability,
    hints_of,
    key_of,
    path_of,
    read,
    type_name,
    unknown,
    value_of,
)
from perhop.blocks.roles import BASES, Application, Aqm, Block, Color, CongestionControl, Meter
from perhop.errors import BlockError, PerhopError
from perhop.processes import forks, interrupts

__all__ = [
    "BASES",
    "Action",
    "Application",
    "Aqm",
    "Bitrate",
    "Block",
    "Bytes",
    "Color",
    "CongestionControl",
    "Depth",
    "Duration",
    "Meter",
    "ParameterError",
    "Probability",
    "Verdict",
    "path_of",
    "register",
]

GROUP = "perhop.blocks"
"""The entry points by which packages register AQMs: a name, and `module:Class`."""
GROUPS = {
    "aqm": GROUP,
    "meter": "perhop.meters",
    "congestion-control": "perhop.congestion_controls",
    "application": "perhop.applications",
}
"""The groups of all roles: the role is known before the class is loaded."""
_CLASS = re.compile(r"^[\w.]+:\w+$")
_TODAY = 2008
_HERE = Path(__file__).parent.parent


def complete(role: str, name: str, table: str, folder: str | Path | None = None) -> str | None:
    """Check a table that names a class, and fill in its defaults; the engine calls this as it reads.

    Args:
        role: The role of the block, such as `aqm`.
        name: What the table names: `python`, `module:Class`, or the own name of a registered class.
        table: The other keys, as JSON.
        folder: Where modules may be, too: the scenario's folder.

    Returns:
        The keys as JSON: `class`, the digest of its `source`, the parameters. None for an unknown name.

    Raises:
        ParameterError: The class cannot be loaded, or a parameter is wrong.
    """
    given: dict[str, Any] = json.loads(table)
    named = _named(role, name, given)
    if named is None:
        return None
    path, key = named
    cls = load(path, role, key, folder)
    source = given.pop("source", None)
    digest = digest_of(cls)
    if source is not None and not is_same(source, digest):
        raise ParameterError(
            "source",
            f"`{path}` has changed since this was written ({source}, now {digest}); leave this key out to "
            "use it as it is",
        )
    said = cls.says()
    for key_said in cls.SAYS:
        if key_said in given and given.pop(key_said) != said.get(key_said):
            raise ParameterError(key_said, f"`{path}` says this itself; leave this key out")
    attributes = {key_of(field.name): field.name for field in fields(cls)}  # type: ignore[arg-type]
    for wrong in given:
        if wrong not in attributes:
            raise unknown(path, wrong, attributes)
    _, found = read(cls, {attributes[key]: value for key, value in given.items()})
    return json.dumps({"class": path, **said, "source": digest, **found})


def _named(role: str, name: str, given: dict[str, Any]) -> tuple[str, str] | None:
    """The path of the class that a table names, and the key that does so; None for an unknown name.

    Raises:
        ParameterError: It names none, or two.
    """
    if name == "python":
        path = given.pop("class", None)
        if not isinstance(path, str):
            raise ParameterError("class", f'names a class, such as class = "{_example(role)}"')
        return path, "class"
    if ":" in name:
        key = BASES[role].TAG
        if "class" in given:
            raise ParameterError("class", f"`{key}` names the class already; leave this key out")
        return name, key
    found = registered(role).get(name)
    return None if found is None else (found, role)


def _example(role: str) -> str:
    """The path that a class of this role could have."""
    return f"my_{role.replace('-', '_')}:My{BASES[role].__name__}"


def create(role: str, path: str, parameters: str, place: object) -> Block:
    """An object at the start of a run; the engine calls this.

    Args:
        role: The role of the block, such as `aqm`.
        path: The class.
        parameters: What `complete` returned, without `class` and what the class says itself.
        place: What `placed` of the role takes.

    Raises:
        PerhopError: The class cannot be loaded, or has changed since the scenario was read.
    """
    given: dict[str, Any] = json.loads(parameters)
    cls = load(path, role, "class")
    source = given.pop("source", None)
    if source is not None and not is_same(source, digest_of(cls)):
        raise PerhopError(f"{path} has changed since the scenario was read")
    made: Block = cls(**{key.replace("-", "_"): value for key, value in given.items()})
    made.placed(place)
    if _WATCHED is not None:
        _WATCHED.append(made)
    return made


_WATCHED: list[Block] | None = None
"""The objects that `create` has made, while somebody watches."""


@contextmanager
def watching() -> Iterator[list[Block]]:
    """The objects that the engine has made meanwhile."""
    global _WATCHED  # noqa: PLW0603 - the engine calls `create`, and knows of no watcher
    made: list[Block] = []
    _WATCHED = made
    try:
        yield made
    finally:
        _WATCHED = None


def rewritten(block: Block) -> str | None:
    """A parameter that the class has written to, past what forbids that: in `__post_init__`, or by `vars`."""
    values, _ = read(
        type(block), {key.replace("-", "_"): value for key, value in vars(block)["_table"].items()}
    )
    for name, value in values.items():
        now = vars(block).get(name)
        if repr(now) != repr(value):
            return f"`{name}` is {now!r}, and was given as {value!r}; keep state under another name"
    return None


def change_parameters(block: Block, parameters: str, place: object = None) -> None:
    """Give an object other parameters during a run; its state stays. The engine calls this.

    Args:
        block: The object.
        parameters: As of `create`.
        place: Likewise; None: it stays.
    """
    given: dict[str, Any] = json.loads(parameters)
    given.pop("source", None)
    values, table = read(type(block), {key.replace("-", "_"): value for key, value in given.items()})
    vars(block).update(values, _table=table)
    if place is not None:
        block.placed(place)


def raised_itself(cause: BaseException) -> bool:
    """Whether a class raised this KeyboardInterrupt by a statement of its own; else it is Ctrl-C's."""
    trace = cause.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    handler = signal.getsignal(signal.SIGINT)
    if Path(code.co_filename).is_relative_to(_HERE) or code is getattr(handler, "__code__", None):
        return False
    return dis.opname[code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"


def failed(
    cause: BaseException, *, class_: str, method: str, place: str, at_ns: int | None, packet: str | None
) -> BlockError:
    """The exception for an error in a class: one line; `__cause__` has the traceback."""
    said = f"{class_}: {method} at {place}"
    if at_ns is not None:
        said += f" at {at_ns / 1e9:.9f} s"
    if packet is not None:
        said += f" for {packet}"
    what = " ".join(str(cause).split())
    if (where := _last_place(cause)) is not None:
        kind = type(cause).__name__
        what = f"{kind}: {what} ({where})" if what else f"{kind} ({where})"
    error = BlockError(f"{said}: {what}")
    error.__cause__ = cause
    return error


def _last_place(cause: BaseException) -> str | None:
    """The last line of the user's own code that an error went through; one of perhop's says little."""
    frames = traceback.extract_tb(cause.__traceback__)
    theirs = [frame for frame in frames if not Path(frame.filename).is_relative_to(_HERE)]
    last = next(reversed(theirs or frames), None)
    return None if last is None else f"{Path(last.filename).name}:{last.lineno}"


def load(path: str, role: str, key: str = "", folder: str | Path | None = None) -> type[Block]:
    """The class of this path.

    Raises:
        ParameterError: There is none, or it is of another role.
    """
    interrupts.watch()
    if not _CLASS.match(path):
        raise ParameterError(key, f'`{path}`: a class is written as module:Class, such as "{_example(role)}"')
    name, _, member = path.partition(":")
    module = _imported(name, key, folder)
    cls = getattr(module, member, None)
    base = BASES[role]
    if cls is None:
        known = [other for other, value in vars(module).items() if _is_block(value, module)]
        hint = f"; it has {', '.join(known)}" if known else f"; it has no subclass of perhop.{base.__name__}"
        raise ParameterError(key, f"`{path}`: module `{name}` has no class `{member}`{hint}")
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise ParameterError(key, f"`{path}` is no subclass of perhop.{base.__name__}")
    if getattr(base, base.DECIDES) is getattr(cls, base.DECIDES):
        signature = inspect.signature(getattr(base, base.DECIDES))
        raise ParameterError(key, f"`{path}` has no method {base.DECIDES}({', '.join(signature.parameters)})")
    return cls


def _is_block(value: object, module: types.ModuleType) -> bool:
    return isinstance(value, type) and issubclass(value, Block) and value.__module__ == module.__name__


def _imported(name: str, key: str, folder: str | Path | None = None) -> types.ModuleType:
    """A module, also from the working directory and the scenario's folder.

    Raises:
        ParameterError: It cannot be imported.
    """
    if name in sys.modules:
        return sys.modules[name]
    if name.endswith(".py"):
        raise ParameterError(key, f"`{name}` is a file; write the name of its module, `{name[:-3]}`")
    for place in (None, Path.cwd(), folder):
        if place is not None:
            there = str(Path(place).resolve())
            if there in sys.path or not any(Path(there).glob(f"{name.partition('.')[0]}*")):
                continue
            sys.path.append(there)
        try:
            with forks.loading():
                return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise ParameterError(key, f"module `{name}` cannot be imported: {error}") from error
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            if isinstance(error, KeyboardInterrupt) and not raised_itself(error):
                raise
            what = " ".join(str(error).split())
            shown = type(error).__name__ + (f": {what}" if what else "")
            raise ParameterError(key, f"module `{name}` cannot be imported: {shown}") from error
    raise ParameterError(
        key,
        f"there is no module `{name}`: it must be installed, in the working directory, or beside the "
        "scenario",
    )


_REGISTERED: dict[tuple[str, str], str] = {}
"""The paths of registered classes, by role and name."""


def register(module: str) -> None:
    """Register all blocks of a module under their own names, as `--plugin` does.

    Raises:
        PerhopError: It cannot be imported, has no block, or a name is taken.
    """
    if module.endswith(".py"):
        raise PerhopError(
            f"--plugin {module}: write the name of the module, `{Path(module).stem}`, not its file"
        )
    try:
        loaded = _imported(module, "")
    except ParameterError as error:
        raise PerhopError(f"--plugin {module}: {error.text}") from error.__cause__
    found = [value for value in vars(loaded).values() if _is_block(value, loaded)]
    if not found:
        bases = " or ".join(f"perhop.{base.__name__}" for base in BASES.values())
        raise PerhopError(f"--plugin {module}: the module has no subclass of {bases}")
    for cls in found:
        _add(cls.ROLE, cls.NAME, path_of(cls), f"--plugin {module}")


def _add(role: str, name: str, path: str, origin: str) -> None:
    built_in = {(block["role"], block["name"]) for block in json.loads(_engine.blocks())}
    if (role, name) in built_in:
        raise PerhopError(f"{origin}: `{name}` is a built-in {role}; give {path} another NAME")
    if _REGISTERED.setdefault((role, name), path) != path:
        raise PerhopError(
            f"{origin}: {_REGISTERED[role, name]} is called `{name}`, too; give one another NAME"
        )


def registered(role: str) -> dict[str, str]:
    """The registered classes of a role: their paths by name."""
    _register_packages()
    return {name: path for (of, name), path in _REGISTERED.items() if of == role}


def _register_packages() -> None:
    """Register what installed packages offer, once."""
    if ("", "") in _REGISTERED:
        return
    _REGISTERED["", ""] = ""
    from importlib.metadata import entry_points  # noqa: PLC0415 - takes long to load

    for role, group in GROUPS.items():
        for point in entry_points(group=group):
            _add(role, point.name, point.value, f"package {point.dist.name if point.dist else '?'}")


def role_of(path: str) -> str:
    """The role of a class, by what it is a subclass of; `aqm` if that does not say.

    Raises:
        ParameterError: Its module cannot be imported.
    """
    name, _, member = path.partition(":")
    cls = getattr(_imported(name, ""), member, None)
    return cls.ROLE if isinstance(cls, type) and issubclass(cls, Block) and cls.ROLE else "aqm"


def described() -> list[dict[str, Any]]:
    """The registered classes as `perhop list blocks` shows blocks.

    Raises:
        PerhopError: A class cannot be loaded.
    """
    return [
        description(load(path, role), name)
        for role in BASES
        for name, path in sorted(registered(role).items())
    ]


def of_path(path: str) -> dict[str, Any]:
    """The class `module:Class` as `perhop list blocks` shows blocks.

    Raises:
        ParameterError: It cannot be loaded.
    """
    cls = load(path, role_of(path))
    return description(cls, cls.NAME)


def description(cls: type[Block], name: str) -> dict[str, Any]:
    """A class as `perhop list blocks` shows blocks: from its docstring, `SOURCE`, `YEAR` and parameters."""
    text = inspect.cleandoc(cls.__doc__ or "")
    meanings: dict[str, str] = {}
    for one in reversed(cls.__mro__):
        listed = inspect.cleandoc(one.__doc__ or "").partition("Attributes:")[2]
        meanings.update(re.findall(r"^    (\w+): (.*)$", listed, re.MULTILINE))
    hints = hints_of(cls)
    parameters = {}
    for field in fields(cls):  # type: ignore[arg-type]
        required = field.default is MISSING and field.default_factory is MISSING
        default = None if field.default in (MISSING, None) else value_of(hints[field.name], field.default)[1]
        parameters[key_of(field.name)] = {
            "type": type_name(hints[field.name]),
            "required": required,
            "default": default,
            "description": meanings.get(field.name, ""),
        }
    return {
        "name": name,
        "role": cls.ROLE,
        "summary": text.partition("\n")[0].rstrip("."),
        "era": "classic" if cls.YEAR is not None and cls.YEAR < _TODAY else "today",
        "year": cls.YEAR,
        "source": cls.SOURCE or f"the class {path_of(cls)}",
        "linux": None,
        "parameters": parameters,
    }
