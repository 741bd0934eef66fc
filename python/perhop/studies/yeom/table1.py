"""Table 1 with Figures 3, 4, 5, 6 and 8: five schemes at 60, 90 and 120 % subscription."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.show.declared import Plot, Reference, Table
from perhop.studies.yeom import table1_claims as by
from perhop.studies.yeom import table1_no_out as no_out
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
    THIS,
    THREE_DROP,
    TWO_WINDOWS,
    cell,
)
from perhop.studies.yeom.ten_flows import (
    CAPACITY,
    LEVELS,
    RESERVED,
    TARGETS,
    TOLERANCE,
    build,
    fig3_samples,
    gaps,
    samples,
)

if TYPE_CHECKING:
    from perhop.studies.judges import Judges


def _nearer(scheme: str) -> Judges:
    return {
        "at each level": by.better_than_rio(scheme),
        "the levels together": by.below_rio_together("rmse", (scheme,), tuple(CAPACITY)),
    }


def _fairly_close(scheme: str) -> Judges:
    return {
        "close by its own error": by.close(scheme),
        "close, and nearer than RIO": by.close(scheme, than_rio=True),
        "a tenth of the mean target": by.close(scheme, FAIRLY_CLOSE / 2),
        "two fifths of the mean target": by.close(scheme, 2 * FAIRLY_CLOSE),
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


TABLE1 = THIS.study(
    "table1",
    title="Five schemes at 60, 90 and 120 % subscription",
    source=f"{PAPER}, Table 1 and Figures 4, 5, 6 and 8",
    summary="two flows each of 0, 0.1, 0.5, 1 and 2 Mbit/s on 12, 8 and 6 Mbit/s",
    cells=[cell(scheme, percent) for percent in CAPACITY for scheme in ALL_SCHEMES],
    scenario=build,
    samples=samples,
    judges={
        "all-keep-reservations-better": {
            "at each level": by.keeps_reservations(ALL_SCHEMES[1:]),
            "the levels together": by.below_rio_together("shortfall", ALL_SCHEMES[1:], tuple(CAPACITY)),
        },
        "inverse-better-than-rio": _nearer(INVERSE),
        "two-windows-better-than-rio": _nearer(TWO_WINDOWS),
        "three-drop-better-than-rio": _nearer(THREE_DROP),
        "rmse-rises": by.rises(),
        "rio-and-three-drop-favour-small": by.sides((RIO, THREE_DROP), (60, 90), (0.1, 0.0), (2.0, 1.0)),
        "close-at-high-subscription": {
            "": by.close_at_120(0.1),
            "5 % or 0.025 Mbit/s": by.close_at_120(0.05),
            "20 % or 0.1 Mbit/s": by.close_at_120(0.2),
        },
        "opposite-trend": by.favours_large((INVERSE, TWO_WINDOWS), (60, 90), (0.1,)),
        "no-out-better-for-large": {
            "": no_out.better((2.0, 1.0), tuple(CAPACITY)),
            "the levels together": no_out.better_together((2.0, 1.0)),
            "the 2 Mbit/s class, the levels together": no_out.better_together((2.0,)),
        },
        "no-out-nearly-reserved": {
            "": no_out.nearly_reserved(0.9),
            "95 %": no_out.nearly_reserved(0.95),
            "80 %": no_out.nearly_reserved(0.8),
        },
        "no-out-far-from-targets-at-60": {
            "": no_out.far_from_targets(0.9),
            "95 %": no_out.far_from_targets(0.95),
            "80 %": no_out.far_from_targets(0.8),
        },
        "no-out-fewer-drops": no_out.fewer_drops(),
        "no-out-prevents-more": {
            "": no_out.prevents(TOLERANCE),
            "0.5 %": no_out.prevents(TOLERANCE / 2),
            "2 %": no_out.prevents(2 * TOLERANCE),
            "10 % or 0.15 Mbit/s": no_out.prevents(0.1, 0.15),
        },
        "no-out-best-effort-takes-excess": {
            "": no_out.captures(0.9),
            "95 %": no_out.captures(0.95),
            "80 %": no_out.captures(0.8),
        },
        "no-out-unfair": no_out.unfair(),
        "no-out-best-effort-beats-reserved": {
            "than all reserved flows": no_out.beats_reserved(len(RESERVED)),
            "than most reserved flows": no_out.beats_reserved(len(RESERVED) // 2 + 1),
        },
        "no-out-good-at-120": {
            "": no_out.at_120(0.05),
            "2.5 % or 0.01 Mbit/s": no_out.at_120(0.025),
            "10 % or 0.04 Mbit/s": no_out.at_120(0.1),
        },
        "no-out-works-at-high-subscription": {
            "well by its own error": no_out.error_by_level(FAIRLY_CLOSE),
            "well, and nearer than RIO": no_out.error_by_level(FAIRLY_CLOSE, than_rio=True),
            "a tenth of the mean target": no_out.error_by_level(FAIRLY_CLOSE / 2),
            "two fifths of the mean target": no_out.error_by_level(2 * FAIRLY_CLOSE),
        },
        "inverse-keeps-reservations": by.most_keep_reservations(INVERSE),
        "inverse-close": _fairly_close(INVERSE),
        "inverse-favours-large": by.favours_large((INVERSE,), (60, 90), (0.1, 0.0)),
        "three-drop-keeps-reservations": by.most_keep_reservations(THREE_DROP),
        "three-drop-close": _fairly_close(THREE_DROP),
        "three-drop-favours-small": by.sides((THREE_DROP,), (60, 90), (0.1, 0.0), (2.0, 1.0)),
        "three-drop-mostly-out-out": {
            "": by.mostly_out_out(0.5),
            "three quarters": by.mostly_out_out(0.75),
        },
        "two-windows-better-rates": {
            "at each level": by.keeps_reservations((TWO_WINDOWS,)),
            "the levels together": by.below_rio_together("shortfall", (TWO_WINDOWS,), tuple(CAPACITY)),
        },
        "two-windows-favours-small": by.sides((TWO_WINDOWS,), (60, 90), (0.1, 0.0), (2.0, 1.0)),
        "two-windows-favours-large-at-120": by.favours_large((TWO_WINDOWS,), (120,), (1.0, 0.5)),
        "two-windows-small-send-more-out": by.two_windows_out_packets(),
        "two-windows-in-rates": {
            "": by.two_windows_in_rates(0.1),
            "5 %": by.two_windows_in_rates(0.05),
            "20 %": by.two_windows_in_rates(0.2),
        },
        "two-windows-reserved-not-target": by.two_windows_reserved_not_target(),
        "two-windows-bursts-marked-out": by.two_windows_bursts(),
        "two-windows-more-aggressive": by.more_aggressive(),
        "equation-3-bounds": by.equation_3(),
        "three-drop-treats-better": by.treats_better(),
        "inverse-closest": {"": by.inverse_closest(), "the levels together": by.inverse_closest_together()},
        "soft-guarantees": {
            "": by.soft(TOLERANCE),
            "under each proposed scheme": by.soft(TOLERANCE, each=True),
            "0.5 %": by.soft(TOLERANCE / 2),
            "2 %": by.soft(2 * TOLERANCE),
        },
        "within-limit": by.within_limit(),
        "keep-reservations-60-90": by.keeps_reservations(ALL_SCHEMES[1:], (60, 90)),
        "two-windows-better-60-90": by.better_than_rio(TWO_WINDOWS, (60, 90)),
        "three-drop-better-60-90": by.better_than_rio(THREE_DROP, (60, 90)),
        "no-out-better-for-2": no_out.better((2.0,), (60, 90)),
        "no-out-only-best-effort-above": by.sides((NO_OUT,), (60,), (0.0,), RESERVED),
        "no-out-better-than-rio": by.better_than_rio(NO_OUT, (90, 120)),
        "exceptions-worse-than-rio": by.exceptions(),
        "two-windows-loses-utilization": by.two_windows_utilization(),
    },
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
    summaries=gaps,
    single_run=True,
    default_runs=RUNS,
)

FIG3 = THIS.study(
    "fig3",
    title="RIO at 60, 90 and 120 % subscription",
    source=f"{PAPER}, Figure 3",
    summary="two flows each of 0, 0.1, 0.5, 1 and 2 Mbit/s under RIO",
    cells=[cell(RIO, percent) for percent in CAPACITY],
    scenario=build,
    samples=fig3_samples,
    published=[v for v in TABLE1.published if v.factors["scheme"] == RIO],
    judges={
        "far-from-target": {
            "": by.far_from_target(tuple(CAPACITY)),
            "5 %": by.far_from_target(tuple(CAPACITY), 0.05),
            "20 %": by.far_from_target(tuple(CAPACITY), 0.2),
        },
        "small-exceed-large-miss-60": by.sides((RIO,), (60,), (0.1, 0.0), (2.0, 1.0)),
        "small-exceed-large-miss-90": by.sides((RIO,), (90,), (0.1, 0.0), (2.0, 1.0)),
        "small-exceed-large-miss-120": by.sides((RIO,), (120,), (0.1, 0.0), (2.0, 1.0)),
        "no-in-drops": {
            "at all three levels": by.in_drops(tuple(CAPACITY)),
            "where the reservations fit": by.in_drops((60, 90)),
        },
        "no-in-drops-where-they-fit": by.in_drops((60, 90)),
        "in-lose-less": by.in_lose_less(),
        "out-drops-cost-the-reservation": by.reservation_lost(),
        "far-from-target-at-60": by.far_from_target((60,)),
    },
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
    single_run=True,
    default_runs=RUNS,
)
