//! Addresses on which the operator listens, and the end of silent connections.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use rustix::net::sockopt::{set_ipv6_v6only, set_socket_reuseaddr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::time::{Instant, Sleep, sleep};

use crate::error::Error;

const BACKLOG: i32 = 1024;
/// Time after which a silent connection ends. Axum sets no time-out. A scraper keeps its connection from one scrape to the next.
const IDLE: Duration = Duration::from_mins(5);

/// Listens on the address of a flag. All addresses of IPv4 become those of both families where the system has IPv6: a pod of a cluster
/// with IPv6 alone has no address of IPv4, and the probes of its node would fail.
pub(crate) async fn listen(flag: &'static str, address: SocketAddr) -> Result<TcpListener, Error> {
    if address.ip() == IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        && let Ok(listener) = listen_on_both(address.port())
    {
        return Ok(listener);
    }
    let listener = TcpListener::bind(address).await;
    listener.map_err(|source| Error::Listen { flag, address, source })
}

/// The standard library cannot turn off `IPV6_V6ONLY`, which the system may set for all sockets.
fn listen_on_both(port: u16) -> io::Result<TcpListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET6, SocketType::STREAM, flags, None)?;
    set_ipv6_v6only(&socket, false)?;
    set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0))?;
    rustix::net::listen(&socket, BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// A listener whose silent connections end.
pub(crate) struct IdleListener<L>(pub(crate) L);

impl<L: Listener> Listener for IdleListener<L> {
    type Io = IdleStream<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, peer) = self.0.accept().await;
        (IdleStream::new(stream), peer)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

/// A connection that ends when it is silent.
pub(crate) struct IdleStream<S> {
    stream: S,
    timer: Pin<Box<Sleep>>,
}

impl<S> IdleStream<S> {
    fn new(stream: S) -> Self {
        let timer = Box::pin(sleep(IDLE));
        Self { stream, timer }
    }

    /// The answer of a call, or an error once the connection has been silent for too long.
    fn limit<T>(&mut self, context: &mut Context<'_>, answer: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if answer.is_ready() {
            self.timer.as_mut().reset(Instant::now() + IDLE);
            return answer;
        }
        let silent = self.timer.as_mut().poll(context);
        silent.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for IdleStream<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let answer = Pin::new(&mut this.stream).poll_read(context, bytes);
        this.limit(context, answer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for IdleStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let answer = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.limit(context, answer)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn all_addresses_include_both_families() {
        let listener = listen("--metrics-addr", SocketAddr::from(([0, 0, 0, 0], 0))).await;
        let listener = listener.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let has_ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await.is_ok();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("IPv4");
        let by_ipv6 = TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await;
        assert_eq!(by_ipv6.is_ok(), has_ipv6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_requests_stays_and_a_silent_one_ends() {
        let (mut client, server) = duplex(64);
        let mut server = IdleStream::new(server);
        for _ in 0..3 {
            sleep(IDLE * 2 / 3).await;
            client.write_u8(7).await.expect("open");
            assert_eq!(server.read_u8().await.expect("open"), 7);
        }
        let silent = server.read_u8().await.expect_err("silent");
        assert_eq!(silent.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn one_address_stays_the_only_one() {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = listen("--metrics-addr", address).await.expect("a free port");
        assert_eq!(listener.local_addr().expect("an address").ip(), address.ip());
        let taken = listener.local_addr().expect("an address");
        assert!(listen("--metrics-addr", taken).await.is_err());
    }
}
