//! A team's mail as a whole, for the code that keeps the team.

use database::{Database, DatabaseError, Operation, Type};
use store::name::Name;

use super::MIGRATIONS;
use super::reader::HOLDS;

/// The inboxes of `team` that have a reader, on any machine, in lower case.
pub fn inboxes_being_read(database: &Database, team: &Name) -> Result<Vec<String>, DatabaseError> {
    database.require(&MIGRATIONS)?;
    let team = team.as_str().to_ascii_lowercase();
    database.read(|session| {
        let rows = session.query(
            &format!(
                "SELECT name FROM @.mail_inboxes AS it WHERE team = $1 AND {HOLDS} ORDER BY name"
            ),
            &[(&team, Type::TEXT)],
        )?;
        let names = rows.iter().map(|row| session.column(row, "name"));
        names.collect()
    })
}

/// Deletes everything that was ever sent in `team`; once more is no error.
pub fn delete_all(database: &Database, team: &Name) -> Result<(), DatabaseError> {
    database.require(&MIGRATIONS)?;
    let team = team.as_str().to_ascii_lowercase();
    database.change(Operation::new(), |session| {
        // In the order of locks: requests and the team's row, then inboxes by name.
        for delete in [
            "DELETE FROM @.mail_requests WHERE team = $1",
            "DELETE FROM @.mail_teams WHERE team = $1",
            "SELECT id FROM @.mail_inboxes WHERE team = $1 ORDER BY name FOR UPDATE",
            "DELETE FROM @.mail_inboxes WHERE team = $1",
        ] {
            session.query(delete, &[(&team, Type::TEXT)])?;
        }
        Ok(())
    })
}
