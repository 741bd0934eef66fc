#!/usr/bin/env bash
# Usage: tools/venv.sh DIR LOCK STAMP [PACKAGE COMMAND…]
# Installs the lock file LOCK into the virtual environment DIR, which is created if it is missing, and touches
# STAMP at the end. An environment that an interrupted run left half-made is made anew.
# PACKAGE is installed first; COMMAND, which needs no other, runs while the rest is installed. If either fails, so does the script.
set -euo pipefail
dir=$1 lock=$2 stamp=$3 package=${4:-}
command=("${@:5}")

fail() {
    printf 'error: %s\n' "$1" >&2
    exit 2
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    local candidate
    # PYTHON, if set, is the reader's choice and the only candidate.
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        if new_enough "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    fail "no Python 3.11 or newer found (tried: ${PYTHON:-python3, python3.14 … python3.11, python}); install one or name it: make PYTHON=/path/to/python3"
}

# `unfinished` is beside the environment for as long as somebody is at work in it.
unfinished=$dir.unfinished
if [[ -e $unfinished ]] || ! new_enough "$dir/bin/python" || ! "$dir/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    printf 'creating %s with %s\n' "$dir" "$("$python" --version)"
    touch "$unfinished"
    "$python" -m venv --clear "$dir" ||
        fail "$python cannot create a virtual environment (on Debian and Ubuntu: apt install python3-venv)"
fi
touch "$unfinished"
printf 'installing %s (some seconds, and the time of the downloads)\n' "$lock"
# Python compiles what it imports; compiling all of it beforehand takes as long as the rest of the installation.
pip_install() {
    "$dir/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --no-deps --require-hashes --requirement "$1" ||
        fail "could not install $lock; see pip's message above"
}
meanwhile=
if [[ -n $package ]]; then
    pip_install <(sed -n '/^'"$package"'==/,/[^\\]$/p' "$lock")
    set -m # in a process group, which can be ended as a whole
    "${command[@]}" &
    meanwhile=$!
    set +m
    trap 'kill -- "-$meanwhile" 2>/dev/null || true' EXIT
fi
pip_install "$lock"
rm -f "$unfinished"
if [[ -n $meanwhile ]]; then
    wait "$meanwhile"
    trap - EXIT
fi
touch "$stamp"
