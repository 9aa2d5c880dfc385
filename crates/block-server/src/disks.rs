//! All disks of a server: where an object is, and where a new one goes.

use crate::disk::{Disk, DiskGroup, ObjectStatus};
use crate::disk_queue::LONGEST;
use crate::error::RequestError;
use crate::object_path::ObjectPath;
use crate::object_time::learn_time;
use crate::placement;
use crate::request_record::RequestRecord;
use crate::rooms::Rooms;
use futures_util::future::join_all;
use hyper::StatusCode;
use rustix::fs::OFlags;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use swathe_store_api::{DiskSpace, Space};
use tokio::sync::{Mutex, OwnedMutexGuard, Semaphore};
use tokio::time::timeout;

/// Number of locks. A hash of a name chooses its lock; with this many, two names seldom share one.
const LOCKS: usize = 1024;
/// Requests that are answered at a time; others are told to come again.
pub(crate) const REQUESTS: usize = 256;

/// A disk counts as missing if it does not say within this time how much is free.
const SPACE_LIMIT: Duration = Duration::from_secs(2);

/// The disks.
#[derive(Debug)]
pub(crate) struct Disks {
    pub(crate) all: Vec<Arc<Disk>>,
    pub(crate) group: Arc<DiskGroup>,
    /// Places of requests.
    pub(crate) requests: Arc<Semaphore>,
    pub(crate) rooms: Arc<Rooms>,
    /// The number of arrivals of disks when all names were last compared.
    pub(crate) compared_arrivals: AtomicU64,
    /// Whether names must be compared without an arrival: a disk that was there did not answer while
    /// they changed.
    pub(crate) must_compare: AtomicBool,
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
    pub(crate) fn new(all: Vec<Arc<Disk>>, group: Arc<DiskGroup>) -> Disks {
        Disks {
            all,
            group,
            requests: Arc::new(Semaphore::new(REQUESTS)),
            rooms: Arc::default(),
            compared_arrivals: AtomicU64::new(0),
            must_compare: AtomicBool::new(false),
            locks: (0..LOCKS).map(|_| Arc::default()).collect(),
        }
    }

    /// Whether no two disks can have an object of one name, as far as is known.
    pub(crate) fn is_consistent(&self) -> bool {
        !self.must_compare.load(Ordering::Acquire)
            && self.compared_arrivals.load(Ordering::Acquire)
                == self.group.arrivals.load(Ordering::Acquire)
    }

    /// Have a disk do work for a request. The first of a request is refused if too many wait for
    /// that disk: one that hangs takes places from no other.
    async fn run<T: Send + 'static>(
        &self,
        disk: &Arc<Disk>,
        record: &RequestRecord,
        work: impl FnOnce(&Arc<Disk>) -> Result<T, RequestError> + Send + 'static,
    ) -> Result<T, RequestError> {
        if self.all.len() > 1 && !record.is_under_way() {
            disk.check_share(self.requests.available_permits())?;
        }
        disk.run(record, work).await
    }

    /// The disks in the order in which an object belongs on them.
    pub(crate) fn order(&self, path: &ObjectPath) -> Vec<Arc<Disk>> {
        let member = |disk: &Arc<Disk>| (disk.member.id, disk.member.capacity_bytes);
        let members: Vec<(u64, u64)> = self.all.iter().map(member).collect();
        let order = placement::order(&path.placement_key(), &members);
        order.into_iter().map(|number| self.all[number].clone()).collect()
    }

    /// Look for a path: on the disk where it belongs, then on all others at the same time. The first
    /// that has it; `None`: none has. While names may be on two disks, the newest of all.
    ///
    /// # Errors
    /// As the first disk that fails, if none has it: it may be there.
    pub(crate) async fn find<T: Send + 'static>(
        &self,
        record: &RequestRecord,
        path: &ObjectPath,
        look: impl Fn(&Arc<Disk>) -> Result<Option<T>, RequestError> + Clone + Send + 'static,
    ) -> Result<Option<(Arc<Disk>, T)>, RequestError> {
        if self.is_consistent() {
            let result = self.find_in(&self.order(path), record, look.clone()).await;
            // A disk may have come back with this very request.
            if self.is_consistent() {
                record.set_under_way();
                return result;
            }
        }
        // Others may have an older one, which is not the answer if this disk gives none.
        let order = match self.survey(record, path).await.object {
            Some((newest, _)) => vec![newest],
            None => self.order(path),
        };
        self.find_in(&order, record, look).await
    }

    async fn find_in<T: Send + 'static>(
        &self,
        order: &[Arc<Disk>],
        record: &RequestRecord,
        look: impl Fn(&Arc<Disk>) -> Result<Option<T>, RequestError> + Clone + Send + 'static,
    ) -> Result<Option<(Arc<Disk>, T)>, RequestError> {
        let Some((first, rest)) = order.split_first() else { return Ok(None) };
        let mut failure = None;
        match self.run(first, record, look.clone()).await {
            Ok(Some(value)) => return Ok(Some((first.clone(), value))),
            Ok(None) => {}
            Err(error) if error.is_absence() => failure = Some(error),
            Err(error) => return Err(error),
        }
        let looks = join_all(rest.iter().map(|disk| self.run(disk, record, look.clone()))).await;
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
        let results = join_all(order.iter().map(|disk| self.run(disk, record, work.clone()))).await;
        record.set_under_way();
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
            let (id, name) = (format!("{:016x}", disk.member.id), disk.name.to_string());
            DiskSpace { id, name, is_up, free_bytes, total_bytes }
        };
        Space::of_disks(self.all.iter().zip(spaces).map(of_disk).collect())
    }

    /// Learn what all disks have at a path.
    pub(crate) async fn survey(&self, record: &RequestRecord, path: &ObjectPath) -> Survey {
        let target = path.clone();
        Survey::of(self.each(record, path, move |disk| look(disk, &target)).await)
    }

    /// The locks of names, until they are dropped.
    ///
    /// # Errors
    /// With status 503 if work that has one does not end in time: a disk that hangs holds up nobody
    /// for ever.
    pub(crate) async fn lock(&self, paths: &[&ObjectPath]) -> Result<NameLocks, RequestError> {
        self.lock_within(LONGEST, paths).await
    }

    async fn lock_within(
        &self,
        limit: Duration,
        paths: &[&ObjectPath],
    ) -> Result<NameLocks, RequestError> {
        let number = |path: &&ObjectPath| {
            let sum = crc32fast::hash(path.as_path().as_os_str().as_encoded_bytes());
            sum as usize % LOCKS
        };
        let mut numbers: Vec<usize> = paths.iter().map(number).collect();
        // In one order, so that no two requests wait for each other.
        numbers.sort();
        numbers.dedup();
        let wait = async {
            let mut guards = Vec::new();
            for number in numbers {
                guards.push(self.locks[number].clone().lock_owned().await);
            }
            Arc::new(guards)
        };
        timeout(limit, wait).await.map_err(|_| {
            let names: Vec<String> = paths.iter().map(ToString::to_string).collect();
            let text = format!(
                "{}: a change of this name, or of one with the same lock, did not end in {} s; come \
                 again",
                names.join(", "),
                limit.as_secs()
            );
            RequestError::refuse(StatusCode::SERVICE_UNAVAILABLE, text)
        })
    }
}

impl Survey {
    pub(crate) fn of(looks: Vec<(Arc<Disk>, Result<Look, RequestError>)>) -> Survey {
        let has =
            |test: fn(&Look) -> bool| looks.iter().any(|(_, look)| look.as_ref().is_ok_and(test));
        let (is_folder, has_parent) = (has(|look| look.is_folder), has(|look| look.has_parent));
        let mut object: Option<(Arc<Disk>, ObjectStatus)> = None;
        for (disk, look) in &looks {
            let Ok(Look { object: Some(status), .. }) = look else { continue };
            // Of two that are of one time, the first in the order of the path.
            if object.as_ref().is_none_or(|(_, newest)| newest.modified_ns < status.modified_ns) {
                object = Some((disk.clone(), status.clone()));
            }
        }
        Survey { object, is_folder, has_parent, looks }
    }

    /// Learn the times of the objects. What is named after this gets a later time.
    pub(crate) fn learn_times(&self) {
        let looks = self.looks.iter().filter_map(|(_, look)| look.as_ref().ok());
        let objects = looks.filter_map(|look| look.object.as_ref());
        objects.for_each(|object| learn_time(object.modified_ns));
    }

    /// The older objects of the name, and their disks.
    pub(crate) fn older(&self) -> Vec<(Arc<Disk>, ObjectStatus)> {
        let is_newest = |disk: &Arc<Disk>| {
            self.object.as_ref().is_some_and(|(newest, _)| Arc::ptr_eq(newest, disk))
        };
        let older = self.looks.iter().filter(|(disk, _)| !is_newest(disk));
        let object = |(disk, look): &(Arc<Disk>, Result<Look, RequestError>)| {
            Some((disk.clone(), look.as_ref().ok()?.object.clone()?))
        };
        older.filter_map(object).collect()
    }

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

pub(crate) fn look(disk: &Arc<Disk>, path: &ObjectPath) -> Result<Look, RequestError> {
    let has_parent = disk.open_folder(path)?.is_some();
    let mut look = Look { object: None, is_folder: false, has_parent };
    if has_parent && let Some(file) = disk.open(path, OFlags::PATH)? {
        let status = File::from(file).metadata().map_err(|error| disk.fail(path, error))?;
        look.is_folder = status.is_dir();
        look.object = status.is_file().then(|| ObjectStatus::of(&status));
    }
    Ok(look)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::new_object::NewObject;
    use crate::request_record::WorkRecord;
    use crate::start::disks;
    use crate::testing::block_on;
    use hyper::Method;

    #[test]
    fn nobody_waits_for_ever_for_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let disks = disks(&[folder.path().to_path_buf()], &[], None).unwrap();
        let path = |text| ObjectPath::parse(text).unwrap();
        let (first, second, limit) = (path("/a"), path("/b"), Duration::from_millis(20));
        block_on(async {
            let locks = disks.lock(&[&first]).await.unwrap();
            let error = disks.lock_within(limit, &[&first, &second]).await.unwrap_err();
            assert_eq!(error.status().as_u16(), 503);
            assert!(error.to_string().contains("/a, /b: "), "{error}");
            // The refusal holds no lock.
            disks.lock_within(limit, &[&second]).await.unwrap();
            drop(locks);
            disks.lock_within(limit, &[&first]).await.unwrap();
        });
    }

    #[test]
    fn an_older_object_is_no_answer_while_the_newest_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        paths.iter().for_each(|path| std::fs::create_dir(path).unwrap());
        let disks = disks(&paths, &[], None).unwrap();
        let path = ObjectPath::parse("/m").unwrap();
        let order = disks.order(&path);
        for disk in &order {
            let mut object = NewObject::create(disk, &path, None).unwrap();
            object.seal(&WorkRecord::default()).unwrap();
            object.name(true).unwrap();
        }
        disks.must_compare.store(true, Ordering::Release);
        let newest = order[1].name.clone();
        let look = move |disk: &Arc<Disk>| match disk.name == newest {
            true => Err(RequestError::DiskBusy { disk: disk.name.clone(), why: "busy".into() }),
            false => Ok(Some(())),
        };
        let record = RequestRecord::start(&Arc::default(), &Method::GET, "/m", None, None);
        let error = block_on(disks.find(&record, &path, look)).unwrap_err();
        assert!(error.is_absence(), "{error}");
    }
}
