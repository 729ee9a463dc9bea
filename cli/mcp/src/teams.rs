//! `TeamCreate` and `TeamDelete`.

use coordinator::actions::team;
use project::workplace::Workplace;
use store::Failure;
use store::name::Name;

use super::answer::Answer;
use super::arguments::Arguments;
use super::membership::Membership;
use super::post::Post;

pub(super) fn create(
    arguments: &Arguments,
    context: &Workplace,
    member: &Membership,
) -> Result<Answer, Failure> {
    let name = Name::new("team", &arguments.text("team_name"))?;
    if let Some(other) = context.named_team().filter(|other| *other != name.as_str()) {
        return Err(Failure::refused(
            "one_team",
            format!("this session is in team {other} already"),
        )
        .with_hint("a session has one team: use that one, or delete it first"));
    }
    let roster = team::create(name.as_str(), arguments.optional("description"), context)?;
    member.take_team(&name);
    let dir = context.home().team(&name).join("config.json");
    let mut json = serde_json::json!({ "team": roster.to_json() });
    json["team_name"] = name.as_str().into();
    json["team_file_path"] = dir.to_string_lossy().into();
    json["lead_agent_id"] = roster.lead_agent_id.clone().into();
    let text = format!(
        "Team {name} created; you lead it as team-lead. TaskCreate puts work on its board; Agent \
         with a name adds a teammate."
    );
    Ok(Answer::new(text, json))
}

pub(super) fn delete(
    context: &Workplace,
    member: &Membership,
    post: &Post,
) -> Result<Answer, Failure> {
    let name = context.team()?;
    // The server itself reads the inbox, which would count as a living member.
    post.close();
    let deleted = team::delete(name.as_str(), false, context)?;
    member.drop_team();
    let mut text = format!(
        "Team {name} deleted with {}.",
        store::counted(deleted.tasks, "task")
    );
    for tree in deleted.trees.iter().filter(|tree| !tree.removed) {
        let why = tree.why.as_deref().unwrap_or_default();
        text.push_str(&format!("\nThe worktree {} stays: {why}", tree.path));
    }
    Ok(Answer::new(text, team::deleted_json(&deleted)))
}
