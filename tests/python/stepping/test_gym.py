"""`perhop.gym`: environments, by Gymnasium's own checker and by hand."""

from __future__ import annotations

import copy
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import perhop
from perhop import gym
from perhop.errors import PerhopError

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
SHORT = {"duration": "4s", "warmup": "1s"}
ENVIRONMENTS = ["perhop/Aqm-v0", "perhop/Congestion-v0"]


def made(name: str) -> gymnasium.Env[Any, Any]:
    scenario = gym.AQM_SCENARIO if "Aqm" in name else gym.CONGESTION_SCENARIO
    return gymnasium.make(name, scenario={**scenario, **SHORT})


def episode(env: gymnasium.Env[Any, Any], seed: int | None, actions: int) -> list[Any]:
    """What there is to see, with actions of this seed."""
    observed, _ = env.reset(seed=seed)
    env.action_space.seed(actions)
    seen, done = [observed.tolist()], False
    while not done:
        observed, reward, ended, done, _ = env.step(env.action_space.sample())
        assert not ended
        seen.append((observed.tolist(), reward))
    return seen


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_gymnasiums_checker_finds_nothing(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # It recommends symmetric actions; settings from 0 to 1 are meant. And nothing is drawn.
        warnings.filterwarnings("ignore", message=".*symmetric.*")
        warnings.filterwarnings("ignore", message=".*infinity.*")
        warnings.filterwarnings("ignore", message=".*render.*")
        check_env(made(name).unwrapped)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_episodes_follow_from_the_seed(name: str) -> None:
    env, other = made(name), made(name)
    first, again = episode(env, 7, 3), episode(other, 7, 3)
    assert first == again
    assert len(first) == 1 + 30
    second = episode(env, None, 3)
    assert second != first, "the next episode is another run"
    assert second == episode(other, None, 3)
    assert episode(env, 8, 3) != first


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environments_are_vectorized(name: str) -> None:
    scenario = {**(gym.AQM_SCENARIO if "Aqm" in name else gym.CONGESTION_SCENARIO), **SHORT}
    envs = gymnasium.make_vec(name, num_envs=3, vectorization_mode="sync", scenario=scenario)
    observed, _ = envs.reset(seed=5)
    assert observed.shape[0] == 3
    assert not np.array_equal(observed[0], observed[1]) or "Congestion" in name
    for _ in range(3):
        observed, rewards, *_ = envs.step(envs.action_space.sample())
    assert rewards.shape == (3,)
    alone = made(name)
    alone.reset(seed=5)
    envs.close()


def test_observations_of_the_queue_by_hand() -> None:
    # 10 Mbit/s of constant traffic into 8 Mbit/s, a queue of 100 packets of 1000 bytes: it is full, which is
    # 100 ms, and a fifth is lost.
    udp = {"udp": "cbr", "rate": "10Mbps", "packet": "1000B", "jitter": 0}
    scenario: dict[str, Any] = {
        **copy.deepcopy(gym.AQM_SCENARIO),
        **SHORT,
        "flows": [{"name": "source", "from": "a", "to": "b", "start": "0s", "transport": udp}],
    }
    scenario["links"]["uplink"]["queue"] = {"aqm": "drop-tail", "limit": "100p"}
    limit = gym.Parameter("limit", 100, 20, "p")
    env = gym.AqmEnv(scenario, parameters=[limit])
    env.reset(seed=1)
    for _ in range(3):
        observed, reward, _, _, info = env.step(np.zeros(1, dtype=np.float32))
    named = dict(zip([name for name, *_ in gym.AQM_OBSERVATION], observed.tolist(), strict=False))
    assert info["values"] == ("100p",)
    assert named["queue"] == pytest.approx(100, abs=1)
    assert named["delay"] == pytest.approx(0.1, abs=0.002)
    assert named["arrivals"] == pytest.approx(1250, abs=10)
    assert named["goodput"] == pytest.approx(1, abs=0.011)
    assert named["loss"] == pytest.approx(0.2, abs=0.02)
    assert named["marks"] == 0
    # 100 ms is five targets: four too many.
    assert reward == pytest.approx(1 - 4, abs=0.15)
    for _ in range(3):
        observed, *_, info = env.step(np.ones(1, dtype=np.float32))
    assert info["values"] == ("20p",)
    assert observed[1] == pytest.approx(0.02, abs=0.002)


def test_the_window_of_a_flow_by_hand() -> None:
    # Alone: 10 segments of 8000 bits in 40 ms and what a packet and an ACK of 40 bytes take at 8 Mbit/s.
    flows = gym._congestion_scenario("window")["flows"]
    alone = {**gym.CONGESTION_SCENARIO, **SHORT, "flows": flows[:1]}
    env = gym.CongestionEnv(alone, sets="window", gain=1.0)
    observed, _ = env.reset(seed=1)
    assert observed[0] == 10.0
    for _ in range(8):
        observed, *_, info = env.step(np.zeros(1, dtype=np.float32))
    round_trip = 0.04 + 0.001 + 0.00004
    assert observed[:3].tolist() == pytest.approx([10.0, 10 * 8e-3 / round_trip, 0.0], abs=0.12)
    assert observed[3] == pytest.approx(round_trip, abs=0.002)
    assert info == {"window": 10.0}
    windows = [env.step(np.array([action], dtype=np.float32))[0][0] for action in (1.0, -1.0, -1.0)]
    assert windows == [20.0, 10.0, 5.0]
    assert env.simulation.flows["agent"].window == pytest.approx(5.0)


def test_the_rate_of_a_flow_by_hand() -> None:
    # Alone at 1 Mbit/s: a packet each 8 ms over 20 ms and a packet's time at 8 Mbit/s.
    alone = {**gym.CONGESTION_SCENARIO, **SHORT, "flows": gym.CONGESTION_SCENARIO["flows"][:1]}
    env = gym.CongestionEnv(alone, delay_weight=10, loss_weight=5)
    observed, _ = env.reset(seed=1)
    assert observed[0] == 1.0
    for _ in range(4):
        observed, reward, *_ = env.step(np.zeros(1, dtype=np.float32))
    assert observed[:3].tolist() == pytest.approx([1.0, 1.0, 0.0], abs=0.1)
    assert observed[3] == pytest.approx(0.021, abs=1e-4)
    assert observed[4] == pytest.approx(0, abs=1e-6)
    assert reward == pytest.approx(observed[1] - 0.21, abs=1e-3)
    rates = [env.step(np.array([action], dtype=np.float32))[0][0] for action in (1.0, -1.0, 9.0)]
    assert rates == pytest.approx([1.25, 1.0, 1.25])
    for _ in range(15):
        observed, *_ = env.step(np.ones(1, dtype=np.float32))
    assert observed[0] == 20
    assert observed[2] > 0.4, "8 Mbit/s carry two fifths of 20"
    assert env.simulation.flows["agent"].sent > 0


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_step_needs_an_episode_and_an_action_of_its_shape(name: str) -> None:
    env = made(name).unwrapped
    sound = np.zeros(1, dtype=np.float32)
    with pytest.raises(PerhopError, match="no episode is running"):
        env.step(sound)
    env.reset(seed=1)
    for action in (0.5, None, "fast", [], [0.5, 0.5], [float("nan")]):
        with pytest.raises(PerhopError, match="an action is an array of 1 number, not"):
            env.step(action)
    for _ in range(30):
        *_, truncated, _ = env.step(sound)
    assert truncated
    with pytest.raises(PerhopError, match="no episode is running"):
        env.step(sound)
    env.reset()
    env.step(sound)


def test_a_flow_whose_window_is_set_is_described_as_messages_and_the_documentation_have_it() -> None:
    written = f'congestion = "{gym.AGENT_WINDOW}"'
    with pytest.raises(PerhopError, match=written):
        gym.CongestionEnv(sets="window", flow="bulk")
    assert written in str(gym.CongestionEnv.__init__.__doc__)
    assert written in (ROOT / "docs" / "stepping.md").read_text(encoding="utf-8")


def test_wrong_input_is_refused_in_one_line() -> None:
    limit = gym.Parameter("limit", 20, 100, "p")
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: gym.AqmEnv(link="downlink"), "downlink"),
        (lambda: gym.AqmEnv(parameters=[gym.Parameter("max_q", 0, 1)]), "max_q"),
        (lambda: gym.AqmEnv(interval=0), "interval"),
        (lambda: gym.CongestionEnv(flow="bulk"), "`bulk` has no rate to set; name a flow over UDP"),
        (lambda: gym.CongestionEnv(flow="nope"), "there are agent, bulk"),
        (
            lambda: gym.CongestionEnv(sets="window", flow="bulk"),
            "`bulk` has no window to set; name a flow over TCP",
        ),
        (lambda: gym.CongestionEnv(sets="windows"), "sets: rate or window, not 'windows'"),  # type: ignore[arg-type]
        (lambda: gym.CongestionEnv(windows=(0.5, 9)), "windows: two windows of at least 1"),
        (lambda: gym.AqmEnv(link="nope"), "no link `nope` with a queue; there are: uplink"),
        (lambda: gym.AqmEnv(parameters=["max_p"]), "parameters: give a list such as"),  # type: ignore[list-item]
        (lambda: gym.AqmEnv(parameters=limit), "parameters: give a list such as"),  # type: ignore[arg-type]
        (lambda: gym.AqmEnv(parameters=[]), "parameters: give a list such as"),
        (lambda: gym.AqmEnv(parameters=[limit, limit]), "`limit` is given 2 times"),
        (lambda: gym.Parameter("limit", 20, 20), "low and high differ"),
        (lambda: gym.Parameter("limit", float("nan"), 20), "low is a finite number"),
        (lambda: gym.Parameter("limit", 1, float("inf")), "high is a finite number"),
        (lambda: gym.Parameter("max_p", 0, 1, log=True), "low is above 0 where log is set"),
        (lambda: gym.Parameter("", 0, 1), "key is a text"),
        (lambda: gym.CongestionEnv(rates_mbps=(2, 1)), "rates_mbps"),
    ]
    for make, message in wrong:
        with pytest.raises(PerhopError, match=message) as refused:
            make()
        assert "\n" not in str(refused.value)


def test_without_gymnasium_the_extra_is_named() -> None:
    program = (
        "import importlib.util as u; found = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'gymnasium' else found(name, *more)\n"
        "import perhop\n"
        "try:\n    import perhop.gym\nexcept perhop.PerhopError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT / "python"
    )
    assert done.stdout == "perhop.gym needs Gymnasium: pip install 'perhop[gym]'\n"


def test_a_parameter_from_its_setting() -> None:
    assert gym.Parameter("max_p", 0.001, 0.1, log=True).value(0.5) == 0.01
    assert gym.Parameter("limit", 10, 100, "p").value(0.5) == "55p"
    assert gym.Parameter("target", 1, 20, "ms").value(0.25) == "5.750000ms"
    assert perhop.Simulation(gym.AQM_SCENARIO).set("links.uplink.queue.max_p", 0.01).changes[0].value == 0.01


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_step_and_the_episode_goes_on_later(name: str, number: signal.Signals) -> None:
    """The program's own handler decides what becomes of it; SIGTERM has none unless the program sets one."""

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    scenario = gym.AQM_SCENARIO if "Aqm" in name else gym.CONGESTION_SCENARIO
    days = {**scenario, "duration": "2000000s", "warmup": "0s"}
    env = gymnasium.make(name, scenario=days, interval="1000000s").unwrapped
    env.reset(seed=1)
    before = signal.signal(number, stop)
    timer = threading.Timer(0.3, signal.raise_signal, (number,))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            env.step(env.action_space.sample())
    finally:
        timer.join()
        signal.signal(number, before)
    stopped = env.simulation.now  # type: ignore[attr-defined] # of perhop's environments
    assert 0 < stopped < 1_000_000
    env.simulation.run_for("10ms")  # type: ignore[attr-defined]
    assert env.simulation.now == pytest.approx(stopped + 0.01)  # type: ignore[attr-defined]
    observed, _ = env.reset(seed=2)
    assert env.observation_space.contains(observed)
