use clap::Args;
use runs::Listed;
use serde_json::json;
use store::Failure;
use swarm::run::TreeOf;

use super::list::color_of;
use crate::context::Context;
use crate::cost::{saved_line, usage_line};
use crate::exit::Exit;
use crate::output::{BOLD, DIM, age, clean_line, colored, quoted};

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The agent's id, the beginning of it, or its name
    #[arg(value_name = "AGENT")]
    who: String,
}

pub(crate) fn run(args: &ShowArgs, context: &mut Context) -> Result<Exit, Failure> {
    let agents = context.agents()?;
    let meta = agents.find(&args.who)?;
    let run = agents.run(&meta.agent_id);
    let listed = Listed {
        alive: agents.is_alive(&meta)?,
        meta: run.meta()?,
    };
    let exit = run.exit(listed.meta.life)?;
    let prompt = run.prompt()?;
    let meta = &listed.meta;
    let roster = context.team_named(agents.team_name().clone()).roster().ok();
    let color = color_of(meta, roster.as_ref());
    context.out.done(
        || {
            let mut agent = listed.to_json();
            agent["prompt"] = prompt.clone().into();
            if let Some(color) = &color {
                agent["color"] = color.as_str().into();
            }
            agent["outputFile"] = json!(run.output_path());
            agent["transcript"] = json!(run.transcript_path());
            if let Some(exit) = &exit {
                agent["exit"] = serde_json::to_value(exit).unwrap_or_default();
            }
            json!({ "agent": agent })
        },
        || {
            let style = colored(color.as_deref(), BOLD);
            let mut lines = vec![format!(
                "{style}{}{style:#} {}",
                meta.agent_id,
                clean_line(&meta.description)
            )];
            let tree = meta.worktree.as_ref();
            let fields = [
                ("name", meta.name.clone()),
                ("state", Some(listed.state().to_owned())),
                ("stalled", meta.stalled.clone()),
                ("type", Some(meta.agent_type.clone())),
                ("runtime", Some(meta.runtime.name.clone())),
                ("model", meta.model.clone()),
                ("team", Some(meta.team.clone())),
                ("parent", Some(meta.parent.clone())),
                ("task", meta.task_id.as_ref().map(|id| format!("#{id}"))),
                (
                    "started",
                    Some(format!(
                        "{} ({} ago)",
                        meta.started_at,
                        age(&meta.started_at)
                    )),
                ),
                ("ended", meta.ended_at.clone()),
                ("lives", (meta.life > 1).then(|| meta.life.to_string())),
                ("works in", Some(meta.cwd.display().to_string())),
                ("worktree", tree.map(|tree| tree.name.clone())),
                ("branch", tree.and_then(|tree| tree.branch.clone())),
                ("tree", tree.and_then(what_became_of)),
                ("used", usage_line(&meta.usage)),
                ("saved", saved_line(&meta.usage)),
                ("talk", meta.conversation().map(str::to_owned)),
                ("process", meta.pid.map(|pid| pid.to_string())),
                ("output", Some(run.output_path().display().to_string())),
                ("error", exit.as_ref().and_then(|exit| exit.error.clone())),
            ];
            let notes = exit.iter().flat_map(|exit| exit.notes.iter().cloned());
            let notes = notes.map(|note| ("noticed", Some(note)));
            for (name, value) in fields.into_iter().chain(notes) {
                if let Some(value) = value {
                    lines.push(format!("{DIM}{name:>9}{DIM:#}  {}", clean_line(&value)));
                }
            }
            lines.push(String::new());
            lines.push(quoted(prompt.trim_end()));
            lines.join("\n")
        },
    )
}

/// The state of an agent's worktree, if that is known.
fn what_became_of(tree: &TreeOf) -> Option<String> {
    let outcome = tree.outcome.as_ref()?;
    Some(match outcome.kept {
        true if super::is_gone(tree) => "removed since".to_owned(),
        true => format!("kept: {}", outcome.why),
        false => format!("removed: {}", outcome.why),
    })
}
