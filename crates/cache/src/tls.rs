//! Connections between the members of a pool: each shows a certificate of the pool's authority.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};
use std::path::PathBuf;
use std::sync::Arc;
use swathe_net::server::{certificates, private_key};

/// Files of a certificate: that of the authority, one's own, and its key.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Certificate of the authority, PEM.
    pub authority: PathBuf,
    /// One's own, PEM.
    pub certificate: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
}

impl Identity {
    /// Settings of the server, for clients with a certificate.
    pub(crate) fn server(&self) -> Result<Arc<ServerConfig>, String> {
        let verifier =
            WebPkiClientVerifier::builder(self.roots()?).build().map_err(|e| e.to_string())?;
        let (chain, key) = self.own()?;
        let config = ServerConfig::builder()
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(|error| self.unusable(&error))?;
        Ok(Arc::new(config))
    }

    /// Settings of the client, for servers with a certificate.
    pub(crate) fn client(&self) -> Result<ClientConfig, String> {
        let verifier =
            WebPkiServerVerifier::builder(self.roots()?).build().map_err(|e| e.to_string())?;
        let (chain, key) = self.own()?;
        ClientConfig::builder()
            .dangerous() // only the check of the name is given up, see `PoolVerifier`
            .with_custom_certificate_verifier(Arc::new(PoolVerifier(verifier)))
            .with_client_auth_cert(chain, key)
            .map_err(|error| self.unusable(&error))
    }

    fn roots(&self) -> Result<Arc<RootCertStore>, String> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.authority)? {
            roots.add(certificate).map_err(|error| self.unusable(&error))?;
        }
        Ok(Arc::new(roots))
    }

    fn own(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
        Ok((certificates(&self.certificate)?, private_key(&self.key)?))
    }

    fn unusable(&self, error: &Error) -> String {
        format!("{}: {error}", self.certificate.display())
    }
}

/// Any certificate of the authority belongs to the pool, under whatever name or address
/// it is reached: as in Dask.
#[derive(Debug)]
struct PoolVerifier(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for PoolVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // The name is looked at last: all else is in order then.
        match self.0.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
