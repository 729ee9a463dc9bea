//! The hooks of a run: those of the settings and those of its agent's definition.

use std::ffi::OsString;
use std::path::PathBuf;

use swarm::hooks::{HookEvent, HookInput, Hooks};
use swarm::run::{DefinedHooks, HookCall, LaunchPlan, Meta, RunDir};
use swarm::trust::{Item, SERVERS, servers_of};

use super::agents::Agents;
use crate::hooks::{Surrounding, not_trusted_words};

/// Variables that say where an agent belongs; its hooks belong there, too.
const BELONGS: &[&str] = &["CLAUDE_CODE_TASK_LIST_ID", "CLAUDE_CODE_TEAM_NAME"];

/// The data a host needs to run hooks.
#[derive(Debug)]
pub(super) struct RunHooks {
    cwd: PathBuf,
    input: HookInput,
    defined: Option<DefinedHooks>,
    agent_type: String,
    environment: Vec<(OsString, OsString)>,
}

impl RunHooks {
    /// `given` is the host's own environment, `env` the agent's. Hooks are the user's commands,
    /// so they see what the user sees; and they are part of the run, so they carry its marker.
    pub(super) fn new(
        run: &RunDir,
        meta: &Meta,
        plan: &LaunchPlan,
        given: &[(OsString, OsString)],
        env: &[(OsString, OsString)],
    ) -> Self {
        let ours = |name: &OsString| {
            let name = name.to_string_lossy();
            name.starts_with("CCB_") || BELONGS.contains(&name.as_ref())
        };
        let theirs = given.iter().filter(|(name, _)| !ours(name));
        let own = env.iter().filter(|(name, _)| ours(name));
        let mut input = HookInput {
            cwd: meta.cwd.clone(),
            session_id: meta.session.clone(),
            agent_id: Some(meta.agent_id.clone()),
            agent_type: Some(meta.agent_type.clone()),
            task_id: meta.task_id.clone(),
            teammate_name: meta.teammate.then(|| meta.address().to_owned()),
            team_name: Some(meta.team.clone()),
            ..HookInput::default()
        };
        let transcript = run.path().join("transcript.jsonl");
        let transcript = transcript.to_string_lossy().into_owned();
        let more = &mut input.more;
        more.insert("agent_transcript_path".into(), transcript.into());
        more.insert("description".into(), meta.description.clone().into());
        Self {
            cwd: meta.cwd.clone(),
            input,
            defined: plan.hooks.clone(),
            agent_type: meta.agent_type.clone(),
            environment: theirs.chain(own).cloned().collect(),
        }
    }

    /// The hooks for `event` as they are now: settings may change while an agent runs, and what it
    /// does in its worktree must not become what the user trusted.
    pub(super) fn call(&self, event: HookEvent, agents: &Agents) -> HookCall {
        let around = Surrounding::of(agents.directory());
        let around = Surrounding {
            tree: Surrounding::of(&self.cwd).tree,
            ..around
        };
        let hooks = self.all(around.hooks(agents.home()));
        let mut notes: Vec<String> = hooks.problems.iter().map(ToString::to_string).collect();
        if !hooks.all.iter().any(|hook| hook.event == event) {
            return HookCall::default();
        }
        let granted = around.granted(agents.home(), agents.lock_timeout());
        // A teammate's type does not matter for its idle hooks.
        let agent_type = match event {
            HookEvent::TeammateIdle => None,
            _ => Some(self.agent_type.as_str()),
        };
        let chosen = around.choose(&hooks, event, agent_type, &granted);
        if !chosen.untrusted.is_empty() {
            notes.push(not_trusted_words(&chosen.untrusted));
        }
        HookCall {
            run: chosen.run,
            input: HookInput {
                project: around.project,
                ..self.input.clone()
            },
            environment: self.environment.clone(),
            notes,
        }
    }

    fn all(&self, hooks: Hooks) -> Hooks {
        match &self.defined {
            Some(DefinedHooks { source, events }) => {
                hooks.with_agent_hooks(&self.agent_type, source, events)
            }
            None => hooks,
        }
    }
}

/// True if what the repository configures for the agent's program may take effect: there is
/// something, and the user trusts it as it is in the agent's own worktree.
pub(super) fn program_trusted(agents: &Agents, meta: &Meta) -> bool {
    let around = Surrounding {
        tree: Surrounding::of(&meta.cwd).tree,
        ..Surrounding::of(agents.directory())
    };
    let mut dirs = vec![meta.cwd.clone()];
    if around.tree != meta.cwd {
        dirs.push(around.tree.clone());
    }
    let places = around.places();
    let mut items: Vec<Item> = Vec::new();
    for dir in &dirs {
        items.extend(Item::program_settings(dir, places));
        // Claude Code starts these unasked where it reads the repository's settings.
        let Ok(servers) = servers_of(&dir.join(SERVERS)) else {
            return false;
        };
        let servers = servers.iter();
        items.extend(servers.map(|(name, config)| Item::server(name, config, places)));
    }
    if items.is_empty() {
        return false;
    }
    let granted = around.granted(agents.home(), agents.lock_timeout());
    items.iter().all(|item| granted.contains(&item.id()))
}
