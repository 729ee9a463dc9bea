//! The id of this machine, for state that several machines share.

use uuid::Uuid;

use crate::atomic::{self, Durability, Staged};
use crate::error::Result;
use crate::home::{Home, create_private_dir};

/// A machine, as others tell it from theirs.
///
/// A machine is a home: two homes of one host are two machines, because neither sees the other's
/// runs. A home that several hosts share has the same id on each, and another host name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// A random id, made once for each home.
    pub id: String,
    /// The host name, by which people know it.
    pub host: String,
}

impl Machine {
    /// The machine of `home`; makes an id if the home has none yet.
    pub fn of(home: &Home) -> Result<Self> {
        let dir = home.ours();
        let path = dir.join("machine");
        let host = crate::host_name().unwrap_or_else(|| "unknown".into());
        let found = atomic::read(&path)?;
        if let Some(id) = found.as_deref().and_then(id_in) {
            return Ok(Self { id, host });
        }
        create_private_dir(&dir)?;
        let id = Uuid::new_v4().to_string();
        let staged = Staged::write(&dir, format!("{id}\n").as_bytes(), Durability::Full)?;
        if found.is_some() {
            // Not an id but the result of a disk's repair. A new id does less harm than none.
            staged.replace(&path)?;
        } else if !staged.create(&path)? {
            // The second of two processes takes the id of the first.
            let first = atomic::read(&path)?;
            let id = first.as_deref().and_then(id_in).unwrap_or(id);
            return Ok(Self { id, host });
        }
        atomic::sync_dir(&dir, Durability::Full)?;
        Ok(Self { id, host })
    }
}

/// The id in a file, if it holds one.
fn id_in(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some(Uuid::try_parse(text.trim()).ok()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_keeps_its_id_and_many_who_ask_at_once_agree() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().to_owned()).unwrap();
        let asked: Vec<Machine> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| Machine::of(&home).unwrap()))
                .collect();
            let answers = threads.into_iter().map(|thread| thread.join().unwrap());
            answers.collect()
        });
        assert!(asked.iter().all(|machine| *machine == asked[0]));
        assert_eq!(Machine::of(&home).unwrap(), asked[0]);
        let other = tempfile::tempdir().unwrap();
        let other = Home::new(other.path().to_owned()).unwrap();
        assert_ne!(Machine::of(&other).unwrap().id, asked[0].id);
    }
}
