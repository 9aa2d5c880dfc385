//! A window of a read: some requests, and what is asked of the parts to answer them.
//!
//! Each part is asked for what is needed of it. A part that is slow, late or lost is left out, if
//! others are enough to rebuild what it has. All bytes are checked before they count.

mod late;
mod needs;
#[cfg(test)]
mod tests;

use crate::object::Object;
use crate::part_costs::MOST_DAMAGES;
use crate::part_fetch::{Message, PartAsks, PartFetch};
use crate::read_events::{StageEvents, record_damage, record_hedge};
use crate::shards::{ShardId, ShardRanges, Shards};
use bytes::Bytes;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use swathe_store_api::{Source, StoreError};

/// Ranges whose mean length is at most this are read exactly, if their server proves its answers.
const SHORT_BYTES: u64 = 64 << 10;

/// After so many answers that a shard is damaged, its part is not asked for the rest of it, unless that
/// is needed: each answer costs a request.
const MOST_DAMAGES_OF_SHARD: usize = 8;

/// Some requests, and what was asked for to answer them.
pub(crate) struct Window {
    object: Arc<Object>,
    requests: Vec<Range<u64>>,
    targets: ShardRanges,
    shards: Shards,
    /// Bytes of shards that are not what was written, in whole blocks of checksums.
    bad: ShardRanges,
    /// Number of answers that a shard is damaged.
    damage_counts: HashMap<ShardId, usize>,
    /// Shards with more of them than `most_damages`: they are not asked for.
    bad_shards: HashSet<ShardId>,
    most_damages: usize,
    /// Why nothing can be compared with checksums.
    sums_error: Option<StoreError>,
    /// What is wrong with them.
    damages: Vec<String>,
    /// Of each part, bytes that its server found damaged.
    damaged_bytes: Vec<Vec<u64>>,
    /// Parts that are left out: slow ones.
    slow: HashSet<u32>,
    /// Parts that took too long.
    timed_out: HashSet<u32>,
    fetches: Vec<PartFetch>,
    /// Requests that all parts together may have in flight.
    most_streams: u32,
    /// Whether its ranges are short: whole blocks of checksums would be many more bytes.
    is_short: bool,
    /// Of each part, what proves its bytes, once that was asked for.
    proofs: Vec<OnceCell<Option<Arc<dyn Source>>>>,
    sender: Sender<(usize, Message)>,
    receiver: Receiver<(usize, Message)>,
}

impl Window {
    /// Ask for what the answers to requests need.
    pub(crate) fn start(
        object: Arc<Object>,
        requests: Vec<Range<u64>>,
        most_streams: u32,
    ) -> Window {
        let mut window = Window::of(object, requests, most_streams);
        window.begin();
        window
    }

    /// A window that has asked for nothing yet.
    fn of(object: Arc<Object>, requests: Vec<Range<u64>>, most_streams: u32) -> Window {
        let layout = object.layout();
        let targets = ShardRanges::of(layout, &requests);
        let mut window = Window::new(object, ShardRanges::default());
        window.is_short = targets.are_short(SHORT_BYTES);
        window.targets = targets.widen(layout, |id| window.is_exact(id));
        (window.requests, window.most_streams) = (requests, most_streams);
        window.leave_out_slow_parts();
        window
    }

    fn new(object: Arc<Object>, targets: ShardRanges) -> Window {
        let (sender, receiver) = channel();
        Window {
            proofs: vec![OnceCell::new(); object.parts.len()],
            damaged_bytes: vec![Vec::new(); object.parts.len()],
            object,
            requests: Vec::new(),
            targets,
            shards: Shards::default(),
            bad: ShardRanges::default(),
            damage_counts: HashMap::new(),
            bad_shards: HashSet::new(),
            most_damages: MOST_DAMAGES_OF_SHARD,
            sums_error: None,
            damages: Vec::new(),
            slow: HashSet::new(),
            timed_out: HashSet::new(),
            fetches: Vec::new(),
            most_streams: u32::MAX,
            is_short: false,
            sender,
            receiver,
        }
    }

    fn begin(&mut self) {
        if let Some(needs) = self.needs(&HashSet::new()) {
            self.object.hedges.add_read(needs.bytes());
            self.ask(&needs);
        }
    }

    /// Ask for bytes of a part, rather from others than from parts that are `bad`: those may still
    /// help where they are right.
    pub(crate) fn without(object: Arc<Object>, targets: ShardRanges, bad: &[u32]) -> Window {
        let mut window = Window::new(object, targets);
        window.slow.extend(bad);
        window.begin();
        window
    }

    /// Ask parts for what is needed; the numbers of the fetches.
    fn ask(&mut self, needs: &ShardRanges) -> Range<usize> {
        let first = self.fetches.len();
        let all = self.asks_by_part(needs);
        let parts = all.iter().filter(|asks| !asks.is_empty()).count() as u32;
        let most_streams = (self.most_streams / parts.max(1)).max(1);
        for (part, asks) in (0..).zip(all).filter(|(_, asks)| !asks.is_empty()) {
            let number = self.fetches.len();
            let proof = self.proof(part).cloned();
            let damaged_bytes = self.damaged_bytes[part as usize].clone();
            let are_short = self.is_short;
            let what = PartAsks { part, asks, most_streams, damaged_bytes, are_short, proof };
            self.fetches.push(PartFetch::start(&self.object, what, number, &self.sender));
        }
        first..self.fetches.len()
    }

    /// The bytes of all requests.
    pub(crate) fn answers(mut self) -> Result<Vec<Bytes>, StoreError> {
        self.complete()?;
        self.requests.iter().map(|request| self.assemble(request)).collect()
    }

    /// All that is wanted.
    pub(crate) fn shards(mut self) -> Result<Shards, StoreError> {
        self.complete()?;
        Ok(self.shards)
    }

    fn complete(&mut self) -> Result<(), StoreError> {
        let layout = self.object.layout();
        while !self.is_complete() {
            if self.fetches.iter().any(|fetch| fetch.is_running) {
                self.wait()?;
                continue;
            }
            if let Some(error) = self.sums_error.take() {
                return Err(error);
            }
            match self.needs(&HashSet::new()).filter(|needs| !needs.is_empty()) {
                Some(needs) => {
                    self.ask(&needs);
                }
                None if !self.bad_shards.is_empty() => {
                    // What they have besides is needed, whatever that costs.
                    self.bad_shards.clear();
                    self.most_damages = usize::MAX;
                }
                None if self.object.find_moved_parts() => {}
                None => return Err(self.object.too_few(&self.damages)),
            }
        }
        let late: Vec<usize> = (0..self.fetches.len())
            .filter(|&number| self.fetches[number].is_running && self.fetches[number].has_hedge)
            .collect();
        for number in late {
            self.object.hedges.add_win();
            record_hedge("STRIPE_HEDGE_WON", &self.object, self.fetches[number].part, 0);
        }
        let targets = self.targets.clone();
        let (mut stage, mut byte_count) = (None, 0);
        for (id, ranges) in targets.iter() {
            for range in self.bad.cut(id, ranges).iter() {
                if self.shards.get(id, range).is_none() {
                    let start = || StageEvents::start("REBUILD", &self.object, |_| {});
                    stage.get_or_insert_with(start);
                    let range = self.widen(id, range);
                    self.shards.rebuild(layout, &self.object.parity, id, &range);
                    self.check_result(id, &range)?;
                    byte_count += range.end - range.start;
                }
            }
        }
        if let Some(stage) = stage {
            stage.end(Ok(byte_count));
        }
        Ok(())
    }

    /// Compare bytes that were computed with their checksums, too.
    fn check_result(&self, id: ShardId, range: &Range<u64>) -> Result<(), StoreError> {
        let (object, layout) = (&self.object, self.object.layout());
        let part = layout.part_of(id.0, id.1);
        let start = layout.in_part(id.0, range).start;
        let bytes = self.shards.get(id, range).unwrap_or_default();
        let is_whole = bytes.len() as u64 == range.end - range.start;
        let wrong = object.sums.wrong_blocks(&object.header, part, start, &bytes)?;
        if wrong.is_empty() && is_whole {
            return Ok(());
        }
        Err(object.too_few(&[format!("what was computed of part {part} is not what was written")]))
    }

    fn is_complete(&self) -> bool {
        let mut targets = self.targets.iter();
        targets.all(|(id, ranges)| {
            self.bad.cut(id, ranges).iter().all(|range| self.can_give(id, range))
        })
    }

    fn assemble(&self, request: &Range<u64>) -> Result<Bytes, StoreError> {
        let pieces: Vec<_> = self.object.layout().pieces(request.clone()).collect();
        let get = |id, range: &Range<u64>| {
            self.shards.get(id, range).ok_or_else(|| self.object.too_few(&self.damages))
        };
        if let [piece] = &pieces[..] {
            return get((piece.row, piece.shard), &piece.range);
        }
        let mut bytes = Vec::with_capacity((request.end - request.start) as usize);
        for piece in &pieces {
            bytes.extend_from_slice(&get((piece.row, piece.shard), &piece.range)?);
        }
        Ok(bytes.into())
    }

    /// Check what came of a fetch, and keep what is right.
    fn keep(&mut self, number: usize) {
        let step = self.object.layout().sum_bytes;
        let mut bad = Vec::new();
        let fetch = &self.fetches[number];
        for ask in &fetch.what.asks {
            let is_known = self.bad.overlaps(ask.id, &ask.in_shard);
            if is_known || self.shards.get(ask.id, &ask.in_shard).is_some() {
                continue;
            }
            let Some(bytes) = fetch.bytes_of(&ask.in_part) else { continue };
            if fetch.what.proof.is_some() {
                self.shards.put(ask.id, ask.in_shard.start, bytes);
                continue;
            }
            let (header, sums) = (&self.object.header, &self.object.sums);
            let wrong = match sums.wrong_blocks(header, fetch.part, ask.in_part.start, &bytes) {
                Ok(wrong) => wrong,
                Err(error) => {
                    self.sums_error = Some(error);
                    return;
                }
            };
            // What lies before, between and after them is right.
            let mut ranges = ShardRanges::default();
            let mut start = ask.in_part.start;
            let in_ask = |at: u64| (at - ask.in_part.start) as usize;
            for &at in wrong.iter().chain([&ask.in_part.end]) {
                if start < at {
                    let from = ask.in_shard.start + (start - ask.in_part.start);
                    self.shards.put(ask.id, from, bytes.slice(in_ask(start)..in_ask(at)));
                }
                start = (at + step).min(ask.in_part.end);
                let from = ask.in_shard.start + (at - ask.in_part.start);
                ranges.add(ask.id, from..ask.in_shard.start + (start - ask.in_part.start));
            }
            if let Some(at) = wrong.first() {
                bad.push((ranges, format!("byte {at} is not what was written")));
            }
        }
        bad.into_iter().for_each(|(ranges, why)| self.note_damage(number, &ranges, &why));
    }

    /// From now on some bytes of shards are not read from their part, which has something else.
    fn note_damage(&mut self, number: usize, ranges: &ShardRanges, why: &str) {
        let part_number = self.fetches[number].part;
        record_damage(&self.object, part_number, why);
        let part = &self.object.parts[part_number as usize];
        let damage = part.message(why);
        self.object.note(format!(
            "{}: {damage}; rebuilt from other parts; see: swathe stripe check",
            self.object.url
        ));
        self.damages.push(damage);
        for (id, ranges) in ranges.iter() {
            for range in ranges {
                self.bad.add(id, self.widen(id, range));
            }
        }
    }

    /// A fetch ended.
    fn settle(&mut self, number: usize, result: Result<(), StoreError>) -> Result<(), StoreError> {
        self.keep(number);
        let Err(error) = result else { return Ok(()) };
        if let StoreError::Interrupted { .. } = error {
            return Err(error);
        }
        let part = &self.object.parts[self.fetches[number].part as usize];
        // Its version was taken from the record; its file may have been copied since.
        let is_other = !matches!(
            error,
            StoreError::Network { .. } | StoreError::Io { .. } | StoreError::Damaged { .. }
        );
        // As any other server it says more, and all is compared with checksums.
        if is_other && self.fetches[number].what.proof.is_some() {
            part.distrust();
            self.proofs[self.fetches[number].part as usize] = OnceCell::from(None);
            return Ok(());
        }
        // Another fetch of it ended so before, and opened it anew, or found it on another server.
        let source = self.fetches[number].source();
        if is_other && source.is_some_and(|source| part.is_open_anew(source))
            || part.move_count() > self.fetches[number].move_count
        {
            return Ok(());
        }
        if is_other && part.is_assumed() {
            match part.open_anew() {
                Ok(_) => return Ok(()),
                Err(StoreError::Damaged { .. }) if part.open_despite_damage().is_ok() => {
                    return Ok(());
                }
                Err(_) => {}
            }
        } else if matches!(error, StoreError::Changed { .. }) && part.reopen() {
            return Ok(());
        }
        if let StoreError::Damaged { byte, why, .. } = &error {
            // The rest of the part is asked for again.
            let fetch = &self.fetches[number];
            let known = &mut self.damaged_bytes[fetch.part as usize];
            let damages = fetch.damages_of(*byte);
            if !damages.is_empty() {
                known.push(*byte);
                self.note_damage(number, &damages, &format!("byte {byte} is damaged: {why}"));
                for (id, _) in damages.iter() {
                    let count = self.damage_counts.entry(id).or_default();
                    *count += 1;
                    if *count > self.most_damages {
                        self.bad_shards.insert(id);
                    }
                }
                return Ok(());
            }
            // Its server refused to open it, as its beginning is damaged.
            if source.is_none() && part.open_despite_damage().is_ok() {
                return Ok(());
            }
            // It lies between what was asked for, and was read with that. A server that says so of
            // what it was not to read, or again and again, is not believed.
            if fetch.reads(*byte) && known.len() < MOST_DAMAGES {
                known.push(*byte);
                return Ok(());
            }
        }
        part.lose(&error);
        if part.may_be_elsewhere() && part.find_elsewhere() {
            self.object.note_move(part);
            return Ok(());
        }
        let layout = self.object.layout();
        if layout.parity > 0 {
            self.object.note(format!(
                "{}: a part is lost, and rebuilt from others: {error}; see: swathe stripe check",
                self.object.url
            ));
        }
        Ok(())
    }
}
