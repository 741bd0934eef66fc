"""Holds the locked dependencies against deny.toml and the databases of known weaknesses.

    python -m tools.audit PIP_AUDIT

Rust by cargo-deny, Python by pip-audit, the program given. What this machine lacks, a tool or the way to a
database, is skipped with its reason; with AUDIT_REQUIRED=1 that is a failure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

LOCK = "requirements-dev.lock"
"""The lock file that is checked: it holds all that requirements.lock does."""


class Skipped(Exception):  # noqa: N818 - it is an answer
    """A check that could not run here, and why."""


class Failed(Exception):  # noqa: N818 - it is an answer
    """A check that failed."""


def main() -> int:
    """Check both worlds; 0 if nothing that was checked fails."""
    status = 0
    for check in (rust_rules, rust_advisories, lambda: python_advisories(sys.argv[1])):
        try:
            print(check())
        except Skipped as reason:
            print(f"skipped: {reason}")
            status = status or int(bool(os.environ.get("AUDIT_REQUIRED")))
        except Failed as reason:
            print(f"error: {reason}", file=sys.stderr)
            status = 1
    return status


def rust_rules() -> str:
    """Check licenses, duplicates and sources of crates.

    Raises:
        Skipped, Failed: They were not checked, or break a rule.
    """
    _deny("check", "bans", "licenses", "sources")
    return "Rust: licenses, duplicates and sources are as deny.toml says"


def rust_advisories() -> str:
    """Check crates against the RustSec database.

    Raises:
        Skipped, Failed: It cannot be had, or there is an advisory.
    """
    _has_deny()
    fetched = _run("cargo", "deny", "--locked", "fetch", "db")
    if fetched.returncode:
        raise Skipped(f"Rust: the RustSec database cannot be had: {_reason(fetched.stderr)}")
    _deny("check", "--disable-fetch", "advisories")
    return "Rust: no advisories"


def python_advisories(program: str) -> str:
    """Check the packages of the lock file against PyPI's database.

    Raises:
        Skipped, Failed: It cannot be asked, or it knows of something.
    """
    options = ("--require-hashes", "--disable-pip", "--progress-spinner", "off", "--format", "json")
    asked = _run(program, "--requirement", LOCK, *options)
    try:
        report = json.loads(asked.stdout)
    except json.JSONDecodeError:
        raise Skipped(f"Python: PyPI's database cannot be asked: {_reason(asked.stderr)}") from None
    return judged(report)


def judged(report: Mapping[str, Any]) -> str:
    """Return the findings of pip-audit's report.

    Raises:
        Skipped: It was given no package, so that no news is not good news.
        Failed: There are advisories.
    """
    packages = report["dependencies"]
    if found := list(_advisories(packages)):
        raise Failed("Python: " + "; ".join(found))
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    if unknown:
        raise Skipped(
            f"Python: PyPI's database was asked of {len(packages)} packages and has no answer for "
            f"{len(unknown)}, such as {unknown[0]}"
        )
    return f"Python: no advisories for {len(packages)} packages"


def _advisories(packages: list[dict[str, Any]]) -> Iterator[str]:
    for package in packages:
        for advisory in package.get("vulns", ()):
            fixed = ", ".join(advisory.get("fix_versions", ())) or "no version yet"
            yield f"{package['name']} {package['version']}: {advisory['id']} (fixed by {fixed})"


def _has_deny() -> None:
    if shutil.which("cargo-deny") is None:
        raise Skipped("Rust: no cargo-deny found; cargo install --locked cargo-deny")


def _deny(*arguments: str) -> None:
    _has_deny()
    done = _run("cargo", "deny", "--locked", *arguments)
    if done.returncode:
        raise Failed(f"Rust: cargo deny {' '.join(arguments)}\n{done.stderr}")


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Skipped(f"{command[0]} cannot be run: {error.strerror}") from None


def _reason(log: str) -> str:
    """The last line of a program's complaint: it names the cause."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


if __name__ == "__main__":
    sys.exit(main())
