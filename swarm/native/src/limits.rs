//! What an agent may use.

/// What limits an agent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    pub turns: Option<u32>,
    pub cost_usd: Option<f64>,
    /// A conversation with more tokens than this is made shorter.
    pub context: u64,
    /// It may keep no more than this in memory: others are in the same process.
    pub bytes: Option<u64>,
}
