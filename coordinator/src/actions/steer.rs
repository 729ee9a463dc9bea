//! The commands of a session's lead, from its own terminal or from any other.

use mailbox::Priority;
use project::workplace::Workplace;
use runs::Agents;
use store::Failure;
use store::agent_id::LEAD;
use store::name::Name;
use taskboard::{NewTask, Task, TaskFacts};

use super::task;

/// Maximum characters of a summary made from the first line.
const SUMMARY: usize = 200;

/// A person in the lead's role.
#[derive(Debug)]
pub(crate) struct Steer<'a> {
    /// The workplace, with that person as the caller.
    pub(crate) workplace: &'a Workplace,
    /// True if no agent leads, so that a message to the lead becomes a task.
    pub(crate) leads: bool,
    /// True if teammates run commands and nothing else.
    pub(crate) commands_only: bool,
}

/// The result of a message to the lead.
#[derive(Debug)]
pub(crate) enum Said {
    /// The lead, an agent, has the message.
    Delivered,
    /// The message became a task.
    Added(Box<Task>),
}

impl Steer<'_> {
    /// Sends a message to the lead; if a person leads, it becomes a task.
    pub(crate) fn say(&self, text: &str, agents: &Agents) -> Result<Said, Failure> {
        if !self.leads {
            write_to(LEAD, text, agents)?;
            return Ok(Said::Delivered);
        }
        if is_an_answer(text) {
            let message = format!("no question is open, so {text:?} answers nothing");
            let hint = "/task TEXT puts a task on the board, /quit ends the session";
            return Err(Failure::usage("no_question", message).with_hint(hint));
        }
        Ok(Said::Added(Box::new(self.add_task(text, None)?)))
    }

    /// Puts a task on the board; with `command` it needs no model.
    pub(crate) fn add_task(&self, text: &str, command: Option<&str>) -> Result<Task, Failure> {
        if text.trim().is_empty() {
            let message = "a task needs a subject";
            return Err(Failure::usage("no_subject", message).with_hint("/task TEXT or /run CMD"));
        }
        if self.leads && self.commands_only && command.is_none() {
            let message = "nobody here can work on that: the mates only run commands";
            let hint = "/run CMD adds a task that runs a command";
            return Err(Failure::usage("needs_model", message).with_hint(hint));
        }
        let facts = TaskFacts {
            run: command.map(str::to_owned),
            ..TaskFacts::default()
        };
        let new = NewTask {
            subject: text.to_owned(),
            metadata: facts.into_metadata(),
            ..NewTask::default()
        };
        task::create(new, self.workplace)
    }
}

/// Sends a person's words to an agent that can read them.
pub(crate) fn write_to(name: &str, text: &str, agents: &Agents) -> Result<(), Failure> {
    if text.is_empty() {
        let message = format!("there is no message for {name}");
        return Err(Failure::usage("no_text", message).with_hint("@NAME TEXT"));
    }
    let from = Name::new("agent", "user")?;
    let meta = agents.find(name)?;
    if name != LEAD && !meta.runtime.kind.has_model() {
        let message = format!("{name} runs a command, which reads no messages");
        return Err(Failure::usage("reads_nothing", message));
    }
    if name != LEAD && !meta.teammate && !agents.is_alive(&meta)? {
        let message = format!("{name} is not working on a task now");
        return Err(Failure::usage("not_working", message).with_hint("/agents shows who is"));
    }
    let first = text.lines().next();
    let summary = first.map(|line| line.chars().take(SUMMARY).collect());
    agents.send(&meta, &from, text.to_owned(), summary, Priority::Next)?;
    Ok(())
}

/// True if this is a typical answer to a question, and no task.
fn is_an_answer(text: &str) -> bool {
    const ANSWERS: [&str; 16] = [
        "y", "yes", "n", "no", "ok", "okay", "a", "all", "none", "o", "q", "quit", "exit", "help",
        "?", "stop",
    ];
    let text = text.trim().trim_end_matches(['.', '!']).to_lowercase();
    ANSWERS.contains(&text.as_str())
}
