//! The mail of a team, as it passes: read without a lock.

use std::collections::{HashSet, VecDeque};

use mailbox::{Body, Mailbox, Message, Passing, Protocol, Request, RunStatus};
use project::workplace::Workplace;
use store::atomic::Stamp;
use store::clock::parse_rfc3339;
use store::name::Name;
use store::text::{clean, clean_line, cut_bytes, first_line};

use super::scene::MailScene;

/// Maximum number of messages.
const KEPT: usize = 300;
/// Maximum bytes of a text.
const TEXT: usize = 16 * 1024;
/// Maximum characters of a summary.
const SUMMARY: usize = 200;
/// Poll interval for inboxes, in ms.
const EVERY: i64 = 500;
/// Maximum number of remembered ids, which identify a message that is read again.
const REMEMBERED: usize = 4 * KEPT;

/// Follows all inboxes of a team.
#[derive(Debug)]
pub(super) struct Post {
    passing: Passing,
    mail: VecDeque<MailScene>,
    seen: HashSet<String>,
    order: VecDeque<String>,
    looked: Option<i64>,
}

/// The mail of a team, if this workplace may read it.
pub(super) fn mailbox_of(workplace: &Workplace, team: &Name) -> Option<Mailbox> {
    match workplace.is_in_database() {
        // The repository of the team was checked when the view found it; a short outage of the
        // database does not stop the view of its mail.
        true => Some(workplace.mailbox_to_look_at(team, workplace.mail_options())),
        false => workplace.mailbox().ok(),
    }
}

impl Post {
    /// Reads the mail of a team.
    pub(super) fn of(mailbox: &Mailbox) -> Self {
        Self {
            passing: mailbox.follow(),
            mail: VecDeque::new(),
            seen: HashSet::new(),
            order: VecDeque::new(),
            looked: None,
        }
    }

    /// The last messages, oldest first.
    pub(super) fn look(&mut self, now_ms: i64) -> Vec<MailScene> {
        let due = |at: i64| now_ms - at >= EVERY || now_ms < at;
        if self.looked.is_none_or(due) {
            self.looked = Some(now_ms);
            self.read();
        }
        self.mail.iter().cloned().collect()
    }

    /// Reads new messages. A message that cannot be read now is read at the next look; the reader
    /// of the board reports the error.
    fn read(&mut self) {
        let mut new = self.passing.look().unwrap_or_default();
        new.sort_by(|a, b| (&a.sent_at, a.id).cmp(&(&b.sent_at, b.id)));
        for message in new {
            self.add(&message);
        }
    }

    fn add(&mut self, message: &Message) {
        let id = message.id.to_string();
        // An inbox that was shortened is read again.
        if !self.seen.insert(id.clone()) {
            return;
        }
        self.order.push_back(id);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        self.mail.push_back(scene_of(message));
        if self.mail.len() > KEPT {
            self.mail.pop_front();
        }
    }
}

fn scene_of(message: &Message) -> MailScene {
    let text = whole(message);
    let (kept, cut) = cut_bytes(&text, TEXT);
    let mut whole = clean(kept).replace('\t', "    ");
    if cut {
        whole.push('…');
    }
    let summary = match &message.summary {
        Some(summary) => first_line(summary, SUMMARY),
        None => first_line(&in_short(message).unwrap_or(text), SUMMARY),
    };
    MailScene {
        id: message.id.to_string(),
        from: clean_line(&message.from),
        to: clean_line(&message.to),
        kind: clean_line(message.body.kind()),
        sent_ms: parse_rfc3339(&message.sent_at).unwrap_or(0),
        summary,
        text: whole,
    }
}

/// The whole content of a message in words: the form for models is not for people.
fn whole(message: &Message) -> String {
    let protocol = match &message.body {
        Body::Text(text) => return text.clone(),
        Body::Unknown { body, .. } => return body.to_string(),
        Body::Protocol(protocol) => protocol,
    };
    let short = in_short(message).unwrap_or_default();
    match protocol {
        Protocol::TaskNotification(note) => match &note.result {
            Some(result) => format!("{short}\n\n{result}"),
            None => short,
        },
        Protocol::PlanApprovalRequest(asked) => asked.question.plan.clone(),
        Protocol::PermissionRequest(asked) => {
            let input = serde_json::to_string_pretty(&asked.question.input);
            format!("{short}\n{}", input.unwrap_or_default())
        }
        Protocol::TaskAssignment(task) => format!("{short}\n\n{}", task.description),
        _ => short,
    }
}

/// A message with a fixed form in a few words.
fn in_short(message: &Message) -> Option<String> {
    let Body::Protocol(protocol) = &message.body else {
        return None;
    };
    Some(match protocol {
        Protocol::IdleNotification(_) => "is idle".to_owned(),
        Protocol::TaskAssignment(task) => format!("#{} {}", task.task_id, task.subject),
        Protocol::TaskNotification(note) => {
            let how = match note.status {
                RunStatus::Completed => "completed",
                RunStatus::Failed => "failed",
                RunStatus::Killed => "killed",
                RunStatus::Lost => "lost",
            };
            format!("{how}: {}", note.description)
        }
        Protocol::TeammateTerminated(gone) => format!("{} is gone", gone.teammate),
        Protocol::ShutdownRequest(_) => "asks to stop".to_owned(),
        Protocol::PlanApprovalRequest(asked) => format!("plan: {}", asked.question.plan),
        Protocol::PermissionRequest(asked) => {
            let asked = &asked.question;
            format!("may it use {}? {}", asked.tool_name, asked.description)
        }
        Protocol::ModeSetRequest(asked) => format!("asks for mode {}", asked.question.mode),
        Protocol::ShutdownApproved(answer)
        | Protocol::ShutdownRejected(answer)
        | Protocol::PlanApprovalResponse(answer)
        | Protocol::PermissionResponse(answer)
        | Protocol::ModeSetResponse(answer) => {
            let yes = if answer.approved {
                "approved"
            } else {
                "rejected"
            };
            match &answer.feedback {
                Some(feedback) => format!("{yes}: {feedback}"),
                None => yes.to_owned(),
            }
        }
    })
}

/// The requests of a team that wait for an answer.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    stamp: Option<Stamp>,
    looked: Option<i64>,
    requests: Vec<Request>,
}

impl OpenRequests {
    /// The waiting requests, oldest first, and the error if reading failed. They are read when the
    /// directory has changed: the file of a request is only ever replaced.
    pub(super) fn look(&mut self, mailbox: &mailbox::Mailbox, now_ms: i64) -> Option<String> {
        let dir = mailbox.dir().join("requests");
        let stamp = std::fs::metadata(dir).ok().map(|meta| Stamp::of(&meta));
        let due = |at: i64| now_ms - at >= EVERY || now_ms < at;
        if stamp == self.stamp && !self.looked.is_none_or(due) {
            return None;
        }
        (self.stamp, self.looked) = (stamp, Some(now_ms));
        match mailbox.waiting_requests() {
            Ok(requests) => {
                self.requests = requests;
                None
            }
            Err(error) => Some(clean_line(&error.to_string())),
        }
    }

    pub(super) fn all(&self) -> &[Request] {
        &self.requests
    }
}
