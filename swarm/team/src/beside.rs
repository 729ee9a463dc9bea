//! What a team has to know of what is not its own.

use std::fmt::Debug;

use store::name::Name;

use super::error::TeamError;

/// What is beside a roster in a database: mail and lists, of which this crate knows nothing. In
/// files they are directories beside the roster's.
pub trait Beside: Debug + Send + Sync {
    /// The inboxes of `team` that somebody reads, in lower case.
    fn inboxes_being_read(&self, team: &Name) -> Result<Vec<String>, TeamError>;

    /// Deletes the mail of `team`. Doing it again is no error.
    fn delete_mail(&self, team: &Name) -> Result<(), TeamError>;

    /// A task list whose name differs from `team` in case alone.
    fn list_alike(&self, team: &Name) -> Result<Option<String>, TeamError>;
}
