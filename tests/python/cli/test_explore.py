"""`perhop explore`: the link that hands a scenario over, and the server."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import zlib
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perhop import explore_command
from perhop.errors import PerhopError, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

ROOT = Path(__file__).parents[3]
GALLERY = ROOT / "explorer" / "gallery"


def state(fragment: str) -> dict[str, Any]:
    """What the page reads from a link."""
    packed = fragment.removeprefix("#s=")
    text = zlib.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), -zlib.MAX_WBITS)
    read: dict[str, Any] = json.loads(text)
    return read


def test_the_link_carries_the_text_and_the_seed() -> None:
    path = GALLERY / "red.toml"
    text = path.read_text()
    assert state(explore_command.link(text, path, 2**64 - 1)) == {
        "v": 1,
        "toml": text,
        "seed": str(2**64 - 1),
    }


def test_files_that_a_scenario_names_are_put_into_its_text() -> None:
    path = ROOT / "examples" / "train.toml"
    toml = state(explore_command.link(path.read_text(), path, 1))["toml"]
    assert "data = " in toml
    assert explore_command.link(toml, Path("/elsewhere/x.toml"), 1)


def test_a_wrong_scenario_has_its_message() -> None:
    with pytest.raises(ScenarioError, match=r"wrong\.toml:1: duration: "):
        explore_command.link("duration = 5\nflows = []\n", Path("wrong.toml"), 1)


def test_what_no_link_can_carry_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore_command, "LONGEST_LINK", 100)
    path = GALLERY / "red.toml"
    with pytest.raises(PerhopError, match="too long for the explorer"):
        explore_command.link(path.read_text(), path, 1)


def test_without_its_files_it_says_how_to_build_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore_command, "FILES", tmp_path)
    with pytest.raises(PerhopError, match="make explorer"):
        explore_command.explore(None, browser=False)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "x.wasm").write_bytes(b"\0asm")
    (tmp_path / "gallery").mkdir()
    handler = partial(explore_command.Handler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_files_are_served_with_their_types(address: str) -> None:
    with urllib.request.urlopen(address + "x.wasm") as answer:  # noqa: S310 - of this test
        assert answer.headers["Content-Type"] == "application/wasm"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    with urllib.request.urlopen(address) as answer:  # noqa: S310 - likewise
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize("path", ["gallery/", "../pyproject.toml", "%2e%2e/pyproject.toml", "nothing.js"])
def test_nothing_else_is_served(address: str, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(address + path)  # noqa: S310 - likewise


def test_the_limit_of_links_is_that_of_the_page() -> None:
    source = (ROOT / "explorer" / "src" / "state.ts").read_text()
    assert f"MOST_LINK = {explore_command.LONGEST_LINK:_};" in source


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!doctype html>")
    program = f"""
import sys
from pathlib import Path
from perhop import entry, explore_command
explore_command.FILES = Path({str(tmp_path)!r})
sys.argv = ["perhop", "explore", "--no-browser"]
entry.main()
"""
    # A shell's background job ignores SIGINT, and hands that on: this process is as one in the foreground.
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    with process:
        assert process.stdout
        said = process.stdout.readline() + process.stdout.readline()
        assert "http://127.0.0.1:" in said
        assert "Ctrl-C ends it." in said
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=30)
    assert process.returncode == 0, rest
    assert "Traceback" not in rest


def test_the_gallery_runs_as_files(perhop: Perhop) -> None:
    done = perhop("run", str(GALLERY / "codel.toml"), "--runs", "1")
    assert done.code == 0, done.err
