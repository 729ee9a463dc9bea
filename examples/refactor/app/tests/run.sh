#!/bin/sh
# Runs the program and compares what it prints. Exit code 0 if everything is as it should be.
cd "$(dirname "$0")/.." || exit 2
failed=0

check() {
    name=$1 expected=$2
    shift 2
    if ! got=$("$@" 2>&1); then
        echo "FAIL $name: it ended with an error: $got"
        failed=1
    elif [ "$got" != "$expected" ]; then
        printf 'FAIL %s\n--- expected\n%s\n--- got\n%s\n' "$name" "$expected" "$got"
        failed=1
    else
        echo "ok   $name"
    fi
}

check report "$(printf '%s\n' \
    'rent             1,200.00' \
    'food               456.78' \
    'rent               -20.50' \
    'travel       1,234,567.89' \
    'total        1,236,204.17')" sh bin/ledger report tests/books.txt
check invoice "$(printf 'Invoice for rent\nAmount due: 1,179.50')" \
    sh bin/ledger invoice rent tests/books.txt
check export "$(printf '%s\n' name,amount \
    'rent,"1,200.00"' 'food,"456.78"' 'rent,"-20.50"' 'travel,"1,234,567.89"')" \
    sh bin/ledger export tests/books.txt

# A function that is not there gives an empty text in the middle of a line, so look for it.
for file in lib/*.sh; do
    for name in $(grep -o '\$([a-z_]* ' "$file" | tr -d '$( '); do
        case $name in awk|cut|printf) continue ;; esac
        grep -q "^$name()" lib/*.sh || { echo "FAIL $file calls $name, which no module defines"; failed=1; }
    done
done
exit $failed
