"""Captures, packet by packet; as a program, `examples/capture.pcap`."""

from __future__ import annotations

import random
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

UDP, TCP = 17, 6


@dataclass(frozen=True, slots=True)
class Packet:
    """An IPv4 packet: its time in nanoseconds, its size, its codepoint, its source and its destination."""

    time: int
    size: int
    dscp: int = 0
    source: tuple[str, int] = ("10.0.0.1", 5000)
    to: tuple[str, int] = ("10.1.0.1", 443)
    protocol: int = UDP
    ecn: int = 0

    def headers(self) -> bytes:
        """The packet's headers of IP and of UDP or TCP."""
        addresses = [bytes(map(int, address.split("."))) for address, _ in (self.source, self.to)]
        fields = (0x45, self.dscp << 2 | self.ecn, self.size, 1, 0x4000, 61, self.protocol, 0, *addresses)
        header = bytearray(struct.pack(">BBHHHBBH4s4s", *fields))
        total = sum(struct.unpack(">10H", header))
        total = (total >> 16) + (total & 0xFFFF)
        header[10:12] = struct.pack(">H", ~(total + (total >> 16)) & 0xFFFF)
        ports = (self.source[1], self.to[1])
        if self.protocol == TCP:
            return bytes(header) + struct.pack(">HHIIBBHHH", *ports, 1, 1, 0x50, 0x10, 1000, 0, 0)
        return bytes(header) + struct.pack(">HHHH", *ports, self.size - 20, 0)


def pcap(packets: Iterable[Packet], *, captured: int = 65535) -> bytes:
    """A pcap file with times in nanoseconds and Ethernet frames, of which the first bytes are captured."""
    out = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, captured, 1)]
    for packet in packets:
        length = 14 + packet.size
        frame = bytes.fromhex("020000000001020000000002") + b"\x08\x00" + packet.headers()
        frame += bytes(max(0, min(length, captured) - len(frame)))
        frame = frame[:captured]
        time = 1_700_000_000_000_000_000 + packet.time
        out += [struct.pack("<IIII", time // 10**9, time % 10**9, len(frame), length), frame]
    return b"".join(out)


def poisson(packets: int, mean_gap_ns: float, size: int, seed: int = 1) -> list[Packet]:
    """Packets of one size whose gaps are exponential."""
    chance, at, drawn = random.Random(seed), 0.0, []  # noqa: S311 - no secret
    for _ in range(packets):
        at += chance.expovariate(1 / mean_gap_ns)
        drawn.append(Packet(round(at), size))
    return drawn


def example() -> bytes:
    """0.35 s at the edge of two customers: calls, bursts in AF1, a constant rate in AF2, downloads."""
    chance = random.Random(1)  # noqa: S311 - no secret
    packets: list[Packet] = []

    def paced(gap_us: float, size: int, dscp: int, host: str, *, protocol: int = UDP, burst: int = 1) -> None:
        at = chance.uniform(0, gap_us)
        while at < 350_000:
            for number in range(burst):
                time = round((at + number * 12.0 + chance.uniform(0, 5)) * 1000)
                source = (host, 5004 if dscp == 46 else 443)
                to = ("10.1.0.7", 40_000 + int(host.rsplit(".", 1)[1]))
                packets.append(Packet(time, size, dscp, source, to, protocol))
            at += chance.uniform(0, 2 * gap_us) if burst > 1 else gap_us

    for host in ("192.0.2.1", "192.0.2.2"):
        paced(20_000, 200, 46, host)
    for host in ("198.51.100.1", "198.51.100.2", "198.51.100.3"):
        paced(32_000, 1500, 10, host, burst=8)
    paced(1_150, 1500, 18, "203.0.113.9")
    paced(60_000, 1500, 0, "203.0.113.80", protocol=TCP, burst=6)
    packets.sort(key=lambda packet: packet.time)
    return pcap(packets, captured=54)


def main(arguments: Sequence[str]) -> None:
    """Write the example."""
    Path(arguments[0]).write_bytes(example())


if __name__ == "__main__":
    main(sys.argv[1:])
