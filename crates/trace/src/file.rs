//! A file that lines are appended to, renamed when it is large. Several processes may write the
//! same one: each appends whole lines, and one of them renames it for all.

use crate::sink::{LineSink, count, write_all};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A line that others are writing at this moment is whole a little later.
const AMID: Duration = Duration::from_millis(20);
/// A file that cannot be renamed grows; time until the next try.
const RETRY_PAUSE: Duration = Duration::from_secs(60);

/// A file that lines are appended to; renamed `.1` when it is large, and that `.2`.
pub struct RotatingFile {
    path: PathBuf,
    rotate_bytes: Option<u64>,
    keep: u32,
    file: File,
    /// The last line written lacks its end.
    is_torn: bool,
    /// When it could not be renamed.
    failed_at: Option<Instant>,
}

impl RotatingFile {
    /// Open a file; `rotate_bytes`: the size above which it is renamed, `keep`: how many renamed
    /// ones stay.
    ///
    /// # Errors
    /// If it cannot be opened to append to.
    pub fn open(path: &Path, rotate_bytes: Option<u64>, keep: u32) -> io::Result<RotatingFile> {
        let file = append_to(path)?;
        let is_torn = is_torn(&file)?;
        Ok(RotatingFile {
            path: path.to_path_buf(),
            rotate_bytes,
            keep,
            file,
            is_torn,
            failed_at: None,
        })
    }

    /// Prepare to append `bytes` bytes of whole lines: rename the file if it would grow too large,
    /// and end a line that its last writer left unfinished. If the file cannot be renamed, it grows,
    /// and the reason is returned the first time.
    ///
    /// # Errors
    /// If the file cannot be written to.
    pub fn begin(&mut self, bytes: u64) -> io::Result<Option<io::Error>> {
        let is_known = self.failed_at.is_some();
        let stays = self.make_room(bytes).err().filter(|_| !is_known);
        if self.is_torn {
            // The rest of that line is damaged; the next is not.
            io::Write::write_all(&mut self.file, b"\n")?;
            self.is_torn = false;
        }
        Ok(stays)
    }

    /// Append some of the bytes; returns how many.
    ///
    /// # Errors
    /// If the file cannot be written to.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::Write::write(&mut self.file, bytes)
    }

    /// Make room for more bytes: rename the file and begin another, unless somebody has.
    fn make_room(&mut self, more: u64) -> io::Result<()> {
        let Some(limit) = self.rotate_bytes else { return Ok(()) };
        if !self.is_current()? {
            self.reopen()?;
        }
        let size = self.file.metadata()?.len();
        let waits = self.failed_at.is_some_and(|failed_at| failed_at.elapsed() < RETRY_PAUSE);
        if size == 0 || size + more <= limit || waits {
            return Ok(());
        }
        let result = self.rotate();
        self.failed_at = result.is_err().then(Instant::now);
        result
    }

    fn rotate(&mut self) -> io::Result<()> {
        // A thread that waited here finds that it was done.
        self.file.lock()?;
        let result = self.rename().and_then(|()| self.reopen());
        if result.is_err() {
            // Others must not wait until this process ends.
            let _ = self.file.unlock();
        }
        result
    }

    /// Rename the file, and those renamed before, unless somebody has.
    fn rename(&self) -> io::Result<()> {
        if !self.is_current()? {
            return Ok(());
        }
        self.shift()?;
        fs::rename(&self.path, self.numbered_path(1))
    }

    /// Rename the files renamed before, down to a number that none has: repeated attempts would
    /// lose the oldest otherwise.
    fn shift(&self) -> io::Result<()> {
        let free = (1..self.keep).find(|&number| !self.numbered_path(number).exists());
        for number in (1..free.unwrap_or(self.keep)).rev() {
            match fs::rename(self.numbered_path(number), self.numbered_path(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Open the file that has the name now; closing the other releases its lock.
    fn reopen(&mut self) -> io::Result<()> {
        self.file = append_to(&self.path)?;
        self.is_torn = is_torn(&self.file)?;
        Ok(())
    }

    /// Whether the open file still has the name.
    fn is_current(&self) -> io::Result<bool> {
        let own = self.file.metadata()?;
        match fs::metadata(&self.path) {
            Ok(at_path) => Ok((at_path.dev(), at_path.ino()) == (own.dev(), own.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn numbered_path(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

/// Open a file to append to; if it is a regular file that may be read, also to look at its end.
fn append_to(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    if let Ok(metadata) = fs::metadata(path)
        && !metadata.is_file()
    {
        // Who opens a pipe to write waits for who reads it: for a moment that is this process. Who
        // keeps it open to read hears of nobody who leaves.
        let is_pipe = metadata.file_type().is_fifo();
        let _reader =
            is_pipe.then(|| File::options().read(true).write(true).open(path)).transpose()?;
        return options.open(path);
    }
    match options.clone().read(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => options.open(path),
        result => result,
    }
}

/// Whether its last writer was killed amid a line.
fn is_torn(file: &File) -> io::Result<bool> {
    let mut length = 0;
    loop {
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() == 0 {
            return Ok(false);
        }
        let mut last = [0];
        match file.read_exact_at(&mut last, metadata.len() - 1) {
            Ok(()) if last == *b"\n" => return Ok(false),
            Ok(()) => {}
            // It may not be read: one line too many is better than one too few.
            Err(_) => return Ok(true),
        }
        if length == metadata.len() {
            return Ok(true);
        }
        length = metadata.len();
        std::thread::sleep(AMID);
    }
}

impl LineSink for RotatingFile {
    fn write(&mut self, lines: &[u8], lost_lines: &mut u64) -> io::Result<()> {
        let stays = match self.begin(lines.len() as u64) {
            Ok(stays) => stays,
            Err(error) => {
                *lost_lines += count(lines);
                return Err(error);
            }
        };
        let (is_complete, result) = write_all(&mut self.file, lines, lost_lines);
        self.is_torn = !is_complete;
        result.and(stays.map_or(Ok(()), Err))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("listed");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn it_is_renamed_before_it_grows_beyond_and_so_many_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.ulm");
        let mut file = RotatingFile::open(&path, Some(10), 2).expect("open");
        for number in 0..5 {
            file.write(format!("line {number}\n").as_bytes(), &mut 0).expect("written");
        }
        assert_eq!(names(folder.path()), ["run.ulm", "run.ulm.1", "run.ulm.2"]);
        for (name, text) in
            [("run.ulm", "line 4\n"), ("run.ulm.1", "line 3\n"), ("run.ulm.2", "line 2\n")]
        {
            assert_eq!(fs::read_to_string(folder.path().join(name)).expect("read"), text);
        }
    }

    #[test]
    fn files_are_renamed_only_as_far_as_there_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.ulm");
        fs::write(folder.path().join("run.ulm.2"), "old\n").expect("written");
        let mut file = RotatingFile::open(&path, Some(10), 3).expect("open");
        for number in 0..2 {
            file.write(format!("line {number}\n").as_bytes(), &mut 0).expect("written");
        }
        assert_eq!(names(folder.path()), ["run.ulm", "run.ulm.1", "run.ulm.2"]);
        assert_eq!(fs::read_to_string(folder.path().join("run.ulm.2")).expect("read"), "old\n");
        // Nor further each time, if the file itself cannot be renamed.
        for _ in 0..3 {
            file.shift().expect("renamed");
        }
        assert_eq!(names(folder.path()), ["run.ulm", "run.ulm.2", "run.ulm.3"]);
        assert_eq!(fs::read_to_string(folder.path().join("run.ulm.3")).expect("read"), "old\n");
    }

    #[test]
    fn a_line_written_in_parts_stays_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.ulm");
        fs::write(&path, "a\nhal").expect("written");
        let mut file = RotatingFile::open(&path, Some(20), 1).expect("open");
        assert!(file.begin(14).expect("begun").is_none());
        for part in ["line", " 1\nli", "ne 2\n"] {
            assert_eq!(file.append(part.as_bytes()).expect("appended"), part.len());
        }
        assert!(file.begin(7).expect("begun").is_none());
        assert_eq!(file.append(b"line 3\n").expect("appended"), 7);
        assert_eq!(names(folder.path()), ["run.ulm", "run.ulm.1"]);
        let first = fs::read_to_string(folder.path().join("run.ulm.1")).expect("read");
        assert_eq!(first, "a\nhal\nline 1\nline 2\n");
        assert_eq!(fs::read_to_string(&path).expect("read"), "line 3\n");
    }

    #[test]
    fn what_cannot_be_renamed_grows_and_is_not_tried_each_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.ulm");
        let in_the_way = folder.path().join("run.ulm.1");
        fs::create_dir(&in_the_way).expect("made");
        let mut file = RotatingFile::open(&path, Some(10), 1).expect("open");
        file.write(b"line 0\n", &mut 0).expect("written");
        file.write(b"line 1\n", &mut 0).expect_err("it cannot be renamed");
        file.failed_at = Instant::now().checked_sub(RETRY_PAUSE);
        file.write(b"line 2\n", &mut 0).expect("an error is told once");
        // Others who see it full do not wait.
        let other = append_to(&path).expect("open");
        other.try_lock().expect("nobody holds it");
        other.unlock().expect("unlocked");
        fs::remove_dir(&in_the_way).expect("removed");
        file.write(b"line 3\n", &mut 0).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "line 0\nline 1\nline 2\nline 3\n");
        file.failed_at = Instant::now().checked_sub(RETRY_PAUSE);
        file.write(b"line 4\n", &mut 0).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "line 4\n");
    }

    #[test]
    fn writers_of_one_file_lose_nothing_when_one_renames_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.ulm");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    let mut file = RotatingFile::open(path, Some(1000), 1000).expect("open");
                    for number in 0..200 {
                        let line = format!("{writer} {number}\n");
                        file.write(line.as_bytes(), &mut 0).expect("written");
                    }
                });
            }
        });
        let read = |name: &String| fs::read_to_string(folder.path().join(name)).expect("read");
        let all: String = names(folder.path()).iter().map(read).collect();
        let mut lines: Vec<&str> = all.lines().collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 800);
    }

    #[test]
    fn what_is_appended_begins_on_a_line_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.ulm");
        for (before, after) in [("", "new\n"), ("a\n", "a\nnew\n"), ("a\nhal", "a\nhal\nnew\n")] {
            fs::write(&path, before).expect("written");
            let mut file = RotatingFile::open(&path, None, 1).expect("open");
            file.write(b"new\n", &mut 0).expect("written");
            assert_eq!(fs::read_to_string(&path).expect("read"), after);
        }
        // Nor does who finds that another has renamed it.
        let mut file = RotatingFile::open(&path, Some(100), 1).expect("open");
        fs::remove_file(&path).expect("removed");
        fs::write(&path, "b\nhal").expect("written");
        file.write(b"new\n", &mut 0).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "b\nhal\nnew\n");
    }

    #[test]
    fn a_full_disk_is_an_error_and_counted() {
        let mut file = RotatingFile::open(Path::new("/dev/full"), None, 1).expect("open");
        let mut lost_lines = 0;
        file.write(b"a\nb\n", &mut lost_lines).expect_err("full");
        assert_eq!(lost_lines, 2);
    }
}
