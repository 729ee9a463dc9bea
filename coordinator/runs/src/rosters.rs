//! Where a team's roster is, and what is beside it.

use std::time::Duration;

use team::TeamOptions;
use worktrees::Repository;

/// How teams behave whose rosters are files.
pub fn in_files(repository: Option<&Repository>, lock_timeout: Duration) -> TeamOptions {
    let common_dir = repository.and_then(|repository| repository.common_dir.to_str());
    TeamOptions {
        repository: common_dir.map(str::to_owned),
        lock_timeout,
        ..TeamOptions::default()
    }
}

#[cfg(feature = "postgres")]
pub use in_database::{on_database, repository_name};

#[cfg(feature = "postgres")]
mod in_database {
    use std::sync::Arc;
    use std::time::Duration;

    use database::Database;
    use store::home::Home;
    use store::machine::Machine;
    use store::name::Name;
    use team::{Beside, TeamError, TeamOptions};
    use worktrees::Repository;

    /// The repository as it is called on every machine: the address of its remote `origin`. One
    /// without such a remote is on one machine alone, and is called after its place there.
    pub fn repository_name(repository: &Repository) -> Option<String> {
        repository
            .address()
            .or_else(|| repository.common_dir.to_str().map(str::to_owned))
    }

    /// How teams behave whose rosters are in a database; `repository` is its
    /// [name](repository_name).
    pub fn on_database(
        database: &Database,
        home: &Home,
        repository: Option<String>,
        lock_timeout: Duration,
    ) -> TeamOptions {
        let machine = Machine::of(home)
            .inspect_err(|error| tracing::warn!(%error, "this machine has no id"))
            .ok();
        TeamOptions {
            repository,
            database: Some(database.clone()),
            machine,
            beside: Some(Arc::new(OnDatabase(database.clone()))),
            lock_timeout,
            ..TeamOptions::default()
        }
    }

    /// Mail and lists beside the rosters of a database.
    #[derive(Debug)]
    struct OnDatabase(Database);

    impl Beside for OnDatabase {
        fn inboxes_being_read(&self, team: &Name) -> Result<Vec<String>, TeamError> {
            Ok(mailbox::inboxes_being_read(&self.0, team)?)
        }

        fn delete_mail(&self, team: &Name) -> Result<(), TeamError> {
            Ok(mailbox::delete_all(&self.0, team)?)
        }

        fn list_alike(&self, team: &Name) -> Result<Option<String>, TeamError> {
            Ok(taskboard::list_alike(&self.0, team)?)
        }
    }
}
