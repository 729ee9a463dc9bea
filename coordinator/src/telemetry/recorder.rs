//! Turns events into spans and figures.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use director::Verdict;
use project::workplace::Workplace;
use store::atomic::Stamp;
use store::clock::parse_rfc3339;
use store::text::clean_cut;
use store::{Failure, StoreError};
use swarm::redact::Secrets;
use taskboard::{Glance, Status, TaskId};
use worktrees::{Landing, Trees};

use super::conventions::{TEXT, error_type};
use super::figures::Figures;
use super::ledger::Ledger;
use super::model::{Attribute, Metric, Span, SpanId, SpanKind, TraceId, Value};
use super::runs::{Happened, Runs};

/// The subject of the recording.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The session's id; `None` for a plan.
    pub session: Option<&'a str>,
    /// `team`, `coordinator` or `fanout`.
    pub kind: &'a str,
    /// The branch finished work goes to.
    pub branch: Option<&'a str>,
}

/// Reads one team repeatedly, and returns the operations that have ended since.
#[derive(Debug)]
pub struct Recorder {
    pub(super) trace: TraceId,
    pub(super) root: SpanId,
    team: String,
    list: String,
    about: Vec<Attribute>,
    pub(super) secrets: Arc<Secrets>,
    pub(super) ledger: Ledger,
    runs: Runs,
    board: Glance,
    trees: Option<Trees>,
    /// The stamps of the files that record landings.
    landed: Vec<Option<Stamp>>,
    landings: HashSet<u64>,
    /// The end of the last landing: work lands one after another.
    last_landing_ms: i64,
    pub(super) tasks: BTreeMap<String, TaskTrack>,
    pub(super) figures: Figures,
}

/// The recorded work on a task.
#[derive(Debug, Default)]
pub(super) struct TaskTrack {
    pub(super) from_ms: i64,
    pub(super) to_ms: i64,
    pub(super) attempts: u64,
    /// Number of spans of the task so far: a task can be reopened.
    pub(super) round: u32,
    /// True if nothing happened to it since its span was returned.
    pub(super) told: bool,
    /// Number of failed landings.
    not_landed: u32,
}

impl Recorder {
    /// Begins, or continues the work of a process that has exited; `None` if another process
    /// records this team.
    pub fn open(
        workplace: &Workplace,
        about: &About<'_>,
        now_ms: i64,
    ) -> Result<Option<Self>, Failure> {
        let team = workplace.team()?;
        let dir = workplace.home().team(&team);
        let Some(ledger) = Ledger::open(&dir, now_ms)? else {
            return Ok(None);
        };
        let since_ms = ledger.began_ms;
        let name = about.session.unwrap_or(team.as_str());
        let trace = TraceId::of(&format!("{name} {since_ms}"));
        let board = workplace.board();
        let secrets = workplace.secrets();
        let mut known: Vec<Attribute> = vec![
            ("ccb.team", text(&secrets, team.as_str())),
            ("ccb.session.kind", text(&secrets, about.kind)),
        ];
        known.extend(
            about
                .session
                .map(|id| ("ccb.session.id", text(&secrets, id))),
        );
        known.extend(
            about
                .branch
                .map(|name| ("ccb.branch", text(&secrets, name))),
        );
        Ok(Some(Self {
            trace,
            root: trace.span("session"),
            team: team.to_string(),
            list: board.name().to_string(),
            about: known,
            secrets,
            runs: Runs::new(&dir.join("runs"), since_ms),
            board: board.glance(),
            trees: workplace.trees().ok(),
            landed: Vec::new(),
            landings: HashSet::new(),
            last_landing_ms: since_ms,
            tasks: BTreeMap::new(),
            figures: Figures::new(since_ms),
            ledger,
        }))
    }

    /// The spans of operations that ended since the last look.
    pub fn look(&mut self, now_ms: i64) -> Vec<Span> {
        let mut spans = Vec::new();
        for happened in self.runs.look() {
            match happened {
                Happened::Called(meta, call) => spans.push(self.call(&meta, &call)),
                Happened::Ended(meta, exit, model) => {
                    self.ended(&meta, &exit, model.as_deref(), &mut spans);
                }
            }
        }
        // An unreadable board is reported where people look.
        self.board.look(now_ms).ok();
        self.landings(&mut spans);
        self.settled_tasks(&mut spans);
        spans.retain(|span| !self.ledger.has(span.id));
        spans
    }

    /// Records a failed landing of a task's work.
    pub fn not_landed(&mut self, task: TaskId, conflict: bool, now_ms: i64) -> Span {
        let id = task.to_string();
        let from_ms = self.free_to_land(&id);
        self.last_landing_ms = now_ms;
        let track = self.tasks.entry(id.clone()).or_default();
        track.not_landed += 1;
        let name = format!("landing of {id} {}", track.not_landed);
        let why = if conflict { "conflict" } else { "not_landed" };
        Span {
            parent: Some(self.task_span(&id)),
            error: Some(why.into()),
            attributes: vec![
                ("ccb.task.id", Value::Text(id)),
                ("error.type", Value::Text(why.into())),
            ],
            ..self.span(&name, "ccb.landing", from_ms, now_ms)
        }
    }

    /// The present figures.
    pub fn metrics(&self) -> Vec<Metric> {
        self.figures
            .metrics(&self.runs.all(), self.board.snapshot(), &self.team)
    }

    /// Records delivered spans, which are not sent again.
    pub fn delivered(&mut self, ids: &[SpanId]) -> Result<(), StoreError> {
        self.ledger.sent(ids)
    }

    /// The spans of everything that is still open. After [`Self::close`], later work of this team
    /// is a trace of its own.
    pub fn end(&mut self, verdict: Verdict, now_ms: i64) -> Vec<Span> {
        let mut spans = self.look(now_ms);
        let open: Vec<String> = self
            .tasks
            .iter()
            .filter(|(_, track)| !track.told && track.attempts > 0)
            .map(|(id, _)| id.clone())
            .collect();
        for id in open {
            spans.extend(self.task(&id, Some("unfinished")));
        }
        let word = serde_json::to_value(verdict).ok();
        let word = match word {
            Some(serde_json::Value::String(word)) => word,
            _ => "interrupted".to_owned(),
        };
        let began_ms = self.ledger.began_ms;
        let mut root = self.span("session", "ccb.session", began_ms, now_ms);
        root.parent = None;
        root.attributes.clone_from(&self.about);
        root.attributes
            .push(("ccb.session.verdict", Value::Text(word.clone())));
        root.error = (verdict != Verdict::Done).then_some(word);
        spans.push(root);
        spans.retain(|span| !self.ledger.has(span.id));
        spans
    }

    /// Ends the recording: everything was delivered, or will not be.
    pub fn close(self) -> Result<(), StoreError> {
        self.ledger.end()
    }

    pub(super) fn span(&self, id: &str, name: &str, from_ms: i64, to_ms: i64) -> Span {
        Span {
            trace: self.trace,
            id: self.trace.span(id),
            parent: Some(self.root),
            name: name.to_owned(),
            kind: SpanKind::Internal,
            from_ms,
            to_ms: to_ms.max(from_ms),
            attributes: Vec::new(),
            error: None,
        }
    }

    pub(super) fn text(&self, given: &str) -> Value {
        text(&self.secrets, given)
    }

    pub(super) fn task_span(&self, task: &str) -> SpanId {
        let round = self.tasks.get(task).map_or(0, |track| track.round);
        self.trace.span(&format!("task {task} {round}"))
    }

    /// Tasks without an agent that works on them.
    fn settled_tasks(&mut self, spans: &mut Vec<Span>) {
        let runs = self.runs.all();
        let at_work: HashSet<&str> = runs
            .iter()
            .filter(|run| run.lives)
            .filter_map(|run| run.meta.task_id.as_deref())
            .collect();
        let board = self.board.snapshot();
        let settled = |id: &str| {
            let task = id.parse().ok().and_then(|id| board.get(id))?;
            match (task.status, task.parked()) {
                (Status::Completed, _) => Some(None),
                (_, Some(_)) => Some(Some("parked")),
                _ => None,
            }
        };
        let over: Vec<(String, Option<&'static str>)> = self
            .tasks
            .iter()
            .filter(|(id, track)| {
                !track.told && track.attempts > 0 && !at_work.contains(id.as_str())
            })
            .filter_map(|(id, _)| Some((id.clone(), settled(id)?)))
            .collect();
        for (id, error) in over {
            spans.extend(self.task(&id, error));
        }
    }

    fn task(&mut self, id: &str, error: Option<&'static str>) -> Option<Span> {
        let name = format!("task {id} {}", self.tasks.get(id)?.round);
        let subject = id.parse().ok().and_then(|id| self.board.snapshot().get(id));
        let subject = subject.map(|task| task.subject.clone()).unwrap_or_default();
        let track = self.tasks.get_mut(id)?;
        track.told = true;
        let (from_ms, to_ms, attempts) = (track.from_ms, track.to_ms, track.attempts);
        let mut attributes = vec![
            ("ccb.task.id", self.text(id)),
            ("ccb.task.subject", self.text(&subject)),
            ("ccb.task.attempts", attempts.into()),
        ];
        attributes.extend(error_type(error));
        Some(Span {
            attributes,
            error: error.map(str::to_owned),
            ..self.span(&name, "ccb.task", from_ms, to_ms)
        })
    }

    /// The time when the work of a task could land: it was done, and nothing else was landing.
    fn free_to_land(&self, task: &str) -> i64 {
        let done = self.tasks.get(task).map_or(0, |track| track.to_ms);
        done.max(self.last_landing_ms)
    }

    fn landings(&mut self, spans: &mut Vec<Span>) {
        let Some(trees) = &self.trees else { return };
        let files = trees.record_files();
        let stamps: Vec<Option<Stamp>> = files
            .iter()
            .map(|file| std::fs::metadata(file).ok().map(|meta| Stamp::of(&meta)))
            .collect();
        if stamps == self.landed {
            return;
        }
        let Ok(all) = trees.landings() else { return };
        self.landed = stamps;
        for landing in all {
            let at = parse_rfc3339(&landing.at).unwrap_or(0);
            let of_list = landing
                .task
                .as_deref()
                .and_then(|task| task.split_once('#'));
            let Some((_, task)) = of_list.filter(|(list, _)| *list == self.list) else {
                continue;
            };
            if at >= self.ledger.began_ms && self.landings.insert(landing.id) {
                let task = task.to_owned();
                spans.push(self.landing(&landing, &task, at));
            }
        }
    }

    fn landing(&mut self, landing: &Landing, task: &str, at: i64) -> Span {
        let from_ms = self.free_to_land(task).min(at);
        self.last_landing_ms = at;
        Span {
            parent: Some(self.task_span(task)),
            attributes: vec![
                ("ccb.task.id", self.text(task)),
                ("ccb.landing.id", Value::Text(format!("L{}", landing.id))),
                ("ccb.branch", self.text(&landing.into)),
                ("vcs.ref.head.revision", self.text(&landing.commit)),
            ],
            ..self.span(
                &format!("landing {}", landing.id),
                "ccb.landing",
                from_ms,
                at,
            )
        }
    }
}

fn text(secrets: &Arc<Secrets>, given: &str) -> Value {
    Value::Text(clean_cut(&secrets.redact(given), TEXT))
}
