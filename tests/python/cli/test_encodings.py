"""Files as editors and spreadsheets of Windows write them: with a byte order mark, or in UTF-16."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from perhop.files import inputs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

LINK = 'duration = "1s"\n[links.up]\nfrom = "A"\nto = "B"\nrate = "1Mbps"\ndelay = "1ms"\n'
QUEUE = 'queue = { aqm = "drop-tail", limit = "9p" }\n'
FLOW = '[[flows]]\nname = "f"\nfrom = "A"\nto = "B"\ntransport = { tcp = "newreno" }\n'
GRAPH = (
    'duration = "1s"\n[topology]\ngraph = { file = "g.graphml" }\nlink = { rate = "1Mbps", delay = "1ms" }\n'
)
PAIRS = '[[flows]]\nname = "f"\nbetween = { file = "pairs.csv" }\ntransport = { tcp = "newreno" }\n'
FILES = {
    "s.toml": LINK + QUEUE + FLOW,
    "rates.toml": LINK + QUEUE + 'rate-trace = "rates.csv"\n' + FLOW,
    "rates.csv": "time_s,rate_Mbps\n0,1\n1,2\n",
    "graph.toml": GRAPH + PAIRS,
    "g.graphml": '<graphml><graph edgedefault="undirected"><node id="A"/><node id="B"/>'
    '<edge source="A" target="B"/></graph></graphml>\n',
    "pairs.csv": "from,to,rate_Mbps\nA,B,1\n",
    "sweep.toml": 'scenario = "s.toml"\nruns = 1\n[list]\n"flows.f.count" = [1]\n',
    "tune.toml": 'scenario = "s.toml"\nobjectives = ["maximize links.up.utilization"]\ntrials = 1\nruns = 1\n'
    '[search]\n"links.up.queue.limit" = ["5p", "9p"]\n',
    "plan.toml": 'scenario = "s.toml"\nruns = 2\nobjectives = ["loss of f < 50 %"]\n',
    "edge.cfg": "policy-map P\n class class-default\n  queue-limit 60 packets\n"
    "interface g0\n bandwidth 1000\n service-policy output P\n",
}
COMMANDS = (
    "run s.toml",
    "run rates.toml",
    "run graph.toml",
    "sweep sweep.toml --out o1",
    "tune tune.toml --out o2",
    "plan plan.toml --out o3",
    "import edge.cfg",
    "export s.toml --to tc --lenient",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(f"\ufeff{text}", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("folder")
def test_a_byte_order_mark_is_none_of_the_text(command: str, perhop: Perhop) -> None:
    done = perhop(*command.split())
    assert done.code in {0, 1}, done.err  # 1: a plan that does not hold
    assert "error" not in done.err


def test_a_manifest_may_begin_with_a_byte_order_mark(folder: Path, perhop: Perhop) -> None:
    assert perhop("run", "s.toml", "--runs", "2", "--out", "report").code == 0
    manifest = folder / "report" / "manifest.json"
    manifest.write_text("\ufeff" + manifest.read_text(encoding="utf-8"), encoding="utf-8")
    done = perhop("rerun", "report")
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    "command", ["run s.toml", "sweep sweep.toml", "tune tune.toml", "plan plan.toml", "import edge.cfg"]
)
def test_utf_16_is_named(command: str, folder: Path, perhop: Perhop) -> None:
    name = command.split()[1]
    (folder / name).write_text(FILES[name], encoding="utf-16")
    done = perhop(*command.split())
    assert (done.code, done.err) == (2, f"error: {name}: is UTF-16 text; save it as UTF-8\n")


def test_a_file_with_a_byte_order_mark_alone_is_empty(folder: Path, perhop: Perhop) -> None:
    (folder / "s.toml").write_text("\ufeff\n", encoding="utf-8")
    done = perhop("run", "s.toml")
    assert (done.code, done.err) == (2, f"error: s.toml: is empty; {inputs.SCENARIO_NEEDS}\n")
