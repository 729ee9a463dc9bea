use std::path::PathBuf;
use store::Explain;

use proptest::prelude::*;
use store::atomic::{self, Durability};

use super::*;

fn put(path: &Path, text: impl AsRef<[u8]>) {
    let dir = path.parent().unwrap();
    store::home::create_dir(dir).unwrap();
    atomic::replace(dir, path, text.as_ref(), Durability::Relaxed).unwrap();
}

fn agent(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: d of {name}\n{more}---\nPrompt of {name}.\n")
}

fn read(text: &str) -> Result<Definition, read::Mistake> {
    read::markdown(text).map(|read| read.expect("a definition").definition)
}

/// `more` are lines of front matter.
fn with(more: &str) -> Result<Definition, read::Mistake> {
    read(&agent("a", &format!("{more}\n")))
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn sources(&self) -> Sources {
        let cwd = self.path("repo/sub");
        Sources {
            managed: Some(self.path("managed")),
            json: None,
            project: Sources::project_directories(&cwd, Some(&self.path("repo"))),
            user: Some(self.path("home/agents")),
            deny: Vec::new(),
        }
    }
}

#[test]
fn every_key_is_read() {
    let text = r#"---
name: "reviewer"
description: Reviews code
tools: Read, Bash(git log, git diff), mcp__db__*
disallowedTools: [Write, Edit]
model: inherit
effort: high
permissionMode: plan
maxTurns: 10
background: true
isolation: worktree
memory: project
mcpServers:
  - slack
  - database:
      command: npx
      args: ["mcp-db"]
requiredMcpServers: slack
hooks:
  Stop:
    - hooks:
        - type: command
          command: ./audit.sh
skills: code-review, security
initialPrompt: /search TODO
color: blue
---

You review.

---
Still the prompt.
"#;
    let definition = read(text).unwrap();
    assert_eq!(definition.prompt, "You review.\n\n---\nStill the prompt.");
    assert_eq!(definition.effort, Some(Effort::High));
    assert_eq!(definition.permission_mode, PermissionMode::Plan);
    assert_eq!(definition.isolation, Some(Isolation::Worktree));
    assert!(definition.runs_code());
    let expected = json!({
        "name": "reviewer",
        "description": "Reviews code",
        "tools": ["Read", "Bash(git log, git diff)", "mcp__db__*"],
        "disallowedTools": ["Write", "Edit"],
        "model": "inherit",
        "effort": "high",
        "permissionMode": "plan",
        "maxTurns": 10,
        "background": true,
        "isolation": "worktree",
        "memory": "project",
        "mcpServers": ["slack", {"database": {"command": "npx", "args": ["mcp-db"]}}],
        "requiredMcpServers": ["slack"],
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./audit.sh"}]}]},
        "skills": ["code-review", "security"],
        "initialPrompt": "/search TODO",
        "color": "blue",
        "prompt": "You review.\n\n---\nStill the prompt.",
    });
    assert_eq!(definition.to_json(), expected);
    // The flag reads the text that is printed.
    let mut entry = expected;
    entry.as_object_mut().unwrap().remove("name");
    assert_eq!(
        read::json("reviewer", &entry).unwrap().definition,
        definition
    );
}

#[test]
fn what_is_not_said_has_its_default() {
    let definition = read(&agent("a", "")).unwrap();
    assert_eq!(definition.tools, None);
    assert_eq!(definition.permission_mode, PermissionMode::AcceptEdits);
    assert_eq!(definition.model, None);
    assert!(!definition.background && !definition.runs_code());
    assert_eq!(with("tools:").unwrap().tools, None, "null is absent");
    assert_eq!(with("tools: '*'").unwrap().tools, None);
    assert_eq!(with("tools: [Read, '*']").unwrap().tools, None);
    assert_eq!(with("tools: []").unwrap().tools, Some(vec![]));
    assert_eq!(with("tools: []").unwrap().to_json()["tools"], json!([]));
    assert_eq!(with("effort: 7").unwrap().effort, Some(Effort::Level(7)));
    assert!(with("background: 'true'").unwrap().background);
    assert!(!with("mcpServers: slack, github").unwrap().runs_code());
}

#[test]
fn a_key_that_means_nothing_is_ignored_and_named() {
    let text = agent("a", "version: 2\nModel: x\nmodel: opus\n");
    let reading = read::markdown(&text).unwrap().unwrap();
    assert_eq!(reading.definition.model.as_deref(), Some("opus"));
    let ignored: Vec<_> = reading.ignored.iter().map(|one| one.line).collect();
    assert_eq!(ignored, [Some(4), Some(5)]);
    assert!(reading.ignored[0].why.contains("known are"));
    assert!(reading.ignored[1].why.contains("did you mean \"model\"?"));
    // The error names the wrong field, not an unknown one.
    let wrong = with("version: 2\nmodel: Inherit").unwrap_err();
    assert!(wrong.why.contains("lower case"), "{wrong:?}");
}

#[test]
fn mistakes_say_what_and_where() {
    for (line, says) in [
        ("disalowedTools: x", "did you mean \"disallowedTools\"?"),
        ("Tools: x", "did you mean \"tools\"?"),
        ("model: Inherit", "lower case"),
        ("model: --help", "not a model's name"),
        ("model: a b", "not a model's name"),
        ("model: [a]", "must be text"),
        ("model: ''", "is empty"),
        ("effort: huge", "low, medium, high"),
        ("effort: -1", "low, medium, high"),
        ("permissionMode: acceptedits", "one of default, acceptEdits"),
        ("maxTurns: 0", "above 0"),
        ("maxTurns: 1.5", "above 0"),
        ("background: maybe", "true or false"),
        (
            "isolation: remote",
            "\"isolation: remote\" is not supported",
        ),
        ("isolation: docker", "must be \"worktree\""),
        ("memory: global", "one of user, project, local"),
        ("tools: {a: b}", "list of names"),
        ("tools: [1]", "list of names"),
        ("tools: [--dangerous]", "is not a name"),
        ("skills: [[a]]", "list of names"),
        ("mcpServers: [1]", "mcpServers"),
        ("mcpServers: [{a: b}]", "configuration of \"a\""),
        ("mcpServers: [a, a]", "twice"),
        ("mcpServers: [a__b]", "cannot be a server's name"),
        ("hooks: [a]", "for each event"),
        ("hooks: {Stop: a}", "for each event"),
        ("color: 'a b'", "not a colour"),
    ] {
        let mistake = with(line).expect_err(line);
        assert!(mistake.why.contains(says), "{line}: {}", mistake.why);
        assert_eq!(mistake.line, Some(4), "{line}: {}", mistake.why);
        assert_eq!(mistake.name.as_deref(), Some("a"));
    }
    for (text, line, says) in [
        ("---\ndescription: d\n---\nx", None, "\"name\" is missing"),
        ("---\nname: a\n---\nx", None, "\"description\" is missing"),
        (
            "---\ndescription: d\nname: a b\n---\nx",
            Some(3),
            "not a valid agent name",
        ),
        (
            "---\ndescription: d\nname: 1\n---\nx",
            Some(3),
            "must be text",
        ),
        ("---\nname: a\ndescription: d\n---\n \n", None, "no prompt"),
        ("---\nname: a\ndescription: d\n---\nx\n\0", Some(6), "NUL"),
        ("---\nname: a\ndescription: \"\\0\"\n---\nx", Some(3), "NUL"),
    ] {
        let mistake = read(text).unwrap_err();
        assert!(mistake.why.contains(says), "{text:?}: {}", mistake.why);
        assert_eq!(mistake.line, line, "{text:?}");
    }
}

#[test]
fn the_built_in_ones_are_there_and_sound() {
    let all = Definitions::load(&Sources::default());
    assert_eq!(all.problems, []);
    let names: Vec<&str> = all
        .iter()
        .map(|found| found.definition.name.as_str())
        .collect();
    let expected = [
        "Explore",
        "general-purpose",
        "Plan",
        "verification",
        "worker",
    ];
    assert_eq!(names, expected);
    for found in all.iter() {
        assert_eq!(found.source, Source::BuiltIn);
        assert!(found.definition.prompt.len() > 500);
        assert!(!found.definition.runs_code());
    }
    let explore = &all.get("explore").unwrap().definition;
    assert_eq!(explore.model.as_deref(), Some("haiku"));
    let denied = ["Agent", "ExitPlanMode", "Edit", "Write", "NotebookEdit"];
    assert_eq!(explore.disallowed_tools, denied);
    let plan = &all.get("Plan").unwrap().definition;
    assert!(
        !plan
            .disallowed_tools
            .iter()
            .any(|tool| tool == "ExitPlanMode")
    );
    assert!(
        all.get("verification")
            .unwrap()
            .definition
            .prompt
            .contains("VERDICT: PARTIAL")
    );
}

#[test]
fn the_higher_level_wins_and_the_nearer_directory() {
    let place = Place::new();
    let files = [
        "managed/x.md",
        "repo/sub/.claude/agents/x.md",
        "repo/.claude/agents/deep/er/x.md",
        "home/agents/x.md",
    ];
    for file in files {
        put(&place.path(file), agent("Explore", ""));
    }
    // Above the repository: not ours.
    put(&place.path(".claude/agents/y.md"), agent("y", ""));
    let mut sources = place.sources();
    sources.json = Some(r#"{"Explore": {"description": "d", "prompt": "p"}}"#.into());
    let all = Definitions::load(&sources);
    assert_eq!(all.problems, []);
    assert!(all.get("y").is_err());
    let found: Vec<&Found> = all
        .found
        .iter()
        .filter(|found| found.definition.name.as_str() == "Explore")
        .collect();
    let sources: Vec<Source> = found.iter().map(|found| found.source.clone()).collect();
    let expected = [
        Source::Managed(place.path(files[0])),
        Source::Flag,
        Source::Project(place.path(files[1])),
        Source::Project(place.path(files[2])),
        Source::User(place.path(files[3])),
        Source::BuiltIn,
    ];
    assert_eq!(sources, expected);
    assert_eq!(found[0].overrides, expected[1..]);
    assert_eq!(found[0].overridden_by, None);
    for other in &found[1..] {
        assert_eq!(other.overridden_by.as_ref(), Some(&expected[0]));
    }
    assert_eq!(all.get("EXPLORE").unwrap().source, expected[0]);
    assert!(expected[2].is_repository() && !expected[4].is_repository());
}

#[test]
fn names_that_differ_in_case_are_one() {
    let place = Place::new();
    put(&place.path("home/agents/e.md"), agent("eXPLORE", ""));
    let all = Definitions::load(&place.sources());
    let explore = all.get("Explore").unwrap();
    assert_eq!(explore.definition.name.as_str(), "eXPLORE");
    assert_eq!(explore.overrides, [Source::BuiltIn]);
}

#[test]
fn bad_files_are_reported_and_the_rest_load() {
    let place = Place::new();
    let dir = place.path("home/agents");
    put(&dir.join("good.md"), agent("good", ""));
    put(&dir.join("also.md"), agent("good", ""));
    put(&dir.join("README.md"), "# Not a definition\n");
    put(&dir.join("notes.txt"), "---\n");
    put(&dir.join(".hidden.md"), "---\n");
    put(&dir.join("bad.md"), agent("wrong", "tols: x\n"));
    put(&dir.join("latin.md"), b"---\nname: \xe9\n---\n");
    put(
        &dir.join("huge.md"),
        agent("huge", "") + &"x".repeat(300 * 1024),
    );
    std::os::unix::fs::symlink("/nowhere/at/all", dir.join("link.md")).unwrap();
    std::os::unix::fs::symlink(&dir, dir.join("loop")).unwrap();
    let all = Definitions::load(&place.sources());
    assert_eq!(
        all.get("good").unwrap().source,
        Source::User(dir.join("also.md"))
    );
    let mut problems: Vec<(String, Option<usize>, String)> = all
        .problems
        .iter()
        .map(|problem| {
            let file = problem.source.file().unwrap().strip_prefix(&dir).unwrap();
            (
                file.display().to_string(),
                problem.line,
                problem.why.clone(),
            )
        })
        .collect();
    problems.sort();
    let files: Vec<&str> = problems.iter().map(|problem| problem.0.as_str()).collect();
    assert_eq!(
        files,
        ["bad.md", "good.md", "huge.md", "latin.md", "link.md"]
    );
    assert_eq!(problems[0].1, Some(4));
    assert!(
        problems[0].2.contains("did you mean \"tools\""),
        "{problems:?}"
    );
    assert!(problems[1].2.contains("also.md counts"), "{problems:?}");
    assert!(problems[2].2.contains("256 KiB"), "{problems:?}");
    assert!(problems[3].2.contains("UTF-8"), "{problems:?}");
    let DefinitionError::Unknown { problem, .. } = all.get("wrong").unwrap_err() else {
        panic!("not unknown");
    };
    assert_eq!(
        problem.unwrap().line,
        Some(4),
        "the one that was meant is named"
    );
}

#[test]
fn the_flag_is_read_entry_by_entry() {
    let load = |text: &str| {
        Definitions::load(&Sources {
            json: Some(text.into()),
            ..Sources::default()
        })
    };
    let all = load(
        r#"{"a": {"description": "d", "prompt": "p", "tools": ["Read"], "model": "opus"},
            "b": {"description": "d", "promt": "p"}, "c d": {}, "e": 1,
            "a": {"description": "second", "prompt": "p"}}"#,
    );
    let a = &all.get("a").unwrap().definition;
    assert_eq!(
        (a.description.as_str(), a.model.as_deref()),
        ("d", Some("opus"))
    );
    let problems: Vec<String> = all.problems.iter().map(Problem::to_string).collect();
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert!(
        problems[0].starts_with("--agents: \"b\": unknown key \"promt\""),
        "{problems:?}"
    );
    assert!(problems[3].contains("twice"), "{problems:?}");
    for bad in ["", "[]", "{", "{} x", "\"a\""] {
        let all = load(bad);
        assert_eq!(all.problems.len(), 1, "{bad:?}");
        assert_eq!(
            all.iter().count(),
            5,
            "the built-in ones are there all the same"
        );
    }
}

#[test]
fn denied_types_are_errors_and_unknown_ones_name_the_nearest() {
    let all = Definitions::load(&Sources {
        deny: vec!["explore".into()],
        ..Sources::default()
    });
    let denied = all.get("Explore").unwrap_err();
    assert_eq!(denied.kind(), "denied_type");
    let unknown = all.get("verifcation").unwrap_err();
    assert_eq!(unknown.hint().unwrap(), "did you mean verification?");
    let unknown = all.get("zzz").unwrap_err();
    assert!(
        unknown.hint().unwrap().contains("general-purpose"),
        "{unknown:?}"
    );
    let general = all.get("general").unwrap_err();
    assert_eq!(general.hint().unwrap(), "did you mean general-purpose?");
}

#[test]
fn a_home_inside_the_repository_is_the_user_s() {
    let place = Place::new();
    put(&place.path("repo/.claude/agents/a.md"), agent("a", ""));
    let sources = Sources {
        project: Sources::project_directories(&place.path("repo"), Some(&place.path("repo"))),
        user: Some(place.path("repo/.claude/agents")),
        ..Sources::default()
    };
    let all = Definitions::load(&sources);
    assert_eq!(all.get("a").unwrap().source.as_str(), "user");
    assert_eq!(all.get("a").unwrap().overrides, []);
}

#[test]
fn project_directories_go_up_to_the_root_and_no_further() {
    let dirs = |cwd: &str, root: Option<&str>| -> Vec<String> {
        let dirs = Sources::project_directories(Path::new(cwd), root.map(Path::new));
        dirs.iter().map(|dir| dir.display().to_string()).collect()
    };
    assert_eq!(
        dirs("/r/a/b", Some("/r/a")),
        ["/r/a/b/.claude/agents", "/r/a/.claude/agents"]
    );
    assert_eq!(dirs("/r/a", None), ["/r/a/.claude/agents"]);
    assert_eq!(dirs("/r/a", Some("/other")), ["/r/a/.claude/agents"]);
}

#[test]
fn problems_as_json() {
    let problem = Problem {
        source: Source::User("/x.md".into()),
        line: Some(3),
        name: Some("x".into()),
        why: "no".into(),
        ignored_key: false,
    };
    let expected: Value =
        json!({"source": "user", "file": "/x.md", "line": 3, "name": "x", "why": "no"});
    assert_eq!(problem.to_json(), expected);
    assert_eq!(problem.to_string(), "/x.md:3: no");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}", yaml in "[-a-z:\\[\\]{}&*#'\"|> \n\t]{0,80}") {
        for text in [text.clone(), format!("---\n{yaml}\n---\n{text}"), agent("a", &yaml)] {
            if let Err(mistake) = read::markdown(&text) {
                prop_assert!(!mistake.why.is_empty() && !mistake.why.contains('\n'), "{}", mistake.why);
            }
        }
    }
}
