#!/usr/bin/env bash
# Mutation tests: the code is changed in one small way at a time, and some test should notice (docs/project/mutants.md).
#
#   mutants.sh rust [ARGUMENT …]     cargo-mutants over what .cargo/mutants.toml names; arguments go to it (--shard 0/8)
#   mutants.sh python [GROUP …]      mutmut over the groups of modules below, or over those named
#   mutants.sh changed [BASE]        cargo-mutants over what differs from BASE (by default from the last state of main),
#                                    for at most MUTANTS_SECONDS
#
# What survives is listed and fails nothing: it is for a reader to judge.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$PWD/target/mutation
seconds=${MUTANTS_SECONDS:-300}

# Modules of a group, and the tests that should notice; mutmut finds out which of these reach which function.
declare -A modules=(
    [statistics]='statistics judging'
    [stores]='store journal filesystem sweep/store sweep/journal'
)
declare -A tests=(
    [statistics]='statistics/test_statistics statistics/test_judging'
    [stores]='stores/test_store stores/test_filesystem stores/test_verify sweeps/test_sweep_store'
)

# Files that are examined unless a command names others: the core's blocks, queues and counters, the accounting of the engine, the
# privileges of the router.
examined=(
    'crates/perhop-core/src/{aqm,meter,scheduler,control}/**/*.rs'
    'crates/perhop-core/src/{counters,occupancy,port,queue}.rs'
    'crates/perhop-sim/src/{outcome,probe,sampling}.rs'
    'crates/perhop-sim/src/engine/*/link.rs'
    'crates/perhop-router/src/{privileges,seccomp,descriptors}.rs'
)

rust() {
    found cargo-mutants 'cargo install --locked cargo-mutants' || exit 2
    mkdir -p "$out"
    local files=()
    [[ " $* " == *' -f '* || " $* " == *' --file '* ]] || files=("${examined[@]/#/--file=}")
    cargo mutants --output "$out" "${files[@]}" "$@" || judge $?
}

changed() {
    found cargo-mutants 'cargo install --locked cargo-mutants' || leave_out
    local base
    base=${1:-$(previous)} || leave_out 'no earlier state of main is known here'
    mkdir -p "$out"
    git diff "$base" -- crates >"$out/changed.diff"
    [[ -s $out/changed.diff ]] || leave_out "no crate differs from $base"
    # Interrupted, cargo-mutants still says what it has found.
    timeout --signal=INT --kill-after=30 "$seconds" \
        cargo mutants --output "$out" "${examined[@]/#/--file=}" --in-diff "$out/changed.diff" --baseline=skip --timeout 60 || judge $?
}

# The last state of main that this one goes back to; where this is main itself, the commit before.
previous() {
    local here ref base
    here=$(git rev-parse HEAD)
    for ref in origin/main main HEAD~; do
        if base=$(git merge-base "$ref" HEAD 2>/dev/null) && [[ $base != "$here" ]]; then
            echo "$base"
            return
        fi
    done
    return 1
}

# judge STATUS: what the exit status of cargo-mutants or of timeout means.
judge() {
    case $1 in
    2 | 3) echo 'some survived: write a test that notices, or say in docs/project/mutants.md why none can' ;;
    124 | 130 | 137) echo "stopped after $seconds s: the rest was not tried" ;;
    *) exit "$1" ;;
    esac
}

python() {
    PATH=$PWD/.venv/bin:$PATH
    found mutmut ".venv/bin/pip install 'mutmut>=3.8,<4'" || exit 2
    local group
    for group in "${@:-statistics stores}"; do
        for group in $group; do
            python_group "$group"
        done
    done
}

# mutmut wants the package below src/, and works in a copy.
python_group() {
    local tree=$out/$1
    rm -rf "$tree"
    mkdir -p "$tree/src"
    cp -r python/perhop "$tree/src/"
    cp -r tests tools examples docs benches Cargo.toml "$tree/"
    settings "${modules[$1]}" "${tests[$1]}" >"$tree/pyproject.toml"
    cd "$tree"
    # Programs that tests start use the code as it is: mutmut works within one process.
    export PYTHONPATH=$tree/src
    mutmut run --max-children "${MUTANTS_JOBS:-2}" >run.log
    mutmut results
    mutmut export-cicd-stats >/dev/null
    printf '%s: %s\n' "$1" "$(tr -d '{}\n" ' <mutants/mutmut-cicd-stats.json)"
    unset PYTHONPATH
    cd - >/dev/null
}

settings() {
    local module test only='' selected=''
    for module in $1; do only+="\"src/perhop/$module.py\", "; done
    for test in $2; do selected+="\"tests/python/$test.py\", "; done
    cat <<TOML
[tool.mutmut]
source_paths = ["src/perhop"]
only_mutate = [$only]
pytest_add_cli_args_test_selection = [$selected]
pytest_add_cli_args = ["-p", "no:cacheprovider", "-W", "ignore", "-m", "not long", "--hypothesis-profile=ci"]
also_copy = ["examples", "docs", "tools", "benches", "Cargo.toml"]
# Polars' threads do not come along where a process that has used it forks: what uses it then waits for ever.
process_isolation = "forkserver"

[tool.pytest.ini_options]
pythonpath = ["."]
addopts = ["--strict-markers", "--import-mode=importlib"]
markers = ["long: takes long by nature"]
timeout = 60
TOML
}

found() {
    command -v "$1" >/dev/null || {
        printf 'no %s found; %s\n' "${1##*/}" "$2" >&2
        return 1
    }
}

leave_out() {
    printf 'mutation tests left out%s\n' "${1:+: $1}" >&2
    exit "${MUTANTS_REQUIRED:-0}"
}

"$@"
