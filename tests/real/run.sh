#!/bin/sh
# Runs the contract of runtimes and the tests of each runtime, and of whole runs, on the real programs, and prints what
# the table in docs/runtimes.md is made of: program and version, check, outcome.
#
#   eval "$(tests/real/install.sh DIRECTORY)"
#   tests/real/run.sh [claude|codex|opencode|gemini]...
set -eu
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- claude codex opencode gemini
failed=0
for name in "$@"; do
    cargo test --quiet --workspace --test real -- --exact "contract::$name" 2>&1 |
        grep -E ' \| |ignored|panicked|FAILED' || failed=1
done
cargo test --quiet --workspace --test real -- --test-threads 2 --skip contract:: || failed=1
exit $failed
