# The books as CSV, for other programs.

print_export() {
    printf 'name,amount\n'
    while IFS=';' read -r name cents; do
        printf '%s,"%s"\n' "$name" "$(fmt_amount "$cents")"
    done < "$1"
}
