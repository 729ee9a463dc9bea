//! From the start of the program to the first prompt.

use serde_json::{Value, json};

use super::super::refusal::failed_turn;
use super::super::translator::{Step, Steps};
use super::super::{Event, Start, TurnEnd, TurnStatus};
use super::options::{current_model, not_possible, settings};
use super::translate::{Acp, Call, VERSION, text_block};

/// The error of an agent that wants a login.
const LOGIN_REQUIRED: i64 = -32000;

impl Acp {
    pub(super) fn introduced(&mut self, result: &Value, steps: &mut Steps) {
        if let Some(name) = result["agentInfo"]["name"].as_str() {
            self.quirks = self.quirks.of_agent(name);
        }
        let version = result["protocolVersion"].as_u64();
        if version != Some(VERSION) {
            let theirs = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
            let why = format!("it speaks version {theirs} of the protocol, ccb speaks {VERSION}");
            return self.give_up(None, &why, steps);
        }
        let abilities = &result["agentCapabilities"];
        let sessions = &abilities["sessionCapabilities"];
        self.can_fork = !sessions["fork"].is_null();
        // Loading tells the whole history again; resuming does not.
        if abilities["loadSession"] == true {
            self.reopen.push("session/load");
        }
        if !sessions["resume"].is_null() {
            self.reopen.push("session/resume");
        }
        self.open(steps);
    }

    pub(super) fn open(&mut self, steps: &mut Steps) {
        let servers: Vec<Value> = self
            .launch
            .mcp_servers
            .iter()
            .map(|server| {
                let env = server.env.iter();
                let env = env.map(|(name, value)| json!({ "name": name, "value": value }));
                json!({
                    "name": server.name,
                    "command": server.command,
                    "args": server.args,
                    "env": env.collect::<Vec<_>>(),
                })
            })
            .collect();
        let mut params = json!({ "cwd": self.launch.cwd, "mcpServers": servers });
        let method = match &self.launch.start {
            Start::New => Some("session/new"),
            Start::Resume { session } => {
                params["sessionId"] = session.as_str().into();
                self.reopen.pop()
            }
            Start::Fork { session, .. } => {
                params["sessionId"] = session.as_str().into();
                self.can_fork.then_some("session/fork")
            }
        };
        match method {
            Some(method) => steps.push(self.calls.call(method, &params, Call::Open)),
            None => {
                let why = "this agent can neither go on with a session nor copy one";
                self.give_up(None, why, steps);
            }
        }
    }

    /// True if it can log in with a key: any other login would wait for a person.
    pub(super) fn can_log_in(&self, error: &Value) -> bool {
        error["code"] == LOGIN_REQUIRED && !self.logged_in && self.login_method().is_some()
    }

    fn login_method(&self) -> Option<&'static str> {
        let is_set = |variable: &str| self.launch.env.iter().any(|(name, _)| name == variable);
        let mut keys = self.quirks.keys.iter();
        let found = keys.find(|(variable, _)| is_set(variable));
        found.map(|(_, method)| *method)
    }

    pub(super) fn log_in(&mut self, steps: &mut Steps) {
        self.logged_in = true;
        let params = json!({ "methodId": self.login_method() });
        steps.push(self.calls.call("authenticate", &params, Call::LogIn));
    }

    pub(super) fn opened(&mut self, result: &Value, steps: &mut Steps) {
        self.session = match (&self.launch.start, result["sessionId"].as_str()) {
            (_, Some(session)) => session.to_owned(),
            (Start::Resume { session }, None) => session.clone(),
            (_, None) => {
                return self.give_up(None, "it opened a session without a name", steps);
            }
        };
        self.model = current_model(result).or_else(|| self.launch.model.clone());
        match settings(&self.launch, &self.quirks, &self.session, result) {
            Ok(settings) => self.settings = settings.into(),
            Err(why) => return self.give_up(None, &why, steps),
        }
        self.offers = json!({
            "modes": result["modes"],
            "configOptions": result["configOptions"],
        });
        self.set_up(steps);
    }

    /// Tells the session the next thing it must know, and then what to do.
    pub(super) fn set_up(&mut self, steps: &mut Steps) {
        if let Some(setting) = self.settings.pop_front() {
            if setting.what.starts_with("the model") {
                self.model.clone_from(&self.launch.model);
            }
            let (method, params) = (setting.method, setting.params.clone());
            steps.push(self.calls.call(method, &params, Call::Set(setting)));
            return;
        }
        self.ready = true;
        steps.push(Step::Event(Event::Started {
            session: Some(self.session.clone()),
            model: self.model.clone(),
        }));
        if let Some(words) = not_possible(&self.launch, &self.quirks) {
            steps.push(Step::note(&words));
        }
        let prompt = std::mem::take(&mut self.launch.prompt);
        if std::mem::take(&mut self.not_begin) {
            let (status, text, error) = (TurnStatus::Interrupted, String::new(), None);
            let end = TurnEnd {
                status,
                text,
                error,
            };
            steps.push(Step::Event(Event::TurnEnded(end)));
        } else if !prompt.is_empty() {
            let mut blocks = vec![text_block(&prompt)];
            // The protocol has no place for it; a block before the prompt comes closest.
            if let Some(system) = &self.launch.system_prompt {
                blocks.insert(0, text_block(system));
            }
            self.queue.push_front((None, blocks.into()));
        }
        self.go_on(steps);
    }

    /// Notes that it did not start, and will not.
    pub(super) fn give_up(&mut self, code: Option<i64>, why: &str, steps: &mut Steps) {
        self.failed = true;
        steps.push(Step::Event(Event::Started {
            session: None,
            model: None,
        }));
        let end = failed_turn(code, why, String::new(), self.quirks.login);
        steps.push(Step::Event(Event::TurnEnded(end)));
        steps.push(Step::Close);
    }
}
