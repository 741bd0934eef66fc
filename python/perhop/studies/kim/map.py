"""The map of the paper's assumptions: every claim with one of them changed at a time.

Beside the senders these are packets, buckets, RED's averaging and spacing of drops, the access links, and the
OUT set of Figure 3 at Table 1's queue. The studies have fewer levels and sets there, and fewer runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from perhop.show.declared import Factors
from perhop.studies.assumptions import Place, everywhere, map_of
from perhop.studies.kim import best_rio, expansion, fig2, fig3, senders, table1
from perhop.studies.kim.common import PAPER, THIS, Change, entries, packets, queue

FLOWS = {40: (6, 11, 14, 16, 18, 20, 22, 26, 46, 96), 50: (6, 8, 9, 10, 11, 12, 14, 16, 26, 96)}
"""Best-effort flows of Figure 2 by subscription in percent."""
LEVELS = {0.5: (10, 30, 50, 70, 80, 90), 1.0: (10, 30, 50, 60, 65, 70, 75, 80), 2.0: (10, 20, 30, 40, 50, 60)}
"""Subscriptions of Figure 3 in percent by profile."""
SETS = {("347/694", 0.01), ("347/694", 0.1), ("60/180", 0.01), ("30/90", 0.1), ("5/15", 0.01), ("5/15", 0.1)}
"""IN+OUT sets of RIO."""


def _in_figures(cell: Factors) -> bool:
    """Whether a point of Figure 2, or of Figure 3, is on the map."""
    if "best_effort_flows" in cell:
        return cell["best_effort_flows"] in FLOWS[int(cell["subscription_percent"])]
    return cell["subscription_percent"] in LEVELS[float(cell["profile_mbps"])]


def _in_regime(cell: Factors) -> bool:
    panel = expansion.PANELS.get(str(cell["panel"]))
    return panel is not None and _in_figures(panel.of_figure(cell))


STUDIES = (
    table1.TABLE1,
    *(
        replace(study, cells=[cell for cell in study.cells if kept(cell)])
        for study, kept in (
            (fig2.FIG2, _in_figures),
            (fig3.FIG3, _in_figures),
            (expansion.REGIME, _in_regime),
            (best_rio.BEST_RIO, lambda cell: (cell["thresholds"], cell["max_p"]) in SETS),
        )
    ),
)
"""The studies, with fewer cells."""


def bucket(depth: str) -> Change:
    """Set the depth of all token buckets."""

    def changed(entry: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**entry, "profile": {**entry["profile"], "burst": depth}} if "profile" in entry else entry

    return entries(changed)


def access(rate: str) -> Change:
    """Set the rate of the access links."""
    return entries(lambda entry: {**entry, "access": {**entry["access"], "rate": rate}})


def fig3_out(out: str) -> Change:
    """Set RI+O's OUT set of Figure 3 at Table 1's queue."""
    large = fig3.QUEUES["table-1"]

    def change(scenario: Mapping[str, Any]) -> Mapping[str, Any]:
        keys = scenario["links"]["bottleneck"]["queue"]
        is_it = scenario["title"] == fig3.TITLE and keys.get("out") == large["out"]
        return queue(out=out)(scenario) if is_it else scenario

    return change


SENDERS = {
    "Receiver's window": {"window-64": "64 packets", "window-100": "100", "window-1000": "1000"},
    "First threshold": {"ssthresh-20": "20", "window-1000-ssthresh-20": "20, window 1000"},
    "Sender": {
        "delayed-ack": "delayed ACKs",
        "deflation": "RFC 2582",
        "impatient": "impatient",
        "real": "real RTT",
        "tick-10": "tick 10 ms",
        "newreno": "RFC 6582",
        "newreno-1000": "RFC 6582, window 1000",
        "steady-ssthresh-20": "steady, 20, window 1000",
        "reno": "Reno",
        "sack": "SACK",
        "linux": "Linux",
    },
}
"""All of kim-senders but the judged one, by what they change."""
CHANGES: Mapping[str, Mapping[str, Change]] = {
    "Packets": {"1000 bytes": packets(1000)},
    "Buckets": {depth: bucket(depth.replace(" ", "")) for depth in ("20 kB", "30 kB", "40 kB")},
    "RED's weight": {"0.001": queue(weight=0.001), "0.005": queue(weight=0.005)},
    "Drops spaced": {"no": queue(wait=False)},
    "Access links": {"100 Mbit/s": access("100Mbps")},
    "Figure 3's OUT set": {"10/30/0.01": fig3_out("10/30/0.01"), "30/90/0.01": fig3_out("30/90/0.01")},
}


def places() -> Iterable[Place]:
    """Every assumption with each of its other values."""
    for assumption, values in SENDERS.items():
        for setting, value in values.items():
            yield everywhere(assumption, value, STUDIES, senders.sent_by(setting))
    for assumption, changes in CHANGES.items():
        for value, change in changes.items():
            yield everywhere(assumption, value, STUDIES, change)


MAP = map_of(
    "kim",
    "The claims under other assumptions",
    f"{PAPER}: what it leaves open, and later TCPs",
    stated=STUDIES,
    places=list(places()),
    statement=THIS.item("map"),
    runs=6,
)
