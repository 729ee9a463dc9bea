//! `Worktrees`, the tool of leads, compared with the commands.

use harness::{McpClient, Workplace, texts, write};
use serde_json::{Value, json};

use crate::CCB;

fn client(place: &Workplace, role: &str) -> McpClient {
    McpClient::connect(place.command(&["mcp", "--role", role, "--as", "team-lead"]))
}

fn task(place: &Workplace, subject: &str) -> String {
    let made = place.ok(&["task", "create", subject]);
    made["task"]["id"].as_str().unwrap().to_owned()
}

/// The events of this worktree, each with the task it names.
fn events(place: &Workplace, tree: &str) -> Vec<(String, Value)> {
    let all = place.ok(&["worktree", "events", "--limit", "100"]);
    let all = all["events"].as_array().unwrap().iter();
    all.filter(|event| event["worktree"]["name"] == tree)
        .map(|event| {
            let name = event["event"].as_str().unwrap().to_owned();
            (name, event["task"]["id"].clone())
        })
        .collect()
}

#[test]
fn those_who_lead_manage_worktrees_as_the_commands_do() {
    let place = Workplace::new(CCB);
    for (role, name) in [("lead", "one"), ("coordinator", "two")] {
        let mut mcp = client(&place, role);
        let mut call = |action: &str| mcp.ok("Worktrees", json!({"action": action, "name": name}));
        let made = call("create");
        assert_eq!(made["worktree"]["created"], true);
        assert_eq!(made["worktree"]["branch"], format!("worktree/{name}"));
        assert_eq!(call("create")["worktree"]["created"], false);
        assert_eq!(call("status"), place.ok(&["worktree", "status", name]));
        assert_eq!(
            mcp.ok("Worktrees", json!({"action": "list"})),
            place.ok(&["worktree", "list"])
        );

        let tree = place.repo.tree(name);
        write(&tree.join("new"), "work");
        let remove = json!({"action": "remove", "name": name});
        let (error, text) = mcp.fails("Worktrees", remove.clone());
        let by_hand = place.fails(4, "has_changes", &["worktree", "remove", name]);
        assert_eq!(error["error"], by_hand);
        assert!(text.contains("discard_changes"), "{text}");
        assert!(tree.join("new").exists());
        let mut remove = remove;
        remove["discard_changes"] = true.into();
        let gone = mcp.ok("Worktrees", remove);
        assert_eq!(gone["worktree"]["status"], "removed");
        assert!(!tree.exists());
        let mut call = |action: &str| mcp.ok("Worktrees", json!({"action": action, "name": name}));
        assert_eq!(call("undo")["worktree"]["name"], name);
        assert!(tree.join("new").exists());
        assert_eq!(call("keep")["worktree"]["status"], "kept");
    }
    let mut mate =
        McpClient::connect(place.command(&["mcp", "--role", "teammate", "--as", "alice"]));
    let list = json!({"name": "Worktrees", "arguments": {"action": "list"}});
    let refused = mate.request("tools/call", list);
    assert_eq!(
        refused["error"]["message"],
        "Worktrees is not for a teammate"
    );
}

#[test]
fn worktrees_for_tasks_leave_events_that_name_the_task() {
    let place = Workplace::new(CCB);
    let mut lead = client(&place, "lead");
    let (first, second) = (task(&place, "first"), task(&place, "second"));
    let create = json!({"action": "create", "name": "a", "taskId": first});
    let made = lead.ok("Worktrees", create);
    assert_eq!(made["worktree"]["task_id"], first.as_str());
    assert_eq!(made["task"]["metadata"]["ccb"]["worktree"], "a");
    // A lead prepares it for a teammate.
    let stands = (&made["task"]["status"], &made["task"]["owner"]);
    assert_eq!(stands, (&json!("pending"), &Value::Null));
    let named = |names: &[&str], id: &str| -> Vec<(String, Value)> {
        let names = names.iter();
        names.map(|name| ((*name).to_owned(), json!(id))).collect()
    };
    let creating = ["worktree.create.before", "worktree.create.after"];
    assert_eq!(events(&place, "a"), named(&creating, &first));
    lead.ok(
        "TaskUpdate",
        json!({"taskId": first, "status": "completed"}),
    );

    // An existing one.
    place.ok(&["worktree", "create", "b"]);
    let bind = json!({"action": "bind", "name": "b", "taskId": second});
    let bound = lead.ok("Worktrees", bind);
    assert_eq!(bound["worktree"]["task_id"], second.as_str());
    assert_eq!(bound["task"]["owner"], Value::Null);
    let last = place.ok(&["worktree", "events", "--limit", "1"])["events"][0].clone();
    assert_eq!(last["event"], "worktree.bind");
    assert_eq!(last["task"], json!({"id": second, "status": "pending"}));
    place.ok(&["worktree", "unbind", "b"]);
    let last = events(&place, "b").pop().unwrap();
    assert_eq!(last, ("worktree.unbind".to_owned(), json!(second)));
    // The same by the command; a teammate begins the task it binds.
    for (who, status, owner) in [
        ("team-lead", "pending", Value::Null),
        ("alice", "in_progress", json!("alice")),
    ] {
        let bound = place.ok(&["worktree", "bind", "b", &second, "--as", who]);
        assert_eq!(bound["task"]["status"], status, "{who}");
        assert_eq!(bound["task"]["owner"], owner, "{who}");
        let last = events(&place, "b").pop().unwrap();
        assert_eq!(last, ("worktree.bind".to_owned(), json!(second)));
        place.ok(&["worktree", "unbind", "b"]);
    }
}

#[test]
fn worktrees_answers_in_plain_words() {
    let place = Workplace::new(CCB);
    let id = task(&place, "Fix the parser");
    let command = place.command(&["mcp", "--role", "lead", "--as", "team-lead"]);
    let mut lead = McpClient::connect_as("codex", command);
    let mut say = |arguments: Value| {
        let result = lead.call("Worktrees", arguments);
        assert!(result.get("structuredContent").is_none(), "{result}");
        texts(&result).remove(0)
    };
    let none = say(json!({"action": "list"}));
    assert_eq!(none, "There are no worktrees; action \"create\" makes one.");
    let path = place.repo.tree("a");
    let path = path.to_str().unwrap();
    let made = say(json!({"action": "create", "name": "a", "taskId": id}));
    assert!(
        made.starts_with(&format!(
            "Made worktree a: {path}\nBranch worktree/a, from "
        )),
        "{made}"
    );
    let task = format!("task #{id} (pending): Fix the parser.");
    assert!(made.ends_with(&format!("It is bound to {task}")), "{made}");
    let found = say(json!({"action": "create", "name": "a"}));
    assert!(found.starts_with("Found worktree a: "), "{found}");
    let line =
        format!("a (active, no changes, task #{id}, agent team-lead, branch worktree/a): {path}");
    assert_eq!(say(json!({"action": "list"})), line);
    let status = say(json!({"action": "status", "name": "a"}));
    assert!(
        status.starts_with(&format!("{line}\nIt starts from ")),
        "{status}"
    );
    let bound = say(json!({"action": "bind", "name": "a", "taskId": id}));
    assert_eq!(bound, format!("Worktree a is bound to {task}"));
    let gone = say(json!({"action": "remove", "name": "a"}));
    assert_eq!(gone, "Removed worktree a; action \"undo\" brings it back.");
    let back = say(json!({"action": "undo", "name": "a"}));
    assert_eq!(back, format!("Worktree a is back: {path}"));
    assert_eq!(
        say(json!({"action": "keep", "name": "a"})),
        "Worktree a stays."
    );
}

/// The same mistake by command and by tool: the same error, and nothing has changed.
#[test]
fn worktrees_fails_as_the_commands_do() {
    let place = Workplace::new(CCB);
    let mut lead = client(&place, "lead");
    let cases: &[(Value, i32, &str, &[&str])] = &[
        (
            json!({"action": "status", "name": "x"}),
            3,
            "worktree_not_found",
            &["status", "x"],
        ),
        (
            json!({"action": "remove", "name": "x", "discard_changes": true}),
            3,
            "worktree_not_found",
            &["remove", "x", "--discard"],
        ),
        (
            json!({"action": "undo", "name": "x"}),
            3,
            "nothing_to_undo",
            &["undo", "x"],
        ),
        (
            json!({"action": "create", "name": "../x"}),
            2,
            "bad_name",
            &["create", "../x"],
        ),
        (
            json!({"action": "create", "name": "x", "base": "nothing"}),
            2,
            "bad_base",
            &["create", "x", "--base", "nothing"],
        ),
        (
            json!({"action": "create", "name": "x", "taskId": 77}),
            3,
            "task_not_found",
            &["create", "x", "--task", "77"],
        ),
        (
            json!({"action": "bind", "name": "x", "taskId": "seven"}),
            2,
            "bad_id",
            &["bind", "x", "seven"],
        ),
    ];
    for (arguments, code, kind, command) in cases {
        let (error, _) = lead.fails("Worktrees", arguments.clone());
        let by_hand = place.fails(*code, kind, &[&["worktree"], *command].concat());
        assert_eq!(error["error"], by_hand, "{arguments}");
    }
    let wrong = [
        (
            json!({"action": "bind", "name": "x"}),
            "action \"bind\" needs \"taskId\"",
        ),
        (
            json!({"action": "remove"}),
            "action \"remove\" needs \"name\"",
        ),
        (
            json!({"action": "keep", "name": "x", "discard_changes": true}),
            "action \"keep\" does not take \"discard_changes\"",
        ),
        (
            json!({"action": "list", "name": "x"}),
            "action \"list\" does not take \"name\"",
        ),
        (
            json!({"action": "drop", "name": "x"}),
            "\"action\" cannot be \"drop\"",
        ),
    ];
    for (arguments, words) in wrong {
        let (error, text) = lead.fails("Worktrees", arguments);
        assert_eq!(error["error"]["kind"], "invalid_arguments");
        assert!(text.contains(words), "{text}");
    }
    assert!(!place.repo.tree("x").exists());
    assert!(place.repo.tree_branches().is_empty());
}
