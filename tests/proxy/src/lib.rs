//! A TCP proxy for the tests and benches: latency, bandwidth and faults between a client and a
//! real server on one machine.
//!
//! What it models, in the order in which bytes meet it:
//!
//! - *Round trip.* Bytes of either direction come out half a round trip after they went in, as in
//!   a pipeline: what is under way does not wait for what went before. At most 16 MiB per
//!   connection and direction are under way, as with a large TCP window. The kernel accepts
//!   connections at once, so the round trip that connecting costs is added to the first bytes of
//!   the client: none leave earlier than one round trip after the connection was accepted.
//! - *Bandwidth*, downstream: of each connection, and of one link that all connections share in
//!   turns of a quarter of a millisecond; upstream: of one link that all share. Never more than the rate since the link began to send;
//!   idle time is not saved up.
//! - *Window*, downstream, if there is one: of each connection at most so many bytes are sent within
//!   a round trip, as by a sender or a receiver whose TCP buffer is small.
//! - *Faults*, one per HTTP request at most, drawn from a seeded generator: the n-th request gets
//!   the same fate in every run. Faults in the middle of a body need a `Content-Length`; others
//!   (chunked, until close) pass whole. Requests of one connection are answered one after another.
//!
//! Bytes that are not HTTP/1 (the XRootD protocol, TLS) pass with latency and bandwidth, without
//! faults.
//!
//! Threads and blocking sockets of the standard library only, four threads per connection: sleeps
//! are good to some 10 µs, which timers of an async runtime (1 ms) are not.

mod connection;
mod exchange;
mod http;
mod link;
mod pipe;
mod settings;
mod stats;
mod system;
mod window;

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, RwLock};
use std::{io, thread};

pub use settings::Settings;
pub use stats::Stats;

use settings::Generator;

/// What all connections share.
pub(crate) struct ProxyState {
    settings: RwLock<Settings>,
    generator: Mutex<Generator>,
    link: link::Link,
    upload: link::Link,
    stats: Stats,
}

impl ProxyState {
    fn settings(&self) -> Settings {
        *self.settings.read().unwrap()
    }
}

/// A proxy that runs until the process ends.
pub struct Proxy {
    address: SocketAddr,
    state: Arc<ProxyState>,
}

impl Proxy {
    /// Listens on a port of 127.0.0.1 (0: a free one) and forwards to `upstream`.
    ///
    /// # Errors
    /// When the port is taken.
    pub fn start(port: u16, upstream: String, settings: Settings) -> io::Result<Self> {
        system::wake_on_time();
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        let address = listener.local_addr()?;
        let state = Arc::new(ProxyState {
            generator: Mutex::new(Generator::new(settings.seed)),
            settings: RwLock::new(settings),
            link: link::Link::new(),
            upload: link::Link::new(),
            stats: Stats::new(),
        });
        let of_thread = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (state, upstream) = (Arc::clone(&of_thread), upstream.clone());
                thread::spawn(move || connection::run(&state, client, &upstream));
            }
        });
        Ok(Self { address, state })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What went through so far.
    pub fn stats(&self) -> &Stats {
        &self.state.stats
    }

    /// Changes a setting for bytes and requests from now on.
    ///
    /// # Errors
    /// A sentence, when there is no such setting or it does not take the value.
    pub fn set(&self, name: &str, value: &str) -> Result<(), String> {
        let mut settings = self.state.settings.write().unwrap();
        settings.set(name, value)?;
        if name == "seed" {
            *self.state.generator.lock().unwrap() = Generator::new(settings.seed);
        }
        Ok(())
    }
}
