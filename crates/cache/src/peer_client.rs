//! Fetches blocks from the other workers of a pool, if that should take less than the store.
//!
//! A peer's answer is never data by itself: it is checked as a file of the own disk cache is
//! (object, version and cell, length, checksum), stored there, and read from there.

use crate::cell::{CELL_BYTES, Cells};
use crate::peer_server::{IDLE, MOST_CELLS, MOST_FILE_BYTES};
use crate::tls::Identity;
use bytes::{Buf, Bytes, BytesMut};
use futures_util::stream::{self, StreamExt};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};
use swathe_disk_cache::{YOUNG, digest};
use swathe_net::connect_events::{self, TraceConnects};
use swathe_net::{host, net};
use swathe_store_api::{StoreError, TrafficCount};
use swathe_trace::{Ids, Level, Record, Scope, event, is_on};
use tokio::sync::mpsc;
use tokio::time::{timeout, timeout_at};

/// A peer that takes longer to accept a connection is away.
const CONNECT: Duration = Duration::from_millis(500);
/// So is one that sends nothing for so long,
const SILENCE: Duration = Duration::from_secs(1);
/// or takes longer for all of an answer.
const WHOLE: Duration = Duration::from_secs(5);
/// A peer that is away is not tried for this time.
const AWAY_PAUSE: Duration = Duration::from_secs(30);
/// Older measurements do not count: a peer that was slow once would never be tried again.
const MEASUREMENT_AGE: Duration = Duration::from_secs(60);
/// Requests to a peer at the same time.
const STREAMS: usize = 2;
/// Peers that are tried for the same object, one after the other.
const MOST_PEERS: usize = 3;
/// Default costs of a peer: seconds until it answers, bytes per second.
const DEFAULT_COSTS: (f64, f64) = (0.001, 100e6);
/// How much the last answer counts, of all.
const WEIGHT: f64 = 0.2;
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
    /// Of the last answers: seconds until it began, and bytes per second if it was long.
    answers: Mutex<VecDeque<(f64, Option<f64>)>>,
}

/// Another worker.
#[derive(Debug)]
struct Peer {
    url: String,
    token: String,
    state: Mutex<State>,
}

/// The state of a peer.
#[derive(Debug)]
struct State {
    away: Option<Instant>,
    /// Of these objects it gave something wrong.
    wrong: HashSet<String>,
    measured_at: Instant,
    first_byte_s: f64,
    bytes_per_s: f64,
    cell_bytes: f64,
}

/// Why a peer gave nothing, or nothing that can be used.
enum Fault {
    Away,
    Busy,
    Wrong(String),
}

impl Fault {
    fn reason(&self) -> &str {
        match self {
            Fault::Away => "it does not answer",
            Fault::Busy => "it is busy",
            Fault::Wrong(why) => why,
        }
    }
}

/// The answer of a peer: cells, each with its file if the peer has it; and its duration.
struct Answer {
    files: Vec<(u64, Option<Bytes>)>,
    bytes: u64,
    first_byte_s: f64,
    seconds: f64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Get cells from these peers whatever that costs, until a moment.
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

impl Answer {
    /// Its bandwidth, once it had begun; `None` if it is too short to measure.
    fn bytes_per_s(&self) -> Option<f64> {
        let streaming_s = self.seconds - self.first_byte_s;
        (self.bytes >= CELL_BYTES && streaming_s > 0.0).then(|| self.bytes as f64 / streaming_s)
    }
}

impl State {
    fn new() -> State {
        let (first_byte_s, bytes_per_s) = DEFAULT_COSTS;
        State {
            away: None,
            wrong: HashSet::new(),
            measured_at: Instant::now(),
            first_byte_s,
            bytes_per_s,
            cell_bytes: CELL_BYTES as f64,
        }
    }

    fn is_away(&self) -> bool {
        self.away.is_some_and(|since| since.elapsed() < AWAY_PAUSE)
    }

    /// Whether the state must stay recorded: the peer is away, or was wrong.
    fn is_of_use(&self) -> bool {
        self.is_away() || !self.wrong.is_empty()
    }

    fn is_usable(&self, object: &str) -> bool {
        !self.is_away() && !self.wrong.contains(object)
    }

    /// Predicted seconds for a number of cells.
    fn seconds(&mut self, cells: usize) -> f64 {
        self.forget();
        let rounds = cells.div_ceil(MOST_CELLS * STREAMS) as f64;
        rounds * self.first_byte_s + cells as f64 * self.cell_bytes / self.bytes_per_s
    }

    /// The same of one request for a part of a cell, or some whole ones.
    fn some_s(&mut self, cells: f64) -> f64 {
        self.forget();
        self.first_byte_s + cells * CELL_BYTES as f64 / self.bytes_per_s
    }

    /// Drop measurements that are too old.
    fn forget(&mut self) {
        if self.measured_at.elapsed() > MEASUREMENT_AGE {
            let (away, wrong) = (self.away, std::mem::take(&mut self.wrong));
            *self = State { away, wrong, ..State::new() };
        }
    }

    fn learn(&mut self, answer: &Answer) {
        let average = |mean: &mut f64, sample: f64| *mean += WEIGHT * (sample - *mean);
        self.measured_at = Instant::now();
        average(&mut self.first_byte_s, answer.first_byte_s);
        let count = answer.files.iter().filter(|(_, file)| file.is_some()).count();
        if count > 0 {
            average(&mut self.cell_bytes, answer.bytes as f64 / count as f64);
        }
        if let Some(bytes_per_s) = answer.bytes_per_s() {
            average(&mut self.bytes_per_s, bytes_per_s);
        }
    }
}

impl Peer {
    fn new(url: String, token: String) -> Peer {
        Peer { url, token, state: Mutex::new(State::new()) }
    }

    /// Store the cells that a peer sends until a deadline; returns those
    /// that are still missing, and why the fetch stopped early. Each answer goes to `on_answer`.
    fn get(
        self: &Arc<Peer>,
        client: &Client,
        cells: &Cells,
        numbers: Vec<u64>,
        until: Option<Instant>,
        mut on_answer: impl FnMut(Option<&Answer>),
    ) -> (Vec<u64>, Option<Fault>) {
        let Ok(net) = net() else { return (numbers, None) };
        let groups: Vec<Vec<(u64, u128)>> = numbers
            .chunks(MOST_CELLS)
            .map(|group| group.iter().map(|&cell| (cell, digest(&cells.key(cell)))).collect())
            .collect();
        let (sender, mut receiver) = mpsc::channel(1);
        let (peer, client, scope) = (self.clone(), client.clone(), Scope::current());
        net.runtime.spawn(async move {
            let requests = groups.into_iter().map(|group| peer.request(&client, group, &scope));
            let mut answers = stream::iter(requests).buffered(STREAMS);
            let all = async {
                while let Some(answer) = answers.next().await {
                    let is_last = answer.is_err();
                    if sender.send(answer).await.is_err() || is_last {
                        break;
                    }
                }
            };
            match until {
                Some(until) => _ = timeout_at(until.into(), all).await,
                None => all.await,
            }
        });
        let mut missing: HashSet<u64> = numbers.iter().copied().collect();
        let mut fault = None;
        while let Some(answer) = receiver.blocking_recv() {
            on_answer(answer.as_ref().ok());
            match answer {
                Err(error) => fault = Some(error),
                Ok(answer) => {
                    lock(&self.state).learn(&answer);
                    for (number, file) in answer.files {
                        let Some(file) = file else { continue };
                        match cells.adopt(number, file) {
                            Some(()) => _ = missing.remove(&number),
                            None => fault = Some(Fault::Wrong(format!("block {number}"))),
                        }
                    }
                }
            }
            if fault.is_some() {
                break;
            }
        }
        (numbers.into_iter().filter(|cell| missing.contains(cell)).collect(), fault)
    }

    /// One request.
    async fn request(
        &self,
        client: &Client,
        group: Vec<(u64, u128)>,
        scope: &Scope,
    ) -> Result<Answer, Fault> {
        let mut about = Ids::default();
        if is_on() {
            about.push("PEER", &self.url);
        }
        let answer = connect_events::traced(&about, scope, 0, self.answer(client, group));
        timeout(WHOLE, answer).await.unwrap_or(Err(Fault::Away))
    }

    async fn answer(&self, client: &Client, group: Vec<(u64, u128)>) -> Result<Answer, Fault> {
        let digests: Vec<String> =
            group.iter().map(|(_, digest)| format!("{digest:032x}")).collect();
        let url = format!("{}/blocks/{}", self.url, digests.join(","));
        let began = Instant::now();
        connect_events::set_server(|| {
            Url::parse(&self.url).map(|url| host(&url)).unwrap_or_default()
        });
        let request = client.get(url).bearer_auth(&self.token).send();
        let result = timeout(SILENCE, request).await;
        let response = result.ok().and_then(Result::ok).ok_or(Fault::Away)?;
        let first_byte_s = began.elapsed().as_secs_f64();
        match response.status() {
            StatusCode::OK => {}
            StatusCode::SERVICE_UNAVAILABLE => return Err(Fault::Busy),
            StatusCode::UNAUTHORIZED => return Err(Fault::Wrong("it does not know us".into())),
            status => return Err(Fault::Wrong(format!("status {}", status.as_u16()))),
        }
        let mut body = Body { response, buffer: BytesMut::new() };
        let mut files = Vec::with_capacity(group.len());
        let mut bytes = 0;
        for (number, _) in group {
            let length = u64::from(body.take(4).await?.get_u32_le());
            if length > MOST_FILE_BYTES {
                return Err(Fault::Wrong(format!("block {number} of {length} bytes")));
            }
            bytes += length;
            let file = if length == 0 { None } else { Some(body.take(length as usize).await?) };
            files.push((number, file));
        }
        if !body.is_over().await? {
            return Err(Fault::Wrong("more than was asked for".into()));
        }
        Ok(Answer { files, bytes, first_byte_s, seconds: began.elapsed().as_secs_f64() })
    }
}

/// The body of an answer, as it arrives.
struct Body {
    response: Response,
    buffer: BytesMut,
}

impl Body {
    async fn take(&mut self, length: usize) -> Result<Bytes, Fault> {
        while self.buffer.len() < length {
            let chunk = self.chunk().await?;
            self.buffer.extend_from_slice(&chunk.ok_or(Fault::Wrong("it ends too soon".into()))?);
        }
        Ok(self.buffer.split_to(length).freeze())
    }

    async fn is_over(&mut self) -> Result<bool, Fault> {
        Ok(self.buffer.is_empty() && self.chunk().await?.is_none())
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, Fault> {
        let chunk = timeout(SILENCE, self.response.chunk()).await;
        chunk.ok().and_then(Result::ok).ok_or(Fault::Away)
    }
}
