"""What an audit comes to: no answer is not taken for a good one."""

from __future__ import annotations

import pytest
from tools.audit import Failed, Skipped, judged, python_advisories

KNOWN = {"name": "one", "version": "1", "vulns": []}
UNKNOWN = {"name": "two", "skip_reason": "Dependency not found on PyPI"}
WEAK = {"name": "three", "version": "3", "vulns": [{"id": "PYSEC-1", "fix_versions": ["4"]}]}


def test_packages_without_advisories_pass() -> None:
    assert judged({"dependencies": [KNOWN]}) == "Python: no advisories for 1 packages"


def test_packages_that_the_database_does_not_know_are_not_passed() -> None:
    with pytest.raises(Skipped, match="asked of 2 packages and has no answer for 1, such as two"):
        judged({"dependencies": [KNOWN, UNKNOWN]})


def test_an_advisory_fails_with_the_version_that_mends_it() -> None:
    with pytest.raises(Failed, match=r"three 3: PYSEC-1 \(fixed by 4\)"):
        judged({"dependencies": [KNOWN, UNKNOWN, WEAK]})


def test_a_tool_that_is_missing_is_skipped() -> None:
    with pytest.raises(Skipped, match="/no/pip-audit cannot be run: No such file"):
        python_advisories("/no/pip-audit")
