#!/bin/sh
# Installs the job queues that the part `postgres` of the benchmark is compared with: graphile-worker (npm) and
# procrastinate (PyPI), into a directory of their own, $CCB_BENCH_PEERS or ccb-bench-peers beside other temporary
# files. Nothing else is changed; delete the directory to get rid of them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
place=${CCB_BENCH_PEERS:-${TMPDIR:-/tmp}/ccb-bench-peers}
mkdir -p "$place"
cd "$place"
if command -v npm > /dev/null; then
    [ -f package.json ] || npm init --yes > /dev/null
    npm install --no-audit --no-fund graphile-worker@0.17 pg
    cp "$here/graphile.mjs" graphile.mjs
else
    echo "npm is not installed, so graphile-worker is not" >&2
fi
if command -v python3 > /dev/null; then
    [ -d venv ] || python3 -m venv venv
    venv/bin/pip install --quiet 'procrastinate>=3,<4' 'psycopg[binary]'
else
    echo "python3 is not installed, so procrastinate is not" >&2
fi
echo "installed in $place"
