//! Completions and `ccb cd`, asked for as shells do.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use harness::{Workplace, path_with_ccb, write};
use serde_json::{Value, json};

use crate::CCB;

/// A workplace whose `ccb` can be found in a `PATH`.
struct Shell {
    place: Workplace,
    bin: tempfile::TempDir,
}

impl Shell {
    fn new() -> Self {
        let bin = path_with_ccb(CCB);
        Self {
            place: Workplace::new(CCB),
            bin,
        }
    }

    /// A `ccb` process in the repository, without a named list.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.place.home.command_without_list(args);
        command.current_dir(self.place.repo.main());
        command
    }

    /// Runs `ccb --json` with `args`, and expects success.
    fn ok(&self, args: &[&str]) -> Value {
        let output = self.command(&["--json"]).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The completions for `shell` at the end of `line`: values with their descriptions.
    fn offers(&self, shell: &str, line: &str) -> Vec<(String, String)> {
        let words: Vec<&str> = line.split(' ').collect();
        let mut command = self.command(&["--"]);
        command.args(&words).env("CCB_COMPLETE", shell);
        // Zsh passes the word's number, fish does not.
        command.env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
        assert!(output.status.success(), "{line}");
        let text = String::from_utf8(output.stdout).unwrap();
        let rows = text.lines().map(|line| {
            let (value, about) = line.split_once('\t').unwrap_or((line, ""));
            (value.to_owned(), about.to_owned())
        });
        rows.collect()
    }

    /// The values alone, without flags.
    fn values(&self, line: &str) -> Vec<String> {
        let offers = self.offers("fish", line).into_iter();
        let values = offers.map(|(value, _)| value);
        values.filter(|value| !value.starts_with('-')).collect()
    }

    /// Runs a script in bash, with `ccb` in the `PATH` and the set-up of the README.
    fn bash(&self, script: &str) -> String {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.bin.path().display());
        let set_up = self.command(&[]);
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--norc", "-c"])
            .arg(format!("eval \"$(ccb shell-init bash)\"\n{script}"))
            .env_clear()
            .envs(
                set_up
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("PATH", path)
            .current_dir(self.place.repo.main());
        let output = bash.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Asks for the completions of a line in bash's own way; one per line.
fn completed(words: &[&str], kind: u32) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let last = words.len() - 1;
    format!(
        "COMP_WORDS=({}) COMP_CWORD={last} COMP_TYPE={kind} COMP_KEY=9\n\
         _ccb_complete ccb '{}' '{}'\n\
         for one in \"${{COMPREPLY[@]}}\"; do printf '<%s>\\n' \"$one\"; done",
        quoted.join(" "),
        words[last],
        words[last - 1],
    )
}

fn board(shell: &Shell) {
    shell.ok(&["team", "create", "fixers", "-d", "make it pass"]);
    let create = |subject: &str| shell.ok(&["--team", "fixers", "task", "create", subject]);
    create("Write the parser");
    create("Fuzz the parser");
    create("rm -rf *; $(touch pwned) `id` \"quoted\" 'it'");
    shell.ok(&["--team", "fixers", "task", "done", "1"]);
}

#[test]
fn tasks_come_with_their_subjects_open_ones_first() {
    let shell = Shell::new();
    board(&shell);
    let offers = shell.offers("fish", "ccb --team fixers task show ");
    let tasks: Vec<&(String, String)> = offers
        .iter()
        .filter(|(value, _)| value.parse::<u32>().is_ok())
        .collect();
    let ids: Vec<&str> = tasks.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["2", "3", "1"]);
    assert_eq!(tasks[0].1, "Fuzz the parser");
    assert_eq!(
        shell.values("ccb --team fixers task block 2 "),
        ["2", "3", "1"]
    );
    assert_eq!(shell.values("ccb --team=fixers task claim 3"), ["3"]);
    // Another list has other tasks, and a missing one has none and is not made.
    assert_eq!(shell.values("ccb --list nosuch task show "), [""; 0]);
    assert!(!shell.place.home.path().join("tasks/nosuch").exists());
}

#[test]
fn a_team_may_be_called_like_a_command() {
    let shell = Shell::new();
    shell.ok(&["team", "create", "demo"]);
    shell.ok(&["--team", "demo", "task", "create", "Write the parser"]);
    assert_eq!(shell.values("ccb --team demo task show "), ["1"]);
    assert_eq!(shell.values("ccb --team demo"), ["demo"]);
    let zsh = shell.offers("zsh", "ccb --team demo task show ");
    assert_eq!(zsh[0].0, "1:Write the parser");
    let words = ["ccb", "--team", "=", "demo", "task", "show", "1"];
    assert_eq!(shell.bash(&completed(&words, 9)), "<1>\n");
}

#[test]
fn names_of_everything_are_known() {
    let shell = Shell::new();
    board(&shell);
    let place = &shell.place;
    shell.ok(&["team", "join", "fixers", "--as", "alice"]);
    shell.ok(&["worktree", "create", "fix/auth"]);
    shell.ok(&["worktree", "create", "gone"]);
    shell.ok(&["worktree", "remove", "gone"]);
    write(
        &place.home.path().join("ccb.json"),
        &json!({"runtimes": {"mine": {"kind": "lines", "command": ["x"]}}}).to_string(),
    );
    shell.ok(&[
        "agent",
        "spawn",
        "--runtime",
        "shell",
        "--name",
        "ann",
        "true",
    ]);

    assert_eq!(shell.values("ccb --team f"), ["fixers"]);
    assert_eq!(shell.values("ccb team show fix"), ["fixers"]);
    assert_eq!(shell.values("ccb worktree status "), ["fix/auth"]);
    assert_eq!(shell.values("ccb cd f"), ["fix/auth"]);
    assert_eq!(shell.values("ccb worktree undo "), ["gone"]);
    assert_eq!(shell.values("ccb worktree create f"), [""; 0]);
    assert_eq!(shell.values("ccb --team fixers mail send a"), ["alice"]);
    assert_eq!(shell.values("ccb agent spawn --runtime m"), ["mine"]);
    assert_eq!(shell.values("ccb --lead me"), ["me"]);
    assert_eq!(shell.values("ccb agent spawn --type Ex"), ["Explore"]);
    assert_eq!(shell.values("ccb agent logs an"), ["ann"]);
    write(
        &place.repo.main().join("plan.yaml"),
        "tasks: [{id: lint, run: 'true'}, {id: docs, run: 'true'}]\n",
    );
    assert_eq!(
        shell.values("ccb fanout plan.yaml --only "),
        ["lint", "docs"]
    );
    let agents = shell.values("ccb agent logs a");
    assert_eq!(agents.len(), 2, "its name and its id: {agents:?}");
    // Subcommands and flags are still there.
    assert!(shell.values("ccb ta").contains(&"task".to_owned()));
    let flags = shell.offers("fish", "ccb task show --js");
    assert_eq!(flags[0].0, "--json");
}

#[test]
fn hostile_names_and_files_are_harmless() {
    let shell = Shell::new();
    let place = &shell.place;
    shell.ok(&["team", "create", "fixers"]);
    let teams = place.home.path().join("teams");
    for name in ["a b", "x\ny", "$(touch pwned)", "'", "\u{1b}[31m", "-rf"] {
        std::fs::create_dir_all(teams.join(name)).unwrap();
        std::fs::write(teams.join(name).join("config.json"), "{}").unwrap();
    }
    // A roster that another tool wrote.
    let roster = teams.join("fixers/config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&roster).unwrap()).unwrap();
    let members = config["members"].as_array_mut().unwrap();
    for name in ["two words", "new\nline", "`id`", "\u{202e}reversed"] {
        let mut member = members[0].clone();
        member["name"] = name.into();
        member["agentId"] = format!("{name}@fixers").into();
        members.push(member);
    }
    std::fs::write(&roster, config.to_string()).unwrap();
    let tasks = place.home.path().join("tasks/fixers");
    std::fs::create_dir_all(&tasks).unwrap();
    let task = json!({"id": "7", "subject": "a\tb\nc\u{1b}]0;x\u{7}\u{202e}", "description": "",
        "status": "pending", "blocks": [], "blockedBy": []});
    std::fs::write(tasks.join("7.json"), task.to_string()).unwrap();
    std::fs::write(tasks.join("8.json"), "{half a task").unwrap();
    std::fs::write(tasks.join("$(touch pwned).json"), "{}").unwrap();

    assert_eq!(shell.values("ccb --team "), ["fixers"]);
    assert_eq!(shell.values("ccb --team fixers mail send "), ["team-lead"]);
    for kind in ["fish", "zsh", "elvish", "bash"] {
        let offers = shell.offers(kind, "ccb --team fixers task show 7");
        let text = format!("{offers:?}");
        assert!(text.contains('7') && !text.contains("pwned"), "{text}");
        assert!(
            !text.contains("\\u{1b}") && !text.contains("202e"),
            "{text}"
        );
    }
    let started = Instant::now();
    let with_damage = shell.values("ccb --team fixers task show ");
    assert_eq!(with_damage, ["7", "8"]);
    // A damaged file is not waited for, unlike in the commands.
    assert!(started.elapsed() < Duration::from_millis(900));
    assert!(!place.repo.main().join("pwned").exists());
}

#[test]
fn no_error_is_ever_shown() {
    let shell = Shell::new();
    let place = &shell.place;
    write(&place.home.path().join("ccb.json"), "{broken");
    assert_eq!(shell.values("ccb task show "), [""; 0]);
    assert_eq!(shell.values("ccb --team ../../etc task show "), [""; 0]);
    assert_eq!(shell.values("ccb -C /nowhere/at/all task show "), [""; 0]);
    shell.offers("fish", "ccb --home /dev/null task show ");
    // An unknown shell is refused without a word.
    let mut command = shell.command(&["--", "ccb", ""]);
    let output = command.env("CCB_COMPLETE", "nosuch").output().unwrap();
    assert!(!output.status.success());
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
}

#[test]
fn a_locked_board_is_not_waited_for() {
    let shell = Shell::new();
    board(&shell);
    let lock = shell.place.home.path().join("tasks/fixers/.lock");
    let file = std::fs::File::options()
        .create(true)
        .append(true)
        .open(&lock)
        .unwrap();
    file.lock().unwrap();
    let lock_dir = shell.place.home.path().join("tasks/fixers/.lock.lock");
    std::fs::create_dir_all(lock_dir).unwrap();
    assert_eq!(
        shell.values("ccb --team fixers task show "),
        ["2", "3", "1"]
    );
}

#[test]
fn bash_completes_and_lists_with_descriptions() {
    let shell = Shell::new();
    board(&shell);
    let words = ["ccb", "--team", "fixers", "task", "claim", ""];
    let inserted = shell.bash(&completed(&words, 9));
    assert!(inserted.starts_with("<2>\n<3>\n<1>\n"), "{inserted}");
    let listed = shell.bash(&completed(&words, 63));
    assert!(listed.contains("  (Fuzz the parser)>"), "{listed}");
    assert!(listed.contains("$(touch pwned)"), "as text: {listed}");
    // One is left: it is inserted without its description.
    let one = shell.bash(&completed(
        &["ccb", "--team", "fixers", "task", "claim", "3"],
        63,
    ));
    assert_eq!(one, "<3>\n");
    let split = ["ccb", "--team", "=", "fi"];
    assert_eq!(shell.bash(&completed(&split, 9)), "<fixers>\n");
    assert!(!shell.place.repo.main().join("pwned").exists());
}

#[test]
fn cd_goes_into_a_worktree_and_back() {
    let shell = Shell::new();
    let place = &shell.place;
    let main = place.repo.main().canonicalize().unwrap();
    let made = shell.ok(&["worktree", "create", "fix/auth"]);
    let tree = made["worktree"]["path"].as_str().unwrap().to_owned();
    let went = shell.bash("ccb cd fix/auth && pwd && ccb cd && pwd && ccb cd - > /dev/null && pwd");
    let dirs: Vec<&Path> = went.lines().map(Path::new).collect();
    let real = |path: &Path| path.canonicalize().unwrap();
    let dirs: Vec<_> = dirs.into_iter().map(real).collect();
    assert_eq!(
        dirs,
        [real(tree.as_ref()), main.clone(), real(tree.as_ref())]
    );
    // Everything else goes through, with its exit code.
    let rest =
        shell.bash("ccb task show 99 2> /dev/null; echo $?; ccb cd nosuch 2>&1; echo $?; pwd");
    assert!(rest.starts_with("3\n"), "{rest}");
    assert!(rest.contains("there is no worktree \"nosuch\""), "{rest}");
    assert!(
        rest.ends_with(&format!("3\n{}\n", main.display())),
        "{rest}"
    );
    assert!(shell.bash("ccb cd --help").contains("Usage: ccb cd"));
    // By its task; and without the function an explanation.
    shell.ok(&["task", "create", "x"]);
    shell.ok(&["worktree", "bind", "fix/auth", "1"]);
    let by_task = shell.ok(&["cd", "1"]);
    assert_eq!(by_task["directory"], tree.as_str());
    let error = shell.command(&["cd", "fix/auth"]).output().unwrap();
    assert_eq!(error.status.code(), Some(2));
    let text = String::from_utf8(error.stderr).unwrap();
    assert!(
        text.contains("shell-init bash") && text.contains(&tree),
        "{text}"
    );
}

#[test]
fn a_long_board_is_answered_quickly() {
    let shell = Shell::new();
    let place = &shell.place;
    let tasks = place.home.path().join("tasks/big");
    std::fs::create_dir_all(&tasks).unwrap();
    for id in 1..=5000 {
        let task = json!({"id": id.to_string(), "subject": format!("task {id}"), "description": "",
            "status": "pending", "blocks": [], "blockedBy": []});
        std::fs::write(tasks.join(format!("{id}.json")), task.to_string()).unwrap();
    }
    let offers = shell.values("ccb --list big task show ");
    assert!(offers.contains(&"5000".to_owned()), "the newest are there");
    assert!(offers.len() <= 500, "{}", offers.len());
    let best = |list: &str| {
        let ask = |_| {
            let started = Instant::now();
            shell.values(&format!("ccb --list {list} task show "));
            started.elapsed()
        };
        (0..8).map(ask).min().unwrap()
    };
    // Compared with an empty board, because other tests run at the same time.
    let (big, empty) = (best("big"), best("nothing"));
    assert!(
        big < empty * 3 + Duration::from_millis(60),
        "{big:?}, {empty:?}"
    );
}
