//! The points of our own loop at which a test can crash the process.

store::fault_points! {
    /// An agent of ours is about to ask its model.
    MATE_STEP = "mate.step";
}
