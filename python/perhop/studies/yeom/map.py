"""The paper's sentences under other settings: what it leaves open, one choice at a time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from perhop.studies.assumptions import Place, map_of
from perhop.studies.yeom import aggregates, rtt, ten_flows, udp
from perhop.studies.yeom.aggregates import FIG11, FIG12
from perhop.studies.yeom.common import FIG12_WINDOW, PAPER, SETTING, THIS, Setting
from perhop.studies.yeom.rtt_studies import TABLE2, TABLE3
from perhop.studies.yeom.table1 import FIG3, TABLE1
from perhop.studies.yeom.udp import FIG9, FIG10

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perhop.studies.study import Study

RUNS = 10
PRINTED = (TABLE1, FIG3, FIG9, FIG10, TABLE2, TABLE3, FIG11, FIG12)
"""The studies of what the paper prints."""

CHOICES: Mapping[str, Mapping[str, Setting]] = {
    "Receiver's window, packets": {
        f"{window}": replace(SETTING, receiver_window=window) for window in (20, 32, 64, 1000)
    },
    "TCP's clock": {"10 ms": replace(SETTING, tick="10ms")},
    "TCP's first timeout": {"3 s": replace(SETTING, initial_rto="3s")},
    "TCP's shortest timeout": {"1 s": replace(SETTING, min_rto="1s")},
    "Packets, bytes": {f"{size}": replace(SETTING, packet=size) for size in (576, 1500)},
    "UDP packets, bytes": {"210": replace(SETTING, udp_packet=210)},
    "Buffer, packets": {f"{limit}": replace(SETTING, limit=limit) for limit in (100, 400)},
    "RED's wait rule": {"off": replace(SETTING, wait=False)},
    "RED's weight": {f"{weight}": replace(SETTING, weight=weight) for weight in (0.0005, 0.02)},
    "RED's averages": {"of their own class": replace(SETTING, averages="own-class")},
    "Markers' window": {
        name: replace(SETTING, window=window)
        for name, window in (("0.1 s", "100ms"), ("0.5 s", "500ms"), ("10 s", "10s"))
    },
    "Markers' rule": {
        "deterministic": replace(SETTING, rule="deterministic"),
        "4/3": replace(SETTING, rule="four-thirds"),
    },
    "Marker of two-windows": {
        "as all others": replace(SETTING, sender_window=SETTING.window, sender_rule=SETTING.rule),
        "4/3 in 0.4 s": replace(SETTING, sender_window="400ms"),
        "4/3 in 1 s": replace(SETTING, sender_window="1s"),
    },
    "OUT-OUT": {
        "above 4/3 r": replace(SETTING, split="four-thirds"),
        "share (R − r)/r": replace(SETTING, split="proportional"),
        "share (R − r)/R": replace(SETTING, split="same-rule"),
    },
    "Average for OUT-IN": {"IN and OUT-IN": replace(SETTING, out_in_average="in-and-out-in")},
    "No-OUT's word to the sender": {"after 40 ms": replace(SETTING, feedback="40ms")},
    "Starts": {"in the first second": replace(SETTING, start="0s..1s")},
}
"""By assumption and value: the stated setting with that choice."""


def studies(setting: Setting) -> Sequence[Study]:
    """What the paper prints, under a setting; Figure 12 keeps its window unless the setting changes that."""
    window = FIG12_WINDOW if setting.receiver_window == SETTING.receiver_window else setting.receiver_window
    in_time = replace(setting, receiver_window=window)
    return [
        replace(
            TABLE1,
            scenario=partial(ten_flows.build, setting=setting),
            samples=partial(ten_flows.samples, packet=setting.packet),
        ),
        replace(
            FIG3,
            scenario=partial(ten_flows.build, setting=setting),
            samples=partial(ten_flows.fig3_samples, packet=setting.packet),
        ),
        replace(FIG9, scenario=partial(udp.fig9_build, setting=setting)),
        replace(FIG10, scenario=partial(udp.fig10_build, setting=setting)),
        replace(TABLE2, scenario=partial(rtt.build, setting=setting)),
        replace(TABLE3, scenario=partial(rtt.build, setting=setting)),
        replace(FIG11, scenario=partial(aggregates.fig11_build, setting=setting)),
        replace(FIG12, scenario=partial(aggregates.fig12_build, setting=in_time)),
    ]


MAP = map_of(
    "yeom",
    "What the sentences hang on",
    f"{PAPER}: settings that it leaves open",
    stated=PRINTED,
    places=[
        Place(assumption, value, studies(setting))
        for assumption, values in CHOICES.items()
        for value, setting in values.items()
    ],
    statement=THIS.item("map"),
    runs=RUNS,
)
