"""The pages that people have written: which there are, in which order, and where their links lead."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path, PurePosixPath

HERE = Path(__file__).parent
STATIC = HERE / "pages"
"""The home page, `hero.md` in its place at the top, and the style sheet."""

PROJECT = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "docs/papers/README.md": "papers/index.md",
    "tests/oracle/README.md": "project/ns2.md",
    "course/README.md": "course/index.md",
}
"""Pages that are elsewhere on the site; the other pages of `docs/` keep their places."""

SECTIONS = {
    "Begin": [
        "install",
        "questions",
        "tutorial",
        "What perhop does <tour>",
        "gallery/index",
        "For engineers <guides/engineer>",
        "For researchers <guides/researcher>",
        "For teachers <guides/teacher>",
        "For people with data <guides/data>",
        "Which AQM? <guides/which-aqm>",
        "How large a buffer? <guides/buffer-size>",
    ],
    "Course": [
        "A course in a box <course/index>",
        "course/red",
        "course/assured",
        "course/delay",
        "course/windows",
        "course/bounds",
        "course/teachers/*",
    ],
    "Use": [
        "explorer",
        "Python <python>",
        "results",
        "Traffic <traffic>",
        "links",
        "networks",
        "hierarchy",
        "Guarantees <guarantees>",
        "Rare events <rare-events>",
        "packets",
        "sweeps",
        "Plans <plans>",
        "Stores <stores>",
        "replay",
        "live",
        "witness",
        "Router configurations <configurations>",
        "perhop-router",
        "containers",
    ],
    "Evidence": [
        "The papers <papers/index>",
        "papers/*",
        "Beside today's mechanisms <today>",
        "Under web, video and calls <workloads>",
        "Validity <project/validity>",
        "Benchmarks <project/benchmarks>",
    ],
    "Reference": [
        "scenario",
        "presets",
        "blocks",
        "measures",
        "reference/commands",
        "reference/python",
        "glossary",
    ],
    "Project": ["cite", "architecture", "project/*"],
}
"""The entries of the navigation: pages, by path, some with a shorter title.

A page that is named nowhere is under `Use`, after the others.
"""

PICTURES = (".png", ".webp")

FENCE = re.compile(r"^( *)(```+|~~~+)")
ANCHOR = re.compile(r"^<a id=\"([\w-]+)\"></a>\n", re.MULTILINE)
SEARCH = re.compile(r"^<!-- search: (.+?) -->$", re.MULTILINE)
"""Words of the field by which the search of the site finds the section: they need not stand in its text."""
LINK = re.compile(r"\[((?:[^\]\[`]|`[^`]*`|!\[[^\]]*\]\([^)]*\))*)\]\(([^)\s]+)\)")


def write(root: Path, source: Path) -> None:
    """Copy all pages of the repository `root` to `source`, with links as they are there."""
    places = sites(root)
    for origin, place in places.items():
        text = (root / origin).read_text(encoding="utf-8")
        save(source / place, relinked(text, PurePosixPath(origin), places, root))
    for picture in (path for kind in PICTURES for path in (root / "docs").rglob(f"*{kind}")):
        copied = source / picture.relative_to(root / "docs")
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, copied)
    shutil.copytree(STATIC, source, dirs_exist_ok=True)
    for schema in (root / "docs").glob("*.schema.json"):
        shutil.copyfile(schema, source / schema.name)


def sites(root: Path) -> dict[str, str]:
    """The place of each page of the repository on the site, by its path."""
    own = [path.relative_to(root).as_posix() for path in sorted((root / "docs").rglob("*.md"))]
    labs = {path.relative_to(root).as_posix(): f"course/{path.parent.name}.md" for path in sheets(root)}
    notes = sorted((root / "course" / "teachers").glob("*.md"))
    named = {path.relative_to(root).as_posix(): path.relative_to(root).as_posix() for path in notes}
    return {origin: origin.removeprefix("docs/") for origin in own} | named | labs | PROJECT


def sheets(root: Path) -> list[Path]:
    """The sheets of the course's labs, which stand beside their scenarios in the package."""
    return sorted((root / "python" / "perhop" / "coursework" / "labs").glob("*/sheet.md"))


def save(path: Path, text: str) -> None:
    """Write a page, in a folder that need not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def relinked(text: str, origin: PurePosixPath, places: dict[str, str], root: Path) -> str:
    """The page `origin` with its links as they are on the site; code blocks stay as they are.

    A link to a file that is not on the site becomes its text, an example's a link to its page in the gallery;
    `<!-- search: RTT, latency -->` becomes entries of the index, which the search shows with their section.
    """

    def links(prose: str) -> str:
        prose = SEARCH.sub(r"```{index} \1\n```", ANCHOR.sub(r"(\1)=\n", prose))
        return LINK.sub(lambda link: _link(link, origin, places, root), prose)

    pieces: list[str] = []
    prose, fence = "", ""
    for line in text.splitlines(keepends=True):
        opened = FENCE.match(line)
        if opened and (not fence or line.strip() == fence):
            pieces.append(line if fence else links(prose) + line)
            prose, fence = "", "" if fence else opened[2]
        elif fence:
            pieces.append(line)
        else:
            prose += line
    return "".join([*pieces, links(prose)])


def search_words(text: str) -> list[str]:
    """The words by which a page says that the search finds its sections."""
    return [word.strip() for words in SEARCH.findall(text) for word in words.split(",")]


def _link(link: re.Match[str], origin: PurePosixPath, places: dict[str, str], root: Path) -> str:
    text, target = link[1], link[2]
    if target.startswith(("http:", "https:", "mailto:", "#")):
        return link[0]
    path, mark, anchor = target.partition("#")
    wanted = os.path.normpath(origin.parent / path)
    if (root / wanted).is_dir() and f"{wanted}/README.md" in places:
        wanted = f"{wanted}/README.md"
    here = PurePosixPath(places[str(origin)]).parent
    if wanted in places:
        return f"[{text}]({os.path.relpath(places[wanted], here)}{mark}{anchor})"
    if wanted.endswith((*PICTURES, ".json")) and wanted.startswith("docs/"):
        return f"[{text}]({os.path.relpath(wanted.removeprefix('docs/'), here)})"
    if PurePosixPath(wanted).parent == PurePosixPath("examples") and wanted.endswith(".toml"):
        return f"[{text}]({os.path.relpath(f'gallery/{PurePosixPath(wanted).stem}.md', here)})"
    return text


def write_index(source: Path) -> None:
    """Put the navigation below the home page: every page is in it."""
    there = {path.relative_to(source).with_suffix("").as_posix() for path in source.rglob("*.md")}
    there -= {"index", "hero"} | {name for name in there if name.startswith("gallery/")}
    there.add("gallery/index")
    parts: dict[str, list[str]] = {}
    for section, entries in SECTIONS.items():
        parts[section] = []
        for entry in entries:
            pattern = entry.partition("<")[2].rstrip(">") or entry
            named = [name for name in sorted(there) if PurePosixPath(f"/{name}").match(f"/{pattern}")]
            parts[section] += [entry] if "<" in entry and named else named
            there -= set(named)
    parts["Use"] += sorted(there)
    trees = [
        "\n".join(["```{toctree}", ":hidden:", f":caption: {section}", "", *names, "```"])
        for section, names in parts.items()
    ]
    home = source / "index.md"
    home.write_text(home.read_text(encoding="utf-8") + "\n" + "\n\n".join(trees) + "\n", encoding="utf-8")
