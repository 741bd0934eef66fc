//! The little of HTTP/1.1 (RFC 9112) that a scraper needs: one request, one answer, and the connection is closed.

#![expect(
    clippy::disallowed_types,
    reason = "the router owns this socket, and a reader that is slow is given up by the clock"
)]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::metrics::Published;

/// The longest that a reader may take, all in all.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest request that is read.
const LONGEST: usize = 8192;

/// A place where metrics can be read.
pub struct Server(TcpListener);

impl Server {
    /// Takes the address; nobody is answered yet.
    ///
    /// # Errors
    /// The system's.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Ok(Self(TcpListener::bind(address)?))
    }

    /// Answers one after the other, forever. Whoever is slow is left alone after two seconds.
    pub fn serve(self, published: &Published) {
        for connection in self.0.incoming() {
            match connection {
                // A reader that goes away, or is too slow, misses its answer.
                Ok(connection) => drop(answer(connection, published)),
                // Out of descriptors, perhaps: others may go away meanwhile.
                Err(_) => std::thread::park_timeout(Duration::from_millis(100)),
            }
        }
    }
}

fn answer(mut connection: TcpStream, published: &Published) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let request = read_request(&mut connection, deadline)?;
    let response = match request.as_deref().map(Request::of) {
        None => whole("413 Content Too Large", "text/plain", "The request is too long.\n"),
        Some(Request::Metrics) => {
            let text = published.text().map_err(io::Error::other)?;
            whole("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", &text)
        }
        Some(Request::Front) => whole("200 OK", "text/plain", "perhop-router; its metrics are at /metrics\n"),
        Some(Request::Unknown) => whole("404 Not Found", "text/plain", "The metrics are at /metrics.\n"),
        Some(Request::Wrong) => whole("405 Method Not Allowed", "text/plain", "Only GET is answered.\n"),
    };
    let mut rest = response.as_bytes();
    while !rest.is_empty() {
        connection.set_write_timeout(Some(left_until(deadline)?))?;
        let written = connection.write(rest)?;
        rest = &rest[written..];
    }
    connection.shutdown(std::net::Shutdown::Write)
}

/// What is asked for.
enum Request {
    Metrics,
    Front,
    Unknown,
    Wrong,
}

impl Request {
    fn of(text: &[u8]) -> Self {
        let line = text.split(|&byte| byte == b'\r').next().unwrap_or_default();
        let mut words = line.split(|&byte| byte == b' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let path = target.split(|&byte| byte == b'?').next().unwrap_or_default();
        match (method, path) {
            (b"GET", b"/metrics") => Self::Metrics,
            (b"GET", b"/") => Self::Front,
            (b"GET", _) => Self::Unknown,
            _ => Self::Wrong,
        }
    }
}

/// A request up to the empty line behind its header; `None` if it is too long.
fn read_request(connection: &mut TcpStream, deadline: Instant) -> io::Result<Option<Vec<u8>>> {
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > LONGEST {
            return Ok(None);
        }
        connection.set_read_timeout(Some(left_until(deadline)?))?;
        match connection.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => request.extend(&part[..length]),
        }
    }
    Ok(Some(request))
}

fn left_until(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn whole(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}
