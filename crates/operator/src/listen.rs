//! Addresses on which the operator listens.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use rustix::net::sockopt::{set_ipv6_v6only, set_socket_reuseaddr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use tokio::net::TcpListener;

use crate::error::Error;

/// Connections that wait for the operator.
const BACKLOG: i32 = 1024;

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

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn all_addresses_are_those_of_both_families() {
        let listener = listen("--metrics-addr", SocketAddr::from(([0, 0, 0, 0], 0))).await;
        let listener = listener.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let has_ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await.is_ok();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("IPv4");
        let by_ipv6 = TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await;
        assert_eq!(by_ipv6.is_ok(), has_ipv6);
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
