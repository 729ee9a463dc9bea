//! An agent that speaks the Agent Client Protocol and follows the script in its prompt. The first
//! argument names the agent it imitates (see `harness::fake::Persona`); others are ignored.

use std::error::Error;
use std::process::ExitCode;

use harness::fake::{self, Persona, Player};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let name = args.next().ok_or("as whom?")?;
    if name == "--grandchild" {
        fake::child(&args.next().ok_or("--grandchild needs a value")?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let persona = Persona::named(&name).ok_or(format!("no agent is called {name:?}"))?;
    let code = Player::acp(persona)?.play()?;
    Ok(ExitCode::from(u8::try_from(code)?))
}
