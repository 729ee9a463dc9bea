//! The teams of a workplace: where their rosters are, and which repository they are of.

use std::time::Duration;

use store::name::Name;
use team::{Listed, Team, TeamError};

use super::Workplace;
use super::names::Here;

/// Time that a view waits for a database.
const VIEW_PATIENCE: Duration = Duration::from_secs(1);

impl Workplace {
    /// The team of this name, as seen from where the command works.
    pub fn team_named(&self, name: Name) -> Team {
        self.teams.team(name)
    }

    /// All teams there are, of every repository.
    pub fn all_teams(&self) -> Result<Vec<Listed>, TeamError> {
        self.teams.list()
    }

    /// The repository as teams record it: its [common directory](Self::common_dir), or where
    /// they may be on several machines a name that is the same on each.
    pub fn repository_name(&self) -> Option<&str> {
        self.teams.repository()
    }

    pub(super) fn here(&self) -> Here<'_> {
        Here {
            repository: self.repository.as_ref(),
            name: self.repository_name(),
        }
    }

    /// The same for a view that stays open, or for completions: ccb waits only a moment for a
    /// database that does not answer.
    #[must_use]
    pub fn for_view(&self) -> Self {
        let backends = self.backends.with_patience(VIEW_PATIENCE);
        Self {
            teams: backends.teams(self.repository.as_ref(), self.settings.lock_timeout),
            backends,
            ..self.clone()
        }
    }
}
