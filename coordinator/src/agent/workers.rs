//! A coordinator's workers, and the rules that bind it regardless of its prompt: a maximum number
//! at the same time, one writer per file, and no worker that must do the coordinator's thinking.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::agent::Role;
use crate::agent::Wish;
use director::{WorkerTask, base_of_all, may_begin};
use project::workplace::Workplace;
use runs::session_file::{SessionFile, TeamSession};
use runs::{Agents, Spawn};
use store::Failure;
use store::agent_id::LEAD;
use swarm::run::Meta;
use taskboard::{Caller, Task};
use worktrees::Base;

use super::own_agents::{asked_by_caller, under_way};
use super::service::Spawned;

/// The agent type of a worker if the request names none.
pub(crate) const USUAL_TYPE: &str = "worker";
/// A line of a prompt that begins like this names the files the worker may change.
const PATHS: &str = "paths:";
/// The prefix of the line with the check.
const VERIFY: &str = "verify:";

/// Words by which a prompt leaves the coordinator's thinking to the worker, or refers to texts the
/// worker has never seen.
const DELEGATES: [&str; 13] = [
    "based on your findings",
    "based on the findings",
    "based on your research",
    "based on the research",
    "based on your analysis",
    "based on what you found",
    "based on what you learned",
    "fix what you found",
    "as discussed",
    "as we discussed",
    "per our discussion",
    "from our conversation",
    "the other worker found",
];

/// Starts workers for a coordinator, one after another.
#[derive(Debug, Default)]
pub(super) struct Workers {
    /// Prompts that were refused once.
    sent_back: Mutex<BTreeSet<String>>,
    /// Makes the check and the start of a worker one step.
    turn: Mutex<()>,
}

impl Workers {
    /// Starts a worker in the background, with a task of its own that no list shows.
    pub(super) fn spawn(
        &self,
        wish: &Wish,
        workplace: &Workplace,
        agents: &Agents,
    ) -> Result<Spawned, Failure> {
        self.check_understood(wish.prompt.as_deref().unwrap_or_default())?;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let session = session(workplace)?;
        check_number(session.as_ref(), agents)?;
        let task = header(wish);
        let board = workplace.board();
        if let Some(other) = may_begin(&task.paths, &board)? {
            return Err(in_the_way(&task.paths, &other));
        }
        let mut spawn = request(wish, session.as_ref(), workplace, agents)?;
        let id = task.create(&board)?;
        spawn.task = Some(id);
        spawn.plan.prove = Some(task.prove(id, &board, &workplace.settings().worktree.protect));
        match agents.spawn(&spawn) {
            Ok(launched) => {
                let note = Some(note(&spawn, &task));
                Ok(Spawned::new(under_way(&launched, false), note))
            }
            Err(error) => {
                let caller = Caller::forced(LEAD);
                board.delete(id, &caller).ok();
                Err(error.into())
            }
        }
    }

    /// Checks that a worker may get this text; a worker that has ended resumes with it.
    pub(super) fn may_go_on(
        &self,
        meta: &Meta,
        text: &str,
        workplace: &Workplace,
        agents: &Agents,
    ) -> Result<(), Failure> {
        self.check_understood(text)?;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if meta.address() == LEAD || agents.is_alive(meta)? {
            return Ok(());
        }
        check_number(session(workplace)?.as_ref(), agents)?;
        let board = workplace.board();
        let paths = meta
            .task_id
            .as_ref()
            .and_then(|id| id.parse().ok())
            .and_then(|id| board.get(id).ok())
            .map_or_else(Vec::new, |task| task.paths());
        if let Some(other) = may_begin(&paths, &board)? {
            return Err(in_the_way(&paths, &other));
        }
        WorkerTask::reopen(meta, &board)?;
        Ok(())
    }

    /// Refuses a text, once, that leaves the thinking to its reader.
    fn check_understood(&self, text: &str) -> Result<(), Failure> {
        let lower = text.to_lowercase();
        let Some(words) = DELEGATES.iter().find(|words| lower.contains(*words)) else {
            return Ok(());
        };
        let mut sent_back = self
            .sent_back
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !sent_back.insert(text.to_owned()) {
            return Ok(());
        }
        Err(Failure::refused(
            "not_understood",
            format!(
                "nothing was started: {words:?} leaves to the worker what you should know yourself"
            ),
        )
        .with_hint(
            "read the results, decide, and name the files, the lines, what is to change and \
                 when it is done; the very same text goes through the second time",
        ))
    }
}

fn session(workplace: &Workplace) -> Result<Option<TeamSession>, Failure> {
    let team = workplace.team()?;
    let file = SessionFile::new(workplace.home(), &team);
    Ok(file.session()?)
}

/// Limits the number of running workers to the session's number of teammates, including the
/// workers of the board.
fn check_number(session: Option<&TeamSession>, agents: &Agents) -> Result<(), Failure> {
    let Some(most) = session.map(|session| session.mates) else {
        return Ok(());
    };
    let (listed, _) = agents.list()?;
    let at_work = listed
        .iter()
        .filter(|one| one.alive && one.meta.address() != LEAD)
        .count();
    if at_work < most {
        return Ok(());
    }
    Err(Failure::refused(
        "too_many_workers",
        format!("{at_work} workers are at work, and no more than {most} may be"),
    )
    .with_hint(
        "end your turn; a <task-notification> comes when one ends. Work that can wait goes on \
             the board",
    ))
}

fn in_the_way(paths: &[String], other: &Task) -> Failure {
    let who = match (&other.owner, other.is_internal()) {
        (Some(owner), true) => format!("worker {owner} ({})", other.subject),
        (Some(owner), false) => format!("{owner}, on task #{} ({})", other.id, other.subject),
        (None, _) => format!(
            "task #{} ({}), which starts by itself",
            other.id, other.subject
        ),
    };
    Failure::refused(
        "paths_taken",
        format!(
            "{} already belongs to {who}: a file has one writer at a time",
            paths.join(", ")
        ),
    )
    .with_hint(
        "wait for its <task-notification>, stop it, or make this a task on the board that is \
             blocked by it",
    )
}

/// The header of the prompt: the files of the work, and its check.
fn header(wish: &Wish) -> WorkerTask {
    let prompt = wish.prompt.as_deref().unwrap_or_default();
    let line = |key: &str| {
        prompt.lines().find_map(|line| {
            let line = line.trim_start_matches(['-', '*', ' ']);
            let start = line.get(..key.len())?;
            let rest = line[key.len()..].trim();
            (start.eq_ignore_ascii_case(key) && !rest.is_empty()).then_some(rest)
        })
    };
    let paths = line(PATHS).unwrap_or_default();
    let subject = wish
        .description
        .as_deref()
        .and_then(|text| text.lines().next())
        .unwrap_or_default();
    WorkerTask {
        subject: subject.chars().take(200).collect(),
        lead: LEAD.into(),
        paths: paths
            .split([',', ' '])
            .map(|path| path.trim_matches('`'))
            .filter(|path| !path.is_empty())
            .map(str::to_owned)
            .collect(),
        verify: line(VERIFY).map(|command| command.trim_matches('`').to_owned()),
    }
}

fn request(
    wish: &Wish,
    session: Option<&TeamSession>,
    workplace: &Workplace,
    agents: &Agents,
) -> Result<Spawn, Failure> {
    let worktree = match workplace.trees() {
        Ok(_) => {
            let (base, set_up) = workplace.usual_tree()?;
            let base = match session.and_then(|session| session.into.as_ref()) {
                Some(into) => Base::Given(base_of_all(into, agents)?),
                None => base,
            };
            Some((base, set_up))
        }
        Err(_) => None,
    };
    let usual = || Some(USUAL_TYPE.to_owned());
    let wish = Wish {
        prompt: wish.prompt.clone(),
        description: wish.description.clone(),
        agent_type: wish.agent_type.clone().or_else(usual),
        runtime: session.and_then(|session| session.runtime.clone()),
        name: wish.name.clone(),
        role: Role::Worker,
        background: true,
        worktree,
        coordinator: true,
        ..Wish::default()
    };
    asked_by_caller(&wish, workplace)
}

/// A note for the coordinator.
fn note(spawn: &Spawn, task: &WorkerTask) -> String {
    let mut text = format!("Its type is {}.", spawn.agent_type);
    if !task.paths.is_empty() {
        text.push_str(&format!(" Its files: {}.", task.paths.join(", ")));
    }
    if let Some(verify) = &task.verify {
        text.push_str(&format!(" It is done when `{verify}` succeeds."));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_says_which_files_and_which_check() {
        let read = |prompt: &str| {
            let wish = Wish {
                description: Some("rename it".into()),
                prompt: Some(prompt.into()),
                ..Wish::default()
            };
            let task = header(&wish);
            (task.paths.join(" "), task.verify.unwrap_or_default())
        };
        for (prompt, paths, verify) in [
            ("Look at src.", "", ""),
            ("Paths: src/a.sh, src/b.sh\nDo it.", "src/a.sh src/b.sh", ""),
            (
                "Do it.\n- paths: `src/a.sh`\n- Verify: `sh t.sh a`",
                "src/a.sh",
                "sh t.sh a",
            ),
            ("Paths:\nVerify:\n", "", ""),
            ("päths: x", "", ""),
        ] {
            assert_eq!(read(prompt), (paths.into(), verify.into()), "{prompt}");
        }
    }

    #[test]
    fn a_text_that_delegates_understanding_is_sent_back_once() {
        let workers = Workers::default();
        let lazy = "Based on your findings, fix the bug.";
        assert!(workers.check_understood(lazy).is_err());
        assert!(workers.check_understood(lazy).is_ok());
        assert!(workers.check_understood("As discussed: go on.").is_err());
        assert!(
            workers
                .check_understood("Fix src/a.sh:3: quote $x.")
                .is_ok()
        );
    }
}
