"""The map of the paper's claims: link rates against round trips, and what else its text leaves open."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from perhop.measures.run import Run
from perhop.show.declared import Factors
from perhop.studies.assumptions import Place, everywhere, map_of
from perhop.studies.evidence import Sample
from perhop.studies.hurley.common import GREEN, LINK, SETTING, THIS, TITLE
from perhop.studies.hurley.delay import FIG3, FIG5
from perhop.studies.hurley.roundtrip import BERNOULLI, INITIAL, READING_NAMES
from perhop.studies.hurley.service import GREEN_FLOOD, SERVICE, flood
from perhop.studies.hurley.throughput import FIG2, FIG4
from perhop.studies.study import Study

Scenario: TypeAlias = Mapping[str, Any]
RATES = (2.0, SETTING.rate_mbps, 4.0, 5.0, 10.0)
ROUND_TRIPS = (44.0, 80.0, 120.0, 160.0, 200.0, 300.0)
RUNS = 8


def only(study: Study, *metrics: str) -> Study:
    """A study that measures what the claims on the paper need; a map of all would be large."""

    def samples(factors: Factors, run: Run) -> Iterator[Sample]:
        return (sample for sample in study.samples(factors, run) if sample.metric in metrics)

    return replace(study, samples=samples)


WAITS = ("wait_p50", "wait_p95", "wait_p99")
JUDGED = (
    only(FIG2, "throughput", "loss", "ratio", "alpha_m", "rtt", "transfer", "short_transfer"),
    only(FIG3, *WAITS, "jitter", "jitter_95", "loss", "source_rate", "source_jitter"),
    only(FIG4, "arrived", "sent", "received", "throughput"),
    only(FIG5, *WAITS, "wait_max"),
    only(
        SERVICE,
        *("chooser_rate", "chooser_jitter", "silent", "throughput", "loss", "wait_p99", "utilization"),
        *("forced", "forced_blue", "alpha_m", "ratio"),
    ),
)


def elsewhere(rate_mbps: float, rtt_ms: float) -> Callable[[Scenario], Scenario]:
    """Change link and round trip of a scenario; a flood beside blue flows grows with the link."""
    stated = flood(GREEN_FLOOD * SETTING.rate_mbps)
    here = flood(GREEN_FLOOD * rate_mbps)

    def change(scenario: Scenario) -> Scenario:
        own = {"rate": f"{rate_mbps:g}Mbps", "delay": f"{rtt_ms / 4:g}ms"}
        link = {**scenario["links"][LINK], **own}
        flows = []
        for flow in scenario["flows"]:
            access = {"rate": "100Mbps", "delay": f"{rtt_ms / 8:g}ms"}
            own = here if flow["transport"] == stated and flow["service"] == GREEN else flow["transport"]
            flows.append({**flow, "access": access, "egress": access, "transport": own})
        return {**scenario, "links": {LINK: link}, "flows": flows}

    return change


def queued(
    change: Callable[[dict[str, Any], dict[str, Any]], None], *rules: str
) -> Callable[[Scenario], Scenario]:
    """Change the queue and its rule in a scenario whose rule is one of these."""

    def changed(scenario: Scenario) -> Scenario:
        link = scenario["links"][LINK]
        queue, rule = dict(link["queue"]), dict(link["queue"]["rule"])
        if rule["aqm"] not in rules:
            return scenario
        change(queue, rule)
        return {**scenario, "links": {LINK: {**link, "queue": {**queue, "rule": rule}}}}

    return changed


def due_after(deadline: str) -> Callable[[Scenario], Scenario]:
    """Another D, where it is not changed already."""

    def change(queue: dict[str, Any], _: dict[str, Any]) -> None:
        if queue["blue"] == SETTING.deadline:
            queue["blue"] = deadline

    return queued(change, "abe", "red")


def limited_to(packets: int) -> Callable[[Scenario], Scenario]:
    """Another N_g, where there is one."""

    def change(_: dict[str, Any], rule: dict[str, Any]) -> None:
        if "green-limit" in rule:
            rule["green-limit"] = f"{packets}p"

    return queued(change, "abe")


def with_rule(**keys: str | float) -> Callable[[Scenario], Scenario]:
    """Other keys of ABE's rule."""

    def change(_: dict[str, Any], rule: dict[str, Any]) -> None:
        rule.update({name.replace("_", "-"): value for name, value in keys.items()})

    return queued(change, "abe")


def unspread() -> Callable[[Scenario], Scenario]:
    """Drops that are not spread evenly."""

    def change(_: dict[str, Any], rule: dict[str, Any]) -> None:
        rule.pop("alpha-on", None)
        rule["spread"] = False

    return queued(change, "abe")


def places() -> Iterator[Place]:
    """Link rate against round trip; then one assumption at a time."""
    for rate, rtt in itertools.product(RATES, ROUND_TRIPS):
        if (rate, rtt) != (SETTING.rate_mbps, SETTING.rtt_ms):
            yield everywhere(f"{rate:g} Mbit/s", f"{rtt:g} ms", JUDGED, elsewhere(rate, rtt))
    for deadline in ("20ms", "50ms", "200ms"):
        yield everywhere("D", f"{deadline.removesuffix('ms')} ms", JUDGED, due_after(deadline))
    for packets in (5, 20):
        yield everywhere("N_g", f"{packets}", JUDGED, limited_to(packets))
    which = "Which p alpha multiplies"
    yield everywhere(which, READING_NAMES[INITIAL], JUDGED, with_rule(alpha_on="initial"))
    # Flat best effort's RED spreads its drops, so that it is no longer what ABE is with blue alone.
    some = [study for study in JUDGED if study.id != FIG4.id]
    yield everywhere(which, READING_NAMES[BERNOULLI], some, unspread())
    for name, change in (
        ("integral law", with_rule(law="integral")),
        ("each second by itself", with_rule(gain=1.0)),
        ("smoothed over 50 s", with_rule(gain=0.02)),
    ):
        yield everywhere("How alpha moves", name, JUDGED, change)


MAP = map_of(
    "hurley",
    "What each verdict depends on",
    f"{TITLE}: what the paper leaves open",
    stated=JUDGED,
    places=list(places()),
    statement=THIS.item("map"),
    runs=RUNS,
)
