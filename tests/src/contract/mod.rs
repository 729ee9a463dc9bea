//! The duties of every runtime, as one suite. See the contract in `swarm::runtime`.
//!
//! A [`Subject`] is a runtime and a way to make its agents act. Every check is a function that
//! passes, fails the test, or is skipped because the runtime says that it cannot. Skips are listed
//! beside the subject, so that a skip is as visible as a failure.

mod bench;
mod endings;
mod floods;
mod messages;
mod on_model;
mod session;
mod starts;
mod turns;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use swarm::runtime::{Launch, Runtime};

pub use bench::{Bench, LIMIT};
pub use on_model::{OnModel, ShellTool};
pub use session::{ASKED, Session};

/// An act of an agent.
#[derive(Debug, Clone, Copy)]
pub enum Act<'a> {
    /// The model says something.
    Say(&'a str),
    /// It makes an empty file.
    Touch(&'a Path),
    /// A tool runs until this file exists.
    ToolUntil(&'a Path),
    /// It is busy without a tool until this file exists.
    BusyUntil(&'a Path),
    /// It reports usage.
    Usage { input: u64, output: u64 },
    /// It makes a file for which it must ask first.
    TouchIfAllowed(&'a Path),
    /// The turn fails here.
    Fail(&'a str),
    /// The provider refuses.
    Quota,
    /// It ends here without a result.
    Quit,
    /// It prints this as an error.
    PrintError(&'a str),
    /// It prints this many meaningless bytes.
    Garbage(u64),
    /// It prints this many million bytes in one line.
    LongLine(u64),
    /// It closes its output and lives until this file exists.
    CloseOutputUntil(&'a Path),
    /// It leaves a process behind that keeps its streams open, and writes its id into this
    /// directory.
    LeaveBehind { pids: &'a Path, noisy: bool },
}

/// A runtime under test.
pub trait Subject: Sync {
    fn runtime(&self) -> &dyn Runtime;

    /// The same with a missing program.
    fn without_program(&self) -> Box<dyn Runtime>;

    /// A prompt, or a message, that makes the agent do this and say `result` at the end; `None` if
    /// this agent cannot.
    fn prompt(&self, acts: &[Act<'_>], result: &str) -> Option<String>;

    /// The prompt with much more meaningless text in it.
    fn padded(&self, prompt: &str, bytes: usize) -> String {
        format!("{}\n{prompt}", "x".repeat(bytes))
    }

    /// The environment that its agents need.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        vec![("PATH".into(), path)]
    }

    /// Changes the launch of its agents, where the usual one does not work.
    fn prepare(&self, _launch: &mut Launch) {}

    /// True if the agent is a program, and no thread of this one.
    fn has_program(&self) -> bool {
        true
    }

    /// True if the runtime may give the program this variable by itself.
    fn adds(&self, _variable: &str) -> bool {
        false
    }

    /// True if this variable reaches the program in another way than by its environment, which
    /// others could read. A program that has such variables may close itself to others.
    fn hides(&self, _variable: &str) -> bool {
        false
    }

    /// Maximum memory that a line without an end may take, in KiB.
    fn growth_kib(&self) -> u64 {
        48 * 1024
    }

    /// True if the agent has a protocol by which it can be stopped.
    fn obeys_stop(&self) -> bool {
        true
    }

    /// True if the model has seen `text`; `session` has the events so far.
    fn was_told(&self, session: &Session<'_>, text: &str) -> bool {
        session.said(text)
    }
}

/// The result of a check that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    /// The runtime cannot, and says so.
    Skipped(String),
}

/// A check that is skipped.
fn skip(why: &str) -> Verdict {
    Verdict::Skipped(why.to_owned())
}

/// One check.
pub type Check = fn(&Bench<'_>) -> Verdict;

/// The prompt for some acts, or the end of the check.
macro_rules! prompt {
    ($bench:expr, $acts:expr, $result:expr) => {
        match $bench.subject().prompt($acts, $result) {
            Some(prompt) => prompt,
            None => return $crate::contract::skip("its agents cannot be made to do this"),
        }
    };
}
use prompt;

macro_rules! checks {
    ($($module:ident: $($name:ident),+;)+) => {
        /// Every check, by name.
        pub const CHECKS: &[(&str, Check)] = &[$($((stringify!($name), $module::$name)),+),+];

        /// A test for each check, with `$subject` as the subject; those in `cannot` must be
        /// skipped, all others must not.
        #[macro_export]
        macro_rules! contract_tests {
            ($subject:expr, cannot: $cannot:expr) => {
                $($(
                    #[test]
                    fn $name() {
                        $crate::contract::run(stringify!($name), &$subject, &$cannot);
                    }
                )+)+
            };
        }
    };
}

checks! {
    starts: it_starts_first_and_ends_last, a_missing_program_is_an_error,
        a_missing_directory_is_an_error, the_environment_is_what_was_given,
        it_works_where_it_was_told, a_long_prompt_arrives, many_run_at_once,
        a_session_goes_on, a_session_is_copied;
    turns: every_turn_ends, a_failure_is_a_failure, a_quota_is_a_quota,
        no_result_is_no_turn, usage_adds_up, tools_are_seen, what_is_allowed_is_done,
        what_is_denied_is_not_done;
    messages: a_message_between_turns, a_message_at_a_tool_boundary, many_messages_each_once,
        an_urgent_message_breaks_in, an_interrupt_leaves_it_alive, an_interrupt_ends_a_tool;
    endings: finish_lets_the_turn_end, finish_lets_questions_be_answered, stop_ends_it,
        orders_after_the_end_are_dropped, nobody_listens, it_closes_its_output_and_lives,
        something_is_left_behind, something_noisy_is_left_behind;
    floods: errors_are_passed_on, garbage_is_passed_on, a_long_line_does_not_grow,
        much_output_waits_for_the_host;
}

/// Runs one check as a test.
pub fn run(name: &str, subject: &dyn Subject, cannot: &[&str]) {
    let (_, check) = CHECKS
        .iter()
        .find(|(known, _)| *known == name)
        .expect("a check");
    let verdict = check(&Bench::new(subject));
    match verdict {
        Verdict::Passed => assert!(!cannot.contains(&name), "{name} is listed as impossible"),
        Verdict::Skipped(why) => {
            println!("skipped: {name}: {why}");
            assert!(cannot.contains(&name), "{name} was skipped: {why}");
        }
    }
}

/// The results of all checks, also of failed ones, for a table of supported features.
pub fn outcomes(subject: &dyn Subject) -> Vec<(&'static str, Result<Verdict, String>)> {
    let outcome = |check: Check| {
        let checked = catch_unwind(AssertUnwindSafe(|| check(&Bench::new(subject))));
        checked.map_err(|why| match why.downcast::<String>() {
            Ok(text) => *text,
            Err(_) => "it failed".to_owned(),
        })
    };
    CHECKS
        .iter()
        .map(|&(name, check)| (name, outcome(check)))
        .collect()
}
