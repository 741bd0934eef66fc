"""Every claim under each value of what the paper leaves open: its round trip and contracts, and more.

The paper's round trip and contracts stood in its Figure 1, which is lost, and it gives one set of thresholds
for two colors. These three are crossed; everything else is varied alone. The runs are shorter than those of
the figures; the claims are judged by the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from perhop.measures.run import Run
from perhop.show.declared import Factors
from perhop.studies.assumptions import Place, map_of
from perhop.studies.bouras import ablation, common, scenarios
from perhop.studies.bouras.claims import BY_STUDY
from perhop.studies.bouras.common import BASELINE, PROPOSED, SENDER, SETTING, SHORT, THIS, TITLE
from perhop.studies.bouras.judges import Case
from perhop.studies.evidence import Sample
from perhop.studies.paper import claims
from perhop.studies.study import Later, Study

OUT_ONLY = "OUT only"
READINGS = {
    OUT_ONLY: (PROPOSED, BASELINE),
    "static IN 0.02": (PROPOSED, common.BASELINE_IN),
    "both IN 0.02": (common.PROPOSED_IN, common.BASELINE_IN),
    "static alike": (PROPOSED, common.ALIKE),
}
"""The packets that the thresholds are for, and with them the schemes that are compared.

OUT packets only, in both; the static queue's IN packets by the same thresholds with a max_p of 0.02; both
queues' IN packets so; both colors of the static queue by one set.
"""
CROSSED = ("1/3/5", "1/2/7", "1/2/8", "2/4/6")
"""The sets that are crossed with all round trips."""
WITH_READINGS = ("1/2/8", "2/4/6")
"""The sets of contracts that are crossed with the other readings, too."""
NS_2004 = {**SENDER, "min-rto": "1s", "initial-rto": "6s"}
"""NewReno as ns-2 had it until October 2004, when its smallest timeout fell from 1 s to 0.2 s."""
ALONE: Mapping[str, Mapping[str, common.Setting]] = {
    "packet": {"500 bytes": replace(SETTING, packet=500), "1500 bytes": replace(SETTING, packet=1500)},
    "sender": {
        "ns-2 of 1998": replace(SETTING, tcp={"tcp": "ns-1998"}),
        "ns-2 of 2004": replace(SETTING, tcp=NS_2004),
        "SACK": replace(SETTING, tcp={**SENDER, "sack": True}),
        "Linux": replace(SETTING, tcp={"tcp": "linux"}),
    },
    "buffer": {"1 product": replace(SETTING, buffer=1.0), "4 products": replace(SETTING, buffer=4.0)},
    "TSW2CM's average": {"0.2 s": replace(SETTING, average_s=0.2), "5 s": replace(SETTING, average_s=5.0)},
    "equation 3": {"all windows": replace(SETTING, equation_3="all-windows")},
    "alpha": {f"{n} round trips": replace(SETTING, round_trips=n) for n in (2, 4)},
}
"""The assumptions that are varied one at a time, on the stated network."""
FIGURES = {
    "fig2": scenarios.FIG2,
    "fig3": scenarios.FIG3,
    "fig4": scenarios.FIG4,
    "fig5": scenarios.FIG5,
    "general": scenarios.GENERAL,
}
USED = {
    "fig2": "window mean_window window_spread window_share timeouts without_timeouts trip_ratio computations",
    "fig3": "window_error window_error_by_equation_1 utilization spread rate_share throughput over_contract",
    "fig4": "throughput spread rate_share over_contract",
    "fig5": "burst_rate burst_share burst_spread burst_use settled_use burst_contracts_met "
    "burst_over_contract",
    "general": "utilization spread throughput rate_share burst_rate burst_spread burst_share burst_use "
    "window window_spread in_spread in_share windows_over_product window_variation timeouts computations",
    "ablation": "spread utilization",
}
"""The metrics that the claims of each study need; a map of all would be large."""
PARTS = ("marker-improves-fairness", "drop-rule-reinforces", "fixed-parameters")
"""The claims of the ablation that need few cells."""
PART_CELLS = [ablation.cell(n, scheme) for n in ablation.SCENARIOS for scheme in ablation.COMBINED]


def figures_at(case: Case, setting: common.Setting) -> list[Study]:
    """The studies of the figures in short, with two schemes on one network."""

    def build(factors: Factors) -> Mapping[str, Any]:
        return setting.scenario(int(factors["scenario"]), str(factors["scheme"]), SHORT)

    def at(item: str, study: Study) -> Study:
        def take(factors: Factors, run: Run) -> Iterator[Sample]:
            return _used(item, scenarios.samples_on(setting, factors, run, SHORT))

        numbers = dict.fromkeys(int(cell["scenario"]) for cell in study.cells)
        return replace(
            study,
            cells=[case.key(n, scheme) for n in numbers for scheme in (case.proposed, case.baseline)],
            scenario=build,
            samples=take,
            summaries=None,
            claims=Later(lambda: claims(THIS.item(item).claims, BY_STUDY[item](case))),
        )

    return [at(item, study) for item, study in FIGURES.items()]


def _used(item: str, samples: Iterable[Sample]) -> Iterator[Sample]:
    return (sample for sample in samples if sample.metric in USED[item].split())


def parts_at(setting: common.Setting) -> Study:
    """Some claims of the ablation in short, on one network."""
    return replace(
        ablation.ABLATION,
        cells=PART_CELLS,
        scenario=lambda factors: ablation.build(factors, setting, SHORT),
        samples=lambda factors, run: _used("ablation", ablation.samples(factors, run, setting, SHORT)),
        claims=[claim for claim in ablation.ABLATION.claims if claim.id in PARTS],
    )


def places() -> Iterator[Place]:
    """Each round trip, set of contracts and reading of the colors; then each other assumption alone."""
    for reading, (proposed, baseline) in READINGS.items():
        for round_trip in common.ROUND_TRIPS:
            for contracts in CROSSED if reading == OUT_ONLY else WITH_READINGS:
                case = Case(proposed, baseline, contracts, round_trip)
                setting = replace(SETTING, round_trip=round_trip, rates=common.SETS[contracts])
                if reading == OUT_ONLY:
                    studies: Sequence[Study] = [*figures_at(case, setting), parts_at(setting)]
                    yield Place(f"{round_trip} ms", contracts, studies)
                else:
                    yield Place(reading, f"{round_trip} ms, {contracts}", figures_at(case, setting))
    for assumption, values in ALONE.items():
        for value, setting in values.items():
            yield Place(assumption, value, figures_at(Case(), setting))


MAP = map_of(
    "bouras",
    "Every claim under other assumptions",
    f"{TITLE}: round trip and contracts of its lost Figure 1, WRED's colors, and what else it leaves open",
    stated=[*FIGURES.values(), ablation.ABLATION],
    places=list(places()),
    statement=THIS.item("map"),
)
