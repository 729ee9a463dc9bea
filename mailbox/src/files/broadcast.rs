//! Messages to all agents, all or nothing.
//!
//! One line in the team's `broadcast.jsonl`, with the names of its recipients, is the commit. Every
//! inbox copies and numbers the broadcasts it does not have yet, under its lock and before anything
//! else happens in it, so no reader can see mail sent later without the broadcast. A copy carries
//! the broadcast's number, so an inbox knows which ones it has.

use std::collections::BTreeMap;

use store::StoreError;
use store::atomic::{self, Durability};
use store::fault::reached;
use store::home::create_private_dir;
use store::lock::FileLock;
use store::name::Name;
use store::shared_log::{Look, SharedLog};

use crate::broadcast::Broadcast;
use crate::error::{MailError, Result};
use crate::fault;
use crate::files::FileMail;
use crate::files::inbox::{FileInbox, sweep, sync};
use crate::files::live::{Live, line_at};
use crate::files::marks::Mark;
use crate::line::{self, Scan, Scanned, VERSION};
use crate::message::Draft;

impl FileMail {
    /// Sends a text to all of them; `recipients` went through [`check`](crate::broadcast::check).
    pub(super) fn send_to_all(&self, draft: &Draft, recipients: Vec<Name>) -> Result<Broadcast> {
        let sealed = line::seal(
            draft,
            self.now_ms(),
            Some(&recipients),
            &self.options.secret_filter,
        )?;
        // After the commit there is no way back, so this finds the inboxes without room now.
        for name in &recipients {
            let inbox = self.at(name)?;
            inbox.section(|live| live.check_room(&inbox))?;
        }
        let (number, handle) = {
            let (_lock, mut log) = self.open_broadcasts()?;
            let last = last_number(&log)?;
            let number = last + 1;
            let mut bytes = Vec::new();
            sealed.write(number, &mut bytes);
            log.append(&bytes)?;
            reached(fault::BROADCAST_COMMITTED);
            (number, log.sync_handle())
        };
        let synced = sync(handle.as_ref(), &self.dir, self.options.durability);
        // The broadcast is sent. The rest only makes it arrive sooner.
        for name in &recipients {
            if let Err(error) = self.at(name).and_then(|inbox| inbox.catch_up()) {
                tracing::warn!(%name, %error, "gets the broadcast with its next mail");
            }
        }
        if let Err(error) = self.drop_old_broadcasts() {
            tracing::warn!(%error, "old broadcasts are kept");
        }
        synced.map_err(|source| MailError::NotDurable { source })?;
        Ok(Broadcast {
            id: sealed.id,
            number,
            recipients,
        })
    }

    fn open_broadcasts(&self) -> Result<(FileLock, SharedLog)> {
        create_private_dir(&self.dir)?;
        let lock = FileLock::exclusive(
            &self.dir.join("broadcast.lock"),
            "the team's list of broadcasts",
            self.options.lock_timeout,
        )?;
        let mut log = SharedLog::new(&self.dir.join("broadcast.jsonl"));
        log.look()?;
        Ok((lock, log))
    }

    /// Drops the broadcasts that every recipient has, when there are many.
    ///
    /// The last one stays: counting continues from its number.
    fn drop_old_broadcasts(&self) -> Result<()> {
        let (_lock, log) = self.open_broadcasts()?;
        if log.end() < self.options.limits.broadcast_bytes {
            return Ok(());
        }
        last_number(&log)?;
        let bytes = log.read(0, log.end())?;
        let mut names = BTreeMap::new();
        let mut last = Vec::new();
        for scanned in Scan::new(&bytes, 0) {
            if let Scanned::Good(line, parsed) = scanned {
                last = [line, b"\n"].concat();
                for name in parsed.recipients {
                    names.insert(name.to_ascii_lowercase(), name);
                }
            }
        }
        for name in names.values() {
            self.at(&Name::new("agent", name)?)?.catch_up()?;
        }
        // Under the lock, so whatever is in there was left by a process that died.
        let tmp = self.dir.join(".ccb/tmp");
        create_private_dir(&tmp)?;
        sweep(&tmp)?;
        Ok(atomic::replace(
            &tmp,
            log.path(),
            &last,
            self.options.durability,
        )?)
    }
}

/// The number of the last broadcast, 0 if there is none.
pub(crate) fn last_number(log: &SharedLog) -> Result<u64> {
    let Some(head) = log.find_last(line::head)? else {
        return Ok(0);
    };
    StoreError::check_version(log.path(), head.v, VERSION)?;
    Ok(head.seq)
}

impl Live {
    /// Copies the broadcasts this inbox does not have yet.
    pub(crate) fn copy_broadcasts(&mut self, inbox: &FileInbox) -> Result<()> {
        if self.broadcast.look()? == Look::Same && self.caught_up {
            return Ok(());
        }
        self.caught_up = false;
        let last = last_number(&self.broadcast)?;
        if last > 0 {
            self.marks.refresh()?;
            if last > self.marks.last.copied {
                // The copies of a process that died before it could record them.
                self.list_marks(inbox)?;
            }
            if last > self.marks.last.copied {
                self.copy_from(last, inbox)?;
            }
        }
        self.caught_up = true;
        Ok(())
    }

    fn copy_from(&mut self, last: u64, inbox: &FileInbox) -> Result<()> {
        let Mark { copied, from, .. } = self.marks.last;
        let next = line::head(&line_at(&self.broadcast, from)?);
        let start = if next.is_some_and(|head| head.seq == copied.saturating_add(1)) {
            from
        } else {
            0
        };
        let bytes = self.broadcast.read(start, self.broadcast.end())?;
        let mut copies = Vec::new();
        let mut seq = self.last_seq;
        for scanned in Scan::new(&bytes, 0) {
            let parsed = match scanned {
                Scanned::Good(_, parsed) => parsed,
                Scanned::Bad(_, why) => {
                    tracing::warn!(%why, "a damaged broadcast was skipped");
                    continue;
                }
            };
            StoreError::check_version(self.broadcast.path(), parsed.v, VERSION)?;
            let me = |name: &&String| name.eq_ignore_ascii_case(inbox.name().as_str());
            if parsed.message.seq > copied
                && let Some(name) = parsed.recipients.iter().find(me)
            {
                seq += 1;
                line::seal_copy(&parsed.message, name)?.write(seq, &mut copies);
            }
        }
        let durable = inbox.durability() == Durability::Full;
        if !copies.is_empty() {
            // A copy must not outlive the line that commits it for the others.
            if durable {
                self.broadcast.sync()?;
            }
            self.append(&copies, seq)?;
            reached(fault::COPIED);
            if durable {
                self.log.sync()?;
            }
        }
        // Up to the copies everything was listed before, see `copy_broadcasts`.
        let listed = (seq, self.log.end());
        let copied = (last, self.broadcast.end());
        self.marks.append(&[Mark::new(listed, copied)])
    }
}
