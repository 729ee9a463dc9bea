//! The helper: it confines itself and becomes the program.

use std::ffi::OsString;
use std::fmt::Display;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::fs::{Mode, OFlags};

use super::capabilities::drop_those_of_root;
use super::{Confinement, DEVICES};

/// The argument that makes ccb the helper.
pub const CONFINED: &str = "__confined";
/// The helper's exit code if the program was not started.
pub const EXIT_NOT_CONFINED: u8 = 125;

/// Older versions let a confined program empty files anywhere, so they do not count.
const LEAST: ABI = ABI::V3;
/// The newest version; the kernel applies the part it knows.
const BEST: ABI = ABI::V9;

/// Confines this process and becomes the program; returns only if that failed, with the reason.
/// `args` are what follows [`CONFINED`]: the confinement as JSON, the program, its arguments.
pub fn main(args: &[OsString]) -> String {
    let [json, program, arguments @ ..] = args else {
        return "ccb __confined is started by ccb itself".into();
    };
    let confinement = json.to_str().map(serde_json::from_str::<Confinement>);
    let Some(Ok(confinement)) = confinement else {
        return "ccb __confined did not understand what it was told".into();
    };
    if !confinement.through.is_empty() {
        return start_through(confinement, &args[1..]);
    }
    if let Err(why) = confine(&confinement) {
        return why;
    }
    let error = Command::new(program).args(arguments).exec();
    format!("cannot start {}: {error}", program.display())
}

/// Becomes the program that takes the network away, which starts this one again. It has to come
/// first: a confined process may not make namespaces.
fn start_through(mut confinement: Confinement, rest: &[OsString]) -> String {
    let through = std::mem::take(&mut confinement.through);
    let own = match descriptor_of_own_program() {
        Ok(own) => own,
        Err(error) => return format!("the command was not started: {error}"),
    };
    let (Some((program, arguments)), Ok(json)) =
        (through.split_first(), serde_json::to_string(&confinement))
    else {
        return "ccb __confined did not understand what it was told".into();
    };
    let error = Command::new(program)
        .args(arguments)
        .arg(format!("/proc/self/fd/{}", own.as_raw_fd()))
        .args([CONFINED, &json])
        .args(rest)
        .exec();
    format!("cannot start {program}: {error}")
}

/// Stays open in any program this process becomes. It names this program even if its file was
/// replaced since, and allows nothing but to start it.
fn descriptor_of_own_program() -> rustix::io::Result<OwnedFd> {
    rustix::fs::open("/proc/self/exe", OFlags::PATH, Mode::empty())
}

fn confine(confinement: &Confinement) -> Result<(), String> {
    let why = |error: &dyn Display| format!("the command was not started: {error}");
    drop_those_of_root().map_err(|error| why(&error))?;
    let access = AccessFs::from_write(BEST);
    let confined = ruleset(confinement.network)
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(&confinement.write, access)))
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(DEVICES, access)))
        .and_then(RulesetCreated::restrict_self);
    match confined {
        Ok(status) if status.ruleset != RulesetStatus::NotEnforced => Ok(()),
        Ok(_) => Err(why(&"the kernel did not confine it")),
        Err(error) => Err(why(&error)),
    }
}

fn ruleset(network: bool) -> Result<RulesetCreated, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(LEAST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_write(BEST))?
        .scope(Scope::from_all(BEST))?;
    let ruleset = match network {
        true => ruleset,
        false => ruleset.handle_access(AccessNet::from_all(ABI::V4))?,
    };
    ruleset.create()
}

/// An error if the kernel does not let a process confine itself.
pub(super) fn probe() -> Result<(), String> {
    ruleset(true).map(drop).map_err(|error| {
        format!(
            "commands cannot be confined here: the kernel offers no Landlock of version {LEAST} or \
             later ({error}). Linux 6.2 has it; a container may hide it"
        )
    })
}

/// True if the kernel can refuse TCP connections.
pub(super) fn refuses_tcp() -> bool {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessNet::from_all(ABI::V4))
        .and_then(Ruleset::create)
        .is_ok()
}
