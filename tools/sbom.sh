#!/usr/bin/env bash
# sbom.sh ENV: writes software bills of materials in the format CycloneDX to target/sbom: perhop-python.cdx.json and
# perhop-router.cdx.json of the crates in what we build (cargo-cyclonedx), python.cdx.json of the packages that perhop is
# installed with (cyclonedx-py, from the virtual environment ENV).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
env=$1
command -v cargo-cyclonedx >/dev/null || {
    echo 'error: no cargo-cyclonedx found; cargo install --locked cargo-cyclonedx' >&2
    exit 2
}

mkdir -p target/sbom
# It writes beside each manifest of the workspace.
cargo cyclonedx --quiet --format json --spec-version 1.5
for crate in perhop-python perhop-router; do
    mv "crates/$crate/$crate.cdx.json" target/sbom/
done
find crates -name '*.cdx.json' -delete
"$env/bin/cyclonedx-py" requirements --pyproject pyproject.toml --output-reproducible \
    --output-file target/sbom/python.cdx.json requirements.lock
ls -l target/sbom
