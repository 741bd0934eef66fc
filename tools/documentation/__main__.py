"""Write the pages of the site to target/site/source, and make HTML of them in target/site/html.

    python -m tools.documentation              all of it; a warning of Sphinx is a failure
    python -m tools.documentation --stage      the pages only, which needs no Sphinx

`make site` installs what it needs. The pages of `docs/` are taken as they are, but for their links
(`pages.py`); the gallery, the curves of blocks and the references of commands and of the Python interface
are written here, with pictures of runs that this program does.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.documentation import blocks, commands, gallery, home, interface, pages

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "target" / "site"
EXPLORER = ROOT / "python" / "perhop" / "explorer"
"""The page that `make explorer` builds; the home page has a copy of it."""


def main() -> None:
    """Build the site and say where it is."""
    parser = argparse.ArgumentParser(
        prog="tools.documentation", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--stage", action="store_true", help="write the pages only")
    options = parser.parse_args()
    source, html = OUT / "source", OUT / "html"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    steps: dict[str, Callable[[], None]] = {
        "pages": lambda: pages.write(ROOT, source),
        "home": lambda: home.write(EXPLORER, source),
        "gallery": lambda: gallery.write(ROOT / "examples", source / "gallery"),
        "blocks": lambda: blocks.write(source),
        "commands": lambda: commands.write(source / "reference"),
        "interface": lambda: interface.write(source / "reference"),
        "navigation": lambda: pages.write_index(source),
    }
    for name, step in steps.items():
        began = time.monotonic()
        step()
        print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
    if options.stage:
        return
    began = time.monotonic()
    sphinx = [sys.executable, "-m", "sphinx", "-b", "html", "-n", "-W", "--keep-going", "-q", "-E"]
    settings = ["-c", str(Path(__file__).parent), "-d", str(OUT / "doctrees")]
    shutil.rmtree(html, ignore_errors=True)
    done = subprocess.run([*sphinx, *settings, str(source), str(html)], check=False)
    if done.returncode:
        sys.exit(done.returncode)
    home.embed(EXPLORER, html)
    if lost := sorted(unfound(source, html)):
        sys.exit(f"error: the search does not find the words {', '.join(lost)}")
    if asked := sorted(foreign(html)):
        sys.exit(f"error: pages ask other servers for {', '.join(asked)}")
    print(f"sphinx: {time.monotonic() - began:.1f} s")
    print(f"the site: {html / 'index.html'}")


ENTRY = re.compile(r"^```{index} (.+)$", re.MULTILINE)
FOREIGN = re.compile(
    r"""<(?:script|img|iframe|source|link)\b[^>]*\b(?:src|href)=["'](?:https?:)?//([^"'/]+)"""
)


def foreign(html: Path) -> set[str]:
    """The other servers that a browser would ask on the pages in a folder; links to click are none."""
    pages = (page.read_text(encoding="utf-8") for page in html.rglob("*.html"))
    return {server for page in pages for server in FOREIGN.findall(page)}


def unfound(source: Path, html: Path) -> set[str]:
    """Words that pages have in `<!-- search: … -->`, and that lead nowhere in the search of the site."""
    entries = search_index(html / "searchindex.js")["indexentries"]
    pages = (page.read_text(encoding="utf-8") for page in source.rglob("*.md"))
    wanted = {word.strip() for page in pages for words in ENTRY.findall(page) for word in words.split(",")}
    return {word for word in wanted if word.lower() not in entries}


def search_index(path: Path) -> dict[str, Any]:
    """The index that the search of a built site reads (`searchindex.js`)."""
    text = path.read_text(encoding="utf-8")
    index: dict[str, Any] = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    return index


if __name__ == "__main__":
    main()
