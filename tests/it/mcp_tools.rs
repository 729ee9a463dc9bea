//! Every tool of every role answers as the command does.

use std::process::Command;

use harness::{McpClient, TestHome, Workplace, texts};
use serde_json::{Value, json};

use crate::CCB;

const BOARD: [&str; 4] = ["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"];
const AGENTS: [&str; 4] = ["Agent", "SendMessage", "TaskStop", "TaskOutput"];
const TREE: [&str; 2] = ["EnterWorktree", "ExitWorktree"];

fn server(home: &TestHome, role: &str, agent: &str) -> Command {
    home.command(&["mcp", "--role", role, "--as", agent])
}

fn client(home: &TestHome, role: &str, agent: &str) -> McpClient {
    McpClient::connect(server(home, role, agent))
}

fn team(members: &[&str]) -> TestHome {
    let home = TestHome::in_memory(CCB);
    home.ok(&["team", "create", "board"]);
    for member in members {
        home.ok(&["team", "join", "board", "--as", member]);
    }
    home
}

fn set_mode(home: &TestHome, member: &str, mode: &str) {
    let mut roster = home.roster("board");
    for value in roster["members"].as_array_mut().unwrap() {
        if value["name"] == member {
            value["mode"] = mode.into();
        }
    }
    home.write_roster("board", &roster);
}

#[test]
fn every_role_has_its_tools_and_no_others() {
    let home = team(&["alice"]);
    let team_tools = ["TeamCreate", "TeamDelete"];
    let lead = [&BOARD[..], &AGENTS, &team_tools, &TREE, &["Worktrees"]].concat();
    assert_eq!(client(&home, "lead", "team-lead").tools(), lead);
    let coordinator = [&BOARD[..], &AGENTS, &["Worktrees"]].concat();
    assert_eq!(
        client(&home, "coordinator", "team-lead").tools(),
        coordinator
    );
    let teammate = [&BOARD[..], &AGENTS, &["EnterPlanMode"], &TREE].concat();
    assert_eq!(client(&home, "teammate", "alice").tools(), teammate);
    assert!(client(&home, "worker", "w").tools().is_empty());
    set_mode(&home, "alice", "plan");
    let planning = [&BOARD[..], &AGENTS, &["ExitPlanMode"], &TREE].concat();
    assert_eq!(client(&home, "teammate", "alice").tools(), planning);
}

/// A call of a tool that the role does not have is refused.
#[test]
fn a_tool_of_another_role_is_refused() {
    let home = team(&["alice"]);
    let refused = |role: &str, agent: &str, tool: &str| {
        let mut client = client(&home, role, agent);
        let answer = client.request("tools/call", json!({"name": tool, "arguments": {}}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        answer["error"]["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        refused("teammate", "alice", "TeamCreate"),
        "TeamCreate is not for a teammate"
    );
    assert_eq!(
        refused("coordinator", "team-lead", "EnterWorktree"),
        "EnterWorktree is not for a coordinator"
    );
    assert_eq!(
        refused("worker", "w", "TaskList"),
        "TaskList is not for a worker"
    );
    assert_eq!(
        refused("teammate", "alice", "ExitPlanMode"),
        "ExitPlanMode is available only in plan mode; continue the work"
    );
    assert_eq!(
        refused("lead", "team-lead", "TaskLst"),
        "there is no tool \"TaskLst\"; did you mean \"TaskList\"?"
    );
}

/// The list is part of every request to a model. Three bytes a token over-counts: English and JSON
/// keys have four and more.
#[test]
fn no_list_of_tools_is_longer_than_3000_tokens() {
    let home = team(&["alice"]);
    set_mode(&home, "alice", "plan");
    for (role, agent) in [
        ("lead", "team-lead"),
        ("coordinator", "c"),
        ("teammate", "alice"),
    ] {
        let mut client = client(&home, role, agent);
        let answer = client.request("tools/list", json!({}));
        let tokens = answer["result"]["tools"].to_string().len().div_ceil(3);
        assert!((500..=3000).contains(&tokens), "{role}: {tokens}");
    }
}

/// Without the values that differ between two tasks made one after the other.
fn plain(mut value: Value) -> Value {
    if let Some(task) = value.get_mut("task").and_then(Value::as_object_mut) {
        task.remove("id");
    }
    value
}

#[test]
fn board_tools_answer_what_the_commands_answer() {
    let home = team(&["alice"]);
    let mut mcp = client(&home, "teammate", "alice");
    let task = json!({
        "subject": "Fix it", "description": "All of it", "activeForm": "Fixing it",
        "metadata": {"area": "parser", "gone": null},
    });
    let made = mcp.ok("TaskCreate", task);
    let args = [
        "task",
        "create",
        "Fix it",
        "-d",
        "All of it",
        "--active-form",
        "Fixing it",
        "--meta",
        "area=\"parser\"",
    ];
    let by_hand = home.ok(&args);
    assert_eq!(plain(made), plain(by_hand));
    assert_eq!(
        mcp.ok("TaskGet", json!({"taskId": "1"})),
        home.ok(&["task", "show", "1"])
    );
    assert_eq!(mcp.ok("TaskList", json!({})), home.ok(&["task", "list"]));
    let change =
        json!({"taskId": "1", "status": "in_progress", "metadata": {"area": null, "n": 1}});
    let mut changed = mcp.ok("TaskUpdate", change);
    // A client's claim from outside is its own while the client is there.
    let ours = changed["task"]["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("ccb");
    let holder = ours.unwrap()["lease"]["run"].as_str().unwrap().to_owned();
    assert!(holder.starts_with("outside-"), "{holder}");
    let args = [
        "task",
        "update",
        "2",
        "--status",
        "in_progress",
        "--as",
        "alice",
    ];
    let by_hand = home.ok(&[&args[..], &["--meta", "area=null", "--meta", "n=1"]].concat());
    assert_eq!(plain(changed), plain(by_hand));
    home.ok(&["task", "create", "later", "--blocked-by", "1"]);
    home.ok(&["task", "create", "later", "--blocked-by", "2"]);
    let done = mcp.ok("TaskUpdate", json!({"taskId": "1", "status": "completed"}));
    let by_hand = home.ok(&["task", "done", "2", "--as", "alice"]);
    assert_eq!(done["unblocked"], json!(["3"]));
    assert_eq!(by_hand["unblocked"], json!(["4"]));
    let gone = mcp.ok("TaskUpdate", json!({"taskId": "3", "status": "deleted"}));
    let by_hand = home.ok(&["task", "rm", "4"]);
    assert_eq!(gone["task"]["subject"], by_hand["task"]["subject"]);
    assert_eq!(mcp.ok("TaskList", json!({})), home.ok(&["task", "list"]));
}

#[test]
fn edges_come_with_the_change_or_not_at_all() {
    let home = team(&["alice"]);
    let mut mcp = client(&home, "teammate", "alice");
    for subject in ["one", "two", "three"] {
        mcp.ok("TaskCreate", json!({"subject": subject, "description": ""}));
    }
    let both = json!({"taskId": "2", "addBlocks": ["3"], "addBlockedBy": ["1"], "subject": "new"});
    let task = mcp.ok("TaskUpdate", both)["task"].clone();
    assert_eq!(
        (&task["blocks"], &task["blockedBy"]),
        (&json!(["3"]), &json!(["1"]))
    );
    let tasks = home.tasks_on_disk();
    assert_eq!(
        (&tasks[0]["blocks"], &tasks[2]["blockedBy"]),
        (&json!(["2"]), &json!(["2"]))
    );
    let before = home.tasks_on_disk();
    let (error, _) = mcp.fails(
        "TaskUpdate",
        json!({"taskId": "1", "addBlockedBy": ["3"], "subject": "must not stay"}),
    );
    assert_eq!(error["error"]["kind"], "cycle");
    assert_eq!(
        error["error"],
        home.fails(4, &["task", "block", "3", "1"])["error"]
    );
    let (error, _) = mcp.fails("TaskUpdate", json!({"taskId": "1", "addBlocks": ["9"]}));
    assert_eq!(error["error"]["kind"], "task_not_found");
    // A claim of a task that is made to wait in the same step.
    let claim = json!({"taskId": "1", "status": "in_progress", "addBlockedBy": ["4"]});
    mcp.ok("TaskCreate", json!({"subject": "four", "description": ""}));
    let (error, _) = mcp.fails("TaskUpdate", claim);
    assert_eq!(error["error"]["kind"], "blocked");
    assert_eq!(home.tasks_on_disk()[..3], before);
}

/// The same mistake by command and by tool: the same error, and nothing has changed.
#[test]
fn tools_fail_as_the_commands_do() {
    let home = team(&["alice", "bob"]);
    home.create("taken");
    home.create("waits");
    home.create("done");
    home.ok(&["task", "claim", "1", "--as", "bob"]);
    home.ok(&["task", "block", "1", "2"]);
    home.ok(&["task", "done", "3", "--as", "alice"]);
    let cases: &[(&str, Value, i32, &[&str])] = &[
        (
            "TaskGet",
            json!({"taskId": "77"}),
            3,
            &["task", "show", "77"],
        ),
        ("TaskGet", json!({"taskId": "x"}), 2, &["task", "show", "x"]),
        (
            "TaskUpdate",
            json!({"taskId": "1", "status": "in_progress"}),
            4,
            &["task", "update", "1", "--status", "in_progress"],
        ),
        (
            "TaskUpdate",
            json!({"taskId": "2", "status": "in_progress"}),
            4,
            &["task", "update", "2", "--status", "in_progress"],
        ),
        (
            "TaskUpdate",
            json!({"taskId": "3", "status": "completed"}),
            4,
            &["task", "done", "3"],
        ),
        (
            "TaskUpdate",
            json!({"taskId": "1", "status": "completed"}),
            4,
            &["task", "done", "1"],
        ),
        (
            "TaskUpdate",
            json!({"taskId": "1", "status": "deleted"}),
            4,
            &["task", "rm", "1"],
        ),
        (
            "TaskUpdate",
            json!({"taskId": "2", "owner": "no good"}),
            2,
            &["task", "update", "2", "--owner", "no good"],
        ),
        (
            "TaskUpdate",
            json!({"taskId": "2", "subject": ""}),
            2,
            &["task", "update", "2", "--subject", ""],
        ),
        (
            "TaskCreate",
            json!({"subject": " ", "description": ""}),
            2,
            &["task", "create", " "],
        ),
        (
            "SendMessage",
            json!({"to": "bobby", "message": "x", "summary": "x"}),
            3,
            &["mail", "send", "bobby", "x"],
        ),
        (
            "SendMessage",
            json!({"to": "bob", "message": " ", "summary": "x"}),
            2,
            &["mail", "send", "bob", " "],
        ),
        (
            "ExitWorktree",
            json!({"action": "keep"}),
            2,
            &["worktree", "exit", "--keep"],
        ),
    ];
    let before = home.tasks_on_disk();
    let mut mcp = client(&home, "teammate", "alice");
    for (tool, arguments, code, command) in cases {
        let (error, text) = mcp.fails(tool, arguments.clone());
        let by_hand = home.fails(*code, &[*command, &["--as", "alice"]].concat());
        assert_eq!(error, by_hand, "{tool} {arguments}");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(text.starts_with(message), "{text}");
        // No way around the claim of another agent.
        assert!(
            !text.contains("--force") && !text.contains("--as"),
            "{text}"
        );
    }
    assert_eq!(home.tasks_on_disk(), before);
}

#[test]
fn messages_are_sent_as_the_command_sends_them() {
    let home = team(&["alice", "bob"]);
    let mut alice = client(&home, "teammate", "alice");
    let letter = json!({"to": "bob", "message": "The parser is yours", "summary": "parser", "priority": "now"});
    let sent = alice.ok("SendMessage", letter);
    let args = [
        "mail",
        "send",
        "bob",
        "The parser is yours",
        "--summary",
        "parser",
        "--priority",
    ];
    let by_hand = home.ok(&[&args[..], &["now", "--as", "alice"]].concat());
    let keys = ["from", "to", "kind", "priority", "text", "summary"];
    for key in keys {
        assert_eq!(sent["message"][key], by_hand["message"][key], "{key}");
    }
    assert_eq!(
        (&sent["message"]["seq"], &by_hand["message"]["seq"]),
        (&json!(1), &json!(2))
    );
    let all = alice.ok(
        "SendMessage",
        json!({"to": "*", "message": "all", "summary": "s"}),
    );
    assert_eq!(all["message"]["recipients"], json!(["team-lead", "bob"]));
    let (_, text) = alice.fails("SendMessage", json!({"to": "bob", "message": "x"}));
    assert!(text.contains("summary"), "{text}");
    let (error, _) = alice.fails(
        "SendMessage",
        json!({"to": "*", "message": {"type": "shutdown_request"}}),
    );
    assert_eq!(error["error"]["kind"], "invalid");
}

#[test]
fn requests_are_asked_and_answered() {
    let home = team(&["alice"]);
    let mut lead = client(&home, "lead", "team-lead");
    let mut alice = client(&home, "teammate", "alice");
    let stop = json!({"to": "alice", "message": {"type": "shutdown_request", "reason": "done"}});
    let request = lead.ok("SendMessage", stop)["request"].clone();
    assert_eq!(request["state"], "pending");
    let id = request["id"].as_str().unwrap();
    // It comes with the next result, with its kind.
    let mail = texts(&alice.call("TaskList", json!({}))).remove(1);
    assert!(
        mail.contains("shutdown_request") && mail.contains(id),
        "{mail}"
    );
    let answer = |fields: Value| {
        let mut message = json!({"type": "shutdown_response", "request_id": id});
        for (key, value) in fields.as_object().unwrap() {
            message[key] = value.clone();
        }
        json!({"to": "team-lead", "message": message})
    };
    let (_, text) = alice.fails("SendMessage", answer(json!({})));
    assert!(text.contains("message.approve"), "{text}");
    let (error, _) = alice.fails("SendMessage", answer(json!({"approve": false})));
    assert_eq!(error["error"]["message"], "a no without a reason");
    let (_, text) = alice.fails(
        "SendMessage",
        answer(json!({"approve": true, "type": "plan_approval_response"})),
    );
    assert!(text.contains("shutdown_response"), "{text}");
    let answered = alice.ok("SendMessage", answer(json!({"approve": true})));
    assert_eq!(answered["request"]["state"], "approved");
    let (error, _) = alice.fails("SendMessage", answer(json!({"approve": true})));
    let again = home.fails(4, &["mail", "approve", id, "--as", "alice"]);
    assert_eq!(error, again);
    let mail = texts(&lead.call("TaskList", json!({}))).remove(1);
    assert!(mail.contains("shutdown_approved"), "{mail}");
}

#[test]
fn a_plan_waits_for_the_lead() {
    let home = team(&["alice"]);
    set_mode(&home, "alice", "plan");
    let mut lead = client(&home, "lead", "team-lead");
    let mut alice = client(&home, "teammate", "alice");
    assert!(alice.tools().contains(&"ExitPlanMode".to_owned()));
    let plan = alice.ok("ExitPlanMode", json!({"plan": "First this"}));
    assert_eq!(plan["awaitingLeaderApproval"], true);
    let id = plan["requestId"].as_str().unwrap().to_owned();
    let mail = texts(&lead.call("TaskList", json!({}))).remove(1);
    assert!(mail.contains("First this") && mail.contains(&id), "{mail}");
    let respond = |id: &str, approve: bool| {
        let message = json!({
            "type": "plan_approval_response", "request_id": id, "approve": approve, "feedback": "shorter",
        });
        json!({"to": "alice", "message": message})
    };
    lead.ok("SendMessage", respond(&id, false));
    let mail = texts(&alice.call("TaskList", json!({}))).remove(1);
    assert!(mail.contains("shorter"), "{mail}");
    // Still in plan mode.
    let id = alice.ok("ExitPlanMode", json!({"plan": "Only this"}))["requestId"].clone();
    lead.ok("SendMessage", respond(id.as_str().unwrap(), true));
    alice.call("TaskList", json!({}));
    alice.notification("notifications/tools/list_changed");
    assert!(!alice.tools().contains(&"ExitPlanMode".to_owned()));
}

#[test]
fn a_teammate_plans_when_it_wants_to_and_the_lead_edits_the_plan() {
    let home = team(&["alice"]);
    let mut lead = client(&home, "lead", "team-lead");
    let mut alice = client(&home, "teammate", "alice");
    alice.ok("EnterPlanMode", json!({}));
    alice.notification("notifications/tools/list_changed");
    let tools = alice.tools();
    assert!(tools.contains(&"ExitPlanMode".to_owned()), "{tools:?}");
    assert!(!tools.contains(&"EnterPlanMode".to_owned()), "{tools:?}");
    let member = |home: &TestHome| {
        let shown = home.ok(&["team", "show", "board"]);
        let members = shown["team"]["members"].as_array().unwrap().clone();
        members
            .into_iter()
            .find(|member| member["name"] == "alice")
            .unwrap()
    };
    assert_eq!(member(&home)["mode"], "plan");
    let handed_in = alice.ok(
        "ExitPlanMode",
        json!({"plan": "First this", "allowedPrompts": [{"tool": "Bash", "prompt": "cargo test"}]}),
    );
    let body = &handed_in["request"]["body"];
    assert_eq!(body["allowedPrompts"][0]["prompt"], "cargo test");
    let file = body["planFilePath"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(file).unwrap(), "First this");
    let mail = texts(&lead.call("TaskList", json!({}))).remove(1);
    assert!(mail.contains(file) && mail.contains("cargo test"), "{mail}");
    let approve = json!({"to": "alice", "message": {
        "type": "plan_approval_response", "request_id": handed_in["requestId"], "approve": true,
    }});
    std::fs::write(file, " \n").unwrap();
    let (_, why) = lead.fails("SendMessage", approve.clone());
    assert!(why.contains("the plan is empty"), "{why}");
    std::fs::write(file, "First that\n").unwrap();
    lead.ok("SendMessage", approve);
    let mail = texts(&alice.call("TaskList", json!({}))).remove(1);
    assert!(
        mail.contains("planWasEdited") && mail.contains("First that"),
        "{mail}"
    );
    // Its mode was unknown before.
    assert_eq!(member(&home)["mode"], "default");
    assert!(alice.tools().contains(&"EnterPlanMode".to_owned()));
}

#[test]
fn a_lead_makes_a_team_works_in_it_and_deletes_it() {
    let home = TestHome::in_memory(CCB);
    let mut lead = McpClient::connect(home.command_without_list(&["mcp", "--role", "lead"]));
    lead.ok(
        "TaskCreate",
        json!({"subject": "elsewhere", "description": ""}),
    );
    let made = lead.ok(
        "TeamCreate",
        json!({"team_name": "crew", "description": "fixes"}),
    );
    let show = |args: &[&str]| {
        let output = home
            .command_without_list(&[&["--json"], args].concat())
            .output();
        harness::Answer::of(output.unwrap()).json()
    };
    assert_eq!(made["team"]["name"], "crew");
    assert_eq!(made["lead_agent_id"], "team-lead@crew");
    // From here on its board and its mail.
    let task = lead.ok("TaskCreate", json!({"subject": "here", "description": ""}));
    assert_eq!(
        show(&["--team", "crew", "task", "show", "1"])["task"],
        task["task"]
    );
    let (error, text) = lead.fails("TeamCreate", json!({"team_name": "other"}));
    assert_eq!(error["error"]["kind"], "one_team");
    assert!(text.contains("crew"), "{text}");
    show(&[
        "--team",
        "crew",
        "mail",
        "send",
        "team-lead",
        "hello",
        "--as",
        "team-lead",
    ]);
    let mail = texts(&lead.call("TaskList", json!({}))).remove(1);
    assert!(mail.contains("hello"), "{mail}");
    assert_eq!(
        show(&["team", "show", "crew"])["team"]["members"][0]["state"],
        "reading"
    );
    lead.ok(
        "TaskUpdate",
        json!({"taskId": "1", "status": "in_progress"}),
    );
    let (error, _) = lead.fails("TeamDelete", json!({}));
    assert_eq!(error["error"]["kind"], "already_claimed");
    lead.ok("TaskUpdate", json!({"taskId": "1", "status": "completed"}));
    let gone = lead.ok("TeamDelete", json!({}));
    assert_eq!(
        (&gone["deleted"], &gone["tasks"]),
        (&json!(true), &json!(1))
    );
    let tasks = lead.ok("TaskList", json!({}));
    assert_eq!(tasks["tasks"][0]["subject"], "elsewhere");
    let (error, _) = lead.fails("TeamDelete", json!({}));
    assert_eq!(error["error"]["kind"], "team_not_found");
}

/// A session finds the team it leads again, by tool and by command.
#[test]
fn a_session_knows_its_team_after_a_restart() {
    let home = TestHome::in_memory(CCB);
    let command = |args: &[&str]| {
        let mut command = home.command_without_list(args);
        command.env("CLAUDE_CODE_SESSION_ID", "0f0e0d0c-session");
        command
    };
    let lead = || McpClient::connect(command(&["mcp", "--role", "lead"]));
    let mut first = lead();
    first.ok("TeamCreate", json!({"team_name": "crew"}));
    first.ok("TaskCreate", json!({"subject": "here", "description": ""}));
    drop(first);
    let mut second = lead();
    let tasks = second.ok("TaskList", json!({}));
    assert_eq!(tasks["tasks"][0]["subject"], "here");
    let by_hand = command(&["--json", "task", "list"]).output().unwrap();
    assert_eq!(harness::Answer::of(by_hand).json(), tasks);
    second.ok("TeamDelete", json!({}));
    second.ok("TeamCreate", json!({"team_name": "other"}));
}

#[test]
fn each_one_has_a_worktree_of_its_own() {
    let place = Workplace::new(CCB);
    let server = |args: &[&str]| {
        let mut all = vec!["mcp"];
        all.extend_from_slice(args);
        McpClient::connect(place.command(&all))
    };
    let mut lead = server(&["--role", "lead"]);
    let mut alice = server(&["--role", "teammate", "--as", "alice"]);
    let tree = lead.ok("EnterWorktree", json!({"name": "one"}));
    assert!(
        tree["worktreePath"].as_str().unwrap().ends_with("/one"),
        "{tree}"
    );
    assert_eq!(tree["worktreeBranch"], "worktree/one");
    assert_eq!(tree["worktree"]["created"], true);
    let (error, text) = lead.fails("EnterWorktree", json!({"name": "two"}));
    assert_eq!(error["error"]["kind"], "in_worktree");
    assert!(
        text.ends_with("Leave it first with ExitWorktree."),
        "{text}"
    );
    let other = alice.ok("EnterWorktree", json!({}));
    assert_ne!(other["worktreePath"], tree["worktreePath"]);
    let path = std::path::Path::new(other["worktreePath"].as_str().unwrap());
    std::fs::write(path.join("new"), "work").unwrap();
    let (error, _) = alice.fails("ExitWorktree", json!({"action": "remove"}));
    assert_eq!(error["error"]["kind"], "has_changes");
    let by_hand = place.fails(
        4,
        "has_changes",
        &["worktree", "exit", "--remove", "--as", "alice"],
    );
    assert_eq!(error["error"], by_hand);
    let left = alice.ok(
        "ExitWorktree",
        json!({"action": "remove", "discard_changes": true}),
    );
    assert_eq!(left["removed"], true);
    let left = lead.ok("ExitWorktree", json!({"action": "keep"}));
    assert_eq!(
        (&left["removed"], &left["worktree"]["status"]),
        (&json!(false), &json!("kept"))
    );
    let (error, _) = lead.fails("ExitWorktree", json!({"action": "keep"}));
    assert_eq!(error["error"]["kind"], "not_in_worktree");
}

#[test]
fn tools_for_agents_do_not_take_tasks() {
    let home = team(&["alice"]);
    home.create("a task");
    for (role, agent) in [
        ("lead", "team-lead"),
        ("coordinator", "c"),
        ("teammate", "alice"),
    ] {
        let mut mcp = client(&home, role, agent);
        for tool in ["TaskStop", "TaskOutput"] {
            let (error, text) = mcp.fails(tool, json!({"task_id": "1"}));
            assert_eq!(error["error"]["kind"], "board_task");
            assert!(text.contains("TaskUpdate"), "{text}");
        }
    }
}

/// The new owner is notified of an assignment, the lead of a claim.
#[test]
fn new_owners_are_told() {
    let home = team(&["alice", "bob"]);
    let mut alice = client(&home, "teammate", "alice");
    alice.ok(
        "TaskCreate",
        json!({"subject": "one", "description": "more"}),
    );
    alice.ok("TaskUpdate", json!({"taskId": "1", "owner": "bob"}));
    let mail = home.ok(&["mail", "inbox", "--as", "bob"]);
    let message = &mail["messages"][0];
    assert_eq!(message["kind"], "task_assignment");
    assert_eq!(message["body"]["assignedBy"], "alice");
    alice.ok("TaskCreate", json!({"subject": "two", "description": ""}));
    alice.ok(
        "TaskUpdate",
        json!({"taskId": "2", "status": "in_progress"}),
    );
    let mail = home.ok(&["mail", "inbox", "--as", "team-lead"]);
    assert_eq!(mail["messages"][0]["body"]["owner"], "alice");
    // Once: no owner has changed since.
    alice.ok(
        "TaskUpdate",
        json!({"taskId": "2", "status": "in_progress"}),
    );
    alice.ok("TaskUpdate", json!({"taskId": "2", "status": "completed"}));
    let mail = home.ok(&["mail", "inbox", "--as", "team-lead"]);
    assert_eq!(mail["messages"].as_array().unwrap().len(), 1);
}
