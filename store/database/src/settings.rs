//! The address of the database, and how ccb connects to it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::error::DatabaseError;
use crate::pgpass;

/// Passwords that are not in the address. Only the command line knows the environment.
#[derive(Clone, Default)]
pub struct Secrets {
    /// `$PGPASSWORD`.
    pub password: Option<String>,
    /// `$PGPASSFILE`, or `~/.pgpass`.
    pub pass_file: Option<PathBuf>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

/// The checks that the server's certificate must pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// None: any certificate will do.
    Anybody,
    /// An authority that is known here signed it.
    Authority,
    /// The same, and it is for the host's name.
    AuthorityAndName,
}

/// The address of the database, and how ccb connects to it.
#[derive(Clone)]
pub struct Settings {
    pub(crate) config: Config,
    pub(crate) schema: String,
    pub(crate) trust: Trust,
    pub(crate) root_certificate: Option<PathBuf>,
    /// Time limit of a change with all its retries.
    pub(crate) patience: Duration,
    /// Time limit for a lock that another change holds.
    pub(crate) lock_timeout: Duration,
    in_address: bool,
    shown: String,
    address: String,
}

/// The schema unless the address names one.
const SCHEMA: &str = "ccb";
/// Time limit for connecting to one host.
const CONNECT: Duration = Duration::from_secs(5);
/// Silence on a link before it is probed, and then until it counts as broken.
const SILENT: Duration = Duration::from_secs(10);
/// Time limit of a change with all its retries, unless the address names one.
const PATIENCE: Duration = Duration::from_secs(30);

/// True if this is meant as the address of a database.
pub fn is_url(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

impl Settings {
    /// Reads an address: `postgres://user@host:port/database?schema=ccb&sslmode=verify-full`.
    ///
    /// Besides what every PostgreSQL client understands: `schema` (default `ccb`), `sslmode` with
    /// `verify-ca` and `verify-full`, `sslrootcert`, `patience` (seconds a change may take).
    pub fn parse(url: &str, secrets: &Secrets) -> Result<Self, DatabaseError> {
        let bad = |why: &str| DatabaseError::BadUrl {
            why: why.to_owned(),
        };
        if !is_url(url) {
            return Err(bad("it must begin with postgres://"));
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut kept = Vec::new();
        let mut ours = Ours::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !ours.take(key, value)? {
                kept.push(pair);
            }
        }
        let plain = match kept.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{}", kept.join("&")),
        };
        // The parser's own words can hold a part of the address, and so of a password.
        let mut config: Config = plain
            .parse()
            .map_err(|_| bad("it cannot be read; write special characters in it as %XX"))?;
        if config.get_hosts().is_empty() {
            return Err(bad("it names no host"));
        }
        let in_address = config.get_password().is_some();
        let Some(user) = config.get_user().map(str::to_owned) else {
            return Err(bad("it names no user"));
        };
        if config.get_dbname().is_none() {
            config.dbname(&user);
        }
        ours.apply(&mut config);
        let mut settings = Self {
            address: stripped(url),
            shown: String::new(),
            schema: ours.schema.unwrap_or_else(|| SCHEMA.to_owned()),
            trust: ours.trust.unwrap_or(Trust::Anybody),
            root_certificate: ours.root_certificate,
            patience: ours.patience.unwrap_or(PATIENCE),
            lock_timeout: Duration::from_secs(10),
            in_address,
            config,
        };
        settings.shown = settings.without_password();
        settings.find_password(secrets);
        Ok(settings)
    }

    /// True if the address itself holds the password. Everybody on the machine can read the
    /// arguments of a command, so such an address must not be one.
    pub fn has_password_in_address(&self) -> bool {
        self.in_address
    }

    /// The same of an address that was not parsed yet.
    pub fn holds_password(address: &str) -> bool {
        Self::parse(address, &Secrets::default()).is_ok_and(|settings| settings.in_address)
    }

    /// The same with another limit for locks that other changes hold.
    #[must_use]
    pub fn with_lock_timeout(mut self, limit: Duration) -> Self {
        self.lock_timeout = limit;
        self
    }

    /// The same with another limit for a change with all its retries.
    #[must_use]
    pub fn with_patience(mut self, limit: Duration) -> Self {
        self.patience = limit;
        self
    }

    /// The address without its password.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The address with everything in it but the password, to be stored and read again.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The schema that holds the tables.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    fn places(&self) -> impl Iterator<Item = (String, u16)> {
        let ports = self.config.get_ports();
        let hosts = self.config.get_hosts().iter().enumerate();
        hosts.map(move |(n, host)| {
            let port = ports.get(n).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => (name.clone(), port),
                Host::Unix(path) => (path.display().to_string(), port),
            }
        })
    }

    fn without_password(&self) -> String {
        let user = self.config.get_user().unwrap_or_default();
        let hosts: Vec<String> = self
            .places()
            .map(|(host, port)| format!("{}:{port}", host.replace('/', "%2F")))
            .collect();
        let name = self.config.get_dbname().unwrap_or_default();
        let mut shown = format!("postgres://{user}@{}/{name}", hosts.join(","));
        if self.schema != SCHEMA {
            shown.push_str("?schema=");
            shown.push_str(&self.schema);
        }
        shown
    }

    fn find_password(&mut self, secrets: &Secrets) {
        if self.in_address {
            return;
        }
        if let Some(password) = &secrets.password {
            self.config.password(password);
            return;
        }
        let Some(file) = &secrets.pass_file else {
            return;
        };
        let user = self.config.get_user().unwrap_or_default().to_owned();
        let name = self.config.get_dbname().unwrap_or_default().to_owned();
        let found = self.places().find_map(|(host, port)| {
            let host = if host.starts_with('/') {
                "localhost"
            } else {
                &host
            };
            pgpass::look_up(file, [host, &port.to_string(), &name, &user])
        });
        if let Some(password) = found {
            self.config.password(password);
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// An address without its password, wherever the password is in it.
fn stripped(url: &str) -> String {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let base = match (base.split_once("://"), base.rsplit_once('@')) {
        (Some((scheme, _)), Some((who, place))) => {
            let user = who[scheme.len() + 3..].split(':').next();
            format!("{scheme}://{}@{place}", user.unwrap_or_default())
        }
        _ => base.to_owned(),
    };
    let kept = query
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.starts_with("password="));
    let kept: Vec<&str> = kept.collect();
    match kept.is_empty() {
        true => base,
        false => format!("{base}?{}", kept.join("&")),
    }
}

/// The parameters of an address that the client does not understand.
#[derive(Default)]
struct Ours {
    schema: Option<String>,
    mode: Option<SslMode>,
    trust: Option<Trust>,
    root_certificate: Option<PathBuf>,
    patience: Option<Duration>,
}

impl Ours {
    /// Takes a parameter; `false` if it is not one of ours.
    fn take(&mut self, key: &str, value: &str) -> Result<bool, DatabaseError> {
        let bad = |why: String| Err(DatabaseError::BadUrl { why });
        match key {
            "schema" => {
                let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                let first = value.chars().next().is_some_and(|c| c.is_ascii_lowercase());
                if !first || value.len() > 48 || !value.chars().all(plain) {
                    return bad(
                        "schema must be a lower-case letter, then up to 47 lower-case letters, \
                         digits or '_'"
                            .into(),
                    );
                }
                self.schema = Some(value.to_owned());
            }
            "sslmode" => {
                let (mode, trust) = match value {
                    "disable" => (SslMode::Disable, None),
                    "allow" | "prefer" => (SslMode::Prefer, None),
                    "require" => (SslMode::Require, None),
                    "verify-ca" => (SslMode::Require, Some(Trust::Authority)),
                    "verify-full" => (SslMode::Require, Some(Trust::AuthorityAndName)),
                    _ => {
                        return bad(
                            "sslmode must be disable, prefer, require, verify-ca or verify-full"
                                .into(),
                        );
                    }
                };
                (self.mode, self.trust) = (Some(mode), trust);
            }
            "sslrootcert" => self.root_certificate = Some(PathBuf::from(value.replace("%2F", "/"))),
            "patience" => match value.parse() {
                Ok(seconds @ 1..=3600) => self.patience = Some(Duration::from_secs(seconds)),
                _ => return bad("patience must be a number of seconds from 1 to 3600".into()),
            },
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn apply(&mut self, config: &mut Config) {
        if let Some(mode) = self.mode {
            config.ssl_mode(mode);
        }
        if self.root_certificate.is_some() && self.trust.is_none() {
            // As libpq does: a root certificate asks for a check of the authority.
            self.trust = Some(Trust::Authority);
        }
        if config.get_application_name().is_none() {
            config.application_name("ccb");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_hosts().len() > 1 {
            // Several hosts are a primary and its standbys.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        config.keepalives_idle(SILENT);
        config.keepalives_interval(Duration::from_secs(3));
        config.keepalives_retries(3);
        config.tcp_user_timeout(2 * SILENT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Settings, DatabaseError> {
        Settings::parse(url, &Secrets::default())
    }

    #[test]
    fn a_password_is_used_and_never_shown() {
        for url in [
            "postgres://ann:s3cret@db:5433/work?schema=team_a&sslmode=verify-full",
            "postgres://ann@db:5433/work?password=s3cret&schema=team_a",
        ] {
            let settings = parse(url).unwrap();
            assert!(settings.has_password_in_address());
            assert_eq!(settings.config.get_password(), Some(&b"s3cret"[..]));
            let shown = format!(
                "{settings} {settings:?} {:?}",
                crate::Database::new(settings.clone())
            );
            assert!(!shown.contains("s3cret"), "{shown}");
            assert!(shown.contains("postgres://ann@db:5433/work?schema=team_a"));
        }
        let given = Secrets {
            password: Some("fromenv".into()),
            pass_file: None,
        };
        let settings = Settings::parse("postgres://ann@db/work", &given).unwrap();
        assert!(!settings.has_password_in_address());
        assert_eq!(settings.config.get_password(), Some(&b"fromenv"[..]));
        assert!(!format!("{given:?}").contains("fromenv"));
    }

    #[test]
    fn an_address_without_its_password_says_everything_else() {
        for (url, without) in [
            (
                "postgres://ann:s3c:ret@db:5433/work?schema=a&sslmode=require",
                "postgres://ann@db:5433/work?schema=a&sslmode=require",
            ),
            (
                "postgresql://ann@db/work?password=s3cret&patience=5",
                "postgresql://ann@db/work?patience=5",
            ),
            ("postgres://ann:s3cret@db", "postgres://ann@db"),
        ] {
            let settings = parse(url).unwrap();
            assert_eq!(settings.address(), without);
            let again = parse(settings.address()).unwrap();
            assert_eq!(again.shown(), settings.shown());
            assert!(!again.has_password_in_address());
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_being_repeated() {
        for url in [
            "mysql://ann:s3cret@db/work",
            "postgres://ann:s3cret@db:notaport/work",
            "postgres://ann:s3cret@db/work?schema=Bad-Schema",
            "postgres://ann:s3cret@db/work?schema=x\";drop",
            "postgres://ann:s3cret@db/work?sslmode=maybe",
            "postgres://ann:s3cret@db/work?patience=0",
            "postgres://ann:s3cret@db/work?nonsense=1",
            "postgres:///work",
        ] {
            let error = parse(url).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
    }
}
