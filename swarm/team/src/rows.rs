//! Rosters as rows of a table, for teams on several machines.
//!
//! The same documents and the same refusals as in files. A change locks the team's row and is one
//! transaction that writes its operation down ([`Database::change`]): if the link breaks, it has
//! happened once or not at all. Runs, sessions and notes stay files of the machine they are on.

use std::path::PathBuf;

use database::{Answer, Carries, Component, Database, DatabaseError, Operation, Session, Type};
use store::StoreError;
use store::home::Home;
use store::name::Name;

use super::error::TeamError;
use super::format::Document;
use super::{Listed, Roster, Team, TeamOptions};

/// The tables of rosters, for the code that brings a schema up to date.
pub const MIGRATIONS: Component = Component {
    name: "teams",
    migrations: &[include_str!("../migrations/001.sql")],
};

/// Maximum tries of a creation that starts again because the team of that name was deleted
/// meanwhile.
const TRIES: usize = 5;

/// A roster's text, as a change leaves it.
struct Text(String);

impl Answer for Text {
    fn write(&self) -> String {
        self.0.clone()
    }

    fn read(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }
}

impl Carries for TeamError {
    fn database(&self) -> Option<&DatabaseError> {
        match self {
            Self::Database(error) => Some(error),
            _ => None,
        }
    }
}

/// All teams of the database, by name.
pub(super) fn list(
    database: &Database,
    home: &Home,
    options: &TeamOptions,
) -> Result<Vec<Listed>, TeamError> {
    database.require(&MIGRATIONS)?;
    let rows = database.read(|session| {
        let rows = session.query("SELECT name, roster FROM @.teams", &[])?;
        let pair = |row| {
            Ok::<(String, String), TeamError>((
                session.column(row, "name")?,
                session.column(row, "roster")?,
            ))
        };
        rows.iter().map(pair).collect::<Result<Vec<_>, _>>()
    })?;
    let mut teams = Vec::new();
    for (name, text) in rows {
        let team = Team::new(home, Name::new("team", &name)?, options.clone());
        let document = team.parsed(&text);
        let roster = document.and_then(|document| team.understood(&document));
        teams.push(Listed { name, roster });
    }
    teams.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(teams)
}

impl Team {
    /// The database its roster is in, if it is in one that is ready.
    pub(super) fn database(&self) -> Result<Option<&Database>, TeamError> {
        if let Some(database) = &self.options.database {
            database.require(&database::COMMON)?;
            database.require(&MIGRATIONS)?;
        }
        Ok(self.options.database.as_ref())
    }

    /// A number that is another one after every change; `None` where the roster is a file, or is
    /// not there.
    pub fn version(&self) -> Result<Option<i64>, TeamError> {
        let Some(database) = self.database()? else {
            return Ok(None);
        };
        database.read(|session| {
            let select = "SELECT version FROM @.teams WHERE id = $1 AND name = $2";
            let row = session.query_opt(select, &self.key_and_name())?;
            let version = row.map(|row| session.column(&row, "version"));
            Ok(version.transpose()?)
        })
    }

    pub(super) fn read_row(&self, database: &Database) -> Result<Document, TeamError> {
        let found = database.read(|session| self.select(session, ""))?;
        let Some((name, text)) = found else {
            return Err(self.not_found());
        };
        self.check_spelling(&name)?;
        self.parsed(&text)
    }

    pub(super) fn create_row(
        &self,
        database: &Database,
        document: impl Fn(i64) -> Result<Document, TeamError>,
    ) -> Result<Roster, TeamError> {
        if let Some(beside) = &self.options.beside
            && let Some(existing) = beside.list_alike(&self.name)?
        {
            return Err(self.clash(existing));
        }
        let made = database.change(Operation::new(), |session| {
            for _ in 0..TRIES {
                let document = document(now(session)?)?;
                let text = text_of(&document);
                let insert = "INSERT INTO @.teams (id, name, roster) VALUES ($1, $2, $3) \
                     ON CONFLICT (id) DO NOTHING";
                let [id, name] = self.key_and_name();
                if session.execute(insert, &[id, name, (&text, Type::TEXT)])? == 1 {
                    return Ok(Text(text));
                }
                if let Some((name, text)) = self.select(session, "FOR UPDATE")? {
                    self.check_spelling(&name)?;
                    return Err(self.is_there(&self.parsed(&text)?));
                }
            }
            Err(self.keeps_changing())
        })?;
        self.understood(&self.parsed(&made.0)?)
    }

    pub(super) fn change_row(
        &self,
        database: &Database,
        mut apply: impl FnMut(&mut Document, &Roster, i64) -> Result<(), TeamError>,
    ) -> Result<Roster, TeamError> {
        let changed = database.change(Operation::new(), |session| {
            let mut document = self.locked_row(session)?;
            let roster = self.understood(&document)?;
            self.check_writable(&document, &roster)?;
            apply(&mut document, &roster, now(session)?)?;
            let text = text_of(&document);
            let update = "UPDATE @.teams SET roster = $3, version = nextval('@.team_versions') \
                 WHERE id = $1 AND name = $2";
            let [id, name] = self.key_and_name();
            session.execute(update, &[id, name, (&text, Type::TEXT)])?;
            Ok::<_, TeamError>(Text(text))
        })?;
        self.understood(&self.parsed(&changed.0)?)
    }

    pub(super) fn delete_row(&self, database: &Database) -> Result<(), TeamError> {
        database.change(Operation::new(), |session| {
            let document = self.locked_row(session)?;
            self.check_marked(&document)?;
            let delete = "DELETE FROM @.teams WHERE id = $1 AND name = $2";
            session.execute(delete, &self.key_and_name())?;
            Ok(())
        })
    }

    /// The row, which no other session changes until the transaction ends.
    fn locked_row(&self, session: &Session<'_>) -> Result<Document, TeamError> {
        let Some((name, text)) = self.select(session, "FOR UPDATE")? else {
            return Err(self.not_found());
        };
        self.check_spelling(&name)?;
        self.parsed(&text)
    }

    fn select(
        &self,
        session: &Session<'_>,
        lock: &str,
    ) -> Result<Option<(String, String)>, TeamError> {
        let sql = format!("SELECT name, roster FROM @.teams WHERE id = $1 {lock}");
        let [id, _] = self.key_and_name();
        let Some(row) = session.query_opt(&sql, &[id])? else {
            return Ok(None);
        };
        let text = session.column(&row, "roster")?;
        Ok(Some((session.column(&row, "name")?, text)))
    }

    /// The names of all teams; empty if the database does not answer.
    pub(super) fn names_of_rows(&self, database: &Database) -> Vec<String> {
        let names = database.read(|session| {
            let rows = session.query("SELECT name FROM @.teams", &[])?;
            let names = rows.iter().map(|row| session.column(row, "name"));
            names.collect::<Result<Vec<String>, DatabaseError>>()
        });
        names.unwrap_or_default()
    }

    /// The path of the roster, for messages.
    pub(super) fn row_path(&self, database: &Database) -> PathBuf {
        let schema = database.settings().schema();
        PathBuf::from(format!("table {schema}.teams in {}", database.shown()))
    }

    /// A team of this name in another case is another one, as in files.
    fn check_spelling(&self, name: &str) -> Result<(), TeamError> {
        match name == self.name.as_str() {
            true => Ok(()),
            false => Err(self.clash(name.to_owned())),
        }
    }

    fn clash(&self, existing: String) -> TeamError {
        TeamError::Store(StoreError::NameClash {
            what: "team",
            given: self.name.to_string(),
            existing,
        })
    }

    fn parsed(&self, text: &str) -> Result<Document, TeamError> {
        Document::parse(&self.name, text.as_bytes()).map_err(|detail| self.corrupt(detail))
    }

    fn key_and_name(&self) -> [database::Parameter<'_>; 2] {
        let [id, name] = &self.key;
        [(id, Type::TEXT), (name, Type::TEXT)]
    }
}

fn now(session: &Session<'_>) -> Result<i64, DatabaseError> {
    let row = session.query_one("SELECT @.teams_now() AS now", &[])?;
    session.column(&row, "now")
}

fn text_of(document: &Document) -> String {
    String::from_utf8_lossy(&document.to_bytes()).into_owned()
}
