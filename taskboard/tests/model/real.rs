//! The board under test: how operations are done on it, and what must always be true of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use store::Explain;
use store::atomic::{self, Durability};
use store::clock::{Clock, ManualClock};
use store::home::Home;
use store::name::Name;
use store::settings::LockMode;
use taskboard::{
    Board, BoardError, BoardOptions, Caller, ClaimRequest, Completed, Hooks, NewTask, Next,
    Reference, Refusal, Task, TaskId, TaskResult, Update, Veto, Watch,
};
use tempfile::TempDir;

use crate::naive::Model;
use crate::ops::{Actor, Draft, ForeignEdit, Hook, Op, Ref, Terms};
use crate::outcome::{Outcome, refused, refused_by};
use crate::view::{View, numbers, view_of, view_of_model};

/// A list in a directory of its own, with a clock that can be set.
pub(crate) struct Site {
    board: Board,
    clock: Arc<ManualClock>,
    in_files: bool,
    /// The database of the board, whose clock counts; `None` for a board in files.
    #[cfg(feature = "postgres")]
    database: Option<database::Database>,
    _dir: TempDir,
}

/// A session with the board under test.
pub(crate) struct Real<'s> {
    board: &'s Board,
    site: &'s Site,
    watch: Watch<'s>,
    last_created: u64,
    /// The last token ever seen in each task's file.
    tokens: BTreeMap<u64, u64>,
    /// Tasks the last operation returned as they are now.
    returned: Vec<Task>,
    /// The state of the board according to the change log.
    replayed: BTreeMap<u64, Value>,
    last_seq: u64,
}

struct FixedHook(Hook);

impl FixedHook {
    fn veto(&self) -> Result<(), Veto> {
        if self.0 == Hook::Vetoes {
            Err(Veto::new("no"))
        } else {
            Ok(())
        }
    }
}

impl Hooks for FixedHook {
    fn before_create(&self, _: &Task) -> Result<(), Veto> {
        self.veto()
    }

    fn before_complete(&self, _: &Task) -> Result<Option<TaskResult>, Veto> {
        self.veto()?;
        let run = Some("proof".into());
        Ok((self.0 == Hook::Proves).then(|| TaskResult {
            run,
            ..TaskResult::default()
        }))
    }
}

fn id(number: u64) -> TaskId {
    TaskId::new(number).unwrap()
}

fn caller(by: &Actor) -> Caller {
    let agent = by.agent.to_owned();
    Caller {
        agent,
        token: by.token,
        force: by.force,
    }
}

fn claim_request(terms: &Terms) -> ClaimRequest {
    let (agent, lease) = (terms.agent.to_owned(), terms.lease.clone());
    ClaimRequest {
        agent,
        check_busy: terms.check_busy,
        lease,
    }
}

fn new_task(draft: &Draft) -> NewTask {
    let references = |refs: &[Ref]| {
        let reference = |one: &Ref| match one {
            Ref::Id(number) => Reference::Id(id(*number)),
            Ref::Key(key) => Reference::Key((*key).to_owned()),
        };
        refs.iter().map(reference).collect()
    };
    NewTask {
        key: draft.key.map(str::to_owned),
        subject: draft.subject.to_owned(),
        blocked_by: references(&draft.blocked_by),
        blocks: references(&draft.blocks),
        metadata: draft.metadata.clone(),
        ..NewTask::default()
    }
}

fn refusal(error: &BoardError) -> Outcome {
    let kind = error.kind();
    let all =
        |ids: &[TaskId]| Outcome::Refused(kind, ids.iter().map(ToString::to_string).collect());
    match error {
        BoardError::NotFound { id } => refused_by(kind, &id),
        BoardError::Refused { reason, .. } => match reason {
            Refusal::AlreadyClaimed { owner } => refused_by(kind, &owner),
            Refusal::Blocked { by } => all(by),
            Refusal::AgentBusy { with, .. } => all(with),
            Refusal::LeaseLost { token } => refused_by(kind, &token),
            _ => refused(kind),
        },
        _ => refused(kind),
    }
}

impl Site {
    pub(crate) fn new(now_ms: i64, lock_mode: LockMode, durability: Durability) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(now_ms));
        let options = BoardOptions {
            lock_mode,
            durability,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ..BoardOptions::default()
        };
        let home = Home::new(dir.path().to_owned()).unwrap();
        let board = Board::new(&home, Name::new("list", "board").unwrap(), options);
        Self {
            board,
            clock,
            in_files: true,
            #[cfg(feature = "postgres")]
            database: None,
            _dir: dir,
        }
    }

    /// A list in memory, which has no directory.
    pub(crate) fn in_memory(now_ms: i64) -> Self {
        let clock = Arc::new(ManualClock::at(now_ms));
        let options = BoardOptions {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ..BoardOptions::default()
        };
        let memory = taskboard::Memory::default();
        let name = Name::new("list", "board").unwrap();
        Self {
            board: Board::in_memory(&memory, name, options),
            clock,
            in_files: false,
            #[cfg(feature = "postgres")]
            database: None,
            _dir: tempfile::tempdir().unwrap(),
        }
    }

    /// A list of its own in a database.
    #[cfg(feature = "postgres")]
    pub(crate) fn in_tables(now_ms: i64, database: &database::Database, list: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = BoardOptions {
            database: Some(database.clone()),
            ..BoardOptions::default()
        };
        let home = Home::new(dir.path().to_owned()).unwrap();
        let site = Self {
            board: Board::new(&home, Name::new("list", list).unwrap(), options),
            clock: Arc::new(ManualClock::at(now_ms)),
            in_files: false,
            database: Some(database.clone()),
            _dir: dir,
        };
        site.set_clock(now_ms);
        site
    }

    /// Puts a clock that tests set in the place of the database's.
    #[cfg(feature = "postgres")]
    pub(crate) fn take_over_clock(database: &database::Database) {
        let sql = "CREATE TABLE @.test_clock (now_ms bigint); INSERT INTO @.test_clock VALUES (0); \
            CREATE OR REPLACE FUNCTION @.clock_ms() RETURNS bigint LANGUAGE sql VOLATILE \
            AS 'SELECT now_ms FROM @.test_clock'";
        database.read(|session| session.batch(sql)).unwrap();
    }

    fn set_clock(&self, now_ms: i64) {
        self.clock.set(now_ms);
        #[cfg(feature = "postgres")]
        if let Some(database) = &self.database {
            let sql = format!("UPDATE @.test_clock SET now_ms = {now_ms}");
            database.read(|session| session.batch(&sql)).unwrap();
        }
    }
}

impl<'s> Real<'s> {
    pub(crate) fn new(site: &'s Site) -> Self {
        Self {
            board: &site.board,
            site,
            watch: site.board.watch(Some(0)).unwrap(),
            last_created: 0,
            tokens: BTreeMap::new(),
            returned: Vec::new(),
            replayed: BTreeMap::new(),
            last_seq: 0,
        }
    }

    /// Does `op`; `before` is the board as it should be before it.
    pub(crate) fn apply(&mut self, op: &Op, before: &Model) -> Outcome {
        self.returned.clear();
        self.attempt(op, before).unwrap_or_else(|error| {
            if let (BoardError::Cycle { path }, Op::Block { blocker, dependent }) = (&error, op) {
                check_cycle(&numbers(path), (*blocker, *dependent), before);
            }
            refusal(&error)
        })
    }

    fn attempt(&mut self, op: &Op, before: &Model) -> Result<Outcome, BoardError> {
        Ok(match op {
            Op::Create { batch, hook } => self.create(batch, *hook)?,
            Op::Claim { id: number, terms } => {
                let claimed = self.board.claim(id(*number), &claim_request(terms))?;
                self.returned.push(claimed.task);
                Outcome::Claimed {
                    id: *number,
                    token: claimed.token,
                }
            }
            Op::Next { terms } => match self.board.claim_next(&claim_request(terms))? {
                Next::Claimed(claimed) => {
                    let id = claimed.task.id.get();
                    self.returned.push(claimed.task);
                    Outcome::Claimed {
                        id,
                        token: claimed.token,
                    }
                }
                Next::Nothing(why) => Outcome::NothingToDo(why.as_str()),
                Next::Busy(with) => Outcome::Busy(numbers(&with)),
            },
            Op::Release { id: number, by } => {
                self.one(self.board.release(id(*number), &caller(by))?)
            }
            Op::Complete {
                id: number,
                by,
                hook,
            } => {
                let hooks = FixedHook(*hook);
                let hooks = (*hook != Hook::Absent).then_some(&hooks as &dyn Hooks);
                self.changed(self.board.complete(id(*number), &caller(by), hooks)?)
            }
            Op::Delete { id: number, by } => {
                Outcome::Task(self.board.delete(id(*number), &caller(by))?.id.get())
            }
            Op::Block { blocker, dependent } => {
                self.one(self.board.block(id(*blocker), id(*dependent))?)
            }
            Op::Unblock { blocker, dependent } => {
                self.one(self.board.unblock(id(*blocker), id(*dependent))?)
            }
            Op::Update {
                id: number,
                by,
                change,
                hook,
            } => {
                let hooks = FixedHook(*hook);
                let hooks = (*hook != Hook::Absent).then_some(&hooks as &dyn Hooks);
                let update = Update {
                    subject: change.subject.map(str::to_owned),
                    owner: change.owner.map(|owner| owner.map(str::to_owned)),
                    status: change.status,
                    metadata: change.metadata.clone(),
                    ..Update::default()
                };
                self.changed(
                    self.board
                        .update(id(*number), &update, &caller(by), hooks)?,
                )
            }
            Op::Reset { force } => Outcome::Removed(self.board.reset(*force)?),
            Op::Unassign { agent } => self.many(self.board.unassign(agent)?),
            Op::UnassignRun { run } => self.many(self.board.unassign_run(run)?),
            Op::Clock { by_ms } => {
                self.site.set_clock(self.site.clock.now_ms() + by_ms);
                Outcome::Nothing
            }
            Op::Foreign { id: number, edit } => {
                if before.foreign_applies(*number, edit) {
                    self.edit_as_another_tool(id(*number), edit);
                }
                // Any change, also one of nothing, notices what other tools did.
                self.board.unassign("nobody")?;
                Outcome::Nothing
            }
        })
    }

    fn one(&mut self, task: Task) -> Outcome {
        let id = task.id.get();
        self.returned.push(task);
        Outcome::Task(id)
    }

    fn many(&mut self, tasks: Vec<Task>) -> Outcome {
        self.returned = tasks;
        Outcome::Returned(self.returned.iter().map(|task| task.id.get()).collect())
    }

    fn changed(&mut self, done: Completed) -> Outcome {
        let (id, unblocked) = (done.task.id.get(), numbers(&done.unblocked));
        self.returned.push(done.task);
        Outcome::Changed {
            id,
            unblocked,
            nudge: done.nudge.is_some(),
        }
    }

    fn create(&mut self, batch: &[Draft], hook: Hook) -> Result<Outcome, BoardError> {
        let batch: Vec<NewTask> = batch.iter().map(new_task).collect();
        let hooks = FixedHook(hook);
        let hooks = (hook != Hook::Absent).then_some(&hooks as &dyn Hooks);
        self.returned = self.board.create(&batch, hooks)?;
        let ids: Vec<u64> = self.returned.iter().map(|task| task.id.get()).collect();
        for id in &ids {
            assert!(*id > self.last_created, "id {id} was given out before");
            self.last_created = *id;
        }
        Ok(Outcome::Created(ids))
    }

    fn edit_as_another_tool(&self, id: TaskId, edit: &ForeignEdit) {
        let path = self.board.dir().join(format!("{id}.json"));
        let bytes = atomic::read(&path).unwrap().unwrap();
        let mut file: Value = serde_json::from_slice(&bytes).unwrap();
        let mut add = |list: &str, other: &u64| {
            let list = file[list].as_array_mut().unwrap();
            if !list.contains(&json!(other.to_string())) {
                list.push(json!(other.to_string()));
            }
        };
        match edit {
            ForeignEdit::Park(value) => file["metadata"]["ccb"]["parked"] = value.clone(),
            ForeignEdit::BlockedBy(other) => add("blockedBy", other),
            ForeignEdit::Blocks(other) => add("blocks", other),
            ForeignEdit::TakeOver(agent) => {
                file["owner"] = json!(agent);
                file["status"] = json!("in_progress");
            }
            ForeignEdit::Complete => file["status"] = json!("completed"),
        }
        let tmp = self.board.dir().join(".ccb/tmp");
        atomic::replace(
            &tmp,
            &path,
            file.to_string().as_bytes(),
            Durability::Relaxed,
        )
        .unwrap();
    }

    /// Checks the conditions that hold after every operation.
    pub(crate) fn check(&mut self, model: &Model, op: &Op) {
        let snapshot = self.board.snapshot().unwrap();
        assert!(snapshot.unreadable().is_empty(), "unreadable after {op:?}");
        let view = |task: &Task| (task.id.get(), view_of(task, snapshot.is_ready(task)));
        let actual: BTreeMap<u64, View> = snapshot.tasks().map(view).collect();
        assert_eq!(
            actual,
            view_of_model(model),
            "the board (left) after {op:?}"
        );
        assert_eq!(snapshot.half_edges(), [], "half edges after {op:?}");
        for task in &self.returned {
            assert_eq!(Some(task), snapshot.get(task.id), "what {op:?} returned");
        }
        for (id, view) in &actual {
            let last = self.tokens.insert(*id, view.task.last_token).unwrap_or(0);
            assert!(
                last <= view.task.last_token,
                "the token of {id} went back at {op:?}"
            );
        }
        self.follow_the_log(op);
        let on_board = snapshot.tasks().map(|task| (task.id.get(), task.to_json()));
        assert_eq!(
            self.replayed,
            on_board.collect(),
            "the log (left) after {op:?}"
        );
    }

    fn follow_the_log(&mut self, op: &Op) {
        for change in self.watch.poll().unwrap() {
            assert_eq!(
                change.seq,
                self.last_seq + 1,
                "numbers of the log after {op:?}"
            );
            assert!(
                !change.foreign || matches!(op, Op::Foreign { .. }),
                "{change:?}"
            );
            self.last_seq = change.seq;
            match change.task {
                Some(task) => self.replayed.insert(change.id.get(), task),
                None => self.replayed.remove(&change.id.get()),
            };
        }
    }

    pub(crate) fn check_at_the_end(&self) {
        assert_eq!(self.board.doctor(false).unwrap(), []);
        if !self.site.in_files {
            return;
        }
        let left: Vec<_> = std::fs::read_dir(self.board.dir().join(".ccb/tmp"))
            .unwrap()
            .collect();
        assert!(left.is_empty(), "temporary files are left: {left:?}");
    }
}

/// A refused edge names the way round that it would close.
fn check_cycle(path: &[u64], edge: (u64, u64), before: &Model) {
    assert_eq!(
        (path[0], path[path.len() - 1]),
        (edge.0, edge.0),
        "{path:?}"
    );
    assert_eq!(path[1], edge.1, "{path:?}");
    for pair in path[1..].windows(2) {
        assert!(
            before.edges.contains(&(pair[0], pair[1])),
            "{path:?}: {pair:?} is no edge"
        );
    }
}
