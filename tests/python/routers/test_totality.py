"""Readers are total, and lose no line: any text, any bytes, damaged configurations."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from perhop.errors import PerhopError
from perhop.routers import READERS, Answers, Source, importing
from perhop.routers.model import How, Quantity, Unit
from perhop.routers.source import CODES
from perhop.scenario.reading import canonical

CONFIGURATIONS = sorted((Path(__file__).parent / "configurations").iterdir())
ANSWERS = Answers(1e8, 1000.0, Quantity(1e6, Unit.BYTES, how=How.ASKED), {}, lenient=True)
WORDS = sorted(
    {word for path in CONFIGURATIONS for word in path.read_text(encoding="utf-8").split()}
    | {"0", "-1", "1e9", "99999999999999999999", "%", "{", "}", "[", "]", '"', ";", "\\", "police", "ÿ"}
)


def check(data: bytes, dialect: str) -> None:
    """Read, choose each port in turn, and account for each line."""
    source = Source([("file", data)])
    reading = importing.read(source, READERS[dialect])
    names: list[str | None] = [*dict.fromkeys(port.name for port in reading.ports)]
    names = names or [None]
    for name in names[:3]:
        try:
            done = importing.imported(source, ANSWERS, dialect=dialect, interface=name)
        except PerhopError as error:
            assert "\n" not in str(error)  # noqa: PT017 - whether it raises depends on the text
            continue
        assert {finding.code for finding in done.findings} <= set(CODES)
        assert all(0 <= finding.line <= len(source.lines) for finding in done.findings)
        canonical(done.toml)


@pytest.mark.parametrize("dialect", READERS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(data=b"")
@example(data=b"\xff\xfe\x00{[")
@given(data=st.binary(max_size=300))
def test_any_bytes(dialect: str, data: bytes) -> None:
    check(data, dialect)


@pytest.mark.parametrize("dialect", READERS)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lines=st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=30))
def test_words_of_configurations_in_any_order(dialect: str, lines: list[str]) -> None:
    check("\n".join(lines).encode(), dialect)


def mutated(text: str, chance: random.Random) -> str:
    """A text with lines removed, doubled and swapped, and words changed."""
    lines = text.split("\n")
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(lines))
        match chance.randrange(5):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, lines[chance.randrange(len(lines))])
            case 2:
                other = chance.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)]
            case _:
                words = lines[at].split(" ")
                words[chance.randrange(len(words))] = chance.choice(WORDS)
                lines[at] = " ".join(words)
        lines = lines or [""]
    return "\n".join(lines)


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: path.name)
def test_damaged_configurations(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    dialect = importing.recognised(Source([(path.name, text.encode())])).name
    chance = random.Random(path.name)  # noqa: S311 - not for secrets
    for _ in range(60):
        check(mutated(text, chance).encode(), dialect)


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: path.name)
def test_each_line_is_used_reported_or_a_comment(path: Path) -> None:
    source = Source([(path.name, path.read_bytes())])
    reading = importing.read(source, importing.recognised(source))
    port = reading.ports[0]
    reading.account.use(port.lines)
    understood = reading.account.used | reading.account.comments | reading.account.understood
    reading.account.close(port.name)
    assert not reading.account.silent()
    # Line by line: what is reported as not understood was not used, and the other way round.
    for finding in reading.account.findings:
        if finding.text.startswith("not understood"):
            assert finding.line not in reading.account.used, finding
    assert understood
