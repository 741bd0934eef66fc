"""A study in one file: does CoDel keep waits short beside drop-tail, and what does the link lose by it?

Copy it to `python/perhop/studies/others/`: `perhop list studies` then lists it, and `perhop reproduce
my-codel` runs, judges and reports it. `python examples/my_study.py` runs it by itself.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from perhop.show.declared import Axis, Table
from perhop.statistics.judging import above, below
from perhop.studies.evidence import Sample
from perhop.studies.judges import differences
from perhop.studies.sampling import waits
from perhop.studies.study import Claim, Study

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.studies.judges import Numbers

QUEUES = Axis("queue", "Queue", {"drop-tail": "drop-tail", "codel": "CoDel"})
FLOWS = Axis("flows", "Flows", {4: "4 flows", 16: "16 flows"})


def build(cell: Factors) -> dict[str, Any]:
    """Greedy flows over 10 Mbit/s and 40 ms, through one queue of 200 packets."""
    rule = {"aqm": cell["queue"], "limit": "200p"}
    link = {"from": "a", "to": "b", "rate": "10Mbps", "delay": "18ms", "queue": rule}
    flows = {"name": "greedy", "count": cell["flows"], "from": "a", "to": "b", "transport": {"tcp": "linux"}}
    return {"title": "My study", "duration": "20s", "warmup": "5s", "links": {"ab": link}, "flows": [flows]}


def samples(cell: Factors, run: Run) -> Iterator[Sample]:
    """The numbers to keep of one run: quantiles of the wait at the link in ms, and the use of the link."""
    link = run.link("ab")
    yield from waits(cell, link["delay_s"], {"wait_p99": 0.99})
    yield Sample(cell, "utilization", "fraction", float(link["utilization"]))


def change(metric: str, factor: float = 1.0) -> Numbers:
    """CoDel less so many times drop-tail, with each number of flows, on the same seeds."""
    pairs = {
        name: ({"queue": "codel", "flows": flows}, {"queue": "drop-tail", "flows": flows})
        for flows, name in FLOWS.names.items()
    }
    return differences(metric, pairs, factor=factor)


STUDY = Study(
    id="my-codel",
    title="CoDel beside drop-tail",
    source="A question of our own",
    summary="4 and 16 greedy flows on 10 Mbit/s under two queues",
    cells=[{"queue": queue, "flows": flows} for queue in QUEUES.names for flows in FLOWS.names],
    scenario=build,
    samples=samples,
    published=(),
    claims=(
        Claim(
            "waits-half-as-long",
            "With CoDel 99 % of packets wait less than half as long as with drop-tail.",
            change("wait_p99", 0.5).all(below).said("CoDel − half of drop-tail, ms: {:+.1}."),
            rule="The paired difference lies below 0 with its whole interval, with 4 and with 16 flows.",
            why="CoDel drops while packets wait more than 5 ms; drop-tail fills its 200 packets.",
        ),
        Claim(
            "keeps-the-link-busy",
            "With CoDel the link is used at least 95 % as much.",
            change("utilization", 0.95)
            .all(above)
            .said("CoDel − 95 % of drop-tail: {:+.3} (numbers of flows {failing})."),
            rule="The same of the use of the link, above 0.",
            why="One drop halves a window; several flows do not halve theirs at once.",
        ),
    ),
    tables=(
        Table("Wait of 99 % of packets, ms", {"wait_p99": ""}, QUEUES, (FLOWS,), digits=1),
        Table("Use of the link", {"utilization": ""}, QUEUES, (FLOWS,)),
    ),
    plots=(),
    extra=True,
    default_runs=5,
)

if __name__ == "__main__":
    from perhop.studies.reproduction import Counts, execute, plan

    (outcome,) = execute(plan([STUDY], runs=None, seed=1), jobs=2, store=None, counts=Counts())
    for verdict in outcome.claims:
        sys.stdout.write(f"{verdict.claim.id}: {verdict.state}. {verdict.judgement.evidence}\n")
