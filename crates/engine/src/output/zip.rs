//! Zip archives of stored members (APPNOTE 6.3.10), each written at once: what stands before a
//! member says all of it, so that an archive without its directory can be gone on with.

use super::growing_file::GrowingFile;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
/// Number of the extra field that holds sizes and offsets of 64 bits.
const EXTRA_64: u16 = 1;
/// The value of such a field in its usual place.
const IN_EXTRA: u32 = u32::MAX;
const VERSION: u16 = 20;
const VERSION_64: u16 = 45;
/// Version made by: Unix, so that permissions are read.
const MADE_BY: u16 = 3 << 8 | VERSION_64;
const MODE: u32 = 0o100_644 << 16;
const UTF_8: u16 = 1 << 11;
/// Members have no date: 1980-01-01 is the first date of the format.
const DATE: u16 = 0x21;
const LOCAL_BYTES: usize = 30;
/// A directory longer than this is put into a file of its own until it is written.
const DIRECTORY_BYTES: usize = 1 << 20;
const READ_BYTES: usize = 1 << 16;

/// A member of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Bytes of its content.
    pub size: u64,
    /// Offset of its local header.
    pub start: u64,
    /// Its end.
    pub end: u64,
    crc: u32,
}

/// The members of an archive in their order, as far as they are whole and stored, without its
/// directory.
///
/// # Errors
/// If it cannot be read.
pub fn members(file: &File) -> io::Result<Vec<Member>> {
    Members::of(file)?.collect()
}

/// The members of an archive in their order, read one by one: see [`members`].
pub struct Members<F> {
    file: F,
    length: u64,
    start: u64,
}

impl<F: std::borrow::Borrow<File>> Members<F> {
    /// Start with the first member.
    ///
    /// # Errors
    /// If the length of the file cannot be read.
    pub fn of(file: F) -> io::Result<Members<F>> {
        let length = file.borrow().metadata()?.len();
        Ok(Members { file, length, start: 0 })
    }
}

impl<F: std::borrow::Borrow<File>> Iterator for Members<F> {
    type Item = io::Result<Member>;

    fn next(&mut self) -> Option<io::Result<Member>> {
        let member = member_at(self.file.borrow(), self.start, self.length).transpose()?;
        if let Ok(member) = &member {
            self.start = member.end;
        }
        Some(member)
    }
}

fn member_at(file: &File, start: u64, length: u64) -> io::Result<Option<Member>> {
    let mut head = [0; LOCAL_BYTES];
    if start + LOCAL_BYTES as u64 > length {
        return Ok(None);
    }
    file.read_exact_at(&mut head, start)?;
    let short = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let long = |at: usize| u32::from(short(at)) | u32::from(short(at + 2)) << 16;
    let is_stored = short(8) == 0 && short(6) & !UTF_8 == 0 && long(18) == long(22);
    if long(0) != LOCAL || !is_stored {
        return Ok(None);
    }
    let (name_bytes, extra_bytes) = (usize::from(short(26)), usize::from(short(28)));
    let data = start + (LOCAL_BYTES + name_bytes + extra_bytes) as u64;
    if data > length {
        return Ok(None);
    }
    let mut rest = vec![0; name_bytes + extra_bytes];
    file.read_exact_at(&mut rest, start + LOCAL_BYTES as u64)?;
    let size = match long(22) {
        IN_EXTRA => rest[name_bytes..].get(4..12).and_then(|bytes| bytes.try_into().ok()),
        size => Some(u64::from(size).to_le_bytes()),
    };
    let Some(size) = size.map(u64::from_le_bytes) else { return Ok(None) };
    let Some(end) = data.checked_add(size).filter(|&end| end <= length) else { return Ok(None) };
    rest.truncate(name_bytes);
    let Ok(name) = String::from_utf8(rest) else { return Ok(None) };
    Ok(Some(Member { name, size, start, end, crc: long(14) }))
}

/// A member that is not in an archive yet, with its checksum.
pub(crate) struct ZipEntry<'a> {
    name: &'a str,
    bytes: &'a [u8],
    crc: u32,
}

impl<'a> ZipEntry<'a> {
    /// Compute the checksum, which nobody needs to wait for.
    pub fn new(name: &'a str, bytes: &'a [u8]) -> ZipEntry<'a> {
        ZipEntry { name, bytes, crc: crc32fast::hash(bytes) }
    }
}

/// An archive that is being written.
pub(crate) struct Zip {
    file: GrowingFile,
    directory: Directory,
}

/// The directory of an archive that is being written. It may have millions of entries, so most of
/// it is in a file that no longer has a name.
struct Directory {
    archive: PathBuf,
    spill: Option<File>,
    spilled_bytes: u64,
    recent: Vec<u8>,
    count: u64,
}

impl Directory {
    fn new(archive: &Path) -> Directory {
        let archive = archive.to_path_buf();
        Directory { archive, spill: None, spilled_bytes: 0, recent: Vec::new(), count: 0 }
    }

    /// Make room for another entry.
    fn make_room(&mut self) -> io::Result<()> {
        if self.recent.len() < DIRECTORY_BYTES {
            return Ok(());
        }
        let spill =
            match &mut self.spill {
                Some(spill) => spill,
                empty => empty.insert(self.archive.parent().map_or_else(
                    || Err(io::ErrorKind::InvalidInput.into()),
                    tempfile::tempfile_in,
                )?),
            };
        spill.write_all_at(&self.recent, self.spilled_bytes)?;
        self.spilled_bytes += self.recent.len() as u64;
        self.recent.clear();
        Ok(())
    }

    fn add(&mut self, member: &Member) -> io::Result<()> {
        member.central(&mut self.recent)?;
        self.count += 1;
        Ok(())
    }
}

impl Zip {
    /// Begin an archive, or go on with one behind those members that end at `end`.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn new(file: File, end: u64, path: &Path) -> io::Result<Zip> {
        let mut directory = Directory::new(path);
        let mut last = 0;
        for member in Members::of(&file)? {
            let member = member?;
            if member.end > end {
                break;
            }
            directory.make_room()?;
            directory.add(&member)?;
            last = member.end;
        }
        Ok(Zip { file: GrowingFile::new(file, last, &[])?, directory })
    }

    /// Add a member.
    ///
    /// # Errors
    /// If it cannot be written; the archive is left as it was.
    pub fn add(&mut self, ZipEntry { name, bytes, crc }: ZipEntry<'_>) -> io::Result<()> {
        self.directory.make_room()?;
        let member = self.next(name, bytes.len() as u64, crc);
        self.file.add(&[&member.local()?, bytes])?;
        self.directory.add(&member)
    }

    /// Add a file as a member.
    ///
    /// # Errors
    /// As [`Zip::add`].
    pub fn add_file(&mut self, name: &str, file: &mut File) -> io::Result<()> {
        let mut crc = crc32fast::Hasher::new();
        let mut buffer = vec![0; READ_BYTES];
        let mut size = 0;
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                count => {
                    crc.update(&buffer[..count]);
                    size += count as u64;
                }
            }
        }
        file.rewind()?;
        self.directory.make_room()?;
        let member = self.next(name, size, crc.finalize());
        self.file.add_file(&member.local()?, file, size, &[])?;
        self.directory.add(&member)
    }

    fn next(&self, name: &str, size: u64, crc: u32) -> Member {
        Member { name: name.to_string(), size, start: self.file.end(), end: 0, crc }
    }

    /// Write the directory, and wait until all is on the disk.
    ///
    /// # Errors
    /// If it cannot be written; the members stay, and it can be tried again.
    pub fn finish(&mut self) -> io::Result<()> {
        let start = self.file.end();
        let Directory { spill, spilled_bytes, recent, count, .. } = &mut self.directory;
        let (bytes, count) = (*spilled_bytes + recent.len() as u64, *count);
        let mut end = Vec::new();
        if count >= u64::from(u16::MAX) || start + bytes >= u64::from(IN_EXTRA) {
            end_64(&mut end, count, bytes, start);
        }
        end.extend_from_slice(&END.to_le_bytes());
        end.extend_from_slice(&[0; 4]);
        let short_count = u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes();
        end.extend_from_slice(&short_count);
        end.extend_from_slice(&short_count);
        for value in [bytes, start] {
            end.extend_from_slice(&clamp(value).to_le_bytes());
        }
        end.extend_from_slice(&[0; 2]);
        match spill {
            Some(spill) => {
                spill.rewind()?;
                self.file.add_file(&[], spill, *spilled_bytes, &[recent, &end])?;
            }
            None => self.file.add(&[recent, &end])?,
        }
        self.file.sync()
    }
}

impl Member {
    fn least_version(&self) -> u16 {
        if self.size >= u64::from(IN_EXTRA) { VERSION_64 } else { VERSION }
    }

    /// Versions, flags, date, checksum and sizes, as both headers of a member have them.
    fn facts(&self, to: &mut Vec<u8>, extra: &[u64]) -> io::Result<()> {
        let name_bytes = u16::try_from(self.name.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the name is too long"))?;
        let flags = if self.name.is_ascii() { 0 } else { UTF_8 };
        let version = if extra.is_empty() { self.least_version() } else { VERSION_64 };
        for value in [version, flags, 0, 0, DATE] {
            to.extend_from_slice(&value.to_le_bytes());
        }
        for value in [self.crc, clamp(self.size), clamp(self.size)] {
            to.extend_from_slice(&value.to_le_bytes());
        }
        let extra_bytes = if extra.is_empty() { 0 } else { 4 + 8 * extra.len() as u16 };
        to.extend_from_slice(&name_bytes.to_le_bytes());
        to.extend_from_slice(&extra_bytes.to_le_bytes());
        Ok(())
    }

    /// The local header of the member.
    fn local(&self) -> io::Result<Vec<u8>> {
        let is_large = self.size >= u64::from(IN_EXTRA);
        let sizes = [self.size, self.size];
        let extra = if is_large { &sizes[..] } else { &[] };
        let mut head = Vec::with_capacity(LOCAL_BYTES + self.name.len() + 20);
        head.extend_from_slice(&LOCAL.to_le_bytes());
        self.facts(&mut head, extra)?;
        head.extend_from_slice(self.name.as_bytes());
        extra_field(&mut head, extra);
        Ok(head)
    }

    /// Its entry in the central directory.
    fn central(&self, to: &mut Vec<u8>) -> io::Result<()> {
        let mut extra = Vec::new();
        if self.size >= u64::from(IN_EXTRA) {
            extra.extend([self.size, self.size]);
        }
        if self.start >= u64::from(IN_EXTRA) {
            extra.push(self.start);
        }
        to.extend_from_slice(&CENTRAL.to_le_bytes());
        to.extend_from_slice(&MADE_BY.to_le_bytes());
        self.facts(to, &extra)?;
        // Comment, disk, internal attributes.
        to.extend_from_slice(&[0; 6]);
        to.extend_from_slice(&MODE.to_le_bytes());
        to.extend_from_slice(&clamp(self.start).to_le_bytes());
        to.extend_from_slice(self.name.as_bytes());
        extra_field(to, &extra);
        Ok(())
    }
}

fn clamp(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(IN_EXTRA)
}

fn extra_field(to: &mut Vec<u8>, values: &[u64]) {
    if values.is_empty() {
        return;
    }
    to.extend_from_slice(&EXTRA_64.to_le_bytes());
    to.extend_from_slice(&(8 * values.len() as u16).to_le_bytes());
    for value in values {
        to.extend_from_slice(&value.to_le_bytes());
    }
}

/// The end of a directory of many members, or one far from the start.
fn end_64(to: &mut Vec<u8>, count: u64, bytes: u64, start: u64) {
    let end = start + bytes;
    to.extend_from_slice(&END_64.to_le_bytes());
    to.extend_from_slice(&44_u64.to_le_bytes());
    to.extend_from_slice(&MADE_BY.to_le_bytes());
    to.extend_from_slice(&VERSION_64.to_le_bytes());
    to.extend_from_slice(&[0; 8]);
    for value in [count, count, bytes, start] {
        to.extend_from_slice(&value.to_le_bytes());
    }
    to.extend_from_slice(&LOCATOR_64.to_le_bytes());
    to.extend_from_slice(&[0; 4]);
    to.extend_from_slice(&end.to_le_bytes());
    to.extend_from_slice(&1_u32.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn open_file(path: &Path) -> File {
        File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap()
    }

    #[test]
    fn an_archive_that_was_broken_off_is_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zip");
        let mut zip = Zip::new(open_file(&path), 0, &path).unwrap();
        for number in 0..3_usize {
            let name = format!("ä-{number}");
            zip.add(ZipEntry::new(&name, &vec![7; 100 * number])).unwrap();
        }
        let bytes = std::fs::metadata(&path).unwrap().len();
        drop(zip);
        // The fourth member is cut off.
        let file = open_file(&path);
        let half: Vec<u8> = std::fs::read(&path).unwrap()[..50].to_vec();
        file.write_all_at(&half[..40], bytes).unwrap();
        let entries = members(&file).unwrap();
        let names: Vec<&str> = entries.iter().map(|member| &*member.name).collect();
        assert_eq!(names[..3], ["ä-0", "ä-1", "ä-2"]);
        let mut zip = Zip::new(file, entries[1].end, &path).unwrap();
        zip.add(ZipEntry::new("last", b"content")).unwrap();
        zip.finish().unwrap();
        let names: Vec<_> =
            members(&open_file(&path)).unwrap().into_iter().map(|member| member.name).collect();
        assert_eq!(names, ["ä-0", "ä-1", "last"]);
    }

    #[test]
    fn a_long_directory_is_whole_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zip");
        let mut zip = Zip::new(open_file(&path), 0, &path).unwrap();
        let count = 3 * DIRECTORY_BYTES / 100;
        for number in 0..count {
            let name = format!("{number:054}");
            zip.add(ZipEntry::new(&name, b"content")).unwrap();
        }
        assert!(zip.directory.spilled_bytes > DIRECTORY_BYTES as u64);
        zip.finish().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let mut archive = zip::ZipArchive::new(open_file(&path)).unwrap();
        assert_eq!(archive.len(), count);
        let mut text = String::new();
        archive.by_name(&format!("{:054}", 7)).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "content");
    }

    #[test]
    fn no_bytes_make_the_reader_fail() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zip");
        let mut zip = Zip::new(open_file(&path), 0, &path).unwrap();
        zip.add(ZipEntry::new("name", b"content")).unwrap();
        zip.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            for value in [0, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                std::fs::write(&path, &bytes).unwrap();
                members(&open_file(&path)).unwrap();
            }
            std::fs::write(&path, &bytes[..at]).unwrap();
            members(&open_file(&path)).unwrap();
        }
    }
}
