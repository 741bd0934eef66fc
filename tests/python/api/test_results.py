"""The results of all functions of `perhop` have one convention: a line, text, JSON, tables and a report."""

from __future__ import annotations

import dataclasses
import inspect
import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from tests.python.conftest import SMALL

import perhop as package
from perhop.commands import cli
from perhop.scenario import Codel, Scenario
from perhop.scenario import builder as builders
from perhop.show.written import Shown, Written

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

EXAMPLES = Path(__file__).parents[3] / "examples"
GRID = {"links.bottleneck.rate": ["1Mbps", "2Mbps"]}
SEARCH = {"objectives": ["maximize links.bottleneck.utilization"], "search": GRID}
PLAN = {"objectives": ["throughput of gold > 10 kbit/s"]}
FUNCTIONS = [name for name, *_ in cli.COMMANDS if name in package.__all__ and name != "course"]
"""Functions with a command of their name; `course` returns a list, and its command writes nothing."""
ON_REAL_PACKETS = ("live", "compare", "witness")
"""Functions that need the kernel; tests/python/live has theirs."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Shown]:
    """A result of each function that needs no real packets."""
    place = tmp_path_factory.mktemp("results")
    small = place / "small.toml"
    small.write_text(SMALL, encoding="utf-8")
    scenario, store = Scenario.read(small), place / "store"
    common = {"title": "small", "scenario": scenario, "runs": 2}
    ran = package.run(small, runs=2)
    ran.write(place / "ran")
    return {
        "run": ran,
        "bound": package.bound(small),
        "rare": package.rare(small, runs=2, levels=[(5, 2)]),
        "sweep": package.sweep({**common, "grid": GRID}, store=store),
        "tune": package.tune({**common, **SEARCH, "trials": 2, "validation-runs": 2}, store=store),
        "plan": package.plan({**common, **PLAN}, store=store),
        "replay": package.replay(EXAMPLES / "capture.pcap", queue=Codel(), rate="10Mbps"),
        "reproduce": package.reproduce("kim-fig2", runs=2),
        "rerun": package.rerun(place / "ran"),
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_returns_a_result_of_the_root(name: str) -> None:
    signature = inspect.signature(getattr(package, name))
    returned = str(signature.return_annotation)
    assert returned in package.__all__
    found = getattr(package, returned)
    assert issubclass(found, Shown)
    options = {option for param in cli.loaded(name).params for option in param.opts}
    assert issubclass(found, Written) == ("--out" in options)
    for method in ("text", "json", "frame", *(["write"] if "--out" in options else [])):
        assert getattr(found, method).__doc__, method
        assert getattr(found, method) is not getattr(Shown, method, None) or method in ("text", "frame")


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in ON_REAL_PACKETS])
def test_each_result_has_a_line_text_json_and_a_table(results: dict[str, Shown], name: str) -> None:
    result = results[name]
    line = repr(result).splitlines()[0]
    assert line.startswith(f"{type(result).__name__} of ")
    assert 20 < len(line) < 200
    assert name == "run" or "\n" not in repr(result)
    assert result.text(80)
    assert isinstance(json.loads(result.json()), dict)
    assert isinstance(result.frame(), pl.DataFrame)
    assert result.frame().height > 0 or name == "rerun"
    with pytest.raises(package.PerhopError, match="there is no table `none`"):
        result.frame("none")


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in (*ON_REAL_PACKETS, "rerun")])
def test_notebooks_and_latex_have_the_tables_of_the_text(results: dict[str, Shown], name: str) -> None:
    result = results[name]
    assert "<table><thead>" in result._repr_html_()
    assert result.to_latex().startswith("\\begin{tabular}")
    assert "\\label{tab:a}" in result.to_latex(label="tab:a")
    with pytest.raises(package.PerhopError, match="the result has no table `none`; it has: "):
        result.to_latex("none")


def test_a_rerun_that_agrees_has_a_sentence_in_notebooks_and_no_table(results: dict[str, Shown]) -> None:
    found = results["rerun"]
    assert "numbers agree.</p>" in found._repr_html_()
    assert "<table" not in found._repr_html_()
    with pytest.raises(package.PerhopError, match="it has: none"):
        found.to_latex()


@pytest.mark.parametrize("name", ["run", "sweep", "rerun"])
def test_completion_offers_no_names_in_capitals(results: dict[str, Shown], name: str) -> None:
    """Names in capitals describe the class; no reader needs them."""
    for one in (results[name], Codel()):
        assert [found for found in dir(one) if found.isupper()] == []


def test_both_spellings_name_one_table_everywhere() -> None:
    """Names of tables in JSON have `_`, further ones of `--csv` have `-`."""
    short = Scenario.read(EXAMPLES / "office.toml").with_("duration", "20s").with_("warmup", "5s")
    result = package.run(short, runs=1)
    assert result.frame("link-classes").equals(result.frame("link_classes"))
    assert result.to_latex("link-classes") == result.to_latex("link_classes")
    for of in ("link-classes", "link_classes"):
        assert result.difference(result, "loss", of=of).height == result.frame("link_classes").height
    assert result.frame("flows").equals(result.flows)
    assert result.frame("web").equals(result.frame("applications-web"))
    assert (
        result.to_latex("web") == result.to_latex("applications-web") == result.to_latex("applications_web")
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sweep", "Swept of 'small': 2 points, 4 runs"),
        ("tune", "Tuned of 'small': 2 trials; none is surely better than as it is"),
        ("plan", "Planned of 'small': 2 runs of each setting; objectives: 1 cannot tell"),
        ("replay", "Replay of capture.pcap into the queue codel at 10 Mbit/s: 637 packets"),
        ("reproduce", "Reproduction of 1 study: "),
    ],
)
def test_a_line_says_what_came_of_it(results: dict[str, Shown], name: str, said: str) -> None:
    assert repr(results[name]).startswith(said)


def test_parts_of_a_result_show_no_scenario_and_no_samples(results: dict[str, Shown]) -> None:
    swept, tuned = results["sweep"], results["tune"]
    assert isinstance(swept, package.Swept)
    assert isinstance(tuned, package.Tuned)
    for part in (swept.summaries[0].point, swept.summaries[0], tuned.trials[0], tuned.front[0]):
        assert "duration" not in repr(part)
        assert "Observations" not in repr(part)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in ON_REAL_PACKETS])
def test_results_are_compared_by_identity_and_pickle(results: dict[str, Shown], name: str) -> None:
    result = results[name]
    again = pickle.loads(pickle.dumps(result))  # noqa: S301 - our own
    assert {result, again} == {again, result}
    assert result != again
    assert again.json() == result.json()
    assert again.text(80) == result.text(80)


def test_a_rerun_says_whether_numbers_agree(results: dict[str, Shown], tmp_path: Path) -> None:
    same = results["rerun"]
    assert isinstance(same, package.Rerun)
    assert f"small.toml: 2 runs; All {same.compared:,} numbers agree" in repr(same) or same.agrees
    assert json.loads(same.json())["differences"] == []
    assert same.frame().columns == ["number", "then", "now"]
    assert same.frame().height == 0
    results["run"].write(tmp_path)  # type: ignore[attr-defined]
    path = tmp_path / "manifest.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["scenarios"][0]["results"]["classes"][0]["throughput_bps"] = 1.5
    path.write_text(json.dumps(content), encoding="utf-8")
    other = package.rerun(tmp_path)
    assert other.frame()["then"].to_list() == [1.5]
    assert f"1 of {other.compared:,} numbers differs" in repr(other)


def test_a_table_is_that_of_the_command(results: dict[str, Shown]) -> None:
    points = results["sweep"].frame()
    assert points["links.bottleneck.rate"].to_list() == ["1Mbps", "2Mbps"]
    name = next(name for name in points.columns if name.endswith("throughput_bps"))
    low, high = (name.replace("_bps", f"_{end}_bps") for end in ("low", "high"))
    assert (points[low] <= points[name]).all()
    assert (points[name] <= points[high]).all()
    assert results["reproduce"].frame().height > 0


def test_reproduce_prints_and_writes_what_the_command_does(
    perhop: Perhop, results: dict[str, Shown], tmp_path: Path
) -> None:
    done = perhop("reproduce", "kim-fig2", "--runs", "2", "--out", "out")
    printed = [
        line for line in done.out.strip("\n").splitlines() if not line.startswith(("plots:", "report:"))
    ]
    lines = results["reproduce"].text(80).splitlines()
    assert [line for line in printed if line] == [line for line in lines if line]
    results["reproduce"].write(tmp_path / "mine")  # type: ignore[attr-defined]
    for file in ("samples.parquet", "plots"):
        assert (tmp_path / "mine" / file).exists()
    ours, theirs = ((tmp_path / of / "report.html").read_text(encoding="utf-8") for of in ("mine", "out"))
    assert ours == theirs.replace(" --out out", "")


def test_a_report_says_what_repeats_it(results: dict[str, Shown], tmp_path: Path) -> None:
    """From a file the command with its options; from data what reruns the report, or the function."""
    small, file = tmp_path / "small.toml", tmp_path / "sweep.toml"
    small.write_text(SMALL, encoding="utf-8")
    file.write_text(
        'scenario = "small.toml"\nruns = 2\n[grid]\n"links.bottleneck.rate" = ["1Mbps", "2Mbps"]\n',
        encoding="utf-8",
    )
    swept = package.sweep(file, store=tmp_path / "store", runs=3)
    written = {
        "file": (swept, f"perhop sweep {file} --store {tmp_path / 'store'} --runs 3"),
        "sweep": (results["sweep"], f"perhop rerun {tmp_path / 'sweep'}"),
        "run": (results["run"], f"perhop rerun {tmp_path / 'run'}"),
        "tune": (results["tune"], "perhop.tune(…) in Python"),
        "plan": (results["plan"], "perhop.plan(…) in Python"),
    }
    for name, (result, command) in written.items():
        assert isinstance(result, Written)
        result.write(tmp_path / name)
        manifest = json.loads((tmp_path / name / "manifest.json").read_text(encoding="utf-8"))
        assert manifest["command"] == command
    assert package.rerun(tmp_path / "sweep").agrees
    assert package.rerun(tmp_path / "file").agrees


def test_the_root_lists_what_is_documented() -> None:
    modules = {"gym", "measures", "quality", "routers", "scenario", "statistics"}
    assert dir(package) == sorted({*package.__all__, *modules})


@pytest.mark.parametrize(
    "name", [name for name in builders.__all__ if isinstance(getattr(builders, name), type)]
)
def test_tables_show_their_keys(name: str) -> None:
    table = getattr(builders, name)
    keys = inspect.signature(table).parameters
    assert "values" not in keys
    assert set(keys) == {field.name for field in dataclasses.fields(table)}
    required = [key for key, one in keys.items() if one.default is one.empty]
    if required:
        with pytest.raises(TypeError, match=rf"^{name}: keys? `{required[0]}`.* (is|are) missing$"):
            table()


@pytest.mark.parametrize("function", [package.run, package.sweep, package.plan])
def test_a_directory_is_refused_whatever_file_a_function_reads(
    function: Callable[[Path], Shown], tmp_path: Path
) -> None:
    with pytest.raises(package.PerhopError, match=r"is a directory; give a file \(TOML\)$"):
        function(tmp_path)
