//! The worked example in `examples/refactor`: it ends green, also after kills of its parts.

use std::path::Path;
use std::process::Command;

use harness::Answer;

use crate::CCB;

fn example(more: &[&str]) -> Answer {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/refactor/run.sh");
    let home = tempfile::tempdir().unwrap();
    let built = Path::new(CCB);
    let mut command = Command::new("sh");
    command
        .arg(script)
        .args(more)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("HOME", home.path())
        // As people type it: relative to their directory.
        .current_dir(built.parent().unwrap())
        .env("CCB", Path::new(".").join(built.file_name().unwrap()))
        .stdin(std::process::Stdio::null());
    Answer::of(command.output().unwrap())
}

#[test]
fn it_ends_green() {
    let answer = example(&[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("green: 5 steps"), "{answer:?}");
}

#[test]
fn it_ends_green_when_everybody_is_killed_on_the_way() {
    let answer = example(&["--chaos"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("green: 5 steps"), "{answer:?}");
    assert!(answer.stdout.contains("killed agent"), "{answer:?}");
    assert!(answer.stdout.contains("killed the director"), "{answer:?}");
}
