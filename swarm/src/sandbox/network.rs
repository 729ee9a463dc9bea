//! Taking the network away.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::enter::refuses_tcp;

/// Programs that start another one without a network, best first. The first also gives it a
/// loopback device of its own.
const WITHOUT: [&[&str]; 2] = [
    &[
        "bwrap",
        "--dev-bind",
        "/",
        "/",
        "--unshare-net",
        "--die-with-parent",
        "--",
    ],
    &["unshare", "--map-current-user", "--net", "--"],
];

/// The words that come before a program that is to have no network; empty if Landlock alone has to
/// do, which refuses TCP and nothing else.
pub(super) fn off() -> Result<Vec<String>, String> {
    static OFF: OnceLock<Result<Vec<String>, String>> = OnceLock::new();
    OFF.get_or_init(find).clone()
}

fn find() -> Result<Vec<String>, String> {
    let works = |words: &&&[&str]| {
        let Some((program, arguments)) = words.split_first() else {
            return false;
        };
        let mut command = Command::new(program);
        command.args(arguments).arg("true");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let ended = command.stderr(Stdio::null()).status();
        ended.is_ok_and(|status| status.success())
    };
    if let Some(words) = WITHOUT.iter().find(works) {
        return Ok(words.iter().map(|word| (*word).to_owned()).collect());
    }
    if refuses_tcp() {
        tracing::warn!(
            "the network is off for TCP only: neither bwrap nor unshare can take all of it away here"
        );
        return Ok(Vec::new());
    }
    Err(
        "the network cannot be turned off here: install bubblewrap (bwrap), use Linux 6.7 or \
         later, or set agents.sandboxNetwork to true"
            .into(),
    )
}
