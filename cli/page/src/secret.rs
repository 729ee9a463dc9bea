//! Secrets: creation, comparison, and the token whose proof is in a file.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sha2::{Digest, Sha256};
use store::Failure;
use store::atomic::{self, Durability};

/// The prefix of a token's proof.
const KIND: &str = "sha256:";

/// A new secret: 122 random bits.
pub(super) fn secret() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// True if the two are equal. The time it takes does not reveal where they differ.
pub(super) fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let differ = |(a, b): (&u8, &u8)| a ^ b;
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .map(differ)
            .fold(0, |sum, bit| sum | bit)
            == 0
}

/// The SHA-256 of a token. It distinguishes the token from any other text and cannot be reversed,
/// so a file that agents can read may hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokenProof(String);

impl TokenProof {
    pub(super) fn of(token: &str) -> Self {
        let digest = Sha256::digest(token.as_bytes());
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self(hex)
    }

    /// True if this is the token.
    pub(super) fn proves(&self, token: &str) -> bool {
        same(&Self::of(token).0, &self.0)
    }

    /// The proof that is in the file at `path`.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let bad = |why: String| Failure::usage("bad_token", format!("{shown}: {why}"));
        let found = std::fs::metadata(path).map_err(|error| {
            bad(error.to_string()).with_hint(format!("ccb web --token-file {shown} --new-token"))
        })?;
        if found.permissions().mode() & 0o077 != 0 {
            let error = bad("others can read or change it".into());
            return Err(error.with_hint(format!("chmod 600 {shown}")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        let hex = text.trim().strip_prefix(KIND).unwrap_or_default();
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if hex.len() != 64 || !hex.bytes().all(is_hex) {
            let why = "there is no proof of a token in it. A token itself must not be in a file: \
                       agents can read it";
            return Err(
                bad(why.into()).with_hint(format!("ccb web --token-file {shown} --new-token"))
            );
        }
        Ok(Self(hex.to_owned()))
    }
}

/// Makes a new token and writes its proof to `path`; no file holds the token.
pub fn make_token(path: &Path) -> Result<String, Failure> {
    let token = format!("{}{}", secret(), secret());
    let dir = match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    };
    let text = format!("{KIND}{}\n", TokenProof::of(&token).0);
    atomic::replace(dir, path, text.as_bytes(), Durability::Full)?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_proves_a_token_and_does_not_hold_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let token = make_token(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&token), "{text}");
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let proof = TokenProof::read(&path).unwrap();
        assert!(proof.proves(&token));
        for other in ["", &token[1..], &text, text.trim(), &text.trim()[7..]] {
            assert!(!proof.proves(other), "{other}");
        }
        let next = make_token(&path).unwrap();
        assert!(next != token && !TokenProof::read(&path).unwrap().proves(&token));
        let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "nothing is left beside it: {names:?}");
        // Earlier versions had the token itself in the file.
        atomic::replace(dir.path(), &path, token.as_bytes(), Durability::Relaxed).unwrap();
        let error = TokenProof::read(&path).unwrap_err();
        assert!(error.hint().unwrap_or_default().contains("--new-token"));
    }

    #[test]
    fn secrets_differ_and_are_compared_whole() {
        assert_ne!(secret(), secret());
        assert!(same("abc", "abc") && !same("abc", "abd") && !same("abc", "ab"));
    }
}
