//! One object at one version, read by ranges.

use crate::checksum::Checksum;
use crate::error::StoreError;
use crate::timing::{MultiplexTiming, RequestTiming, VectorTiming};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Duration;
use swathe_plan::{Connections, Costs, Factors, Others, Way};

/// For this long an object is assumed unchanged, if all bytes to read are cached.
/// Then its server is asked, with a request of one byte.
pub const TRUST: Duration = Duration::from_secs(60);

/// Most bytes of a request whose answer a server must prove.
pub const PROVEN_BYTES: u64 = 256 << 10;

/// The version of an object when it was opened.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Version {
    /// Bytes of the object.
    pub size: u64,
    /// ETag, else `Last-Modified`, else what PROPFIND says of that, else "unversioned"; of a file,
    /// modification time and inode.
    pub tag: String,
}

impl Version {
    /// Whether another object would have another version: without ETag and date
    /// an object may change under its name, so nothing of it is cached.
    pub fn is_told_apart(&self) -> bool {
        !self.tag.starts_with("unversioned")
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.size, self.tag)
    }
}

/// Traffic with storages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Bytes, as stored.
    pub bytes: u64,
    /// Requests; of local files, reads.
    pub requests: u64,
    /// Traffic of peers instead.
    pub from_peers: TrafficCount,
    /// Bytes from the cache.
    pub from_cache: TrafficCount,
}

/// Bytes from peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrafficCount {
    /// Bytes; those from peers may be more than were needed.
    pub bytes: u64,
    /// Requests; for cached bytes, pieces.
    pub requests: u64,
}

impl TrafficCount {
    fn add(&mut self, other: TrafficCount) {
        self.bytes += other.bytes;
        self.requests += other.requests;
    }
}

impl Traffic {
    /// Add further traffic.
    pub fn add(&mut self, other: Traffic) {
        self.bytes += other.bytes;
        self.requests += other.requests;
        self.from_peers.add(other.from_peers);
        self.from_cache.add(other.from_cache);
    }
}

/// An open object. All its bytes come from the version that was opened, or reading fails.
#[allow(clippy::len_without_is_empty)] // an object is asked for its size, never for emptiness
pub trait Source: Send + Sync {
    /// The object, as users may see it: an absolute path, or a URL without credentials.
    fn url(&self) -> &str;

    /// The key of its cache entries: its URL, with the server if the URL leaves that
    /// open.
    fn key(&self) -> &str {
        self.url()
    }

    /// The reader: a digest of the credentials that are sent, of use in this process only; `None`
    /// if none are.
    fn identity(&self) -> Option<u64> {
        None
    }

    /// The version that is read.
    fn version(&self) -> &Version;

    /// Whether a read costs microseconds rather than milliseconds.
    fn is_local(&self) -> bool;

    /// Bytes of the object.
    fn len(&self) -> u64 {
        self.version().size
    }

    /// Bytes that its store keeps for it: less than [`Source::len`] if it has gaps.
    fn stored_bytes(&self) -> u64 {
        self.len()
    }

    /// Its members, as an index keeps them, if it is a folder; `None` for any other object.
    fn members(&self) -> Option<Bytes> {
        None
    }

    /// Fill `buffer` from `offset`.
    ///
    /// # Errors
    /// [`StoreError::ShortRead`] if the object ends before; as the kind of source has it.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError>;

    /// The costs of reading.
    fn costs(&self) -> &Costs;

    /// Open connections: as many requests can be sent without opening others.
    fn connections(&self) -> Connections {
        Connections::ALL
    }

    /// How its link differs from its costs now, as the requests of this process show.
    fn factors(&self) -> Factors {
        Factors::default()
    }

    /// The requests that others in this process have in flight from its store.
    fn others(&self) -> Others {
        Others::default()
    }

    /// The first bytes, if they were sent with opening.
    fn first(&self) -> Bytes {
        Bytes::new()
    }

    /// Read ranges, each of a remote object with a request and up to `streams` in flight. They arrive
    /// in their order, each as soon as it and those before it are complete; an error is the last.
    /// Dropping the rest ends its requests.
    fn fetch(&self, ranges: Vec<Range<u64>>, streams: u32) -> Pieces {
        self.fetch_by(ranges, Way::single(streams))
    }

    /// Read ranges as [`Source::fetch`] does: many of them with one request, or many requests on
    /// one connection, if the store honours that.
    fn fetch_by(&self, ranges: Vec<Range<u64>>, way: Way) -> Pieces;

    /// A single cut begins to read: others from the same object may follow, and then all of it may
    /// be worth fetching.
    fn begin_cut(&self) {}

    /// The most likely traffic of reading these ranges with a server if all of them are cached:
    /// none, or one byte to check that the object is unchanged. `None` if some are not cached.
    fn at_hand(&self, _ranges: &[Range<u64>]) -> Option<Traffic> {
        self.is_local().then(Traffic::default)
    }

    /// The costs of reading cached bytes, without that byte.
    fn costs_at_hand(&self) -> &Costs {
        self.costs()
    }

    /// Whether any change from now on would show in the version.
    fn is_settled(&self) -> bool {
        self.version().is_told_apart()
    }

    /// Check that what was not there when this was opened is still not there.
    ///
    /// # Errors
    /// [`StoreError::Changed`] if that is only assumed.
    fn confirm_absence(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// How often a read with this many requests also requests the date, before it returns bytes.
    fn questions(&self, _requests: u64, _streams: u32) -> u64 {
        0
    }

    /// Checksums of all its bytes that its server tells; none if it tells none.
    ///
    /// # Errors
    /// As the request has it.
    fn checksums(&self) -> Result<Vec<Checksum>, StoreError> {
        Ok(Vec::new())
    }

    /// Whether it can be read at this version without being opened, as reading reports a change.
    fn can_be_assumed(&self) -> bool {
        false
    }

    /// Traffic with a server since the last call, opening included; none for files.
    fn take_traffic(&self) -> Traffic {
        Traffic::default()
    }

    /// Warnings for the user since the last call; the work went on.
    fn take_notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Read ranges with `streams` requests in flight and measure each. Nothing is
    /// repeated. `fresh`: on a new connection each.
    ///
    /// # Errors
    /// As [`Source::read_exact_at`]; the first that fails.
    fn measure(
        &self,
        requests: &[Range<u64>],
        streams: u32,
        fresh: bool,
    ) -> Result<Vec<RequestTiming>, StoreError>;

    /// Read ranges, ascending and disjoint, with one request, and measure it. Nothing is repeated;
    /// after `limit` it counts as refused.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] if the source is not read with requests of HTTP; else as
    /// [`Source::read_exact_at`].
    fn measure_vector(
        &self,
        _ranges: &[Range<u64>],
        _limit: Duration,
    ) -> Result<VectorTiming, StoreError> {
        let why = "it is not read with requests for ranges".to_string();
        Err(StoreError::Unsupported { url: self.url().to_string(), why })
    }

    /// Read ranges with a request each, `streams` in flight on one connection of HTTP/2, and
    /// measure them. Nothing is repeated; after `limit` they count as refused.
    ///
    /// # Errors
    /// As [`Source::measure_vector`].
    fn measure_multiplexed(
        &self,
        _ranges: &[Range<u64>],
        _streams: u32,
        _limit: Duration,
    ) -> Result<MultiplexTiming, StoreError> {
        let why = "it is not read with requests of HTTP/2".to_string();
        Err(StoreError::Unsupported { url: self.url().to_string(), why })
    }
}

/// Ranges that are being read.
pub type Pieces = Box<dyn Iterator<Item = Result<Bytes, StoreError>> + Send>;
