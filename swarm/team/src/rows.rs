//! Rosters as rows of a table, for teams on several machines.
//!
//! The same documents and the same refusals as in files. A change locks the team's row and is one
//! transaction that writes its operation down ([`Database::change`]): if the link breaks, it has
//! happened once or not at all. Runs, sessions and notes stay files of the machine they are on.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use database::{Answer, Carries, Component, Database, DatabaseError, Operation, Session, Type};
use store::StoreError;
use store::home::{Home, create_private_dir};
use store::name::Name;

use crate::backend::{Backend, Change, First, Version};
use crate::error::TeamError;
use crate::format::Document;
use crate::{Listed, Roster, Team, TeamOptions, Teams};

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

impl From<DatabaseError> for TeamError {
    fn from(error: DatabaseError) -> Self {
        Self::Backend(Box::new(error))
    }
}

impl Carries for TeamError {
    fn database(&self) -> Option<&DatabaseError> {
        let Self::Backend(error) = self else {
            return None;
        };
        let error: &(dyn Error + 'static) = &**error;
        error.downcast_ref()
    }
}

impl Teams {
    /// The teams whose rosters are in a database. Their mail and lists, which [`TeamOptions::beside`]
    /// reaches, are in the same database.
    pub fn on(database: &Database, home: &Home, options: TeamOptions) -> Self {
        Self::kept(home, options, Arc::new(Rows(database.clone())))
    }
}

/// Rosters in the rows of a table.
#[derive(Debug)]
pub(crate) struct Rows(pub(crate) Database);

impl Rows {
    /// The database, if it is ready.
    fn ready(&self) -> Result<&Database, TeamError> {
        self.0.require(&database::COMMON)?;
        self.0.require(&MIGRATIONS)?;
        Ok(&self.0)
    }
}

impl Backend for Rows {
    fn list(&self, teams: &Teams) -> Result<Vec<Listed>, TeamError> {
        self.0.require(&MIGRATIONS)?;
        let rows = self.0.read(|session| {
            let rows = session.query("SELECT name, roster FROM @.teams", &[])?;
            let pair = |row| {
                Ok::<(String, String), TeamError>((
                    session.column(row, "name")?,
                    session.column(row, "roster")?,
                ))
            };
            rows.iter().map(pair).collect::<Result<Vec<_>, _>>()
        })?;
        let mut found = Vec::new();
        for (name, text) in rows {
            let team = teams.team(Name::new("team", &name)?);
            let document = parsed(&team, &text);
            let roster = document.and_then(|document| team.understood(&document));
            found.push(Listed { name, roster });
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    fn names(&self, _: &Team) -> Vec<String> {
        let names = self.0.read(|session| {
            let rows = session.query("SELECT name FROM @.teams", &[])?;
            let names = rows.iter().map(|row| session.column(row, "name"));
            names.collect::<Result<Vec<String>, DatabaseError>>()
        });
        names.unwrap_or_default()
    }

    fn path(&self, _: &Team) -> PathBuf {
        let schema = self.0.settings().schema();
        PathBuf::from(format!("table {schema}.teams in {}", self.0.shown()))
    }

    fn read(&self, team: &Team) -> Result<Document, TeamError> {
        let found = self.ready()?.read(|session| select(team, session, ""))?;
        document_of(team, found)
    }

    fn create(&self, team: &Team, first: First<'_>) -> Result<Document, TeamError> {
        let database = self.ready()?;
        if let Some(beside) = &team.options.beside
            && let Some(existing) = beside.list_alike(&team.name)?
        {
            return Err(clash(team, existing));
        }
        let made = database.change(Operation::new(), |session| {
            for _ in 0..TRIES {
                let text = text_of(&first(now(session)?)?);
                let insert = "INSERT INTO @.teams (id, name, roster) VALUES ($1, $2, $3) \
                     ON CONFLICT (id) DO NOTHING";
                let key = Key::of(team);
                let [id, name] = key.parameters();
                if session.execute(insert, &[id, name, (&text, Type::TEXT)])? == 1 {
                    return Ok(Text(text));
                }
                let found = select(team, session, "FOR UPDATE")?;
                if found.is_some() {
                    return Err(team.is_there(&document_of(team, found)?));
                }
            }
            Err(team.keeps_changing())
        })?;
        parsed(team, &made.0)
    }

    fn change(&self, team: &Team, apply: Change<'_>) -> Result<Roster, TeamError> {
        let changed = self.ready()?.change(Operation::new(), |session| {
            let mut document = locked_row(team, session)?;
            let roster = team.understood(&document)?;
            team.check_writable(&document, &roster)?;
            apply(&mut document, &roster, now(session)?)?;
            let text = text_of(&document);
            let update = "UPDATE @.teams SET roster = $3, version = nextval('@.team_versions') \
                 WHERE id = $1 AND name = $2";
            let key = Key::of(team);
            let [id, name] = key.parameters();
            session.execute(update, &[id, name, (&text, Type::TEXT)])?;
            Ok::<_, TeamError>(Text(text))
        })?;
        team.understood(&parsed(team, &changed.0)?)
    }

    /// The mail in the database and the files here. Files on other machines are those machines' own.
    fn delete(&self, team: &Team) -> Result<(), TeamError> {
        team.check_marked(&self.read(team)?)?;
        if let Some(beside) = &team.options.beside {
            beside.delete_mail(&team.name)?;
        }
        delete_files(team)?;
        self.0.change(Operation::new(), |session| {
            team.check_marked(&locked_row(team, session)?)?;
            let delete = "DELETE FROM @.teams WHERE id = $1 AND name = $2";
            session.execute(delete, &Key::of(team).parameters())?;
            Ok(())
        })
    }

    fn version(&self, team: &Team) -> Result<Option<Version>, TeamError> {
        self.ready()?.read(|session| {
            let select = "SELECT version FROM @.teams WHERE id = $1 AND name = $2";
            let row = session.query_opt(select, &Key::of(team).parameters())?;
            let version = row.map(|row| session.column(&row, "version"));
            Ok(version.transpose()?.map(Version::Row))
        })
    }
}

/// The key of a team's row: its name in lower case, and as it is written.
struct Key([String; 2]);

impl Key {
    fn of(team: &Team) -> Self {
        Self([
            team.name.as_str().to_ascii_lowercase(),
            team.name.to_string(),
        ])
    }

    fn parameters(&self) -> [database::Parameter<'_>; 2] {
        let Self([id, name]) = self;
        [(id, Type::TEXT), (name, Type::TEXT)]
    }
}

/// Deletes the team's files, unless they are those of another team, with a roster of its own.
fn delete_files(team: &Team) -> Result<(), TeamError> {
    if !team.dir.is_dir() || team.config_path().exists() {
        return Ok(());
    }
    create_private_dir(&team.tmp_dir())?;
    {
        let _lock = team.lock()?;
        team.set_all_aside()?;
    }
    team.empty_trash()
}

/// Name and text of a row.
type Row = (String, String);

/// The row, which no other process changes until the transaction ends.
fn locked_row(team: &Team, session: &Session<'_>) -> Result<Document, TeamError> {
    document_of(team, select(team, session, "FOR UPDATE")?)
}

fn select(team: &Team, session: &Session<'_>, lock: &str) -> Result<Option<Row>, TeamError> {
    let sql = format!("SELECT name, roster FROM @.teams WHERE id = $1 {lock}");
    let key = Key::of(team);
    let [id, _] = key.parameters();
    let Some(row) = session.query_opt(&sql, &[id])? else {
        return Ok(None);
    };
    let text = session.column(&row, "roster")?;
    Ok(Some((session.column(&row, "name")?, text)))
}

/// A team of this name in another case is another one, as in files.
fn document_of(team: &Team, found: Option<Row>) -> Result<Document, TeamError> {
    match found {
        None => Err(team.not_found()),
        Some((name, _)) if name != team.name.as_str() => Err(clash(team, name)),
        Some((_, text)) => parsed(team, &text),
    }
}

fn clash(team: &Team, existing: String) -> TeamError {
    TeamError::Store(StoreError::NameClash {
        what: "team",
        given: team.name.to_string(),
        existing,
    })
}

fn parsed(team: &Team, text: &str) -> Result<Document, TeamError> {
    Document::parse(&team.name, text.as_bytes()).map_err(|detail| team.corrupt(detail))
}

fn now(session: &Session<'_>) -> Result<i64, DatabaseError> {
    let row = session.query_one("SELECT @.teams_now() AS now", &[])?;
    session.column(&row, "now")
}

fn text_of(document: &Document) -> String {
    String::from_utf8_lossy(&document.to_bytes()).into_owned()
}
