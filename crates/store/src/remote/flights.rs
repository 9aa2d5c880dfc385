//! What is on its way from a server, for all who need it: one request, and several who wait.
//!
//! A request of one reader is a flight. Others who need the same bytes of the same version, with the
//! same credentials, wait for it. If it fails, each of them sends requests of its own. If its reader
//! gives up, one of them takes over.

use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use swathe_store_api::Version;
use tokio::sync::Notify;

/// The end of a flight.
#[derive(Clone, Debug)]
pub(super) enum Landing<T> {
    /// Its answer.
    Arrived(T),
    /// It failed; its reader has the error.
    Failed,
    /// Its reader gave up.
    Abandoned,
}

/// A flight, for one who waits for it. A cut has hundreds, and few are waited for.
#[derive(Debug)]
pub(super) struct Flight<T>(Arc<FlightState<T>>);

#[derive(Debug)]
struct FlightState<T> {
    landing: OnceLock<Landing<T>>,
    end: Notify,
}

impl<T> Clone for Flight<T> {
    fn clone(&self) -> Flight<T> {
        Flight(self.0.clone())
    }
}

impl<T> Flight<T> {
    fn new() -> Flight<T> {
        Flight(Arc::new(FlightState { landing: OnceLock::new(), end: Notify::new() }))
    }

    /// Report its end, once.
    fn end(&self, landing: Landing<T>) {
        if self.0.landing.set(landing).is_ok() {
            self.0.end.notify_waiters();
        }
    }
}

impl<T: Clone> Flight<T> {
    /// Wait until it ended.
    pub(super) async fn receive(self) -> Landing<T> {
        // Who asks to be notified before looking misses no end.
        let end = self.0.end.notified();
        if self.0.landing.get().is_none() {
            end.await;
        }
        self.0.landing.get().cloned().unwrap_or(Landing::Abandoned)
    }
}

/// A flight, for the reader that requests it. Dropped before it landed, it is abandoned.
#[derive(Debug)]
pub(super) struct Lead<K: Key, T> {
    flights: Arc<Flights<K, T>>,
    key: K,
    flight: Flight<T>,
}

/// The key of flights.
pub(super) trait Key: Clone + Ord {}
impl<K: Clone + Ord> Key for K {}

impl<K: Key, T> Lead<K, T> {
    /// Report the end to all who wait, and remove the flight: later readers do not join it.
    pub(super) fn land(self, landing: Landing<T>) {
        self.flight.end(landing);
    }
}

impl<K: Key, T> Drop for Lead<K, T> {
    fn drop(&mut self) {
        let mut flights = self.flights.lock();
        // After `forget`, another may be there.
        if flights.get(&self.key).is_some_and(|flight| Arc::ptr_eq(&flight.0, &self.flight.0)) {
            flights.remove(&self.key);
        }
        drop(flights);
        self.flight.end(Landing::Abandoned);
    }
}

/// Flights by their keys.
#[derive(Debug)]
pub(super) struct Flights<K, T>(Mutex<BTreeMap<K, Flight<T>>>);

impl<K, T> Default for Flights<K, T> {
    fn default() -> Flights<K, T> {
        Flights(Mutex::default())
    }
}

impl<K: Key, T> Flights<K, T> {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, Flight<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The flight with this key, to wait for; else a new one, to request.
    pub(super) fn join(self: &Arc<Self>, key: K) -> Result<Flight<T>, Lead<K, T>>
    where
        T: Clone,
    {
        let mut flights = self.lock();
        match flights.get(&key) {
            Some(flight) => Ok(flight.clone()),
            None => Err(self.begin(&mut flights, key)),
        }
    }

    /// From now on nobody joins the flight with this key: what it brings is out of date.
    pub(super) fn forget(&self, key: &K) {
        self.lock().remove(key);
    }

    fn begin(self: &Arc<Self>, flights: &mut BTreeMap<K, Flight<T>>, key: K) -> Lead<K, T> {
        let flight = Flight::new();
        flights.insert(key.clone(), flight.clone());
        Lead { flights: self.clone(), key, flight }
    }
}

/// The flights of an object at a version, by where they start and end: they hardly overlap.
pub(super) type RangeFlights = Flights<(u64, u64), Bytes>;

/// The reader of an object: its key, its version, and who asks.
type ObjectKey = (String, Version, Option<u64>);

/// The flights of an object, for all of this process that read it at this version with the same
/// credentials.
pub(super) fn of_object(key: &str, version: &Version, identity: Option<u64>) -> Arc<RangeFlights> {
    static OBJECTS: Mutex<Option<HashMap<ObjectKey, Weak<RangeFlights>>>> = Mutex::new(None);
    let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    let objects = objects.get_or_insert_default();
    let key = (key.to_string(), version.clone(), identity);
    if let Some(flights) = objects.get(&key).and_then(Weak::upgrade) {
        return flights;
    }
    if objects.len() == objects.capacity() {
        objects.retain(|_, flights| flights.strong_count() > 0);
    }
    let flights = Arc::default();
    objects.insert(key, Arc::downgrade(&flights));
    flights
}

/// A part of a range.
pub(super) enum Part {
    /// On its way for another: these bytes, in the flight that starts there.
    Awaited(Range<u64>, u64, Flight<Bytes>),
    /// To request.
    Requested(Range<u64>, Lead<(u64, u64), Bytes>),
}

impl RangeFlights {
    /// Whether a part of a range is on its way.
    pub(super) fn has_any(&self, range: &Range<u64>) -> bool {
        let flights = self.lock();
        let mut earlier = flights.range(..(range.end, 0)).rev();
        earlier.next().is_some_and(|(&(_, end), _)| end > range.start)
    }

    /// Divide a range into what is on its way and what is to be requested, which others then find. A
    /// part between two requested ones that is no longer than `gap_bytes` is requested with them.
    pub(super) fn divide(self: &Arc<Self>, range: &Range<u64>, gap_bytes: u64) -> Vec<Part> {
        let mut flights = self.lock();
        let mut waits: Vec<(Range<u64>, u64, Flight<Bytes>)> = Vec::new();
        let earlier = flights.range(..(range.start, u64::MAX)).next_back();
        let inside = flights.range((range.start, u64::MAX)..(range.end, 0));
        for (&(start, end), flight) in earlier.into_iter().chain(inside) {
            let at = waits.last().map_or(range.start, |(last, ..)| last.end).max(start);
            let until = end.min(range.end);
            if at < until {
                waits.push((at..until, start, flight.clone()));
            }
        }
        let is_between = |part: &Range<u64>| range.start < part.start && part.end < range.end;
        waits.retain(|(part, ..)| !is_between(part) || part.end - part.start > gap_bytes);
        let mut parts = Vec::with_capacity(2 * waits.len() + 1);
        let mut at = range.start;
        for (part, start, flight) in waits {
            if at < part.start {
                parts.push(self.request(&mut flights, at..part.start));
            }
            at = part.end;
            parts.push(Part::Awaited(part, start, flight));
        }
        if at < range.end {
            parts.push(self.request(&mut flights, at..range.end));
        }
        parts
    }

    fn request(
        self: &Arc<Self>,
        flights: &mut BTreeMap<(u64, u64), Flight<Bytes>>,
        range: Range<u64>,
    ) -> Part {
        let lead = self.begin(flights, (range.start, range.end));
        Part::Requested(range, lead)
    }
}

#[cfg(test)]
mod tests;
