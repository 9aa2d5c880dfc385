//! What the servers of a store say of themselves.

use crate::marks::{WORK_MEMORY, admit_empty_servers, compare_marks};
use crate::names::{FileKind, kind_of};
use crate::question::{ask_all, majority};
use crate::reports::{ServerReport, ServerState};
use crate::server::{NO_ANSWER, Server, ServerItem, known_stripe};
use crate::server_places::same_places;
use crate::upkeep::Upkeep;
use std::sync::Arc;
use swathe_store_api::{Store, StoreError};

impl Upkeep {
    /// The servers of the store; with `count` what is on them.
    pub fn server_reports(&self, count: bool) -> Vec<ServerReport> {
        compare_marks(self.servers(), WORK_MEMORY);
        let all = self.servers().to_vec();
        let mut reports = ask_all(self.servers(), move |_, server| report_of(server, &all, count));
        let spaces: Vec<_> = reports.iter().map(|report| report.space.clone()).collect();
        let places = same_places(self.servers(), &spaces);
        for (report, place) in reports.iter_mut().zip(places) {
            report.same_as = place.map(|other| self.servers()[other].name.clone());
        }
        reports
    }

    /// The same of the server with a name only, without what is on it; `None`: there is no such one.
    pub fn server_report(&self, name: &str) -> Option<ServerReport> {
        let server = self.servers().iter().find(|server| server.name == name)?;
        compare_marks(self.servers(), WORK_MEMORY);
        Some(report_of(server, self.servers(), false))
    }

    /// The stripe of the store, which a catalogue may remember, if a majority of the servers says so.
    pub fn stripe(&self) -> Option<String> {
        compare_marks(self.servers(), WORK_MEMORY);
        let says_it = |server: &&Arc<Server>| server.is_ours() && !server.identity().is_new;
        let ours = self.servers().iter().filter(says_it).count();
        let is_sure = ours >= majority(self.servers().len());
        self.servers().first().and_then(|server| server.stripe()).filter(|_| is_sure)
    }

    /// Use the empty servers of the store from now on, and return their names.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] if too many servers are empty or away; as writing their marks has
    /// it.
    pub fn admit_empty_servers(&self) -> Result<Vec<String>, StoreError> {
        let url = self.0.display_url(&self.0.settings().root);
        let parity = self.0.layout(&url, "", 0)?.parity;
        admit_empty_servers(self.servers(), parity as usize, &url)
    }

    /// Ask the servers that failed a moment ago whether they are there, so that they take part again.
    pub fn ask_failed_servers(&self) {
        ask_all(self.servers(), |_, server| {
            if server.has_failed() {
                drop(server.answers());
            }
        });
    }
}

/// What a server says, beside the others of its store.
fn report_of(server: &Server, servers: &[Arc<Server>], count: bool) -> ServerReport {
    let (mut parts, mut records, mut bytes) = (0, 0, 0);
    let mut take = |item| {
        if let ServerItem::File(entry) = item {
            match kind_of(&entry.path) {
                FileKind::Part { .. } => parts += 1,
                FileKind::Record { .. } => records += 1,
                FileKind::Other => return Ok(()),
            }
            bytes += entry.size.unwrap_or(0);
        }
        Ok(())
    };
    let result = match is_missing(server, servers) {
        Ok(true) => Err(server.missing_folder()),
        Ok(false) if count => server.list("", &mut take),
        Ok(false) => server.answers().and_then(|()| server.check_stripe()),
        Err(error) => Err(error),
    };
    let state = match &result {
        Ok(()) => ServerState::Reachable,
        Err(StoreError::NotFound { .. }) => ServerState::Missing,
        Err(StoreError::Network { why, .. }) if why.starts_with(NO_ANSWER) => ServerState::Silent,
        Err(_) => ServerState::Unreachable,
    };
    // Also of a server with a missing disk, which cannot be listed.
    let is_there = !matches!(state, ServerState::Missing | ServerState::Silent);
    let space = if is_there { server.space() } else { Ok(None) };
    let (space, space_error) = match space {
        Ok(space) => (space, None),
        Err(error) => (None, Some(error.to_string())),
    };
    ServerReport {
        server: server.name.clone(),
        url: server.url(),
        is_reachable: result.is_ok(),
        state,
        why: result.err().map(|error| error.to_string()),
        same_as: None,
        parts,
        records,
        bytes,
        space,
        space_error,
    }
}

/// Whether the folder of a server does not exist, and the store is not new: another server has objects,
/// or its stripe is remembered.
fn is_missing(server: &Server, servers: &[Arc<Server>]) -> Result<bool, StoreError> {
    if server.has_folder()? {
        return Ok(false);
    }
    if known_stripe(servers).is_some() {
        return Ok(true);
    }
    let others: Vec<_> =
        servers.iter().filter(|other| other.name != server.name).cloned().collect();
    Ok(ask_all(&others, |_, other| matches!(other.has_files(), Ok(true))).contains(&true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repair_progress::RepairProgress;
    use crate::reports::PieceState;
    use crate::server::MARK_PATH;
    use crate::testing::{TestStripe, bytes_of};
    use std::fs;
    use std::path::PathBuf;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_server_that_hangs_is_left_out_and_named() {
        let stripe = TestStripe::new(3, 1, true);
        stripe.put("a", &bytes_of(50_000, 1), false).expect("written");
        stripe.behaviours[1].is_hanging.store(true, Ordering::Relaxed);
        let (names, notes) = stripe.list_with_notes("").expect("listed");
        assert_eq!(names, [("a".to_string(), Some(50_000))]);
        assert_eq!(notes, ["striped://wide/: listed without s1: no answer"]);
        let behaviours = stripe.behaviours.clone();
        let upkeep = Upkeep(stripe.store.clone());
        let report = upkeep.check(&TestStripe::url("a"), true).expect("checked");
        let states = |pieces: &[crate::reports::PieceReport]| -> Vec<PieceState> {
            pieces.iter().map(|piece| piece.state).collect()
        };
        let expected = [PieceState::Whole, PieceState::Unreachable, PieceState::Whole];
        assert_eq!(
            (states(&report.parts), states(&report.records)),
            (expected.into(), expected.into())
        );
        let states: Vec<_> = upkeep.server_reports(false).iter().map(|each| each.state).collect();
        assert_eq!(states, [ServerState::Reachable, ServerState::Silent, ServerState::Reachable]);
        assert!(upkeep.server_report("s0:").is_some_and(|report| report.is_reachable));
        assert!(upkeep.server_report("s9:").is_none());
        // Once it answers again, another may be lost.
        behaviours[2].is_dead.store(true, Ordering::Relaxed);
        behaviours[1].is_hanging.store(false, Ordering::Relaxed);
        upkeep.ask_failed_servers();
        assert_eq!(stripe.list("").expect("listed").len(), 1);
    }

    #[test]
    fn a_folder_that_is_gone_is_missing_and_not_made_again() {
        folders_are_not_made_again(&TestStripe::new(4, 1, false));
        folders_are_not_made_again(&TestStripe::new(4, 1, true));
    }

    fn folders_are_not_made_again(stripe: &TestStripe) {
        let folder = |number: usize| stripe.folder.path().join(format!("s{number}"));
        // A new store makes its folders.
        fs::remove_dir(folder(1)).expect("removed");
        stripe.put("a", &bytes_of(50_000, 1), false).expect("written");
        assert!(folder(1).is_dir());
        let upkeep = Upkeep(stripe.store.clone());
        let states = || -> Vec<ServerState> {
            upkeep.server_reports(true).iter().map(|report| report.state).collect()
        };
        fs::remove_dir_all(folder(2)).expect("removed");
        let (there, missing) = (ServerState::Reachable, ServerState::Missing);
        assert_eq!(states(), [there, there, missing, there]);
        let bytes = bytes_of(60_000, 2);
        stripe.put("b", &bytes, false).expect("written without it");
        assert!(!folder(2).exists() && stripe.get("b").expect("read") == bytes);
        let repair =
            upkeep.repair(&TestStripe::url("b"), false, &RepairProgress::default()).expect("tried");
        assert!(repair.failures.iter().any(|failure| failure.why.contains("mount its disk")));
        fs::remove_dir_all(folder(3)).expect("removed");
        assert_eq!(states(), [there, there, missing, missing]);
        let error = stripe.put("c", &bytes, false).expect_err("two of four").to_string();
        assert!(error.contains("3 of 4") && error.contains("found no"), "{error}");
        assert!(!folder(2).exists() && !folder(3).exists());
        // An empty folder may be a mount point; one with the mark is a new server.
        let ask_anew = || {
            stripe.store.servers.iter().for_each(|server| server.identity().compared_at = None);
        };
        [2, 3].iter().for_each(|&number| fs::create_dir(folder(number)).expect("made"));
        ask_anew();
        assert_eq!(states(), [there, there, missing, missing]);
        for number in [2, 3] {
            let copy = |to: PathBuf| fs::copy(folder(0).join(MARK_PATH), to.join(MARK_PATH));
            copy(folder(number)).expect("copied");
        }
        ask_anew();
        assert_eq!(states(), [there; 4]);
        stripe.put("c", &bytes, false).expect("written");
    }
}
