//! A number of things, in words.

/// A number of things: "no tasks", "1 task", "2 tasks".
pub fn counted(count: usize, one: &str) -> String {
    match count {
        0 => format!("no {one}s"),
        1 => format!("1 {one}"),
        many => format!("{many} {one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!(counted(0, "task"), "no tasks");
        assert_eq!(counted(1, "task"), "1 task");
        assert_eq!(counted(12, "worktree"), "12 worktrees");
    }
}
