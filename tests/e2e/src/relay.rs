//! A way to the API server that can be cut: everything that is under way is swallowed, and no connection ends.

use std::future::pending;
use std::io;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The way.
pub struct Relay {
    /// Its address on this machine.
    pub address: String,
    cut: watch::Sender<bool>,
}

impl Relay {
    /// Leads to a host and port.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn to(target: String) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let (cut, is_cut) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(carry(near, target.clone(), is_cut.clone()));
            }
        });
        Ok(Self { address, cut })
    }

    /// From now on nothing comes through.
    pub fn cut(&self) {
        self.cut.send_replace(true);
    }
}

async fn carry(mut near: TcpStream, target: String, mut is_cut: watch::Receiver<bool>) {
    if !*is_cut.borrow() {
        let Ok(mut far) = TcpStream::connect(target).await else {
            return;
        };
        tokio::select! {
            _ = copy_bidirectional(&mut near, &mut far) => return,
            // Its relay is gone with the test.
            cut = is_cut.wait_for(|cut| *cut) => if cut.is_err() { return },
        }
        // Neither end hears of it, as where packets are lost.
        pending::<()>().await;
    }
    pending::<()>().await;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::timeout;

    use super::*;

    async fn echoes(stream: &mut TcpStream, within: Duration) -> bool {
        stream.write_all(b"?").await.expect("it is open");
        let mut answer = [0];
        timeout(within, stream.read_exact(&mut answer))
            .await
            .is_ok_and(|read| read.is_ok())
    }

    #[tokio::test]
    async fn a_cut_silences_connections_old_and_new_and_ends_none() {
        let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let target = server.local_addr().expect("an address").to_string();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = server.accept().await {
                tokio::spawn(async move {
                    let (mut reader, mut writer) = stream.split();
                    tokio::io::copy(&mut reader, &mut writer).await
                });
            }
        });
        let relay = Relay::to(target).await.expect("a relay");
        let mut old = TcpStream::connect(&relay.address).await.expect("it listens");
        assert!(echoes(&mut old, Duration::from_mins(1)).await);
        relay.cut();
        let mut new = TcpStream::connect(&relay.address).await.expect("it listens");
        let brief = Duration::from_millis(500);
        assert!(!echoes(&mut old, brief).await && !echoes(&mut new, brief).await);
    }
}
