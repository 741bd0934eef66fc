"""What stepping costs: steps, readings, changes and snapshots of a simulation, and steps of environments.

The scenario is that of `perhop.gym.AqmEnv`: six flows over 8 Mbit/s; in the last table a hundred flows over
400 Mbit/s. The first table has the time of a whole run by the length of its steps, as a ratio to a run
without stops on the same engine. The second has the time of one call. The third has steps per second of the
environments, a hundred milliseconds simulated in each. The last has settings that differ from a time on, from
one snapshot and each from the beginning.

    python -m benches.stepping [--repeat 5] [--markdown]
"""

from __future__ import annotations

import argparse
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from benches import engine, measuring

import perhop
from perhop import gym

if TYPE_CHECKING:
    from collections.abc import Callable

    from perhop.runs.extent import Engine

STEPS = (10.0, 1.0, 0.1, 0.01, 0.001)
"""Lengths of steps, in s."""
SECONDS = 20.0
SCENARIO: dict[str, Any] = {**gym.AQM_SCENARIO, "duration": f"{SECONDS:g}s"}


def timed(work: Callable[[], object], repeat: int) -> measuring.Spread:
    """How long this takes, in s."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return measuring.Spread.of(times)


def whole_run(step: float | None, engine: Engine, *, reads: bool = False) -> None:
    """A run of 20 s in steps of this length; `reads` a link after each."""
    sim = perhop.Simulation(SCENARIO, engine=engine)
    while step is not None and not sim.is_done:
        sim.run_for(step)
        if reads:
            _ = sim.links["uplink"].queue
    sim.run_until(SECONDS)


def runs(repeat: int) -> list[tuple[str, ...]]:
    """A row for each length of a step: ratios to an unbroken run."""
    engines: tuple[Engine, ...] = ("reference", "batched")

    def times(step: float | None, engine: Engine, *, reads: bool = False) -> measuring.Spread:
        return timed(partial(whole_run, step, engine, reads=reads), repeat)

    base = {engine: times(None, engine) for engine in engines}
    rows: list[tuple[str, ...]] = [("whole run", *(f"{base[engine].text(1e3)} ms" for engine in engines), "")]
    for step in STEPS:
        each = [times(step, engine).text(1 / base[engine].median, 2) for engine in engines]
        read = times(step, "reference", reads=True).text(1 / base["reference"].median, 2)
        rows.append((f"steps of {step:g} s", *each, read))
    return rows


def calls(repeat: int) -> list[tuple[str, ...]]:
    """A row for each call: its time in microseconds."""
    sim = perhop.Simulation(SCENARIO).run_until(5)
    snapshot = sim.snapshot()
    values = [0.05, 0.2]

    def change() -> None:
        values.reverse()
        sim.set("links.uplink.queue.max_p", values[0])

    work: dict[str, Callable[[], object]] = {
        "run_for(0)": lambda: sim.run_for(0),
        "links[...]": lambda: sim.links["uplink"],
        "flows[...]": lambda: sim.flows["bulk/0"],
        "set(max_p)": change,
        "snapshot()": sim.snapshot,
        "restore()": lambda: sim.restore(snapshot),
    }

    def often(call: Callable[[], object]) -> None:
        for _ in range(200):
            call()

    return [(name, timed(partial(often, call), repeat).text(1e6 / 200)) for name, call in work.items()]


SETTINGS = (0.02, 0.05, 0.1, 0.2)
SETTLED_S = 10.0
"""Settings differ from then on, for half as long again."""


def settings(repeat: int) -> list[tuple[str, ...]]:
    """A row for each way to measure settings that differ from a time on: seconds."""
    queue = {"aqm": "red", "thresholds": "200/600/0.1", "limit": "2400p"}
    link = {"from": "a", "to": "b", "rate": "400Mbps", "delay": "10ms", "queue": queue}
    scenario = {
        "duration": f"{1.5 * SETTLED_S:g}s",
        "warmup": f"{SETTLED_S:g}s",
        "links": {"uplink": link},
        "flows": [{"name": "bulk", "count": 100, "from": "a", "to": "b", "transport": {"tcp": "linux"}}],
    }

    def begun() -> perhop.Simulation:
        return perhop.Simulation(scenario, engine="batched").run_until(SETTLED_S)

    def anew() -> None:
        for value in SETTINGS:
            begun().set("links.uplink.queue.max_p", value).finish()

    def from_one() -> None:
        sim = begun()
        settled = sim.snapshot()
        for value in SETTINGS:
            sim.restore(settled).set("links.uplink.queue.max_p", value).finish()

    ways = {"each from the beginning": anew, "from one snapshot": from_one}
    return [(name, timed(way, repeat).text(1.0)) for name, way in ways.items()]


def environments(repeat: int) -> list[tuple[str, ...]]:
    """A row for each environment: steps per second, and simulated seconds per second."""
    rows: list[tuple[str, ...]] = []
    for name, env in (("AqmEnv", gym.AqmEnv()), ("CongestionEnv", gym.CongestionEnv())):
        rates = []
        for seed in range(repeat):
            env.reset(seed=seed)
            env.action_space.seed(seed)
            steps, done, started = 0, False, time.perf_counter()
            while not done:
                *_, done, _ = env.step(env.action_space.sample())
                steps += 1
            rates.append(steps / (time.perf_counter() - started))
        spread = measuring.Spread.of(rates)
        rows.append((name, spread.text(1.0, 0), f"{statistics.median(rates) * 0.1:.0f}"))
    return rows


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--markdown", action="store_true")
    chosen = parser.parse_args()
    if why := engine.missing():
        parser.error(why)
    where = measuring.stay_on_one_core()
    print(f"medians and ranges of {chosen.repeat}, {where}, {measuring.machine()}")
    tables = {
        ("20 s in steps", "reference", "batched", "reference, a link read after each"): runs(chosen.repeat),
        ("call", "µs"): calls(chosen.repeat),
        ("environment", "steps/s", "simulated s/s"): environments(chosen.repeat),
        (f"{len(SETTINGS)} settings", "s"): settings(chosen.repeat),
    }
    for head, rows in tables.items():
        print()
        lines = [head, *rows]
        if chosen.markdown:
            lines.insert(1, tuple("---" for _ in head))
        for line in lines:
            print(
                "| " + " | ".join(line) + " |"
                if chosen.markdown
                else "  ".join(f"{cell:<24}" for cell in line)
            )


if __name__ == "__main__":
    main()
