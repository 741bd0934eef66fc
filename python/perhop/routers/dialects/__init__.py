"""The dialects. Each is a folder or a module with `DIALECTS`, and is listed here once.

A dialect knows the port's model, the rooms `syntax`, `linux` and `writing`, and no other dialect; nothing
outside its folder knows of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perhop.routers.dialect import Dialect

MODULES = (
    "cisco", "junos", "tc", "vyos", "sonic", "openconfig", "eos", "routeros", "perhop_router",
)  # fmt: skip
DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for module in MODULES for dialect in import_module(f"{__name__}.{module}").DIALECTS
}
"""Every dialect, by name."""
READERS = {name: dialect for name, dialect in DIALECTS.items() if dialect.read is not None}
"""The dialects that `perhop import` reads."""
WRITERS = {name: dialect for name, dialect in DIALECTS.items() if dialect.write is not None}
"""The dialects that `perhop export` writes."""
