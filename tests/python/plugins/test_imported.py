"""What a class in Python imports is part of the key of its runs; what cannot be known is not reused."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from perhop.blocks import digests, plugins, sending
from perhop.blocks.imported import sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

RULE = """\
from perhop import Aqm, Verdict
IMPORT

class Rare(Aqm):
    def on_arrival(self, packet, queue, now, random):
        LAZY
        return Verdict.DROP if random.chance(LOSS) else Verdict.PASS
"""
SWEEP = """\
scenario = "small.toml"
runs = 2
[set]
duration = "1s"
"""


def rule(statement: str, loss: str, lazy: str = "pass") -> str:
    return RULE.replace("LOSS", loss).replace("IMPORT", statement).replace("LAZY", lazy)


HELPERS = {
    "beside": (rule("import helper", "helper.LOSS"), "helper.py"),
    "a name of it": (rule("from helper import LOSS", "LOSS"), "helper.py"),
    "all names of it": (rule("from helper import *", "LOSS"), "helper.py"),
    "while it runs": (rule("", "LOSS", "from helper import LOSS"), "helper.py"),
    "by a function": (
        rule("import importlib\nhelper = importlib.import_module('helper')", "helper.LOSS"),
        "helper.py",
    ),
    "of a package": (rule("from parts import helper", "helper.LOSS"), "parts/helper.py"),
    "in its own package": (rule("from parts.more import LOSS", "LOSS"), "parts/helper.py"),
    "through another": (rule("import between", "between.helper.LOSS"), "helper.py"),
    "if it is there": (
        rule("try:\n    import faster\nexcept ImportError:\n    import helper as faster", "faster.LOSS"),
        "helper.py",
    ),
}


@pytest.fixture
def folder(small: Path) -> Path:
    """A folder with a scenario that names `rare:Rare`, and a sweep of it."""
    text = small.read_text(encoding="utf-8")
    queue = 'queue = { aqm = "rare:Rare" }'
    small.write_text(re.sub(r"^queue = .*$", queue, text, flags=re.MULTILINE), encoding="utf-8")
    folder = small.parent
    (folder / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    (folder / "parts").mkdir()
    (folder / "parts" / "__init__.py").write_text("", encoding="utf-8")
    (folder / "parts" / "more.py").write_text("from .helper import LOSS\n", encoding="utf-8")
    (folder / "between.py").write_text("import helper\n", encoding="utf-8")
    return folder


def swept(perhop: Perhop, command: str = "sweep") -> str:
    done = perhop(command, f"{command}.toml", "--store", "store", "--jobs", "1")
    assert done.code == 0, done.err
    return done.out + done.err


@pytest.mark.parametrize("name", HELPERS)
def test_runs_are_not_reused_after_what_a_class_imports_has_changed(
    perhop: Perhop, folder: Path, name: str
) -> None:
    text, helper = HELPERS[name]
    (folder / "rare.py").write_text(text, encoding="utf-8")
    (folder / helper).write_text("LOSS = 0.05\n", encoding="utf-8")
    assert "2 runs simulated, 0 reused" in swept(perhop)
    assert "0 runs simulated, 2 reused" in swept(perhop)
    (folder / helper).write_text("LOSS = 0.15\n", encoding="utf-8")
    assert "2 runs simulated, 0 reused" in swept(perhop)
    (folder / helper).write_text("LOSS = 0.05\n", encoding="utf-8")
    found = swept(perhop)
    assert "0 runs simulated, 2 reused" in found
    assert "warning" not in found


def test_a_search_and_a_plan_do_not_reuse_them_either(perhop: Perhop, folder: Path) -> None:
    (folder / "rare.py").write_text(HELPERS["beside"][0], encoding="utf-8")
    texts = {
        "tune": SWEEP.replace("runs = 2", "runs = 2\ntrials = 2\nvalidation-runs = 2")
        + '[search]\n"flows.gold.count" = [1, 2]\n',
        "plan": 'scenario = "small.toml"\nruns = 2\nobjectives = ["loss of gold < 90 %"]\n',
    }
    texts["tune"] = 'objectives = ["minimize links.bottleneck.loss"]\n' + texts["tune"]
    for command, text in texts.items():
        (folder / f"{command}.toml").write_text(text, encoding="utf-8")
        (folder / "helper.py").write_text("LOSS = 0.05\n", encoding="utf-8")
        first = swept(perhop, command)
        assert re.search(r"[1-9]\d* runs simulated, 0 reused", first)
        assert re.search(r"\b0 runs simulated, [1-9]", swept(perhop, command))
        (folder / "helper.py").write_text("LOSS = 0.15\n", encoding="utf-8")
        assert re.search(r"[1-9]\d* runs simulated, 0 reused", swept(perhop, command))


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "import importlib\nhelper = importlib.import_module('hel' + 'per')",
            "rare.py:3: `importlib.",
        ),
        (
            "from importlib import import_module as get\nhelper = get(str('helper'))",
            "rare.py:3: `get(",
        ),
        ("helper = __import__(''.join('helper'))", "rare.py:2: `__import__(''.join('helper'))`"),
        ("class helper: pass\nexec('helper.LOSS = 0.05')", "rare.py:3: `exec('helper.LOSS = 0.05')`"),
        ("import between\nhelper = between.helper", "between.py:1: `__import__(name)`"),
    ],
)
def test_what_cannot_be_known_is_said_and_not_reused(
    perhop: Perhop, folder: Path, statement: str, said: str
) -> None:
    (folder / "rare.py").write_text(rule(statement, "helper.LOSS"), encoding="utf-8")
    (folder / "helper.py").write_text("LOSS = 0.05\n", encoding="utf-8")
    (folder / "between.py").write_text("helper = [__import__(name) for name in ['helper']][0]\n")
    for _ in range(2):
        found = swept(perhop)
        assert "2 runs simulated, 0 reused" in found
        words = " ".join(found.split())
        assert (
            "runs of `rare:Rare` are not reused from stores, since what it imports cannot be known" in words
        )
        assert said in words
    # Its report can be run again nevertheless: what is known of its source is the same.
    done = perhop("sweep", "sweep.toml", "--store", "store", "--out", "out")
    assert done.code == 0, done.err
    done = perhop("rerun", "out")
    assert done.code == 0, done.err
    (folder / "rare.py").write_text(rule(statement, "helper.LOSS * 2"), encoding="utf-8")
    done = perhop("rerun", "out")
    assert done.code == 2
    assert "`rare:Rare` has changed since this was written" in done.err


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules; those that were loaded from it are forgotten."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_the_standard_library_and_installed_packages_are_left_out(modules: Path) -> None:
    text = "import json, numpy, perhop, own_two\nfrom polars import DataFrame\nfrom xml.dom import minidom\n"
    text += "try:\n    import not_there\nexcept ImportError:\n    pass\n"
    (modules / "own_one.py").write_text(text, encoding="utf-8")
    (modules / "own_two.py").write_text("import own_one\n", encoding="utf-8")
    importlib.import_module("own_one")
    found = sources(["own_one"])
    assert list(found.found) == ["own_one", "own_two"]
    assert found.unknown == ()


def test_a_module_that_is_loaded_again_counts_as_it_is_then(modules: Path) -> None:
    (modules / "own_rule.py").write_text(
        "import own_part\nfrom perhop import Aqm, Verdict\nclass Own(Aqm):\n"
        "    def on_arrival(self, packet, queue, now, random):\n        return Verdict.PASS\n",
        encoding="utf-8",
    )
    (modules / "own_part.py").write_text("ONE = 1\n", encoding="utf-8")
    cls = plugins.load("own_rule:Own", "aqm")
    first = digests.digest_of(cls)
    (modules / "own_part.py").write_text("ONE = 1000\n", encoding="utf-8")
    assert digests.digest_of(cls) == first  # the code that runs is the earlier one
    importlib.reload(sys.modules["own_part"])
    second = digests.digest_of(cls)
    assert second != first
    assert "+" not in second


def test_modules_of_archives_are_read_and_compiled_ones_are_unknown(modules: Path) -> None:
    with zipfile.ZipFile(modules / "own.zip", "w") as archive:
        archive.writestr("own_zipped.py", "ONE = 1\n")
    sys.path.insert(0, str(modules / "own.zip"))
    try:
        (modules / "own_zips.py").write_text("import own_zipped\n", encoding="utf-8")
        importlib.import_module("own_zips")
        assert sources(["own_zips"]).found["own_zipped"] == b"ONE = 1\n"
    finally:
        sys.path.remove(str(modules / "own.zip"))
    (modules / "own_fast.abi3.so").write_bytes(b"made up")
    (modules / "own_uses.py").write_text("def later():\n    import own_fast\n", encoding="utf-8")
    importlib.import_module("own_uses")
    found = sources(["own_uses"])
    assert found.found["own_fast"] == b"made up"
    assert found.unknown == ("own_fast.abi3.so, which is compiled",)


def test_what_another_process_sends_is_found_with_all_that_it_imports(modules: Path) -> None:
    (modules / "sent_rule.py").write_text(
        "from sent_parts import helper\nLOSS = helper.LOSS\n", encoding="utf-8"
    )
    (modules / "sent_parts").mkdir()
    (modules / "sent_parts" / "__init__.py").write_text("", encoding="utf-8")
    (modules / "sent_parts" / "helper.py").write_text("LOSS = 0.25\n", encoding="utf-8")
    importlib.import_module("sent_rule")
    sent = sending.shipped({"sent_rule"})
    assert set(sent) == {"sent_rule", "sent_parts", "sent_parts.helper"}
    first = sources(["sent_rule"]).found
    for name in sent:
        del sys.modules[name]
    (modules / "sent_rule.py").unlink()
    shutil.rmtree(modules / "sent_parts")
    importlib.invalidate_caches()
    sending.receive(sent)
    assert importlib.import_module("sent_rule").LOSS == 0.25
    assert sources(["sent_rule"]).found == first
