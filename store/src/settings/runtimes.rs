//! `runtimes`: ways to run agents, by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::agents::{checked_name, is_variable};
use super::sandbox::{self, SandboxMode};
use crate::fields::{Fields, Read};

crate::words! {
    /// The protocol between ccb and the program that runs an agent.
    #[derive(Default)]
    pub enum RuntimeKind {
        /// A shell command; its output is the result.
        #[default]
        Shell = "shell",
        /// A program that prints events, one JSON document per line.
        Lines = "lines",
        /// Claude Code.
        Claude = "claude",
        /// Codex.
        Codex = "codex",
        /// Any program that speaks the Agent Client Protocol.
        Acp = "acp",
        /// ccb itself, which talks to a model without another program.
        Native = "native",
    }
}

impl RuntimeKind {
    /// True if a model decides what the agent does; a shell runs its prompt as a command.
    pub fn has_model(self) -> bool {
        self != Self::Shell
    }
}

/// One entry of `runtimes`: a way to run agents, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeSettings {
    /// The protocol of the program.
    pub kind: RuntimeKind,
    /// The program and its first arguments; empty stands for the kind's own.
    pub command: Vec<String>,
    /// Arguments after those ccb gives.
    pub args: Vec<String>,
    /// Variables its agents get.
    pub env: BTreeMap<String, String>,
    /// Confinement of its commands, if it differs from `agents.sandbox`.
    pub sandbox: Option<SandboxMode>,
    /// The file that defines it: a repository's is not run without the user's consent.
    pub file: PathBuf,
}

/// A later file's runtime replaces an earlier one's whole. Were they mixed, a repository could
/// add to what the user trusts.
pub(super) fn read(
    runtimes: &mut BTreeMap<String, RuntimeSettings>,
    section: &Fields<'_>,
    file: &Path,
) -> Read<()> {
    for name in section.keys() {
        checked_name(name.clone(), name, section)?;
        if section.is_null(name) {
            runtimes.remove(name);
        } else if let Some(fields) = section.section(name)? {
            runtimes.insert(name.clone(), read_runtime(&fields, file)?);
        }
    }
    Ok(())
}

fn read_runtime(fields: &Fields<'_>, file: &Path) -> Read<RuntimeSettings> {
    fields.check_keys(&["args", "command", "env", "kind", "sandbox"])?;
    let Some(kind) = fields.word("kind", RuntimeKind::ALL, RuntimeKind::as_str)? else {
        let all: Vec<&str> = RuntimeKind::ALL.iter().map(|kind| kind.as_str()).collect();
        return Err(fields.must_be("kind", &format!("one of {}", all.join(", "))));
    };
    let words = |key: &str| {
        let words = fields.strings(key, "words")?.unwrap_or_default();
        match words.iter().any(|word| word.contains('\0')) {
            true => Err(fields.wrong(key, format!("{} contains a NUL byte", fields.name(key)))),
            false => Ok(words),
        }
    };
    let command = words("command")?;
    let has_own = matches!(
        kind,
        RuntimeKind::Shell | RuntimeKind::Claude | RuntimeKind::Codex | RuntimeKind::Native
    );
    if command.first().is_none_or(String::is_empty) && !(has_own && command.is_empty()) {
        return Err(fields.must_be("command", "a list that starts with a program"));
    }
    let mut env = BTreeMap::new();
    for (name, value) in fields.object("env")?.into_iter().flatten() {
        let value = value.as_str().filter(|text| !text.contains('\0'));
        let Some(value) = value.filter(|_| is_variable(name)) else {
            let what = format!("variables as \"NAME\": \"value\"; {name:?} is not one");
            let why = format!("{} must give {what}", fields.name("env"));
            return Err(fields.wrong("env", why));
        };
        env.insert(name.clone(), value.to_owned());
    }
    Ok(RuntimeSettings {
        kind,
        command,
        args: words("args")?,
        env,
        sandbox: sandbox::of_runtime(fields)?,
        file: file.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::load;
    use super::*;

    #[test]
    fn a_runtime_is_replaced_whole_and_remembers_its_file() {
        let settings = load(&[
            r#"{"runtimes":{"mine":{"kind":"acp","command":["a","--acp"],"env":{"X":"1"}},"gone":{"kind":"shell"}}}"#,
            r#"{"runtimes":{"mine":{"kind":"lines","command":["b"],"args":["-x"]},"gone":null}}"#,
        ])
        .unwrap();
        assert_eq!(settings.runtimes.len(), 1);
        let mine = &settings.runtimes["mine"];
        assert_eq!(mine.kind, RuntimeKind::Lines);
        assert_eq!(mine.command, ["b"]);
        assert_eq!(mine.args, ["-x"]);
        assert!(mine.env.is_empty(), "nothing of the first file is left");
        assert!(mine.file.ends_with("1.json"));
    }

    #[test]
    fn mistakes_are_refused_and_named() {
        for (bad, says) in [
            (r#"{"runtimes":{"a/b":{"kind":"shell"}}}"#, "runtimes"),
            (r#"{"runtimes":{"a":{"kind":"bash"}}}"#, "one of shell"),
            (r#"{"runtimes":{"a":{}}}"#, "runtimes.a.kind"),
            (
                r#"{"runtimes":{"a":{"kind":"linse"}}}"#,
                "did you mean \"lines\"?",
            ),
            (r#"{"runtimes":{"a":{"kind":"acp"}}}"#, "a program"),
            (
                r#"{"runtimes":{"a":{"kind":"shell","command":[""]}}}"#,
                "a program",
            ),
            (
                r#"{"runtimes":{"a":{"kind":"acp","command":"x"}}}"#,
                "list of words",
            ),
            (
                r#"{"runtimes":{"a":{"kind":"shell","args":["\u0000"]}}}"#,
                "NUL",
            ),
            (
                r#"{"runtimes":{"a":{"kind":"shell","env":{"X":1}}}}"#,
                "\"X\" is not",
            ),
            (
                r#"{"runtimes":{"a":{"kind":"shell","env":{"X=":"1"}}}}"#,
                "is not",
            ),
            (
                r#"{"runtimes":{"a":{"kind":"shell","comand":[]}}}"#,
                "did you mean \"runtimes.a.command\"",
            ),
            (r#"{"runtimes":[]}"#, "object"),
        ] {
            let error = load(&[bad]).expect_err(bad).to_string();
            assert!(error.contains(says), "{bad}: {error}");
        }
    }
}
