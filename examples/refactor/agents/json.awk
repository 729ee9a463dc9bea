# Prints the text under KEY in the JSON object on standard input: awk -v key=KEY -f json.awk
{
    mark = "\"" key "\":\""
    at = index($0, mark)
    if (!at) exit 1
    rest = substr($0, at + length(mark))
    text = ""
    while (rest != "") {
        c = substr(rest, 1, 1)
        if (c == "\"") break
        if (c != "\\") { text = text c; rest = substr(rest, 2); continue }
        c = substr(rest, 2, 1)
        rest = substr(rest, 3)
        if (c == "n") text = text "\n"
        else if (c == "t") text = text "\t"
        else if (c == "r") text = text "\r"
        else if (c == "u") { text = text "?"; rest = substr(rest, 5) }
        else text = text c
    }
    print text
    exit
}
