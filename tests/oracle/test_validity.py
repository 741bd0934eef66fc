"""perhop against theory, and the page of all agreements: it is of today's list, and shows what is kept."""

from __future__ import annotations

import json
from functools import cache

import pytest
from tests.oracle import ecn, finite, ns3, peers, rap, theory
from tests.oracle.agreement import Agreement, bounded, compared
from tests.oracle.settings import SETTINGS
from tools import validity

SEEDS = range(1, 13)
DATA = json.loads(validity.DATA.read_text(encoding="utf-8"))


@cache
def found_by(part: theory.Part) -> list[Agreement]:
    """Several tests look at the same runs."""
    return list(part(SEEDS))


@pytest.mark.parametrize("part", theory.PARTS, ids=lambda part: part.__name__)
def test_theory_is_met(part: theory.Part) -> None:
    found = found_by(part)
    assert found
    wrong = [text(one) for one in found if one.state == "differs"]
    assert not wrong, "; ".join(wrong)


def test_a_wrong_formula_is_noticed() -> None:
    """The mean wait of M/M/1 is twice that of M/D/1."""
    found = found_by(theory.m_d_1)[0]
    waits = [found.ours.low, found.ours.mean, found.ours.high]
    theirs = [2 * found.theirs.mean]
    assert compared("theory", "x", "x", ours=waits, theirs=theirs, margin=0.1).state == "differs"
    assert bounded("x", "x", ours=[1.0, 2.0], most=1.9).state == "differs"


def test_the_page_shows_what_was_measured() -> None:
    """`make validity` measures anew; `python -m tools.validity --render` writes the page alone."""
    assert validity.PAGE.read_text(encoding="utf-8") == validity.page(DATA)


def test_nothing_that_is_compared_is_left_out() -> None:
    settings = {name: {row["setting"] for row in DATA[name]["rows"]} for name in validity.PEERS}
    assert settings["ns-2"] == {*SETTINGS, *(f"RAP: {name}" for name in rap.SETTINGS)}
    assert settings["ns-2-ecn"] == set(ecn.SETTINGS)
    assert settings["ns-2-finite"] == set(finite.SETTINGS)
    assert settings["ns-3"] == set(peers.NS3_SETTINGS)
    assert settings["ns-3-today"] == set(ns3.SETTINGS)
    assert settings["kernel"] == set(peers.KERNEL_SETTINGS)
    found = {(one.setting, one.quantity) for part in theory.PARTS for one in found_by(part)}
    assert {(row["setting"], row["quantity"]) for row in DATA["theory"]["rows"]} == found


def text(one: Agreement) -> str:
    return f"{one.setting}, {one.quantity}: {one.ours.text(4)} beside {one.theirs.text(4)}"
