//! Files below the root of a store: opened there and nowhere else, wherever links lead.
//!
//! The kernel resolves a path below an open folder (`openat2`, `RESOLVE_BENEATH`). It refuses links
//! that lead out, and absolute links. Those may still be meant: the path without links is then
//! compared with the folders that are allowed, and opened from there step by step without following
//! any link. So is every path if the kernel has no `openat2`. Whatever is put in the place of a
//! folder or file meanwhile, nothing outside is opened.

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

/// Tries to resolve a path while somebody changes its folders and links.
const ATTEMPTS: usize = 16;
/// Links that are followed one after the other, as the kernel does.
const MOST_LINKS: usize = 40;
/// A folder that is only a place to open from.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Rights of new folders; the mask of the process removes some of them.
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);

/// The folders of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFolders {
    /// Folder of the store: its objects are below it.
    root: PathBuf,
    /// Further folders that links may lead to.
    others: Vec<PathBuf>,
}

/// Why a file was not opened.
#[derive(Debug)]
pub enum Refusal {
    /// The path lies in none of the folders.
    LeadsOut,
    /// The operating system refused.
    Io(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal::Io(error)
    }
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Refusal {
        Refusal::Io(error.into())
    }
}

impl StoreFolders {
    /// The folder of a store, and further folders that its links may lead to.
    pub fn new(root: PathBuf, others: Vec<PathBuf>) -> StoreFolders {
        StoreFolders { root, others }
    }

    /// Open the file at `path`, which is relative to the root.
    ///
    /// # Errors
    /// [`Refusal::LeadsOut`] if that is in none of the folders.
    pub fn open(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Refusal> {
        let flags = flags | OFlags::CLOEXEC;
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match below(&self.root, path, flags) {
            Ok(file) => Ok(file),
            Err(Errno::XDEV | Errno::LOOP | Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {
                self.step(path, flags)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Open the folder at `path`; missing folders are created, and their names are on the disk then.
    ///
    /// # Errors
    /// As [`StoreFolders::open`].
    pub fn make_folder(&self, path: &Path) -> Result<OwnedFd, Refusal> {
        let error = match self.open(path, FOLDER) {
            Err(Refusal::Io(error)) if error.kind() == io::ErrorKind::NotFound => error,
            result => return result,
        };
        let Some(name) = path.file_name() else {
            if path.components().any(|part| part == Component::ParentDir) {
                return Err(error.into());
            }
            make_folders(&self.root)?;
            return self.open(path, FOLDER);
        };
        let parent = self.make_folder(path.parent().unwrap_or(Path::new("")))?;
        match mkdirat(&parent, name, FOLDER_MODE) {
            Ok(()) => {
                sync_folder(&parent)?;
                self.open(path, FOLDER)
            }
            Err(Errno::EXIST) => self.open(path, FOLDER),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a link to nothing leads to a place in one of the folders.
    pub(crate) fn leads_inside(&self, path: &Path) -> bool {
        let mut target = self.root.join(path);
        for _ in 0..MOST_LINKS {
            let Ok(next) = target.read_link() else { break };
            target = target.parent().unwrap_or(Path::new("/")).join(next);
        }
        // What is there of the path says where the rest would be.
        let mut ancestor = target.as_path();
        let real = loop {
            match (ancestor.canonicalize(), ancestor.parent()) {
                (Ok(real), _) => break real,
                (Err(_), Some(parent)) if ancestor.file_name().is_some() => ancestor = parent,
                _ => return false,
            }
        };
        std::iter::once(&self.root)
            .chain(&self.others)
            .any(|folder| folder.canonicalize().is_ok_and(|folder| real.starts_with(folder)))
    }

    /// Open a path that, for the kernel, leads out or nowhere.
    fn step(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Refusal> {
        for _ in 0..ATTEMPTS {
            let (folder, rest) = self.resolve(path)?;
            match walk(&folder, &rest, flags) {
                // The path has no links: one that is met was placed later.
                Err(Errno::LOOP | Errno::NOTDIR | Errno::NOENT) => {}
                result => return Ok(result?),
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// Resolve a path to the allowed folder it leads to, and the path below it, both without links.
    fn resolve(&self, path: &Path) -> Result<(PathBuf, PathBuf), Refusal> {
        let real = self.root.join(path).canonicalize()?;
        for folder in std::iter::once(&self.root).chain(&self.others) {
            let Ok(folder) = folder.canonicalize() else { continue };
            if let Ok(rest) = real.strip_prefix(&folder) {
                let rest = rest.to_path_buf();
                return Ok((folder, rest));
            }
        }
        Err(Refusal::LeadsOut)
    }
}

/// Open a path without links, step by step.
fn walk(root: &Path, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let mut folder = open(root, FOLDER, Mode::empty())?;
    let mut names: Vec<&OsStr> = path.iter().collect();
    let last = names.pop().unwrap_or(OsStr::new("."));
    for name in names {
        folder = openat(&folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    }
    openat(&folder, last, flags | OFlags::NOFOLLOW, Mode::empty())
}

#[cfg(target_os = "linux")]
fn below(root: &Path, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::{ResolveFlags, openat2};
    let root = open(root, FOLDER, Mode::empty())?;
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    openat2(&root, path, flags, Mode::empty(), how)
}

#[cfg(not(target_os = "linux"))]
fn below(_root: &Path, _path: &Path, _flags: OFlags) -> rustix::io::Result<OwnedFd> {
    Err(Errno::NOSYS)
}

/// Whether the folder holds this very file under a name.
pub(crate) fn holds(folder: &OwnedFd, name: &str, file: &File) -> io::Result<bool> {
    let ours = rustix::fs::fstat(file)?;
    let existing = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    Ok(existing
        .is_ok_and(|existing| (existing.st_dev, existing.st_ino) == (ours.st_dev, ours.st_ino)))
}

/// A folder by its path; missing folders are created, and their names are on the disk then.
pub(crate) fn make_folder(path: &Path) -> Result<OwnedFd, Refusal> {
    make_folders(path)?;
    Ok(open(path, FOLDER, Mode::empty())?)
}

fn make_folders(path: &Path) -> io::Result<()> {
    let (mut folder, mut missing) = (path, Vec::new());
    while let Err(error) = make_one_folder(folder) {
        let parent = folder.parent().filter(|parent| parent.file_name().is_some());
        match parent {
            Some(parent) if error.kind() == io::ErrorKind::NotFound => {
                missing.push(std::mem::replace(&mut folder, parent));
            }
            _ => return Err(error),
        }
    }
    missing.into_iter().rev().try_for_each(make_one_folder)
}

fn make_one_folder(path: &Path) -> io::Result<()> {
    match std::fs::create_dir(path) {
        Ok(()) => {}
        Err(_) if path.is_dir() => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Errno::NOTDIR.into());
        }
        Err(error) => return Err(error),
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync_folder(&open(parent.unwrap_or(Path::new(".")), FOLDER, Mode::empty())?)
}

/// Wait until the names in a folder are on the disk.
///
/// # Errors
/// Those of the operating system.
pub fn sync_folder(folder: &OwnedFd) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    File::from(openat(folder, ".", flags, Mode::empty())?).sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A store with links of all kinds, and what lies beside it.
    fn folders() -> (tempfile::TempDir, StoreFolders) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["store/deep", "more", "outside"] {
            fs::create_dir_all(path(name)).unwrap();
            fs::write(path(name).join("file"), name).unwrap();
        }
        symlink("deep/file", path("store/near")).unwrap();
        symlink(path("store/deep/file"), path("store/absolute")).unwrap();
        symlink("../more/file", path("store/more")).unwrap();
        symlink(path("more"), path("store/deep/more")).unwrap();
        symlink("../outside/file", path("store/out")).unwrap();
        symlink(path("outside"), path("store/deep/out")).unwrap();
        symlink("/proc/self/root", path("store/magic")).unwrap();
        symlink("loop", path("store/loop")).unwrap();
        let store = StoreFolders::new(path("store"), vec![path("more"), path("missing")]);
        (folder, store)
    }

    type Opening = fn(&StoreFolders, &Path) -> Result<OwnedFd, Refusal>;

    /// With what the kernel offers, and without it.
    const WAYS: [Opening; 2] = [
        |store, path| store.open(path, OFlags::RDONLY),
        |store, path| store.step(path, OFlags::RDONLY | OFlags::CLOEXEC),
    ];

    fn text(file: OwnedFd) -> String {
        let mut text = String::new();
        File::from(file).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn folders_are_made_or_refused() {
        let (folder, _) = folders();
        let deep: PathBuf = std::iter::repeat_n("d", 1000).collect();
        let deep = folder.path().join("new").join(deep);
        assert!(make_folder(&deep).is_ok() && deep.is_dir());
        assert!(make_folder(&deep).is_ok(), "it is there");
        assert!(make_folder(&folder.path().join("more/file/below")).is_err(), "through a file");
        // A file system that says there is no such folder to make.
        assert!(make_folder(Path::new("/proc/none/below")).is_err());
    }

    #[test]
    fn links_lead_to_allowed_folders_only() {
        let (_folder, store) = folders();
        for way in WAYS {
            let read = |path: &str| way(&store, Path::new(path)).map(text);
            for path in ["deep/file", "near", "absolute", "deep/../near", "./deep//file"] {
                assert_eq!(read(path).unwrap(), "store/deep", "{path}");
            }
            for path in ["more", "deep/more/file"] {
                assert_eq!(read(path).unwrap(), "more", "{path}");
            }
            let out = ["out", "deep/out/file", "../outside/file", "..", "magic/etc/passwd"];
            for path in out {
                assert!(matches!(read(path), Err(Refusal::LeadsOut)), "{path}");
            }
            for path in ["missing", "near/file", "loop"] {
                assert!(matches!(read(path), Err(Refusal::Io(_))), "{path}");
            }
        }
    }

    #[test]
    fn the_root_itself_may_be_a_link() {
        let (folder, store) = folders();
        symlink(&store.root, folder.path().join("link")).unwrap();
        let by_link = StoreFolders::new(folder.path().join("link"), Vec::new());
        for way in WAYS {
            assert_eq!(text(way(&by_link, Path::new("absolute")).unwrap()), "store/deep");
            assert!(matches!(way(&by_link, Path::new("more")), Err(Refusal::LeadsOut)));
        }
    }

    #[test]
    fn folders_are_made_below_the_root_only() {
        let (folder, store) = folders();
        store.make_folder(Path::new("deep/new/newer")).unwrap();
        assert!(folder.path().join("store/deep/new/newer").is_dir());
        store.make_folder(Path::new("deep/more/new")).unwrap();
        assert!(folder.path().join("more/new").is_dir());
        for path in ["deep/out/new", "../outside/new", "new/../../outside/new"] {
            store.make_folder(Path::new(path)).unwrap_err();
        }
        assert_eq!(fs::read_dir(folder.path().join("outside")).unwrap().count(), 1);
        let missing = StoreFolders::new(folder.path().join("a/b"), Vec::new());
        missing.make_folder(Path::new("c")).unwrap();
        assert!(folder.path().join("a/b/c").is_dir());
    }

    #[test]
    fn no_folder_is_made_through_a_file() {
        let (folder, store) = folders();
        let is_no_folder = |refusal: Refusal| matches!(refusal, Refusal::Io(error) if error.kind() == io::ErrorKind::NotADirectory);
        for path in ["deep/file", "deep/file/new", "deep/file/new/newer"] {
            assert!(is_no_folder(store.make_folder(Path::new(path)).unwrap_err()), "{path}");
            let path = folder.path().join("store").join(path);
            assert!(is_no_folder(make_folder(&path).unwrap_err()), "{path:?}");
        }
        make_folder(&folder.path().join("store/free/new")).unwrap();
        assert!(folder.path().join("store/free/new").is_dir());
    }

    /// Somebody swaps a folder, and a file, for links that lead out, and back.
    #[test]
    fn who_swaps_links_meanwhile_gains_nothing() {
        let (folder, store) = folders();
        let path = |name: &str| folder.path().join(name);
        let is_done = AtomicBool::new(false);
        let swap = |name: &str, target: &str| {
            symlink(path(target), path("swapped")).unwrap();
            fs::rename(path("swapped"), path(name)).unwrap();
        };
        swap("store/folder", "store/deep");
        swap("store/file", "store/deep/file");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    for (folder, file) in
                        [("outside", "outside/file"), ("store/deep", "store/deep/file")]
                    {
                        swap("store/folder", folder);
                        swap("store/file", file);
                    }
                }
            });
            let mut counts = [0, 0];
            for way in WAYS {
                for name in ["folder/file", "file"].repeat(1000) {
                    let text_of_file = way(&store, Path::new(name)).map(text);
                    counts[usize::from(text_of_file.is_ok())] += 1;
                    assert!(
                        text_of_file.is_err() || text_of_file.unwrap() == "store/deep",
                        "{name}"
                    );
                }
            }
            is_done.store(true, Ordering::Relaxed);
            assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
        });
    }
}
