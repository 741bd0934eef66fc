"""One model of a report, and what each medium makes of its parts."""

from __future__ import annotations

from perhop.show.numbers import PAGE, TERMINAL
from perhop.show.page import as_page
from perhop.show.report import Code, Items, Origin, Records, Report, Text, as_notebook, as_text

LINES = [{"class": "gold <1>", "rate, Mbit/s": "1.5"}, {"class": "rest", "rate, Mbit/s": "0.5"}]
REPORT = Report(
    "Two classes",
    ["5 s simulated"],
    [
        Records("Classes", LINES, notes=["Rates of `payload`."], states={"1.5": "yes"}, marked=[1]),
        Text(["A note.", "- a point"], "Notes", folded="More"),
        Text([]),
        Code("Lines", ["a < b", "c"], "All"),
    ],
    ["**Gold** gets more."],
    Origin("perhop run x.toml", "every flow of every run"),
)


def test_a_terminal_has_blocks_with_an_empty_line_between() -> None:
    head, answers, table, notes, lines = as_text(REPORT, 80).split("\n\n")
    assert head == "Two classes\n5 s simulated"
    assert answers == "Gold gets more."
    assert table.splitlines()[0] == "Classes"
    assert table.splitlines()[-1].split() == ["rest", "0.5"]
    assert notes == "A note.\n- a point"
    assert lines == "Lines\na < b\nc"


def test_the_items_of_a_list_are_indented_and_a_list_without_any_is_left_out() -> None:
    report = Report("", [], [Items("Claims", [["holds: a", "by b"], ["fails: c"]]), Items("Findings", [])])
    assert as_text(report, 80) == "Claims\n  holds: a\n    by b\n  fails: c"


def test_columns_that_do_not_fit_stand_below_with_the_first_ones() -> None:
    wide = [{"": "a line", **{f"column {number}": "1.234 ± 0.567" for number in range(6)}}]
    tables = as_text(Report("", [], [Records("", wide, stem=1)]), 60).split("\n\n")
    assert len(tables) == 2
    assert all(table.splitlines()[-1].startswith("a line") for table in tables)
    assert max(len(line) for table in tables for line in table.splitlines()) <= 60


def test_a_page_begins_with_the_answer_and_ends_with_its_origin() -> None:
    page = as_page(REPORT)
    order = [
        '<p class="answer"><strong>Gold</strong> gets more.</p>',
        '<p class="lead">5 s simulated</p>',
        "<h2>Classes</h2>",
        '<td class="yes">1.5</td>',
        '<tr class="marked">',
        '<p class="small">Rates of <code>payload</code>.</p>',
        "<h2>Notes</h2>",
        "<details><summary>More</summary>",
        '<ul class="notes"><li>a point</li></ul>',
        "<details><summary>All</summary>",
        "a &lt; b\nc",
        "<pre><code>perhop run x.toml</code></pre>",
    ]
    places = [page.find(text) for text in order]
    assert -1 not in places
    assert places == sorted(places)
    assert "gold &lt;1&gt;" in page


def test_a_notebook_has_paragraphs_tables_and_notes_in_small_type() -> None:
    shown = as_notebook(REPORT)
    assert shown.startswith("<p>Two classes</p><p>5 s simulated</p><p>Gold gets more.</p><table>")
    assert "<td>gold &lt;1&gt;</td>" in shown
    assert "<p><small>A note. - a point</small></p>" in shown


def test_pages_group_long_numbers_and_have_three_digits_without_an_interval() -> None:
    assert TERMINAL.measured(12345.6, 7.0) == "12346 ± 7"
    assert PAGE.measured(12345.6, 7.0) == "12\N{NARROW NO-BREAK SPACE}346 ± 7"
    assert (TERMINAL.measured(10 / 3, None), PAGE.measured(10 / 3, None)) == ("3.333", "3.33")
    assert TERMINAL.value(-1.25, 0.085, sign=True) == PAGE.value(-1.25, 0.085, sign=True) == "−1.250"
