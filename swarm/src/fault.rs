//! The write points of runs; those of single files are the store's.

store::fault_points! {
    /// A run's directory is there; it says nothing yet.
    RUN_MARKED = "run.marked";
    /// A run is written down; it has no process.
    RUN_REGISTERED = "run.registered";
    /// A run's guard is up, its host is not.
    RUN_GUARDED = "run.guarded";
    /// A run's host is up, its agent is not.
    RUN_HOSTED = "run.hosted";
    /// A run's agent is up.
    RUN_LAUNCHED = "run.launched";
    /// A message is about to be given to the agent.
    RUN_HANDING = "run.handing";
    /// The agent has a message; its sender does not know that yet.
    RUN_HANDED = "run.handed";
    /// The agent has ended; what it left behind has not.
    RUN_OVER = "run.over";
    /// The end of a run is about to be recorded.
    RUN_ENDING = "run.ending";
    /// The end of a run is recorded.
    RUN_ENDED = "run.ended";
    /// A run has a new life; the end of the one before is still in its place.
    RUN_NEXT_LIFE = "run.next-life";
}
