//! The workers of a list, on this machine and on others.

use std::collections::BTreeSet;

/// A worker on the same board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownWorker {
    /// In lower case.
    pub name: String,
    /// Labels of its machine: abilities that not every machine has.
    pub labels: BTreeSet<String>,
}

impl KnownWorker {
    /// The label of a worker that lands what it does on this branch.
    pub fn lands_on(branch: &str) -> String {
        format!("into={branch}")
    }

    /// True if the agent of this name is one of its agents, and it lands their work on `branch`.
    pub fn lands_for(&self, agent: &str, branch: &str) -> bool {
        let agent = agent.to_lowercase();
        let number = agent.strip_prefix(&self.name);
        let ours = number.is_some_and(|rest| {
            let digits = rest.strip_prefix('-').unwrap_or_default();
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        ours && self.labels.contains(&Self::lands_on(branch))
    }
}

/// The name of this machine.
pub fn host_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy().into_owned();
    match name.is_empty() {
        true => "localhost".into(),
        false => name,
    }
}
