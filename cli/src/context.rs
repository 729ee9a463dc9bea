//! What a command has: where it works, and where its output goes.

use std::ops::{Deref, DerefMut};

use coordinator::workplace::{Asked, Workplace};
use store::Failure;

use crate::args::Cli;
use crate::commands::Command;
use crate::output::Output;

/// A workplace and an output.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) out: Output,
    pub(crate) workplace: Workplace,
}

impl Context {
    pub(crate) fn new(cli: &Cli, out: Output) -> Result<Self, Failure> {
        let global = &cli.global;
        let asked = Asked {
            team: global.team.clone(),
            list: global.list.clone(),
            agent: global.agent.clone(),
            home: global.home.clone(),
            directory: global.directory.clone(),
            repairs: matches!(cli.command, Some(Command::Doctor(_))),
        };
        let workplace = Workplace::open(&asked)?;
        Ok(Self { out, workplace })
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
