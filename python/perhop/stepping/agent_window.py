"""The congestion control of a flow whose window an agent sets: that of `perhop.gym.CongestionEnv`."""

from __future__ import annotations

from perhop._engine import Ack, Loss, Random
from perhop.blocks.plugins import CongestionControl


class AgentWindow(CongestionControl):
    """Holds the window that is set from outside, whatever is lost.

    Attributes:
        segments: The window in segments, at least 1; `Simulation.set` changes it during a run.
    """

    segments: float = 10.0

    def on_ack(self, ack: Ack, now: int, random: Random) -> None:  # noqa: ARG002 - as the engine calls it
        """The window is what was set last."""
        self.window = max(1.0, self.segments)

    def on_loss(self, loss: Loss, now: int, random: Random) -> None:
        """The sender repairs what is lost; the agent decides about the window."""

    def on_timeout(self, loss: Loss, now: int, random: Random) -> None:  # noqa: ARG002 - likewise
        """One segment, until the next ACK."""
        self.window = 1.0
