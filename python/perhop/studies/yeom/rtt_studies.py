"""The studies of Tables 2 and 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.show.declared import Axis, Plot, Reference, Table
from perhop.studies.paper import claims
from perhop.studies.study import Study
from perhop.studies.yeom.common import COMPARED, INVERSE, PAPER, RIO, RUNS, SCHEMES, THREE_DROP, TWO_WINDOWS
from perhop.studies.yeom.rtt import (
    CAPACITY,
    CELLS,
    PROFILES,
    TABLE2_STATEMENT,
    TABLE3_STATEMENT,
    TARGETS,
    build,
    table2_samples,
    table3_samples,
)
from perhop.studies.yeom.rtt_claims import (
    fairer,
    fairer_by_class,
    larger_at_25,
    leads,
    least,
    more_succeed,
    mostly_met,
    mostly_out_out,
    no_advantage,
    no_least_error,
    not_proportional,
    rtt_order,
    shorter_wins,
    succeed,
    three_drop_is_rio,
)

if TYPE_CHECKING:
    from perhop.studies.paper import Judges

CLASSES = Axis("profile_mbps", "Profile, Mbit/s", {0.0: "BE", 0.5: "0.5", 1.0: "1"})
ROUND_TRIPS = Axis("rtt_ms", "Round trip, ms")
LEVELS = Axis("subscription_percent", "Subscription", {p: f"{p} %" for p in CAPACITY})
CLASS_NAMES = {0.0: "best effort", 0.5: "0.5 Mbit/s", 1.0: "1 Mbit/s"}


def _fairer(best: str, percent: int) -> Judges:
    return {
        "": fairer(best, percent),
        "as mostly printed": fairer(best, percent, "fairness_by_rtt"),
        "in two of three classes": fairer_by_class(best, percent),
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


TABLE2 = Study(
    id="yeom-table2",
    title="Flows of different round-trip times",
    source=f"{PAPER}, Table 2",
    summary="at each of 20, 40, 60, 80 and 100 ms one flow of 0, 0.5 and 1 Mbit/s, on 10 and 30 Mbit/s",
    cells=CELLS,
    scenario=build,
    samples=table2_samples,
    published=TABLE2_STATEMENT.values,
    claims=claims(
        TABLE2_STATEMENT.claims,
        {
            "shorter-rtt-wins": shorter_wins,
            "three-drop-is-rio-at-25": {
                "": three_drop_is_rio(0.05),
                "within 2.5 %": three_drop_is_rio(0.025),
                "within 10 %": three_drop_is_rio(0.1),
            },
            "three-drop-mostly-out-out": {"": mostly_out_out(0.5), "three quarters": mostly_out_out(0.75)},
            "not-proportional": {
                "": not_proportional(1.8),
                "up to 1.6": not_proportional(1.6),
                "up to 1.9": not_proportional(1.9),
            },
            "rtt-order": {
                "from each round trip to the next": rtt_order,
                "from the shortest to the longest": shorter_wins,
            },
        },
    ),
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
    notes=TABLE2_STATEMENT.notes,
    method=TABLE2_STATEMENT.method,
    assumptions=TABLE2_STATEMENT.assumptions,
    single_run=True,
    default_runs=RUNS,
)

TABLE3 = Study(
    id="yeom-table3",
    title="Measures over flows of different round-trip times",
    source=f"{PAPER}, Table 3",
    summary="yeom-table2's runs: error, utilization, fairness, differentiation, reservation success",
    cells=CELLS,
    scenario=build,
    samples=table3_samples,
    published=[*TABLE2_STATEMENT.values, *TABLE3_STATEMENT.values],
    claims=claims(
        TABLE3_STATEMENT.claims,
        {
            "no-clear-advantage": {"": no_advantage, "by the error alone": no_least_error},
            "more-succeed-than-rio": more_succeed((INVERSE, THREE_DROP, TWO_WINDOWS), tuple(CAPACITY)),
            "better-differentiation-than-rio": {
                "": leads(
                    "differentiation",
                    (INVERSE, THREE_DROP, TWO_WINDOWS),
                    (RIO,),
                    tuple(CAPACITY),
                    "Differentiation",
                ),
                "as mostly printed": leads(
                    "differentiation_by_rtt",
                    (INVERSE, THREE_DROP, TWO_WINDOWS),
                    (RIO,),
                    tuple(CAPACITY),
                    "Differentiation",
                ),
            },
            "more-succeed-75": more_succeed((INVERSE, THREE_DROP), (75,)),
            "better-differentiation-75": leads(
                "differentiation", (INVERSE, THREE_DROP), (RIO,), (75,), "Differentiation"
            ),
            "error-larger-at-25": larger_at_25,
            "three-drop-least-error-at-75": least("rmse", THREE_DROP, 75),
            "two-windows-least-error-at-25": least("rmse", TWO_WINDOWS, 25),
            "three-drop-fairer-at-75": _fairer(THREE_DROP, 75),
            "two-windows-fairer-at-25": _fairer(TWO_WINDOWS, 25),
            "three-drop-and-inverse-succeed": {
                "": succeed(0.99),
                "99.5 %": succeed(0.995),
                "98 %": succeed(0.98),
                "95 %": succeed(0.95),
            },
            "reservations-mostly-met": {"": mostly_met(0.5), "three quarters": mostly_met(0.75)},
            "inverse-differentiates-best": {
                "": leads("differentiation", (INVERSE,), COMPARED, tuple(CAPACITY), "Differentiation"),
                "as mostly printed": leads(
                    "differentiation_by_rtt", (INVERSE,), COMPARED, tuple(CAPACITY), "Differentiation"
                ),
            },
            "two-windows-loses-utilization": least("utilization", TWO_WINDOWS, 75, 25),
        },
    ),
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
    notes=TABLE3_STATEMENT.notes,
    method=TABLE3_STATEMENT.method,
    assumptions=TABLE3_STATEMENT.assumptions,
    single_run=True,
    default_runs=RUNS,
)
