//! Bytes under way in one direction of a connection.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::link::sleep_until;

/// What 1 GB/s has under way, within bounds.
const LEAST_BYTES: usize = 1 << 20;
const MOST_BYTES: usize = 16 << 20;
const BYTES_PER_S: f64 = 1e9;

/// What goes through a pipe.
pub(crate) enum Item {
    Data(Vec<u8>),
    End(Ending),
}

/// How a direction ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ending {
    Close,
    Reset,
    Stall(Duration),
}

/// A queue between one thread that pushes and one that takes each item when it is due.
pub(crate) struct Pipe {
    state: Mutex<State>,
    ready: Condvar,
    room: Condvar,
}

struct State {
    items: VecDeque<(Instant, Item)>,
    bytes: usize,
    is_closed: bool,
}

impl Pipe {
    pub(crate) fn new() -> Self {
        let state = State { items: VecDeque::new(), bytes: 0, is_closed: false };
        Self { state: Mutex::new(state), ready: Condvar::new(), room: Condvar::new() }
    }

    /// Sends an item off, that arrives `delay` after `start`. Waits while too much is under way;
    /// false when the pipe is closed.
    pub(crate) fn push(&self, item: Item, start: Instant, delay: Duration) -> bool {
        let limit = (BYTES_PER_S * delay.as_secs_f64()) as usize;
        let limit = limit.clamp(LEAST_BYTES, MOST_BYTES);
        let full = |state: &mut State| state.bytes >= limit && !state.is_closed;
        let mut state = self.room.wait_while(self.state(), full).unwrap();
        if state.is_closed {
            return false;
        }
        if let Item::Data(data) = &item {
            state.bytes += data.len();
        }
        state.items.push_back((start + delay, item));
        self.ready.notify_one();
        true
    }

    /// The next item, once it is due; none when the pipe is closed.
    pub(crate) fn pop(&self) -> Option<Item> {
        let empty = |state: &mut State| state.items.is_empty() && !state.is_closed;
        let state = self.ready.wait_while(self.state(), empty).unwrap();
        let due = state.items.front().filter(|_| !state.is_closed)?.0;
        drop(state);
        sleep_until(due);
        let mut state = self.state();
        let (_, item) = state.items.pop_front()?;
        if let Item::Data(data) = &item {
            state.bytes -= data.len();
        }
        self.room.notify_one();
        Some(item)
    }

    /// Drops what is under way.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.items.clear();
        self.ready.notify_all();
        self.room.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}
