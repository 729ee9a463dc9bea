//! Rules such as `Bash(git *)` or `Read(./secrets/**)`, from Claude's settings files.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde_json::Value;
use store::atomic;
use swarm::tools::SHELL;

use super::commands::looks;
use super::shell_line::{Simple, commands, pieces};

/// Commands that run the rest of their words.
const WRAPPERS: [&str; 5] = ["command", "nice", "nohup", "time", "timeout"];

/// The rules of the settings: what they allow, deny, and ask about.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    pub(super) allow: Vec<Rule>,
    pub(super) deny: Vec<Rule>,
    pub(super) ask: Vec<Rule>,
    /// The rules that could not be used, in words for people.
    pub warnings: Vec<String>,
}

/// The sources of rules.
#[derive(Debug, Clone, Default)]
pub struct RuleSources {
    /// The directory of the user's own `settings.json`.
    pub home: Option<PathBuf>,
    /// The worktree; its `.claude/settings.json` and `settings.local.json` count.
    pub tree: PathBuf,
    /// The agent's working directory; paths of rules begin there.
    pub cwd: PathBuf,
    /// The user's home directory, for `~`.
    pub user: Option<PathBuf>,
    /// True if the repository may allow things, too. Its denials always count.
    pub trusted: bool,
}

impl Rules {
    /// Reads the settings files that are there.
    pub fn load(sources: &RuleSources) -> Self {
        let mut rules = Self::default();
        if let Some(home) = &sources.home {
            rules.read(&home.join("settings.json"), home, sources, true);
        }
        let dir = sources.tree.join(".claude");
        for name in ["settings.json", "settings.local.json"] {
            rules.read(&dir.join(name), &sources.tree, sources, sources.trusted);
        }
        rules
    }

    fn read(&mut self, file: &Path, base: &Path, sources: &RuleSources, may_allow: bool) {
        let json = match atomic::read(file) {
            Ok(None) => return,
            Ok(Some(bytes)) => serde_json::from_slice::<Value>(&bytes).map_err(|e| e.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let permissions = match json {
            Ok(json) => json["permissions"].clone(),
            Err(why) => {
                let warning = format!("{} cannot be read: {why}", file.display());
                return self.warnings.push(warning);
            }
        };
        for (list, key) in [
            (&mut self.allow, "allow"),
            (&mut self.deny, "deny"),
            (&mut self.ask, "ask"),
        ] {
            if key == "allow" && !may_allow {
                continue;
            }
            let entries = permissions[key].as_array();
            for entry in entries.into_iter().flatten() {
                match entry
                    .as_str()
                    .and_then(|text| Rule::parse(text, base, sources))
                {
                    Some(rule) => list.push(rule),
                    None => self
                        .warnings
                        .push(format!("{}: {entry} is no rule", file.display())),
                }
            }
        }
    }

    /// True if some use of `tool` is allowed.
    pub fn allow(&self, tool: &str) -> bool {
        self.allow.iter().any(|rule| rule.is_about(tool))
    }

    /// Files that must not be read, and those that must not be written.
    pub fn denied_paths(&self) -> (Vec<PathRule>, Vec<PathRule>) {
        let of = |tool: &str| -> Vec<PathRule> {
            let rules = self.deny.iter().filter(|rule| rule.tool == tool);
            let paths = rules.filter_map(|rule| match &rule.about {
                About::Path(path) => Some(path.clone()),
                _ => None,
            });
            paths.collect()
        };
        (of("Read"), of("Edit"))
    }
}

/// One rule.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    /// A tool's name, or the start of one and `*`. Tools that edit are `Edit`, those that read
    /// `Read`.
    tool: String,
    about: About,
}

#[derive(Debug, Clone)]
enum About {
    Anything,
    Command(String),
    Path(PathRule),
    Domain(String),
    /// An unknown pattern: it allows nothing, and denies everything.
    Unknown,
}

/// A pattern of paths, as in .gitignore, below a directory.
#[derive(Debug, Clone)]
pub struct PathRule {
    root: PathBuf,
    pattern: Gitignore,
}

impl PathRule {
    /// `//x` is absolute, `~/x` in the user's home, `/x` below `base`, everything else below the
    /// agent's directory.
    fn new(text: &str, base: &Path, sources: &RuleSources) -> Option<Self> {
        let (root, pattern) = if let Some(rest) = text.strip_prefix("//") {
            (Path::new("/"), format!("/{rest}"))
        } else if let Some(rest) = text.strip_prefix("~/") {
            (sources.user.as_deref()?, format!("/{rest}"))
        } else if text.starts_with('/') {
            (base, text.to_owned())
        } else if let Some(rest) = text.strip_prefix("./") {
            (sources.cwd.as_path(), format!("/{rest}"))
        } else {
            (sources.cwd.as_path(), text.to_owned())
        };
        // Rules are compared with paths that have no links in them.
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let mut builder = GitignoreBuilder::new(&root);
        builder.add_line(None, &pattern).ok()?;
        let pattern = builder.build().ok()?;
        Some(Self { root, pattern })
    }

    /// True if `path`, which is absolute and has no links in it, or a directory it is in fits.
    pub fn fits(&self, path: &Path) -> bool {
        let Ok(below) = path.strip_prefix(&self.root) else {
            return false;
        };
        if below.as_os_str().is_empty() {
            return false;
        }
        let found = self.pattern.matched_path_or_any_parents(below, false);
        found.is_ignore()
    }
}

impl Rule {
    /// A rule as settings and definitions write it.
    pub(super) fn parse(text: &str, base: &Path, sources: &RuleSources) -> Option<Self> {
        let text = text.trim();
        let (tool, inside) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => (tool.trim(), Some(rest.strip_suffix(')')?.trim())),
        };
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*');
        if tool.is_empty() || !tool.chars().all(known) {
            return None;
        }
        let tool = family(tool);
        let about = match (tool, inside) {
            (_, None | Some("" | "*" | ":*")) => About::Anything,
            (SHELL, Some(pattern)) => About::Command(pattern.to_owned()),
            ("Read" | "Edit", Some(pattern)) => About::Path(PathRule::new(pattern, base, sources)?),
            ("WebFetch", Some(pattern)) => match pattern.strip_prefix("domain:") {
                Some(domain) => About::Domain(domain.to_lowercase()),
                None => About::Unknown,
            },
            _ => About::Unknown,
        };
        let tool = tool.to_owned();
        Some(Self { tool, about })
    }

    fn is_about(&self, tool: &str) -> bool {
        let tool = family(tool);
        match self.tool.strip_suffix('*') {
            Some(start) => tool.starts_with(start),
            // A server's name stands for all its tools.
            None => {
                self.tool == tool
                    || (self.tool.starts_with("mcp__")
                        && tool
                            .strip_prefix(&self.tool)
                            .is_some_and(|it| it.starts_with("__")))
            }
        }
    }

    /// True if it covers all of what the call would do.
    pub(super) fn covers(&self, call: &Use<'_>) -> bool {
        self.is_about(call.tool)
            && match &self.about {
                About::Anything => true,
                About::Unknown => false,
                About::Path(rule) => {
                    call.paths.iter().all(|path| rule.fits(path)) && !call.paths.is_empty()
                }
                About::Domain(domain) => call.domain.is_some_and(|host| is_in(host, domain)),
                About::Command(_) => false,
            }
    }

    /// True if it is about any part of what the call would do.
    pub(super) fn touches(&self, call: &Use<'_>) -> bool {
        self.is_about(call.tool)
            && match &self.about {
                About::Anything | About::Unknown => true,
                About::Path(rule) => call.paths.iter().any(|path| rule.fits(path)),
                About::Domain(domain) => call.domain.is_some_and(|host| is_in(host, domain)),
                About::Command(pattern) => call.line.is_some_and(|line| names(pattern, line)),
            }
    }
}

/// A call as rules see it.
#[derive(Debug, Default)]
pub(super) struct Use<'a> {
    pub(super) tool: &'a str,
    /// The command line it runs.
    pub(super) line: Option<&'a str>,
    /// The file it is about, as named and with links followed.
    pub(super) paths: Vec<PathBuf>,
    pub(super) domain: Option<&'a str>,
}

/// True if `rules` together let every command of the line through. Commands that only read need no
/// rule.
pub(super) fn all_covered(rules: &[&Rule], line: &str) -> bool {
    let whole = |rule: &&&Rule| matches!(rule.about, About::Anything) && rule.is_about(SHELL);
    if rules.iter().any(|rule| whole(&rule)) {
        return true;
    }
    let patterns: Vec<&String> = rules
        .iter()
        .filter_map(|rule| match &rule.about {
            About::Command(pattern) => Some(pattern),
            _ => None,
        })
        .collect();
    let covered = |command: &Simple| {
        let text = unwrapped(&command.words).join(" ");
        let named = patterns.iter().any(|pattern| fits(pattern, &text));
        looks(command) || (named && !command.writes)
    };
    let all = commands(line);
    all.is_some_and(|all| !all.is_empty() && all.iter().all(covered))
}

/// True if a command of the line, or what may be one, fits the pattern.
fn names(pattern: &str, line: &str) -> bool {
    let found: Vec<Vec<String>> = match commands(line) {
        Some(all) => all.into_iter().map(|one| one.words).collect(),
        None => pieces(line),
    };
    let of_words = |words: &Vec<String>| {
        let plain = words.iter().skip_while(|word| is_assignment(word));
        let plain: Vec<String> = plain.cloned().collect();
        // The same program by its path.
        let mut named = unwrapped(&plain).to_vec();
        if let Some(first) = named.first_mut() {
            *first = first.rsplit('/').next().unwrap_or_default().to_owned();
        }
        fits(pattern, &unwrapped(&plain).join(" ")) || fits(pattern, &named.join(" "))
    };
    fits(pattern, line.trim()) || found.iter().any(of_words)
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// The words without a program that only runs them.
fn unwrapped(words: &[String]) -> &[String] {
    let mut rest = words;
    while let Some((first, more)) = rest.split_first()
        && WRAPPERS.contains(&first.as_str())
    {
        let skip = more
            .iter()
            .take_while(|word| {
                word.starts_with('-')
                    || (first == "timeout" && word.starts_with(|c: char| c.is_ascii_digit()))
            })
            .count();
        rest = &more[skip..];
    }
    rest
}

/// True if `text` fits `pattern`. `git *` and `git:*` stand for git with or without arguments; a
/// `*` elsewhere for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let prefix = pattern
        .strip_suffix(":*")
        .or_else(|| pattern.strip_suffix(" *"));
    if let Some(prefix) = prefix {
        let whole = like(prefix, text);
        return whole || like(&format!("{prefix} *"), text);
    }
    like(pattern, text)
}

fn like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The tool that stands for all of its kind in rules.
fn family(tool: &str) -> &str {
    match tool {
        "Write" | "NotebookEdit" | "MultiEdit" => "Edit",
        "Glob" | "Grep" => "Read",
        tool => tool,
    }
}

fn is_in(host: &str, domain: &str) -> bool {
    let host = host.to_lowercase();
    match domain.strip_prefix("*.") {
        Some(above) => host
            .strip_suffix(above)
            .is_some_and(|start| start.ends_with('.')),
        None => host == domain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_commands() {
        for (pattern, text, fit) in [
            ("git *", "git status", true),
            ("git *", "git", true),
            ("git *", "gitk", false),
            ("git:*", "git status", true),
            ("git:*", "gitk", false),
            ("npm run test:*", "npm run test --all", true),
            ("git status", "git status -s", false),
            ("* --version", "node --version", true),
            ("git * main", "git push origin main", true),
            ("git * main", "git push origin dev", false),
            ("ls*", "lsof", true),
        ] {
            assert_eq!(fits(pattern, text), fit, "{pattern} {text}");
        }
    }

    #[test]
    fn domains_and_wrappers() {
        assert!(is_in("docs.rs", "docs.rs") && is_in("a.docs.rs", "*.docs.rs"));
        assert!(!is_in("evildocs.rs", "*.docs.rs") && !is_in("docs.rs.evil", "docs.rs"));
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        assert_eq!(
            unwrapped(&words("timeout -k 5 10 nice rm x")),
            words("rm x")
        );
    }
}
