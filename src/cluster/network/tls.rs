//! TLS between members: both ends show a certificate of the cluster's own authority, for their own host.
//!
//! The files are read again every [`POLL`], so that a certificate can be renewed while the node runs: new connections use
//! the new one, those that are open stay as they are. A file that cannot be used leaves the old one in use.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    client::{Resumption, verify_server_name},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier},
    version::TLS13,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tracing::{info, warn};

use crate::cluster::member::MemberName;
use crate::shutdown::Shutdown;

/// How often the files are looked at.
pub const POLL: Duration = Duration::from_secs(10);

/// What is spoken inside: other uses of the same authority are not taken for it.
const PROTOCOL: &[u8] = b"nomina-peer";

/// Where certificate, key and authority are, all PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// This node's certificate, for its host, with what leads up to the authority. It serves at both ends: where it names
    /// uses of its key, it must name those of a server and of a client.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The certificates of the authorities that the other members' certificates come from.
    pub ca: PathBuf,
}

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// One cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// One does not hold what it should.
    #[error("{} holds no usable {what}: {reason}", .path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// They do not go together.
    #[error("certificate, key and authority do not go together: {reason}")]
    Unusable {
        /// What rustls says.
        reason: String,
    },
}

/// TLS as it is configured now.
#[derive(Debug)]
pub struct Tls {
    files: Files,
    /// What the files held when they were last looked at; none if they could not be read. Written by [`Tls::refresh`].
    seen: Mutex<Option<Contents>>,
    /// Made of the last usable contents. Written by [`Tls::refresh`]; read by each new connection.
    configs: ArcSwap<Configs>,
}

#[derive(Debug)]
struct Configs {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

#[derive(PartialEq, Eq)]
struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
    ca: Vec<u8>,
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Contents")
    }
}

impl Tls {
    /// Reads the files. Blocks.
    ///
    /// # Errors
    /// [`Error`] if one cannot be read or used.
    pub fn load(files: Files) -> Result<Self, Error> {
        let contents = Contents::read(&files)?;
        let configs = ArcSwap::from_pointee(contents.configs(&files)?);
        Ok(Self { files, seen: Mutex::new(Some(contents)), configs })
    }

    /// Looks at the files every [`POLL`], until the process drains.
    pub async fn follow(self: Arc<Self>, shutdown: Shutdown) {
        while tokio::time::timeout(POLL, shutdown.draining()).await.is_err() {
            let tls = self.clone();
            // It cannot panic, and at the end of the runtime nobody asks any more.
            let _ = tokio::task::spawn_blocking(move || tls.refresh()).await;
        }
    }

    /// Reads the files again, and uses them from now on if they have changed and can be used. Blocks.
    pub fn refresh(&self) {
        let mut seen = self.seen.lock();
        let read = Contents::read(&self.files);
        if read.as_ref().ok() == seen.as_ref() {
            return;
        }
        let configs = read
            .as_ref()
            .map_err(ToString::to_string)
            .and_then(|contents| contents.configs(&self.files).map_err(|error| error.to_string()));
        match configs {
            Ok(configs) => {
                self.configs.store(Arc::new(configs));
                info!(cert = %self.files.cert.display(), "new certificates for connections between members");
            }
            Err(error) => warn!(%error, "the certificates in use stay: the new ones cannot be used"),
        }
        *seen = read.ok();
    }

    /// For a connection that this node opens.
    #[must_use]
    pub fn connector(&self) -> TlsConnector {
        TlsConnector::from(self.configs.load().client.clone())
    }

    /// For a connection that this node accepts.
    #[must_use]
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.configs.load().server.clone())
    }
}

/// The name that a member's certificate must be for; `None` if its host can be in none.
#[must_use]
pub fn server_name(member: &MemberName) -> Option<ServerName<'static>> {
    ServerName::try_from(member.host().to_owned()).ok()
}

/// Whether the certificate that the dialler has shown, first of `chain`, is for `member`.
#[must_use]
pub fn is_for(chain: Option<&[CertificateDer<'_>]>, member: &MemberName) -> bool {
    let Some((first, name)) = chain.and_then(<[_]>::first).zip(server_name(member)) else { return false };
    ParsedCertificate::try_from(first).is_ok_and(|certificate| verify_server_name(&certificate, &name).is_ok())
}

impl Contents {
    fn read(files: &Files) -> Result<Self, Error> {
        let read = |path: &Path| fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source });
        Ok(Self { cert: read(&files.cert)?, key: read(&files.key)?, ca: read(&files.ca)? })
    }

    fn configs(&self, files: &Files) -> Result<Configs, Error> {
        let chain = certificates(&self.cert, &files.cert)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| Error::Content {
            path: files.key.clone(),
            what: "private key",
            reason: error.to_string(),
        })?;
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.ca, &files.ca)? {
            roots.add(certificate).map_err(|error| Error::Content {
                path: files.ca.clone(),
                what: "certificate of an authority",
                reason: error.to_string(),
            })?;
        }
        configs(chain, key, Arc::new(roots)).map_err(|reason| Error::Unusable { reason })
    }
}

fn certificates(pem: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let content = |reason: String| Error::Content { path: path.to_owned(), what: "certificate", reason };
    let found = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| content(error.to_string()))?;
    if found.is_empty() { Err(content("there is none in it".to_owned())) } else { Ok(found) }
}

fn configs(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    roots: Arc<RootCertStore>,
) -> Result<Configs, String> {
    let say = |error: rustls::Error| error.to_string();
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
        .build()
        .map_err(|error| error.to_string())?;
    let mut server = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .map_err(say)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain.clone(), key.clone_key())
        .map_err(say)?;
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(say)?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(say)?;
    // A session that is resumed checks no certificate, so one that has been taken back would go on.
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    client.resumption = Resumption::disabled();
    server.alpn_protocols = vec![PROTOCOL.to_vec()];
    client.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Configs { client: Arc::new(client), server: Arc::new(server) })
}

#[cfg(test)]
pub(super) mod tests;
