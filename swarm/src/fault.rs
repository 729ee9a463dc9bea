//! The write points of teams; those of single files are the store's.

store::fault_points! {
    /// A team's directory is there, its roster is not.
    TEAM_DIR_MADE = "team.dir-made";
    /// The roster says that the team is being deleted.
    TEAM_MARKED = "team.marked";
    /// Something of the team is about to be set aside.
    TEAM_SET_ASIDE = "team.set-aside";
    /// Everything is set aside, nothing of it is deleted.
    TEAM_ASIDE = "team.aside";
    /// Only the roster is left.
    TEAM_EMPTIED = "team.emptied";
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
    /// The agent has a message; its sender is not told.
    RUN_HANDED = "run.handed";
    /// The agent has ended; what it left behind has not.
    RUN_OVER = "run.over";
    /// It is about to be written down how a run ended.
    RUN_ENDING = "run.ending";
    /// It is written down how a run ended.
    RUN_ENDED = "run.ended";
    /// An agent of ours is about to ask its model.
    MATE_STEP = "mate.step";
    /// A run has a new life; the end of the one before is still in its place.
    RUN_NEXT_LIFE = "run.next-life";
}
