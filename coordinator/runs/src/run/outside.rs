//! Clients that take part from outside: agents that another program runs, with ccb's server.
//!
//! A client owns the tasks it claims as long as its server holds a lock, which the kernel releases
//! when that process is gone. Then its tasks are free again, and the lead gets a message.

use std::path::PathBuf;

use mailbox::TeammateTerminated;
use store::agent_id::LEAD;
use store::atomic::{self, Durability};
use store::home::create_private_dir;
use store::lock::{FileLock, is_held};
use store::name::Name;

use super::agents::Agents;
use super::error::AgentError;
use super::heartbeat::Heartbeat;

/// The prefix of the ids of such clients; other agents have the id of a run.
const PREFIX: &str = "outside-";

/// A client, for as long as it is there.
#[derive(Debug)]
pub struct Outside {
    id: String,
    agents: Agents,
    /// The lock of the client; released before the client is settled.
    lock: Option<FileLock>,
    /// Renews the client's leases, for boards in a database; `None` for files.
    heartbeat: Option<Heartbeat>,
}

impl Outside {
    /// By what its claims are known.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.heartbeat = None;
        self.lock = None;
        if let Err(error) = self.agents.settle_outside(&self.id) {
            tracing::warn!(%error, "what a client had claimed is freed by whoever looks next");
        }
    }
}

impl Agents {
    /// Joins the team as the client `name`, until the caller drops the result or its process ends.
    pub fn join_outside(&self, name: &Name) -> Result<Outside, AgentError> {
        let id = format!("{PREFIX}{}", uuid::Uuid::new_v4());
        let dir = self.outside_dir();
        create_private_dir(&dir)?;
        let lock = FileLock::try_exclusive(&dir.join(format!("{id}.lock")))?;
        // A process that finds this without a lock beside it would settle it at once.
        atomic::replace(
            &dir,
            &dir.join(&id),
            name.as_str().as_bytes(),
            Durability::Full,
        )?;
        Ok(Outside {
            heartbeat: self.heartbeat(&id),
            id,
            agents: self.clone(),
            lock,
        })
    }

    /// True if the holder of a lease is alive: an agent of the team, or a client.
    pub fn is_holder_alive(&self, holder: &str) -> Result<bool, AgentError> {
        match holder.starts_with(PREFIX) {
            true => Ok(is_held(&self.outside_dir().join(format!("{holder}.lock")))?),
            false => Ok(self.run(holder).is_alive()?),
        }
    }

    fn outside_dir(&self) -> PathBuf {
        self.runs_dir().with_file_name(".ccb").join("outside")
    }

    /// Frees what clients had claimed that are gone, and tells the lead.
    pub(super) fn settle_outsiders(&self) -> Result<(), AgentError> {
        let Ok(entries) = std::fs::read_dir(self.outside_dir()) else {
            return Ok(());
        };
        for entry in entries.flatten() {
            let id = entry.file_name().to_string_lossy().into_owned();
            if id.starts_with(PREFIX) && !id.ends_with(".lock") && !self.is_holder_alive(&id)? {
                self.settle_outside(&id)?;
            }
        }
        Ok(())
    }

    /// Settles one client. Another process can repeat it if it is cut short.
    fn settle_outside(&self, id: &str) -> Result<(), AgentError> {
        let file = self.outside_dir().join(id);
        let Some(name) = atomic::read(&file)? else {
            return Ok(());
        };
        let name = Name::new("agent", &String::from_utf8_lossy(&name))?;
        let returned = match self.board().exists() {
            true => self.board().unassign_run(id)?,
            false => Vec::new(),
        };
        if !returned.is_empty() {
            let gone = TeammateTerminated {
                teammate: name.to_string(),
                reason: Some("its client is gone".into()),
                returned_tasks: returned.iter().map(|task| task.id.to_string()).collect(),
            };
            let lead = Name::new("agent", LEAD)?;
            self.mailbox().terminated(name, lead, id, gone)?;
        }
        for path in [file.clone(), self.outside_dir().join(format!("{id}.lock"))] {
            atomic::remove(&path)?;
        }
        Ok(())
    }
}
