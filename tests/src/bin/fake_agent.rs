//! An agent that follows a script. It speaks ccb's line protocol, and finds the script in its
//! prompt.
//!
//! Arguments: `--plain` to behave like any command, `--script FILE` or `--json SCRIPT` for a script
//! that is not in the prompt.

use std::error::Error;
use std::process::ExitCode;

use harness::fake::{self, Player};
use harness::script::Script;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut plain = false;
    let mut script: Option<Script> = None;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--plain" => plain = true,
            "--script" => script = Some(serde_json::from_slice(&std::fs::read(value()?)?)?),
            "--json" => script = Some(serde_json::from_str(&value()?)?),
            "--grandchild" => {
                fake::child(&value()?)?;
                return Ok(ExitCode::SUCCESS);
            }
            other => return Err(format!("unknown argument {other:?}").into()),
        }
    }
    let player = if plain {
        Player::plain(script.ok_or("--plain needs --script or --json")?)
    } else {
        Player::lines(script)?
    };
    let code = player.play()?;
    Ok(ExitCode::from(u8::try_from(code)?))
}
