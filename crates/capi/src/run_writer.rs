//! A run that is being written: its arrays, shared by ranks, as a group of Zarr 3.

use crate::fault::Fault;
use crate::known_stores::known_stores;
use crate::ranks::Ranks;
use crate::write_threads::{WriteThreads, write_object};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use swathe_run::{
    ArraySettings, Division, Exchange, GroupMetadata, Invalid, Mode, SLOTS, Sharding,
    check_iterations, check_name, shard_name,
};
use swathe_store_api::Stores;

const MOST_ARRAYS: usize = 1000;

impl From<Invalid> for Fault {
    fn from(error: Invalid) -> Fault {
        Fault::invalid(error.to_string())
    }
}

/// A run that is being written. Dropped before its end, it leaves what was written.
pub(crate) struct RunWriter {
    /// Where its group is: `FOLDER/NAME-xxxxxxxxxxxx.zarr`.
    pub(crate) folder: String,
    pub(crate) iterations: u64,
    ranks: Ranks,
    stores: Stores,
    metadata: GroupMetadata,
    arrays: Vec<RunArray>,
    threads: WriteThreads,
}

/// Place of a shard in the grid, and its bytes.
type Shard = (Vec<u64>, Vec<u8>);

struct RunArray {
    settings: ArraySettings,
    division: Division,
    sharding: Sharding,
    exchange: Exchange,
    iterations: BTreeSet<u64>,
    /// The iteration in each place, of mode `overwrite`, as the metadata have it.
    slots: [Option<u64>; SLOTS as usize],
    /// The place of the next dump of mode `overwrite`.
    next_slot: usize,
    /// What is being written of mode `overwrite`: place and iteration.
    pending: Option<(usize, u64)>,
}

impl RunWriter {
    /// Begin a run. All ranks call it.
    pub(crate) fn begin(
        folder: &str,
        name: &str,
        iterations: u64,
        ranks: Ranks,
    ) -> Result<RunWriter, Fault> {
        let what = format!("begin {folder} {name} {iterations}");
        let stores = ranks.agree(&what, Self::check_begin(folder, name, iterations))?;
        let all = ranks.gather(&RandomState::new().build_hasher().finish().to_le_bytes())?;
        // Runs of others may have the same folder.
        let token: String = all[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        let folder = match folder.ends_with([':', '/']) {
            true => format!("{folder}{name}-{token}.zarr"),
            false => format!("{folder}/{name}-{token}.zarr"),
        };
        let metadata = GroupMetadata::new(name, iterations);
        let threads = WriteThreads::new(stores.clone());
        Ok(RunWriter { folder, iterations, ranks, stores, metadata, arrays: Vec::new(), threads })
    }

    fn check_begin(folder: &str, name: &str, iterations: u64) -> Result<Stores, Fault> {
        check_name(name)?;
        check_iterations(iterations)?;
        let stores = known_stores()?;
        if folder.is_empty() || !stores.locate(folder).0.is_writable() {
            let text = format!("folder: expected one that can be written to, found {folder:?}");
            return Err(Fault::invalid(text));
        }
        Ok(stores)
    }

    /// Add an array, and write its metadata; returns its number. All ranks call it.
    pub(crate) fn add(&mut self, settings: Result<ArraySettings, Fault>) -> Result<usize, Fault> {
        let array = settings.and_then(|settings| self.check_array(settings));
        let what = array.as_ref().map_or(String::new(), |array| format!("{:?}", array.settings));
        let array = self.ranks.agree(&what, array)?;
        let contents = self.metadata.add(&array.settings);
        self.put(contents)?;
        self.arrays.push(array);
        Ok(self.arrays.len() - 1)
    }

    fn check_array(&self, settings: ArraySettings) -> Result<RunArray, Fault> {
        settings.check()?;
        self.threads.check()?;
        if self.arrays.iter().any(|array| array.settings.name == settings.name) {
            let text = format!("array {}: the run has one of this name already", settings.name);
            return Err(Fault::new(libc::EEXIST, text));
        }
        if self.arrays.len() == MOST_ARRAYS {
            return Err(Fault::invalid(format!(
                "expected at most {MOST_ARRAYS} arrays, found more"
            )));
        }
        let (division, sharding) =
            (settings.division(self.ranks.size as u64)?, settings.sharding());
        let exchange = Exchange::new(&division, &sharding, self.ranks.rank as u64);
        let (iterations, slots) = (BTreeSet::new(), [None; SLOTS as usize]);
        let (next_slot, pending) = (0, None);
        Ok(RunArray {
            settings,
            division,
            sharding,
            exchange,
            iterations,
            slots,
            next_slot,
            pending,
        })
    }

    /// Where the block of this rank begins, and its lengths.
    pub(crate) fn block(&self, array: usize) -> Result<(Vec<u64>, Vec<u64>), Fault> {
        let (division, rank) = (&self.array(array)?.division, self.ranks.rank as u64);
        let first = |spans: Vec<std::ops::Range<u64>>| spans.first().map_or(0, |span| span.start);
        let starts = division.spans(rank).into_iter().map(first).collect();
        Ok((starts, division.block_shape(rank)))
    }

    /// Write the block of this rank at an iteration. All ranks call it. Returns whether there was a
    /// dump to write.
    pub(crate) fn write(
        &mut self,
        arguments: Result<(usize, u64, &[u8]), Fault>,
    ) -> Result<bool, Fault> {
        let what = arguments.as_ref().map_or(String::new(), |(array, iteration, _)| {
            format!("array {array}: write {iteration}")
        });
        let check = arguments.and_then(|(array, iteration, block)| {
            self.check_write(array, iteration, block)?;
            Ok((array, iteration, block))
        });
        let (array, iteration, block) = self.ranks.agree(&what, check)?;
        let every = self.array(array)?.settings.every;
        if !iteration.is_multiple_of(every) {
            return Ok(false);
        }
        let is_last_only = self.array(array)?.settings.mode == Mode::Overwrite;
        let slot = if is_last_only { self.free_slot(array)? as u64 } else { iteration / every };
        let shards = self.ranks.agree(&what, self.collect(array, block))?;
        let name = self.array(array)?.settings.name.clone();
        let mut result = Ok(());
        for (place, bytes) in shards {
            let object = format!("{}/{}", self.folder, shard_name(&name, slot, &place));
            result = result.and_then(|()| self.threads.write(object, bytes));
        }
        self.ranks.agree(&what, result)?;
        let of = self.array_mut(array)?;
        of.iterations.insert(iteration);
        if is_last_only {
            of.pending = Some((slot as usize, iteration));
        }
        Ok(true)
    }

    /// Wait until all that was written is durable. All ranks call it.
    pub(crate) fn sync(&mut self) -> Result<(), Fault> {
        self.ranks.agree("sync", self.threads.wait())?;
        for array in 0..self.arrays.len() {
            let of = &mut self.arrays[array];
            if let Some((slot, iteration)) = of.pending.take() {
                of.slots[slot] = Some(iteration);
                self.put_slots(array)?;
            }
        }
        Ok(())
    }

    fn array(&self, number: usize) -> Result<&RunArray, Fault> {
        self.arrays.get(number).ok_or_else(|| no_array(number, self.arrays.len()))
    }

    fn array_mut(&mut self, number: usize) -> Result<&mut RunArray, Fault> {
        let count = self.arrays.len();
        self.arrays.get_mut(number).ok_or_else(|| no_array(number, count))
    }

    fn check_write(&self, array: usize, iteration: u64, block: &[u8]) -> Result<(), Fault> {
        self.threads.check()?;
        let of = self.array(array)?;
        let name = &of.settings.name;
        if iteration > self.iterations {
            let expected = format!("an iteration from 0 to {}", self.iterations);
            return Err(Fault::invalid(format!(
                "array {name}: expected {expected}, found {iteration}"
            )));
        }
        if of.iterations.contains(&iteration) {
            let text = format!("array {name}: iteration {iteration} was written before");
            return Err(Fault::new(libc::EEXIST, text));
        }
        let shape = of.division.block_shape(self.ranks.rank as u64);
        let bytes = shape.iter().product::<u64>() * of.settings.element.bytes();
        if block.len() as u64 != bytes {
            return Err(Fault::invalid(format!(
                "array {name}: expected a block of {shape:?}, {bytes} bytes, found {} bytes",
                block.len()
            )));
        }
        Ok(())
    }

    /// The place of a dump of mode `overwrite`: the dump before it is durable then, and the place
    /// has no iteration.
    fn free_slot(&mut self, array: usize) -> Result<usize, Fault> {
        self.sync()?;
        let of = self.array_mut(array)?;
        let slot = of.next_slot;
        of.next_slot = (slot + 1) % of.slots.len();
        if of.slots[slot].take().is_some() {
            self.put_slots(array)?;
        }
        Ok(slot)
    }

    /// Write the iterations that the places of an array have now. All ranks call it.
    fn put_slots(&mut self, array: usize) -> Result<(), Fault> {
        let (name, slots) = {
            let of = self.array(array)?;
            (of.settings.name.clone(), of.slots)
        };
        let contents = self.metadata.set_iterations(&name, &slots);
        self.put(contents)
    }

    /// Write objects of the metadata: rank 0 does. All ranks call it.
    fn put(&self, contents: Vec<(String, Vec<u8>)>) -> Result<(), Fault> {
        let is_first = self.ranks.rank == 0;
        let result = contents.iter().filter(|_| is_first).try_for_each(|(name, content)| {
            write_object(&self.stores, &format!("{}/{name}", self.folder), content)
        });
        self.ranks.agree("metadata", result)
    }

    /// The shards that this rank writes: places in the grid, and bytes.
    fn collect(&self, array: usize, block: &[u8]) -> Result<Vec<Shard>, Fault> {
        let of = self.array(array)?;
        let size = of.settings.element.bytes();
        let own = of.division.block_shape(self.ranks.rank as u64);
        let mut outgoing = Vec::with_capacity(block.len());
        let mut outgoing_lengths = Vec::new();
        for pieces in &of.exchange.outgoing {
            let before = outgoing.len();
            pieces.iter().for_each(|piece| piece.pack(block, &own, size, &mut outgoing));
            outgoing_lengths.push(outgoing.len() - before);
        }
        let length = |pieces: &Vec<swathe_run::Piece>| {
            (pieces.iter().map(|piece| piece.count()).sum::<u64>() * size) as usize
        };
        let incoming_lengths: Vec<usize> = of.exchange.incoming.iter().map(length).collect();
        let incoming = self.ranks.exchange(outgoing, &outgoing_lengths, &incoming_lengths)?;
        let mut messages: Vec<&[u8]> = Vec::new();
        let mut rest = &incoming[..];
        for &length in &incoming_lengths {
            let (message, after) = rest.split_at(length);
            messages.push(message);
            rest = after;
        }
        let mut shards = Vec::new();
        for &number in &of.exchange.shards {
            let place = of.sharding.place(number);
            let region = of.sharding.region(&place);
            let shape: Vec<u64> = region.iter().map(|span| span.end - span.start).collect();
            let mut elements = vec![0; (shape.iter().product::<u64>() * size) as usize];
            for (message, pieces) in messages.iter_mut().zip(&of.exchange.incoming) {
                // Pieces are in the order of shards, as messages are.
                for piece in pieces.iter().filter(|piece| piece.shard == number) {
                    *message = piece.unpack(message, &mut elements, &shape, size);
                }
            }
            shards.push((place, of.sharding.encode(&elements, &shape)));
        }
        Ok(shards)
    }
}

fn no_array(number: usize, count: usize) -> Fault {
    Fault::invalid(format!("array: expected one of {count}, found number {number}"))
}
