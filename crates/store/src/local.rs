//! Files.

use crate::place::Place;
use bytes::Bytes;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::time::Duration;
use swathe_plan::{Costs, Way};
use swathe_store_api::{Pieces, RequestTiming, Source, StoreError, Version, measure_reads};

/// A file that was changed so recently may change again and keep its date: the clock of a file
/// system ticks every 4 ms on Linux, every 2 s on FAT.
const RECENT: Duration = Duration::from_secs(2);

/// A file, read by position.
pub(crate) struct LocalFile {
    inner: Arc<Inner>,
    is_settled: bool,
}

struct Inner {
    url: String,
    version: Version,
    file: File,
    costs: Costs,
}

impl LocalFile {
    /// Open a regular file.
    pub(crate) fn open(place: &Place, costs: Costs) -> Result<LocalFile, StoreError> {
        let (file, url) = (place.open()?, place.url.clone());
        let stat = file.metadata().map_err(|source| StoreError::from_io(&url, source))?;
        if !stat.is_file() {
            let why = if stat.is_dir() { "a folder, not a file" } else { "not a regular file" };
            return Err(StoreError::Unsupported { url, why: why.into() });
        }
        let tag = format!("mtime:{}.{:09}-ino:{}", stat.mtime(), stat.mtime_nsec(), stat.ino());
        let version = Version { size: stat.len(), tag };
        let age = stat.modified().ok().and_then(|modified| modified.elapsed().ok());
        let is_settled = age.is_some_and(|age| age > RECENT);
        Ok(LocalFile { inner: Arc::new(Inner { url, version, file, costs }), is_settled })
    }
}

impl Inner {
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        let mut count = 0;
        while count < buffer.len() {
            match self.file.read_at(&mut buffer[count..], offset + count as u64) {
                Ok(0) => {
                    return Err(StoreError::ShortRead {
                        url: self.url.clone(),
                        start: offset,
                        expected: buffer.len() as u64,
                        found: count as u64,
                    });
                }
                Ok(bytes) => count += bytes,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(StoreError::from_io(&self.url, error)),
            }
        }
        Ok(())
    }

    fn read(&self, range: &Range<u64>) -> Result<Bytes, StoreError> {
        // Checked first, so that an impossible range allocates nothing.
        let size = self.version.size;
        if range.end > size || range.start > range.end {
            return Err(StoreError::ShortRead {
                url: self.url.clone(),
                start: range.start,
                expected: range.end.saturating_sub(range.start),
                found: size.saturating_sub(range.start),
            });
        }
        let mut bytes = vec![0; (range.end - range.start) as usize];
        self.read_exact_at(range.start, &mut bytes)?;
        Ok(bytes.into())
    }
}

impl Source for LocalFile {
    fn url(&self) -> &str {
        &self.inner.url
    }

    fn version(&self) -> &Version {
        &self.inner.version
    }

    fn is_local(&self) -> bool {
        true
    }

    fn is_settled(&self) -> bool {
        self.is_settled
    }

    fn costs(&self) -> &Costs {
        &self.inner.costs
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        self.inner.read_exact_at(offset, buffer)
    }

    fn fetch_by(&self, requests: Vec<Range<u64>>, _: Way) -> Pieces {
        let inner = self.inner.clone();
        Box::new(requests.into_iter().map(move |range| inner.read(&range)))
    }

    fn measure(
        &self,
        requests: &[Range<u64>],
        streams: u32,
        _fresh: bool,
    ) -> Result<Vec<RequestTiming>, StoreError> {
        measure_reads(requests, streams, |range| self.inner.read(range))
    }
}
