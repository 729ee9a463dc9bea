//! The trouble that the doctor finds.

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The kind of finding.
    pub kind: FindingKind,
    /// The finding, in words.
    pub message: String,
    /// The repair, if there was one.
    pub fixed: Option<String>,
}

store::words! {
    /// The sorts of things the doctor finds.
    pub enum FindingKind {
        /// A task file that cannot be read as a task.
        Unreadable = "unreadable",
        /// An edge on one side only.
        HalfEdge = "half_edge",
        /// Tasks that wait for each other in a circle. Only a person can say which edge is wrong.
        Cycle = "cycle",
        /// `.highwatermark` is not a number. No reason to stop: ids are derived without it.
        HighWater = "high_water",
        /// A change that an interrupted command began.
        UnfinishedChange = "unfinished_change",
        /// A lock directory that no process refreshes.
        StaleLock = "stale_lock",
        /// A temporary file that its process has abandoned.
        OldTemporary = "old_temporary",
        /// A file whose name looks like a task's but is not.
        StrayFile = "stray_file",
        /// A task whose file has another check than the record. Only a person can say which is
        /// right.
        CheckChanged = "check_changed",
        /// A task whose check has no record.
        CheckUnrecorded = "check_unrecorded",
        /// A task whose metadata has a key of ccb's that cannot be read. Only a person can know its
        /// meaning.
        Metadata = "metadata",
        /// A number in the database that is not what it counts.
        Miscounted = "miscounted",
    }
}
