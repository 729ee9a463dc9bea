//! The living members of a team, and its end.

use std::path::Path;

use harness::runs::{LONG, left_of};
use harness::script::Script;
use harness::{Answer, McpClient, TestHome, TestRepo, Workplace, wait_until, write};
use serde_json::json;
use store::lock::{DEFAULT_TIMEOUT, FileLock};
use store::name::Name;

use crate::{CCB, FAKE_AGENT};

fn team() -> TestHome {
    let home = TestHome::new(CCB).with_list("fixers");
    home.ok(&["team", "create", "fixers"]);
    home
}

/// A member that an engine has recorded and not started.
fn record(home: &TestHome, name: &str) {
    home.ok(&["team", "join", "fixers", "--as", name]);
    let mut roster = home.roster("fixers");
    for member in roster["members"].as_array_mut().unwrap() {
        member["isActive"] = false.into();
    }
    home.write_roster("fixers", &roster);
}

fn hold(path: &Path) -> FileLock {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    FileLock::exclusive(path, "a test's agent", DEFAULT_TIMEOUT).unwrap()
}

#[test]
fn refused_while_members_are_alive() {
    let home = team();
    let dir = home.dir_of_team("fixers");
    for name in ["runs", "reads", "rests"] {
        record(&home, name);
    }
    home.ok(&["team", "join", "fixers", "--as", "visits"]);
    let run = hold(&dir.join("runs/runs@fixers/alive.lock"));
    let reads = Name::new("agent", "reads").unwrap();
    let reader = home.mailbox_of("fixers").consumer(&reads).unwrap();
    std::fs::create_dir_all(dir.join("runs/rests@fixers")).unwrap();
    let states: Vec<String> = home.ok(&["team", "show", "fixers"])["team"]["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|member| member["state"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(states, ["away", "running", "reading", "away", "joined"]);

    let before = home.everything();
    let error = home.fails(4, &["team", "delete", "fixers"])["error"].clone();
    assert_eq!(error["kind"], "members_alive");
    assert_eq!(
        error["alive"],
        json!([
            {"name": "runs", "why": "running"},
            {"name": "reads", "why": "reading"},
            {"name": "visits", "why": "joined"},
        ])
    );
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("runs (its run goes on)"), "{message}");
    assert!(
        message.contains("visits (joined and has not left)"),
        "{message}"
    );
    assert_eq!(home.everything(), before);

    drop(run);
    home.ok(&["team", "leave", "fixers", "--as", "visits"]);
    let error = home.fails(4, &["team", "delete", "fixers"]);
    assert_eq!(
        error["error"]["alive"],
        json!([{"name": "reads", "why": "reading"}])
    );
    drop(reader);
    home.ok(&["team", "delete", "fixers"]);
}

#[test]
fn by_force_it_says_who_was_alive() {
    let home = team();
    home.ok(&["team", "join", "fixers", "--as", "visits"]);
    let run = home
        .dir_of_team("fixers")
        .join("runs/a0123456789abcdef/alive.lock");
    let _held = hold(&run);
    let answer = home.run(&["--json", "team", "delete", "fixers", "--force"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let alive = json!([
        {"name": "visits", "why": "joined"},
        {"name": "a0123456789abcdef", "why": "running"},
    ]);
    assert_eq!(answer.json()["alive"], alive);
    assert!(answer.stderr.contains("visits was alive"), "{answer:?}");
    assert!(!run.exists());
}

/// No agent works for a deleted team: neither one at work nor one that waits.
#[test]
fn by_force_it_stops_running_agents() {
    let home = TestHome::in_memory(CCB).with_list("fixers");
    home.with_fake_runtime(FAKE_AGENT, "");
    home.ok(&["team", "create", "fixers"]);
    let idle = home.spawn_fake(&Script::new().done("first").serve(), &["--name", "alice"]);
    let busy = home.spawn_fake(&Script::new().hang(), &["--name", "bob"]);
    home.await_run(&idle, "idle");
    home.await_run(&busy, "running");
    let error = home.fails(4, &["team", "delete", "fixers"]);
    assert_eq!(
        error["error"]["alive"].as_array().unwrap().len(),
        2,
        "{error}"
    );
    let deleted = home.ok(&["team", "delete", "fixers", "--force"]);
    assert_eq!(deleted["stopped"], json!(["alice", "bob"]), "{deleted}");
    assert_eq!(deleted["alive"], json!([]));
    for id in [idle, busy] {
        assert_eq!(left_of(&id), [""; 0], "of {id}");
    }
    assert!(!home.dir_of_team("fixers").join("runs").exists());
}

#[test]
fn refused_while_tasks_are_in_progress() {
    let home = team();
    home.ok(&["task", "create", "x"]);
    let claim = ["task", "claim", "1", "--as", "ann"];
    home.ok(&claim);
    let roster = home.roster("fixers");
    let error = home.fails(4, &["team", "delete", "fixers"]);
    assert_eq!(error["error"]["kind"], "already_claimed");
    assert_eq!(error["error"]["task"]["owner"], "ann");
    assert_eq!(home.roster("fixers"), roster, "it can still be joined");
    assert_eq!(
        home.ok(&claim)["task"]["id"],
        "1",
        "the task is still there"
    );
    assert_eq!(
        home.ok(&["team", "delete", "fixers", "--force"])["tasks"],
        1
    );
}

#[test]
fn ids_go_on_after_a_team_is_deleted() {
    let home = TestHome::new(CCB);
    let mut last = 0;
    for _ in 0..3 {
        home.ok(&["team", "create", "fixers"]);
        let create = ["--json", "--team", "fixers", "task", "create", "x"];
        for _ in 0..2 {
            let answer = home.command_without_list(&create).output().unwrap();
            let id = Answer::of(answer).json()["task"]["id"].clone();
            let id: u64 = id.as_str().unwrap().parse().unwrap();
            assert!(id > last, "{id} was used before");
            last = id;
        }
        assert_eq!(home.ok(&["team", "delete", "fixers"])["tasks"], 2);
        assert_eq!(
            home.fails(3, &["team", "delete", "fixers"])["error"]["kind"],
            "team_not_found"
        );
    }
    assert_eq!(last, 6);
}

#[test]
fn only_the_lock_and_what_others_made_is_left() {
    let home = team();
    let dir = home.dir_of_team("fixers");
    for part in ["inboxes/a", "runs/a@fixers", "requests", "scratchpad/deep"] {
        std::fs::create_dir_all(dir.join(part)).unwrap();
        std::fs::write(dir.join(part).join("file"), "x").unwrap();
    }
    for file in [
        "broadcast.jsonl",
        "session.json",
        "inboxes/a.json",
        "notes.txt",
    ] {
        std::fs::write(dir.join(file), "x").unwrap();
    }
    home.ok(&["team", "delete", "fixers"]);
    let mut left: Vec<_> = home.everything().into_keys().collect();
    left.retain(|path| path.starts_with(&dir) && path.is_file());
    assert_eq!(left, [dir.join("inboxes/a.json"), dir.join("notes.txt")]);
    assert!(dir.join(".ccb/lock").exists());
    assert_eq!(home.ok(&["team", "list"])["teams"], json!([]));
    home.ok(&["team", "create", "fixers"]);
}

/// An agent's worktree is known to its team, so that it is named if it is kept.
#[test]
fn a_teammates_tree_is_in_the_roster_and_named_at_the_end() {
    let place = Workplace {
        repo: TestRepo::new(),
        home: TestHome::in_memory(CCB).with_list("board"),
    };
    place.home.with_fake_runtime(FAKE_AGENT, "");
    place.ok(&["team", "create", "board"]);
    let spawn = |name: &str, script: Script| {
        let prompt = script.done("ok").to_prompt();
        let args = ["--team", "board", "agent", "spawn", "--runtime", "fake"];
        let more = ["--isolation", "worktree", "--name", name, &prompt];
        let answer = place.ok(&[&args[..], &more].concat());
        let id = answer["agent"]["agentId"].as_str().unwrap();
        place.home.await_settled(id);
    };
    spawn("busy", Script::new().write("new.txt", "work"));
    spawn("idle", Script::new());
    let roster = place.home.roster("board");
    let tree = |name: &str| {
        let mut members = roster["members"].as_array().unwrap().iter();
        let member = members.find(|member| member["name"] == name);
        member.unwrap()["worktreePath"].clone()
    };
    assert_eq!(tree("idle"), serde_json::Value::Null, "it is gone");
    let path = tree("busy").as_str().unwrap().to_owned();
    assert!(Path::new(&path).join("new.txt").exists());
    let deleted = place.ok(&["team", "delete", "board", "--force"]);
    assert_eq!(deleted["worktrees"][0]["path"], path.as_str(), "{deleted}");
    assert_eq!(deleted["worktrees"][0]["removed"], false);
}

/// The worktrees of its members end with it: unchanged ones are removed, others are kept and named.
#[test]
fn trees_without_changes_go_with_the_team() {
    let place = Workplace {
        repo: TestRepo::new(),
        home: TestHome::in_memory(CCB).with_list("fixers"),
    };
    place.ok(&["team", "create", "fixers"]);
    for name in ["idle", "busy"] {
        place.ok(&["worktree", "create", name]);
        place.ok(&["team", "join", "fixers", "--as", name]);
    }
    place.ok(&["worktree", "create", "somebody-elses"]);
    write(&place.repo.tree("busy").join("new.txt"), "work");
    let mut roster = place.home.roster("fixers");
    for member in roster["members"].as_array_mut().unwrap() {
        let tree = place.repo.tree(member["name"].as_str().unwrap());
        member["isActive"] = false.into();
        member["worktreePath"] = tree.to_str().unwrap().into();
    }
    place.home.write_roster("fixers", &roster);

    // A refusal leaves the trees alone as well.
    place.ok(&["task", "create", "one"]);
    place.ok(&["task", "next", "--as", "idle"]);
    place.fails(4, "already_claimed", &["team", "delete", "fixers"]);
    assert!(place.repo.tree("idle").exists());

    let deleted = place.ok(&["team", "delete", "fixers", "--force"]);
    let ends = deleted["worktrees"].as_array().unwrap();
    assert_eq!(ends.len(), 2, "{ends:?}");
    let removed = |name: &str| {
        let end = ends.iter().find(|end| end["name"] == name);
        end.unwrap()["removed"].clone()
    };
    assert_eq!(removed("idle"), true);
    assert_eq!(removed("busy"), false);
    assert!(!place.repo.tree("idle").exists());
    assert!(place.repo.tree("busy").join("new.txt").exists());
    assert!(place.repo.tree("somebody-elses").exists());
    place.ok(&["worktree", "undo", "idle"]);
}

/// It is idle and agrees, or a person agrees for it: no second message is needed.
#[test]
fn one_that_agrees_to_end_while_it_is_idle_ends() {
    let home = TestHome::in_memory(CCB).with_list("fixers");
    home.with_fake_runtime(FAKE_AGENT, "");
    home.ok(&["team", "create", "fixers"]);
    let script = Script::new().done("first").serve();
    let id = home.spawn_fake(&script, &["--name", "alice"]);
    home.await_run(&id, "idle");
    let mut lead = McpClient::connect(home.command(&["mcp", "--role", "lead"]));
    let question = json!({"type": "shutdown_request", "reason": "that is all"});
    let asked = lead.ok("SendMessage", json!({"to": "alice", "message": question}));
    wait_until(LONG, "its turn about that to be over", || {
        home.entries(&id, "message").len() == 1 && home.run_meta(&id)["state"] == "idle"
    });
    let request = asked["request"]["id"].as_str().unwrap();
    home.ok(&["mail", "approve", request, "--as", "alice"]);
    home.await_settled(&id);
    assert_eq!(home.run_exit(&id).unwrap()["status"], "completed");
    lead.ok("TeamDelete", json!({}));
}
