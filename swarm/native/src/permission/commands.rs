//! The effects of commands, as far as their words show them.

use super::shell_line::{Simple, commands};

/// Commands that only look, whatever their arguments.
const LOOKS: [&str; 48] = [
    "[",
    "basename",
    "cat",
    "cd",
    "cksum",
    "cmp",
    "comm",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "expr",
    "false",
    "fgrep",
    "file",
    "free",
    "grep",
    "head",
    "hexdump",
    "id",
    "jq",
    "ls",
    "md5sum",
    "nl",
    "nproc",
    "od",
    "paste",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "seq",
    "sha256sum",
    "sleep",
    "stat",
    "strings",
    "tac",
    "tail",
    "test",
    "tr",
    "true",
    "wc",
];
/// Commands that also only read, except with these options.
const LOOKS_BUT: [(&str, &[&str]); 5] = [
    ("sort", &["-o", "--output", "--compress-program", "-T"]),
    ("tree", &["-o"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("which", &[]),
    ("uname", &[]),
];
/// The options that make `find` change something.
const FIND_ACTS: [&str; 9] = [
    "-delete", "-exec", "-execdir", "-fls", "-fprint", "-fprint0", "-fprintf", "-ok", "-okdir",
];
/// The subcommands of git that only read.
const GIT_LOOKS: [&str; 16] = [
    "blame",
    "cat-file",
    "describe",
    "diff",
    "diff-tree",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "status",
];
/// Options of those by which they run or write something.
const GIT_ACTS: [&str; 7] = [
    "--ext-diff",
    "--filters",
    "--open-files-in-pager",
    "--output",
    "--textconv",
    "-O",
    "--exec-path",
];
/// Commands that reach other machines.
const NETWORK: [&str; 22] = [
    "aws",
    "az",
    "curl",
    "ftp",
    "gcloud",
    "gh",
    "glab",
    "kubectl",
    "nc",
    "ncat",
    "netcat",
    "rclone",
    "rsync",
    "scp",
    "sftp",
    "socat",
    "ssh",
    "telnet",
    "terraform",
    "wget",
    "heroku",
    "vercel",
];
/// Commands that have others do something outside the confinement.
const SERVANTS: [&str; 19] = [
    "at",
    "batch",
    "busctl",
    "crontab",
    "dbus-send",
    "docker",
    "doas",
    "gdbus",
    "machinectl",
    "nerdctl",
    "pkexec",
    "podman",
    "runuser",
    "screen",
    "su",
    "sudo",
    "systemctl",
    "systemd-run",
    "tmux",
];
/// The commands that publish something.
const PUBLISHES: [(&str, &str); 8] = [
    ("cargo", "publish"),
    ("gem", "push"),
    ("git", "push"),
    ("npm", "publish"),
    ("pnpm", "publish"),
    ("poetry", "publish"),
    ("twine", "upload"),
    ("yarn", "publish"),
];

/// True if the line certainly changes nothing.
pub(super) fn only_looks(line: &str) -> bool {
    commands(line).is_some_and(|all| !all.is_empty() && all.iter().all(looks))
}

/// True if one command of a line certainly changes nothing.
pub(super) fn looks(command: &Simple) -> bool {
    let Some((name, rest)) = command.words.split_first() else {
        return false;
    };
    if command.writes {
        return false;
    }
    let has = |options: &[&str]| {
        let is = |word: &String| options.iter().any(|option| word.starts_with(option));
        rest.iter().any(is)
    };
    match name.as_str() {
        "find" => !rest.iter().any(|word| FIND_ACTS.contains(&word.as_str())),
        "uniq" => rest.iter().filter(|word| !word.starts_with('-')).count() < 2,
        "git" => git_looks(rest),
        name if LOOKS.contains(&name) => true,
        name => {
            let known = LOOKS_BUT.iter().find(|(known, _)| *known == name);
            known.is_some_and(|(_, options)| !has(options))
        }
    }
}

fn git_looks(words: &[String]) -> bool {
    let Some((verb, rest)) = words.split_first() else {
        return false;
    };
    let acts = |word: &String| GIT_ACTS.iter().any(|option| word.starts_with(option));
    let only = |allowed: &[&str]| rest.iter().all(|word| allowed.contains(&word.as_str()));
    match verb.as_str() {
        "branch" => only(&["-a", "-r", "-v", "-vv", "--all", "--list", "--show-current"]),
        "remote" => only(&["-v"]),
        "tag" => only(&["-l", "--list"]),
        "stash" | "worktree" => rest.len() == 1 && rest[0] == "list",
        verb => GIT_LOOKS.contains(&verb) && !rest.iter().any(acts),
    }
}

/// True if a line has words that stand for effects outside the confinement: other machines where
/// there is a network, and services that act for any caller. A guess on the safe side; it decides
/// which calls need a question, not which are possible.
pub(super) fn reaches_out(line: &str, network: bool) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let words: Vec<&str> = line
        .split(|c| !plain(c))
        .filter(|it| !it.is_empty())
        .collect();
    let any = |names: &[&str]| words.iter().any(|word| names.contains(word));
    let publishes =
        |(program, verb): &(&str, &str)| words.contains(program) && words.contains(verb);
    any(&SERVANTS) || (network && (any(&NETWORK) || PUBLISHES.iter().any(publishes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_look_are_told_from_those_that_act() {
        for line in [
            "ls -la && cat a | head -3",
            "git log --oneline -5 | wc -l",
            "git diff HEAD~1 2>/dev/null",
            "find . -name '*.rs'",
            "grep -rn 'a; rm b' src",
            "sort a | uniq -c",
            "git branch --show-current",
            "git stash list",
            "cd src; pwd",
        ] {
            assert!(only_looks(line), "{line}");
        }
        for line in [
            "rm a",
            "ls; rm a",
            "cat a > b",
            "echo $(rm a)",
            "find . -delete",
            "find . -exec rm {} +",
            "sort -o a b",
            "uniq a b",
            "git diff --output=a",
            "git -c core.pager=x log",
            "git -C .. status",
            "git branch new",
            "git stash",
            "git push",
            "git grep -Ovi x",
            "FOO=1 ls",
            "env ls",
            "xargs rm",
            "rg --pre ./x y",
            "tree -o x",
            "",
        ] {
            assert!(!only_looks(line), "{line}");
        }
    }

    #[test]
    fn words_that_reach_out_are_noticed_anywhere() {
        for line in [
            "curl x",
            "echo $(curl x)",
            "/usr/bin/curl x",
            "git -C a push",
            "sudo ls",
            "a;ssh b",
        ] {
            assert!(reaches_out(line, true), "{line}");
        }
        for line in ["cargo test", "git commit -m 'x'", "make", "./curly"] {
            assert!(!reaches_out(line, true), "{line}");
        }
        assert!(!reaches_out("curl x", false));
        assert!(reaches_out("docker run x", false));
    }
}
