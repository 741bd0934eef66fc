"""Table 1 with Figures 3, 4, 5, 6 and 8: five schemes at 60, 90 and 120 % subscription."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.show.declared import Plot, Reference, Table
from perhop.studies.paper import claims
from perhop.studies.study import Study
from perhop.studies.yeom.common import (
    ALL_SCHEMES,
    CLASSES,
    FAIRLY_CLOSE,
    INVERSE,
    NO_OUT,
    PAPER,
    PROFILES,
    RIO,
    RUNS,
    SCHEMES,
    THREE_DROP,
    TWO_WINDOWS,
    cell,
    together,
)
from perhop.studies.yeom.table1_claims import (
    better_than_rio,
    close,
    close_at_120,
    closer,
    equation_3,
    exceptions,
    far_from_target,
    favours_large,
    in_drops,
    in_lose_less,
    inverse_closest,
    inverse_closest_together,
    keeps_reservations,
    more_aggressive,
    most_keep_reservations,
    mostly_out_out,
    reservation_lost,
    rises,
    sides,
    soft,
    treats_better,
    two_windows_bursts,
    two_windows_in_rates,
    two_windows_out_packets,
    two_windows_reserved_not_target,
    two_windows_utilization,
    within_limit,
)
from perhop.studies.yeom.table1_no_out import (
    no_out_at_120,
    no_out_beats_reserved,
    no_out_better,
    no_out_better_together,
    no_out_captures,
    no_out_far_from_targets,
    no_out_fewer_drops,
    no_out_levels,
    no_out_nearer_than_rio,
    no_out_nearly_reserved,
    no_out_prevents,
    no_out_unfair,
)
from perhop.studies.yeom.ten_flows import (
    CAPACITY,
    FIG3_STATEMENT,
    LEVELS,
    RESERVED,
    STATEMENT,
    TARGETS,
    TOLERANCE,
    build,
    fig3_samples,
    gaps,
    samples,
)

if TYPE_CHECKING:
    from perhop.studies.paper import Judges


def _nearer(scheme: str) -> Judges:
    return {
        "at each level": better_than_rio(scheme),
        "the levels together": together("rmse", (scheme,), tuple(CAPACITY)),
    }


def _fairly_close(scheme: str) -> Judges:
    return {
        "close by its own error": close(scheme),
        "close, and nearer than RIO": closer(scheme),
        "a tenth of the mean target": close(scheme, FAIRLY_CLOSE / 2),
        "two fifths of the mean target": close(scheme, 2 * FAIRLY_CLOSE),
    }


def _plot(percent: int) -> Plot:
    return Plot(
        id=f"at-{percent}",
        title=f"Rate of a flow at {percent} % subscription",
        kind="bars",
        metric="throughput",
        x=CLASSES,
        series=SCHEMES,
        y_label="Mbit/s per flow",
        where={"subscription_percent": percent},
        references=(Reference("target", "profile_mbps", TARGETS[percent]),),
    )


TABLE1 = Study(
    id="yeom-table1",
    title="Five schemes at 60, 90 and 120 % subscription",
    source=f"{PAPER}, Table 1 and Figures 4, 5, 6 and 8",
    summary="two flows each of 0, 0.1, 0.5, 1 and 2 Mbit/s on 12, 8 and 6 Mbit/s",
    cells=[cell(scheme, percent) for percent in CAPACITY for scheme in ALL_SCHEMES],
    scenario=build,
    samples=samples,
    published=STATEMENT.values,
    claims=claims(
        STATEMENT.claims,
        {
            "all-keep-reservations-better": {
                "at each level": keeps_reservations(ALL_SCHEMES[1:]),
                "the levels together": together("shortfall", ALL_SCHEMES[1:], tuple(CAPACITY)),
            },
            "inverse-better-than-rio": _nearer(INVERSE),
            "two-windows-better-than-rio": _nearer(TWO_WINDOWS),
            "three-drop-better-than-rio": _nearer(THREE_DROP),
            "rmse-rises": rises,
            "rio-and-three-drop-favour-small": lambda evidence: sides(
                evidence, (RIO, THREE_DROP), (60, 90), (0.1, 0.0), (2.0, 1.0)
            ),
            "close-at-high-subscription": {
                "": close_at_120(0.1),
                "5 % or 0.025 Mbit/s": close_at_120(0.05),
                "20 % or 0.1 Mbit/s": close_at_120(0.2),
            },
            "opposite-trend": favours_large((INVERSE, TWO_WINDOWS), (60, 90), (0.1,)),
            "no-out-better-for-large": {
                "": no_out_better((2.0, 1.0), tuple(CAPACITY)),
                "the levels together": no_out_better_together((2.0, 1.0)),
                "the 2 Mbit/s class, the levels together": no_out_better_together((2.0,)),
            },
            "no-out-nearly-reserved": {
                "": no_out_nearly_reserved(0.9),
                "95 %": no_out_nearly_reserved(0.95),
                "80 %": no_out_nearly_reserved(0.8),
            },
            "no-out-far-from-targets-at-60": {
                "": no_out_far_from_targets(0.9),
                "95 %": no_out_far_from_targets(0.95),
                "80 %": no_out_far_from_targets(0.8),
            },
            "no-out-fewer-drops": no_out_fewer_drops,
            "no-out-prevents-more": {
                "": no_out_prevents(TOLERANCE),
                "0.5 %": no_out_prevents(TOLERANCE / 2),
                "2 %": no_out_prevents(2 * TOLERANCE),
                "10 % or 0.15 Mbit/s": no_out_prevents(0.1, 0.15),
            },
            "no-out-best-effort-takes-excess": {
                "": no_out_captures(0.9),
                "95 %": no_out_captures(0.95),
                "80 %": no_out_captures(0.8),
            },
            "no-out-unfair": no_out_unfair,
            "no-out-best-effort-beats-reserved": {
                "than all reserved flows": no_out_beats_reserved(len(RESERVED)),
                "than most reserved flows": no_out_beats_reserved(len(RESERVED) // 2 + 1),
            },
            "no-out-good-at-120": {
                "": no_out_at_120(0.05),
                "2.5 % or 0.01 Mbit/s": no_out_at_120(0.025),
                "10 % or 0.04 Mbit/s": no_out_at_120(0.1),
            },
            "no-out-works-at-high-subscription": {
                "well by its own error": no_out_levels(FAIRLY_CLOSE),
                "well, and nearer than RIO": no_out_nearer_than_rio,
                "a tenth of the mean target": no_out_levels(FAIRLY_CLOSE / 2),
                "two fifths of the mean target": no_out_levels(2 * FAIRLY_CLOSE),
            },
            "inverse-keeps-reservations": most_keep_reservations(INVERSE),
            "inverse-close": _fairly_close(INVERSE),
            "inverse-favours-large": favours_large((INVERSE,), (60, 90), (0.1, 0.0)),
            "three-drop-keeps-reservations": most_keep_reservations(THREE_DROP),
            "three-drop-close": _fairly_close(THREE_DROP),
            "three-drop-favours-small": lambda evidence: sides(
                evidence, (THREE_DROP,), (60, 90), (0.1, 0.0), (2.0, 1.0)
            ),
            "three-drop-mostly-out-out": {
                "": mostly_out_out(0.5),
                "three quarters": mostly_out_out(0.75),
            },
            "two-windows-better-rates": {
                "at each level": keeps_reservations((TWO_WINDOWS,)),
                "the levels together": together("shortfall", (TWO_WINDOWS,), tuple(CAPACITY)),
            },
            "two-windows-favours-small": lambda evidence: sides(
                evidence, (TWO_WINDOWS,), (60, 90), (0.1, 0.0), (2.0, 1.0)
            ),
            "two-windows-favours-large-at-120": favours_large((TWO_WINDOWS,), (120,), (1.0, 0.5)),
            "two-windows-small-send-more-out": two_windows_out_packets,
            "two-windows-in-rates": {
                "": two_windows_in_rates(0.1),
                "5 %": two_windows_in_rates(0.05),
                "20 %": two_windows_in_rates(0.2),
            },
            "two-windows-reserved-not-target": two_windows_reserved_not_target,
            "two-windows-bursts-marked-out": two_windows_bursts,
            "two-windows-more-aggressive": more_aggressive,
            "equation-3-bounds": equation_3,
            "three-drop-treats-better": treats_better,
            "inverse-closest": {"": inverse_closest, "the levels together": inverse_closest_together},
            "soft-guarantees": {
                "": soft(TOLERANCE),
                "under each proposed scheme": soft(TOLERANCE, each=True),
                "0.5 %": soft(TOLERANCE / 2),
                "2 %": soft(2 * TOLERANCE),
            },
            "within-limit": within_limit,
            "keep-reservations-60-90": keeps_reservations(ALL_SCHEMES[1:], (60, 90)),
            "two-windows-better-60-90": better_than_rio(TWO_WINDOWS, (60, 90)),
            "three-drop-better-60-90": better_than_rio(THREE_DROP, (60, 90)),
            "no-out-better-for-2": no_out_better((2.0,), (60, 90)),
            "no-out-only-best-effort-above": lambda evidence: sides(
                evidence, (NO_OUT,), (60,), (0.0,), RESERVED
            ),
            "no-out-better-than-rio": better_than_rio(NO_OUT, (90, 120)),
            "exceptions-worse-than-rio": exceptions,
            "two-windows-loses-utilization": two_windows_utilization,
        },
    ),
    tables=(
        *(
            Table(
                f"Rate of a flow at {percent} %, Mbit/s, by profile (targets "
                + ", ".join(f"{TARGETS[percent][rate]:.2f}" for rate in PROFILES)
                + ")",
                {"throughput": ""},
                SCHEMES,
                (CLASSES,),
                where={"subscription_percent": percent},
            )
            for percent in CAPACITY
        ),
        Table(
            "Root-mean-square error against the targets, Mbit/s (published as MSE), and use of the link",
            {"rmse": "error", "utilization": "use"},
            SCHEMES,
            (LEVELS,),
        ),
        Table(
            "Share of reserved flows that reach their rate, what such a flow lacks of it in the mean, "
            "Mbit/s, and Jain's index of rate over target",
            {"reservation_success": "reach", "shortfall": "lacks", "jain_index": "Jain"},
            SCHEMES,
            (LEVELS,),
        ),
        Table(
            "A scheme's fifteen published rates: root-mean-square difference to our means, Mbit/s, and how "
            "many lie between the lowest and the highest of our runs",
            {"difference_to_published": "difference", "published_within_runs": "within, of 15"},
            SCHEMES,
        ),
    ),
    plots=tuple(_plot(percent) for percent in CAPACITY),
    notes=STATEMENT.notes,
    method=STATEMENT.method,
    assumptions=STATEMENT.assumptions,
    summaries=gaps,
    single_run=True,
    default_runs=RUNS,
)

FIG3 = Study(
    id="yeom-fig3",
    title="RIO at 60, 90 and 120 % subscription",
    source=f"{PAPER}, Figure 3",
    summary="two flows each of 0, 0.1, 0.5, 1 and 2 Mbit/s under RIO",
    cells=[cell(RIO, percent) for percent in CAPACITY],
    scenario=build,
    samples=fig3_samples,
    published=[v for v in STATEMENT.values if v.factors["scheme"] == RIO],
    claims=claims(
        FIG3_STATEMENT.claims,
        {
            "far-from-target": {
                "": far_from_target(tuple(CAPACITY)),
                "5 %": far_from_target(tuple(CAPACITY), 0.05),
                "20 %": far_from_target(tuple(CAPACITY), 0.2),
            },
            "small-exceed-large-miss-60": lambda evidence: sides(
                evidence, (RIO,), (60,), (0.1, 0.0), (2.0, 1.0)
            ),
            "small-exceed-large-miss-90": lambda evidence: sides(
                evidence, (RIO,), (90,), (0.1, 0.0), (2.0, 1.0)
            ),
            "small-exceed-large-miss-120": lambda evidence: sides(
                evidence, (RIO,), (120,), (0.1, 0.0), (2.0, 1.0)
            ),
            "no-in-drops": {
                "at all three levels": in_drops(tuple(CAPACITY)),
                "where the reservations fit": in_drops((60, 90)),
            },
            "no-in-drops-where-they-fit": in_drops((60, 90)),
            "in-lose-less": in_lose_less,
            "out-drops-cost-the-reservation": reservation_lost,
            "far-from-target-at-60": far_from_target((60,)),
        },
    ),
    tables=(
        Table("Rate of a flow, Mbit/s, by profile", {"throughput": ""}, LEVELS, (CLASSES,)),
        Table(
            "Error against the targets, Mbit/s (published as MSE); use of the link; IN packets dropped",
            {"rmse": "error", "utilization": "use", "in_drops": "IN drops"},
            LEVELS,
        ),
    ),
    plots=(
        Plot(
            id="rates",
            title="Rate of a flow under RIO",
            kind="bars",
            metric="throughput",
            x=CLASSES,
            series=LEVELS,
            y_label="Mbit/s per flow",
            references=(Reference("profile", "profile_mbps", {r: r for r in PROFILES if r}),),
        ),
    ),
    notes=FIG3_STATEMENT.notes,
    method=FIG3_STATEMENT.method,
    assumptions=FIG3_STATEMENT.assumptions,
    single_run=True,
    default_runs=RUNS,
)
