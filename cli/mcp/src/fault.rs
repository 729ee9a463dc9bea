//! The points at which tests end the server.

store::fault_points! {
    /// An answer is about to be written, with the mail that goes with it.
    MAIL_ATTACHED = "mcp.mail-attached";
    /// It is written; its mail is not acknowledged.
    ANSWER_WRITTEN = "mcp.answer-written";
}
