//! A server of files over several disks, by HTTP and WebDAV: `swathe stripe serve`.
//!
//! An object lies whole on one disk, with checksums of its blocks beside it; the disks have queues
//! and threads of their own. The design is in `docs/design/028-block-server.md`.
#![warn(missing_docs)]

mod access;
mod block_sums;
mod byte_ranges;
mod conditions;
mod copy_object;
mod disk;
mod disk_queue;
mod disks;
mod error;
mod file_names;
mod folder;
mod get;
mod identity;
mod lateness;
mod metrics;
mod names;
mod new_object;
mod object_file;
mod object_path;
mod object_time;
mod own_folder;
mod placement;
mod put;
mod request_record;
mod reserve;
mod rooms;
mod service;
mod space;
mod start;
#[cfg(test)]
mod testing;
mod twins;

pub use access::Tokens;
pub use error::StartError;
use service::BlockService;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use swathe_net::server::{Limits, Server, server_tls};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// Limits of connections. The headers of a request have a lower limit than its buffer: bodies come
/// through that too.
const LIMITS: Limits = Limits { connections: 1024, request_bytes: 256 << 10, life: None };

/// What is served, and where.
#[derive(Debug)]
pub struct Settings {
    /// Folders of the disks.
    pub disks: Vec<PathBuf>,
    /// Disks that the others know, and that are given up with all that lies on them.
    pub forget: Vec<PathBuf>,
    /// Most bytes of objects on each disk.
    pub max_bytes: Option<u64>,
    /// Address and port; port 0: any that is free.
    pub address: IpAddr,
    /// See `address`.
    pub port: u16,
    /// The tokens.
    pub tokens: Tokens,
    /// Certificate and key, for TLS.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// A server that runs.
pub struct BlockServer {
    server: Arc<Server<BlockService>>,
    runtime: Runtime,
    address: SocketAddr,
    missing: Vec<String>,
}

impl BlockServer {
    /// Start to serve.
    ///
    /// # Errors
    /// If a disk that no other knows, the address or the certificate cannot be used.
    pub fn start(settings: Settings) -> Result<BlockServer, StartError> {
        let tls = settings.certificate.map(|(certificate, key)| server_tls(&certificate, &key));
        let tls = tls.transpose().map_err(|why| StartError::Certificate { why })?;
        let disks = start::disks(&settings.disks, &settings.forget, settings.max_bytes)?;
        let missing = disks.all.iter().filter_map(|disk| disk.check_present().err());
        let missing = missing.map(|error| error.to_string()).collect();
        let runtime = Builder::new_multi_thread()
            .thread_name("swathe-server")
            .enable_all()
            .build()
            .map_err(StartError::Threads)?;
        let address = SocketAddr::new(settings.address, settings.port);
        let fail = |error: std::io::Error| StartError::Listen {
            address: address.to_string(),
            why: error.to_string(),
        };
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let disks = Arc::new(disks);
        let service = BlockService::new(disks.clone(), settings.tokens);
        runtime.spawn(lateness::watch(service.counts.clone()));
        let server = Arc::new(Server::new(service, LIMITS, tls));
        runtime.spawn(server.clone().open(listener));
        runtime.spawn(twins::watch(disks));
        Ok(BlockServer { server, runtime, address, missing })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Messages about the disks that were missing at the start.
    pub fn missing_disks(&self) -> &[String] {
        &self.missing
    }

    /// Take no more requests and wait for the answers that are under way; returns whether all were
    /// sent within the limit.
    pub fn drain(&self, limit: Duration) -> bool {
        self.runtime.block_on(self.server.drain(limit))
    }
}
