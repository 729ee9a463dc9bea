#!/bin/sh
# Runs everything that needs PostgreSQL: the crate that talks to it, board, mail and rosters in it, and the
# tests of the commands on it. Each starts a throw-away server and stops it. Arguments go to `cargo test`.
#
#   tests/postgres/run.sh             finds a server program, or installs one (Debian and Ubuntu, as root)
#   tests/postgres/run.sh --find      only says whether there is one, and installs none
#
# PgBouncer is used if it is there; tests that need it say SKIPPED otherwise.
set -eu
cd "$(dirname "$0")/../.."

find_server() {
    for place in $(echo "$PATH" | tr ':' ' ') /usr/lib/postgresql/*/bin /usr/pgsql-*/bin; do
        if [ -x "$place/initdb" ]; then return 0; fi
    done
    return 1
}

if [ "${1-}" = --find ]; then
    find_server
    exit
fi
if ! find_server && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    echo "PostgreSQL is not installed: installing it with apt-get" >&2
    # Only the programs: no server of the distribution's own is to be made and started.
    if [ -d /etc/postgresql-common ] || mkdir /etc/postgresql-common 2> /dev/null; then
        [ -e /etc/postgresql-common/createcluster.conf ] \
            || echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get install --yes --no-install-recommends postgresql pgbouncer > /dev/null \
        || { apt-get update > /dev/null && apt-get install --yes --no-install-recommends postgresql pgbouncer > /dev/null; } \
        || echo "apt-get could not install it" >&2
fi
if ! find_server; then
    echo "PostgreSQL is not installed: no initdb on the PATH or in /usr/lib/postgresql." >&2
    echo "Install it (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install postgresql-server;" >&2
    echo "macOS: brew install postgresql) and run this again." >&2
    exit 1
fi

# The packages and features of `cargo test --workspace`, so that nothing is compiled again for these tests.
code=0
cargo test --workspace --no-fail-fast --test link --test database --test postgres "$@" || code=1
cargo test --workspace --test model -- --include-ignored in_a_database || code=1
cargo test -p ccb-team --features server-tests --lib tests "$@" || code=1
exit $code
