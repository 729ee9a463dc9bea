//! The agents of other machines, as a view shows them.

use project::away::{Away, Whereabouts};
use store::text::clean_cut;
use swarm::run::RunState;
use taskboard::Snapshot;
use team::Team;

use super::scene::AgentScene;

/// Poll interval for the agents of other machines, in ms.
const EVERY: i64 = 1_000;

/// The agents of a team that are on other machines.
#[derive(Debug)]
pub(super) struct Elsewhere {
    team: Team,
    known: Whereabouts,
    looked: Option<i64>,
}

impl Elsewhere {
    pub(super) fn new(team: Team) -> Self {
        Self {
            team,
            known: Whereabouts::default(),
            looked: None,
        }
    }

    /// Returns the agents on other machines, and the error if reading failed. `local` are the
    /// agents of this one.
    pub(super) fn look(
        &mut self,
        board: &Snapshot,
        local: &[AgentScene],
        now_ms: i64,
    ) -> (Vec<AgentScene>, Option<String>) {
        let due = |at: i64| now_ms - at >= EVERY || now_ms < at;
        let mut trouble = None;
        if self.looked.is_none_or(due) {
            self.looked = Some(now_ms);
            match Whereabouts::of(&self.team) {
                Ok(known) => self.known = known,
                Err(error) => trouble = Some(clean_cut(&error.to_string(), super::TROUBLE)),
            }
        }
        let alive = local.iter().filter(|agent| agent.alive);
        let local: Vec<&str> = alive.map(|agent| agent.name.as_str()).collect();
        let away = self.known.away(board, &local).into_iter();
        (away.map(scene_of).collect(), trouble)
    }
}

fn scene_of(away: Away) -> AgentScene {
    AgentScene {
        id: away.id,
        name: away.name,
        agent_type: away.agent_type,
        runtime: String::new(),
        model: away.model,
        machine: Some(away.host),
        state: match away.task {
            Some(_) => RunState::Running,
            None => RunState::Idle,
        },
        alive: true,
        leads: away.leads,
        teammate: away.member,
        reads_mail: away.reads_mail,
        task: away.task,
        doing: away.doing,
        since_ms: away.since_ms,
        ended_ms: None,
        outcome: None,
        tokens: 0,
        cost_usd: 0.0,
        tool_uses: 0,
        last: None,
        last_ms: None,
        silent_ms: None,
        stalled: None,
        marks: Vec::new(),
        color: away.color,
        parent: String::new(),
        fork: false,
        order: None,
        worktree: None,
        branch: None,
    }
}
