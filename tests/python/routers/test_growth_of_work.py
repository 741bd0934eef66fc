"""Configurations of twice the size take about twice the work, in every dialect that is written in lines.

Work is the number of lines that the interpreter runs, which no other load of the machine changes. It does not
see what single calls of C code take.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

import pytest
from tests.python.fuzzing.targets import ANSWERS, CONFIGURATIONS
from tests.python.work import lines_run

from perhop import routers
from perhop.errors import PerhopError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DIALECTS = {"xr": "ios-xr", "nxos": "nx-os"}
"""Names of files that begin otherwise than their dialect."""
MOST = 2.3
"""Twice the input, and what sorting and the noise of small inputs add."""
COPIES = 8
NAME = re.compile(rb"\b[A-Z][A-Z0-9_-]{2,}\b")
PRODUCTS = {
    "ios-catalyst.cfg": "its copies are classes of one policy, which is read for each of its interfaces"
}
"""Files whose copies with other names grow in two dimensions at once."""


def work(text: bytes, dialect: str) -> int:
    """Lines of Python that it takes to read a configuration, whether it is refused or not."""
    source = routers.Source([("file", text)])

    def read() -> None:
        with contextlib.suppress(PerhopError):
            routers.imported(source, ANSWERS, dialect=dialect)

    return lines_run(read)


def repeated(text: bytes, copies: int) -> bytes:
    return text * copies


def with_other_names(text: bytes, copies: int) -> bytes:
    return b"".join(NAME.sub(lambda found, n=number: found[0] + b"-%d" % n, text) for number in range(copies))  # type: ignore[misc]


@pytest.mark.parametrize("copied", [repeated, with_other_names])
@pytest.mark.parametrize(
    "path", [path for path in CONFIGURATIONS if path.suffix != ".json"], ids=lambda path: path.name
)
def test_twice_the_text_takes_twice_the_work(path: Path, copied: Callable[[bytes, int], bytes]) -> None:
    if copied is with_other_names and path.name in PRODUCTS:
        pytest.skip(PRODUCTS[path.name])
    first = re.split(r"[-.]", path.name)[0]
    text, dialect = path.read_bytes() + b"\n", DIALECTS.get(first, first)
    work(copied(text, 1), dialect)  # what is loaded and compiled at first use
    once, twice = (work(copied(text, copies), dialect) for copies in (COPIES, 2 * COPIES))
    assert twice / once < MOST, f"{once} lines of Python, then {twice}"
