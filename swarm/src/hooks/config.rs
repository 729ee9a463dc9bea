//! The configured hooks: `hooks` of Claude Code's settings files and of agents' definitions.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::atomic;
use store::duration::DurationFormat;
use store::fields::Fields;

use super::event::HookEvent;
use super::matcher::Matcher;
use crate::definitions::Source;

/// A hook that says nothing about it has so long.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// The origin of a hook, the weaker first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// The user's settings.
    User(PathBuf),
    /// The repository's settings.
    Project(PathBuf),
    /// The settings for this user in the repository. They lie in it, so they may have come
    /// with it.
    Local(PathBuf),
    /// An agent's definition.
    Agent {
        /// The agent's type.
        name: String,
        /// The source that defines it.
        source: Source,
    },
}

impl Origin {
    /// True if it came with a repository: it runs only if the user trusts it.
    pub fn is_repository(&self) -> bool {
        match self {
            Self::User(_) => false,
            Self::Project(_) | Self::Local(_) => true,
            Self::Agent { source, .. } => source.is_repository(),
        }
    }

    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::User(file) | Self::Project(file) | Self::Local(file) => Some(file),
            Self::Agent { source, .. } => source.file(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(file) | Self::Project(file) | Self::Local(file) => {
                write!(f, "{}", file.display())
            }
            Self::Agent { name, source } => write!(f, "agent {name} ({source})"),
        }
    }
}

/// A command to run at an event.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    /// When.
    pub event: HookEvent,
    /// The command, for the shell.
    pub command: String,
    /// Its time limit.
    pub timeout: Duration,
    /// True if no caller waits for it (`async`).
    pub background: bool,
    /// True if it wakes its agent when it ends with code 2 (`asyncRewake`); no caller waits then.
    pub rewake: bool,
    /// The file that defines it.
    pub origin: Origin,
    /// Not stored: when hooks are written down, it has decided already.
    #[serde(skip)]
    pub(super) matcher: Matcher,
    pub(super) shell: String,
}

/// An entry that is no hook, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookProblem {
    /// Where.
    pub origin: Origin,
    /// The reason.
    pub why: String,
    /// True if the whole file could not be read, so that its hooks are unknown.
    pub whole_file: bool,
}

impl fmt::Display for HookProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.why)
    }
}

/// Reads one settings file; one that is not there has no hooks.
pub(super) fn read_file(
    path: &Path,
    origin: fn(PathBuf) -> Origin,
    hooks: &mut Vec<Hook>,
    problems: &mut Vec<HookProblem>,
) {
    let whole = |why: String| HookProblem {
        origin: origin(path.to_owned()),
        why,
        whole_file: true,
    };
    let bytes = match atomic::read(path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return,
        Err(error) => return problems.push(whole(error.to_string())),
    };
    let map = match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(map)) => map,
        Ok(_) => return problems.push(whole("it is not a JSON object".into())),
        Err(error) => return problems.push(whole(format!("it is not JSON: {error}"))),
    };
    match Fields::new(&map).object("hooks") {
        Ok(None) => {}
        Ok(Some(events)) => read_events(events, &origin(path.to_owned()), hooks, problems),
        Err(error) => problems.push(whole(error.why)),
    }
}

/// Reads the hooks of a definition, where `Stop` means the agent's own end.
pub(super) fn read_agent(
    origin: &Origin,
    events: &Map<String, Value>,
    hooks: &mut Vec<Hook>,
    problems: &mut Vec<HookProblem>,
) {
    let mut events = events.clone();
    if let Some(stop) = events.remove("Stop") {
        let own = events
            .entry("SubagentStop")
            .or_insert_with(|| Value::Array(Vec::new()));
        if let (Value::Array(all), Value::Array(stop)) = (own, stop) {
            all.extend(stop);
        }
    }
    read_events(&events, origin, hooks, problems);
}

pub(super) fn read_events(
    events: &Map<String, Value>,
    origin: &Origin,
    hooks: &mut Vec<Hook>,
    problems: &mut Vec<HookProblem>,
) {
    for (name, groups) in events {
        // The other events are the runtime's own business.
        let Some(event) = HookEvent::parse(name) else {
            continue;
        };
        let mut wrong = |why: String| {
            problems.push(HookProblem {
                origin: origin.clone(),
                why: format!("{name}: {why}"),
                whole_file: false,
            });
        };
        let Value::Array(groups) = groups else {
            wrong("it must be a list".into());
            continue;
        };
        for group in groups {
            match read_group(group, event, origin) {
                Ok(each) => {
                    for hook in each {
                        match hook {
                            Ok(hook) => hooks.push(hook),
                            Err(why) => wrong(why),
                        }
                    }
                }
                Err(why) => wrong(why),
            }
        }
    }
}

/// `{matcher?, hooks: [hook, …]}`, or one hook by itself.
fn read_group(
    group: &Value,
    event: HookEvent,
    origin: &Origin,
) -> Result<Vec<Result<Hook, String>>, String> {
    let Value::Object(map) = group else {
        return Err("each entry must be an object".into());
    };
    let fields = Fields::new(map);
    let matcher = fields.read("matcher", "text", Value::as_str);
    let matcher = match matcher.map_err(|error| error.why)? {
        None => Matcher::All,
        Some(text) => Matcher::new(text)?,
    };
    let one = |hook: &Value| read_hook(hook, event, matcher.clone(), origin);
    match fields.value("hooks") {
        Some(Value::Array(list)) => Ok(list.iter().map(one).collect()),
        None if map.contains_key("command") => Ok(vec![one(group)]),
        _ => Err("\"hooks\" must be a list".into()),
    }
}

fn read_hook(
    hook: &Value,
    event: HookEvent,
    matcher: Matcher,
    origin: &Origin,
) -> Result<Hook, String> {
    let nothing = Map::new();
    let fields = Fields::new(hook.as_object().unwrap_or(&nothing));
    let text = |key: &str| fields.value(key).and_then(Value::as_str);
    match text("type") {
        None | Some("command") => {}
        Some(other) => return Err(format!("hooks of type {other:?} are not supported")),
    }
    if fields.value("if").is_some() {
        // Without looking at the condition it would run when it should not.
        return Err("hooks with \"if\" are not supported".into());
    }
    let shell = match text("shell") {
        None => "/bin/sh",
        Some("bash") => "bash",
        Some(other) => return Err(format!("the shell {other:?} is not supported")),
    };
    let command = text("command").unwrap_or_default();
    if command.trim().is_empty() || command.contains('\0') {
        return Err(fields.must_be("command", "a shell command").why);
    }
    let format = DurationFormat::SECONDS
        .at_least(Duration::from_millis(1))
        .at_most(MAX_TIMEOUT);
    let timeout = fields.time("timeout", &format);
    let timeout = timeout.map_err(|error| error.why)?;
    let flag = |key: &str| fields.value(key).and_then(Value::as_bool) == Some(true);
    let rewake = flag("asyncRewake");
    Ok(Hook {
        event,
        command: command.to_owned(),
        timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
        background: flag("async") || rewake,
        rewake,
        origin: origin.clone(),
        matcher,
        shell: shell.to_owned(),
    })
}
