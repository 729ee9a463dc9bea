//! Who may ask: the address bar's token once, then a cookie; and only pages of our own.
//!
//! A page of another origin can send requests here, and a name it owns can be made to mean this
//! machine. So every request must name us by an address, not by a name somebody else owns; what a
//! browser says about where a request comes from must be this page; and nothing is answered without a secret.

use std::net::{IpAddr, SocketAddr};

use super::tls::Names;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderName, ORIGIN};

/// How a browser says where a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// How long a token must be at least, in characters.
pub(super) const LEAST: usize = 32;

/// What decides who may ask.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    /// The secret in the address that is printed, and of programs.
    token: String,
    /// The secret in the cookie.
    cookie: String,
    /// Where requests are taken.
    at: SocketAddr,
    /// The names of the certificate; none over plain HTTP.
    names: Option<Names>,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is for another name: a page may have made that name mean this machine.
    Host,
    /// It comes from a page of somebody else.
    Origin,
    /// It has no secret, or a wrong one.
    Secret,
}

impl Refused {
    /// In words, for whoever made the request.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Host => {
                "This server answers only under an IP address, localhost or a name of its certificate, with \
                 its own port. Open the address that `ccb web` printed."
            }
            Self::Origin => "This request comes from another page. ccb answers only its own.",
            Self::Secret => {
                "Not signed in. Open the address that `ccb web` printed: it has the token. A new \
                 `ccb web` makes a new one."
            }
        }
    }
}

impl Guard {
    pub(super) fn new(token: String, at: SocketAddr, names: Option<Names>) -> Self {
        Self {
            token,
            cookie: secret(),
            at,
            names,
        }
    }

    fn scheme(&self) -> &'static str {
        match self.names {
            Some(_) => "https",
            None => "http",
        }
    }

    /// Where to go first.
    pub(super) fn url(&self) -> String {
        let ip = match self.at.ip() {
            ip if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
            ip => ip,
        };
        let (scheme, token) = (self.scheme(), &self.token);
        let port = self.at.port();
        // A browser compares the certificate with the address.
        let name = self
            .names
            .as_ref()
            .filter(|names| !names.hold(&ip.to_string()));
        match name.and_then(Names::first) {
            Some(name) => format!("{scheme}://{name}:{port}/?token={token}"),
            None => format!("{scheme}://{}/?token={token}", SocketAddr::new(ip, port)),
        }
    }

    /// What a browser keeps. Others on the same address have other names for theirs: cookies know no ports.
    fn name(&self) -> String {
        format!("ccb-{}", self.at.port())
    }

    /// The header that lets a browser in.
    pub(super) fn set_cookie(&self) -> String {
        let (name, value) = (self.name(), &self.cookie);
        let secure = if self.names.is_some() { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}")
    }

    /// Whether this is the token of the address.
    pub(super) fn is_token(&self, given: &str) -> bool {
        same(given, &self.token)
    }

    /// Whether a request is for us and from nobody else's page.
    pub(super) fn is_ours(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = host
            .filter(|host| self.names_us(host))
            .ok_or(Refused::Host)?;
        if let Some(origin) = headers.get(ORIGIN) {
            let ours = format!("{}://{host}", self.scheme());
            if origin.as_bytes() != ours.as_bytes() {
                return Err(Refused::Origin);
            }
        }
        Ok(())
    }

    /// Whether what is asked for may be answered. What changes something has to say that it comes from
    /// our page, or bear the token, which no other page can add.
    pub(super) fn may(&self, headers: &HeaderMap, changes: bool) -> Result<(), Refused> {
        if self.bears_token(headers) {
            return Ok(());
        }
        let site = headers.get(FETCH_SITE).and_then(|site| site.to_str().ok());
        if matches!(site, Some("cross-site" | "same-site")) {
            return Err(Refused::Origin);
        }
        if !self.has_cookie(headers) {
            return Err(Refused::Secret);
        }
        match changes && !headers.contains_key(ORIGIN) {
            true => Err(Refused::Origin),
            false => Ok(()),
        }
    }

    /// An address, the one name that always means this machine, or a name of our certificate,
    /// with our port. A browser leaves the usual port out.
    fn names_us(&self, host: &str) -> bool {
        if let Ok(at) = host.parse::<SocketAddr>() {
            return at.port() == self.at.port();
        }
        let usual = if self.names.is_some() { 443 } else { 80 };
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) => (name, port.parse().ok()),
            None => (host, Some(usual)),
        };
        let certified = |names: &Names| names.hold(name);
        port == Some(self.at.port())
            && (name.eq_ignore_ascii_case("localhost")
                || name.parse::<IpAddr>().is_ok()
                || self.names.as_ref().is_some_and(certified))
    }

    fn bears_token(&self, headers: &HeaderMap) -> bool {
        let given = headers
            .get(AUTHORIZATION)
            .and_then(|given| given.to_str().ok());
        let given = given.and_then(|given| given.strip_prefix("Bearer "));
        given.is_some_and(|given| self.is_token(given))
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let name = self.name();
        let given = headers.get_all(COOKIE).iter();
        let mut pairs = given
            .filter_map(|all| all.to_str().ok())
            .flat_map(|all| all.split(';'));
        pairs.any(|pair| match pair.trim().split_once('=') {
            Some((key, value)) => key == name && same(value, &self.cookie),
            None => false,
        })
    }
}

/// A new secret: 244 random bits.
pub(super) fn secret() -> String {
    let half = || uuid::Uuid::new_v4().simple().to_string();
    format!("{}{}", half(), half())
}

/// Compares in a time that says nothing about where the two differ.
fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let differ = |(a, b): (&u8, &u8)| a ^ b;
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .map(differ)
            .fold(0, |sum, bit| sum | bit)
            == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn guard() -> Guard {
        Guard::new(TOKEN.into(), SocketAddr::from(([127, 0, 0, 1], 7317)), None)
    }

    fn headers(of: &[(&str, &str)]) -> HeaderMap {
        let one = |(name, value): &(&str, &str)| {
            let name: HeaderName = name.parse().unwrap();
            (name, value.parse().unwrap())
        };
        of.iter().map(one).collect()
    }

    #[test]
    fn a_name_that_somebody_else_owns_is_refused() {
        let guard = guard();
        for host in [
            "127.0.0.1:7317",
            "localhost:7317",
            "LOCALHOST:7317",
            "[::1]:7317",
        ] {
            assert_eq!(guard.is_ours(&headers(&[("host", host)])), Ok(()), "{host}");
        }
        for host in [
            "evil.example:7317",
            "127.0.0.1.evil.example:7317",
            "localhost.evil.example:7317",
            "127.0.0.1:80",
            "127.0.0.1",
            "localhost",
            "",
            "127.0.0.1:7317@evil.example",
        ] {
            let said = guard.is_ours(&headers(&[("host", host)]));
            assert_eq!(said, Err(Refused::Host), "{host}");
        }
        assert_eq!(guard.is_ours(&headers(&[])), Err(Refused::Host));
    }

    #[test]
    fn a_page_of_another_origin_is_refused() {
        let guard = guard();
        let from = |origin| headers(&[("host", "127.0.0.1:7317"), ("origin", origin)]);
        assert_eq!(guard.is_ours(&from("http://127.0.0.1:7317")), Ok(()));
        for origin in [
            "https://evil.example",
            "null",
            "http://localhost:7317",
            "http://127.0.0.1:7318",
            "https://127.0.0.1:7317",
            "http://127.0.0.1:7317.evil.example",
        ] {
            let said = guard.is_ours(&from(origin));
            assert_eq!(said, Err(Refused::Origin), "{origin}");
        }
    }

    #[test]
    fn without_a_secret_nothing_is_answered() {
        let guard = guard();
        let cookie = guard.set_cookie();
        let cookie = cookie.split(';').next().unwrap();
        let ours = ("origin", "http://127.0.0.1:7317");
        assert_eq!(guard.may(&headers(&[]), false), Err(Refused::Secret));
        assert_eq!(
            guard.may(&headers(&[("cookie", "ccb-7317=x")]), false),
            Err(Refused::Secret)
        );
        let good = format!("other=1; {cookie}");
        assert_eq!(guard.may(&headers(&[("cookie", &good)]), false), Ok(()));
        // What changes something has to come from our page.
        let said = guard.may(&headers(&[("cookie", &good)]), true);
        assert_eq!(said, Err(Refused::Origin));
        assert_eq!(
            guard.may(&headers(&[("cookie", &good), ours]), true),
            Ok(())
        );
        let elsewhere = headers(&[("cookie", &good), ("sec-fetch-site", "cross-site")]);
        assert_eq!(guard.may(&elsewhere, false), Err(Refused::Origin));
        let bearer = format!("Bearer {TOKEN}");
        assert_eq!(
            guard.may(&headers(&[("authorization", &bearer)]), true),
            Ok(())
        );
        let wrong = headers(&[("authorization", "Bearer 0123")]);
        assert_eq!(guard.may(&wrong, true), Err(Refused::Secret));
        assert!(!guard.is_token("") && guard.is_token(TOKEN));
        assert_ne!(secret(), secret());
        assert!(secret().len() >= LEAST);
    }
}
