//! A worker of the pool that is asked for blocks: how it is doing, and how it answers.

use crate::cell::{CELL_BYTES, Cells};
use crate::peer_server::{MOST_CELLS, MOST_FILE_BYTES};
use bytes::{Buf, Bytes, BytesMut};
use futures_util::stream::{self, StreamExt};
use reqwest::{Client, Response, StatusCode, Url};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use swathe_disk_cache::digest;
use swathe_net::connect_events;
use swathe_net::{host, net};
use swathe_trace::{Ids, Scope, is_on};
use tokio::sync::mpsc;
use tokio::time::{timeout, timeout_at};

/// A peer that takes longer to accept a connection is away.
pub(crate) const CONNECT: Duration = Duration::from_millis(500);
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
/// Default costs of a peer: seconds until it answers, bytes per second.
const DEFAULT_COSTS: (f64, f64) = (0.001, 100e6);
/// How much the last answer counts, of all.
const WEIGHT: f64 = 0.2;

/// Another worker.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) url: String,
    pub(crate) token: String,
    pub(crate) state: Mutex<PeerState>,
}

/// The state of a peer.
#[derive(Debug)]
pub(crate) struct PeerState {
    pub(crate) away: Option<Instant>,
    /// Objects for which the worker sent wrong blocks.
    pub(crate) wrong: HashSet<String>,
    measured_at: Instant,
    first_byte_s: f64,
    bytes_per_s: f64,
    cell_bytes: f64,
}

/// Why a peer gave nothing, or nothing that can be used.
pub(crate) enum Fault {
    Away,
    Busy,
    Wrong(String),
}

impl Fault {
    pub(crate) fn reason(&self) -> &str {
        match self {
            Fault::Away => "it does not answer",
            Fault::Busy => "it is busy",
            Fault::Wrong(why) => why,
        }
    }
}

/// The answer of a peer: cells, each with its file if the peer has it; and its duration.
pub(crate) struct Answer {
    files: Vec<(u64, Option<Bytes>)>,
    pub(crate) bytes: u64,
    pub(crate) first_byte_s: f64,
    seconds: f64,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Answer {
    /// Its bandwidth, once it had begun; `None` if it is too short to measure.
    pub(crate) fn bytes_per_s(&self) -> Option<f64> {
        let streaming_s = self.seconds - self.first_byte_s;
        (self.bytes >= CELL_BYTES && streaming_s > 0.0).then(|| self.bytes as f64 / streaming_s)
    }
}

impl PeerState {
    fn new() -> PeerState {
        let (first_byte_s, bytes_per_s) = DEFAULT_COSTS;
        PeerState {
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
    pub(crate) fn is_of_use(&self) -> bool {
        self.is_away() || !self.wrong.is_empty()
    }

    pub(crate) fn is_usable(&self, object: &str) -> bool {
        !self.is_away() && !self.wrong.contains(object)
    }

    /// Predicted seconds for a number of cells.
    pub(crate) fn seconds(&mut self, cells: usize) -> f64 {
        self.forget();
        let rounds = cells.div_ceil(MOST_CELLS * STREAMS) as f64;
        rounds * self.first_byte_s + cells as f64 * self.cell_bytes / self.bytes_per_s
    }

    /// The same of one request for a part of a cell, or some whole ones.
    pub(crate) fn some_s(&mut self, cells: f64) -> f64 {
        self.forget();
        self.first_byte_s + cells * CELL_BYTES as f64 / self.bytes_per_s
    }

    /// Drop measurements that are too old.
    fn forget(&mut self) {
        if self.measured_at.elapsed() > MEASUREMENT_AGE {
            let (away, wrong) = (self.away, std::mem::take(&mut self.wrong));
            *self = PeerState { away, wrong, ..PeerState::new() };
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
    pub(crate) fn new(url: String, token: String) -> Peer {
        Peer { url, token, state: Mutex::new(PeerState::new()) }
    }

    /// Store the cells that a peer sends until a deadline; returns those
    /// that are still missing, and why the fetch stopped early. Each answer goes to `on_answer`.
    pub(crate) fn get(
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
        let answer = connect_events::trace(&about, scope, 0, self.answer(client, group));
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
