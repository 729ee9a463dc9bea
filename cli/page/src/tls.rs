//! HTTPS with the user's certificate.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use store::Failure;
use tokio_rustls::TlsAcceptor;
use webpki::EndEntityCert;

use super::host::Options;

/// The TLS configuration, and the names of its certificate.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) acceptor: TlsAcceptor,
    pub(super) names: Names,
}

/// The names of a certificate. Over TLS a browser lets no page of another name reach us, so
/// requests under these names are ours, whichever party owns the names.
#[derive(Debug, Clone)]
pub(super) struct Names(CertificateDer<'static>);

impl Names {
    /// True if the certificate is for this name, without a port.
    pub(super) fn hold(&self, name: &str) -> bool {
        let (Ok(certificate), Ok(name)) = (
            EndEntityCert::try_from(&self.0),
            ServerName::try_from(name.to_owned()),
        ) else {
            return false;
        };
        certificate.verify_is_valid_for_subject_name(&name).is_ok()
    }

    /// The first name in it that a person can type.
    pub(super) fn first(&self) -> Option<String> {
        let certificate = EndEntityCert::try_from(&self.0).ok()?;
        let mut names = certificate.valid_dns_names();
        names.find(|name| !name.contains('*')).map(str::to_owned)
    }
}

impl Tls {
    /// The configuration from the options; `None` without a certificate.
    pub(super) fn of(options: &Options) -> Result<Option<Self>, Failure> {
        let (Some(chain_file), Some(key_file)) = (&options.tls_cert, &options.tls_key) else {
            return Ok(None);
        };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(chain_file)
            .and_then(Iterator::collect)
            .map_err(|error| bad(chain_file, &error))?;
        let Some(own) = chain.first().cloned() else {
            return Err(bad(chain_file, "there is no certificate in it"));
        };
        EndEntityCert::try_from(&own).map_err(|error| bad(chain_file, &error))?;
        let key = key(key_file)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| bad(key_file, &error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Some(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            names: Names(own),
        }))
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// Reads the private key; refuses it if other users can read it.
fn key(path: &Path) -> Result<PrivateKeyDer<'static>, Failure> {
    let found = std::fs::metadata(path).map_err(|error| bad(path, &error))?;
    if found.permissions().mode() & 0o077 != 0 {
        let error = bad(path, "others can read this key");
        return Err(error.with_hint(format!("chmod 600 {}", path.display())));
    }
    PrivateKeyDer::from_pem_file(path).map_err(|error| bad(path, &error))
}

fn bad(path: &Path, why: &(impl std::fmt::Display + ?Sized)) -> Failure {
    Failure::usage("bad_certificate", format!("{}: {why}", path.display()))
}
