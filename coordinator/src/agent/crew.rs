//! Makes agents for tasks from the flags, the task, the definitions and the settings.

use std::collections::{BTreeMap, HashMap};

use director::{Crew, Job, Terms};
use fanout::{PlannedTask, TaskIsolation, failed_before, pin_name, planned_as};
use project::workplace::Workplace;
use runs::Spawn;
use store::settings::AgentLimits;
use swarm::definitions::{Definitions, PermissionMode};
use taskboard::Task;
use worktrees::{Base, SetUp};

use super::describe::{Wish, describe};
use super::role::Role;

/// Maximum bytes of a failure that a variable passes on.
const MAX_FAILURE: usize = 8 * 1024;

/// Makes agents for tasks.
#[derive(Debug)]
pub(crate) struct TaskCrew {
    /// The workplace they are started from.
    pub workplace: Workplace,
    /// The available agent types.
    pub definitions: Definitions,
    /// The runtime of tasks without a command; `None` means the default.
    pub runtime: Option<String>,
    /// The model they use.
    pub model: Option<String>,
    /// The permission mode; `None` leaves it to their definitions.
    pub permission_mode: Option<String>,
    /// The setup of worktrees, besides their files.
    pub set_up: SetUp,
    /// The role that decides their tools of ccb.
    pub role: Role,
    /// Variables that all of them get or inherit.
    pub env: Vec<String>,
}

impl TaskCrew {
    /// The agent type for a task that names none.
    fn usual_type(&self) -> Option<&'static str> {
        (self.role == Role::Worker).then_some("worker")
    }

    /// The runtime for a task: that of its agent type, else that of its slot, else that of all.
    fn runtime_for(&self, job: &Job<'_>) -> Option<String> {
        let named = job.task.agent_type().or(self.usual_type());
        let named = named.and_then(|name| self.definitions.get(name).ok());
        let own = named.and_then(|found| found.definition.runtime.clone());
        own.or(job.seat.runtime.clone()).or(self.runtime.clone())
    }

    fn wish(&self, job: &Job<'_>) -> Wish {
        let task = job.task;
        let mut env = self.env.clone();
        env.push(format!("CCB_ATTEMPT={}", job.attempt));
        if let Some(failure) = &job.last_failure {
            env.push(format!("CCB_LAST_FAILURE={}", end_of(failure, MAX_FAILURE)));
        }
        // A command needs a shell, whatever agents there are.
        let command = task.run_command().is_some();
        Wish {
            prompt: (!command).then(|| prompt(job)),
            description: Some(task.subject.clone()),
            agent_type: match command {
                true => None,
                false => task.agent_type().or(self.usual_type()).map(str::to_owned),
            },
            runtime: match command {
                true => Some("shell".into()),
                false => self.runtime_for(job),
            },
            model: self.model.clone(),
            permission_mode: self
                .permission_mode
                .as_deref()
                .and_then(PermissionMode::parse),
            name: job.seat.name.as_ref().map(ToString::to_string),
            role: self.role,
            worktree: job
                .base
                .clone()
                .map(|base| (Base::Given(base), self.set_up.clone())),
            cwd: job.base.is_none().then(|| self.workplace.directory.clone()),
            task: Some(task.clone()),
            env,
            ..Wish::default()
        }
    }
}

impl Crew for TaskCrew {
    fn agent_for(&self, job: &Job<'_>) -> Result<Spawn, String> {
        let wish = self.wish(job);
        describe(&wish, &self.definitions, &self.workplace).map_err(|error| error.in_a_line())
    }

    fn terms(&self, _task: &Task) -> Terms {
        Terms {
            protect: self.workplace.settings().worktree.protect.clone(),
            ..Terms::default()
        }
    }

    fn runtimes_of_types(&self) -> BTreeMap<String, String> {
        let named = self.definitions.iter().filter_map(|found| {
            let definition = &found.definition;
            Some((definition.name.to_string(), definition.runtime.clone()?))
        });
        named.collect()
    }
}

/// Makes agents for the tasks of a plan, each with its values from the plan.
#[derive(Debug)]
pub(crate) struct PlanCrew {
    /// The values for all tasks.
    pub crew: TaskCrew,
    /// By content key.
    pub tasks: HashMap<String, PlannedTask>,
    /// Maximum cost of one agent in US dollars, whatever its task sets.
    pub budget_usd: Option<f64>,
}

impl PlanCrew {
    fn planned(&self, task: &Task) -> Option<&PlannedTask> {
        let (_, key) = planned_as(task)?;
        self.tasks.get(key)
    }

    fn limits(&self, task: &PlannedTask) -> AgentLimits {
        let least = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        AgentLimits {
            turns: None,
            wall_clock: task.timeout,
            tokens: task.budget.tokens,
            cost_usd: least(task.budget.usd, self.budget_usd),
        }
    }
}

impl Crew for PlanCrew {
    fn agent_for(&self, job: &Job<'_>) -> Result<Spawn, String> {
        // Failures in an earlier run of the plan count.
        let (before, why) = failed_before(job.task);
        let job = &Job {
            attempt: job.attempt + before,
            last_failure: job.last_failure.clone().or(why.map(str::to_owned)),
            ..job.clone()
        };
        let mut wish = self.crew.wish(job);
        let Some(planned) = self.planned(job.task) else {
            return Err("the plan does not know it".into());
        };
        let shell = job.task.run_command().is_some();
        if !shell {
            wish.runtime = planned.runtime.clone().or(wish.runtime);
            wish.model = planned.model.clone().or(wish.model);
        }
        let env = planned.env.iter();
        wish.env
            .extend(env.map(|(name, value)| format!("{name}={value}")));
        wish.limits = self.limits(planned);
        if planned.isolation == TaskIsolation::None {
            wish.worktree = None;
            wish.cwd = Some(self.crew.workplace.directory.clone());
        }
        let (crew, workplace) = (&self.crew, &self.crew.workplace);
        describe(&wish, &crew.definitions, workplace).map_err(|error| error.in_a_line())
    }

    fn terms(&self, task: &Task) -> Terms {
        let Some(planned) = self.planned(task) else {
            return Terms::default();
        };
        Terms {
            attempts: usize::try_from(planned.attempts).ok(),
            all_attempts: true,
            verify_timeout: planned.timeout,
            check_retries: planned.check_retries,
            keep_as: Some(pin_name(&planned.key)),
            protect: [self.crew.terms(task).protect, planned.protect.clone()].concat(),
        }
    }
}

/// The prompt for a task.
fn prompt(job: &Job<'_>) -> String {
    let task = job.task;
    let mut text = format!("Task #{}: {}", task.id, task.subject);
    if !task.description.trim().is_empty() {
        text.push_str(&format!("\n\n{}", task.description));
    }
    let paths = task.paths();
    if !paths.is_empty() {
        text.push_str(&format!(
            "\n\nKeep to these paths; others are at work elsewhere: {}",
            paths.join(", ")
        ));
    }
    if job.base.is_some() {
        text.push_str(
            "\n\nYou work in a git worktree of your own. Everything you leave in it is committed \
             when you end your turn; do not switch branches, and do not touch other directories.",
        );
    }
    if let Some(verify) = task.verify_command() {
        text.push_str(&format!(
            "\n\nThe task is done when this succeeds in your directory: `{verify}`. It is run \
             again after you have ended your turn, so run it yourself first."
        ));
    }
    if let Some(failure) = &job.last_failure {
        text.push_str(&format!(
            "\n\nThis is attempt {}. The one before it failed:\n{}",
            job.attempt,
            end_of(failure, MAX_FAILURE)
        ));
    }
    text
}

/// The end of a text, at most `most` bytes.
fn end_of(text: &str, most: usize) -> &str {
    let mut start = text.len().saturating_sub(most);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_text_is_cut_between_characters() {
        assert_eq!(end_of("häh", 2), "h");
        assert_eq!(end_of("häh", 3), "äh");
        assert_eq!(end_of("hi", 9), "hi");
    }
}
