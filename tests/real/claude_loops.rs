//! Real Claude Codes with others around them, on a scripted model: agents they start, questions for
//! permission, requests to end, and the MCP servers of user and repository.

use harness::model::{MARK, Outcome, Recorded, Role, Step, prompt};
use harness::runs::LONG;
use harness::{McpClient, RealTeam, real_program, shell, texts, wait_until, write};
use serde_json::{Value, json};

use crate::{CCB, FAKE_MCP};

fn team() -> RealTeam {
    RealTeam::claude(CCB, &json!({ "agents": { "stopGraceMs": 2000 } }))
}

/// The requests of the agent whose first words were these, oldest first.
fn requests_of(team: &RealTeam, words: &str) -> Vec<Recorded> {
    let all = team.world.model.scripted().into_iter();
    let first = |request: &Recorded| {
        let mut users = request.conversation.turns.iter();
        let said = users.find(|turn| turn.role == Role::User && turn.text.contains(MARK));
        let before = said.and_then(|turn| turn.text.split(MARK).next());
        before.is_some_and(|before| before.trim_end().ends_with(words))
    };
    all.filter(first).collect()
}

/// A lead that talks to the server itself.
fn lead(team: &RealTeam) -> McpClient {
    let mut command = team.home.command(&["mcp", "--role", "lead"]);
    command.current_dir(team.repo.main());
    McpClient::connect(command)
}

/// The messages to a lead until `wanted` is part of one.
fn hears(lead: &mut McpClient, wanted: &str) -> String {
    let mut mail = String::new();
    wait_until(LONG, wanted, || {
        let mut words = texts(&lead.call("TaskList", json!({})));
        mail.push_str(&words.split_off(1).join("\n"));
        mail.contains(wanted)
    });
    mail
}

/// Its turn ends, it stays open, and the child's end is its next turn.
pub(crate) fn a_child_outlives_the_turn_that_started_it() {
    let team = team();
    let go = team.home.path().join("go");
    let child = prompt("CHILD", &[Step::text("there are two doors").wait_for(&go)]);
    let order = json!({
        "description": "look around", "prompt": child, "run_in_background": true,
    });
    let steps = [
        Step::tool("mcp__ccb__Agent", order),
        Step::text("Started it."),
        Step::text("Now I know."),
    ];
    let id = team.spawn(&prompt("PARENT", &steps));
    team.home.await_run(&id, "idle");
    wait_until(LONG, "the child to ask its model", || {
        !requests_of(&team, "CHILD").is_empty()
    });
    assert_eq!(requests_of(&team, "PARENT").len(), 2, "its turn is over");
    assert_eq!(team.home.run_exit(&id), None, "and it is there");
    std::fs::write(&go, "").unwrap();
    team.settle(&id);
    let exit = team.home.run_exit(&id).unwrap();
    assert_eq!(exit["status"], "completed", "{exit}");
    assert_eq!(exit["result"], "Now I know.", "{exit}");
    let requests = requests_of(&team, "PARENT");
    assert_eq!(requests.len(), 3);
    let (before, after) = (&requests[1].body, &requests[2].body);
    let messages = |body: &Value| body["messages"].as_array().unwrap().clone();
    let heard = messages(after).pop().unwrap();
    assert_eq!(heard["role"], "user", "{heard}");
    let words = heard.to_string();
    assert_eq!(words.matches("<task-notification>").count(), 1, "{words}");
    assert!(words.contains("there are two doors"), "{words}");
    // One conversation: the turn before, what the model said to it, and the news.
    assert_eq!(messages(after).len(), messages(before).len() + 2);
    assert_eq!(before["system"], after["system"]);
    assert_eq!(before["tools"], after["tools"]);
    assert!(team.left_of(&id).is_empty());
}

/// A lead that is a model, too, allows one command of its agent and denies the next.
pub(crate) fn a_lead_answers_its_agents_questions() {
    let team = team();
    let heard = team.home.path().join("heard");
    let command = |sum: &str| Step::tool("Bash", shell(&format!("sh -c 'expr {sum}'")));
    let child = [
        command("40 + 2"),
        command("70 + 7").wait_for(&heard),
        Step::text("It said: {{last}}"),
    ];
    let order = json!({
        "description": "do sums", "prompt": prompt("CHILD", &child), "run_in_background": true,
    });
    let answer = |approve: bool| {
        let message = json!({
            "type": "permission_response", "request_id": "{{after:\"requestId\":\"}}",
            "approve": approve, "feedback": "LEAVE THAT ALONE",
        });
        let to = "{{after:teammate_id=\"}}";
        Step::tool(
            "mcp__ccb__SendMessage",
            json!({ "to": to, "message": message }),
        )
    };
    let mut steps = vec![
        Step::tool("mcp__ccb__Agent", order),
        Step::text("Started it."),
        answer(true),
        Step::text("Allowed it."),
        answer(false),
    ];
    steps.extend((0..6).map(|_| Step::text("I have heard.")));
    let main = team.repo.main().to_str().unwrap();
    let words = prompt("LEAD", &steps);
    let args = ["-C", main, "--json", "--runtime", "claude", &words];
    let answer = std::thread::scope(|scope| {
        let session = scope.spawn(|| team.home.run(&args));
        // The next question comes when the lead's turn is over, so that it is a turn of its own.
        wait_until(LONG, "the first answer", || {
            let over = |request: &Recorded| {
                request.step_number == Some(3) && request.outcome == Some(Outcome::Answered)
            };
            requests_of(&team, "LEAD").iter().any(over) || session.is_finished()
        });
        std::fs::write(&heard, "").unwrap();
        session.join().unwrap()
    });
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let child = requests_of(&team, "CHILD");
    assert_eq!(child.len(), 3, "{answer:?}");
    let result = |n: usize| child[n].conversation.last(Role::Tool).to_owned();
    assert!(result(1).contains("42"), "{}", result(1));
    assert!(result(2).contains("LEAVE THAT ALONE"), "{}", result(2));
    assert!(!result(2).contains("77"), "{}", result(2));
    // The lead saw the subject of its decision.
    let asked = requests_of(&team, "LEAD")[2].conversation.clone();
    let asked = asked.last(Role::User);
    assert!(
        asked.contains("permission_request") && asked.contains("sh -c 'expr 40 + 2'"),
        "{asked}"
    );
}

/// There is no lead: no question is asked, and the agent gets the reason of the refusal.
pub(crate) fn a_question_that_nobody_can_answer_is_denied_at_once() {
    let team = team();
    let steps = [
        Step::tool("Bash", shell("sh -c 'expr 40 + 2'")),
        Step::text("It said: {{last}}"),
    ];
    let order = prompt("Go.", &steps);
    let result = team.ask(&["--runtime", "claude", &order]);
    let words = result["content"].as_str().unwrap();
    assert!(words.contains("nobody is there to give it"), "{result}");
    let requests = team.home.ok(&["mail", "requests", "--all"]);
    assert_eq!(requests["requests"], json!([]), "{requests}");
}

/// Asked to end, it agrees, and is gone; then its team can be deleted.
pub(crate) fn a_teammate_agrees_to_end_and_does() {
    let team = team();
    team.home.ok(&[
        "-C",
        team.repo.main().to_str().unwrap(),
        "team",
        "create",
        "board",
    ]);
    let message = json!({
        "type": "shutdown_response", "request_id": "{{after:\"requestId\":\"}}", "approve": true,
    });
    let steps = [
        Step::text("At your service."),
        Step::tool(
            "mcp__ccb__SendMessage",
            json!({ "to": "team-lead", "message": message }),
        ),
        Step::text("Good-bye."),
        Step::text("I should be gone."),
    ];
    let main = team.repo.main().to_str().unwrap();
    let words = prompt("MATE", &steps);
    let mut args = vec!["-C", main, "agent", "spawn", "--runtime", "claude"];
    args.extend(["--background", "--name", "alice", &words]);
    let answer = team.home.ok(&args);
    let id = answer["agent"]["agentId"].as_str().unwrap().to_owned();
    team.home.await_run(&id, "idle");
    let mut lead = lead(&team);
    let (error, _) = lead.fails("TeamDelete", json!({}));
    assert_eq!(error["error"]["kind"], "members_alive", "{error}");
    let question = json!({ "type": "shutdown_request", "reason": "THAT IS ALL" });
    lead.ok("SendMessage", json!({ "to": "alice", "message": question }));
    team.home.await_settled(&id);
    let exit = team.home.run_exit(&id).unwrap();
    assert_eq!(exit["status"], "completed", "{exit}");
    assert_eq!(exit["result"], "Good-bye.", "it finished its turn: {exit}");
    let mail = hears(&mut lead, "teammate_terminated");
    assert!(mail.contains("shutdown_approved"), "{mail}");
    let requests = requests_of(&team, "MATE");
    assert_eq!(requests.len(), 3);
    let asked = requests[1].conversation.last(Role::User).to_owned();
    assert!(
        asked.contains("shutdown_request") && asked.contains("THAT IS ALL"),
        "{asked}"
    );
    assert!(team.left_of(&id).is_empty());
    lead.ok("TeamDelete", json!({}));
    assert!(!team.home.team_dir().join("config.json").exists());
}

/// The tools of an agent: those of the user's servers, of the repository's own once it is trusted,
/// and ccb's even if a server of the user has ccb's name.
pub(crate) fn servers_of_the_user_and_of_a_trusted_repository() {
    let team = team();
    let main = team.repo.main();
    for (name, tool) in [("notes", "look_up"), ("ccb", "TaskList")] {
        let mut add = team.world.command(&real_program("CCB_TEST_CLAUDE"));
        add.args(["mcp", "add", "--scope", "user", name, "--", FAKE_MCP, tool]);
        let added = add.current_dir(main).output().unwrap();
        assert!(added.status.success(), "{added:?}");
    }
    for state in ["new", "trusted", "changed"] {
        if state != "trusted" {
            let server = json!({ "command": FAKE_MCP, "args": ["peek"] });
            let servers = json!({ "mcpServers": { "project": server, state: server } });
            write(&main.join(".mcp.json"), &servers.to_string());
            team.repo.git(&["add", ".mcp.json"]);
            team.repo.git(&["commit", "-qm", state]);
        } else {
            team.home.ok(&["-C", main.to_str().unwrap(), "trust"]);
        }
        for place in [&[][..], &["--isolation", "worktree"]] {
            let steps = [
                Step::tool("mcp__ccb__TaskList", json!({})),
                Step::text("It said: {{last}}"),
            ];
            let name = format!("{state} {}", place.len());
            let words = prompt(&name, &steps);
            let how = ["--runtime", "claude", "--type", "free"];
            let how = [&how, place, &[words.as_str()]].concat();
            let result = team.ask(&how);
            let said = result["content"].as_str().unwrap();
            // The other one would have answered with its name.
            assert!(!said.contains("ours: TaskList"), "{said}");
            let first = &requests_of(&team, &name)[0];
            let has = |tool: &str| first.tools.iter().any(|name| name == tool);
            let about = format!("{name}: {:?}", first.tools);
            assert!(has("mcp__notes__look_up"), "{about}");
            assert!(has("mcp__ccb__SendMessage"), "{about}");
            assert_eq!(has("mcp__project__peek"), state == "trusted", "{about}");
        }
    }
}
