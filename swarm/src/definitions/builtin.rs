//! The built-in types, each in a file of its own, read like a user's files.

pub(super) const ALL: [&str; 5] = [
    include_str!("builtin/general-purpose.md"),
    include_str!("builtin/explore.md"),
    include_str!("builtin/plan.md"),
    include_str!("builtin/worker.md"),
    include_str!("builtin/verification.md"),
];
