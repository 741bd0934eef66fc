#!/usr/bin/env bash
# Builds the core and the simulator for wasm32-unknown-unknown and checks the module (tools/check_wasm.py).
# Where the target cannot be had, says why and leaves the check out; with WASM_REQUIRED=1 that is an error.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=wasm32-unknown-unknown

leave_out() {
    printf 'wasm check left out: %s\n' "$1" >&2
    exit "${WASM_REQUIRED:-0}"
}

if [[ ! -d $(rustc --print sysroot)/lib/rustlib/$target/lib ]]; then
    command -v rustup >/dev/null || leave_out "the toolchain has no $target and there is no rustup to add it"
    said=$(rustup target add $target 2>&1) || leave_out "rustup target add $target failed: $(tail -n 1 <<<"$said")"
fi

cargo build --locked --release --package perhop-sim --example fingerprint --target $target
cargo build --locked --release --package perhop-sim --example fingerprint
built=${CARGO_TARGET_DIR:-target}
python=.venv/bin/python
[[ -x $python ]] || python=python3
"$python" tools/check_wasm.py "$built/$target/release/examples/fingerprint.wasm" \
    --native "$built/release/examples/fingerprint"
