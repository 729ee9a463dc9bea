use std::collections::BTreeMap;
use std::path::Path;

use crate::{TestHome, check_task_file};

impl TestHome {
    /// The bytes of all files of the board: its task files and the high-water mark.
    pub fn board_bytes(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        if self.board_url().is_some() {
            let tasks = self.tasks_on_disk().into_iter();
            let file =
                |task: serde_json::Value| (task["id"].to_string(), task.to_string().into_bytes());
            return tasks.map(file).collect();
        }
        for name in names_in(&self.list_dir()) {
            let path = self.list_dir().join(&name);
            if name != ".lock" && path.is_file() {
                files.insert(name, std::fs::read(path).expect("readable"));
            }
        }
        files
    }

    /// Fails unless every task file is one the other tool accepts.
    pub fn check_task_files(&self, when: &str) {
        for (name, bytes) in self.board_bytes() {
            let id = name.strip_suffix(".json").and_then(|id| id.parse().ok());
            if let Some(id) = id
                && let Err(why) = check_task_file(id, &bytes)
            {
                panic!("{when}: {name}: {why}");
            }
        }
    }

    /// The present lock directories, ccb's and foreign ones.
    pub fn lock_dirs(&self) -> Vec<String> {
        let mut names = names_in(&self.list_dir());
        names.retain(|name| name.ends_with(".lock") && self.list_dir().join(name).is_dir());
        names
    }

    /// The files left in the directory for temporary files.
    pub fn temporaries(&self) -> Vec<String> {
        names_in(&self.list_dir().join(".ccb/tmp"))
    }
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}
