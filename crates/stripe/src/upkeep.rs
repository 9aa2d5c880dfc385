//! Looking after striped objects: whether all of each is there, and rebuilding what is not.

use crate::marks::{WORK_MEMORY, compare_marks};
use crate::minority::too_few_parts;
use crate::names::record_path;
use crate::object::Object;
use crate::object_records::Records;
use crate::part_fetch::DAMAGE_BYTES;
use crate::read_events::in_stripe;
use crate::rebuild::rebuild;
use crate::repair_progress::{PartProgress, RepairProgress};
use crate::reports::{
    HedgeReport, ObjectReport, PieceReport, PieceState, RepairFailure, RepairReport,
};
use crate::server::Server;
use crate::server_record::{Answer, EMPTY, Record, header_bytes, read_record, sound_bytes};
use crate::striped_store::StripedStore;

use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use swathe_store_api::{Interrupt, Source, Store, StoreError};
use swathe_trace::Scope;

/// Bytes of a part that are read at a time.
const READ_BYTES: u64 = 4 << 20;
/// Reads of a part that are planned at a time.
const READS: u64 = 64;
/// A part with more damages that its server tells of is not read further.
const MOST_DAMAGE_ANSWERS: u32 = 10_000;
/// Servers whose record is read at the same time: each has some MiB of it in memory.
const RECORDS_AT_ONCE: usize = 16;
/// Damaged ranges that a report names.
const MOST_DAMAGE_STARTS: usize = 100;

/// A striped store, to look after.
pub struct Upkeep(pub(crate) StripedStore);

impl Upkeep {
    /// Of the store with these settings.
    pub fn new(settings: swathe_store_api::StoreSettings) -> Upkeep {
        Upkeep(StripedStore::new(settings, swathe_store::connect))
    }

    pub(crate) fn servers(&self) -> &[Arc<Server>] {
        &self.0.servers
    }

    /// An object and its records on all servers, by its URL in the store.
    fn open(&self, url: &str) -> Result<(Arc<Object>, Records), StoreError> {
        compare_marks(self.servers(), WORK_MEMORY);
        let records = Records::read(self.servers(), self.0.path_of(url)?, true);
        let object = self.0.object_of(url, &records)?;
        Ok((Arc::new(object), records))
    }

    /// Look at all parts and records of an object; with `deep`, read all of its bytes.
    ///
    /// # Errors
    /// As opening it has it.
    pub fn check(&self, url: &str, deep: bool) -> Result<ObjectReport, StoreError> {
        let (object, records) = self.open(url)?;
        let layout = object.layout();
        let (generation, size) = (object.header.generation.clone(), layout.size);
        let (mut parts, mut lost_parts, mut losses) = (Vec::new(), 0, BTreeMap::new());
        for (report, damages) in check_parts(&object, (deep, false), &RepairProgress::default())? {
            match report.state {
                PieceState::Whole => {}
                PieceState::Damaged if !damages.is_empty() => {
                    damages.into_iter().for_each(|at| *losses.entry(at).or_insert(0) += 1);
                }
                _ => lost_parts += 1,
            }
            parts.push(report);
        }
        let most_losses = lost_parts + losses.into_values().max().unwrap_or(0);
        Ok(ObjectReport {
            path: object.header.path.clone(),
            size,
            generation: generation.number,
            writer: generation.writer.clone(),
            block_bytes: layout.block_bytes,
            data: layout.data,
            parity: layout.parity,
            parts,
            records: record_reports(self.servers(), &records, &object, deep),
            is_readable: most_losses <= layout.parity,
        })
    }

    /// Rebuild parts and records of an object that are not whole; with `deep`, all of its bytes are
    /// read first, else damaged ones are only found where others are rebuilt from them. A part takes
    /// its name when it is whole. `progress` counts the bytes meanwhile.
    ///
    /// # Errors
    /// As opening it has it; [`StoreError::Network`] if too little of it is left.
    pub fn repair(
        &self,
        url: &str,
        deep: bool,
        progress: &RepairProgress,
    ) -> Result<RepairReport, StoreError> {
        in_stripe(&self.0.settings().name, || self.repair_object(url, deep, progress))
    }

    fn repair_object(
        &self,
        url: &str,
        deep: bool,
        progress: &RepairProgress,
    ) -> Result<RepairReport, StoreError> {
        self.0.mark_servers(url)?;
        let (object, records) = self.open(url)?;
        let layout = object.layout();
        let mut report = RepairReport::default();
        let (mut bad, mut unreachable) = (Vec::new(), 0);
        for (number, (part, _)) in (0..).zip(check_parts(&object, (deep, true), progress)?) {
            if deep && matches!(part.state, PieceState::Whole | PieceState::Damaged) {
                report.bytes_read += layout.part_bytes(number);
            }
            match part.state {
                PieceState::Whole => {}
                PieceState::Unreachable => {
                    unreachable += 1;
                    report.fail(&part);
                }
                _ => bad.push(number),
            }
        }
        bad.iter().for_each(|&number| progress.expect(layout.part_bytes(number)));
        for number in bad.clone() {
            let Some(server) = self.place_of(&object, number) else {
                let (server, why) = (
                    object.header.parts[number as usize].server.clone(),
                    "no server is free for its part".to_string(),
                );
                report.failures.push(RepairFailure { server, why });
                continue;
            };
            match rebuild(&object, number, &bad, &server, progress) {
                Ok((read, count)) => {
                    report.bytes_read += read;
                    report.written_bytes += count;
                    report.rebuilt_parts.push(server.name.clone());
                    object.parts[number as usize].set_holder(&server);
                    // From now on the others may be rebuilt from it.
                    if object.parts[number as usize].open_anew().is_ok() {
                        bad.retain(|&other| other != number);
                    }
                }
                Err(error) => {
                    let (server, why) = (server.name.clone(), error.to_string());
                    report.failures.push(RepairFailure { server, why });
                }
            }
        }
        let losses = bad.len() + unreachable;
        if losses > layout.parity as usize && records.is_disputed() {
            // Who reads it would lose the older version that others have.
            let server = self.0.settings().name.clone();
            let found = layout.parts() as usize - losses;
            let why = too_few_parts(layout.data as usize, found);
            report.failures.push(RepairFailure { server, why });
            return Ok(report);
        }
        self.repair_records(&records, &object, deep, &mut report)?;
        Ok(report)
    }

    /// The server that a part is to be written to: the one that has it damaged, else its own, unless
    /// another part is there, else one that has no other part.
    fn place_of(&self, object: &Object, number: u32) -> Option<Arc<Server>> {
        let by_name = |name: &str| self.servers().iter().find(|server| server.name == name);
        let own = |part: u32| by_name(&object.header.parts[part as usize].server).cloned();
        let place = |part: u32| object.parts[part as usize].holder().or_else(|| own(part));
        if let Some(holder) = object.parts[number as usize].holder() {
            return Some(holder);
        }
        let others = || (0..object.layout().parts()).filter(|&other| other != number);
        let is_free = |server: &Arc<Server>| {
            !others().filter_map(place).any(|other| other.name == server.name)
        };
        // Nobody knows what lies on servers that are new here.
        let has_others = |server: &Arc<Server>| {
            others().any(|other| server.open(object.parts[other as usize].path()).is_ok())
        };
        let mut free =
            self.servers().iter().filter(|server| is_free(server) && !has_others(server));
        let own = own(number);
        own.clone().filter(is_free).or_else(|| free.next().cloned()).or(own)
    }

    /// Write the record to servers that have none, an older or a damaged one; never over a newer one.
    fn repair_records(
        &self,
        records: &Records,
        object: &Object,
        deep: bool,
        report: &mut RepairReport,
    ) -> Result<(), StoreError> {
        let path = &object.header.path;
        let same: Vec<_> =
            records.records().filter(|record| record.header == object.header).collect();
        let reports = record_reports(self.servers(), records, object, deep);
        let mut sound = None;
        for ((server, answer), state) in self.servers().iter().zip(&records.answers).zip(reports) {
            match state.state {
                PieceState::Whole => continue,
                PieceState::Unreachable => {
                    report.fail(&state);
                    continue;
                }
                _ => {}
            }
            let now = read_record(server, path, header_bytes(self.servers().len()));
            let is_foreign =
                |generation| answer.as_ref().is_some_and(|answer| answer.is_foreign(generation));
            if let Answer::Record(now) = now
                && now.header.generation > object.header.generation
                && !is_foreign(&now.header.generation)
            {
                let (url, version) = (object.url.clone(), object.version.to_string());
                return Err(StoreError::Changed { url, version });
            }
            let bytes = match &sound {
                Some(bytes) => bytes,
                None => sound.insert(Bytes::from(sound_bytes(&same)?)),
            };
            match server.put(&record_path(path), bytes) {
                Ok(()) => {
                    report.rebuilt_records.push(server.name.clone());
                    report.written_bytes += bytes.len() as u64;
                }
                Err(error) => {
                    let (server, why) = (server.name.clone(), error.to_string());
                    report.failures.push(RepairFailure { server, why });
                }
            }
        }
        Ok(())
    }

    /// Reads around late parts of this store, since this process began.
    pub fn hedges(&self) -> HedgeReport {
        let [tries, wins, extra_bytes, read_bytes] = self.0.hedges.counts();
        HedgeReport { tries, wins, extra_bytes, read_bytes }
    }
}

fn state_of(error: &StoreError) -> PieceState {
    match error {
        StoreError::NotFound { .. } => PieceState::Missing,
        StoreError::Differs { .. } | StoreError::ShortRead { .. } | StoreError::Damaged { .. } => {
            PieceState::Damaged
        }
        _ => PieceState::Unreachable,
    }
}

/// A part that was looked at, and the numbers of all its damaged ranges: a range is what one
/// checksum is of.
type CheckedPart = (PieceReport, Vec<u64>);

/// Look at all parts at the same time; with `deep`, read them. Those whose servers do not answer are
/// looked for on the others if too many are not whole, or, with `all_places`, in any case.
fn check_parts(
    object: &Arc<Object>,
    (deep, all_places): (bool, bool),
    progress: &RepairProgress,
) -> Result<Vec<CheckedPart>, StoreError> {
    let (scope, interrupt) = (Scope::current(), Interrupt::current());
    std::thread::scope(|threads| {
        let running: Vec<_> = (0..object.layout().parts())
            .map(|number| {
                let (scope, interrupt) = (scope.clone(), interrupt.clone());
                let part = deep.then(|| progress.part(object.layout().part_bytes(number)));
                threads.spawn(move || {
                    scope.enter();
                    interrupt.enter();
                    check_part(object, number, part)
                })
            })
            .collect();
        let results = running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        results.collect::<Result<Vec<_>, _>>()
    })
    .and_then(|mut checks| {
        let is_whole = |check: &&CheckedPart| check.0.state == PieceState::Whole;
        let losses = checks.len() - checks.iter().filter(is_whole).count();
        if !all_places && losses <= object.layout().parity as usize {
            return Ok(checks);
        }
        // The disk of a server that does not answer may be on another one.
        for (number, check) in (0..).zip(&mut checks) {
            if check.0.state == PieceState::Unreachable
                && object.parts[number as usize].find_elsewhere()
            {
                let part = deep.then(|| progress.part(object.layout().part_bytes(number)));
                *check = check_part(object, number, part)?;
            }
        }
        Ok(checks)
    })
}

/// Look at a part; with its progress, read it. Also the numbers of all damaged ranges.
fn check_part(
    object: &Arc<Object>,
    number: u32,
    progress: Option<PartProgress<'_>>,
) -> Result<CheckedPart, StoreError> {
    let part = &object.parts[number as usize];
    let report = |state, why| PieceReport {
        server: part.server_name(),
        state,
        why,
        damage_starts: Vec::new(),
    };
    // One that failed may have done so for another object, on another of its disks.
    if part.is_away() {
        // It was asked for the record a moment ago.
        return Ok((report(PieceState::Unreachable, Some(part.server_failure())), Vec::new()));
    }
    // A server that verifies what it sends refuses one whose first bytes are damaged.
    let (mut damage, result) = (None, part.open_anew());
    let result = match result {
        Err(error @ StoreError::Damaged { .. }) if progress.is_some() => {
            damage = Some(error);
            part.open_despite_damage()
        }
        Err(error @ StoreError::NotFound { .. }) => {
            if part.find_elsewhere() {
                part.open()
            } else {
                Err(error)
            }
        }
        result => result,
    };
    let source = match result {
        Ok(source) => source,
        Err(error) => {
            part.lose(&error);
            return Ok((report(state_of(&error), Some(error.to_string())), Vec::new()));
        }
    };
    let (mut damages, sum_bytes) = (Vec::new(), object.layout().sum_bytes);
    if let Some(progress) = progress
        && let Some(error) = read_part(object, number, &*source, (&mut damages, progress))?
    {
        let error = damage.unwrap_or(error);
        return Ok((report(state_of(&error), Some(error.to_string())), Vec::new()));
    }
    if damages.is_empty() {
        return Ok((report(PieceState::Whole, part.move_message()), damages));
    }
    let (noun, verb) = if damages.len() == 1 { ("range", "is") } else { ("ranges", "are") };
    let count = damages.len();
    let why = format!("{count} {noun} of {sum_bytes} bytes {verb} not what was written");
    let damage_starts = damages.iter().take(MOST_DAMAGE_STARTS).map(|at| at * sum_bytes).collect();
    let report = PieceReport { damage_starts, ..report(PieceState::Damaged, Some(why)) };
    Ok((report, damages))
}

/// Read a part, and add the numbers of its damaged ranges. The error that ended the reading, unless
/// it was interrupted.
fn read_part(
    object: &Object,
    number: u32,
    source: &dyn Source,
    (damages, mut progress): (&mut Vec<u64>, PartProgress<'_>),
) -> Result<Option<StoreError>, StoreError> {
    let (size, sum_bytes) = (object.layout().part_bytes(number), object.layout().sum_bytes);
    let (mut start, mut damage_answers) = (0, 0);
    while start < size {
        let ranges: Vec<_> = (0..READS)
            .map(|at| start + at * READ_BYTES)
            .take_while(|&at| at < size)
            .map(|at| at..(at + READ_BYTES).min(size))
            .collect();
        for bytes in source.fetch(ranges, 2) {
            match bytes {
                Ok(bytes) => {
                    check_ranges(object, number, start, &bytes, damages)?;
                    start += bytes.len() as u64;
                    progress.add(bytes.len() as u64);
                }
                Err(error @ StoreError::Interrupted { .. }) => return Err(error),
                // The server says which block it is. Up to it and after it are others.
                Err(StoreError::Damaged { byte, .. })
                    if (start..size).contains(&byte) && damage_answers < MOST_DAMAGE_ANSWERS =>
                {
                    damage_answers += 1;
                    let block = byte / DAMAGE_BYTES * DAMAGE_BYTES;
                    // Whole ranges of a checksum, which may be longer.
                    let first = block / sum_bytes * sum_bytes;
                    if first > start {
                        let mut before = vec![0; (first - start) as usize];
                        match source.read_exact_at(start, &mut before) {
                            Ok(()) => {}
                            Err(error @ StoreError::Interrupted { .. }) => return Err(error),
                            Err(error) => return Ok(Some(error)),
                        }
                        check_ranges(object, number, start, &before, damages)?;
                    }
                    let end = (block + DAMAGE_BYTES).next_multiple_of(sum_bytes).min(size);
                    damages.extend(first.max(start) / sum_bytes..end.div_ceil(sum_bytes));
                    start = end;
                }
                Err(error) => return Ok(Some(error)),
            }
        }
    }
    Ok(None)
}

/// Add the numbers of the ranges that are not what was written, of bytes from `start` of a part.
fn check_ranges(
    object: &Object,
    number: u32,
    start: u64,
    bytes: &[u8],
    damages: &mut Vec<u64>,
) -> Result<(), StoreError> {
    let wrong = object.sums.wrong_blocks(&object.header, number, start, bytes)?;
    damages.extend(wrong.into_iter().map(|at| at / object.layout().sum_bytes));
    Ok(())
}

/// The records with the numbers of their servers.
fn records_by_server(records: &Records) -> impl Iterator<Item = (usize, &Record)> {
    records.answers.iter().enumerate().filter_map(|(number, answer)| match answer {
        Some(Answer::Record(record)) => Some((number, &**record)),
        _ => None,
    })
}

/// Read all checksums of records, those of some servers at the same time; the errors, by the numbers
/// of the servers.
fn check_records(records: &[(usize, &Record)]) -> BTreeMap<usize, StoreError> {
    let next = AtomicUsize::new(0);
    let errors = Mutex::new(BTreeMap::new());
    let (scope, interrupt) = (Scope::current(), Interrupt::current());
    std::thread::scope(|threads| {
        for _ in 0..records.len().min(RECORDS_AT_ONCE) {
            let (scope, interrupt) = (scope.clone(), interrupt.clone());
            let (next, errors) = (&next, &errors);
            threads.spawn(move || {
                scope.enter();
                interrupt.enter();
                while let Some((number, record)) = records.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    if let Err(error) = record.check_groups() {
                        let mut errors = errors.lock().unwrap_or_else(PoisonError::into_inner);
                        errors.insert(*number, error);
                    }
                }
            });
        }
    });
    errors.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// What was found of the records of an object; with `deep`, all of their checksums are read.
fn record_reports(
    servers: &[Arc<Server>],
    records: &Records,
    object: &Object,
    deep: bool,
) -> Vec<PieceReport> {
    let is_same = |record: &Record| record.header == object.header;
    let to_read: Vec<(usize, &Record)> = match deep {
        true => records_by_server(records).filter(|(_, record)| is_same(record)).collect(),
        false => Vec::new(),
    };
    let damages: BTreeMap<usize, StoreError> = check_records(&to_read);
    let state = |number: usize, answer: &Option<Answer>| match answer {
        Some(Answer::Record(record)) if is_same(record) => match damages.get(&number) {
            Some(error) => (state_of(error), Some(error.to_string())),
            None => (PieceState::Whole, None),
        },
        Some(Answer::Record(record)) => {
            let why = format!("it is of version {}", record.header.generation);
            (PieceState::Outdated, Some(why))
        }
        Some(Answer::Absent) => (PieceState::Missing, None),
        Some(Answer::Empty) => (PieceState::Damaged, Some(EMPTY.into())),
        Some(Answer::Damaged(why) | Answer::Foreign(_, why)) => {
            (PieceState::Damaged, Some(why.clone()))
        }
        Some(Answer::Failed(error)) => (PieceState::Unreachable, Some(error.to_string())),
        None => (PieceState::Unreachable, None),
    };
    let each = servers.iter().zip(&records.answers).enumerate();
    each.map(|(number, (server, answer))| {
        let (state, why) = state(number, answer);
        PieceReport { server: server.name.clone(), state, why, damage_starts: Vec::new() }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Gate, TestStripe, bytes_of};
    use std::sync::atomic::Ordering;

    #[test]
    fn records_are_read_side_by_side() {
        let stripe = TestStripe::new(3, 1, true);
        stripe.put("a", &bytes_of(6_000_000, 1), false).expect("written");
        let upkeep = Upkeep(stripe.store.clone());
        let (object, records) = upkeep.open(&TestStripe::url("a")).expect("opened");
        // Each read waits until all servers are read from.
        let gate = Gate::new(3);
        for behaviour in &stripe.behaviours {
            *behaviour.gate.lock().expect("no panic") = Some(gate.clone());
        }
        let reports = record_reports(upkeep.servers(), &records, &object, true);
        assert!(!gate.is_missed.load(Ordering::Relaxed));
        assert!(reports.iter().all(|report| report.state == PieceState::Whole));
        assert!(records.records().all(|record| record.source.len() > record.head.len() as u64));
    }
}
