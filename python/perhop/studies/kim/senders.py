"""Table 1 under every TCP that the paper may have had, and under later ones.

The paper says "TCP NewReno" and "ns 2.1a4"; window, clock and acknowledgements it does not say. Each setting
is held against the 35 rates that Table 1 prints, the misprint of best effort under Best RIO apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from perhop.measures.fairness import rmse
from perhop.show.declared import Axis, Factors, Row, Table
from perhop.statistics.judging import Judgement, above, at_most, below, fact, judge
from perhop.studies.evidence import Evidence
from perhop.studies.judges import Judge, Numbers, differences, of_runs
from perhop.studies.kim import table1
from perhop.studies.kim.common import LINUX_TCP, PAPER, THIS, Change, corrected, entries
from perhop.studies.kim.table1 import OUT_SETS, by_class, ri_plus_o
from perhop.studies.sampling import MBPS

JUDGED = "judged"
STEADY = {"newreno-timer": "slow-but-steady"}
RFC_6582 = {"tcp": "newreno"}
SETTINGS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    JUDGED: ("ns-1998, window 122: judged", {}),
    "window-64": ("window 64", {"window": "64p"}),
    "window-100": ("window 100", {"window": "100p"}),
    "window-1000": ("window 1000: never limits", {"window": "1000p"}),
    "ssthresh-20": ("first ssthresh 20", {"initial-ssthresh": "20p"}),
    "window-1000-ssthresh-20": (
        "window 1000, first ssthresh 20",
        {"window": "1000p", "initial-ssthresh": "20p"},
    ),
    "delayed-ack": ("delayed ACKs, 100 ms", {"delayed-ack": "100ms"}),
    "deflation": ("deflation of RFC 2582", {"partial-window-deflation": "by-acknowledged"}),
    "impatient": ("impatient timer (an option since August 1998)", {"newreno-timer": "impatient"}),
    "real": ("round trip in real numbers", {"rtt-arithmetic": "real"}),
    "tick-10": ("tick 10 ms", {"tick": "10ms"}),
    "newreno-1000": ("newreno of RFC 6582, window 1000", {**RFC_6582, "window": "1000p"}),
    "newreno": ("newreno of RFC 6582", RFC_6582),
    "steady-ssthresh-20": (
        "newreno, slow-but-steady, window 1000, first ssthresh 20",
        {**RFC_6582, **STEADY, "window": "1000p", "initial-ssthresh": "20p"},
    ),
    "reno": ("Reno, tick 100 ms", {"tcp": "reno", "tick": "100ms", "rtt-arithmetic": "fixed-point"}),
    "sack": ("SACK", {**RFC_6582, "sack": True}),
    "linux": ("Linux", LINUX_TCP),
}
OWN: Factors = {"scheme": "own-rio", "out": "own"}
"""The row of the best RIO of these senders, where it is searched for."""
OWN_SETS = {"steady-ssthresh-20": "5/15/0.1", "delayed-ack": "30/90/0.1", "sack": "5/15/0.01"}
"""Each sender's IN+OUT set: of the 28 of kim-best-rio that of the smallest error in 8 runs on other seeds."""
BEST, STATED = "best", "stated"


def cell(setting: str, row: Factors) -> dict[str, Any]:
    """One row of Table 1 under one setting."""
    return {"tcp": setting, **row}


def build(found: Factors) -> Mapping[str, Any]:
    """The row's scenario with other senders."""
    setting = str(found["tcp"])
    row = {key: value for key, value in found.items() if key != "tcp"}
    made = table1.network("rio", OWN_SETS[setting]) if row == OWN else table1.build(row)
    return sent_by(setting)(made)


def sent_by(setting: str) -> Change:
    """Change a scenario's senders to those of a setting."""
    changes = SETTINGS[setting][1]

    def changed(entry: Mapping[str, Any]) -> Mapping[str, Any]:
        kept = entry["transport"]
        if "tcp" in changes:
            kept = {key: kept[key] for key in ("packet", "window")}
        return {**entry, "transport": {**kept, **changes}}

    return entries(changed)


def printed() -> dict[tuple[tuple[str, Any], ...], float]:
    """The 35 rates, by the row's factors and the class."""
    return {
        tuple(value.factors.items()): value.value
        for value in table1.TABLE1.published
        if value.metric == "throughput" and not value.misprint
    }


def distance(evidence: Evidence, setting: str, best: Factors) -> float:
    """Root-mean-square difference from the printed rates, with this row in the place of Best RIO."""
    means = []
    for key in printed():
        factors = dict(key)
        row = {name: factors[name] for name in ("scheme", "out")}
        found = cell(setting, best if row == table1.RIO else row)
        means.append(evidence.mean("throughput", by_class(found, factors["profile_mbps"])))
    return rmse(means, list(printed().values()))


def distances(evidence: Evidence) -> Iterator[Row]:
    """The distance of every setting, with either row of RIO."""
    bases = {BEST: table1.RIO, STATED: table1.STATED}
    for setting in SETTINGS:
        for name, row in bases.items():
            found = distance(evidence, setting, row)
            yield evidence.row({"tcp": setting, "best_rio": name}, "distance", MBPS, found)
        for out, (name, row) in itertools.product(table1.TIGHTEST, bases.items()):
            gain = evidence.difference(
                "throughput", by_class(cell(setting, ri_plus_o(out)), 2.0), by_class(cell(setting, row), 2.0)
            )
            factors = {"tcp": setting, "best_rio": name, "out": out}
            yield Row(factors, "gain", MBPS, None, gain.mean, gain.ci95, gain.runs)


def judged_is_near(evidence: Evidence) -> Judgement:
    """The judged setting differs from the printed rates by .045 Mbit/s at most."""
    best, stated = (distance(evidence, JUDGED, row) for row in (table1.RIO, table1.STATED))
    return judge(
        fact(holds=max(best, stated) <= NEAR),
        f"{best:.4f} Mbit/s with {table1.BEST_SET} as Best RIO, {stated:.4f} with {table1.STATED_SET}.",
    )


def judged_is_not_the_nearest(evidence: Evidence) -> Judgement:
    """Some other setting is nearer to the printed rates than the judged one."""
    found = {setting: distance(evidence, setting, table1.RIO) for setting in SETTINGS}
    order = sorted(found, key=lambda setting: found[setting])
    text = "; ".join(f"{SETTINGS[setting][0]} {found[setting]:.4f}" for setting in order[:5])
    return judge(fact(holds=order[0] != JUDGED), f"Nearest first, Mbit/s: {text}.")


def own(setting: str) -> Factors:
    """The cell of these senders' own best RIO."""
    return cell(setting, table1.RIO if OWN_SETS[setting] == table1.BEST_SET else OWN)


def _errors(setting: str) -> Numbers:
    """The error of each OUT set − that of these senders' own best RIO; intervals for five comparisons."""
    pairs = {out: (cell(setting, ri_plus_o(out)), own(setting)) for out in OUT_SETS}
    return differences("rmse", pairs).mapped(lambda found: corrected(found, len(OUT_SETS)))


def _best(evidence: Evidence, setting: str) -> str:
    """The OUT set of the smallest error in words: against these senders' best RIO, and against Table 1's."""
    ((best, error),) = _errors(setting).lowest()(evidence).items()
    mine, rio = cell(setting, ri_plus_o(best)), own(setting)
    rates = {
        table1.NAMES[rate]: evidence.difference("throughput", by_class(mine, rate), by_class(rio, rate))
        for rate in (2.0, 1.0, 0.0)
    }
    text = "; ".join(f"{name} {found.text(sign=True)}" for name, found in rates.items())
    fixed = evidence.difference("rmse", mine, cell(setting, table1.RIO))
    return (
        f"RI+O {best} − RIO {OWN_SETS[setting]}, Mbit/s, error {error.text(sign=True)} of "
        f"{evidence.estimate('rmse', rio).text()}; {text}. Error − that of RIO {table1.BEST_SET}: "
        f"{fixed.text(sign=True)}."
    )


def gains(setting: str) -> Judge:
    """Judge whether with these senders an OUT set has a smaller error than their best RIO."""
    return _errors(setting).any(below).said("{best}", best=partial(_best, setting=setting))


def _more_of_rio(fixed: float, mine: float, ours: float) -> float:
    return (fixed - mine) - (mine - ours)


def gain_is_of_rio(setting: str) -> Judge:
    """Judge whether most of the gain over RIO's fixed set is that of these senders' own set of RIO."""
    fixed, mine = ("rmse", cell(setting, table1.RIO)), ("rmse", own(setting))
    others = {out: ("rmse", cell(setting, ri_plus_o(out))) for out in OUT_SETS}
    more = of_runs({out: (_more_of_rio, fixed, mine, ours) for out, ours in others.items()})
    return more.all(above).said("{best}", best=partial(_best, setting=setting))


def _rfc_6582_gains_nothing() -> Judge:
    """Judge whether with NewReno of RFC 6582 neither of the tightest sets beats the stated RIO."""
    pairs = {
        f"{SETTINGS[setting][0]}, {out}": (
            by_class(cell(setting, ri_plus_o(out)), 2.0),
            by_class(cell(setting, table1.STATED), 2.0),
        )
        for setting in ("newreno", "newreno-1000")
        for out in table1.TIGHTEST
    }
    found = differences("throughput", pairs).reads("{name}: {value}", "; ")
    return found.all(at_most, SMALL_GAIN).said(f"RI+O − RIO {table1.STATED_SET}, Mbit/s, {{:+}}.")


NEAR = 0.045
SMALL_GAIN = 0.03
"""A gain below this, about one and a half times the published one over Best RIO, counts as none."""

NAMES = Axis("tcp", "Senders", {name: text for name, (text, _) in SETTINGS.items()})
BASES = Axis("best_rio", "RIO", {BEST: f"Best RIO {table1.BEST_SET}", STATED: table1.STATED_SET})

SENDERS = THIS.study(
    "senders",
    title="Table 1 under the TCPs that the paper may have had, and later ones",
    source=f"{PAPER}, Table 1: the TCP's options, which it does not state",
    summary="seventeen settings of the senders, each with the table's seven queues",
    cells=[
        *(cell(setting, row) for setting in SETTINGS for row in table1.CELLS),
        *(cell(setting, OWN) for setting, own in OWN_SETS.items() if own != table1.BEST_SET),
    ],
    scenario=build,
    samples=table1.samples,
    judges={
        "judged-is-near": judged_is_near,
        "judged-is-not-the-nearest": judged_is_not_the_nearest,
        "steady-gains": gains("steady-ssthresh-20"),
        "delayed-ack-gains": gains("delayed-ack"),
        "sack-gain-is-of-rio": gain_is_of_rio("sack"),
        "none-with-rfc-6582": _rfc_6582_gains_nothing(),
    },
    tables=(
        Table(
            "Root-mean-square difference from the 35 printed rates, Mbit/s, by the row taken for Best RIO",
            {"distance": ""},
            NAMES,
            (BASES,),
            digits=4,
        ),
        Table(
            "RI+O − RIO for the 2 Mbit/s class, Mbit/s, by OUT set and by RIO's set",
            {"gain": ""},
            NAMES,
            (Axis("out", "OUT set", {out: out for out in table1.TIGHTEST}), BASES),
        ),
        Table(
            "Throughput of a 2 Mbit/s flow, Mbit/s",
            {"throughput": ""},
            NAMES,
            (table1.ROWS,),
            where={"profile_mbps": 2.0},
        ),
    ),
    plots=(),
    summaries=distances,
    extra=True,
    default_runs=16,
)
