#!/bin/sh
# A coordinator without a model: it renames a function across a program with workers. It speaks the
# `lines` protocol on its standard input and output, and uses the coordinator's tools through the
# MCP server it is given, as any model would. It reads no file of the program and changes none.
#
# A model has its state in its conversation; this one keeps it in a file, so that it can resume after it
# was killed.
here=$(cd "$(dirname "$0")" && pwd)
old=fmt_amount
new=money_format
memory=${CCB_SCRATCHPAD%/*}/coordinator-memory

field() { awk -v key="$1" -f "$here/json.awk"; }
quote() {
    awk 'BEGIN { ORS = "" } NR > 1 { print "\\n" } { gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); gsub(/\t/, "\\t"); print }'
}
say() { printf '{"type":"text","text":"%s"}\n' "$(printf '%s' "$1" | quote)"; }
turn_over() { printf '{"type":"result","status":"completed","text":"%s"}\n' "$(printf '%s' "$1" | quote)"; }
remember() { printf '%s\n' "$1" >> "$memory"; }
recalls() { grep -qxF "$1" "$memory" 2> /dev/null; }

# --- tools -------------------------------------------------------------------------------------

pipes=$(mktemp -d) || exit 1
calls=0

connect() {
    mkfifo "$pipes/in" "$pipes/out" || exit 1
    "$1" mcp --role coordinator < "$pipes/in" > "$pipes/out" 2> /dev/null &
    server=$!
    exec 3> "$pipes/in" 4< "$pipes/out"
    rm -rf "$pipes"
    # It reads answers as JSON, which it has to ask for.
    printf '%s\n' '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"ccb/json":{}}},"clientInfo":{"name":"example","version":"1"}}}' \
        '{"jsonrpc":"2.0","method":"notifications/initialized"}' >&3
    trap 'exec 3>&-; kill "$server" 2> /dev/null' EXIT
}

# call TOOL ARGUMENTS: the answer is in $answer; false if it is an error.
call() {
    calls=$((calls + 1))
    printf '{"type":"tool","id":"%s","name":"%s","input":%s}\n' "$calls" "$1" "$2"
    printf '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s","arguments":%s}}\n' \
        "$calls" "$1" "$2" >&3
    while IFS= read -r answer <&4; do
        case $answer in *"\"id\":$calls,"* | *"\"id\":$calls}"*) break ;; esac
    done
    printf '{"type":"tool_result","id":"%s","output":"%s"}\n' "$calls" \
        "$(printf '%s\n' "$answer" | field text | quote)"
    case $answer in *'"isError":true'* | '' | *'"error":{'*) return 1 ;; esac
}

# worker NAME DESCRIPTION PROMPT
worker() {
    call Agent "{\"name\":\"$1\",\"description\":\"$2\",\"prompt\":\"$(printf '%s' "$3" | quote)\"}"
}

# The state of a worker, in $state: running, completed, failed, killed, lost, or nothing if there is none.
look_at() {
    state=
    call TaskOutput "{\"task_id\":\"$1\",\"block\":false}" || return 0
    state=$(printf '%s\n' "$answer" | sed 's/.*"task":{//' | field status)
}

# --- the plan ----------------------------------------------------------------------------------

# ask NAME DESCRIPTION PROMPT: true when the worker has done it; otherwise it works on it, or will.
ask() {
    recalls "$1 is done" && return 0
    look_at "$1"
    case $state in
        completed) remember "$1 is done"; return 0 ;;
        registered | starting | running | idle | ending) return 1 ;;
    esac
    # New, or it ended before it was done: then a fresh one.
    worker "$1" "$2" "$3"
    return 1
}

research() {
    ask uses-lib "find uses in lib" "We rename the function $old to $new. I need to know who uses it before I split the work.
Change nothing.
List uses of $old under lib in uses-lib.txt
Done when the file holds every line with its number; report them."
    lib=$?
    ask uses-bin "find uses in bin" "We rename the function $old to $new. I need to know whether the program itself uses it.
Change nothing.
List uses of $old under bin in uses-bin.txt
Done when the file holds every line with its number; report them."
    [ $? = 0 ] && [ "$lib" = 0 ]
}

look_at_board() {
    call TaskList '{}'
    board=$(printf '%s\n' "$answer" | field text)
}

# Steps that each leave the program working: the new name beside the old one, every module over to
# the new one, then the old one goes.
hand_out() {
    look_at_board
    step "Add $new to the money module" \
        "Add $new beside $old in lib/money.sh
Both names do the same afterwards; nothing else changes." \
        lib/money.sh "grep -q '^$new()' lib/money.sh && sh tests/run.sh" ""
    first=$id
    modules=
    for module in report invoice export; do
        step "Use $new in the $module module" \
            "Rename $old to $new in lib/$module.sh
Only calls of $old in that file change. The new name is there already." \
            "lib/$module.sh" "! grep -q $old lib/$module.sh && sh tests/run.sh" "\"$first\""
        modules="$modules${modules:+,}\"$id\""
    done
    step "Remove $old" \
        "Remove $old from lib/money.sh
Nothing calls it any more." \
        lib/money.sh "! grep -rq $old lib bin && sh tests/run.sh" "$modules"
}

# step SUBJECT DESCRIPTION PATH VERIFY BLOCKED_BY: puts it on the board unless it is there; its number
# is in $id.
step() {
    id=$(printf '%s\n' "$board" | sed -n "s/^#\([0-9]*\) .*$1.*/\1/p" | head -n 1)
    [ -n "$id" ] && return
    call TaskCreate "{\"subject\":\"$1\",\"description\":\"$(printf '%s' "$2" | quote)\",\"addBlockedBy\":[$5],\"metadata\":{\"ccb\":{\"paths\":[\"$3\"],\"verify\":\"$(printf '%s' "$4" | quote)\"}}}" || exit 1
    id=$(printf '%s\n' "$answer" | field text | sed -n 's/^Task #\([0-9]*\) created.*/\1/p')
}

implemented() {
    recalls "it is implemented" && return 0
    hand_out
    look_at_board
    [ "$(printf '%s\n' "$board" | grep -c '^#[0-9]* \[completed\]')" -ge 5 ] || return 1
    remember "it is implemented"
}

verified() {
    ask verify "verify the rename" "$old was renamed to $new in every module. You did not write that change; find out whether it is right.
Change nothing.
Run ! grep -rn $old lib bin && sh tests/run.sh
Done when the old name is nowhere and the tests pass; report what they printed."
}

go_on() {
    research || { turn_over "Workers are looking; I wait."; return; }
    implemented || { turn_over "The board is set; the workers work on it."; return; }
    verified || { turn_over "A fresh worker verifies it."; return; }
    turn_over "Done: $old is $new everywhere, the old name is gone, and a worker that did not write it ran the tests."
}

# --- the conversation --------------------------------------------------------------------------

IFS= read -r first_line || exit 1
connect "$(printf '%s\n' "$first_line" | field command)"
printf '{"type":"ready","session":"coordinator"}\n'
say "I let $old be renamed to $new."
go_on
while IFS= read -r line; do
    case $line in
        *'"type":"message"'*)
            printf '{"type":"accepted","id":"%s"}\n' "$(printf '%s\n' "$line" | field id)"
            go_on ;;
        *'"type":"stop"'*) exit 0 ;;
    esac
done
