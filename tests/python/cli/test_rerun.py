"""`perhop rerun`: a report's numbers come out again, and one that does not is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from perhop import _engine
from perhop.rerunning import rerun

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]


@pytest.fixture
def report(perhop: Perhop, small: Path, tmp_path: Path) -> Path:
    """The folder of a report on two runs."""
    done = perhop("run", small, "--runs", "2", "--seed", "5", "--out", "out")
    assert done.code == 0, done.err
    small.unlink()
    return tmp_path / "out"


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
        (binary, "is not JSON in UTF-8"),
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
