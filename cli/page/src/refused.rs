//! Reasons for refusing a request, in words and as a status.

use hyper::{Response, StatusCode};

use super::http::{self, Out};

/// The reason for refusing a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refused {
    /// Two readers of it could understand two requests.
    Ambiguous,
    /// It names another host: a page may have made that name resolve to this machine.
    Host,
    /// It comes from a page of another origin.
    Origin,
    /// It has no secret, or a wrong one.
    Secret,
    /// Its code has expired.
    Old,
    /// Another program, in words, came with its code.
    Taken(String),
    /// An agent, in words, sent it, or may have.
    Agent(String),
    /// Another user's program, in words, sent it.
    Stranger(String),
}

impl Refused {
    /// The reason in words, for the person or program that sent the request.
    pub(super) fn words(&self) -> String {
        const ANOTHER: &str =
            "For a new address press Enter in the terminal of `ccb web`, or start it again.";
        match self {
            Self::Ambiguous => {
                "A request needs one Host header and a Content-Length, and no Transfer-Encoding.".into()
            }
            Self::Host => {
                "This server answers only under an IP address, localhost or a name of its certificate, with \
                 its own port. Open the address that `ccb web` printed."
                    .into()
            }
            Self::Origin => "This request comes from another page. ccb answers only its own.".into(),
            Self::Secret => {
                format!("Not signed in. An address of `ccb web` lets in one browser. {ANOTHER}")
            }
            Self::Old => format!("This address is too old: it works for a minute. {ANOTHER}"),
            Self::Taken(by) => format!(
                "This address was used by another process: {by}. That process is signed out now. {ANOTHER}"
            ),
            Self::Agent(who) => format!(
                "Refused: this request comes from {who}. Agents decide nothing in the page. If you sent it, \
                 use a browser that no agent has started."
            ),
            Self::Stranger(who) => format!(
                "Refused: this request comes from {who}. The address is for the user who started \
                 `ccb web`; `--token-file` lets in others."
            ),
        }
    }
}

/// The answer to a request that is refused.
pub(super) fn refuse(refused: &Refused) -> Response<Out> {
    let status = match refused {
        Refused::Ambiguous => StatusCode::BAD_REQUEST,
        Refused::Secret | Refused::Old | Refused::Taken(_) => StatusCode::UNAUTHORIZED,
        Refused::Host | Refused::Origin | Refused::Agent(_) | Refused::Stranger(_) => {
            StatusCode::FORBIDDEN
        }
    };
    http::text(status, "text/plain; charset=utf-8", refused.words())
}
