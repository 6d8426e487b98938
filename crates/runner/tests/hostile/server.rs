use std::io::{self, BufRead as _, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Treatment of a server's clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Lines without end.
    Gigabytes,
    /// One line without end.
    OneLine,
    /// A good page, and a place elsewhere to go to.
    Redirect,
    /// A good page, a byte every tenth of a second.
    Drip,
    /// Chunks of a byte, for ever.
    Chunks,
    /// Headers without end.
    Headers,
    /// One header without end.
    OneHeader,
    /// A good page that claims to be longer than it is, and a connection that stays open.
    Unfinished,
}

/// All of them.
const BEHAVIOURS: [Behaviour; Behaviour::Unfinished as usize + 1] = [
    Behaviour::Gigabytes,
    Behaviour::OneLine,
    Behaviour::Redirect,
    Behaviour::Drip,
    Behaviour::Chunks,
    Behaviour::Headers,
    Behaviour::OneHeader,
    Behaviour::Unfinished,
];

/// Answers everybody on its address in one way.
pub struct Hostile {
    pub behaviour: Behaviour,
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    sent: Arc<AtomicUsize>,
}

impl Hostile {
    /// One server for each behaviour, on `network.1`, `network.2`, … and one port.
    pub fn on_one_port(network: &str, elsewhere: SocketAddr, page: &str) -> Vec<Self> {
        let mut port = 0;
        let mut servers = Vec::new();
        for (number, behaviour) in (1..).zip(BEHAVIOURS) {
            let listener = TcpListener::bind(format!("{network}.{number}:{port}")).expect("the same port");
            let server = Self {
                behaviour,
                address: listener.local_addr().expect("an address"),
                asked: Arc::default(),
                sent: Arc::default(),
            };
            port = server.address.port();
            server.serve(listener, elsewhere, page.to_owned());
            servers.push(server);
        }
        servers
    }

    pub fn address(&self) -> String {
        self.address.ip().to_string()
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    /// Number of requests.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Bytes that it got rid of.
    pub fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }

    fn serve(&self, listener: TcpListener, elsewhere: SocketAddr, page: String) {
        let (behaviour, asked, sent) = (self.behaviour, self.asked.clone(), self.sent.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                asked.fetch_add(1, Ordering::SeqCst);
                let (sent, page) = (sent.clone(), page.clone());
                thread::spawn(move || answer(behaviour, Counted { stream, sent }, elsewhere, &page));
            }
        });
    }
}

/// Ends with an error once the other side hangs up, which each behaviour waits for.
fn answer(behaviour: Behaviour, mut to: Counted, elsewhere: SocketAddr, page: &str) -> io::Result<()> {
    to.request()?;
    let ok = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n";
    match behaviour {
        Behaviour::Gigabytes => {
            to.write_all(format!("{ok}\r\n{page}").as_bytes())?;
            let lines = "some_series{of=\"ours\"} 1\n".repeat(1 << 12);
            loop {
                to.write_all(lines.as_bytes())?;
            }
        }
        Behaviour::OneLine => {
            to.write_all(format!("{ok}\r\n{page}").as_bytes())?;
            loop {
                to.write_all(&b"a".repeat(1 << 16))?;
            }
        }
        Behaviour::Redirect => {
            let head = format!("HTTP/1.1 302 Found\r\nlocation: http://{elsewhere}/metrics\r\n");
            to.write_all(format!("{head}content-length: {}\r\n\r\n{page}", page.len()).as_bytes())
        }
        Behaviour::Drip => {
            to.write_all(format!("{ok}content-length: {}\r\n\r\n", page.len()).as_bytes())?;
            slowly(&mut to, page.bytes().map(|byte| vec![byte]))
        }
        Behaviour::Chunks => {
            to.write_all(format!("{ok}transfer-encoding: chunked\r\n\r\n").as_bytes())?;
            to.write_all(format!("{:x}\r\n{page}\r\n", page.len()).as_bytes())?;
            slowly(&mut to, std::iter::repeat(b"1\r\n#\r\n".to_vec()))
        }
        Behaviour::Headers => {
            to.write_all(ok.as_bytes())?;
            loop {
                to.write_all("x-a: b\r\n".repeat(1 << 12).as_bytes())?;
            }
        }
        Behaviour::OneHeader => {
            to.write_all(format!("{ok}x-a: ").as_bytes())?;
            loop {
                to.write_all(&b"a".repeat(1 << 16))?;
            }
        }
        Behaviour::Unfinished => {
            to.write_all(format!("{ok}content-length: {}\r\n\r\n{page}", page.len() + 1).as_bytes())?;
            slowly(&mut to, std::iter::repeat(Vec::new()))
        }
    }
}

fn slowly(to: &mut Counted, pieces: impl Iterator<Item = Vec<u8>>) -> io::Result<()> {
    for piece in pieces {
        to.write_all(&piece)?;
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

struct Counted {
    stream: TcpStream,
    sent: Arc<AtomicUsize>,
}

impl Counted {
    fn request(&self) -> io::Result<()> {
        let mut lines = BufReader::new(self.stream.try_clone()?);
        let mut line = String::new();
        while lines.read_line(&mut line)? > 2 {
            line.clear();
        }
        Ok(())
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stream.write(bytes)?;
        self.sent.fetch_add(written, Ordering::SeqCst);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
