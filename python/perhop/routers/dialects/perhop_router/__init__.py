"""perhop-router, which has the simulator's queues and meters."""

from __future__ import annotations

from perhop.routers.dialect import Dialect
from perhop.routers.dialects.perhop_router.writer import lines

DIALECT = Dialect("perhop-router", "perhop-router", write=lines, native=True)
