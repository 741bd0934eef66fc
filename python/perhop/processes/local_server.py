"""The base of perhop's servers for this machine: no request makes one hang, fail or print."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from socketserver import ThreadingMixIn
from typing import TypeAlias

_Connection: TypeAlias = "socket.socket | tuple[bytes, socket.socket]"
_Address: TypeAlias = "tuple[str, int] | str | bytes"


class Patience(ThreadingMixIn):
    """A server that answers several clients at once, and gives up those who are slow.

    Attributes:
        patience: The longest that a client may take, in seconds.
        clients: As many are answered at once; for more, the connection is closed.
    """

    daemon_threads = True
    patience = 2.0
    clients = 32

    def process_request(self, request: _Connection, client_address: _Address) -> None:
        """Answer on a thread, if one is free."""
        free: threading.BoundedSemaphore = vars(self).setdefault(
            "_free", threading.BoundedSemaphore(self.clients)
        )
        if free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)  # type: ignore[attr-defined] # of the server beside this class

    def process_request_thread(self, request: _Connection, client_address: _Address) -> None:
        """Answer, or give up."""
        giving_up = threading.Timer(self.patience, _hang_up, [request])
        giving_up.daemon = True
        giving_up.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            giving_up.cancel()
            vars(self)["_free"].release()

    def handle_error(self, request: _Connection, client_address: _Address) -> None:
        """A client that went away, or was given up, is no reason to say anything."""


def _hang_up(connection: _Connection) -> None:
    if isinstance(connection, socket.socket):  # a server of datagrams would have others
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
