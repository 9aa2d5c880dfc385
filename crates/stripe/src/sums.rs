//! The checksums of an object's parts: read from its records when they are needed, kept in memory
//! while they are few.

use crate::object_records::Records;
use crate::record_format::Header;
use crate::server::Server;
use crate::server_record::Record;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use swathe_store_api::StoreError;

/// Groups in memory: 64 KiB each.
const MOST_GROUPS: usize = 64;

/// The checksums of an object.
pub(crate) struct Sums {
    /// Those that were read to open the object,
    records: Vec<Record>,
    /// and the same of all servers, if these are damaged.
    all_records: OnceLock<Arc<[Record]>>,
    servers: Vec<Arc<Server>>,
    groups: Mutex<HashMap<u64, Arc<Vec<u32>>>>,
}

impl Sums {
    /// Those of these records, all of one version, on some of these servers.
    pub(crate) fn new(mut records: Vec<Record>, servers: Vec<Arc<Server>>) -> Sums {
        // First the one that was read for its checksums, too.
        records.sort_by_key(|record| Reverse(record.head.len()));
        Sums { records, all_records: OnceLock::new(), servers, groups: Mutex::default() }
    }

    fn all_records(&self, header: &Header) -> Arc<[Record]> {
        if let Some(records) = self.all_records.get() {
            return records.clone();
        }
        let records = Records::read(&self.servers, &header.path, true);
        let is_all = records.silent(&self.servers).is_empty();
        let records = records.records().filter(|record| record.header == *header).cloned();
        let records: Arc<[Record]> = records.collect();
        if is_all {
            // Servers that said nothing may say more when they are asked again.
            self.all_records.get_or_init(|| records.clone());
        }
        records
    }

    /// The blocks of a part's bytes from `start` that are not what was written: where each begins.
    pub(crate) fn wrong_blocks(
        &self,
        header: &Header,
        part: u32,
        start: u64,
        bytes: &[u8],
    ) -> Result<Vec<u64>, StoreError> {
        let mut group: Option<(u64, Arc<Vec<u32>>)> = None;
        let mut wrong = Vec::new();
        let step = header.layout.sum_bytes as usize;
        let numbers = header.sum_number(part, start)..;
        for ((at, block), number) in (start..).step_by(step).zip(bytes.chunks(step)).zip(numbers) {
            let (number, within) = Header::group_of(number);
            if group.as_ref().is_none_or(|(last, _)| *last != number) {
                group = Some((number, self.group(header, number)?));
            }
            let sum = group.as_ref().and_then(|(_, sums)| sums.get(within).copied());
            if sum != Some(crc32fast::hash(block)) {
                wrong.push(at);
            }
        }
        Ok(wrong)
    }

    fn group(&self, header: &Header, number: u64) -> Result<Arc<Vec<u32>>, StoreError> {
        let lock = || self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sums) = lock().get(&number) {
            return Ok(sums.clone());
        }
        let mut last = None;
        // The others are asked only if these are damaged.
        let others = std::iter::once_with(|| self.all_records(header).to_vec()).flatten();
        for record in self.records.iter().cloned().chain(others) {
            match record.group(number) {
                Ok(sums) => {
                    let sums = Arc::new(sums);
                    let mut groups = lock();
                    if groups.len() >= MOST_GROUPS {
                        groups.clear();
                    }
                    groups.insert(number, sums.clone());
                    return Ok(sums);
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| StoreError::NotFound {
            url: header.path.clone(),
            why: ": no record".into(),
        }))
    }
}
