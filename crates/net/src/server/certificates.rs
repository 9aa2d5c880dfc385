//! Certificates and keys of servers, from files in PEM.

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;

/// The certificates of a file.
///
/// # Errors
/// Why it cannot be read.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let fail = |error| format!("{}: {error}", path.display());
    CertificateDer::pem_file_iter(path).map_err(fail)?.collect::<Result<_, _>>().map_err(fail)
}

/// The private key of a file.
///
/// # Errors
/// Why it cannot be read.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Settings of a server with a certificate, for clients without.
///
/// # Errors
/// Why the files cannot be used.
pub fn server_tls(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, String> {
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(certificates(certificate)?, private_key(key)?)
        .map_err(|error| format!("{}: {error}", certificate.display()))?;
    Ok(Arc::new(config))
}
