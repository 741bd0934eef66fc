#!/usr/bin/env bash
# mutants.sh rust|python|changed [BASE]: mutation tests (docs/mutants.md). Each changes one thing in the code at a time and runs
# the tests that should notice; what nobody noticed is listed.
#
#   rust     cargo-mutants over what .cargo/mutants.toml names; further arguments go to it, such as --shard 1/8
#   python   mutmut over the modules below
#   changed  cargo-mutants over what differs from BASE (by default the last state of main), for at most MUTANTS_SECONDS
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=target/mutation

# A module, and the tests that should notice what changes in it; mutmut finds out which of them reach which function.
modules=(
    'statistics judging: statistics judging'
    'store sweep/store sweep/journal: store sweep_store interruption sweep_interruption'
)

rust() {
    mkdir -p $out
    cargo mutants --output $out "$@"
}

changed() {
    local base=${1:-} diff=$out/changed.diff
    command -v cargo-mutants >/dev/null || leave_out 'no cargo-mutants found; cargo install --locked cargo-mutants'
    base=${base:-$(previous)} || leave_out 'no earlier state of main is known here'
    mkdir -p $out
    git diff "$base" -- crates >$diff
    [[ -s $diff ]] || leave_out "no crate differs from $base"
    # Interrupted, it still says what it found.
    timeout --signal=INT --kill-after=30 "${MUTANTS_SECONDS:-300}" \
        cargo mutants --output $out --in-diff $diff --baseline=skip --timeout 60 || judge $?
}

# previous: the last state of main, or the commit before this one where this is main itself.
previous() {
    local here
    here=$(git rev-parse HEAD)
    for base in origin/main main HEAD~; do
        if base=$(git merge-base "$base" HEAD 2>/dev/null) && [[ $base != "$here" ]]; then
            echo "$base"
            return
        fi
    done
    return 1
}

# judge STATUS: survivors are shown and fail nothing, for they are a reviewer's business; a tool that fails does.
judge() {
    case $1 in
    2 | 3) echo 'mutants survived: write a test that notices, or say in docs/mutants.md why none can' ;;
    124 | 130 | 137) echo "stopped after ${MUTANTS_SECONDS:-300} s; the rest was not tried" ;;
    *) exit "$1" ;;
    esac
}

leave_out() {
    printf 'mutation tests left out: %s\n' "$1" >&2
    exit "${MUTANTS_REQUIRED:-0}"
}

# mutmut wants the package below src/, and works in a copy.
python() {
    local bin=$PWD/.venv/bin
    [[ -x $bin/mutmut ]] || {
        echo "error: no mutmut found; .venv/bin/pip install 'mutmut>=3.8'" >&2
        exit 2
    }
    for group in "${modules[@]}"; do
        local name=${group%%:*} tests=${group#*:}
        local tree=$out/python/${name//[ \/]/-}
        rm -rf "$tree"
        mkdir -p "$tree/src"
        cp -r python/perhop "$tree/src/"
        cp -r tests tools examples docs benches Cargo.toml "$tree/"
        settings "$name" "$tests" >"$tree/pyproject.toml"
        (cd "$tree" && "$bin/mutmut" run --max-children "${MUTANTS_JOBS:-2}" >run.log && "$bin/mutmut" results)
        tail -n 2 "$tree/run.log" | tr '\r' '\n' | tail -n 2
    done
}

settings() {
    local only tests
    only=$(printf '"src/perhop/%s.py", ' $1)
    tests=$(printf '"tests/python/test_%s.py", ' $2)
    cat <<TOML
[tool.mutmut]
source_paths = ["src/perhop"]
only_mutate = [$only]
pytest_add_cli_args_test_selection = [$tests]
pytest_add_cli_args = ["-p", "no:cacheprovider"]
also_copy = ["examples", "docs", "tools", "benches", "Cargo.toml"]

[tool.pytest.ini_options]
pythonpath = ["."]
addopts = ["--strict-markers", "--import-mode=importlib"]
timeout = 60
TOML
}

"$@"
