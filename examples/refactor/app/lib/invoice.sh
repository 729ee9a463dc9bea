# An invoice for one name.

print_invoice() {
    cents=$(awk -F ';' -v name="$2" '$1 == name { print $2 }' "$1" | sum_amounts)
    printf 'Invoice for %s\n' "$2"
    printf 'Amount due: %s\n' "$(fmt_amount "$cents")"
}
