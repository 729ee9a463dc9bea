//! `ccb --team NAME`: what a person can type in a session, and what the session shows.

mod args;
mod landing;
mod live;
mod summary;
mod text;
mod typed;
mod view;

use std::sync::Arc;

use coordinator::session;
use store::Failure;

pub(crate) use self::args::SessionArgs;
pub(crate) use self::text::{Place as EventPlace, event_json, event_text};
use self::view::View;
use crate::context::Context;
use crate::exit::Exit;
use crate::signals::Signals;
use crate::telemetry;

/// Restores the terminal on drop, also where a session panics.
struct Closes(Arc<View>);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Begins, resumes or follows a session.
pub(crate) fn run(args: &SessionArgs, context: &mut Context) -> Result<Exit, Failure> {
    let wants_live = !args.plain && !context.out.is_json() && top::is_possible();
    let view = Arc::new(View::new(
        context.out.clone(),
        Signals::catch()?,
        wants_live,
    ));
    let closes = Closes(Arc::clone(&view));
    let ui = telemetry::session(view, |text| context.out.note(text));
    let verdict = session::run(&args.request(), &mut context.workplace, &ui);
    drop(closes);
    Ok(verdict?.into())
}
