use database::throw_away::{Certificates, Server};
use database::{Database, DatabaseError, Secrets, Settings};

/// Connects to `host` with these parameters; true if the link is encrypted.
fn connect(server: &Server, host: &str, parameters: &str) -> Result<bool, DatabaseError> {
    let port = server.port();
    let url = format!("postgres://ccb@{host}:{port}/postgres?patience=5&{parameters}");
    let database = Database::new(Settings::parse(&url, &Secrets::default())?);
    database.read(|session| {
        let asked = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        session.column(&session.query_one(asked, &[])?, "ssl")
    })
}

#[test]
fn a_link_is_as_safe_as_it_was_asked_to_be() {
    let Some(certificates) = Certificates::new() else {
        return;
    };
    let options = certificates.options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let Some(server) = Server::start_with(&options) else {
        return;
    };
    let root = |name: &str| format!("sslrootcert={}", certificates.file(name).display());
    let (right, wrong) = (root("authority.crt"), root("stranger.crt"));
    let ask = |host: &str, mode: &str, root: &str| {
        connect(&server, host, &format!("sslmode={mode}&{root}"))
    };
    assert!(!connect(&server, "localhost", "sslmode=disable").unwrap());
    assert!(connect(&server, "localhost", "sslmode=require").unwrap());
    assert!(ask("localhost", "verify-full", &right).unwrap());
    // The certificate is for localhost, and `verify-ca` checks its authority alone.
    assert!(ask("127.0.0.1", "verify-ca", &right).unwrap());
    for (host, mode, root) in [
        ("127.0.0.1", "verify-full", &right),
        ("localhost", "verify-full", &wrong),
        ("localhost", "verify-ca", &wrong),
        // A root certificate asks for a check of the authority.
        ("localhost", "require", &wrong),
    ] {
        let error = ask(host, mode, root).unwrap_err();
        assert!(
            matches!(error, DatabaseError::Tls { .. }),
            "{host} {mode}: {error}"
        );
    }
    let error = ask("localhost", "verify-full", "sslrootcert=/nonexistent").unwrap_err();
    assert!(matches!(error, DatabaseError::Tls { .. }), "{error}");
}

#[test]
fn a_server_that_does_not_encrypt_is_not_talked_to_if_it_has_to() {
    let Some(server) = Server::start() else {
        return;
    };
    let error = connect(&server, "localhost", "sslmode=require").unwrap_err();
    assert!(matches!(error, DatabaseError::Tls { .. }), "{error}");
    assert!(!connect(&server, "localhost", "sslmode=prefer").unwrap());
}
