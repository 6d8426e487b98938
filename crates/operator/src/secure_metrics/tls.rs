//! Connections over TLS, with a certificate that may be renewed meanwhile.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{DEFAULT_VERSIONS, ServerConfig};
use tokio_rustls::server::TlsStream;
use tracing::warn;

use crate::error::Error;
use crate::listen::listen;

/// Names of the files in a mounted Secret of type `kubernetes.io/tls`.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
/// Time after which the files are read again: the kubelet renews a mounted Secret within two minutes.
const READ_AGAIN: Duration = Duration::from_mins(1);
/// Longest time of a handshake. A slow machine needs seconds for those of a test.
const HANDSHAKE: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 5 });
/// Most handshakes at the same time. The oldest one makes room, so that silent clients do not hold up others.
const HANDSHAKES: usize = 64;
/// Pause after a connection that the system could not accept, as without free descriptors.
const PAUSE: Duration = Duration::from_secs(1);

/// Accepts connections over TLS. A slow handshake holds up no other.
pub struct Listener {
    tcp: TcpListener,
    keys: Keys,
    handshakes: JoinSet<Option<(TlsStream<TcpStream>, SocketAddr)>>,
    /// Those of `handshakes`, the oldest first; some of them have ended.
    oldest: VecDeque<AbortHandle>,
}

impl Listener {
    /// Listens on this address with the certificate of this folder.
    pub async fn bind(address: SocketAddr, folder: &Path) -> Result<Self, Error> {
        let keys = Keys::read(folder)?;
        Ok(Self {
            tcp: listen("--secure-metrics-addr", address).await?,
            keys,
            handshakes: JoinSet::new(),
            oldest: VecDeque::new(),
        })
    }

    fn begin(&mut self, stream: TcpStream, peer: SocketAddr) {
        self.oldest.retain(|handshake| !handshake.is_finished());
        if self.oldest.len() >= HANDSHAKES
            && let Some(oldest) = self.oldest.pop_front()
        {
            oldest.abort();
        }
        let acceptor = self.keys.acceptor();
        let handshake = self.handshakes.spawn(async move {
            let stream = timeout(HANDSHAKE, acceptor.accept(stream)).await.ok()?.ok()?;
            Some((stream, peer))
        });
        self.oldest.push_back(handshake);
    }
}

impl axum::serve::Listener for Listener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            tokio::select! {
                accepted = self.tcp.accept() => match accepted {
                    Ok((stream, peer)) => self.begin(stream, peer),
                    Err(_) => sleep(PAUSE).await,
                },
                Some(ended) = self.handshakes.join_next() => if let Ok(Some(connection)) = ended {
                    return connection;
                },
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

struct Keys {
    folder: PathBuf,
    read_at: Instant,
    acceptor: TlsAcceptor,
}

impl Keys {
    fn read(folder: &Path) -> Result<Self, Error> {
        Ok(Self {
            folder: folder.to_owned(),
            read_at: Instant::now(),
            acceptor: TlsAcceptor::from(Arc::new(server_config(folder)?)),
        })
    }

    /// The newest keys that can be read. Old ones are better than none.
    fn acceptor(&mut self) -> TlsAcceptor {
        if self.read_at.elapsed() >= READ_AGAIN {
            self.read_at = Instant::now();
            match server_config(&self.folder) {
                Ok(config) => self.acceptor = TlsAcceptor::from(Arc::new(config)),
                Err(error) => warn!(
                    error = &error as &dyn std::error::Error,
                    "the certificate of the metrics is not renewed"
                ),
            }
        }
        self.acceptor.clone()
    }
}

fn server_config(folder: &Path) -> Result<ServerConfig, Error> {
    let unusable = |name: &str, source: Box<dyn std::error::Error + Send + Sync>| Error::Certificate {
        file: folder.join(name),
        source,
    };
    let read = |name: &str| fs::read(folder.join(name)).map_err(|source| unusable(name, source.into()));
    let (certificate, key) = (read(CERTIFICATE)?, read(KEY)?);
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
    let chain = chain.map_err(|source| unusable(CERTIFICATE, source.into()))?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|source| unusable(KEY, source.into()))?;
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(DEFAULT_VERSIONS)
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|source| unusable(CERTIFICATE, source.into()))
}

#[cfg(test)]
mod tests {
    use axum::serve::Listener as _;
    use rcgen::CertifiedKey;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::pki_types::ServerName;
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    use super::*;

    /// Writes a new certificate into the folder, and returns what a client needs to trust it.
    fn certificate(folder: &Path) -> TlsConnector {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        fs::write(folder.join(CERTIFICATE), cert.pem()).expect("written");
        fs::write(folder.join(KEY), signing_key.serialize_pem()).expect("written");
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).expect("a root");
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(DEFAULT_VERSIONS)
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        TlsConnector::from(Arc::new(config))
    }

    /// Sends one byte to the listener and returns what it received, or the error of the handshake.
    async fn sends(listener: &mut Listener, trusting: &TlsConnector) -> io::Result<u8> {
        let address = listener.local_addr()?;
        let client = async {
            let stream = TcpStream::connect(address).await?;
            let name = ServerName::try_from("localhost").expect("a name");
            let mut stream = trusting.connect(name, stream).await?;
            stream.write_u8(7).await?;
            stream.shutdown().await
        };
        let server = async {
            let (mut stream, _) = listener.accept().await;
            stream.read_u8().await
        };
        tokio::select! {
            received = server => received,
            Err(error) = client => Err(error),
        }
    }

    #[tokio::test]
    async fn a_renewed_certificate_is_used_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let old = certificate(folder.path());
        let mut listener = Listener::bind("127.0.0.1:0".parse().expect("an address"), folder.path())
            .await
            .expect("it listens");
        assert_eq!(sends(&mut listener, &old).await.expect("trusted"), 7);

        let renewed = certificate(folder.path());
        let _not_yet = sends(&mut listener, &renewed)
            .await
            .expect_err("the files are read once a minute");
        let long_ago = |listener: &mut Listener| {
            listener.keys.read_at = Instant::now().checked_sub(READ_AGAIN).expect("a time");
        };
        long_ago(&mut listener);
        assert_eq!(sends(&mut listener, &renewed).await.expect("renewed"), 7);

        fs::write(folder.path().join(KEY), "no key").expect("written");
        long_ago(&mut listener);
        assert_eq!(sends(&mut listener, &renewed).await.expect("the one before"), 7);
    }

    #[tokio::test]
    async fn silent_clients_do_not_hold_up_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let trusting = certificate(folder.path());
        let mut listener = Listener::bind("127.0.0.1:0".parse().expect("an address"), folder.path())
            .await
            .expect("it listens");
        let address = listener.local_addr().expect("an address");
        let mut silent = Vec::new();
        // Fewer than the system keeps for an accept.
        for _ in 0..HANDSHAKES + 30 {
            silent.push(TcpStream::connect(address).await.expect("a connection"));
        }
        assert_eq!(sends(&mut listener, &trusting).await.expect("served"), 7);
        let pending = listener
            .oldest
            .iter()
            .filter(|handshake| !handshake.is_finished())
            .count();
        assert_eq!(pending, HANDSHAKES - 1, "the others still have their time");
        // The oldest handshake ends at once, and the others after their time.
        let made_room = async {
            while silent[0].try_read(&mut [0; 1]).ok() != Some(0) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = timeout(HANDSHAKE / 2, made_room).await;
        assert!(waited.is_ok(), "the oldest one made room");
    }

    #[tokio::test]
    async fn files_that_cannot_be_used_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = |what: &str| {
            let error = server_config(folder.path()).map(|_| ()).expect_err(what).to_string();
            assert!(error.contains("a Secret of type kubernetes.io/tls"), "{error}");
            error
        };
        assert!(refused("nothing is there").contains("tls.crt"));
        certificate(folder.path());
        let of_another = fs::read(folder.path().join(KEY)).expect("a key");
        certificate(folder.path());
        assert!(server_config(folder.path()).is_ok());
        fs::write(folder.path().join(KEY), of_another).expect("written");
        refused("the key of another certificate");
        fs::write(folder.path().join(KEY), "").expect("written");
        assert!(refused("no key").contains("tls.key"));
        fs::write(folder.path().join(CERTIFICATE), "").expect("written");
        refused("no certificate");
    }
}
