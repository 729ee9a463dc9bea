//! Memory that the process has freed and the C library keeps.

/// Returns freed memory to the system, also from the middle of the heap. Takes some milliseconds in
/// a process that has much of it.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        #[expect(
            unsafe_code,
            reason = "a C function without arguments that could be wrong"
        )]
        // SAFETY: malloc_trim takes the allocator's own locks and touches nothing that is in use.
        unsafe {
            nix::libc::malloc_trim(0);
        }
    }
}
