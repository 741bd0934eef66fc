"""What must be true of every page: valid in any browser, offline, readable on a phone, answer first."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree as ET

VOID = frozenset({"meta", "link", "br", "hr", "img", "input", "col"})
SVG = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)
"""Controls, no characters of XML 1.0, and what reorders the text around it."""


class Page(HTMLParser):
    """A page as it was read; reading fails where it is not well-formed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.fetched: list[str] = []
        self.headings: list[tuple[int, str]] = []
        self.unnamed: list[str] = []
        self.tables: list[list[int]] = []
        self.scrolled: list[bool] = []
        self.text = ""
        self.source = text
        self.tags: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"<{tag}> has an attribute twice"
        given = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        if "id" in given:
            self.ids.append(given["id"])
        for name in ("src", "href", "xlink:href", "action"):
            value = given.get(name, "")
            (self.references if value.startswith("#") else self.fetched).extend([value] if value else [])
        assert not any(name.startswith("on") for name in given), f"<{tag}> runs a script"
        if tag == "svg" and not (given.get("role") == "img" and given.get("aria-label", "").strip()):
            self.unnamed.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))
        if tag == "table":
            self.tables.append([])
            self.scrolled.append("div.wide" in self.open)
        if tag == "tr":
            self.tables[-1].append(0)
        if tag in {"td", "th"}:
            self.tables[-1][-1] += int(given.get("colspan", "1"))
        if tag not in VOID:
            self.open.append(f"{tag}.wide" if "wide" in given.get("class", "").split() else tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop().partition(".")[0] == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open and re.fullmatch("h[1-6]", self.open[-1]):
            level, text = self.headings.pop()
            self.headings.append((level, text + data))


def check(text: str) -> Page:
    """Read a page and check what must be true of all of them."""
    assert FORBIDDEN.search(text) is None
    page = Page(text)
    assert page.open == []
    assert page.fetched == []
    assert len(page.ids) == len(set(page.ids))
    assert {reference.removeprefix("#") for reference in page.references} <= set(page.ids)
    assert page.unnamed == []
    assert "script" not in page.tags
    levels = [level for level, _ in page.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), page.headings
    assert all(page.scrolled), "a table would scroll the whole page"
    assert all(len(set(widths)) == 1 for widths in page.tables)
    for svg in SVG.findall(text):
        ET.fromstring(svg)  # noqa: S314 - made by us
    return page


def titles(page: Page) -> list[str]:
    """The headings of a page, in order."""
    return [" ".join(text.split()) for _, text in page.headings]
