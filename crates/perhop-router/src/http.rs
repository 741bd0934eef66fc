//! Serves metrics over HTTP: one request, one response, and the connection is closed. One thread serves all
//! connections at once, so that a silent connection delays no other.

#![expect(
    clippy::disallowed_types,
    reason = "the router owns these sockets, and a reader that is slow is given up by the clock"
)]

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::metrics::Published;
use crate::request::{Hosts, Request};

/// The longest that a reader may take, all in all.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many connections are served at once. A further one replaces the oldest.
const READERS: usize = 64;

/// A place where metrics can be read.
pub struct Server {
    listener: TcpListener,
    hosts: Hosts,
}

impl Server {
    /// Binds the address.
    pub fn bind(address: SocketAddr, hosts: Hosts) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, hosts })
    }

    /// Serves requests, forever.
    pub fn serve(self, published: &Published) {
        let mut readers = Vec::new();
        loop {
            self.wait(&readers);
            // A reader that disconnects, or is too slow, gets no response.
            readers.retain_mut(|reader: &mut Reader| {
                let is_late = reader.deadline <= Instant::now();
                reader.go_on(&self.hosts, published).is_ok_and(|goes_on| goes_on && !is_late)
            });
            self.accept(&mut readers);
        }
    }

    /// Waits until a connection arrives, makes progress or times out.
    fn wait(&self, readers: &[Reader]) {
        let mut events = vec![PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        events.extend(readers.iter().map(Reader::event));
        let deadline = readers.iter().map(|reader| reader.deadline).min();
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        let _ = poll(&mut events, timeout);
    }

    fn accept(&self, readers: &mut Vec<Reader>) {
        for _ in 0..READERS {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if readers.len() == READERS {
                        readers.remove(0);
                    }
                    readers.extend(Reader::new(stream).ok());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                // Out of descriptors, perhaps: some readers may go away meanwhile.
                Err(_) => return std::thread::park_timeout(Duration::from_millis(100)),
            }
        }
    }
}

/// A connection.
struct Reader {
    stream: TcpStream,
    deadline: Instant,
    request: Vec<u8>,
    /// The rest of the response, once it is known.
    response: Option<(Vec<u8>, usize)>,
}

impl Reader {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, deadline: Instant::now() + PATIENCE, request: Vec::new(), response: None })
    }

    fn event(&self) -> PollFd<'_> {
        let flag = if self.response.is_some() { PollFlags::POLLOUT } else { PollFlags::POLLIN };
        PollFd::new(self.stream.as_fd(), flag)
    }

    /// Goes as far as it can without waiting; says whether there is more to do.
    fn go_on(&mut self, hosts: &Hosts, published: &Published) -> io::Result<bool> {
        if self.response.is_none() {
            let reached = self.stream.local_addr()?.ip();
            let Some(request) = self.read(|name| hosts.contains(name, reached))? else { return Ok(true) };
            self.response = Some((response(request, published)?.into_bytes(), 0));
        }
        let Some((response, said)) = &mut self.response else { return Ok(true) };
        while *said < response.len() {
            match self.stream.write(&response[*said..]) {
                Ok(more) => *said += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        self.stream.shutdown(Shutdown::Write)?;
        Ok(false)
    }

    fn read(&mut self, ours: impl Fn(&str) -> bool) -> io::Result<Option<Request>> {
        let mut part = [0; 1024];
        loop {
            match self.stream.read(&mut part) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.request.extend(&part[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
            if let Some(request) = Request::read(&self.request, &ours) {
                return Ok(Some(request));
            }
        }
    }
}

/// Returns the response to a request.
fn response(request: Request, published: &Published) -> io::Result<String> {
    let plain = |status: &str, text: &str| whole(status, "text/plain", text);
    Ok(match request {
        Request::Metrics => {
            let text = published.text().map_err(io::Error::other)?;
            whole("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", &text)
        }
        Request::Front => plain("200 OK", "perhop-router; its metrics are at /metrics\n"),
        Request::Malformed => {
            plain("400 Bad Request", "Malformed request: expected HTTP/1.1 with one Host header.\n")
        }
        Request::Unknown => plain("404 Not Found", "The metrics are at /metrics.\n"),
        Request::WrongMethod => plain("405 Method Not Allowed", "Only GET is answered.\n"),
        Request::TooLong => plain("413 Content Too Large", "The request is too long.\n"),
        Request::Misdirected => {
            plain("421 Misdirected Request", "Unknown host name; add it to `metrics-hosts`.\n")
        }
    })
}

fn whole(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    fn server() -> SocketAddr {
        let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)), Hosts::default()).unwrap();
        let address = server.listener.local_addr().unwrap();
        let published = Arc::<Published>::default();
        thread::Builder::new().spawn(move || server.serve(&published)).unwrap();
        address
    }

    fn ask(address: SocketAddr, text: &str) -> String {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        connection.write_all(text.as_bytes()).unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).unwrap();
        response
    }

    const SCRAPE: &str = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

    #[test]
    fn readers_who_say_nothing_delay_nobody() {
        let address = server();
        let began = Instant::now();
        let half: Vec<_> = (0..READERS + 30)
            .map(|number| {
                let mut connection = TcpStream::connect(address).unwrap();
                connection.write_all(&SCRAPE.as_bytes()[..number % 20]).unwrap();
                connection
            })
            .collect();
        let response = ask(address, SCRAPE);
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("# EOF\n"), "{response}");
        // One after the other they would take as many times two seconds.
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        drop(half);
    }

    #[test]
    fn whoever_takes_too_long_is_left_alone() {
        let address = server();
        let mut slow = TcpStream::connect(address).unwrap();
        slow.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        slow.write_all(b"GET ").unwrap();
        assert_eq!(slow.read(&mut [0; 10]).unwrap_or(0), 0);
    }

    #[test]
    fn another_name_is_refused() {
        let address = server();
        for (host, status) in [("evil.example", "421 "), ("localhost\r\nHost: localhost", "400 ")] {
            let response = ask(address, &SCRAPE.replace("localhost", host));
            assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{response}");
            assert!(!response.contains("# EOF"), "{response}");
        }
        assert!(ask(address, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
    }
}
