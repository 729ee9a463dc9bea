//! Decides if an agent may use a tool in a certain way: at once, never, or after asking.
//!
//! A denial wins over everything. [`Decision::Ask`] goes to the agent's host, which asks the
//! director or the user, or denies at once. `docs/native.md` has the table for users.

mod commands;
mod rules;
mod shell_line;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde_json::Value;

pub use rules::{PathRule, RuleSources, Rules};

use rules::{Rule, Use, all_covered};
use swarm::definitions::PermissionMode;
use swarm::tools::{EDITING, OWN_SERVER, Reach, SHELL, ToolFilter};

/// Tools that change nothing and reach nothing new.
const FREE: [&str; 6] = ["BashOutput", "Glob", "Grep", "KillShell", "Read", "Skill"];

/// The decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Do it.
    Allow,
    /// Do not; the text is the call's result and says why.
    Deny(String),
    /// Ask the host, and do what it answers.
    Ask,
}

/// The options that decisions depend on.
#[derive(Debug, Clone, Default)]
pub struct PermissionOptions {
    /// The calls it may make without asking.
    pub mode: PermissionMode,
    /// The access that its tools have to files.
    pub reach: Reach,
    /// The tools it has, with rules for some calls of them.
    pub filter: ToolFilter,
    /// The directory in which relative paths begin.
    pub cwd: PathBuf,
    /// True if commands are confined to the agent's worktree, so that they need no question where
    /// edits need none.
    pub confined: bool,
    /// True if commands reach the network.
    pub network: bool,
    /// Rules of settings files.
    pub rules: Rules,
}

/// The permissions of one agent.
#[derive(Debug, Clone)]
pub struct Permissions {
    options: PermissionOptions,
    /// Rules of its definition.
    allowed: Vec<Rule>,
    disallowed: Vec<Rule>,
}

impl Permissions {
    /// Decides by `options`.
    pub fn new(options: PermissionOptions) -> Self {
        let sources = RuleSources {
            cwd: options.cwd.clone(),
            ..RuleSources::default()
        };
        let parse = |text: &String| Rule::parse(text, &options.cwd, &sources);
        let reads = options.reach.is_read_only();
        // A tool's bare name lets it in, but does not say that it needs no permission; a server's
        // tool that is named needs none. Of one that only reads, rules for commands do not count.
        let needs_none = |entry: &&String| {
            let of_server = entry.starts_with("mcp__") && !reads;
            let rule = entry.contains('(') && !(reads && entry.starts_with(SHELL));
            of_server || rule
        };
        let listed = options.filter.allowed().unwrap_or_default().iter();
        let allowed = listed.filter(needs_none).filter_map(parse).collect();
        let disallowed = options.filter.disallowed().iter();
        let disallowed = disallowed.filter_map(parse).collect();
        Self {
            allowed,
            disallowed,
            options,
        }
    }

    /// The mode that holds now.
    pub fn mode(&self) -> PermissionMode {
        self.options.mode
    }

    /// Another mode from now on.
    pub fn set_mode(&mut self, mode: PermissionMode) {
        self.options.mode = mode;
    }

    /// The decision about a call of `tool` with `input`.
    pub fn decide(&self, tool: &str, input: &Value) -> Decision {
        let call = self.describe(tool, input);
        let rules = &self.options.rules;
        let mut denying = rules.deny.iter().chain(&self.disallowed);
        if denying.any(|rule| rule.touches(&call)) {
            return Decision::Deny(format!(
                "A rule denies this use of {tool}. Do without it, or say in your result what a person \
                 has to allow."
            ));
        }
        if tool.starts_with(&format!("mcp__{OWN_SERVER}__")) {
            return Decision::Allow;
        }
        if let Some(denied) = self.only_reads(&call) {
            return denied;
        }
        if self.options.mode == PermissionMode::Bypass {
            return Decision::Allow;
        }
        if rules.ask.iter().any(|rule| rule.touches(&call)) {
            return self.ask(tool);
        }
        match self.is_allowed(&call) {
            true => Decision::Allow,
            false => self.by_mode(&call),
        }
    }

    /// The decision about a call that only reads, or that an agent in plan mode makes; `None` if
    /// the other rules decide.
    fn only_reads(&self, call: &Use<'_>) -> Option<Decision> {
        let plans = self.options.mode == PermissionMode::Plan;
        let reads = self.options.reach == Reach::Reads;
        let edits = EDITING.contains(&call.tool);
        let why = match (plans, edits, self.options.reach.is_read_only()) {
            (_, true, true) => "you only read here",
            (true, ..) => "plan mode changes nothing; hand in your plan first",
            _ => "you only read here",
        };
        let deny = || {
            Some(Decision::Deny(format!(
                "{} is not for you: {why}.",
                call.tool
            )))
        };
        if edits && (plans || self.options.reach.is_read_only()) {
            return deny();
        }
        let line = call.line.filter(|_| plans || reads)?;
        // Where confinement is possible, such a command cannot write to the worktree.
        let harmless = self.options.confined && !commands::reaches_out(line, self.options.network);
        match commands::only_looks(line) || harmless {
            true => Some(Decision::Allow),
            false => deny(),
        }
    }

    fn is_allowed(&self, call: &Use<'_>) -> bool {
        let rules = self.options.rules.allow.iter().chain(&self.allowed);
        let rules: Vec<&Rule> = rules.collect();
        match call.line {
            // It runs commands, and each that does more than read needs a question.
            Some(line) if self.options.reach == Reach::Runs => commands::only_looks(line),
            Some(line) => all_covered(&rules, line) || commands::only_looks(line),
            None => FREE.contains(&call.tool) || rules.iter().any(|rule| rule.covers(call)),
        }
    }

    fn by_mode(&self, call: &Use<'_>) -> Decision {
        let edits = EDITING.contains(&call.tool);
        let options = &self.options;
        let inside = |line: &str| {
            options.confined
                && options.reach == Reach::Edits
                && !commands::reaches_out(line, options.network)
        };
        match options.mode {
            PermissionMode::AcceptEdits | PermissionMode::Auto
                if edits || call.line.is_some_and(inside) =>
            {
                Decision::Allow
            }
            _ => self.ask(call.tool),
        }
    }

    /// Asks, if that is of any use.
    fn ask(&self, tool: &str) -> Decision {
        match self.options.mode {
            PermissionMode::DontAsk => Decision::Deny(format!(
                "{tool} needs a permission, and this agent does not ask (dontAsk). Do without it."
            )),
            _ => Decision::Ask,
        }
    }

    fn describe<'a>(&self, tool: &'a str, input: &'a Value) -> Use<'a> {
        let line = input["command"].as_str().filter(|_| tool == SHELL);
        let file = ["file_path", "notebook_path", "path"]
            .iter()
            .find_map(|key| input[*key].as_str());
        let usual = matches!(tool, "Glob" | "Grep").then_some(".");
        let paths = match file.or(usual).filter(|_| !tool.starts_with("mcp__")) {
            Some(file) => places(&self.options.cwd, file),
            None => Vec::new(),
        };
        let domain = input["url"].as_str().and_then(host_of);
        Use {
            tool,
            line,
            paths,
            domain,
        }
    }
}

/// The paths of a file: as it is named, and with links followed as far as it exists.
fn places(cwd: &Path, file: &str) -> Vec<PathBuf> {
    let named = crate::path::plain(&cwd.join(file));
    let mut missing = Vec::new();
    let mut real = None;
    for above in named.ancestors() {
        if let Ok(found) = above.canonicalize() {
            real = Some(
                missing
                    .iter()
                    .rev()
                    .fold(found, |path: PathBuf, name| path.join(name)),
            );
            break;
        }
        missing.extend(above.file_name());
    }
    let mut all = vec![named.clone()];
    all.extend(real.filter(|real| *real != named));
    all
}

fn host_of(url: &str) -> Option<&str> {
    let rest = url.split_once("://")?.1;
    let host = rest.split(['/', '?', '#']).next()?;
    let host = host.rsplit('@').next()?;
    host.split(':').next().filter(|host| !host.is_empty())
}
