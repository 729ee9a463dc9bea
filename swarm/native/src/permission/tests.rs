use std::os::unix::fs::symlink;

use serde_json::json;
use store::atomic::{self, Durability};

use super::*;

fn bash(line: &str) -> Value {
    json!({ "command": line })
}

fn word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::Deny(_) => "deny",
        Decision::Ask => "ask",
    }
}

#[test]
fn each_mode_decides_as_its_name_says() {
    let edit = ("Edit", json!({"file_path": "a"}));
    let test = ("Bash", bash("make test"));
    let push = ("Bash", bash("git push"));
    let look = ("Bash", bash("git status"));
    let read = ("Read", json!({"file_path": "a"}));
    let web = ("WebFetch", json!({"url": "https://docs.rs/x"}));
    let mail = ("mcp__ccb__SendMessage", json!({}));
    let server = ("mcp__db__put", json!({}));
    let calls = [edit, test, push, look, read, web, mail, server];
    let table = |confined| {
        let modes = [
            "default",
            "acceptEdits",
            "plan",
            "bypassPermissions",
            "dontAsk",
            "bubble",
        ];
        modes.map(|mode| {
            let permissions = Permissions::new(PermissionOptions {
                mode: PermissionMode::of_agent(mode).unwrap(),
                cwd: "/tree".into(),
                confined,
                network: true,
                ..PermissionOptions::default()
            });
            let each = calls.iter().map(|(tool, input)| {
                let decision = permissions.decide(tool, input);
                word(&decision)
            });
            format!("{mode}: {}", each.collect::<Vec<_>>().join(" "))
        })
    };
    // Edit, a command, one that reaches out, one that looks; Read, WebFetch, our own, a server's.
    assert_eq!(
        table(false),
        [
            "default: ask ask ask allow allow ask allow ask",
            "acceptEdits: allow ask ask allow allow ask allow ask",
            "plan: deny deny deny allow allow ask allow ask",
            "bypassPermissions: allow allow allow allow allow allow allow allow",
            "dontAsk: deny deny deny allow allow deny allow deny",
            "bubble: ask ask ask allow allow ask allow ask",
        ]
    );
    assert_eq!(
        table(true),
        [
            "default: ask ask ask allow allow ask allow ask",
            "acceptEdits: allow allow ask allow allow ask allow ask",
            "plan: deny allow deny allow allow ask allow ask",
            "bypassPermissions: allow allow allow allow allow allow allow allow",
            "dontAsk: deny deny deny allow allow deny allow deny",
            "bubble: ask ask ask allow allow ask allow ask",
        ]
    );
}

#[test]
fn one_that_reads_does_not_write_in_any_mode() {
    for mode in PermissionMode::ALL {
        for (reach, command) in [(Reach::Reads, "deny"), (Reach::Runs, "ask")] {
            let mut permissions = Permissions::new(PermissionOptions {
                mode: PermissionMode::AcceptEdits,
                reach,
                cwd: "/tree".into(),
                ..PermissionOptions::default()
            });
            permissions.set_mode(*mode);
            for tool in EDITING {
                let decision = permissions.decide(tool, &json!({"file_path": "a"}));
                assert_eq!(word(&decision), "deny", "{mode:?} {tool}");
            }
            let looks = permissions.decide("Bash", &bash("ls"));
            assert_eq!(word(&looks), "allow");
            let writes = word(&permissions.decide("Bash", &bash("touch a"))).to_owned();
            let expected = match (mode, reach) {
                (PermissionMode::Bypass, Reach::Runs) => "allow",
                (PermissionMode::Plan | PermissionMode::DontAsk, _) => "deny",
                _ => command,
            };
            assert_eq!(writes, expected, "{mode:?} {reach:?}");
        }
    }
}

struct Files {
    dir: tempfile::TempDir,
}

impl Files {
    /// The user's and the repository's settings.
    fn new(user: &Value, project: &Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: String| {
            let path = dir.path().join(name);
            let above = path.parent().unwrap();
            std::fs::create_dir_all(above).unwrap();
            atomic::replace(above, &path, text.as_bytes(), Durability::Relaxed).unwrap();
        };
        put(
            "home/settings.json",
            json!({ "permissions": user }).to_string(),
        );
        put(
            "tree/.claude/settings.json",
            json!({ "permissions": project }).to_string(),
        );
        put("tree/secrets/key", "k".into());
        put("tree/src/a.rs", "a".into());
        Self { dir }
    }

    fn rules(&self, trusted: bool) -> Rules {
        Rules::load(&RuleSources {
            home: Some(self.dir.path().join("home")),
            tree: self.dir.path().join("tree"),
            cwd: self.dir.path().join("tree"),
            user: Some(self.dir.path().to_owned()),
            trusted,
        })
    }

    fn permissions(&self, mode: PermissionMode, trusted: bool) -> Permissions {
        Permissions::new(PermissionOptions {
            mode,
            cwd: self.dir.path().join("tree"),
            rules: self.rules(trusted),
            ..PermissionOptions::default()
        })
    }
}

#[test]
fn rules_allow_exactly_what_they_name() {
    let user = json!({"allow": ["Bash(git *)", "Bash(npm run test:*)", "Edit(src/**)",
        "mcp__db__*", "WebFetch(domain:docs.rs)"], "deny": ["Bash(git push *)"]});
    let files = Files::new(&user, &json!({}));
    let permissions = files.permissions(PermissionMode::DontAsk, false);
    let decide = |tool: &str, input: Value| word(&permissions.decide(tool, &input)).to_owned();
    for line in [
        "git commit -m x",
        "git add . && git commit -m 'a; b'",
        "npm run test --all",
        "git log | head",
        "timeout 10 git fetch",
    ] {
        assert_eq!(decide("Bash", bash(line)), "allow", "{line}");
    }
    for line in [
        "git status && rm -rf x",
        "git status; rm -rf x",
        "git status | sh",
        "git log $(rm x)",
        "git log `rm x`",
        "git diff > /etc/x",
        "PAGER=x git log",
        "git push origin",
        "git add . && git push",
        "timeout 9 git push",
        "/usr/bin/git push",
        "X=1 git push",
        "echo $(git push)",
        "gitx",
        "npm run build",
    ] {
        assert_eq!(decide("Bash", bash(line)), "deny", "{line}");
    }
    assert_eq!(decide("Edit", json!({"file_path": "src/a.rs"})), "allow");
    assert_eq!(
        decide("Write", json!({"file_path": "src/new/b.rs"})),
        "allow"
    );
    assert_eq!(decide("Edit", json!({"file_path": "Cargo.toml"})), "deny");
    assert_eq!(
        decide("Edit", json!({"file_path": "src/../Cargo.toml"})),
        "deny"
    );
    assert_eq!(decide("mcp__db__put", json!({})), "allow");
    assert_eq!(decide("mcp__other__put", json!({})), "deny");
    let url = |url: &str| json!({ "url": url });
    assert_eq!(decide("WebFetch", url("https://docs.rs/x")), "allow");
    assert_eq!(decide("WebFetch", url("https://docs.rs.evil/x")), "deny");
    assert_eq!(decide("WebFetch", url("https://docs.rs@evil/x")), "deny");
}

#[test]
fn denials_win_in_every_mode_also_through_links() {
    let user =
        json!({"allow": ["Read", "Bash"], "deny": ["Read(./secrets/**)", "Edit(secrets/**)"]});
    let files = Files::new(&user, &json!({}));
    symlink("secrets", files.dir.path().join("tree/open")).unwrap();
    for mode in PermissionMode::ALL {
        let permissions = files.permissions(*mode, false);
        for path in ["secrets/key", "open/key", "./src/../secrets/key", "secrets"] {
            for tool in ["Read", "Grep"] {
                let input = json!({"file_path": path});
                let input = if tool == "Grep" {
                    json!({"path": path})
                } else {
                    input
                };
                let decision = permissions.decide(tool, &input);
                // The directory itself may be listed; what is in it may not.
                let expected = if path == "secrets" { "allow" } else { "deny" };
                assert_eq!(word(&decision), expected, "{mode:?} {tool} {path}");
            }
        }
        let write = permissions.decide("Write", &json!({"file_path": "open/new"}));
        assert_eq!(word(&write), "deny", "{mode:?}");
        let other = permissions.decide("Read", &json!({"file_path": "src/a.rs"}));
        assert_eq!(word(&other), "allow");
    }
}

#[test]
fn a_repository_denies_always_and_allows_only_where_it_is_trusted() {
    let project =
        json!({"allow": ["Bash(make *)"], "deny": ["Bash(rm *)"], "ask": ["Bash(cat *)"]});
    let files = Files::new(&json!({"allow": ["Bash(rm *)"]}), &project);
    for trusted in [false, true] {
        let permissions = files.permissions(PermissionMode::Ask, trusted);
        let decide = |line: &str| word(&permissions.decide("Bash", &bash(line))).to_owned();
        assert_eq!(decide("make x"), if trusted { "allow" } else { "ask" });
        assert_eq!(decide("rm x"), "deny");
        assert_eq!(decide("cat x"), "ask");
    }
}

#[test]
fn mistakes_in_settings_are_told_and_the_rest_counts() {
    let user = json!({"allow": ["Bash(make *)", "Bash(x", 7, "a b"], "deny": ["Other(x)"]});
    let files = Files::new(&user, &json!({}));
    let rules = files.rules(false);
    assert_eq!(rules.warnings.len(), 3, "{:?}", rules.warnings);
    let permissions = files.permissions(PermissionMode::DontAsk, false);
    assert_eq!(word(&permissions.decide("Bash", &bash("make x"))), "allow");
    // An unknown pattern denies more rather than less.
    assert_eq!(word(&permissions.decide("Other", &json!({}))), "deny");
    let path = files.dir.path().join("home/settings.json");
    let dir = files.dir.path().join("home");
    atomic::replace(&dir, &path, b"{", Durability::Relaxed).unwrap();
    assert!(files.rules(false).warnings[0].contains("cannot be read"));
}

#[test]
fn rules_of_a_definition_count() {
    let of = |tools: &[&str], not: &[&str]| {
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Permissions::new(PermissionOptions {
            mode: PermissionMode::DontAsk,
            filter: ToolFilter::new(Some(list(tools)), list(not)),
            cwd: "/tree".into(),
            ..PermissionOptions::default()
        })
    };
    let permissions = of(&["Bash(git *)", "Edit", "mcp__db"], &["Bash(git push *)"]);
    let decide = |tool: &str, input: Value| word(&permissions.decide(tool, &input)).to_owned();
    assert_eq!(decide("Bash", bash("git add .")), "allow");
    assert_eq!(decide("Bash", bash("git push")), "deny");
    assert_eq!(decide("Bash", bash("make")), "deny");
    assert_eq!(
        decide("Edit", json!({"file_path": "a"})),
        "deny",
        "in, but not free"
    );
    assert_eq!(decide("mcp__db__get", json!({})), "allow");
}
