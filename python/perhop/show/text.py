"""Text that others wrote, such as titles and names of routers, made fit for pages and pictures."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

_UNFIT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"  # no characters of XML 1.0, or controls
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"  # these would reorder the text around them
)
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
LABEL_CHARACTERS = 48
"""The most characters of a name in a picture."""

_BULLET = re.compile(r"\s*[-•*] +")
_INLINE = re.compile(r"`([^`]+)`|\*\*(\S(?:[^*]*\S)?)\*\*")


def printable(text: str) -> str:
    """The text without what XML forbids and without controls, each of which becomes U+FFFD."""
    return _UNFIT.sub(REPLACEMENT, text)


def label(text: str, most: int = LABEL_CHARACTERS) -> str:
    """A name for a picture: one line of printable characters, shortened with a sign."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def inline_markdown(text: str) -> Markup:
    """One line of the Markdown that our texts use as HTML: `code` and **strong**; all else is escaped."""
    out, last = Markup(), 0
    for found in _INLINE.finditer(text):
        out += escape(text[last : found.start()])
        if found[1] is not None:
            out += Markup("<code>{}</code>").format(found[1])
        else:
            out += Markup("<strong>{}</strong>").format(inline_markdown(found[2]))
        last = found.end()
    return out + escape(text[last:])


def markdown(texts: list[str] | tuple[str, ...] | str) -> Markup:
    """Paragraphs as HTML; those that begin with a bullet become one list."""
    out, items = Markup(), Markup()
    for text in [texts] if isinstance(texts, str) else texts:
        line = inline_markdown(printable(_BULLET.sub("", text, count=1)))
        if _BULLET.match(text):
            items += Markup("<li>{}</li>").format(line)
            continue
        out += _list(items) + Markup("<p>{}</p>").format(line)
        items = Markup()
    return out + _list(items)


def _list(items: Markup) -> Markup:
    return Markup('<ul class="notes">{}</ul>').format(items) if items else Markup()
