//! Runs one fuzz target by its name. The targets are functions of the crates they test
//! (`store::fuzz`, `taskboard::fuzz`, …), so that the default tests can replay their corpora.

use std::sync::OnceLock;

/// Gives `data` to the target with this name.
///
/// # Panics
///
/// If something does not hold that holds for any bytes, or there is no such target.
pub fn run(name: &str, data: &[u8]) {
    static TARGET: OnceLock<Option<fn(&[u8])>> = OnceLock::new();
    match TARGET.get_or_init(|| ccb_cli::fuzz::target(name)) {
        Some(target) => target(data),
        None => panic!("no crate has a fuzz target {name:?}"),
    }
}
