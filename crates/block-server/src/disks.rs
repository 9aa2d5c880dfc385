//! All disks of a server: where an object is, and where a new one goes.

use crate::disk::{Disk, ObjectStatus};
use crate::error::RequestError;
use crate::object_path::ObjectPath;
use crate::placement;
use crate::request_record::RequestRecord;
use futures_util::future::join_all;
use rustix::fs::OFlags;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;
use swathe_store_api::{DiskSpace, Space};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Locks of names: as many as hardly ever two names meet at one.
const LOCKS: usize = 1024;

/// A disk that does not say what is free by then counts as missing.
const SPACE_LIMIT: Duration = Duration::from_secs(2);

/// The disks.
#[derive(Debug)]
pub(crate) struct Disks {
    pub(crate) all: Vec<Arc<Disk>>,
    /// A name is changed by one request at a time.
    locks: Vec<Arc<Mutex<()>>>,
}

/// What a disk has at a path.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) object: Option<ObjectStatus>,
    pub(crate) is_folder: bool,
    /// Whether it has the folder above.
    pub(crate) has_parent: bool,
}

/// What all disks have at a path.
#[derive(Debug)]
pub(crate) struct Survey {
    /// The object, and its disk.
    pub(crate) object: Option<(Arc<Disk>, ObjectStatus)>,
    pub(crate) is_folder: bool,
    pub(crate) has_parent: bool,
    /// The disks, in the order of the path, with what each has.
    pub(crate) looks: Vec<(Arc<Disk>, Result<Look, RequestError>)>,
}

/// Names that are locked until all that have this are done: also work of a disk that nobody waits for
/// any more.
pub(crate) type NameLocks = Arc<Vec<OwnedMutexGuard<()>>>;

impl Disks {
    pub(crate) fn new(all: Vec<Arc<Disk>>) -> Disks {
        Disks { all, locks: (0..LOCKS).map(|_| Arc::default()).collect() }
    }

    /// The disks in the order in which an object belongs on them.
    pub(crate) fn order(&self, path: &ObjectPath) -> Vec<Arc<Disk>> {
        let member = |disk: &Arc<Disk>| (disk.member.id, disk.member.capacity_bytes);
        let members: Vec<(u64, u64)> = self.all.iter().map(member).collect();
        let order = placement::order(&path.placement_key(), &members);
        order.into_iter().map(|number| self.all[number].clone()).collect()
    }

    /// Look for a path: on the disk where it belongs, then on all others at the same time. The first
    /// that has it; `None`: none has.
    ///
    /// # Errors
    /// As the first disk that fails, if none has it: it may be there.
    pub(crate) async fn find<T: Send + 'static>(
        &self,
        record: &RequestRecord,
        path: &ObjectPath,
        look: impl Fn(&Arc<Disk>) -> Result<Option<T>, RequestError> + Clone + Send + 'static,
    ) -> Result<Option<(Arc<Disk>, T)>, RequestError> {
        let order = self.order(path);
        let Some((first, rest)) = order.split_first() else { return Ok(None) };
        let mut failure = None;
        match first.run(record, look.clone()).await {
            Ok(Some(value)) => return Ok(Some((first.clone(), value))),
            Ok(None) => {}
            Err(error) if error.is_absence() => failure = Some(error),
            Err(error) => return Err(error),
        }
        let looks = join_all(rest.iter().map(|disk| disk.run(record, look.clone()))).await;
        for (disk, result) in rest.iter().zip(looks) {
            match result {
                Ok(Some(value)) => return Ok(Some((disk.clone(), value))),
                Ok(None) => {}
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(None), Err)
    }

    /// Have all disks do work, each in its own time; the results are in the order of the path.
    pub(crate) async fn each<T: Send + 'static>(
        &self,
        record: &RequestRecord,
        path: &ObjectPath,
        work: impl Fn(&Arc<Disk>) -> Result<T, RequestError> + Clone + Send + 'static,
    ) -> Vec<(Arc<Disk>, Result<T, RequestError>)> {
        let order = self.order(path);
        let results = join_all(order.iter().map(|disk| disk.run(record, work.clone()))).await;
        order.into_iter().zip(results).collect()
    }

    /// The room on each disk.
    pub(crate) async fn space(&self, record: &RequestRecord) -> Space {
        let work =
            self.all.iter().map(|disk| disk.run_within(SPACE_LIMIT, record, |disk| disk.space()));
        let spaces = join_all(work).await;
        let of_disk = |(disk, space): (&Arc<Disk>, Result<(u64, u64), RequestError>)| {
            let is_up = space.is_ok();
            let (free_bytes, total_bytes) = space.unwrap_or_default();
            DiskSpace { name: disk.name.to_string(), is_up, free_bytes, total_bytes }
        };
        Space::of_disks(self.all.iter().zip(spaces).map(of_disk).collect())
    }

    /// Learn what all disks have at a path.
    pub(crate) async fn survey(&self, record: &RequestRecord, path: &ObjectPath) -> Survey {
        let target = path.clone();
        let looks = self.each(record, path, move |disk| look(disk, &target)).await;
        let has =
            |test: fn(&Look) -> bool| looks.iter().any(|(_, look)| look.as_ref().is_ok_and(test));
        let (is_folder, has_parent) = (has(|look| look.is_folder), has(|look| look.has_parent));
        let object = looks.iter().find_map(|(disk, look)| {
            let status = look.as_ref().ok()?.object.clone()?;
            Some((disk.clone(), status))
        });
        Survey { object, is_folder, has_parent, looks }
    }

    /// The locks of names, until they are dropped.
    pub(crate) async fn lock(&self, paths: &[&ObjectPath]) -> NameLocks {
        let number = |path: &&ObjectPath| {
            let sum = crc32fast::hash(path.as_path().as_os_str().as_encoded_bytes());
            sum as usize % LOCKS
        };
        let mut numbers: Vec<usize> = paths.iter().map(number).collect();
        // In one order, so that no two requests wait for each other.
        numbers.sort();
        numbers.dedup();
        let mut guards = Vec::new();
        for number in numbers {
            guards.push(self.locks[number].clone().lock_owned().await);
        }
        Arc::new(guards)
    }
}

impl Survey {
    /// The error of the first disk that gave one, if any did.
    pub(crate) fn take_failure(&mut self) -> Option<RequestError> {
        self.take_failure_before(None)
    }

    /// The same, of the disks before one in the order of the path.
    pub(crate) fn take_failure_before(
        &mut self,
        limit: Option<&Arc<Disk>>,
    ) -> Option<RequestError> {
        let is_limit = |disk: &Arc<Disk>| limit.is_some_and(|limit| Arc::ptr_eq(limit, disk));
        let end = self.looks.iter().position(|(disk, _)| is_limit(disk));
        let looks = &self.looks[..end.unwrap_or(self.looks.len())];
        let at = looks.iter().position(|(_, look)| look.is_err())?;
        self.looks.remove(at).1.err()
    }
}

fn look(disk: &Arc<Disk>, path: &ObjectPath) -> Result<Look, RequestError> {
    let has_parent = disk.open_folder(path)?.is_some();
    let mut look = Look { object: None, is_folder: false, has_parent };
    if has_parent && let Some(file) = disk.open(path, OFlags::PATH)? {
        let status = File::from(file).metadata().map_err(|error| disk.fail(path, error))?;
        look.is_folder = status.is_dir();
        look.object = status.is_file().then(|| ObjectStatus::of(&status));
    }
    Ok(look)
}
