//! The points at which tests end the server.

store::fault_points! {
    /// An answer is about to be written, with its mail.
    MAIL_ATTACHED = "mcp.mail-attached";
    /// The answer is written; its mail is not acknowledged.
    ANSWER_WRITTEN = "mcp.answer-written";
}
