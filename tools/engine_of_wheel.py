"""Installs perhop for development with the engine of a wheel, in place of one that is compiled for it.

    python -m tools.engine_of_wheel WHEEL

The result is that of `pip install --editable .`: the package is read from `python`, where the
engine lies, too.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "python" / "perhop"


def main(arguments: list[str]) -> int:
    """Install the wheel, take its engine, and lead imports to the sources."""
    (wheel,) = arguments
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-deps", "--force-reinstall", wheel], check=True)
    place = Path(sysconfig.get_paths()["platlib"])
    shutil.copy(place / "perhop" / "_engine.abi3.so", PACKAGE)
    shutil.rmtree(place / "perhop")
    (place / "perhop.pth").write_text(f"{PACKAGE.parent}\n", encoding="utf-8")
    subprocess.run([*pip, "check"], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
