//! Mail in the memory of one process, for tests of what uses mailboxes.
//!
//! The smallest backend there is: one lock for a team, no waiting except for another reader, and no
//! repairs. `tests/contract` holds it to the same promises as files and tables.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::fifo::{self, Bell, PipeRinger};
use store::name::Name;
use uuid::Uuid;

use crate::activity::Activity;
use crate::backend::{Asking, Backend, Feed, Kept, canonical};
use crate::broadcast::Broadcast;
use crate::consumer::Consumer;
use crate::cursor::Cursor;
use crate::error::{MailError, Result};
use crate::line::{self, Sealed};
use crate::listing::{Listing, check_since};
use crate::message::{Draft, Message, Posted};
use crate::options::{Limits, MailOptions};
use crate::passing::{Passes, shown};
use crate::protocol::{IdleNotification, Question};
use crate::request::{Reply, Request};
use crate::requests::{KEPT, Requests, no_such_request};
use crate::source::{Fetched, Source};

/// The mail of one team in memory. Every mailbox that is opened on it, or on a clone of it, sees the
/// same messages.
#[derive(Debug, Clone, Default)]
pub struct Memory(Arc<Shared>);

/// The team, and the bell for its followers.
#[derive(Debug, Default)]
struct Shared {
    team: Mutex<Team>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Team {
    inboxes: HashMap<String, Stored>,
    broadcasts: u64,
    requests: Vec<Request>,
}

/// One inbox.
#[derive(Debug)]
struct Stored {
    /// By number, with their lengths as lines.
    messages: BTreeMap<u64, (Message, u64)>,
    last_seq: u64,
    cursor: Cursor,
    /// The numbers of messages with ids from their senders.
    ids: HashMap<Uuid, u64>,
    activity: Activity,
    /// Rings for the reader; none while no process reads.
    reader: Option<PipeRinger>,
}

impl Default for Stored {
    fn default() -> Self {
        Self {
            messages: BTreeMap::new(),
            last_seq: 0,
            cursor: Cursor::default(),
            ids: HashMap::new(),
            activity: Activity::START,
            reader: None,
        }
    }
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Team> {
        self.0.team.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change, which must check everything before it writes anything.
    fn change<T>(&self, body: impl FnOnce(&mut Team) -> Result<T>) -> Result<T> {
        let done = body(&mut self.lock());
        self.0.changed.notify_all();
        done
    }
}

impl Team {
    fn inbox(&mut self, agent: &Name) -> Result<&mut Stored> {
        Ok(self.inboxes.entry(canonical(agent)?).or_default())
    }

    fn post(&mut self, draft: &Draft, options: &MailOptions) -> Result<Posted> {
        let sealed = line::seal(draft, options.clock.now_ms(), None, &options.secret_filter)?;
        let inbox = self.inbox(&draft.to)?;
        let id = sealed.id;
        let known = inbox.ids.get(&id).filter(|_| draft.id.is_some());
        if let Some(seq) = known.copied() {
            let already = true;
            return Ok(Posted { id, seq, already });
        }
        inbox.check_room(&options.limits, &draft.to)?;
        let seq = inbox.append(&sealed)?;
        if draft.id.is_some() {
            inbox.ids.insert(id, seq);
        }
        let already = false;
        Ok(Posted { id, seq, already })
    }

    /// Sends the message that follows from the request's state and is not recorded as sent.
    fn tell(&mut self, request: &mut Request, options: &MailOptions) -> Result<()> {
        if let Some(draft) = request.untold()? {
            self.post(&draft, options)?;
            request.note_told(request.waits());
        }
        Ok(())
    }

    /// Expires the request at `at` if its time is over, and sends the messages about that; an inbox
    /// without room gets the message later.
    fn settle(&mut self, at: usize, options: &MailOptions) -> Result<Request> {
        let mut request = self.requests[at].clone();
        request.expire(options.clock.now_ms());
        match self.tell(&mut request, options) {
            Err(error @ MailError::Full { .. }) => {
                tracing::warn!(id = request.id, %error, "told later");
            }
            other => other?,
        }
        self.requests[at] = request.clone();
        Ok(request)
    }

    fn position(&self, id: &str) -> Result<usize> {
        let uuid = Uuid::parse_str(id).map(|id| id.to_string());
        let found = uuid.ok().and_then(|id| {
            let mut requests = self.requests.iter();
            requests.position(|request| request.id == id)
        });
        found.ok_or_else(|| no_such_request(id, &self.requests))
    }
}

impl Stored {
    fn after(&self, seq: u64) -> impl Iterator<Item = &(Message, u64)> {
        self.messages.range(seq + 1..).map(|(_, message)| message)
    }

    fn check_room(&self, limits: &Limits, name: &Name) -> Result<()> {
        let unread = self.last_seq.saturating_sub(self.cursor.acked);
        let bytes = self.after(self.cursor.acked).map(|(_, length)| length);
        limits.check_room(name, unread, bytes.sum())
    }

    fn append(&mut self, sealed: &Sealed) -> Result<u64> {
        let seq = self.last_seq + 1;
        let mut bytes = Vec::new();
        sealed.write(seq, &mut bytes);
        let parsed = line::parse(&bytes).map_err(|why| MailError::invalid("message", why))?;
        let length = bytes.len() as u64;
        self.messages.insert(seq, (parsed.message, length));
        self.last_seq = seq;
        if let Some(reader) = &mut self.reader {
            reader.ring();
        }
        Ok(seq)
    }

    /// Forgets the oldest acknowledged messages, once more is kept than archives would hold.
    fn forget_old(&mut self, limits: &Limits) {
        let acked = self.cursor.acked;
        let done = self.messages.range(..=acked);
        let mut bytes: u64 = done.map(|(_, (_, length))| length).sum();
        let kept = limits.rotate_bytes.saturating_mul(limits.archives as u64);
        while bytes > kept
            && let Some((_, (_, length))) = self.messages.pop_first()
        {
            bytes -= length;
        }
        let mut ids: Vec<u64> = self.ids.values().copied().collect();
        ids.sort_unstable();
        let old = &ids[..ids.len().saturating_sub(limits.remembered_ids)];
        if let Some(last) = old.last() {
            self.ids.retain(|_, seq| *seq > *last || *seq > acked);
        }
    }
}

/// The mail of one team, as one mailbox has it open.
#[derive(Debug)]
pub(crate) struct MemoryMail {
    memory: Memory,
    options: Arc<MailOptions>,
}

impl MemoryMail {
    pub(crate) fn new(memory: &Memory, options: MailOptions) -> Self {
        Self {
            memory: memory.clone(),
            options: Arc::new(options),
        }
    }
}

impl Backend for MemoryMail {
    fn dir(&self) -> &Path {
        Path::new("")
    }

    fn options(&self) -> &MailOptions {
        &self.options
    }

    fn inbox(&self, agent: &Name) -> Result<Arc<dyn Kept>> {
        Ok(Arc::new(MemoryInbox {
            memory: self.memory.clone(),
            options: Arc::clone(&self.options),
            key: canonical(agent)?,
            name: agent.clone(),
            dir: PathBuf::new(),
        }))
    }

    fn follow(&self) -> Box<dyn Passes> {
        Box::new(MemoryPassing {
            memory: self.memory.clone(),
            seen: HashMap::new(),
        })
    }

    fn post(&self, draft: &Draft) -> Result<Posted> {
        self.memory.change(|team| team.post(draft, &self.options))
    }

    fn broadcast(&self, draft: &Draft, recipients: Vec<Name>) -> Result<Broadcast> {
        let filter = &self.options.secret_filter;
        let sealed = line::seal(draft, self.options.clock.now_ms(), Some(&[]), filter)?;
        self.memory.change(|team| {
            for name in &recipients {
                let inbox = team.inbox(name)?;
                inbox.check_room(&self.options.limits, name)?;
            }
            let number = team.broadcasts + 1;
            let mut bytes = Vec::new();
            sealed.write(number, &mut bytes);
            let parsed = line::parse(&bytes);
            let message = parsed.map_err(|why| MailError::invalid("broadcast", why))?;
            for name in &recipients {
                let copy = line::seal_copy(&message.message, name.as_str())?;
                team.inbox(name)?.append(&copy)?;
            }
            team.broadcasts = number;
            Ok(Broadcast {
                id: sealed.id,
                number,
                recipients,
            })
        })
    }

    fn note_busy(&self, agent: &Name) -> Result<()> {
        self.memory.change(|team| {
            let activity = &mut team.inbox(agent)?.activity;
            *activity = activity.started().unwrap_or(*activity);
            Ok(())
        })
    }

    fn note_idle(
        &self,
        agent: &Name,
        lead: &Name,
        notification: &IdleNotification,
    ) -> Result<Option<Posted>> {
        self.memory.change(|team| {
            let activity = team.inbox(agent)?.activity;
            if !activity.busy {
                return Ok(None);
            }
            let key = canonical(agent)?;
            let draft = activity.idle_message(&key, agent, lead, notification.clone());
            let posted = team.post(&draft, &self.options)?;
            team.inbox(agent)?.activity.busy = false;
            Ok((!posted.already).then_some(posted))
        })
    }
}

impl Asking for MemoryMail {
    fn ask(
        &self,
        from: &Name,
        to: &Name,
        question: &Question,
        deadline: Duration,
    ) -> Result<Request> {
        self.memory.change(|team| {
            let now = self.options.clock.now_ms();
            let mut request = Request::new(from, to, question.clone(), now, deadline);
            team.tell(&mut request, &self.options)?;
            team.requests.push(request.clone());
            let done = team.requests.iter().filter(|it| !it.waits() && it.told);
            let mut too_many = done.count().saturating_sub(KEPT);
            team.requests.retain(|it| {
                let gone = too_many > 0 && !it.waits() && it.told;
                too_many -= usize::from(gone);
                !gone
            });
            Ok(request)
        })
    }

    fn reply(&self, id: &str, by: &Name, reply: &Reply) -> Result<Request> {
        self.memory.change(|team| {
            let at = team.position(id)?;
            team.requests[at].check_asked(by)?;
            let current = team.settle(at, &self.options)?;
            current.check_waits()?;
            let now = self.options.clock.now_ms();
            team.requests[at].set_answer(by, reply.clone(), now);
            team.settle(at, &self.options)
        })
    }

    fn request(&self, id: &str) -> Result<Request> {
        self.memory.change(|team| {
            let at = team.position(id)?;
            team.settle(at, &self.options)
        })
    }

    fn requests(&self) -> Result<Requests> {
        self.memory.change(|team| {
            let all = 0..team.requests.len();
            let requests: Result<_> = all.map(|at| team.settle(at, &self.options)).collect();
            Ok(Requests {
                requests: requests?,
                unreadable: Vec::new(),
            })
        })
    }

    fn waiting_requests(&self) -> Result<Vec<Request>> {
        let now = self.options.clock.now_ms();
        let mut requests = self.memory.lock().requests.clone();
        requests.retain(|request| request.waits() && !request.is_overdue(now));
        Ok(requests)
    }
}

/// The messages of all inboxes as they pass.
#[derive(Debug)]
struct MemoryPassing {
    memory: Memory,
    /// The last number that was returned of each inbox.
    seen: HashMap<String, u64>,
}

impl Passes for MemoryPassing {
    fn look(&mut self) -> Result<Vec<Message>> {
        let mut new = Vec::new();
        for (name, stored) in &self.memory.lock().inboxes {
            let seen = self.seen.entry(name.clone()).or_default();
            let messages = stored
                .after(*seen)
                .map(|(message, _)| shown(message.clone()));
            new.extend(messages);
            *seen = stored.last_seq;
        }
        Ok(new)
    }
}

/// One agent's inbox.
#[derive(Debug)]
struct MemoryInbox {
    memory: Memory,
    options: Arc<MailOptions>,
    key: String,
    name: Name,
    dir: PathBuf,
}

impl MemoryInbox {
    /// Reads the inbox; an inbox that was never used is an empty one.
    fn look<T>(&self, look: impl FnOnce(&Stored) -> T) -> T {
        match self.memory.lock().inboxes.get(&self.key) {
            Some(stored) => look(stored),
            None => look(&Stored::default()),
        }
    }
}

impl Kept for MemoryInbox {
    fn name(&self) -> &Name {
        &self.name
    }

    fn dir(&self) -> &Path {
        &self.dir
    }

    fn exists(&self) -> bool {
        self.memory.lock().inboxes.contains_key(&self.key)
    }

    fn has_reader(&self) -> Result<bool> {
        Ok(self.look(|stored| stored.reader.is_some()))
    }

    fn consumer(self: Arc<Self>) -> Result<Consumer> {
        let (bell, ringer) = fifo::pipe()?;
        let read = |team: &mut Team| {
            let stored = team.inboxes.get(&self.key);
            stored.is_some_and(|stored| stored.reader.is_some())
        };
        let (changed, limit) = (&self.memory.0.changed, self.options.reader_timeout);
        let waited = changed.wait_timeout_while(self.memory.lock(), limit, read);
        let (mut team, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() && read(&mut team) {
            return Err(MailError::BeingRead {
                inbox: self.name.to_string(),
                holder: format!("process {}", std::process::id()),
            });
        }
        let stored = team.inboxes.entry(self.key.clone()).or_default();
        stored.reader = Some(ringer);
        let cursor = stored.cursor.clone();
        drop(team);
        let name = self.name.clone();
        Consumer::begin(name, Box::new(Reading { inbox: self, bell }), cursor)
    }

    fn list(&self, all: bool) -> Result<Listing> {
        let now = self.options.clock.now_ms();
        Ok(self.look(|stored| {
            let after = if all { 0 } else { stored.cursor.acked };
            let messages = stored.after(after).map(|(message, _)| message.clone());
            Listing::new(messages, &stored.cursor, 0, all, now)
        }))
    }

    fn follow(self: Arc<Self>, since: Option<u64>) -> Result<Box<dyn Feed>> {
        let last = self.look(|stored| stored.last_seq);
        let last = check_since(since, last, &self.name)?;
        Ok(Box::new(Followed { inbox: self, last }))
    }
}

/// The right to read an inbox, which ends when this is dropped.
#[derive(Debug)]
struct Reading {
    inbox: Arc<MemoryInbox>,
    bell: Bell,
}

impl Reading {
    fn change(&self, body: impl FnOnce(&mut Stored)) -> Result<()> {
        self.inbox.memory.change(|team| {
            body(team.inboxes.entry(self.inbox.key.clone()).or_default());
            Ok(())
        })
    }
}

impl Source for Reading {
    fn fetch(&mut self, after: u64) -> Result<Fetched> {
        Ok(self.inbox.look(|stored| Fetched {
            messages: stored.after(after).cloned().collect(),
            last: stored.last_seq,
            rejected: 0,
        }))
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn save(&mut self, cursor: &Cursor) -> Result<()> {
        self.change(|stored| stored.cursor.clone_from(cursor))
    }

    fn keep_short(&mut self, _: u64, _: u64) -> Result<()> {
        self.change(|stored| stored.forget_old(&self.inbox.options.limits))
    }

    fn now_ms(&self) -> i64 {
        self.inbox.options.clock.now_ms()
    }

    fn bell(&self) -> &Bell {
        &self.bell
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.change(|stored| stored.reader = None).ok();
    }
}

/// The messages of an inbox as they arrive.
#[derive(Debug)]
struct Followed {
    inbox: Arc<MemoryInbox>,
    last: u64,
}

impl Feed for Followed {
    fn poll(&mut self) -> Result<Vec<Message>> {
        let messages: Vec<Message> = self.inbox.look(|stored| {
            let new = stored.after(self.last);
            new.map(|(message, _)| message.clone()).collect()
        });
        self.last = messages.last().map_or(self.last, |message| message.seq);
        Ok(messages)
    }

    fn wait(&mut self, limit: Duration) {
        let nothing_new = |team: &mut Team| {
            let stored = team.inboxes.get(&self.inbox.key);
            stored.is_none_or(|stored| stored.last_seq <= self.last)
        };
        let memory = &self.inbox.memory;
        let changed = &memory.0.changed;
        drop(changed.wait_timeout_while(memory.lock(), limit, nothing_new));
    }

    fn last(&self) -> u64 {
        self.last
    }
}
