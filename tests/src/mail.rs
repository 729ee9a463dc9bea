use std::process::{Command, Stdio};

use mailbox::{Listing, MailOptions, Mailbox, MessageState};
use serde_json::{Value, json};
use store::home::Home;
use store::name::Name;

use crate::home::TestHome;

/// A mail command, and the mail before it.
#[derive(Debug, Clone, Copy)]
pub struct MailScenario {
    pub name: &'static str,
    pub setup: fn(&TestHome),
    /// Arguments of `ccb`, or of the worker if the first one is "worker".
    pub command: &'static [&'static str],
    /// True if doing it again changes nothing.
    pub once: bool,
}

/// The command as a process; `worker` is the binary that stands for a host.
pub fn mail_command(home: &TestHome, worker: &str, args: &[&str]) -> Command {
    let ["worker", args @ ..] = args else {
        return home.command(args);
    };
    let mut command = Command::new(worker);
    command
        .env_clear()
        .arg(home.path())
        .arg("board")
        .args(args)
        .envs(home.board_url().map(|url| ("CCB_BOARD", url)))
        .stdin(Stdio::null());
    command
}

const MEMBERS: [&str; 3] = ["bob", "carol", "team-lead"];

fn open(home: &TestHome) -> Mailbox {
    let team = Name::new("team", "board").expect("a name");
    let home = Home::new(home.path().to_owned()).expect("a home");
    Mailbox::new(&home, &team, MailOptions::default())
}

fn listing(mailbox: &Mailbox, agent: &str) -> Listing {
    let name = Name::new("agent", agent).expect("a name");
    let inbox = mailbox.inbox(&name).expect("an inbox");
    inbox.list(true).expect("a list")
}

/// All mail that is not acknowledged, the count of the rest, and all requests; without the values
/// that differ from run to run, and without probes.
pub fn mail_state(home: &TestHome) -> Value {
    let mailbox = open(home);
    let mut state = json!({});
    for agent in MEMBERS {
        let listing = listing(&mailbox, agent);
        state[format!("acked by {agent}")] = listing.acked.into();
        let messages = listing.messages.into_iter().filter(|(message, state)| {
            *state != MessageState::Acknowledged && message.text() != Some("probe")
        });
        state[agent] = messages
            .map(|(message, state)| {
                let mut json = message.to_json();
                json["state"] = state.as_str().into();
                if let Some(body) = json["body"].as_object_mut() {
                    body.remove("requestId");
                }
                for varies in ["id", "seq", "sentAt", "expiresAt", "inReplyTo"] {
                    json.as_object_mut().expect("an object").remove(varies);
                }
                json
            })
            .collect();
    }
    let requests = mailbox.requests().expect("requests");
    assert!(requests.unreadable.is_empty(), "{requests:?}");
    state["requests"] = requests
        .requests
        .iter()
        .map(|request| {
            json!({
                "from": request.from,
                "to": request.to,
                "kind": request.question.kind(),
                "state": request.state.as_str(),
                "by": request.answer.as_ref().map(|answer| &answer.by),
            })
        })
        .collect();
    state
}

/// The numbers of all messages of every inbox, probes included.
pub fn message_numbers(home: &TestHome) -> Vec<(String, Vec<u64>)> {
    let mailbox = open(home);
    MEMBERS
        .iter()
        .map(|agent| {
            let messages = listing(&mailbox, agent).messages;
            let numbers = messages.iter().map(|(message, _)| message.seq).collect();
            ((*agent).to_owned(), numbers)
        })
        .collect()
}
