//! Rights of root beyond files, taken from a confined program.
//!
//! Landlock decides on files. Root types into any terminal (`TIOCSTI`), makes a device in the
//! worktree and writes a disk through it, loads modules, and looks into processes; none of that
//! writes a file outside.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities,
};

/// Capabilities that no agent needs to work on files of its user.
const LOST: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::AUDIT_CONTROL)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::CHECKPOINT_RESTORE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::LINUX_IMMUTABLE)
    .union(CapabilitySet::MAC_ADMIN)
    .union(CapabilitySet::MAC_OVERRIDE)
    .union(CapabilitySet::MKNOD)
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::SYS_BOOT)
    .union(CapabilitySet::SYS_MODULE)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SYS_RAWIO)
    .union(CapabilitySet::SYS_TIME)
    .union(CapabilitySet::SYS_TTY_CONFIG);

/// Gives up what root may do beyond files, for this process and what it becomes. For others than root
/// there is nothing to give up.
pub(super) fn drop_those_of_root() -> Result<(), Errno> {
    let mut sets = capabilities(None)?;
    if !sets.permitted.intersects(LOST) && !sets.inheritable.intersects(LOST) {
        return Ok(());
    }
    for one in LOST {
        // Where that is not allowed, the next step does it as well: a confined program gains
        // nothing by starting another one (no_new_privs).
        match remove_capability_from_bounding_set(one) {
            // A kernel that does not know it does not give it.
            Ok(()) | Err(Errno::PERM | Errno::INVAL) => {}
            Err(error) => return Err(error),
        }
    }
    for set in [
        &mut sets.effective,
        &mut sets.permitted,
        &mut sets.inheritable,
    ] {
        set.remove(LOST);
    }
    set_capabilities(None, sets)
}
