//! The agent for which a thread works, in a process of several agents.
//!
//! A program has one environment and one directory, and an agent's identity follows from its
//! program's. Where several agents share a process, each thread that works for one of them has the
//! agent's instead: code that asks who calls, or where, asks here first
//! (`starter::own_environment`). A thread that works for no particular agent has the process's own.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An agent, as its threads see the world.
#[derive(Debug)]
pub struct Scope {
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub dir: PathBuf,
}

thread_local! {
    static OWN: RefCell<Option<Arc<Scope>>> = const { RefCell::new(None) };
}

/// From here on this thread works for `scope`.
pub fn enter(scope: Option<Arc<Scope>>) {
    OWN.with(|own| *own.borrow_mut() = scope);
}

/// For whom this thread works; to be entered by the threads it starts.
pub fn current() -> Option<Arc<Scope>> {
    OWN.with(|own| own.borrow().clone())
}

/// A thread that works for the same agent as this one.
pub fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    let scope = current();
    std::thread::spawn(move || {
        enter(scope);
        work()
    })
}

/// The directory relative paths start from.
pub fn dir() -> io::Result<PathBuf> {
    match current() {
        Some(scope) => Ok(Path::new(&scope.dir).to_owned()),
        None => std::env::current_dir(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::starter::own_variable;

    #[test]
    fn a_thread_sees_its_agent_and_passes_it_on() {
        let scope = Arc::new(Scope {
            env: vec![("CCB_AGENT".into(), "ann".into())],
            dir: PathBuf::from("/tree"),
        });
        let seen = std::thread::spawn(move || {
            enter(Some(scope));
            let below = spawn(|| {
                (
                    own_variable("CCB_AGENT"),
                    own_variable("PATH"),
                    dir().unwrap(),
                )
            });
            below.join().unwrap()
        });
        let (agent, path, dir) = seen.join().unwrap();
        assert_eq!(agent, Some("ann".into()));
        assert_eq!(path, None, "nothing of the process's own");
        assert_eq!(dir, Path::new("/tree"));
        assert!(current().is_none(), "and nobody else does");
        assert_eq!(own_variable("PATH"), std::env::var_os("PATH"));
    }
}
