//! What one thread has recorded and nobody has written yet.
//!
//! One thread puts records in, another takes them out, neither waits: a record that does not
//! fit is counted and lost. The memory is of atomic words, which cost what plain ones do, so
//! that no `unsafe` is needed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Words of eight bytes of a large ring: 512 KiB, some thousands of events.
pub(crate) const LARGE: usize = 64 << 10;
/// Words of a small ring: 64 KiB, some hundreds of records.
pub(crate) const SMALL: usize = 8 << 10;
/// When this multiple of the used size would fill it, it is time to write.
const PRESSING: u64 = 4;
/// Longest record; longer ones are lost.
pub(crate) const RECORD_BYTES: usize = 32 << 10;
/// Words before the text of a record.
const HEAD: u64 = 2;

/// A counter that shares its cache line with nothing another thread writes.
#[repr(align(128))]
#[derive(Default)]
struct CacheLine(AtomicU64);

/// The counters of the thread that puts records in.
#[repr(align(128))]
#[derive(Default)]
struct Putter {
    /// Words put in since the beginning.
    words: AtomicU64,
    /// Words known to be taken out: looking often takes that line from the thread that writes.
    last_read_words: AtomicU64,
    /// Events put in, and events lost.
    events: AtomicU64,
    lost_events: AtomicU64,
}

/// A record: what it is, when, and its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// How long the names at the start of the text are, with a space after each; 0: it is no event,
    /// but what all from here on have: [`SCOPE`], or [`SHARED_FIELDS`].
    pub name: u8,
    /// Number of events in it; if it is not an event, the number lost without it.
    pub events: u8,
    /// How long the ids are that follow it.
    pub ids: u16,
    /// Whether the ids are left out, since they are those of the record before.
    pub same: bool,
    /// Number of the level; if it is not an event, its kind.
    pub level: u8,
    /// Nanoseconds of the clock that only goes forward.
    pub time_ns: u64,
}

/// The ids of the scope; they are not repeated.
pub(crate) const SCOPE: u8 = 0;
/// The ids that are shared.
pub(crate) const SHARED_FIELDS: u8 = 1;

pub(crate) struct Ring {
    /// Its number: `THREAD` of its events.
    pub number: u64,
    /// A power of two of them.
    words: Box<[AtomicU64]>,
    put: Putter,
    /// Words taken out since the beginning.
    read_words: CacheLine,
    /// The thread ended.
    is_closed: AtomicBool,
}

/// The result of putting a record in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutResult {
    /// It is in the ring.
    Done,
    /// It is, and the ring is filling up.
    Pressing,
    /// It did not fit.
    Lost,
}

impl Ring {
    /// `words`: a power of two.
    pub fn new(number: u64, words: usize) -> Ring {
        Ring {
            number,
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            put: Putter::default(),
            read_words: CacheLine::default(),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Put a record in. By one thread only.
    pub fn put(&self, head: Head, text: &[u8]) -> PutResult {
        let start = self.put.words.load(Ordering::Relaxed);
        let record_words = HEAD + text.len().div_ceil(8) as u64;
        let mut used_words = start - self.put.last_read_words.load(Ordering::Relaxed);
        if (used_words + record_words) * PRESSING > self.size() {
            let read_words = self.read_words.0.load(Ordering::Acquire);
            self.put.last_read_words.store(read_words, Ordering::Relaxed);
            used_words = start - read_words;
        }
        if text.len() > RECORD_BYTES || used_words + record_words > self.size() {
            self.lose(head.events);
            return PutResult::Lost;
        }
        let first = text.len() as u64
            | u64::from(head.ids) << 16
            | u64::from(head.name) << 32
            | u64::from(head.events) << 40
            | u64::from(head.level) << 48
            | u64::from(head.same) << 56;
        self.word(start).store(first, Ordering::Relaxed);
        self.word(start + 1).store(head.time_ns, Ordering::Relaxed);
        let (chunks, rest) = text.as_chunks::<8>();
        let mut at = start + HEAD;
        for chunk in chunks {
            self.word(at).store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
            at += 1;
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.word(at).store(u64::from_ne_bytes(last), Ordering::Relaxed);
        }
        if head.name != 0 {
            count(&self.put.events, head.events);
        }
        self.put.words.store(start + record_words, Ordering::Release);
        if (used_words + record_words) * PRESSING > self.size() {
            PutResult::Pressing
        } else {
            PutResult::Done
        }
    }

    /// Count events that were not put in. By the same thread.
    pub fn lose(&self, events: u8) {
        count(&self.put.lost_events, events);
    }

    /// Take out the records in the ring, in order, through `text`, which has room for the
    /// longest. By one other thread only.
    pub fn take(&self, text: &mut [u8], to: &mut dyn FnMut(Head, &[u8])) {
        let end = self.put.words.load(Ordering::Acquire);
        let mut at = self.read_words.0.load(Ordering::Relaxed);
        while at < end {
            let first = self.word(at).load(Ordering::Relaxed);
            let head = Head {
                name: (first >> 32) as u8,
                events: (first >> 40) as u8,
                level: (first >> 48) as u8,
                same: first >> 56 == 1,
                ids: (first >> 16) as u16,
                time_ns: self.word(at + 1).load(Ordering::Relaxed),
            };
            let length = usize::from(first as u16).min(RECORD_BYTES);
            at += HEAD;
            for chunk in &mut text.as_chunks_mut::<8>().0[..length.div_ceil(8)] {
                *chunk = self.word(at).load(Ordering::Relaxed).to_ne_bytes();
                at += 1;
            }
            to(head, &text[..length]);
            self.read_words.0.store(at, Ordering::Release);
        }
    }

    /// Events put in since the beginning.
    pub fn events(&self) -> u64 {
        self.put.events.load(Ordering::Relaxed)
    }

    /// Events lost since the beginning.
    pub fn lost_events(&self) -> u64 {
        self.put.lost_events.load(Ordering::Relaxed)
    }

    /// Words in it that were not taken out yet.
    pub fn used_words(&self) -> u64 {
        self.put.words.load(Ordering::Acquire) - self.read_words.0.load(Ordering::Acquire)
    }

    /// Say that its thread puts no more in.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Memory of its records.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.words.len() * 8
    }

    /// Whether its thread ended.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// For another thread, which appends its records.
    pub fn reopen(&self) {
        self.is_closed.store(false, Ordering::Release);
    }

    fn size(&self) -> u64 {
        self.words.len() as u64
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        &self.words[at as usize & (self.words.len() - 1)]
    }
}

/// By the only thread that counts.
fn count(counter: &AtomicU64, more: u8) {
    counter.store(counter.load(Ordering::Relaxed) + u64::from(more), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn head(time_ns: u64) -> Head {
        let same = time_ns.is_multiple_of(2);
        Head { name: 3, events: 1, level: 1, ids: 60_000, same, time_ns }
    }

    fn records(ring: &Ring) -> Vec<(Head, Vec<u8>)> {
        let mut all = Vec::new();
        ring.take(&mut [0; RECORD_BYTES], &mut |head, text| all.push((head, text.to_vec())));
        all
    }

    #[test]
    fn a_full_ring_loses_and_counts_and_goes_on() {
        let ring = Ring::new(1, LARGE);
        let text = vec![7; RECORD_BYTES];
        let mut put = 0;
        while ring.put(head(put), &text) != PutResult::Lost {
            put += 1;
        }
        assert_eq!(ring.put(head(0), &text), PutResult::Lost);
        assert_eq!((ring.events(), ring.lost_events()), (put, 2));
        assert_eq!(records(&ring).len() as u64, put);
        assert_eq!(ring.put(head(0), &text), PutResult::Done);
        assert_eq!(ring.put(head(0), &vec![7; RECORD_BYTES + 1]), PutResult::Lost);
    }

    #[test]
    fn two_threads_pass_all_on_in_order() {
        let ring = Ring::new(1, LARGE);
        std::thread::scope(|scope| {
            let putter = scope.spawn(|| {
                for time_ns in 0..200_000u64 {
                    let text = [time_ns as u8; 20];
                    while ring.put(head(time_ns), &text[..time_ns as usize % 20]) == PutResult::Lost
                    {
                        std::thread::yield_now();
                    }
                }
                ring.close();
            });
            let mut next = 0;
            while !(putter.is_finished() && ring.used_words() == 0) {
                for (header, text) in records(&ring) {
                    assert_eq!(header, head(next));
                    assert_eq!(text, vec![next as u8; next as usize % 20]);
                    next += 1;
                }
            }
            assert_eq!(next, 200_000);
        });
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            steps in proptest::collection::vec((any::<bool>(), 0usize..9000), 0..300),
        ) {
            let ring = Ring::new(1, SMALL);
            let mut inside = VecDeque::new();
            for (number, (take, length)) in steps.into_iter().enumerate() {
                if take {
                    prop_assert_eq!(records(&ring), inside.drain(..).collect::<Vec<_>>());
                }
                let text: Vec<u8> = (0..length).map(|byte| (byte + number) as u8).collect();
                if ring.put(head(number as u64), &text) != PutResult::Lost {
                    inside.push_back((head(number as u64), text));
                }
            }
            prop_assert_eq!(records(&ring), inside.into_iter().collect::<Vec<_>>());
        }
    }
}
