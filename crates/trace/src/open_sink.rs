//! From a place to what takes the lines there.

use crate::destination::Place;
use crate::file::Rotated;
use crate::memory::Memory;
use crate::sender::Sender;
use crate::sink::{From, Sink, Stderr, Syslog};
use std::io;

/// Open what is at a place.
pub(crate) fn open_sink(place: &Place, from: &From) -> io::Result<Box<dyn Sink>> {
    Ok(match place {
        Place::File { path, rotate_bytes, keep } => {
            Box::new(Rotated::open(path, *rotate_bytes, *keep)?)
        }
        Place::Stderr => Box::new(Stderr),
        Place::Syslog { path } => Box::new(Syslog::open(path, &from.prog)?),
        Place::Memory { path, bytes } => Box::new(Memory::open(path, *bytes)?),
        Place::Collector { address } => Box::new(Sender::new(address, from)?),
    })
}
