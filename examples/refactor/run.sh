#!/bin/sh
# Renames a function across a small program with a coordinator and five workers. No model, no key.
#
#   sh run.sh [--chaos] [--keep]       CCB names the program [default: ccb]
#
# --chaos kills workers, the coordinator and the process that directs them all on the way.
# --keep leaves the directory it worked in, and says where it is.
set -u
here=$(cd "$(dirname "$0")" && pwd)
ccb=${CCB:-ccb}
# It is called from another directory.
case $ccb in
    /*) ;;
    */*) ccb=$PWD/$ccb ;;
esac
chaos=0 keep=0
for arg; do
    case $arg in
        --chaos) chaos=1 ;;
        --keep) keep=1 ;;
        *) echo "usage: sh run.sh [--chaos] [--keep]" >&2; exit 2 ;;
    esac
done

work=$(mktemp -d) || exit 1
team=rename
done_here() {
    [ "$keep" = 1 ] && echo "it is all in $work" && return
    rm -rf "$work"
}
trap done_here EXIT
trap 'exit 130' INT TERM

# The program in a repository of its own, and a home of its own.
cp -R "$here/app" "$work/app" && mkdir "$work/home" || exit 1
cd "$work/app" || exit 1
git init -q -b main . && git add -A &&
    git -c user.name=example -c user.email=example@localhost commit -qm "The books" || exit 1
git config user.name example && git config user.email example@localhost
first=$(git rev-parse HEAD)
unset CLAUDE_CODE_TASK_LIST_ID CLAUDE_CODE_TEAM_NAME CLAUDE_CODE_SESSION_ID CCB_AGENT CCB_RUN_ID
export CCB_HOME="$work/home"
cat > "$CCB_HOME/ccb.json" << EOF
{"runtimes": {
    "example-coordinator": {"kind": "lines", "command": ["sh", "$here/agents/coordinator.sh"]},
    "example-worker": {"kind": "lines", "command": ["sh", "$here/agents/worker.sh"]}},
 "agents": {"stopGraceMs": 500}}
EOF

# In the place of the shell that calls it, so that a kill hits the right process.
session() {
    exec "$ccb" --team "$team" --coordinator --lead example-coordinator --runtime example-worker --mates 5 \
        --merge auto --attempts 20 --verify 'sh tests/run.sh' \
        "Rename fmt_amount to money_format everywhere, in steps that each pass the tests."
}

# The processes of agents that run, from their records; only those of this home.
agent_processes() {
    for pid in $(grep -h '"pid"' "$CCB_HOME/teams/$team/runs/"*/meta.json 2> /dev/null | tr -dc '0-9\n'); do
        # If /proc exists: the process is still one of this home.
        if [ -d /proc/self ]; then
            { tr '\0' '\n' < "/proc/$pid/environ"; } 2> /dev/null | grep -qxF "CCB_HOME=$CCB_HOME" || continue
        fi
        echo "$pid"
    done
}

# Waits until this many agents were started, or the session is over.
await_agents() {
    while kill -0 "$director" 2> /dev/null; do
        set -- "$1" "$CCB_HOME/teams/$team/runs/"a*/
        [ "$#" -gt "$1" ] && [ -d "$2" ] && return
        sleep 0.1
    done
}

if [ "$chaos" = 1 ]; then
    # All processes are killed three times, each time a little later; the fourth time only the agents.
    for agents in 2 4 7 9; do
        session < /dev/null &
        director=$!
        await_agents "$agents"
        for pid in $(agent_processes); do
            kill -9 "$pid" 2> /dev/null && echo "-- killed agent $pid"
        done
        if [ "$agents" != 9 ]; then
            kill -9 "$director" 2> /dev/null && echo "-- killed the director $director"
        fi
        wait "$director"
        code=$?
        [ "$code" = 137 ] || break
    done
else
    (session < /dev/null)
    code=$?
fi
[ "$code" = 0 ] || { echo "the session ended with $code"; exit 1; }

# The promise: the name is gone, the tests pass, and they passed after each step.
git reset -q --hard main
sh tests/run.sh > /dev/null || { echo "the tests fail on main"; exit 1; }
if grep -rn fmt_amount lib bin; then echo "the old name is still there"; exit 1; fi
steps=0
for commit in $(git rev-list --first-parent --reverse "$first..main"); do
    git checkout -q "$commit" && sh tests/run.sh > /dev/null || { echo "$commit does not pass"; exit 1; }
    steps=$((steps + 1))
done
git checkout -q main
git log --first-parent --oneline "$first..main"
echo "green: $steps steps on main, each of them passes the tests"
