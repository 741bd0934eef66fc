"""An agent that sets RED's `max_p` ten times a second, against the best fixed one: pip install 'perhop[gym]'.

There is one flow and, for a third of a run, there are 24 more: no fixed `max_p` suits both times. The agent
is linear: its setting is a weighted sum of what it observes. The weights come of the cross-entropy method
(Rubinstein 1999), on runs of the training seeds. The fixed setting that it is compared with is the best of a
grid on the same runs. What is printed is of other runs, the same for both.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import perhop.gym as perhop_gym
from perhop import statistics

Array = NDArray[np.float64]
Policy = Callable[[NDArray[np.float32]], float]

SCENARIO = {
    "duration": "24s",
    "warmup": "2s",
    "links": {
        "uplink": {
            "from": "a",
            "to": "b",
            "rate": "8Mbps",
            "delay": "30ms",
            "queue": {"aqm": "red", "thresholds": "2/60/0.1", "limit": "200p", "gentle": True},
        }
    },
    "flows": [
        {"name": "always", "count": 1, "from": "a", "to": "b", "transport": {"tcp": "newreno"}},
        {
            "name": "busy hour",
            "count": 24,
            "from": "a",
            "to": "b",
            "transport": {"tcp": "newreno"},
            "start": "8s..9s",
            "stop": "16s",
        },
    ],
}
TARGET_S = 0.02
MAX_P = perhop_gym.Parameter("max_p", 0.002, 1.0, log=True)


def environment() -> perhop_gym.AqmEnv:
    """Goodput counts; each 20 ms of queueing delay beyond the first 20 ms costs as much as the whole link."""
    reward = perhop_gym.near_target(TARGET_S, weight=1.0)
    return perhop_gym.AqmEnv(SCENARIO, parameters=[MAX_P], reward=reward)


def line(weights: Array) -> Policy:
    """The policy with weights of: 1, the delay's distance from the target, its trend, the last setting."""
    last = [0.0]

    def act(observed: NDArray[np.float32]) -> float:
        delay, setting = float(observed[1]) / TARGET_S - 1.0, float(observed[-1])
        features = np.array([1.0, delay, delay - last[0], setting])
        last[0] = delay
        return float(np.clip(weights @ features, 0.0, 1.0))

    return act


def fixed(setting: float) -> Policy:
    """The policy that never changes."""
    return lambda _observed: setting


def episode(env: perhop_gym.AqmEnv, policy: Policy, seed: int) -> float:
    """The mean reward of a step, in the run of this seed."""
    observed, _ = env.reset(seed=seed)
    earned, done = [], False
    while not done:
        observed, reward, _, done, _ = env.step(np.array([policy(observed)], dtype=np.float32))
        earned.append(reward)
    return float(np.mean(earned))


def rewards(env: perhop_gym.AqmEnv, policy: Callable[[], Policy], seeds: range) -> dict[int, float]:
    """The mean reward of a step in each of these runs."""
    return {seed: episode(env, policy(), seed) for seed in seeds}


def mean(env: perhop_gym.AqmEnv, policy: Callable[[], Policy], seeds: range) -> float:
    """The mean reward of a policy over the seeds."""
    return float(np.mean(list(rewards(env, policy, seeds).values())))


def train(env: perhop_gym.AqmEnv, seeds: range, rounds: int, candidates: int) -> Array:
    """Weights by the cross-entropy method: draw, keep the best quarter, draw around them."""
    random = np.random.default_rng(1)
    # It starts near a controller that raises the setting while the delay is above the target.
    center, spread = np.array([0.0, 0.05, 0.1, 1.0]), np.array([0.1, 0.1, 0.2, 0.1])
    for _ in range(rounds):
        drawn = center + spread * random.standard_normal((candidates, len(center)))
        scores = [mean(env, lambda weights=weights: line(weights), seeds) for weights in drawn]
        best = drawn[np.argsort(scores)[-max(2, candidates // 4) :]]
        center, spread = best.mean(axis=0), best.std(axis=0) + 0.01
    return center


def main() -> None:
    """Train, choose the best fixed setting, and compare them on runs that neither has seen."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--candidates", type=int, default=16)
    parser.add_argument("--runs", type=int, default=10, help="runs of the comparison")
    chosen = parser.parse_args()
    env, training, fresh = environment(), range(1, 3), range(101, 101 + chosen.runs)
    grid = np.linspace(0, 1, 9)
    scores = [mean(env, lambda setting=setting: fixed(setting), training) for setting in grid]
    best = float(grid[int(np.argmax(scores))])
    weights = train(env, training, chosen.rounds, chosen.candidates)
    ours = rewards(env, lambda: line(weights), fresh)
    theirs = rewards(env, lambda: fixed(best), fresh)
    more = statistics.paired_difference(ours, theirs)
    value = MAX_P.value(best)
    print(f"mean reward of a step in {chosen.runs} runs apart from those of training:")
    print(f"  best fixed max_p, {value}: {np.mean(list(theirs.values())):.3f}")
    print(f"  agent: {np.mean(list(ours.values())):.3f}, weights {np.round(weights, 3).tolist()}")
    print(f"  difference: {more.text(sign=True)} (95 % interval)")


if __name__ == "__main__":
    main()
