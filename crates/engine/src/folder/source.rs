//! A folder as a source of bytes.

use super::place::Place;
use super::table::FolderTable;
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};
use std::vec::IntoIter;
use swathe_plan::{Connections, Costs, Factors, Others, Way};
use swathe_store_api::{
    Interrupt, ObjectName, Pieces, RequestTiming, Source, StoreError, Traffic, Version,
    measure_reads,
};
use swathe_trace::Scope;

/// What the tags of folders begin with.
pub(super) const TAG: &str = "folder:";
/// A file that was changed so recently may change again and keep its date.
const RECENT: Duration = Duration::from_secs(2);

/// A folder, at the state its listing had.
pub(super) struct FolderSource(Arc<Folder>);

struct Folder {
    place: Place,
    table: Arc<FolderTable>,
    version: Version,
    costs: Costs,
    /// Whether it was listed some time ago: there may be more members now.
    is_recalled: bool,
    /// Whether every member has an ETag.
    is_tagged: bool,
    /// A member, which knows the link to its server.
    any: OnceLock<Option<Arc<dyn Source>>>,
    traffic: Mutex<Traffic>,
    notes: Mutex<Vec<String>>,
}

impl FolderSource {
    pub(super) fn new(place: Place, table: Arc<FolderTable>, is_recalled: bool) -> FolderSource {
        let version = Version { size: table.stored_bytes, tag: format!("{TAG}{}", table.digest()) };
        let is_tagged = (0..table.count()).all(|number| table.stamp(number).starts_with('"'));
        // A request is for one member.
        let costs =
            Costs { multi_range: None, multiplexed: None, ..place.store.settings().costs.clone() };
        let mut notes = Vec::new();
        if !place.store.is_local() && !is_tagged {
            notes.push(format!(
                "{}: its listing tells no ETags: whether members change while they are read is seen by \
                 their sizes",
                place.url
            ));
        }
        FolderSource(Arc::new(Folder {
            place,
            table,
            version,
            costs,
            is_recalled,
            is_tagged,
            any: OnceLock::new(),
            traffic: Mutex::default(),
            notes: Mutex::new(notes),
        }))
    }
}

impl Folder {
    /// Open a member, at the state it had when the folder was listed.
    fn open(&self, number: usize) -> Result<Arc<dyn Source>, StoreError> {
        let (table, place) = (&self.table, &self.place);
        let (name, stamp) = (table.name(number), table.stamp(number));
        let range = table.range(number);
        let size = range.end - range.start;
        let (url, qualified_name) = place.locate(table.path(), name);
        let object = ObjectName { url: &url, qualified_name: qualified_name.as_deref() };
        if !place.store.is_local() {
            if stamp.starts_with('"') {
                let version = Version { size, tag: stamp.to_string() };
                if let Some(source) = place.store.assume(object, version)? {
                    return Ok(source);
                }
            }
            if let Some(source) = place.store.assume_size(object, size)? {
                return Ok(source);
            }
        }
        let source = place.store.open(object).map_err(|error| self.missing_is_change(error))?;
        let Version { size: found, tag } = source.version();
        if *found != size || !has_stamp(tag, stamp) {
            return Err(StoreError::Changed {
                url: source.url().to_string(),
                version: stamp.to_string(),
            });
        }
        Ok(source)
    }

    /// That a member is not there any more is a change of the folder.
    fn missing_is_change(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::NotFound { url, .. } => {
                StoreError::Changed { url, version: self.version.to_string() }
            }
            error => error,
        }
    }

    /// The member that a range lies in, and where.
    fn locate(&self, range: &Range<u64>) -> Result<(usize, Range<u64>), StoreError> {
        let found = self.table.find(range.start).map(|number| (number, self.table.range(number)));
        match found {
            Some((number, member)) if range.start <= range.end && range.end <= member.end => {
                Ok((number, range.start - member.start..range.end - member.start))
            }
            _ => Err(StoreError::ShortRead {
                url: self.place.url.clone(),
                start: range.start,
                expected: range.end.saturating_sub(range.start),
                found: 0,
            }),
        }
    }

    /// Take over what a member has to say after it was read.
    fn finish(&self, source: &dyn Source) {
        lock(&self.traffic).add(source.take_traffic());
        let notes = source.take_notes();
        if !notes.is_empty() {
            lock(&self.notes).extend(notes);
        }
    }

    fn any(&self) -> Option<&Arc<dyn Source>> {
        let is_remote = !self.place.store.is_local() && self.table.count() > 0;
        self.any.get_or_init(|| is_remote.then(|| self.open(0).ok()).flatten()).as_ref()
    }

    fn read_member(&self, number: usize, at: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        let source = self.open(number)?;
        let result = source.read_exact_at(at, buffer);
        self.finish(&*source);
        result.map_err(|error| self.missing_is_change(error))
    }

    /// Fill a buffer; between members there are zeros.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        let window = offset..offset.saturating_add(buffer.len() as u64);
        if window.end > self.table.end() {
            return Err(StoreError::ShortRead {
                url: self.place.url.clone(),
                start: offset,
                expected: buffer.len() as u64,
                found: self.table.end().saturating_sub(offset),
            });
        }
        let head = self.table.bytes();
        let part =
            |range: &Range<u64>| (range.start - offset) as usize..(range.end - offset) as usize;
        if let Some(range) = common(&window, &(0..head.len() as u64)) {
            buffer[part(&range)].copy_from_slice(&head[range.start as usize..range.end as usize]);
            buffer[(range.end - offset) as usize..].fill(0);
        } else {
            buffer.fill(0);
        }
        let first = self.table.find(window.start).unwrap_or_default();
        for number in first..self.table.count() {
            let member = self.table.range(number);
            if member.start >= window.end {
                break;
            }
            if let Some(range) = common(&window, &member) {
                self.read_member(number, range.start - member.start, &mut buffer[part(&range)])?;
            }
        }
        Ok(())
    }
}

impl Source for FolderSource {
    fn url(&self) -> &str {
        &self.0.place.url
    }

    fn key(&self) -> &str {
        &self.0.place.key
    }

    fn identity(&self) -> Option<u64> {
        self.0.any().and_then(|member| member.identity())
    }

    fn version(&self) -> &Version {
        &self.0.version
    }

    fn is_local(&self) -> bool {
        self.0.place.store.is_local()
    }

    fn len(&self) -> u64 {
        self.0.table.end()
    }

    fn stored_bytes(&self) -> u64 {
        self.0.table.stored_bytes
    }

    fn members(&self) -> Option<Bytes> {
        Some(self.0.table.bytes().clone())
    }

    fn is_settled(&self) -> bool {
        let table = &self.0.table;
        let is_old = |stamp: &str| {
            let ns = stamp.parse().ok().map(Duration::from_nanos);
            let age = ns.and_then(|ns| (SystemTime::UNIX_EPOCH + ns).elapsed().ok());
            age.is_some_and(|age| age > RECENT)
        };
        self.0.is_tagged || (0..table.count()).all(|number| is_old(table.stamp(number)))
    }

    fn confirm_absence(&self) -> Result<(), StoreError> {
        if !self.0.is_recalled {
            return Ok(());
        }
        let (url, version) = (self.0.place.url.clone(), self.0.version.to_string());
        Err(StoreError::Changed { url, version })
    }

    fn costs(&self) -> &Costs {
        &self.0.costs
    }

    fn connections(&self) -> Connections {
        self.0.any().map_or(Connections::ALL, |member| member.connections())
    }

    fn factors(&self) -> Factors {
        self.0.any().map_or_else(Factors::default, |member| member.factors())
    }

    fn others(&self) -> Others {
        self.0.any().map_or_else(Others::default, |member| member.others())
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        self.0.read(offset, buffer)
    }

    fn fetch_by(&self, ranges: Vec<Range<u64>>, way: Way) -> Pieces {
        Box::new(FolderRead {
            folder: self.0.clone(),
            ranges: ranges.into_iter(),
            next: None,
            running: VecDeque::new(),
            in_flight: 0,
            streams: way.streams.max(1) as usize,
        })
    }

    fn at_hand(&self, ranges: &[Range<u64>]) -> Option<Traffic> {
        let mut all = Traffic::default();
        if self.is_local() {
            return Some(all);
        }
        for range in ranges {
            let (number, range) = self.0.locate(range).ok()?;
            all.add(self.0.open(number).ok()?.at_hand(&[range])?);
        }
        Some(all)
    }

    fn costs_at_hand(&self) -> &Costs {
        self.0.any().map_or(&self.0.costs, |member| member.costs_at_hand())
    }

    fn can_be_assumed(&self) -> bool {
        self.0.is_tagged && !self.is_local()
    }

    fn take_traffic(&self) -> Traffic {
        std::mem::take(&mut lock(&self.0.traffic))
    }

    fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.0.notes))
    }

    fn measure(
        &self,
        requests: &[Range<u64>],
        streams: u32,
        _fresh: bool,
    ) -> Result<Vec<RequestTiming>, StoreError> {
        let (scope, interrupt) = (Scope::current(), Interrupt::current());
        measure_reads(requests, streams, |range| {
            scope.clone().enter();
            interrupt.enter();
            let (number, range) = self.0.locate(range)?;
            let mut bytes = vec![0; (range.end - range.start) as usize];
            self.0.read_member(number, range.start, &mut bytes)?;
            Ok(bytes.into())
        })
    }
}

/// Reads ranges of a folder, in their order, with several requests in flight.
struct FolderRead {
    folder: Arc<Folder>,
    ranges: IntoIter<Range<u64>>,
    /// The next range, if it is of another member than those before it.
    next: Option<Range<u64>>,
    running: VecDeque<Running>,
    in_flight: usize,
    streams: usize,
}

/// Ranges of a member that are being read.
struct Running {
    pieces: Pieces,
    source: Arc<dyn Source>,
    left: usize,
}

impl FolderRead {
    /// Begin to read the next ranges that lie in one member; false if there are none.
    fn start(&mut self) -> Result<bool, StoreError> {
        let Some(first) = self.next.take().or_else(|| self.ranges.next()) else { return Ok(false) };
        let (number, first) = self.folder.locate(&first)?;
        let mut ranges = vec![first];
        for range in self.ranges.by_ref() {
            match self.folder.locate(&range) {
                Ok((same, below)) if same == number => ranges.push(below),
                _ => {
                    self.next = Some(range);
                    break;
                }
            }
        }
        let (source, left) = (self.folder.open(number)?, ranges.len());
        let streams = left.min(self.streams) as u32;
        let pieces = source.fetch_by(ranges, Way::single(streams));
        self.in_flight += left;
        self.running.push_back(Running { pieces, source, left });
        Ok(true)
    }

    fn step(&mut self) -> Result<Option<Bytes>, StoreError> {
        loop {
            while self.in_flight < self.streams && self.start()? {}
            let Some(running) = self.running.front_mut() else { return Ok(None) };
            match running.pieces.next() {
                Some(piece) => {
                    running.left = running.left.saturating_sub(1);
                    self.in_flight = self.in_flight.saturating_sub(1);
                    if running.left == 0 {
                        self.folder.finish(&*running.source);
                        self.running.pop_front();
                    }
                    return piece.map(Some).map_err(|error| self.folder.missing_is_change(error));
                }
                None => {
                    self.in_flight = self.in_flight.saturating_sub(running.left);
                    self.running.pop_front();
                }
            }
        }
    }
}

impl Iterator for FolderRead {
    type Item = Result<Bytes, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.step();
        if result.is_err() {
            // An error is the last.
            (self.ranges, self.next) = (Vec::new().into_iter(), None);
            self.running.clear();
        }
        result.transpose()
    }
}

/// Whether a version is that of a listing: the date of a file, an ETag, or the version itself.
fn has_stamp(tag: &str, stamp: &str) -> bool {
    let Some(date) = tag.strip_prefix("mtime:") else {
        return stamp.is_empty() || tag == stamp || !stamp.starts_with('"');
    };
    let date = date.split("-ino:").next().and_then(|date| date.split_once('.'));
    let ns = date.and_then(|(seconds, ns)| {
        let (seconds, ns): (i128, i128) = (seconds.parse().ok()?, ns.parse().ok()?);
        Some(seconds * 1_000_000_000 + ns)
    });
    ns.is_some_and(|ns| stamp == ns.to_string())
}

fn common(a: &Range<u64>, b: &Range<u64>) -> Option<Range<u64>> {
    let range = a.start.max(b.start)..a.end.min(b.end);
    (range.start < range.end).then_some(range)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // The data are whole between two statements, even after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
