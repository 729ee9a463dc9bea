//! Messages and requests: sent, asked, answered.

use mailbox::{
    Body, DEFAULT_DEADLINE, Draft, Posted, Priority, Question, Reply, Request, RequestState,
    short_id,
};
use project::workplace::Workplace;
use serde_json::{Value, json};
use store::Failure;
use store::name::Name;
use uuid::Uuid;

use super::{plan_mode, recipients};

/// Maximum characters of a summary made from the first line.
const SUMMARY: usize = 100;

/// A text to send.
#[derive(Debug)]
pub struct Letter {
    /// A member's name, an agent id, or `*`.
    pub to: String,
    /// The text.
    pub text: String,
    /// `None` takes the first line.
    pub summary: Option<String>,
    /// The urgency.
    pub priority: Option<Priority>,
    /// The message it answers.
    pub in_reply_to: Option<Uuid>,
}

/// A sent message and its recipients.
#[derive(Debug)]
pub struct Sent {
    draft: Draft,
    id: Uuid,
    reached: Reached,
}

/// The recipients of a text.
#[derive(Debug)]
pub enum Reached {
    /// One inbox, as its message of this number.
    One(u64),
    /// Everyone.
    All {
        /// The broadcast's number.
        number: u64,
        /// The recipients.
        recipients: Vec<Name>,
    },
}

/// Sends a text.
pub fn send(letter: Letter, workplace: &Workplace) -> Result<Sent, Failure> {
    if letter.text.trim().is_empty() {
        return Err(Failure::usage("invalid", "the text is empty"));
    }
    let summary = letter.summary.unwrap_or_else(|| first_line(&letter.text));
    let from = workplace.agent_name().clone();
    // The recipient does not matter for a broadcast; the sender is an existing name.
    let everyone = letter.to == "*";
    let to = if everyone {
        from.clone()
    } else {
        recipients::resolve(&letter.to, workplace)?
    };
    let draft = Draft {
        priority: letter.priority,
        summary: Some(summary),
        in_reply_to: letter.in_reply_to,
        ..Draft::text(from, to, letter.text)
    };
    let mailbox = workplace.mailbox()?;
    if everyone {
        let members = recipients::members(workplace)?;
        let names: Vec<Name> = members.into_iter().map(|member| member.name).collect();
        let sent = mailbox.broadcast(&draft, &names)?;
        return Ok(Sent {
            draft,
            id: sent.id,
            reached: Reached::All {
                number: sent.number,
                recipients: sent.recipients,
            },
        });
    }
    let Posted { id, seq, .. } = mailbox.send(&draft)?;
    let reached = Reached::One(seq);
    Ok(Sent { draft, id, reached })
}

impl Sent {
    /// The recipient.
    pub fn to(&self) -> &Name {
        &self.draft.to
    }

    /// The recipients, with the message's number.
    pub fn reached(&self) -> &Reached {
        &self.reached
    }

    /// `{"message":{…}}`.
    pub fn to_json(&self) -> Value {
        let draft = &self.draft;
        let mut answer = json!({
            "id": self.id.to_string(),
            "from": draft.from.as_str(),
            "to": draft.to.as_str(),
            "kind": draft.body.kind(),
            "priority": draft.priority.unwrap_or_default().as_str(),
        });
        if let Body::Text(text) = &draft.body {
            answer["text"] = text.as_str().into();
        }
        if let Some(summary) = &draft.summary {
            answer["summary"] = summary.as_str().into();
        }
        if let Some(id) = draft.in_reply_to {
            answer["inReplyTo"] = id.to_string().into();
        }
        match &self.reached {
            Reached::One(seq) => answer["seq"] = (*seq).into(),
            Reached::All { number, recipients } => {
                let names: Vec<&str> = recipients.iter().map(Name::as_str).collect();
                answer["to"] = "*".into();
                answer["broadcast"] = (*number).into();
                answer["recipients"] = json!(names);
            }
        }
        json!({ "message": answer })
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or_default().trim();
    let mut short: String = line.chars().take(SUMMARY).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

/// Sends a question to a member; the answer comes as a message.
pub fn ask(to: &str, question: Question, workplace: &Workplace) -> Result<Request, Failure> {
    let to = recipients::resolve(to, workplace)?;
    let from = workplace.agent_name();
    let mailbox = workplace.mailbox()?;
    Ok(mailbox.ask(from, &to, question, DEFAULT_DEADLINE)?)
}

/// The id of the open request that `given` means: the whole id, its beginning or end, or the
/// sender's name.
pub fn open_request(
    given: &str,
    to: Option<&str>,
    workplace: &Workplace,
) -> Result<String, Failure> {
    let mailbox = workplace.mailbox()?;
    if mailbox.request(given).is_ok() {
        return Ok(given.to_owned());
    }
    let all = mailbox.requests()?.requests;
    let open: Vec<&Request> = all
        .iter()
        .filter(|request| request.state == RequestState::Pending)
        .filter(|request| to.is_none_or(|to| request.to == to))
        .filter(|request| {
            let id = &request.id;
            id.starts_with(given) || id.ends_with(given) || request.from.as_str() == given
        })
        .collect();
    match open.as_slice() {
        [request] => Ok(request.id.clone()),
        // As if the full id had been given.
        [] => Ok(given.to_owned()),
        several => {
            let message = format!("{given:?} means {} open requests", several.len());
            let ids: Vec<&str> = several.iter().map(|request| short_id(request)).collect();
            let hint = format!(
                "say which: {}; `ccb mail requests` lists them",
                ids.join(", ")
            );
            Err(Failure::usage("ambiguous", message).with_hint(hint))
        }
    }
}

/// Answers a request. A denial needs its reason; an approved planner may begin, with the plan as
/// its file contains it now.
pub fn answer(
    id: &str,
    approved: bool,
    feedback: Option<String>,
    workplace: &Workplace,
) -> Result<Request, Failure> {
    if !approved && feedback.as_deref().unwrap_or_default().trim().is_empty() {
        let error = Failure::usage("invalid", "a no without a reason");
        return Err(error.with_hint("say why not, and what to do instead"));
    }
    let mailbox = workplace.mailbox()?;
    let plan = match approved {
        true => plan_mode::edited(&mailbox.request(id)?, workplace)?,
        false => None,
    };
    let reply = Reply {
        approved,
        feedback,
        plan,
    };
    let request = mailbox.reply(id, workplace.agent_name(), reply)?;
    match &request.question {
        Question::Plan(_) if approved => plan_mode::end(&request.from, workplace)?,
        Question::Shutdown(_) if approved => wake(&request.to, workplace),
        _ => {}
    }
    Ok(request)
}

/// Wakes the host of an agent that has agreed to end. Without the wake-up the host notices it a
/// little later.
fn wake(agent: &str, workplace: &Workplace) {
    let agents = workplace.agents();
    if let Ok(agents) = agents
        && let Ok(Some(meta)) = agents.addressed(agent)
    {
        agents.run(&meta.agent_id).ring();
    }
}
