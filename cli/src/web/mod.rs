//! `ccb web`: everything that runs in a repository, in a browser.
//!
//! The page is another reader of [`coordinator::live`] and does nothing the command line cannot do. It is
//! served to this machine alone unless somebody says otherwise, needs a token, and loads nothing from
//! anywhere.
//!
//! | file | what it does |
//! |---|---|
//! | `server.rs` | listens and announces |
//! | `tls.rs` | HTTPS, where a certificate is given |
//! | `guard.rs` | who may ask: token, cookie, host, origin |
//! | `routes.rs` | what can be asked |
//! | `watcher.rs`, `pieces.rs`, `state.rs` | looks, cuts into pieces, and knows which browser lacks which |
//! | `transcript.rs` | follows one agent |
//! | `http.rs`, `assets.rs` | answers, and the files of the page |

mod args;
#[cfg(feature = "page")]
mod assets;
#[cfg(feature = "page")]
mod guard;
#[cfg(feature = "page")]
mod http;
#[cfg(feature = "page")]
mod pieces;
#[cfg(feature = "page")]
mod routes;
#[cfg(feature = "page")]
mod server;
#[cfg(feature = "page")]
mod state;
#[cfg(feature = "page")]
mod tls;
#[cfg(feature = "page")]
mod transcript;
#[cfg(feature = "page")]
mod watcher;

pub(crate) use self::args::WebArgs;
#[cfg(feature = "page")]
pub(crate) use self::server::run;
