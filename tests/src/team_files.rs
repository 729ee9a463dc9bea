use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mailbox::{MailOptions, Mailbox};
use serde_json::Value;
use store::home::Home;
use store::name::Name;

use crate::TestHome;

impl TestHome {
    /// The directory of a team.
    pub fn dir_of_team(&self, team: &str) -> PathBuf {
        self.path().join("teams").join(team)
    }

    /// A team's roster, straight from its storage.
    pub fn roster(&self, team: &str) -> Value {
        self.roster_if_there(team).expect("a roster")
    }

    /// The same; `None` if it is gone.
    pub fn roster_if_there(&self, team: &str) -> Option<Value> {
        if let Some(database) = &self.database {
            return database.roster(team);
        }
        let bytes = std::fs::read(self.dir_of_team(team).join("config.json")).ok()?;
        Some(serde_json::from_slice(&bytes).expect("JSON"))
    }

    /// Writes a team's roster as another tool would.
    pub fn write_roster(&self, team: &str, roster: &Value) {
        if let Some(database) = &self.database {
            return database.write_roster(team, roster);
        }
        let dir = self.dir_of_team(team);
        std::fs::create_dir_all(&dir).expect("a team's directory");
        std::fs::write(dir.join("config.json"), roster.to_string()).expect("a roster");
    }

    /// A team's mail, in files or in a database.
    pub fn mailbox_of(&self, team: &str) -> Mailbox {
        let home = Home::new(self.path().to_owned()).expect("a home");
        let team = Name::new("team", team).expect("a name");
        match &self.database {
            Some(it) => Mailbox::on(&it.database, &home, &team, MailOptions::default()),
            None => Mailbox::new(&home, &team, MailOptions::default()),
        }
    }

    /// The names of a team's members, in order.
    pub fn members(&self, team: &str) -> Vec<String> {
        let roster = self.roster(team);
        let members = roster["members"].as_array().expect("members");
        let name = |member: &Value| member["name"].as_str().expect("a name").to_owned();
        members.iter().map(name).collect()
    }

    /// Every file below the home but lock files, with its bytes; directories have none. Rosters in
    /// a database are in it, too.
    pub fn everything(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(self.path(), &mut files);
        for (name, roster) in self.database.iter().flat_map(|it| it.rosters()) {
            files.insert(Path::new("rosters").join(name), roster.into_bytes());
        }
        files
    }
}

fn collect(dir: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.insert(path.clone(), Vec::new());
            collect(&path, files);
        } else if path.is_file() && !path.ends_with(".lock") && !path.ends_with("lock") {
            files.insert(path.clone(), std::fs::read(&path).expect("readable"));
        }
    }
}
