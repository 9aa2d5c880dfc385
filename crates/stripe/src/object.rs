//! A striped object that is open.

use crate::hedge::Hedges;
use crate::layout::{Layout, parts_of};
use crate::names::{bare_name, part_path};
use crate::object_records::Records;
use crate::parity::Parity;
use crate::part::Part;
use crate::record_format::{Header, PartEntry};
use crate::server::Server;
use crate::server_record::Record;
use crate::sums::Sums;
use bytes::Bytes;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use swathe_plan::Costs;
use swathe_store_api::{StoreError, Traffic, Version};

/// What is known of an open object.
pub(crate) struct Object {
    pub(crate) url: String,
    /// What events call it: `NAME:path`, or its URL.
    pub(crate) label: String,
    /// The name of its store.
    pub(crate) stripe: String,
    pub(crate) version: Version,
    pub(crate) header: Header,
    pub(crate) parts: Vec<Part>,
    pub(crate) parity: Parity,
    pub(crate) sums: Sums,
    pub(crate) hedges: Arc<Hedges>,
    servers: Vec<Arc<Server>>,
    records: Vec<Record>,
    pub(crate) costs: Costs,
    pub(crate) is_local: bool,
    /// Its first bytes, once they were read.
    pub(crate) first: OnceLock<Bytes>,
    notes: Mutex<Vec<String>>,
}

impl Object {
    /// An object whose records were read.
    pub(crate) fn of_records(
        servers: &[Arc<Server>],
        url: String,
        header: Header,
        records: Vec<Record>,
        costs: Costs,
        hedges: &Arc<Hedges>,
    ) -> Object {
        let layout = header.layout;
        let parts = header.parts.iter().enumerate().map(|(number, entry)| {
            let number = number as u32;
            let path = part_path(&header.path, &header.generation, layout.size, number);
            Part::new(path, layout.part_bytes(number), entry, servers)
        });
        Object {
            version: Version { size: layout.size, tag: format!("\"{}\"", header.generation) },
            parts: parts.collect(),
            parity: Parity::new(layout.data, layout.parity),
            sums: Sums::new(records.clone(), servers.to_vec()),
            hedges: hedges.clone(),
            is_local: servers.iter().all(|server| server.store().is_local()),
            costs,
            servers: servers.to_vec(),
            first: OnceLock::new(),
            notes: Mutex::new(unwritten_parts(&url, &header, servers).into_iter().collect()),
            label: url.clone(),
            stripe: String::new(),
            url,
            header,
            records,
        }
    }

    /// Its records that are alike.
    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }

    pub(crate) fn layout(&self) -> Layout {
        self.header.layout
    }

    /// The error if too few parts can be read: that it was replaced, if it was.
    pub(crate) fn too_few(&self, damages: &[String]) -> StoreError {
        let answers = Records::read(&self.servers, &self.header.path, true);
        if let Some(newest) = answers.newest()
            && newest.header.generation > self.header.generation
        {
            return StoreError::Changed {
                url: self.url.clone(),
                version: self.version.to_string(),
            };
        }
        let losses: Vec<String> = self.parts.iter().filter_map(Part::loss).collect();
        let (url, layout) = (self.url.clone(), self.layout());
        let (minimum, all) = (layout.data, layout.parts() as usize);
        if losses.is_empty() {
            let expected = format!("bytes as they were written in {minimum} of {}", parts_of(all));
            return StoreError::Differs { url, expected, found: damages.join("; ") };
        }
        let there = parts_of(all - losses.len());
        let addition =
            if damages.is_empty() { "" } else { ", not all of them as they were written" };
        let all_losses: Vec<&str> = losses.iter().chain(damages).map(String::as_str).collect();
        let why = format!(
            "expected bytes of any {minimum} of its {}, found {there}{addition}; lost: {}",
            parts_of(all),
            all_losses.join("; ")
        );
        StoreError::Network { url, why }
    }

    /// Look on the other servers for parts that cannot be read from their own; true if any was found.
    pub(crate) fn find_moved_parts(&self) -> bool {
        let absent = self.parts.iter().filter(|part| !part.is_there());
        // All of them are looked for.
        let found: Vec<&Part> = absent.filter(|part| part.find_elsewhere()).collect();
        found.iter().for_each(|part| self.note_move(part));
        !found.is_empty()
    }

    /// Remember for the user that a part was found on another server, if it was.
    pub(crate) fn note_move(&self, part: &Part) {
        if let Some(message) = part.move_message() {
            self.note(format!("{}: {message}", self.url));
        }
    }

    /// Remember a warning for the user.
    pub(crate) fn note(&self, text: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.contains(&text) {
            notes.push(text);
        }
    }

    /// The warnings since the last call.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Traffic since the last call.
    pub(crate) fn take_traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        self.records.iter().for_each(|record| traffic.add(record.source.take_traffic()));
        self.parts.iter().for_each(|part| traffic.add(part.take_traffic()));
        traffic
    }

    /// Refuse a range that is not in the object.
    pub(crate) fn check(&self, range: &Range<u64>) -> Result<(), StoreError> {
        let size = self.version.size;
        if range.end <= size && range.start <= range.end {
            return Ok(());
        }
        Err(StoreError::ShortRead {
            url: self.url.clone(),
            start: range.start,
            expected: range.end.saturating_sub(range.start),
            found: size.saturating_sub(range.start),
        })
    }
}

/// The warning about parts that could not be written with the others, with the reasons that are known.
fn unwritten_parts(url: &str, header: &Header, servers: &[Arc<Server>]) -> Option<String> {
    let name = |part: &PartEntry| {
        let mut all = servers.iter();
        let server = all.find(|server| server.name == part.server)?;
        let why = server.part_failure(&header.generation)?;
        Some(format!("{} ({why})", bare_name(&part.server)))
    };
    let absent = header.parts.iter().filter(|part| part.version.is_none());
    let servers: Vec<String> =
        absent.map(|part| name(part).unwrap_or_else(|| bare_name(&part.server).into())).collect();
    (!servers.is_empty()).then(|| {
        let servers = servers.join(", ");
        format!("{url}: written without its part on {servers}; see: swathe stripe repair")
    })
}
