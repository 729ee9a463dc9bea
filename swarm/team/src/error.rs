use std::path::PathBuf;

use serde_json::json;
use store::{Category, Explain, Facts, StoreError};

use super::life::Living;

/// The reason why an action of a team failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum TeamError {
    /// A file, lock, name or setting.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The backend that the roster is kept in; which errors there are is its own business.
    #[error("{0}")]
    Backend(Box<dyn Explain + Send + Sync>),
    /// No team has this name.
    #[error("there is no team {name:?}")]
    NotFound {
        name: String,
        /// Teams with similar names, the most similar first.
        nearest: Vec<String>,
    },
    /// There is a team of that name already.
    #[error("team {name:?} exists already")]
    Exists { name: String },
    /// The roster cannot be read as one.
    #[error("the roster of team {team:?} is unreadable ({detail}): {}", path.display())]
    Corrupt {
        team: String,
        /// The file, which is left as it is.
        path: PathBuf,
        detail: String,
    },
    /// The team belongs to another repository.
    #[error("team {team:?} belongs to the repository {theirs}, not to {ours}")]
    OtherRepository {
        team: String,
        theirs: String,
        ours: String,
    },
    /// The team is being deleted.
    #[error("team {team:?} is being deleted")]
    Deleting { team: String },
    /// Another process took the deletion back or finished it.
    #[error("team {team:?} is no longer being deleted: somebody else cancelled that")]
    NotDeleting { team: String },
    /// Members are alive.
    #[error("team {team:?} has members that are alive: {}", describe(living))]
    Alive { team: String, living: Vec<Living> },
    /// A name with a meaning of its own.
    #[error("{name:?} cannot be a member's name: {why}")]
    Reserved { name: String, why: &'static str },
    /// The name is taken.
    #[error("{name:?} is a member of team {team:?} already")]
    AlreadyMember { team: String, name: String },
    /// No member has this name.
    #[error("team {team:?} has no member {name:?}")]
    NoSuchMember {
        team: String,
        name: String,
        /// Members with similar names, the most similar first.
        nearest: Vec<String>,
    },
    /// The lead stays as long as its team.
    #[error("the lead cannot leave team {team:?}")]
    LeadStays { team: String },
    /// Another tool kept changing the roster.
    #[error("another program keeps changing the roster of team {team:?}: {}", path.display())]
    ChangedMeanwhile { team: String, path: PathBuf },
    /// The change is made, but a power cut may undo it.
    #[error("the change is made, but may not survive a power cut: {source}")]
    NotDurable { source: StoreError },
}

impl Explain for TeamError {
    fn facts(&self) -> Facts {
        use Category::{Failed, Invalid, NotFound, Refused};
        match self {
            Self::Store(error) => error.facts(),
            Self::Backend(error) => error.facts(),
            Self::NotFound { nearest, .. } => Facts::new(NotFound, "team_not_found")
                .hint(did_you_mean(
                    nearest,
                    "`ccb team list` shows the teams there are",
                ))
                .detail("nearest", json!(nearest)),
            Self::NoSuchMember { team, nearest, .. } => Facts::new(NotFound, "member_not_found")
                .hint(did_you_mean(
                    nearest,
                    &format!("`ccb team show {team}` shows its members"),
                ))
                .detail("nearest", json!(nearest)),
            Self::Exists { name } => {
                Facts::new(Refused, "team_exists").hint(format!("`ccb team show {name}` shows it"))
            }
            Self::Corrupt { team, .. } => Facts::new(Refused, "corrupt").hint(format!(
                "repair the file by hand, or move it away (its members are then forgotten) and \
                 run `ccb team create {team}`"
            )),
            Self::OtherRepository { .. } => Facts::new(Refused, "other_repository")
                .hint("run the command there, or use a team of this repository"),
            Self::Deleting { team } => Facts::new(Refused, "deleting")
                .hint(format!("wait for whoever deletes it; if nobody does, `ccb team delete {team}` finishes that")),
            Self::NotDeleting { team } => Facts::new(Refused, "changed_meanwhile")
                .hint(format!("look at it with `ccb team show {team}`")),
            Self::ChangedMeanwhile { .. } => {
                Facts::new(Refused, "changed_meanwhile").hint("try again when that program is idle")
            }
            Self::Alive { living, .. } => Facts::new(Refused, "members_alive")
                .hint("let them finish and leave; `--force` deletes the team anyway")
                .detail(
                    "alive",
                    living
                        .iter()
                        .map(|one| json!({"name": one.name, "why": one.why.as_str()}))
                        .collect::<Vec<_>>(),
                ),
            Self::Reserved { .. } => {
                Facts::new(Invalid, "bad_name").hint("choose another name with `--as AGENT`")
            }
            Self::AlreadyMember { team, name } => {
                Facts::new(Refused, "already_member").hint(format!(
                    "choose another name, or take it over after `ccb team leave {team} --as {name}`"
                ))
            }
            Self::LeadStays { team } => Facts::new(Refused, "lead_stays")
                .hint(format!("its lead stays as long as the team does: `ccb team show {team}`; `ccb team delete {team}` ends both")),
            Self::NotDurable { .. } => Facts::new(Failed, "not_durable")
                .hint("do not repeat it; look at the disk, and at the team"),
        }
    }
}

fn describe(living: &[Living]) -> String {
    let each = living
        .iter()
        .map(|one| format!("{} {}", one.name, one.why.in_words()));
    each.collect::<Vec<_>>().join(", ")
}

fn did_you_mean(nearest: &[String], otherwise: &str) -> String {
    match nearest {
        [] => otherwise.to_owned(),
        names => {
            let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
            format!("did you mean {}? {otherwise}", names.join(" or "))
        }
    }
}
