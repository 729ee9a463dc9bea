//! The limits of an agent: model calls, cost, tokens and memory.

/// The limits of an agent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    pub turns: Option<u32>,
    pub cost_usd: Option<f64>,
    /// A conversation with more tokens than this is made shorter.
    pub context: u64,
    /// Maximum bytes of memory it may keep, if others are in the same process; `None` otherwise.
    pub bytes: Option<u64>,
}
