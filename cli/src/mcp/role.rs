//! Who may do what: the tools of each role.

use clap::ValueEnum;

/// What the one at the other end of the connection is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Leads a team: everything but plans of its own
    Lead,
    /// Plans and delegates, does nothing itself
    Coordinator,
    /// Works in a team: takes tasks, talks, starts helpers
    #[default]
    Teammate,
    /// Does one job; needs none of these tools
    Worker,
}

/// The board's tools, which everybody has who has any.
const BOARD: [&str; 4] = ["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"];
/// Other agents: started, written to, stopped, looked at.
const AGENTS: [&str; 4] = ["Agent", "SendMessage", "TaskStop", "TaskOutput"];
const TEAM: [&str; 2] = ["TeamCreate", "TeamDelete"];
const TREE: [&str; 2] = ["EnterWorktree", "ExitWorktree"];
/// Of a teammate that has to plan first.
pub(super) const PLAN: &str = "ExitPlanMode";

impl Role {
    /// The names of its tools, in the order they are listed.
    pub(crate) fn tools(self) -> Vec<&'static str> {
        let groups: &[&[&'static str]] = match self {
            Self::Lead => &[&BOARD, &AGENTS, &TEAM, &TREE],
            Self::Coordinator => &[&BOARD, &AGENTS],
            Self::Teammate => &[&BOARD, &AGENTS, &[PLAN], &TREE],
            Self::Worker => &[],
        };
        groups.concat()
    }

    /// Its name on the command line.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Lead => "lead",
            Self::Coordinator => "coordinator",
            Self::Teammate => "teammate",
            Self::Worker => "worker",
        }
    }

    /// Whether it leads its team, and so has the lead's name if it was given none.
    pub(crate) fn leads(self) -> bool {
        matches!(self, Self::Lead | Self::Coordinator)
    }

    /// Arguments of `Agent` that are none of its business.
    pub(super) fn agent_arguments_without(self) -> &'static [&'static str] {
        match self {
            // Every spawn is a worker in the background, in a tree of its own, on the model the
            // engine picks.
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
