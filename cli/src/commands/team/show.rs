use clap::Args;
use coordinator::actions::team::team;
use mailbox::{MailOptions, Mailbox, MessageState};
use serde_json::{Value, json};
use store::Failure;
use store::clock::rfc3339;
use store::name::Name;
use team::{Life, Living, Member, Roster};
use term::table::{self, Cell};

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, GREEN, PLAIN, YELLOW, clean, clean_line, terminal_width};

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The team's name
    name: String,
}

/// A team, with what its roster does not have.
struct View {
    roster: Roster,
    living: Vec<Living>,
    /// Unread messages of each member, in the order of the roster.
    unread: Vec<Option<usize>>,
}

pub(crate) fn run(args: &ShowArgs, context: &mut Context) -> Result<Exit, Failure> {
    let team = team(&args.name, context)?;
    let roster = team.roster()?;
    let mailbox = context.mailbox_to_look_at(team.name(), MailOptions::default());
    let view = View {
        living: team.living(&roster)?,
        unread: roster
            .members
            .iter()
            .map(|member| unread(&mailbox, member))
            .collect(),
        roster,
    };
    context.out.done(|| view.json(), || view.text())
}

/// The number of a member's unread messages; `None` if it has no inbox.
fn unread(mailbox: &Mailbox, member: &Member) -> Option<usize> {
    let inbox = mailbox
        .inbox(&Name::new("agent", &member.name).ok()?)
        .ok()?;
    if !inbox.exists() {
        return None;
    }
    match inbox.list(false) {
        Ok(listing) => {
            let queued = listing.messages.iter();
            Some(
                queued
                    .filter(|(_, state)| *state == MessageState::Queued)
                    .count(),
            )
        }
        Err(error) => {
            // The members can be shown all the same.
            tracing::warn!(member = member.name, %error, "its inbox cannot be read");
            None
        }
    }
}

impl View {
    fn json(&self) -> Value {
        let mut team = self.roster.to_json();
        for (n, member) in self.roster.members.iter().enumerate() {
            let value = &mut team["members"][n];
            value["state"] = self.life(member).map_or("away", Life::as_str).into();
            if let Some(unread) = self.unread[n] {
                value["unread"] = unread.into();
            }
        }
        json!({ "team": team })
    }

    fn text(&self) -> String {
        let roster = &self.roster;
        let mut lines = vec![format!("{BOLD}{}{BOLD:#}", roster.name)];
        lines.extend(roster.description.as_deref().map(clean));
        let mut field = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                lines.push(format!("{DIM}{name:<12}{DIM:#}{}", clean_line(&value)));
            }
        };
        field("repository", roster.repository.clone());
        field("created", roster.created_at.map(rfc3339));
        field("deleting", roster.deleting_since.clone());
        let rows: Vec<[Cell; 7]> = roster
            .members
            .iter()
            .zip(&self.unread)
            .map(|(member, unread)| self.row(member, *unread))
            .collect();
        let heads = [
            "MEMBER",
            "STATE",
            "UNREAD",
            "TYPE",
            "MODEL",
            "COLOR",
            "DIRECTORY",
        ];
        lines.push(String::new());
        lines.push(table::render(heads, &rows, 6, terminal_width()));
        lines.join("\n")
    }

    fn row(&self, member: &Member, unread: Option<usize>) -> [Cell; 7] {
        let (state, style) = match self.life(member) {
            Some(Life::Running) => ("● running", GREEN),
            Some(Life::Reading) => ("● reading", GREEN),
            Some(Life::Joined) => ("◐ joined", YELLOW),
            None => ("○ away", DIM),
        };
        let plain = |text: &Option<String>| Cell::new(text.as_deref().unwrap_or_default(), PLAIN);
        let directory = member
            .worktree_path
            .as_ref()
            .or(member.cwd.as_ref())
            .cloned();
        [
            Cell::new(&member.name, BOLD),
            Cell::new(state, style),
            Cell::new(unread.map(|n| n.to_string()).unwrap_or_default(), PLAIN),
            plain(&member.agent_type),
            plain(&member.model),
            plain(&member.color),
            plain(&directory),
        ]
    }

    fn life(&self, member: &Member) -> Option<Life> {
        let mut living = self.living.iter();
        living
            .find(|one| one.name == member.name)
            .map(|one| one.why)
    }
}
