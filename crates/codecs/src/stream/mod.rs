//! Whole-file compression: gzip, bzip2 and compress (`.Z`) streams, decoded forwards and, from
//! seek points, from the middle.
//!
//! Decoders take bytes and return bytes; fetching them is the caller's business.

mod bzip2;
mod compress;
mod gzip;
mod huffman;
mod inflate;
mod literal_deflate;
mod paired_symbols;
mod table;
#[cfg(test)]
mod testing;
mod window;

pub use table::{SeekPoint, SeekTable};

use serde::{Deserialize, Serialize};

/// How an object is compressed as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StreamKind {
    /// gzip (RFC 1952), also of several members.
    Gzip,
    /// bzip2, also of several streams.
    Bzip2,
    /// Unix compress, `.Z`: no seek points.
    Compress,
}

impl StreamKind {
    /// The kind that starts with these bytes, by its magic number.
    pub fn detect(first: &[u8]) -> Option<StreamKind> {
        match first {
            [0x1f, 0x8b, ..] => Some(StreamKind::Gzip),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(StreamKind::Bzip2),
            [0x1f, 0x9d, ..] => Some(StreamKind::Compress),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            StreamKind::Gzip => "gzip",
            StreamKind::Bzip2 => "bzip2",
            StreamKind::Compress => "compress",
        }
    }
}

impl std::fmt::Display for StreamKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The damage of a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The stream breaks the rules of its format.
    #[error("{kind} stream damaged near byte {at}: {what}")]
    Damaged {
        /// The format.
        kind: StreamKind,
        /// Compressed bytes read when it was noticed.
        at: u64,
        /// The damage.
        what: &'static str,
    },
    /// The data do not have the checksum or length that the stream states for them.
    #[error(
        "{kind} stream ends at byte {at} with {what} {expected:#x}, but its data give {found:#x}"
    )]
    Mismatch {
        /// The format.
        kind: StreamKind,
        /// Compressed bytes read when it was noticed.
        at: u64,
        /// Which check.
        what: &'static str,
        /// As the stream has it.
        expected: u32,
        /// Checksum or length of the data.
        found: u32,
    },
    /// The stream stops before its end.
    #[error("{kind} stream cut off at byte {at}")]
    CutOff {
        /// The format.
        kind: StreamKind,
        /// Number of compressed bytes.
        at: u64,
    },
    /// A seek point does not fit the format.
    #[error("seek point of a {kind} stream is damaged: {what}")]
    SeekPoint {
        /// The format.
        kind: StreamKind,
        /// What the data have.
        what: &'static str,
    },
}

/// The result of one call to [`Decoder::decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input used; the rest must come again.
    pub input_bytes: usize,
    /// Bytes of the output filled.
    pub output_bytes: usize,
    /// Whether the data ended.
    pub end: bool,
}

/// A decoder of one stream.
pub trait Decoder: Send {
    /// Decode from `input`, which follows what was consumed before, into `output`. `last`: no
    /// input follows this. A call that consumes and produces nothing needs more input.
    ///
    /// # Errors
    /// If the stream is damaged or, with `last`, cut off. A half decoded state is then
    /// invalid: every call from then on returns the same error.
    fn decode(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
    ) -> Result<Progress, StreamError>;

    /// Seek points passed since the last call, in ascending order.
    fn take_points(&mut self) -> Vec<SeekPoint>;
}

/// Says again what was wrong, so that the decoder of a format need not.
struct UntilError<D> {
    decoder: D,
    error: Option<StreamError>,
}

impl<D: Decoder> UntilError<D> {
    fn new(decoder: D) -> UntilError<D> {
        UntilError { decoder, error: None }
    }
}

impl<D: Decoder> Decoder for UntilError<D> {
    fn decode(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
    ) -> Result<Progress, StreamError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let step = self.decoder.decode(input, last, output);
        step.inspect_err(|error| self.error = Some(error.clone()))
    }

    fn take_points(&mut self) -> Vec<SeekPoint> {
        self.decoder.take_points()
    }
}

/// A decoder from the start of a stream. `points`: whether to record seek points.
pub fn start(kind: StreamKind, points: bool) -> Box<dyn Decoder> {
    match kind {
        StreamKind::Gzip => Box::new(UntilError::new(gzip::Gzip::start(points))),
        StreamKind::Bzip2 => Box::new(UntilError::new(bzip2::Bzip2::start(points))),
        StreamKind::Compress => Box::new(UntilError::new(compress::Compress::start())),
    }
}

/// A decoder from a seek point; its input then starts at [`SeekPoint::compressed`].
///
/// # Errors
/// If the point does not fit the format.
pub fn resume(
    kind: StreamKind,
    point: &SeekPoint,
    points: bool,
) -> Result<Box<dyn Decoder>, StreamError> {
    match kind {
        StreamKind::Gzip => Ok(Box::new(UntilError::new(gzip::Gzip::resume(point, points)?))),
        StreamKind::Bzip2 => Ok(Box::new(UntilError::new(bzip2::Bzip2::resume(point, points)?))),
        StreamKind::Compress => {
            Err(StreamError::SeekPoint { kind, what: "this format can have none" })
        }
    }
}
