#!/usr/bin/env bash
# Every attack from an agent's own `.git`, the heavy ones too, on the library and in whole runs: takes
# some minutes and 2 GB of memory.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo test -p ccb-worktrees --test it -- --include-ignored attack
CCB_ATTACKS=all cargo test -p ccb-tests --test it -- attacked_runs
