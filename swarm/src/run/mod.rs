//! Runs: agents that outlive their starter.
//!
//! ```text
//! <home>/teams/<team>/runs/<agent-id>/
//!     meta.json          what it is and how far it is
//!     prompt             its first prompt
//!     transcript.jsonl   what happened, event by event
//!     output.log         what it printed; output.1.log is what came before
//!     check.log          what the check of its work printed
//!     exit.json          how it ended: written once per life, by the first process that can
//!     stop.json          a request to end it
//!     alive.lock         held by guard and host
//!     result.lock        held by the guard until exit.json is there
//!     waiters.lock       shared by those who wait for the result and will pass it on
//!     lock               held for moments: who resumes, who tells the parent
//!     control            rung when there is something new to look at
//!     host.log           what guard and host have to say, for maintainers
//! <home>/teams/<team>/runs/.active/<agent-id>    there is something left to do for this run
//! ```
//!
//! # Locks and their holders
//!
//! The process that starts a run takes `alive.lock` and gives it to the guard over a socket; the
//! guard gives it to the host. The kernel frees it when both have let go of it or ended, however
//! they end. The programs that the host starts do not get it. So the lock is free exactly when the
//! run has no supervisor. Guard and host may supervise another run afterwards, but never two at
//! once.
//!
//! # Lives
//!
//! An agent that has ended can be resumed; that is its next *life*. Its `exit.json` is moved aside
//! first. Notifications are per life.

mod control;
mod exit;
mod guard;
mod handed_run;
mod host;
mod launch_plan;
mod life;
mod list;
mod meta;
mod meter;
mod options;
mod output;
mod parked;
mod partial;
mod prove;
mod recorder;
mod relay;
mod required;
mod run_dir;
mod services;
mod stop;
mod stuck;
mod transcript;
mod verdict;

pub use control::StopRequest;
pub use exit::{By, CheckEnd, CheckPlace, Checked, Exit, ExitReason, ExitStatus, Proof};
pub use guard::{Guard, GuardEnd, bear_mark, exit_of_dead};
pub use handed_run::HandedRun;
pub use host::{HostError, HostOptions, Premises, host, host_finished, host_in};
pub use launch_plan::{
    CONFIG_HOMES, DefinedHooks, FileRules, Grants, LaunchPlan, Prove, Standing, tmp_dir,
};
pub use list::{active, all, without_meta};
pub use meta::{Meta, RunState, RuntimeSpec, Told, TreeOf, TreeOutcome};
pub use options::{FleetOptions, RunOptions, SharedPlace};
pub use output::tail_of_output;
pub use parked::{Hosted, Parked, Waiting};
pub use relay::{RELAY, relay_main};
pub use run_dir::{Held, RunDir, RunError, Waiter};
pub use services::{
    Asked, CheckDir, Child, HookCall, HostServices, Mail, MailMessage, MayBegin, ModeOrder,
    PermissionAnswer, Seal, ServiceError,
};
pub use transcript::{Entry, Record, Transcript, read_from as read_transcript};
