//! The write points in a run's life that are not one file's.

store::fault_points! {
    /// A run has its task, and nothing else yet.
    SPAWN_CLAIMED = "spawn.claimed";
    /// A run has its working tree; it is not written down where.
    SPAWN_TREE = "spawn.tree";
    /// Everything is ready for the guard.
    SPAWN_READY = "spawn.ready";
    /// The guard is up; whoever asked for the run does not know.
    SPAWN_STARTED = "spawn.started";
    /// It is known how the run ended; its tasks are as they were.
    FINISH_STATE = "finish.state";
    /// Its tasks are seen to; its tree is not.
    FINISH_TASKS = "finish.tasks";
    /// Its tree is seen to; nobody is told.
    FINISH_TREE = "finish.tree";
    /// Its parent has been told; that is not written down.
    FINISH_TOLD = "finish.told";
    /// Everything is done; the run still counts as unfinished.
    FINISH_DONE = "finish.done";
    /// Everybody is to wait; nobody is told yet.
    FLEET_PAUSED = "fleet.paused";
    /// Nobody has to wait any more; nobody is told yet.
    FLEET_CLEARED = "fleet.cleared";
    /// A message for an agent that has ended is in its inbox; nobody resumes it yet.
    RESUME_SENT = "resume.sent";
}
