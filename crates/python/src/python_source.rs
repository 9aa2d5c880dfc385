//! Reading from stores that are written in Python.

use crate::python_errors::PythonCall;
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::vec::IntoIter;
use swathe_plan::{Costs, Way};
use swathe_store_api::{
    Checksum, Entry, Pieces, RequestTiming, Source, StoreError, Traffic, Version, measure_reads,
};

/// Most requests in flight from one object.
const MOST_STREAMS: u32 = 64;

/// `swathe.stores.protocol.StoredObject`.
#[derive(FromPyObject)]
pub(crate) struct Status {
    path: String,
    size: u64,
    version: String,
    modified: Option<String>,
    crc32c: Option<u32>,
}

impl From<Status> for Entry {
    fn from(status: Status) -> Entry {
        let Status { path, size, version, modified, crc32c: _ } = status;
        Entry { path, size: Some(size), modified, etag: (!version.is_empty()).then_some(version) }
    }
}

/// An object of a store that is written in Python.
pub(crate) struct PythonSource(Arc<Inner>);

struct Inner {
    store: Py<PyAny>,
    path: String,
    /// What the store calls the version.
    tag: String,
    url: String,
    version: Version,
    crc32c: Option<u32>,
    costs: Costs,
    bytes: AtomicU64,
    requests: AtomicU64,
}

impl PythonSource {
    pub(crate) fn new(
        store: Py<PyAny>,
        path: String,
        url: String,
        status: &Status,
        costs: Costs,
    ) -> PythonSource {
        let tag = status.version.clone();
        // As an ETag, which listings tell without its quotes.
        let seen_tag = match tag.as_str() {
            "" => "unversioned".to_string(),
            tag => format!("\"{tag}\""),
        };
        let version = Version { size: status.size, tag: seen_tag };
        let (bytes, requests) = (AtomicU64::new(0), AtomicU64::new(1));
        let crc32c = status.crc32c;
        PythonSource(Arc::new(Inner {
            store,
            path,
            tag,
            url,
            version,
            crc32c,
            costs,
            bytes,
            requests,
        }))
    }
}

impl Inner {
    fn read(&self, range: &Range<u64>) -> Result<Bytes, StoreError> {
        let size = self.version.size;
        let short = |expected, found| StoreError::ShortRead {
            url: self.url.clone(),
            start: range.start,
            expected,
            found,
        };
        // Checked first, so that an impossible range allocates nothing.
        if range.end > size || range.start > range.end {
            let expected = range.end.saturating_sub(range.start);
            return Err(short(expected, size.saturating_sub(range.start)));
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let call = PythonCall { url: &self.url, version: Some(&self.version) };
        let bytes: PyBackedBytes = call.run(|py| {
            let arguments = (&self.path, &self.tag, range.start, range.end);
            let bytes = self.store.bind(py).call_method1("read", arguments)?;
            Ok(bytes.extract()?)
        })?;
        let (expected, found) = (range.end - range.start, bytes.len() as u64);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(found, Ordering::Relaxed);
        if found != expected {
            return Err(short(expected, found));
        }
        Ok(Bytes::from_owner(bytes))
    }
}

impl Source for PythonSource {
    fn url(&self) -> &str {
        &self.0.url
    }

    fn version(&self) -> &Version {
        &self.0.version
    }

    fn is_local(&self) -> bool {
        false
    }

    fn costs(&self) -> &Costs {
        &self.0.costs
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        let range = offset..offset.saturating_add(buffer.len() as u64);
        buffer.copy_from_slice(&self.0.read(&range)?);
        Ok(())
    }

    fn fetch_by(&self, requests: Vec<Range<u64>>, way: Way) -> Pieces {
        let inner = self.0.clone();
        let streams = (way.streams.clamp(1, MOST_STREAMS) as usize).min(requests.len());
        if streams < 2 {
            return Box::new(requests.into_iter().map(move |range| inner.read(&range)));
        }
        Box::new(Fetch::start(&inner, requests, streams))
    }

    fn checksums(&self) -> Result<Vec<Checksum>, StoreError> {
        let sum = |value| Checksum {
            algorithm: "crc32c".into(),
            value: format!("{value:08x}"),
            is_exact: true,
        };
        Ok(self.0.crc32c.map(sum).into_iter().collect())
    }

    fn take_traffic(&self) -> Traffic {
        let (bytes, requests) = (&self.0.bytes, &self.0.requests);
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Traffic { bytes: take(bytes), requests: take(requests), ..Traffic::default() }
    }

    fn measure(
        &self,
        requests: &[Range<u64>],
        streams: u32,
        _fresh: bool,
    ) -> Result<Vec<RequestTiming>, StoreError> {
        measure_reads(requests, streams, |range| self.0.read(range))
    }
}

type Answer = Result<Bytes, StoreError>;
type Request = (Range<u64>, Sender<Answer>);

/// Ranges that are read by several threads. Dropped, it ends them after what they read.
struct Fetch {
    waiting: IntoIter<Range<u64>>,
    requests: Sender<Request>,
    answers: VecDeque<Receiver<Answer>>,
    url: String,
}

impl Fetch {
    fn start(source: &Arc<Inner>, ranges: Vec<Range<u64>>, streams: usize) -> Fetch {
        let (requests, receiver) = channel::<Request>();
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..streams {
            let (source, receiver) = (source.clone(), receiver.clone());
            std::thread::spawn(move || {
                let next = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                while let Ok((range, answer)) = next() {
                    // If nobody waits for it, it is not needed.
                    let _ = answer.send(source.read(&range));
                }
            });
        }
        let (waiting, url) = (ranges.into_iter(), source.url.clone());
        let mut fetch = Fetch { waiting, requests, answers: VecDeque::new(), url };
        (0..streams).for_each(|_| fetch.ask());
        fetch
    }

    /// Ask for the next range.
    fn ask(&mut self) {
        let Some(range) = self.waiting.next() else { return };
        let (sender, answer) = channel();
        self.answers.push_back(answer);
        // Without a thread that takes it the answer is an error.
        let _ = self.requests.send((range, sender));
    }
}

impl Iterator for Fetch {
    type Item = Answer;

    fn next(&mut self) -> Option<Answer> {
        let answer = self.answers.pop_front()?;
        let thread_error = |_| {
            let why = "a thread that reads has ended".to_string();
            Err(StoreError::Network { url: self.url.clone(), why })
        };
        let answer = answer.recv().unwrap_or_else(thread_error);
        match &answer {
            Ok(_) => self.ask(),
            // An error is the last.
            Err(_) => self.answers.clear(),
        }
        Some(answer)
    }
}
