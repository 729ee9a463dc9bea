//! The write points in a run's life that are not one file's.

store::fault_points! {
    /// A run has its task, and nothing else yet.
    SPAWN_CLAIMED = "spawn.claimed";
    /// The run's worktree exists; its path is not written down.
    SPAWN_TREE = "spawn.tree";
    /// Everything is ready for the guard.
    SPAWN_READY = "spawn.ready";
    /// The guard runs; the process that asked for the run does not know.
    SPAWN_STARTED = "spawn.started";
    /// The end of the run is written down; its tasks are as they were.
    FINISH_STATE = "finish.state";
    /// The run's tasks are settled; its worktree is not.
    FINISH_TASKS = "finish.tasks";
    /// The run's worktree is settled; its parent has no notification yet.
    FINISH_TREE = "finish.tree";
    /// The parent has the notification; the run does not record that.
    FINISH_TOLD = "finish.told";
    /// Everything is done; the run still counts as unfinished.
    FINISH_DONE = "finish.done";
    /// The pause is recorded; no agent knows of it yet.
    FLEET_PAUSED = "fleet.paused";
    /// The end of the pause is recorded; no agent knows of it yet.
    FLEET_CLEARED = "fleet.cleared";
    /// A message for an agent that has ended is in its inbox; the agent is not resumed yet.
    RESUME_SENT = "resume.sent";
}
