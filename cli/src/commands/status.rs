use std::collections::BTreeMap;

use clap::Args;
use coordinator::plans::{RunningPlan, running};
use coordinator::session_file::{SessionFile, TeamSession};
use mailbox::{Request, RequestState};
use serde::Serialize;
use serde_json::{Value, json};
use store::Failure;
use swarm::run::Meta;
use taskboard::Status;

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, CYAN, DIM, GREEN, RED, YELLOW, clean_line};

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {}

/// How many tasks are in each state.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    pending: usize,
    ready: usize,
    in_progress: usize,
    completed: usize,
    parked: usize,
    unreadable: usize,
}

/// How everything stands.
struct Standing {
    team: String,
    session: Option<TeamSession>,
    /// Somebody directs it.
    directed: bool,
    counts: Counts,
    alive: Vec<Meta>,
    /// Requests that wait for an answer.
    requests: Vec<Request>,
    /// How many trees there are, by what they are.
    trees: BTreeMap<&'static str, usize>,
    /// Plans that run now, of any team.
    plans: Vec<RunningPlan>,
}

/// Shows how everything stands: session, tasks, agents, requests, trees.
pub(crate) fn run(_: &StatusArgs, context: &mut Context) -> Result<Exit, Failure> {
    let standing = look(context)?;
    context.out.done(|| standing.json(), || standing.text())
}

fn look(context: &Context) -> Result<Standing, Failure> {
    let team = context.team()?;
    let file = SessionFile::new(context.home(), &team);
    let agents = context.agents()?;
    let (all, _) = agents.list()?;
    let requests = context.mailbox()?.requests()?.requests;
    let listed = match context.trees() {
        Ok(trees) => trees.list()?,
        // Outside of a repository there are none.
        Err(_) => Vec::new(),
    };
    let mut trees = BTreeMap::new();
    for tree in listed.iter().filter(|tree| tree.is_live()) {
        *trees.entry(tree.status.as_str()).or_default() += 1;
    }
    let alive = all.into_iter().filter(|listed| listed.alive);
    Ok(Standing {
        session: file.session()?,
        directed: agents.are_directed()?,
        counts: counts(context)?,
        alive: alive.map(|listed| listed.meta).collect(),
        requests: requests
            .into_iter()
            .filter(|request| request.state == RequestState::Pending)
            .collect(),
        trees,
        plans: running(context),
        team: team.to_string(),
    })
}

impl Standing {
    fn json(&self) -> Value {
        let agent = |meta: &Meta| {
            json!({
                "agentId": meta.agent_id, "name": meta.name, "state": meta.state.as_str(),
                "task": meta.task_id, "description": meta.description,
                "tokens": meta.usage.total_tokens(), "stalled": meta.stalled,
            })
        };
        let session = self.session.as_ref().map(|session| {
            let mut json = serde_json::to_value(session).unwrap_or_default();
            json["directed"] = self.directed.into();
            json
        });
        let plan =
            |plan: &RunningPlan| json!({"team": plan.team, "done": plan.done, "tasks": plan.tasks});
        json!({
            "plans": self.plans.iter().map(plan).collect::<Vec<_>>(),
            "session": session,
            "team": self.team,
            "tasks": self.counts,
            "agents": self.alive.iter().map(agent).collect::<Vec<_>>(),
            "requests": self.requests.iter().map(Request::to_json).collect::<Vec<_>>(),
            "worktrees": self.trees,
        })
    }

    fn text(&self) -> String {
        let team = &self.team;
        let mut lines = vec![match &self.session {
            Some(session) => format!(
                "{BOLD}team {team}{BOLD:#}: a {} session, {}",
                clean_line(&session.mode),
                if self.directed {
                    "under way"
                } else {
                    "not running"
                }
            ),
            None => format!("{BOLD}team {team}{BOLD:#}"),
        }];
        lines.push(self.counts.text());
        lines.extend(self.alive.iter().map(agent_line));
        for request in &self.requests {
            lines.push(format!(
                "  {YELLOW}?{YELLOW:#} {} waits for an answer: `ccb mail requests`, `ccb mail \
                 approve {}`",
                clean_line(&request.from),
                request.id
            ));
        }
        let trees = self.trees.iter().map(|(kind, n)| format!("{n} {kind}"));
        let trees: Vec<String> = trees.collect();
        if !trees.is_empty() {
            lines.push(format!("worktrees: {}", trees.join(", ")));
        }
        for plan in &self.plans {
            let (team, done, all) = (clean_line(&plan.team), plan.done, plan.tasks);
            lines.push(format!(
                "{CYAN}▶{CYAN:#} a plan runs: {done} of {all} tasks done {DIM}ccb --team {team} \
                 task list{DIM:#}"
            ));
        }
        if self.session.is_some() && !self.directed && self.counts.ready > 0 {
            lines.push(format!("{DIM}`ccb --team {team}` goes on{DIM:#}"));
        }
        lines.join("\n")
    }
}

fn agent_line(meta: &Meta) -> String {
    let task = meta.task_id.as_deref().map(|id| format!(" #{id}"));
    let stalled = meta.stalled.as_deref().map(clean_line);
    format!(
        "  {BOLD}{}{BOLD:#} {}{} {}{}",
        clean_line(meta.address()),
        meta.state.as_str(),
        task.unwrap_or_default(),
        clean_line(&meta.description),
        stalled.map_or_else(String::new, |why| format!(" {YELLOW}({why}){YELLOW:#}")),
    )
}

impl Counts {
    fn text(&self) -> String {
        let waiting = self.pending.saturating_sub(self.ready + self.parked);
        let mut text = format!(
            "tasks: {GREEN}{} done{GREEN:#}, {CYAN}{} under way{CYAN:#}, {} ready, {waiting} waiting",
            self.completed, self.in_progress, self.ready
        );
        for (count, word) in [(self.parked, "parked"), (self.unreadable, "unreadable")] {
            if count > 0 {
                text.push_str(&format!(", {RED}{count} {word}{RED:#}"));
            }
        }
        text
    }
}

fn counts(context: &Context) -> Result<Counts, Failure> {
    let board = context.board();
    let mut counts = Counts::default();
    // A list nobody made is not made by looking.
    if !board.dir().is_dir() {
        return Ok(counts);
    }
    let snapshot = board.snapshot()?;
    counts.unreadable = snapshot.unreadable().len();
    for task in snapshot.tasks().filter(|task| !task.is_internal()) {
        match task.status {
            Status::Completed => counts.completed += 1,
            Status::InProgress => counts.in_progress += 1,
            Status::Pending => {
                counts.pending += 1;
                counts.parked += usize::from(task.parked().is_some());
                counts.ready += usize::from(snapshot.is_ready(task));
            }
        }
    }
    Ok(counts)
}
