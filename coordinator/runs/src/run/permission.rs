//! An agent's program asks if it may use a tool: the questions with an immediate answer, and the
//! receiver of the rest.

use std::time::Duration;

use mailbox::{Mailbox, Question};
use serde_json::Value;
use store::agent_id::LEAD;
use store::name::Name;
use swarm::run::{Asked, ServiceError};
use swarm::tools::Reach;

use super::services::{RunServices, name, port};
use super::usual_work::{is_usual, what_it_would_do};
use crate::session_file::SessionFile;

/// Maximum time to wait for an answer to a question.
const QUESTION_DEADLINE: Duration = Duration::from_secs(120);

impl RunServices {
    /// Asks the lead or the person at the terminal if the agent may use a tool, or answers itself.
    pub(super) fn ask_for(&self, tool: &str, input: &Value) -> Result<Asked, ServiceError> {
        // An agent without tools of its own gets none by asking, and one that only reads does not
        // write by asking.
        let plan = &self.meta.launch;
        if plan.grants.is_some() {
            let why = format!("{tool} is not for you: have a worker do it");
            return Ok(Asked::Refused(why));
        }
        if plan.reach == Reach::Reads && !only_looks(tool) {
            let why = format!("{tool} is not for you: you only read here, and this may write");
            return Ok(Asked::Refused(why));
        }
        if is_usual(input, &self.meta) {
            return Ok(Asked::Allowed);
        }
        // A copy asks the one it is a copy of, as that would have asked itself.
        let to = match self.meta.fork {
            true => name(&self.meta.parent)?,
            false => name(LEAD)?,
        };
        let mailbox = self.agents.mailbox();
        if !self.somebody_answers(&mailbox, &to) {
            let why = format!(
                "{tool} needs a permission, and nobody is there to give it. Do without it, or say \
                 in your result what a person has to allow"
            );
            return Ok(Asked::Refused(why));
        }
        let question = Question::Permission(mailbox::Permission {
            tool_name: tool.to_owned(),
            tool_use_id: None,
            description: what_it_would_do(input)
                .unwrap_or_else(|| format!("{} wants to use {tool}", self.meta.address())),
            input: input.clone(),
        });
        let asked = mailbox.ask(&self.own_name()?, &to, question, QUESTION_DEADLINE);
        Ok(Asked::Waiting(asked.map_err(port)?.id))
    }

    /// True if an agent or a person can answer a question: a lead that reads its mail, or a person
    /// at the session's terminal.
    fn somebody_answers(&self, mailbox: &Mailbox, who: &Name) -> bool {
        let itself = self.meta.address() == who.as_str();
        let read = || !itself && somebody_reads(mailbox, who);
        if who.as_str() != LEAD {
            return read();
        }
        let session = SessionFile::new(self.agents.home(), self.agents.team_name()).session();
        match session {
            Ok(Some(session)) if self.agents.are_directed().unwrap_or(false) => {
                session.attended || (session.lead.is_some() && read())
            }
            _ => read(),
        }
    }
}

/// True if a tool changes no files here: it looks something up, or belongs to a server.
fn only_looks(tool: &str) -> bool {
    let plain: String = tool.chars().filter(char::is_ascii_alphanumeric).collect();
    let looks = ["read", "webfetch", "websearch", "googlewebsearch"];
    tool.starts_with("mcp_") || looks.contains(&plain.to_lowercase().as_str())
}

/// True if an agent or a person reads this inbox and can answer.
fn somebody_reads(mailbox: &Mailbox, who: &Name) -> bool {
    let inbox = mailbox.inbox(who);
    inbox.is_ok_and(|inbox| inbox.has_reader().unwrap_or(false))
}
