//! The acting process: its environment, and the secrets in it.
//!
//! An agent gets a part of the environment of the process that starts it, but the secrets in *all*
//! of it must not be written down: the agent may come by them in other ways. So the whole
//! environment goes from the starter to guard and host, by a way that leaves no trace: neither
//! their own environments nor their command lines show it, and no file holds it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::{Arc, OnceLock};

use rustix::fs::{MemfdFlags, memfd_create};
use store::secret_filter::SecretFilter;

use crate::redact::{Secrets, secret_values};

/// Names and values.
pub type Environment = Vec<(OsString, OsString)>;

/// The first bytes of an environment that is handed over, so that no other file is taken for one.
const MAGIC: &[u8] = b"ccb environment 1\0";

/// The acting process.
#[derive(Clone)]
pub struct Starter(Arc<Inner>);

struct Inner {
    /// Its environment; `None` takes that of this process.
    environment: Option<Environment>,
    /// The variables that it gives to its agent besides.
    more: Environment,
    /// Variables whose values are secret whatever their names look like.
    named: Vec<String>,
    secrets: OnceLock<Arc<Secrets>>,
}

impl Starter {
    /// This process. `named` are variables whose values are secret whatever their names look
    /// like.
    pub fn this_process(named: &[String]) -> Self {
        Self::new(None, Vec::new(), named)
    }

    /// Another process, which had this environment; `more` is what its agent is given besides,
    /// of which the secrets count, too.
    pub fn with_environment(environment: Environment, more: Environment, named: &[String]) -> Self {
        Self::new(Some(environment), more, named)
    }

    fn new(environment: Option<Environment>, more: Environment, named: &[String]) -> Self {
        Self(Arc::new(Inner {
            environment,
            more,
            named: named.to_vec(),
            secrets: OnceLock::new(),
        }))
    }

    /// All of its environment.
    pub fn environment(&self) -> Environment {
        match &self.0.environment {
            Some(environment) => environment.clone(),
            None => own_environment(),
        }
    }

    /// The texts that must not be written down: the secret values of its environment, without those
    /// we ourselves put there, and everything that looks like the key of a known service.
    pub fn secrets(&self) -> Arc<Secrets> {
        Arc::new(Secrets::new(self.values()))
    }

    fn values(&self) -> Vec<Vec<u8>> {
        let own = self.environment();
        let all = own.iter().chain(&self.0.more);
        let board = all.clone().find(|(name, _)| name == "CCB_BOARD");
        let password = board.and_then(|(_, address)| password_in(address.as_bytes()));
        let all = all.filter(|(name, _)| !is_ours(name));
        let all = all.map(|(name, value)| (name, value));
        let mut values = secret_values(all, &self.0.named);
        values.extend(password);
        values
    }

    /// Takes the secret values of its environment out of messages and tasks. A text that only looks
    /// like a secret stays: people and agents mean to write these texts.
    pub fn secret_filter(&self) -> SecretFilter {
        let starter = self.clone();
        SecretFilter::new(move |text| {
            let made = || Arc::new(Secrets::values_only(starter.values()));
            starter.0.secrets.get_or_init(made).redacted(text)
        })
    }
}

impl fmt::Debug for Starter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing of what it holds.
        f.write_str("Starter")
    }
}

fn is_ours(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"CCB_")
}

/// The password in the address of a database.
fn password_in(address: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(address).ok()?;
    let (_, rest) = text.split_once("://")?;
    let who = rest
        .rsplit_once('@')
        .and_then(|(who, _)| who.split_once(':'));
    let named = || {
        let mut parts = rest.split(['?', '&']);
        parts.find_map(|part| part.strip_prefix("password="))
    };
    let found = who.map(|(_, password)| password).or_else(named)?;
    // One or two letters are in every text.
    (found.len() > 3).then(|| found.as_bytes().to_vec())
}

/// Variables that this process was given after it had started.
static GIVEN: OnceLock<Environment> = OnceLock::new();

/// Adds variables to the result of [`own_environment`], once per process. Unlike those a process is
/// started with, they are not in `/proc/PID/environ`, where root and, before the process has closed
/// itself to others, all processes of the same user could read them.
pub fn give_to_this_process(variables: Environment) {
    // The first ones stay: a process has one opening line.
    GIVEN.set(variables).ok();
}

/// The environment of this process, with what it was given since; of the agent this thread works
/// for, if the process has several.
pub fn own_environment() -> Environment {
    if let Some(scope) = crate::scope::current() {
        return scope.env.clone();
    }
    let given = GIVEN.get().into_iter().flatten();
    let is_given = |name: &OsStr| own_given(name).is_some();
    let started_with = std::env::vars_os().filter(|(name, _)| !is_given(name));
    started_with.chain(given.cloned()).collect()
}

/// One variable of [`own_environment`].
pub fn own_variable(name: &str) -> Option<OsString> {
    if let Some(scope) = crate::scope::current() {
        let found = scope.env.iter().find(|(known, _)| known == name);
        return found.map(|(_, value)| value.clone());
    }
    let given = own_given(OsStr::new(name)).cloned();
    given.or_else(|| std::env::var_os(name))
}

fn own_given(name: &OsStr) -> Option<&'static OsString> {
    let mut given = GIVEN.get().into_iter().flatten();
    given
        .find(|(known, _)| known == name)
        .map(|(_, value)| value)
}

/// A file that is in no directory and holds an environment.
pub fn hand_over(environment: &[(OsString, OsString)]) -> io::Result<File> {
    let mut bytes = MAGIC.to_vec();
    for (name, value) in environment {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(b'=');
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(0);
    }
    // No process inherits it by accident: only the one it is given to.
    let mut file = File::from(memfd_create("ccb", MemfdFlags::CLOEXEC)?);
    file.write_all(&bytes)?;
    Ok(file)
}

/// The environment that [`hand_over`] put into `file`.
pub fn received(mut file: File) -> Option<Environment> {
    // Devices can be read for ever.
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    file.seek(SeekFrom::Start(0)).ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    parse(&bytes)
}

pub(crate) fn parse(bytes: &[u8]) -> Option<Environment> {
    let entries = bytes.strip_prefix(MAGIC)?.split(|byte| *byte == 0);
    let entries = entries.filter_map(|entry| {
        // A name may begin with the sign that ends names.
        let end = entry.iter().skip(1).position(|byte| *byte == b'=')? + 1;
        let (name, value) = (&entry[..end], &entry[end + 1..]);
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        Some((text(name), text(value)))
    });
    Some(entries.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Environment {
        let pair = |(name, value): &(&str, &str)| ((*name).into(), (*value).into());
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn an_environment_arrives_as_it_was() {
        let mut given = pairs(&[("A", ""), ("B", "x=y\nz"), ("=C", "1")]);
        given.push(("D".into(), OsString::from_vec(b"\xff\xfe".to_vec())));
        let mut file = hand_over(&given).unwrap();
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_end(&mut bytes).unwrap();
        assert_eq!(parse(&bytes).unwrap(), given);
        assert_eq!(parse(b"a line of a log\n"), None);
    }

    #[test]
    fn its_values_are_taken_out_of_texts_but_not_what_looks_like_a_key() {
        let environment = pairs(&[
            ("MY_TOKEN", "s3cr3t-value-1"),
            ("CCB_RUN_TOKEN", "1700000000000"),
            ("ODD", "named-by-the-user"),
        ]);
        assert_eq!(
            password_in(b"postgres://ann:s3cr3t@db:5432/x?schema=y"),
            Some(b"s3cr3t".to_vec())
        );
        assert_eq!(
            password_in(b"postgres://ann@db/x?sslmode=require&password=s3cr3t"),
            Some(b"s3cr3t".to_vec())
        );
        assert_eq!(password_in(b"postgres://ann@db/x"), None);
        let more = pairs(&[("AN_API_KEY", "of-the-agent-7")]);
        let starter = Starter::with_environment(environment, more, &["ODD".into()]);
        let mut text = "s3cr3t-value-1 1700000000000 named-by-the-user AKIAIOSFODNN7EXAMPLE".into();
        starter.secret_filter().text(&mut text);
        assert_eq!(
            text,
            "[redacted] 1700000000000 [redacted] AKIAIOSFODNN7EXAMPLE"
        );
        assert!(!format!("{starter:?}").contains("s3cr3t"));
        assert_eq!(
            starter
                .secrets()
                .redact("of-the-agent-7 s3cr3t-value-1 AKIAIOSFODNN7EXAMPLE"),
            "[redacted] [redacted] [redacted]"
        );
    }
}
