//! Room for a striped object: on each server for the part that it will have.

use crate::layout::Layout;
use crate::names::room_path;
use crate::question::ask_all;
use crate::server::Server;
use crate::striped_sink::StripedSink;
use crate::write_events::record_write;
use std::io;
use std::sync::Arc;
use swathe_store_api::{ObjectName, Room, Sink, StoreError};

/// The path of an object at a URL, and its layout if it has so many bytes.
pub(crate) type LayoutOf = Box<dyn Fn(&str, u64) -> Result<(String, Layout), StoreError> + Send>;

pub(crate) struct StripedRoom {
    /// The name of the store.
    stripe: String,
    servers: Vec<Arc<Server>>,
    layout_of: LayoutOf,
    url: String,
    /// Of the parts, in their order.
    rooms: Vec<Box<dyn Room>>,
}

impl StripedRoom {
    /// Room for an object of the named store, of `bytes` bytes: on all servers of its parts, or on none.
    pub(crate) fn create(
        servers: &[Arc<Server>],
        (stripe, url): (String, &str),
        bytes: u64,
        layout_of: LayoutOf,
    ) -> Result<StripedRoom, StoreError> {
        let (path, layout) = layout_of(url, bytes)?;
        let path = room_path(&path);
        let places = &servers[..layout.parts() as usize];
        let results = ask_all(places, move |part, server| {
            server.reserve(&path, layout.part_bytes(part as u32).max(1))
        });
        let rooms = servers
            .iter()
            .zip(results)
            .map(|(server, result)| result.map_err(|error| error_of(server, url, error)));
        let rooms = rooms.collect::<Result<_, _>>()?;
        let (servers, url) = (servers.to_vec(), url.to_string());
        Ok(StripedRoom { stripe, servers, layout_of, url, rooms })
    }
}

/// The error of an object for that of a server, which it names.
fn error_of(server: &Arc<Server>, url: &str, error: StoreError) -> StoreError {
    let (url, why) = (url.to_string(), format!("server {}", server.message(&error)));
    match error {
        StoreError::Io { source, .. } => {
            StoreError::Io { url, source: io::Error::new(source.kind(), why) }
        }
        StoreError::Unsupported { .. } => StoreError::Unsupported { url, why },
        StoreError::Forbidden { .. } => StoreError::Forbidden { url, why: format!(": {why}") },
        StoreError::Interrupted { .. } => StoreError::Interrupted { url },
        _ => StoreError::Network { url, why },
    }
}

impl Room for StripedRoom {
    fn grow(&mut self, bytes: u64) -> Result<(), StoreError> {
        let (_, layout) = (self.layout_of)(&self.url, bytes)?;
        for (part, (room, server)) in self.rooms.iter_mut().zip(&self.servers).enumerate() {
            let result = room.grow(layout.part_bytes(part as u32));
            result.map_err(|error| error_of(server, &self.url, error))?;
        }
        Ok(())
    }

    fn fill(
        self: Box<Self>,
        object: ObjectName<'_>,
        size: u64,
        _in_parts: bool,
    ) -> Result<Box<dyn Sink>, StoreError> {
        let (path, layout) = (self.layout_of)(object.url, size)?;
        let (url, label) = (object.url.to_string(), object.qualified_name.unwrap_or(object.url));
        let StripedRoom { stripe, servers, rooms, .. } = *self;
        record_write(&stripe, label, || {
            Ok(Box::new(StripedSink::create(&servers, &path, url, layout, rooms)?))
        })
    }
}
