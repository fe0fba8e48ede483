//! Encryption: TLS 1.2 and 1.3 by rustls, on every TCP address for clients of a server that has a certificate (not on
//! that of the metrics).
//!
//! Not here: authentication, which is by passwords (`passwords`).

use crate::Error;
use crate::net::listen::Stream;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_rustls::TlsAcceptor;

/// Upper bound on a handshake.
const PATIENCE: Duration = Duration::from_secs(10);

/// The files with which a server encrypts its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// A file with the server's certificate and its chain, in PEM.
    pub certificate: PathBuf,
    /// A file with the certificate's private key, in PEM.
    pub key: PathBuf,
}

/// The certificate and the key, as the files were when they were last read.
pub struct Encryption {
    tls: Tls,
    acceptor: Mutex<TlsAcceptor>,
}

impl Encryption {
    /// Reads the certificate and its key.
    pub fn read(tls: Tls) -> Result<Encryption, Error> {
        let acceptor = Mutex::new(acceptor(&tls)?);
        Ok(Encryption { tls, acceptor })
    }

    /// Reads the files again, for new connections. If they are wrong, nothing changes.
    pub fn read_again(&self) -> Result<(), Error> {
        let acceptor = acceptor(&self.tls)?;
        *self.acceptor.lock().unwrap_or_else(PoisonError::into_inner) = acceptor;
        Ok(())
    }

    /// Performs the handshake with a new client.
    pub async fn begin(&self, stream: Box<dyn Stream>) -> Result<Box<dyn Stream>, std::io::Error> {
        let acceptor = self
            .acceptor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let agreed = tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await;
        let stream = agreed.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))?;
        Ok(Box::new(stream))
    }
}

impl std::fmt::Debug for Encryption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.tls.fmt(f)
    }
}

fn acceptor(tls: &Tls) -> Result<TlsAcceptor, Error> {
    let wrong = |path: &Path, why: &dyn std::fmt::Display| Error::Tls {
        path: path.to_owned(),
        why: why.to_string(),
    };
    let certificates = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(&tls.certificate, &error))?;
    if certificates.is_empty() {
        return Err(wrong(&tls.certificate, &"no certificate"));
    }
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| wrong(&tls.key, &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map(|config| config.with_no_client_auth())
        .and_then(|config| config.with_single_cert(certificates, key))
        .map_err(|error| wrong(&tls.key, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
