#!/usr/bin/env bash
# Lets unmodified clients call every tool of every role: the official inspector's command line
# (npm, needs Node 22) and Python's SDK. Not part of the normal tests: it installs both from
# their registries into a directory of their own.
#
#   tests/clients/run.sh [DIRECTORY]    kept for the next run if given
set -euo pipefail
cd "$(dirname "$0")/../.."

# Said outright: an older Node makes npm choose an older inspector.
inspector=2.12.0
sdk=2.3.0

if [ $# -gt 0 ]; then
    mkdir -p "$1"
    dir=$(cd "$1" && pwd)
else
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
fi

if [ ! -x "$dir/npm/node_modules/.bin/mcp-inspector" ]; then
    mkdir -p "$dir/npm"
    (cd "$dir/npm" && npm install --no-audit --no-fund --loglevel error node@22 "@modelcontextprotocol/inspector@$inspector")
fi
if [ ! -x "$dir/python/bin/python" ]; then
    python3 -m venv "$dir/python"
    "$dir/python/bin/pip" install --quiet "mcp==$sdk"
fi

export CCB_TEST_MCP_INSPECTOR="$dir/npm/node_modules/.bin/mcp-inspector"
export CCB_TEST_MCP_PYTHON="$dir/python/bin/python"
# The inspector looks for `node` itself.
export PATH="$dir/npm/node_modules/.bin:$PATH"
cargo test --workspace --test real -- --nocapture mcp_clients
