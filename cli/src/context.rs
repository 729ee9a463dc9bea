//! The context of a command: its project and team, and its output.

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
    /// True if only the answer is printed.
    pub(crate) quiet: bool,
}

impl Context {
    /// With `repairs` true, an unreadable roster keeps no caller out.
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

    /// `ccb` with the flags for the user's team or list: a command in a hint begins with this.
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
