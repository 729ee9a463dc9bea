//! `ccb web`: everything that runs in a repository, in a browser.
//!
//! # What this room knows
//!
//! HTTP and TLS, which browsers and programs may ask (cookie, token, host, origin, process), the scene as
//! pieces of JSON, and the files of the page. The page is served to this machine alone unless the user
//! names another address, needs a secret, and loads nothing from elsewhere.
//!
//! # What it must not know (and where to go instead)
//!
//! * How a scene is read, and how a decision is carried out: the libraries that the live view uses, too.
//!   The page does nothing that the command line cannot do.
//! * Arguments, output, exit codes and signals: `cli` implements [`Host`] and fills [`Options`].
//!
//! # The way through
//!
//! 1. `server` accepts a connection; `connection` finds the program at its other end.
//! 2. `guard` checks each request; `routes/sign_in` and `entrance` let a browser in with a one-time code.
//! 3. `watcher` reads the scene while a browser listens; `pieces` cuts it up; `state` numbers the changes.
//! 4. `routes` sends each browser the pieces it lacks, and carries out what a person does in the page.
//!
//! | file | what it does |
//! |---|---|
//! | `host.rs` | the program that serves the page: options, terminal, end |
//! | `server.rs` | listens and announces |
//! | `tls.rs` | HTTPS, where a certificate is given |
//! | `guard.rs` | who may ask: cookie, token, host, origin |
//! | `refused.rs` | why a request is refused |
//! | `entrance.rs` | one-time codes, and the browsers that came in with one |
//! | `secret.rs` | secrets, and the file that proves a token |
//! | `connection.rs` | which program is at the other end |
//! | `routes/sign_in.rs` | how a browser comes in |
//! | `console.rs` | the terminal: Enter, and notices for the person |
//! | `routes/` | what can be asked |
//! | `watcher.rs`, `pieces.rs`, `state.rs` | looks, cuts into pieces, and knows which browser lacks which |
//! | `transcript.rs` | follows one agent |
//! | `http.rs`, `assets.rs` | answers, and the files of the page |
//!
//! # Crash points
//!
//! None of its own: it writes one file, the proof of a token, with one replacement (`store::atomic`).
//! Browsers sign in again after a restart, because what lets them in is in memory alone.
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | change the page of `ccb web` | `cli/page/src/`: `server.rs`, `tls.rs`, `guard.rs`, `refused.rs` (who may ask), `entrance.rs`, `routes/sign_in.rs`, `secret.rs` (how one comes in), `connection.rs` (which program asks), `console.rs` (its terminal), `routes/` (what), `pieces.rs` and `state.rs` (what browsers are sent), `cli/page/src/assets/` (the page itself: plain modules, no build) |

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
