//! The commands in README.md and the guides work, in their order, and print what the pages show.

use std::path::Path;
use std::process::Command;

use harness::{Workplace, path_with_ccb};

use crate::CCB;

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The blocks of code in this language, in order.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let found = text.split(&fence).skip(1);
    found
        .map(|block| block.split("```").next().unwrap().to_owned())
        .collect()
}

/// The text below this heading, up to the next one of its level or above.
fn part<'a>(text: &'a str, heading: &str) -> &'a str {
    let start = text.find(&format!("{heading}\n")).expect("the heading");
    let level = heading.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &text[start + heading.len()..];
    let next = (1..=level).filter_map(|level| rest.find(&format!("\n{} ", "#".repeat(level))));
    next.min().map_or(rest, |end| &rest[..end])
}

/// A shell in an empty repository, with `ccb` in its `PATH`.
struct Shell {
    place: Workplace,
    bin: tempfile::TempDir,
}

impl Shell {
    fn new() -> Self {
        let bin = path_with_ccb(CCB);
        let place = Workplace::new(CCB);
        Self { place, bin }
    }

    /// Runs a line; returns its exit code and everything it printed.
    fn run(&self, dir: &Path, line: &str) -> (Option<i32>, String) {
        let given = self.place.home.command_without_list(&[]);
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.bin.path().display());
        let mut bash = Command::new("bash");
        bash.args(["-c", &format!("{{ {line}\n}} 2>&1")])
            .env_clear()
            .envs(
                given
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("PATH", path)
            .env("GIT_AUTHOR_NAME", "You")
            .env("GIT_AUTHOR_EMAIL", "you@example.com")
            .env("GIT_COMMITTER_NAME", "You")
            .env("GIT_COMMITTER_EMAIL", "you@example.com")
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "init.defaultBranch")
            .env("GIT_CONFIG_VALUE_0", "main")
            .stdin(std::process::Stdio::null())
            .current_dir(dir);
        let output = bash.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), text)
    }
}

/// A line without the parts that differ from run to run: numbers, times, ids, paths, colours,
/// spaces.
fn masked(line: &str) -> String {
    let word = |word: &str| -> String {
        if word.starts_with('/') {
            return "PATH".into();
        }
        let hex = word.len() >= 8 && word.chars().all(|c| c.is_ascii_hexdigit());
        let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
        match hex {
            true => "HEX".into(),
            false => word.chars().map(digits).collect(),
        }
    };
    let words: Vec<String> = line.split_whitespace().map(word).collect();
    words.join(" ")
}

/// Types a `console` block and compares its output.
fn type_in(shell: &Shell, dir: &Path, block: &str) {
    let mut rest = block.lines().peekable();
    while let Some(line) = rest.next() {
        let command = line.strip_prefix("$ ").expect("a command");
        let mut shown = Vec::new();
        while let Some(line) = rest.next_if(|line| !line.starts_with("$ ")) {
            shown.push(line);
        }
        let (code, text) = shell.run(dir, command);
        let fails = shown.first().is_some_and(|line| line.starts_with("error:"));
        assert_eq!(code != Some(0), fails, "{command}:\n{text}");
        let printed: Vec<String> = text.lines().map(masked).collect();
        for line in shown.iter().filter(|line| !line.trim().is_empty()) {
            let there = printed
                .iter()
                .any(|printed| printed.starts_with(&masked(line)));
            assert!(there, "{command} does not print\n{line}\nbut\n{text}");
        }
    }
}

#[test]
fn the_guides_show_what_happens() {
    for (name, section) in [
        ("docs/board-and-mail.md", "## The board"),
        ("docs/board-and-mail.md", "## Mail"),
        ("docs/worktrees.md", "# Worktrees"),
        ("docs/sessions.md", "## Teams"),
        ("docs/agents.md", "# Agents"),
    ] {
        let text = document(name);
        let found = blocks(part(&text, section), "console");
        assert_eq!(found.len(), 1, "{name}: {section}");
        let shell = Shell::new();
        let dir = shell.place.repo.main().to_owned();
        for block in found {
            type_in(&shell, &dir, &block);
        }
    }
}

#[test]
fn the_readme_can_be_typed_from_top_to_bottom() {
    let readme = document("README.md");
    let shell = Shell::new();
    let parent = shell.place.repo.main().parent().unwrap().to_owned();
    let mut dir = parent.clone();
    let mut typed = 0;
    for block in blocks(&readme, "sh") {
        for line in block.lines() {
            // Installing takes minutes, and models and the user's own shell are not here.
            let other = ["cargo ", "eval ", "ccb shell-init", "ccb --coordinator"];
            let model = line.starts_with("ccb --team fixers ") || line.starts_with("ccb \"");
            if model || other.iter().any(|start| line.starts_with(start)) {
                continue;
            }
            let (code, text) = shell.run(&dir, line);
            assert_eq!(code, Some(0), "{line}:\n{text}");
            typed += 1;
            if line.starts_with("git init hello") {
                dir = parent.join("hello");
            }
            if line.contains("--merge auto") {
                let picture = &blocks(&readme, "console")[0];
                let mut shown = picture.lines();
                assert_eq!(shown.next().unwrap().strip_prefix("$ "), Some(line));
                let printed: Vec<String> = text.lines().map(masked).collect();
                for line in shown {
                    // The assignment of tasks to teammates differs from run to run.
                    let mate = |line: &str| masked(line).replace("⇥", "").replace("▶", "");
                    let there = printed.iter().any(|printed| mate(printed) == mate(line));
                    assert!(there, "it does not print\n{line}\nbut\n{text}");
                }
            }
        }
    }
    assert!(typed >= 6, "{typed}");
    let (_, log) = shell.run(&dir, "git log --format=%s");
    assert!(log.contains("Write the manual"), "{log}");
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let guides = ["docs", "docs/dev"].map(|dir| std::fs::read_dir(root.join(dir)).unwrap());
    let guides = guides.into_iter().flatten();
    let guides = guides.map(|entry| entry.unwrap().path());
    let guides = guides.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let pages = [
        "README.md",
        "CONTRIBUTING.md",
        "ARCHITECTURE.md",
        "SECURITY.md",
    ];
    let pages = pages.map(|page| root.join(page));
    let mut broken = Vec::new();
    for page in guides.chain(pages) {
        let text = std::fs::read_to_string(&page).unwrap();
        for target in text.split("](").skip(1) {
            let target = target.split(')').next().unwrap();
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            if target.contains("://") {
                continue;
            }
            let file = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            let there = std::fs::read_to_string(&file);
            let anchored = |text: &String| {
                let headings = text.lines().filter(|line| line.starts_with('#'));
                anchor.is_empty() || headings.map(anchor_of).any(|known| known == anchor)
            };
            let is_dir = file.is_dir();
            if !is_dir && !there.as_ref().is_ok_and(anchored) {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The anchor of a heading, as GitHub makes it.
fn anchor_of(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
