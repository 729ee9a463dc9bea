//! Who may do what: the tools of each role.

/// What the one at the other end of the connection is.
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

/// The board's tools, which everybody has who has any.
const BOARD: [&str; 4] = ["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"];
/// Other agents: started, written to, stopped, looked at.
const AGENTS: [&str; 4] = ["Agent", "SendMessage", "TaskStop", "TaskOutput"];
const TEAM: [&str; 2] = ["TeamCreate", "TeamDelete"];
const TREE: [&str; 2] = ["EnterWorktree", "ExitWorktree"];
/// All worktrees, for whoever leads.
const TREES: &str = "Worktrees";
/// Of a teammate that has to plan first.
pub const PLAN: &str = "ExitPlanMode";
/// Of a teammate that does not plan now.
pub const ENTER_PLAN: &str = "EnterPlanMode";

impl Role {
    /// All of them, with what each is for.
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

    /// Whether it leads its team, and so has the lead's name if it was given none.
    pub fn leads(self) -> bool {
        matches!(self, Self::Lead | Self::Coordinator)
    }

    /// Arguments of `Agent` that are none of its business.
    pub fn agent_arguments_without(self) -> &'static [&'static str] {
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
