//! The mailbox's own write points; those of single files and logs are the store's.

store::fault_points! {
    /// An inbox's directory exists, its FIFO does not.
    INBOX_MADE = "mail.inbox-made";
    /// What was appended is about to be synced, outside the lock.
    SYNC = "mail.sync";
    /// Broadcasts have been copied into an inbox, which is not noted yet.
    COPIED = "mail.copied";
    /// The commit line of a broadcast is written; no inbox has its copy.
    BROADCAST_COMMITTED = "mail.broadcast-committed";
    /// Acknowledged messages are in the archive, and still in the log.
    ARCHIVED = "mail.archived";
    /// Damaged lines are set aside, and still in the log.
    SET_ASIDE = "mail.set-aside";
    /// A request is stored; nobody has been told.
    REQUEST_STORED = "mail.request-stored";
    /// An answer is stored; the asker has not been told.
    ANSWER_STORED = "mail.answer-stored";
    /// An agent's becoming idle is told, and not noted yet.
    IDLE_TOLD = "mail.idle-told";
}
