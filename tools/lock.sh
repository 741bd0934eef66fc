#!/usr/bin/env bash
# Refreshes requirements.lock (to run and build perhop), requirements-dev.lock (to work on it), requirements-site.lock (to build
# the site), requirements-wheels.lock (the tools of `make wheels`) and requirements-audit.lock (those of `make audit` and `make sbom`)
# from pyproject.toml: every version pinned, every file by its hash, for all platforms and Python >= 3.11.
# Versions that still fit stay; `tools/lock.sh --upgrade` takes the newest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
"${PYTHON:-python3}" -m venv "$tool/venv"
"$tool/venv/bin/python" -m pip install --quiet 'uv>=0.9'

compile() {
    "$tool/venv/bin/uv" pip compile --quiet --universal --python-version 3.11 \
        --generate-hashes --no-annotate --fork-strategy fewest --no-emit-index-url --no-emit-find-links \
        --custom-compile-command tools/lock.sh "$@" >/dev/null
}
# `make build` installs every part but Ray, which is for clusters.
extras=(--extra tune --extra gym)
compile pyproject.toml "${extras[@]}" --group build --output-file requirements.lock "${@}"
# The second file holds all of the first, at the same versions.
compile pyproject.toml "${extras[@]}" --group dev --constraints requirements.lock --output-file requirements-dev.lock "${@}"
# The site is in the same environment: it loads perhop for the reference of its interface.
compile pyproject.toml "${extras[@]}" --group site --constraints requirements-dev.lock --output-file requirements-site.lock "${@}"
compile --group wheels --output-file requirements-wheels.lock "${@}"
compile --group audit --output-file requirements-audit.lock "${@}"

if grep --line-number --extended-regexp '://|--(extra-)?index-url|--find-links| @ ' requirements*.lock; then
    echo 'tools/lock.sh: a lock file names an address; it must name only versions and hashes' >&2
    exit 1
fi
