"""`perhop export` as a user types it: import, export, import again; the report; bad input."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perhop.routers import WRITERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

ROOT = Path(__file__).parents[3]
BRANCH = ROOT / "examples" / "branch.cfg"
DOCUMENTATION = (ROOT / "docs" / "configurations.md").read_text(encoding="utf-8")


@pytest.fixture
def scenario(perhop: Perhop) -> str:
    """The example, imported."""
    done = perhop("import", str(BRANCH), "--packet-size", "1000B", "-o", "branch.toml")
    assert done.code == 0, done.err
    return "branch.toml"


def test_there_and_back(perhop: Perhop, scenario: str, tmp_path: Path) -> None:
    done = perhop("export", scenario, "--to", "ios", "--shape", "-o", "new.cfg")
    assert (done.code, done.err) == (0, "new.cfg: written\n")
    assert done.out in DOCUMENTATION
    lines = (tmp_path / "new.cfg").read_text(encoding="utf-8")
    shown = DOCUMENTATION[DOCUMENTATION.index("policy-map GIGABITETHERNET0/0/0-QUEUES") :].split("…")[0]
    assert shown in lines
    back = perhop("import", "new.cfg", "--packet-size", "1000B", "-o", "back.toml")
    assert back.code == 0, back.err
    one, two = (
        tomllib.loads((tmp_path / name).read_text(encoding="utf-8"))["links"]
        for name in ("branch.toml", "back.toml")
    )
    assert one == two


def test_lines_and_report_as_json(perhop: Perhop, scenario: str) -> None:
    done = perhop("export", scenario, "--to", "ios")
    assert done.out.startswith("! links.GigabitEthernet0/0/0 of branch.toml, written by perhop export.\n")
    assert "GigabitEthernet0/0/0, written for ios; 1 remark:" in done.err
    report = json.loads(perhop("export", scenario, "--to", "ios", "-o", "n.cfg", "--json", "-").out)
    assert (report["dialect"], report["link"]) == ("ios", "GigabitEthernet0/0/0")
    assert report["lines"] == done.out.splitlines()
    assert {remark["kind"] for remark in report["remarks"]} == {"differs"}


@pytest.mark.parametrize("dialect", sorted(WRITERS))
def test_the_name_of_the_interface_is_said_to_be_the_users_to_change(
    perhop: Perhop, scenario: str, dialect: str, tmp_path: Path
) -> None:
    done = perhop("export", scenario, "--to", dialect, "--lenient", "-o", "new.cfg")
    assert done.code == 0, done.err
    said = "The interface is called GigabitEthernet0/0/0, as the link is: write the name of yours."
    text = (tmp_path / "new.cfg").read_text(encoding="utf-8")
    if dialect == "perhop-router":  # says so of INSIDE and OUTSIDE
        assert "name the interfaces with --devices" in text
    else:
        assert text.splitlines()[1][2:] == said
        assert said in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none.toml", "--to", "ios"), "none.toml: no such file"),
        (("branch.toml", "--to", "dos"), f"--to must be one of {', '.join(WRITERS)}, not `dos`"),
        (("branch.toml", "--to", "ios", "--link", "x"), "branch.toml: --link x: there is no such link"),
        (("branch.toml", "--to", "ios", "-o", "no/such.cfg"), "--output no/such.cfg"),
        (
            ("pie.toml", "--to", "ios"),
            "pie.toml: links.a.queue.aqm: IOS cannot express pie as it is here; change it, or leave it out",
        ),
    ],
)
@pytest.mark.usefixtures("scenario")
def test_bad_input_is_one_line(perhop: Perhop, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    text = 'title = "x"\nduration = "9s"\n[links.a]\nfrom = "r"\nto = "s"\nrate = "1Mbps"\ndelay = "1ms"\n'
    text += 'queue = { aqm = "pie", limit = "50p" }\n[[flows]]\nname = "f"\ncount = 1\nfrom = "r"\nto = "s"\n'
    (tmp_path / "pie.toml").write_text(text + 'transport = { tcp = "newreno" }\n', encoding="utf-8")
    done = perhop("export", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1, done.err
    assert said in done.err


def test_the_documentation_names_all_writers() -> None:
    assert all(f"`--to {name}`" in DOCUMENTATION for name in WRITERS)
