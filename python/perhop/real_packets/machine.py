"""Runs on real packets as readers see them: what `perhop run` shows, and how well the machine kept up."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl

from perhop.real_packets.laboratory import LiveReport, LiveResult
from perhop.runs import summary
from perhop.runs.summary import Summary
from perhop.show.numbers import MISSING, measured
from perhop.show.report import Records, Report, Text, as_text


def summarized(result: LiveResult) -> Summary:
    """Return what to show of a result."""
    return replace(
        summary.summarize(result, "on real packets"),
        machine=[_row(report) for report in result.reports],
        remarks=remarks(result),
    )


def text(result: LiveResult, width: int | None = None) -> str:
    """Return what `perhop live` prints, for text of that width; None for no limit."""
    return f"{summarized(result).text(width)}\n{_kept_up(result, width)}"


def to_json(result: LiveResult) -> str:
    """Return what `perhop live --json` writes: that of `perhop run`, with the reports under `live`."""
    content = json.loads(summary.to_json(result))
    content["live"] = [{"seed": report.seed, **report.findings} for report in result.reports]
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _kept_up(result: LiveResult, width: int | None) -> str:
    """The text on how well the machine kept up: a line for each run, and what a reader should know."""
    rows = [_row(report) for report in result.reports]
    table = Records("", rows, gives_way=_LEFT_OUT_FIRST)
    return "\n" + as_text(Report("", [], [table, Text(remarks(result))]), width)


_LEFT_OUT_FIRST = (
    "priority",
    "CPU, us/p",
    "late p50, ms",
    "late p99.9, ms",
    "packets",
    "CPU, %",
    "pause, ms",
)


def remarks(result: LiveResult) -> list[str]:
    """Sentences on what sent, what the kernel did otherwise, and which runs are invalid for what reason."""
    findings = result.reports[0].findings
    groups = [flow["name"] for flow in json.loads(result.scenario)["flows"]]
    senders = ", ".join(f"{name}: {sender}" for name, sender in zip(groups, findings["senders"], strict=True))
    lines = [f"Linux {findings['kernel']}; {senders}", *(f"Note: {note}." for note in findings["notes"])]
    if exceed(result.flows, result.links):
        lines.append(
            "Throughput at the kernel's receiver counts data behind a gap when the gap is filled, so over a "
            "short time it may exceed the link's rate."
        )
    for report in result.reports:
        lines += [f"INVALID, seed {report.seed}: {why}." for why in report.findings["invalid"]]
    return lines


def exceed(flows: pl.DataFrame, links: pl.DataFrame) -> bool:
    """Whether in a run flows got more than the rates of all links with a queue."""
    got = flows.group_by("seed").agg(pl.col("throughput_bps").sum())
    rates = links.group_by("seed").agg(pl.col("rate_bps").sum())
    both = got.join(rates, on="seed")
    return bool((both["throughput_bps"] > both["rate_bps"]).any())


def _row(report: LiveReport) -> dict[str, str]:
    findings = report.findings
    late = findings["late_s"]
    return {
        "seed": str(report.seed),
        "run": "valid" if report.valid else "INVALID",
        "packets": f"{report.packets:,}",
        **{f"late {q}, ms": measured(late[q] * 1e3) for q in ("p50", "p99", "p99.9", "max")},
        "pause, ms": measured(late["pause"] * 1e3),
        "CPU, %": measured(100 * findings["cpu_s"] / findings["wall_s"]) if findings["wall_s"] else MISSING,
        "CPU, us/p": measured(report.cpu_per_packet_s * 1e6),
        "priority": "real-time" if findings["real_time"] else "normal",
    }
