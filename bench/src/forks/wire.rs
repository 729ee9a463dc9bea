//! The protocols that the cache of the tests knows; this benchmark speaks only one.

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(dead_code, reason = "the cache has rules for each")]
pub(crate) enum Wire {
    Anthropic,
    Chat,
    Responses,
    Gemini,
}
