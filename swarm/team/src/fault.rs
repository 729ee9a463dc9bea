//! The write points of teams; those of single files are the store's.

store::fault_points! {
    /// A team's directory is there, its roster is not.
    TEAM_DIR_MADE = "team.dir-made";
    /// The roster says that the team is being deleted.
    TEAM_MARKED = "team.marked";
    /// A part of the team is about to be set aside.
    TEAM_SET_ASIDE = "team.set-aside";
    /// All parts are set aside, and none is deleted.
    TEAM_ASIDE = "team.aside";
    /// Only the roster is left.
    TEAM_EMPTIED = "team.emptied";
}
