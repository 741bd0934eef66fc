"""Labs: sheets ask what is checked, the notes' answers are right, wrong ones get the hint that fits."""

from __future__ import annotations

import functools
import itertools
import re
import shutil
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.python.conftest import run_in
from tools.transcripts import ROOT, blocks, transcript

from perhop.coursework import answers, checking, lab
from perhop.coursework.bench import Bench
from perhop.coursework.lab import Choice, Lab, Number, SettingQuestion
from perhop.errors import PerhopError
from perhop.scenario import reading
from perhop.statistics.intervals import estimate

if TYPE_CHECKING:
    from tests.python.conftest import Finished
    from tests.python.processes import Server

Perhop = Callable[..., "Finished"]
NUMERAL = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
OWN = """\
title = "Two buffers"
about = "what a larger buffer costs"

[measures]
wait = { scenario = "small.toml", metric = "links.bottleneck.delay_p95_s", scale = 1e3 }
median = { scenario = "small.toml", metric = "links.bottleneck.delay_p50_s", scale = 1e3 }

[[questions]]
key = "wait"
ask = "What is the 95th percentile of the wait, in ms?"
measure = "wait"
unit = "ms"
hint = "The table of links has it."
slips = [{ measure = "median", say = "That is the median." }]

[[questions]]
key = "why"
ask = "Which is longer?"
hint = "Compare them."
options.a = { text = "The median.", when = ["median > wait"] }
options.b = { text = "The percentile.", when = ["median < wait"] }

[[questions]]
key = "tune"
ask = "Find a limit with a wait below 50 ms."
hint = "How long does a packet take?"
scenario = "small.toml"
set = { "links.bottleneck.queue.limit" = "{limit}p" }
parameters.limit = { least = 1, most = 1000, whole = true }
goals = [{ name = "P95", metric = "links.bottleneck.delay_p95_s", scale = 1e3, unit = "ms", below = 50 }]
"""


@functools.cache
def bench(name: str) -> tuple[Lab, Bench]:
    """A lab that comes with perhop, whose runs are done once."""
    found = lab.find(name)
    return found, Bench(found)


def reference(name: str) -> str:
    """The answers of the teacher's notes."""
    notes = (ROOT / "course" / "teachers" / f"{name}.md").read_text(encoding="utf-8")
    return next(block.text for block in blocks(notes) if block.value == "answers.toml")


@pytest.fixture
def own(tmp_path: Path, small: Path) -> Path:
    """The folder of a lab of one's own."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "lab.toml").write_text(OWN, encoding="utf-8")
    (folder / "sheet.md").write_text("# Two buffers\n", encoding="utf-8")
    shutil.copyfile(small, folder / "small.toml")
    return folder


def test_the_labs_are_those_in_the_package() -> None:
    assert {path.name for path in lab.LABS.iterdir() if path.is_dir()} == set(lab.shipped())


@pytest.mark.parametrize("name", lab.shipped())
def test_a_sheet_asks_what_is_checked_and_nothing_else(name: str) -> None:
    found = lab.find(name)
    sheet = (found.folder / "sheet.md").read_text(encoding="utf-8")
    wanted = []
    for question in found.questions:
        wanted.append(f"- **{question.key}** {question.ask}")
        if isinstance(question, Choice):
            wanted += [f"  - {letter}: {option.text}" for letter, option in question.options.items()]
    asked = [line for line in sheet.splitlines() if re.match(r"- \*\*|  - \w: ", line)]
    assert sorted(asked) == sorted(wanted)
    assert f"perhop course check {name} answers.toml" in sheet


@pytest.mark.parametrize("name", lab.shipped())
def test_a_labs_measures_are_used_and_measured(name: str) -> None:
    found, runs = bench(name)
    text = (found.folder / "lab.toml").read_text(encoding="utf-8")
    for measure in found.measures:
        assert len(re.findall(rf"(?<![\w-]){re.escape(measure)}(?![\w-])", text)) > 1, measure
        assert len(runs.samples(measure)) == found.runs


@pytest.mark.parametrize("name", lab.shipped())
def test_a_labs_scenarios_run_without_notices(name: str) -> None:
    found = lab.find(name)
    for file in found.files:
        if file.endswith(".toml") and "grid" not in tomllib.loads((found.folder / file).read_text()):
            assert reading.read(found.folder / file).notices == ()


@pytest.mark.parametrize("name", lab.shipped())
def test_the_commands_of_a_sheet_run_in_its_folder(name: str, tmp_path: Path, server: Server) -> None:
    place = tmp_path / name
    assert run_in(server, tmp_path, "course", "start", name).code == 0

    def command(words: list[str], folder: Path, status: int) -> str:
        done = run_in(server, folder, *words)
        assert done.code == status, done.err
        return done.out

    commands = [block for block, _, _ in transcript(place / "sheet.md", place, command)]
    assert len(commands) >= 3


@pytest.mark.parametrize("name", lab.shipped())
def test_the_template_is_read_as_missing_and_the_notes_fill_it(name: str, tmp_path: Path) -> None:
    found = lab.find(name)
    path = tmp_path / "answers.toml"
    path.write_text(answers.template(found), encoding="utf-8")
    assert set(answers.read(path, found).values()) == {None}
    path.write_text(reference(name), encoding="utf-8")
    assert None not in answers.read(path, found).values()


@pytest.mark.parametrize("name", lab.shipped())
def test_each_letter_but_one_is_wrong_and_slips_are_told_apart(name: str) -> None:
    found, runs = bench(name)
    for question in found.questions:
        if isinstance(question, Choice):
            right = checking.right_option(found, question, runs)
            for letter in question.options:
                (checked,) = one(found, runs, question, letter)
                assert checked.state == ("right" if letter == right else "wrong")
        elif isinstance(question, Number):
            accepted = checking.accepted(list(runs.samples(question.measure).values()), question.tolerance)
            for slip in question.slips:
                value = estimate(list(runs.samples(slip.measure).values())).mean
                assert value not in accepted, (question.key, slip.measure)
                assert checking.number_hint(question, value, runs) == slip.say


def one(found: Lab, runs: Bench, question: lab.Question, answer: object) -> list[checking.Checked]:
    """One answer, checked alone."""
    given_answers: Any = {each.key: None for each in found.questions} | {question.key: answer}
    return [each for each in checking.check(found, runs, given_answers, "x") if each.question is question]


@pytest.mark.parametrize("name", lab.shipped())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(factor=st.floats(-3, 3), part=st.floats(0, 1))
def test_a_hint_for_a_number_never_holds_the_number(name: str, factor: float, part: float) -> None:
    found, runs = bench(name)
    for question in (each for each in found.questions if isinstance(each, Number)):
        samples = list(runs.samples(question.measure).values())
        accepted = checking.accepted(samples, question.tolerance)
        answer = estimate(samples).mean * 10**factor * (0.5 + part)
        hint = checking.number_hint(question, answer, runs)
        assert bool(hint) is (answer not in accepted)
        said = [float(numeral) for numeral in NUMERAL.findall(hint)]
        asked = {float(numeral) for numeral in NUMERAL.findall(question.ask)}
        assert not [value for value in said if value in accepted and value not in asked], (question.key, hint)


@pytest.mark.parametrize("name", lab.shipped())
def test_all_that_can_be_said_of_a_choice_names_no_letter_and_not_the_right_text(name: str) -> None:
    found, runs = bench(name)
    for question in (each for each in found.questions if isinstance(each, Choice)):
        right = question.options[checking.right_option(found, question, runs)]
        assert right.say == "", question.key  # nobody would ever read it
        for said in (question.hint, *(option.say for option in question.options.values())):
            assert not re.search(r"\b(option|answer|letter) [a-d]\b", said)
            assert right.text.rstrip(".") not in said


@pytest.mark.parametrize("name", lab.shipped())
def test_hints_to_settings_hold_no_setting_that_is_right(name: str) -> None:
    found, _ = bench(name)
    right = tomllib.loads(reference(name))["tune"]
    (question,) = (each for each in found.questions if isinstance(each, SettingQuestion))
    assert not {str(value) for value in right.values()} & set(NUMERAL.findall(question.hint))


def test_what_a_setting_reaches_is_said(tmp_path: Path, perhop: Perhop) -> None:
    (tmp_path / "answers.toml").write_text('lab = "red"\ntune.max_p = 0.02\n', encoding="utf-8")
    done = perhop("course", "check", "red", "answers.toml")
    assert done.code == 1
    printed = " ".join(done.out.split())
    assert "P95 of the wait 35.37 ± 1.9 ms (goal: below 30), missed; utilization 100 ±" in printed
    assert "(goal: above 97), reached" in printed
    assert printed.endswith("1 wrong, 8 missing, of 9")


def test_typical_mistakes_get_the_hint_that_fits(tmp_path: Path, perhop: Perhop) -> None:
    text = 'longest-wait = 0.08\nmedian-drop-tail = 79.9\np95-red = -35.4\nprice = "A"\nmax-p = "b"\n'
    (tmp_path / "answers.toml").write_text(text, encoding="utf-8")
    done = perhop("course", "check", "red", "answers.toml")
    said = " ".join(done.out.split())
    assert done.code == 1
    assert "Not the right order: look at the unit; the answer is asked in ms." in said
    assert "That is the 95th percentile; half of the packets wait less than the median." in said
    assert "Look at the sign." in said
    assert "Look at the column `used` of both runs once more." in said
    assert "look at the loss itself" in said
    assert "5 wrong, 4 missing, of 9" in said


def test_a_number_is_right_within_what_a_further_run_would_show() -> None:
    # t(0.975, 4) = 2.776, s = 1.5811, sqrt(1 + 1/5) = 1.0954: 4.8084
    accepted = checking.accepted([8.0, 9.0, 10.0, 11.0, 12.0], 0.02)
    assert (accepted.low, accepted.high) == pytest.approx((10 - 4.8084, 10 + 4.8084), abs=1e-3)
    rounded = checking.accepted([10.0] * 5, 0.02)
    assert (rounded.low, rounded.high) == pytest.approx((9.8, 10.2))


def test_answers_of_a_class_are_checked_at_once(tmp_path: Path, perhop: Perhop, own: Path) -> None:
    for name, letter in (("ada", "b"), ("bob", "a")):
        (tmp_path / f"{name}.toml").write_text(f'why = "{letter}"\n', encoding="utf-8")
    done = perhop("course", "check", str(own), "ada.toml", "bob.toml")
    assert done.code == 1
    assert "ada.toml\n" in done.out
    assert re.search(r"bob\.toml\n.*\n 1  wait  missing\n 2  why   wrong\n      Compare them\.", done.out)


def test_a_lab_of_ones_own_starts_and_is_checked(perhop: Perhop, own: Path, tmp_path: Path) -> None:
    done = perhop("course", "start", str(own), "here")
    assert done.code == 0
    assert {path.name for path in (tmp_path / "here").iterdir()} == {"sheet.md", "small.toml", "answers.toml"}
    wait = estimate(list(Bench(lab.find(str(own))).samples("wait").values())).mean
    text = f'lab = "own"\nwait = {wait:.4g}\nwhy = "b"\ntune.limit = 5\n'
    (tmp_path / "here" / "answers.toml").write_text(text, encoding="utf-8")
    done = perhop("course", "check", str(own), "here/answers.toml")
    assert done.code == 0, done.out


def test_nothing_is_written_over(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "red").mkdir()
    (tmp_path / "red" / "answers.toml").write_text("mine\n")
    done = perhop("course", "start", "red")
    assert done.code == 2
    assert done.err == "error: red/answers.toml: exists and is left as it is; name another folder\n"
    assert [path.name for path in (tmp_path / "red").iterdir()] == ["answers.toml"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "answers.toml: is empty"),
        ("a = ", "answers.toml: Invalid value"),
        ('lab = "delay"', "`lab` is 'delay'; these are no answers to the lab `red`"),
        ("lab = 3", "`lab` is 3"),
        ("longest = 3", "unknown key `longest`; did you mean `longest-wait`?"),
        ('longest-wait = "80 ms"', "write the number in ms alone, without quotes and unit, not '80 ms'"),
        ("longest-wait = true", "`longest-wait` must be a number in ms, not True"),
        ("longest-wait = nan", "`longest-wait` must be a finite number in ms, not nan"),
        ("longest-wait = -inf", "must be a finite number"),
        (f"longest-wait = 1{'0' * 400}", "must be a finite number"),
        (f"longest-wait = 1{'0' * 9000}", "a number has more than"),
        ("longest-wait = [[[[]]]]", "must be a number in ms, not [[[[]]]]"),
        (f"longest-wait = {'[' * 500}{']' * 500}", "lie more than"),
        ("longest-wait = 1979-05-27", "must be a number in ms"),
        ('price = "e"', "`price` must be a, b or c in quotes, not 'e'"),
        ("price = 1", "`price` must be a, b or c in quotes, not 1"),
        ("tune = 0.1", "`tune` has max_p: write tune.max_p = …"),
        ("tune.max_p = 7", "`tune.max_p` must be a number from 0.001 to 1, not 7"),
        ("tune.max = 7", "unknown key `max`; did you mean `max_p`?"),
        ('price = "\\u001b[2J"', "in quotes, not '\\x1b[2J'"),
        ('[[flows]]\nname = "x"', "this is a scenario, not a file of answers to a lab; use `perhop run"),
    ],
)
def test_bad_answers_are_refused_with_one_line(perhop: Perhop, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "answers.toml").write_text(text, encoding="utf-8")
    done = perhop("course", "check", "red", "answers.toml")
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert said in done.err
    assert len(done.err) < 400


def test_thresholds_in_the_wrong_order_name_the_question(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "answers.toml").write_text("tune = { min = 90, max = 30, max_p = 0.1 }\n", encoding="utf-8")
    done = perhop("course", "check", "assured", "answers.toml")
    assert done.code == 2
    assert done.err.startswith("error: answers.toml: `tune`: ")
    assert "lab.toml" not in done.err


def test_no_lab_and_no_file(perhop: Perhop) -> None:
    done = perhop("course", "start", "rad")
    assert (done.code, done.err) == (
        2,
        "error: no lab `rad`; did you mean `red`? A folder with a `lab.toml` is a lab, too\n",
    )
    assert "answers.toml: no such file" in perhop("course", "check", "red", "answers.toml").err


def test_a_scenario_command_names_the_command_for_answers(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "answers.toml").write_text('lab = "red"\n', encoding="utf-8")
    done = perhop("run", "answers.toml")
    assert done.code == 2
    assert "this is a file of answers to a lab, not a scenario; use `perhop course check LAB" in done.err


WRONG = [
    ('key = "wait"', 'key = "Wait"', "`key` must be small letters"),
    ('key = "why"', 'key = "wait"', "two questions have the key `wait`"),
    ('measure = "median"', 'measure = "mean"', "no measure `mean`; did you mean `median`?"),
    ('"median > wait"', '"median = wait"', "is no condition such as"),
    ('scenario = "small.toml"\nset', 'scenario = "../small.toml"\nset', "must be a file in the folder"),
    ("below = 50", "below = 50, above = 3", "a goal has `below` or `above`, one of them"),
    ('hint = "Compare them."\n', "", "needs `hint`"),
    ("scale = 1e3 }\nmedian", "scale = 1e3, over = 'x' }\nmedian", "`x` must be a measure without"),
    ("least = 1,", 'least = "1",', "`least` must be a number"),
]


@pytest.mark.parametrize(("before", "after", "said"), WRONG)
def test_a_wrong_lab_is_refused_with_its_key(own: Path, before: str, after: str, said: str) -> None:
    assert before in OWN
    (own / "lab.toml").write_text(OWN.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(PerhopError, match=re.escape(said)):
        lab.find(str(own))


def test_a_choice_of_which_runs_say_nothing_is_the_labs_fault(own: Path) -> None:
    (own / "lab.toml").write_text(OWN.replace("median > wait", "median < 1000"), encoding="utf-8")
    found = lab.find(str(own))
    question = next(each for each in found.questions if isinstance(each, Choice))
    with pytest.raises(PerhopError, match="the conditions of 2 options hold in runs"):
        checking.right_option(found, question, Bench(found))


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ),
    st.integers(0, 8),
)
def test_any_value_is_an_answer_or_is_refused(value: object, place: int) -> None:
    question = lab.find("red").questions[place]
    with suppress(PerhopError):
        found = answers._answer(question, value, "x")
        assert found is None or isinstance(found, float | str | dict)


def test_the_letters_of_options_are_in_order() -> None:
    for name, letters in itertools.product(lab.shipped(), ["abcdefgh"]):
        for question in lab.find(name).questions:
            if isinstance(question, Choice):
                assert "".join(question.options) == letters[: len(question.options)]
