//! The memory of a program, with everything it has started.

use std::collections::HashMap;

/// The share of memory of a process and all its descendants, in kB. Pages that several processes
/// use count in part for each.
pub(super) fn of_family(pid: u32) -> Option<u64> {
    let mut parents: HashMap<u32, u32> = HashMap::new();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let Some(child) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name in brackets may contain anything.
        let after = stat.rsplit_once(')').map(|(_, after)| after);
        let parent = after.and_then(|after| after.split_whitespace().nth(1)?.parse().ok());
        if let Some(parent) = parent {
            parents.insert(child, parent);
        }
    }
    let belongs = |mut one: u32| loop {
        match one {
            _ if one == pid => return true,
            0 | 1 => return false,
            _ => one = parents.get(&one).copied().unwrap_or(0),
        }
    };
    let family = parents.keys().copied().filter(|one| belongs(*one));
    Some(family.filter_map(share).sum())
}

/// The share of one process, in kB.
pub(crate) fn share(pid: u32) -> Option<u64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = rollup.lines().find(|line| line.starts_with("Pss:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
