//! `ccb --team NAME`: what a session can be told, and what it shows.

mod args;
mod landing;
mod summary;
mod text;
mod typed;
mod view;

use std::sync::Arc;

use coordinator::session::{self, SessionUi};
use store::Failure;

pub(crate) use self::args::SessionArgs;
use self::view::View;
use crate::context::Context;
use crate::exit::Exit;
use crate::signals::Signals;

/// Begins a session, goes on with it, or follows it.
pub(crate) fn run(args: &SessionArgs, context: &mut Context) -> Result<Exit, Failure> {
    let view = View::new(context.out.clone(), Signals::catch()?);
    let ui: Arc<dyn SessionUi> = Arc::new(view);
    let verdict = session::run(&args.request(), &mut context.workplace, &ui)?;
    Ok(verdict.into())
}
