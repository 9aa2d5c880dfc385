//! Twins: objects of one name on two disks. That may be if one was written while the disk of the other
//! was absent.
//!
//! The one that got its name later counts, by the time of its file. The older is set aside: it loses
//! its name, and stays in `.swathe/aside` of its disk. A disk notes which others are absent while
//! names on it change. When these are back, all their names are compared with its own; until then a
//! request looks on all disks.

use crate::disk::Disk;
use crate::disk_queue::LONGEST;
use crate::disks::{Disks, Survey, look};
use crate::error::RequestError;
use crate::folder::{Entries, Item, list};
use crate::new_object::set_aside;
use crate::object_path::ObjectPath;
use futures_util::future::join_all;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::timeout;

/// Names that are compared at a time.
const NAMES: usize = 256;
/// The wait before a comparison that failed, or that waits for a disk that did not answer, is tried
/// again.
const PAUSE: Duration = Duration::from_secs(5);

/// Compare the names of disks that come back, for ever.
pub(crate) async fn watch(disks: Arc<Disks>) {
    loop {
        let arrivals = disks.group.arrivals.load(Ordering::Acquire);
        if !disks.is_consistent() {
            disks.has_notes.store(false, Ordering::Release);
            match disks.compare_all().await {
                Ok(()) => disks.arrivals.store(arrivals, Ordering::Release),
                Err(error) => {
                    eprintln!("swathe: names of disks cannot be compared yet: {error}");
                    disks.has_notes.store(true, Ordering::Release);
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
    async fn compare_all(&self) -> Result<(), RequestError> {
        let notes = join_all(self.all.iter().map(|disk| async move {
            let (ids, _) = disk.run_for_nobody(LONGEST, |disk| disk.absences()).await;
            (disk, ids)
        }));
        for (other, ids) in notes.await {
            let ids = match ids {
                // What it notes is read when it is back.
                Err(error) if error.is_absence() => {
                    self.note_silence(&error);
                    continue;
                }
                ids => ids?,
            };
            for id in ids {
                let disk = self.all.iter().find(|disk| disk.member.id == id);
                // One that is absent is compared when it is back, one that was given up never.
                if let Some(disk) = disk {
                    match self.compare(disk, other).await {
                        Err(error) if error.is_absence() => {
                            self.note_silence(&error);
                            continue;
                        }
                        result => result?,
                    }
                }
                other.run_for_nobody(LONGEST, move |disk| disk.forget_absence(id)).await.0?;
            }
        }
        Ok(())
    }

    /// Note that a disk does not answer although it may be there: that it does again is no arrival.
    pub(crate) fn note_silence(&self, error: &RequestError) {
        if !matches!(error, RequestError::DiskMissing { .. }) {
            self.has_notes.store(true, Ordering::Release);
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

    /// After a name was changed, which is still locked: compare it, if a disk came meanwhile.
    pub(crate) async fn look_again(
        &self,
        path: &ObjectPath,
        arrivals: u64,
    ) -> Result<(), RequestError> {
        if self.group.arrivals.load(Ordering::Acquire) == arrivals {
            return Ok(());
        }
        match self.set_older_aside(path).await {
            Err(error) if !error.is_absence() => Err(error),
            _ => Ok(()),
        }
    }

    /// Look for all names on a disk on another.
    async fn compare(&self, disk: &Arc<Disk>, other: &Arc<Disk>) -> Result<(), RequestError> {
        let mut folders = vec![ObjectPath::root()];
        while let Some(folder) = folders.pop() {
            let place = folder.clone();
            let (items, _) =
                disk.run_for_nobody(LONGEST, move |disk| list(disk, &place, Entries::OfDisk)).await;
            let mut objects = Vec::new();
            for (name, item) in items? {
                let path = folder.child(&name);
                match item {
                    Item::Folder { .. } => folders.push(path),
                    Item::Object(_) => objects.push(path),
                }
            }
            for paths in objects.chunks(NAMES) {
                let paths = paths.to_vec();
                let twins = move |disk: &Arc<Disk>| {
                    let mut twins = Vec::new();
                    for path in paths {
                        if look(disk, &path)?.object.is_some() {
                            twins.push(path);
                        }
                    }
                    Ok(twins)
                };
                for path in other.run_for_nobody(LONGEST, twins).await.0? {
                    let locks = self.lock(&[&path]).await;
                    let busy = |error: RequestError| RequestError::DiskBusy {
                        disk: other.name.clone(),
                        why: error.to_string(),
                    };
                    let _locks = locks.map_err(busy)?;
                    self.set_older_aside(&path).await?;
                }
            }
        }
        Ok(())
    }

    /// Set older objects of a name aside; the name is locked. Returns what the disks have then.
    pub(crate) async fn set_older_aside(&self, path: &ObjectPath) -> Result<Survey, RequestError> {
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
            for disk in older {
                let target = path.clone();
                let (place, _) =
                    disk.run_for_nobody(LONGEST, move |disk| set_aside(disk, &target)).await;
                let place = place?;
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
