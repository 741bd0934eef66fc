"""The pages of commands: what they say, in which order, and that any browser can show it."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import re
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from tests.python.conftest import SMALL
from tests.python.output.pages import FORBIDDEN, check, titles
from tests.python.output.test_report import plot, rows
from tests.python.stores.faults import Crash, Fault, FaultyFileSystem, Kind

import perhop
from perhop.bounds.deriving import none
from perhop.errors import PerhopError
from perhop.files import filesystem, swap
from perhop.files.filesystem import FileSystem
from perhop.files.swap import earlier_plots
from perhop.runs import pictures, summary
from perhop.runs.page import write_run
from perhop.show import numbers
from perhop.show.declared import Axis
from perhop.show.numbers import PAGE, count, exact, figure, percent, quantity, tick_labels
from perhop.show.plot import _sheet, caption, drawing
from perhop.show.sheet import TEXT, styled
from perhop.show.text import inline_markdown, label, markdown, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perhop.measures.run import Run


EXAMPLES = Path(__file__).parents[3] / "examples"


def test_the_waiting_time_distribution_is_the_mean_over_the_runs_and_ends_at_one() -> None:
    def histogram(*packets: int) -> dict[str, Any]:
        edges = np.arange(len(packets) + 1) * 1e-3
        counts = np.column_stack([packets, np.zeros(len(packets), int), np.zeros(len(packets), int)])
        return {"delay_s": {"edges": edges, "counts": counts}}

    def run(green: tuple[int, ...], blue: tuple[int, ...]) -> SimpleNamespace:
        classes = [{"name": "blue", **histogram(*blue)}, {"name": "green", **histogram(*green)}]
        link = {"name": "uplink", "classes": classes, **histogram(9)}
        plain = {"name": "downlink", "classes": [], **histogram(3)}
        return SimpleNamespace(raw={"links": [link, plain]}, groups=[SimpleNamespace(name="green")])

    # Green: 2 of 4 packets within 1 ms in one run, 1 of 1 in the other. Blue: none in the first run.
    runs = cast("list[Run]", [run((2, 2), (0,)), run((1,), (1, 0, 9))])
    ((plot, rows),) = pictures.waiting_times(runs, none("{}", "made by hand"))
    shares = {(*row.factors.values(),): row.mean for row in rows}
    assert shares == pytest.approx(
        {
            **{("uplink", "green", at): share for at, share in ((0.0, 0.0), (1.0, 0.75), (2.0, 1.0))},
            **{("uplink", "blue", at): share for at, share in ((0.0, 0), (1.0, 0.1), (2.0, 0.1), (3.0, 1))},
            **{("downlink", "all packets", at): share for at, share in ((0.0, 0.0), (1.0, 1.0))},
        }
    )
    assert list(plot.series.names) == ["green", "blue", "all packets"]
    assert {row.factors["class"]: row.runs for row in rows} == {"green": 2, "blue": 1, "all packets": 2}


def test_of_many_classes_the_first_are_drawn_over_time_and_the_title_says_so() -> None:
    flow = '[[flows]]\nname = "{}"\nfrom = "a"\nto = "b"\ntransport = {{ udp = "cbr", rate = "10kbps" }}\n'
    link = '[links.x]\nfrom = "a"\nto = "b"\nrate = "1Mbps"\ndelay = "1ms"\n'
    link += 'queue = { aqm = "drop-tail", limit = "9p" }\n'
    text = 'duration = "2s"\nprobes.interval = "1ms"\n' + link + "".join(map(flow.format, range(20)))
    plots = {plot.id: (plot, rows) for plot, rows in pictures.of_result(perhop.run(text, runs=1))}
    plot, rows = plots["throughput-in-time"]
    assert plot.title.endswith("of a class, means of 2 samples (the first 14 of 20 classes)")
    assert {row.factors["class"] for row in rows} == {str(number) for number in range(14)}
    assert len(rows) == 14 * 1000
    assert plots["queue-in-time"][0].title == "Queue over time, means of 2 samples"


def test_a_run_without_a_title_is_called_by_its_file() -> None:
    result = perhop.run(SMALL, runs=1)
    untitled = {name: value for name, value in json.loads(result.scenario).items() if name != "title"}
    result = replace(result, name="small")
    assert summary.summarize(result).title == json.loads(result.scenario)["title"]
    result = replace(result, scenario=json.dumps(untitled))
    assert summary.summarize(result).title == "small"


def test_a_table_that_scrolls_shows_it_and_short_names_stay_on_one_line(tmp_path: Path) -> None:
    result = perhop.run(SMALL, runs=1)
    write_run(tmp_path, result, summary.summarize(result), "perhop run small.toml")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<th scope="row" class="short">best-effort</th>' in page
    assert re.search(r"\.wide \{\s+overflow-x: auto;[^}]*no-repeat local,[^}]*no-repeat scroll", page)


# ---------------------------------------------------------------- text that others wrote

HOSTILE = (
    "".join(map(chr, range(32)))
    + "\x7f\x85\x9f\u202eright to left\u2066\ufffe"
    + "<script>alert(1)</script></svg></title> & \"quotes\" 'quotes' $x_{$ `code` **strong**"
    + " --> ]]> {{ 7*7 }}"
)


PRINTED = "\u202e" + HOSTILE[HOSTILE.index("<script>") :]
"""What the scenario format lets pass as the name of a link or a group."""


def hostile_scenario(title: str) -> dict[str, object]:
    """A scenario in which every name is hostile; of the title and routers even what the format refuses."""
    flow = {
        "from": "edge",
        "to": "core",
        "transport": {"tcp": "reno"},
        "access": {"rate": "9Mbps", "delay": "1ms"},
    }
    queue = {"aqm": "drop-tail", "limit": "20p"}
    link = {"from": "edge", "to": "core", "rate": "2Mbps", "delay": "5ms", "queue": queue}
    return {
        "title": title,
        "duration": "2s",
        "links": {f"link {PRINTED}": link},
        "flows": [{**flow, "name": f"group {PRINTED}", "count": 2}, {**flow, "name": "other"}],
        "probes": {"interval": "1s"},
    }


@pytest.mark.parametrize("title", [f"title {HOSTILE}", "long " * 2000, "unbroken" * 1250])
def test_no_name_breaks_a_page_or_a_picture(tmp_path: Path, title: str) -> None:
    result = perhop.run(hostile_scenario("title"), runs=2)
    routers = {"edge": f"edge {HOSTILE}", "core": f"core {title}"}
    text = json.dumps({**json.loads(result.scenario), "title": title})
    for name, hostile in routers.items():
        text = text.replace(f'"{name}"', json.dumps(hostile))
    result = replace(result, scenario=text)
    write_run(tmp_path, result, summary.summarize(result), "perhop run hostile.toml")
    page = check((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7*7 }}" in page.text
    assert "49" not in titles(page)[0]
    drawn = sorted((tmp_path / "plots").iterdir())
    assert len(drawn) >= 6
    for path in drawn:
        if path.suffix == ".svg":
            text = path.read_text(encoding="utf-8")
            assert FORBIDDEN.search(text) is None
            tags = {element.tag.rpartition("}")[2] for element in ET.fromstring(text).iter()}  # noqa: S314
            assert "script" not in tags


@pytest.mark.parametrize("kind", ["lines", "points", "bars", "dots"])
def test_no_name_breaks_a_declared_plot(kind: str) -> None:
    names = Axis("scheme", HOSTILE, {"rio": HOSTILE, "rio-plus-out": "x" * 10_000})
    made = replace(plot(kind), series=names, title=HOSTILE, y_label=HOSTILE)
    drawn = drawing(made, rows(), "made-up")
    for svg in (drawn.picture.svg, *drawn.panels, *drawn.narrow):
        assert FORBIDDEN.search(svg) is None
        ET.fromstring(svg)  # noqa: S314
        assert "<script" not in svg


def test_unfit_characters_are_replaced_one_by_one() -> None:
    assert printable("a\x00b\tc\nd\x85\u202e\ud800e") == "a\ufffdb\tc\nd\ufffd\ufffd\ufffde"
    assert label(" one\n two\tthree ") == "one two three"
    assert label("x" * 100, 10) == "x" * 9 + "…"


def test_the_markdown_that_our_texts_use_is_rendered_and_all_else_escaped() -> None:
    assert inline_markdown("`a<b`, **so** & 2 * 3 * 4") == (
        "<code>a&lt;b</code>, <strong>so</strong> &amp; 2 * 3 * 4"
    )
    assert inline_markdown("**`x`**") == "<strong><code>x</code></strong>"
    assert markdown(["First.", "- one", "- `two`", "Last."]) == (
        '<p>First.</p><ul class="notes"><li>one</li><li><code>two</code></li></ul><p>Last.</p>'
    )


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (figure(10 / 3), "3.33"),
        (figure(0.000123456), "0.000123"),
        (figure(0.99999), "1.00"),
        (figure(123456.7), "123\u202f457"),
        (figure(-0.00001, 0.5), "0.00"),
        (figure(-1.25, 0.085, sign=True), "−1.250"),
        (PAGE.measured(0.0, 0.0, sign=True), "0 ± 0"),
        (PAGE.measured(0.0, 0.15, sign=True), "0.00 ± 0.15"),
        (figure(math.nan), "–"),
        (figure(None), "–"),
        (PAGE.measured(2.1134, 0.1049), "2.11 ± 0.10"),
        (PAGE.measured(2.1134, 0.0349), "2.113 ± 0.035"),
        (PAGE.measured(12345.0, 0.5, sign=True), "+12\u202f345 ± 0"),
        (PAGE.measured(1234.6, 37.0), "1235 ± 37"),
        (PAGE.measured(0.0, 0.0), "0 ± 0"),
        (PAGE.measured(10 / 3, None), "3.33"),
        (PAGE.interval(-0.1111, 0.0929, sign=True), "−0.11 to +0.09"),
        (percent(1 / 3), "33.3"),
        (percent(None), "–"),
        (count(139059.4), "139\u202f059"),
        (quantity("40.3155ms"), "40.3155\u202fms"),
        (quantity("12345.678kbps"), "12\u202f345.678\u202fkbit/s"),
        (quantity("-2.5ms"), "−2.5\u202fms"),
        (quantity("3333333bps"), "3\u202f333\u202f333\u202fbit/s"),
        (quantity("0.160092"), "0.160092"),
        (exact(20.0058), "20.0058"),
        (exact(1234567.0), "1234567"),
        (exact(1e-7), "0.0000001"),
        (exact(100 * 0.07), "7"),
        (exact(-0.5), "−0.5"),
        (exact(0.0), "0"),
        (quantity("rio"), "rio"),
    ],
)
def test_numbers_have_one_form(text: str, wanted: str) -> None:
    assert text == wanted


@pytest.mark.parametrize(
    ("mean", "low", "high"),
    [
        (1.53412, 1.51, 1.56),
        (0.07, 0.02, 0.31),
        (0.0, 0.0, 0.0512),
        (-0.01, -0.02, 0.07),
        (100.0, 99.9512, 100.0),
        (2673.0, 2309.0, math.inf),
        (61.2, -math.inf, 63.0),
    ],
)
def test_intervals_are_the_same_on_pages_and_in_terminals(mean: float, low: float, high: float) -> None:
    assert PAGE.estimated(mean, low, high) == numbers.estimated(mean, low, high)
    assert PAGE.estimated(1e5 * mean, 1e5 * low, 1e5 * high).replace("\u202f", "") == numbers.estimated(
        1e5 * mean, 1e5 * low, 1e5 * high
    )


@pytest.mark.parametrize("example", ["first", "queues"])
def test_the_tables_of_a_page_have_the_intervals_of_the_terminal(tmp_path: Path, example: str) -> None:
    """Links and the classes of packets at a link, too: each figure has its interval."""
    scenario = tomllib.loads((EXAMPLES / f"{example}.toml").read_text(encoding="utf-8"))
    result = perhop.run(scenario | {"duration": "9s", "warmup": "3s"}, runs=6)
    shown = summary.summarize(result)
    write_run(tmp_path, result, shown, f"perhop run {example}.toml")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    cells = set(re.findall(r"<td[^>]*>([^<]*)</td>", text.replace("\u202f", "").replace("\u00a0", " ")))
    tables = (*shown.links, *shown.link_classes)
    wanted = {cell for line in tables for cell in line.values() if "±" in cell or "(" in cell}
    assert len(wanted) > 5
    assert wanted <= cells


def test_the_ticks_of_an_axis_have_the_same_decimals() -> None:
    assert tick_labels([0.0, 2.5, 5.0]) == ["0.0", "2.5", "5.0"]
    assert tick_labels([-1e-05, 0.0, 1e-05]) == ["−0.00001", "0.00000", "0.00001"]
    assert tick_labels([0.0, 50_000.0]) == ["0", "50\u202f000"]


# ---------------------------------------------------------------- answer first


def test_a_run_says_first_who_gets_what(tmp_path: Path) -> None:
    scenario = tomllib.loads(SMALL)
    scenario["flows"][0]["profile"]["rate"] = f"{1e6 / 3:.0f}bps"
    scenario["flows"].append(
        {
            "name": "calls",
            "from": "edge",
            "to": "core",
            "transport": {"udp": "cbr", "rate": "64kbps", "packet": "200B"},
        }
    )
    result = perhop.run(scenario, runs=3)
    write_run(tmp_path, result, summary.summarize(result), "perhop run small.toml")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = check(text)
    first = text[: text.index("<main>")]
    assert "<strong>gold</strong>" in first
    assert "of its profile of 0.333333 Mbit/s" in first
    assert re.search("the profile holds|does not hold|cannot tell", first)
    assert titles(page)[1:4] == ["Throughput of a flow", "Classes of flows", "Links"]
    heads = " ".join(re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', text))
    assert "one-way delay, ms" in heads
    assert "jitter (RFC 3550), ms" in heads
    assert "delay variation (p99 − p50), ms" in heads
    assert '<th scope="col" class="long">delay variation (p99 − p50), ms</th>' in text
    assert '<th scope="col">flows</th>' in text


def test_a_single_run_claims_no_interval(tmp_path: Path) -> None:
    result = perhop.run(SMALL, runs=1)
    write_run(tmp_path, result, summary.summarize(result), "perhop run small.toml")
    text = check((tmp_path / "report.html").read_text(encoding="utf-8")).text
    assert "one run has no interval" in " ".join(text.split())
    assert "95 % interval" not in text


def test_a_plot_is_as_wide_as_the_page_and_a_phone_has_its_own() -> None:
    single = drawing(replace(plot("lines"), facet=None, references=(), limits=None), rows(), "made-up")
    (wide,), (narrow,) = single.panels, single.narrow
    assert re.search(r'viewBox="[-\d.]+ [-\d.]+ 720 ', wide)
    assert re.search(r'viewBox="[-\d.]+ [-\d.]+ 276 ', narrow)
    sizes = {float(size) for svg in (wide, narrow) for size in re.findall(r"font-size: ([\d.]+)px", svg)}
    assert sizes == {TEXT}
    two = drawing(plot("lines"), rows(), "made-up")
    assert [re.search(r'viewBox="[-\d.]+ [-\d.]+ (\d+) ', svg)[1] for svg in two.panels] == ["360", "360"]  # type: ignore[index]


def test_panels_share_a_scale_unless_that_flattens_one() -> None:
    made = replace(plot("lines"), limits=None, references=())
    assert "All panels have the same scale." in caption(made, rows())
    with styled():
        axes = _sheet(made, rows(), [40, 50]).figure.axes
    assert axes[0].get_ylim() == axes[1].get_ylim()
    apart = [
        replace(row, mean=row.mean / 20, ci95=None, published=None)
        if row.factors["percent"] == 40 and row.mean
        else row
        for row in rows()
    ]
    assert "The panels' scales differ." in caption(made, apart)


# ---------------------------------------------------------------- the old report or the new one

OLD = {"report.html": "old page", "manifest.json": '{"plots": ["a.svg", "b.png"]}', "samples.parquet": "old"}
OLD_PLOTS = {"plots/a.svg": "old a", "plots/b.png": "old b", "plots/mine.svg": "mine"}
NEW = {
    "plots/a.svg": "new a",
    "plots/c.svg": "new c",
    "samples.parquet": "new",
    "manifest.json": '{"plots": ["a.svg", "c.svg"]}',
    "report.html": "new page",
}


AFTER = {**NEW, "plots/mine.svg": "mine"}


def tree(directory: Path) -> dict[str, str]:
    """What a user sees there, which leaves out what could not be removed after all was in place."""
    return {
        str(path.relative_to(directory)): path.read_text()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.relative_to(directory).parts[0].startswith(".perhop-report-")
    }


def fill(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


FULL = OSError(errno.ENOSPC, "No space left on device")


class Quick(FileSystem):
    """Waits for no disk: no machine fails here."""

    def sync(self, file: int) -> None:
        """Nothing to do: a file is readable once written."""


def repaired(out: Path, files: dict[str, str] | None = None) -> None:
    """What the next command does first, and the report that it writes, if any."""
    with filesystem.replaced(Quick()):
        swap.replace_report(out, {})
        if files is not None:
            swap.replace_report(out, files, remove=earlier_plots(out))


class Failing(Quick):
    """Counts what changes the disk, and fails at one of these calls; unless once, from there on."""

    def __init__(self, at: int, error: BaseException, *, once: bool) -> None:
        self.calls, self.at, self.error, self.once = 0, at, error, once

    def _count(self) -> None:
        self.calls += 1
        if self.calls == self.at or (self.calls > self.at and not self.once):
            raise self.error

    def write(self, file: int, data: memoryview) -> int:
        self._count()
        return super().write(file, data)

    def rename(self, old: Path, new: Path) -> None:
        self._count()
        super().rename(old, new)

    def unlink(self, path: Path) -> None:
        self._count()
        super().unlink(path)

    def make_directory(self, path: Path) -> None:
        self._count()
        super().make_directory(path)

    def remove_directory(self, path: Path) -> None:
        self._count()
        super().remove_directory(path)


def failing(out: Path, at: int, error: BaseException = FULL, *, once: bool) -> tuple[str | None, bool]:
    """Replace a report on such a disk: the error if there was one, and whether the disk has failed."""
    system = Failing(at, error, once=once)
    said = None
    with filesystem.replaced(system):
        try:
            swap.replace_report(out, NEW, remove=earlier_plots(out))
        except PerhopError as refused:
            said = str(refused)
            assert "No space left on device" in said
        except KeyboardInterrupt:
            said = "killed"
    return said, system.calls >= at


def counted(directory: Path) -> Iterator[tuple[int, Path]]:
    """1, 2, … with a directory for each that holds the earlier report."""
    for at in range(1, 200):
        out = directory / str(at)
        fill(out, {**OLD, **OLD_PLOTS})
        yield at, out
    pytest.fail("the writer never came to its end")


@pytest.mark.parametrize("earlier", [True, False])
def test_a_report_that_cannot_be_written_leaves_the_earlier_one_whole(
    tmp_path: Path, *, earlier: bool
) -> None:
    outcomes = set()
    for at, out in counted(tmp_path):
        if not earlier:
            shutil.rmtree(out)
            out.mkdir()
        before = tree(out)
        said, struck = failing(out, at, once=True)
        outcomes.add(said is None)
        assert said is None or "mixed" not in said
        assert tree(out) == (before if said else AFTER if earlier else NEW), at
        if not struck:
            assert not [path for path in out.rglob("*") if path.is_dir() and path.name != "plots"]
            break
    assert outcomes == {True, False}


def test_a_disk_that_does_not_even_move_back_is_said_to_leave_a_mixture(tmp_path: Path) -> None:
    mixed = []
    for at, out in counted(tmp_path):
        said, struck = failing(out, at, once=False)
        if said is not None and said.endswith(f"may be mixed until the next command with --out {out}"):
            mixed.append(tree(out) not in ({**OLD, **OLD_PLOTS}, AFTER))
        elif said is not None:
            assert tree(out) == {**OLD, **OLD_PLOTS}, said
        repaired(out)
        assert tree(out) in ({**OLD, **OLD_PLOTS}, AFTER), at
        if not struck:
            break
    assert any(mixed)


def test_a_killed_command_leaves_what_the_next_one_completes(tmp_path: Path) -> None:
    latest = {name: text.replace("new", "latest") for name, text in NEW.items()}
    for at, out in counted(tmp_path):
        # Nothing works after a kill: no move back either, and nothing is cleaned up.
        _, struck = failing(out, at, KeyboardInterrupt(), once=False)
        repaired(out)
        assert tree(out) in ({**OLD, **OLD_PLOTS}, AFTER), at
        repaired(out, latest)
        assert tree(out) == {**latest, "plots/mine.svg": "mine"}
        if not struck:
            break


def test_a_machine_that_fails_leaves_what_the_next_command_completes(tmp_path: Path) -> None:
    for at, out in counted(tmp_path):
        struck = False
        for luck in range(4):
            place = tmp_path / f"{at}-{luck}"
            shutil.copytree(out, place / "out")
            system = FaultyFileSystem(place, Fault(Kind.POWER, at), luck)
            with filesystem.replaced(system), contextlib.suppress(Crash):
                swap.replace_report(place / "out", NEW, remove=earlier_plots(out))
            system.end()
            struck |= system.failed
            repaired(place / "out")
            assert tree(place / "out") in ({**OLD, **OLD_PLOTS}, AFTER), (at, luck)
        if not struck:
            break


def test_what_cannot_be_completed_after_a_kill_is_undone(tmp_path: Path) -> None:
    undone = 0
    for at, out in counted(tmp_path):
        _, struck = failing(out, at, KeyboardInterrupt(), once=False)
        half = tree(out)
        for second in range(1, 12) if half not in ({**OLD, **OLD_PLOTS}, AFTER) else ():
            again = out.with_name(f"{at}-{second}")
            shutil.copytree(out, again)
            said, _ = failing(again, second, once=True)
            assert tree(again) in ({**OLD, **OLD_PLOTS}, AFTER), (at, second)
            undone += said is not None
            failing(again, 1, once=False)
            assert tree(again) in ({**OLD, **OLD_PLOTS}, AFTER), (at, second)
        if not struck:
            break
    assert undone


def test_a_link_to_a_page_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.html").write_text("old")
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.html").symlink_to("../elsewhere.html")
    swap.replace_report(out, NEW)
    assert (out / "report.html").is_symlink()
    assert (tmp_path / "elsewhere.html").read_text() == "new page"
