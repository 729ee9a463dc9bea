//! The write points of a landing that are not one file's.

store::fault_points! {
    /// A branch that machines share has moved; the board that they share is not told.
    LAND_MOVED = "land.moved";
}
