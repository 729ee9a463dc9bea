//! Stands in where no agents can be run.

use std::time::Duration;

use super::port::{AgentInput, AgentOutput, AgentPort, AgentResult, Wait};
use crate::error::{CommandError, Exit};

/// Runs nothing and says so.
#[derive(Debug)]
pub(crate) struct NoAgents;

fn refused() -> CommandError {
    CommandError::Other {
        exit: Exit::Refused,
        kind: "no_agents",
        message: "this version of ccb cannot run agents yet".into(),
        hint: Some("do it yourself, or put it on the board with TaskCreate".into()),
    }
}

impl AgentPort for NoAgents {
    fn spawn(&self, _: &AgentInput, _: &Wait) -> Result<AgentResult, CommandError> {
        Err(refused())
    }

    fn stop(&self, _: &str) -> Result<AgentOutput, CommandError> {
        Err(refused())
    }

    fn output(&self, _: &str, _: bool, _: Duration, _: &Wait) -> Result<AgentOutput, CommandError> {
        Err(refused())
    }

    fn wake(&self, _: &str) -> Result<Option<String>, CommandError> {
        Ok(None)
    }

    fn agents(&self) -> Vec<String> {
        Vec::new()
    }
}
