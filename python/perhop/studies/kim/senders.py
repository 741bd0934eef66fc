"""Table 1 under every TCP that the paper may have had, and under later ones.

The paper says "TCP NewReno" and "ns 2.1a4"; window, clock and acknowledgements it does not say. Each setting
is held against the 35 rates that Table 1 prints, the misprint of best effort under Best RIO apart.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from perhop.show.declared import Axis, Row, Table
from perhop.statistics.intervals import paired_difference
from perhop.statistics.judging import above, all_of, any_of, at_most, below, fact, judge
from perhop.studies.evidence import Evidence
from perhop.studies.kim import table1
from perhop.studies.kim.common import LINUX_TCP, PAPER, THIS, corrected
from perhop.studies.sampling import MBPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.statistics.intervals import Estimate
    from perhop.statistics.judging import Judgement
    from perhop.studies.evidence import Sample

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
ROWS: Sequence[Factors] = table1.CELLS
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


def sent_by(setting: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Change a scenario's senders to those of a setting."""
    changes = SETTINGS[setting][1]

    def transport(kept: Mapping[str, Any]) -> dict[str, Any]:
        return {**(_sizes(kept) if "tcp" in changes else kept), **changes}

    return lambda scenario: {
        **scenario,
        "flows": [{**entry, "transport": transport(entry["transport"])} for entry in scenario["flows"]],
    }


def _sizes(transport: Mapping[str, Any]) -> dict[str, Any]:
    return {key: transport[key] for key in ("packet", "window")}


def samples(found: Factors, run: Run) -> Iterator[Sample]:
    """The samples of Table 1."""
    return table1.samples(found, run)


def printed() -> dict[tuple[tuple[str, Any], ...], float]:
    """The 35 rates, by the row's factors and the class."""
    return {
        tuple(value.factors.items()): value.value
        for value in table1.TABLE1.published
        if value.metric == "throughput" and not value.misprint
    }


def distance(evidence: Evidence, setting: str, best: Factors) -> float:
    """Root-mean-square difference from the printed rates, with this row in the place of Best RIO."""
    squares = []
    for key, rate in printed().items():
        factors = dict(key)
        row = {name: factors[name] for name in ("scheme", "out")}
        row = dict(best) if row == dict(table1.RIO) else row
        measured = evidence.mean(
            "throughput", {**cell(setting, row), "profile_mbps": factors["profile_mbps"]}
        )
        squares.append((measured - rate) ** 2)
    return math.sqrt(math.fsum(squares) / len(squares))


def distances(evidence: Evidence) -> Iterator[Row]:
    """The distance of every setting, with either row of RIO."""
    for setting in SETTINGS:
        for name, row in ((BEST, table1.RIO), (STATED, table1.STATED)):
            yield Row(
                {"tcp": setting, "best_rio": name},
                "distance",
                MBPS,
                None,
                distance(evidence, setting, row),
                None,
                evidence.runs,
            )
        for out in table1.TIGHTEST:
            for name, row in ((BEST, table1.RIO), (STATED, table1.STATED)):
                found = evidence.difference(
                    "throughput",
                    {**cell(setting, table1.ri_plus_o(out)), "profile_mbps": 2.0},
                    {**cell(setting, row), "profile_mbps": 2.0},
                )
                yield Row(
                    {"tcp": setting, "best_rio": name, "out": out},
                    "gain",
                    MBPS,
                    None,
                    found.mean,
                    found.ci95,
                    found.runs,
                )


def judged_is_near(evidence: Evidence) -> Judgement:
    """The judged setting differs from the printed rates by .045 Mbit/s at most."""
    found = {
        name: distance(evidence, JUDGED, row) for name, row in ((BEST, table1.RIO), (STATED, table1.STATED))
    }
    return judge(
        fact(holds=max(found.values()) <= NEAR),
        f"{found[BEST]:.4f} Mbit/s with {table1.BEST_SET} as Best RIO, {found[STATED]:.4f} with "
        f"{table1.STATED_SET}.",
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


def compared(evidence: Evidence, setting: str) -> tuple[dict[str, Estimate], str]:
    """The error of each OUT set − that of these senders' own best RIO, for five comparisons; and in words."""
    rio = own(setting)
    errors = {
        out: corrected(
            evidence.difference("rmse", cell(setting, table1.ri_plus_o(out)), rio), len(table1.OUT_SETS)
        )
        for out in table1.OUT_SETS
    }
    best = min(errors, key=lambda out: errors[out].mean)
    mine = cell(setting, table1.ri_plus_o(best))
    rates = "; ".join(
        f"{table1.NAMES[rate]} {found.text(sign=True)}"
        for rate in (2.0, 1.0, 0.0)
        for found in [
            evidence.difference("throughput", table1.by_class(mine, rate), table1.by_class(rio, rate))
        ]
    )
    error = evidence.estimate("rmse", rio)
    fixed = evidence.difference("rmse", mine, cell(setting, table1.RIO))
    return errors, (
        f"RI+O {best} − RIO {OWN_SETS[setting]}, Mbit/s, error {errors[best].text(sign=True)} of "
        f"{error.text()}; {rates}. Error − that of RIO {table1.BEST_SET}: {fixed.text(sign=True)}."
    )


def gains(setting: str) -> Callable[[Evidence], Judgement]:
    """A finding that with these senders an OUT set has a smaller error than their best RIO."""

    def judged(evidence: Evidence) -> Judgement:
        errors, said = compared(evidence, setting)
        return judge(any_of(*(below(e) for e in errors.values())), said)

    return judged


def gain_is_of_rio(setting: str) -> Callable[[Evidence], Judgement]:
    """A finding that most of the gain over RIO's fixed set is that of these senders' own set of RIO."""

    def judged(evidence: Evidence) -> Judgement:
        _, said = compared(evidence, setting)
        fixed, mine = (evidence.by_seed("rmse", found) for found in (cell(setting, table1.RIO), own(setting)))
        checks = []
        for out in table1.OUT_SETS:
            ours = evidence.by_seed("rmse", cell(setting, table1.ri_plus_o(out)))
            by_rio = {seed: fixed[seed] - mine[seed] for seed in mine}
            beyond = {seed: mine[seed] - ours[seed] for seed in mine}
            checks.append(above(paired_difference(by_rio, beyond)))
        return judge(all_of(*checks), said)

    return judged


def rfc_6582_gains_nothing(evidence: Evidence) -> Judgement:
    """With NewReno of RFC 6582 neither of the tightest sets beats the stated RIO."""
    found = {
        (setting, out): evidence.difference(
            "throughput",
            {**cell(setting, table1.ri_plus_o(out)), "profile_mbps": 2.0},
            {**cell(setting, table1.STATED), "profile_mbps": 2.0},
        )
        for setting in ("newreno", "newreno-1000")
        for out in table1.TIGHTEST
    }
    text = "; ".join(
        f"{SETTINGS[setting][0]}, {out}: {e.text(sign=True)}" for (setting, out), e in found.items()
    )
    return judge(
        all_of(*(at_most(e, SMALL_GAIN) for e in found.values())),
        f"RI+O − RIO {table1.STATED_SET}, Mbit/s, {text}.",
    )


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
        *(cell(setting, row) for setting in SETTINGS for row in ROWS),
        *(cell(setting, OWN) for setting, own in OWN_SETS.items() if own != table1.BEST_SET),
    ],
    scenario=build,
    samples=samples,
    judges={
        "judged-is-near": judged_is_near,
        "judged-is-not-the-nearest": judged_is_not_the_nearest,
        "steady-gains": gains("steady-ssthresh-20"),
        "delayed-ack-gains": gains("delayed-ack"),
        "sack-gain-is-of-rio": gain_is_of_rio("sack"),
        "none-with-rfc-6582": rfc_6582_gains_nothing,
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
