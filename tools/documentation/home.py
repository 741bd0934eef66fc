"""The top of the home page: the explorer where it is built, and otherwise a picture of a run."""

from __future__ import annotations

import shutil
from pathlib import Path

FOLDER = "live-explorer"
"""The place of the copy of the explorer on the site."""

FRAME = f"""\
```{{raw}} html
<iframe class="explorer" src="{FOLDER}/index.html#g=red" loading="lazy"
  title="The explorer: RED on a link"></iframe>
```

A run of perhop in this page: move a slider, and the queue follows. [How to use the explorer](explorer.md).
A browser runs it from a web server, not from a file;
`python -m http.server --directory target/site/html` is one.
"""
MISSING = """\

This copy of the site was built without Node.js, so it lacks the [explorer](explorer.md),
in which runs are live.
"""


def write(built: Path, source: Path) -> None:
    """Make the top of the home page, `hero.md` in `source`, of the explorer `built` or of the picture there.

    Says so if it is the picture.
    """
    hero = source / "hero.md"
    if is_built(built):
        hero.write_text(FRAME, encoding="utf-8")
        return
    print("the explorer is not built (`make explorer`, with Node.js): the home page has a picture instead")
    hero.write_text(hero.read_text(encoding="utf-8") + MISSING, encoding="utf-8")


def embed(built: Path, html: Path) -> None:
    """Copy the explorer `built`, if it is, beside the pages in `html`."""
    if is_built(built):
        shutil.copytree(built, html / FOLDER)


def is_built(built: Path) -> bool:
    """Whether this folder has the page and the engine."""
    return all((built / name).is_file() for name in ("index.html", "perhop_explorer.wasm"))
