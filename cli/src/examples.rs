//! Examples for help pages, the manual and docs/commands.md. One test checks that each works as a
//! command line.

use clap::Command;

/// A command line, and what it does.
pub(crate) type Example = (&'static str, &'static str);

/// The examples of each command that people use every day.
const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "",
        &[
            ("ccb demo", "see it work: no key, no network"),
            (
                "ccb --team fixers 'make the test suite pass'",
                "start a session: a lead, teammates, a board",
            ),
            ("ccb --team fixers", "resume that session, or follow it"),
            (
                "ccb --coordinator 'split the auth module'",
                "one model plans, workers do the work",
            ),
            ("ccb fanout plan.yaml", "run a plan of many tasks"),
            ("ccb status", "what runs, and what needs you"),
            ("ccb top", "the same, live, with keys to steer it"),
        ],
    ),
    (
        "top",
        &[
            (
                "ccb top",
                "watch and steer everything that runs in this repository",
            ),
            ("ccb top --team fixers", "one team only"),
        ],
    ),
    (
        "task",
        &[
            ("ccb task create 'Fix the parser'", "add a task"),
            (
                "ccb task next --as alice",
                "claim the best task that is ready",
            ),
            ("ccb task done 1 --as alice", "complete it"),
        ],
    ),
    (
        "task create",
        &[
            (
                "ccb task create 'Fix the parser' -d 'It drops the last line'",
                "a task for a person or a model",
            ),
            (
                "ccb --team fixers task create 'Format' --run 'make fmt' --verify 'make check-fmt'",
                "a task that a command does, with its check",
            ),
            (
                "ccb task create 'Release notes' --blocked-by 1 --blocked-by 2",
                "a task that waits for two others",
            ),
            (
                "ccb task create --from tasks.jsonl",
                "many tasks, all or none",
            ),
        ],
    ),
    (
        "task list",
        &[
            ("ccb task list --ready", "what can be claimed now"),
            (
                "ccb --team fixers task list --owner mate-1",
                "what one agent has",
            ),
            ("ccb --json task list", "for programs"),
        ],
    ),
    (
        "task show",
        &[(
            "ccb --team fixers task show 3",
            "attempts, check, result, and why it is parked",
        )],
    ),
    (
        "task update",
        &[
            ("ccb task update 3 --status pending", "retry a parked task"),
            ("ccb task update 3 --verify 'make test'", "change its check"),
            ("ccb task update 3 --owner bob", "assign it"),
        ],
    ),
    (
        "task done",
        &[(
            "ccb task done 3 --as alice --verify",
            "complete it, if its check passes",
        )],
    ),
    (
        "task claim",
        &[(
            "ccb task claim 3 --as alice --lease 10m",
            "claim it for ten minutes",
        )],
    ),
    (
        "task watch",
        &[(
            "ccb --json task watch --since 0",
            "every change there ever was, then new ones",
        )],
    ),
    (
        "team",
        &[
            (
                "ccb team create fixers -d 'make the tests pass'",
                "create a team for this repository",
            ),
            ("ccb team join fixers --as alice", "become a member"),
            ("ccb team show fixers", "members, and who is alive"),
        ],
    ),
    (
        "mail",
        &[
            (
                "ccb --team fixers mail send bob 'The parser is yours'",
                "write to a member",
            ),
            ("ccb --team fixers mail read --as bob", "read what waits"),
            (
                "ccb --team fixers mail ack 2 --as bob",
                "say that everything up to 2 is dealt with",
            ),
        ],
    ),
    (
        "mail send",
        &[
            (
                "ccb --team fixers mail send bob 'The parser is yours' --as team-lead",
                "as somebody else",
            ),
            (
                "ccb --team fixers mail send '*' 'Stop, main is red' --priority now",
                "to everyone, at once",
            ),
            (
                "git log -5 | ccb --team fixers mail send bob -",
                "from standard input",
            ),
        ],
    ),
    (
        "mail approve",
        &[
            (
                "ccb --team fixers mail requests",
                "what waits for an answer",
            ),
            (
                "ccb --team fixers mail approve 0198c7c4-2f3e-7d3f-9d0e-0123456789ab",
                "say yes",
            ),
        ],
    ),
    (
        "worktree",
        &[
            (
                "ccb worktree create fix/auth",
                "open a worktree, creating it if needed",
            ),
            (
                "ccb worktree run fix/auth -- make test",
                "run a command in it",
            ),
            (
                "ccb worktree merge fix/auth --check 'make test'",
                "land it, if the check passes",
            ),
        ],
    ),
    (
        "worktree create",
        &[
            ("ccb worktree create fix/auth --task 3", "for a task"),
            ("ccb worktree create hotfix --base v1.2", "from a tag"),
        ],
    ),
    (
        "worktree remove",
        &[
            (
                "ccb worktree remove fix/auth --dry-run",
                "say what would happen",
            ),
            ("ccb worktree undo fix/auth", "bring it back"),
        ],
    ),
    (
        "worktree merge",
        &[
            (
                "ccb worktree merge fix/auth --dry-run",
                "would it conflict?",
            ),
            (
                "ccb worktree merge fix/auth --strategy squash -m 'Fix the login'",
                "as one commit",
            ),
        ],
    ),
    (
        "agent",
        &[
            (
                "ccb agent spawn 'fix the typo in README.md'",
                "start an agent and wait for its result",
            ),
            ("ccb agent list --alive", "who runs"),
            ("ccb agent logs -f mate-1", "follow what one does"),
        ],
    ),
    (
        "agent spawn",
        &[
            (
                "ccb agent spawn --runtime shell --isolation worktree 'make lint-fix'",
                "run a command in a worktree",
            ),
            (
                "ccb agent spawn --task 3 --background",
                "do a task of the board",
            ),
            (
                "ccb --team fixers agent spawn --name ann --type reviewer 'review main'",
                "start a teammate",
            ),
        ],
    ),
    (
        "agent send",
        &[(
            "ccb agent send ann 'also look at the tests'",
            "a finished agent resumes with it",
        )],
    ),
    (
        "agent output",
        &[("ccb agent output ann --timeout 10m", "wait for its result")],
    ),
    (
        "fanout",
        &[
            ("ccb fanout init", "write an example plan"),
            (
                "ccb fanout fanout.yaml --dry-run",
                "show the tasks, run nothing",
            ),
            (
                "ccb fanout fanout.yaml --land merge",
                "run it, land all proven results on one branch",
            ),
            ("ccb fanout apply ccb-out", "apply its patches here"),
        ],
    ),
    (
        "worker",
        &[
            (
                "ccb worker --board postgres://ccb@db/work --repo git@host:app.git",
                "clone it, and work on the repository's tasks until stopped",
            ),
            (
                "ccb worker --team fixers --slots 32 --label gpu --into main",
                "also tasks that need a GPU; land on main (board in $CCB_BOARD)",
            ),
            (
                "ccb worker --team fixers --until-done",
                "help in a CI job, and end with the board's last task",
            ),
        ],
    ),
    (
        "mcp",
        &[(
            "claude mcp add ccb -- ccb --team fixers mcp --role lead",
            "give Claude Code the tools of a lead",
        )],
    ),
    (
        "clean",
        &[
            ("ccb clean --dry-run", "say what would be removed"),
            ("ccb clean", "remove what ccb left in this repository"),
        ],
    ),
    (
        "doctor",
        &[
            ("ccb doctor", "look, change nothing"),
            (
                "ccb doctor --fix",
                "repair what can be repaired without losing anything",
            ),
            (
                "ccb doctor --probe",
                "ask each provider's model for one word",
            ),
        ],
    ),
    (
        "trust",
        &[
            ("ccb trust --show", "what this repository wants to run"),
            ("ccb trust", "allow it as it is now"),
        ],
    ),
    (
        "demo",
        &[
            ("ccb demo --slow", "slow enough to watch"),
            (
                "ccb demo --chaos",
                "ccb and agents are killed on the way; it still ends green",
            ),
        ],
    ),
    (
        "cd",
        &[
            ("ccb cd fix/auth", "change into a worktree"),
            ("ccb cd", "back to the main worktree"),
            ("ccb cd -", "back to where you were"),
        ],
    ),
    (
        "shell-init",
        &[
            ("eval \"$(ccb shell-init bash)\"", "in ~/.bashrc"),
            ("eval \"$(ccb shell-init zsh)\"", "in ~/.zshrc"),
            (
                "ccb shell-init fish | source",
                "in ~/.config/fish/config.fish",
            ),
        ],
    ),
    (
        "completions",
        &[("source <(ccb completions bash)", "in ~/.bashrc")],
    ),
    (
        "man",
        &[
            ("ccb man | man -l -", "read it"),
            (
                "ccb man --out ~/.local/share/man/man1",
                "install a page for every command",
            ),
        ],
    ),
    (
        "diff",
        &[
            ("ccb diff", "what has changed and not landed"),
            ("ccb --team fixers diff 3", "what was done for task 3"),
            ("ccb diff mate-1 --stat", "what mate-1 has changed so far"),
        ],
    ),
    (
        "report",
        &[
            ("ccb report", "how this team's run went, or the last one"),
            (
                "ccb --team fixers report --html report.html",
                "all of it as one file for a browser",
            ),
            (
                "ccb report fixers-20261117-133122481 --json",
                "one that `ccb runs` lists, for programs",
            ),
        ],
    ),
    (
        "web",
        &[
            ("ccb web", "open the page in your browser"),
            (
                "ccb web --no-open --listen 127.0.0.1:0",
                "only print its address, on any free port",
            ),
            (
                "ccb web --token-file token --new-token",
                "make a token for other machines and for programs",
            ),
        ],
    ),
    (
        "runs",
        &[
            ("ccb runs", "what has ended in this repository"),
            ("ccb runs --all -n 0", "everything that is kept"),
        ],
    ),
    (
        "land",
        &[
            (
                "ccb --team fixers land 3",
                "the work on task 3, onto your branch",
            ),
            (
                "ccb --team fixers land --all --dry-run",
                "what would land, and what would conflict",
            ),
            (
                "ccb --team fixers land 1 2 --strategy squash",
                "one commit for each task",
            ),
        ],
    ),
    (
        "reject",
        &[
            (
                "ccb --team fixers reject 3 --feedback 'keep the old name as an alias'",
                "send the result of task 3 back",
            ),
            ("ccb --team fixers", "a session works on it again"),
        ],
    ),
    (
        "undo",
        &[
            ("ccb undo --show", "what has landed, newest first"),
            (
                "ccb --team fixers undo 3",
                "take the work on task 3 off the branch",
            ),
            ("ccb undo L7 --dry-run", "how landing L7 would be undone"),
        ],
    ),
];

/// The examples of the command at this path, such as `task create`.
pub(crate) fn of(path: &str) -> &'static [Example] {
    let found = EXAMPLES.iter().find(|(command, _)| *command == path);
    found.map_or(&[], |(_, examples)| examples)
}

/// The command line with examples at the end of each help page.
pub(crate) fn add(command: Command) -> Command {
    add_below(command, "")
}

fn add_below(command: Command, path: &str) -> Command {
    let command = match of(path) {
        [] => command,
        examples => command.after_help(text(examples)),
    };
    command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        add_below(inner, path.trim_start())
    })
}

fn text(examples: &[Example]) -> String {
    let mut text = "Examples:".to_owned();
    for (line, about) in examples {
        text.push_str(&format!("\n  {line}\n      {about}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::Cli;

    /// Splits a line into words as a shell does, as far as the examples need it.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quoted = false;
        for c in line.chars() {
            match c {
                '\'' => quoted = !quoted,
                ' ' if !quoted => words.push(String::new()),
                c => words.iter_mut().next_back().unwrap().push(c),
            }
        }
        words
    }

    #[test]
    fn every_example_is_a_command_line_that_ccb_takes() {
        for (path, examples) in EXAMPLES {
            for (line, _) in *examples {
                // The rest of the line belongs to the shell or to another program.
                let start = line.rfind("ccb ").map(|at| match line.find("ccb --team") {
                    Some(first) => first,
                    None => at,
                });
                let line = line[start.unwrap()..].trim_end_matches(")\"");
                let line = line.trim_end_matches(')');
                let line = line.split(" | ").next().unwrap();
                let parsed = Cli::command().try_get_matches_from(words(line));
                assert!(parsed.is_ok(), "{path}: {line}: {:?}", parsed.err());
            }
        }
    }

    #[test]
    fn every_command_with_examples_exists() {
        for (path, _) in EXAMPLES {
            let mut command = Cli::command();
            for name in path.split_whitespace() {
                let inner = command.find_subcommand(name);
                command = inner.unwrap_or_else(|| panic!("ccb {path}")).clone();
            }
        }
    }

    #[test]
    fn everyday_commands_show_examples() {
        let command = add(Cli::command());
        for path in ["", "task create", "agent spawn", "worktree merge", "fanout"] {
            let mut command = &command;
            for name in path.split_whitespace() {
                command = command.find_subcommand(name).unwrap();
            }
            let help = command.clone().render_help().to_string();
            assert!(help.contains("Examples:\n  "), "{path}: {help}");
        }
    }
}
