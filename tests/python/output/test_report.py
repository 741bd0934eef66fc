"""The page and the plots, from rows made by hand."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.python.output.pages import check

from perhop.show.declared import Axis, Plot, Reference, Row, Table
from perhop.show.page import environment
from perhop.show.plot import _sheet, caption, drawing, figure
from perhop.show.sheet import styled
from perhop.statistics.judging import Judgement
from perhop.studies import PAPERS, STUDIES
from perhop.studies.page import StudyPart, reproduction_page
from perhop.studies.reproduction import Cell, StudyOutcome, by_paper
from perhop.studies.study import Claim, ClaimVerdict, Note, Sentence, Study
from perhop.studies.writer import ReproductionReport

SCHEMES = Axis("scheme", "Scheme", {"rio": "RIO", "rio-plus-out": "RI+O"})
LEVELS = Axis("percent", "Subscription", {40: "40 %", 50: "50 %"})


def rows(*, interval: bool = True) -> list[Row]:
    made = [
        Row(
            {"scheme": scheme, "percent": percent, "load": load},
            "throughput",
            "Mbit/s",
            2.5 if load == 1 else None,
            3.0 - load / 10 + shift,
            (2.9 - load / 10 + shift, 3.1 - load / 10 + shift) if interval else None,
            6 if interval else 1,
        )
        for scheme, shift in (("rio", 0.0), ("rio-plus-out", 0.3))
        for percent in (40, 50)
        for load in (0, 1, 2, 6)
    ]
    limits = [
        Row({"scheme": scheme, "percent": p, "reading": "mean"}, "holds_up_to", "flows", 2.0, None, None, 6)
        for scheme in ("rio", "rio-plus-out")
        for p in (40, 50)
    ]
    return made + limits


def plot(kind: str) -> Plot:
    return Plot(
        id=f"assured-{kind}",
        title="Throughput & more",
        kind=kind,
        metric="throughput",
        x=Axis("load", "Best-effort flows"),
        series=SCHEMES,
        y_label="Mbit/s",
        facet=LEVELS,
        references=(Reference("profile", "percent", {40: 2.0, 50: 2.5}),),
        ordinal=True,
        limits="holds_up_to" if kind == "lines" else None,
        limits_where={"reading": "mean"},
    )


NETWORK = json.dumps(
    {
        "links": {"only": {"from": "edge <1>", "to": "core", "rate": "1Mbps", "delay": "1ms"}},
        "flows": [
            {"name": "all", "count": 1, "from": "edge <1>", "to": "core", "transport": {"tcp": "reno"}}
        ],
    }
)


SENTENCE = Sentence("it always does", "3, Table 1")


def verdict(
    name: str, text: str, judgement: Judgement, *, source: Sentence | None = SENTENCE, tried: str = ""
) -> ClaimVerdict:
    claim = Claim(name, text, lambda _evidence: judgement, source, "Read by hand.", "The hand.", tried)
    return ClaimVerdict(claim, judgement)


def outcome() -> StudyOutcome:
    study = Study(
        id="made-up",
        title="Made up <by hand>",
        source="nobody & co",
        summary="for tests",
        cells=[],
        scenario=lambda _cell: {},
        samples=lambda _cell, _run: [],
        published=[],
        claims=[],
        tables=[Table("Throughput", {"throughput": ""}, Axis("load", "Load"), (LEVELS, SCHEMES))],
        plots=[plot("lines"), plot("points"), plot("bars")],
        notes=[Note("This sum is too large.", impossible=True), Note("A remark.")],
        method="As it was.",
        assumptions=["Packets of 1000 bytes."],
    )
    verdicts = [
        verdict("first", "It rises.", Judgement(holds=True, evidence="1 < 2")),
        verdict("second", "It falls.", Judgement(holds=False, evidence="1 < 2"), tried="another seed"),
        verdict("third", "It pays.", Judgement(holds=False, evidence="2 < 1"), source=None),
    ]
    return StudyOutcome(study, [Cell({}, NETWORK)], [1, 2], [], rows(), verdicts)


class Reader(HTMLParser):
    """Collects what a browser would fetch, element ids, and unclosed elements."""

    VOID = frozenset({"meta", "link", "br", "hr", "img", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        for name in ("src", "href", "xlink:href"):
            value = given.get(name)
            if value and not value.startswith("#"):
                self.fetched.append(value)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


def test_the_page_is_self_contained_and_well_formed() -> None:
    reader = read(reproduction_page([StudyPart.of(outcome())], "perhop reproduce made-up"))
    assert reader.open == []
    assert reader.fetched == []
    assert len(reader.ids) == len(set(reader.ids))
    check(reproduction_page([StudyPart.of(outcome())], "perhop reproduce made-up"))


def test_the_contents_lead_to_each_study_and_say_its_verdicts() -> None:
    page = reproduction_page([StudyPart.of(outcome())], "perhop reproduce made-up")
    contents = page[page.index("<nav") : page.index("</nav>")]
    assert " ".join(read(contents).text.split()) == (
        "Other studies Made up <by hand> 1 holds, 1 does not hold How to reproduce this page"
    )
    assert all(f'href="#{name}"' in contents for name in ("made-up", "reproduce"))
    assert {"made-up", "reproduce"} <= {*read(page).ids}


def test_verdicts_stand_before_the_pictures() -> None:
    page = reproduction_page([StudyPart.of(outcome())], "perhop reproduce made-up")
    section = page[page.index('<section id="made-up"') :]
    assert section.index("It falls.") < section.index("<svg") < section.index("<table")


def test_the_page_says_once_how_many_claims_may_err() -> None:
    page = reproduction_page([StudyPart.of(outcome()), StudyPart.of(outcome())], "perhop reproduce made-up")
    assert " ".join(read(page).text.split()).count("claims are judged at 95 % each") == 1


def test_the_page_says_everything() -> None:
    page = reproduction_page([StudyPart.of(outcome())], "perhop reproduce made-up")
    text = " ".join(read(page).text.split())
    for wanted in (
        "1 holds 1 does not hold 0 cannot tell",
        "does not hold: It falls.",
        "Paper: “it always does” (section 3, Table 1)",
        "Rule: Read by hand.",
        "Ours in the rule: The hand.",
        "Tried: another seed",
        "Findings of ours, not the paper's does not hold: It pays.",
        "This sum is too large.",
        "A remark.",
        "As it was.",
        "Packets of 1000 bytes.",
        "Made up <by hand>",
        "nobody & co",
        "perhop reproduce made-up",
        "Seeds 1 to 2",
    ):
        assert wanted in text
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page
    assert page == reproduction_page([StudyPart.of(outcome())], "perhop reproduce made-up")


def test_the_page_grows_with_the_studies() -> None:
    page = reproduction_page([StudyPart.of(outcome())], "perhop reproduce", ["second-study"])
    text = " ".join(read(page).text.split())
    assert "1 study is not finished (second-study)" in text
    assert "samples.parquet" not in text


def test_a_study_costs_the_same_after_many_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts filled into pages and files read for manifests are counted."""
    environment.cache_clear()  # with the sentences that other tests have had rendered
    filled, read_ = [0], [0]

    def printable(text: str) -> str:
        filled[0] += 1
        return text

    def loads(text: str) -> Any:  # noqa: ANN401 - as the library's
        read_[0] += 1
        return json.loads(text)

    monkeypatch.setattr("perhop.show.page.printable", printable)
    monkeypatch.setattr("perhop.studies.writer.json", SimpleNamespace(loads=loads))
    made = replace(outcome(), study=replace(outcome().study, plots=[]))
    studies = [replace(made, study=replace(made.study, id=f"study-{n}")) for n in range(6)]
    report = ReproductionReport(tmp_path, "perhop reproduce", [one.study for one in studies])
    costs = []
    for one in studies:
        before = filled[0], read_[0]
        report.draw(one)
        list(report.drawn(wait=True))
        costs.append((filled[0] - before[0], read_[0] - before[1]))
    assert costs[1] == costs[-2], costs
    assert min(costs[1]) > 0
    report.finish(studies)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert [page.count(f'<section id="study-{n}">') for n in range(6)] == [1] * 6
    assert len(json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))["scenarios"]) == 6


def test_the_page_shows_each_paper_with_all_its_sentences() -> None:
    study = STUDIES["kim-table1"]
    verdicts = [ClaimVerdict(claim, Judgement(holds=True, evidence="as it is")) for claim in study.claims]
    made = replace(outcome(), study=replace(study, tables=(), plots=()), verdicts=verdicts, rows=[])
    text = " ".join(read(reproduction_page([StudyPart.of(made)], "perhop reproduce")).text.split())
    (paper,) = [paper for paper in PAPERS if paper.id == "kim"]
    assert paper.about.title in text
    assert paper.about.decides in text
    quotes = [claim.source.quote for one in paper.studies for claim in one.claims if claim.source]
    for quote in [*quotes, *(entry.sentence.quote for entry in paper.about.unjudged)]:
        assert " ".join(quote.split()) in text
    assert f"Every testable sentence of this paper ({len(quotes) + len(paper.about.unjudged)})" in text
    (group,) = by_paper([made])
    assert group.count(holds=True) + group.not_run == len(quotes)


def test_the_report_is_there_after_the_first_study(tmp_path: Path) -> None:
    made = outcome()
    other = replace(made, study=replace(made.study, id="second"))
    report = ReproductionReport(tmp_path, "perhop reproduce", [made.study, other.study])
    assert list(tmp_path.iterdir()) == []
    report.draw(made)
    ((_, drawn),) = report.drawn(wait=True)
    assert [path.name for path in drawn] == [f"made-up-assured-{k}.png" for k in ("lines", "points", "bars")]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)
    assert "1 study is not finished (second)" in (tmp_path / "report.html").read_text()
    assert not (tmp_path / "samples.parquet").exists()
    report.draw(other)
    assert [one.study.id for one, _ in report.drawn(wait=True)] == ["second"]
    report.finish([made, other])
    assert "not finished" not in (tmp_path / "report.html").read_text()
    assert (tmp_path / "samples.parquet").exists()
    listed = json.loads((tmp_path / "manifest.json").read_text())["plots"]
    assert sorted(listed) == sorted(path.name for path in (tmp_path / "plots").iterdir())


def test_studies_that_follow_fast_are_written_together_and_when_an_error_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("perhop.studies.writer.time", SimpleNamespace(monotonic=lambda: now[0]))
    made = outcome()
    studies = [replace(made, study=replace(made.study, id=name)) for name in ("a", "b", "c", "d", "e")]

    def shown() -> list[str]:
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        return [one.study.id for one in studies if f'<section id="{one.study.id}">' in page]

    def run() -> None:
        with ReproductionReport(tmp_path, "perhop reproduce", [one.study for one in studies]) as report:
            for one, after in zip(studies, ("a", "a", "abc"), strict=False):
                report.draw(one)
                list(report.drawn(wait=True))
                assert shown() == list(after)
                now[0] += 0.6
            list(report.drawn())
            assert shown() == list("abc")
            report.draw(studies[3])
            list(report.drawn(wait=True))
            assert shown() == list("abc")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert shown() == list("abcd")


@pytest.mark.parametrize("kind", ["lines", "points", "bars", "dots"])
def test_plots_are_deterministic(kind: str) -> None:
    first, second = (drawing(plot(kind), rows(), "made-up") for _ in range(2))
    assert first == second
    assert first.picture.name == f"made-up-assured-{kind}"
    assert first.picture.png.startswith(b"\x89PNG")
    assert not re.search(r"\d{4}-\d\d-\d\d", first.picture.svg)
    assert len(first.panels) == 2


@pytest.mark.parametrize("kind", ["lines", "points", "bars", "dots"])
def test_plots_of_single_runs_have_no_intervals(kind: str) -> None:
    panels = drawing(plot(kind), rows(interval=False), "made-up").panels
    assert all("RIO" in panel for panel in panels)
    assert "95 %" not in caption(plot(kind), rows(interval=False))


def test_dots_of_equal_values_do_not_hide_each_other() -> None:
    same = [replace(row, mean=1.0) for row in rows()]
    (axes, *_) = figure(plot("dots"), same, "made-up").axes
    marks = [line.get_ydata() for line in axes.lines if line.get_label() in ("RIO", "RI+O")]
    assert len(marks) == 2
    assert not {float(y) for y in np.asarray(marks[0])} & {float(y) for y in np.asarray(marks[1])}


def test_an_end_that_is_not_known_is_drawn_as_far_away_as_the_other() -> None:
    found = [replace(row, mean=1.0, ci95=(0.8, math.inf)) for row in rows()]
    known = [replace(row, mean=1.0, ci95=(0.8, 1.2)) for row in rows()]
    for kind in ("lines", "points", "bars", "dots"):
        one, other = (drawing(plot(kind), drawn, "made-up").picture.svg for drawn in (found, known))
        assert one == other
    neither = [replace(row, mean=1.0, ci95=(-math.inf, math.inf)) for row in rows()]
    assert all(row.drawn is None for row in neither)
    assert drawing(plot("dots"), neither, "made-up").picture.png.startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", ["lines", "points", "bars", "dots"])
def test_a_dollar_in_a_name_is_a_dollar(kind: str) -> None:
    names = Axis("scheme", "Scheme $x_", {"rio": "a $b_{", "rio-plus-out": "$\\frac$"})
    made = replace(plot(kind), series=names, y_label="$y_$", title="$t^$")
    drawn = drawing(made, rows(), "made-up")
    assert drawn.picture.png.startswith(b"\x89PNG")
    assert any("$y_$" in panel for panel in drawn.panels)


def test_an_open_claim_says_how_many_runs_it_takes() -> None:
    made = outcome()
    wavers = verdict("third", "It wavers.", Judgement(holds=None, evidence="1 ~ 2", runs_needed=40))
    part = StudyPart.of(replace(made, verdicts=[wavers]))
    text = " ".join(read(reproduction_page([part], "perhop reproduce")).text.split())
    assert "0 holds 0 does not hold 1 cannot tell" in text
    assert "cannot tell (needs about 40 runs): It wavers." in text


def test_a_published_limit_below_all_levels_is_drawn() -> None:
    limited = replace(
        plot("lines"),
        references=(Reference("profile", "percent", {40: 2.5, 50: 2.5}),),
        limits="holds_up_to",
        limits_where={"reading": "mean"},
    )
    made = rows()
    nowhere = [replace(row, published=-1.0) if row.metric == "holds_up_to" else row for row in made]
    drawn, moved = (drawing(limited, entries, "made-up").panels[0] for entries in (made, nowhere))
    assert drawn != moved
    assert "says nowhere" in caption(limited, nowhere)
    assert "says nowhere" not in caption(limited, made)


@pytest.mark.parametrize("kind", ["lines", "points", "bars", "dots"])
@pytest.mark.parametrize("narrow", [False, True])
def test_a_legend_covers_no_mark_and_every_text_is_on_the_sheet(kind: str, *, narrow: bool) -> None:
    # Marks everywhere leave no place free of them within the axes.
    made = [
        Row(
            {"scheme": f"scheme {n} of several", "load": f"load {at}"},
            "throughput",
            "",
            0.1 * n,
            1.0,
            None,
            1,
        )
        for n in range(4)
        for at in range(6)
    ]
    names = Axis("scheme", "", {f"scheme {n} of several": f"scheme {n} of several" for n in range(4)})
    loads = Axis("load", "Load", {f"load {n}": f"load {n}" for n in range(6)})
    shown = replace(plot(kind), series=names, x=loads, facet=None, references=(), limits=None)
    with styled():
        sheet = _sheet(shown, made, [None], narrow=narrow)
        sheet.figure.draw_without_rendering()
    (axes,) = sheet.figure.axes
    legend = axes.get_legend()
    assert legend is not None or kind == "lines"
    if legend is not None:
        assert legend.get_window_extent().y0 >= axes.get_window_extent().y1 - 1
    drawn = sheet.figure.get_tightbbox()  # in inches, of all that is drawn
    assert drawn.x0 >= 0
    assert drawn.y0 >= 0
    assert drawn.x1 * 72 <= sheet.width
    assert drawn.y1 * 72 <= sheet.height


def test_inline_panels_follow_the_page() -> None:
    (first, _) = drawing(plot("lines"), rows(), "made-up").panels
    assert 'aria-label="Throughput &amp; more, 40 %"' in first
    assert "var(--ink)" in first
    assert "var(--series-1)" in first
    assert ' width="' not in first.split(">", 1)[0]
    assert "font-family" not in first
    assert ">RI+O</text>" in first
