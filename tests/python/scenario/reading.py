"""Run under Valgrind: reads inputs of two sizes, each in a process of its own.

Writes, as JSON, for each input the processes that read it, and before each one that did nothing: what one has
counted more than the other are the instructions that reading takes. Negative ones refused their input.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from perhop import _engine, routers
from perhop.planning import document as planning
from perhop.scenario import reading
from perhop.sweeps.plan import Given, read_plan
from perhop.sweeps.tuning import read_tuning

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Read: TypeAlias = Callable[[], object]

QUEUE = 'queue = { aqm = "drop-tail", limit = "9p" }\n'
LINK = '[links.up]\nfrom = "A"\nto = "B"\nrate = "1Mbps"\ndelay = "1ms"\n'
ONE = 'duration = "1s"\n' + LINK + QUEUE
RING = 'duration = "1s"\n[topology]\nring = 40\n[topology.link]\nrate = "1Mbps"\ndelay = "1ms"\n'
SWEEP = 'title = "t"\nscenario = "scenario.toml"\nruns = 2\n'
POLICY = (
    "policy-map P\n class class-default\n  queue-limit 60 packets\n"
    "interface g0\n bandwidth 1000\n service-policy output P\n"
)
TUNE = 'scenario = "scenario.toml"\nobjectives = ["maximize links.up.utilization"]\ntrials = 6\nruns = 2\n'


def flows(count: int, more: str = "", transport: str = '{ tcp = "newreno" }') -> str:
    group = '[[flows]]\nname = "f{}"\nfrom = "A"\nto = "B"\ntransport = {}\n{}'
    return "".join(group.format(number, transport, more) for number in range(count))


def chain(links: int, to: int) -> str:
    text = "".join(
        f'[links.l{n}]\nfrom = "r{n}"\nto = "r{n + 1}"\nrate = "1Mbps"\ndelay = "1ms"\n{QUEUE}'
        for n in range(links)
    )
    return ONE.partition("[")[0] + text + flows(1).replace('"A"', '"r0"').replace('"B"', f'"r{to}"')


def listed(count: int, text: str) -> str:
    return "[" + ", ".join(text.format(n=number, next=number + 1) for number in range(count)) + "]"


def graph(edges: int, *, directed: bool) -> str:
    nodes = "".join(f'<node id="n{n}"/>' for n in range(edges + 1))
    ends = ((n % 7 if directed and n % 2 else n) for n in range(edges))
    lines = "".join(f'<edge source="n{end}" target="n{end + 1}"/>' for end in ends)
    kind = "directed" if directed else "undirected"
    return f'<graphml><graph edgedefault="{kind}">{nodes}{lines}</graph></graphml>'


def scenario(text: str) -> Read:
    return lambda: reading.canonical(text)


def of_canonical(groups: int, read: Callable[[str, str], object]) -> Read:
    text = reading.canonical(ONE + flows(groups))
    return lambda: read(text, "a scenario")


def of_file(folder: Path, name: str, text: str, toml: str) -> Read:
    (folder / name).write_text(text, encoding="utf-8")
    (folder / "named.toml").write_text(toml, encoding="utf-8")
    return lambda: reading.canonical(folder / "named.toml")


def beside(folder: Path, groups: int, text: str, read: Callable[[Path], object]) -> Read:
    """A file beside a scenario with so many groups of flows."""
    (folder / "scenario.toml").write_text(ONE + flows(groups), encoding="utf-8")
    (folder / "file.toml").write_text(text, encoding="utf-8")
    return lambda: read(folder / "file.toml")


def sweep(path: Path) -> object:
    return read_plan(path, Given())


def tune(path: Path) -> object:
    return read_tuning(path, trials=None, runs=None, seed=None)


def configuration(text: str) -> Read:
    """A configuration whose language every dialect is asked for."""
    answers = routers.Answers(1e8, 1000.0, None, {}, lenient=True)
    return lambda: routers.imported(routers.Source([("file", text.encode())]), answers)


def inputs(folder: Path, n: int) -> dict[str, Callable[[], Read]]:
    """Return, by name, a function that writes the files of an input and returns the call that reads it."""
    few = n // 4
    of_graph = (
        'duration = "1s"\n[topology]\ngraph = { file = "g.graphml" }\n'
        '[topology.link]\nrate = "1Mbps"\ndelay = "1ms"\n'
        '[[flows]]\nname = "f"\nfrom = "n0"\nto = "n1"\ntransport = { tcp = "newreno" }\n'
    )
    pairs = flows(9).partition("from")[0] + 'between = { file = "m.csv" }\ntransport = { tcp = "newreno" }\n'
    matrix = "".join(f"r{i % 40 + 1},r{(i + 1 + i // 40 % 38) % 40 + 1},1\n" for i in range(n))
    shared = 'profile = "p"\n'
    profile = '[profiles.p]\nmarker = "token-bucket"\nrate = "1Mbps"\nburst = "15kB"\n'
    groups = '"flows.f{n}.count"'
    return {
        "TOML, links": lambda: scenario(chain(n, 1)),
        "TOML, a long route": lambda: scenario(chain(n, n)),
        "TOML, flows": lambda: scenario(ONE + flows(n)),
        "TOML, flows with CUBIC": lambda: scenario(
            ONE + flows(n, transport='{ tcp = "newreno", congestion = "cubic" }')
        ),
        "TOML, flows of one profile": lambda: scenario(ONE + profile + flows(n, shared)),
        "TOML, changes of a link": lambda: scenario(
            ONE + "changes = " + listed(n, '{{ at = "{next}us", rate = "2Mbps" }}') + "\n" + flows(1)
        ),
        "TOML, comments": lambda: scenario("# a comment\n" * 20 * n + ONE + flows(1)),
        "TOML, a long name": lambda: scenario(ONE + flows(1).replace("f0", "f" * 100 * n)),
        "TOML, unknown keys": lambda: scenario(
            ONE + flows(1) + "".join(f"unknown{i} = 1\n" for i in range(n))
        ),
        "JSON": lambda: of_canonical(n, _engine.scenario_from_json),
        "JSON into TOML": lambda: of_canonical(n, _engine.scenario_to_toml),
        "GraphML": lambda: of_file(folder, "g.graphml", graph(n, directed=False), of_graph),
        "GraphML, directed and parallel": lambda: of_file(
            folder, "g.graphml", graph(n, directed=True), of_graph
        ),
        "CSV, a matrix": lambda: of_file(folder, "m.csv", "from,to,rate_Mbps\n" + matrix, RING + pairs),
        "CSV, rates": lambda: of_file(
            folder,
            "r.csv",
            "time_s,rate_Mbps\n" + "".join(f"{i},1\n" for i in range(n)),
            'duration = "1s"\n' + LINK + 'rate-trace = "r.csv"\n' + flows(1),
        ),
        "CSV, arrivals": lambda: of_file(
            folder,
            "a.csv",
            "time_s,size_B\n" + "".join(f"{i / 1e5},{i + 1}\n" for i in range(n)),
            ONE + flows(1, 'arrivals = { trace = "a.csv" }\n'),
        ),
        "a configuration, empty lines": lambda: configuration("\n" * 20 * n + POLICY),
        "a configuration, comments": lambda: configuration("! a comment\n" * 20 * n + POLICY),
        "sweep, grid": lambda: beside(
            folder, 1, SWEEP + "[grid]\n" + f'"flows.f0.count" = {listed(few, "{next}")}\n', sweep
        ),
        "sweep, values": lambda: beside(
            folder, few, SWEEP + "[set]\n" + "".join(f"{groups.format(n=i)} = 2\n" for i in range(few)), sweep
        ),
        "sweep, factors": lambda: beside(
            folder,
            few,
            SWEEP + "[list]\n" + "".join(f"{groups.format(n=i)} = [2]\n" for i in range(few)),
            sweep,
        ),
        "sweep, metrics": lambda: beside(
            folder,
            few,
            SWEEP + f"metrics = {listed(few, chr(34) + 'flows.f{n}.throughput_bps' + chr(34))}\n",
            sweep,
        ),
        "tune, search": lambda: beside(
            folder,
            few,
            TUNE + "[search]\n" + "".join(f'{groups.format(n=i)} = "1..9"\n' for i in range(few)),
            tune,
        ),
        "tune, constraints": lambda: beside(
            folder,
            few,
            TUNE
            + f"constraints = {listed(few, chr(34) + 'flows.f{n}.throughput_bps >= 1kbps' + chr(34))}\n"
            + '[search]\n"links.up.queue.limit" = ["5p", "9p"]\n',
            tune,
        ),
        "plan, objectives": lambda: beside(
            folder,
            few,
            'scenario = "scenario.toml"\n'
            f"objectives = {listed(few, chr(34) + 'loss of f{n} < 1 %' + chr(34))}\n",
            planning.read_plan,
        ),
        "plan, growth": lambda: beside(
            folder,
            few,
            'scenario = "scenario.toml"\nobjectives = ["loss of f0 < 1 %"]\n'
            f"growth = {{ demands = {listed(few, chr(34) + 'f{n}' + chr(34))} }}\n",
            planning.read_plan,
        ),
    }


def process(call: Read) -> int:
    """Calls it in a process of its own, whose number it returns, negative where the input is refused."""
    child = os.fork()
    if child == 0:
        try:
            call()
        except _engine.ScenarioError:
            os._exit(3)
        except BaseException:  # noqa: BLE001 - it is another process than it seems
            os._exit(4)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, 3):
        raise SystemExit(f"a reader ended with {status}")
    return child if status == 0 else -child


def pair(call: Read) -> tuple[int, int]:
    """The processes that do nothing and that call it."""
    return process(lambda: None), process(call)


def main(n: int) -> None:
    with tempfile.TemporaryDirectory(prefix="perhop-") as name:
        folder = Path(name)
        for make in inputs(folder, 8).values():
            with contextlib.suppress(_engine.ScenarioError):
                make()()  # what is loaded and compiled at first use
        found = {
            reader: [pair(inputs(folder, size)[reader]()) for size in (n, 2 * n)]
            for reader in inputs(folder, n)
        }
        sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]))
