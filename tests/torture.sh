#!/usr/bin/env bash
# The long tests in full, of which `cargo test --workspace` tries a sample:
#
#   tests/torture.sh              all of them
#   tests/torture.sh attacks      every attack from an agent's own `.git`: some minutes, 2 GB of memory
#   tests/torture.sh crashes      a crash at every write point, and at every point of each recovery
#   tests/torture.sh errors       every write error at every write point
#   tests/torture.sh damage       every file of ccb damaged in every way
#   tests/torture.sh chaos        100 tasks while agents, hosts and ccb are killed (CCB_CHAOS_TASKS)
set -euo pipefail
cd "$(dirname "$0")/.."
export CCB_FULL=1

run() {
    cargo test -p ccb-tests --test it -- "$@"
}

parts=("$@")
if [ $# = 0 ]; then parts=(attacks crashes errors damage chaos); fi
for part in "${parts[@]}"; do
    case $part in
        attacks)
            cargo test -p ccb-worktrees --test it -- --include-ignored attack
            run attacked_runs
            ;;
        crashes) run crash:: mail_crash:: team_crash:: tree_crash:: ;;
        errors) run write_errors:: team_crash:: mail_write_errors:: ;;
        damage) run damage:: index:: ;;
        chaos) run session_chaos:: fanout_trust:: ;;
        *)
            echo "unknown part $part; there are: attacks crashes errors damage chaos" >&2
            exit 2
            ;;
    esac
done
