"""`perhop explore`: the explorer in the browser, from the files of this installation."""

from __future__ import annotations

import base64
import io
import json
import webbrowser
import zlib
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from perhop import _engine
from perhop.commands import options, terminal
from perhop.errors import PerhopError, ScenarioError
from perhop.files import inputs
from perhop.processes.local_server import Patience

FILES = Path(__file__).parent.parent / "explorer"
"""What `make explorer` builds, and wheels carry."""
REMEDY = (
    "in a copy of the repository, `make explorer` builds it; that needs Node.js 20 or newer with npm, "
    "and Rust's target wasm32-unknown-unknown, which it adds with rustup"
)
"""How to get these files."""
LONGEST_LINK = 60_000
"""`MOST_LINK` of explorer/src/state.ts: more characters the page does not read."""
LONGEST_NAME = 300
"""`MOST_NAME` of explorer/src/state.ts."""
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".toml": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".svg": "image/svg+xml",
}


def explore(
    scenario: Annotated[
        Path | None, typer.Argument(metavar="SCENARIO.toml", help="A scenario file. Default: the gallery.")
    ] = None,
    *,
    seed: Annotated[int, options.option("--seed", "N", "The run's seed.", min=0, max=2**64 - 1)] = 1,
    port: Annotated[
        int, options.option("--port", "N", "A port of this machine; 0 is any.", min=0, max=65_535)
    ] = 0,
    browser: Annotated[
        bool, options.flag("--browser/--no-browser", "Open a browser, or print the address only.")
    ] = True,
) -> None:
    """Watch a scenario run in the browser, and change it while it runs.

    The page is served by this program to this machine alone, until Ctrl-C; it asks nothing of other servers.

    \b
    Examples:
      perhop explore
      perhop explore my.toml
    """
    if not is_built():
        raise PerhopError(f"this installation lacks the explorer; {REMEDY}")
    fragment = "" if scenario is None else link(inputs.read_text(scenario), scenario, seed)
    try:
        server = Server(port, FILES)
    except OSError as error:
        raise PerhopError(
            f"--port {port}: {error.strerror or error}; leave it out for any free port"
        ) from None
    with server, suppress(KeyboardInterrupt):  # Ctrl-C is the usual way to end it.
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        terminal.say(f"The explorer is at {address}{fragment}\nCtrl-C ends it.")
        if browser:
            webbrowser.open(address + fragment)
        server.serve_forever()


def is_built() -> bool:
    """Whether this installation has the explorer's files."""
    return (FILES / "index.html").is_file()


def link(text: str, path: Path, seed: int) -> str:
    """The fragment of an address that opens a scenario: its state as JSON, deflated, in base64url.

    Args:
        text: The scenario in TOML. Files that it names are put into it.
        path: The file, for messages and the files that it names.
        seed: The run's seed.

    Raises:
        ScenarioError: The scenario is wrong.
        PerhopError: It is too long for a link.
    """
    canonical, _ = _engine.read_toml(text, str(path), folder=path.parent)
    try:
        _engine.read_toml(text, str(path))
    except ScenarioError:
        # It names files, which a page cannot read.
        text = _engine.scenario_to_toml(canonical, str(path))
    state = {"v": 1, "toml": text, "seed": str(seed), "file": path.name[:LONGEST_NAME]}
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    packed = packer.compress(json.dumps(state).encode()) + packer.flush()
    fragment = "#s=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")
    if len(fragment) > LONGEST_LINK:
        raise PerhopError(
            f"{path}: too long for the explorer, also compressed, with the files that it names; "
            "start without a scenario and paste the text"
        )
    return fragment


class Server(Patience, HTTPServer):
    """Serves a folder of files to this machine."""

    patience = 30.0

    def __init__(self, port: int, folder: Path) -> None:
        super().__init__(("127.0.0.1", port), partial(Handler, directory=str(folder)))


class Handler(SimpleHTTPRequestHandler):
    """Serves the built files and nothing else; it says nothing."""

    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, **TYPES}  # noqa: RUF012 - as its base has it

    def end_headers(self) -> None:
        """Add `nosniff` and `no-cache`, so that an updated page shows at once."""
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        """What precedes a file; an address that can be none of a file, such as one with a NUL, is refused."""
        try:
            return super().send_head()
        except ValueError:
            self.send_error(HTTPStatus.BAD_REQUEST)
            return None

    def list_directory(self, path: object) -> None:
        """There is nothing to list."""
        del path
        self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, *_: object) -> None:
        """Requests are no news."""
