"""The defaults of `tcp = "linux"` beside this machine's kernel: its settings, and a fresh connection."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.python.live.living import needs_live, skip_unless_valid

import perhop as package
from perhop.runs import simulate
from perhop.scenario import reading

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not Path("/proc/sys/net/ipv4/tcp_rmem").exists(), reason="of Linux"
)

SCENARIO = """
duration = "10s"
links.l = { from = "a", to = "b", rate = "10Mbps", delay = "10ms" }
[[flows]]
name = "f"
from = "a"
to = "b"
transport = { tcp = "linux" }
"""
FRESH = """
import json, socket, struct, sys, threading
AT = {"snd_mss": 16, "snd_cwnd": 80, "snd_wnd": 228}

def numbers(sock):
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return {name: struct.unpack_from("I", info, at)[0] for name, at in AT.items() if at + 4 <= len(info)}

with (
    socket.create_server(("127.0.0.1", 0)) as server,
    socket.create_connection(server.getsockname()) as client,
):
    peer = server.accept()[0]
    found = {"fresh": numbers(client), "windows": []}
    def drain():
        while peer.recv(1 << 20):
            pass
    if sys.argv[1] == "drains":
        threading.Thread(target=drain, daemon=True).start()
    client.settimeout(1)
    try:
        for _ in range(600):
            client.send(bytes(1 << 18))
            found["windows"].append(numbers(client).get("snd_wnd", 0))
    except TimeoutError:
        pass
    found["windows"].append(numbers(client).get("snd_wnd", 0))
    print(json.dumps(found))
"""


def preset() -> dict[str, Any]:
    """All keys of the preset."""
    transport: dict[str, Any] = json.loads(reading.canonical(SCENARIO))["flows"][0]["transport"]
    return transport


def size(text: str) -> int:
    """Bytes, as canonical scenarios have them."""
    factors = {"B": 1, "kB": 1000, "MB": 10**6}
    found = re.fullmatch(r"([0-9.]+)([kM]?B)", text)
    assert found is not None, text
    number, unit = found.groups()
    return round(float(number) * factors[unit])


def setting(name: str) -> list[int]:
    """The numbers of a setting of the kernel."""
    return [int(number) for number in Path(f"/proc/sys/net/ipv4/{name}").read_text(encoding="ascii").split()]


def release() -> tuple[int, int]:
    """The kernel's version."""
    major, minor = platform.release().split(".")[:2]
    return int(major), int(re.sub(r"\D.*", "", minor))


def fresh(*, drains: bool) -> dict[str, Any]:
    """A connection over a loopback of 1500 bytes, in a network namespace of its own."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("needs unshare and ip")
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    script = 'ip link set lo mtu 1500 up && exec "$0" -c "$1" "$2"'
    drain = "drains" if drains else "waits"
    inside = ["sh", "-c", script, sys.executable, FRESH, drain]
    done = subprocess.run(
        ["unshare", "--net", *user, *inside], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        pytest.skip(f"no network namespace here: {done.stderr.strip()[-200:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_receive_window_is_half_of_the_largest_receive_buffer() -> None:
    if release() < (6, 16):
        pytest.skip("the maximum is 32 MiB since Linux 6.16, and was 6 MiB before")
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 5 << 30:
        pytest.skip("the maximum is smaller on hosts with little memory")
    least, default, most = setting("tcp_rmem")
    assert (least, default) == (4096, 131_072)
    assert size(preset()["window"]) == most // 2


def test_the_send_buffer_is_the_largest_one() -> None:
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 1 << 30:
        pytest.skip("the maximum is smaller on hosts with little memory")
    assert setting("tcp_wmem")[2] == size(preset()["send-buffer"])


@pytest.mark.parametrize("name", ["tcp_sack", "tcp_timestamps", "tcp_moderate_rcvbuf", "tcp_recovery"])
def test_what_the_preset_has_is_on(name: str) -> None:
    # SACK, 12 bytes of options in each header, a window that is tuned, RACK.
    assert (preset()["sack"], preset()["ack"], preset()["window-tuning"], preset()["loss-detection"]) == (
        True,
        "52B",
        "linux",
        "rack",
    )
    if not Path(f"/proc/sys/net/ipv4/{name}").exists():
        pytest.skip("this kernel has no such setting")
    assert setting(name)[0] & 1


def test_a_fresh_connection_has_the_presets_segments_windows_and_buffers() -> None:
    found, ours = fresh(drains=True), preset()
    payload = size(ours["packet"]) - size(ours["ack"])
    assert found["fresh"]["snd_mss"] == payload == 1448
    assert f"{found['fresh']['snd_cwnd']}p" == ours["initial-window"]
    if not found["fresh"].get("snd_wnd"):
        pytest.skip("this kernel does not tell the window that the peer offers")
    assert found["fresh"]["snd_wnd"] == 65_535 // payload * payload, "whole segments without scaling"


def test_the_window_grows_as_the_receiver_drains_and_not_otherwise() -> None:
    first = fresh(drains=True)
    if not first["fresh"].get("snd_wnd"):
        pytest.skip("this kernel does not tell the window that the peer offers")
    grown, waiting = max(first["windows"]), max(fresh(drains=False)["windows"])
    # A receiver that takes nothing offers no more than what its first buffer holds.
    assert waiting <= setting("tcp_rmem")[1]
    assert grown > 4 * waiting
    assert grown <= setting("tcp_rmem")[2]


BURSTS = """\
duration = "4s"
live = { max-lateness = "100ms" }
[links.l]
from = "server"
to = "client"
rate = "10Mbps"
delay = "20ms"
queue = { aqm = "drop-tail", limit = "5p" }
[[flows]]
name = "user"
from = "server"
to = "client"
transport = { tcp = "linux" }
application = { model = "request-response", think = "500ms", response = "14480B" }
"""


@needs_live
def test_the_kernels_cubic_is_not_paced() -> None:
    # Ten segments leave at once, more than the queue takes. Where the machine's default was BBR, its pacing
    # stayed on: two segments in 5 ms, which the link carries, and half as many drops as in the simulation.
    result = package.live(BURSTS)
    skip_unless_valid(result)
    simulated = simulate.run(BURSTS, runs=4).links["dropped_packets"].to_numpy().mean()
    assert result.links["dropped_packets"][0] > 0.75 * simulated
