//! Messages between agents: append-only inboxes, acknowledgements, protocol requests.
//!
//! Nothing is here yet; the crate holds its place in the workspace so that the direction of
//! dependencies (`coordinator` composes, the four siblings do not know each other) is fixed
//! from the start.
