#!/bin/sh
# Runs everything that needs PostgreSQL: the crate that talks to it, board and mail in it, and the tests of
# `ccb task` and `ccb mail` on it. Each starts a throw-away server and stops it. Arguments go to `cargo test`.
#
#   tests/postgres/run.sh
set -eu
cd "$(dirname "$0")/../.."
found=
for place in $(echo "$PATH" | tr ':' ' ') /usr/lib/postgresql/*/bin /usr/pgsql-*/bin; do
    if [ -x "$place/initdb" ]; then found=$place; fi
done
if [ -z "$found" ]; then
    echo "PostgreSQL is not installed: no initdb on the PATH or in /usr/lib/postgresql." >&2
    echo "Install it (Debian, Ubuntu: apt-get install postgresql) and run this again." >&2
    exit 1
fi
cargo test -p ccb-database --features throw-away-server "$@"
cargo test -p ccb-taskboard --features server-tests --test database --test model "$@"
cargo test -p ccb-mailbox --features server-tests --test database "$@"
cargo test -p ccb-tests --features postgres --test postgres "$@"
