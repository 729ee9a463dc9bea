//! The port behind which rosters are kept: in files, or in rows of a database.
//!
//! The meaning of a roster and the changes that are refused are the same for both and exist once,
//! in [`Team`]. A backend reads a document, makes one change after the other, and deletes.

use std::any::Any;
use std::fmt::Debug;
use std::path::PathBuf;

use store::atomic::Stamp;

use crate::error::TeamError;
use crate::format::Document;
use crate::{Listed, Roster, Team, Teams};

/// A roster's document at the time that the backend gives, in milliseconds since the epoch.
pub(crate) type First<'a> = &'a dyn Fn(i64) -> Result<Document, TeamError>;

/// One change of a document that said what the roster says, at that time. The backend calls it
/// again if the first result could not be kept.
pub(crate) type Change<'a> =
    &'a mut dyn FnMut(&mut Document, &Roster, i64) -> Result<(), TeamError>;

/// Changes with every change of a roster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// The roster is a file with this stamp.
    File(Stamp),
    /// The roster is a row with this number.
    Row(i64),
}

/// The rosters of all teams, wherever they are kept.
pub(crate) trait Backend: Any + Debug + Send + Sync {
    /// All teams, by name.
    fn list(&self, teams: &Teams) -> Result<Vec<Listed>, TeamError>;

    /// The names of all teams; none if the backend cannot be asked.
    fn names(&self, team: &Team) -> Vec<String>;

    /// Where the roster is, for messages.
    fn path(&self, team: &Team) -> PathBuf;

    /// The roster as it is now; fails with [`TeamError::NotFound`] if there is none.
    fn read(&self, team: &Team) -> Result<Document, TeamError>;

    /// Makes the first document, unless the team or one of a like name is there.
    fn create(&self, team: &Team, first: First<'_>) -> Result<Document, TeamError>;

    /// Makes one change; keeps all of it or nothing.
    fn change(&self, team: &Team, apply: Change<'_>) -> Result<Roster, TeamError>;

    /// Deletes what the team has, the roster last.
    fn delete(&self, team: &Team) -> Result<(), TeamError>;

    /// The roster's version; `None` if there is no roster.
    fn version(&self, team: &Team) -> Result<Option<Version>, TeamError>;
}
