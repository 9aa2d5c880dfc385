//! The destination of events, as a user writes it.

use std::path::PathBuf;

/// The destination of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Appended to a file.
    File {
        /// The file.
        path: PathBuf,
        /// It is renamed `.1` before it would grow beyond this, and that `.2`.
        rotate_bytes: Option<u64>,
        /// Number of rotated files that stay.
        keep: u32,
    },
    /// Standard error.
    Stderr,
    /// The log of the system.
    Syslog {
        /// Its socket.
        path: PathBuf,
    },
    /// In memory, written at the end.
    Memory {
        /// The file.
        path: PathBuf,
        /// The size of the memory: it holds the newest events.
        bytes: u64,
    },
    /// A collector.
    Collector {
        /// `HOST:PORT`.
        address: String,
    },
}

/// Why a text names no place.
#[derive(Debug, thiserror::Error)]
#[error("{place:?} is no place for events: {reason}")]
pub struct DestinationError {
    /// The text.
    pub place: String,
    /// Its error.
    pub reason: String,
}

const LOG: &str = "/dev/log";
const KEEP: u32 = 5;
const MEMORY_MB: u64 = 64;
const MOST_MB: u64 = 1 << 20;
const MB: u64 = 1_000_000;

impl std::str::FromStr for Destination {
    type Err = DestinationError;

    fn from_str(place: &str) -> Result<Destination, DestinationError> {
        parse(place)
            .map_err(|reason| DestinationError { place: place.chars().take(200).collect(), reason })
    }
}

fn parse(place: &str) -> Result<Destination, String> {
    if let Some(address) = place.strip_prefix("tcp://") {
        let address = address.strip_suffix('/').unwrap_or(address);
        let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty());
        let fits = port.is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0));
        return if fits {
            Ok(Destination::Collector { address: address.to_string() })
        } else {
            Err("expected tcp://HOST:PORT".into())
        };
    }
    match place {
        "stderr" => return Ok(Destination::Stderr),
        "syslog" => return Ok(Destination::Syslog { path: LOG.into() }),
        _ => {}
    }
    if let Some(path) = place.strip_prefix("syslog:") {
        return Ok(Destination::Syslog { path: path_of(path)? });
    }
    if let Some((scheme, _)) = place.split_once("://") {
        return Err(format!("expected a file, tcp://, stderr, syslog or memory:, got {scheme}://"));
    }
    if let Some(rest) = place.strip_prefix("memory:") {
        let (path, mut options) = options(rest)?;
        let mb = take(&mut options, "mb")?.unwrap_or(MEMORY_MB);
        check_no_more(&options, "mb")?;
        return Ok(Destination::Memory { path: path_of(path)?, bytes: mb * MB });
    }
    let (path, mut options) = options(place)?;
    let rotate_bytes = take(&mut options, "rotate_mb")?.map(|mb| mb * MB);
    let keep = take(&mut options, "keep")?;
    check_no_more(&options, "rotate_mb and keep")?;
    if keep.is_some() && rotate_bytes.is_none() {
        return Err("keep is for rotate_mb".into());
    }
    let keep = keep.map_or(KEEP, |keep| keep.min(1000) as u32);
    Ok(Destination::File { path: path_of(path)?, rotate_bytes, keep })
}

fn path_of(path: &str) -> Result<PathBuf, String> {
    if path.is_empty() { Err("the path is missing".into()) } else { Ok(path.into()) }
}

type Options<'a> = Vec<(&'a str, &'a str)>;

fn options(place: &str) -> Result<(&str, Options<'_>), String> {
    let Some((path, rest)) = place.split_once('?') else { return Ok((place, Vec::new())) };
    let wrong = |part| format!("expected KEY=NUMBER after '?', got {part:?}");
    let options = rest.split('&').map(|part| part.split_once('=').ok_or_else(|| wrong(part)));
    Ok((path, options.collect::<Result<_, _>>()?))
}

fn take(options: &mut Options<'_>, key: &str) -> Result<Option<u64>, String> {
    let Some(at) = options.iter().position(|(other, _)| *other == key) else { return Ok(None) };
    let (_, value) = options.remove(at);
    match value.parse() {
        Ok(number) if (1..=MOST_MB).contains(&number) => Ok(Some(number)),
        _ => Err(format!("{key}: expected a number from 1 to {MOST_MB}, got {value:?}")),
    }
}

fn check_no_more(options: &Options<'_>, keys: &str) -> Result<(), String> {
    match options.first() {
        None => Ok(()),
        Some((key, _)) => Err(format!("{key}: unknown or twice; there are {keys}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let place = |text: &str| text.parse::<Destination>().expect(text);
        let file = |path: &str, rotate_bytes, keep| Destination::File {
            path: path.into(),
            rotate_bytes,
            keep,
        };
        assert_eq!(place("run.ulm"), file("run.ulm", None, 5));
        assert_eq!(place("/a b/r?rotate_mb=100"), file("/a b/r", Some(100 * MB), 5));
        assert_eq!(place("r?rotate_mb=1&keep=2"), file("r", Some(MB), 2));
        assert_eq!(place("stderr"), Destination::Stderr);
        assert_eq!(place("syslog"), Destination::Syslog { path: "/dev/log".into() });
        assert_eq!(place("syslog:/x"), Destination::Syslog { path: "/x".into() });
        assert_eq!(place("memory:m?mb=2"), Destination::Memory { path: "m".into(), bytes: 2 * MB });
        assert_eq!(place("tcp://[::1]:90"), Destination::Collector { address: "[::1]:90".into() });
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for text in [
            "",
            "?rotate_mb=1",
            "memory:",
            "syslog:",
            "tcp://host",
            "tcp://:80",
            "tcp://h:0",
            "tcp://h:99999",
            "http://h:80",
            "r?x=1",
            "r?rotate_mb",
            "r?rotate_mb=0",
            "r?rotate_mb=x",
            "r?keep=2",
            "r?rotate_mb=1&rotate_mb=2",
            "memory:m?keep=1",
        ] {
            let result = text.parse::<Destination>();
            assert!(result.is_err(), "{text:?}: {result:?}");
        }
    }
}
