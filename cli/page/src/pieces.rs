//! A scene as pieces of JSON: one for each team, task and agent, so that little is sent when little
//! changes. Texts in a scene are safe to show; the page never makes markup of them.

use std::collections::HashMap;
use std::sync::Arc;

use observe::live::{
    Act, AgentScene, Attention, CheckState, DirectorScene, GraphScene, LandState, LeadScene, Scene,
    TaskScene, TaskState, TeamLife, TeamScene,
};
use serde_json::{Value, json};
use store::text::clean_cut;

/// Maximum characters of a text in a list.
const SHORT: usize = 240;

/// A possible change: a piece's name, and its JSON; `None` if it was removed.
pub(super) type Change = (String, Option<String>);

/// The pieces that may differ between two scenes. Equal parts are not written again: of thousands
/// of tasks, few change at a time.
pub(super) fn changes(before: &Scene, now: &Scene) -> Vec<Change> {
    let mut all = Changes(Vec::new());
    let names: Vec<&str> = now.teams.iter().map(|team| team.name.as_str()).collect();
    all.set("teams".to_owned(), &json!(names));
    all.set("troubles".to_owned(), &json!(now.troubles));
    if before.attention != now.attention || before.teams.is_empty() {
        let attention: Vec<Value> = now.attention.iter().map(attention).collect();
        all.set("attention".to_owned(), &json!(attention));
    }
    for team in &now.teams {
        all.team(before.team(&team.name), team);
    }
    for team in before
        .teams
        .iter()
        .filter(|team| now.team(&team.name).is_none())
    {
        let name = &team.name;
        all.0
            .extend(["team", "graph", "mail"].map(|kind| (format!("{kind}/{name}"), None)));
        all.tasks(name, &team.tasks, &Arc::default());
        all.agents(name, &team.agents, &[]);
    }
    all.0
}

/// The possible changes so far.
struct Changes(Vec<Change>);

impl Changes {
    fn set(&mut self, name: String, json: &Value) {
        self.0.push((name, Some(json.to_string())));
    }

    fn team(&mut self, before: Option<&TeamScene>, now: &TeamScene) {
        let name = &now.name;
        self.set(format!("team/{name}"), &team_head(now));
        if before.is_none_or(|before| before.graph != now.graph) {
            self.set(format!("graph/{name}"), &graph(&now.graph));
        }
        if before.is_none_or(|before| before.mail != now.mail) {
            self.set(format!("mail/{name}"), &mail(now));
        }
        let nothing = Arc::default();
        self.tasks(
            name,
            before.map_or(&nothing, |team| &team.tasks),
            &now.tasks,
        );
        self.agents(name, before.map_or(&[], |team| &team.agents), &now.agents);
    }

    fn tasks(&mut self, team: &str, before: &Arc<Vec<TaskScene>>, now: &Arc<Vec<TaskScene>>) {
        if Arc::ptr_eq(before, now) {
            return;
        }
        let mut known: HashMap<_, &TaskScene> = before.iter().map(|task| (task.id, task)).collect();
        for task in now.iter() {
            if known.remove(&task.id) != Some(task) {
                self.set(format!("task/{team}/{}", task.id), &task_line(task));
            }
        }
        let gone = known
            .into_keys()
            .map(|id| (format!("task/{team}/{id}"), None));
        self.0.extend(gone);
    }

    fn agents(&mut self, team: &str, before: &[AgentScene], now: &[AgentScene]) {
        let mut known: HashMap<&str, &AgentScene> = before
            .iter()
            .map(|agent| (agent.id.as_str(), agent))
            .collect();
        for agent in now {
            if known.remove(agent.id.as_str()) != Some(agent) {
                self.set(format!("agent/{team}/{}", agent.id), &agent_line(agent));
            }
        }
        let gone = known
            .into_keys()
            .map(|id| (format!("agent/{team}/{id}"), None));
        self.0.extend(gone);
    }
}

/// The dependencies of tasks. A piece of its own, because it is long and seldom changes.
fn graph(graph: &GraphScene) -> Value {
    json!({"edges": graph.edges, "criticalPath": graph.critical_path})
}

fn team_head(team: &TeamScene) -> Value {
    let director = |director: &DirectorScene| json!({"who": director.who, "newer": director.newer});
    json!({
        "name": team.name,
        "kind": team.kind,
        "life": match team.life {
            TeamLife::Running => "running",
            TeamLife::Ended => "ended",
            TeamLife::Interrupted => "interrupted",
            TeamLife::Open => "open",
            TeamLife::Vanished => "vanished",
        },
        "director": team.director.as_ref().map(director),
        "personLeads": team.lead == LeadScene::Person,
        "prompt": team.prompt.as_deref().map(|prompt| clean_cut(prompt, 2000)),
        "into": team.into,
        "merge": team.merge,
        "sinceMs": team.since_ms,
        "endedMs": team.ended_ms,
        "counts": team.counts,
        "series": team.progress.series,
        "leftMs": team.progress.left_ms,
        "costAtEnd": team.progress.cost_at_end_usd,
        "tokens": team.totals.tokens,
        "cost": team.totals.cost_usd,
        "costLimit": team.totals.cost_limit_usd,
        "tokenLimit": team.totals.token_limit,
        "spent": team.totals.spent,
        "paused": team.totals.paused.as_ref().map(|(_, why)| why),
        "earlierAgents": team.earlier_agents,
        "troubles": team.troubles,
    })
}

fn mail(team: &TeamScene) -> Value {
    let one = |mail: &observe::live::MailScene| json!({"from": mail.from, "to": mail.to, "kind": mail.kind, "at": mail.sent_ms, "text": clean_cut(&mail.summary, SHORT)});
    let last = team.mail.iter().rev().take(50).map(one);
    Value::Array(last.collect())
}

fn state_word(state: TaskState) -> &'static str {
    match state {
        TaskState::InProgress => "running",
        TaskState::Ready => "ready",
        TaskState::Assigned => "assigned",
        TaskState::Blocked => "blocked",
        TaskState::Parked => "parked",
        TaskState::Reported => "reported",
        TaskState::Completed => "done",
        TaskState::Unreadable => "unreadable",
    }
}

fn land_word(state: LandState) -> &'static str {
    match state {
        LandState::NotDone => "",
        LandState::Nothing => "nothing",
        LandState::Waiting => "waiting",
        LandState::Landed => "landed",
        LandState::Undone => "undone",
    }
}

/// A task as a list shows it.
fn task_line(task: &TaskScene) -> Value {
    json!({
        "id": task.id,
        "subject": clean_cut(&task.subject, SHORT),
        "doing": clean_cut(&task.active_form, SHORT),
        "state": state_word(task.state),
        "owner": task.owner,
        "blockedBy": task.blocked_by,
        "why": task.why,
        "unchecked": task.unchecked,
        "attempts": task.attempts.len(),
        "stuck": task.stuck,
        "landing": land_word(task.landing),
        "doneMs": task.done_ms,
    })
}

/// A task with all details.
pub(super) fn task_whole(task: &TaskScene) -> Value {
    let mut json = task_line(task);
    let attempt = |one: &observe::live::AttemptScene| {
        json!({
            "status": one.status, "why": one.why, "printed": one.printed.join("\n"),
            "at": one.at_ms, "counts": one.counts,
        })
    };
    json["description"] = clean_cut_lines(&task.description).into();
    json["check"] = task.check.clone().into();
    json["command"] = task.command.clone().into();
    json["worktree"] = task.worktree.clone().into();
    json["checkState"] = match task.check_state {
        CheckState::None => "none",
        CheckState::NotRun => "not run",
        CheckState::Red(_) => "failed",
        CheckState::Green(_) => "passed",
    }
    .into();
    json["attemptList"] = task.attempts.iter().map(attempt).collect::<Vec<_>>().into();
    json
}

fn clean_cut_lines(text: &str) -> String {
    store::text::cut_bytes(text, 16 * 1024).0.to_owned()
}

fn agent_line(agent: &AgentScene) -> Value {
    let marks: Vec<&str> = agent.marks.iter().map(|mark| mark.why.as_str()).collect();
    json!({
        "id": agent.id,
        "name": agent.name,
        "type": agent.agent_type,
        "runtime": agent.runtime,
        "model": agent.model,
        "machine": agent.machine,
        "state": agent.state.as_str(),
        "alive": agent.alive,
        "leads": agent.leads,
        "readsMail": agent.reads_mail,
        "task": agent.task,
        "doing": clean_cut(&agent.doing, SHORT),
        "sinceMs": agent.since_ms,
        "endedMs": agent.ended_ms,
        "outcome": agent.outcome.as_deref().map(|text| clean_cut(text, SHORT)),
        "tokens": agent.tokens,
        "cost": agent.cost_usd,
        "tools": agent.tool_uses,
        "last": agent.last.as_deref().map(|text| clean_cut(text, SHORT)),
        "lastMs": agent.last_ms,
        "silentMs": agent.silent_ms,
        "stalled": agent.stalled,
        "marks": marks,
        "parent": agent.parent,
        "fork": agent.fork,
        "worktree": agent.worktree,
    })
}

fn attention(one: &Attention) -> Value {
    let answers: Vec<Value> = one
        .answers
        .iter()
        .map(|act| answer(act, &one.team))
        .collect();
    json!({
        "need": one.need,
        "team": one.team,
        "task": one.task,
        "agent": one.agent,
        "request": one.request,
        "what": one.what,
        "command": one.command,
        "detail": clean_cut_lines(&one.detail),
        "untilMs": one.until_ms,
        "answers": answers,
    })
}

/// A possible action of the person, in the form that the page sends back.
fn answer(act: &Act, team: &str) -> Value {
    json!({
        "act": act,
        "word": act.word(),
        "asksFor": act.asks_for(),
        "command": act.command(team),
    })
}
