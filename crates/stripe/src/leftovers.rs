//! Parts that no object needs any more, and records of removals.

use crate::listing::{ListedObjects, ServerFiles};
use crate::names::{FileKind, kind_of, record_path};
use crate::object_records::Records;
use crate::question::ask_all;
use crate::record_format::Generation;
use crate::reports::Leftover;
use crate::server::{Server, ServerItem};
use crate::server_record::{Answer, header_bytes, read_record};
use crate::upkeep::Upkeep;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use swathe_store_api::{Entry, Store, StoreError};

/// Parts without a record that are younger than this may be of a write that goes on.
const WRITE_LIMIT: Duration = Duration::from_secs(24 * 3600);

impl Upkeep {
    /// Parts that no record names: of versions that were replaced or removed, and of writes that did
    /// not end. With `remove`, those older than a day are removed, where all servers say what they
    /// have: no write can be using them.
    ///
    /// # Errors
    /// As listing has it.
    pub fn leftovers(&self, remove: bool) -> Result<Vec<Leftover>, StoreError> {
        let servers = self.servers();
        let url = self.0.settings().root.clone();
        let listing = ListedObjects::list(servers, "", &url)?;
        let count = servers.len();
        let is_odd =
            |files: &ServerFiles| !files.parts.values().eq([&count]) || files.records != count;
        let odd: BTreeSet<String> = listing
            .objects
            .iter()
            .filter(|(_, files)| is_odd(files))
            .map(|(path, _)| path.clone())
            .collect();
        let paths = Arc::new(odd);
        let own = paths.clone();
        let lists = ask_all(servers, move |_, server| {
            let mut files = Vec::new();
            let result = server.list("", &mut |item| {
                if let ServerItem::File(entry) = item
                    && let FileKind::Part { path, generation, .. } = kind_of(&entry.path)
                    && own.contains(&path)
                {
                    files.push((path, generation, entry));
                }
                Ok(())
            });
            result.map(|()| files)
        });
        let mut parts: BTreeMap<String, Vec<OddPart>> = BTreeMap::new();
        for (server, list) in servers.iter().zip(lists) {
            for (path, generation, entry) in list.unwrap_or_default() {
                let part = OddPart { server: server.clone(), generation, entry };
                parts.entry(path).or_default().push(part);
            }
        }
        let mut leftovers = Vec::new();
        for path in paths.iter() {
            let parts = parts.remove(path).unwrap_or_default();
            leftovers.extend(self.leftovers_of(path, parts, remove));
        }
        Ok(leftovers)
    }

    /// Those of one object.
    fn leftovers_of(&self, path: &str, parts: Vec<OddPart>, remove: bool) -> Vec<Leftover> {
        let servers = self.servers();
        let records = Records::read(servers, path, true);
        let newest = records.newest().map(|record| record.header.clone());
        let is_sure = match &newest {
            Some(header) if header.is_removed => records.is_removal_certain(servers),
            Some(_) => records.certain(servers).is_some(),
            // Without any record, a part on each server is rather an object that lost its records.
            None => {
                let are_records_lost = records.has_empty() || parts.len() >= servers.len();
                records.silent(servers).is_empty() && !are_records_lost
            }
        };
        let mut leftovers = Vec::new();
        let mut rest = 0;
        for OddPart { server, generation, entry } in parts {
            let current = newest.as_ref().map(|header| &header.generation);
            let is_gone = newest.as_ref().is_some_and(|header| header.is_removed);
            if Some(&generation) == current && !is_gone {
                continue;
            }
            let is_old = generation.age() > WRITE_LIMIT;
            let is_removed = remove && is_sure && is_old && server.remove(&entry.path).is_ok();
            rest += usize::from(!is_removed);
            leftovers.push(Leftover {
                server: server.name.clone(),
                path: entry.path,
                bytes: entry.size,
                is_replaced: Some(&generation) < current,
                is_removed,
            });
        }
        if remove && is_sure && newest.is_some_and(|header| header.is_removed) {
            self.spread_removal(path, &records, rest == 0);
        }
        leftovers
    }

    /// Let all servers have the record that an object was removed. Once all have it and it is older
    /// than a day, none needs it, if no part is left.
    fn spread_removal(&self, path: &str, records: &Records, is_clean: bool) {
        let servers = self.servers();
        let Some(header) = records.newest().map(|record| record.header.clone()) else { return };
        let is_everywhere =
            records.records().filter(|record| record.header == header).count() == servers.len();
        if is_everywhere && (!is_clean || header.generation.age() < WRITE_LIMIT) {
            return;
        }
        let (name, bytes) = (path.to_string(), Bytes::from(header.encode(&[])));
        let first_bytes = header_bytes(servers.len());
        ask_all(servers, move |_, server| {
            // It is read again: a new object may have taken its place.
            let now = read_record(server, &name, first_bytes);
            let is_same = matches!(&now, Answer::Record(record) if record.header == header);
            let is_older = match &now {
                Answer::Record(record) => record.header.generation < header.generation,
                Answer::Absent | Answer::Empty | Answer::Damaged(_) => true,
                _ => false,
            };
            let path = record_path(&name);
            // What fails is done the next time.
            match (is_everywhere, is_same, is_older) {
                (true, true, _) => drop(server.remove(&path)),
                (false, _, true) => drop(server.put(&path, &bytes)),
                _ => {}
            }
        });
    }
}

/// A part of an object whose files differ from server to server.
struct OddPart {
    server: Arc<Server>,
    generation: Generation,
    entry: Entry,
}
