//! Where the board is: in files, or in a database.
//!
//! `--board`, then `$CCB_BOARD`, then `taskboard.board` of the user's own settings. A repository's
//! settings cannot name one, not even a trusted repository's: whoever names the board decides
//! which commands agents run here.

use runs::env;
use store::Failure;
use store::home::Home;
use store::settings::Settings;

use super::Asked;

/// Says that the board is in files although something else names a database.
const FILES: &str = "files";

/// The address of the database the board is in, if it is in one.
pub(super) fn address(
    asked: &Asked,
    settings: &Settings,
    home: &Home,
    inside_agent: bool,
) -> Result<Option<String>, Failure> {
    if inside_agent && asked.board.is_some() {
        return Err(crate::who::not_yours(
            "an agent works on the board it was started with".into(),
            "leave out --board",
        ));
    }
    if let Some(named) = &settings.board
        && named.from != home.settings()
    {
        let message = format!(
            "{} names a board, and a repository may not: it would decide what agents run",
            named.from.display()
        );
        let hint = format!("move `taskboard.board` to {}", home.settings().display());
        return Err(Failure::usage("bad_settings", message).with_hint(hint));
    }
    let in_settings = || settings.board.as_ref().map(|named| named.address.clone());
    let found = asked.board.clone().or_else(|| env::var(env::BOARD));
    let found = found
        .or_else(in_settings)
        .filter(|address| address != FILES);
    if let Some(address) = &found
        && !address.starts_with("postgres://")
        && !address.starts_with("postgresql://")
    {
        // It is not repeated: it may be an address with a password and a slip in its beginning.
        let message = "the board must be `files` or begin with postgres://";
        return Err(Failure::usage("bad_board", message));
    }
    Ok(found)
}
