//! Striped stores: the parts of each object over several servers, with parity, so that they are as
//! fast as their sum and outlive any one of them.
//!
//! Where a byte lies is a pure mapping (`layout`). Parts and records are plain objects of other
//! stores (`names`, `record_format`), so any store can be a server of a stripe. See
//! `docs/design/027-stripes.md`.
#![warn(missing_docs)]

mod combined_costs;
mod foreign_records;
mod hedge;
mod layout;
mod leftovers;
mod listing;
mod liveness;
mod marks;
mod minority;
mod names;
mod object;
mod object_records;
mod parity;
mod part;
mod part_costs;
mod part_fetch;
mod part_writer;
mod question;
mod read_events;
mod rebuild;
mod record_format;
mod repair_progress;
mod reports;
mod server;
mod server_places;
mod server_record;
mod server_reports;
mod shards;
mod striped_copy;
mod striped_read;
mod striped_room;
mod striped_sink;
mod striped_source;
mod striped_store;
mod sums;
mod threads;
mod upkeep;
mod window;
mod write_events;

use std::sync::Arc;
use swathe_store_api::{Store, StoreSettings, Stores};

pub use repair_progress::RepairProgress;
pub use reports::{
    HedgeReport, Leftover, ObjectReport, PieceReport, PieceState, RepairFailure, RepairReport,
    ServerReport, ServerState,
};
pub use upkeep::Upkeep;

/// The stores that are described, striped ones among them, and those of all other objects.
pub fn stores(settings: Vec<StoreSettings>) -> Stores {
    Stores::new(settings, connect)
}

/// The store with these settings, of the kind that its root implies; see [`swathe_store::connect`].
pub fn connect(settings: StoreSettings) -> Arc<dyn Store> {
    if settings.scheme() == striped_store::SCHEME {
        return Arc::new(striped_store::StripedStore::new(settings, swathe_store::connect));
    }
    swathe_store::connect(settings)
}

#[cfg(test)]
mod proof_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
