"""Links of pages lead somewhere, on a forge and on the site; what the site adds is of today's program."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from tools.documentation import blocks as curves
from tools.documentation import commands, gallery, home, interface, pages
from tools.documentation.__main__ import OUT, foreign, search_index, unfound
from tools.transcripts import ROOT
from tools.transcripts import blocks as code_blocks

import perhop as package
from perhop import scenario
from perhop.blocks import catalogue

PAGES = [ROOT / origin for origin in pages.sites(ROOT)] + [ROOT / "README.md"]
SEARCH_INDEX = OUT / "html" / "searchindex.js"
ANSWERS = [
    ("RTT", "questions", "What does an RTT of 50 ms do?"),
    ("buffer", "questions", "How large a buffer?"),
    ("buffer", "guides/buffer-size", "How large a buffer?"),
    ("P99", "questions", "P99 of my VoIP beside 20 downloads"),
    ("VoIP", "questions", "P99 of my VoIP beside 20 downloads"),
    ("CSV", "questions", "The queue over time, as a picture and as CSV"),
    ("CSV", "results", "Tables as CSV"),
    ("BBR", "questions", "CUBIC beside BBR on 100 Mbit/s"),
    ("ECN", "questions", "Does ECN help?"),
]
"""Words of the field, and the page and heading at which the search has to find the answer."""
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """A page without its code blocks."""
    text = page.read_text(encoding="utf-8")
    lines = text.splitlines()
    for block in code_blocks(text):
        lines[block.first : block.last] = [""] * (block.last - block.first)
    return "\n".join(lines)


def anchors(page: Path) -> set[str]:
    """What links can point to, as forges and the site name it."""
    text = prose(page)
    titles = [re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in HEADING.findall(text)]
    slugs = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
    repeated = {f"{slug}-{number}" for slug in slugs for number in range(1, slugs.count(slug))}
    return {*slugs, *repeated, *re.findall(r'<a id="([\w-]+)"', text)}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    wrong = []
    for _, target in pages.LINK.findall(prose(page)):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        to = (page.parent / name).resolve() if name else page
        if not to.exists() or (anchor and to.suffix == ".md" and anchor not in anchors(to)):
            wrong.append(target)
    assert not wrong


def test_links_are_rewritten_to_where_pages_stand_on_the_site() -> None:
    places = pages.sites(ROOT)

    def rewritten(text: str, origin: str) -> str:
        return pages.relinked(text, PurePosixPath(origin), places, ROOT)

    assert rewritten("[a](papers/README.md#x)", "docs/results.md") == "[a](papers/index.md#x)"
    assert rewritten("[a](../../tests/oracle/README.md)", "docs/project/validity.md") == "[a](ns2.md)"
    assert rewritten("[a\nb](docs/live.md)", "CONTRIBUTING.md") == "[a\nb](../live.md)"
    assert rewritten("[`x`](../examples/large.toml)", "docs/networks.md") == "[`x`](gallery/large.md)"
    assert rewritten("[`x`](../examples/plan/y.toml)", "docs/networks.md") == "`x`"
    assert rewritten("[`deny.toml`](../../deny.toml)", "docs/project/dependencies.md") == "`deny.toml`"
    assert rewritten("![p](images/a.png)", "docs/papers/kim.md") == "![p](images/a.png)"
    assert rewritten("[a](https://x.test) [b](#c)", "docs/live.md") == "[a](https://x.test) [b](#c)"
    assert rewritten('<a id="to-here"></a>\n\n## B\n', "docs/today.md") == "(to-here)=\n\n## B\n"
    code = "```toml\na = [[1]](../deny.toml)\n```\n"
    assert rewritten(code, "docs/live.md") == code


def test_every_page_is_in_the_navigation(tmp_path: Path) -> None:
    pages.write(ROOT, tmp_path)
    for made in ("gallery/index", "reference/commands", "reference/python", "a-new-page"):
        pages.save(tmp_path / f"{made}.md", f"# {made}\n")
    pages.write_index(tmp_path)
    listed = re.findall(
        r"^(?:.*<)?([\w/-]+)>?$", (tmp_path / "index.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    there = {path.relative_to(tmp_path).with_suffix("").as_posix() for path in tmp_path.rglob("*.md")}
    assert {"course/red", "course/windows", "project/validity"} <= there
    for name in there - {"index", "hero"}:
        assert listed.count(name) == 1, name


def test_the_home_page_takes_its_picture_from_one_file() -> None:
    assert "```{include} hero.md\n```" in (pages.STATIC / "index.md").read_text(encoding="utf-8")


def test_formulas_are_of_blocks_that_there_are() -> None:
    known = {
        block["name"] for eras in catalogue.grouped().values() for group in eras.values() for block in group
    }
    assert not curves.formulas().keys() - known
    assert not (curves.AQMS.keys() | curves.METERS.keys()) - known
    for name in ("red", "rio", "rio-plus-out", "codel", "pie", "pi2", "token-bucket", "cubic"):
        assert curves.formulas()[name]["formula"]


def test_what_is_added_to_a_block_stands_before_its_parameters() -> None:
    text = "# Blocks\n\n### one\n\nWhat it does.\n\n| parameter |\n| --- |\n\n### two\n\nMore.\n\n## meter\n"
    added = curves.insert(text, {"one": "FORMULA\n", "two": "CURVE\n"})
    assert added == (
        "# Blocks\n\n### one\n\nWhat it does.\n\nFORMULA\n\n| parameter |\n| --- |\n\n"
        "### two\n\nMore.\n\nCURVE\n\n## meter\n"
    )
    assert curves.insert(text, {}) == text


def test_the_drop_curve_of_a_rule_is_what_runs_measure() -> None:
    """One point of RED's curve: under a load of 1.03, 1 - 1/1.03 of the packets are dropped."""
    average, share = curves.balance(curves.AQMS["red"], "yellow", 1.03)
    assert share == pytest.approx(100 * (1 - 1 / 1.03), abs=0.05)
    assert share == pytest.approx(100 * 2 / 3 * 0.1 * (average - 30) / 60, abs=curves.TOLERANCE)


def test_every_command_is_in_the_reference_with_its_options() -> None:
    text = commands.page()
    for command in (
        "run",
        "reproduce",
        "sweep",
        "tune",
        "live",
        "compare",
        "replay",
        "list blocks",
        "store verify",
    ):
        assert f"\n## perhop {command}\n" in text
    assert (
        "| `--runs` `N` | Simulated runs, each with its own seed; 1 has no interval. "
        "Default: 30 where a run is short, 10 or 5 where it takes long. |" in text
    )
    assert "perhop run [OPTIONS] SCENARIO.toml" in text


def test_the_gallery_shows_a_run_and_says_what_is_seen(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    exhibit = gallery.EXHIBITS["fq-codel"]
    text = gallery.page(ROOT / "examples" / "fq-codel.toml", exhibit, tmp_path)
    assert text.startswith("# A call beside downloads\n\nThe call's packets need 21.")
    assert "perhop run examples/fq-codel.toml --runs 3" in text
    for picture in re.findall(r"\]\((pictures/[^)]+)\)", text):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")


def test_the_gallery_refuses_what_a_run_does_not_show(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    wrong: Any = gallery.Exhibit("Wrong", ("throughput",), lambda _seen: ("The moon is green.", False))
    with pytest.raises(ValueError, match=r"first\.toml: the run does not show .* The moon is green"):
        gallery.page(ROOT / "examples" / "first.toml", wrong, tmp_path)


def test_every_public_name_is_in_the_reference_of_python_once() -> None:
    text = interface.page()
    documented = re.findall(r"^\.\. [\w:]+:: (\S+)$", text, re.MULTILINE)
    assert len(documented) == len(set(documented))
    public = {f"perhop.{name}" for name in {*package.__all__} - {"__version__", *scenario.__all__}}
    assert public | {f"perhop.scenario.{name}" for name in scenario.__all__} <= set(documented)
    assert "```{eval-rst}\n.. autofunction:: perhop.run\n```" in text
    assert ".. py:data:: perhop.scenario.Queue\n\n   Any queue." in text


def test_pages_that_ask_other_servers_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="https://x.test">x</a><img src="a.png"><link href="b.css">')
    assert not foreign(tmp_path)
    (tmp_path / "b.html").write_text('<script defer src="//cdn.test/x.js"></script>')
    (tmp_path / "c.html").write_text("<link rel='stylesheet' href='https://fonts.test/y'>")
    assert foreign(tmp_path) == {"cdn.test", "fonts.test"}


def test_the_home_page_has_the_explorer_where_it_is_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built, source, html = (tmp_path / name for name in ("built", "source", "html"))
    for folder in (built, source, html):
        folder.mkdir()
    hero = source / "hero.md"
    hero.write_text("A picture.\n")
    home.write(built, source)
    home.embed(built, html)
    assert "make explorer" in capsys.readouterr().out
    assert hero.read_text().startswith("A picture.\n")
    assert "without Node.js" in hero.read_text()
    assert list(html.iterdir()) == []
    for name in ("index.html", "perhop_explorer.wasm"):
        (built / name).write_text("x")
    home.write(built, source)
    home.embed(built, html)
    assert f'src="{home.FOLDER}/index.html#g=red"' in hero.read_text()
    assert (html / home.FOLDER / "perhop_explorer.wasm").is_file()
    assert capsys.readouterr().out == ""


def test_the_style_sheet_asks_no_other_server() -> None:
    for path in (ROOT / "tools" / "site").rglob("*.css"):
        assert "http" not in path.read_text(encoding="utf-8")
        assert "@import" not in path.read_text(encoding="utf-8")


def test_every_question_has_words_by_which_the_search_finds_it() -> None:
    text = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert len(sections) >= 21
    assert not [section.partition("\n")[0] for section in sections if not pages.search_words(section)]


@pytest.mark.parametrize(("word", "page", "heading"), ANSWERS)
def test_the_answer_to_a_word_of_the_field_is_below_a_heading_that_names_it(
    word: str, page: str, heading: str
) -> None:
    """The word is in the heading, the paragraph below it, or the words of the section for the search."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    _, found, section = f"\n{text}".partition(f"# {heading}\n")
    assert found, f"{page}.md has no heading {heading!r}"
    words = pages.search_words(section.partition("\n## ")[0])
    prose = [part for part in section.strip().split("\n\n") if not part.startswith("<!--")]
    assert word in heading or word in words or word in prose[0]


@pytest.mark.skipif(not SEARCH_INDEX.exists(), reason="the site is not built (make site)")
@pytest.mark.parametrize(("word", "page", "heading"), ANSWERS)
def test_the_search_of_the_site_leads_to_the_answer(word: str, page: str, heading: str) -> None:
    index = search_index(SEARCH_INDEX)
    titles = [place for title, places in index["alltitles"].items() if word in title for place, _ in places]
    entries = [place for place, *_ in index["indexentries"].get(word.lower(), [])]
    assert heading in index["alltitles"]
    assert page in {index["docnames"][place] for place in (*titles, *entries)}


def test_search_words_become_entries_of_the_index() -> None:
    text = "## A\n\n<!-- search: RTT, round-trip time -->\n\nText.\n"
    assert pages.relinked(text, PurePosixPath("docs/live.md"), {"docs/live.md": "live.md"}, ROOT) == (
        "## A\n\n```{index} RTT, round-trip time\n```\n\nText.\n"
    )


def test_a_word_that_the_search_does_not_find_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("```{index} RTT, buffer\n```\n")
    (tmp_path / "searchindex.js").write_text(
        'Search.setIndex({"indexentries": {"rtt": [[0, "index-0", false]]}})'
    )
    assert unfound(tmp_path, tmp_path) == {"buffer"}


def test_the_readme_shows_what_was_measured() -> None:
    """The readme's excerpt of `make reproduce` has the numbers of the page of the papers' results."""
    measured = re.search(
        r"^  measured +(.+)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert measured
    page = (ROOT / "docs" / "papers" / "kim.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| Best RIO (30/90/0.1) | 1.765"))
    assert re.findall(r"\*\*([\d.]+)", row) == measured[1].split()
