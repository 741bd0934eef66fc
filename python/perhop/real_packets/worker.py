"""The process in which one run on real packets happens; started by `laboratory.py`, never imported.

An ordinary user gets the rights for it from a user namespace, which the kernel gives to processes of one
thread only. So this loads the engine alone, and not the package, whose libraries start threads. The run's
namespaces and devices belong to this process and go with it, however it ends.

Without a scenario it only tries whether there could be a run.

Arguments: the engine's file. Standard input: a JSON object with `scenario`, `seed`, and how it is
to be done: `real_time`, `device`, `watch_s`, or `virtual_time`; or with `kernel_queue`, packets for a queue
of the kernel.
Standard output: a pickled pair for each message, ("glimpse", line) and in the end ("done", result) or (name
of an exception, text).
"""

import importlib.util
import json
import pickle
import sys
from collections.abc import Callable
from typing import Any


def run(engine: Any, wanted: dict[str, Any], tell: Callable[[str, object], None]) -> dict[str, Any]:  # noqa: ANN401
    """The run that is wanted."""
    if "kernel_queue" in wanted:
        passed: dict[str, Any] = engine.kernel_queue(**wanted["kernel_queue"])
        return passed
    if wanted.get("virtual_time"):
        made: dict[str, Any] = engine.live_in_virtual_time(wanted["scenario"], wanted["seed"])
        return made
    watch_s = wanted["watch_s"]
    result: dict[str, Any] = engine.live(
        wanted["scenario"],
        wanted["seed"],
        real_time=wanted["real_time"],
        device=wanted["device"],
        watch_s=watch_s,
        watch=None if watch_s is None else lambda line: tell("glimpse", line),
    )
    return result


def main() -> None:
    """Run once, and send the result."""
    spec = importlib.util.spec_from_file_location("perhop._engine", sys.argv[1])
    assert spec is not None
    assert spec.loader is not None
    engine = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(engine)
    wanted = json.load(sys.stdin)
    out = sys.stdout.buffer

    def tell(kind: str, content: object) -> None:
        pickle.dump((kind, content), out)
        out.flush()

    try:
        result = run(engine, wanted, tell) if wanted else engine.live_probe()
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent raises it
        tell(type(error).__name__, str(error))
    else:
        tell("done", result)


main()
