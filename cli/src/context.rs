//! What a command has: where it works, and where its output goes.

use std::ops::{Deref, DerefMut};

use project::workplace::{Asked, Workplace};
use store::Failure;

use crate::args::Global;
use crate::output::Output;

/// A workplace and an output.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) out: Output,
    pub(crate) workplace: Workplace,
    /// Only what was asked for is printed.
    pub(crate) quiet: bool,
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
            board: global.board.clone(),
            repairs,
        };
        let workplace = Workplace::open(&asked)?;
        Ok(Self {
            out,
            workplace,
            quiet: global.quiet,
        })
    }

    /// `ccb` with the flags for the team or list the user is in: how a command in a hint begins.
    pub(crate) fn ccb(&self) -> String {
        self.out.ccb()
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
