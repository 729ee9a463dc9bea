//! From a runtime's name to the runtime.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use store::settings::RuntimeKind;

use super::{
    AcpRuntime, ClaudeRuntime, CodexRuntime, LinesRuntime, NativeRuntime, Runtime, ShellRuntime,
};

/// A runtime that needs no settings.
#[derive(Debug)]
struct BuiltIn {
    name: &'static str,
    kind: RuntimeKind,
    command: &'static [&'static str],
    /// The way to get the program.
    install: &'static str,
}

const BUILT_IN: [BuiltIn; 7] = [
    BuiltIn {
        name: "shell",
        kind: RuntimeKind::Shell,
        command: &["/bin/sh", "-c"],
        install: "a shell",
    },
    BuiltIn {
        name: "claude",
        kind: RuntimeKind::Claude,
        command: &["claude"],
        install: "Claude Code: npm install -g @anthropic-ai/claude-code",
    },
    BuiltIn {
        name: "codex",
        kind: RuntimeKind::Codex,
        command: &["codex"],
        install: "Codex: npm install -g @openai/codex",
    },
    BuiltIn {
        name: "opencode",
        kind: RuntimeKind::Acp,
        command: &["opencode", "acp"],
        install: "opencode: npm install -g opencode-ai",
    },
    BuiltIn {
        name: "gemini",
        kind: RuntimeKind::Acp,
        command: &["gemini", "--acp"],
        install: "Gemini CLI: npm install -g @google/gemini-cli",
    },
    BuiltIn {
        name: "qwen",
        kind: RuntimeKind::Acp,
        command: &["qwen", "--acp"],
        install: "Qwen Code: npm install -g @qwen-code/qwen-code",
    },
    // Last, because it is there always: a search for the first installed runtime must not stop here
    // while there is another.
    BuiltIn {
        name: "native",
        kind: RuntimeKind::Native,
        command: &["/proc/self/exe", "__native"],
        install: "nothing: it is ccb itself",
    },
];

/// The reason why a runtime cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RuntimeError {
    /// No runtime has this name.
    #[error("there is no runtime {name:?}{}; settings under `runtimes` can add one", suggest(.nearest.as_deref()))]
    UnknownName {
        name: String,
        nearest: Option<String>,
    },
    /// Its settings name no command.
    #[error("runtime {name:?} needs a command")]
    NoCommand { name: String },
    /// Its program is not installed.
    #[error("runtime {name:?} needs the program {program:?}, which is not in PATH; {install}")]
    NotInstalled {
        name: String,
        program: String,
        install: String,
    },
}

fn suggest(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean {name:?}?)"))
}

/// The names that need no settings.
pub fn built_in() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|known| known.name)
}

/// The kind of a runtime that needs no settings.
pub fn kind_of(name: &str) -> Option<RuntimeKind> {
    let known = BUILT_IN.iter().find(|known| known.name == name)?;
    Some(known.kind)
}

/// The runtime `name`. Settings can set the kind of program it is and how it is started; for a
/// built-in name either may be left out. Programs are searched for in the directories of `path`,
/// which is to be the agent's.
pub fn from_spec(
    name: &str,
    kind: Option<RuntimeKind>,
    command: Option<&[String]>,
    path: &OsStr,
) -> Result<Box<dyn Runtime>, RuntimeError> {
    let known = BUILT_IN.iter().find(|known| known.name == name);
    let kind = match (kind, known) {
        (Some(kind), _) => kind,
        (None, Some(known)) => known.kind,
        (None, None) => {
            let names = BUILT_IN.iter().map(|known| known.name);
            return Err(RuntimeError::UnknownName {
                name: name.to_owned(),
                nearest: store::nearest(name, names).map(str::to_owned),
            });
        }
    };
    // A built-in command is for its own kind only.
    let usual = known.filter(|known| known.kind == kind);
    let command: Vec<String> = match (command, usual) {
        (Some(command), _) => command.to_vec(),
        (None, Some(known)) => known.command.iter().map(ToString::to_string).collect(),
        (None, None) if kind == RuntimeKind::Shell => vec!["/bin/sh".into(), "-c".into()],
        (None, None) if kind == RuntimeKind::Native => NativeRuntime::own_command(),
        (None, None) => Vec::new(),
    };
    let Some(program) = command.first().filter(|program| !program.is_empty()) else {
        let name = name.to_owned();
        return Err(RuntimeError::NoCommand { name });
    };
    if !is_installed(program, path) {
        let usual = usual.filter(|known| known.command[0] == program.as_str());
        let install = usual.map_or_else(
            || "install it, or correct the runtime's command in the settings".to_owned(),
            |known| format!("install {}", known.install),
        );
        return Err(RuntimeError::NotInstalled {
            name: name.to_owned(),
            program: program.clone(),
            install,
        });
    }
    Ok(match kind {
        RuntimeKind::Shell => Box::new(ShellRuntime::new(command)),
        RuntimeKind::Claude => Box::new(ClaudeRuntime::new(command)),
        RuntimeKind::Codex => Box::new(CodexRuntime::new(command)),
        RuntimeKind::Acp => Box::new(AcpRuntime::new(command)),
        RuntimeKind::Lines => Box::new(LinesRuntime::new(command)),
        RuntimeKind::Native => Box::new(NativeRuntime::new(command)),
    })
}

/// True if `program` can be run. A relative path with a slash depends on where it is started, and
/// is tried there.
fn is_installed(program: &str, path: &OsStr) -> bool {
    let can_run = |file: &Path| file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok();
    if program.starts_with('/') {
        return can_run(Path::new(program));
    }
    if program.contains('/') {
        return true;
    }
    env::split_paths(path).any(|dir: PathBuf| can_run(&dir.join(program)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn found(
        name: &str,
        kind: Option<RuntimeKind>,
        command: Option<&[&str]>,
        path: &Path,
    ) -> Result<String, String> {
        let command: Option<Vec<String>> =
            command.map(|words| words.iter().map(ToString::to_string).collect());
        let runtime = from_spec(name, kind, command.as_deref(), path.as_os_str());
        runtime
            .map(|runtime| format!("{runtime:?}"))
            .map_err(|error| error.to_string())
    }

    fn empty(file: &Path) {
        drop(store::atomic::open_private(file).unwrap());
    }

    fn program(dir: &Path, name: &str) {
        let file = dir.join(name);
        empty(&file);
        let can_run = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(file, can_run).unwrap();
    }

    #[test]
    fn a_built_in_name_needs_only_its_program() {
        let dir = tempfile::tempdir().unwrap();
        let programs = built_in().filter(|name| !["shell", "native"].contains(name));
        for name in programs {
            let error = found(name, None, None, dir.path()).unwrap_err();
            assert!(error.contains("not in PATH"), "{error}");
            assert!(error.contains("npm install -g"), "{error}");
            program(dir.path(), name);
            assert!(found(name, None, None, dir.path()).is_ok());
        }
        assert!(found("shell", None, None, dir.path()).is_ok());
        assert!(found("native", None, None, dir.path()).is_ok());
        // A file that cannot be run is no program, and neither is a directory.
        let other = tempfile::tempdir().unwrap();
        empty(&other.path().join("claude"));
        std::fs::create_dir(other.path().join("codex")).unwrap();
        assert!(found("claude", None, None, other.path()).is_err());
        assert!(found("codex", None, None, other.path()).is_err());
    }

    #[test]
    fn settings_can_name_any_program() {
        let dir = tempfile::tempdir().unwrap();
        program(dir.path(), "my-agent");
        let mine = found(
            "mine",
            Some(RuntimeKind::Acp),
            Some(&["my-agent", "--acp"]),
            dir.path(),
        );
        assert!(mine.unwrap().contains("AcpRuntime"));
        let lines = found(
            "mine",
            Some(RuntimeKind::Lines),
            Some(&["my-agent"]),
            dir.path(),
        );
        assert!(lines.unwrap().contains("LinesRuntime"));
        let other = found("claude", None, Some(&["my-agent"]), dir.path());
        assert!(other.unwrap().contains("my-agent"));
        let error = found("mine", Some(RuntimeKind::Acp), Some(&["gone"]), dir.path()).unwrap_err();
        assert!(error.contains("correct the runtime's command"), "{error}");
    }

    #[test]
    fn slips_are_pointed_out() {
        let dir = tempfile::tempdir().unwrap();
        let error = found("claud", None, None, dir.path()).unwrap_err();
        assert!(error.contains("did you mean \"claude\"?"), "{error}");
        let error = found("zzz", None, None, dir.path()).unwrap_err();
        assert!(error.contains("settings under `runtimes`"), "{error}");
        for command in [None, Some(&[][..]), Some(&[""][..])] {
            let error = found("mine", Some(RuntimeKind::Acp), command, dir.path()).unwrap_err();
            assert!(error.contains("needs a command"), "{error}");
        }
        // The usual command of a name does not fit another kind.
        let error = found("gemini", Some(RuntimeKind::Codex), None, dir.path()).unwrap_err();
        assert!(error.contains("needs a command"), "{error}");
    }
}
