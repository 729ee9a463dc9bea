//! The teams of a workplace: where their rosters are, and which repository they are of.

use runs::rosters;
use store::name::Name;
use team::{Listed, Team, TeamError, TeamOptions};

use super::Workplace;
use super::names::Here;

/// How long a view waits for a database.
#[cfg(feature = "postgres")]
const VIEW_PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

impl Workplace {
    /// The team of this name, as seen from where the command works.
    pub fn team_named(&self, name: Name) -> Team {
        Team::new(&self.home, name, self.teams.clone())
    }

    /// All teams there are, of every repository.
    pub fn all_teams(&self) -> Result<Vec<Listed>, TeamError> {
        team::list(&self.home, &self.teams)
    }

    /// What teams record as their repository: its [common directory](Self::common_dir), or where
    /// they may be on several machines a name that is the same on each.
    pub fn repository_name(&self) -> Option<&str> {
        self.teams.repository.as_deref()
    }

    pub(super) fn here(&self) -> Here<'_> {
        Here {
            repository: self.repository.as_ref(),
            name: self.teams.repository.as_deref(),
        }
    }

    /// How teams behave here.
    pub(super) fn team_options(&self) -> TeamOptions {
        let (repository, lock_timeout) = (self.repository.as_ref(), self.settings.lock_timeout);
        #[cfg(feature = "postgres")]
        if let Some(database) = &self.database {
            let name = repository.and_then(rosters::repository_name);
            return rosters::on_database(database, &self.home, name, lock_timeout);
        }
        rosters::in_files(repository, lock_timeout)
    }

    /// The same for a view that stays open, or for completions: a database that does not answer does
    /// not keep anybody waiting.
    #[must_use]
    pub fn for_view(&self) -> Self {
        #[cfg(feature = "postgres")]
        if let Some(database) = &self.database {
            let settings = database.settings().clone().with_patience(VIEW_PATIENCE);
            let view = Self {
                database: Some(database::Database::new(settings)),
                ..self.clone()
            };
            return Self {
                teams: view.team_options(),
                ..view
            };
        }
        self.clone()
    }
}
