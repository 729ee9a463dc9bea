//! The corpora of the fuzz targets (`fuzz/corpus/`) are replayed: a fixed bug is not reintroduced.

use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use ccb_cli::fuzz;
use store::fuzz::Target;

/// Maximum size of the inputs of one target together, in bytes.
const LARGEST_CORPUS: usize = 128 * 1024;

fn fuzz_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

/// The names in a directory, without `ending`.
fn names(dir: &Path, ending: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names
        .filter_map(|name| name.strip_suffix(ending).map(str::to_owned))
        .collect()
}

/// Gives each target every input of its corpus below `corpora`. Returns the number of inputs, and
/// the failures.
fn replay(targets: &[Target], corpora: &Path) -> (usize, Vec<String>) {
    let (mut count, mut wrong) = (0, Vec::new());
    for (name, target) in targets {
        let dir = corpora.join(name);
        let inputs = match dir.is_dir() {
            true => names(&dir, ""),
            false => BTreeSet::new(),
        };
        if inputs.is_empty() {
            wrong.push(format!("{name} has no corpus"));
        }
        let mut bytes = 0;
        for input in inputs {
            let data = std::fs::read(dir.join(&input)).unwrap();
            bytes += data.len();
            count += 1;
            if catch_unwind(|| target(&data)).is_err() {
                wrong.push(format!("{name} fails with {input}"));
            }
        }
        if bytes > LARGEST_CORPUS {
            wrong.push(format!("the corpus of {name} has {bytes} bytes"));
        }
    }
    (count, wrong)
}

#[test]
fn every_parser_holds_for_what_was_found_before() {
    let (count, wrong) = replay(&fuzz::all(), &fuzz_dir().join("corpus"));
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > fuzz::all().len());
}

#[test]
fn a_bad_input_and_a_missing_corpus_are_noticed() {
    fn fails_at_a_bell(data: &[u8]) {
        assert!(!data.contains(&7));
    }
    let targets: [Target; 2] = [("bell", fails_at_a_bell), ("gone", fails_at_a_bell)];
    let dir = tempfile::tempdir().unwrap();
    let bell = dir.path().join("bell");
    std::fs::create_dir(&bell).unwrap();
    std::fs::write(bell.join("good"), b"silent").unwrap();
    std::fs::write(bell.join("bad"), b"\x07").unwrap();
    let found = replay(&targets, dir.path());
    let expected = ["bell fails with bad", "gone has no corpus"].map(str::to_owned);
    assert_eq!(found, (2, expected.to_vec()));
    std::fs::write(bell.join("large"), vec![b'x'; LARGEST_CORPUS]).unwrap();
    let (_, wrong) = replay(&targets[..1], dir.path());
    assert_eq!(wrong.len(), 2, "{wrong:?}");
}

#[test]
fn each_target_has_a_program_and_each_corpus_a_target() {
    let all = fuzz::all();
    let targets: BTreeSet<String> = all.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(targets.len(), all.len(), "two targets have one name");
    assert_eq!(names(&fuzz_dir().join("targets"), ".rs"), targets);
    assert_eq!(names(&fuzz_dir().join("corpus"), ""), targets);
    let manifest = std::fs::read_to_string(fuzz_dir().join("Cargo.toml")).unwrap();
    for name in &targets {
        let program = format!("path = \"targets/{name}.rs\"");
        assert!(manifest.contains(&program), "fuzz/Cargo.toml lacks {name}");
    }
}
