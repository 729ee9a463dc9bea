//! Questions to the person at the terminal, before something is deleted or lands unchecked.

use std::io::{self, BufRead, IsTerminal, Write};

use store::Failure;

use crate::context::Context;

/// A command's behaviour where no person can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unattended {
    /// It runs without a question: scripts rely on it.
    GoesOn,
    /// It requires `--yes`.
    Refuses,
}

/// True if a person can be asked.
pub(crate) fn is_attended(context: &Context) -> bool {
    !context.out.is_json() && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks, unless the user passed `--yes`. Any answer but yes is a refusal, and nothing changes.
pub(crate) fn confirm(
    question: &str,
    yes: bool,
    unattended: Unattended,
    context: &Context,
) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !is_attended(context) {
        return match unattended {
            Unattended::GoesOn => Ok(()),
            Unattended::Refuses => Err(Failure::usage(
                "not_confirmed",
                "nobody can be asked here, and --yes was not said",
            )
            .with_hint("look first with --dry-run, then say --yes")),
        };
    }
    match asked(question) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::refused("not_confirmed", "nothing was changed")),
        Err(error) => Err(Failure::failed("io", format!("the terminal: {error}"))),
    }
}

/// True if the person says yes; false where no person can be asked.
pub(crate) fn is_yes(question: &str, context: &Context) -> Result<bool, Failure> {
    if !is_attended(context) {
        return Ok(false);
    }
    asked(question).map_err(|error| Failure::failed("io", format!("the terminal: {error}")))
}

fn asked(question: &str) -> io::Result<bool> {
    let mut terminal = anstream::stderr();
    write!(terminal, "{question} [y/N] ")?;
    terminal.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let answer = answer.trim().to_lowercase();
    Ok(answer == "y" || answer == "yes")
}
