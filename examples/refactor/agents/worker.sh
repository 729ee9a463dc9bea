#!/bin/sh
# A worker without a model. It speaks the `lines` protocol, and understands a few sentences:
#
#   Add NEW beside OLD in FILE        NEW takes over what OLD does; OLD calls NEW
#   Rename OLD to NEW in FILE
#   Remove OLD from FILE
#   List uses of NAME under DIR in NOTE       NOTE is a file in the scratchpad
#   Run COMMAND                       and report how that ended
here=$(cd "$(dirname "$0")" && pwd)

quote() {
    awk 'BEGIN { ORS = "" } NR > 1 { print "\\n" } { gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); gsub(/\t/, "\\t"); print }'
}
result() {
    error=
    [ "$1" = completed ] || error=',"error":"it did not work"'
    printf '{"type":"result","status":"%s","text":"%s"%s}\n' "$1" "$(printf '%s' "$2" | quote)" "$error"
}

# One sentence; prints the result.
carry_out() {
    set -f
    # Words, as they are.
    # shellcheck disable=SC2086
    set -- $1
    set +f
    case "$1 ${2-}" in
        "Add "*)
            new=$2 old=$4 file=$6
            grep -q "^$new()" "$file" && { echo "$new was there already"; return 0; }
            sed "s/^$old()/$new()/" "$file" > "$file.new" &&
                printf '\n# The old name, until everybody uses the new one.\n%s() {\n    %s "$@"\n}\n' "$old" "$new" >> "$file.new" &&
                mv "$file.new" "$file" && echo "$new is in $file, $old calls it" ;;
        "Rename "*)
            old=$2 new=$4 file=$6
            sed "s/$old/$new/g" "$file" > "$file.new" && mv "$file.new" "$file" &&
                echo "$(grep -c "$new" "$file") lines of $file use $new" ;;
        "Remove "*)
            old=$2 file=$4
            awk -v old="$old" '
                /^# The old name/ { next }
                $0 ~ "^" old "\\(\\)" { skip = 1 }
                !skip { lines[++n] = $0 }
                skip && /^}/ { skip = 0 }
                END { while (n && lines[n] == "") n--; for (i = 1; i <= n; i++) print lines[i] }
            ' "$file" > "$file.new" && mv "$file.new" "$file" && echo "$old is gone from $file" ;;
        "List uses")
            name=$4 dir=$6 note=$8
            grep -rn "$name" "$dir" > "$CCB_SCRATCHPAD/$note"
            echo "$(grep -c . "$CCB_SCRATCHPAD/$note") uses of $name under $dir:"
            cat "$CCB_SCRATCHPAD/$note" ;;
        "Run "*)
            shift
            sh -c "$*" 2>&1 ;;
    esac
}

IFS= read -r first || exit 1
printf '{"type":"ready","session":"worker-%s"}\n' "$$"
text=$(printf '%s\n' "$first" | awk -v key=text -f "$here/json.awk")
job=$(printf '%s\n' "$text" | grep -E '^(Add|Rename|Remove|List uses|Run) ' | head -n 1)
if [ -z "$job" ]; then
    result failed "no sentence in the prompt that I understand"
elif said=$(carry_out "$job"); then
    result completed "Done: $job
$said"
else
    result failed "Not done: $job
$said"
fi
# Its host closes the input at the end.
while IFS= read -r _; do :; done
