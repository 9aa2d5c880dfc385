//! Connections of clients that are not authorised yet.
//!
//! A client with the token sends it with its first request: over a long way some round trips later,
//! and by then it may have opened a connection for each request that it wants in flight. So an
//! address has no limit of its own. If all addresses together have too many, the address with most
//! connections loses its oldest.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use tokio::task::AbortHandle;

/// Limit for all addresses.
const MOST: usize = 256;

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
        if open.len() > MOST
            && let Some(client) = first_of_most(open).and_then(|at| open.remove(at))
        {
            client.task.abort();
        }
    }

    /// Note that who is at the other end is known now.
    pub(super) fn remove(&self, number: u64) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.open.retain(|client| client.number != number);
    }
}

/// The place of the oldest connection of the address that has most; the older one's, if two have.
fn first_of_most(open: &VecDeque<UnknownClient>) -> Option<usize> {
    let mut of_address: HashMap<IpAddr, (usize, usize)> = HashMap::new();
    for (at, client) in open.iter().enumerate() {
        of_address.entry(client.address).or_insert((0, at)).0 += 1;
    }
    let most = of_address.into_values().max_by_key(|&(count, first)| (count, usize::MAX - first));
    most.map(|(_, first)| first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_may_open_many_and_who_floods_loses_its_own() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let clients = UnknownClients::default();
        let admit = |address: [u8; 4]| {
            let task = runtime.spawn(std::future::pending::<()>()).abort_handle();
            clients.admit(address.into(), |_| task.clone());
            task
        };
        let mut reader: Vec<AbortHandle> = (0..64).map(|_| admit([10, 0, 0, 1])).collect();
        let mut flood: Vec<AbortHandle> = (0..300).map(|_| admit([10, 0, 0, 2])).collect();
        reader.extend((0..8).map(|_| admit([10, 0, 0, 1])));
        runtime.block_on(async {
            // Each lets some of the tasks notice that they were aborted.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        });
        assert!(reader.iter().all(|task| !task.is_finished()));
        let rest = flood.split_off(flood.len() - (MOST - reader.len()));
        assert!(flood.iter().all(AbortHandle::is_finished));
        assert!(rest.iter().all(|task| !task.is_finished()));
    }
}
