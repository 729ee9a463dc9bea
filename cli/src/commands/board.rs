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
    /// Remove old history and acknowledged mail from a database; tasks stay
    Prune(PruneArgs),
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Remove what is older than this many days
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    older_than: u32,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(command: &BoardCommand, context: &mut Context) -> Result<Exit, Failure> {
    #[cfg(feature = "postgres")]
    if let Some(database) = context.backends().database().cloned() {
        return match command {
            BoardCommand::Show => in_database::show(&database, context),
            BoardCommand::Migrate(args) => in_database::migrate(&database, args.dry_run, context),
            BoardCommand::Prune(args) => {
                in_database::prune(&database, args.older_than, args.dry_run, context)
            }
        };
    }
    match command {
        BoardCommand::Show => {
            let place = context.home().lists();
            let json = json!({"board": {"kind": "files", "directory": place.to_string_lossy()}});
            let text = format!("files in {}", place.display());
            context.out.done(|| json, || text)
        }
        BoardCommand::Migrate(args) => Err(in_files(match args.dry_run {
            true => "there would be nothing to prepare",
            false => "there is nothing to prepare",
        })),
        BoardCommand::Prune(args) => Err(in_files(match args.dry_run || args.older_than == 0 {
            true => "its history would not have to be pruned",
            false => "its history keeps itself short",
        })),
    }
}

fn in_files(why: &str) -> Failure {
    Failure::usage("usage", format!("the board is in files: {why}"))
        .with_hint("name a database with --board postgres://… or $CCB_BOARD")
}

#[cfg(feature = "postgres")]
mod in_database {
    use std::time::Duration;

    use database::{Database, Health};
    use runs::backends::postgres::{SCHEMA, findings_of};
    use serde_json::{Map, Value, json};
    use store::Failure;
    use taskboard::ListMetrics;

    use crate::context::Context;
    use crate::exit::Exit;
    use crate::output::{DIM, GREEN, YELLOW};

    pub(super) fn migrate(
        database: &Database,
        dry_run: bool,
        context: &mut Context,
    ) -> Result<Exit, Failure> {
        let steps = database::migrate(database, &SCHEMA, dry_run)?;
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

    pub(super) fn prune(
        database: &Database,
        days: u32,
        dry_run: bool,
        context: &mut Context,
    ) -> Result<Exit, Failure> {
        for component in SCHEMA {
            database.require(component)?;
        }
        let age = Duration::from_secs(u64::from(days) * 86_400);
        let board = taskboard::prune(database, age, dry_run)?;
        let mail = mailbox::prune(database, age, dry_run)?;
        let json = json!({"board": database.shown(), "dryRun": dry_run, "olderThanDays": days,
            "changes": board.changes, "operations": board.operations,
            "messages": mail.messages, "requests": mail.requests});
        let verb = if dry_run { "would remove" } else { "removed" };
        let text = format!(
            "{verb} what is older than {days} days from {}: changes {}, operations {}, acknowledged \
             messages {}, settled requests {}",
            database.shown(),
            board.changes,
            board.operations,
            mail.messages,
            mail.requests
        );
        context.out.done(|| json, || text)
    }

    pub(super) fn show(database: &Database, context: &mut Context) -> Result<Exit, Failure> {
        let health = database.health()?;
        let versions = database.versions()?;
        let ready = SCHEMA
            .iter()
            .try_for_each(|component| database.require(component));
        let lists = match &ready {
            Ok(()) => taskboard::metrics(database)?,
            Err(_) => Vec::new(),
        };
        let workers = match &ready {
            Ok(()) => workers(database)?,
            Err(_) => Vec::new(),
        };
        let mut board = shown_json(database, &health, &versions, ready.is_ok(), &lists);
        board["workers"] = workers
            .iter()
            .map(|one| json!({"list": one.list, "name": one.name, "on": one.on}))
            .collect();
        let json = json!({"board": board});
        let mut text = format!(
            "PostgreSQL {} at {}",
            health.about.version,
            database.shown()
        );
        let parts: Vec<String> = versions
            .iter()
            .map(|(name, n)| format!("{name} {n}"))
            .collect();
        let schema = database.settings().schema();
        text.push_str(&format!("\n{DIM}schema{DIM:#}  {schema}"));
        if !parts.is_empty() {
            text.push_str(&format!(" ({})", parts.join(", ")));
        }
        for list in &lists {
            let open = list.tasks - list.completed;
            text.push_str(&format!(
                "\n{DIM}list{DIM:#}    {}: {open} of {} open",
                list.name, list.tasks
            ));
        }
        for worker in &workers {
            text.push_str(&format!(
                "\n{DIM}worker{DIM:#}  {} on list {}: {}",
                worker.name, worker.list, worker.on
            ));
        }
        let mut warn = |words: String| text.push_str(&format!("\n{YELLOW}!{YELLOW:#} {words}"));
        for finding in findings_of(&health, database.shown()) {
            match finding.fixed {
                Some(instead) => warn(format!("{}: {instead}", finding.message)),
                None => warn(finding.message),
            }
        }
        if let Err(error) = ready {
            warn(Failure::from(error).in_a_line());
        }
        context.out.done(|| json, || text)
    }

    /// A worker that is connected to the board.
    struct Working {
        list: String,
        name: String,
        /// The worker's machine and process.
        on: String,
    }

    fn workers(database: &Database) -> Result<Vec<Working>, Failure> {
        let turns = database::turns(database, "")?;
        let worker = |(turn, taken): (String, database::Taken)| {
            let (list, name) = turn.split_once(" worker ")?;
            Some(Working {
                list: list.to_owned(),
                name: name.to_owned(),
                on: taken.who,
            })
        };
        Ok(turns.into_iter().filter_map(worker).collect())
    }

    /// The JSON for a program that monitors the database.
    fn shown_json(
        database: &Database,
        health: &Health,
        versions: &[(String, i32)],
        ready: bool,
        lists: &[ListMetrics],
    ) -> Value {
        let versions: Map<String, Value> = versions
            .iter()
            .map(|(name, number)| (name.clone(), json!(number)))
            .collect();
        let tables: Map<String, Value> = health
            .tables
            .iter()
            .map(|table| {
                let numbers =
                    json!({"bytes": table.bytes, "rows": table.rows, "deadRows": table.dead});
                (table.name.clone(), numbers)
            })
            .collect();
        let bytes: i64 = health.tables.iter().map(|table| table.bytes).sum();
        let lists: Vec<Value> = lists.iter().map(list_json).collect();
        json!({
            "kind": "postgres", "url": database.shown(), "server": health.about.version,
            "readOnly": health.about.read_only, "schema": database.settings().schema(),
            "versions": versions, "ready": ready, "clockSkewMs": health.skew_ms,
            "connections": {"used": health.connections, "max": health.max_connections},
            "notifications": health.hears, "autovacuum": health.autovacuum,
            "bytes": bytes, "tables": tables, "lists": lists,
        })
    }

    fn list_json(list: &ListMetrics) -> Value {
        json!({
            "name": list.name, "tasks": list.tasks, "open": list.tasks - list.completed,
            "ready": list.ready, "assigned": list.assigned, "blocked": list.blocked,
            "parked": list.parked, "inProgress": list.in_progress, "completed": list.completed,
            "oldestReadyMs": list.oldest_ready_ms, "leasesEndingWithinMinute": list.leases_ending,
            "lastChange": list.last_change,
        })
    }
}
