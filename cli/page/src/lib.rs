//! `ccb web`: everything that runs in a repository, in a browser.
//!
//! The page is another reader of [`coordinator::live`] and does nothing the command line cannot do. It is
//! served to this machine alone unless somebody says otherwise, needs a secret, and loads nothing from
//! anywhere.
//!
//! | file | what it does |
//! |---|---|
//! | `host.rs` | what the program gives that serves the page |
//! | `server.rs` | listens and announces |
//! | `tls.rs` | HTTPS, where a certificate is given |
//! | `guard.rs` | who may ask: cookie, token, host, origin |
//! | `refused.rs` | why a request is refused |
//! | `entrance.rs` | one-time codes, and the browsers that came in with one |
//! | `secret.rs` | secrets, and the file that proves a token |
//! | `connection.rs` | which program is at the other end |
//! | `routes/sign_in.rs` | how a browser comes in |
//! | `console.rs` | the terminal: Enter, and what a person is told |
//! | `routes.rs` | what can be asked |
//! | `watcher.rs`, `pieces.rs`, `state.rs` | looks, cuts into pieces, and knows which browser lacks which |
//! | `transcript.rs` | follows one agent |
//! | `http.rs`, `assets.rs` | answers, and the files of the page |

mod assets;
mod connection;
mod console;
mod entrance;
#[doc(hidden)]
pub mod fuzz;
mod guard;
mod host;
mod http;
mod pieces;
mod refused;
mod routes;
mod secret;
mod server;
mod state;
mod tls;
mod transcript;
mod watcher;

pub use self::host::{Host, Options};
pub use self::secret::make_token;
pub use self::server::run;
