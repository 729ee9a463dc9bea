//! Certificates for tests of encrypted connections.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::NOBODY;

/// An authority, a certificate it signed for `localhost`, and an authority that signed nothing;
/// removed when dropped.
#[derive(Debug)]
pub struct Certificates {
    dir: PathBuf,
}

const MAKE: &str = "set -e; new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2'\n\
    for name in authority stranger; do openssl req -x509 $new -keyout $name.key -out $name.crt \
    -subj /CN=$name -addext basicConstraints=critical,CA:TRUE -addext keyUsage=keyCertSign; done\n\
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout server.key \
    -out server.csr -subj /CN=localhost; echo subjectAltName=DNS:localhost > names\n\
    openssl x509 -req -in server.csr -CA authority.crt -CAkey authority.key -set_serial 1 -days 2 \
    -extfile names -out server.crt";

impl Certificates {
    /// Makes them; `None`, with a visible line, if there is no openssl.
    #[expect(clippy::panic, clippy::print_stderr, reason = "for tests only")]
    pub fn new() -> Option<Self> {
        let unique = uuid::Uuid::new_v4().simple().to_string();
        let dir = std::env::temp_dir().join(format!("ccb-tls-{}", &unique[..12]));
        std::fs::create_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        let this = Self { dir };
        let made = Command::new("sh")
            .args(["-c", MAKE])
            .current_dir(&this.dir)
            .output();
        let made = made.unwrap_or_else(|error| panic!("sh: {error}"));
        let words = String::from_utf8_lossy(&made.stderr);
        if words.contains("not found") {
            eprintln!("SKIPPED: openssl is not installed, so nothing was tested");
            return None;
        }
        assert!(made.status.success(), "{words}");
        // The server insists on a key that no other user can read.
        let key = this.dir.join("server.key");
        drop(std::fs::set_permissions(
            &key,
            std::fs::Permissions::from_mode(0o600),
        ));
        // Fails where we are not root; then the files are ours, and so is the server.
        for path in [&this.dir, &key, &this.dir.join("server.crt")] {
            drop(chown(path, Some(NOBODY), Some(NOBODY)));
        }
        Some(this)
    }

    /// A file by its name, such as `authority.crt`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The options that make the server use them.
    pub fn options(&self) -> Vec<String> {
        let shown = |path: &Path| path.display().to_string();
        vec![
            "ssl=on".into(),
            format!("ssl_cert_file={}", shown(&self.file("server.crt"))),
            format!("ssl_key_file={}", shown(&self.file("server.key"))),
        ]
    }
}

impl Drop for Certificates {
    #[expect(clippy::disallowed_methods, reason = "for tests only")]
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.dir));
    }
}
