"""Pictures that are kept are the same as if they were drawn, and only where nothing about them is new."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from tests.python.output.test_drawers import files
from tests.python.output.test_report import outcome

from perhop.files import filesystem, kept
from perhop.scenario import reading
from perhop.show import kept as pictures_kept
from perhop.show.kept import KeptPictures
from perhop.show.page import html_network, html_plot
from perhop.studies.writer import ReproductionReport

if TYPE_CHECKING:
    from pathlib import Path


NETWORK = json.loads(
    reading.canonical(
        """\
        duration = "2s"
        [links.uplink]
        from = "a"
        to = "b"
        rate = "1Mbps"
        delay = "1ms"
        queue = { aqm = "drop-tail", limit = "10p" }
        [[flows]]
        name = "one"
        from = "a"
        to = "b"
        transport = { udp = "cbr", rate = "100kbps" }
        """
    )
)


def asked() -> list[tuple[Any, tuple[Any, ...]]]:
    """The pictures of a study: functions and their arguments."""
    made = outcome()
    plots = [(html_plot, (plot, made.rows, made.study.id)) for plot in made.study.plots]
    return [*plots, (html_network, (NETWORK, "network"))]


def test_a_picture_is_read_as_it_was_drawn(tmp_path: Path) -> None:
    pictures = KeptPictures(tmp_path / "pictures")
    for work, arguments in asked():
        assert pictures.find(work, arguments) is None
        drawn = work(*arguments)
        pictures.keep(work, arguments, drawn)
        assert KeptPictures(tmp_path / "pictures").find(work, arguments) == drawn
    assert len(list((tmp_path / "pictures").iterdir())) == len(asked())


def test_another_value_or_other_code_is_another_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = KeptPictures(tmp_path)
    work, arguments = asked()[-1]
    pictures.keep(work, arguments, work(*arguments))
    network, name = arguments
    assert pictures.find(work, (network, "other")) is None
    assert pictures.find(work, ({**network, "duration": "3s"}, name)) is None
    assert pictures.find(work, arguments) is not None
    monkeypatch.setattr(kept, "code", lambda: "of another version")
    assert pictures.find(work, arguments) is None


@pytest.mark.parametrize(("whole", "damaged"), [(b"uplink", b"upward"), (b"}", b""), (b"\n", b"")])
def test_a_damaged_picture_is_not_used(tmp_path: Path, whole: bytes, damaged: bytes) -> None:
    pictures = KeptPictures(tmp_path)
    work, arguments = asked()[-1]
    pictures.keep(work, arguments, work(*arguments))
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    assert whole in content
    path.write_bytes(content.replace(whole, damaged))
    assert pictures.find(work, arguments) is None


def test_what_has_no_name_is_not_kept(tmp_path: Path) -> None:
    """A function within another: nothing says that the next of its name is the same."""
    _, arguments = asked()[-1]

    def local(*_: object) -> None:
        pass

    pictures = KeptPictures(tmp_path)
    pictures.keep(local, arguments, html_network(*arguments))
    assert pictures.find(local, arguments) is None
    assert not list(tmp_path.iterdir())


def test_a_full_disk_keeps_no_picture_and_ends_nothing(tmp_path: Path) -> None:
    class Full(filesystem.FileSystem):
        def write(self, file: int, data: memoryview) -> int:  # noqa: ARG002 - the disk takes none
            raise OSError(28, os.strerror(28))

    pictures = KeptPictures(tmp_path)
    work, arguments = asked()[-1]
    with filesystem.replaced(Full()):
        pictures.keep(work, arguments, work(*arguments))
    assert not list(tmp_path.iterdir())


def test_the_pictures_drawn_last_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures_kept, "MOST", 2)
    pictures = KeptPictures(tmp_path)
    work, (network, name) = asked()[-1]
    drawn = work(network, name)
    for number in range(4):
        before = set(tmp_path.iterdir())
        pictures.keep(work, (network, f"{number}"), drawn)
        (path,) = set(tmp_path.iterdir()) - before
        os.utime(path, (number, number))
    pictures.tidy()
    stay = [pictures.find(work, (network, f"{number}")) is not None for number in range(4)]
    assert stay == [False, False, True, True]


def test_a_second_report_draws_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = outcome()
    reports = []
    for name in ("first", "second"):
        place = tmp_path / name
        place.mkdir()
        pictures = KeptPictures(tmp_path / "pictures")
        with ReproductionReport(place, "perhop reproduce", [made.study], 1, pictures) as report:
            report.draw(made)
            list(report.drawn(wait=True))
            report.finish([made])
        reports.append(files(place))
        monkeypatch.setattr("perhop.show.page.drawing", None)  # to draw a plot would now fail
    assert reports[0] == reports[1]
