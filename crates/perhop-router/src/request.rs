//! Requests for metrics: what of HTTP/1.1 (RFC 9112) is read, without a socket.
//!
//! A page of another site may have a browser on this host ask for `http://name.of.that.site:9477/metrics`,
//! whose address it says is 127.0.0.1 (DNS rebinding), and read the response as its own. Such a request
//! carries that name as its `Host`: so only names of this host are accepted.

use std::net::IpAddr;

/// The longest header that is read.
pub const LONGEST: usize = 8192;

/// A page that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The metrics.
    Metrics,
    /// The page at `/`.
    Front,
    /// Something else.
    Unknown,
    /// Something else than to read.
    WrongMethod,
    /// By a name that is not ours.
    Misdirected,
    /// No request at all.
    Malformed,
    /// More than is read.
    TooLong,
}

impl Request {
    /// Reads what has come of a request; `None` if its header has not ended yet. `ours` returns whether a
    /// name is of this host.
    pub fn read(text: &[u8], ours: impl FnOnce(&str) -> bool) -> Option<Self> {
        let Some(end) = text.windows(4).position(|four| four == b"\r\n\r\n") else {
            return (text.len() > LONGEST).then_some(Self::TooLong);
        };
        Some(std::str::from_utf8(&text[..end]).map_or(Self::Malformed, |header| Self::of(header, ours)))
    }

    fn of(header: &str, ours: impl FnOnce(&str) -> bool) -> Self {
        let mut lines = header.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Self::Malformed;
        };
        // Exactly one (RFC 9112, section 3.2).
        let mut hosts = lines.filter_map(|line| field(line, "host"));
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return Self::Malformed };
        let Some(host) = name_of(host).filter(|_| version.starts_with("HTTP/1.")) else {
            return Self::Malformed;
        };
        match (method, target.split('?').next()) {
            _ if !ours(host) => Self::Misdirected,
            ("GET", Some("/metrics")) => Self::Metrics,
            ("GET", Some("/")) => Self::Front,
            ("GET", _) => Self::Unknown,
            _ => Self::WrongMethod,
        }
    }
}

/// Returns the value of a line of this name.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (found, value) = line.split_once(':')?;
    found.eq_ignore_ascii_case(name).then(|| value.trim_matches([' ', '\t']))
}

/// Returns a `Host` without its port, and without the brackets of an IPv6 address.
fn name_of(host: &str) -> Option<&str> {
    let (name, rest) = match host.strip_prefix('[') {
        Some(literal) => literal.split_once(']')?,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| port.bytes().all(|digit| digit.is_ascii_digit());
    let port = if rest.is_empty() { Some("") } else { rest.strip_prefix(':') };
    port.filter(|port| is_port(port) && !name.is_empty()).map(|_| name)
}

/// Names of this host.
#[derive(Clone, Debug, Default)]
pub struct Hosts(Vec<String>);

impl Hosts {
    /// Returns the names that the user gives, beside the ones that are always known.
    pub fn new(names: &[String]) -> Self {
        Self(names.to_vec())
    }

    /// Returns whether a request by this name is for this host, which the connection reached by that address:
    /// this address itself, any of loopback, `localhost`, or what the user gives.
    pub fn contains(&self, name: &str, reached: IpAddr) -> bool {
        let address = name.parse::<IpAddr>().map(|address| address.to_canonical());
        let name = name.strip_suffix('.').unwrap_or(name);
        let is = |other: &str| name.eq_ignore_ascii_case(other.strip_suffix('.').unwrap_or(other));
        address.is_ok_and(|address| address.is_loopback() || address == reached.to_canonical())
            || is("localhost")
            || self.0.iter().any(|other| is(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn read(text: &str) -> Option<Request> {
        let hosts = Hosts::new(&["router.example".into()]);
        Request::read(text.as_bytes(), |name| hosts.contains(name, LOOPBACK))
    }

    #[test]
    fn only_names_of_this_host_are_answered() {
        for (host, expected) in [
            ("localhost", Request::Metrics),
            ("LocalHost:9477", Request::Metrics),
            ("localhost.:9477", Request::Metrics),
            ("127.0.0.1:9477", Request::Metrics),
            ("127.1.2.3", Request::Metrics),
            ("[::1]:9477", Request::Metrics),
            ("[::ffff:127.0.0.1]", Request::Metrics),
            ("router.example:80", Request::Metrics),
            ("evil.example", Request::Misdirected),
            ("localhost.evil.example:9477", Request::Misdirected),
            ("127.0.0.1.evil.example", Request::Misdirected),
            ("192.0.2.1:9477", Request::Misdirected),
            ("0.0.0.0:9477", Request::Misdirected),
            ("[::1:9477", Request::Malformed),
            ("localhost:9477:1", Request::Malformed),
            ("localhost:x", Request::Malformed),
            ("user@localhost", Request::Misdirected),
            (":80", Request::Malformed),
            ("", Request::Malformed),
        ] {
            let text = format!("GET /metrics HTTP/1.1\r\nAccept: */*\r\nhOsT:  {host} \r\n\r\n");
            assert_eq!(read(&text), Some(expected), "{host}");
        }
        let reached = "192.0.2.1".parse().unwrap();
        assert!(
            Hosts::default().contains("192.0.2.1", reached)
                && !Hosts::default().contains("192.0.2.2", reached)
        );
    }

    #[test]
    fn what_is_asked_for_is_told_once_its_header_ends() {
        let host = "Host: localhost\r\n";
        let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(LONGEST));
        for (text, expected) in [
            (format!("GET / HTTP/1.1\r\n{host}\r\n"), Some(Request::Front)),
            (format!("GET /metrics?x=1 HTTP/1.0\r\n{host}\r\nbody"), Some(Request::Metrics)),
            (format!("GET /metricss HTTP/1.1\r\n{host}\r\n"), Some(Request::Unknown)),
            (format!("GET http://localhost/metrics HTTP/1.1\r\n{host}\r\n"), Some(Request::Unknown)),
            (format!("POST /metrics HTTP/1.1\r\n{host}\r\n"), Some(Request::WrongMethod)),
            ("GET /metrics HTTP/1.1\r\n\r\n".into(), Some(Request::Malformed)),
            (format!("GET /metrics HTTP/1.1\r\n{host}{host}\r\n"), Some(Request::Malformed)),
            (format!("GET /metrics\r\n{host}\r\n"), Some(Request::Malformed)),
            (format!("GET /metrics FTP/1.1\r\n{host}\r\n"), Some(Request::Malformed)),
            (format!("GET /metrics HTTP/1.1\r\n{host}"), None),
            (String::new(), None),
            (long, Some(Request::TooLong)),
        ] {
            assert_eq!(read(&text), expected, "{text}");
        }
    }

    proptest! {
        /// No bytes, in whatever parts they come, upset it; and none of them reaches the metrics by another's
        /// name.
        #[test]
        fn any_bytes_are_read(noise in proptest::collection::vec(any::<u8>(), 0..60), at in 0_usize..100) {
            let good = b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n";
            let at = at.min(good.len());
            let text = [&good[..at], &noise[..], &good[at..]].concat();
            let found = (0..=text.len()).find_map(|end| Request::read(&text[..end], |name| name == "localhost"));
            prop_assert_ne!(found, Some(Request::Metrics));
        }
    }
}
