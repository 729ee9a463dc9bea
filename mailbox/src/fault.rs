//! The mailbox's own write points; those of single files and logs are the store's.

store::fault_points! {
    /// An inbox's directory exists, its FIFO does not.
    INBOX_MADE = "mail.inbox-made";
    /// The appended lines are about to be synced, outside the lock.
    SYNC = "mail.sync";
    /// Broadcasts are copied into an inbox; its marks do not record that yet.
    COPIED = "mail.copied";
    /// The commit line of a broadcast is written; no inbox has its copy.
    BROADCAST_COMMITTED = "mail.broadcast-committed";
    /// Acknowledged messages are in the archive, and still in the log.
    ARCHIVED = "mail.archived";
    /// Damaged lines are set aside, and still in the log.
    SET_ASIDE = "mail.set-aside";
    /// A request is stored; no message about it is sent yet.
    REQUEST_STORED = "mail.request-stored";
    /// An answer is stored; the asker has no message yet.
    ANSWER_STORED = "mail.answer-stored";
    /// The message that an agent became idle is sent; its state does not record that yet.
    IDLE_TOLD = "mail.idle-told";
}
