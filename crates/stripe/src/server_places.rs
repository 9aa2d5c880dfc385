//! Whether the servers of a store are there, and apart from each other.

use crate::question::{ask_all, majority, present};
use crate::server::{Server, known_stripe};
use std::sync::Arc;
use swathe_store_api::{Space, StoreError};

/// Let the folders of servers be made that do not exist, if the store is new.
pub(crate) fn allow_new_folders(servers: &[Arc<Server>]) {
    new_servers(servers).iter().for_each(|server| server.allow_new_folder());
}

/// Whether folders of servers do not exist because the store is new, as far as can be seen.
pub(crate) fn is_new(servers: &[Arc<Server>]) -> bool {
    !new_servers(servers).is_empty()
}

/// What to say of a new store whose servers are all folders of this machine that do not exist.
pub(crate) fn without_folders(servers: &[Arc<Server>]) -> Option<String> {
    let lacks_folder =
        |server: &Arc<Server>| matches!(server.check_presence(), Err(StoreError::NotFound { .. }));
    (known_stripe(servers).is_none() && servers.iter().all(lacks_folder)).then(|| {
        ": no folder of its servers exists; mount their disks, or, if the store is new, write to it"
            .to_string()
    })
}

/// The servers whose folders do not exist, if the store is new: all other servers say that they have
/// no object.
fn new_servers(servers: &[Arc<Server>]) -> Vec<Arc<Server>> {
    if known_stripe(servers).is_some() {
        return Vec::new();
    }
    let all = servers;
    let servers = &servers_present(servers);
    // A folder that cannot be looked at is an error when its server is written to.
    let lacks = ask_all(servers, |_, server| matches!(server.had_folder(), Ok(false)));
    // One that is away may have objects.
    if !lacks.contains(&true) || servers.len() < all.len() {
        return Vec::new();
    }
    let some = |is_absent: bool| -> Vec<Arc<Server>> {
        let each = servers.iter().zip(&lacks).filter(|(_, lacks)| **lacks == is_absent);
        each.map(|(server, _)| server.clone()).collect()
    };
    let (absent, others) = (some(true), some(false));
    let are_empty = ask_all(&others, |_, server| matches!(server.has_files(), Ok(false)));
    if are_empty.contains(&false) { Vec::new() } else { absent }
}

/// The servers that did not fail a moment ago, if they are a majority; else all.
fn servers_present(servers: &[Arc<Server>]) -> Vec<Arc<Server>> {
    present(servers, majority(servers.len())).into_iter().map(|(_, server)| server).collect()
}

/// Of each server the first other one that is known to be the same place: the same path on the same
/// disks, or one within the other.
pub(crate) fn same_places(servers: &[Arc<Server>], spaces: &[Option<Space>]) -> Vec<Option<usize>> {
    let is_same = |one: usize, other: usize| {
        let (Some(ours), Some(theirs)) = (&spaces[one], &spaces[other]) else { return false };
        let is_shared = ours.disks.iter().any(|disk| {
            !disk.id.is_empty() && theirs.disks.iter().any(|their| their.id == disk.id)
        });
        let (our_path, their_path) = (servers[one].path(), servers[other].path());
        is_shared && (our_path.starts_with(&their_path) || their_path.starts_with(&our_path))
    };
    let count = servers.len();
    (0..count).map(|one| (0..count).find(|&other| other != one && is_same(one, other))).collect()
}

/// Refuse a store with two servers that are one place; whether all servers said what they are.
pub(crate) fn refuse_same_places(servers: &[Arc<Server>], url: &str) -> Result<bool, StoreError> {
    let is_remote = |server: &&Arc<Server>| !server.store().is_local();
    let count = servers.iter().filter(is_remote).count();
    if count < 2 {
        return Ok(true);
    }
    let servers = servers_present(servers);
    let remote: Vec<_> = servers.iter().filter(is_remote).cloned().collect();
    let results = ask_all(&remote, |_, server| server.space());
    let are_all_known = remote.len() == count && results.iter().all(Result::is_ok);
    // A server that does not say it now is compared before the next write.
    let spaces: Vec<_> = results.into_iter().map(|result| result.ok().flatten()).collect();
    let places = same_places(&remote, &spaces);
    let twice = places.iter().enumerate().find_map(|(one, other)| Some((one, (*other)?)));
    match twice {
        None => Ok(are_all_known),
        Some((one, other)) => Err(StoreError::Unsupported {
            url: url.to_string(),
            why: format!(
                "expected servers apart from each other, found {} and {}, which are the same disks; \
                 add the striped store again with one of them",
                remote[one].name, remote[other].name
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use swathe_store_api::{DiskSpace, StoreSettings};

    #[test]
    fn the_same_path_on_the_same_disks_is_one_place() {
        let server = |url: &str| {
            let settings = StoreSettings::new("s".into(), url.into(), BTreeMap::new());
            Arc::new(Server::new(swathe_store::connect(settings), ""))
        };
        let space = |ids: &[&str]| {
            let disk = |id: &&str| DiskSpace {
                id: id.to_string(),
                name: "d".into(),
                is_up: true,
                free_bytes: 1,
                total_bytes: 2,
            };
            Some(Space::of_disks(ids.iter().map(disk).collect()))
        };
        for (expected, one, other, ids) in [
            (Some(1), "dav://127.0.0.1:8430/dup", "dav://localhost:8430/dup", ["1", "2"]),
            (Some(1), "dav://127.0.0.1:8430", "dav://localhost:8430/dup", ["1", "2"]),
            (None, "dav://127.0.0.1:8430/dup", "dav://localhost:8430/dup-2", ["1", "2"]),
            (None, "dav://127.0.0.1:8430/dup", "dav://localhost:8431/dup", ["3", "4"]),
            (None, "dav://127.0.0.1:8430/dup", "dav://localhost:8431/dup", ["", ""]),
        ] {
            let servers = [server(one), server(other)];
            let places = same_places(&servers, &[space(&["1", ""]), space(&ids)]);
            assert_eq!(places[0], expected, "{one} {other}");
            assert_eq!(same_places(&servers, &[space(&["1"]), None]), [None, None]);
        }
    }
}
