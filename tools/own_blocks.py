"""The smallest class of a user's own in each role, for probes of what runs on real packets."""

from __future__ import annotations

import perhop
from perhop.blocks.plugins import Color


class OwnAqm(perhop.Aqm):
    """A queue without a limit."""

    def on_arrival(self, *_: object) -> perhop.Verdict:
        """Admits every packet."""
        return perhop.Verdict.PASS


class OwnMeter(perhop.Meter):
    """A meter to which all is in profile."""

    def on_packet(self, *_: object) -> Color:
        """Colors every packet green."""
        return "green"


class OwnApplication(perhop.Application):
    """A user who does nothing."""

    def on_start(self, *_: object) -> None:
        """Asks for nothing."""


class OwnControl(perhop.CongestionControl):
    """A window that stays."""

    def on_ack(self, *_: object) -> None:
        """Changes nothing."""
