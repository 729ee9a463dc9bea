use clap::Args;
use store::Failure;
use top::Whose;

use crate::context::Context;
use crate::exit::Exit;

#[derive(Debug, Args)]
pub(crate) struct TopArgs {}

/// Shows everything that runs in the repository, and lets a person steer it.
pub(crate) fn run(_: &TopArgs, context: &mut Context) -> Result<Exit, Failure> {
    if context.out.is_json() || !top::is_possible() {
        let message = "ccb top needs a terminal that can do more than print lines";
        let hint = "`ccb status --watch` prints lines, `ccb --json status` is for programs";
        return Err(Failure::usage("no_terminal", message).with_hint(hint));
    }
    let (_, inbox) = top::channel();
    let left = top::run(&context.workplace, Whose::Watcher, inbox)?;
    for line in left.words {
        context.out.note(&line);
    }
    Ok(Exit::Done)
}
