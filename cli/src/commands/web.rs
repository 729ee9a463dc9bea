use store::Failure;

use crate::context::Context;
use crate::exit::Exit;
pub(crate) use crate::web::WebArgs;

#[cfg(feature = "page")]
pub(crate) fn run(args: &WebArgs, context: &mut Context) -> Result<Exit, Failure> {
    crate::web::run(args, context)
}

#[cfg(not(feature = "page"))]
pub(crate) fn run(_: &WebArgs, _: &mut Context) -> Result<Exit, Failure> {
    let message = "this ccb was built without the page";
    Err(Failure::usage("not_built", message).with_hint(
        "build it with: cargo install --path cli --features page. `ccb status --watch` shows the same in a terminal",
    ))
}
