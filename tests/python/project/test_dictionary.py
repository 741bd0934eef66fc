"""The fuzzers' dictionary has every name and key, in a form that they can read."""

from __future__ import annotations

import re
from pathlib import Path

from tools.dictionary import of_router, of_schema, quoted

from perhop.blocks import catalogue

ROOT = Path(__file__).parents[3]
DICTIONARY = ROOT / "fuzz" / "dictionaries" / "toml.dict"


def test_every_block_and_the_routers_keys_are_words() -> None:
    lines = DICTIONARY.read_text(encoding="ascii").splitlines()
    words = {line for line in lines if not line.startswith("#")}
    assert all(re.fullmatch(r'"([^"\\]|\\"|\\\\|\\x[0-9a-f]{2})+"', word) for word in words)
    names = {block["name"] for block in catalogue.registered()}
    keys = {"meters", "peak-burst", "ecn-backoff", "metrics-hosts", "queue-length", "icmpv6", "unmatched"}
    assert {f'"{word}"' for word in names | keys} <= words


def test_words_of_a_schema_and_of_the_routers_tables() -> None:
    schema = {
        "properties": {"a-key": {"enum": ["one", "two"], "default": "one"}},
        "$defs": {"X": {"const": "x"}},
    }
    assert set(of_schema(schema)) == {"a-key", "one", "two", "x"}
    row = '| `[inside]`, `kind` | `"tun"` or `"packet"` | required |'
    text = f"\n## Configuration\n\n{row}\n\n## Another configuration"
    assert list(of_router(text)) == ["inside", "kind", "tun", "packet"]
    assert [quoted(word) for word in ('"', "\\", "\n", "ü")] == [r'"\""', r'"\\"', r'"\x0a"', r'"\xc3\xbc"']
