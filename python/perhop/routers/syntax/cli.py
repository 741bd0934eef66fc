"""Command lines of devices in the manner of Cisco: words, comments, and which commands are about queues."""

from __future__ import annotations

import re

COMMANDS = re.compile(
    r"(bandwidth|priority|rate|limit|police|policy|shape|traffic-shape|random-detect|fair-queue|custom-queue|wred|red|"
    r"drop|service-policy|(rcv-|tx-|uc-tx-|mc-tx-|wrr-|srr-)?queue(?!-monitor)|wrr|srr|qos|scheduler|buffers?)(-|$)"
)
"""The first word of interfaces' commands about queues and policers."""
OTHER_LINES = {
    "arp", "authentication", "bfd", "bundle", "carrier-delay", "cdp", "channel-group", "clock", "crypto",
    "dampening", "default", "delay", "dialer", "dot1q", "duplex", "encapsulation", "fec", "flow",
    "flowcontrol", "glbp", "hsrp", "ip", "ipv4", "ipv6", "isis", "keepalive", "l2transport", "lacp", "lldp",
    "load-interval", "logging", "mac-address", "media-type", "mpls", "mtu", "negotiation", "no", "ntp",
    "ospf", "ospfv3", "peer", "ppp", "pppoe", "pppoe-client", "shutdown", "snmp", "source", "spanning-tree",
    "standby", "storm-control", "switchport", "tcp", "tunnel", "udld", "vpc", "vrf", "vrrp", "xconnect",
    "zone-member", "auto", "max-reserved-bandwidth", "trust",
}  # fmt: skip
"""Commands of interfaces that are known not to be about queues."""


def about_queues(words: list[str]) -> bool:
    """Whether a command of an interface is about priority, rate, limit, drop or match, by its first words.

    >>> [
    ...     about_queues(text.split())
    ...     for text in ("srr-queue bandwidth share 1 30", "no ip rsvp bandwidth", "qos x")
    ... ]
    [True, False, True]
    """
    words = [word.lower() for word in words if word.lower() not in {"no", "mls"}]
    return bool(words) and COMMANDS.match(words[0]) is not None


def words_of(text: str) -> list[str]:
    """The words of a line before a comment, which `!` begins, at the head of a line also `#`.

    >>> (
    ...     words_of(" police rate 2 mbps   ! gold"),
    ...     words_of("!! IOS XR"),
    ...     words_of("description ! not a comment"),
    ... )
    (['police', 'rate', '2', 'mbps'], [], ['description', '!', 'not', 'a', 'comment'])
    """
    words = text.split()
    if words and words[0].lower() == "description":
        return words
    if words and words[0].startswith("#"):
        return []
    end = next((at for at, word in enumerate(words) if word.startswith("!")), len(words))
    return words[:end]
