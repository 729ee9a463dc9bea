//! The list of each pane: its content and order after the filter and time.

use std::collections::HashMap;

use observe::live::{AgentScene, Attention, MailScene, TaskScene, TaskState};
use taskboard::TaskId;

use crate::model::{AgentKey, GRACE_MS, Model, Pane};

/// The agents shown, in order, and the number of finished ones that are folded away.
pub(crate) fn agents(model: &Model) -> (Vec<&AgentScene>, usize) {
    let Some(team) = model.team() else {
        return (Vec::new(), 0);
    };
    let mut folded = team.earlier_agents;
    let mut shown: Vec<&AgentScene> = Vec::new();
    for agent in &team.agents {
        let key = AgentKey {
            team: team.name.clone(),
            id: agent.id.clone(),
        };
        if model.dismissed.contains(&key) || (is_over(agent, model) && !is_looked_at(&key, model)) {
            folded += 1;
        } else if matches(model, &[&agent.name, &agent.agent_type, &agent.doing]) {
            shown.push(agent);
        }
    }
    // The lead, then working, waiting and finished agents; each by age.
    shown.sort_by_key(|agent| {
        let rank = match (agent.alive, is_working(agent)) {
            _ if agent.leads && agent.alive => 0,
            (true, true) => 1,
            (true, false) => 2,
            (false, _) => 3,
        };
        (rank, agent.since_ms)
    });
    (shown, folded)
}

/// True if it ended long enough ago to be folded away.
fn is_over(agent: &AgentScene, model: &Model) -> bool {
    let ended = agent.ended_ms.unwrap_or(i64::MIN);
    !agent.alive && !model.show_finished && ended.saturating_add(GRACE_MS) <= model.now
}

fn is_looked_at(key: &AgentKey, model: &Model) -> bool {
    let looks = matches!(model.pane, Pane::Transcript | Pane::Changes);
    looks && model.transcript.agent.as_ref() == Some(key)
}

/// True if the agent works, and does not wait for work.
pub(crate) fn is_working(agent: &AgentScene) -> bool {
    agent.alive && agent.state.as_str() == "running"
}

/// The tasks shown: running and stuck ones before those that can wait.
pub(crate) fn tasks(model: &Model) -> Vec<&TaskScene> {
    let all = model.team().map(|team| team.tasks.as_slice());
    let mut shown: Vec<&TaskScene> = all
        .unwrap_or_default()
        .iter()
        .filter(|task| {
            let id = format!("#{}", task.id);
            let owner = task.owner.as_deref().unwrap_or_default();
            matches(model, &[&id, &task.subject, owner, state_word(task.state)])
        })
        .collect();
    shown.sort_by_key(|task| (rank(task.state), task.id));
    shown
}

fn rank(state: TaskState) -> u8 {
    match state {
        TaskState::InProgress | TaskState::Reported => 0,
        TaskState::Parked | TaskState::Unreadable => 1,
        TaskState::Ready | TaskState::Assigned => 2,
        TaskState::Blocked => 3,
        TaskState::Completed => 4,
    }
}

/// The name of a task's state.
pub(crate) fn state_word(state: TaskState) -> &'static str {
    match state {
        TaskState::InProgress => "in progress",
        TaskState::Ready => "ready",
        TaskState::Assigned => "assigned",
        TaskState::Blocked => "blocked",
        TaskState::Parked => "parked",
        TaskState::Reported => "being checked",
        TaskState::Completed => "done",
        TaskState::Unreadable => "unreadable",
    }
}

/// The entries that need a person, of every team.
pub(crate) fn needs(model: &Model) -> Vec<&Attention> {
    let all = model.scene.attention.iter();
    match model.pane {
        Pane::Needs => all
            .filter(|one| matches(model, &[&one.what, &one.team]))
            .collect(),
        _ => all.collect(),
    }
}

/// The mail, newest first.
pub(crate) fn mail(model: &Model) -> Vec<&MailScene> {
    let all = model.team().map(|team| team.mail.as_slice());
    let all = all.unwrap_or_default().iter().rev();
    all.filter(|mail| matches(model, &[&mail.from, &mail.to, &mail.summary]))
        .collect()
}

fn matches(model: &Model, texts: &[&str]) -> bool {
    if model.filter.is_empty() {
        return true;
    }
    let wanted = model.filter.to_lowercase();
    texts
        .iter()
        .any(|text| text.to_lowercase().contains(&wanted))
}

/// The key that identifies an entry: the same request, else the same kind of trouble with the same
/// thing.
pub(crate) fn need_key(one: &Attention) -> String {
    let task = one.task.map(|id| id.to_string()).unwrap_or_default();
    let request = one.request.as_deref().unwrap_or_default();
    let agent = one.agent.as_deref().unwrap_or_default();
    format!("{}/{:?}/{task}/{request}/{agent}", one.team, one.need)
}

/// The keys of a pane's rows; empty if the pane has no list.
pub(crate) fn keys(model: &Model, pane: Pane) -> Vec<String> {
    match pane {
        Pane::Agents => {
            let (agents, _) = agents(model);
            agents.iter().map(|agent| agent.id.clone()).collect()
        }
        Pane::Board | Pane::Progress => {
            let tasks = tasks(model);
            tasks.iter().map(|task| task.id.to_string()).collect()
        }
        Pane::Graph => {
            let rows = graph(model);
            rows.iter().map(|row| row.task.id.to_string()).collect()
        }
        Pane::Mail => mail(model).iter().map(|mail| mail.id.clone()).collect(),
        Pane::Needs => needs(model).iter().map(|one| need_key(one)).collect(),
        Pane::Transcript | Pane::Changes => Vec::new(),
    }
}

/// A row of the graph.
#[derive(Debug)]
pub(crate) struct GraphRow<'a> {
    /// The lines that lead to the row.
    pub(crate) prefix: String,
    pub(crate) task: &'a TaskScene,
    /// The tasks it waits for besides the one it stands below.
    pub(crate) also: Vec<TaskId>,
}

/// The tasks as a tree: each below the last of those it waits for.
pub(crate) fn graph(model: &Model) -> Vec<GraphRow<'_>> {
    let Some(team) = model.team() else {
        return Vec::new();
    };
    let mut level = HashMap::new();
    for (number, ids) in team.graph.levels.iter().enumerate() {
        level.extend(ids.iter().map(|id| (*id, number)));
    }
    let mut waits: HashMap<TaskId, Vec<TaskId>> = HashMap::new();
    for (first, then) in &team.graph.edges {
        waits.entry(*then).or_default().push(*first);
    }
    let mut below: HashMap<Option<TaskId>, Vec<&TaskScene>> = HashMap::new();
    for task in team.tasks.iter() {
        let on = waits.get(&task.id).map(Vec::as_slice).unwrap_or_default();
        // A task in a circle has no level: it stands at the top.
        let above = level.get(&task.id).and_then(|own| {
            let mut before = on
                .iter()
                .filter(|id| level.get(id).is_some_and(|it| it < own));
            let first = before.next()?;
            Some(before.fold(*first, |a, b| if level[b] > level[&a] { *b } else { a }))
        });
        below.entry(above).or_default().push(task);
    }
    let mut rows = Vec::new();
    let roots = below.get(&None).cloned().unwrap_or_default();
    // Without recursion: a chain can be as long as the board.
    let mut open: Vec<(Option<TaskId>, String, String, &TaskScene)> = Vec::new();
    open.extend(
        roots
            .iter()
            .rev()
            .map(|task| (None, String::new(), String::new(), *task)),
    );
    while let Some((above, prefix, inner, task)) = open.pop() {
        let on = waits.get(&task.id).cloned().unwrap_or_default();
        rows.push(GraphRow {
            prefix,
            task,
            also: on.into_iter().filter(|id| Some(*id) != above).collect(),
        });
        let children = below
            .get(&Some(task.id))
            .map(Vec::as_slice)
            .unwrap_or_default();
        for (n, child) in children.iter().enumerate().rev() {
            let last = n + 1 == children.len();
            let (here, further) = if last {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            let prefix = format!("{inner}{here}");
            open.push((Some(task.id), prefix, format!("{inner}{further}"), child));
        }
    }
    rows.retain(|row| matches(model, &[&row.task.subject]));
    rows
}

/// The chosen agent: in the list of agents, else the agent of the chosen entry.
pub(crate) fn chosen_agent(model: &Model) -> Option<(&str, &AgentScene)> {
    let team = model.team()?;
    let of_task = |task: &TaskScene| {
        let mut agents = team.agents.iter();
        agents.rfind(|agent| agent.task == Some(task.id))
    };
    let agent = match model.pane {
        Pane::Transcript | Pane::Changes => {
            let key = model.transcript.agent.as_ref()?;
            let team = model.scene.team(&key.team)?;
            let agent = team.agents.iter().find(|agent| agent.id == key.id)?;
            return Some((&team.name, agent));
        }
        Pane::Needs => {
            let one = *needs(model).get(model.chosen(Pane::Needs))?;
            let team = model.scene.team(&one.team)?;
            let named = one.agent.as_deref().and_then(|name| team.agent(name));
            let of_task = || {
                let task = one.task?;
                team.agents.iter().rfind(|agent| agent.task == Some(task))
            };
            return Some((&team.name, named.or_else(of_task)?));
        }
        Pane::Mail => {
            let mail = *mail(model).get(model.chosen(Pane::Mail))?;
            team.agent(&mail.from)
        }
        Pane::Board | Pane::Graph | Pane::Progress => of_task(chosen_task(model)?.1),
        Pane::Agents => agents(model).0.get(model.chosen(Pane::Agents)).copied(),
    };
    Some((&team.name, agent?))
}

/// The chosen task: in a list of tasks, else the task of the chosen entry.
pub(crate) fn chosen_task(model: &Model) -> Option<(&str, &TaskScene)> {
    let team = model.team()?;
    let id = match model.pane {
        Pane::Board | Pane::Progress => tasks(model).get(model.chosen(model.pane)).map(|it| it.id),
        Pane::Graph => graph(model)
            .get(model.chosen(Pane::Graph))
            .map(|it| it.task.id),
        Pane::Needs => {
            let one = *needs(model).get(model.chosen(Pane::Needs))?;
            let team = model.scene.team(&one.team)?;
            let task = one.task.and_then(|id| team.task(id))?;
            return Some((&team.name, task));
        }
        Pane::Changes => {
            let (of, _) = model.changes.as_ref()?;
            match of.what.parse() {
                Ok(id) => Some(id),
                Err(_) => team.agent(&of.what)?.task,
            }
        }
        Pane::Agents | Pane::Transcript | Pane::Mail => chosen_agent(model)?.1.task,
    };
    Some((&team.name, team.task(id?)?))
}

/// The chosen entry of those that need a person: in their list, else the one that the chosen agent
/// or task waits for.
pub(crate) fn chosen_need(model: &Model) -> Option<&Attention> {
    let all = needs(model);
    if model.pane == Pane::Needs {
        return all.get(model.chosen(Pane::Needs)).copied();
    }
    let (team, agent) = chosen_agent(model)?;
    all.into_iter()
        .find(|one| one.team == team && one.agent.as_deref() == Some(agent.name.as_str()))
}
