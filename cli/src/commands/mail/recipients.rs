//! Who can be written to.

use serde_json::Value;
use store::name::Name;

use crate::context::Context;
use crate::error::{CommandError, Exit};

/// The lead's reserved name; there is always somebody to write to.
pub(super) const LEAD: &str = "team-lead";

/// A member of the team, as far as mail is concerned.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) name: Name,
    pub(super) agent_id: Option<String>,
}

/// The members of the team. A team without a roster has none.
pub(super) fn members(context: &Context) -> Result<Vec<Member>, CommandError> {
    let path = context.mailbox()?.dir().join("config.json");
    let Some(bytes) = store::atomic::read(&path)? else {
        return Ok(Vec::new());
    };
    let roster: Value = serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!("{} is unreadable ({error})", path.display());
        CommandError::failed("corrupt", message)
    })?;
    let members = roster["members"].as_array();
    let members = members.into_iter().flatten().filter_map(|member| {
        let name = member["name"].as_str()?;
        Some(Member {
            name: Name::new("agent", name).ok()?,
            agent_id: member["agentId"].as_str().map(str::to_owned),
        })
    });
    Ok(members.collect())
}

/// The one `given` means: a member's name, with or without the team, or an agent id.
pub(super) fn resolve(given: &str, context: &Context) -> Result<Name, CommandError> {
    let team = context.team()?;
    let members = members(context)?;
    let name = given
        .strip_suffix(team.as_str())
        .and_then(|rest| rest.strip_suffix('@'))
        .unwrap_or(given);
    let member = members.iter().find(|member| {
        member.name.as_str().eq_ignore_ascii_case(name) || member.agent_id.as_deref() == Some(given)
    });
    if let Some(member) = member {
        return Ok(member.name.clone());
    }
    if name.eq_ignore_ascii_case(LEAD) {
        return Ok(Name::new("agent", LEAD)?);
    }
    let mut names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    if !names.contains(&LEAD) {
        names.push(LEAD);
    }
    let hint = match store::nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("members: {}; '*' sends to all", names.join(", ")),
    };
    Err(CommandError::Other {
        exit: Exit::NotFound,
        kind: "recipient_not_found",
        message: format!("there is no {given:?} in team {team}"),
        hint: Some(hint),
    })
}
