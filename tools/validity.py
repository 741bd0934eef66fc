"""Write docs/project/validity.md: each number of perhop beside theory, RFC 9332, ns-2, ns-3 and Linux.

    python -m tools.validity                     everything that this machine can run (20 minutes)
    python -m tools.validity --only theory       one peer anew; the others stay as they were measured
    python -m tools.validity --render            the page from docs/project/validity.json, without measuring

The measurements are kept in validity.json beside it, those of `tools.coverage` in coverage.json,
stopped.json, warmed.json and splitting.json. ns-2 and ns-3 need Debian's packages `ns2` and `libns3-dev`; the
kernel needs what `perhop live` needs (docs/live.md).
A missing peer is left as it was, and said.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from tests.oracle import dualpi2, ns2, peers, presets, process, testbed, theory
from tests.oracle.agreement import STATES
from tools.coverage import page as coverage
from tools.coverage import splitting, stopped, warmed

from perhop import _engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.oracle.agreement import Agreement

HERE = Path(__file__).parent
DATA = HERE.parent / "docs" / "project" / "validity.json"
PAGE = HERE.parent / "docs" / "project" / "validity.md"
COVERAGE = HERE.parent / "docs" / "project" / "coverage.json"

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Peer:
    """A theory or a program that perhop is compared with.

    Attributes:
        title: As the page shows it.
        about: What is compared, and by which margin.
        measure: All comparisons.
        by_class: The rows are rates by class, shown as a matrix.
    """

    title: str
    about: str
    measure: Callable[[], Iterator[Agreement]]
    by_class: bool = False


PEERS: Mapping[str, Peer] = {
    "theory": Peer(
        "Theory",
        "Formulas and bounds, 30 runs. Margin 2 % where the formula is exact, 3 % for the loss of a finite "
        "queue, 10 % for the laws of TCP, which are approximations.",
        lambda: theory.all_of_theory(range(1, 31)),
    ),
    "dualpi2": Peer(
        "DualPI2",
        "What RFC 9332 and its authors promise, and the laws behind it "
        "([formulas](../../tests/oracle/dualpi2.py)): Prague's flows in the L4S queue, as many of CUBIC "
        "in the classic one, packets of 1500 bytes, 4 runs of 60 s.\n\n"
        "- **Waits**: below 1 ms at the median and 2 ms at the 99th percentile; of each run the worst "
        "of the round trips 5, 10, 20, 50 and 100 ms. At 4 Mbit/s a packet takes 3 ms to send, and "
        "one that waits alone is not marked (`step-length`, Th_len): the promise fails by that time "
        "alone, and packets of 300 bytes keep it. With five flows of each it fails at 12 Mbit/s, too, "
        "where windows are below two segments. With one flow of each neither gets less than the "
        "scheduler's least share.\n"
        "- **Coupling**: L4S packets are marked with k = 2 times the root of the probability by which "
        "classic ones are dropped; margin 2 %.\n"
        "- **Rates**: Prague's window is x / p_L, CUBIC's sqrt(3 / (2 p_C)) (RFC 9438, section 4.3), "
        "and CUBIC's round trip has 15 ms of queue besides. x is 2 (1 - p_L) where marks come evenly; "
        "where they come at random and wait for the end of a reduction, x^2 = 2 (1 - p_L) (x + 1). "
        "The peer's number is the middle between both, the margin the way to either. With a target, "
        "flows with shorter round trips grow as one of 25 ms. The law holds while windows are at "
        'least two segments, CUBIC (RFC 9438\'s: `alpha = "raised"`) is in its Reno-friendly '
        "region, and no single flow moves p'; where windows have five to seven segments, it is coarse. "
        "With one flow of each, p' swings with CUBIC's window, and either flow gets up to about three times "
        "the other's rate.\n"
        "- **Overload**: flows that do not react lose the same part in both queues (section 4.2); "
        "margin 2 %.",
        lambda: dualpi2.all_of_dualpi2(range(1, 5)),
    ),
    "ns-2": Peer(
        "ns-2",
        "ns-2.35 with its own DiffServ module, TCP and RAP ([what differs, and why]"
        "(../../tests/oracle/README.md)). Rate of a flow of each class in Mbit/s, 12 runs of each program. "
        "Margin 5 % of ns-2's mean.",
        lambda: peers.all_of_ns2(range(1, 13)),
        by_class=True,
    ),
    "ns-2-ecn": Peer(
        "ns-2 with ECN",
        "ns-2.35: NewReno and SACK with ECN over its RED that marks ([what differs, and why]"
        "(../../tests/oracle/ecn.py)), 12 runs of each program. Margins of ns-2's mean: 5 % of throughput, "
        "2 % of utilization, 10 % of marks, drops and reductions. Where ns-2 marks or drops less than 0.01 % "
        "of the packets, that is not compared. With forty flows ns-2's senders reduce more often; its "
        "retransmissions can be marked, perhop's cannot (RFC 3168, section 6.1.5).",
        lambda: peers.all_of_ecn(range(1, 13)),
    ),
    "ns-2-finite": Peer(
        "ns-2 with finite flows",
        "ns-2.35: a thousand transfers of 5 to 500 kB that start as a Poisson process at a load of 0.6, with "
        "a mean round trip of 44 ms without queues ([what differs, and why](../../tests/oracle/finite.py)); "
        "mean completion times by size, 12 runs of each program on the same arrivals, so that each "
        "difference is one of pairs. Margin 5 % of ns-2's mean, 10 % of the 95th percentile and of drops. "
        "Where the first window is not limited, slow start overshoots and 6 % of the packets are lost: with "
        "SACK ns-2's long transfers then take longer, since its pipe keeps lost packets.",
        lambda: peers.all_of_finite(range(1, 13)),
    ),
    "ns-3": Peer(
        "ns-3",
        "ns-3.37: NewReno with SACK over RED and drop-tail; all flows together, 8 runs of each program. "
        "Margin 10 % of ns-3's mean, since its TCP differs in more.",
        lambda: peers.all_of_ns3(range(1, 9)),
    ),
    "ns-3-today": Peer(
        "ns-3 for mechanisms of today",
        "ns-3.37: RED, Adaptive RED, CoDel, PIE, COBALT, FQ-CoDel and a step that marks, with NewReno, "
        "CUBIC, DCTCP and BBR; four flows, 6 runs of each program ([what differs, and why]"
        "(../../tests/oracle/README.md)). Margin 5 % of ns-3's mean; for the P99, whose values lie a "
        "packet's transmission time apart, at least that time. Rows such as *NewReno, which halves its "
        "window* repeat others with one of ns-3's own ways taken out of it, and so show the cause. Where "
        "ns-3 marks or drops less than 0.01 % of the packets, that is not compared.",
        lambda: peers.all_of_ns3_today(range(1, 7)),
    ),
    "kernel": Peer(
        "Linux kernel",
        "The kernel's TCP through the same queues on real packets (`perhop compare`): 4 live and 20 "
        "simulated runs. Margins are [those of the command](../live.md#comparing-with-the-simulation). "
        "BBR does not react to marks, so it has no setting with ECN. What explains the differences: "
        "[today's congestion controls](../live.md#todays-congestion-controls).",
        lambda: peers.all_of_the_kernel(4),
    ),
    "testbed": Peer(
        "Published rows of a kernel testbed",
        testbed.ABOUT,
        testbed.all_of_the_testbed,
    ),
}


def main() -> None:
    """Measure what is asked for, and write both files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", choices=[*PEERS, "presets"], action="append", help="measure this peer alone"
    )
    parser.add_argument("--render", action="store_true", help="measure nothing")
    given = parser.parse_args()
    data: Entry = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    for name in [] if given.render else given.only or [*PEERS, "presets"]:
        began = time.monotonic()
        if name == "presets":
            cells = [cell.to_json() for cell in presets.all_of_the_presets()]
            data[name] = {"of": _of(), "rows": cells}
            DATA.write_text(to_json(data), encoding="utf-8")
            print(f"{name}: {len(cells)} cells ({time.monotonic() - began:.0f} s)")
            continue
        try:
            rows = [found.to_json() for found in PEERS[name].measure()]
        except (process.RunError, ns2.Ns2Error) as error:
            print(f"{name}: left as it was measured before: {error}")
            continue
        data[name] = {"of": _of(), "rows": rows}
        DATA.write_text(to_json(data), encoding="utf-8")
        counted = ", ".join(f"{state} {count}" for state, count in zip(STATES, _counts(rows), strict=True))
        print(f"{name}: {len(rows)} comparisons: {counted} ({time.monotonic() - began:.0f} s)")
    PAGE.write_text(page(data), encoding="utf-8")


def to_json(data: Entry) -> str:
    """The measurements, one comparison on each line."""
    parts = []
    for name in [*PEERS, "presets"]:
        if name in data:
            rows = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in data[name]["rows"])
            parts.append(f'"{name}": {{"of": {json.dumps(data[name]["of"])}, "rows": [\n{rows}\n]}}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def page(data: Entry) -> str:
    """The page as Markdown."""
    parts = [_part(peer, data[name]) for name, peer in PEERS.items() if name in data]
    differ = [row for part in parts for row in part["rows"] if row["state"] == "differs"]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=False,  # noqa: S701 - Markdown, of our own numbers
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template("validity.md.j2").render(
        parts=parts,
        differ=differ,
        presets=_presets(data),
        coverage=_section(COVERAGE, coverage.shown),
        **{
            of.__name__.rpartition(".")[2]: _section(of.DATA, of.shown) for of in (stopped, warmed, splitting)
        },
    )


def _section(data: Path, shown: Callable[[Entry], Entry]) -> Entry | None:
    """Return the section on the coverage of some intervals, if it has been measured."""
    return shown(json.loads(data.read_text(encoding="utf-8"))) if data.exists() else None


def _presets(data: Entry) -> Entry | None:
    """The table of presets, which has no peer."""
    if (found := data.get("presets")) is None:
        return None
    return {"about": presets.ABOUT, "of": found["of"], "rows": presets.rows(found["rows"])}


def _of() -> str:
    return f"perhop {_engine.version}, {platform.system()} {platform.release().split('-')[0]}"


def _part(peer: Peer, found: Entry) -> Entry:
    rows = [_row(peer, row) for row in found["rows"]]
    classes = list(dict.fromkeys(row["quantity"] for row in rows)) if peer.by_class else []
    settings = dict.fromkeys(row["setting"] for row in rows)
    return {
        "title": peer.title,
        "about": peer.about,
        "of": found["of"],
        "rows": rows,
        "counts": _counts(rows),
        "classes": classes,
        "matrix": [
            (
                setting,
                [
                    _cell([row for row in rows if (row["setting"], row["quantity"]) == (setting, one)])
                    for one in classes
                ],
            )
            for setting in settings
        ],
    }


def _row(peer: Peer, row: Entry) -> Entry:
    ours, theirs = row["perhop"], row["theirs"]
    by_amount = abs(theirs["mean"]) * 0.2 < row["margin"] or theirs["mean"] == 0
    difference = (
        f"{ours['mean'] - theirs['mean']:+.2f}"
        if by_amount
        else f"{100 * (ours['mean'] / theirs['mean'] - 1):+.1f} %"
    )
    return {
        **row,
        "peer": peer.title,
        "ours": _number(ours),
        "theirs": _number(theirs),
        "short": f"{ours['mean']:.3f} / {theirs['mean']:.3f}",
        "difference": difference.replace("-", "−"),
        "verdict": f"**{row['state']}**" if row["state"] == "differs" else row["state"],
    }


def _cell(rows: Sequence[Entry]) -> str:
    if not rows:
        return ""
    text = f"{rows[0]['short']}<br>{rows[0]['difference']}"
    shown = {"agrees": text, "cannot tell": f"{text} ?", "differs": f"**{text}**"}
    return shown[rows[0]["state"]]


def _number(found: Entry) -> str:
    half = found.get("half_width")
    if not half:
        return f"{found['mean']:.4g}"
    # Two significant digits of the half width.
    digits = max(0, 1 - int(f"{half:e}".split("e")[1]))
    return f"{found['mean']:.{digits}f} ± {half:.{digits}f}"


def _counts(rows: Sequence[Entry]) -> list[int]:
    return [sum(row["state"] == state for row in rows) for state in STATES]


if __name__ == "__main__":
    main()
