"""Whatever ends a search, what had finished is there, and the result is that of an undisturbed one."""

from __future__ import annotations

import pkgutil
import random
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from tests.python.stores.keeping import kept_runs

from perhop.commands import cli
from perhop.processes import interrupts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

TUNE = """\
scenario = "small.toml"
trials = 24
runs = 4
validation-runs = 6
objectives = ["minimize links.bottleneck.delay_p99_s", "maximize links.bottleneck.utilization"]
[set]
duration = "60s"
[search]
"links.bottleneck.queue.limit" = "20p..200p"
"flows.gold.count" = "1..6"
"""
KILLS = 16


def start(directory: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "perhop", "tune", "tune.toml", "--store", "store", *arguments],
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def kept(directory: Path) -> set[tuple[str, int]]:
    """Scenario and seed of each run that the store holds; none twice."""
    rows = kept_runs(directory / "store")
    assert len(set(rows)) == len(rows)
    return set(rows)


def journaled(directory: Path) -> int:
    """How many bytes of finished runs there are."""
    return sum(path.stat().st_size for path in (directory / "store").glob("journals/*.journal"))


@pytest.mark.long
@pytest.mark.usefixtures("small")
def test_killed_at_random_moments_a_search_ends_as_if_undisturbed(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "tune.toml").write_text(TUNE, encoding="utf-8")
    moments = random.Random(8)  # noqa: S311 - not for secrets
    before: set[tuple[str, int]] = set()
    at_work = 0
    for kill in range(KILLS):
        process = start(tmp_path, "--jobs", "1")
        if kill % 4 == 3:
            time.sleep(moments.uniform(0.0, 1.5))  # start-up and reading the store, too
        else:
            end, size = time.monotonic() + 60, journaled(tmp_path)
            while journaled(tmp_path) <= size and process.poll() is None:
                assert time.monotonic() < end
                time.sleep(0.001)
            time.sleep(moments.uniform(0.0, 0.03))
        process.kill()
        _, error = process.communicate(timeout=250)
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0, error
            break
        now = kept(tmp_path)
        assert now >= before, "a finished run is lost"
        at_work += now > before
        before = now
    assert at_work >= 3
    done = perhop("tune", "tune.toml", "--store", "store", "--json", "resumed.json")
    assert done.code == 0, done.err
    found = re.search(r"(\d+) runs? simulated, (\d+) reused from store", done.out)
    assert found is not None
    assert kept(tmp_path) >= before
    undisturbed = perhop("tune", "tune.toml", "--store", "undisturbed", "--json", "undisturbed.json")
    whole = re.search(r"(\d+) runs simulated, (\d+) reused", undisturbed.out)
    assert whole is not None
    assert int(found[1]) + int(found[2]) == int(whole[1]) + int(whole[2])
    assert int(found[2]) == len(before), "what was kept is not computed again"
    assert (tmp_path / "resumed.json").read_bytes() == (tmp_path / "undisturbed.json").read_bytes()
    tables = [text.out.rpartition("\n\n")[0] for text in (done, undisturbed)]
    assert tables[0] == tables[1]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("command", ["sweep", "tune"])
@pytest.mark.parametrize("where", ["sweeps.run.Runner.ensure", "commands.context.Results.conclude"])
@pytest.mark.parametrize("exception", [KeyboardInterrupt, RuntimeError])
def test_wherever_ctrl_c_comes_the_command_says_what_is_kept(
    *,
    exception: type[BaseException],
    where: str,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Typer makes an exit status of it, libraries an exception of their own."""
    monkeypatch.chdir(tmp_path)
    text = {"sweep": 'scenario = "small.toml"\nruns = 2', "tune": TUNE}[command]
    (tmp_path / "it.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["perhop", command, "it.toml", "--store", "store"])
    monkeypatch.setattr(interrupts._State, "left", None)
    monkeypatch.setattr(interrupts._State, "seen", False)
    target = f"perhop.{where}"
    done = pkgutil.resolve_name(target)

    def struck(*arguments: object) -> None:
        done(*arguments)
        interrupts._State.seen = True
        raise exception("interrupted")

    monkeypatch.setattr(target, struck)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"interrupted: {len(kept(tmp_path))} runs are kept in store; the same command resumes"


@pytest.mark.usefixtures("small")
def test_ctrl_c_keeps_what_a_search_has_finished(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "tune.toml").write_text(TUNE, encoding="utf-8")
    process = start(tmp_path, "--jobs", "2")
    end = time.monotonic() + 60
    while journaled(tmp_path) < 3000:
        assert time.monotonic() < end
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=250)
    assert process.returncode == 130
    text = error.decode()
    assert "Traceback" not in text
    said = re.search(r"interrupted: (\d+) runs? (is|are) kept in store; the same command resumes", text)
    assert said is not None, text
    runs = kept(tmp_path)
    assert len(runs) - 1 <= int(said[1]) <= len(runs)
    done = perhop("tune", "tune.toml", "--store", "store")
    assert f"{len(runs)} reused from store" in done.out
