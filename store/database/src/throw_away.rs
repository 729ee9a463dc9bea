//! A PostgreSQL server for one test, stopped and removed when it is dropped.

mod bouncer;
mod certificates;

use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::settings::{Secrets, Settings};

pub use bouncer::Bouncer;
pub use certificates::Certificates;

/// A server for one test. Its data is not synced to the disk: it need not survive.
#[derive(Debug)]
pub struct Server {
    dir: PathBuf,
    port: u16,
    options: Vec<String>,
    process: Option<Child>,
    /// Waits for the end of its input, which this process holds, and cleans up if the process did
    /// not.
    caretaker: Option<Child>,
    as_user: Option<u32>,
}

/// The user the server runs as if the tests run as root, which PostgreSQL refuses.
const NOBODY: u32 = 65534;

impl Server {
    /// Starts one; `None`, with a visible line, if PostgreSQL is not installed. Panics if it is
    /// and does not start.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The same with settings of the server, as `max_connections=5`.
    #[expect(clippy::panic, clippy::print_stderr, reason = "for tests only")]
    pub fn start_with(options: &[&str]) -> Option<Self> {
        let Some(initdb) = find("initdb") else {
            eprintln!("SKIPPED: PostgreSQL is not installed (no initdb), so nothing was tested");
            return None;
        };
        let mut server = Self::place(options);
        let mut command = server.command(&initdb);
        command.args([
            "--auth=trust",
            "--no-sync",
            "--username=ccb",
            "--encoding=UTF8",
        ]);
        command
            .args(["--no-locale", "--no-instructions", "-D"])
            .arg(server.data());
        let made = command
            .output()
            .unwrap_or_else(|error| panic!("initdb: {error}"));
        let words = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "initdb: {words}");
        server.launch();
        server.engage_caretaker();
        Some(server)
    }

    /// A second server that replicates this one. From now on a change counts when both have it.
    #[expect(clippy::panic, reason = "for tests only")]
    pub fn standby(&self) -> Self {
        let mut standby = Self::place(&[]);
        let copy = find("pg_basebackup").unwrap_or_else(|| panic!("initdb without pg_basebackup"));
        let mut command = standby.command(&copy);
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", "ccb"]);
        command.args(["-R", "--checkpoint=fast", "--no-sync", "-D"]);
        let made = command.arg(standby.data()).output();
        let made = made.unwrap_or_else(|error| panic!("pg_basebackup: {error}"));
        let words = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "pg_basebackup: {words}");
        standby.launch();
        standby.engage_caretaker();
        self.tell("ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.tell("SELECT pg_reload_conf()");
        standby
    }

    /// Makes a standby the server that takes changes.
    pub fn promote(&self) {
        self.tell("SELECT pg_promote()");
    }

    #[expect(clippy::panic, reason = "for tests only")]
    fn tell(&self, sql: &str) {
        let database = crate::Database::new(self.settings("ccb"));
        let told = database.read(|session| session.batch(sql));
        told.unwrap_or_else(|error: crate::DatabaseError| panic!("{sql}: {error}"));
    }

    /// A directory and a port for a server.
    #[expect(clippy::panic, reason = "for tests only")]
    fn place(options: &[&str]) -> Self {
        let unique = uuid::Uuid::new_v4().simple().to_string();
        let dir = std::env::temp_dir().join(format!("ccb-pg-{}", &unique[..12]));
        let made = std::fs::create_dir(&dir);
        made.unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        drop(std::fs::set_permissions(
            &dir,
            std::fs::Permissions::from_mode(0o700),
        ));
        let root = std::os::unix::fs::MetadataExt::uid(
            &std::fs::metadata("/proc/self").unwrap_or_else(|error| panic!("/proc: {error}")),
        ) == 0;
        let as_user = root.then_some(NOBODY);
        if let Some(user) = as_user {
            chown(&dir, Some(user), Some(user)).unwrap_or_else(|error| panic!("chown: {error}"));
        }
        let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let port = port
            .unwrap_or_else(|error| panic!("no port: {error}"))
            .port();
        Self {
            options: options.iter().map(|&option| option.to_owned()).collect(),
            process: None,
            caretaker: None,
            dir,
            port,
            as_user,
        }
    }

    /// The address of its database, with everything in `schema`.
    pub fn url(&self, schema: &str) -> String {
        self.url_at(self.port, schema)
    }

    /// The same through another port, such as a proxy's.
    pub fn url_at(&self, port: u16, schema: &str) -> String {
        format!("postgres://ccb@127.0.0.1:{port}/postgres?schema={schema}&sslmode=disable")
    }

    /// Settings for it.
    #[expect(clippy::panic, reason = "for tests only")]
    pub fn settings(&self, schema: &str) -> Settings {
        Settings::parse(&self.url(schema), &Secrets::default())
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts it again after [`kill`](Self::kill) or [`stop`](Self::stop).
    #[expect(clippy::panic, reason = "for tests only")]
    pub fn launch(&mut self) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.dir.join("log"))
            .unwrap_or_else(|error| panic!("log: {error}"));
        let program = find("postgres").unwrap_or_else(|| panic!("initdb without postgres"));
        let mut command = self.command(&program);
        command.arg("-D").arg(self.data()).arg("-k").arg(&self.dir);
        command.args(["-p", &self.port.to_string()]);
        let usual = [
            "listen_addresses=127.0.0.1",
            "fsync=off",
            "max_connections=200",
        ];
        for option in usual
            .iter()
            .copied()
            .chain(self.options.iter().map(String::as_str))
        {
            command.args(["-c", option]);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = command.spawn();
        self.process = Some(child.unwrap_or_else(|error| panic!("postgres: {error}")));
        let database = crate::Database::new(self.settings("ccb"));
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Err(error) = database.about() {
            let log = std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "{error}\n{log}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Kills the server as a power cut would, as far as its processes are concerned.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            drop(process.kill());
            drop(process.wait());
            // Its workers notice by themselves; the new one waits until they are gone.
            drop(std::fs::remove_file(self.data().join("postmaster.pid")));
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// Stops the server without waiting for its clients.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            if let Some(control) = find("pg_ctl") {
                let mut command = self.command(&control);
                command
                    .args(["stop", "-m", "immediate", "-w", "-D"])
                    .arg(self.data());
                drop(command.output());
            }
            drop(process.kill());
            drop(process.wait());
        }
    }

    /// Starts the caretaker: a test that is killed, or keeps its server to its end, leaves nothing
    /// behind.
    fn engage_caretaker(&mut self) {
        let Some(control) = find("pg_ctl") else {
            return;
        };
        let mut command = self.command(Path::new("/bin/sh"));
        let script = "cat >/dev/null; \"$1\" stop -m immediate -D \"$2/data\"; rm -rf \"$2\"";
        command.current_dir("/").args(["-c", script, "caretaker"]);
        command.arg(control).arg(&self.dir).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // A signal that ends the tests must not end the caretaker.
        command.process_group(0);
        self.caretaker = command.spawn().ok();
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.dir).env("LC_ALL", "C");
        if let Some(user) = self.as_user {
            command.uid(user).gid(user);
        }
        command
    }
}

impl Drop for Server {
    #[expect(clippy::disallowed_methods, reason = "for tests only")]
    fn drop(&mut self) {
        self.stop();
        drop(std::fs::remove_dir_all(&self.dir));
        if let Some(mut caretaker) = self.caretaker.take() {
            drop(caretaker.stdin.take());
            drop(caretaker.wait());
        }
    }
}

/// A program of PostgreSQL's: on the path, or where distributions put it.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    places.push("/usr/sbin".into());
    for version in (14..=20).rev() {
        places.push(format!("/usr/lib/postgresql/{version}/bin").into());
        places.push(format!("/usr/pgsql-{version}/bin").into());
    }
    let mut programs = places.into_iter().map(|dir| dir.join(name));
    programs.find(|program| program.is_file())
}
