#!/bin/sh
# Installs the real agent programs that the tests can be run with, in the versions they are
# tested with, into a directory of its own. Needs npm and the network; nothing else here does.
#
#   tests/real/install.sh DIRECTORY [claude|codex|opencode|gemini|qwen]...
#
# Prints the variables by which the tests find them, so that
#
#   eval "$(tests/real/install.sh /var/tmp/agents)"
#   cargo test --workspace --test real
#
# runs the tests with what is installed. What is there in the right version is left alone.
set -eu

# The only place for versions.
package_of() {
    case $1 in
    claude) echo "@anthropic-ai/claude-code@2.1.325" ;;
    codex) echo "@openai/codex@0.166.0" ;;
    opencode) echo "opencode-ai@1.18.33" ;;
    gemini) echo "@google/gemini-cli@0.61.0" ;;
    qwen) echo "@qwen-code/qwen-code@0.15.10" ;;
    *)
        echo "unknown program: $1 (known: claude, codex, opencode, gemini, qwen)" >&2
        exit 2
        ;;
    esac
}

if [ $# -eq 0 ]; then
    echo "usage: $0 DIRECTORY [claude|codex|opencode|gemini|qwen]..." >&2
    exit 2
fi
command -v npm >/dev/null || {
    echo "$0: npm is not installed" >&2
    exit 2
}
directory=$1
shift
[ $# -gt 0 ] || set -- claude codex opencode gemini qwen
for name in "$@"; do
    package_of "$name" >/dev/null
done
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)

failed=0
for name in "$@"; do
    package=$(package_of "$name")
    prefix=$directory/$name
    program=$prefix/node_modules/.bin/$name
    mark=$prefix/installed
    if [ ! -x "$program" ] || [ "$(cat "$mark" 2>/dev/null)" != "$package" ]; then
        mkdir -p "$prefix"
        rm -f "$mark"
        echo "installing $package" >&2
        # The engines' wish for a newer node is about the installer, not about the programs.
        if ! npm install --prefix "$prefix" --no-audit --no-fund --no-save --loglevel error \
            "$package" >&2; then
            echo "$0: $package could not be installed" >&2
            failed=1
            continue
        fi
        echo "$package" >"$mark"
    fi
    variable=CCB_TEST_$(echo "$name" | tr '[:lower:]' '[:upper:]')
    echo "export $variable='$program'"
done
exit $failed
