//! Claims tasks one after the other and prints the id of each once the claim has succeeded.
//!
//! Arguments: home, list, agent, `relaxed` to sync nothing, and `stepwise` to wait for a line of
//! input before each claim.

use std::error::Error;
use std::io::Write;

use store::atomic::Durability;
use store::home::Home;
use store::name::Name;
use taskboard::{Board, BoardOptions, ClaimRequest, Next};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("too few arguments");
    let home = Home::new(next()?.into())?;
    let list = Name::new("list", &next()?)?;
    let request = ClaimRequest::new(next()?);
    let mut options = BoardOptions::default();
    let words: Vec<String> = args.collect();
    let given = |word: &str| words.iter().any(|given| given == word);
    if given("relaxed") {
        options.durability = Durability::Relaxed;
    }
    let board = Board::new(&home, list, options);
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready")?;
    out.flush()?;
    let step = || {
        let mut line = String::new();
        given("stepwise").then(|| std::io::stdin().read_line(&mut line))
    };
    step().transpose()?;
    while let Next::Claimed(claimed) = board.claim_next(&request)? {
        writeln!(out, "{}", claimed.task.id)?;
        out.flush()?;
        step().transpose()?;
    }
    writeln!(out, "nothing left")?;
    Ok(())
}
