//! Reads a report from what is on disk: the board, the runs, the landings.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use runs::Agents;
use runs::failure_text::FailureText;
use store::Failure;
use store::clock::{Clock, SystemClock, parse_rfc3339};
use swarm::run::{Exit, Meta, RunDir, RunState};
use taskboard::{Snapshot, Status, Task, Unchecked};
use worktrees::{Landing, Trees};

use super::model::{
    AgentPart, AttemptPart, CheckPart, Excerpt, LandingPart, ModelPart, Row, SpanKind, TaskPart,
    Timeline, Totals,
};
use super::timeline::{self, Known, Moment};
use super::trim::{self, Room};

/// Maximum bytes of a transcript that are read for the timeline.
const TRANSCRIPT: u64 = 16 << 20;
/// Maximum bytes of one of its lines: time and kind come first.
const LINE: u64 = 256;
/// Maximum bytes of a check's output in the report.
const CHECK_OUTPUT: u64 = 16 * 1024;

/// The runs and tasks of one team, as far as they belong to one report.
pub(super) struct Found {
    pub(super) agents: Vec<AgentPart>,
    pub(super) timeline: Timeline,
    pub(super) tasks: Vec<TaskPart>,
    pub(super) landings: Vec<LandingPart>,
    pub(super) earlier_tasks: usize,
    /// True if an agent of it lives.
    pub(super) alive: bool,
}

/// One run, with the parts that are read once.
struct RunRead {
    meta: Meta,
    exit: Option<Exit>,
    alive: bool,
    row: Row,
    from_ms: i64,
    to_ms: i64,
}

/// Everything of `agents`' team that happened since `since_ms`; of one agent alone if `only` names
/// it.
pub(super) fn gather(
    agents: &Agents,
    trees: Option<&Trees>,
    since_ms: i64,
    only: Option<&str>,
    room: &mut Room,
) -> Result<Found, Failure> {
    let (all, _) = agents.list()?;
    let now = SystemClock.now_ms();
    let mut runs = Vec::new();
    for listed in all {
        let meta = listed.meta;
        let wanted = match only {
            Some(id) => meta.agent_id == id,
            None => listed.alive || ended_ms(&meta).is_none_or(|end| end >= since_ms),
        };
        if wanted {
            runs.push(read_run(agents, meta, listed.alive, now));
        }
    }
    let list = agents.board().name().to_string();
    let landings = match trees {
        Some(trees) => landings_of(trees, &list, since_ms)?,
        None => Vec::new(),
    };
    let board = agents.board();
    let snapshot = match board.exists() {
        true => Some(board.snapshot()?),
        false => None,
    };
    let (mut tasks, mut earlier_tasks) = (Vec::new(), 0);
    if let Some(snapshot) = &snapshot {
        let scene = Scene {
            agents,
            trees,
            list: &list,
            snapshot,
            runs: &runs,
            landings: &landings,
        };
        (tasks, earlier_tasks) = scene.tasks(only.is_some(), room);
    }
    let from_ms = runs.iter().map(|run| run.from_ms).min();
    let to_ms = runs.iter().map(|run| run.to_ms).max();
    let landed = landings.iter().filter_map(|one| parse_rfc3339(&one.at));
    let to_ms = landed.chain(to_ms).max();
    Ok(Found {
        timeline: Timeline {
            from_ms: from_ms.unwrap_or(since_ms),
            to_ms: to_ms.unwrap_or(since_ms),
            critical_path: timeline::critical_path(&tasks, from_ms.unwrap_or(since_ms)),
            rows: runs.iter().map(|run| run.row.clone()).collect(),
        },
        alive: runs.iter().any(|run| run.alive),
        agents: runs.iter().map(agent_part).collect(),
        tasks,
        landings: landings.iter().map(landing_part).collect(),
        earlier_tasks,
    })
}

fn ended_ms(meta: &Meta) -> Option<i64> {
    parse_rfc3339(meta.ended_at.as_ref()?)
}

fn read_run(agents: &Agents, meta: Meta, alive: bool, now: i64) -> RunRead {
    let run = agents.run(&meta.agent_id);
    let exit = run.exit(meta.life).ok().flatten();
    let created_ms = parse_rfc3339(&meta.created_at).unwrap_or(now);
    let ended = exit.as_ref().and_then(|exit| parse_rfc3339(&exit.ended_at));
    let moments = moments(&run);
    let last = moments.last().and_then(|last| parse_rfc3339(&last.ts));
    let to_ms = match alive {
        true => now,
        false => ended.or(ended_ms(&meta)).or(last).unwrap_or(created_ms),
    };
    let proof = exit.as_ref().and_then(|exit| exit.proof.as_ref());
    let check_ms = proof.and_then(|proof| proof.check.as_ref());
    let check_ms = check_ms.map_or(0, |check| i64::try_from(check.duration_ms).unwrap_or(0));
    let known = Known {
        created_ms,
        end_ms: to_ms,
        check_ms,
    };
    RunRead {
        row: Row {
            agent: meta.agent_id.clone(),
            spans: timeline::spans(&moments, known),
        },
        from_ms: created_ms,
        to_ms: to_ms.max(created_ms),
        meta,
        exit,
        alive,
    }
}

/// The times and kinds of entries in the first part of a transcript. Long lines and long
/// transcripts cost no memory: only the beginning of each line is kept.
fn moments(run: &RunDir) -> Vec<Moment> {
    let Ok(file) = std::fs::File::open(run.transcript_path()) else {
        return Vec::new();
    };
    let mut reader = BufReader::new(file.take(TRANSCRIPT));
    let mut moments: Vec<Moment> = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return moments,
            Ok(_) => {}
        }
        if line.last() != Some(&b'\n') && !skip_line(&mut reader) {
            return moments;
        }
        let Some(moment) = moment(&line) else {
            continue;
        };
        // Of many entries of one kind in a row, the first and the last say as much.
        let n = moments.len();
        if n >= 2 && moments[n - 1].kind == moment.kind && moments[n - 2].kind == moment.kind {
            moments[n - 1] = moment;
        } else {
            moments.push(moment);
        }
    }
}

fn skip_line(reader: &mut impl BufRead) -> bool {
    loop {
        let Ok(bytes) = reader.fill_buf() else {
            return false;
        };
        if bytes.is_empty() {
            return false;
        }
        match bytes.iter().position(|byte| *byte == b'\n') {
            Some(at) => {
                reader.consume(at + 1);
                return true;
            }
            None => {
                let all = bytes.len();
                reader.consume(all);
            }
        }
    }
}

/// Time and kind from the beginning of a line, which may be cut: both are written before the text
/// of an agent.
pub fn moment(line: &[u8]) -> Option<Moment> {
    let text = String::from_utf8_lossy(line);
    let value = |key: &str| {
        let at = text.find(&format!("\"{key}\":\""))? + key.len() + 4;
        let rest = text.get(at..)?;
        Some(rest[..rest.find('"')?].to_owned())
    };
    Some(Moment {
        ts: value("ts")?,
        kind: value("type")?,
    })
}

fn landings_of(trees: &Trees, list: &str, since_ms: i64) -> Result<Vec<Landing>, Failure> {
    let mut all = trees.landings()?;
    all.retain(|one| {
        let of_list = one.task.as_deref().and_then(|task| task.split_once('#'));
        let ours = of_list.is_some_and(|(of, _)| of == list);
        ours && parse_rfc3339(&one.at).is_some_and(|at| at >= since_ms)
    });
    Ok(all)
}

fn landing_part(landing: &Landing) -> LandingPart {
    let task = landing
        .task
        .as_deref()
        .and_then(|task| task.split_once('#'));
    LandingPart {
        id: format!("L{}", landing.id),
        task: task.map(|(_, id)| id.to_owned()),
        into: landing.into.clone(),
        commit: landing.commit.clone(),
        at: landing.at.clone(),
        undone_at: match landing.stands() {
            true => None,
            false => landing.undone.as_ref().map(|undone| undone.at.clone()),
        },
    }
}

fn agent_part(run: &RunRead) -> AgentPart {
    let (meta, usage) = (&run.meta, &run.meta.usage);
    let exit = run.exit.as_ref();
    let said = exit.and_then(|exit| exit.error.as_ref().or(exit.result.as_ref()));
    let state = match (run.alive, meta.state) {
        (false, state) if !state.is_terminal() => RunState::Lost,
        (_, state) => state,
    };
    AgentPart {
        id: meta.agent_id.clone(),
        name: meta.address().to_owned(),
        agent_type: meta.agent_type.clone(),
        runtime: meta.runtime.name.clone(),
        model: meta.model.clone(),
        task: meta.task_id.clone(),
        state: state.as_str().to_owned(),
        result: said.map(|said| trim::text(said)).unwrap_or_default(),
        notes: exit.map(|exit| exit.notes.clone()).unwrap_or_default(),
        lives: meta.life.max(1),
        fork: meta.fork,
        input_tokens: usage.input_tokens,
        cache_read_tokens: usage.cache_read_tokens,
        cache_write_tokens: usage.cache_write_tokens,
        output_tokens: usage.output_tokens,
        cost_usd: usage.cost_usd,
        tool_uses: usage.tool_uses,
        forked_tokens: usage.forked_tokens,
        saved_usd: usage.saved_usd,
    }
}

/// The sources of a report's tasks.
struct Scene<'a> {
    agents: &'a Agents,
    trees: Option<&'a Trees>,
    list: &'a str,
    snapshot: &'a Snapshot,
    runs: &'a [RunRead],
    landings: &'a [Landing],
}

impl Scene<'_> {
    /// The tasks that are open or were worked on, and the number of others.
    fn tasks(&self, only_theirs: bool, room: &mut Room) -> (Vec<TaskPart>, usize) {
        let mut by_task: HashMap<&str, Vec<&RunRead>> = HashMap::new();
        for run in self.runs {
            if let Some(task) = &run.meta.task_id {
                by_task.entry(task).or_default().push(run);
            }
        }
        let (mut parts, mut others) = (Vec::new(), 0);
        for task in self.snapshot.tasks().filter(|task| !task.is_internal()) {
            let id = task.id.to_string();
            let runs = by_task.get(id.as_str()).map_or(&[][..], Vec::as_slice);
            let name = format!("{}#{id}", self.list);
            let landed = |one: &Landing| one.task.as_ref() == Some(&name);
            let touched = !runs.is_empty() || self.landings.iter().any(landed);
            let open = task.status != Status::Completed && !only_theirs;
            if !touched && !open {
                others += 1;
                continue;
            }
            parts.push(self.task(task, runs, room));
        }
        for id in self.snapshot.unreadable().keys() {
            parts.push(TaskPart {
                id: id.to_string(),
                state: "unreadable".into(),
                words: "its file cannot be read; `ccb doctor --fix` keeps it and parks the task"
                    .into(),
                ..TaskPart::default()
            });
        }
        (parts, others)
    }

    fn task(&self, task: &Task, runs: &[&RunRead], room: &mut Room) -> TaskPart {
        let result = task.result().unwrap_or_default();
        let attempts: Vec<AttemptPart> = task.attempts().iter().map(attempt_part).collect();
        let (state, words) = state_of(task, self.snapshot);
        let run = result
            .run
            .as_deref()
            .or(runs.last().map(|run| run.meta.agent_id.as_str()));
        let id = run.map(|run| run.split('#').next().unwrap_or(run));
        let did_it = runs
            .iter()
            .find(|run| Some(run.meta.agent_id.as_str()) == id);
        let did_it = did_it.or(runs.last());
        let proof = did_it.and_then(|run| run.exit.as_ref()?.proof.as_ref());
        let mut part = TaskPart {
            id: task.id.to_string(),
            subject: task.subject.clone(),
            description: trim::text(&task.description),
            state: state.into(),
            words,
            unchecked: task.unchecked().map(|why| why.to_string()),
            after: task.blocked_by.iter().map(ToString::to_string).collect(),
            agent: did_it.map(|run| run.meta.agent_id.clone()),
            from_ms: runs.iter().map(|run| run.from_ms).min(),
            to_ms: runs.iter().map(|run| run.to_ms).max(),
            tries: runs.len().max(attempts.len()),
            attempts,
            check: proof.and_then(|proof| Some(self.check(did_it?, proof.check.as_ref()?))),
            landing: self.landing(task).to_owned(),
            tokens: runs.iter().map(|run| run.meta.usage.total_tokens()).sum(),
            cost_usd: runs.iter().map(|run| run.meta.usage.cost_usd).sum(),
            ..TaskPart::default()
        };
        let base = result
            .base
            .as_ref()
            .or(proof.and_then(|proof| proof.base.as_ref()));
        let commit = result
            .commit
            .as_ref()
            .or(proof.and_then(|proof| proof.commit.as_ref()));
        if let (Some(trees), Some(base), Some(commit)) = (self.trees, base, commit)
            && base != commit
        {
            changes(&mut part, trees, base, commit, room);
        }
        part
    }

    /// The landing state of a task's work, according to the landings. The caller knows the work
    /// that waits to land.
    fn landing(&self, task: &Task) -> &'static str {
        let name = format!("{}#{}", self.list, task.id);
        let mut of_it = self.landings.iter().rev();
        match of_it.find(|one| one.task.as_ref() == Some(&name)) {
            Some(landing) if landing.stands() => "landed",
            Some(_) => "undone",
            None => "",
        }
    }

    fn check(&self, run: &RunRead, checked: &swarm::run::Checked) -> CheckPart {
        let path = self.agents.run(&run.meta.agent_id).check_path();
        CheckPart {
            command: checked.command.clone(),
            passed: checked.passed,
            words: match (checked.passed, &checked.how) {
                (true, _) => "passed".into(),
                (false, Some(how)) => FailureText::of(how).what,
                (false, None) => "failed".into(),
            },
            flaky: checked.flaky.clone(),
            duration_ms: checked.duration_ms,
            output: tail(&path),
        }
    }
}

/// The end of a file.
pub(super) fn tail(path: &Path) -> Excerpt {
    let text = store::log::tail(path, CHECK_OUTPUT).unwrap_or_default();
    let whole = std::fs::metadata(path).map_or(0, |file| file.len());
    Excerpt {
        cut: whole.saturating_sub(text.len() as u64),
        text,
    }
}

/// Files and diff of a task, as far as there is room.
fn changes(part: &mut TaskPart, trees: &Trees, base: &str, commit: &str, room: &mut Room) {
    if !trees.has_commit(base) || !trees.has_commit(commit) {
        return;
    }
    let found = trees.stat(base, commit);
    part.changes = found
        .unwrap_or_default()
        .into_iter()
        .map(Into::into)
        .collect();
    let most = room.next();
    if most == 0 || part.changes.is_empty() {
        return;
    }
    if let Ok((bytes, cut)) = trees.diff_text(base, commit, most) {
        room.took(bytes.len());
        part.diff = Some(Excerpt {
            text: String::from_utf8_lossy(&bytes).into_owned(),
            // The number of further bytes is unknown.
            cut: u64::from(cut),
        });
    }
}

fn attempt_part(attempt: &taskboard::Attempt) -> AttemptPart {
    let text = FailureText::of(&attempt.why);
    AttemptPart {
        run: attempt.run.clone(),
        status: attempt.status.clone(),
        what: text.what,
        printed: trim::text(&text.printed.join("\n")),
        at: attempt.at.clone(),
        counts: attempt.counts,
    }
}

/// The state of a task, in a word and in a sentence.
fn state_of(task: &Task, snapshot: &Snapshot) -> (&'static str, String) {
    let owner = || task.owner.clone().unwrap_or_else(|| "somebody".into());
    match task.status {
        Status::Completed => match task.unchecked() {
            None => ("done", "done; its check passed".into()),
            Some(why) => ("done", format!("done; {}: {why}", Unchecked::MARK)),
        },
        Status::InProgress => ("running", format!("{} works on it", owner())),
        Status::Pending => match task.parked() {
            Some(why) => ("parked", format!("parked: {}", FailureText::of(why).what)),
            None if task.failures() > 0 => {
                let attempts = task.attempts();
                let last = attempts.last();
                let what = FailureText::of(last.map_or("", |last| &last.why)).what;
                match last.is_some_and(|last| last.status == "rejected") {
                    true => ("open", format!("sent back with feedback: {what}")),
                    false => ("open", format!("not done; the last attempt failed: {what}")),
                }
            }
            None if snapshot.is_ready(task) => ("open", "not begun".into()),
            None => {
                let open = |id: &&taskboard::TaskId| {
                    let blocker = snapshot.get(**id);
                    blocker.is_some_and(|task| task.status != Status::Completed)
                };
                let waits: Vec<String> = task
                    .blocked_by
                    .iter()
                    .filter(open)
                    .map(|id| format!("#{id}"))
                    .collect();
                match waits.is_empty() {
                    true => ("open", format!("assigned to {}", owner())),
                    false => ("open", format!("waits for {}", waits.join(", "))),
                }
            }
        },
    }
}

/// The usage of each model.
pub(super) fn models(agents: &[AgentPart]) -> Vec<ModelPart> {
    let mut all: BTreeMap<String, ModelPart> = BTreeMap::new();
    for agent in agents {
        let name = match &agent.model {
            Some(model) => format!("{model} ({})", agent.runtime),
            None => agent.runtime.clone(),
        };
        let part = all.entry(name.clone()).or_default();
        part.name = name;
        part.agents += 1;
        part.input_tokens = part.input_tokens.saturating_add(agent.input_tokens);
        part.output_tokens = part.output_tokens.saturating_add(agent.output_tokens);
        part.cost_usd += agent.cost_usd;
    }
    let mut all: Vec<ModelPart> = all.into_values().collect();
    all.sort_by(|a, b| b.cost_usd.total_cmp(&a.cost_usd));
    all
}

/// The figures that follow from the parts.
pub(super) fn totals(found: &Found) -> Totals {
    let (tasks, agents) = (&found.tasks, &found.agents);
    let spans = |what| {
        found
            .timeline
            .rows
            .iter()
            .map(|row| timeline::sum(&row.spans, what))
            .sum()
    };
    let in_state = |states: &[&str]| {
        let of_it = tasks
            .iter()
            .filter(|task| states.contains(&task.state.as_str()));
        of_it.count()
    };
    Totals {
        tasks: tasks.len(),
        done: in_state(&["done"]),
        failed: in_state(&["failed", "parked", "unreadable"]),
        earlier_tasks: found.earlier_tasks,
        agents: agents.len(),
        failed_attempts: tasks
            .iter()
            .flat_map(|task| &task.attempts)
            .filter(|attempt| attempt.counts)
            .count(),
        landed: found
            .landings
            .iter()
            .filter(|one| one.undone_at.is_none())
            .count(),
        undone: found
            .landings
            .iter()
            .filter(|one| one.undone_at.is_some())
            .count(),
        duration_ms: (found.timeline.to_ms - found.timeline.from_ms).max(0),
        work_ms: spans(SpanKind::Working),
        wait_ms: spans(SpanKind::Waiting),
        check_ms: spans(SpanKind::Check),
        input_tokens: agents.iter().map(|agent| agent.input_tokens).sum(),
        cache_read_tokens: agents.iter().map(|agent| agent.cache_read_tokens).sum(),
        cache_write_tokens: agents.iter().map(|agent| agent.cache_write_tokens).sum(),
        output_tokens: agents.iter().map(|agent| agent.output_tokens).sum(),
        cost_usd: agents.iter().map(|agent| agent.cost_usd).sum(),
        forked_tokens: agents.iter().map(|agent| agent.forked_tokens).sum(),
        saved_usd: agents.iter().map(|agent| agent.saved_usd).sum(),
    }
}
