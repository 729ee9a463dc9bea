//! `agents.sandbox`: the confinement of agents' commands to their worktrees.

use std::path::{Path, PathBuf};

use crate::fields::{Fields, Read};

crate::words! {
    /// The paths that an agent's commands may write to.
    pub enum SandboxMode {
        /// Its worktree and little else.
        Tree = "tree",
        /// Everything the user can write to.
        Off = "off",
    }
}

/// The rules of one file. The file matters: a repository can narrow the confinement, and never
/// widen it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSettings {
    /// `sandbox`.
    pub mode: Option<SandboxMode>,
    /// `sandboxNetwork`: true if confined commands reach the network.
    pub network: Option<bool>,
    /// `sandboxWrite`: further directories they may write to; `~` stands for the user's home.
    pub write: Vec<String>,
    /// The file with these rules.
    pub file: PathBuf,
}

impl SandboxSettings {
    /// Reads the rules; `None` if the file has none.
    pub(super) fn read(section: &Fields<'_>, file: &Path) -> Read<Option<Self>> {
        let mode = section.word("sandbox", SandboxMode::ALL, SandboxMode::as_str)?;
        let network = section.boolean("sandboxNetwork")?;
        let write = section
            .strings("sandboxWrite", "directories")?
            .unwrap_or_default();
        let absolute = |path: &&String| path.starts_with('/') || path.starts_with("~/");
        if let Some(path) = write.iter().find(|path| !absolute(path)) {
            let why = format!("agents.sandboxWrite: {path:?} must begin with \"/\" or \"~/\"");
            return Err(section.wrong("sandboxWrite", why));
        }
        let says = mode.is_some() || network.is_some() || !write.is_empty();
        Ok(says.then(|| Self {
            mode,
            network,
            write,
            file: file.to_owned(),
        }))
    }
}

/// The mode of one entry of `runtimes`.
pub(super) fn of_runtime(fields: &Fields<'_>) -> Read<Option<SandboxMode>> {
    fields.word("sandbox", SandboxMode::ALL, SandboxMode::as_str)
}

#[cfg(test)]
mod tests {
    use super::super::tests::load;
    use super::*;

    #[test]
    fn each_file_s_word_is_kept_with_its_file() {
        let settings = load(&[
            r#"{"agents":{"sandbox":"tree","sandboxWrite":["~/.cargo"]}}"#,
            r#"{"agents":{"maxAgents":2}}"#,
            r#"{"agents":{"sandboxNetwork":false},"runtimes":{"x":{"kind":"shell","sandbox":"off"}}}"#,
        ])
        .unwrap();
        let all = &settings.agents.sandbox;
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].mode, Some(SandboxMode::Tree));
        assert_eq!(all[0].write, ["~/.cargo"]);
        assert_eq!((all[1].mode, all[1].network), (None, Some(false)));
        assert!(all[1].file.ends_with("2.json"));
        assert_eq!(settings.runtimes["x"].sandbox, Some(SandboxMode::Off));
    }

    #[test]
    fn mistakes_are_refused_and_named() {
        for (bad, says) in [
            (r#"{"agents":{"sandbox":"on"}}"#, "agents.sandbox"),
            (
                r#"{"agents":{"sandboxNetwork":"no"}}"#,
                "agents.sandboxNetwork",
            ),
            (
                r#"{"agents":{"sandboxWrite":["cache"]}}"#,
                "must begin with",
            ),
            (r#"{"agents":{"sandboxNet":false}}"#, "did you mean"),
            (
                r#"{"runtimes":{"x":{"kind":"shell","sandbox":1}}}"#,
                "runtimes.x.sandbox",
            ),
        ] {
            let error = load(&[bad]).expect_err(bad).to_string();
            assert!(error.contains(says), "{bad}: {error}");
        }
    }
}
