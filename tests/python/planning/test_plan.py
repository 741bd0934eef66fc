"""Plans as a user has them: files, the command, what is kept, searches, and lines for the router."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from tests.python.output.pages import check, titles
from tests.python.planning.planned import BURSTY, POLICED, TUNED, done

import perhop as package
from perhop.errors import PerhopError, ScenarioError
from perhop.planning.document import read_plan
from perhop.routers import Answers, Source, imported

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

EXAMPLES = Path(__file__).parents[3] / "examples" / "plan"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_command_prints_writes_and_resumes(tmp_path: Path, perhop: Perhop) -> None:
    written(tmp_path, POLICED)
    once = perhop("plan", "plan.toml", "--out", "out", "--json", "plan.json", "--jobs", "1")
    assert once.code == 0, once.err
    assert "1 of 1 objective holds as it is." in once.out
    assert (
        "sources can grow to 10 flows (+150 %); at 11 flows (+175 %) “loss of sources < 1 %” breaks. "
        "“loss of sources < 1 %” is guaranteed in any run, up to sources 10 flows (+150 %)."
    ) in " ".join(once.out.split())
    again = perhop("plan", "plan.toml", "--out", "out", "--json", "-", "--jobs", "2")
    assert again.out == (tmp_path / "plan.json").read_text(encoding="utf-8")
    assert "0 runs simulated" in again.err
    data = json.loads(again.out)
    (growth,) = data["now"]["growth"]
    assert growth["holds_up_to"] == {"multiple": 2.5, "values": {"flows.sources.count": 10}}
    assert growth["breaks_at"]["values"] == {"flows.sources.count": 11}
    assert data["now"]["objectives"][0]["state"] == "holds"
    check((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    frame = pl.read_parquet(tmp_path / "out" / "samples.parquet")
    assert frame.columns == ["setting", "demand", "multiple", "objective", "seed", "value"]
    assert set(frame["seed"]) == set(range(1, 31))
    assert (tmp_path / "out" / "plots" / "plan-growth.png").exists()


@pytest.mark.parametrize(("duration", "runs"), [("12s", 30), ("300s", 15), ("600s", 8)])
def test_the_default_number_of_runs_follows_the_length_of_a_run(
    tmp_path: Path, duration: str, runs: int
) -> None:
    """Sources of 10 Mbit/s together have some 2500 events in a second."""
    text = POLICED.replace("runs = 30\n", "").replace('"12s"', f'"{duration}"')
    text = text.replace('"100kbps", packet = "500B"', '"2.5Mbps", packet = "1kB"')
    path = written(tmp_path, text)
    planned = read_plan(path)
    assert (planned.runs, planned.runs_by_default) == (runs, True)
    asked = read_plan(path, runs=4)
    assert (asked.runs, asked.runs_by_default) == (4, False)
    with pytest.raises(PerhopError, match="no room for 8 runs"):
        read_plan(path, seed=2**64 - 3)


@pytest.mark.parametrize("width", [80, 120])
def test_tables_fit_a_terminal(tmp_path: Path, width: int) -> None:
    found = done(tmp_path, TUNED)
    body, _, _ = found.text(width).partition("Changed lines")
    assert max(map(len, body.splitlines())) <= width


def test_a_search_finds_a_queue_that_holds_and_is_judged_on_fresh_seeds(tmp_path: Path) -> None:
    found = done(tmp_path, TUNED, jobs=2)
    assert found.now.verdicts[0].state == "breaks"
    better = found.better
    assert better is not None
    assert better.sure
    assert better.gain is not None
    assert better.gain.low > 0
    assert all(verdict.holds for verdict in better.setting.verdicts)
    limit = json.loads(better.setting.scenario)["links"]["edge"]["queue"]["limit"]
    assert limit == better.winner.trial.factors["limit"] == f"{int(limit[:-1])}p"
    trials, judged = set(better.tuned.plan.seeds), set(found.plan.seeds)
    assert not trials & judged
    assert better.tuned.plan.validation_seeds == found.plan.seeds
    assert "Better: limit = " in found.text()
    assert "<table" in found._repr_html_()
    one = done(tmp_path, TUNED, jobs=1)
    assert one.work.simulated == 0
    assert one.json() == found.json()


def test_an_example_goes_from_a_configuration_to_better_lines(tmp_path: Path) -> None:
    """A short form of examples/plan; docs/plans.md runs it in full."""
    text = (EXAMPLES / "branch-office.toml").read_text(encoding="utf-8")
    for long, short in (('"90s"', '"20s"'), ("runs = 12", "runs = 3"), ("trials = 40", "trials = 4")):
        assert long in text
        text = text.replace(long, short)
    (tmp_path / "branch-office.cfg").write_bytes((EXAMPLES / "branch-office.cfg").read_bytes())
    found = done(tmp_path, text)
    assert found.plan.subject == "GigabitEthernet0/0/1 of branch-office.cfg"
    assert [limit.demand.name for limit in found.now.limits] == ["voice", "staff", "guests"]
    assert found.lines is not None
    assert found.better is not None
    chosen = found.better.setting if found.better.sure else found.now
    source = Source([("new.cfg", found.lines.text.encode())])
    read = tomllib.loads(imported(source, Answers(packet_size=1000.0)).toml)
    queues = {
        link: {queue["name"]: queue["rule"] for queue in body["queue"]["queue"]["queues"]}
        for link, body in read["links"].items()
    }
    rules = json.loads(chosen.scenario)["links"]["GigabitEthernet0/0/1"]["queue"]["queue"]["queues"]
    green = {queue["name"]: queue["rule"].get("green") for queue in rules}
    assert queues["GigabitEthernet0/0/1"]["BUSINESS"]["green"] == green["BUSINESS"]


def test_the_example_s_configuration_is_read_without_a_guess() -> None:
    plan = read_plan(EXAMPLES / "branch-office.toml")
    assert plan.imported is not None
    assert plan.imported.dialect == "ios"
    assert len((EXAMPLES / "branch-office.cfg").read_text(encoding="utf-8").splitlines()) == 60
    assert not plan.notices


PROFILED = """\
runs = 4
objectives = ["95 % of gold flows get their profile in 30 % of runs", "90 % of gold flows get their profile"]
scenario = "small.toml"
[growth]
demands = []
"""


def test_flows_get_their_profile(tmp_path: Path, small: Path) -> None:
    assert small.exists()
    found = done(tmp_path, PROFILED)
    assert [verdict.share is None for verdict in found.now.verdicts] == [False, True]
    result = package.run(small, runs=4)
    rates: dict[int, list[bool]] = {run: [] for run in range(1, 5)}
    for row in result.flows.iter_rows(named=True):
        if row["class"] == "gold":
            rates[row["seed"]].append(row["throughput_bps"] >= 0.5e6)
    assert found.now.verdicts[1].values == tuple(sum(reached) / len(reached) for reached in rates.values())


def changed(before: str, after: str, text: str = POLICED) -> str:
    assert before in text
    return text.replace(before, after)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed("runs = 30", "rnus = 4"), "plan.toml: unknown key `rnus`; did you mean `runs`?"),
        (changed("runs = 30", "runs = 1"), "plan.toml: `runs` must be a whole number from 2, not 1"),
        (changed('objectives = ["loss of sources < 1 %"]\n', "[growth]\n"), "plan.toml: needs `objectives`"),
        (changed("loss of", "los of"), "nothing measured is called `los`; did you mean `loss`?"),
        (changed("[scenario]", "[scenery]"), "unknown key `scenery`; did you mean `scenario`?"),
        (POLICED + "[growth]\nmost = 0.5\n", "[growth]: `most` must be a multiple of today's demand"),
        (POLICED + '[growth]\ndemands = ["x"]\n', "[growth]: `x`: nothing is there"),
        (POLICED + "[tuning]\ntrials = 3\n", "[tuning] has no effect without a [search]"),
        (
            POLICED + '[set]\n"links.edge.queue.limit" = "{limit}"\n',
            "[set] `links.edge.queue.limit`: '{limit}' has names in braces; say in [search] what they may be",
        ),
        (
            POLICED + '[search]\n"links.edge.queue.limit" = "10p..20p"\n[tuning]\ngrowth = { x = 2 }\n',
            "[tuning]: `growth.x` is no demand; there are sources",
        ),
        (POLICED + '[export]\nto = "junos99"\n', "[export]: `to` must be one of"),
        (POLICED + "[import]\nlenient = true\n", "[import] is about a `configuration`; there is none"),
        (
            changed("[[flows]]", 'configuration = "x.cfg"\n[[flows]]', 'objectives = ["x < 1"]\n[[flows]]\n'),
            "x.cfg",
        ),
    ],
)
def test_a_wrong_plan_is_met_with_file_and_key(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises((PerhopError, ScenarioError)) as caught:
        read_plan(path)
    assert str(caught.value).startswith(str(tmp_path))
    assert message in str(caught.value)


def test_a_configuration_needs_flows_and_answers(tmp_path: Path) -> None:
    (tmp_path / "branch-office.cfg").write_bytes((EXAMPLES / "branch-office.cfg").read_bytes())
    head = 'configuration = "branch-office.cfg"\nobjectives = ["loss of voice < 1 %"]\n'
    with pytest.raises(PerhopError, match="a configuration says nothing of traffic: give"):
        read_plan(written(tmp_path, head + '[import]\npacket-size = "1000B"\n'))
    with pytest.raises(PerhopError, match="missing --packet-size"):
        read_plan(written(tmp_path, head))
    with pytest.raises(PerhopError, match="--packet-size must be a number with a unit, such as 1000B"):
        read_plan(written(tmp_path, head + '[import]\npacket-size = "big"\n'))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--runs", "1"), "--runs 1: objectives are judged by intervals, which need at least 2 runs"),
        (("--trials", "3"), "--trials has no effect without a [search]"),
        (("--export", "x.cfg"), "--export x.cfg: plan.toml has no [export]"),
    ],
)
def test_options_without_effect_are_refused(
    arguments: tuple[str, ...], message: str, tmp_path: Path, perhop: Perhop
) -> None:
    written(tmp_path, POLICED)
    ended = perhop("plan", "plan.toml", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert not (tmp_path / "results").exists()


def test_the_page_has_every_part(tmp_path: Path, perhop: Perhop) -> None:
    written(tmp_path, BURSTY)
    ended = perhop("plan", "plan.toml", "--out", "out", "--runs", "3")
    assert ended.code == 0, ended.err
    found = titles(check((tmp_path / "out" / "report.html").read_text(encoding="utf-8")))
    assert {
        "How far each demand can grow",
        "Objectives as it is",
        "Growth as it is",
        "How to read this",
    } <= set(found)


def test_a_column_corrects_the_verdicts_for_their_number(tmp_path: Path, perhop: Perhop) -> None:
    written(tmp_path, BURSTY)
    plain = perhop("plan", "plan.toml", "--runs", "3")
    assert plain.out.count("objectives, today and at levels of growth, are judged at 95 % each") == 1
    assert "Holm" not in plain.out
    ended = perhop(
        "plan", "plan.toml", "--runs", "3", "--holm", "--wide", "--out", "out", "--json", "plan.json"
    )
    assert ended.code == 0, ended.err
    (head,) = [line for line in ended.out.splitlines() if line.startswith("objective ")]
    assert head.split("  ")[-1].strip() == "p, Holm"
    page = check((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert "p, Holm" in page.text
    found = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))["now"]["objectives"]
    for one in found:
        assert (one["p"] <= 0.05) == (one["state"] != "cannot tell")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert "--holm" in json.dumps(manifest)


def test_verdicts_at_levels_of_growth_are_counted_among_those_that_may_err(tmp_path: Path) -> None:
    planned = done(tmp_path, BURSTY, holm=True, runs=3)
    now = json.loads(planned.json())["now"]
    looked = [verdicts for limit in now["growth"] for verdicts in limit["looked_at"].values()]
    number = len(now["objectives"]) + sum(map(len, looked))
    assert number > 2 + 4
    text = " ".join(planned.text().split())
    assert f"{number} objectives, today and at levels of growth, are judged at 95 % each: " in text
    assert "none of all verdicts on objectives today errs" in text


def test_one_objective_has_no_family(tmp_path: Path) -> None:
    assert "judged at 95 % each" not in done(tmp_path, POLICED + "[growth]\ndemands = []\n", holm=True).text()


TRANSFERS = """\
runs = {runs}
objectives = ["P99 of completion time of transfers < 3 s"]
[scenario]
duration = "12s"
warmup = "2s"
[scenario.links.edge]
from = "a"
to = "b"
rate = "2Mbps"
delay = "5ms"
queue = {{ aqm = "drop-tail", limit = "60p" }}
[[flows]]
name = "transfers"
transport = {{ tcp = "linux" }}
arrivals = {{ rate = "3/s" }}
sizes = {{ constant = "20kB" }}
[growth]
demands = []
[search]
"links.edge.queue.limit" = ["20p", "60p"]
[tuning]
trials = 2
runs = {trial}
"""
"""Some thirty transfers in each run."""


@pytest.mark.parametrize(
    ("runs", "trial", "known"), [(6, 5, (True, True)), (6, 2, (True, False)), (2, 2, ())]
)
def test_a_p99_of_flows_is_that_of_all_runs_and_says_how_many_it_needs(
    tmp_path: Path, runs: int, trial: int, known: list[int]
) -> None:
    planned = done(tmp_path, TRANSFERS.format(runs=runs, trial=trial))
    text = " ".join(planned.text().split())
    assert (planned.now.verdicts[0].found is not None, planned.better is not None) == (
        known or (False, False)
    )
    needs = "needs at least 100"
    assert text.count(needs) == 2 - sum(known)
    if planned.better is None:
        assert f"{needs} flows in the {trial} runs together" in text
        assert "raise `runs` in [tuning], or `duration` in the scenario" in text
        assert "widen the search" not in text


def test_an_empty_file_is_no_scenario(tmp_path: Path, perhop: Perhop) -> None:
    written(tmp_path, "\n")
    for command, needs in (
        ("plan", "a plan needs a `scenario` or a `configuration`, and `objectives`"),
        ("sweep", "a sweep needs a `scenario`, and what to vary in it"),
        ("tune", "a search needs a `scenario`, `objectives` and a [search]"),
        ("run", "a scenario needs at least `duration`, a link and a flow"),
    ):
        ended = perhop(command, "plan.toml")
        assert (ended.code, ended.out, ended.err) == (2, "", f"error: plan.toml: is empty; {needs}\n")


def test_no_toml_ends_in_anything_but_one_line(tmp_path: Path, perhop: Perhop) -> None:
    """Values of other types at every key, as the command line meets them."""
    data = tomllib.loads(TUNED + '[export]\nto = "ios"\nlenient = true\n')
    refused = 0
    for key in data:
        for wrong in ("-1", '""', "[[]]", "{ a = { b = [1979-05-27] } }", "nan", '"{x}"'):
            lines = [f"{json.dumps(name)} = {_toml(value)}" for name, value in data.items() if name != key]
            written(tmp_path, "\n".join([*lines, f"{json.dumps(key)} = {wrong}"]))
            try:
                read_plan(tmp_path / "plan.toml")
            except (PerhopError, ScenarioError) as error:
                assert "\n" not in str(error), (key, wrong)  # noqa: PT017 - not all are refused
                refused += 1
                if wrong == "[[]]":
                    ended = perhop("plan", "plan.toml")
                    assert (ended.code, ended.out) == (2, "")
                    assert ended.err.count("\n") == 1, ended.err
    assert refused > 40


def _toml(value: object) -> str:
    """A value as TOML has it on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_toml(one)}" for k, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


def test_found_warm_ups_are_told(tmp_path: Path) -> None:
    """Of every point; where a plan sets one, nothing is said."""
    said = "Warm-up, as `perhop run` finds it for each point that sets none"
    given = done(tmp_path, BURSTY)
    assert said not in given.text()
    assert "warm_ups" not in json.loads(given.json())
    found = done(tmp_path, BURSTY.replace('warmup = "1s"\n', ""))
    assert said in " ".join(found.text().split())
    points = json.loads(found.json())["warm_ups"]
    assert points[0]["point"] == "as it is, today's demand"
    assert all(0 <= point["warmup_s"] <= 4 for point in points)
    assert {type(point["settles"]) for point in points} == {bool}
