//! Looking after striped objects: whether all of each is there, and rebuilding what is not.

use crate::layout::{Layout, SUM_BYTES};
use crate::listing::SeenObjects;
use crate::names::{FileKind, kind_of, part_path, record_path};
use crate::object::Object;
use crate::part_writer::PartWriter;
use crate::record::Generation;
use crate::records::{Answer, Records};
use crate::server::{Server, ServerItem, ask_all};
use crate::shards::ShardRanges;
use crate::striped_read::Window;
use crate::striped_store::{StripedStore, forget_removed};
use bytes::Bytes;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use swathe_store_api::{Store, StoreError};

/// Bytes of a part that are read at a time.
const READ_BYTES: u64 = 4 << 20;
/// Shard bytes that are rebuilt at a time.
const REBUILD_BYTES: u64 = 16 << 20;
/// Damaged blocks that a report names.
const MOST_BLOCKS: usize = 100;
/// Parts without a record that are younger than this may be of a write that goes on.
const UNFINISHED: Duration = Duration::from_secs(24 * 3600);

/// The state of a part or of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PieceState {
    /// All of it is there.
    Whole,
    /// It is not there.
    Missing,
    /// It is not what was written.
    Damaged,
    /// It is of an older version.
    Outdated,
    /// Its server cannot be asked.
    Unreachable,
}

/// What was found of a part, or of a record.
#[derive(Clone, Debug, Serialize)]
pub struct PieceReport {
    /// The server, as `NAME:folder/`.
    pub server: String,
    /// Its state.
    pub state: PieceState,
    /// Why, if it is not whole.
    pub why: Option<String>,
    /// Numbers of the blocks of 4,096 bytes that differ, up to 100.
    pub damaged_blocks: Vec<u64>,
}

/// What was found of an object.
#[derive(Clone, Debug, Serialize)]
pub struct ObjectReport {
    /// Its path in the store.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Number of its version.
    pub generation: u64,
    /// Writer of its version.
    pub writer: String,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Parts that are needed.
    pub data: u32,
    /// Parts beyond these.
    pub parity: u32,
    /// Its parts, in their order.
    pub parts: Vec<PieceReport>,
    /// Its records, by server.
    pub records: Vec<PieceReport>,
    /// Whether all of it can be read.
    pub is_readable: bool,
}

/// What could not be rebuilt.
#[derive(Clone, Debug, Serialize)]
pub struct RepairFailure {
    /// The server.
    pub server: String,
    /// Why not.
    pub why: String,
}

/// What was rebuilt of an object.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RepairReport {
    /// Servers that a part was written to.
    pub rebuilt_parts: Vec<String>,
    /// Servers that a record was written to.
    pub rebuilt_records: Vec<String>,
    /// Bytes read for that.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// What could not be rebuilt.
    pub failed: Vec<RepairFailure>,
}

/// A server of a striped store.
#[derive(Clone, Debug, Serialize)]
pub struct ServerReport {
    /// Its name, `NAME:folder/`.
    pub server: String,
    /// Its URL.
    pub url: String,
    /// Whether it could be listed.
    pub is_reachable: bool,
    /// Why not.
    pub why: Option<String>,
    /// Parts on it.
    pub parts: u64,
    /// Records on it.
    pub records: u64,
    /// Bytes of both.
    pub bytes: u64,
}

/// Reads around parts that were late, in this process.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HedgeReport {
    /// How often others were asked.
    pub issued: u64,
    /// How often they were quicker.
    pub won: u64,
    /// Bytes asked for in addition.
    pub extra_bytes: u64,
    /// Bytes asked for because they were needed.
    pub read_bytes: u64,
}

/// A part that no record names.
#[derive(Clone, Debug, Serialize)]
pub struct Leftover {
    /// The server.
    pub server: String,
    /// The file on it.
    pub path: String,
    /// Bytes.
    pub bytes: Option<u64>,
    /// Whether it is of a version that was replaced, rather than of a write that did not end.
    pub is_replaced: bool,
    /// Whether it was removed now.
    pub is_removed: bool,
}

/// A striped store, to look after.
pub struct Upkeep(pub(crate) StripedStore);

impl Upkeep {
    /// Of the store with these settings.
    pub fn new(settings: swathe_store_api::StoreSettings) -> Upkeep {
        Upkeep(StripedStore::new(settings, swathe_store::connect))
    }

    fn servers(&self) -> &[Arc<Server>] {
        &self.0.servers
    }

    /// The path of an object, by its URL in the store.
    fn records(&self, url: &str) -> Result<(String, Records), StoreError> {
        let path = self.0.path_of(url)?.to_string();
        let records = Records::read(self.servers(), &path, true);
        records.current(self.servers(), url)?;
        Ok((path, records))
    }

    /// Look at all parts and records of an object; with `deep`, read all of its bytes.
    ///
    /// # Errors
    /// As opening it has it.
    pub fn check(&self, url: &str, deep: bool) -> Result<ObjectReport, StoreError> {
        let (path, records) = self.records(url)?;
        let object = Arc::new(self.0.open_object(url)?);
        let layout = object.layout();
        let (generation, size) = (object.header.generation.clone(), layout.size);
        let numbers: Vec<u32> = (0..layout.parts()).collect();
        let mut parts = Vec::new();
        let mut lost: BTreeMap<u64, u32> = BTreeMap::new();
        for number in numbers {
            let (report, blocks) = check_part(&object, number, deep)?;
            match report.state {
                PieceState::Whole => {}
                PieceState::Damaged if !blocks.is_empty() => {
                    let rows: HashSet<u64> =
                        blocks.iter().map(|at| at * SUM_BYTES / layout.block_bytes).collect();
                    rows.into_iter().for_each(|row| *lost.entry(row).or_default() += 1);
                }
                _ => (0..layout.rows()).for_each(|row| *lost.entry(row).or_default() += 1),
            }
            parts.push(report);
        }
        Ok(ObjectReport {
            path,
            size,
            generation: generation.number,
            writer: generation.writer.clone(),
            block_bytes: layout.block_bytes,
            data: layout.data,
            parity: layout.parity,
            parts,
            records: record_reports(self.servers(), &records, &object),
            is_readable: lost.values().all(|&count| count <= layout.parity),
        })
    }

    /// Rebuild parts and records of an object that are not whole. A part is written beside the others,
    /// and takes its name when it is whole.
    ///
    /// # Errors
    /// As opening it has it; [`StoreError::Network`] if too little of it is left.
    pub fn repair(&self, url: &str) -> Result<RepairReport, StoreError> {
        let (path, records) = self.records(url)?;
        let object = Arc::new(self.0.open_object(url)?);
        let layout = object.layout();
        let mut report = RepairReport::default();
        let mut bad = Vec::new();
        for number in 0..layout.parts() {
            let (part, _) = check_part(&object, number, true)?;
            report.bytes_read += layout.part_bytes(number);
            if part.state != PieceState::Whole {
                bad.push(number);
            }
        }
        for &number in &bad {
            let Some(server) = self.place_of(&object, number) else {
                let (server, why) = (
                    object.header.parts[number as usize].server.clone(),
                    "no server is free for its part".to_string(),
                );
                report.failed.push(RepairFailure { server, why });
                continue;
            };
            match rebuild(&object, number, &bad, &server) {
                Ok((read, written)) => {
                    report.bytes_read += read;
                    report.bytes_written += written;
                    report.rebuilt_parts.push(server.name.clone());
                }
                Err(error) => {
                    let (server, why) = (server.name.clone(), error.to_string());
                    report.failed.push(RepairFailure { server, why });
                }
            }
        }
        self.repair_records(&path, &records, &object, &mut report)?;
        Ok(report)
    }

    /// The server that a part is to be on: its own, or one that has no other part.
    fn place_of(&self, object: &Object, number: u32) -> Option<Arc<Server>> {
        let by_name = |name: &str| self.servers().iter().find(|server| server.name == name);
        let entries = &object.header.parts;
        if let Some(server) = by_name(&entries[number as usize].server) {
            return Some(server.clone());
        }
        let is_free = |server: &&Arc<Server>| {
            !entries.iter().any(|entry| entry.server == server.name) && {
                let paths = (0..entries.len() as u32).filter(|&other| other != number);
                let path = |other| {
                    part_path(
                        &object.header.path,
                        &object.header.generation,
                        object.layout().size,
                        other,
                    )
                };
                !paths.map(path).any(|path| server.open(&path).is_ok())
            }
        };
        self.servers().iter().find(is_free).cloned()
    }

    /// Write the record to servers that have none, an older or a damaged one; never over a newer one.
    fn repair_records(
        &self,
        path: &str,
        records: &Records,
        object: &Object,
        report: &mut RepairReport,
    ) -> Result<(), StoreError> {
        let Some(record) = records.records().find(|record| record.header == object.header) else {
            return Ok(());
        };
        let mut bytes = vec![0; record.source.len() as usize];
        record.source.read_exact_at(0, &mut bytes)?;
        let reports = record_reports(self.servers(), records, object);
        for (server, state) in self.servers().iter().zip(reports) {
            let is_bad = !matches!(state.state, PieceState::Whole | PieceState::Unreachable);
            if !is_bad {
                continue;
            }
            let now = crate::records::read_record(server, path);
            if let Answer::Record(now) = now
                && now.header.generation > object.header.generation
            {
                let (url, version) = (object.url.clone(), object.version.to_string());
                return Err(StoreError::Changed { url, version });
            }
            match server.put(&record_path(path), &bytes) {
                Ok(()) => {
                    report.rebuilt_records.push(server.name.clone());
                    report.bytes_written += bytes.len() as u64;
                }
                Err(error) => {
                    let (server, why) = (server.name.clone(), error.to_string());
                    report.failed.push(RepairFailure { server, why });
                }
            }
        }
        Ok(())
    }

    /// Reads around late parts of this store, since this process began.
    pub fn hedges(&self) -> HedgeReport {
        let [issued, won, extra_bytes, read_bytes] = self.0.hedges.counts();
        HedgeReport { issued, won, extra_bytes, read_bytes }
    }

    /// The servers of the store, and what is on them.
    pub fn server_reports(&self) -> Vec<ServerReport> {
        let reports = ask_all(self.servers(), |_, server| {
            let (mut parts, mut records, mut bytes) = (0, 0, 0);
            let result = server.list("", &mut |item| {
                if let ServerItem::File(entry) = item {
                    match kind_of(&entry.path) {
                        FileKind::Part { .. } => parts += 1,
                        FileKind::Record { .. } => records += 1,
                        FileKind::Other => return Ok(()),
                    }
                    bytes += entry.size.unwrap_or(0);
                }
                Ok(())
            });
            ServerReport {
                server: server.name.clone(),
                url: server.url(),
                is_reachable: result.is_ok(),
                why: result.err().map(|error| error.to_string()),
                parts,
                records,
                bytes,
            }
        });
        reports
    }

    /// Parts that no record names: of versions that were replaced or removed, and of writes that did
    /// not end. With `remove`, those are removed that no write can be using.
    ///
    /// # Errors
    /// As listing has it.
    pub fn leftovers(&self, remove: bool) -> Result<Vec<Leftover>, StoreError> {
        let url = self.0.settings().root.clone();
        let seen = SeenObjects::list(self.servers(), "", &url)?;
        let mut current: BTreeMap<String, (Generation, bool)> = BTreeMap::new();
        for (path, seen) in &seen.objects {
            let count = self.servers().len();
            let is_plain = seen.parts.values().eq([&count]) && seen.records == count;
            if is_plain {
                continue;
            }
            let records = Records::read(self.servers(), path, true);
            if let Some(newest) = records.newest() {
                let header = &newest.header;
                current.insert(path.clone(), (header.generation.clone(), header.is_removed));
                if remove && header.is_removed {
                    forget_removed(self.servers(), path);
                }
            } else if records.unheard(self.servers()).is_empty() {
                let none = Generation { number: 0, writer: String::new() };
                current.insert(path.clone(), (none, false));
            }
        }
        let current = Arc::new(current);
        let lists = ask_all(self.servers(), move |_, server| {
            let mut leftovers = Vec::new();
            let result = server.list("", &mut |item| {
                if let ServerItem::File(entry) = item
                    && let FileKind::Part { path, generation, .. } = kind_of(&entry.path)
                    && let Some((newest, is_gone)) = current.get(&path)
                    && (generation != *newest || *is_gone)
                {
                    let is_replaced = generation < *newest || *is_gone;
                    let age = age_of(entry.modified.as_deref());
                    let is_old = age.is_some_and(|age| age > UNFINISHED);
                    let is_removed =
                        remove && (is_replaced || is_old) && server.remove(&entry.path).is_ok();
                    leftovers.push(Leftover {
                        server: server.name.clone(),
                        path: entry.path,
                        bytes: entry.size,
                        is_replaced,
                        is_removed,
                    });
                }
                Ok(())
            });
            result.map(|()| leftovers)
        });
        Ok(lists.into_iter().flatten().flatten().collect())
    }
}

/// The age of a file, if its listing gives its time as files of this machine have it.
fn age_of(modified: Option<&str>) -> Option<Duration> {
    let nanoseconds: u64 = modified?.parse().ok()?;
    let at = UNIX_EPOCH + Duration::from_nanos(nanoseconds);
    SystemTime::now().duration_since(at).ok()
}

fn state_of(error: &StoreError) -> PieceState {
    match error {
        StoreError::NotFound { .. } => PieceState::Missing,
        StoreError::Differs { .. } | StoreError::ShortRead { .. } => PieceState::Damaged,
        _ => PieceState::Unreachable,
    }
}

/// Look at a part; with `deep`, read it. Also the numbers of all damaged blocks.
fn check_part(
    object: &Arc<Object>,
    number: u32,
    deep: bool,
) -> Result<(PieceReport, Vec<u64>), StoreError> {
    let part = &object.parts[number as usize];
    let report = |state, why| PieceReport {
        server: part.server_names(),
        state,
        why,
        damaged_blocks: Vec::new(),
    };
    let source = match part.open_anew() {
        Ok(source) => source,
        Err(error) => {
            part.lose(&error);
            return Ok((report(state_of(&error), Some(error.to_string())), Vec::new()));
        }
    };
    let mut blocks = Vec::new();
    if deep {
        let size = object.layout().part_bytes(number);
        let ranges: Vec<_> = (0..size.div_ceil(READ_BYTES))
            .map(|at| at * READ_BYTES..((at + 1) * READ_BYTES).min(size))
            .collect();
        for (range, bytes) in ranges.clone().into_iter().zip(source.fetch(ranges, 2)) {
            let bytes = match bytes {
                Ok(bytes) => bytes,
                Err(error @ StoreError::Interrupted { .. }) => return Err(error),
                Err(error) => {
                    return Ok((report(state_of(&error), Some(error.to_string())), Vec::new()));
                }
            };
            for (at, block) in
                (range.start..).step_by(SUM_BYTES as usize).zip(bytes.chunks(SUM_BYTES as usize))
            {
                if object.sums.first_wrong(&object.header, number, at, block)?.is_some() {
                    blocks.push(at / SUM_BYTES);
                }
            }
        }
    }
    if blocks.is_empty() {
        return Ok((report(PieceState::Whole, None), blocks));
    }
    let why = format!("{} blocks of {SUM_BYTES} bytes are not what was written", blocks.len());
    let damaged_blocks = blocks.iter().take(MOST_BLOCKS).copied().collect();
    let report = PieceReport { damaged_blocks, ..report(PieceState::Damaged, Some(why)) };
    Ok((report, blocks))
}

fn record_reports(servers: &[Arc<Server>], records: &Records, object: &Object) -> Vec<PieceReport> {
    let each = servers.iter().zip(&records.answers);
    each.map(|(server, answer)| {
        let (state, why) = match answer {
            Some(Answer::Record(record)) if record.header == object.header => {
                (PieceState::Whole, None)
            }
            Some(Answer::Record(record)) => {
                let why = format!("it is of version {}", record.header.generation);
                (PieceState::Outdated, Some(why))
            }
            Some(Answer::Absent) => (PieceState::Missing, None),
            Some(Answer::Damaged(why)) => (PieceState::Damaged, Some(why.clone())),
            Some(Answer::Failed(error)) => (PieceState::Unreachable, Some(error.to_string())),
            None => (PieceState::Unreachable, None),
        };
        PieceReport { server: server.name.clone(), state, why, damaged_blocks: Vec::new() }
    })
    .collect()
}

/// Write a part anew from what others have: bytes read and written.
fn rebuild(
    object: &Arc<Object>,
    number: u32,
    bad: &[u32],
    server: &Arc<Server>,
) -> Result<(u64, u64), StoreError> {
    let layout: Layout = object.layout();
    let path = part_path(&object.header.path, &object.header.generation, layout.size, number);
    let size = layout.part_bytes(number);
    let mut writer = PartWriter::start(server.clone(), path, size)?;
    let rows_at_once = (REBUILD_BYTES / layout.block_bytes).max(1);
    let (mut row, mut read) = (0, 0);
    while row < layout.rows() {
        let rows = row..(row + rows_at_once).min(layout.rows());
        let mut wanted = ShardRanges::default();
        let shard_of = |row| (row, layout.shard_in(row, number));
        for row in rows.clone() {
            let id = shard_of(row);
            wanted.add(id, 0..layout.shard_bytes(row, id.1));
        }
        read += wanted.bytes() * u64::from(layout.data);
        let shards = Window::without(object.clone(), wanted, bad, number).shards()?;
        for row in rows.clone() {
            let id = shard_of(row);
            let length = layout.shard_bytes(row, id.1);
            let bytes: Bytes = match length {
                0 => continue,
                _ => shards.get(id, &(0..length)).ok_or_else(|| object.too_few(&[]))?,
            };
            if !writer.write(bytes) {
                return Err(writer
                    .finish()
                    .err()
                    .map_or_else(|| object.too_few(&[]), |failure| failure.error));
            }
        }
        row = rows.end;
    }
    writer.finish().map_err(|failure| failure.error)?;
    Ok((read, size))
}
