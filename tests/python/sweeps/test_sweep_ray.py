"""A sweep on a Ray cluster of two local nodes: the same results bit for bit, also when a node is lost."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.python.sweeps.running import quietly

import perhop
from perhop import _engine
from perhop.errors import PerhopError
from perhop.stores.metrics import engine_id
from perhop.sweeps.backend import Failed, Task
from perhop.sweeps.job import Workplace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed (pip install 'perhop[ray]')"
)
SWEEP = """\
scenario = "small.toml"
runs = 40
[set]
duration = "300s"
[grid]
"flows.gold.count" = [1, 2, 3, 4]
"""
ALL = 160
MEMORY = 80_000_000
"""Bytes of each node's object store: far below what a test machine has."""


def in_process(directory: Path, place: Workplace) -> Any:  # noqa: ANN401
    return quietly(directory / "sweep.toml", place)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without processors, and a node with one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        from ray.cluster_utils import Cluster  # noqa: PLC0415 - an optional dependency

        head = {
            "num_cpus": 0,
            "include_dashboard": False,
            "object_store_memory": MEMORY,
            # A lost node is to be found out in seconds.
            "_system_config": {"health_check_period_ms": 500, "health_check_failure_threshold": 3},
        }
        started: Any = Cluster(initialize_head=True, head_node_args=head)
        started.add_node(num_cpus=1, object_store_memory=MEMORY)
        yield started
        started.shutdown()


@pytest.mark.long
@needs_ray
@pytest.mark.usefixtures("small")
def test_a_lost_node_changes_nothing(tmp_path: Path, cluster: Any) -> None:  # noqa: ANN401
    (tmp_path / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    second = cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "perhop", "sweep", "sweep.toml", "--backend", "ray"),
            *("--address", cluster.address, "--store", "store", "--json", "result.json"),
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    end = time.monotonic() + 90
    while not list((tmp_path / "store").glob("journals/*.journal")):
        assert time.monotonic() < end
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)
    cluster.remove_node(second, allow_graceful=False)
    assert process.poll() is None
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert f"{ALL} runs simulated, 0 reused from store" in said
    assert "Traceback" not in said
    local = in_process(tmp_path, Workplace(tmp_path / "local", "local", 2, None))
    assert (tmp_path / "result.json").read_text(encoding="utf-8") == local.json()
    # The store is the same as if the runs had been done here.
    again = in_process(tmp_path, Workplace(tmp_path / "store", "local", 2, None))
    assert (again.work.simulated, again.work.found) == (0, ALL)


@pytest.mark.long
@needs_ray
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # Ray leaves files of its processes to the GC
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the same, as pytest sees it
@pytest.mark.usefixtures("small")
def test_a_worker_with_another_engine_is_refused(
    tmp_path: Path,
    cluster: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from perhop.sweeps import ray_backend  # noqa: PLC0415 - needs an optional dependency

    (tmp_path / "sweep.toml").write_text(SWEEP.replace("300s", "1s"), encoding="utf-8")
    monkeypatch.setattr(ray_backend, "engine_id", lambda: "0.0.0+other")
    with pytest.raises(
        PerhopError, match=r"a worker has engine .*, the driver 0\.0\.0\+other; install the same"
    ):
        in_process(tmp_path, Workplace(tmp_path / "store", "ray", None, cluster.address))
    assert not list((tmp_path / "store" / "journals").iterdir())


def test_without_ray_the_error_says_what_to_install(tmp_path: Path) -> None:
    """A directory in front of the path makes an environment without Ray."""
    (tmp_path / "ray.py").write_text("raise ImportError('no ray here')\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "import perhop.sweeps.ray_backend"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        "perhop.errors.PerhopError: --backend ray needs Ray: pip install 'perhop[ray]'"
    )


def test_an_unknown_backend_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PerhopError, match="backend must be local or ray, not 'cloud'"):
        Workplace(tmp_path, "cloud", None, None)
    with pytest.raises(PerhopError, match="backend must be local or ray, not 'cloud'"):
        perhop.sweep("none.toml", backend="cloud")


@needs_ray
def test_a_cluster_that_does_not_answer_is_said(perhop: Perhop, small: Path, tmp_path: Path) -> None:
    assert small.exists()
    (tmp_path / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    done = perhop("sweep", "sweep.toml", "--backend", "ray", "--address", "127.0.0.1:1")
    assert done.code == 2
    assert "Traceback" not in done.err
    assert (
        done.err.strip().splitlines()[-1].startswith("error: --address 127.0.0.1:1: no Ray cluster answers")
    )


@pytest.mark.long
@needs_ray
@pytest.mark.usefixtures("small")
def test_a_class_in_python_goes_to_workers_that_do_not_have_it(
    tmp_path: Path,
    cluster: Any,  # noqa: ANN401
) -> None:
    (tmp_path / "shallow_aqm.py").write_text(
        "from perhop import Aqm, Verdict\n\n\nclass Shallow(Aqm):\n    most: int\n\n"
        "    def on_arrival(self, packet, queue, now, random):\n"
        "        return Verdict.PASS if len(queue) < self.most else Verdict.OVERFLOW\n",
        encoding="utf-8",
    )
    sweep = (
        SWEEP.replace("300s", "5s")
        .replace("runs = 40", "runs = 2")
        .replace("[set]\n", '[set]\n"links.bottleneck.queue" = { aqm = "shallow_aqm:Shallow", most = 9 }\n')
    )
    (tmp_path / "sweep.toml").write_text(sweep, encoding="utf-8")
    far = in_process(tmp_path, Workplace(tmp_path / "far", "ray", None, cluster.address))
    near = in_process(tmp_path, Workplace(tmp_path / "near", "local", 2, None))
    assert far.json() == near.json()


@needs_ray
def test_a_worker_hands_over_failed_runs_and_goes_on(small: Path) -> None:
    from perhop.sweeps.ray_backend import batch  # noqa: PLC0415 - it imports Ray

    scenario = _engine.scenario_from_toml(small.read_text().replace("5s", "0.2s"), "x")
    found = batch(engine_id(), {0: scenario, 1: "{}"}, [(0, 1), (1, 1), (0, 2)], {})
    assert [isinstance(one, Failed) for one in found] == [False, True, False]


@needs_ray
def test_a_batch_has_the_runs_of_one_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of a scenario travels with each batch: one of many would carry a text for each run."""
    from perhop.sweeps import ray_backend  # noqa: PLC0415 - needs an optional dependency

    sent: list[tuple[dict[int, str], list[tuple[int, int]]]] = []
    waited: list[int] = []

    class Remote:
        def remote(self, _engine: str, texts: dict[int, str], work: list[tuple[int, int]], _: object) -> int:
            sent.append((texts, work))
            return len(sent) - 1

    def wait(pending: list[int], num_returns: int, timeout: float) -> tuple[list[int], list[int]]:  # noqa: ARG001
        waited.append(len(pending))
        return pending[:num_returns], []

    fake = SimpleNamespace(
        remote=lambda **_: lambda _: Remote(),
        cluster_resources=lambda: {"CPU": 2.0},
        wait=wait,
        get=lambda reference: sent[reference][1],
    )
    monkeypatch.setattr(ray_backend, "ray", fake)
    backend = ray_backend.RayBackend.__new__(ray_backend.RayBackend)
    backend.jobs = None
    tasks = [Task(scenario, seed) for seed in range(128) for scenario in range(10)]
    found: list[Any] = [one for group in backend.run([f"{n}" for n in range(10)], tasks) for one in group]
    assert sorted(found, key=lambda one: (one[0].scenario, one[0].seed)) == [
        (task, (task.scenario, task.seed)) for task in sorted(tasks, key=lambda task: task.scenario)
    ]
    assert len(sent) == 20
    assert all(texts == {work[0][0]: f"{work[0][0]}"} for texts, work in sent)
    assert max(waited) <= 2 * ray_backend.IN_FLIGHT_PER_CPU
