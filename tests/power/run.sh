#!/bin/sh
# Cuts the power under a board, mail, worktrees, a finished session and one in the middle of its
# work, on XFS and ext4, and compares what is left with what was acknowledged. Needs root (loop
# devices, mounts) and python3; installs xfsprogs and e2fsprogs with apt if they are missing.
#
#   tests/power/run.sh                       ten rounds each; ends with 1 if anything was lost
#   tests/power/run.sh --rounds 2 --fs ext4 --parts board,finished
#   tests/power/run.sh --not-durable         with worktree.durable off, to see that it would notice
#
# CCB names the program to test; without it, it is built.
set -eu
cd "$(dirname "$0")/../.."
if [ "$(id -u)" != 0 ]; then
    echo "$0: loop devices and mounts need root" >&2
    exit 2
fi
missing=
command -v mkfs.xfs > /dev/null && command -v xfs_io > /dev/null || missing="$missing xfsprogs"
command -v mkfs.ext4 > /dev/null || missing="$missing e2fsprogs"
if [ -n "$missing" ]; then
    # shellcheck disable=SC2086
    apt-get install -y $missing > /dev/null
fi
if [ -z "${CCB:-}" ]; then
    cargo build -p ccb-cli
    CCB=$(cargo metadata --format-version 1 --no-deps |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/debug/ccb
fi
# In memory where there is such a place: what counts is what reaches the image, not when.
dir=/dev/shm
[ -w "$dir" ] || dir=${TMPDIR:-/tmp}
# In a mount namespace of its own: a copy of a mount elsewhere would keep the cut file system alive.
exec unshare --mount --propagation private python3 tests/power/power.py --ccb "$CCB" --dir "$dir" "$@"
