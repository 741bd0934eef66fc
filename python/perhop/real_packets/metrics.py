"""Running statistics for Prometheus, on this machine only: `perhop live --metrics 127.0.0.1:9477`."""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from perhop.errors import PerhopError
from perhop.processes.local_server import Patience

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


PREFIX = "perhop_live"


def endpoint(text: str) -> tuple[str, int]:
    """Address and port as typed, such as `127.0.0.1:9477`, `[::1]:9477`, or `localhost:0` for any free port.

    Raises:
        PerhopError: It is none, or others than this machine could reach it.
    """
    match = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]]+)):(\d{1,5})", text)
    if match is None or int(match[3]) > 65535:
        raise PerhopError(f"--metrics {text}: not an address and a port; write 127.0.0.1:9477")
    host = "127.0.0.1" if match[2] == "localhost" else match[1] or match[2]
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise PerhopError(
            f"--metrics {text}: only this machine may read them; write 127.0.0.1:{match[3]}, and let a proxy "
            "serve others"
        )
    return host, int(match[3])


class RunningStatistics(Collector):
    """The latest statistics of the run in progress. Counters begin anew with each run."""

    def __init__(self) -> None:
        self._seen: tuple[int, Mapping[str, Any]] | None = None

    def see(self, seed: int, glimpse: Mapping[str, Any]) -> None:
        """Keep a glimpse, as `perhop.live` gives them to `watch`."""
        self._seen = (seed, glimpse)

    def collect(self) -> Iterator[Metric]:
        """Called by the server, on a thread of its own."""
        if self._seen is None:
            return
        seed, glimpse = self._seen
        yield GaugeMetricFamily(f"{PREFIX}_seed", "Seed of the current run.", seed)
        yield GaugeMetricFamily(f"{PREFIX}_time_seconds", "Time since the run began.", glimpse["time_s"])
        yield GaugeMetricFamily(f"{PREFIX}_inside_packets", "Packets inside the router.", glimpse["inside"])
        received = CounterMetricFamily(
            f"{PREFIX}_received_bytes",
            "Bytes on the wire that a class's receivers got, without duplicates.",
            labels=["class"],
        )
        for name, count in glimpse["received_bytes"].items():
            received.add_metric([name], count)
        yield received
        late = GaugeMetricFamily(
            f"{PREFIX}_lateness_seconds",
            "How late packets left the router since the warm-up.",
            labels=["quantile"],
        )
        for quantile, name in (("0.5", "p50"), ("0.99", "p99"), ("1", "max")):
            late.add_metric([quantile], glimpse["late_s"][name])
        yield late
        yield from _of_links(glimpse["links"])


def _of_links(links: Mapping[str, Mapping[str, Any]]) -> Iterator[Metric]:
    waiting = GaugeMetricFamily(f"{PREFIX}_queue_packets", "Packets waiting at a link.", labels=["link"])
    sent = CounterMetricFamily(f"{PREFIX}_sent_packets", "Packets sent by a link.", labels=["link"])
    dropped = CounterMetricFamily(
        f"{PREFIX}_dropped_packets", "Packets dropped by a link's queue.", labels=["link", "reason"]
    )
    for name, link in links.items():
        waiting.add_metric([name], link["waiting"])
        sent.add_metric([name], link["sent"])
        for reason, packets in link["dropped"].items():
            dropped.add_metric([name, reason], packets)
    yield from (waiting, sent, dropped)


@contextmanager
def serve(host: str, port: int) -> Iterator[tuple[RunningStatistics, str]]:
    """Serve running statistics as long as the block lasts; gives them, and where they are.

    Raises:
        PerhopError: The port cannot be had.
    """
    statistics = RunningStatistics()
    registry = CollectorRegistry()
    registry.register(statistics)
    try:
        server = _Server(host, port)
    except OSError as error:
        raise PerhopError(f"--metrics {host}:{port}: cannot be served: {error.strerror or error}") from None
    server.set_app(_for_this_machine(make_wsgi_app(registry)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    shown = f"[{host}]" if ":" in host else host
    try:
        yield statistics, f"http://{shown}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _for_this_machine(application: WSGIApplication) -> WSGIApplication:
    """Answer only requests by a name of this machine.

    A page of another site may have a browser ask by that site's name, whose address it says is 127.0.0.1 (DNS
    rebinding), and read the answer as its own.
    """

    def checked(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if names_this_machine(environ.get("HTTP_HOST")):
            return application(environ, start_response)
        start_response("421 Misdirected Request", [("Content-Type", "text/plain")])
        return [b"Unknown host name: use 127.0.0.1 or localhost.\n"]

    return checked


def names_this_machine(host: str | None) -> bool:
    """Whether the `Host` of a request, with or without a port, is `localhost` or an address of loopback."""
    match = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]]+))(?::\d*)?", host or "")
    if match is None:
        return False
    name = (match[1] or match[2]).removesuffix(".").lower()
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost"
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


class _Silent(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nobody asked for a log."""


class _Server(Patience, WSGIServer):
    """The statistics' own server."""

    def __init__(self, host: str, port: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Silent)
