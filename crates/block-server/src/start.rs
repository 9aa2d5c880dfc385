//! The start: which folders are the disks that they were, which are new, and which are missing.

use crate::disk::{Disk, DiskGroup};
use crate::disks::Disks;
use crate::error::StartError;
use crate::identity::{Identity, Member, random_number};
use crate::own_folder::{IDENTITY, lock_disk, own_path};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use swathe_store::free_and_total;
use tokio::sync::Notify;

/// The disks of a server: those in the folders, and those that they know, present or not. Nothing
/// is changed on any of them before all that are present are locked.
pub(crate) fn disks(
    folders: &[PathBuf],
    forget: &[PathBuf],
    max_bytes: Option<u64>,
) -> Result<Disks, StartError> {
    let all_absolute = |paths: &[PathBuf]| -> Result<Vec<PathBuf>, StartError> {
        let absolute = |path: &PathBuf| absolute(path).map_err(|error| fail(path, error));
        paths.iter().map(absolute).collect()
    };
    let (folders, forget) = (all_absolute(folders)?, all_absolute(forget)?);
    check_disks_to_forget(&folders, &forget)?;
    let identities = present_disks(&folders, &forget)?;
    let mut members = known_members(&identities, &forget);
    let mut locks = BTreeMap::new();
    for (&id, (folder, _)) in &identities {
        locks.insert(id, lock_disk(folder).map_err(|why| fail(folder, why))?);
    }
    let mut new_ids = Vec::new();
    for folder in &folders {
        let is_known = members.values().any(|member| member.path == *folder);
        if !is_known {
            let member = new_member(folder, max_bytes)?;
            locks.insert(member.id, lock_disk(folder).map_err(|why| fail(folder, why))?);
            new_ids.push(member.id);
            members.insert(member.id, member);
        }
    }
    let list: Vec<Member> = members.into_values().collect();
    for member in list.iter().filter(|member| new_ids.contains(&member.id)) {
        let identity = Identity { id: member.id, members: list.clone() };
        let result = identity.write(&own_path(&member.path, IDENTITY));
        result.map_err(|error| fail(&member.path, error))?;
    }
    let group = Arc::new(DiskGroup {
        members: list.clone(),
        arrivals: AtomicU64::new(0),
        arrival: Notify::new(),
    });
    let start = |member: Member| {
        let lock = locks.remove(&member.id);
        Disk::start(member, max_bytes, lock, &group).map(Arc::new).map_err(StartError::Threads)
    };
    let disks = Disks::new(list.into_iter().map(start).collect::<Result<_, _>>()?, group.clone());
    let failures = disks.all.iter().map(|disk| disk.check_present().err());
    match failures.collect::<Option<Vec<_>>>() {
        Some(failures) => {
            let why =
                failures.first().map_or("expected a disk, found none".into(), ToString::to_string);
            Err(StartError::Disk { path: "all".into(), why })
        }
        None => Ok(disks),
    }
}

/// Folders and identities of disks, by their ids.
type Identities = BTreeMap<u64, (PathBuf, Identity)>;

/// The disks in the folders; and those that they know, and that these know, where they were last.
fn present_disks(folders: &[PathBuf], forget: &[PathBuf]) -> Result<Identities, StartError> {
    let mut identities = Identities::new();
    for folder in folders {
        let identity =
            Identity::read(&own_path(folder, IDENTITY)).map_err(|why| fail(folder, why))?;
        if let Some(identity) = identity
            && let Some((other, _)) = identities.insert(identity.id, (folder.clone(), identity))
        {
            let why = format!("it is the same disk as {}, or a copy of it", other.display());
            return Err(fail(folder, why));
        }
    }
    loop {
        let all = known_members(&identities, forget);
        let others = all.into_values().filter(|member| !identities.contains_key(&member.id));
        let others: Identities = others
            .filter_map(|member| match Identity::read(&own_path(&member.path, IDENTITY)) {
                Ok(Some(identity)) if identity.id == member.id => {
                    Some((member.id, (member.path, identity)))
                }
                // It is missing, and says so when it is used.
                _ => None,
            })
            .collect();
        if others.is_empty() {
            return Ok(identities);
        }
        identities.extend(others);
    }
}

/// The disks that the present ones know, but for those that are given up. The present ones are
/// where they are now.
fn known_members(identities: &Identities, forget: &[PathBuf]) -> BTreeMap<u64, Member> {
    let mut members = BTreeMap::new();
    for member in identities.values().flat_map(|(_, identity)| &identity.members) {
        match identities.get(&member.id) {
            Some((folder, _)) => {
                let member = Member { path: folder.clone(), ..member.clone() };
                members.insert(member.id, member);
            }
            None if forget.contains(&member.path) => {}
            None => {
                members.insert(member.id, member.clone());
            }
        }
    }
    members
}

/// Refuse to give up a disk that there is not, or that is there.
fn check_disks_to_forget(folders: &[PathBuf], forget: &[PathBuf]) -> Result<(), StartError> {
    if forget.is_empty() {
        return Ok(());
    }
    let present = present_disks(folders, &[])?;
    if let Some((folder, _)) = present.values().find(|(folder, _)| forget.contains(folder)) {
        let why = "expected a lost disk to give up, found it there, perhaps with objects";
        return Err(fail(folder, why));
    }
    let members = known_members(&present, &[]);
    let paths: BTreeSet<&PathBuf> = members.values().map(|member| &member.path).collect();
    match forget.iter().find(|folder| !paths.contains(folder)) {
        None => Ok(()),
        Some(folder) => {
            let disks: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            let disks = if disks.is_empty() { "none".into() } else { disks.join(", ") };
            let why = format!(
                "expected a disk of this server to forget, found that it has none of this folder; \
                 its disks: {disks}"
            );
            Err(fail(folder, why))
        }
    }
}

/// A disk that is used for the first time.
fn new_member(folder: &Path, max_bytes: Option<u64>) -> Result<Member, StartError> {
    if folder.display().to_string().contains('\n') {
        return Err(fail(folder, "expected a path without line breaks"));
    }
    let status = fs::metadata(folder).map_err(|error| fail(folder, error))?;
    if !status.is_dir() {
        return Err(fail(folder, "expected a folder"));
    }
    let id = random_number().map_err(|error| fail(folder, error))?;
    let (_, total) =
        free_and_total(folder).map_err(|error| fail(folder, std::io::Error::from(error)))?;
    let capacity_bytes = total.min(max_bytes.unwrap_or(u64::MAX));
    Ok(Member { id, capacity_bytes, path: folder.to_path_buf() })
}

fn fail(path: &Path, why: impl ToString) -> StartError {
    StartError::Disk { path: path.display().to_string(), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(names: &[&str]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = names.iter().map(|name| folder.path().join(name)).collect();
        paths.iter().for_each(|path| fs::create_dir(path).unwrap());
        (folder, paths)
    }

    /// Paths of the disks, and whether each is there.
    fn start(folders: &[PathBuf], forget: &[PathBuf]) -> Result<Vec<(String, bool)>, String> {
        let disks = disks(folders, forget, None).map_err(|error| error.to_string())?;
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let present = |disk: &Arc<Disk>| disk.check_present().is_ok();
        let mut list: Vec<(String, bool)> =
            disks.all.iter().map(|disk| (name(&disk.member.path), present(disk))).collect();
        list.sort();
        Ok(list)
    }

    fn list(disks: &[(&str, bool)]) -> Result<Vec<(String, bool)>, String> {
        Ok(disks.iter().map(|&(name, present)| (name.to_string(), present)).collect())
    }

    #[test]
    fn a_disk_that_the_others_know_is_missing_not_forgotten() {
        let (root, paths) = folders(&["a", "b"]);
        assert_eq!(start(&paths, &[]), list(&[("a", true), ("b", true)]));
        assert_eq!(start(&paths[..1], &[]), list(&[("a", true), ("b", true)]));
        fs::rename(&paths[1], root.path().join("away")).unwrap();
        assert_eq!(start(&paths, &[]), list(&[("a", true), ("b", false)]));
        // As if it were not mounted.
        fs::create_dir(&paths[1]).unwrap();
        assert_eq!(start(&paths, &[]), list(&[("a", true), ("b", false)]));
        // It may come back elsewhere.
        let back = [paths[0].clone(), root.path().join("away")];
        assert_eq!(start(&back, &[]), list(&[("a", true), ("away", true)]));
    }

    #[test]
    fn a_disk_may_be_given_up() {
        let (_root, paths) = folders(&["a", "b"]);
        start(&paths, &[]).unwrap();
        fs::remove_dir_all(&paths[1]).unwrap();
        assert_eq!(start(&paths[..1], &paths[1..]), list(&[("a", true)]));
        assert_eq!(start(&paths[..1], &[]), list(&[("a", true)]));
        fs::create_dir(&paths[1]).unwrap();
        assert_eq!(start(&paths, &[]), list(&[("a", true), ("b", true)]));
    }

    #[test]
    fn what_is_no_disk_is_not_given_up() {
        let (root, paths) = folders(&["a", "b"]);
        start(&paths, &[]).unwrap();
        fs::remove_dir_all(&paths[1]).unwrap();
        let (before, forget) = (files(root.path()), [root.path().join("c")]);
        let error = start(&paths[..1], &forget).unwrap_err();
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        assert!(error.contains("/c: expected a disk"), "{error}");
        assert!(error.ends_with(&format!("its disks: {}", names.join(", "))), "{error}");
        assert_eq!(files(root.path()), before);
        let error = start(&[], &forget).unwrap_err();
        assert!(error.ends_with("its disks: none"), "{error}");
    }

    #[test]
    fn a_disk_that_is_there_is_not_given_up() {
        let (_root, paths) = folders(&["a", "b"]);
        start(&paths, &[]).unwrap();
        for folders in [&paths[..1], &paths[..]] {
            let error = start(folders, &paths[1..]).unwrap_err();
            assert!(error.contains("/b: expected a lost disk"), "{error}");
        }
        assert_eq!(start(&paths, &[]), list(&[("a", true), ("b", true)]));
    }

    #[test]
    fn what_cannot_be_a_disk_is_an_error() {
        let (root, paths) = folders(&["a", "b"]);
        let other = [root.path().join("none")];
        assert!(start(&other, &[]).unwrap_err().contains("none: No such file"));
        assert!(start(&[], &[]).unwrap_err().contains("found none"));
        fs::write(root.path().join("file"), "").unwrap();
        assert!(start(&[root.path().join("file")], &[]).unwrap_err().contains("file: "));
        start(&paths[..1], &[]).unwrap();
        let identity = own_path(&paths[0], IDENTITY);
        fs::create_dir(paths[1].join(".swathe")).unwrap();
        fs::copy(&identity, own_path(&paths[1], IDENTITY)).unwrap();
        assert!(start(&paths, &[]).unwrap_err().contains("same disk"));
        fs::write(&identity, "damaged").unwrap();
        assert!(start(&paths[..1], &[]).unwrap_err().contains("expected \"swathe disk 1\""));
    }

    /// Names and bytes of all files below a folder, but for those of locks.
    fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let content = |path: PathBuf| match path.is_dir() {
            true => files(&path),
            false => BTreeMap::from([(path.clone(), fs::read(path).unwrap())]),
        };
        entries.flat_map(content).collect()
    }

    #[test]
    fn a_second_server_changes_nothing() {
        let (root, paths) = folders(&["a", "b", "new"]);
        let first = disks(&paths[..2], &[], None).unwrap();
        let before = files(root.path());
        for second in [vec![0], vec![2, 1], vec![0, 2]] {
            let second: Vec<PathBuf> =
                second.into_iter().map(|at: usize| paths[at].clone()).collect();
            assert!(start(&second, &[]).unwrap_err().contains("another server uses it"));
            assert_eq!(files(root.path()), before);
        }
        drop(first);
        assert_eq!(start(&paths, &[]).unwrap().len(), 3);
    }

    #[test]
    fn what_one_disk_knows_all_know() {
        let (root, paths) = folders(&["a", "b", "c"]);
        start(&paths[..2], &[]).unwrap();
        let away = root.path().join("away");
        fs::rename(&paths[0], &away).unwrap();
        start(&paths[1..], &[]).unwrap();
        fs::rename(&away, &paths[0]).unwrap();
        // a knows b, and b knows c.
        assert_eq!(start(&paths[..1], &[]), list(&[("a", true), ("b", true), ("c", true)]));
        fs::rename(&paths[2], &away).unwrap();
        assert_eq!(start(&paths[..1], &[]), list(&[("a", true), ("b", true), ("c", false)]));
    }
}
