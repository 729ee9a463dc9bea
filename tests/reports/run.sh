#!/usr/bin/env bash
# Validates what `ccb fanout` reports against the schemas others publish: junit.xml against the
# XSD that comes with pytest's sources, results.sarif against the SARIF 2.1.0 schema that comes
# with the crate serde-sarif. Not part of the normal tests: it installs the schemas and two
# validators from their registries into a directory of their own.
#
#   tests/reports/run.sh [DIRECTORY]    kept for the next run if given
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ $# -gt 0 ]; then
    mkdir -p "$1"
    dir=$(cd "$1" && pwd)
else
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
fi

if [ ! -x "$dir/python/bin/python" ]; then
    python3 -m venv "$dir/python"
    "$dir/python/bin/pip" install --quiet jsonschema==4.25.1 xmlschema==4.1.0
fi
if [ ! -f "$dir/junit.xsd" ]; then
    "$dir/python/bin/pip" download --quiet --no-deps --no-binary :all: --dest "$dir/sources" pytest==8.3.4
    tar -xzf "$dir"/sources/pytest-*.tar.gz -C "$dir/sources" --wildcards '*/junit-10.xsd'
    cp "$dir"/sources/pytest-*/testing/example_scripts/junit-10.xsd "$dir/junit.xsd"
fi
if [ ! -f "$dir/sarif.json" ]; then
    mkdir -p "$dir/crate/src"
    printf '[package]\nname = "schemas"\nversion = "0.0.0"\nedition = "2024"\n[dependencies]\nserde-sarif = "=0.8.0"\n[workspace]\n' > "$dir/crate/Cargo.toml"
    : > "$dir/crate/src/lib.rs"
    manifest=$(cargo metadata --quiet --format-version 1 --manifest-path "$dir/crate/Cargo.toml" |
        "$dir/python/bin/python" -c 'import json, sys
print(next(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "serde-sarif"))')
    cp "$(dirname "$manifest")/src/schema.json" "$dir/sarif.json"
fi

export CCB_TEST_REPORT_PYTHON="$dir/python/bin/python"
export CCB_TEST_REPORT_SCHEMAS="$dir"
cargo test --workspace --test real -- --nocapture report_schemas
