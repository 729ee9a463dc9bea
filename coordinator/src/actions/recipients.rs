//! The possible recipients of mail.

use project::workplace::Workplace;
use store::agent_id::{AgentId, LEAD};
use store::name::Name;
use store::{Category, Failure};
use team::TeamError;

/// A member of the team, with its addresses.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name.
    pub name: Name,
    /// Its other addresses.
    ids: Vec<String>,
}

/// The members of the team. A team without a roster has none.
pub fn members(workplace: &Workplace) -> Result<Vec<Member>, Failure> {
    let roster = match workplace.team_named(workplace.team()?).enter() {
        Ok(roster) => roster,
        Err(TeamError::NotFound { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let members = roster.members.into_iter().filter_map(|member| {
        // Another tool may use names that ccb does not allow; those have no inbox of ccb's.
        let name = Name::new("agent", &member.name).ok()?;
        let ids = [Some(member.agent_id), member.run];
        Some(Member {
            name,
            ids: ids.into_iter().flatten().collect(),
        })
    });
    Ok(members.collect())
}

/// The member that `given` means: a member's name, with or without the team, or an agent id.
pub fn resolve(given: &str, workplace: &Workplace) -> Result<Name, Failure> {
    let team = workplace.team()?;
    let members = members(workplace)?;
    let name = AgentId::name_in(given, team.as_str());
    let member = members.iter().find(|member| {
        member.name.as_str().eq_ignore_ascii_case(name) || member.ids.iter().any(|id| id == given)
    });
    if let Some(member) = member {
        return Ok(member.name.clone());
    }
    // The lead can always be addressed.
    if name.eq_ignore_ascii_case(LEAD) {
        return Ok(Name::new("agent", LEAD)?);
    }
    let mut names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    if !names.contains(&LEAD) {
        names.push(LEAD);
    }
    let hint = store::did_you_mean(
        name,
        names.iter().copied(),
        format!("members: {}; '*' sends to all", names.join(", ")),
    );
    Err(Failure::new(
        Category::NotFound,
        "recipient_not_found",
        format!("there is no {given:?} in team {team}"),
    )
    .with_hint(hint))
}
