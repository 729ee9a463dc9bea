//! The point at which tests make the view fail.

store::fault_points! {
    /// The screen is about to be drawn.
    DRAW = "top.draw";
}
