use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::TestHome;

impl TestHome {
    /// The directory of a team.
    pub fn dir_of_team(&self, team: &str) -> PathBuf {
        self.path().join("teams").join(team)
    }

    /// A team's roster, straight from disk.
    pub fn roster(&self, team: &str) -> Value {
        let bytes = std::fs::read(self.dir_of_team(team).join("config.json")).expect("a roster");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    /// The names of a team's members, in order.
    pub fn members(&self, team: &str) -> Vec<String> {
        let roster = self.roster(team);
        let members = roster["members"].as_array().expect("members");
        let name = |member: &Value| member["name"].as_str().expect("a name").to_owned();
        members.iter().map(name).collect()
    }

    /// Every file below the home but lock files, with its bytes; directories have none.
    pub fn everything(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(self.path(), &mut files);
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
