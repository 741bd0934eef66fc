#!/usr/bin/env bash
# Builds the explorer into a folder of the package: the engine as WebAssembly, the page, its worker and the gallery.
# Usage: tools/explorer.sh [--optional] [FOLDER]
# --optional, for `make build`: builds an explorer that is not there yet. Where something is missing that it needs, or the one that is
# there is older than its sources, the last line says so, with the remedy, and the exit status is 0.
# Exit status: 1 it does not compile, 2 a program or the Rust target is missing, 3 the packages of explorer/package-lock.json cannot be downloaded.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
optional=
if [[ ${1:-} == --optional ]]; then
    optional=yes
    shift
fi
out=${1:-python/perhop/explorer}
[[ $out == /* ]] || out=$PWD/$out
target=wasm32-unknown-unknown
profile=release

# fail STATUS WHAT REMEDY: ends the build here.
fail() {
    if [[ $optional ]]; then
        printf 'the explorer (perhop explore) is left out: %s; %s, then `make explorer` builds it\n' "$2" "$3"
        exit 0
    fi
    printf 'error: %s; %s\n' "$2" "$3" >&2
    exit "$1"
}

if [[ $optional && -e $out/page.js ]]; then
    sources=(Cargo.toml Cargo.lock crates/perhop-{core,sim,bounds,scenario,explorer} explorer/{src,gallery,package-lock.json,build.mjs})
    [[ -z $(find "${sources[@]}" -type f -newer "$out/page.js" -print -quit) ]] ||
        echo 'the explorer (perhop explore) is older than its sources; `make explorer` builds it anew'
    exit 0
fi
for program in node npm; do
    command -v $program >/dev/null || fail 2 "no $program found" 'install Node.js 20 or newer, with npm'
done
node --eval 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' ||
    fail 2 "Node.js $(node --version) is too old" 'install Node.js 20 or newer, with npm'
if [[ ! -d $(rustc --print sysroot)/lib/rustlib/$target/lib ]]; then
    [[ ! $optional ]] && rustup target add $target >&2 ||
        fail 2 "the Rust toolchain has no target $target" "\`rustup target add $target\` adds it"
fi

if [[ $optional ]]; then
    echo 'perhop is ready: .venv/bin/perhop. Compiling the explorer (two or three minutes; Ctrl-C leaves it out)'
    profile=first # the page is not to be waited for
fi
cargo build --locked --profile "$profile" --package perhop-explorer --lib --target $target ||
    fail 1 'cargo cannot compile it' 'see its message above'
if [[ ! -e explorer/node_modules/.package-lock.json || explorer/package-lock.json -nt explorer/node_modules/.package-lock.json ]]; then
    timeout 300 npm --prefix explorer ci --no-audit --no-fund --loglevel=error ||
        fail 3 'npm cannot install what explorer/package-lock.json names' 'see its message above'
fi
mkdir -p "$out"
cp "${CARGO_TARGET_DIR:-target}/$target/$profile/perhop_explorer.wasm" "$out/"
node explorer/build.mjs --out "$out"
