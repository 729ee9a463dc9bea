use std::time::Duration;

use store::atomic::Durability;
use store::clock::ManualClock;
use store::home::Home;

use super::*;
use crate::definitions::Sources;
use crate::hooks::HookFiles;

fn put(path: &Path, text: &str) {
    let dir = path.parent().unwrap();
    store::home::create_dir(dir).unwrap();
    atomic::replace(dir, path, text.as_bytes(), Durability::Relaxed).unwrap();
}

fn set_up(command: &str) -> SetUpCommand {
    SetUpCommand {
        command: command.into(),
        file: "/r/.claude/ccb.json".into(),
    }
}

fn scripts_of(command: &str, root: &Path) -> Vec<String> {
    let item = Item::set_up(&set_up(command), Places::one(root));
    item.scripts().map(str::to_owned).collect()
}

#[test]
fn an_item_changes_with_what_would_run_and_only_with_that() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    put(&root.join("a/check.sh"), "one");
    let id = |command: &str, root| Item::set_up(&set_up(command), Places::one(root)).id();
    let before = id("a/check.sh --all", root);
    assert_eq!(before, id("a/check.sh --all", root));
    assert_ne!(before, id("a/check.sh", root));
    put(&root.join("a/check.sh"), "two");
    assert_ne!(
        before,
        id("a/check.sh --all", root),
        "the script is another one"
    );
    put(&root.join("a/check.sh"), "one");
    assert_eq!(before, id("a/check.sh --all", root));
    // The same in another worktree is the same.
    let other = tempfile::tempdir().unwrap();
    put(&other.path().join("a/check.sh"), "one");
    assert_eq!(before, id("a/check.sh --all", other.path()));
}

#[test]
fn scripts_are_found_however_they_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    put(&root.join("x.sh"), "x");
    put(&root.join("d/y.py"), "y");
    for command in [
        "./x.sh && python3 d/y.py",
        "sh -c './x.sh;d/y.py'",
        "\"$CLAUDE_PROJECT_DIR\"/x.sh | ${CLAUDE_PROJECT_DIR}/d/y.py",
        "\"$CLAUDE_PROJECT_DIR/x.sh\" FILE=d/y.py",
        "d/../x.sh ../../../../../../etc/passwd d/y.py d /etc/passwd",
    ] {
        assert_eq!(scripts_of(command, root), ["d/y.py", "x.sh"], "{command}");
    }
    assert_eq!(scripts_of("make test", root), [""; 0]);
}

#[test]
fn a_script_that_an_agent_changed_in_its_tree_is_not_the_trusted_one() {
    let dir = tempfile::tempdir().unwrap();
    let (project, tree) = (dir.path().join("main"), dir.path().join("tree"));
    put(&project.join("x.sh"), "good");
    put(&tree.join("x.sh"), "bad");
    let places = Places {
        tree: &tree,
        project: &project,
    };
    let id = |command: &str, places| Item::set_up(&set_up(command), places).id();
    let trusted = id("./x.sh", Places::one(&project));
    assert_ne!(id("./x.sh", places), trusted);
    let fixed = "$CLAUDE_PROJECT_DIR/x.sh";
    assert_eq!(id(fixed, places), id(fixed, Places::one(&project)));
}

#[test]
fn everything_that_needs_it_is_gathered() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("repo");
    let own = dir.path().join("home/ccb.json");
    let shared = root.join(".claude/ccb.json");
    put(
        &own,
        r#"{"agents":{"env":["MINE"]},"runtimes":{"mine":{"kind":"shell"}}}"#,
    );
    put(
        &shared,
        r#"{"agents":{"env":["AWS_*"]},"worktree":{"setup":"./s.sh"},
            "runtimes":{"theirs":{"kind":"acp","command":["./agent"]}}}"#,
    );
    put(
        &root.join(".claude/settings.json"),
        r#"{"hooks":{"TaskCreated":[{"hooks":[{"command":"h"}]}]}}"#,
    );
    let agent = "---\nname: a\ndescription: d\nmcpServers: [known, {db: {command: x}}]\n\
                 hooks: {Stop: [{command: s}], PreToolUse: [{command: p}]}\n---\nPrompt";
    put(&root.join(".claude/agents/a.md"), agent);
    let settings = Settings::load(&[own.clone(), shared]).unwrap();
    let hooks = Hooks::load(&HookFiles {
        project: Some(root.join(".claude/settings.json")),
        ..HookFiles::default()
    });
    let definitions = Definitions::load(&Sources {
        project: vec![root.join(".claude/agents")],
        ..Sources::default()
    });
    let items = gather(&settings, &own, &hooks, &definitions, Places::one(&root));
    let found: Vec<(&str, &str)> = items
        .iter()
        .map(|item| (item.kind.as_str(), item.name.as_str()))
        .collect();
    let expected = [
        ("hook", "TaskCreated"),
        ("setup", "worktree.setup"),
        ("runtime", "theirs"),
        ("environment", "agents.env"),
        ("hook", "SubagentStop"),
        ("agent-hooks", "a"),
        ("agent-mcp-server", "a/db"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn trust_is_kept_per_repository_until_it_is_revoked() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::new(dir.path().to_owned()).unwrap();
    let clock = ManualClock::at(0);
    let trust = |repository| Trust::new(&home, repository, Duration::from_secs(10));
    let (ours, theirs) = (trust("/r/.git"), trust("/other/.git"));
    assert_eq!(ours.granted().unwrap(), [""; 0]);
    let item = |command| Item::set_up(&set_up(command), Places::one(dir.path()));
    ours.grant(&[item("a")], &clock).unwrap();
    ours.grant(&[item("b")], &clock).unwrap();
    let granted = ours.granted().unwrap();
    assert_eq!(granted, [item("a").id(), item("b").id()]);
    assert_eq!(theirs.granted().unwrap(), [""; 0]);
    assert!(!theirs.revoke().unwrap());
    assert!(ours.revoke().unwrap());
    assert_eq!(ours.granted().unwrap(), [""; 0]);
}

#[test]
fn a_file_that_is_not_ours_to_write_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::new(dir.path().to_owned()).unwrap();
    let trust = Trust::new(&home, "/r/.git", Duration::from_secs(10));
    let clock = ManualClock::at(0);
    let path = dir.path().join("ccb/trust.json");
    for text in [
        "{",
        "[]",
        r#"{"v": 2, "repositories": {}}"#,
        r#"{"repositories": []}"#,
    ] {
        put(&path, text);
        assert!(trust.grant(&[], &clock).is_err(), "{text}");
        assert!(trust.revoke().is_err(), "{text}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    put(
        &path,
        r#"{"v": 2, "repositories": {"/r/.git": {"items": {"x": {}}}}}"#,
    );
    assert_eq!(trust.granted().unwrap(), ["x"], "a later format is read");
    put(&path, r#"{"v": 1, "mine": 1}"#);
    trust.grant(&[], &clock).unwrap();
    assert!(
        std::fs::read_to_string(&path)
            .unwrap()
            .contains("\"mine\": 1")
    );
}
