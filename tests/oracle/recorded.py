"""What ns-2 measured for the tests, kept in a file: its runs take longer than all that they are held against.

The same command gives the same numbers each time, so only a change of a setting or a script makes them stale,
which `rates` notices. Run as a program, this module measures anew what is stale (all with `--all`):

    python -m tests.oracle.recorded
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.oracle import ecn, finite, ns2, rap
from tests.oracle.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

FILE = Path(__file__).parent / "ns2" / "recorded.json"
SEEDS = range(1, 7)
RAP_SEEDS = range(1, 5)
RAP = "RAP: "
ECN = "ECN: "
FINITE = "finite: "
NAMES = (
    *SETTINGS,
    *(RAP + name for name in rap.SETTINGS),
    *(ECN + name for name in ecn.SETTINGS),
    *(FINITE + name for name in finite.SETTINGS),
)


def rates(name: str) -> list[dict[str, float]]:
    """Mean rate in Mbit/s of a flow of each class, or kind, for each seed; else all quantities.

    Raises:
        LookupError: The setting is not kept, or not as it is now.
    """
    entry = json.loads(FILE.read_text(encoding="utf-8")).get(name, {})
    if entry.get("commands") != commands(name):
        raise LookupError(f"{name}: not measured as it is now; run `python -m tests.oracle.recorded`")
    found: list[dict[str, float]] = entry["runs"]
    return found


def measured(name: str) -> list[dict[str, float]]:
    """The rates of a setting, measured by ns-2, which must be there."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(lambda seed: _run(name, seed), _seeds(name)))


def commands(name: str) -> str:
    """A digest of what ns-2 is given: the script, and the arguments for each seed."""
    scripts = {RAP: rap.SCRIPT, ECN: ecn.SCRIPT, FINITE: finite.SCRIPT}
    script = next((one for prefix, one in scripts.items() if name.startswith(prefix)), ns2.SCRIPT)
    given = [script.read_text(encoding="utf-8"), *(_arguments(name, seed) for seed in _seeds(name))]
    return hashlib.sha256(json.dumps(given).encode()).hexdigest()[:16]


def _run(name: str, seed: int) -> dict[str, float]:
    if name.startswith(RAP):
        return rap.ns2_rates(rap.SETTINGS[name.removeprefix(RAP)], seed)
    if name.startswith(ECN):
        return ecn.ns2_run(ecn.SETTINGS[name.removeprefix(ECN)], seed)
    if name.startswith(FINITE):
        return finite.ns2_run(finite.SETTINGS[name.removeprefix(FINITE)], seed)
    return {str(index): rate for index, rate in enumerate(ns2.run(SETTINGS[name], seed).class_mbps)}


def _seeds(name: str) -> Sequence[int]:
    return RAP_SEEDS if name.startswith(RAP) else SEEDS


def _arguments(name: str, seed: int) -> list[str]:
    if name.startswith(RAP):
        return rap.arguments(rap.SETTINGS[name.removeprefix(RAP)], seed)
    if name.startswith(ECN):
        return ecn.arguments(ecn.SETTINGS[name.removeprefix(ECN)], seed)
    if name.startswith(FINITE):
        return finite.arguments(finite.SETTINGS[name.removeprefix(FINITE)], seed)
    return [f"seed={seed}", *SETTINGS[name].arguments()]


def main() -> None:
    """Measure what is stale, and write the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="what is not stale, too")
    everything = parser.parse_args().all
    kept: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for name in NAMES:
        if everything or kept.get(name, {}).get("commands") != commands(name):
            kept[name] = {"commands": commands(name), "runs": measured(name)}
            ordered = {name: kept[name] for name in NAMES if name in kept}
            FILE.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
