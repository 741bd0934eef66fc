"""`perhop rerun`: a report's numbers come out again, and one that does not is found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from tests.python.conftest import SMALL, run_in

from perhop import _engine
from perhop.real_packets.equivalence import collect
from perhop.rerunning import rerun
from perhop.runs import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished
    from tests.python.processes import Server

    Perhop = Callable[..., Finished]


@pytest.fixture(scope="module")
def made(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports of `run` and `sweep`, which each test changes a copy of."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "small.toml").write_text(SMALL, encoding="utf-8")
    (folder / "limits.toml").write_text(SWEEP, encoding="utf-8")
    commands = {
        "run": ("run", "small.toml", "--runs", "2", "--seed", "5", "--out", "run"),
        "sweep": ("sweep", "limits.toml", "--out", "sweep", "--store", "store"),
    }
    for command in commands.values():
        done = run_in(server, folder, *command)
        assert done.code == 0, done.err
    return {name: folder / name for name in commands}


@pytest.fixture
def report(made: dict[str, Path], tmp_path: Path) -> Path:
    """The folder of a report on two runs."""
    return shutil.copytree(made["run"], tmp_path / "out")


def _edit(report: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = report / "manifest.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def test_every_number_of_a_report_comes_out_again(perhop: Perhop, report: Path) -> None:
    before = {path: path.read_bytes() for path in report.rglob("*") if path.is_file()}
    done = perhop("rerun", report / "manifest.json", "--jobs", "1")
    assert done.code == 0, done.err
    assert "2 runs, seeds 5 to 6" in done.out
    compared = rerun(report).compared
    samples = pl.read_parquet(report / "samples.parquet")
    assert compared > samples.height * samples.width
    assert f"All {compared:,} numbers agree." in done.out
    assert perhop("rerun", report, "--engine", "reference").code == 0
    assert {path: path.read_bytes() for path in report.rglob("*") if path.is_file()} == before


def test_one_other_number_is_found(perhop: Perhop, report: Path) -> None:
    first = json.loads((report / "manifest.json").read_text(encoding="utf-8"))["scenarios"][0]["results"]
    then = first["classes"][0]["throughput_bps"]
    _edit(report, lambda content: content["scenarios"][0]["results"]["classes"][0].update(throughput_bps=1.5))
    done = perhop("rerun", report)
    assert done.code == 1
    assert "1 of " in done.out
    words = done.out.split()
    assert {"1.5", str(then)} <= set(words)
    assert "throughput_bps" in done.out
    assert "gold" in done.out


def test_numbers_that_the_report_lacks_are_told_from_undefined_ones(perhop: Perhop, report: Path) -> None:
    _edit(report, lambda content: content["scenarios"][0].update(results={}))
    done = perhop("rerun", report)
    assert done.code == 1
    assert "nothing" in done.out
    assert "None" not in done.out
    found = rerun(report)
    assert found.differences[0].then == "nothing"
    assert f"<td>{found.differences[0].place}</td><td>nothing</td>" in found._repr_html_()
    assert found.to_latex().count("nothing") == 10


def test_one_other_flow_is_found(report: Path) -> None:
    samples = pl.read_parquet(report / "samples.parquet")
    rates = samples["throughput_bps"].to_list()
    rates[5] += 1e-6 * rates[5]
    samples.with_columns(throughput_bps=pl.Series(rates)).write_parquet(report / "samples.parquet")
    (found,) = rerun(report).differences
    row = samples.row(5, named=True)
    assert found.place == f"samples.parquet, throughput_bps[{row['seed']}, {row['class']}, {row['member']}]"
    assert (found.then, found.now) == (rates[5], row["throughput_bps"])
    samples.drop("throughput_bps").write_parquet(report / "samples.parquet")
    assert [one.place for one in rerun(report).differences] == ["samples.parquet, column throughput_bps"]
    samples.head(3).write_parquet(report / "samples.parquet")
    assert [one.place for one in rerun(report).differences] == ["samples.parquet, rows"]


def test_other_seeds_differ_and_no_more_than_ten_are_listed(perhop: Perhop, report: Path) -> None:
    _edit(report, lambda content: content["scenarios"][0].update(seeds=[7, 8]))
    done = perhop("rerun", report)
    assert done.code == 1
    assert len(done.out.splitlines()) < 60
    assert " more\n" in done.out


def test_what_is_not_compared_is_said(perhop: Perhop, report: Path) -> None:
    (report / "samples.parquet").rename(report / "kept")
    done = perhop("rerun", report)
    assert done.code == 0
    assert "samples.parquet is not beside the manifest: only the means are compared." in done.out
    (report / "kept").rename(report / "samples.parquet")
    _edit(report, lambda content: content["scenarios"][0].pop("results"))
    _edit(report, lambda content: content.update(perhop="0.0.1"))
    done = perhop("rerun", report)
    assert done.code == 0
    assert "The manifest has no means: only the flows of each run are compared." in done.out
    assert f"was made by perhop 0.0.1; this is {_engine.version}." in done.err


def _entry(content: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = content["scenarios"][0]
    return entry


REFUSED: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no manifest": (lambda content: content.pop("scenarios"), "is no manifest; give the manifest.json"),
    "real packets": (
        lambda content: content.update(command="perhop live a.toml"),
        "was made on real packets",
    ),
    "a search": (
        lambda content: content.update(command="perhop tune a.toml"),
        "run `perhop tune a.toml` again",
    ),
    "two": (lambda content: content["scenarios"].append({}), "not of `perhop run`"),
    "no scenario": (
        lambda content: _entry(content).pop("scenario"),
        "scenarios[0].scenario: a table is missing",
    ),
    "wrong scenario": (lambda content: _entry(content)["scenario"].update(duration="5 bananas"), "bananas"),
    "seeds apart": (lambda content: _entry(content).update(seeds=[1, 3]), "one after the other"),
    "seeds again": (lambda content: _entry(content).update(seeds=[1, 1, 3]), "one after the other"),
    "no seeds": (lambda content: _entry(content).update(seeds=[]), "one after the other"),
    "words": (lambda content: _entry(content).update(seeds=["x"]), "one after the other"),
    "negative": (lambda content: _entry(content).update(seeds=[-1]), "seed must be at least 0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_manifest_that_cannot_be_run_is_refused(name: str, perhop: Perhop, report: Path) -> None:
    change, message = REFUSED[name]
    _edit(report, change)
    done = perhop("rerun", report)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.splitlines()) == 1
    assert not done.out


def test_files_that_are_no_manifest_are_refused(perhop: Perhop, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    broken = tmp_path / "broken.json"
    broken.write_text("{\n1", encoding="utf-8")
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, message in (
        (tmp_path / "none.json", "no such file; `perhop run --out DIR` writes DIR/manifest.json"),
        (empty, "empty/manifest.json: no such file"),
        (broken, "broken.json:2: is not JSON"),
        (binary, "is UTF-16 text; save it as UTF-8"),
    ):
        done = perhop("rerun", path)
        assert (done.code, len(done.err.splitlines())) == (2, 1)
        assert message in done.err


def test_damaged_or_missing_first_results_are_refused(perhop: Perhop, report: Path) -> None:
    (report / "samples.parquet").write_bytes(b"damaged")
    done = perhop("rerun", report)
    assert done.code == 2
    assert "samples.parquet: is damaged, or no Parquet file; remove it" in done.err
    (report / "samples.parquet").unlink()
    _edit(report, lambda content: content["scenarios"][0].pop("results"))
    done = perhop("rerun", report)
    assert done.code == 2
    assert "there is nothing to compare with" in done.err


SWEEP = """title = "Limits"
scenario = "small.toml"
runs = 2
seed = 3
[grid]
"links.bottleneck.queue.limit" = ["20p", "40p"]
"""


LIMIT = "links.bottleneck.queue.limit"


@pytest.fixture
def swept(made: dict[str, Path], tmp_path: Path) -> Path:
    """The folder of the report of a sweep of two points, two runs each."""
    return shutil.copytree(made["sweep"], tmp_path / "out")


def test_every_number_of_a_sweep_comes_out_again(perhop: Perhop, swept: Path) -> None:
    done = perhop("rerun", swept, "--jobs", "1")
    assert done.code == 0, done.err
    samples = pl.read_parquet(swept / "samples.parquet")
    assert samples["point"].n_unique() == 2
    assert samples["seed"].unique().to_list() == [3, 4]
    assert "perhop sweep: 2 points, 4 runs" in done.out
    assert f"All {samples.height + 2:,} numbers and settings agree." in done.out


def _exchanged(samples: pl.DataFrame, name: str) -> pl.DataFrame:
    """The samples with the two values of a column exchanged."""
    one, other = samples[name].unique().sort().to_list()
    return samples.with_columns(pl.col(name).replace_strict({one: other, other: one}))


def _one_other(samples: pl.DataFrame) -> pl.DataFrame:
    """The samples with another setting in the first row alone."""
    first = pl.int_range(pl.len()) == 0
    return samples.with_columns(pl.when(first).then(pl.lit("red")).otherwise(LIMIT).alias(LIMIT))


CHANGED: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], list[tuple[str, Any, Any]]]] = {
    "exchanged": (
        lambda one: _exchanged(one, LIMIT),
        [(f"{LIMIT}[point 0]", "40p", "20p"), (f"{LIMIT}[point 1]", "20p", "40p")],
    ),
    "left out": (lambda one: one.drop(LIMIT), [(f"column {LIMIT}", "nothing", "a column")]),
    "renamed": (
        lambda one: one.rename({LIMIT: "limit"}),
        [("column limit", "a column", "nothing"), (f"column {LIMIT}", "nothing", "a column")],
    ),
    "of another type": (
        lambda one: one.with_columns(pl.col(LIMIT).str.head(2).cast(pl.Int64)),
        [(f"column {LIMIT}", "Int64", "String")],
    ),
    "one more column": (
        lambda one: one.with_columns(pl.lit(1).alias("more")),
        [("column more", "a column", "nothing")],
    ),
    "a row twice": (lambda one: pl.concat([one, one.head(1)]), [("ROW, rows", 2, 1)]),
    "one cell": (_one_other, [(f"{LIMIT}[point 0]", "red", "20p")]),
}


@pytest.mark.parametrize("name", CHANGED)
def test_settings_and_rows_of_a_sweep_are_held_against_its_manifest(
    perhop: Perhop, swept: Path, name: str
) -> None:
    change, places = CHANGED[name]
    samples = pl.read_parquet(swept / "samples.parquet")
    change(samples).write_parquet(swept / "samples.parquet")
    row = samples.row(0, named=True)
    text = f"{row['metric']}[{LIMIT} = {row[LIMIT]}, {row['seed']}]"
    wanted = [(f"samples.parquet, {place.replace('ROW', text)}", *values) for place, *values in places]
    assert [(one.place, one.then, one.now) for one in rerun(swept).differences] == wanted
    done = perhop("rerun", swept)
    assert done.code == 1
    assert f"{len(wanted)} of " in done.out
    assert "numbers and settings differ" in done.out


@pytest.mark.parametrize("column", ["seed", "metric", "point"])
def test_exchanged_seeds_metrics_and_points_are_found(swept: Path, column: str) -> None:
    samples = pl.read_parquet(swept / "samples.parquet")
    if column == "metric":
        names = samples.filter(pl.col("metric").str.ends_with("throughput_bps"))["metric"].unique().sort()
        samples.with_columns(pl.col(column).replace({names[0]: names[1], names[1]: names[0]})).write_parquet(
            swept / "samples.parquet"
        )
    else:
        _exchanged(samples, column).write_parquet(swept / "samples.parquet")
    assert rerun(swept).differences


def test_named_settings_that_are_exchanged_are_found(perhop: Perhop, small: Path, tmp_path: Path) -> None:
    text = f'scenario = "{small.name}"\nruns = 2\n[grid."links.bottleneck.queue"]\n'
    text += 'red = { aqm = "red", limit = "200p", thresholds = "5/15/0.1" }\n'
    text += 'codel = { aqm = "codel", limit = "200p" }\n'
    (tmp_path / "queues.toml").write_text(text, encoding="utf-8")
    assert perhop("sweep", "queues.toml", "--out", "out", "--store", "store").code == 0
    samples = pl.read_parquet(tmp_path / "out" / "samples.parquet")
    _exchanged(samples, "links.bottleneck.queue").write_parquet(tmp_path / "out" / "samples.parquet")
    done = perhop("rerun", "out")
    assert done.code == 1
    words = " ".join(done.out.split())
    assert "samples.parquet, links.bottleneck.queue[point 0] codel red" in words
    assert "samples.parquet, links.bottleneck.queue[point 1] red codel" in words


def test_another_number_of_a_sweep_is_found(perhop: Perhop, swept: Path) -> None:
    samples = pl.read_parquet(swept / "samples.parquet")
    place = samples.with_row_index().filter((pl.col("point") == 1) & (pl.col("seed") == 4))["index"][0]
    values = samples["value"].to_list()
    row = samples.row(place, named=True)
    values[place] = -1.0
    samples.with_columns(value=pl.Series(values)).write_parquet(swept / "samples.parquet")
    (found,) = rerun(swept).differences
    assert found.place == f"samples.parquet, {row['metric']}[links.bottleneck.queue.limit = 40p, 4]"
    assert (found.then, found.now) == (-1.0, row["value"])
    samples.drop_nulls("value").head(5).write_parquet(swept / "samples.parquet")
    done = perhop("rerun", swept)
    assert done.code == 1
    assert "nothing" in done.out
    assert f"of {samples.height + 2:,} numbers and settings differ" in done.out


def test_what_cannot_be_run_of_a_sweep_is_refused(perhop: Perhop, swept: Path) -> None:
    before = (swept / "manifest.json").read_bytes()
    for change, message in (
        (lambda content: _entry(content).pop("scenario"), "at most 1000 points"),
        (lambda content: _entry(content).update(seeds=[4, 3]), "scenarios[0].seeds: must be whole numbers"),
        (lambda content: _entry(content).update(seeds="x"), "scenarios[0].seeds: must be whole numbers"),
        (lambda content: content.update(scenarios=[]), "has no scenarios"),
    ):
        _edit(swept, change)
        done = perhop("rerun", swept)
        assert (done.code, len(done.err.splitlines())) == (2, 1), done.err
        assert message in done.err
        (swept / "manifest.json").write_bytes(before)
    assert "each run of a sweep chooses" in perhop("rerun", swept, "--engine", "reference").err
    samples = pl.read_parquet(swept / "samples.parquet")
    samples.drop("metric").write_parquet(swept / "samples.parquet")
    assert "its columns are not those of `perhop sweep`" in perhop("rerun", swept).err
    (swept / "samples.parquet").unlink()
    done = perhop("rerun", swept)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "there is nothing to compare with" in done.err


def test_the_simulated_numbers_of_a_comparison_come_out_again(
    perhop: Perhop, small: Path, tmp_path: Path
) -> None:
    # What `perhop compare` writes, without the real packets, which not every machine can send.
    result = simulate.run(small, runs=2, seed=7)
    rows = [
        ("small", "simulated", seed, key.kind, key.name, key.measure, value)
        for key, values in collect(result.runs).items()
        for seed, value in values.items()
    ]
    out = tmp_path / "compared"
    out.mkdir()
    names = ("scenario", "source", "seed", "kind", "name", "measure", "value")
    live = ("small", "live", 7, "class", "x", "throughput", 1.0)
    pl.DataFrame([*rows, live], schema=names, orient="row").write_parquet(out / "samples.parquet")
    entry = {
        "name": "small",
        "seeds": {"simulated": [7, 8], "live": [7]},
        "scenario": json.loads(result.scenario),
    }
    content = {"perhop": _engine.version, "command": "perhop compare small.toml", "scenarios": [entry]}
    (out / "manifest.json").write_text(json.dumps(content), encoding="utf-8")
    done = perhop("rerun", out)
    assert done.code == 0, done.err
    assert "perhop compare: 1 scenario, 2 runs" in done.out
    assert "Only the simulated numbers are compared" in done.out
    assert f"All {len(rows):,} numbers agree." in done.out
    # What a reader relies on beside the values: their units, and that all simulated ones are valid.
    units = {key.of.id: key.of.unit for key in collect(result.runs)}
    plain = pl.read_parquet(out / "samples.parquet")
    whole = plain.with_columns(unit=pl.col("measure").replace(units), valid=pl.lit(value=True))
    whole.write_parquet(out / "samples.parquet")
    assert perhop("rerun", out).code == 0
    for wrong in (whole.with_columns(unit=pl.lit("ms")), whole.with_columns(valid=pl.lit(value=False))):
        wrong.write_parquet(out / "samples.parquet")
        assert perhop("rerun", out).code == 1
    plain.write_parquet(out / "samples.parquet")
    _edit(out, lambda content: _entry(content)["seeds"].update(simulated=[8, 9]))
    done = perhop("rerun", out)
    assert done.code == 1
    _edit(out, lambda content: _entry(content).update(seeds=[7, 8]))
    assert "scenarios[0].seeds: must be whole numbers" in perhop("rerun", out).err
