"""One run of the engine in a process of its own, and what a benchmark needs to know of it.

    python benches/run_engine.py SCENARIO SEED [THREADS]

The scenario is TOML if its file is named so, else JSON. Its run uses at most so many threads (default: 1).
Loads the engine alone, without the Python package around it, so that its start-up and memory are small beside
the run's. Prints one JSON object; see `Answer` in `engine.py`.
"""

from __future__ import annotations

import importlib.util
import json
import resource
import sys
import time
from pathlib import Path
from types import ModuleType


def load_engine() -> ModuleType:
    """The compiled module.

    Raises:
        RuntimeError: It is not installed for this interpreter.
    """
    package = importlib.util.find_spec("perhop")
    places = (package.submodule_search_locations if package else None) or []
    for place in places:
        for path in Path(place).glob("_engine.*so"):
            spec = importlib.util.spec_from_file_location("_engine", path)
            if spec is not None and spec.loader is not None:
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                return module
    raise RuntimeError(f"perhop's engine is not installed for {sys.executable}")


def peak_bytes() -> int:
    """Most memory that this process has held.

    On Linux `ru_maxrss` begins with that of the program that started this one, so its table is asked first.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    """Runs and prints."""
    engine = load_engine()
    file = Path(sys.argv[1])
    read = engine.scenario_from_toml if file.suffix == ".toml" else engine.scenario_from_json
    scenario = read(file.read_text(encoding="utf-8"), "benchmark")
    if (content := json.loads(scenario))["warmup"] == "auto":
        scenario = json.dumps({**content, "warmup": "0s"})  # the whole run counts
    threads = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    begin = time.perf_counter()
    result = engine.simulate(scenario, int(sys.argv[2]), threads=threads)
    seconds = time.perf_counter() - begin
    peak = peak_bytes()
    named = (link for link in result["links"] if link["name"] == "bottleneck")
    bottleneck = next(named, result["links"][0])
    answer = {
        "arrived": int(bottleneck["arrived"].sum()),
        "sent": int(bottleneck["sent"].sum()),
        "packet_hops": sum(int(link["arrived"].sum()) for link in result["links"]),
        "waiting": float(bottleneck["mean_queue_packets"]),
        "looks": len(result["series"]["time_s"]),
        "peak_bytes": peak,
        "seconds": seconds,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
