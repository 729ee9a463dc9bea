use serde_json::{Value, json};
use store::Failure;
use team::{Listed, Roster};
use term::table::{self, Cell};

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, PLAIN, RED, YELLOW, terminal_width};

pub(crate) fn run(context: &mut Context) -> Result<Exit, Failure> {
    let teams = context.all_teams()?;
    context.out.answer(
        || {
            let readable = teams.iter().filter_map(|team| team.roster.as_ref().ok());
            let mut answer = json!({ "teams": readable.map(Roster::to_json).collect::<Vec<_>>() });
            let unreadable: Vec<Value> = teams
                .iter()
                .filter_map(|team| Some((team, team.roster.as_ref().err()?)))
                .map(|(team, error)| json!({"name": team.name, "detail": error.to_string()}))
                .collect();
            if !unreadable.is_empty() {
                answer["unreadable"] = unreadable.into();
            }
            answer
        },
        || match teams[..] {
            [] => "no teams. Create one: ccb team create NAME".to_owned(),
            _ => {
                let rows: Vec<[Cell; 4]> = teams.iter().map(row).collect();
                let heads = ["TEAM", "MEMBERS", "DESCRIPTION", "REPOSITORY"];
                table::render(heads, &rows, 2, terminal_width())
            }
        },
    )?;
    for team in &teams {
        if let Err(error) = &team.roster {
            context.out.warn(error);
        }
    }
    Ok(Exit::Done)
}

fn row(team: &Listed) -> [Cell; 4] {
    let name = Cell::new(&team.name, BOLD);
    let Ok(roster) = &team.roster else {
        let empty = || Cell::new("", PLAIN);
        return [name, Cell::new("✘ unreadable", RED), empty(), empty()];
    };
    let members = match &roster.deleting_since {
        Some(_) => Cell::new("being deleted", YELLOW),
        None => Cell::new(roster.members.len().to_string(), PLAIN),
    };
    let description = roster.description.as_deref().unwrap_or_default();
    let repository = roster.repository.as_deref().unwrap_or_default();
    [
        name,
        members,
        Cell::new(description, PLAIN),
        Cell::new(repository, DIM),
    ]
}
