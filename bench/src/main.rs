//! Measures ccb's task board and mail beside SQLite and beside the plain designs they replace,
//! and its worktrees beside plain git.
//!
//! # Running it
//!
//! ```text
//! cargo run --release --manifest-path bench/Cargo.toml -- --quick
//! sudo bench/ext4-loop.sh                     # prints a directory on a journaled ext4
//! cargo run --release --manifest-path bench/Cargo.toml -- \
//!     --dir /dev/shm --dir DIRECTORY --out docs/dev/benchmarks > tables.md
//! sudo bench/ext4-loop.sh --umount
//! ```
//!
//! Tables go to stdout as Markdown, progress to stderr; `--out` adds JSON, CSV and a plot.
//! `--help` lists what can be left out or changed. It needs no network, makes temporary
//! directories in each `--dir` only, and removes them at the end, also after Ctrl-C.
//!
//! # Reading it
//!
//! * **Compare within a table, not between runs.** fsync on a shared disk wanders by a factor
//!   of ten over minutes. All designs of a cell run in turn within the same minute; the column
//!   "× SQLite" is what can be quoted.
//! * **Claims.** Real processes open the board, warm up, sleep until the same instant, and then
//!   claim until nothing is left or time is up. Of N tasks nine tenths can be claimed
//!   ([`workload`]). The wait of a claim runs from wanting a task to having it, failed attempts
//!   included. p50 and p99 are over all claims, so a design that lets one worker take nearly
//!   everything has small ones although the others wait in vain. *p50 by time* is the wait a
//!   worker is in when asked at a random moment, also one that ends without a task; *max* is
//!   the longest any worker waited for any answer; *empty-handed* are workers without a single
//!   claim; *Jain* is 1 if all got the same and 1/n if one got everything. On boards of 100
//!   tasks one worker can be through before the others were scheduled at all, so fairness means
//!   little there.
//! * **CPU µs** is the processor time of the claiming processes per claim, which depends less on
//!   what else the machine does than the rate.
//! * **durable** means fsync before the claim is acknowledged (SQLite: synchronous=FULL); not
//!   durable leaves it to the operating system (SQLite: NORMAL). On tmpfs fsync does nothing.
//! * *double* counts tasks claimed twice, or owned by another agent than their claimer in the
//!   end. It must be 0.
//! * **Mail.** Writers send messages of about 300 bytes into one inbox at full speed until time
//!   is up, so an inbox is larger in the end than the table says; *lost* are messages that were
//!   acknowledged to their sender and are not there, and must be 0. The array design takes a
//!   file lock, reads and parses a JSON array, appends, writes it to a temporary file and
//!   renames that. A delivery is measured from before the call that sends until the reader has
//!   woken up and seen the message (*wakes*), and until it is in the reader's hands (*in hand*);
//!   then the reader acknowledges it. ccb's reader is woken by a FIFO; the array's by inotify,
//!   which is more than the original has.
//!
//! # Layout
//!
//! [`designs`] are the boards; [`claims`], [`scaling`] and [`startup`] the three parts about
//! them, [`mail`] the one about messages, [`worktrees`] the one about trees of a generated
//! [`repository`], [`landing`] the one about getting their commits onto a branch, [`private_git`] the one about an agent's own `.git`, [`agents`] the one about runs, [`mcp`] the one about the MCP server, [`sessions`]
//! the one about whole team sessions, [`fanout`] the one about plans, [`view`] the one about watching, [`native`] the one about our own agent loop, [`forks`] the one about its forks, [`mates`] the one about agents that share a process, [`postgres`] the one about the board in a database, [`machines`] the one about many machines that share it; [`fleet`] and [`probe`] are
//! the processes they start (this binary again).

mod agents;
mod args;
mod claims;
mod claims_report;
mod designs;
mod environment;
mod fanout;
mod fleet;
mod forks;
mod landing;
mod machines;
mod mail;
mod mates;
mod mcp;
mod native;
mod plot;
mod postgres;
mod private_git;
mod probe;
mod repository;
mod scaling;
mod sessions;
mod startup;
mod stats;
mod table;
mod view;
mod workload;
mod worktrees;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use clap::Parser;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::args::{Cli, Inner, Options, Part};

/// Any error that ends the benchmark; shown to the user unchanged.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match &cli.inner {
        Some(Inner::Worker(args)) => fleet::work(args),
        Some(Inner::Probe(args)) => probe::run(args),
        Some(Inner::ClaimOne(args)) => startup::claim_one(args),
        Some(Inner::MailWriter(args)) => mail::write(args),
        Some(Inner::MailReader(args)) => mail::read(args),
        Some(Inner::ViewAgents(args)) => view::agents(args),
        Some(Inner::ViewLooker(args)) => view::look(args),
        Some(Inner::PostgresWorker(args)) => postgres::work(args),
        None => Options::new(cli).and_then(|options| run(&options)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ccb-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    catch_signals()?;
    println!("{}", environment::header(&options.places));
    if options.wants(Part::Claims) {
        let outcomes = claims::run(options)?;
        claims_report::print(options, &outcomes);
        options.save("claims.json", || json(options, &outcomes))?;
        options.save("claims.csv", || Ok(claims_report::csv(&outcomes)))?;
        options.save("claims.svg", || Ok(plot::claims(options, &outcomes)))?;
    }
    if options.wants(Part::Scaling) {
        let samples = scaling::run(options)?;
        scaling::print(options, &samples);
        options.save("scaling.json", || json(options, &samples))?;
    }
    if options.wants(Part::Startup) {
        let samples = startup::run(options)?;
        startup::print(options, &samples);
        options.save("startup.json", || json(options, &samples))?;
    }
    if options.wants(Part::Mail) {
        let samples = mail::throughput::run(options)?;
        mail::throughput::print(options, &samples);
        options.save("mail.json", || json(options, &samples))?;
        let samples = mail::latency::run(options)?;
        mail::latency::print(options, &samples);
        options.save("mail-latency.json", || json(options, &samples))?;
    }
    if options.wants(Part::Worktrees) {
        let samples = worktrees::run(options)?;
        worktrees::print(options, &samples);
        options.save("worktrees.json", || json(options, &samples))?;
    }
    if options.wants(Part::Landing) {
        let samples = landing::run(options)?;
        landing::print(options, &samples);
        options.save("landing.json", || json(options, &samples))?;
    }
    if options.wants(Part::PrivateGit) {
        let samples = private_git::run(options)?;
        private_git::print(options, &samples);
        options.save("private-git.json", || json(options, &samples))?;
    }
    if options.wants(Part::Agents) {
        let samples = agents::run(options)?;
        agents::print(options, &samples);
        options.save("agents.json", || json(options, &samples))?;
    }
    if options.wants(Part::Mcp) {
        let samples = mcp::run(options)?;
        mcp::print(&samples);
        options.save("mcp.json", || json(options, &samples))?;
    }
    if options.wants(Part::Sessions) {
        let samples = sessions::run(options)?;
        sessions::print(options, &samples);
        options.save("sessions.json", || json(options, &samples))?;
    }
    if options.wants(Part::Fanout) {
        let samples = fanout::run(options)?;
        fanout::print(options, &samples);
        options.save("fanout.json", || json(options, &samples))?;
    }
    if options.wants(Part::View) {
        let samples = view::run(options)?;
        view::print(options, &samples);
        options.save("view.json", || json(options, &samples))?;
    }
    if options.wants(Part::Native) {
        let samples = native::run(options)?;
        native::print(&samples);
        options.save("native.json", || json(options, &samples))?;
    }
    if options.wants(Part::Forks) {
        let samples = forks::run(options)?;
        forks::print(&samples);
        options.save("forks.json", || json(options, &samples))?;
    }
    if options.wants(Part::Mates) {
        let samples = mates::run(options)?;
        mates::print(&samples);
        options.save("mates.json", || json(options, &samples))?;
    }
    if options.wants(Part::Postgres) {
        let samples = postgres::run(options)?;
        postgres::print(samples.as_ref());
        options.save("postgres.json", || json(options, &samples))?;
    }
    if options.wants(Part::Machines) {
        let samples = machines::run(options)?;
        machines::print(&samples);
        options.save("machines.json", || json(options, &samples))?;
    }
    Ok(())
}

/// The results together with their machine.
fn json(options: &Options, results: &impl serde::Serialize) -> Result<String, Failure> {
    let environment = environment::header(&options.places);
    let value = serde_json::json!({"environment": environment, "results": results});
    Ok(format!("{value:#}\n"))
}

/// From here on Ctrl-C and SIGTERM end the run at the next [`check_interrupted`]; a second one
/// ends it at once.
fn catch_signals() -> Result<(), Failure> {
    let flag = INTERRUPTED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(flag))?;
        signal_hook::flag::register(signal, Arc::clone(flag))?;
    }
    Ok(())
}

/// An error if the user wants to stop. Called often enough to react soon.
pub(crate) fn check_interrupted() -> Result<(), Failure> {
    match INTERRUPTED.get() {
        Some(flag) if flag.load(Ordering::Relaxed) => Err("interrupted".into()),
        _ => Ok(()),
    }
}
