"""Arista EOS: transmit queues, QoS profiles and policers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers.dialect import Dialect
from perhop.routers.dialects.eos.reader import read

if TYPE_CHECKING:
    from perhop.routers.source import Source


def score(source: Source) -> float:
    """Transmit queues, QoS profiles and maps of traffic classes."""
    words = (r"(?:uc-|mc-)?tx-queue \d", r"qos profile \S", r"qos map (?:dscp|traffic-class) ",
             r"service-profile \S", r"policy-map type quality-of-service ",
             r"qos random-detect ecn ")  # fmt: skip
    return 10.0 * sum(source.starting(word) > 0 for word in words)


DIALECTS = (Dialect("eos", "Arista EOS", score=score, read=read),)
