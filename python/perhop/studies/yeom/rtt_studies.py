"""The studies of Tables 2 and 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.show.declared import Axis, Plot, Reference, Table
from perhop.studies.yeom import rtt_claims as by
from perhop.studies.yeom.common import (
    COMPARED,
    INVERSE,
    PAPER,
    RIO,
    RUNS,
    SCHEMES,
    THIS,
    THREE_DROP,
    TWO_WINDOWS,
)
from perhop.studies.yeom.rtt import (
    CAPACITY,
    CELLS,
    PROFILES,
    TARGETS,
    build,
    table2_samples,
    table3_samples,
)

if TYPE_CHECKING:
    from perhop.studies.judges import Judges

CLASSES = Axis("profile_mbps", "Profile, Mbit/s", {0.0: "BE", 0.5: "0.5", 1.0: "1"})
ROUND_TRIPS = Axis("rtt_ms", "Round trip, ms")
LEVELS = Axis("subscription_percent", "Subscription", {p: f"{p} %" for p in CAPACITY})
CLASS_NAMES = {0.0: "best effort", 0.5: "0.5 Mbit/s", 1.0: "1 Mbit/s"}


def _fairer(best: str, percent: int) -> Judges:
    return {
        "": by.fairer(best, percent),
        "as mostly printed": by.fairer(best, percent, "fairness_by_rtt"),
        "in two of three classes": by.fairer_by_class(best, percent),
    }


def _plot(percent: int) -> Plot:
    return Plot(
        id=f"at-{percent}",
        title=f"Rate by round trip at {percent} % subscription",
        kind="lines",
        metric="throughput",
        x=ROUND_TRIPS,
        series=SCHEMES,
        y_label="Mbit/s per flow",
        facet=Axis("profile_mbps", "Class", CLASS_NAMES),
        where={"subscription_percent": percent},
        references=(Reference("target", "profile_mbps", TARGETS[percent]),),
    )


TABLE2 = THIS.study(
    "table2",
    title="Flows of different round-trip times",
    source=f"{PAPER}, Table 2",
    summary="at each of 20, 40, 60, 80 and 100 ms one flow of 0, 0.5 and 1 Mbit/s, on 10 and 30 Mbit/s",
    cells=CELLS,
    scenario=build,
    samples=table2_samples,
    judges={
        "shorter-rtt-wins": by.shorter_wins(),
        "three-drop-is-rio-at-25": {
            "": by.three_drop_is_rio(0.05),
            "within 2.5 %": by.three_drop_is_rio(0.025),
            "within 10 %": by.three_drop_is_rio(0.1),
        },
        "three-drop-mostly-out-out": {"": by.mostly_out_out(0.5), "three quarters": by.mostly_out_out(0.75)},
        "not-proportional": {
            "": by.not_proportional(1.8),
            "up to 1.6": by.not_proportional(1.6),
            "up to 1.9": by.not_proportional(1.9),
        },
        "rtt-order": {
            "from each round trip to the next": by.rtt_order(),
            "from the shortest to the longest": by.shorter_wins(),
        },
    },
    tables=tuple(
        Table(
            f"Rate of the {CLASS_NAMES[profile]} flow at {percent} %, Mbit/s, by round trip in ms "
            f"(target {TARGETS[percent][profile]:.2f})",
            {"throughput": ""},
            SCHEMES,
            (ROUND_TRIPS,),
            where={"subscription_percent": percent, "profile_mbps": profile},
        )
        for percent in CAPACITY
        for profile in PROFILES
    ),
    plots=tuple(_plot(percent) for percent in CAPACITY),
    single_run=True,
    default_runs=RUNS,
)

TABLE3 = THIS.study(
    "table3",
    title="Measures over flows of different round-trip times",
    source=f"{PAPER}, Table 3",
    summary="yeom-table2's runs: error, utilization, fairness, differentiation, reservation success",
    cells=CELLS,
    scenario=build,
    samples=table3_samples,
    published=[*TABLE2.published, *THIS.item("table3").values],
    judges={
        "no-clear-advantage": {
            "": by.no_advantage("rmse", "utilization"),
            "by the error alone": by.no_advantage("rmse"),
        },
        "more-succeed-than-rio": by.more_succeed((INVERSE, THREE_DROP, TWO_WINDOWS), tuple(CAPACITY)),
        "better-differentiation-than-rio": {
            "": by.leads(
                "differentiation",
                (INVERSE, THREE_DROP, TWO_WINDOWS),
                (RIO,),
                tuple(CAPACITY),
                "Differentiation",
            ),
            "as mostly printed": by.leads(
                "differentiation_by_rtt",
                (INVERSE, THREE_DROP, TWO_WINDOWS),
                (RIO,),
                tuple(CAPACITY),
                "Differentiation",
            ),
        },
        "more-succeed-75": by.more_succeed((INVERSE, THREE_DROP), (75,)),
        "better-differentiation-75": by.leads(
            "differentiation", (INVERSE, THREE_DROP), (RIO,), (75,), "Differentiation"
        ),
        "error-larger-at-25": by.larger_at_25(),
        "three-drop-least-error-at-75": by.least("rmse", THREE_DROP, 75),
        "two-windows-least-error-at-25": by.least("rmse", TWO_WINDOWS, 25),
        "three-drop-fairer-at-75": _fairer(THREE_DROP, 75),
        "two-windows-fairer-at-25": _fairer(TWO_WINDOWS, 25),
        "three-drop-and-inverse-succeed": {
            "": by.succeed(0.99),
            "99.5 %": by.succeed(0.995),
            "98 %": by.succeed(0.98),
            "95 %": by.succeed(0.95),
        },
        "reservations-mostly-met": {"": by.mostly_met(0.5), "three quarters": by.mostly_met(0.75)},
        "inverse-differentiates-best": {
            "": by.leads("differentiation", (INVERSE,), COMPARED, tuple(CAPACITY), "Differentiation"),
            "as mostly printed": by.leads(
                "differentiation_by_rtt", (INVERSE,), COMPARED, tuple(CAPACITY), "Differentiation"
            ),
        },
        "two-windows-loses-utilization": by.least("utilization", TWO_WINDOWS, 75, 25),
    },
    tables=(
        *(
            Table(
                f"Error in Mbit/s (published as MSE), use of the link, share of reserved flows that reach "
                f"their rate, and Jain's index, at {percent} %",
                {"rmse": "error", "utilization": "use", "reservation_success": "reach", "jain_index": "Jain"},
                SCHEMES,
                where={"subscription_percent": percent},
            )
            for percent in CAPACITY
        ),
        *(
            Table(
                f"{name} at {percent} %, by profile: {of} (as defined), and {by_rtt} (as mostly printed)",
                {metric: "defined", f"{metric}_by_rtt": "printed"},
                SCHEMES,
                (CLASSES,),
                where={"subscription_percent": percent},
                digits=2,
            )
            for percent in CAPACITY
            for name, metric, of, by_rtt in (
                ("Fairness", "fairness", "largest over smallest rate", "rate at 20 ms over rate at 100 ms"),
                (
                    "Differentiation",
                    "differentiation",
                    "smallest rate over largest of the next lower class",
                    "rate at 100 ms over rate of the next lower class at 20 ms",
                ),
            )
        ),
    ),
    plots=(
        Plot(
            id="differentiation",
            title="Differentiation between classes",
            kind="bars",
            metric="differentiation",
            x=Axis("profile_mbps", "Class, over the next lower", {0.5: "0.5 Mbit/s", 1.0: "1 Mbit/s"}),
            series=SCHEMES,
            y_label="smallest over largest of next lower",
            facet=LEVELS,
        ),
    ),
    single_run=True,
    default_runs=RUNS,
)
