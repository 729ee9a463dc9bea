//! ccb's own loop alone, without a host: started as a host starts it, on a scripted model.

use std::path::PathBuf;

use serde_json::Value;
use swarm::process::Ending;
use swarm::provider::{Provider, Wire};
use swarm::runtime::{Event, Launch, Message, NativeRuntime, Order, TurnEnd, TurnStatus};
use tempfile::TempDir;
use uuid::Uuid;

use crate::Talk;
use crate::model::{ModelOptions, ModelServer, Recorded, Step, prompt};

/// The key of the scripted service.
pub const KEY: &str = "sk-scripted-0123456789abcdef";

/// Every form of requests and answers.
pub const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::Chat, Wire::Responses];

/// A scripted model, and a place to work in.
#[derive(Debug)]
pub struct NativeWorld {
    pub server: ModelServer,
    pub dir: TempDir,
    wire: Wire,
    ccb: &'static str,
}

impl NativeWorld {
    /// A world whose model speaks this protocol; `ccb` is the program.
    pub fn new(ccb: &'static str, wire: Wire) -> Self {
        let options = ModelOptions {
            scripts_without_tools: true,
            ..ModelOptions::default()
        };
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["cwd", "scratch", "records"] {
            std::fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        Self {
            server: ModelServer::with(options).expect("a server"),
            dir,
            wire,
            ccb,
        }
    }

    /// A file or directory of the world: below `cwd`, `scratch` or `records`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("a path").join(name)
    }

    /// The launch of an agent; it may do anything.
    pub fn launch(&self, prompt: &str) -> Launch {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Launch {
            prompt: prompt.to_owned(),
            cwd: self.path("cwd"),
            scratch: self.path("scratch"),
            records: Some(self.path("records")),
            env: vec![("PATH".into(), path), ("SCRIPTED_KEY".into(), KEY.into())],
            permission_mode: Some("bypassPermissions".into()),
            provider: Some(Provider {
                name: "scripted".into(),
                wire: self.wire,
                base_url: self.server.url(),
                key_env: Some("SCRIPTED_KEY".into()),
                model: "scripted-1".into(),
                ..Provider::default()
            }),
            ..Launch::default()
        }
    }

    pub fn start(&self, launch: Launch) -> Talk {
        let command = vec![self.ccb.to_owned(), NativeRuntime::ROLE.to_owned()];
        Talk::start(&NativeRuntime::new(command), launch).expect("it starts")
    }

    /// Starts an agent whose model follows these steps.
    pub fn follow(&self, steps: &[Step]) -> Talk {
        self.start(self.launch(&prompt("Go.", steps)))
    }

    /// All requests, once each has an outcome.
    pub fn requests(&self) -> Vec<Recorded> {
        self.server.settled()
    }

    /// The lines of the conversation's file.
    pub fn lines(&self) -> Vec<Value> {
        let file = self.path("records/conversation.jsonl");
        let text = std::fs::read_to_string(file).expect("a conversation");
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().expect("whole lines")
    }
}

/// Sends a message.
pub fn send(talk: &mut Talk, text: &str) {
    let (id, text, now) = (Uuid::new_v4(), text.to_owned(), false);
    talk.order(Order::Send(Message { id, text, now }));
}

/// The error of a failed turn.
pub fn error(turn: &TurnEnd) -> &str {
    turn.error.as_deref().unwrap_or_default()
}

/// The reasons that an agent gave for waiting.
pub fn stalls(talk: &Talk) -> Vec<String> {
    let stalls = talk.seen.iter().filter_map(|event| match event {
        Event::Stalled { why } => Some(why.clone()),
        _ => None,
    });
    stalls.collect()
}

/// The results of its calls; true for an error.
pub fn results(talk: &Talk) -> Vec<(String, bool)> {
    let results = talk.seen.iter().filter_map(|event| match event {
        Event::ToolResult {
            output, is_error, ..
        } => Some((output.clone(), *is_error)),
        _ => None,
    });
    results.collect()
}

/// Continues a conversation that failed.
pub fn goes_on(talk: &mut Talk) {
    send(talk, &prompt("Again.", &[Step::text("better now")]));
    let turn = talk.turn();
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    assert_eq!(turn.text, "better now");
    assert_eq!(talk.finish(), Ending::Exited(0));
}
