//! The record of an object on one server, and what a server says when it is asked for it.

use crate::names::record_path;
use crate::record_format::{Generation, HEADER_BYTES, Header, RecordError, decode_group};
use crate::server::Server;
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use swathe_store_api::{Source, StoreError};

/// Bytes of most headers, without the parts,
const MOST_HEADER_BYTES: u64 = 1024;
/// and for each part.
const ENTRY_BYTES: u64 = 160;
/// Groups of checksums that are read at once, if all are.
const GROUPS_AT_ONCE: u64 = 16;
/// What is wrong with a record of 0 bytes.
pub(crate) const EMPTY: &str = "the record: expected its header, found 0 bytes";

/// A record on a server.
#[derive(Clone)]
pub(crate) struct Record {
    pub(crate) header: Header,
    /// Where its checksums begin.
    pub(crate) start: u64,
    /// Its first bytes.
    pub(crate) head: Bytes,
    pub(crate) source: Arc<dyn Source>,
}

impl Record {
    /// Some bytes after the header.
    fn read(&self, range: &Range<u64>) -> Result<Bytes, StoreError> {
        let range = self.start + range.start..self.start + range.end;
        if range.end <= self.head.len() as u64 {
            return Ok(self.head.slice(range.start as usize..range.end as usize));
        }
        let mut bytes = vec![0; (range.end - range.start) as usize];
        self.source.read_exact_at(range.start, &mut bytes)?;
        Ok(bytes.into())
    }

    fn differs(&self, error: RecordError) -> StoreError {
        let url = self.source.url().to_string();
        StoreError::Differs { url, expected: error.expected, found: error.found }
    }

    /// The checksums of a group.
    ///
    /// # Errors
    /// [`StoreError::Differs`] if they are not what was written.
    pub(crate) fn group(&self, number: u64) -> Result<Vec<u32>, StoreError> {
        let bytes = self.read(&self.header.group_range(number))?;
        decode_group(&bytes).map_err(|error| self.differs(error))
    }

    /// The numbers of the groups that are read together.
    fn batches(&self) -> impl Iterator<Item = Range<u64>> {
        let count = self.header.groups();
        (0..count)
            .step_by(GROUPS_AT_ONCE as usize)
            .map(move |first| first..(first + GROUPS_AT_ONCE).min(count))
    }

    /// The bytes of some groups, after the header.
    fn window_range(&self, numbers: &Range<u64>) -> Range<u64> {
        self.header.group_range(numbers.start).start..self.header.group_range(numbers.end - 1).end
    }

    /// Read all checksums.
    ///
    /// # Errors
    /// [`StoreError::Differs`] if some are not what was written.
    pub(crate) fn check_groups(&self) -> Result<(), StoreError> {
        for numbers in self.batches() {
            let range = self.window_range(&numbers);
            let bytes = self.read(&range)?;
            for number in numbers {
                let group = within(&bytes, &range, &self.header.group_range(number));
                decode_group(group).map_err(|error| self.differs(error))?;
            }
        }
        Ok(())
    }
}

/// The bytes of a range that lies in another one.
fn within<'a>(bytes: &'a Bytes, range: &Range<u64>, part: &Range<u64>) -> &'a [u8] {
    &bytes[(part.start - range.start) as usize..(part.end - range.start) as usize]
}

/// The bytes of a record, each group of checksums from the first of the records that has it as it
/// was written. All records are of one version.
///
/// # Errors
/// [`StoreError::Differs`] if no record has some group.
pub(crate) fn sound_bytes(records: &[&Record]) -> Result<Vec<u8>, StoreError> {
    let no_record = || StoreError::NotFound { url: String::new(), why: ": no record".into() };
    let first = records.first().ok_or_else(no_record)?;
    let mut all = first.head[..first.start as usize].to_vec();
    for numbers in first.batches() {
        let range = first.window_range(&numbers);
        // A server may have another version by now: then the next one is asked.
        let mut read = first.read(&range);
        for record in &records[1..] {
            read = read.or_else(|_| record.read(&range));
        }
        let bytes = read?;
        for number in numbers {
            let group = first.header.group_range(number);
            let own = within(&bytes, &range, &group);
            let Err(damage) = decode_group(own) else {
                all.extend_from_slice(own);
                continue;
            };
            let mut others = records.iter().filter_map(|record| record.read(&group).ok());
            let sound = others.find(|bytes| decode_group(bytes).is_ok());
            all.extend_from_slice(&sound.ok_or_else(|| first.differs(damage))?);
        }
    }
    Ok(all)
}

/// What a server says of an object.
pub(crate) enum Answer {
    /// It has a record.
    Record(Box<Record>),
    /// It has none.
    Absent,
    /// It has one of 0 bytes, as a crash leaves it: it says as little as none.
    Empty,
    /// It has one that cannot be read.
    Damaged(String),
    /// It has a record of another stripe: the version of that record, and how it differs.
    Foreign(Generation, String),
    /// It could not say.
    Failed(StoreError),
}

impl Answer {
    pub(crate) fn says_what_it_has(&self) -> bool {
        matches!(self, Answer::Record(_) | Answer::Absent | Answer::Empty)
    }

    pub(crate) fn is_damaged(&self) -> bool {
        matches!(self, Answer::Damaged(_))
    }

    /// Whether the server says that it has none of this version, and none that is newer.
    pub(crate) fn lacks(&self, generation: &Generation) -> bool {
        match self {
            Answer::Record(record) => record.header.generation < *generation,
            Answer::Absent | Answer::Empty => true,
            Answer::Damaged(_) | Answer::Foreign(..) | Answer::Failed(_) => false,
        }
    }

    /// Whether it is a record of another stripe, of a version.
    pub(crate) fn is_foreign(&self, generation: &Generation) -> bool {
        matches!(self, Answer::Foreign(found, _) if found == generation)
    }
}

/// The records among the answers of servers.
pub(crate) fn records_of(answers: &[Option<Answer>]) -> impl Iterator<Item = &Record> {
    answers.iter().flatten().filter_map(|answer| match answer {
        Answer::Record(record) => Some(&**record),
        _ => None,
    })
}

/// Bytes with which the headers of most records end, of objects over this many servers.
pub(crate) fn header_bytes(servers: usize) -> u64 {
    MOST_HEADER_BYTES + ENTRY_BYTES * servers as u64
}

/// What a server says that did not give a record. One that verifies its files refuses a damaged record,
/// also one of 0 bytes: a listing says which of these it is.
fn without_record(server: &Server, path: &str, error: StoreError) -> Answer {
    if !matches!(error, StoreError::Damaged { .. }) {
        return Answer::Failed(error);
    }
    match server.listed_size(&record_path(path)) {
        Ok(Some(0)) => Answer::Empty,
        Ok(_) => Answer::Damaged(error.to_string()),
        Err(error) => Answer::Failed(error),
    }
}

/// Read the record of a path on a server: its first `first_bytes` bytes, and more if its header is
/// longer.
pub(crate) fn read_record(server: &Server, path: &str, first_bytes: u64) -> Answer {
    if let Err(error) = server.check_stripe() {
        return Answer::Failed(error);
    }
    let source = match server.open_for(&record_path(path), first_bytes) {
        Ok(source) => source,
        Err(StoreError::NotFound { .. }) => {
            return server.check_presence().map_or_else(Answer::Failed, |()| Answer::Absent);
        }
        Err(error) => return without_record(server, path, error),
    };
    if source.len() == 0 {
        return Answer::Empty;
    }
    let mut head = source.first();
    let mut minimum = if head.is_empty() { first_bytes } else { 0 };
    loop {
        let length = minimum.min(source.len());
        if (head.len() as u64) < length {
            let mut bytes = vec![0; length as usize];
            match source.read_exact_at(0, &mut bytes) {
                Ok(()) => head = bytes.into(),
                Err(error) => return without_record(server, path, error),
            }
        }
        match Header::decode(&head) {
            Ok(Ok((header, start))) => {
                let length = start + header.sums_bytes();
                if source.len() != length {
                    let found = source.len();
                    return Answer::Damaged(format!(
                        "the record: expected {length} bytes, found {found}"
                    ));
                }
                if header.path != path {
                    let found = header.path;
                    return Answer::Damaged(format!(
                        "the record: expected that of {path}, found that of {found}"
                    ));
                }
                return Answer::Record(Box::new(Record { header, start, head, source }));
            }
            Ok(Err(more)) if (head.len() as u64) < source.len() && more <= 2 * HEADER_BYTES => {
                minimum = (more as u64).max(head.len() as u64 + 1);
            }
            Ok(Err(more)) => {
                let found = source.len();
                return Answer::Damaged(format!(
                    "the record: expected at least {more} bytes, found {found}"
                ));
            }
            Err(error) => return Answer::Damaged(error.to_string()),
        }
    }
}
