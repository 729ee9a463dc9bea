//! The scripted model provider as a program, to try real agent programs by hand.
//!
//! Arguments: `--port N` (else a free one), `--log-dir DIR` for its requests, `--port-file FILE`
//! for its port, `--scripts-without-tools`. Prints `listening PORT`.

use std::error::Error;

use harness::model::{ModelOptions, ModelServer};

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = ModelOptions::default();
    let mut port_file = None;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--port" => options.port = value()?.parse()?,
            "--log-dir" => options.log_dir = Some(value()?.into()),
            "--port-file" => port_file = Some(value()?),
            "--scripts-without-tools" => options.scripts_without_tools = true,
            other => return Err(format!("unknown argument {other:?}").into()),
        }
    }
    let server = ModelServer::with(options)?;
    if let Some(path) = port_file {
        std::fs::write(path, server.port().to_string())?;
    }
    println!("listening {}", server.port());
    server.run();
    Ok(())
}
