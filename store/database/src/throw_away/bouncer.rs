//! PgBouncer in transaction mode in front of a server, for one test.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Server, find};
use crate::settings::{Secrets, Settings};

/// A PgBouncer that pools transactions: two of them may be on different connections to the server.
/// Stopped when it is dropped.
#[derive(Debug)]
pub struct Bouncer {
    port: u16,
    process: Child,
}

impl Bouncer {
    /// Starts one in front of `server`, with `pool` connections to it; `None`, with a visible line, if
    /// PgBouncer is not installed. Panics if it is and does not start.
    #[expect(
        clippy::panic,
        clippy::print_stderr,
        clippy::disallowed_methods,
        reason = "for tests only"
    )]
    pub fn start(server: &Server, pool: u32) -> Option<Self> {
        let Some(program) = find("pgbouncer") else {
            eprintln!("SKIPPED: PgBouncer is not installed, so nothing was tested");
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let port = port
            .unwrap_or_else(|error| panic!("no port: {error}"))
            .port();
        let dir = server.dir.join(format!("bouncer-{port}"));
        let made = std::fs::create_dir(&dir);
        made.unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        let (users, config) = (dir.join("users"), dir.join("config"));
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {}\n\
             pool_mode = transaction\ndefault_pool_size = {pool}\nmax_client_conn = 200\n",
            server.port(),
            users.display()
        );
        let written = std::fs::write(&users, "\"ccb\" \"\"\n")
            .and_then(|()| std::fs::write(&config, text))
            .and_then(|()| std::fs::File::create(dir.join("log")));
        let log = written.unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        let mut command = Command::new(program);
        command.current_dir("/").arg(&config);
        if let Some(user) = server.as_user {
            for path in [&dir, &users, &config] {
                let given = std::os::unix::fs::chown(path, Some(user), Some(user));
                given.unwrap_or_else(|error| panic!("chown: {error}"));
            }
            command.uid(user).gid(user);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let process = command.spawn();
        let bouncer = Self {
            process: process.unwrap_or_else(|error| panic!("pgbouncer: {error}")),
            port,
        };
        let settings = Settings::parse(&server.url_at(port, "ccb"), &Secrets::default());
        let database = crate::Database::new(settings.unwrap_or_else(|error| panic!("{error}")));
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Err(error) = database.about() {
            let log = std::fs::read_to_string(dir.join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "{error}\n{log}");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(bouncer)
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
