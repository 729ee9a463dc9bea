# Amounts of money. They are whole cents everywhere but on paper.

# Prints an amount of cents: 123456 becomes 1,234.56.
fmt_amount() {
    printf '%s\n' "$1" | awk '{
        sign = ""
        if ($1 < 0) { sign = "-"; $1 = -$1 }
        whole = int($1 / 100) ""
        text = ""
        while (length(whole) > 3) {
            text = "," substr(whole, length(whole) - 2) text
            whole = substr(whole, 1, length(whole) - 3)
        }
        printf "%s%s%s.%02d\n", sign, whole, text, $1 % 100
    }'
}

# Prints the sum of the amounts on standard input, one per line.
sum_amounts() {
    awk '{ sum += $1 } END { printf "%d\n", sum }'
}
