"""Comments that cannot be read alone, are too wide, or use riddling words are found where they are."""

from __future__ import annotations

from collections import Counter

import pytest
from tools import doc_words
from tools.doc_words import openings, python_docs, riddles, rust_docs, too_many, wide

RUST = """\
//! Those that queues share.
//! That they do.

/// Returns the queue.
/// That is the one that waits.
fn queue() {
    // That is no doc comment.
    let text = "/// What is in a text";
}

/// The same of a link.
#[inline]
pub fn link() {}

//// Such a line is no doc comment.
struct Such {
    /// Whether such a packet passes.
    passes: bool,
    /// Thatch roofs the house, and what is below is no opening: What is.
    roof: bool,
    /// Its number.
    number: u64,
    /// Items of the house. They are many.
    items: u64,
}
"""
PYTHON = '''\
"""That of the module."""

LIMIT = 3
"""What is allowed at most."""

#: The same for names.
#: That is read with the line above.
NAMES = ()


class One:
    """
    Such a class.
    """

    value: int
    """Those of a field."""

    def all(self) -> int:
        """They, counted."""

    def text(self) -> str:
        """Return the text.

        That is all.
        """
        return """That is a value, not a docstring."""
'''


def test_openings_of_rust() -> None:
    found = [(finding.line, finding.text.split('"')[1]) for finding in openings("a.rs", rust_docs(RUST))]
    assert found == [(1, "Those"), (11, "The same"), (17, "Whether such"), (21, "Its")]


def test_openings_of_python() -> None:
    found = sorted(
        (finding.line, finding.text.split('"')[1]) for finding in openings("a.py", python_docs(PYTHON))
    )
    assert found == [(1, "That"), (4, "What is"), (6, "The same"), (12, "Such"), (17, "Those"), (20, "They")]


def test_clauses_are_refused_in_strict_rooms() -> None:
    lines = [(1, "How a number reads."), (2, "Offers the queue a packet."), (3, "Whose turn it is.")]
    (room,) = (room for room in doc_words.STRICT if room.endswith("/show/"))
    assert [finding.line for finding in openings(f"{room}numbers.py", iter(lines))] == [1, 3]
    assert not list(openings("crates/x/src/a.rs", iter(lines)))
    assert all(doc_words.tracked(room) for room in doc_words.STRICT)


def test_a_finding_has_its_place_and_what_is_right() -> None:
    (found,) = openings("crates/x/src/a.rs", iter([(7, "The same, later.")]))
    assert str(found).startswith(
        'crates/x/src/a.rs:7: a doc comment begins with "The same", so it cannot be read'
    )
    assert "a verb for a function (`Returns the …`)" in str(found)


@pytest.mark.parametrize(
    "line",
    [
        "/// " + "word " * 5,
        "    // " + "word " * 5,
        "let x = 1; // " + "word " * 4,
    ],
)
def test_wide_comments_of_rust(line: str) -> None:
    (found,) = wide("a.rs", f"fn f() {{}}\n{line.rstrip()}\n", 20)
    assert str(found) == f"a.rs:2: a comment of {len(line.rstrip())} columns; wrap it at 20, as code is"
    assert not list(wide("a.rs", line, len(line)))


@pytest.mark.parametrize(
    "text",
    [
        "/// | a row of a table | stays as it is |",
        "//! ```text\n//! a picture that is wider than the code\n//! ```",
        "/// The source: https://example.org/a/long/address",
        'let text = "no comment: http://example.org // it is text";',
    ],
)
def test_what_cannot_be_wrapped_may_be_wide(text: str) -> None:
    assert not list(wide("a.rs", text, 20))


def test_code_in_documentation_ends_where_it_ends() -> None:
    text = "/// ```\n/// a line of code that is long\n/// ```\n/// a line of text that is long\n"
    assert [found.line for found in wide("a.rs", text, 20)] == [4]


def test_riddles_are_counted_outside_quotations() -> None:
    one, other = doc_words.WORDS[2], doc_words.WORDS[0]
    assert list(riddles(f'quote = "It {one} us."\nOurs {one.title()}, “who {other}”.\n')) == [(one, 2)]
    assert not list(riddles(f"un{doc_words.WORDS[0]} {doc_words.WORDS[1]}till _{doc_words.WORDS[4]}"))


def test_too_many_riddles_are_named_with_the_way_to_find_them() -> None:
    few = Counter({doc_words.WORDS[0]: doc_words.MOST})
    assert not too_many(few)
    message = too_many(few + Counter(doc_words.WORDS[4:]))
    assert message.startswith(f"{doc_words.MOST} `{doc_words.WORDS[0]}`, 0 `")
    assert f"{doc_words.MOST + 1} of at most {doc_words.MOST}" in message
    assert "They are found by: grep -rnwiE" in message


def test_files_of_the_repository_are_found() -> None:
    assert {"tools/doc_words.py", "README.md"} <= set(doc_words.tracked("tools", "README.md"))
    assert "tools/doc_words.py" not in doc_words.tracked("*.rs")
