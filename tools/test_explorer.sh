#!/usr/bin/env bash
# Tests the built explorer: types and lints, the engine in Node against native code, the page in Chromium if there is one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$PWD/${1:-python/perhop/explorer}

cargo build --locked --release --package perhop-explorer --example outcome_fingerprint
native=$PWD/${CARGO_TARGET_DIR:-target}/release/examples/outcome_fingerprint
[[ -z ${CARGO_TARGET_DIR:-} ]] || native=$CARGO_TARGET_DIR/release/examples/outcome_fingerprint
npm --prefix explorer run --silent check
PERHOP_WASM=$out/perhop_explorer.wasm PERHOP_FINGERPRINT=$native node explorer/test.mjs
if command -v chromium >/dev/null; then
    PERHOP_FINGERPRINT=$native npm --prefix explorer run --silent test:browser
else
    printf 'tests in the browser left out: no chromium on the PATH\n' >&2
fi
