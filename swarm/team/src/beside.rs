//! The facts that a team has to know and that are not its own.

use std::fmt::Debug;

use store::name::Name;

use super::error::TeamError;

/// The mail and lists beside a roster in a database, of which this crate knows nothing. In files
/// they are directories beside the roster's.
pub trait Beside: Debug + Send + Sync {
    /// The inboxes of `team` that a reader is attached to, in lower case.
    fn inboxes_being_read(&self, team: &Name) -> Result<Vec<String>, TeamError>;

    /// Deletes the mail of `team`. Doing it again is no error.
    fn delete_mail(&self, team: &Name) -> Result<(), TeamError>;

    /// A task list whose name differs from `team` in case alone.
    fn list_alike(&self, team: &Name) -> Result<Option<String>, TeamError>;
}
