"""Measure the rates of a tree of htb in this network namespace: `htb_kernel.py COMMANDS CLASSES SECONDS`.

Packets go through one end of a pair of devices; the other end drops them. A sender for each class always has
packets: its socket blocks until the queue has room. Prints the bit/s of each class as JSON.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
import time

DEVICE = "out0"
PAYLOAD = 1000
"""With the headers of UDP, IP and Ethernet, which htb counts, 1042 bytes."""
WARMUP_S = 1.0
BACKLOG = 1 << 19
"""Send buffer of a class in bytes: a quarter of a second of packets, if its sender waits for the CPU."""
LINK = f"""\
ip link add {DEVICE} type veth peer name in0
ip addr add 10.9.0.1/24 dev {DEVICE}
ip link set {DEVICE} up
ip link set in0 up
ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev {DEVICE}"""


def main(commands: str, classes: str, seconds: str) -> None:
    """Set up the device, load it, and read the counters of the classes twice."""
    subprocess.run(["sh", "-ec", f"{LINK}\n{commands}"], check=True)
    senders = json.loads(classes)
    for number, tos in enumerate(senders.values()):
        threading.Thread(target=_send, args=(int(tos), 9000 + number), daemon=True).start()
    time.sleep(WARMUP_S)
    before, began = _bytes(), time.monotonic()
    time.sleep(float(seconds))
    after, length = _bytes(), time.monotonic() - began
    sys.stdout.write(json.dumps({name: 8 * (after[name] - before[name]) / length for name in senders}))


def _send(tos: int, port: int) -> None:
    """Send as fast as the queue takes it."""
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
    out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BACKLOG)
    out.connect(("10.9.0.2", port))
    payload = bytes(PAYLOAD)
    while True:
        out.send(payload)


def _bytes() -> dict[str, int]:
    """The bytes that each class has sent, by its handle."""
    shown = subprocess.run(
        ["tc", "-s", "class", "show", "dev", DEVICE], capture_output=True, text=True, check=True
    )
    found = re.findall(r"class htb (\S+) .*?Sent (\d+) bytes", shown.stdout, re.DOTALL)
    return {handle: int(count) for handle, count in found}


if __name__ == "__main__":
    main(*sys.argv[1:])
