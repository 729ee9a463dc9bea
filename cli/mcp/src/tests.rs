//! The tools for agents, with a service that runs no agents.

use std::io::{BufRead, BufReader};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use coordinator::actions::mail::Letter;
use coordinator::agent::Wish;
use coordinator::agent::service::{
    AgentOutput, AgentResult, AgentUsage, Messaged, Receipt, Spawned, Wait,
};
use mailbox::{Posted, Priority};
use runs::Listed;
use serde_json::{Value, json};
use swarm::run::Meta;

use super::*;

const AGENT: &str = "a0123456789abcdef";

/// Answers by the description, and records the requests.
#[derive(Debug, Default)]
struct Fake {
    asked: Mutex<Vec<Wish>>,
    /// True if a result was written out.
    arrived: Arc<AtomicBool>,
}

impl Fake {
    fn result(wish: &Wish, workplace: &Workplace) -> AgentResult {
        if let (Some(name), true) = (&wish.name, wish.teammate) {
            let team = workplace.named_team().unwrap();
            return AgentResult::TeammateSpawned {
                teammate_id: format!("{name}@{team}"),
                name: name.clone(),
                team_name: team.to_owned(),
            };
        }
        if wish.background {
            return AgentResult::AsyncLaunched {
                agent_id: AGENT.into(),
                description: wish.description.clone().unwrap(),
                output_file: "/runs/output.log".into(),
                can_read_output_file: true,
            };
        }
        AgentResult::Completed {
            status: "completed",
            content: String::new(),
            agent_id: Some(AGENT.into()),
            usage: Some(AgentUsage {
                total_tokens: 12,
                tool_uses: 3,
                duration_ms: 45,
            }),
            worktree: Some(("/tree".into(), Some("worktree/x".into()))),
        }
    }
}

impl AgentService for Fake {
    fn spawn(&self, wish: &Wish, workplace: &Workplace, wait: &Wait) -> Result<Spawned, Failure> {
        self.asked.lock().unwrap().push(wish.clone());
        if wish.description.as_deref() == Some("wait") {
            until(|| wait.is_over());
            return Err(Failure::failed("ended", "nobody waits"));
        }
        let arrived = Arc::clone(&self.arrived);
        Ok(Spawned {
            note: (wish.background && !wish.teammate)
                .then(|| "Its type is general-purpose.".into()),
            result: Self::result(wish, workplace),
            receipt: Some(Box::new(move || arrived.store(true, Ordering::SeqCst))),
        })
    }
    fn stop(&self, id: &str, workplace: &Workplace) -> Result<AgentOutput, Failure> {
        let output = self.output(id, false, Duration::ZERO, workplace, &Wait::default());
        output.map(|(output, _)| output)
    }

    fn output(
        &self,
        id: &str,
        block: bool,
        timeout: Duration,
        _: &Workplace,
        wait: &Wait,
    ) -> Result<(AgentOutput, Option<Receipt>), Failure> {
        if id != AGENT {
            return Err(Failure::usage("agent_not_found", format!("no agent {id}")));
        }
        let started = std::time::Instant::now();
        until(|| !block || wait.is_over() || started.elapsed() >= timeout);
        let output = AgentOutput {
            status: "running".into(),
            description: "look around".into(),
            output: "so far".into(),
            ended: false,
        };
        Ok((output, None))
    }

    fn message(&self, letter: &Letter, _: &Workplace) -> Result<Option<Messaged>, Failure> {
        let known = letter.to == AGENT;
        Ok(known.then(|| Messaged {
            to: AGENT.into(),
            posted: Posted {
                id: uuid::Uuid::nil(),
                seq: 1,
                already: false,
            },
            priority: Priority::default(),
            resumed: true,
        }))
    }

    fn agents(&self, _: &Workplace) -> Result<Vec<Listed>, Failure> {
        let meta = Meta {
            agent_id: AGENT.into(),
            name: Some("scout".into()),
            ..Meta::default()
        };
        Ok(vec![Listed { meta, alive: true }])
    }
}

/// Waits until the condition is true.
fn until(condition: impl Fn() -> bool) {
    let started = std::time::Instant::now();
    while !condition() {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "waited in vain"
        );
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

/// A server in a thread, and the client's end.
struct Connection {
    port: Arc<Fake>,
    to_server: UnixStream,
    from_server: BufReader<UnixStream>,
    server: JoinHandle<Result<(), Failure>>,
    _home: tempfile::TempDir,
}

impl Connection {
    fn new(role: Role, agent: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let context = Workplace::for_tests(home.path(), "crew", agent).unwrap();
        let member = Arc::new(Membership::new(role, context).unwrap());
        let port = Arc::new(Fake::default());
        let (to_server, input) = UnixStream::pair().unwrap();
        let (output, from_server) = UnixStream::pair().unwrap();
        let agents: Arc<dyn AgentService> = Arc::clone(&port) as _;
        let server = std::thread::spawn(move || serve_on(&member, agents, input, output));
        let mut connection = Self {
            port,
            to_server,
            from_server: BufReader::new(from_server),
            server,
            _home: home,
        };
        let hello = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"experimental": {"ccb/json": {}}},
                "clientInfo": {"name": "test", "version": "1"},
            },
        });
        writeln!(connection.to_server, "{hello}").unwrap();
        connection.next();
        connection
    }

    fn begin(&mut self, id: u64, tool: &str, arguments: &Value) {
        let call = json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        });
        writeln!(self.to_server, "{call}").unwrap();
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.from_server.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// The words and the JSON of a result.
    fn call(&mut self, tool: &str, arguments: &Value) -> (String, Value) {
        self.begin(1, tool, arguments);
        let answer = self.next();
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{answer}")).to_owned();
        (text, result["structuredContent"].clone())
    }

    fn asked(&self) -> Wish {
        self.port.asked.lock().unwrap().pop().unwrap()
    }

    fn end(self) {
        drop(self.to_server);
        self.server.join().unwrap().unwrap();
    }
}

#[test]
fn an_agent_in_the_foreground_answers_with_its_result() {
    let mut lead = Connection::new(Role::Lead, "team-lead");
    let (text, json) = lead.call(
        "Agent",
        &json!({"description": "look", "prompt": "Look.", "subagent_type": "Explore", "model": "small",
                "isolation": "worktree"}),
    );
    assert_eq!(json["status"], "completed");
    assert_eq!(json["agentId"], AGENT);
    let numbers =
        ["totalTokens", "totalToolUseCount", "totalDurationMs"].map(|key| json[key].as_u64());
    assert_eq!(numbers, [Some(12), Some(3), Some(45)]);
    assert_eq!(json["worktree"]["worktreeBranch"], "worktree/x");
    assert!(
        text.starts_with("(The agent ended without saying anything.)"),
        "{text}"
    );
    assert!(
        text.contains("/tree") && text.contains("total_tokens: 12"),
        "{text}"
    );
    let asked = lead.asked();
    let words = [
        asked.description,
        asked.prompt,
        asked.agent_type,
        asked.model,
    ];
    let expected = ["look", "Look.", "Explore", "small"].map(|word| Some(word.to_owned()));
    assert_eq!(words, expected);
    assert!(asked.worktree.is_some() && !asked.background && asked.fork.is_none());
    lead.end();
}

#[test]
fn an_agent_in_the_background_answers_with_where_to_look() {
    let mut lead = Connection::new(Role::Lead, "team-lead");
    let call = json!({"description": "look", "prompt": "Look.", "run_in_background": true});
    let (text, json) = lead.call("Agent", &call);
    let expected = json!({
        "status": "async_launched", "agentId": AGENT, "description": "look",
        "outputFile": "/runs/output.log", "canReadOutputFile": true,
        "note": "Its type is general-purpose.",
    });
    assert_eq!(json, expected);
    assert!(
        text.contains(AGENT) && text.ends_with("Its type is general-purpose."),
        "{text}"
    );
    lead.end();
}

/// A coordinator waits for no agent and chooses no models.
#[test]
fn a_coordinators_agents_are_all_in_the_background() {
    let mut coordinator = Connection::new(Role::Coordinator, "team-lead");
    let (_, json) = coordinator.call("Agent", &json!({"description": "look", "prompt": "Look."}));
    assert_eq!(json["status"], "async_launched");
    for (name, value) in [
        ("run_in_background", json!(false)),
        ("model", json!("small")),
    ] {
        let call = json!({"description": "look", "prompt": "Look.", name: value});
        let (text, _) = coordinator.call("Agent", &call);
        assert!(
            text.contains(&format!("there is no argument {name:?}")),
            "{text}"
        );
    }
    coordinator.end();
}

#[test]
fn a_name_makes_a_teammate_of_the_sessions_own_team() {
    let mut lead = Connection::new(Role::Lead, "team-lead");
    let call = json!({"description": "help", "prompt": "Help.", "name": "bob", "mode": "plan"});
    let (text, json) = lead.call("Agent", &call);
    let expected = json!({
        "status": "teammate_spawned", "teammate_id": "bob@crew", "name": "bob", "team_name": "crew",
    });
    assert_eq!(json, expected);
    assert!(text.contains("bob is in team crew"), "{text}");
    let asked = lead.asked();
    assert!(asked.plan_mode && asked.teammate);
    let wrong = [
        (
            json!({"team_name": "crew"}),
            "\"team_name\" without \"name\"",
        ),
        (
            json!({"name": "bob", "team_name": "other"}),
            "this session's team is crew, not other",
        ),
        (json!({"mode": "plan"}), "is for teammates"),
        (json!({"mode": "bypass"}), "\"mode\" cannot be \"bypass\""),
        (
            json!({"isolation": "remote"}),
            "\"remote\" is not supported",
        ),
    ];
    for (more, words) in wrong {
        let mut call = json!({"description": "help", "prompt": "Help."});
        for (key, value) in more.as_object().unwrap() {
            call[key] = value.clone();
        }
        let (text, json) = lead.call("Agent", &call);
        assert!(text.contains(words), "{text}");
        assert!(json["error"]["kind"].is_string());
    }
    lead.end();
}

#[test]
fn output_and_stop_are_about_ones_own_agents() {
    let mut mate = Connection::new(Role::Teammate, "alice");
    let (text, json) = mate.call("TaskOutput", &json!({"task_id": AGENT, "block": false}));
    assert_eq!(json["retrieval_status"], "not_ready");
    assert_eq!(json["task"]["output"], "so far");
    assert!(text.ends_with("so far"), "{text}");
    let (_, json) = mate.call("TaskOutput", &json!({"task_id": AGENT, "timeout": 1}));
    assert_eq!(json["retrieval_status"], "timeout");
    let (text, json) = mate.call("TaskStop", &json!({"task_id": AGENT}));
    assert_eq!(
        (&json["task_id"], json["message"].as_str()),
        (&json!(AGENT), Some(&*text))
    );
    // The name reaches the service as well.
    let (_, json) = mate.call("TaskStop", &json!({"task_id": "scout"}));
    assert_eq!(json["error"]["kind"], "agent_not_found");
    for tool in ["TaskStop", "TaskOutput"] {
        let (text, json) = mate.call(tool, &json!({"task_id": "affffffffffffffff"}));
        assert_eq!(json["error"]["kind"], "not_yours");
        assert!(text.contains(AGENT), "{text}");
        let (text, json) = mate.call(tool, &json!({"task_id": "12"}));
        assert_eq!(json["error"]["kind"], "board_task");
        assert!(text.contains(AGENT), "{text}");
    }
    mate.end();
}

/// Other calls are answered while one waits, and a cancelled wait ends.
#[test]
fn a_call_that_waits_holds_up_nothing_and_can_be_called_off() {
    let mut lead = Connection::new(Role::Lead, "team-lead");
    let waits = json!({"description": "wait", "prompt": "Wait."});
    lead.begin(7, "Agent", &waits);
    let (text, _) = lead.call("TaskList", &json!({}));
    assert!(text.starts_with("No tasks"), "{text}");
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7},
    });
    writeln!(lead.to_server, "{cancel}").unwrap();
    lead.begin(8, "Agent", &waits);
    lead.call("TaskList", &json!({}));
    // A client that hangs up waits for nothing any more.
    lead.end();
}

/// Text for an agent goes to the process that runs it; everything else is mail.
#[test]
fn a_message_to_an_agent_lets_it_go_on() {
    let mut lead = Connection::new(Role::Lead, "team-lead");
    let call = json!({"to": AGENT, "message": "wake up", "summary": "wake up"});
    let (text, json) = lead.call("SendMessage", &call);
    assert_eq!(
        (text.as_str(), &json["message"]["resumed"]),
        (
            "Sent to a0123456789abcdef. It had ended and resumes in the background.",
            &json!(true)
        )
    );
    let call = json!({"to": "nobody", "message": "wake up", "summary": "wake up"});
    let (_, json) = lead.call("SendMessage", &call);
    assert_eq!(json["error"]["kind"], "recipient_not_found");
    lead.end();
}

/// Only a result that was written out counts as delivered.
#[test]
fn a_result_is_delivered_when_it_is_written() {
    let call = json!({"description": "look", "prompt": "Look."});
    let mut lead = Connection::new(Role::Lead, "team-lead");
    lead.call("Agent", &call);
    let arrived = Arc::clone(&lead.port.arrived);
    lead.end();
    assert!(arrived.load(Ordering::SeqCst));
    let mut lead = Connection::new(Role::Lead, "team-lead");
    let arrived = Arc::clone(&lead.port.arrived);
    // The client reads nothing more.
    lead.from_server
        .get_ref()
        .shutdown(std::net::Shutdown::Both)
        .unwrap();
    lead.begin(1, "Agent", &call);
    lead.end();
    assert!(!arrived.load(Ordering::SeqCst));
}
