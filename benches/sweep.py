"""What a sweep costs beside its runs, how it scales to two cores, and how fast its store opens.

Three figures:

- overhead: what a run costs outside the engine. A sweep of RUNS short runs on one thread takes W seconds from
  an empty store to a closed one; the same runs called one after the other, results thrown away, take the
  engine E seconds of W. The overhead of a run is (W - E) / RUNS. E holds the simulation and the conversion of
  its outcome; W - E the measures, the key, the journal and the bookkeeping.
- scaling: the wall time of a sweep of 32 runs of some tenths of a second on one thread over that on two; the
  shortest of REPEAT each, since another program's work only adds to them, and the median of their ratios.
  Beside it what the machine itself gives: the bare engine in one process over the same runs in two, by turns
  with the sweeps.
- reading: opening the store of the first sweep, with every record checked, and estimating all its points.

With `--ray` other figures: the same sweep of RUNS short runs on clusters of Ray, whose nodes are processes
of this machine with a processor each: two nodes of which one is killed after half of the runs, one node, two
nodes, and two with batches of eight runs. Each sweep must have every run in its store, once. The driver's
cost is the CPU time of this process, which hands out batches and keeps runs: a part for each run, and one for
each batch.

    python -m benches.sweep [--runs 10000] [--repeat 3] [--json FILE] [--ray]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import Any

from benches import engine

from perhop import _engine
from perhop.stores import measures
from perhop.stores.directory import Journals
from perhop.stores.sweeps import SweepStore
from perhop.sweeps.backend import LocalBackend
from perhop.sweeps.plan import Given, SweepPlan, read_plan
from perhop.sweeps.run import Runner, sweep
from perhop.sweeps.summary import summarize, to_json

SCENARIO = """
duration = "{duration}"
warmup = "0s"

[links.uplink]
from = "a"
to = "b"
rate = "2Mbps"
delay = "5ms"
queue = { aqm = "rio", limit = "200p", in = "60/180/0.02", total = "30/90/0.05" }

[[flows]]
name = "gold"
count = 2
from = "a"
to = "b"
transport = { tcp = "newreno" }
profile = { rate = "0.5Mbps", marker = "token-bucket", burst = "20kB" }

[[flows]]
name = "best effort"
count = 4
from = "a"
to = "b"
transport = { tcp = "newreno" }
"""
POINTS = 100
LONG_RUNS = 32


def plan_of(directory: Path, *, points: int, runs: int, duration: str, rate: int) -> SweepPlan:
    """A sweep over the rate of a link, from `rate` kbit/s on: `points` rates, `runs` of each."""
    (directory / "scenario.toml").write_text(SCENARIO.replace("{duration}", duration), encoding="utf-8")
    rates = [f"{rate + step}kbps" for step in range(points)]
    text = f'scenario = "scenario.toml"\nruns = {runs}\n[grid]\n"links.uplink.rate" = {json.dumps(rates)}\n'
    (directory / "sweep.toml").write_text(text, encoding="utf-8")
    return read_plan(directory / "sweep.toml", Given())


def swept(plan: SweepPlan, store: Path, jobs: int) -> float:
    """Wall time of a whole sweep, in seconds, from opening the store to closing it."""
    began = time.perf_counter()
    with SweepStore(store, print) as opened:
        runner = Runner(opened, LocalBackend(jobs), lambda _what, _total: nullcontext(lambda: None))
        sweep(plan, runner)
    assert runner.counts.simulated == len(plan.points) * plan.runs
    return time.perf_counter() - began


def engine_alone(plan: SweepPlan) -> float:
    """Wall time of the engine for the same runs, one after the other, in seconds."""
    began = time.perf_counter()
    for point in plan.points:
        for seed in range(plan.seed, plan.seed + plan.runs):
            _engine.simulate(point.scenario, seed)
    return time.perf_counter() - began


def in_processes(plan: SweepPlan, pool: ProcessPoolExecutor) -> float:
    """Wall time of the engine for the same runs in the processes of a pool, in seconds."""
    work = [
        (point.scenario, seed) for seed in range(plan.seed, plan.seed + plan.runs) for point in plan.points
    ]
    began = time.perf_counter()
    list(pool.map(one_run, work))
    return time.perf_counter() - began


def one_run(work: tuple[str, int]) -> None:
    """A run of the bare engine."""
    _engine.simulate(*work)


def measure(runs: int, repeat: int) -> dict[str, float]:
    """All figures, in the units that their names say."""
    with tempfile.TemporaryDirectory(prefix="perhop-bench-") as name:
        directory = Path(name)
        short = plan_of(directory, points=POINTS, runs=runs // POINTS, duration="1s", rate=2000)
        whole, bare = swept(short, directory / "short", 1), engine_alone(short)
        began = time.perf_counter()
        with SweepStore(directory / "short", print) as store:
            opened = time.perf_counter()
            to_json(short, summarize(short, [short.runs] * len(short.points), store))
        read = time.perf_counter()
        size = sum(path.stat().st_size for path in (directory / "short").rglob("*") if path.is_file())
        long = plan_of(directory, points=4, runs=LONG_RUNS // 4, duration="1500s", rate=20_000)
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(2, mp_context=spawn) as pool:
            list(pool.map(one_run, [(short.points[0].scenario, seed) for seed in range(8)]))  # start them
            pairs = []
            alone = []
            for n in range(repeat):
                pairs.append((swept(long, directory / f"one-{n}", 1), swept(long, directory / f"two-{n}", 2)))
                alone.append((engine_alone(long), in_processes(long, pool)))
    done = len(short.points) * short.runs
    return {
        "runs": done,
        "overhead_ms_per_run": (whole - bare) / done * 1e3,
        "engine_ms_per_run": bare / done * 1e3,
        "open_s": opened - began,
        "summarize_s": read - opened,
        "store_bytes_per_run": size / done,
        "one_core_s": min(one for one, _ in pairs),
        "speedup_two_cores": min(one for one, _ in pairs) / min(two for _, two in pairs),
        "speedup_two_cores_median": statistics.median(one / two for one, two in pairs),
        "speedup_two_processes_engine": min(one for one, _ in alone) / min(two for _, two in alone),
    }


def on_ray(runs: int) -> dict[str, float]:
    """The figures of a sweep on clusters of Ray."""
    with tempfile.TemporaryDirectory(prefix="perhop-bench-") as name:
        directory = Path(name)
        plan = plan_of(directory, points=POINTS, runs=runs // POINTS, duration="1s", rate=2000)
        alone = swept(plan, directory / "alone", 1)
        found = {"runs": runs, "local_ms_per_run": alone / runs * 1e3}
        cases = {
            "one_of_two_killed": (2, 64),
            "one_node": (1, 64),
            "two_nodes": (2, 64),
            "batches_of_8": (2, 8),
        }
        for case, (nodes, batch) in cases.items():
            wall, driver = swept_on_ray(plan, directory / case, nodes, batch, killed="killed" in case)
            found |= {
                f"{case}_ms_per_run": wall / runs * 1e3,
                f"{case}_driver_ms_per_run": driver / runs * 1e3,
            }
        of_64, of_8 = (found[f"{case}_driver_ms_per_run"] for case in ("two_nodes", "batches_of_8"))
        batch_ms = (of_8 - of_64) / (1 / 8 - 1 / 64)
        return found | {"driver_ms_per_batch": batch_ms, "driver_ms_per_run": of_64 - batch_ms / 64}


def swept_on_ray(
    plan: SweepPlan, store: Path, nodes: int, batch: int, *, killed: bool
) -> tuple[float, float]:
    """Wall time of a sweep on so many nodes, and the CPU time of the driver, in seconds."""
    from perhop.sweeps import ray_backend  # noqa: PLC0415 - Ray is optional

    ray_backend.MOST_IN_BATCH = batch
    with cluster(nodes) as (address, kill), ray_backend.RayBackend(address, None) as backend:

        @contextmanager
        def progress(_what: str, total: int) -> Iterator[Callable[[], None]]:
            steps = iter(range(1, total + 1))
            yield lambda: Thread(target=kill).start() if next(steps) == total // 2 and killed else None

        began, cpu = time.perf_counter(), time.process_time()
        with SweepStore(store, print) as opened:
            sweep(plan, Runner(opened, backend, progress))
        wall, driver = time.perf_counter() - began, time.process_time() - cpu
    contents = chain.from_iterable(contents for _, contents in Journals(store / "journals", print).read())
    kept = [(run.layout.key, run.seed) for run in measures.runs(content for _, content in contents)]
    assert len(kept) == len(set(kept)) == len(plan.points) * plan.runs, "a run is lost, or kept twice"
    return wall, driver


@contextmanager
def cluster(nodes: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """A head without processors and nodes with one each; the address, and what kills the last node."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - Ray is optional

    memory: dict[str, Any] = {"object_store_memory": 200_000_000}
    # A lost node is to be found out in seconds.
    checks = {"health_check_period_ms": 500, "health_check_failure_threshold": 3}
    head = {"num_cpus": 0, "include_dashboard": False, "_system_config": checks, **memory}
    started: Any = Cluster(initialize_head=True, head_node_args=head)
    added = [started.add_node(num_cpus=1, **memory) for _ in range(nodes)]
    try:
        yield started.address, lambda: started.remove_node(added[-1], allow_graceful=False)
    finally:
        started.shutdown()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=10_000, help="short runs, a multiple of 100")
    parser.add_argument("--repeat", type=int, default=3, help="sweeps on one and on two threads")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--ray", action="store_true", help="measure clusters of Ray on this machine instead")
    options = parser.parse_args()
    if why := engine.missing():
        parser.error(why)
    found = on_ray(options.runs) if options.ray else measure(options.runs, options.repeat)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.ray:
        for name, value in found.items():
            print(f"  {name.replace('_', ' '):<40} {value:,.4g}")
        return
    print(f"a sweep of {found['runs']:,.0f} runs of {found['engine_ms_per_run']:.3f} ms in the engine:")
    print(f"  overhead of a run outside the engine   {found['overhead_ms_per_run']:.3f} ms")
    print(f"  store opened and checked               {found['open_s']:.3f} s")
    print(f"  summarized                             {found['summarize_s']:.3f} s")
    print(f"  store                                  {found['store_bytes_per_run']:.0f} bytes a run")
    print(f"a sweep of {LONG_RUNS} runs, {found['one_core_s']:.1f} s on one core:")
    print(
        f"  two cores                              {found['speedup_two_cores']:.2f} times as fast "
        f"(median {found['speedup_two_cores_median']:.2f})"
    )
    print(
        f"  the bare engine in two processes       {found['speedup_two_processes_engine']:.2f} times as fast"
    )


if __name__ == "__main__":
    main()
