//! The events in the runs of a team since the last look.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::atomic::Stamp;
use store::clock::parse_rfc3339;
use store::follow::Follower;
use swarm::run::{Exit, Meta, RunDir};

use super::calls::{Call, Calls};

/// Maximum bytes of a transcript per read; a longer line is skipped.
const AT_ONCE: usize = 1 << 20;
/// Maximum bytes of all transcripts per look; the rest is read in the next one.
const IN_ONE_LOOK: usize = 32 << 20;

/// The runs of one team.
#[derive(Debug)]
pub(super) struct Runs {
    dir: PathBuf,
    /// Runs that ended before this time are ignored, ms since the epoch.
    since_ms: i64,
    runs: BTreeMap<String, Run>,
}

/// One run.
#[derive(Debug)]
struct Run {
    dir: RunDir,
    stamp: Option<Stamp>,
    meta: Option<Arc<Meta>>,
    log: Follower,
    calls: Calls,
    /// The last life whose end was read.
    ended: u32,
    /// True if it ended before the recording began.
    old: bool,
}

/// A finished operation.
#[derive(Debug)]
pub(super) enum Happened {
    /// A model call.
    Called(Arc<Meta>, Call),
    /// The end of a life of a run, with the model it reported.
    Ended(Arc<Meta>, Box<Exit>, Option<String>),
}

/// The state of a run.
pub(super) struct Standing<'a> {
    pub(super) meta: &'a Meta,
    /// True if its present life has not ended.
    pub(super) lives: bool,
}

impl Runs {
    pub(super) fn new(dir: &Path, since_ms: i64) -> Self {
        Self {
            dir: dir.to_owned(),
            since_ms,
            runs: BTreeMap::new(),
        }
    }

    /// Reads new events. Unreadable files are skipped: another reader reports them.
    pub(super) fn look(&mut self) -> Vec<Happened> {
        for id in store::tree::names_in(&self.dir).unwrap_or_default() {
            if !id.starts_with('.') && !self.runs.contains_key(&id) {
                let dir = RunDir::new(&self.dir, &id);
                self.runs.insert(id, Run::new(dir));
            }
        }
        let mut happened = Vec::new();
        let mut room = IN_ONE_LOOK;
        for run in self.runs.values_mut() {
            run.look(self.since_ms, &mut room, &mut happened);
        }
        happened
    }

    /// All runs of the recording, oldest first.
    pub(super) fn all(&self) -> Vec<Standing<'_>> {
        let ours = self.runs.values().filter(|run| !run.old);
        let mut all: Vec<Standing<'_>> = ours
            .filter_map(|run| {
                let meta = run.meta.as_deref()?;
                let lives = run.ended < meta.life.max(1);
                Some(Standing { meta, lives })
            })
            .collect();
        all.sort_by(|a, b| a.meta.created_at.cmp(&b.meta.created_at));
        all
    }
}

impl Run {
    fn new(dir: RunDir) -> Self {
        Self {
            log: Follower::new(dir.transcript_path()),
            dir,
            stamp: None,
            meta: None,
            calls: Calls::default(),
            ended: 0,
            old: false,
        }
    }

    fn look(&mut self, since_ms: i64, room: &mut usize, happened: &mut Vec<Happened>) {
        let stamp = std::fs::metadata(self.dir.path().join("meta.json")).ok();
        let stamp = stamp.map(|meta| Stamp::of(&meta));
        let changed = stamp != self.stamp;
        if changed && let Ok(meta) = self.dir.meta() {
            self.stamp = stamp;
            self.meta = Some(Arc::new(meta));
        }
        let Some(meta) = self.meta.clone() else {
            return;
        };
        let life = meta.life.max(1);
        if self.ended >= life && !changed {
            return;
        }
        let ends: Vec<Exit> = (self.ended + 1..=life)
            .filter_map(|life| self.dir.exit(life).ok().flatten())
            .collect();
        let ended_ms = |exit: &Exit| parse_rfc3339(&exit.ended_at).unwrap_or(0);
        // The earlier lives of a resumed run may be from before the recording.
        self.old = ends
            .last()
            .is_some_and(|exit| exit.life == life && ended_ms(exit) < since_ms);
        if self.old {
            self.ended = life;
            return;
        }
        if !self.read_calls(&meta, since_ms, room, happened) {
            // The end is reported after all earlier events.
            return;
        }
        for exit in ends {
            self.ended = self.ended.max(exit.life);
            if ended_ms(&exit) >= since_ms {
                let model = self.calls.model().map(str::to_owned);
                happened.push(Happened::Ended(Arc::clone(&meta), Box::new(exit), model));
            }
        }
    }

    /// Reads calls; returns true if everything was read.
    fn read_calls(
        &mut self,
        meta: &Arc<Meta>,
        since_ms: i64,
        room: &mut usize,
        happened: &mut Vec<Happened>,
    ) -> bool {
        while *room > 0 {
            let Ok(appended) = self.log.read(AT_ONCE) else {
                return true;
            };
            *room = room.saturating_sub(appended.bytes.len());
            if appended.restarted {
                self.calls = Calls::default();
            }
            for line in appended.bytes.split(|byte| *byte == b'\n') {
                let call = self.calls.take(line);
                if let Some(call) = call.filter(|call| call.to_ms >= since_ms) {
                    happened.push(Happened::Called(Arc::clone(meta), call));
                }
            }
            if !appended.more {
                return true;
            }
        }
        false
    }
}
