#!/usr/bin/env bash
# fuzz.sh SECONDS TARGET …: runs fuzz targets one after the other, each for so long (docs/project/fuzzing.md). Inputs that are found on the
# way are kept in target/fuzz-corpus; the seeds in fuzz/corpus stay as they are. Ends at the first finding.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=$1
shift

command -v cargo-fuzz >/dev/null || {
    echo 'error: no cargo-fuzz found; cargo install --locked cargo-fuzz' >&2
    exit 2
}
# Counting coverage is for nightly compilers; a stable one does it if it is said to be one.
toolchain=()
if command -v rustup >/dev/null && rustup toolchain list | grep -q '^nightly'; then
    toolchain=(+nightly)
else
    export RUSTC_BOOTSTRAP=1
fi

for target in "$@"; do
    mkdir -p "target/fuzz-corpus/$target"
    words=()
    case $target in scenario | router_config) words=(-dict=fuzz/dictionaries/toml.dict) ;; esac
    # The code has no unsafe parts for a sanitizer to watch.
    cargo "${toolchain[@]}" fuzz run --sanitizer none "$target" "target/fuzz-corpus/$target" "fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -max_len=4096 -timeout=20 "${words[@]}"
done
