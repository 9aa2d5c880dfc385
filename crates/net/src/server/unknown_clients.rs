//! Connections of clients that are not authorised yet.
//!
//! A client with the token sends it within milliseconds. So if too many have not, the
//! one that is silent for longest goes: first of the address that has too many, then of others.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use tokio::task::AbortHandle;

/// Limit for one address.
const OF_ADDRESS: usize = 32;
/// Limit for all addresses.
const OF_ALL: usize = 256;

/// Open connections, the oldest first.
#[derive(Default)]
pub(super) struct UnknownClients(Mutex<Open>);

#[derive(Default)]
struct Open {
    next: u64,
    open: VecDeque<UnknownClient>,
}

struct UnknownClient {
    number: u64,
    address: IpAddr,
    task: AbortHandle,
}

impl UnknownClients {
    /// Admit a connection, which `serve` handles, and close another if that
    /// makes too many.
    pub(super) fn admit(&self, address: IpAddr, serve: impl FnOnce(u64) -> AbortHandle) {
        // Nobody is known before all this is noted.
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.next += 1;
        let number = open.next;
        let open = &mut open.open;
        open.retain(|client| !client.task.is_finished());
        open.push_back(UnknownClient { number, address, task: serve(number) });
        let of_address = open.iter().filter(|client| client.address == address).count();
        let oldest = if of_address > OF_ADDRESS {
            open.iter().position(|client| client.address == address)
        } else {
            (open.len() > OF_ALL).then_some(0)
        };
        if let Some(oldest) = oldest.and_then(|at| open.remove(at)) {
            oldest.task.abort();
        }
    }

    /// Note that who is at the other end is known now.
    pub(super) fn remove(&self, number: u64) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.open.retain(|client| client.number != number);
    }
}
