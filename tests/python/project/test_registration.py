"""A block's name appears in its own file and where it is registered, and nowhere else in the Rust sources."""

from __future__ import annotations

import re
from pathlib import Path

CRATES = Path(__file__).parents[3] / "crates"

# Places that name a block of another file, each with the reason.
EXCEPTIONS = {
    # The registrations, with ideas that one block is: a queue without a limit, a queue with an AQM alone.
    "perhop-core/src/aqm/mod.rs": {"DropTail"},
    "perhop-core/src/scheduler/mod.rs": {"Fifo"},
    # The most frequent meter is compiled into the conditioner.
    "perhop-core/src/meter/mod.rs": {"TokenBucket"},
    # Its queues are under CoDel, each with a state of its own.
    "perhop-core/src/scheduler/fq_codel/mod.rs": {"Codel"},
    # The measures of an application in Python are those of the built-in one that it resembles.
    "perhop-sim/src/application/foreign.rs": {"RequestResponse"},
    # A preset of TCP is what a system does, its congestion control included; a variant of TCP has its own.
    "perhop-sim/src/transport/tcp/params/presets.rs": {"cubic"},
    "perhop-sim/src/transport/tcp/params/mod.rs": {"TwoWindows"},
    # The harness that tests a class in Python under several schedulers.
    "perhop-python/src/classes/check.rs": {"priority", "drr", "wfq", "edf", "shaper"},
}
# Names of blocks that also mean something else: colors, services, a key, a language, variants of TCP.
WORDS = {"red", "blue", "priority", "python", "video", "web", "call", "game", "reno", "two-windows"}


def code(path: Path) -> str:
    """The text of a source file without comments and unit tests."""
    text = re.split(r"\n#\[cfg\((?:all\()?test\b[^\n]*\]\n(?:pub\S* )?mod \w+ \{", path.read_text())[0]
    return "\n".join(re.sub(r"(^|\s)//.*", "", line) for line in text.splitlines())


def sources() -> dict[Path, str]:
    """The code of all crates, tests and benchmarks left out."""
    skipped = re.compile(r"(^|/)(tests|benches|examples|testing)/|(^|/)(tests|golden)\.rs$")
    paths = (path for path in sorted(CRATES.rglob("*.rs")) if "target" not in path.parts)
    return {path: code(path) for path in paths if not skipped.search(str(path.relative_to(CRATES)))}


def blocks(texts: dict[Path, str]) -> dict[str, tuple[str, Path]]:
    """The type of each block: its name in scenarios, and the file or the folder that is its own."""
    declared = re.compile(
        r"impl(?:<[^>]*>)? (?:Block for (\w+)(?:<\w+>)?|InOutRule<\d> for (\w+)Rule) \{.*?"
        r'const NAME: &\'static str =\s*"([\w-]+)"',
        re.DOTALL,
    )
    found = {}
    for path, text in texts.items():
        for block, rule, name in declared.findall(text):
            kind = block or rule
            if kind != "Foreign":
                found[kind] = (name, path.parent if path.name == "mod.rs" else path)
    return found


def named(text: str, kind: str, name: str) -> set[str]:
    """What of a block this code names: its type, its parameters, or its name in scenarios."""
    if kind not in text and f'"{name}"' not in text:
        return set()
    types = rf"\b(?:\w+Params|Any\w+)::{kind}\b|\b{kind}Params\b|\b{kind}::<|use [^;]*\b{kind}\b"
    found = {kind} if re.search(types, text) else set()
    if name not in WORDS and f'"{name}"' in text:
        found.add(name)
    return found


def test_a_block_is_named_in_its_own_file_and_its_registration_alone() -> None:
    texts = sources()
    known = blocks(texts)
    assert len(known) >= 47
    registers = re.compile(r"^register_\w+! \{", re.MULTILINE)
    registrations = [path for path, text in texts.items() if registers.search(text)]
    assert len(registrations) >= 4
    stray: dict[str, set[str]] = {}
    lines = re.compile(r"^register_\w+! \{.*?^\}|^pub use [^;]*;", re.DOTALL | re.MULTILINE)
    for path, whole in texts.items():
        where = str(path.relative_to(CRATES))
        text = lines.sub("", whole) if path in registrations else whole
        for kind, (name, own) in known.items():
            if path == own or own in path.parents:
                continue
            found = named(text, kind, name) - EXCEPTIONS.get(where, set())
            if found:
                stray.setdefault(where, set()).update(found)
    assert stray == {}, "let these blocks declare what this code knows of them"


def test_every_exception_is_needed() -> None:
    texts = sources()
    known = blocks(texts)
    for where, names in EXCEPTIONS.items():
        text = texts[CRATES / where]
        used: set[str] = {name for name in names if f'"{name}"' in text}
        used.update(*(named(text, kind, name) for kind, (name, _) in known.items()))
        assert names <= used, where
