"""The command line from end to end: what it prints, what it refuses, what it leaves behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import numpy as np
import polars as pl
import pytest
from tests.python.conftest import Finished, run_in

import perhop as package
from perhop import _engine
from perhop.blocks.catalogue import ERAS, ROLES
from perhop.stores.journal import joined, pieces
from perhop.stores.outcomes import Entry, pack
from perhop.studies import PAPERS, STUDIES, in_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.processes import Server

    Perhop = Callable[..., Finished]

RULE = """\
import perhop

class Rule(perhop.Aqm):
    def on_arrival(self, packet, queue, now, random):
        return perhop.Verdict.PASS
"""
REPRODUCE = ("reproduce", "kim-table1", "--runs", "1")


def refused(done: Finished) -> str:
    """The one line of a refusal."""
    assert done.code == 2, done
    assert done.out == ""
    assert "Traceback" not in done.err
    lines = done.err.strip().splitlines()
    assert len(lines) == 1, done.err
    assert lines[0].startswith("error: ")
    return lines[0]


# ---------------------------------------------------------------- scenarios that cannot be


def broken(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('duration = "5s"', 'duraton = "5s"', ["duraton", "duration"]),
        ('burst = "10kB"', 'bursts = "10kB"', ["bursts", "burst"]),
        ('duration = "5s"', "", ["duration"]),
        ('rate = "2Mbps"', "", ["rate"]),
        ('rate = "2Mbps"', 'rate = "20mbps"', ["20mbps", "rate"]),
        ('in = "10/30/0.02"', 'in = "60/30/0.1"', ["in", "60/30/0.1"]),
        ('in = "10/30/0.02"', 'in = "10/30/1.5"', ["in", "1.5"]),
        ('rate = "2Mbps"', 'rate = "0Mbps"', ["rate", "0Mbps"]),
        ('rate = "2Mbps"', 'rate = "-2Mbps"', ["rate", "-2Mbps"]),
        ('to = "core"\naccess', 'to = "cor"\naccess', ["cor", "core"]),
        (
            'from = "edge"\nto = "core"\nrate',
            'from = "edge"\nto = "core"\nreverse = "none"\nrate',
            ["reverse"],
        ),
        ('name = "best-effort"', 'name = "gold"', ["gold"]),
        ('title = "', "title = ", [":1"]),
    ],
    ids=[
        "unknown key",
        "unknown nested key",
        "missing duration",
        "missing rate",
        "ambiguous unit",
        "min above max",
        "probability above 1",
        "zero rate",
        "negative rate",
        "unknown node",
        "bad value of a link key",
        "duplicate name",
        "not TOML",
    ],
)
def test_a_wrong_scenario_is_named_by_file_and_key(
    perhop: Perhop, small: Path, old: str, new: str, said: list[str]
) -> None:
    small.write_text(broken(small.read_text(), old, new))
    line = refused(perhop("run", small))
    assert str(small) in line
    for word in said:
        assert word in line


def test_an_unreachable_destination(perhop: Perhop, small: Path) -> None:
    island = '[links.far]\nfrom = "island"\nto = "shore"\nrate = "1Mbps"\ndelay = "1ms"\n'
    text = small.read_text().replace("[[flows]]", island + "\n[[flows]]", 1)
    small.write_text(broken(text, 'to = "core"\naccess', 'to = "shore"\naccess'))
    line = refused(perhop("run", small))
    assert "shore" in line
    assert "edge" in line


# ---------------------------------------------------------------- files that cannot be read


def test_missing_file(perhop: Perhop) -> None:
    assert "nowhere.toml: no such file" in refused(perhop("run", "nowhere.toml"))


def test_directory(perhop: Perhop, tmp_path: Path) -> None:
    assert "is a directory" in refused(perhop("run", tmp_path))


@pytest.mark.parametrize("text", ["", " \n\t\n"])
def test_empty_file(perhop: Perhop, tmp_path: Path, text: str) -> None:
    path = tmp_path / "empty.toml"
    path.write_text(text)
    assert "empty.toml: is empty" in refused(perhop("run", path))


def test_not_utf8(perhop: Perhop, tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes(b'duration = "5s"\ntitle = "caf\xe9"\n')
    line = refused(perhop("run", path))
    assert "latin.toml:2:" in line
    assert "byte 0xe9 at position 28" in line


def test_a_huge_file_is_not_read(perhop: Perhop, tmp_path: Path) -> None:
    path = tmp_path / "huge.toml"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    assert "huge.toml: larger than 1 MB" in refused(perhop("run", path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read any file")
def test_unreadable_file(perhop: Perhop, small: Path) -> None:
    small.chmod(0)
    assert "cannot be read: Permission denied" in refused(perhop("run", small))


# ---------------------------------------------------------------- options that cannot be met


@pytest.mark.parametrize("command", [("reproduce", "kim-table1"), ("run", "small.toml")])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--runs", "0"), "--runs must be at least 1"),
        (("--runs", "1000000000"), "at most"),
        (("--jobs", "0"), "--jobs must lie between"),
        (("--jobs", "-3"), "--jobs must lie between"),
        (("--seed", "-1"), "--seed must be at least 0"),
        (("--seed", str(2**64)), "--seed must be at least 0"),
        (("--out", "small.toml"), "--out small.toml: not a directory"),
        (("--out", "small.toml/results"), "--out small.toml/results: not a directory"),
        (("--out", "/proc/perhop"), "--out /proc/perhop: cannot be created"),
        (("--out", ""), "--out: a name is empty"),
        (("--out", "-"), "--out -: standard output takes no folder; name one, such as `results`"),
        (("--json", ""), "--json: a name is empty"),
        (("--json", "."), "is a directory"),
        (("--json", "nowhere/x.json"), "--json nowhere/x.json: cannot be written"),
        (("--json", "small.toml/x.json"), "cannot be written"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, tuple) else "",
)
@pytest.mark.usefixtures("small")
def test_a_wrong_option_is_refused_before_the_work(
    perhop: Perhop, tmp_path: Path, command: tuple[str, ...], options: tuple[str, ...], said: str
) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert said in refused(perhop(*command, *options))
    left = [path for path in sorted(tmp_path.rglob("*")) if path not in before]
    assert all(path.is_dir() for path in left), left


def test_an_unknown_study_is_named_with_its_nearest(perhop: Perhop) -> None:
    assert "no study `kim-tabel1`; did you mean `kim-table1`?" in refused(perhop("reproduce", "kim-tabel1"))
    assert "there are kim-table1" in refused(perhop("reproduce", "QQQQ"))


@pytest.mark.parametrize("arguments", [("nonsense",), ("run",), ("reproduce", "--nonsense"), ("--runs", "x")])
def test_usage_errors_end_with_2(perhop: Perhop, arguments: tuple[str, ...]) -> None:
    done = perhop(*arguments)
    assert done.code == 2
    assert "Usage" in done.err
    assert "Traceback" not in done.err


# ---------------------------------------------------------------- help and lists


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        *((name, "--help") for name in ("reproduce", "run", "sweep", "tune", "plan", "list", "schema")),
    ],
)
def test_help(perhop: Perhop, arguments: tuple[str, ...]) -> None:
    done = perhop(*arguments)
    assert done.code == 0
    assert "Usage: perhop" in done.out
    assert not re.search(r"\w\.\.\.$", done.out, re.MULTILINE), "a summary is cut off"


@pytest.mark.parametrize("command", ["reproduce", "run", "sweep", "tune", "plan"])
def test_examples_stand_on_their_own_lines(perhop: Perhop, command: str) -> None:
    text = perhop(command, "--help").out
    assert "\\b" not in text
    assert "\x08" not in text
    lines = [line.strip() for line in text.splitlines()]
    assert sum(line.startswith(f"perhop {command}") for line in lines) >= 3
    assert "Examples:" in lines


def test_version(perhop: Perhop) -> None:
    assert perhop("--version").out == f"perhop {_engine.version}\n"


def test_list_studies(perhop: Perhop) -> None:
    text = perhop("list", "studies").out
    assert all(name in text for name in STUDIES)
    entries = json.loads(perhop("list", "studies", "--json").out)["studies"]
    assert [entry["id"] for entry in entries] == list(STUDIES)


def test_list_blocks(perhop: Perhop) -> None:
    entries = json.loads(perhop("list", "blocks", "--json").out)["blocks"]
    names = {entry["name"] for entry in entries}
    assert {"red", "rio", "rio-plus-out", "token-bucket"} <= names
    text = perhop("list", "blocks").out
    assert all(name in text for name in names)


def test_blocks_are_listed_by_role_and_age_with_their_origin(perhop: Perhop) -> None:
    entries = json.loads(perhop("list", "blocks", "--json").out)["blocks"]
    keys = [(list(ROLES).index(entry["role"]), list(ERAS).index(entry["era"])) for entry in entries]
    assert keys == sorted(keys)
    assert {entry["era"] for entry in entries} == set(ERAS)
    for entry in entries:
        assert entry["source"]
        assert entry["era"] == "papers" or (entry["era"] == "today") == (entry["year"] >= 2008), entry
        assert entry["linux"] is None or entry["linux"].keys() == {"name", "since"}, entry
    text = perhop("list", "blocks").out
    overview = text[: text.index("(meter, ")]
    assert overview.index("two-windows") < overview.index("reno") < overview.index("bbr3")
    codel = perhop("list", "blocks", "codel").out
    assert codel.startswith("codel  (aqm, today, 2012)\n")
    assert "follows RFC 8289, sections 4 and 5" in codel
    assert "in Linux: `codel` since 3.5" in codel
    assert "drop-tail" not in codel
    unknown = perhop("list", "blocks", "codl")
    assert (unknown.code, "did you mean `codel`?" in unknown.err) == (2, True)


def test_schema_accepts_a_scenario(perhop: Perhop, small: Path) -> None:
    schema = json.loads(perhop("schema").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    canonical = json.loads(_engine.scenario_from_toml(small.read_text(), "small.toml"))
    validator.validate(canonical)
    assert not validator.is_valid({**canonical, "nonsense": 1})


def test_nothing_listens(small: Path) -> None:
    """A reader that leaves at once (`perhop list studies | head -0`) sees no traceback."""
    for arguments in (["list", "studies"], ["schema"], ["run", str(small)]):
        command = [sys.executable, "-m", "perhop", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        error = process.stderr.read().decode()
        process.stderr.close()
        process.wait(60)
        assert error == ""


def shell(text: str, place: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run text in bash, where `perhop` is this one."""
    program = f'perhop() {{ "{sys.executable}" -m perhop "$@"; }}\n{text}'
    return subprocess.run(
        ["bash", "-c", program],
        capture_output=True,
        text=True,
        cwd=place,
        timeout=120,
        check=False,
        env={**os.environ, **more},
    )


@pytest.mark.parametrize(
    "arguments", ["run small.toml --runs 2", "run small.toml --runs 2 --json -", "--help", "list blocks"]
)
@pytest.mark.usefixtures("small")
def test_a_full_standard_output_is_one_line(tmp_path: Path, arguments: str) -> None:
    done = shell(f"perhop {arguments} > /dev/full", tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("error: ")
    assert "No space left on device" in done.stderr


@pytest.mark.usefixtures("small")
def test_an_encoding_that_lacks_signs(tmp_path: Path) -> None:
    done = shell("perhop run small.toml --runs 2", tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "gold" in done.stdout


METER = 'marker = "token-bucket", rate = "1Mbps", burst = "10kB"'


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (["run", "small.toml", "--json", "small.toml"], "small.toml"),
        (["run", "small.toml", "--json", "other-name.toml"], "small.toml"),
        (["run", "small.toml", "--runs", "1", "--capture", "small.toml"], "small.toml"),
        (["run", "small.toml", "--runs", "1", "--events", "../{place}/small.toml"], "small.toml"),
        (["sweep", "sweep.toml", "--json", "sweep.toml"], "sweep.toml"),
        (["sweep", "sweep.toml", "--store", "st", "--json", "small.toml"], "small.toml"),
        (["run", "train.toml", "--json", "train-up.csv"], "train-up.csv"),
        (["run", "train.toml", "--json", "train-down.trace"], "train-down.trace"),
        (["run", "blocks.toml", "--json", "my_rule.py"], "my_rule.py"),
        (["--plugin", "my_rule", "run", "small.toml", "--json", "my_rule.py"], "my_rule.py"),
        (["plan", "branch-office.toml", "--json", "branch-office.cfg"], "branch-office.cfg"),
        (["plan", "branch-office.toml", "--export", "branch-office.cfg"], "branch-office.cfg"),
        (["live", "small.toml", "--json", "small.toml"], "small.toml"),
        (["compare", "small.toml", "--json", "small.toml"], "small.toml"),
        (["replay", "in.csv", "--meter", METER, "--json", "in.csv"], "in.csv"),
        (["replay", "in.csv", "--meter", METER, "--packets", "in.csv"], "in.csv"),
        (["replay", "in.csv", "small.toml", "--json", "small.toml"], "small.toml"),
    ],
)
def test_no_command_writes_over_what_it_reads(
    small: Path, perhop: Perhop, tmp_path: Path, arguments: list[str], kept: str
) -> None:
    (tmp_path / "other-name.toml").symlink_to(small)
    (tmp_path / "in.csv").write_bytes(Path("examples/capture.pcap").read_bytes())
    (tmp_path / "sweep.toml").write_text(
        'scenario = "small.toml"\n[grid]\n"links.bottleneck.delay" = ["1ms"]\n'
    )
    for example in ("train.toml", "train-up.csv", "train-down.trace"):
        shutil.copy(Path("examples") / example, tmp_path)
    for example in ("branch-office.toml", "branch-office.cfg"):
        shutil.copy(Path("examples/plan") / example, tmp_path)
    (tmp_path / "my_rule.py").write_text(RULE)
    rule = 'aqm = "rio", limit = "50p", in = "10/30/0.02", total = "5/15/0.1"'
    (tmp_path / "blocks.toml").write_text(broken(small.read_text(), rule, 'aqm = "my_rule:Rule"'))
    before = (tmp_path / kept).read_bytes()
    done = perhop(*(argument.replace("{place}", tmp_path.name) for argument in arguments))
    assert (done.code, done.out) == (2, "")
    assert (tmp_path / kept).read_bytes() == before
    assert f"error: {arguments[-2]} " in done.err
    assert "is a file that this command reads; give another name" in done.err


def test_a_report_replaces_nobody_elses_files(small: Path, perhop: Perhop, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "report.html").write_text("mine")
    (own / "manifest.json").write_text('{"name": "mine"}')
    done = perhop("run", "small.toml", "--runs", "2", "--out", "own")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "error: --out own: has manifest.json, which no earlier --out wrote; give a directory of its own\n"
    )
    assert (own / "report.html").read_text() == "mine"
    result = package.run(small, runs=2)
    with pytest.raises(package.PerhopError, match="which no earlier --out wrote"):
        result.write(own)
    result.write(tmp_path / "new")
    result.write(tmp_path / "new")


@pytest.mark.usefixtures("small")
def test_json_never_replaces_what_is_no_regular_file(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "aim.json").write_text("old")
    (tmp_path / "link.json").symlink_to("aim.json")
    (tmp_path / "dangling.json").symlink_to("new.json")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link.json", "dangling.json", "/dev/null", "/dev/stderr"):
        written = perhop("run", "small.toml", "--runs", "2", "--json", name)
        assert written.code == 0, written.err
    assert json.loads(written.err)["seeds"] == [1, 2]
    with (tmp_path / "through.json").open("w") as through:
        reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=through)
        assert perhop("run", "small.toml", "--runs", "2", "--json", "pipe").code == 0
        assert reader.wait(60) == 0
    (tmp_path / "stdout.json").write_text(
        perhop("run", "small.toml", "--runs", "2", "--json", "/dev/stdout").out
    )
    done = shell("perhop run small.toml --runs 2 --json >(cat > substituted.json) > text; sleep 1", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "dangling.json").is_symlink()
    assert (tmp_path / "pipe").is_fifo()
    assert Path("/dev/null").is_char_device()
    texts = {
        (tmp_path / f"{name}.json").read_text() for name in ("aim", "new", "through", "substituted", "stdout")
    }
    assert len(texts) == 1
    assert json.loads(texts.pop())["seeds"] == [1, 2]
    full = perhop("run", "small.toml", "--runs", "2", "--json", "/dev/full")
    assert full.code == 2
    assert full.err == "error: /dev/full: cannot be written: No space left on device\n"


# ---------------------------------------------------------------- run


def test_run_prints_classes_and_links(perhop: Perhop, small: Path) -> None:
    done = perhop("run", small, "--runs", "2")
    assert done.code == 0
    for word in ("Two classes at a small link", "gold", "best effort", "bottleneck", "±", "seeds 1 to 2"):
        assert word in done.out
    assert "\x1b" not in done.out + done.err


def test_run_prints_the_queues_of_a_port(perhop: Perhop) -> None:
    done = perhop("run", Path("examples/queues.toml").resolve())
    assert done.code == 0
    queues = {tuple(line.split()[:2]) for line in done.out.splitlines()}
    assert {("R2-R3", name) for name in ("ef", "near", "far", "rest")} <= queues


def test_a_path_that_leads_nowhere_is_refused(perhop: Perhop, tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    text = Path("examples/queues.toml").read_text(encoding="utf-8")
    broken.write_text(text.replace('["R4", "R2", "R3"]', '["R4", "R3"]'), encoding="utf-8")
    done = perhop("run", broken)
    assert done.code == 2
    assert "broken.toml:8: paths.far.via[1]: no link connects `R4` and `R3`" in done.err


def test_run_writes_a_report(perhop: Perhop, small: Path, tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    done = perhop("run", small, "--runs", "2", "--seed", "5", "--out", out)
    assert done.code == 0
    assert str(out / "report.html") in done.out
    found = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert found == {
        "report.html",
        "manifest.json",
        "samples.parquet",
        *(
            f"plots/run-{name}.{kind}"
            for name in ("throughput", "delay", "network")
            for kind in ("svg", "png")
        ),
    }
    frame = pl.read_parquet(out / "samples.parquet")
    assert frame.height == 8
    assert frame["seed"].unique().sort().to_list() == [5, 6]
    assert {"class", "member", "profile_bps", "throughput_bps", "marked_green", "dropped_yellow"} <= set(
        frame.columns
    )
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["perhop"] == _engine.version
    assert manifest["scenarios"][0]["seeds"] == [5, 6]


def test_run_with_probes_draws_their_course(perhop: Perhop, small: Path, tmp_path: Path) -> None:
    small.write_text(small.read_text() + '\n[probes]\ninterval = "1s"\n')
    done = perhop("run", small, "--runs", "2", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    names = {path.stem for path in (tmp_path / "out" / "plots").iterdir()}
    assert names == {
        f"run-{name}" for name in ("throughput", "delay", "throughput-in-time", "queue-in-time", "network")
    }


def test_run_json_does_not_depend_on_threads(perhop: Perhop, small: Path) -> None:
    texts = [
        perhop("run", small, "--runs", "4", "--json", "-", "--jobs", jobs).out for jobs in ("1", "2", "2")
    ]
    assert texts[0] == texts[1] == texts[2]
    content = json.loads(texts[0])
    assert content["seeds"] == [1, 2, 3, 4]
    assert [entry["class"] for entry in content["classes"]] == ["gold", "best-effort"]
    assert content["links"][0]["link"] == "bottleneck"


# ---------------------------------------------------------------- reproduce


@dataclass(frozen=True)
class Reproduced:
    """What a first `reproduce` has left, for others to go on from."""

    place: Path
    done: Finished

    @property
    def json(self) -> str:
        return (self.place / "t.json").read_text(encoding="utf-8")

    def results_in(self, place: Path) -> Path:
        """A copy of its results in another directory."""
        return Path(shutil.copytree(self.place / "results", place / "results"))


@pytest.fixture(scope="module")
def reproduced(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Reproduced:
    place = tmp_path_factory.mktemp("reproduced")
    done = run_in(server, place, *REPRODUCE, "--json", "t.json")
    assert done.code == 0, done.err
    return Reproduced(place, done)


def test_reproduce_leaves_everything(perhop: Perhop, tmp_path: Path) -> None:
    done = perhop(*REPRODUCE, "--runs", "2", "--json", "t.json")
    assert done.code == 0, done.err
    out = tmp_path / "results"
    assert "report: results/report.html" in done.out
    assert "Cannot be right" in done.out
    assert "14 runs simulated" in done.out
    found = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    plots = {
        f"plots/kim-table1-{name}.{kind}"
        for name in ("who-gets-what", "by-out-set", "network")
        for kind in ("svg", "png")
    }
    kept = {name for name in found if name.startswith("runs/")}
    assert found - kept == {"report.html", "manifest.json", "samples.parquet"} | plots
    journals = {name for name in kept if name.endswith(".journal")}
    assert [len(pieces((out / name).read_bytes()).contents) for name in journals] == [14]
    work = sorted(name.split("/")[1] for name in kept - journals)
    assert work == ["pictures"] * 3 + ["studies"], "the next report does not draw and judge them again"
    frame = pl.read_parquet(out / "samples.parquet")
    assert frame.columns == ["study", "seed", "out", "profile_mbps", "scheme", "metric", "unit", "value"]
    throughput = frame.filter(pl.col("metric") == "throughput")
    assert throughput.height == 7 * 6 * 2
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["perhop"] == _engine.version
    assert [entry["seeds"] for entry in manifest["scenarios"]] == [[1, 2]] * 7
    content = json.loads((tmp_path / "t.json").read_text())
    rows = content["studies"][0]["rows"]
    gold = [
        r for r in rows if r["metric"] == "throughput" and r["scheme"] == "rio" and r["profile_mbps"] == 2.0
    ]
    assert len(gold) == 1
    values = throughput.filter((pl.col("scheme") == "rio") & (pl.col("profile_mbps") == 2.0))["value"]
    assert gold[0]["mean"] == pytest.approx(float(np.mean(values.to_numpy())), rel=1e-8)
    assert gold[0]["published"] == 1.765
    assert {claim["id"] for claim in content["studies"][0]["claims"]} == {
        c.id for c in STUDIES["kim-table1"].claims
    }


def test_without_names_the_printed_items_run_headline_items_first(perhop: Perhop) -> None:
    done = perhop("list", "studies", "--json")
    listed = json.loads(done.out)["studies"]
    extra = {entry["id"] for entry in listed if entry["extra"]}
    assert extra
    ordered = [study.id for study in in_order(STUDIES.values())]
    assert ordered[: len(PAPERS)] == [paper.studies[0].id for paper in PAPERS]
    assert set(ordered[-len(extra) :]) == extra
    assert sorted(ordered) == sorted(STUDIES)
    assert not extra & {paper.studies[0].id for paper in PAPERS}


def test_studies_appear_one_after_the_other(perhop: Perhop, tmp_path: Path) -> None:
    # One thread: with more, the last run of the first study may end after those of the second.
    done = perhop("reproduce", "kim-table1", "yeom-fig3", "--runs", "1", "--jobs", "1")
    assert done.code == 0, done.err
    places = [done.out.index(text) for text in ("\nkim-table1: ", "plots: results/plots/kim-table1-")]
    places += [done.out.index(text) for text in ("\nyeom-fig3: ", "report: results/report.html")]
    assert places == sorted(places)
    assert "`perhop reproduce --all` runs these, too" in " ".join(done.out.split())
    page = (tmp_path / "results" / "report.html").read_text()
    assert "not finished" not in page


def test_a_reader_who_leaves_is_no_fault_of_the_store(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "perhop", *REPRODUCE]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        error = process.stderr.read()
        assert process.wait(60) == 1
    assert "could not be kept" not in error
    assert "Traceback" not in error


def test_all_has_no_effect_beside_names(perhop: Perhop) -> None:
    assert "--all has no effect beside named studies" in refused(perhop("reproduce", "--all", "kim-table1"))


def test_json_is_the_same_bytes_for_any_number_of_threads(
    perhop: Perhop, tmp_path: Path, reproduced: Reproduced
) -> None:
    for name, jobs in (("a", "1"), ("b", "2")):
        done = perhop(*REPRODUCE, "--jobs", jobs, "--out", name, "--json", f"{name}.json")
        assert done.code == 0, done.err
    texts = [(tmp_path / f"{name}.json").read_text(encoding="utf-8") for name in "ab"]
    assert texts[0] == texts[1] == reproduced.json
    again = perhop(*REPRODUCE, "--out", "a", "--json", "-")
    assert again.out == texts[0]
    assert "7 reused" in again.err
    assert "NaN" not in texts[0]


def test_a_broken_run_is_computed_again(perhop: Perhop, tmp_path: Path, reproduced: Reproduced) -> None:
    (journal,) = (reproduced.results_in(tmp_path) / "runs").glob("*.journal")
    data = bytearray(journal.read_bytes())
    data[len(data) // 2] ^= 16
    journal.write_bytes(data)
    second = perhop(*REPRODUCE, "--json", "-")
    assert second.out == reproduced.json
    assert second.err.count("warning:") == 1
    assert f"warning: results/runs/{journal.name}: " in second.err
    assert "6 finished runs are kept" in second.err
    assert "1 run simulated, 6 reused" in second.err


def test_a_whole_record_that_is_no_run_is_computed_again(
    perhop: Perhop, tmp_path: Path, reproduced: Reproduced
) -> None:
    (journal,) = (reproduced.results_in(tmp_path) / "runs").glob("*.journal")
    entries = [Entry.of(content) for _, content in pieces(journal.read_bytes()).contents]
    assert entries[0] is not None
    entries[0] = Entry(entries[0].key, entries[0].engine, pack({"seed": 1}))
    journal.write_bytes(joined(entry.content() for entry in entries if entry is not None))
    for simulated, warnings in ((1, 1), (0, 0)):
        again = perhop(*REPRODUCE, "--json", "-")
        assert again.out == reproduced.json
        assert again.err.count("warning:") == warnings
        noun = "run" if simulated == 1 else "runs"
        assert f"{simulated} {noun} simulated, {7 - simulated} reused" in again.err


def test_plots_of_an_earlier_report_go_and_nothing_else(
    perhop: Perhop, tmp_path: Path, small: Path, reproduced: Reproduced
) -> None:
    plots = reproduced.results_in(tmp_path) / "plots"
    assert (plots / "kim-table1-by-out-set.svg").exists()
    (plots / "mine.svg").write_text("<svg/>")
    done = perhop("run", small, "--runs", "2", "--out", "results")
    assert done.code == 0
    assert sorted(path.name for path in plots.iterdir()) == [
        "mine.svg",
        "run-delay.png",
        "run-delay.svg",
        "run-network.png",
        "run-network.svg",
        "run-throughput.png",
        "run-throughput.svg",
    ]
    manifest = json.loads((tmp_path / "results" / "manifest.json").read_text())
    assert manifest["plots"] == [
        f"run-{name}.{kind}" for name in ("throughput", "delay", "network") for kind in ("svg", "png")
    ]


def test_other_seeds_give_other_numbers(perhop: Perhop, reproduced: Reproduced) -> None:
    assert json.loads(perhop(*REPRODUCE, "--seed", "2", "--json", "-").out) != json.loads(reproduced.json)


def test_the_text_fits_a_terminal(reproduced: Reproduced) -> None:
    text = reproduced.done.out
    assert max(len(line) for line in text.splitlines()) <= 80
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)
