use std::path::PathBuf;

use store::StoreError;

use crate::team::Living;

/// Why a team did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TeamError {
    /// A file, lock, name or setting.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No such team.
    #[error("there is no team {name:?}")]
    NotFound {
        /// The name asked for.
        name: String,
        /// Teams with similar names, the most similar first.
        nearest: Vec<String>,
    },
    /// There is a team of that name already.
    #[error("there is a team {name:?} already")]
    Exists {
        /// Its name.
        name: String,
    },
    /// The roster cannot be read as one.
    #[error("the roster of team {team:?} is unreadable ({detail}): {}", path.display())]
    Corrupt {
        /// The team.
        team: String,
        /// The file, which is left as it is.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The team belongs to another repository.
    #[error("team {team:?} belongs to the repository {theirs}, not to {ours}")]
    OtherRepository {
        /// The team.
        team: String,
        /// The one it was created in.
        theirs: String,
        /// The one it was used from.
        ours: String,
    },
    /// The team is being deleted.
    #[error("team {team:?} is being deleted")]
    Deleting {
        /// The team.
        team: String,
    },
    /// The deletion was taken back or finished by somebody else.
    #[error("team {team:?} is no longer being deleted: somebody else took that back")]
    NotDeleting {
        /// The team.
        team: String,
    },
    /// Members are alive.
    #[error("team {team:?} has members that are alive: {}", describe(living))]
    Alive {
        /// The team.
        team: String,
        /// Who, and how that is known.
        living: Vec<Living>,
    },
    /// A name with a meaning of its own.
    #[error("{name:?} cannot be a member's name: {why}")]
    Reserved {
        /// As given.
        name: String,
        /// What it means.
        why: &'static str,
    },
    /// The name is taken.
    #[error("{name:?} is a member of team {team:?} already")]
    AlreadyMember {
        /// The team.
        team: String,
        /// The member.
        name: String,
    },
    /// No such member.
    #[error("team {team:?} has no member {name:?}")]
    NoSuchMember {
        /// The team.
        team: String,
        /// The name asked for.
        name: String,
        /// Members with similar names, the most similar first.
        nearest: Vec<String>,
    },
    /// The lead stays as long as its team.
    #[error("the lead cannot leave team {team:?}")]
    LeadStays {
        /// The team.
        team: String,
    },
    /// Another tool kept changing the roster.
    #[error("another program keeps changing the roster of team {team:?}: {}", path.display())]
    ChangedMeanwhile {
        /// The team.
        team: String,
        /// The file.
        path: PathBuf,
    },
    /// The change is made, but a power cut may undo it.
    #[error("the change is made, but may not survive a power cut: {source}")]
    NotDurable {
        /// Why it could not be synced.
        source: StoreError,
    },
}

impl TeamError {
    /// A stable word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Store(StoreError::LockTimeout { .. }) => "lock_timeout",
            Self::Store(StoreError::Settings { .. }) => "bad_settings",
            Self::Store(StoreError::BadName { .. } | StoreError::NameClash { .. }) => "bad_name",
            Self::Store(StoreError::NewerVersion { .. }) => "newer_version",
            Self::Store(_) => "io",
            Self::NotFound { .. } => "team_not_found",
            Self::Exists { .. } => "team_exists",
            Self::Corrupt { .. } => "corrupt",
            Self::OtherRepository { .. } => "other_repository",
            Self::Deleting { .. } => "deleting",
            Self::NotDeleting { .. } | Self::ChangedMeanwhile { .. } => "changed_meanwhile",
            Self::Alive { .. } => "members_alive",
            Self::Reserved { .. } => "bad_name",
            Self::AlreadyMember { .. } => "already_member",
            Self::NoSuchMember { .. } => "member_not_found",
            Self::LeadStays { .. } => "lead_stays",
            Self::NotDurable { .. } => "not_durable",
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Store(error) => error.hint(),
            Self::NotFound { nearest, .. } => Some(did_you_mean(
                nearest,
                "`ccb team list` shows the teams there are",
            )),
            Self::Exists { name } => Some(format!("`ccb team show {name}` shows it")),
            Self::Corrupt { team, .. } => Some(format!(
                "repair the file by hand, or move it away (its members are then forgotten) and \
                 run `ccb team create {team}`"
            )),
            Self::OtherRepository { .. } => {
                Some("run the command there, or use a team of this repository".into())
            }
            Self::Deleting { team } => Some(format!("`ccb team delete {team}` finishes that")),
            Self::NotDeleting { team } => Some(format!("look at it with `ccb team show {team}`")),
            Self::Alive { .. } => {
                Some("let them finish and leave, or insist with `--force`".to_owned())
            }
            Self::Reserved { .. } => Some("choose another name with `--as AGENT`".into()),
            Self::AlreadyMember { team, name } => Some(format!(
                "choose another name, or take it over after `ccb team leave {team} --as {name}`"
            )),
            Self::NoSuchMember { team, nearest, .. } => Some(did_you_mean(
                nearest,
                &format!("`ccb team show {team}` shows its members"),
            )),
            Self::LeadStays { team } => Some(format!("`ccb team delete {team}` ends the team")),
            Self::ChangedMeanwhile { .. } => Some("try again when it is quiet".into()),
            Self::NotDurable { .. } => {
                Some("do not repeat it; look at the disk, and at the team".into())
            }
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
