#!/usr/bin/env bash
# The types in the comments of the page's modules hold. Needs the TypeScript compiler, which
# tests/browser/run.sh installs: nothing here asks the network.
set -euo pipefail
cd "$(dirname "$0")/../.."
tsc=target/browser/node_modules/.bin/tsc
if ! command -v node > /dev/null || [ ! -x "$tsc" ]; then
  echo "SKIPPED: the types of the page: tests/browser/run.sh has not installed the TypeScript compiler here"
  exit 0
fi
"$tsc" --noEmit --allowJs --checkJs --strict --target es2023 --module esnext \
  --lib es2023,dom,dom.iterable cli/page/src/assets/*.js
echo "ok   the types of the page hold"
