//! What a command has: where it works, and where its output goes.

use std::ops::{Deref, DerefMut};

use coordinator::workplace::{Asked, Workplace};
use store::Failure;

use crate::args::Global;
use crate::output::{Output, clean_line};

/// A workplace and an output.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) out: Output,
    pub(crate) workplace: Workplace,
    /// Only what was asked for is printed.
    pub(crate) quiet: bool,
    /// The flags that say which team or list, as they were given.
    place: String,
}

impl Context {
    /// `repairs`: a roster that nobody can read keeps nobody out.
    pub(crate) fn new(global: &Global, repairs: bool, out: Output) -> Result<Self, Failure> {
        let asked = Asked {
            team: global.team.clone(),
            list: global.list.clone(),
            agent: global.agent.clone(),
            home: global.home.clone(),
            directory: global.directory.clone(),
            repairs,
        };
        let workplace = Workplace::open(&asked)?;
        Ok(Self {
            out,
            workplace,
            quiet: global.quiet,
            place: place(global),
        })
    }

    /// `ccb` with the flags for the team or list the user is in: how a command in a hint begins.
    pub(crate) fn ccb(&self) -> String {
        format!("ccb{}", self.place)
    }
}

/// A command asks its workplace for nearly everything.
impl Deref for Context {
    type Target = Workplace;

    fn deref(&self) -> &Workplace {
        &self.workplace
    }
}

impl DerefMut for Context {
    fn deref_mut(&mut self) -> &mut Workplace {
        &mut self.workplace
    }
}

/// The flags that a next command needs as well.
fn place(global: &Global) -> String {
    let flags = [
        (
            "--home",
            global.home.as_ref().map(|home| home.display().to_string()),
        ),
        ("--team", global.team.clone()),
        ("--list", global.list.clone().filter(|_| global.list != global.team)),
        ("--as", global.agent.clone()),
    ];
    let given = flags.into_iter().filter_map(|(flag, value)| {
        let value = clean_line(&value?);
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./@:+".contains(c);
        let value = match !value.is_empty() && value.chars().all(plain) {
            true => value,
            false => swarm::runtime::quoted(&value),
        };
        Some(format!(" {flag} {value}"))
    });
    given.collect()
}
