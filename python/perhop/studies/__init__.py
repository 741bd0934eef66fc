"""The papers' tables and figures, one package for each paper."""

from __future__ import annotations

from perhop.studies import bouras, hurley, kim, yeom

STUDIES = {study.id: study for study in (*kim.STUDIES, *yeom.STUDIES, *hurley.STUDIES, *bouras.STUDIES)}
"""Every study by its id, in the order in which `perhop reproduce` runs them."""

__all__ = ["STUDIES"]
