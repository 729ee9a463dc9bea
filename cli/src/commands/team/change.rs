use clap::Args;
use coordinator::actions::team::{self as actions, team};
use serde_json::{Value, json};
use store::Failure;
use store::name::Name;
use team::{Member, NewMember, Roster};

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, GREEN, clean_line};

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// The team's name
    name: String,
    /// What the team is for
    #[arg(short, long, value_name = "TEXT")]
    description: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct JoinArgs {
    /// The team's name
    name: String,
    /// What kind of agent joins
    #[arg(long = "type", value_name = "TYPE", default_value = "general-purpose")]
    agent_type: String,
    /// The model it runs on
    #[arg(long)]
    model: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LeaveArgs {
    /// The team's name
    name: String,
}

pub(crate) fn create(args: &CreateArgs, context: &mut Context) -> Result<Exit, Failure> {
    let roster = actions::create(&args.name, args.description.clone(), context)?;
    let text = || {
        let name = &roster.name;
        format!(
            "{GREEN}✔{GREEN:#} created team {BOLD}{name}{BOLD:#}\n  `ccb team join {name} --as \
             AGENT` adds a member, `ccb --team {name} task create SUBJECT` a task"
        )
    };
    context
        .out
        .done(|| json!({ "team": roster.to_json() }), text)
}

pub(crate) fn join(args: &JoinArgs, context: &mut Context) -> Result<Exit, Failure> {
    let new = NewMember {
        agent_type: args.agent_type.clone(),
        model: args.model.clone(),
        cwd: Some(actions::directory(context)?),
        // A member that joins by hand runs already, and ccb does not start it.
        backend_type: "external".into(),
        is_active: true,
        ..NewMember::new(Name::new("agent", context.agent())?)
    };
    let (roster, member) = team(&args.name, context)?.join(&new)?;
    answer("joined", &roster, &member, context)
}

pub(crate) fn leave(args: &LeaveArgs, context: &mut Context) -> Result<Exit, Failure> {
    let (roster, member) = team(&args.name, context)?.leave(context.agent())?;
    answer("left", &roster, &member, context)
}

fn answer(
    verb: &str,
    roster: &Roster,
    member: &Member,
    context: &mut Context,
) -> Result<Exit, Failure> {
    let json = || -> Value { json!({"team": roster.to_json(), "member": member.to_json()}) };
    let text = || {
        let name = clean_line(&member.name);
        let team = &roster.name;
        let color = member.color.as_deref().map(clean_line);
        let color = color.map(|color| format!(" ({color})")).unwrap_or_default();
        format!("{GREEN}✔{GREEN:#} {BOLD}{name}{BOLD:#}{color} {verb} team {team}")
    };
    context.out.done(json, text)
}
