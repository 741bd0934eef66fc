"""The pages of commands: what they say, in which order, and that any browser can show it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import polars as pl
import pytest

from perhop.output import summary

if TYPE_CHECKING:
    from perhop.simulation import Result


def test_the_waiting_time_distribution_ends_at_one_for_each_class() -> None:
    # Green: 3 of 4 packets within 1 ms, all within 2 ms, over two runs. Blue: 1 of 10, then all.
    delays = [
        *((seed, "uplink", "green", 0.001, packets) for seed, packets in ((1, 2), (2, 1))),
        (1, "uplink", "green", 0.002, 1),
        (1, "uplink", "blue", 0.001, 1),
        (2, "uplink", "blue", 0.005, 9),
        (1, "uplink", "all", 0.001, 14),
    ]
    columns = ["seed", "link", "class", "delay_s", "packets"]
    result = SimpleNamespace(
        delays=pl.DataFrame(delays, schema=columns, orient="row"),
        link_classes=pl.DataFrame({"link": ["uplink", "uplink"], "class": ["blue", "green"]}),
    )
    ((_, rows),) = summary._delay_plots(cast("Result", result))
    shares = {(row.factors["class"], row.factors["delay_ms"]): row.mean for row in rows}
    assert shares == pytest.approx(
        {("green", 1.0): 0.75, ("green", 2.0): 1.0, ("blue", 1.0): 0.1, ("blue", 5.0): 1.0}
    )
