//! Writing a striped object.
//!
//! Each part is written in a thread of its own, parity on the way. Then the record is written to each
//! server, in place of the last. So a writer that dies leaves the old object or the new one. Parts of
//! each version have names of their own. Of two writers at the same moment the one whose version is
//! higher wins.

use crate::layout::{Layout, parts_of};
use crate::minority::take_back;
use crate::names::{part_path, record_path};
use crate::object_records::{Records, too_few_servers};
use crate::parity::{Parity, code_name};
use crate::part_writer::PartWriter;
use crate::question::{Grace, Standing, ask_enough, majority, present};
use crate::record_format::{Generation, Header, PartEntry};
use crate::server::Server;
use crate::server_record::{Answer, Record};
use bytes::{Bytes, BytesMut};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use swathe_store_api::{Comparison, Failure, PartSums, Retry, Room, Sink, StoreError, Version};
use swathe_trace::{Ids, Level, event};

/// A server that is later than the others by this time is left out, where they are enough.
pub(crate) const WRITE_GRACE: Duration = Duration::from_secs(30);
/// No server is waited for longer, also where it is needed.
const LONGEST: Duration = Duration::from_secs(600);
const RECORD: Grace = Grace {
    least: WRITE_GRACE,
    least_after_failure: Duration::from_secs(1),
    most: LONGEST,
    ends: true,
};
/// What is not needed is removed later, if not now.
const TIDY: Grace = Grace { least: Duration::from_secs(5), ..RECORD };
/// A part is late when it takes this multiple of what the others took at their end.
const PATIENCE: u32 = 4;

/// What the error of a write that changed nothing says.
pub(crate) const TAKEN_BACK: &str = "its record was taken back, so nothing is changed";

/// An object that is being written.
pub(crate) struct StripedSink {
    url: String,
    path: String,
    servers: Vec<Arc<Server>>,
    /// The servers of its parts, in their order.
    places: Vec<Arc<Server>>,
    layout: Layout,
    generation: Generation,
    /// The version that it takes the place of, and its layout.
    last: Option<(Generation, Layout)>,
    parity: Parity,
    parts: Vec<PartWriter>,
    /// Checksums of each part.
    sums: Vec<Vec<u32>>,
    row: u64,
    waiting: BytesMut,
    crc: crc32fast::Hasher,
    position: u64,
    is_named: bool,
    /// How long parts are waited for that are later than the others.
    late: Duration,
}

impl StripedSink {
    /// Begin to write the object at a path; `rooms`: of its parts, in their order, or none.
    pub(crate) fn create(
        servers: &[Arc<Server>],
        path: &str,
        url: String,
        layout: Layout,
        rooms: Vec<Box<dyn Room>>,
    ) -> Result<StripedSink, StoreError> {
        let mut sink = StripedSink::begin(servers, path, url, layout)?;
        let mut rooms = rooms.into_iter();
        let present = sink.places_present();
        let parts = sink.places.iter().enumerate().map(|(part, server)| {
            let (path, bytes) = (sink.part_path(part), layout.part_bytes(part as u32));
            let room = rooms.next();
            if room.is_none() && !present.iter().any(|(number, _)| *number == part) {
                return Ok(PartWriter::absent(server.absence()));
            }
            PartWriter::start(server.clone(), (part as u32, path), bytes, room)
        });
        sink.parts = parts.collect::<Result<Vec<PartWriter>, StoreError>>()?;
        Ok(sink)
    }

    /// Begin an object at a path, whose parts are written by others.
    pub(crate) fn begin(
        servers: &[Arc<Server>],
        path: &str,
        url: String,
        layout: Layout,
    ) -> Result<StripedSink, StoreError> {
        let records = Records::read(servers, path, true);
        let silent = records.silent(servers);
        let (count, minimum) = (servers.len(), majority(servers.len()));
        if count - silent.len() < minimum {
            return Err(too_few_servers(&url, "answers of", minimum, count, &silent));
        }
        let last = records.newest_version();
        let generation = Generation::after(last.as_ref().map(|(last, _)| last));
        let places: Vec<Arc<Server>> = servers[..layout.parts() as usize].to_vec();
        Ok(StripedSink {
            url,
            path: path.to_string(),
            servers: servers.to_vec(),
            places,
            layout,
            generation,
            last,
            parity: Parity::new(layout.data, layout.parity),
            sums: vec![Vec::new(); layout.parts() as usize],
            parts: Vec::new(),
            row: 0,
            waiting: BytesMut::new(),
            crc: crc32fast::Hasher::new(),
            position: 0,
            is_named: false,
            late: WRITE_GRACE,
        })
    }

    /// Wait so long for parts that are later than the others.
    pub(crate) fn set_late(&mut self, late: Duration) {
        self.late = late;
    }

    /// The servers of its parts, in their order.
    pub(crate) fn places(&self) -> &[Arc<Server>] {
        &self.places
    }

    /// The places, with their numbers, whose servers did not fail a moment ago, if they are enough.
    fn places_present(&self) -> Vec<(usize, Arc<Server>)> {
        present(&self.places, needed_parts(self.layout))
    }

    /// Use the checksums of another object with the same bytes: of all, and of all its parts.
    pub(crate) fn set_sums(&mut self, crc32: u32, sums: Vec<u32>) {
        self.crc = crc32fast::Hasher::new_with_initial(crc32);
        self.sums = vec![sums];
    }

    /// The path of a part on its server.
    pub(crate) fn part_path(&self, part: usize) -> String {
        part_path(&self.path, &self.generation, self.layout.size, part as u32)
    }

    /// Write a row; its parity is computed first.
    fn write_row(&mut self, row: Bytes) -> Result<(), Failure> {
        let (layout, number) = (self.layout, self.row);
        let longest = layout.longest_shard(number) as usize;
        let mut shards: Vec<Bytes> = Vec::with_capacity(layout.parts() as usize);
        let mut rest = row;
        for _ in 0..layout.data {
            shards.push(rest.split_to(rest.len().min(longest)));
        }
        if layout.parity > 0 {
            let full_shards: Vec<Bytes> = shards
                .iter()
                .map(|shard| match shard.len() == longest {
                    true => shard.clone(),
                    false => {
                        let mut bytes = BytesMut::from(&shard[..]);
                        bytes.resize(longest, 0);
                        bytes.freeze()
                    }
                })
                .collect();
            let views: Vec<&[u8]> = full_shards.iter().map(|shard| &shard[..]).collect();
            shards.extend(self.parity.encode(&views).into_iter().map(Bytes::from));
        }
        for (shard, bytes) in shards.into_iter().enumerate() {
            let part = layout.part_of(number, shard as u32) as usize;
            if !bytes.is_empty() {
                let chunks = bytes.chunks(layout.sum_bytes as usize);
                self.sums[part].extend(chunks.map(crc32fast::hash));
                self.parts[part].write(bytes);
            }
        }
        self.row += 1;
        let going = self.parts.iter().filter(|part| part.is_going()).count();
        // With too few of them it fails.
        if going < needed_parts(layout) { self.finish_parts().map(drop) } else { Ok(()) }
    }

    /// Wait for all parts; those that failed are `None`.
    fn finish_parts(&mut self) -> Result<Vec<Option<Version>>, Failure> {
        let (layout, minimum) = (self.layout, needed_parts(self.layout));
        self.parts.iter_mut().for_each(PartWriter::end);
        self.leave_out_late_parts();
        let results: Vec<_> = self.parts.drain(..).map(PartWriter::finish).collect();
        let good = results.iter().filter(|result| result.is_ok()).count();
        let (mut failures, mut retry, mut is_full) = (Vec::new(), None, false);
        for (server, result) in self.places.iter().zip(&results) {
            // A part that was ended early only says that it has too few bytes.
            if let Err(failure) = result
                && !matches!(failure.error, StoreError::ShortRead { .. })
            {
                retry = retry.or(Some(failure.retry));
                is_full |= failure.error.is_full();
                failures.push((server, &failure.error));
            }
        }
        let message = |(server, error): &(&Arc<Server>, &StoreError)| server.message(error);
        if good >= minimum {
            for failure in &failures {
                let why = match failure.1 {
                    StoreError::Network { why, .. } => why.clone(),
                    StoreError::Io { source, .. } => source.to_string(),
                    error => error.to_string(),
                };
                failure.0.note_part_failure(&self.generation, why);
                self.record("STRIPE_PART_FAILED", &message(failure));
            }
            return Ok(results.into_iter().map(Result::ok).collect());
        }
        let why = format!(
            "expected {minimum} of {} to be written, failed: {}",
            parts_of(layout.parts() as usize),
            failures.iter().map(message).collect::<Vec<_>>().join("; ")
        );
        let url = self.url.clone();
        let error = match is_full {
            true => StoreError::Io { url, source: io::Error::new(ErrorKind::StorageFull, why) },
            false => StoreError::Network { url, why },
        };
        Err(Failure { error, retry: retry.unwrap_or(Retry::Never) })
    }

    /// Wait for the parts, and end those that are far later than the others, if these are enough.
    fn leave_out_late_parts(&mut self) {
        let (began, mut limit) = (Instant::now(), None);
        while let Some(running) = self.parts.iter().find(|part| !part.has_ended()) {
            let good = self.parts.iter().filter(|part| part.is_written()).count();
            if limit.is_none() && good >= needed_parts(self.layout) {
                limit = Some(Instant::now() + self.late.max(PATIENCE * began.elapsed()));
            }
            if limit.is_some_and(|limit| limit <= Instant::now()) {
                self.parts.iter().for_each(PartWriter::interrupt);
                return;
            }
            running.wait_a_moment();
        }
    }

    fn record(&self, name: &str, why: &str) {
        event(Level::Usage, name, &Ids::default(), |record| {
            record.text("OBJECT", &self.url).text("WHY", why);
        });
    }

    /// The error that another writer won.
    fn lose(&self, newest: &Generation) -> StoreError {
        self.record("STRIPE_LOST", "another writer won");
        let expected = format!("version {}, as this writer began", self.generation);
        let found = format!("version {newest} of another writer");
        StoreError::Differs { url: self.url.clone(), expected, found }
    }

    fn lost_record(&self) -> StoreError {
        self.record("STRIPE_LOST", "its record was removed");
        let (expected, found) =
            ("the record that was written".into(), "none; write it again".into());
        StoreError::Differs { url: self.url.clone(), expected, found }
    }

    /// Refuse to take the place of a version that was not there when this write began.
    fn check_last(&self, records: &Records) -> Result<(), StoreError> {
        let last = self.last.as_ref().map(|(last, _)| last);
        match records.newest().map(|record| &record.header.generation) {
            newest if newest <= last => Ok(()),
            newest => Err(newest.map_or_else(
                || StoreError::NotFound { url: self.url.clone(), why: String::new() },
                |newest| self.lose(newest),
            )),
        }
    }

    /// Give the object its name, when its parts are there: `None` are those that are not.
    pub(crate) fn conclude(
        &mut self,
        parts: &[Option<Version>],
        replaces: bool,
    ) -> Result<(), Failure> {
        let records = Records::read(&self.servers, &self.path, true);
        if !replaces && records.newest().is_some_and(|record| !record.header.is_removed) {
            return Err(StoreError::Exists { url: self.url.clone() }.into());
        }
        self.check_last(&records)?;
        self.name(parts, &records)?;
        if let Some((last, layout)) = &self.last {
            remove_parts(&self.servers, &self.path, last, *layout);
        }
        Ok(())
    }

    /// Write the record to all servers, and check that this version won. `before`: what they had.
    fn name(&mut self, parts: &[Option<Version>], before: &Records) -> Result<(), StoreError> {
        let entries = self.places.iter().zip(parts).map(|(server, part)| PartEntry {
            server: server.name.clone(),
            version: part.as_ref().map(Version::to_string),
        });
        let header = Header {
            path: self.path.clone(),
            stripe: self.places[0].stripe(),
            generation: self.generation.clone(),
            is_removed: false,
            layout: self.layout,
            code: code_name(self.layout.parity).to_string(),
            crc32: self.crc.clone().finalize(),
            parts: entries.collect(),
        };
        let bytes = header.encode(&self.sums);
        // From here on a reader may see this version: its parts stay.
        self.is_named = true;
        put_or_take_back(&self.servers, &self.url, &header, bytes, before)?;
        let records = Records::read(&self.servers, &self.path, true);
        let Some(newest) = records.newest() else {
            // One that removes a removal of a day ago, and did not see this record.
            let is_gone = records.count_statements() >= majority(self.servers.len());
            return if is_gone { Err(self.lost_record()) } else { Ok(()) };
        };
        if newest.header.generation <= self.generation {
            return Ok(());
        }
        // Where our record took the place of the newer one, that one is put back.
        let mut bytes = vec![0; newest.source.len() as usize];
        newest.source.read_exact_at(0, &mut bytes)?;
        let bytes = Bytes::from(bytes);
        for (server, answer) in self.servers.iter().zip(&records.answers) {
            if let Some(Answer::Record(record)) = answer
                && record.header.generation == self.generation
            {
                server.put(&record_path(&self.path), &bytes)?;
            }
        }
        Err(self.lose(&newest.header.generation))
    }
}

/// Parts without which a write fails: one more than a reader needs, if there is more than one spare.
fn needed_parts(layout: Layout) -> usize {
    layout.data as usize + usize::from(layout.parity > 1)
}

/// Write the record of a header to all servers. If no majority gets it, it is taken back: a reader
/// could take it for the newest version later. `before`: what the servers had.
///
/// # Errors
/// [`StoreError::Network`] if no majority got it; it says which servers may still have it.
pub(crate) fn put_or_take_back(
    servers: &[Arc<Server>],
    url: &str,
    header: &Header,
    record: Vec<u8>,
    before: &Records,
) -> Result<(), StoreError> {
    let results = put_records(servers, &header.path, record);
    let each = servers.iter().zip(&results);
    let failures: Vec<String> =
        each.filter_map(|(server, result)| server.failure(result.as_ref())).collect();
    let (count, minimum) = (servers.len(), majority(servers.len()));
    if count - failures.len() >= minimum {
        return Ok(());
    }
    let error = too_few_servers(url, "its record on", minimum, count, &failures);
    let StoreError::Network { url, why } = error else { return Err(error) };
    let newest = before.newest().map(|record| &record.header);
    let last: Vec<&Record> =
        before.records().filter(|record| Some(&record.header) == newest).collect();
    let left = take_back(servers, &header.path, &header.generation, &last, &results);
    let why = match left.is_empty() {
        true => format!("{why}; {TAKEN_BACK}"),
        false => format!(
            "{why}; this version may count later, as its record may be left on {}",
            left.join("; ")
        ),
    };
    Err(StoreError::Network { url, why })
}

/// Write a record to all servers; a majority is enough. What they say, by their numbers.
fn put_records(
    servers: &[Arc<Server>],
    path: &str,
    record: Vec<u8>,
) -> Vec<Option<Result<(), StoreError>>> {
    let (path, record) = (record_path(path), Bytes::from(record));
    let (count, minimum) = (servers.len(), majority(servers.len()));
    let standing = |results: &[Option<Result<(), StoreError>>]| {
        let outcomes = results.iter().flatten();
        let good = outcomes.clone().filter(|result| result.is_ok()).count();
        Standing::of(good, outcomes.count() - good, minimum, count)
    };
    let put = move |_, server: &Server| server.put(&path, &record);
    ask_enough(&present(servers, minimum), count, RECORD, standing, put)
}

/// Remove the parts of versions that are no longer needed. What cannot be removed now is found by
/// `swathe stripe check`.
pub(crate) fn remove_parts(
    servers: &[Arc<Server>],
    path: &str,
    generation: &Generation,
    layout: Layout,
) {
    let paths: Vec<String> =
        (0..layout.parts()).map(|part| part_path(path, generation, layout.size, part)).collect();
    let servers_of = servers.len() == paths.len();
    tidy(servers, move |number, server| {
        // A part is on the server of its number, if the servers are the same as then.
        let (own, others) = (paths.get(number), paths.iter().enumerate());
        own.into_iter().for_each(|path| drop(server.remove(path)));
        let others = others.filter(|(other, _)| !servers_of && *other != number);
        others.for_each(|(_, path)| drop(server.remove(path)));
    });
}

/// Let servers remove what is not needed; those that failed a moment ago, or hang, are left out.
fn tidy(servers: &[Arc<Server>], work: impl Fn(usize, &Server) + Send + Sync + 'static) {
    let standing = |results: &[Option<()>]| {
        Standing::of(results.iter().flatten().count(), 0, 1, servers.len())
    };
    ask_enough(&present(servers, 1), servers.len(), TIDY, standing, work);
}

impl Sink for StripedSink {
    fn write(&mut self, part: Bytes) -> Result<(), Failure> {
        self.crc.update(&part);
        self.position += part.len() as u64;
        let mut rest = part;
        while !rest.is_empty() {
            if self.row >= self.layout.rows() {
                let (url, expected) = (self.url.clone(), format!("{} bytes", self.layout.size));
                return Err(StoreError::Differs { url, expected, found: "more".into() }.into());
            }
            let row_bytes = self.layout.bytes_in_row(self.row) as usize;
            if self.waiting.is_empty() && rest.len() >= row_bytes {
                let row = rest.split_to(row_bytes);
                self.write_row(row)?;
                continue;
            }
            let next = rest.split_to(rest.len().min(row_bytes - self.waiting.len()));
            self.waiting.extend_from_slice(&next);
            if self.waiting.len() == row_bytes {
                let row = self.waiting.split().freeze();
                self.write_row(row)?;
            }
        }
        Ok(())
    }

    fn finish(
        mut self: Box<Self>,
        _: &PartSums,
        _: u64,
        replaces: bool,
    ) -> Result<Comparison, Failure> {
        if self.position != self.layout.size {
            let (url, start) = (self.url.clone(), 0);
            let (expected, found) = (self.layout.size, self.position);
            return Err(StoreError::ShortRead { url, start, expected, found }.into());
        }
        let parts = self.finish_parts()?;
        self.conclude(&parts, replaces)?;
        Ok(Comparison::ReadBack)
    }
}

impl Drop for StripedSink {
    fn drop(&mut self) {
        self.parts.iter_mut().for_each(PartWriter::end);
        self.parts.clear();
        if !self.is_named {
            let paths: Vec<String> =
                (0..self.places.len()).map(|part| self.part_path(part)).collect();
            // What is left is found by `swathe stripe check`.
            tidy(&self.places, move |number, server| drop(server.remove(&paths[number])));
        }
    }
}
