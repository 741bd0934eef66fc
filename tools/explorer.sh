#!/usr/bin/env bash
# Builds the explorer into a folder of the package: the engine as WebAssembly, the page, its worker and the gallery.
# Exit status: 2 a program or the Rust target is missing, 3 the packages of explorer/package-lock.json cannot be downloaded.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$PWD/${1:-python/perhop/explorer}
target=wasm32-unknown-unknown

for program in node npm; do
    command -v $program >/dev/null || {
        printf 'error: no %s found; install Node.js 20 or newer\n' $program >&2
        exit 2
    }
done
if [[ ! -d $(rustc --print sysroot)/lib/rustlib/$target/lib ]]; then
    rustup target add $target >&2 || {
        printf 'error: the toolchain has no %s; `rustup target add %s` adds it\n' $target $target >&2
        exit 2
    }
fi

cargo build --locked --release --package perhop-explorer --lib --target $target
if [[ ! -e explorer/node_modules/.package-lock.json || explorer/package-lock.json -nt explorer/node_modules/.package-lock.json ]]; then
    timeout 300 npm --prefix explorer ci --no-audit --no-fund || {
        printf 'error: npm cannot install what explorer/package-lock.json names\n' >&2
        exit 3
    }
fi
mkdir -p "$out"
cp "${CARGO_TARGET_DIR:-target}/$target/release/perhop_explorer.wasm" "$out/"
node explorer/build.mjs --out "$out"
