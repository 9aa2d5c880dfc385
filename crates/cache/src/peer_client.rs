//! Fetches blocks from the other workers of a pool, if that should take less than the store.
//!
//! A peer's answer is never data by itself: it is checked as a file of the own disk cache is
//! (object, version and cell, length, checksum), stored there, and read from there.

use crate::cell::{CELL_BYTES, Cells};
use crate::peer::{Answer, CONNECT, Fault, Peer, lock};
use crate::tls::Identity;
use reqwest::Client;
use reqwest::redirect::Policy;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;
use swathe_disk_cache::YOUNG;
use swathe_net::connect_events::TraceConnects;
use swathe_net::net;
use swathe_net::server::IDLE;
use swathe_store_api::{StoreError, TrafficCount};
use swathe_trace::{Ids, Level, Record, event};

/// Peers that are tried for the same object, one after the other.
const MOST_PEERS: usize = 3;
/// Objects with recorded peers.
const OBJECTS: usize = 10_000;
/// Answers that what peers cost is learnt from.
const ANSWERS: usize = 64;

/// The peers that have blocks of each object.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    client: RwLock<Option<Client>>,
    by_url: Mutex<HashMap<String, Arc<Peer>>>,
    by_object: Mutex<HashMap<String, Vec<Arc<Peer>>>>,
    notes: Mutex<Vec<String>>,
    /// The last answers: seconds until each began, and its bytes per second if it was long.
    answers: Mutex<VecDeque<(f64, Option<f64>)>>,
}

impl Peers {
    /// Show a certificate from now on.
    pub(crate) fn identify(&self, identity: Option<&Identity>) -> Result<(), StoreError> {
        let fail = |why| StoreError::Unsupported { url: "peers".to_string(), why };
        net().map_err(fail)?; // which chooses how to encrypt
        let settings = match identity {
            None => Client::builder(),
            Some(identity) => {
                let tls = identity.client().map_err(fail)?;
                Client::builder().tls_backend_preconfigured(tls).https_only(true)
            }
        };
        let client = settings
            .no_proxy()
            .redirect(Policy::none())
            .connect_timeout(CONNECT)
            .connector_layer(TraceConnects(CONNECT))
            .pool_idle_timeout(IDLE / 3)
            .http1_only()
            .build()
            .map_err(|error| fail(error.to_string()))?;
        *self.client.write().unwrap_or_else(PoisonError::into_inner) = Some(client);
        Ok(())
    }

    /// Set the peers of an object: URL and token of each, the first is tried first.
    pub(crate) fn set(&self, object: &str, peers: Vec<(String, String)>) {
        let mut by_object = lock(&self.by_object);
        if peers.is_empty() {
            by_object.remove(object);
            return;
        }
        if by_object.len() >= OBJECTS && !by_object.contains_key(object) {
            by_object.clear(); // they are set again with the next batch
        }
        by_object.insert(object.to_string(), self.peers_at(peers));
        drop(by_object);
        let mut by_url = lock(&self.by_url);
        by_url.retain(|_, peer| Arc::strong_count(peer) > 1 || lock(&peer.state).is_of_use());
    }

    /// Peers at these URLs with these tokens, and their states.
    fn peers_at(&self, peers: Vec<(String, String)>) -> Vec<Arc<Peer>> {
        let mut by_url = lock(&self.by_url);
        let mut peer_of = |(url, token): (String, String)| {
            let same = by_url.get(&url).filter(|peer| peer.token == token).cloned();
            same.unwrap_or_else(|| {
                let peer = Arc::new(Peer::new(url.clone(), token));
                by_url.insert(url, peer.clone());
                peer
            })
        };
        peers.into_iter().take(MOST_PEERS).map(&mut peer_of).collect()
    }

    /// Seconds to fetch this many bytes of an object from a peer that has it; `None` if no peer
    /// is known to.
    pub(crate) fn refetch_s(&self, object: &str, bytes: u64) -> Option<f64> {
        let cells = bytes as f64 / CELL_BYTES as f64;
        let seconds = self.of(object).into_iter().map(|peer| lock(&peer.state).some_s(cells));
        seconds.min_by(f64::total_cmp)
    }

    /// Recent costs of peers, by the median of many answers: seconds until one begins, and bytes
    /// per second; `None` if the answers are too few.
    pub(crate) fn costs(&self) -> Option<(f64, f64)> {
        let answers = lock(&self.answers);
        let first_byte_s = median(answers.iter().map(|answer| answer.0).collect())?;
        Some((first_byte_s, median(answers.iter().filter_map(|answer| answer.1).collect())?))
    }

    fn of(&self, object: &str) -> Vec<Arc<Peer>> {
        let peers = lock(&self.by_object).get(object).cloned().unwrap_or_default();
        peers.into_iter().filter(|peer| lock(&peer.state).is_usable(object)).collect()
    }

    /// Whether any peer of an object may be tried.
    pub(crate) fn any(&self, object: &str) -> bool {
        !self.of(object).is_empty()
    }

    pub(crate) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.notes))
    }

    /// Fetch cells from peers, as far as they have them and that takes less than the store, which
    /// is predicted to take `store_s` for all. Returns the traffic.
    pub(crate) fn get(&self, cells: &Cells, mut numbers: Vec<u64>, store_s: f64) -> TrafficCount {
        let name = &cells.object().name;
        let each_s = store_s / numbers.len().max(1) as f64;
        // As much as stays until it is read.
        let room = cells.limit() / YOUNG / CELL_BYTES;
        numbers.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        let pays =
            |peer: &Peer, cells: usize| lock(&peer.state).seconds(cells) < each_s * cells as f64;
        self.try_peers(&self.of(name), cells, numbers, None, pays)
    }

    /// Get cells from these peers until a moment, at any cost.
    pub(crate) fn pull(
        &self,
        cells: &Cells,
        numbers: Vec<u64>,
        peers: Vec<(String, String)>,
        until: Instant,
    ) -> TrafficCount {
        let name = &cells.object().name;
        let mut peers = self.peers_at(peers);
        peers.retain(|peer| lock(&peer.state).is_usable(name));
        self.try_peers(&peers, cells, numbers, Some(until), |_, _| true)
    }

    fn try_peers(
        &self,
        peers: &[Arc<Peer>],
        cells: &Cells,
        mut numbers: Vec<u64>,
        until: Option<Instant>,
        pays: impl Fn(&Peer, usize) -> bool,
    ) -> TrafficCount {
        let mut traffic = TrafficCount::default();
        let Some(client) = self.client.read().unwrap_or_else(PoisonError::into_inner).clone()
        else {
            return traffic;
        };
        let name = &cells.object().name;
        for peer in peers {
            if numbers.is_empty() {
                break;
            }
            if !pays(peer, numbers.len()) {
                continue;
            }
            let record_event = |level, name, fill: &dyn Fn(&mut Record<'_>)| {
                event(level, name, &Ids::default(), |record| {
                    fill(
                        record
                            .text("OBJECT", cells.object().display_name())
                            .text("PEER", &peer.url),
                    );
                });
            };
            record_event(Level::Usage, "PEER_START", &|_| {});
            let bytes_before = traffic.bytes;
            let (rest, fault) = peer.get(&client, cells, numbers, until, |answer| {
                traffic.requests += 1;
                if let Some(answer) = answer {
                    traffic.bytes += answer.bytes;
                    self.learn(answer);
                }
            });
            let bytes = traffic.bytes - bytes_before;
            match &fault {
                None => record_event(Level::Usage, "PEER_END", &|record| {
                    record.number("BYTES", bytes).text("RESULT", "ok");
                }),
                Some(fault) => record_event(Level::Error, "PEER_END", &|record| {
                    record.number("BYTES", bytes).text("RESULT", "error");
                    record.text("REASON", fault.reason());
                }),
            }
            numbers = rest;
            let mut state = lock(&peer.state);
            match fault {
                None | Some(Fault::Busy) => {}
                Some(Fault::Away) => state.away = Some(Instant::now()),
                Some(Fault::Wrong(why)) => {
                    if state.wrong.insert(name.clone()) {
                        lock(&self.notes).push(format!(
                            "{}: the worker at {} sent blocks that are wrong ({why}), and is not \
                             asked for it again; they were read from the store",
                            cells.object().url,
                            peer.url
                        ));
                    }
                }
            }
        }
        traffic
    }

    fn learn(&self, answer: &Answer) {
        let mut answers = lock(&self.answers);
        if answers.len() == ANSWERS {
            answers.pop_front();
        }
        answers.push_back((answer.first_byte_s, answer.bytes_per_s()));
    }
}

/// The middle one of some numbers.
fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}
