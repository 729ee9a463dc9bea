//! Claims tasks one after the other and prints the id of each once it is really its own.
//!
//! Arguments: home, list, agent.

use std::error::Error;
use std::io::Write;

use store::home::Home;
use store::name::Name;
use taskboard::{Board, BoardOptions, ClaimRequest, Next};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("too few arguments");
    let home = Home::new(next()?.into())?;
    let board = Board::new(&home, Name::new("list", &next()?)?, BoardOptions::default());
    let request = ClaimRequest::new(next()?);
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready")?;
    while let Next::Claimed(claimed) = board.claim_next(&request)? {
        writeln!(out, "{}", claimed.task.id)?;
        out.flush()?;
    }
    writeln!(out, "nothing left")?;
    Ok(())
}
