use std::os::unix::fs::symlink;

use serde_json::json;
use store::atomic::{self, Durability};

use super::*;
use crate::tools::{Call, Toolbox, ToolboxOptions};

struct Bench(tempfile::TempDir);

impl Bench {
    fn new(files: &[(&str, &str)]) -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        for dir in ["home", "user", "tree/.git", "tree/src", "tmp"] {
            std::fs::create_dir_all(bench.path(dir)).unwrap();
        }
        for (name, text) in files {
            let path = bench.path(name);
            let dir = path.parent().unwrap();
            std::fs::create_dir_all(dir).unwrap();
            atomic::replace(dir, &path, text.as_bytes(), Durability::Relaxed).unwrap();
        }
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn around(&self, cwd: &str) -> Surroundings {
        Surroundings {
            cwd: self.path(cwd),
            tree: self.path("tree"),
            home: Some(self.path("home")),
            user: Some(self.path("user")),
            tmp: self.path("tmp"),
            scratchpad: None,
            today: "2026-01-31".into(),
            confined: true,
        }
    }

    fn prompt(&self, cwd: &str) -> String {
        Context::gather(&self.around(cwd)).prompt(Some("Own."))
    }
}

/// Checks that the words come in this order.
fn in_order(text: &str, words: &[&str]) {
    let mut from = 0;
    for word in words {
        let at = text[from..].find(word);
        from += at.unwrap_or_else(|| panic!("{word:?} is not after {from} in:\n{text}"));
    }
}

#[test]
fn instructions_come_from_the_user_and_from_the_top_down() {
    let bench = Bench::new(&[
        ("home/CLAUDE.md", "of the user"),
        ("CLAUDE.md", "above the tree"),
        ("tree/CLAUDE.md", "of the project"),
        ("tree/AGENTS.md", "for all agents"),
        ("tree/CLAUDE.local.md", "of this checkout"),
        ("tree/src/CLAUDE.md", "of src"),
        ("tree/src/deep/AGENTS.md", "of deep"),
    ]);
    let prompt = bench.prompt("tree/src");
    let words = [
        "Own.",
        "2026-01-31",
        "of the user",
        "of the project",
        "for all agents",
    ];
    in_order(&prompt, &words);
    in_order(&prompt, &["for all agents", "of this checkout", "of src"]);
    assert!(!prompt.contains("above the tree") && !prompt.contains("of deep"));
    let usual = Context::gather(&bench.around("tree")).prompt(None);
    assert!(usual.starts_with("You are an agent"));
}

#[test]
fn the_fixed_part_is_short() {
    let bench = Bench::new(&[]);
    let prompt = Context::gather(&bench.around("tree")).prompt(None);
    assert!(prompt.len() / 4 < 400, "{} tokens", prompt.len() / 4);
    assert!(!prompt.contains("# Instructions"));
}

#[test]
fn imports_are_followed_a_few_times_and_not_out_of_the_repository() {
    let bench = Bench::new(&[
        ("user/secret.md", "the secret"),
        ("user/notes.md", "notes of the user"),
        ("home/CLAUDE.md", "mine: @~/notes.md"),
        (
            "tree/CLAUDE.md",
            "see @docs/a.md. and @~/secret.md and @../user/secret.md\n`@docs/code.md`\n```\n@docs/code.md\n```\nby @alice",
        ),
        ("tree/docs/a.md", "text of a, @./b.md"),
        (
            "tree/docs/b.md",
            "text of b, back to @a.md and @/etc/passwd",
        ),
        ("tree/docs/code.md", "only code"),
        ("tree/1.md", "one @2.md"),
    ]);
    symlink(bench.path("user/secret.md"), bench.path("tree/AGENTS.md")).unwrap();
    let prompt = bench.prompt("tree");
    in_order(&prompt, &["notes of the user", "mine:"]);
    in_order(&prompt, &["text of b", "text of a", "see @docs"]);
    assert_eq!(prompt.matches("text of a").count(), 1);
    for not in ["the secret", "only code", "root:"] {
        assert!(!prompt.contains(not), "{not}");
    }
}

#[test]
fn endless_imports_and_long_files_are_cut_and_that_is_said() {
    let mut files: Vec<(String, String)> = (0..9)
        .map(|n| (format!("tree/{n}.md"), format!("file {n} @{}.md", n + 1)))
        .collect();
    files.push((
        "tree/CLAUDE.md".into(),
        format!("@0.md {}", "é".repeat(30_000)),
    ));
    files.push(("tree/AGENTS.md".into(), "x".repeat(40_000)));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let bench = Bench::new(&files);
    let prompt = bench.prompt("tree");
    assert!(prompt.contains("file 4") && !prompt.contains("file 5"));
    assert!(prompt.contains("longer than 32 KiB"));
    assert!(prompt.contains("Left out") && prompt.contains("AGENTS.md"));
    assert!(prompt.len() < instructions::MOST + 2048);
}

#[tokio::test]
async fn instructions_below_are_told_once_when_a_file_there_is_read() {
    let bench = Bench::new(&[
        ("tree/CLAUDE.md", "of the project"),
        ("tree/src/CLAUDE.md", "of src"),
        ("tree/src/deep/a.rs", "fn a() {}"),
        ("tree/src/deep/b.rs", "fn b() {}"),
    ]);
    let around = bench.around("tree");
    let context = Context::gather(&around);
    let options = ToolboxOptions {
        cwd: around.cwd.clone(),
        tmp: around.tmp.clone(),
        ..ToolboxOptions::default()
    };
    let toolbox = Toolbox::telling(&options, Vec::new(), Some(context.found_below()));
    let read = async |file: &str| {
        let input = json!({ "file_path": file });
        toolbox.call("Read", input, &Call::new("1")).await.text
    };
    let first = read("src/deep/a.rs").await;
    in_order(&first, &["fn a()", "of src"]);
    assert!(!first.contains("of the project"), "known already");
    assert!(!read("src/deep/b.rs").await.contains("of src"));
}

#[tokio::test]
async fn skills_are_listed_by_description_and_loaded_by_name() {
    let skill = |name: &str, about: &str| {
        format!("---\nname: {name}\ndescription: {about}\n---\nDo {about} with $ARGUMENTS.\n")
    };
    let bench = Bench::new(&[
        (
            "tree/.claude/skills/review/SKILL.md",
            &skill("review", "careful reviews"),
        ),
        (
            "home/skills/review/SKILL.md",
            &skill("review", "other reviews"),
        ),
        ("home/skills/ship/SKILL.md", &skill("ship", "releases")),
        ("home/skills/broken/SKILL.md", "no front matter"),
        (
            "home/skills/hidden/SKILL.md",
            "---\ndescription: x\ndisable-model-invocation: true\n---\n",
        ),
        ("outside/SKILL.md", &skill("outside", "an escape")),
    ]);
    std::fs::create_dir(bench.path("tree/.claude/skills/link")).unwrap();
    let link = bench.path("tree/.claude/skills/link/SKILL.md");
    symlink(bench.path("outside/SKILL.md"), link).unwrap();
    let context = Context::gather(&bench.around("tree"));
    let tool = context.skill_tool().unwrap();
    let about = &tool.spec().description;
    in_order(about, &["review: careful reviews", "ship: releases"]);
    for not in ["other reviews", "broken", "hidden", "escape"] {
        assert!(!about.contains(not), "{not} in {about}");
    }
    assert_eq!(
        context.skill_dirs(&bench.path("tree")),
        [bench.path("home/skills/ship")]
    );
    let call = async |input| tool.call(input, &Call::new("1")).await;
    let loaded = call(json!({"skill": "review", "args": "src"})).await;
    assert!(
        loaded.text.contains("Do careful reviews with src."),
        "{}",
        loaded.text
    );
    let missing = call(json!({"skill": "shipp"})).await;
    assert!(missing.is_error && missing.text.contains("did you mean \"ship\""));
    assert!(
        Context::gather(&Bench::new(&[]).around("tree"))
            .skill_tool()
            .is_none()
    );
}

#[test]
fn a_hundred_skills_stay_short() {
    let long = format!("---\ndescription: {}\n---\nx", "word ".repeat(100));
    let names: Vec<String> = (0..100)
        .map(|n| format!("home/skills/s{n}/SKILL.md"))
        .collect();
    let files: Vec<(&str, &str)> = names
        .iter()
        .map(|name| (name.as_str(), long.as_str()))
        .collect();
    let tool = Context::gather(&Bench::new(&files).around("tree"))
        .skill_tool()
        .unwrap();
    let about = &tool.spec().description;
    assert!(about.len() < 5 * 1024, "{}", about.len());
    assert!(about.contains("no room to describe") && about.contains("more"));
}
