//! What a thread carries from one cut to the next: its clock, its buffers, and whether to stop.

use crate::decoded_cache::DecodedCache;
use crate::error::EngineError;
use crate::timing::{Stages, record_start};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use swathe_layout::Scratch;
use swathe_plan::Sharing;
use swathe_store_api::{Interrupt, Traffic};
use swathe_trace::Ids;

/// A request to stop the work. Checked about every 256 KiB, and while a thread that entered it waits
/// for a server.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Interrupt);

impl Cancel {
    /// Ask all work that holds this to stop.
    pub fn cancel(&self) {
        self.0.set();
    }

    /// Whether the work is to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_set()
    }

    /// Let it end the waits of this thread, until another is entered.
    pub fn enter(&self) {
        self.0.enter();
    }

    /// [`EngineError::Interrupted`] if the work is to stop.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        if self.is_cancelled() { Err(EngineError::Interrupted) } else { Ok(()) }
    }
}

/// The receiver of pieces: their offset, and the bytes.
pub(crate) type PieceReceiver<'a> = dyn FnMut(u64, &[u8]) -> Result<(), EngineError> + 'a;

/// The state of a thread for reading.
#[derive(Default)]
pub(crate) struct ReadContext {
    /// For windows of a local file.
    pub scratch: Vec<u8>,
    /// Traffic so far.
    pub traffic: Traffic,
    /// How many threads read from the store at the same time, and for what.
    pub sharing: Sharing,
    /// The memory cache of the object, if it is used.
    pub memory: Option<DecodedCache>,
    /// Whether to stop.
    pub cancel: Cancel,
}

impl ReadContext {
    pub(crate) fn add(&mut self, traffic: Traffic) {
        self.traffic.add(traffic);
    }
}

/// A thread keeps this many bytes of buffers for reuse,
const SPARE_BYTES: usize = 4 << 20;
/// and buffers of this many ended threads are kept for new ones.
const MOST_SPARES: usize = 4;

static SPARES: Mutex<Vec<SpareBuffers>> = Mutex::new(Vec::new());

/// Buffers of written results, for reuse. Freed, their pages would go back to the
/// system each time, which clears every page of the next: a fifth of what a small cut takes.
#[derive(Default)]
pub(crate) struct SpareBuffers {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl SpareBuffers {
    /// Buffers of threads that ended.
    pub(crate) fn reclaim() -> SpareBuffers {
        SPARES.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Leave all to the next thread.
    pub(crate) fn leave(&mut self) {
        let mut spares = SPARES.lock().unwrap_or_else(PoisonError::into_inner);
        if spares.len() < MOST_SPARES && self.bytes > 0 {
            spares.push(std::mem::take(self));
        }
    }

    /// An empty buffer: an old one, or one that has room for nothing yet.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let Some(mut buffer) = self.buffers.pop() else { return Vec::new() };
        self.bytes -= buffer.capacity();
        buffer.clear();
        buffer
    }

    /// Keep a buffer for reuse, unless enough are kept.
    pub(crate) fn keep(&mut self, buffer: Vec<u8>) {
        if self.bytes + buffer.capacity() <= SPARE_BYTES {
            self.bytes += buffer.capacity();
            self.buffers.push(buffer);
        }
    }
}

/// Buffers of single cuts that ended, for reuse: for chunks their pages would be cleared each time,
/// with a lock of the whole process. One for each core is enough.
static DECODE_BUFFERS: Mutex<Vec<DecodeBuffers>> = Mutex::new(Vec::new());
const MOST_DECODE_BUFFERS: usize = 8;

/// What reading and decoding of a tile need.
#[derive(Default)]
struct DecodeBuffers {
    window: Vec<u8>,
    tile: Vec<u8>,
    codec: Scratch,
}

/// The events of a region's cut.
#[derive(Default)]
pub(crate) struct CutEvents {
    about: Ids,
    /// The start of its cut is recorded.
    is_begun: bool,
}

/// The clock and the reusable buffers of one thread.
pub struct WorkerContext {
    /// Time per stage.
    pub stages: Stages,
    pub(crate) reading: ReadContext,
    /// Of the regions of this unit.
    pub(crate) cut_events: Vec<CutEvents>,
    /// Whether decoded bytes may be needed again.
    pub(crate) keeps: bool,
    /// For results.
    pub(crate) spare: SpareBuffers,
    /// One decoded tile.
    pub(crate) tile: Vec<u8>,
    /// For the tile decoders.
    pub(crate) codec: Scratch,
}

impl WorkerContext {
    /// Nothing carried yet; the clock starts.
    pub fn start(cancel: Cancel) -> WorkerContext {
        WorkerContext {
            stages: Stages::start(),
            reading: ReadContext { cancel, ..ReadContext::default() },
            cut_events: Vec::new(),
            keeps: false,
            spare: SpareBuffers::default(),
            tile: Vec::new(),
            codec: Scratch::default(),
        }
    }

    /// Take the buffers of a single cut that ended.
    pub(crate) fn reclaim_buffers(&mut self) {
        let buffers = DECODE_BUFFERS.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let DecodeBuffers { window, tile, codec } = buffers.unwrap_or_default();
        (self.reading.scratch, self.tile, self.codec) = (window, tile, codec);
    }

    /// Leave its buffers for another one, if they are not large.
    pub(crate) fn leave_buffers(&mut self) {
        let window = std::mem::take(&mut self.reading.scratch);
        let (tile, codec) = (std::mem::take(&mut self.tile), std::mem::take(&mut self.codec));
        if window.capacity() > SPARE_BYTES || tile.capacity() > SPARE_BYTES {
            return;
        }
        let mut all = DECODE_BUFFERS.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MOST_DECODE_BUFFERS {
            all.push(DecodeBuffers { window, tile, codec });
        }
    }

    /// Traffic of storages.
    pub fn traffic(&self) -> Traffic {
        self.reading.traffic
    }

    /// Set the ids for the events of a region's cut: without them its start is not recorded.
    pub(crate) fn about(&mut self, region: usize, about: Ids) {
        if self.cut_events.len() <= region {
            self.cut_events.resize_with(region + 1, CutEvents::default);
        }
        self.cut_events[region].about = about;
    }

    /// The same, for its last events.
    pub(crate) fn take_about(&mut self, region: usize) -> Ids {
        self.cut_events
            .get_mut(region)
            .map(|cut_events| std::mem::take(&mut cut_events.about))
            .unwrap_or_default()
    }

    /// Record, once, that the cut of a region began.
    pub(crate) fn begin(&mut self, region: usize, at: Instant) {
        if let Some(cut_events) = self.cut_events.get_mut(region)
            && !std::mem::replace(&mut cut_events.is_begun, true)
        {
            record_start("CUT_START", at, &cut_events.about);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spare_buffer_is_empty_and_has_its_room() {
        let mut spare = SpareBuffers::default();
        spare.keep(vec![7; 1000]);
        let buffer = spare.take();
        assert!(buffer.is_empty() && buffer.capacity() >= 1000);
        assert_eq!(spare.take().capacity(), 0);
    }

    #[test]
    fn spare_buffers_take_no_more_than_they_may() {
        let mut spare = SpareBuffers::default();
        for _ in 0..100 {
            spare.keep(Vec::with_capacity(SPARE_BYTES / 10));
        }
        spare.keep(Vec::with_capacity(SPARE_BYTES + 1));
        let capacity: usize = spare.buffers.iter().map(Vec::capacity).sum();
        assert!(capacity == spare.bytes && capacity <= SPARE_BYTES && capacity > SPARE_BYTES / 2);
        while spare.take().capacity() > 0 {}
        assert_eq!(spare.bytes, 0);
    }

    #[test]
    fn what_a_thread_leaves_is_for_the_next() {
        let mut spare = SpareBuffers::default();
        spare.keep(vec![7; 12_345]);
        spare.leave();
        assert_eq!((spare.bytes, spare.take().capacity()), (0, 0));
        // Buffers of other tests may be among them; those have other lengths.
        let is_reused = (0..MOST_SPARES).map(|_| SpareBuffers::reclaim()).any(|mut spare| {
            std::iter::repeat_with(|| spare.take().capacity())
                .take_while(|&capacity| capacity > 0)
                .any(|capacity| capacity == 12_345)
        });
        assert!(is_reused);
    }
}
