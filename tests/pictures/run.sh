#!/bin/sh
# Records the pictures in docs/pictures/ from real screens; look at them before you commit them.
set -eu
cd "$(dirname "$0")/../.."
cargo build --quiet -p ccb-cli -p ccb-tests --bins
target="$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')"
mkdir -p docs/pictures
exec "$target/debug/record-pictures" docs/pictures
