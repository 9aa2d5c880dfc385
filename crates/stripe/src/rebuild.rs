//! Making a part anew from what the others have.

use crate::layout::Layout;
use crate::names::part_path;
use crate::object::Object;
use crate::part_writer::PartWriter;
use crate::read_events::in_stripe;
use crate::repair_progress::RepairProgress;
use crate::server::Server;
use crate::shards::ShardRanges;
use crate::window::Window;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use swathe_store_api::{Interrupt, StoreError};

/// Shard bytes that are rebuilt at a time: few, so that some are read while others are written.
const REBUILD_BYTES: u64 = 2 << 20;
/// Large parts that a process reads at the same time to rebuild them: the end of one may still be
/// written while the next is read. Two fill the lines of their servers, and leave
/// more than half of these to somebody who reads.
const LARGE_PARTS: u32 = 2;
/// Smaller parts are rebuilt beside any others: they wait for answers, not for lines.
const LARGE_BYTES: u64 = 1 << 20;
/// A wait is checked for an interrupt after this time.
const STEP: Duration = Duration::from_millis(100);

static LARGE_COUNT: Mutex<u32> = Mutex::new(0);
static LARGE_END: Condvar = Condvar::new();

/// One of the large parts that are read now to rebuild them.
struct LargePart;

impl LargePart {
    /// Wait until there are few.
    fn begin(url: &str) -> Result<LargePart, StoreError> {
        let mut count = LARGE_COUNT.lock().unwrap_or_else(PoisonError::into_inner);
        while *count >= LARGE_PARTS {
            if Interrupt::current().is_set() {
                return Err(StoreError::Interrupted { url: url.to_string() });
            }
            let guard = LARGE_END.wait_timeout(count, STEP);
            count = guard.unwrap_or_else(PoisonError::into_inner).0;
        }
        *count += 1;
        Ok(LargePart)
    }
}

impl Drop for LargePart {
    fn drop(&mut self) {
        *LARGE_COUNT.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        LARGE_END.notify_one();
    }
}

/// Write a part anew from what others have: bytes read and written.
pub(crate) fn rebuild(
    object: &Arc<Object>,
    number: u32,
    bad: &[u32],
    server: &Arc<Server>,
    progress: &RepairProgress,
) -> Result<(u64, u64), StoreError> {
    let layout: Layout = object.layout();
    let path = part_path(&object.header.path, &object.header.generation, layout.size, number);
    let size = layout.part_bytes(number);
    let mut large = if size > LARGE_BYTES { Some(LargePart::begin(&object.url)?) } else { None };
    let begin = || PartWriter::start(server.clone(), (number, path), size, None);
    let mut writer = in_stripe(&object.stripe, begin)?;
    let rows_at_once = (REBUILD_BYTES / layout.block_bytes).max(1);
    let mut starts = (0..layout.rows()).step_by(rows_at_once as usize);
    let shard_of = |row| (row, layout.shard_in(row, number));
    let mut read = 0;
    let mut start = |row: u64| {
        let rows = row..(row + rows_at_once).min(layout.rows());
        let mut targets = ShardRanges::default();
        for row in rows.clone() {
            let id = shard_of(row);
            targets.add(id, 0..layout.shard_bytes(row, id.1));
        }
        read += targets.bytes() * u64::from(layout.data);
        (rows, Window::without(object.clone(), targets, bad))
    };
    // While some rows are written, the next are read.
    let mut waiting = starts.next().map(&mut start);
    while let Some((rows, window)) = waiting {
        waiting = starts.next().map(&mut start);
        let shards = window.shards()?;
        if waiting.is_none() {
            // The next part is read while the end of this one is written.
            drop(large.take());
        }
        for row in rows {
            let id = shard_of(row);
            let length = layout.shard_bytes(row, id.1);
            if length == 0 {
                continue;
            }
            let bytes = shards.get(id, &(0..length)).ok_or_else(|| object.too_few(&[]))?;
            progress.add_write(length);
            if !writer.write(bytes) {
                let failure = writer.finish().err().map(|failure| failure.error);
                return Err(failure.unwrap_or_else(|| object.too_few(&[])));
            }
        }
    }
    writer.finish().map_err(|failure| failure.error)?;
    Ok((read, size))
}
