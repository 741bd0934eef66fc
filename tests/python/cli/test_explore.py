"""`perhop explore`: the link that hands a scenario over, and the server."""

from __future__ import annotations

import base64
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import zlib
from contextlib import ExitStack, contextmanager, redirect_stderr, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perhop.commands import explore
from perhop.errors import PerhopError, ScenarioError
from perhop.real_packets import metrics

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


def test_the_link_carries_the_text_the_seed_and_the_name_of_the_file() -> None:
    path = GALLERY / "red.toml"
    text = path.read_text()
    assert state(explore.link(text, path, 2**64 - 1)) == {
        "v": 1,
        "toml": text,
        "seed": str(2**64 - 1),
        "file": "red.toml",
    }


def test_files_that_a_scenario_names_are_put_into_its_text() -> None:
    path = ROOT / "examples" / "train.toml"
    toml = state(explore.link(path.read_text(), path, 1))["toml"]
    assert "data = " in toml
    assert explore.link(toml, Path("/elsewhere/x.toml"), 1)


def test_a_wrong_scenario_has_its_message() -> None:
    with pytest.raises(ScenarioError, match=r"wrong\.toml:1: duration: "):
        explore.link("duration = 5\nflows = []\n", Path("wrong.toml"), 1)


def test_what_no_link_can_carry_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore, "LONGEST_LINK", 100)
    path = GALLERY / "red.toml"
    with pytest.raises(PerhopError, match="too long for the explorer"):
        explore.link(path.read_text(), path, 1)


def test_without_its_files_it_says_how_to_build_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore, "FILES", tmp_path)
    with pytest.raises(PerhopError, match=r"make explorer.*Node\.js 20.*npm.*wasm32-unknown-unknown"):
        explore.explore(None, browser=False)


@contextmanager
def serving(server: explore.Server) -> Iterator[int]:
    """The port of a server that serves meanwhile."""
    with server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "x.wasm").write_bytes(b"\0asm")
    (tmp_path / "gallery").mkdir()
    with serving(explore.Server(0, tmp_path)) as port:
        yield f"http://127.0.0.1:{port}/"


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


PATHS = st.one_of(
    st.sampled_from(
        [
            *(
                "/",
                "/%00",
                "/a%00b",
                "/gallery",
                "/gallery/",
                "/x.wasm",
                "/%",
                "/%zz",
                "/%f",
                "/%ff%fe",
                "/%ed%a0%80",
            ),
            *(
                "x://[/../..",
                "http://[/",
                "*",
                "/" + "a" * 5000,
                "/" + "a/" * 5000,
                "/" + "%2e%2e/" * 40 + "etc/passwd",
            ),
            *(
                "/../../../../etc/passwd",
                "/..%5c..%5cwin.ini",
                "/C:/x",
                "//etc/passwd",
                "/a?b#c",
                "?",
                "#",
                "/%0d%0aX:y",
            ),
            "/LONG",
        ]
    ),
    st.text(st.characters(max_codepoint=255), max_size=20).map(lambda text: "/" + text),
)
REQUESTS = st.one_of(
    st.binary(max_size=200),
    st.builds(
        lambda method, path, version, host, more: (
            f"{method} {path} {version}\r\nHost: {host}\r\n{more}\r\n\r\n".encode("latin-1")
        ),
        st.sampled_from(
            ["GET", "HEAD", "POST", "PUT", "OPTIONS", "CONNECT", "get", "", "\x00", "GET\tGET", "\xff", "_"]
        ),
        PATHS,
        st.sampled_from(
            [
                "HTTP/1.1",
                "HTTP/1.0",
                "HTTP/0.9",
                "HTTP/2.0",
                "HTTP/9" * 99,
                "HTTP/1.1.1",
                "HTTP/-1",
                "",
                "\x00",
            ]
        ),
        st.sampled_from(["127.0.0.1", "", "[", "\x00", "LONG", "evil.example", "\xff", ":" * 9]),
        st.sampled_from(
            [
                *(
                    "",
                    "X",
                    ":",
                    " folded",
                    "Content-Length: -1",
                    "Content-Length: 9" * 9,
                    "Transfer-Encoding: chunked",
                ),
                *(
                    "If-Modified-Since: x",
                    "If-Modified-Since: Mon, 01 Jan 99999 00:00:00 GMT",
                    "Expect: 100-continue",
                ),
                *("A: b\r\n" * 200, "\x00: \x00", "Connection: keep-alive"),
            ]
        ),
    ),
)


def answer_to(port: int, request: bytes) -> bytes:
    """What a server answers to bytes until it closes the connection; nothing where it closes it at once."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        answer = b""
        with suppress(ConnectionError):  # closed before all was read
            connection.sendall(request)
            with suppress(OSError):  # not connected any more
                connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65_536):
                answer += part
        return answer


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """The ports of the explorer's server and of the server of running statistics."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "index.html").write_text("<!doctype html>")
    (folder / "gallery").mkdir()
    with serving(explore.Server(0, folder)) as port, metrics.serve("127.0.0.1", 0) as (_, url):
        yield {"explorer": port, "statistics": int(url.split(":")[2].partition("/")[0])}


@pytest.mark.parametrize("name", ["explorer", "statistics"])
def test_no_request_has_a_traceback_or_no_end(served: dict[str, int], name: str) -> None:
    port = served[name]

    @settings(max_examples=200, deadline=None)
    @example(b"GET /%00 HTTP/1.0\r\n\r\n")
    @example(b"GET x://[/../.. HTTP/1.0\r\n\r\n")
    @example(b"GET /%ed%a0%80 HTTP/1.0\r\n\r\n")
    @given(
        REQUESTS.flatmap(
            lambda whole: st.one_of(st.just(whole), st.integers(0, len(whole)).map(lambda n: whole[:n]))
        )
    )
    def ask(request: bytes) -> None:
        answer = answer_to(port, request.replace(b"LONG", b"a" * 70_000))
        assert b"Traceback" not in answer
        assert b"root:" not in answer

    said = io.StringIO()
    with redirect_stderr(said):
        ask()
    assert answer_to(port, b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.0 200 ")
    assert said.getvalue() == ""


@pytest.mark.parametrize(
    ("path", "status"),
    [("/%00", 400), ("/a%00", 400), ("x://[/../..", 400), ("/%ed%a0%80", 400), ("/" + "a" * 5000, 404)],
)
def test_an_address_that_no_file_can_have_is_refused(served: dict[str, int], path: str, status: int) -> None:
    for method in ("GET", "HEAD"):
        answer = answer_to(served["explorer"], f"{method} {path} HTTP/1.0\r\n\r\n".encode())
        assert answer.startswith(f"HTTP/1.0 {status} ".encode())


def test_half_requests_are_given_up_and_keep_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explore.Server, "patience", 0.5)
    monkeypatch.setattr(explore.Server, "clients", 4)
    (tmp_path / "index.html").write_text("<!doctype html>")
    with serving(explore.Server(0, tmp_path)) as port, ExitStack() as stack:
        halves = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10)) for _ in range(4)
        ]
        for half in halves:
            half.sendall(b"GET / HT")
        for half in halves:
            assert half.recv(100) == b""
        assert b" 200 " in answer_to(port, b"GET / HTTP/1.0\r\n\r\n")


def test_the_limits_of_links_are_those_of_the_page() -> None:
    source = (ROOT / "explorer" / "src" / "state.ts").read_text()
    assert f"MOST_LINK = {explore.LONGEST_LINK:_};" in source
    assert f"MOST_NAME = {explore.LONGEST_NAME};" in source


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!doctype html>")
    program = f"""
import sys
from pathlib import Path
from perhop.commands import entry, explore
explore.FILES = Path({str(tmp_path)!r})
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
