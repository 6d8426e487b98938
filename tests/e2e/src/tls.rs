//! Connections over TLS, under a certificate of their own.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::serve::Listener;
use rcgen::CertifiedKey;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::server::TlsStream;

/// Connections over TLS. One that does not come about is the caller's to report.
pub struct Tls {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Tls {
    /// Listens at an address. The answer has the certificate of 127.0.0.1, as PEM.
    ///
    /// # Errors
    /// If the address is not to be had, or no certificate can be made.
    pub async fn bind(address: &str) -> io::Result<(Self, String)> {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).map_err(io::Error::other)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .map_err(io::Error::other)?;
        let tls = Self {
            tcp: TcpListener::bind(address).await?,
            acceptor: TlsAcceptor::from(Arc::new(config)),
        };
        Ok((tls, cert.pem()))
    }
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (connection, from) = Listener::accept(&mut self.tcp).await;
            match self.acceptor.accept(connection).await {
                Ok(stream) => return (stream, from),
                Err(error) => eprintln!("{from}: {error}"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}
