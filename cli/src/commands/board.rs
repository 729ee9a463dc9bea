//! `ccb board`: where the tasks are kept.

use clap::{Args, Subcommand};
use serde_json::json;
use store::Failure;

use crate::context::Context;
use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(crate) enum BoardCommand {
    /// Show where the board is kept, and in which state it is
    Show,
    /// Prepare a database for this ccb, or bring it up to date
    Migrate(MigrateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(command: &BoardCommand, context: &mut Context) -> Result<Exit, Failure> {
    #[cfg(feature = "postgres")]
    if let Some(database) = context.database().cloned() {
        return match command {
            BoardCommand::Show => in_database::show(&database, context),
            BoardCommand::Migrate(args) => in_database::migrate(&database, args.dry_run, context),
        };
    }
    match command {
        BoardCommand::Show => {
            let place = context.home().lists();
            let json = json!({"board": {"kind": "files", "directory": place.to_string_lossy()}});
            let text = format!("files in {}", place.display());
            context.out.done(|| json, || text)
        }
        BoardCommand::Migrate(args) => {
            let message = match args.dry_run {
                true => "the board is in files: there would be nothing to prepare",
                false => "the board is in files: there is nothing to prepare",
            };
            Err(Failure::usage("usage", message)
                .with_hint("name a database with --board postgres://… or $CCB_BOARD"))
        }
    }
}

#[cfg(feature = "postgres")]
mod in_database {
    use database::{COMMON, Component, Database, DatabaseError, Type};
    use serde_json::{Map, Value, json};
    use store::Failure;
    use store::clock::{Clock, SystemClock};

    use crate::context::Context;
    use crate::exit::Exit;
    use crate::output::{DIM, GREEN, YELLOW};

    /// What a schema is made of.
    const COMPONENTS: [&Component; 3] = [&COMMON, &taskboard::MIGRATIONS, &mailbox::MIGRATIONS];
    /// Clocks further apart than this, in ms, are mentioned. Leases do not mind; people do.
    const SKEW: i64 = 2_000;
    /// The oldest server that is tested.
    const OLDEST: i32 = 140_000;

    pub(super) fn migrate(
        database: &Database,
        dry_run: bool,
        context: &mut Context,
    ) -> Result<Exit, Failure> {
        let steps = database::migrate(database, &COMPONENTS, dry_run)?;
        let json = json!({"board": database.shown(), "applied": if dry_run { &[][..] } else { &steps },
            "missing": if dry_run { &steps[..] } else { &[] }});
        let text = match (steps.is_empty(), dry_run) {
            (true, _) => format!("{GREEN}✔{GREEN:#} {} is up to date", database.shown()),
            (false, true) => format!("missing in {}: {}", database.shown(), steps.join(", ")),
            (false, false) => {
                let steps = steps.join(", ");
                format!("{GREEN}✔{GREEN:#} applied to {}: {steps}", database.shown())
            }
        };
        context.out.done(|| json, || text)
    }

    pub(super) fn show(database: &Database, context: &mut Context) -> Result<Exit, Failure> {
        let asked = SystemClock.now_ms();
        let about = database.about()?;
        // Half of the way there and back is not the clock's fault.
        let skew = about.now_ms - (asked + SystemClock.now_ms()) / 2;
        let versions = database.versions()?;
        let ready = COMPONENTS
            .iter()
            .try_for_each(|component| database.require(component));
        let lists = match &ready {
            Ok(()) => lists(database)?,
            Err(_) => Vec::new(),
        };
        let components: Map<String, Value> = versions
            .iter()
            .map(|(name, number)| (name.clone(), json!(number)))
            .collect();
        let each = lists
            .iter()
            .map(|(name, tasks, open)| json!({"name": name, "tasks": tasks, "open": open}));
        let json = json!({"board": {
            "kind": "postgres", "url": database.shown(), "server": about.version,
            "readOnly": about.read_only, "schema": database.settings().schema(),
            "versions": components, "ready": ready.is_ok(), "clockSkewMs": skew,
            "lists": each.collect::<Vec<Value>>(),
        }});
        let mut text = format!("PostgreSQL {} at {}", about.version, database.shown());
        let parts: Vec<String> = versions
            .iter()
            .map(|(name, n)| format!("{name} {n}"))
            .collect();
        text.push_str(&format!(
            "\n{DIM}schema{DIM:#}  {}",
            database.settings().schema()
        ));
        if !parts.is_empty() {
            text.push_str(&format!(" ({})", parts.join(", ")));
        }
        for (name, tasks, open) in &lists {
            text.push_str(&format!(
                "\n{DIM}list{DIM:#}    {name}: {open} of {tasks} open"
            ));
        }
        let mut warn = |words: String| text.push_str(&format!("\n{YELLOW}!{YELLOW:#} {words}"));
        if about.read_only {
            warn("it is read-only: tasks can be looked at, and nothing can be changed".into());
        }
        if about.version_number < OLDEST {
            warn("PostgreSQL 14 is the oldest that ccb is tested with".into());
        }
        if skew.abs() > SKEW {
            let seconds = skew.abs() / 1000;
            warn(format!(
                "its clock and this machine's are {seconds} s apart; leases go by its clock"
            ));
        }
        if let Err(error) = ready {
            warn(Failure::from(error).in_a_line());
        }
        context.out.done(|| json, || text)
    }

    /// Every list with the number of its tasks and of those that are open.
    fn lists(database: &Database) -> Result<Vec<(String, i64, i64)>, DatabaseError> {
        database.read(|session| {
            let rows = session.query(
                "SELECT l.name, count(t.id) AS tasks, count(t.id) FILTER (WHERE t.status <> 2) AS open \
                 FROM @.lists l LEFT JOIN @.tasks t ON t.list = l.id GROUP BY l.name ORDER BY l.name",
                &[] as &[(&(dyn database::ToSql + Sync), Type)],
            )?;
            let one = |row| {
                Ok((
                    session.column(row, "name")?,
                    session.column(row, "tasks")?,
                    session.column(row, "open")?,
                ))
            };
            rows.iter().map(one).collect()
        })
    }
}
