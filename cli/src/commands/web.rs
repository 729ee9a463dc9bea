use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use store::Failure;

use crate::context::Context;
use crate::exit::Exit;

#[derive(Debug, Args)]
pub(crate) struct WebArgs {
    /// The address; other than loopback needs --token-file
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7317")]
    listen: SocketAddr,
    /// A certificate chain (PEM): the page is served over HTTPS; needs --tls-key
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key (PEM), readable by you alone
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A file that proves a token, for programs and other machines; --new-token writes it
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Make a new token: print it, write what proves it to --token-file, and serve nothing
    #[arg(long, requires = "token_file")]
    new_token: bool,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
}

#[cfg(feature = "page")]
pub(crate) use self::serve::run;

#[cfg(not(feature = "page"))]
pub(crate) fn run(_: &WebArgs, _: &mut Context) -> Result<Exit, Failure> {
    let message = "this ccb was built without the page";
    Err(Failure::usage("not_built", message).with_hint(
        "build it with: cargo install --path cli --features page. `ccb status --watch` shows the same in a terminal",
    ))
}

/// `ccb web` with the feature `page`.
#[cfg(feature = "page")]
mod serve {
    use serde_json::{Value, json};

    use super::{Context, Exit, Failure, WebArgs};
    use crate::output::Output;
    use crate::signals::Signals;

    pub(crate) fn run(args: &WebArgs, context: &mut Context) -> Result<Exit, Failure> {
        if let (true, Some(path)) = (args.new_token, &args.token_file) {
            let token = page::make_token(path)?;
            return context
                .out
                .done(|| json!({ "token": token }), || token.clone());
        }
        let options = page::Options {
            listen: args.listen,
            tls_cert: args.tls_cert.clone(),
            tls_key: args.tls_key.clone(),
            token_file: args.token_file.clone(),
            opens_browser: !args.no_open,
        };
        let mut host = Host {
            out: context.out.clone(),
            signals: Signals::catch()?,
        };
        page::run(&options, &context.workplace, &mut host)?;
        Ok(host.signals.came().unwrap_or(Exit::Done))
    }

    /// This process as the host of the page.
    struct Host {
        out: Output,
        signals: Signals,
    }

    impl page::Host for Host {
        fn is_json(&self) -> bool {
            self.out.is_json()
        }

        fn answer(&mut self, json: &Value, text: &str) -> Result<(), Failure> {
            self.out.answer(|| json.clone(), || text.to_owned())
        }

        fn note(&mut self, text: &str) {
            self.out.note(text);
        }

        fn should_end(&self) -> bool {
            self.signals.came().is_some()
        }
    }
}
