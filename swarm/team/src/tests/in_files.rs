//! Rosters in files.

/// Creating, joining, leaving.
#[path = "changes.rs"]
mod changes;
/// Members that are alive, and deleting.
#[path = "ending.rs"]
mod ending;
/// Rosters other tools, and other versions, wrote.
#[path = "foreign.rs"]
mod foreign;

use serde_json::Value;
use store::clock::ManualClock;
use store::home::create_private_dir;
use tempfile::TempDir;

use super::*;

struct Scene {
    dir: TempDir,
}

impl Scene {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn home(&self) -> Home {
        Home::new(self.dir.path().to_owned()).unwrap()
    }

    fn teams_in(&self, repository: Option<&str>) -> Teams {
        let options = TeamOptions {
            repository: repository.map(str::to_owned),
            durability: Durability::Relaxed,
            clock: Arc::new(ManualClock::at(NOW)),
            ..TeamOptions::default()
        };
        Teams::new(&self.home(), options)
    }

    fn teams(&self) -> Teams {
        self.teams_in(None)
    }

    fn team_in(&self, name: &str, repository: Option<&str>) -> Team {
        self.teams_in(repository)
            .team(Name::new("team", name).unwrap())
    }

    fn team(&self) -> Team {
        self.team_in("fixers", None)
    }

    fn created(&self) -> Team {
        let team = self.team();
        team.create(&NewTeam::default()).unwrap();
        team
    }

    /// A team whose roster another tool wrote.
    fn foreign(&self, config: &str) -> Team {
        let team = self.team();
        create_private_dir(team.dir()).unwrap();
        atomic::replace(
            team.dir(),
            &team.config_path(),
            config.as_bytes(),
            Durability::Relaxed,
        )
        .unwrap();
        team
    }

    /// Reads the inbox of `agent` for as long as the value is kept.
    fn reader(&self, team: &Team, agent: &str) -> FileLock {
        let inbox = team.dir().join("inboxes").join(agent);
        create_private_dir(&inbox).unwrap();
        FileLock::exclusive(&inbox.join("consumer.lock"), "it", DEFAULT_TIMEOUT).unwrap()
    }
}

fn bytes(team: &Team) -> Vec<u8> {
    std::fs::read(team.config_path()).unwrap()
}

fn on_disk(team: &Team) -> Value {
    serde_json::from_slice(&bytes(team)).unwrap()
}
