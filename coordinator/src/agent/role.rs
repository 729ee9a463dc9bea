//! The tools of each role.

/// The role of the connected program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// Leads a team.
    Lead,
    /// Leads it by planning alone.
    Coordinator,
    /// Works in a team.
    #[default]
    Teammate,
    /// Does one job.
    Worker,
}

/// The board's tools, which every role with tools has.
const BOARD: [&str; 4] = ["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"];
/// Tools for other agents: start, write to, stop, inspect.
const AGENTS: [&str; 4] = ["Agent", "SendMessage", "TaskStop", "TaskOutput"];
const TEAM: [&str; 2] = ["TeamCreate", "TeamDelete"];
const TREE: [&str; 2] = ["EnterWorktree", "ExitWorktree"];
/// All worktrees, for roles that lead.
const TREES: &str = "Worktrees";
/// For a teammate that has to plan first.
pub const PLAN: &str = "ExitPlanMode";
/// For a teammate that does not plan now.
pub const ENTER_PLAN: &str = "EnterPlanMode";

impl Role {
    /// All roles, with their descriptions.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Lead, "Leads a team: everything but plans of its own"),
        (
            Self::Coordinator,
            "Plans and delegates, does nothing itself",
        ),
        (
            Self::Teammate,
            "Works in a team: takes tasks, talks, starts helpers",
        ),
        (Self::Worker, "Does one job; needs none of these tools"),
    ];

    /// The names of its tools, in the order they are listed.
    pub fn tools(self) -> Vec<&'static str> {
        let groups: &[&[&'static str]] = match self {
            Self::Lead => &[&BOARD, &AGENTS, &TEAM, &TREE, &[TREES]],
            Self::Coordinator => &[&BOARD, &AGENTS, &[TREES]],
            Self::Teammate => &[&BOARD, &AGENTS, &[ENTER_PLAN, PLAN], &TREE],
            Self::Worker => &[],
        };
        groups.concat()
    }

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lead => "lead",
            Self::Coordinator => "coordinator",
            Self::Teammate => "teammate",
            Self::Worker => "worker",
        }
    }

    /// True if it leads its team, and so has the lead's name by default.
    pub fn leads(self) -> bool {
        matches!(self, Self::Lead | Self::Coordinator)
    }

    /// Arguments of `Agent` that this role does not have.
    pub fn agent_arguments_without(self) -> &'static [&'static str] {
        match self {
            // Every spawn is a worker in the background, in a worktree of its own, on the model
            // that the engine chooses.
            Self::Coordinator => &[
                "run_in_background",
                "model",
                "team_name",
                "mode",
                "isolation",
                "cwd",
            ],
            // Only agents that end and report; a team has one lead.
            Self::Teammate => &["name", "team_name", "mode"],
            Self::Lead | Self::Worker => &[],
        }
    }
}
