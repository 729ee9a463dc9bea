//! The board's own write points; those of single files are the store's.

store::fault_points! {
    /// A crash left an intent, which is about to be carried out again.
    INTENT_REDO = "intent.redo";
    /// An intent is on disk; from here on the change will happen.
    INTENT_WRITTEN = "intent.written";
    /// One step of an intent is done.
    INTENT_STEP = "intent.step";
    /// All steps are done, the intent is still there.
    INTENT_APPLIED = "intent.applied";
    /// The high-water mark is about to be raised.
    HIGH_WATER = "ids.high-water";
    /// Ids are reserved; nothing uses them yet.
    IDS_RESERVED = "ids.reserved";
    /// All files of a lock section are in place, its log lines are not written.
    SECTION_COMMITTED = "section.committed";
    /// A task's new check is recorded beside the old one; its file still has the old one.
    CHECK_NOTED = "check.noted";
    /// A task is about to be given to a waiting process; its slot says so.
    SERVE_TAKING = "serve.taking";
    /// The change for a waiting process is in place and logged; the process does not know.
    SERVE_LOGGED = "serve.logged";
    /// The full log is moved aside.
    LOG_ROTATED = "log.rotated";
    /// An unreadable file is set aside; its tombstone is not in place.
    SET_ASIDE = "doctor.set-aside";
}
