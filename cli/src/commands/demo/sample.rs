//! A small project with defects, checks that find them, and a plan that repairs them.

/// The files of the project: each module has one defect, each check is a program that finds it.
pub(super) const FILES: &[(&str, &str)] = &[
    (
        "lib/total.awk",
        "# The sum of the amounts in the second column.\nBEGIN { sum = 1 }\n{ sum += $2 }\nEND { printf \"%.2f\\n\", sum }\n",
    ),
    (
        "checks/total.sh",
        "printf 'tea 2.50\\ncake 3.25\\n' | awk -f lib/total.awk | grep -qx 5.75\n",
    ),
    (
        "lib/discount.awk",
        "# Ten percent off from 100 on.\n{ if ($1 > 100) print $1 * 0.9; else print $1 }\n",
    ),
    (
        "checks/discount.sh",
        "test \"$(printf '99\\n100\\n200\\n' | awk -f lib/discount.awk | tr '\\n' ' ')\" = '99 90 180 '\n",
    ),
    (
        "lib/leap.awk",
        "# Whether a year has 366 days.\n{ print ($1 % 4 == 0) ? \"yes\" : \"no\" }\n",
    ),
    (
        "checks/leap.sh",
        "test \"$(printf '1900\\n2000\\n2023\\n2024\\n' | awk -f lib/leap.awk | tr '\\n' ' ')\" = 'no yes no yes '\n",
    ),
    (
        "lib/slug.sh",
        "# A title as part of an address.\nprintf '%s' \"$1\" | tr -s ' ' '-'\n",
    ),
    (
        "checks/slug.sh",
        "test \"$(sh lib/slug.sh 'Tea and  Cake')\" = tea-and-cake\n",
    ),
    (
        "lib/median.sh",
        "# The middle one of an odd number of whole numbers, one per line.\nsort | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'\n",
    ),
    (
        "checks/median.sh",
        "test \"$(printf '10\\n9\\n200\\n1\\n30\\n' | sh lib/median.sh)\" = 10\n",
    ),
    (
        "lib/csv.awk",
        "# The number of fields of each line; a comma in quotes is part of a field.\nBEGIN { FS = \",\" }\n{ print NF }\n",
    ),
    (
        "checks/csv.sh",
        "test \"$(printf 'a,b\\n\"x,y\",z\\n' | awk -f lib/csv.awk | tr '\\n' ' ')\" = '2 2 '\n",
    ),
    (
        "bin/invoice.sh",
        "# The amount to pay for a list of things.\nawk -f lib/total.awk | awk -f lib/discount.awk | sed 's/^/EUR /'\n",
    ),
    (
        "checks/invoice.sh",
        "test \"$(printf 'desk 150\\nlamp 50\\n' | sh bin/invoice.sh)\" = 'due: 180 EUR'\n",
    ),
    (
        "check.sh",
        "# Every check; says which fail.\nfailed=0\nfor check in checks/*.sh; do\n  sh \"$check\" || { echo \"red: $check\"; failed=$((failed + 1)); }\ndone\ntest $failed -eq 0 && echo 'all green'\n",
    ),
];

/// The plan. `@PAUSE@` stands for the seconds that an agent thinks.
pub(super) const PLAN: &str = r#"v: 1
name: demo
defaults:
  retries: 4
  timeout: 60s
tasks:
  - id: total
    subject: The sum starts at nothing
    run: sleep @PAUSE@; sed -i.bak 's/sum = 1/sum = 0/' lib/total.awk && rm lib/*.bak
    verify: sh checks/total.sh
    paths: [lib/total.awk]
  - id: discount
    subject: The discount includes 100
    run: sleep @PAUSE@; sed -i.bak 's/> 100/>= 100/' lib/discount.awk && rm lib/*.bak
    verify: sh checks/discount.sh
    paths: [lib/discount.awk]
  - id: leap
    subject: Centuries are special
    run: >-
      sleep @PAUSE@;
      sed -i.bak 's/(.1 % 4 == 0)/($1 % 4 == 0 \&\& $1 % 100 != 0 || $1 % 400 == 0)/' lib/leap.awk && rm lib/*.bak
    verify: sh checks/leap.sh
    paths: [lib/leap.awk]
  - id: slug
    subject: Addresses are in lower case (finds out at the second try)
    run: |
      sleep @PAUSE@
      case "$CCB_LAST_FAILURE" in
        *"slug.sh"*) sed -i.bak "s/' ' '-'/' ' '-' | tr A-Z a-z/" lib/slug.sh && rm lib/*.bak ;;
        *) echo '# Looks right to me.' >> lib/slug.sh ;;
      esac
    verify: sh checks/slug.sh
    paths: [lib/slug.sh]
  - id: median
    subject: Numbers are sorted as numbers
    run: sleep @PAUSE@; sed -i.bak 's/^sort /sort -n /' lib/median.sh && rm lib/*.bak
    verify: sh checks/median.sh
    paths: [lib/median.sh]
  - id: csv
    subject: A comma in quotes separates nothing
    run: |
      sleep @PAUSE@
      printf '%s\n' '# The number of fields of each line; a comma in quotes is part of a field.' \
        '{ gsub(/"[^"]*"/, "q"); print split($0, fields, ",") }' > lib/csv.awk
    verify: sh checks/csv.sh
    paths: [lib/csv.awk]
  - id: invoice
    subject: Say what is due, once sum and discount are right
    dependsOn: [total, discount]
    run: >-
      sleep @PAUSE@;
      sed -i.bak "s|sed 's/^/EUR /'|sed 's/.*/due: \& EUR/'|" bin/invoice.sh && rm bin/*.bak
    verify: sh checks/invoice.sh
    paths: [bin/invoice.sh]
  - id: docs
    subject: Write down what is there, once all of it works
    dependsOn: [total, discount, leap, slug, median, csv, invoice]
    run: sleep @PAUSE@; mkdir -p docs && for f in lib/* bin/*; do echo "$f $(sed -n 1p "$f")"; done > docs/modules
    verify: sh check.sh && test "$(wc -l < docs/modules)" -eq 7
    paths: [docs/modules]
"#;
