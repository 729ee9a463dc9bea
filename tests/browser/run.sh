#!/usr/bin/env bash
# Tests of the page in a real browser: Chromium of the distribution, driven by playwright-core.
# Installs what it needs where it can (Debian as root, npm); elsewhere it says that it was skipped.
#
#   tests/browser/run.sh            all of it; pictures are in target/browser/
#   tests/browser/run.sh load       what many agents and tasks cost the page and its server, as a table
#   CCB=path/to/ccb tests/browser/run.sh [load]
set -euo pipefail
cd "$(dirname "$0")/../.."
skipped() { echo "SKIPPED: tests/browser: $1"; exit 0; }

command -v node > /dev/null || skipped "there is no node"
command -v npm > /dev/null || skipped "there is no npm"
if ! command -v chromium > /dev/null; then
  [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null || skipped "there is no chromium (Debian: apt-get install chromium)"
  apt-get install -y -q chromium > /dev/null 2>&1 || skipped "chromium cannot be installed"
fi
out=target/browser
mkdir -p "$out"
cp tests/browser/package.json tests/browser/*.mjs "$out/"
if [ ! -d "$out/node_modules/typescript" ]; then
  npm install --silent --no-audit --no-fund --prefix "$out" || skipped "npm cannot install what tests/browser/package.json lists"
fi
tests/browser/types.sh
if [ -z "${CCB:-}" ]; then
  cargo build -p ccb-cli --features page
  CCB=${CARGO_TARGET_DIR:-target}/debug/ccb
fi
CCB=$(realpath "$CCB")
OUT=$(realpath "$out")
export CCB OUT
if [ "${1:-}" = load ]; then
  shift
  cargo build -p ccb-tests --bin busy-agents
  BUSY=$(realpath "${CARGO_TARGET_DIR:-target}/debug/busy-agents") exec node "$out/load.mjs" "$@"
fi
exec node "$out/page.mjs" "$@"
