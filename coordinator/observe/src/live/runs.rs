//! The agents of a team: read from their runs' files as they change.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use store::agent_id::LEAD;
use store::atomic::Stamp;
use store::clock::parse_rfc3339;
use store::follow::Follower;
use store::text::{clean_cut, clean_line, first_line};
use swarm::run::{Entry, Meta, Record, RunDir, RunState};
use taskboard::{Snapshot, TaskId};

use super::habits::Habits;
use super::scene::AgentScene;
use super::transcript::{block, order_of_fork};
use super::trees::{TreePrints, Wanted};
use crate::overview::attention;

/// Poll interval in ms for values that only the kernel knows, and for values that should not change
/// any more.
const SELDOM: i64 = 1_000;
/// Bytes at the end of an existing transcript that are read first.
const TAIL: u64 = 16 * 1024;
/// Maximum bytes per look; a longer line is skipped.
const AT_ONCE: usize = 1 << 20;
/// Maximum characters of an agent's last action.
const LAST: usize = 200;
/// Maximum number of ended agents in a view, the latest ones.
const ENDED: usize = 200;

/// The runs of one team.
#[derive(Debug)]
pub(super) struct Runs {
    dir: PathBuf,
    runs: BTreeMap<String, Run>,
    stamp: Option<Stamp>,
    listed: Option<i64>,
    prints: TreePrints,
}

/// One run.
#[derive(Debug)]
struct Run {
    dir: RunDir,
    meta_path: PathBuf,
    stamp: Option<Stamp>,
    /// The parts that do not depend on others; `None` as long as it cannot be read.
    known: Option<Known>,
    trouble: Option<String>,
    log: Follower,
    habits: Habits,
    /// The time of the last look at values that seldom change.
    looked: i64,
}

/// The known values of a run.
#[derive(Debug)]
struct Known {
    scene: AgentScene,
    /// The description of its work, if it has no task on the board.
    description: String,
    life: u32,
    cwd: PathBuf,
    /// True if it normally changes files, in a worktree of its own.
    writes: bool,
    created_at: String,
}

/// The result of a look at the agents.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) agents: Vec<AgentScene>,
    pub(super) earlier: usize,
    pub(super) troubles: Vec<String>,
}

impl Runs {
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            runs: BTreeMap::new(),
            stamp: None,
            listed: None,
            prints: TreePrints::default(),
        }
    }

    /// The directories of the runs that may continue.
    pub(super) fn dirs(&self) -> impl Iterator<Item = PathBuf> {
        let active = self.runs.values().filter(|run| !run.is_over());
        active.map(|run| run.dir.path().to_owned())
    }

    /// Reads the changes. Agents that ended before `since_ms` are counted, and left out.
    pub(super) fn look(&mut self, since_ms: i64, board: Option<&Snapshot>, now_ms: i64) -> Found {
        let mut found = Found::default();
        if let Err(why) = self.list(now_ms) {
            found.troubles.push(why);
        }
        while let Some((id, print)) = self.prints.take() {
            if let Some(run) = self.runs.get_mut(&id) {
                run.found(print, now_ms);
            }
        }
        for run in self.runs.values_mut() {
            run.look(now_ms);
            found.troubles.extend(run.trouble.clone());
            if let Some(wanted) = run.suspect(now_ms) {
                self.prints.ask(wanted, now_ms);
            }
        }
        let mut shown: Vec<&Known> = Vec::new();
        for known in self.runs.values().filter_map(|run| run.known.as_ref()) {
            match known.scene.alive || known.scene.ended_ms.unwrap_or(i64::MAX) >= since_ms {
                true => shown.push(known),
                false => found.earlier += 1,
            }
        }
        shown.sort_by(|a, b| (&a.created_at, &a.scene.id).cmp(&(&b.created_at, &b.scene.id)));
        found.earlier += leave_out(&mut shown);
        found.agents = shown.iter().map(|known| known.now(board, now_ms)).collect();
        found
    }

    /// Finds new runs, and forgets deleted ones.
    fn list(&mut self, now_ms: i64) -> Result<(), String> {
        let stamp = std::fs::metadata(&self.dir).ok();
        let stamp = stamp.map(|meta| Stamp::of(&meta));
        let due = self.listed.is_none_or(|at| is_due(at, now_ms));
        if stamp == self.stamp && !due {
            return Ok(());
        }
        let names =
            store::tree::names_in(&self.dir).map_err(|error| trouble(&error.to_string()))?;
        let names: HashMap<&str, ()> = names
            .iter()
            .filter(|name| !name.starts_with('.'))
            .map(|name| (name.as_str(), ()))
            .collect();
        self.runs.retain(|id, _| names.contains_key(id.as_str()));
        for id in names.into_keys() {
            if !self.runs.contains_key(id) {
                let run = Run::new(RunDir::new(&self.dir, id));
                self.runs.insert(id.to_owned(), run);
            }
        }
        (self.stamp, self.listed) = (stamp, Some(now_ms));
        Ok(())
    }
}

/// Leaves out the oldest of the ended agents, if there are too many; returns their number.
fn leave_out(shown: &mut Vec<&Known>) -> usize {
    let ended = shown.iter().filter(|known| !known.scene.alive).count();
    let surplus = ended.saturating_sub(ENDED);
    let mut left = surplus;
    shown.retain(|known| {
        let out = left > 0 && !known.scene.alive;
        left -= usize::from(out);
        !out
    });
    surplus
}

fn is_due(at: i64, now_ms: i64) -> bool {
    now_ms - at >= SELDOM || now_ms < at
}

fn trouble(text: &str) -> String {
    clean_cut(text, super::TROUBLE)
}

impl Run {
    fn new(dir: RunDir) -> Self {
        Self {
            meta_path: dir.path().join("meta.json"),
            log: Follower::tail(dir.transcript_path(), TAIL),
            dir,
            stamp: None,
            known: None,
            trouble: None,
            habits: Habits::default(),
            looked: i64::MIN,
        }
    }

    /// True if it is finished, unless an agent or a person resumes it.
    fn is_over(&self) -> bool {
        let scene = self.known.as_ref().map(|known| &known.scene);
        scene.is_some_and(|scene| !scene.alive && scene.state.is_terminal())
    }

    fn look(&mut self, now_ms: i64) {
        let seldom = self.looked == i64::MIN || is_due(self.looked, now_ms);
        if self.is_over() && !seldom {
            return;
        }
        let stamp = std::fs::metadata(&self.meta_path).ok();
        let stamp = stamp.map(|meta| Stamp::of(&meta));
        let changed = stamp != self.stamp;
        if changed {
            self.stamp = stamp;
            self.read_meta();
        }
        if changed || seldom {
            self.looked = now_ms;
            self.ask_alive();
        }
        if !self.is_over() || changed {
            self.read_log();
        }
    }

    fn read_meta(&mut self) {
        self.trouble = None;
        let meta = match self.dir.meta() {
            Ok(meta) => meta,
            // It is being made, or was given up before it began.
            Err(swarm::run::RunError::NotFound { .. }) => return,
            Err(error) => {
                self.trouble = Some(trouble(&error.to_string()));
                return;
            }
        };
        let before = self.known.take();
        if before.as_ref().is_some_and(|known| known.life != meta.life) {
            self.habits.begin_again();
        }
        self.known = Some(Known::of(&meta, before, &self.dir));
    }

    /// Asks the kernel for a supervising process, unless the run has recorded its end.
    fn ask_alive(&mut self) {
        let Some(known) = &mut self.known else {
            return;
        };
        let scene = &mut known.scene;
        let may_be = !matches!(
            scene.state,
            RunState::Completed | RunState::Failed | RunState::Killed
        );
        scene.alive = may_be && self.dir.is_alive().unwrap_or(false);
        if !scene.alive && !scene.state.is_terminal() {
            scene.state = RunState::Lost;
            // It was found dead; the time of death is unknown.
            scene.ended_ms = scene.ended_ms.or(scene.last_ms).or(Some(scene.since_ms));
        }
    }

    fn read_log(&mut self) {
        let Some(known) = &mut self.known else {
            return;
        };
        let appended = match self.log.read(AT_ONCE) {
            Ok(appended) => appended,
            Err(error) => {
                self.trouble = Some(trouble(&error.to_string()));
                return;
            }
        };
        if appended.restarted {
            self.habits.begin_again();
        }
        let lines = appended.bytes.split(|byte| *byte == b'\n');
        let lines: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
        let record = |line: &&[u8]| serde_json::from_slice::<Record>(line).ok();
        // Hundreds of agents write thousands of lines a second. A line that is not read is not
        // shown: a tool call may be a repetition, and of the rest only the last words count.
        let calls = lines.iter().filter(|line| may_be_call(line));
        for call in calls.filter_map(record) {
            if let Entry::ToolUse { name, input, .. } = &call.entry {
                self.habits.called(name, input);
            }
        }
        let mut spoken = lines.iter().rev().filter_map(record);
        let last = spoken.find_map(|record| Some((words(&record.entry)?, record.ts)));
        if let Some((words, at)) = last {
            known.scene.last = Some(words);
            known.scene.last_ms = parse_rfc3339(&at);
        }
        if !appended.bytes.is_empty() {
            known.scene.marks = self.habits.marks();
        }
    }

    /// Records the state of its worktree.
    fn found(&mut self, print: String, now_ms: i64) {
        if let Some(known) = &mut self.known {
            self.habits.found(print, known.scene.tokens, now_ms);
            known.scene.marks = self.habits.marks();
        }
    }

    /// The worktree to inspect for changes, if the agent is suspected to make none.
    fn suspect(&self, now_ms: i64) -> Option<Wanted> {
        let known = self.known.as_ref()?;
        if !known.scene.alive || !known.writes {
            return None;
        }
        self.habits.wants_a_look(now_ms).then(|| Wanted {
            id: known.scene.id.clone(),
            dir: known.cwd.clone(),
        })
    }
}

/// True if a line of a transcript can be the call of a tool.
fn may_be_call(line: &[u8]) -> bool {
    const KIND: &[u8] = b"tool_use";
    line.windows(KIND.len()).any(|part| part == KIND)
}

/// An entry on one line; `None` if it is not worth showing.
fn words(entry: &Entry) -> Option<String> {
    let last_line = |text: &str| {
        let line = text.lines().rev().find(|line| !line.trim().is_empty());
        line.map(|line| clean_cut(line.trim(), LAST))
    };
    match entry {
        Entry::Text { text } | Entry::Output { text, .. } => last_line(text),
        Entry::ToolUse { name, input, .. } => {
            let input = super::transcript::input_line(input);
            Some(clean_cut(format!("{name} {input}").trim_end(), LAST))
        }
        Entry::Permission { tool, .. } => Some(clean_cut(&format!("asks to use {tool}"), LAST)),
        Entry::Stalled { why } => Some(first_line(why, LAST)),
        _ => None,
    }
}

impl Known {
    fn of(meta: &Meta, before: Option<Self>, dir: &RunDir) -> Self {
        let ended = meta.state.is_terminal();
        let exit = ended.then(|| dir.exit(meta.life).ok().flatten()).flatten();
        let outcome = exit.as_ref().and_then(|exit| {
            let text = exit.error.as_deref().or(exit.result.as_deref())?;
            Some(first_line(text, super::TROUBLE)).filter(|line| !line.is_empty())
        });
        let ended_at = exit.as_ref().map(|exit| exit.ended_at.as_str());
        let ended_ms = ended_at.or(meta.ended_at.as_deref().filter(|_| ended));
        let before = before.map(|known| known.scene);
        let order = match (&before, meta.fork) {
            (_, false) => None,
            (Some(before), _) if before.order.is_some() => before.order.clone(),
            _ => dir
                .prompt()
                .ok()
                .and_then(|text| Some(block(order_of_fork(&text)?))),
        };
        let tree = meta.worktree.as_ref();
        let scene = AgentScene {
            id: meta.agent_id.clone(),
            name: clean_line(meta.address()),
            agent_type: clean_line(&meta.agent_type),
            runtime: clean_line(&meta.runtime.name),
            model: meta.model.as_deref().map(clean_line),
            machine: None,
            state: meta.state,
            alive: !ended && before.as_ref().is_none_or(|before| before.alive),
            leads: meta.address() == LEAD,
            teammate: meta.teammate,
            reads_mail: meta.runtime.kind.has_model(),
            task: meta.task_id.as_ref().and_then(|id| id.parse().ok()),
            doing: String::new(),
            since_ms: parse_rfc3339(&meta.started_at).unwrap_or(0),
            ended_ms: ended_ms.and_then(parse_rfc3339),
            outcome,
            tokens: meta.usage.total_tokens(),
            cost_usd: meta.usage.cost_usd,
            tool_uses: meta.usage.tool_uses,
            last_ms: before.as_ref().and_then(|before| before.last_ms),
            silent_ms: None,
            stalled: meta.stalled.as_deref().map(clean_line),
            color: meta.launch.color.clone(),
            parent: clean_line(&meta.parent),
            fork: meta.fork,
            order,
            worktree: tree.map(|tree| clean_line(&tree.name)),
            branch: tree.and_then(|tree| tree.branch.as_deref().map(clean_line)),
            marks: before
                .as_ref()
                .map_or_else(Vec::new, |before| before.marks.clone()),
            last: before.and_then(|before| before.last),
        };
        Self {
            scene,
            description: clean_line(&meta.description),
            life: meta.life,
            cwd: meta.cwd.clone(),
            writes: tree.is_some() && !meta.launch.reach.is_read_only(),
            created_at: meta.created_at.clone(),
        }
    }

    /// The scene at this moment: with its task's values from the board.
    fn now(&self, board: Option<&Snapshot>, now_ms: i64) -> AgentScene {
        let mut scene = self.scene.clone();
        let task = scene.task.and_then(|id: TaskId| board?.get(id));
        scene.doing = match task {
            Some(task) => clean_line(task.active_form()),
            None => self.description.clone(),
        };
        let last = scene.last_ms.unwrap_or(scene.since_ms);
        let silent = now_ms - last;
        let works = scene.alive && scene.state == RunState::Running;
        scene.silent_ms =
            (works && silent >= attention::SILENT).then_some(silent - silent % 60_000);
        scene
    }
}
