"""Arguments that cannot be: every function and method refuses them with one clear line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.python.conftest import SMALL

import perhop as package
from perhop.scenario import Codel

if TYPE_CHECKING:
    from collections.abc import Callable

CAPTURE = Path(__file__).parents[3] / "examples" / "capture.pcap"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with small.toml alone, in which nothing may appear."""
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL, encoding="utf-8")


@pytest.fixture(scope="module")
def ran() -> package.Result:
    return package.run(SMALL, runs=2)


def replayed(capture: Any = CAPTURE, **more: Any) -> object:  # noqa: ANN401 - what no capture is, too
    return package.replay(capture, queue=Codel(), rate="10Mbps", **more)


def gridded(**more: Any) -> dict[str, Any]:  # noqa: ANN401 - keys of SWEEP.toml
    return {"scenario": "small.toml", **more}


any_function: Any = package
"""The package without its types, for arguments that these refuse as well."""

FUNCTIONS: list[tuple[Callable[[], object], str]] = [
    (lambda: any_function.reproduce("kim-fig2", runs=0), "runs must be at least 1"),
    (lambda: any_function.reproduce("kim-fig2", runs=-1), "runs must be at least 1"),
    (lambda: any_function.reproduce("kim-fig2", runs="2"), "runs must be a whole number, not '2'"),
    (lambda: any_function.reproduce("kim-fig2", runs=1.5), r"runs must be a whole number, not 1\.5"),
    (lambda: any_function.reproduce("kim-fig2", runs=1, seed=-1), "seed must be at least 0"),
    (lambda: any_function.reproduce("kim-fig2", runs=1, store="small.toml"), "small.toml: not a directory"),
    (lambda: any_function.reproduce("kim-fig2", runs=1, store="/proc/x"), "/proc/x: cannot be"),
    (lambda: any_function.reproduce("kim-fig2", runs=1, store=""), "store must be a path, and it is empty"),
    (lambda: any_function.reproduce(None), "names must be text, not None"),
    (lambda: any_function.reproduce(3), "names must be text, not 3"),
    (lambda: any_function.reproduce(["kim-fig2"]), r"names must be text, not \['kim-fig2'\]"),
    (lambda: any_function.rerun(None), "manifest must be a path, not None"),
    (lambda: any_function.rerun(3), "manifest must be a path, not 3"),
    (lambda: any_function.rerun({}), "manifest must be a path, not {}"),
    (lambda: any_function.plan(None), "a plan is the path of its file, or a dict .* not NoneType"),
    (lambda: any_function.plan(["x"]), "a plan is the path .* not list"),
    (lambda: any_function.plan(""), "a plan is the path .* not ''"),
    (lambda: any_function.sweep(3), "a sweep is the path .* not int"),
    (lambda: any_function.tune(3), "a search is the path .* not int"),
    (lambda: any_function.plan(gridded(), runs="2"), "runs must be a whole number"),
    (lambda: any_function.plan(gridded(), trials="2"), "trials must be a whole number"),
    (lambda: any_function.tune(gridded(), trials=2.5), "trials must be a whole number"),
    (lambda: any_function.sweep(gridded(grid={5: ["4Mbps"]})), "grid: a key is text, not 5"),
    (lambda: any_function.sweep(gridded(), store=None), "store must be a path, not None"),
    (lambda: any_function.sweep(gridded(), store=""), "store must be a path, and it is empty"),
    (lambda: any_function.tune(gridded(), store=""), "store must be a path, and it is empty"),
    (lambda: any_function.plan(gridded(), store=3), "store must be a path, not 3"),
    (lambda: any_function.course(None, "x"), "name must be text, not None"),
    (lambda: any_function.course("red", None), "file must be a path, not None"),
    (lambda: replayed(None), "capture must be a path, not None"),
    (lambda: replayed(speed="2"), "speed must be a finite number, not '2'"),
    (lambda: replayed(start="1"), "start: "),
    (lambda: replayed(start="1s", end="1s"), "end: the replay ends before it begins"),
    (lambda: replayed(top=-1), "top must be at least 0, not -1"),
    (lambda: any_function.run("small.toml", capture=3), "capture must be a path, not 3"),
    (lambda: any_function.run("small.toml", events=""), "events must be a path, and it is empty"),
    (lambda: any_function.run("small.toml", capture="z.txt"), "capture z.txt: name a file that ends in"),
    (
        lambda: any_function.run("small.toml", events="z.parquet", capture_links="ab"),
        "capture_links must be a",
    ),
    (
        lambda: any_function.run("small.toml", events="z.parquet", capture_links=["x"]),
        "capture_links: there is no link `x`",
    ),
    (lambda: any_function.run("small.toml", capture_links=["x"]), "capture_links has no effect without"),
    (lambda: any_function.compare("small.toml", margins="10%"), "margins must be a list of texts, not '10%'"),
    (lambda: any_function.compare("small.toml", margins=["x"]), "margins x: not a margin"),
    (lambda: any_function.sweep(gridded(), until="x"), "until must be a fraction"),
    (lambda: any_function.reproduce("kim", everything=True), "everything has no effect beside named"),
    (lambda: any_function.Simulation("small.toml").links[0], "no link `0` with a queue"),
]
METHODS: list[tuple[Callable[[Any], object], str]] = [
    (lambda ran: ran.write(""), "folder must be a path, and it is empty"),
    (lambda ran: ran.write(None), "folder must be a path, not None"),
    (lambda ran: ran.write("small.toml"), "folder small.toml: not a directory"),
    (lambda ran: ran.text(0), "width must be at least 1, not 0"),
    (lambda ran: ran.text(-5), "width must be at least 1, not -5"),
    (lambda ran: ran.text("80"), "width must be a whole number, not '80'"),
    (lambda ran: ran.difference(ran, ""), "neither result has the measure ``"),
    (
        lambda ran: ran.difference(ran, "jain_index"),
        "neither .* `jain_index`; those are columns of summaries",
    ),
    (lambda ran: ran.difference(ran, None), "measure must be text, not None"),
    (lambda ran: ran.difference(ran, 3), "measure must be text, not 3"),
    (lambda ran: ran.to_latex(caption=3), "caption must be text, not 3"),
]


@pytest.mark.parametrize(("call", "said"), FUNCTIONS)
def test_functions_refuse(call: Callable[[], object], said: str) -> None:
    with pytest.raises(package.PerhopError, match=f"^[^\n-]*{said}[^\n]*$"):
        call()
    assert [path.name for path in Path().iterdir()] == ["small.toml"]


@pytest.mark.parametrize(("call", "said"), METHODS)
def test_results_refuse(ran: package.Result, call: Callable[[Any], object], said: str) -> None:
    with pytest.raises(package.PerhopError, match=f"^{said}[^\n]*$"):
        call(ran)
    assert [path.name for path in Path().iterdir()] == ["small.toml"]
