//! The parts of a board in files, and the path of each file.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use store::atomic::Durability;
use store::home::{create_durable_dir, create_private_dir};
use store::lockdir::LockDirs;
use store::name::Name;

use crate::error::BoardError;
use crate::files::live::Live;
use crate::files::log::Paths;
use crate::id::TaskId;
use crate::options::BoardOptions;

/// A list in a directory, as one process has it open.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) name: Name,
    lists: PathBuf,
    pub(crate) dir: PathBuf,
    pub(crate) options: BoardOptions,
    pub(crate) lock_dirs: LockDirs,
    pub(crate) live: Mutex<Live>,
    /// Held while this process asks for the next task.
    pub(crate) asking: Mutex<()>,
}

impl Files {
    /// The list `name`, which is `dir`, beside all others in `lists`.
    pub(crate) fn new(lists: PathBuf, dir: PathBuf, name: Name, options: BoardOptions) -> Self {
        let ours = dir.join(".ccb");
        let lock_dirs = LockDirs::new(ours.join("tmp"), ours.join("held"));
        let live = Mutex::new(Live::new(&dir));
        Self {
            name,
            lists,
            dir,
            options,
            lock_dirs,
            live,
            asking: Mutex::default(),
        }
    }

    pub(crate) fn create_dirs(&self) -> Result<(), BoardError> {
        let tmp = self.tmp_dir();
        if !tmp.is_dir() {
            self.name.check_no_clash("list", &self.lists)?;
            create_durable_dir(&tmp, self.durability())?;
            create_private_dir(&records_dir(&self.dir))?;
        }
        Ok(())
    }

    pub(crate) fn task_path(&self, id: TaskId) -> PathBuf {
        self.dir.join(id.file_name())
    }

    pub(crate) fn tmp_dir(&self) -> PathBuf {
        self.dir.join(".ccb/tmp")
    }

    /// A file in `tmp_dir`; `None` if ccb would not give a file that name.
    pub(crate) fn staged_path(&self, name: &str) -> Option<PathBuf> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (!name.is_empty() && name.chars().all(plain)).then(|| self.tmp_dir().join(name))
    }

    pub(crate) fn index_path(&self) -> PathBuf {
        self.dir.join(".ccb/index")
    }

    pub(crate) fn intent_path(&self) -> PathBuf {
        self.dir.join(".ccb/intent.json")
    }

    pub(crate) fn high_water_path(&self) -> PathBuf {
        self.dir.join(".highwatermark")
    }

    pub(crate) fn history_paths(&self) -> Paths {
        Paths::new(&self.dir.join(".ccb"))
    }

    pub(crate) fn durability(&self) -> Durability {
        self.options.durability
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.options.clock.now_ms()
    }
}

/// The directory of the records of checks of the list in `dir`.
pub(crate) fn records_dir(dir: &Path) -> PathBuf {
    dir.join(".ccb/checks")
}
