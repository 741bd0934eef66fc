"""The paper's sentences under other settings: what it leaves open, one choice at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from perhop.studies.assumptions import Place, map_of
from perhop.studies.study import Study
from perhop.studies.yeom import aggregates, fig3, rtt, ten_flows, udp
from perhop.studies.yeom.aggregates import FIG11, FIG12
from perhop.studies.yeom.common import FIG12_WINDOW, PAPER, SETTING, THIS, Setting
from perhop.studies.yeom.fig3 import FIG3
from perhop.studies.yeom.rtt import TABLE2, TABLE3
from perhop.studies.yeom.table1 import TABLE1
from perhop.studies.yeom.udp import FIG9, FIG10

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
"""The stated setting with one choice changed, by assumption and value."""


def studies(setting: Setting) -> Sequence[Study]:
    """The printed items under a setting; Figure 12 keeps its window unless the setting changes that."""
    window = FIG12_WINDOW if setting.receiver_window == SETTING.receiver_window else setting.receiver_window
    in_time = replace(setting, receiver_window=window)

    def here(study: Study, build: Callable[..., Mapping[str, Any]], own: Setting = setting) -> Study:
        return replace(study, scenario=partial(build, setting=own))

    return [
        replace(here(TABLE1, ten_flows.build), samples=partial(ten_flows.samples, packet=setting.packet)),
        replace(here(FIG3, ten_flows.build), samples=partial(fig3.samples, packet=setting.packet)),
        here(FIG9, udp.fig9_build),
        here(FIG10, udp.fig10_build),
        here(TABLE2, rtt.build),
        here(TABLE3, rtt.build),
        here(FIG11, aggregates.fig11_build),
        here(FIG12, aggregates.fig12_build, in_time),
    ]


MAP = map_of(
    "yeom",
    "What the sentences depend on",
    f"{PAPER}: settings that it leaves open",
    stated=PRINTED,
    places=[
        Place(assumption, value, studies(setting))
        for assumption, values in CHOICES.items()
        for value, setting in values.items()
    ],
    statement=THIS.item("map"),
    runs=10,
)
