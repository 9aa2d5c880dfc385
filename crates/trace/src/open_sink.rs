//! Origin a destination to the sink for its lines.

use crate::destination::Destination;
use crate::file::RotatingFile;
use crate::memory::Memory;
use crate::sender::Sender;
use crate::sink::{LineSink, Origin, Stderr, Syslog};
use std::io;

/// Open the sink of a destination.
pub(crate) fn open_sink(place: &Destination, from: &Origin) -> io::Result<Box<dyn LineSink>> {
    Ok(match place {
        Destination::File { path, rotate_bytes, keep } => {
            Box::new(RotatingFile::open(path, *rotate_bytes, *keep)?)
        }
        Destination::Stderr => Box::new(Stderr),
        Destination::Syslog { path } => Box::new(Syslog::open(path, &from.prog)?),
        Destination::Memory { path, bytes } => Box::new(Memory::open(path, *bytes)?),
        Destination::Collector { address } => Box::new(Sender::new(address, from)?),
    })
}
