# A report: what was booked under each name, and the sum.

print_report() {
    while IFS=';' read -r name cents; do
        printf '%-12s %12s\n' "$name" "$(fmt_amount "$cents")"
    done < "$1"
    total=$(cut -d ';' -f 2 "$1" | sum_amounts)
    printf '%-12s %12s\n' total "$(fmt_amount "$total")"
}
