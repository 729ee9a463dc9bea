//! The flags the user typed that say where and as whom. A command in a hint needs the same flags,
//! or it is about another board.

use crate::args::Global;

/// Those flags, as the user would type them again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    /// `-C`, `--home`.
    place: String,
    /// `--team`, `--list`.
    board: String,
    /// `--as`.
    agent: String,
}

impl Said {
    pub(crate) fn of(global: &Global) -> Self {
        let flag = |name: &str, value: Option<String>| match value {
            Some(value) => format!(" {name} {}", word(&value)),
            None => String::new(),
        };
        let path = |path: &Option<std::path::PathBuf>| {
            let path = path.as_ref()?;
            Some(path.to_string_lossy().into_owned())
        };
        // A team's list has the team's name.
        let list = global.list.clone().filter(|_| global.list != global.team);
        Self {
            place: flag("-C", path(&global.directory)) + &flag("--home", path(&global.home)),
            board: flag("--team", global.team.clone()) + &flag("--list", list),
            agent: flag("--as", global.agent.clone()),
        }
    }

    /// `ccb` with all of them.
    pub(crate) fn ccb(&self) -> String {
        format!("ccb{}{}{}", self.place, self.board, self.agent)
    }

    /// The command to type, such as `mail ack 2`, with its flags.
    pub(crate) fn command(&self, rest: &str) -> String {
        let mut line = format!("ccb{}", self.place);
        let first = rest.split_whitespace().next().unwrap_or_default();
        let has = |flag: &str| rest.split_whitespace().any(|word| word == flag);
        let on_a_board = [
            "task", "mail", "agent", "worktree", "status", "top", "doctor", "mcp", "diff", "land",
            "reject", "undo",
        ];
        if on_a_board.contains(&first) && !has("--team") && !has("--list") {
            line.push_str(&self.board);
        }
        if ["task", "mail", "agent", "worktree"].contains(&first) && !has("--as") {
            line.push_str(&self.agent);
        }
        format!("{line} {rest}")
    }

    /// A text of ccb, with the flags added to every `` `ccb …` `` in it.
    pub(crate) fn complete(&self, text: &str) -> String {
        let mut done = String::new();
        let mut rest = text;
        while let Some((before, command)) = rest.split_once("`ccb ") {
            let Some((command, after)) = command.split_once('`') else {
                break;
            };
            done.push_str(&format!("{before}`{}`", self.command(command)));
            rest = after;
        }
        done + rest
    }
}

/// Text as one word for a shell, without characters that would control a terminal.
pub(crate) fn word(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._+-@,:=".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said() -> Said {
        Said {
            place: " -C /tmp/x".into(),
            board: " --team fixers".into(),
            agent: " --as bob".into(),
        }
    }

    #[test]
    fn a_hint_has_the_flags_that_were_typed() {
        let said = said();
        for (hint, typed) in [
            (
                "`ccb mail ack 2`",
                "`ccb -C /tmp/x --team fixers --as bob mail ack 2`",
            ),
            ("`ccb doctor`", "`ccb -C /tmp/x --team fixers doctor`"),
            ("`ccb trust`", "`ccb -C /tmp/x trust`"),
            (
                "`ccb team leave a --as b`, or `ccb --team x task list`",
                "`ccb -C /tmp/x team leave a --as b`, or `ccb -C /tmp/x --team x task list`",
            ),
            (
                "`ccb --team x task list` or `ccb task list --as a`",
                "`ccb -C /tmp/x --team x task list` or `ccb -C /tmp/x --team fixers task list --as a`",
            ),
            (
                "no `command` here, `ccb half",
                "no `command` here, `ccb half",
            ),
        ] {
            assert_eq!(said.complete(hint), typed);
        }
        let nothing = Said::default();
        assert_eq!(
            nothing.complete("run `ccb task list`"),
            "run `ccb task list`"
        );
    }

    #[test]
    fn a_word_is_one_word() {
        assert_eq!(word("fix/auth"), "fix/auth");
        assert_eq!(word("it's here"), r"'it'\''s here'");
        assert_eq!(word(""), "''");
        assert_eq!(word("a\u{1b}b\n"), "ab");
    }
}
