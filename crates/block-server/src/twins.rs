//! Twins: objects of one name on two disks. That may be if one was written while the disk of the other
//! was absent.
//!
//! The one that got its name later counts, by the time of its file. The older is set aside: it loses
//! its name, and stays in `.swathe/aside` of its disk. A disk notes which others are absent while
//! names on it change. When these are back, all their names are compared with its own; until then a
//! request looks on all disks.

use crate::disk::Disk;
use crate::disk_queue::LONGEST;
use crate::disks::{Disks, Look, NameLocks, Survey, look};
use crate::error::RequestError;
use crate::file_names::set_aside;
use crate::folder::{Entries, Item, list};
use crate::object_path::ObjectPath;
use crate::request_record::RequestRecord;
use futures_util::future::join_all;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::timeout;

/// Names that are compared at a time.
const NAMES: usize = 256;
/// The wait before a comparison that failed, or that waits for a disk that did not answer, is tried
/// again.
const PAUSE: Duration = Duration::from_secs(5);

/// A name that changes.
pub(crate) struct NameChange {
    /// What all disks had before it.
    pub(crate) survey: Survey,
    /// How often disks had come when it began.
    arrivals: u64,
}

/// Compare the names of disks that come back, for ever.
pub(crate) async fn watch(disks: Arc<Disks>) {
    loop {
        let arrivals = disks.group.arrivals.load(Ordering::Acquire);
        if !disks.is_consistent() {
            disks.must_compare.store(false, Ordering::Release);
            match disks.compare_all().await {
                Ok(()) => disks.compared_arrivals.store(arrivals, Ordering::Release),
                Err(error) => {
                    eprintln!("swathe: names of disks cannot be compared yet: {error}");
                    disks.must_compare.store(true, Ordering::Release);
                }
            }
        }
        if disks.group.arrivals.load(Ordering::Acquire) == arrivals {
            // Without an arrival in this time: perhaps one that no request noticed.
            if timeout(PAUSE, disks.group.arrival.notified()).await.is_err() {
                disks.look_for_absent().await;
            }
        }
    }
}

impl Disks {
    /// Look whether disks that were absent are back.
    async fn look_for_absent(&self) {
        let absent = self.all.iter().filter(|disk| disk.was_absent());
        let looks = absent.map(|disk| disk.run_for_nobody(PAUSE, |disk| disk.check_present()));
        // What is still absent stays so.
        drop(join_all(looks).await);
    }

    /// Compare the names on disks that were absent while those on others changed.
    ///
    /// # Errors
    /// The first of those that left a name or a disk without comparison. All others are compared.
    async fn compare_all(&self) -> Result<(), RequestError> {
        let mut failure = None;
        let notes = join_all(self.all.iter().map(|disk| async move {
            let (ids, _) = disk.run_for_nobody(LONGEST, |disk| disk.absences()).await;
            (disk, ids)
        }));
        for (other, ids) in notes.await {
            // Of a disk that is absent, the notes are read when it is back.
            let Some(ids) = self.value(ids, &mut failure) else { continue };
            for (id, notes) in ids {
                let disk = self.all.iter().find(|disk| disk.member.id == id);
                // One that is absent is compared when it is back, one that was given up never.
                if let Some(disk) = disk
                    && self.value(self.compare(disk, other).await, &mut failure).is_none()
                {
                    continue;
                }
                let forget = move |disk: &Arc<Disk>| disk.forget_absence(id, notes);
                match other.run_for_nobody(LONGEST, forget).await.0 {
                    Ok(true) => {}
                    // It was absent again meanwhile: once more.
                    Ok(false) => self.must_compare.store(true, Ordering::Release),
                    Err(error) => drop(failure.get_or_insert(error)),
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// The value of a result. If a disk is absent, that is noted. Of other errors the first is kept.
    fn value<T>(
        &self,
        result: Result<T, RequestError>,
        failure: &mut Option<RequestError>,
    ) -> Option<T> {
        match result {
            Ok(value) => return Some(value),
            Err(error) if error.is_absence() => self.note_silence(&error),
            Err(error) => drop(failure.get_or_insert(error)),
        }
        None
    }

    /// Note that a disk does not answer, if it may be there. When it answers again, that is no arrival:
    /// names must be compared without one.
    pub(crate) fn note_silence(&self, error: &RequestError) {
        if !matches!(error, RequestError::DiskMissing { .. }) {
            self.must_compare.store(true, Ordering::Release);
        }
    }

    /// The disks that did not say what they have: a name is about to change without them.
    pub(crate) fn absences(&self, survey: &Survey) -> Vec<u64> {
        let mut ids = Vec::new();
        for (disk, look) in &survey.looks {
            if let Err(error) = look {
                self.note_silence(error);
                ids.push(disk.member.id);
            }
        }
        ids
    }

    /// Survey a name that is to change, and is locked; older objects of the name are set aside.
    pub(crate) async fn begin_change(
        &self,
        record: &RequestRecord,
        path: &ObjectPath,
        locks: &NameLocks,
    ) -> Result<NameChange, RequestError> {
        let arrivals = self.group.arrivals.load(Ordering::Acquire);
        let mut survey = self.survey(record, path).await;
        if !survey.older().is_empty() {
            survey = self.set_older_aside(path, locks).await?;
        }
        Ok(NameChange { survey, arrivals })
    }

    /// End the change of a name, which is still locked: compare it, if a disk came meanwhile.
    pub(crate) async fn end_change(
        &self,
        change: &NameChange,
        path: &ObjectPath,
        locks: &NameLocks,
    ) -> Result<(), RequestError> {
        self.absences(&change.survey); // once more: a comparison may have ended before they were noted
        if self.group.arrivals.load(Ordering::Acquire) == change.arrivals {
            return Ok(());
        }
        match self.set_older_aside(path, locks).await {
            Err(error) if !error.is_absence() => Err(error),
            Err(error) => {
                self.note_silence(&error);
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }

    /// Look on the disk `other` for all names of `disk`. What may not be read is left out: it is served
    /// to nobody.
    ///
    /// # Errors
    /// At once, if a disk does not answer; else the first, after all names.
    async fn compare(&self, disk: &Arc<Disk>, other: &Arc<Disk>) -> Result<(), RequestError> {
        let mut failure = None;
        let mut folders = vec![ObjectPath::root()];
        while let Some(folder) = folders.pop() {
            let place = folder.clone();
            let (items, _) =
                disk.run_for_nobody(LONGEST, move |disk| list(disk, &place, Entries::OfDisk)).await;
            let items = match items {
                Err(error) if error.is_absence() => return Err(error),
                Err(error) if is_left_out(&error) && !folder.is_root() => continue,
                Err(error) => {
                    failure.get_or_insert(error);
                    continue;
                }
                Ok(items) => items,
            };
            let mut objects = Vec::new();
            for (name, item) in items {
                let path = folder.child(&name);
                match item {
                    Item::Folder { .. } => folders.push(path),
                    Item::Object(_) => objects.push(path),
                }
            }
            for paths in objects.chunks(NAMES) {
                let paths = paths.to_vec();
                let looks = move |disk: &Arc<Disk>| {
                    let look = |path| (look(disk, &path), path);
                    Ok(paths.into_iter().map(look).collect::<Vec<_>>())
                };
                for (look, path) in other.run_for_nobody(LONGEST, looks).await.0? {
                    match self.compare_name(other, look, &path).await {
                        Err(error) if error.is_absence() => return Err(error),
                        Err(error) => drop(failure.get_or_insert(error)),
                        Ok(()) => {}
                    }
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Compare the objects of a name, if another disk has one.
    async fn compare_name(
        &self,
        other: &Arc<Disk>,
        look: Result<Look, RequestError>,
        path: &ObjectPath,
    ) -> Result<(), RequestError> {
        match look {
            Err(error) if is_left_out(&error) => return Ok(()),
            Err(error) => return Err(error),
            Ok(look) if look.object.is_none() => return Ok(()),
            Ok(_) => {}
        }
        let busy = |error: RequestError| RequestError::DiskBusy {
            disk: other.name.clone(),
            why: error.to_string(),
        };
        let locks = self.lock(&[path]).await.map_err(busy)?;
        self.set_older_aside(path, &locks).await.map(drop)
    }

    /// Set older objects of a name aside; the name is locked. Returns what the disks have then.
    pub(crate) async fn set_older_aside(
        &self,
        path: &ObjectPath,
        locks: &NameLocks,
    ) -> Result<Survey, RequestError> {
        loop {
            let target = path.clone();
            let looks = join_all(self.order(path).into_iter().map(|disk| {
                let target = target.clone();
                async move {
                    let (look, _) =
                        disk.run_for_nobody(LONGEST, move |disk| look(disk, &target)).await;
                    (disk, look)
                }
            }));
            let survey = Survey::of(looks.await);
            let older = survey.older();
            if older.is_empty() {
                return Ok(survey);
            }
            for (disk, status) in older {
                let (target, guards) = (path.clone(), locks.clone());
                let work = move |disk: &Arc<Disk>| {
                    let _locks = guards; // also if nobody waits any more
                    set_aside(disk, &target, &status)
                };
                let Some(place) = disk.run_for_nobody(LONGEST, work).await.0? else { continue };
                let newest = survey.object.as_ref().map(|(newest, _)| newest.name.clone());
                eprintln!(
                    "swathe: disk {}: {path}: older than that on disk {}; it is now {}",
                    disk.name,
                    newest.unwrap_or_default(),
                    place.display()
                );
            }
        }
    }
}

/// Whether what a path leads to is served to nobody, as what is in `lost+found`.
fn is_left_out(error: &RequestError) -> bool {
    match error {
        RequestError::LeadsOut { .. } => true,
        RequestError::Io { source, .. } => source.kind() == io::ErrorKind::PermissionDenied,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::new_object::NewObject;
    use crate::request_record::WorkRecord;
    use crate::start::disks;
    use crate::testing::block_on;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    fn two_disks() -> (tempfile::TempDir, Vec<PathBuf>, Disks) {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = ["a", "b"].map(|name| folder.path().join(name)).to_vec();
        paths.iter().for_each(|path| fs::create_dir(path).unwrap());
        let disks = disks(&paths, &[], None).unwrap();
        let is_first = |disk: &Arc<Disk>| disk.member.path == paths[0];
        let mut disks = disks;
        disks.all.sort_by_key(|disk| !is_first(disk));
        (folder, paths, disks)
    }

    fn put(disk: &Arc<Disk>, path: &str) {
        let mut object = NewObject::create(disk, &ObjectPath::parse(path).unwrap(), None).unwrap();
        object.write(b"content", &WorkRecord::default()).unwrap();
        object.seal(&WorkRecord::default()).unwrap();
        object.name(true).unwrap();
    }

    #[test]
    fn a_name_that_leads_out_ends_no_comparison() {
        let (root, paths, disks) = two_disks();
        let (a, b) = (&disks.all[0], &disks.all[1]);
        for (disk, path) in [(a, "/x/m"), (a, "/m"), (b, "/m"), (a, "/z/m"), (b, "/z/m")] {
            put(disk, path);
        }
        symlink(root.path(), paths[1].join("x")).unwrap();
        b.note_absences(&[a.member.id]).unwrap();
        block_on(disks.compare_all()).unwrap();
        assert!(!paths[0].join("m").exists() && !paths[0].join("z/m").exists());
        assert!(paths[1].join("m").exists() && paths[1].join("z/m").exists());
        assert_eq!(b.absences().unwrap(), []);
        let aside = fs::read_dir(paths[0].join(".swathe/aside")).unwrap();
        let names = aside.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut ends: Vec<String> = names.map(|name| name[16..].to_string()).collect();
        ends.sort();
        assert_eq!(ends, ["-%2Fm", "-%2Fz%2Fm"]);
    }

    #[test]
    fn an_absence_during_a_comparison_is_not_forgotten() {
        let (_root, _paths, disks) = two_disks();
        let (a, b) = (disks.all[0].member.id, &disks.all[1]);
        b.note_absences(&[a]).unwrap();
        let [(_, notes)] = b.absences().unwrap()[..] else { panic!("expected one") };
        b.note_absences(&[a]).unwrap();
        assert!(!b.forget_absence(a, notes).unwrap());
        assert!(b.forget_absence(a, notes + 1).unwrap());
        assert_eq!(b.absences().unwrap(), []);
    }

    #[test]
    fn an_object_that_was_replaced_meanwhile_is_not_set_aside() {
        let (_root, paths, disks) = two_disks();
        let path = ObjectPath::parse("/m").unwrap();
        put(&disks.all[0], "/m");
        let status = look(&disks.all[0], &path).unwrap().object.unwrap();
        put(&disks.all[0], "/m");
        assert_eq!(set_aside(&disks.all[0], &path, &status).unwrap(), None);
        let status = look(&disks.all[0], &path).unwrap().object.unwrap();
        assert!(set_aside(&disks.all[0], &path, &status).unwrap().is_some());
        assert!(!paths[0].join("m").exists());
    }
}
