"""Measures how far bounds are above what can happen, and draws docs/images/tightness.png.

    python -m tools.tightness

The ratios of each bound to the longest wait among adversarial phases come from the tests of perhop-bounds.
Prints their quantiles, as docs/guarantees.md has them.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from matplotlib.figure import Figure
from tools.transcripts import ROOT

TEST = ["cargo", "test", "--locked", "--quiet", "--package", "perhop-bounds", "--test", "all"]
RUN = [*TEST, "--", "--ignored", "ratios_as_a_table"]
TABLE = ROOT / "target" / "tmp" / "tightness.csv"


def main() -> int:
    """Measure, print, draw."""
    subprocess.run(RUN, cwd=ROOT, check=True)
    ratios: dict[str, list[float]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        name, ratio = line.split(",")
        ratios.setdefault(name, []).append(float(ratio))
    print("| | bounds | median | 90 % | largest |\n|---|---|---|---|---|")
    for name, values in ratios.items():
        median, high = np.quantile(values, [0.5, 0.9])
        print(f"| {name} | {len(values)} | {median:.2f} | {high:.2f} | {max(values):.2f} |")
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, of_paths in zip(axes, (False, True), strict=True):
        for name, values in ratios.items():
            if ("hops" in name) is of_paths:
                axis.ecdf(values, label=name)
        axis.set_xlabel("bound / longest simulated")
        axis.set_title("Paths" if of_paths else "One hop", loc="left", fontsize=10)
        axis.legend(fontsize=7, loc="lower right", frameon=False)
        axis.grid(alpha=0.3)
    axes[0].set_xlim(0.95, 2.5)
    axes[1].set_xlim(1, 11)  # the legend stands beside the curves
    axes[0].set_ylabel("share of bounds")
    figure.savefig(ROOT / "docs" / "images" / "tightness.png", dpi=110)
    return 0


if __name__ == "__main__":
    sys.exit(main())
