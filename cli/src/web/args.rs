//! The arguments of `ccb web`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct WebArgs {
    /// The address; other than loopback needs --token-file
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7317")]
    pub(crate) listen: SocketAddr,
    /// A certificate chain (PEM): the page is served over HTTPS; needs --tls-key
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's private key (PEM), readable by you alone
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// A file that proves a token, for programs and other machines; --new-token writes it
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Make a new token: print it, write what proves it to --token-file, and serve nothing
    #[arg(long, requires = "token_file")]
    pub(crate) new_token: bool,
    /// Do not open a browser
    #[arg(long)]
    pub(crate) no_open: bool,
}
