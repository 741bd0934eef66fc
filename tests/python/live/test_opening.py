"""What this machine's kernel does after SYNs that were lost: the rule of `tcp = "linux"`."""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="of Linux")

TCP_INFO = 11
SSTHRESH, CWND, TOTAL_RETRANS = 17, 18, 23
"""Places among the numbers of `tcp_info` behind its first eight bytes."""
INFINITE = 0x7FFFFFFF


def _opened_after(lost: int, found: dict[int, tuple[int, int]]) -> None:
    """Opens a connection to a host whose queue of connections is full until so many SYNs are lost."""
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as server,
        socket.create_connection(server.getsockname()),
        socket.socket() as client,
    ):
        client.setblocking(False)  # noqa: FBT003
        client.connect_ex(server.getsockname())
        while _numbers(client)[TOTAL_RETRANS] < lost - 1:
            time.sleep(0.01)
        time.sleep(0.1)
        server.accept()[0].close()
        while _numbers(client)[TOTAL_RETRANS] < lost:
            time.sleep(0.01)
        time.sleep(0.1)
        numbers = _numbers(client)
        found[lost] = numbers[CWND], numbers[SSTHRESH]


def _numbers(client: socket.socket) -> tuple[int, ...]:
    return struct.unpack_from("8x24I", client.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256))


def test_the_first_window_is_one_segment_after_more_than_one_lost_syn_and_no_threshold_is_left() -> None:
    found: dict[int, tuple[int, int]] = {}
    threads = [threading.Thread(target=_opened_after, args=(lost, found), daemon=True) for lost in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == {1: (10, INFINITE), 2: (1, INFINITE)}
