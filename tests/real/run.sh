#!/bin/sh
# Installs the real agent programs (see install.sh) and runs the tests that need them.
#
#   tests/real/run.sh DIRECTORY [claude|codex|opencode|gemini]...
set -eu
cd "$(dirname "$0")/../.."
variables=$(tests/real/install.sh "$@")
eval "$variables"
exec cargo test -p ccb-tests --test it real -- --nocapture
