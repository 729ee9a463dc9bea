//! The effects of a plan, without running it.

use serde::Serialize;
use serde_json::{Value, json};

use super::task::{PlannedTask, Work, graph};

/// The tasks with all facts that are known beforehand.
#[derive(Debug, Clone)]
pub struct Preview {
    /// The commit they start from.
    pub base: String,
    /// All tasks.
    pub tasks: Vec<PlannedTask>,
    /// Their ids, level by level: those of one level can run at the same time.
    pub levels: Vec<Vec<String>>,
    /// The longest chain, counted in tasks.
    pub critical_path: Vec<String>,
    /// The worst-case cost.
    pub worst: Worst,
    /// Likely problems.
    pub warnings: Vec<String>,
}

/// The cost if every attempt is needed and uses its whole budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Worst {
    /// Number of attempts.
    pub attempts: u64,
    /// US dollars, for tasks with a limit in money.
    pub usd: f64,
    /// Tokens, for tasks with a limit in tokens.
    pub tokens: u64,
    /// Number of tasks whose agent has no limit.
    pub unlimited: usize,
}

impl Preview {
    /// Previews `tasks` that start from `base`. `finds` is true if a program of that name exists.
    pub fn new(base: &str, tasks: Vec<PlannedTask>, finds: &dyn Fn(&str) -> bool) -> Self {
        let graph = graph(&tasks);
        let name = |at: &usize| tasks[*at].id.clone();
        let levels = graph.levels();
        let levels = levels
            .iter()
            .map(|level| level.iter().map(name).collect())
            .collect();
        let critical_path = graph.longest(|_| 1).1.iter().map(name).collect();
        Self {
            base: base.to_owned(),
            levels,
            critical_path,
            worst: Worst::of(&tasks),
            warnings: warnings(&tasks, finds),
            tasks,
        }
    }

    /// `{"base","tasks","levels","edges","criticalPath","worstCase","warnings"}`.
    pub fn to_json(&self) -> Value {
        let edges: Vec<Value> = self
            .tasks
            .iter()
            .flat_map(|task| task.depends_on.iter().map(move |on| json!([on, task.id])))
            .collect();
        json!({
            "base": self.base,
            "tasks": self.tasks.iter().map(PlannedTask::to_json).collect::<Vec<_>>(),
            "levels": self.levels,
            "edges": edges,
            "criticalPath": self.critical_path,
            "worstCase": self.worst,
            "warnings": self.warnings,
        })
    }
}

impl Worst {
    fn of(tasks: &[PlannedTask]) -> Self {
        let mut worst = Self::default();
        for task in tasks {
            worst.attempts += u64::from(task.attempts);
            let Work::Prompt(_) = task.work else { continue };
            worst.usd += f64::from(task.attempts) * task.budget.usd.unwrap_or(0.0);
            let tokens = task.budget.tokens.unwrap_or(0);
            worst.tokens = worst
                .tokens
                .saturating_add(tokens.saturating_mul(task.attempts.into()));
            worst.unlimited +=
                usize::from(task.budget.usd.is_none() && task.budget.tokens.is_none());
        }
        worst
    }
}

fn warnings(tasks: &[PlannedTask], finds: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut warnings = Vec::new();
    let unproven = tasks.iter().filter(|task| task.verify.is_none()).count();
    if unproven > 0 {
        warnings.push(format!(
            "{} no `verify`: nothing will prove them done",
            counted(unproven, "task has", "tasks have")
        ));
    }
    let mut missing: Vec<&str> = tasks
        .iter()
        .filter_map(|task| tool(task.verify.as_deref()?))
        .filter(|tool| !finds(tool))
        .collect();
    missing.sort_unstable();
    missing.dedup();
    for tool in missing {
        warnings.push(format!("verify: there is no program {tool:?} here"));
    }
    warnings
}

fn counted(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// The program a command starts with, if it plainly starts with one.
pub fn tool(command: &str) -> Option<&str> {
    const OF_THE_SHELL: &[&str] = &[
        "!", ".", ":", "[", "[[", "case", "cd", "command", "echo", "eval", "exec", "exit",
        "export", "false", "for", "if", "printf", "read", "set", "test", "true", "ulimit", "umask",
        "unset", "until", "while", "{",
    ];
    let mut words = command.split_whitespace();
    let word = words.find(|word| !is_assignment(word))?;
    let word = word.trim_end_matches(';');
    let plain = word
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-./+".contains(c));
    (plain && !word.is_empty() && !OF_THE_SHELL.contains(&word)).then_some(word)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let mut chars = name.chars();
        chars
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}
